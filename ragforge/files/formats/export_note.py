"""The note beside exported labels: what is relevant, who graded, what no label means.

Qrels hold pairs and grades, and no more. `ragforge.json` beside them, or the first key of an
exported JSON file, keeps the rest, so that the same numbers come out again.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from ragforge.errors import DataError
from ragforge.files.record_files import explain, read_object
from ragforge.files.source_files import open_source
from ragforge.records import Provenance
from ragforge.records.judgments import GradeOrigin, origin_by
from ragforge.records.model import ConfigDict, Field, Model, pydantic

NOTE: Final = "ragforge.json"
CHUNKS: Final = "chunks.jsonl"
"""Beside the corpus of a BEIR folder, where labels name documents: what these are cut into."""
CORPUS: Final = "corpus.jsonl"
"""Of a BEIR folder."""
TREC_QRELS: Final = "qrels.trec"
TREC_QUERIES: Final = "queries.tsv"
_BEIR_QRELS: Final = "qrels"
_KEY: Final = "ragforge"
_KEY_BYTES: Final = b'"ragforge"'

Source: TypeAlias = Literal["judge", "human", "evidence", "carried"]


class Graded(NamedTuple):
    """Who graded a pair."""

    source: Source
    by: Provenance | None


class GradedPairs(Model):
    """Pairs with grades of one origin."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    source: Source
    provenance: Annotated[Provenance | None, Field(exclude_if=lambda by: by is None)] = None
    pairs: dict[str, tuple[str, ...]]
    """Ids of chunks by query."""


class RunLabels(Model):
    """What a run with texts that are no chunks of the set is measured on."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    alike: tuple[str, ...]
    """Names of the runs that are cut alike, this one among them."""
    has_chunks: bool = False
    """Whether the chunks of the set are cut alike too."""
    unlike: Annotated[tuple[str, ...], Field(exclude_if=lambda names: not names)] = ()
    """Names of runs that have other texts at its places."""
    pairs: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=lambda pairs: not pairs)] = Field(
        default_factory=dict
    )
    """In a JSON file, the ids by query whose grades count."""


class LabelsNote(Model):
    """What qrels do not say."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: Annotated[int, Field(ge=1, le=1)] = 1
    rel_threshold: Annotated[int, Field(ge=1)]
    """Lowest grade that is relevant."""
    labels: Literal["complete", "pooled", "partial"]
    """What a chunk without a label is: not relevant, not looked at, or not known."""
    splits: Annotated[tuple[str, ...], Field(exclude_if=lambda splits: not splits)] = ()
    """Of a BEIR folder, the names of its qrels files."""
    by_document: Annotated[tuple[str, ...], Field(exclude_if=lambda ids: not ids)] = ()
    """Queries whose labels name whole documents."""
    of_runs: Annotated[dict[str, RunLabels], Field(exclude_if=lambda runs: not runs)] = Field(
        default_factory=dict
    )
    """What runs are measured on that have texts of their own, by name."""
    graded_by: tuple[GradedPairs, ...] = ()
    """Who graded; a pair that is in none was graded by people who are not named."""

    def graders(self) -> dict[tuple[str, str], Graded]:
        """Return who graded, by query and chunk."""
        return {
            (query_id, chunk_id): Graded(of.source, of.provenance)
            for of in self.graded_by
            for query_id, chunk_ids in of.pairs.items()
            for chunk_id in chunk_ids
        }

    def origins(self) -> dict[tuple[str, str], GradeOrigin]:
        """Return where grades come from, by query and chunk."""
        return {pair: origin_by(of.by, of.source) for pair, of in self.graders().items()}

    def of_pairs(self, grades: Mapping[str, Collection[str]]) -> "LabelsNote":
        """Return the note of a part of the pairs, by query."""
        parts = []
        for of in self.graded_by:
            pairs = {
                query_id: tuple(name for name in chunk_ids if name in grades.get(query_id, ()))
                for query_id, chunk_ids in of.pairs.items()
            }
            held = {query_id: chunk_ids for query_id, chunk_ids in pairs.items() if chunk_ids}
            if held:
                parts.append(of.model_copy(update={"pairs": held}))
        return self.model_copy(update={"graded_by": tuple(parts), "of_runs": {}})

    @property
    def is_usual(self) -> bool:
        """Whether it says what is taken for granted of a file of labels without a note."""
        is_plain = not self.graded_by and not self.by_document and not self.of_runs
        return is_plain and self.labels == "complete"


def grouped(graders: Mapping[tuple[str, str], Graded]) -> tuple[GradedPairs, ...]:
    """Return who graded which pairs, those of one origin together; unnamed people are left out."""
    pairs_by_grader: dict[Graded, dict[str, list[str]]] = {}
    for (query_id, chunk_id), of in sorted(graders.items(), key=lambda item: item[0]):
        by = of.by.model_copy(update={"call_key": ""}) if of.by else None
        if of.source != "human" or (by is not None and by.model):
            pairs = pairs_by_grader.setdefault(Graded(of.source, by), {})
            pairs.setdefault(query_id, []).append(chunk_id)
    return tuple(
        GradedPairs(
            source=of.source,
            provenance=of.by,
            pairs={query_id: tuple(ids) for query_id, ids in pairs.items()},
        )
        for of, pairs in pairs_by_grader.items()
    )


def json_with_note(note: LabelsNote | None, rows: Mapping[str, object]) -> Iterator[str]:
    """Yield the text of a JSON file, the note on its first line where there is one."""
    text = json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False)
    if note is not None:
        yield f'{{"{_KEY}": {note.model_dump_json()},'
        text = text.removeprefix("{")
    yield text
    yield "\n"


def note_of(path: Path) -> LabelsNote | None:
    """Return the note of an exported folder, of qrels in one, or of a JSON file; else None.

    Raises:
        DataError: It does not hold to its format.
    """
    place = _note_beside(path)
    if place is not None:
        return read_object(place, LabelsNote)
    if not path.is_file() or (source := open_source(path)).kind != "json":
        return None
    text = b"".join(line for _, line in source.lines)
    if _KEY_BYTES not in text:
        return None
    try:
        document = json.loads(text)
        given = document.get(_KEY) if isinstance(document, dict) else None
        return None if given is None else LabelsNote.model_validate(given)
    except pydantic.ValidationError as error:
        raise DataError(f"{path}: {_KEY}: {explain(error)}") from error
    except (ValueError, RecursionError):
        return None  # Whoever reads the rows says what is wrong with the file.


def brings_chunks(path: Path) -> bool:
    """Whether a folder holds what its labels name: an export with chunks, or BEIR with a corpus.

    The corpus of an export whose labels name documents holds these, which are no chunks.

    Raises:
        DataError: The note of an export does not hold to its format.
    """
    if (path / NOTE).is_file() and (path / CHUNKS).is_file():
        return True
    if not (path / CORPUS).is_file() or not (path / _BEIR_QRELS).is_dir():
        return False
    note = note_of(path)
    return note is None or not note.by_document


def _note_beside(path: Path) -> Path | None:
    """Return the file with the note of an exported folder, or of qrels that stand in one."""
    if path.is_dir():
        folder = path
    elif path.parent.name == _BEIR_QRELS:
        folder = path.parent.parent
    elif path.name == TREC_QRELS:
        folder = path.parent
    else:
        return None
    return folder / NOTE if (folder / NOTE).is_file() else None
