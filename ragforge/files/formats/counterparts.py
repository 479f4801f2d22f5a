"""Texts that say the same: translations of chunks, and passages that several writers wrote.

An audit shows them to a judge, whose grade should not depend on which of them it reads.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import CHUNK_ID, GRADE, ITEM_ID, QUERY_OF_PAIR, TEXT, Field
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.row import Row, query_of_pair
from ragforge.files.source_files import open_source
from ragforge.files.text import shown

_TRANSLATION: Final = Field("translation", ("translation", "translated_text", *TEXT.accepted))
_WRITER: Final = Field("writer", ("writer", "model", "author", "system", "generator"))
_TRANSLATIONS: Final = ('JSON Lines or a table: {"chunk_id": "d7", "translation": "…"}',)
_WRITTEN: Final = (
    'JSON Lines or a table: {"query": "How …?", "writer": "gpt-5-mini", "text": "…"}, also with '
    '"query_id", "chunk_id" (the facts that several writers were given) and "grade"',
)


@dataclass(frozen=True, slots=True)
class WrittenPassage:
    """What one writer made of some facts.

    Args:
        query_id, query: What the facts answer, or do not.
        facts_id: Which facts; "" where the file gives none, so that a query has one set of them.
        writer: A model, a family of models, or people.
        text: The passage.
        grade: What a person gave it; None where nobody did.
    """

    query_id: str
    query: str
    facts_id: str
    writer: str
    text: str
    grade: int | None


def read_translations(path: Path) -> dict[str, str]:
    """Return the translations of a file by the id of their chunk.

    Raises:
        DataError: The file cannot be read, is in another shape or holds no translation; or a chunk
            comes twice.
    """
    translations: dict[str, str] = {}
    for row in read_rows_of(open_source(path, "translation"), _TRANSLATIONS):
        if not row.has(ITEM_ID) or not row.has(_TRANSLATION):
            raise unknown_shape(path, _TRANSLATIONS)
        chunk_id = row.identifier(ITEM_ID)
        if chunk_id in translations:
            raise DataError(f"{row.where}: chunk {shown(chunk_id)}: has two translations")
        translations[chunk_id] = row.text(_TRANSLATION)
    if not translations:
        raise none_found(path, "translation")
    return translations


def read_written(path: Path) -> list[WrittenPassage]:
    """Return the passages of a file in its order.

    Raises:
        DataError: The file cannot be read, is in another shape or holds no passage; or a writer has
            two passages of the same facts.
    """
    passages: dict[tuple[str, str, str], WrittenPassage] = {}
    for row, passage in _passages(path):
        key = passage.query_id, passage.facts_id, passage.writer
        if key in passages:
            raise DataError(
                f"{row.where}: query {shown(passage.query_id)}: {shown(passage.writer)} has two "
                "passages of the same facts; tell the facts apart by chunk_id"
            )
        passages[key] = passage
    if not passages:
        raise none_found(path, "passage")
    return list(passages.values())


def _passages(path: Path) -> Iterator[tuple[Row, WrittenPassage]]:
    for row in read_rows_of(open_source(path, "passage"), _WRITTEN):
        if not (row.has(QUERY_OF_PAIR) and row.has(_WRITER) and row.has(TEXT)):
            raise unknown_shape(path, _WRITTEN)
        yield (
            row,
            WrittenPassage(
                query_id=query_of_pair(row),
                query=row.text(QUERY_OF_PAIR),
                facts_id="" if row.get(CHUNK_ID) in (None, "") else row.identifier(CHUNK_ID),
                writer=row.text(_WRITER).strip(),
                text=row.text(TEXT),
                grade=None if row.get(GRADE) in (None, "") else row.as_grade(row.get(GRADE), GRADE),
            ),
        )
