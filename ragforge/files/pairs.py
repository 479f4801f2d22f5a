"""Pairs to judge: a query and the text of a chunk in one row."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.fields import Row
from ragforge.files.lines import open_source
from ragforge.files.names import CHUNK_ID, QUERY_ID_OF_PAIR, QUERY_OF_PAIR, TEXT, Field
from ragforge.files.rows import none_found, read_rows_of, unknown_shape
from ragforge.files.values import parse_whole, shown

HUMAN_GRADE: Final = Field("grade", ("human_grade", "grade"))
"""Not `score` or `label`, which may well be a retriever's."""
_SOURCE: Final = Field("source", ("source",))
_NOT_HUMAN: Final = ("judge", "evidence", "carried")
_HIGHEST: Final = 3

SHAPES: Final = (
    'JSON Lines or a JSON list: {"query_id": "q1", "query": "How …?", "chunk_id": "d7", '
    '"text": "…"}',
    "CSV or TSV with a header: query_id,query,chunk_id,text",
)


@dataclass(frozen=True, slots=True)
class PairRow:
    """A query and a chunk, with all that is needed to judge the chunk."""

    query_id: str
    query: str
    chunk_id: str
    text: str
    human_grade: int | None = None
    """What a person gave it, 0 to 3; never shown to a judge. None where nobody did."""


def read_pairs(path: Path) -> Iterator[PairRow]:
    """Yield the pairs of a file in its order, one at a time but for `.json`.

    A `grade` is a person's, unless the row's `source` says that it is not. Further fields are
    passed over. `.gz` and `.zst` are unpacked.

    Args:
        path: A file of one of `SHAPES`, or with the near names that `fields` lists.

    Raises:
        DataError: The file cannot be read, has none of the shapes or holds no pair; a row lacks a
            field or holds one of a wrong type, or a grade outside of 0 to 3; a pair of ids
            comes twice, or a query's id with another text. Raised when the row's turn comes.
    """
    seen: set[tuple[str, str]] = set()
    queries: dict[str, str] = {}
    for row in read_rows_of(open_source(path), SHAPES):
        if not seen and not row.has(QUERY_ID_OF_PAIR, CHUNK_ID):
            raise unknown_shape(path, SHAPES)
        pair = PairRow(
            query_id=row.identifier(QUERY_ID_OF_PAIR),
            query=row.text(QUERY_OF_PAIR),
            chunk_id=row.identifier(CHUNK_ID),
            text=row.text(TEXT),
            human_grade=_human_grade(row),
        )
        if (pair.query_id, pair.chunk_id) in seen:
            raise DataError(
                f"{row.where}: query {shown(pair.query_id)}: chunk {shown(pair.chunk_id)} comes "
                "twice"
            )
        if queries.setdefault(pair.query_id, pair.query) != pair.query:
            raise DataError(
                f"{row.where}: query {shown(pair.query_id)}: has two texts, "
                f"{shown(queries[pair.query_id])} and {shown(pair.query)}"
            )
        seen.add((pair.query_id, pair.chunk_id))
        yield pair
    if not seen:
        raise none_found(path, "pair")


def _human_grade(row: Row) -> int | None:
    given = row.get(HUMAN_GRADE)
    if given in (None, "") or row.get(_SOURCE) in _NOT_HUMAN:
        return None
    grade = parse_whole(given)
    if grade is None or not 0 <= grade <= _HIGHEST:
        raise row.wrong(HUMAN_GRADE, "a person's grade from 0 to 3", given)
    return grade
