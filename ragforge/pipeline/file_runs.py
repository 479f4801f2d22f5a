"""Runs of files with texts of their own: which grades of an export they are measured on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import Literal

from ragforge.deferred import dataclass
from ragforge.evaluating.chunkings import Chunking, GradesOfFile
from ragforge.files.formats.qrels import JudgedQrels
from ragforge.files.formats.run_labels import has_texts, labels_of_run, named_run
from ragforge.files.source_files import plain_name
from ragforge.records import is_text_id

Grades = Mapping[str, Mapping[str, int | None]]
Rankings = Mapping[str, Iterable[str]]


@dataclass(frozen=True, slots=True)
class FileChunkings:
    """What runs of files are measured on where that is not what the qrels say of chunks.

    Args:
        chunkings: By the name of such a run.
        texts: Grades of texts that are no chunks, by query.
        told: Why the values of a run say nothing, a sentence each.
    """

    chunkings: dict[str, Chunking] = field(default_factory=dict)
    texts: dict[str, dict[str, int | None]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)


def chunkings_of_files(
    judged: JudgedQrels,
    path: Path,
    rankings: Mapping[str, Rankings],
    run_paths: Mapping[str, Path],
    asked: "int | Literal['auto']",
) -> FileChunkings:
    """Return what runs are measured on that have texts of their own.

    Args:
        judged: What the qrels hold.
        path: Where they were read.
        rankings: Of the runs, by name.
        run_paths: Their files.
        asked: The threshold that is asked for.

    Raises:
        DataError: The file of the grades of such a run cannot be read.
    """
    found = FileChunkings()
    of_chunks = frozenset(chain.from_iterable(judged.grades.values()))
    for name, ranked in rankings.items():
        of_name = plain_name(run_paths[name])
        own = labels_of_run(judged, path, of_name) if has_texts(ranked) else None
        if own is not None:
            said = judged.of_runs[of_name]
            grades = own.in_force(asked).grades
            ids = frozenset(chain.from_iterable(grades.values()))
            once = GradesOfFile(grades)
            unlike = frozenset(said.unlike)
            replaced = of_chunks - ids
            found.chunkings[name] = Chunking(
                ids, said.has_chunks, said.alike, replaced, unlike, once
            )
            for query_id, of_query in grades.items():
                texts = {key: grade for key, grade in of_query.items() if is_text_id(key)}
                found.texts.setdefault(query_id, {}).update(texts)
        elif why := why_unmeasured(path, name, ranked, judged.grades):
            ids = frozenset(chain.from_iterable(ranked.values()))
            others = frozenset(rankings) - {name}
            found.chunkings[name] = Chunking(ids, has_chunks=False, runs=(name,), unlike=others)
            found.told.append(why)
    if (of_run := named_run(path)) in rankings and found.chunkings:
        found.chunkings.setdefault(of_run, Chunking(of_chunks, has_chunks=False, runs=(of_run,)))
    return found


def why_unmeasured(path: Path, name: str, ranked: Rankings, grades: Grades) -> str:
    """Return why qrels say nothing of a run that has other texts than they; "" where they do.

    Args:
        path: Of the qrels.
        name: Of the run.
        ranked: What it retrieved.
        grades: Of the qrels.
    """
    hits = [(key, hit) for key, hits in ranked.items() if key in grades for hit in hits]
    if not hits or any(hit in grades[key] for key, hit in hits):
        return ""
    of_run = named_run(path)
    if any(is_text_id(hit) for _, hit in hits):
        return (
            f"{name}: its ids are of texts that are no chunks, and {path} has no grade of any: "
            f"this says nothing of the run. Measure it on qrels/{name}.trec or texts/{name}/ of an "
            "export of its set, or on an export as JSON"
        )
    if of_run and of_run != name:
        return (
            f"{name}: {path} has the grades of texts of run {of_run}, and none of what this run "
            "retrieved: this says nothing of the run. Measure it on the qrels of the whole set"
        )
    return ""


def described(found: FileChunkings) -> Iterator[str]:
    """Yield a sentence on each run that is measured on grades of its own, and on those on none."""
    for name, chunking in found.chunkings.items():
        if isinstance(chunking.repeats, GradesOfFile):
            yield chunking.describe(name)
    yield from found.told
