"""Pairs of query and text: those to judge, and graded ones that a judge is shown as examples.

A row has a query with one chunk, or with a list of chunks.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from json.encoder import encode_basestring
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass, hashlib
from ragforge.errors import DataError
from ragforge.files.field_names import (
    CHUNK_ID,
    CHUNK_ROWS,
    CONTAINS_ANSWER,
    EVIDENCE,
    GRADE,
    ITEM_ID,
    QUERY_ID_OF_PAIR,
    QUERY_OF_PAIR,
    REASONING,
    TEXT,
    Field,
)
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.formats.seen_pairs import Seen, SeenPairs
from ragforge.files.record_files import read_lines
from ragforge.files.row import Row, make_row, pair_twice, parse_whole, query_name
from ragforge.files.source_files import open_source
from ragforge.files.text import shown

_HUMAN_GRADE: Final = Field("grade", ("human_grade", "grade"))
"""Not `score` or `label`, which may well be a retriever's."""
_SOURCE: Final = Field("source", ("source",))
_NOT_HUMAN: Final = ("judge", "evidence", "carried")
_HIGHEST: Final = 3

SHAPES: Final = (
    'JSON Lines or a JSON list: {"query_id": "q1", "query": "How …?", "chunk_id": "d7", '
    '"text": "…"}',
    'a query with its chunks: {"query": "How …?", "chunks": [{"id": "d7", "text": "…"}]}',
    "CSV or TSV with a header: query_id,query,chunk_id,text",
)
_ID_DIGITS: Final = 16
"""Hex digits of an id that is made from a text: two of a million texts share one by a chance of
3 in 100 million."""
_EXAMPLE_SHAPES: Final = (
    'JSON Lines or a JSON list: {"query": "How …?", "text": "…", "grade": 2, '
    '"evidence": "…", "reasoning": "…"}, also with "query_id"',
)
MOST_EXAMPLES: Final = 20
"""Each example is paid again with every call."""
_CONTAINS_FROM: Final = 2


@dataclass(frozen=True, slots=True)
class PairRow:
    """A query and a chunk, with all that is needed to judge the chunk."""

    query_id: str
    query: str
    chunk_id: str
    text: str
    human_grade: int | None = None
    """What a person gave it, 0 to 3; never shown to a judge. None where nobody did."""

    def model_dump_json(self) -> str:
        """Return the row as JSON, as records do."""
        texts = self.query_id, self.query, self.chunk_id, self.text
        query_id, query, chunk_id, text = map(encode_basestring, texts)
        grade = "null" if self.human_grade is None else self.human_grade
        return (
            f'{{"query_id":{query_id},"query":{query},"chunk_id":{chunk_id},"text":{text},'
            f'"human_grade":{grade}}}'
        )

    @classmethod
    def from_line(cls, line: str) -> "PairRow":
        """Return the row of such JSON."""
        return cls(**json.loads(line))

    @staticmethod
    def query_prefix(line: str) -> str:
        """Return the beginning of such JSON, which names the query: rows of one query share it."""
        return line.partition('","query":')[0]  # Within a text, quotation marks are escaped.


def read_pair_rows(path: Path) -> Iterator[PairRow]:
    """Yield rows that were written as lines.

    Raises:
        DataError: The file cannot be read, or a line is none.
    """
    for number, line in read_lines(path):
        try:
            yield PairRow.from_line(line)
        except (ValueError, TypeError) as error:
            raise DataError(f"{path}:{number}: is no pair: {error}") from error


def read_pairs(path: Path) -> Iterator[PairRow]:
    """Yield the pairs of a file in its order, one at a time but for `.json`.

    A `grade` is a person's, unless the row's `source` says that it is not. A query without id goes
    by its text; a chunk without one gets an id that is made from its text, and counts once where
    it comes twice. Further fields are passed over. `.gz` and `.zst` are unpacked.

    Args:
        path: A file of one of `SHAPES`, or with the near names that `field_names` lists.

    Raises:
        DataError: The file cannot be read, has none of the shapes or holds no pair; a row lacks a
            field or holds one of a wrong type, or a grade outside of 0 to 3; a pair of ids
            comes twice, or a query's id with another text. Raised when the row's turn comes.
    """
    yield from _checked(_pairs(read_rows_of(open_source(path), SHAPES), path), path)


def pairs_given(records: Iterable[Mapping[str, object]]) -> Iterator[PairRow]:
    """Yield the pairs of records that are in memory, or made one by one; see `read_pairs`.

    Args:
        records: Taken one at a time, when the pairs of the one before are used up.

    Raises:
        DataError: As for `read_pairs`.
    """
    rows = (make_row(f"pairs: record {n}", item) for n, item in enumerate(records, start=1))
    yield from _checked(_pairs(rows, Path("pairs")), Path("pairs"))


def _checked(pairs: Iterable[tuple[PairRow, str, bool]], path: Path) -> Iterator[PairRow]:
    """Yield pairs, each once.

    Raises:
        DataError: There is none; or a pair or a query contradicts one before.
    """
    before = SeenPairs()
    queries: dict[str, str] = {}
    for pair, where, has_id in pairs:
        if queries.setdefault(pair.query_id, pair.query) != pair.query:
            raise DataError(
                f"{where}: query {shown(pair.query_id)}: has two texts, "
                f"{shown(queries[pair.query_id])} and {shown(pair.query)}"
            )
        seen = before.take(pair.query_id, pair.chunk_id, pair.human_grade)
        if seen is Seen.NEW:
            yield pair
        elif has_id or seen is Seen.OTHERWISE:
            raise pair_twice(where, pair.query_id, pair.chunk_id)
    if not before:
        raise none_found(path, "pair")


def _pairs(rows: Iterable[Row], path: Path) -> Iterator[tuple[PairRow, str, bool]]:
    """Yield pairs, where each stands, and whether its chunk has an id of its own."""
    for number, row in enumerate(rows):
        if row.has(CHUNK_ROWS) and row.has(QUERY_OF_PAIR):
            for chunk in _chunks(row):
                yield _pair(row, query_name(row), chunk, ITEM_ID)
        elif number == 0 and not row.has(QUERY_ID_OF_PAIR, CHUNK_ID) and not _is_bare(row):
            raise unknown_shape(path, SHAPES)
        else:
            # Where ids are given at all, one that is missing was forgotten.
            has_ids = not _is_without_ids(row)
            query_id = row.identifier(QUERY_ID_OF_PAIR) if has_ids else query_name(row)
            yield _pair(row, query_id, row, CHUNK_ID, needs_id=has_ids)


def _is_bare(row: Row) -> bool:
    """Whether a row holds a query and a text, and no id."""
    return _is_without_ids(row) and row.has(TEXT)


def _is_without_ids(row: Row) -> bool:
    """Whether a row holds a query and no id; where it has no text, that is what it lacks."""
    return row.has(QUERY_OF_PAIR) and not row.has(QUERY_ID_OF_PAIR, CHUNK_ID, ITEM_ID)


def _pair(
    row: Row, query_id: str, chunk: Row, id_field: Field, *, needs_id: bool = False
) -> tuple[PairRow, str, bool]:
    text, has_id = chunk.text(TEXT), needs_id or chunk.get(id_field) not in (None, "")
    pair = PairRow(
        query_id=query_id,
        query=row.text(QUERY_OF_PAIR),
        chunk_id=chunk.identifier(id_field) if has_id else _id_of(text),
        text=text,
        human_grade=_human_grade(chunk),
    )
    return pair, chunk.where, has_id


def _chunks(row: Row) -> Iterator[Row]:
    """Yield the chunks of a row about a query, which are objects or texts.

    Raises:
        DataError: They are no list, or one is neither.
    """
    items = row.get(CHUNK_ROWS)
    if not isinstance(items, list):
        raise row.wrong(CHUNK_ROWS, "a list of chunks", items)
    for number, item in enumerate(items, 1):
        if not isinstance(item, str | Mapping):
            raise row.wrong(CHUNK_ROWS, "chunks with a text", item)
        given = {TEXT.name: item} if isinstance(item, str) else item
        yield make_row(f"{row.where}: {CHUNK_ROWS.name}: item {number}", given)


def _id_of(text: str) -> str:
    """Return an id that a text has in every file; blanks are folded.

    It is none that `text_id` gives: what is judged by itself is of no run.
    """
    digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
    return f"text_{digest[:_ID_DIGITS]}"


def _human_grade(row: Row) -> int | None:
    given = row.get(_HUMAN_GRADE)
    if given in (None, "") or row.get(_SOURCE) in _NOT_HUMAN:
        return None
    grade = parse_whole(given)
    if grade is None or not 0 <= grade <= _HIGHEST:
        raise row.wrong(_HUMAN_GRADE, "a person's grade from 0 to 3", given)
    return grade


@dataclass(frozen=True, slots=True)
class Example:
    """A graded pair that a judge is shown before its own.

    Args:
        query_id: "" where the file gives none.
        query, text: What was judged.
        grade: 0-3.
        evidence: Words of the text; never "" from grade 2 on, always "" for grade 0.
        reasoning: Why.
    """

    query_id: str
    query: str
    text: str
    grade: int
    evidence: str
    reasoning: str

    @property
    def contains_answer(self) -> bool:
        """Whether the grade says that the text holds the answer or a part of it."""
        return self.grade >= _CONTAINS_FROM


def load_examples(path: Path) -> tuple[Example, ...]:
    """Return the examples of a file in its order, at most `MOST_EXAMPLES`.

    Raises:
        DataError: The file cannot be read, is in another shape, or holds no example or too many; a
            row lacks a field, holds one of a wrong type, or breaks a rule that the judge's own
            replies must hold to; or a pair comes twice.
    """
    examples: dict[tuple[str, str], Example] = {}
    for row, example in _examples(path):
        pair = (example.query, example.text)
        if pair in examples:
            raise DataError(f"{row.where}: query {shown(example.query)}: this pair comes twice")
        if len(examples) == MOST_EXAMPLES:
            raise DataError(f"{row.where}: expected at most {MOST_EXAMPLES} examples")
        examples[pair] = example
    if not examples:
        raise none_found(path, "example")
    return tuple(examples.values())


def _examples(path: Path) -> Iterator[tuple[Row, Example]]:
    for row in read_rows_of(open_source(path, "example"), _EXAMPLE_SHAPES):
        if not row.has(QUERY_OF_PAIR, TEXT, GRADE):
            raise unknown_shape(path, _EXAMPLE_SHAPES)
        yield row, _example(row)


def _example(row: Row) -> Example:
    example = Example(
        query_id="" if row.get(QUERY_ID_OF_PAIR) is None else row.identifier(QUERY_ID_OF_PAIR),
        query=row.text(QUERY_OF_PAIR),
        text=row.text(TEXT),
        grade=_grade(row),
        evidence=row.optional_text(EVIDENCE) or "",
        reasoning=row.text(REASONING),
    )
    _check_evidence(row, example)
    given = row.get(CONTAINS_ANSWER)
    if given is not None and given is not example.contains_answer:
        expected = f"{str(example.contains_answer).lower()} for grade {example.grade}"
        raise row.wrong(CONTAINS_ANSWER, expected, given)
    return example


def _grade(row: Row) -> int:
    row.require(GRADE)
    grade = parse_whole(row.get(GRADE))
    if grade is None or not 0 <= grade <= _HIGHEST:
        raise row.wrong(GRADE, "0, 1, 2 or 3", row.get(GRADE))
    return grade


def _check_evidence(row: Row, example: Example) -> None:
    if example.grade == 0 and example.evidence:
        raise row.wrong(EVIDENCE, '"" for grade 0', example.evidence)
    if example.contains_answer and not example.evidence:
        expected = f"words of the text for grade {example.grade}"
        raise row.wrong(EVIDENCE, expected, row.get(EVIDENCE))
    if example.evidence not in example.text:
        raise row.wrong(EVIDENCE, "words that stand in the text exactly so", example.evidence)
