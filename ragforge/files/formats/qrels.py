"""Qrels: which chunk has which grade for which query, from files of many shapes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.formats.trec import read_trec_qrels
from ragforge.files.record_files import read_records
from ragforge.files.source_files import has_header, open_source
from ragforge.measures.listed_relevance import LabelsInForce
from ragforge.measures.run_evaluation import highest_grade
from ragforge.measures.scores import SCALE_TOP
from ragforge.records import Judgment

if TYPE_CHECKING:
    from ragforge.files.formats.export_note import RunLabels
    from ragforge.files.formats.named_texts import NamedText
    from ragforge.records.judgments import GradeOrigin

_SAYS_WHO = '"provenance"'

_FEWEST_COLUMNS: Final = 4
_HEADER_BYTES: Final = 64
"""No qrels file of so few holds more than its header or a pair."""
_NATIVE: Final = "judgments.jsonl"
_MANIFEST: Final = "manifest.json"
_QUERIES: Final = "queries.jsonl"
_TEXTS: Final = "retrieved.jsonl"


def judgments_in(path: Path) -> list[Judgment]:
    """Return the judgments of a file of qrels that says who made them; [] for any other file.

    Args:
        path: As for `read_qrels`, which says what is wrong with a file.
    """
    native = path / "judgments.jsonl" if path.is_dir() else path
    try:
        source = open_source(native)
        return list(read_records(native, Judgment)) if _SAYS_WHO in source.first else []
    except DataError:
        return []


@dataclass(frozen=True, slots=True)
class JudgedQrels:
    """The grades of a file, and who gave them as far as the file says so."""

    grades: Mapping[str, Mapping[str, int | None]]
    """As `read_qrels` returns them."""
    origins: Mapping[tuple[str, str], "GradeOrigin"]
    """By query and chunk; empty where the file does not say who graded."""
    rel_threshold: int | None = None
    """Lowest grade that is relevant, where lists of relevant ids beside grades say so."""
    relevant: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The lists by query, where no threshold explains them; see `listed_relevance`."""
    reading: str = ""
    """How lists and grades are read together, in a sentence."""
    labels: "Literal['complete', 'pooled', 'partial'] | None" = None
    """What a chunk without a label is, as the author of the labels says; None where nobody does."""
    by_document: Collection[str] = ()
    """Queries whose labels name whole documents, as an export says."""
    texts: "Mapping[str, Sequence[NamedText]]" = field(default_factory=dict)
    """What passages read, by query, as far as the file says it."""
    questions: "Collection[NamedText]" = ()
    """What queries ask beside their ids, as far as the file says it."""
    of_runs: "Mapping[str, RunLabels]" = field(default_factory=dict)
    """What runs with texts of their own are measured on, of an export; see `labels_of_run`."""
    n_unanswerable: int = 0
    """Queries of a dataset that are left out, as no chunk is to answer them."""

    def in_force(self, asked: "int | Literal['auto']") -> LabelsInForce:
        """Return what is measured on, under the threshold that is asked for.

        Where the author's lists say from which grade on chunks are relevant, that holds unless
        another threshold is asked for; and where it is 1, a judge's 1 (no part of the answer) is 0.
        """
        if not isinstance(asked, str):
            return LabelsInForce(self.grades, asked, None)
        grades = self.grades
        others = {pair for pair, of in self.origins.items() if of.source != "human"}
        if self.rel_threshold == 1 and others:
            grades = {
                query_id: {
                    chunk_id: 0 if grade == 1 and (query_id, chunk_id) in others else grade
                    for chunk_id, grade in of_query.items()
                }
                for query_id, of_query in grades.items()
            }
        reading = self.reading
        if not reading and self.rel_threshold is not None:
            reading = f"relevant: grade >= {self.rel_threshold}, as the set has it"
        if not reading and (highest := highest_grade(grades)) > SCALE_TOP:
            reading = f"relevant: grade >= 2, and grades reach {highest}: say which is with "
            reading += "--rel-threshold"
        if grades is not self.grades:
            reading += "; a judge's: >= 2"
        return LabelsInForce(grades, self.rel_threshold or "auto", self.relevant or None, reading)


def read_qrels(path: Path) -> Mapping[str, Mapping[str, int | None]]:
    """Return query id to chunk id to grade; None where a judgment gave no grade.

    The shape is recognised by suffix and first line; `.gz` and `.zst` are unpacked. Query and chunk
    ids are texts. A query without id goes by its text. A query without relevant chunks is there,
    empty. Grades are any whole numbers; 0 to 3 in rows with the names of `judgments.jsonl`. Ids
    that are listed as relevant without grade get the lowest grade that counts as relevant in the
    file. Where a listed id has a grade too, that grade counts; what the list says beside it stands
    in what `read_judged_qrels` returns.

    Args:
        path: A file of one of `qrels_rows.SHAPES`, or a folder.

    Raises:
        DataError: The file cannot be read, has none of the shapes, holds a grade that is no whole
            number, or judges a pair twice; the message names file, line and field.
    """
    return read_judged_qrels(path).grades


def read_judged_qrels(path: Path) -> JudgedQrels:
    """Return the grades of a file with who gave them; shapes and errors as for `read_qrels`.

    Rows that ragforge writes name who graded; TREC files, CSV and lists of ids do not.
    """
    found = [_of_texts_alone(file) or _read(file) for file in _files(path)]
    merged = found[0]
    for other in found[1:]:
        grades = {**merged.grades, **other.grades}
        merged = replace(merged, grades=grades, origins={**merged.origins, **other.origins})
    return _as_said(merged, path)


def _of_texts_alone(path: Path) -> JudgedQrels | None:
    """Return the queries of an export whose runs all have texts of their own; None for any other.

    Its qrels hold no pair; those of the runs stand in other files, see `labels_of_run`.
    """
    is_small = path.is_file() and path.stat().st_size <= _HEADER_BYTES
    if not is_small or len(path.read_bytes().splitlines()) > (path.suffix == ".tsv"):
        return None
    from ragforge.files.formats.export_note import note_of

    note = note_of(path)
    if note is None or not note.of_runs or (path.parent.name == "qrels" and path.suffix == ".trec"):
        return None
    return JudgedQrels({query_id: {} for of in note.graded_by for query_id in of.pairs}, {})


def _read(path: Path) -> JudgedQrels:
    source = open_source(path)
    is_trec = source.kind == "columns" and len(source.first.split()) >= _FEWEST_COLUMNS
    if is_trec and not has_header(source):
        return JudgedQrels(read_trec_qrels(source.path, source.groups), {})
    # A TREC file is read before all that the other shapes need is imported.
    from ragforge.files.formats.qrels_rows import read_rows_of_qrels

    relevance, origins, texts, questions = read_rows_of_qrels(source)
    judged = JudgedQrels(
        relevance.grades,
        origins,
        relevance.rel_threshold,
        relevance.relevant,
        relevance.reading,
        texts=texts,
        questions=tuple(questions),
    )
    return _with_note(judged, path) if source.kind == "json" else judged


def _as_said(judged: JudgedQrels, path: Path) -> JudgedQrels:
    """Return qrels with what stands beside them: in the note of an export, or in a manifest."""
    native = path / _NATIVE if path.is_dir() else path
    if native.name == _NATIVE and (native.parent / _MANIFEST).is_file():
        from ragforge.files.manifest import Manifest
        from ragforge.files.record_files import read_object

        manifest = read_object(native.parent / _MANIFEST, Manifest)
        threshold = manifest.rel_threshold or judged.rel_threshold
        judged = _of_held_texts(judged, native.parent / _TEXTS)
        judged = _gaining_one(judged) if manifest.is_binary else judged
        judged = _of_measured_queries(judged, native.parent / _QUERIES)
        return replace(judged, rel_threshold=threshold, labels=manifest.labels)
    is_exported = path.is_dir() or path.name == "qrels.trec" or path.parent.name == "qrels"
    return _with_note(judged, path) if is_exported else judged


def _of_measured_queries(judged: JudgedQrels, path: Path) -> JudgedQrels:
    """Return what a dataset is measured on: its accepted queries that chunks can answer."""
    if not path.is_file():
        return judged
    from ragforge.files.record_files import read_records
    from ragforge.records import Query

    accepted = {
        query.query_id: query.answerable
        for query in read_records(path, Query)
        if query.status == "accepted"
    }
    measured = {query_id for query_id, is_answerable in accepted.items() if is_answerable}
    return replace(
        judged,
        grades={name: grades for name, grades in judged.grades.items() if name in measured},
        origins={pair: origin for pair, origin in judged.origins.items() if pair[0] in measured},
        relevant={name: listed for name, listed in judged.relevant.items() if name in measured},
        n_unanswerable=sum(not accepted.get(name, True) for name in judged.grades),
    )


def _of_held_texts(judged: JudgedQrels, path: Path) -> JudgedQrels:
    """Return the grades of a dataset without those that wait, with texts that no run of it has."""
    from ragforge.records import is_text_id

    texts = {name for of in judged.grades.values() for name in of if is_text_id(name)}
    if texts and path.is_file():
        from ragforge.files.record_files import read_records
        from ragforge.records import RetrievedText

        texts -= {text.chunk_id for text in read_records(path, RetrievedText)}
    if not texts:
        return judged
    grades = {
        query_id: {name: grade for name, grade in of.items() if name not in texts}
        for query_id, of in judged.grades.items()
    }
    relevant = {
        query_id: [name for name in listed if name not in texts]
        for query_id, listed in judged.relevant.items()
    }
    origins = {pair: origin for pair, origin in judged.origins.items() if pair[1] not in texts}
    return replace(judged, grades=grades, origins=origins, relevant=relevant)


def _gaining_one(judged: JudgedQrels) -> JudgedQrels:
    """Return binary labels with 1 for relevant, where nobody but people graded."""
    by_people = all(origin.source == "human" for origin in judged.origins.values())
    grades = judged.grades.values()
    if not by_people or any(grade not in (None, 0, 2) for of in grades for grade in of.values()):
        return judged
    ones = {
        query_id: {name: grade and 1 for name, grade in of.items()}
        for query_id, of in judged.grades.items()
    }
    return replace(judged, grades=ones)


def _with_note(judged: JudgedQrels, path: Path) -> JudgedQrels:
    from ragforge.files.formats.export_note import note_of

    note = note_of(path)
    if note is None:
        return judged
    threshold, reading = judged.rel_threshold, judged.reading
    if not judged.relevant and threshold != note.rel_threshold:
        is_usual = note.rel_threshold == _usual_threshold(judged.grades)
        threshold = None if is_usual else note.rel_threshold
        reading = "" if is_usual else f"relevant: grade >= {threshold}, as the exported set has it"
    return replace(
        judged,
        origins={**note.origins(), **judged.origins},
        rel_threshold=threshold,
        labels=note.labels,
        by_document=note.by_document,
        of_runs={} if path.parent.name == "qrels" and path.suffix == ".trec" else note.of_runs,
        reading=reading,
    )


def _usual_threshold(grades: Mapping[str, Mapping[str, int | None]]) -> int:
    return 2 if any((grade or 0) > 1 for of in grades.values() for grade in of.values()) else 1


def _beir_split(folder: Path) -> Path:
    """Return the qrels file of a BEIR folder: of the test split, else of the only split.

    Raises:
        DataError: There is none, or several and none is called test.
    """
    splits = beir_splits(folder)
    test = [split for split in splits if split.stem == "test"]
    if len(test or splits) == 1:
        return (test or splits)[0]
    if not splits:
        raise DataError(f"{folder}: expected a folder with qrels/test.tsv or judgments.jsonl")
    names = ", ".join(f"qrels/{split.name}" for split in splits)
    raise DataError(f"{folder}: expected one split, or one called test; name one of {names}")


def beir_splits(folder: Path) -> list[Path]:
    """Return the qrels files in a BEIR folder: its tables, else JSON Lines as MTEB has them."""
    qrels = folder / "qrels"
    return sorted(qrels.glob("*.tsv")) or sorted(qrels.glob("*.jsonl"))


def _files(path: Path) -> list[Path]:
    """Return the files that hold the qrels at a place: one, or all splits of an export."""
    if not path.is_dir():
        return [path]
    if (path / _NATIVE).is_file():
        return [path / _NATIVE]
    if (path / "qrels.trec").is_file():
        return [path / "qrels.trec"]
    return beir_files(path)


def beir_files(folder: Path) -> list[Path]:
    """Return the qrels files of a BEIR folder: all splits of an export, else that of `_beir_split`.

    Raises:
        DataError: As for `_beir_split`, or an export lacks one of its splits.
    """
    if not (folder / "ragforge.json").is_file():
        return [_beir_split(folder)]
    from ragforge.files.formats.export_note import note_of

    note = note_of(folder)
    names = note.splits if note else ()
    return [folder / "qrels" / f"{name}.tsv" for name in names] or [_beir_split(folder)]
