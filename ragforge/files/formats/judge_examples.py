"""Graded pairs that a judge is shown as examples, before its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.field_names import (
    CONTAINS_ANSWER,
    EVIDENCE,
    GRADE,
    QUERY_ID_OF_PAIR,
    QUERY_OF_PAIR,
    REASONING,
    TEXT,
)
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.row import Row, parse_whole
from ragforge.files.source_files import open_source
from ragforge.files.text import shown

SHAPES: Final = (
    'JSON Lines or a JSON list: {"query": "How …?", "text": "…", "grade": 2, '
    '"evidence": "…", "reasoning": "…"}, also with "query_id"',
)
MOST: Final = 20
"""Each example is paid again with every call."""
_GRADES: Final = (0, 1, 2, 3)
_CONTAINS_FROM: Final = 2


@dataclass(frozen=True, slots=True)
class Example:
    """A graded pair.

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
    """Return the examples of a file in its order, at most `MOST`.

    Raises:
        DataError: The file cannot be read, has none of `SHAPES`, or holds no example or too many; a
            row lacks a field, holds one of a wrong type, or breaks a rule that the judge's own
            replies must hold to; or a pair comes twice.
    """
    examples: dict[tuple[str, str], Example] = {}
    for row, example in _each(path):
        pair = (example.query, example.text)
        if pair in examples:
            raise DataError(f"{row.where}: query {shown(example.query)}: this pair comes twice")
        if len(examples) == MOST:
            raise DataError(f"{row.where}: expected at most {MOST} examples")
        examples[pair] = example
    if not examples:
        raise none_found(path, "example")
    return tuple(examples.values())


def _each(path: Path) -> Iterator[tuple[Row, Example]]:
    for row in read_rows_of(open_source(path, "example"), SHAPES):
        if not row.has(QUERY_OF_PAIR, TEXT, GRADE):
            raise unknown_shape(path, SHAPES)
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
    if grade not in _GRADES:
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
