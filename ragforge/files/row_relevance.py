"""What a row about a query says is relevant, in its lists and maps or in columns of its own."""

from dataclasses import replace
from typing import Final

from ragforge.errors import DataError
from ragforge.files.fields import Row, cell_items
from ragforge.files.names import (
    DOCUMENT_OF_ROW,
    GRADE,
    GRADES,
    QUOTE_OF_ROW,
    RELEVANT,
    SOURCE_CHUNK,
    Field,
)
from ragforge.files.relevance import (
    Anchor,
    Relevance,
    grade_of_quote,
    read_relevance,
    refuse_degrees,
)
from ragforge.files.values import shown

_SURELY_QUOTE: Final = Field("quote", ("quote", "evidence_quote", "supporting_quote"))


def relevance_of_row(row: Row) -> Relevance:
    """Return what a row says is relevant to its query.

    A quote is a passage of grade 3 unless the row gives another grade. One without the id of its
    document is to be looked up in all; what is called evidence may then be an explanation, and is
    passed over. A document alone counts as listed where the row has no list, and so does the chunk
    that a query was written from; text in its place is a quote.

    Raises:
        DataError: A list, an id, a quote or a grade is of a wrong type, or an id comes twice.
    """
    refuse_degrees(row)
    has_lists = row.has(RELEVANT, GRADES)
    found = read_relevance(row) if has_lists else Relevance({})
    named = row.get(DOCUMENT_OF_ROW) not in (None, "")
    quotes = _quotes(row, QUOTE_OF_ROW if named else _SURELY_QUOTE)
    if quotes:
        doc_id = row.identifier(DOCUMENT_OF_ROW) if named else ""
        grade = grade_of_quote(row)
        anchors = tuple(Anchor(doc_id, quote, grade) for quote in quotes)
        return replace(found, anchors=(*found.anchors, *anchors))
    if has_lists or not (named or row.get(SOURCE_CHUNK)):
        return found
    return _documents(row) if named else _source_chunks(row)


def joined(first: Relevance, second: Relevance, where: str) -> Relevance:
    """Return what two rows about one query say together.

    Raises:
        DataError: They give different grades to one id.
    """
    for chunk_id, grade in second.grades.items():
        if first.grades.get(chunk_id, grade) != grade:
            raise DataError(
                f"{where}: {shown(chunk_id)}: expected grade {first.grades[chunk_id]} as in a row "
                f"before, got {grade}"
            )
    listed = dict.fromkeys((*first.listed, *second.listed))
    anchors = dict.fromkeys((*first.anchors, *second.anchors))
    is_list = first.is_list or second.is_list
    return Relevance({**first.grades, **second.grades}, tuple(listed), tuple(anchors), is_list)


def _quotes(row: Row, field: Field) -> list[str]:
    value = row.get(field)
    if isinstance(value, list):
        return [quote for quote in value if isinstance(quote, str) and quote.strip()]
    text = row.optional_text(field)
    return [text] if text else []


def _source_chunks(row: Row) -> Relevance:
    """Return the chunks that a query was written from: ids without blanks, else their words."""
    value = row.get(SOURCE_CHUNK)
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and len(item.split()) > 1]
    ids = [row.as_id(item, SOURCE_CHUNK) for item in items if item not in texts]
    anchors = tuple(Anchor("", text, grade_of_quote(row)) for text in texts)
    return Relevance({}, tuple(dict.fromkeys(ids)), anchors)


def _documents(row: Row) -> Relevance:
    value = row.get(DOCUMENT_OF_ROW)
    items = cell_items(row, DOCUMENT_OF_ROW) if isinstance(value, str) else [value]
    ids = [row.as_id(item, DOCUMENT_OF_ROW) for item in items] if isinstance(items, list) else []
    grade = row.get(GRADE)
    if grade in (None, ""):
        return Relevance({}, tuple(dict.fromkeys(ids)))
    return Relevance(dict.fromkeys(ids, row.as_grade(grade, GRADE)))
