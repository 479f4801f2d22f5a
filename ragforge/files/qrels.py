"""Qrels: which chunk has which grade for which query, from files of many shapes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.errors import DataError
from ragforge.files.headers import has_header
from ragforge.files.lines import open_source
from ragforge.files.trec import read_trec_qrels

if TYPE_CHECKING:
    from ragforge.records.grade_origins import GradeOrigin

_FEWEST_COLUMNS: Final = 4


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
    """The lists by query, where no threshold explains them; see `ragforge.measures.listed`."""
    reading: str = ""
    """How lists and grades are read together, in a sentence."""


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
    source = open_source(_file(path) if path.is_dir() else path)
    is_trec = source.kind == "columns" and len(source.first.split()) >= _FEWEST_COLUMNS
    if is_trec and not has_header(source):
        return JudgedQrels(read_trec_qrels(source.path, source.groups), {})
    # A TREC file is read before all that the other shapes need is imported.
    from ragforge.files.qrels_rows import read_rows_of_qrels

    relevance, origins = read_rows_of_qrels(source)
    return JudgedQrels(
        relevance.grades, origins, relevance.rel_threshold, relevance.relevant, relevance.reading
    )


def beir_split(folder: Path) -> Path:
    """Return the qrels file of a BEIR folder: of the test split, else of the only split.

    Raises:
        DataError: There is none, or several and none is called test.
    """
    splits = sorted((folder / "qrels").glob("*.tsv"))
    test = [split for split in splits if split.stem == "test"]
    if len(test or splits) == 1:
        return (test or splits)[0]
    if not splits:
        raise DataError(f"{folder}: expected a folder with qrels/test.tsv or judgments.jsonl")
    names = ", ".join(f"qrels/{split.name}" for split in splits)
    raise DataError(f"{folder}: expected one split, or one called test; name one of {names}")


def _file(folder: Path) -> Path:
    native = folder / "judgments.jsonl"
    return native if native.is_file() else beir_split(folder)
