"""What a row about a query says is relevant, in its lists and maps or in columns of its own."""

from ragforge.errors import DataError
from ragforge.files.fields import Row, cell_items
from ragforge.files.names import DOCUMENT_OF_ROW, GRADE, GRADES, QUOTE_OF_ROW, RELEVANT
from ragforge.files.relevance import HIGHEST_GRADE, Anchor, Relevance, read_relevance
from ragforge.files.values import shown


def relevance_of_row(row: Row) -> Relevance:
    """Return what a row says is relevant to its query.

    A quote beside the id of its document is a passage of grade 3 unless the row gives another
    grade; a quote without a document, or an explanation in its place, is passed over. A document
    alone counts as listed where the row has no list.

    Raises:
        DataError: A list, an id, a quote or a grade is of a wrong type, or an id comes twice.
    """
    has_lists = row.has(RELEVANT, GRADES)
    found = read_relevance(row) if has_lists else Relevance({})
    if row.get(DOCUMENT_OF_ROW) in (None, ""):
        return found
    quotes = _quotes(row)
    if quotes:
        doc_id = row.identifier(DOCUMENT_OF_ROW)
        grade = _grade_of_quote(row)
        anchors = tuple(Anchor(doc_id, quote, grade) for quote in quotes)
        return Relevance(found.grades, found.listed, (*found.anchors, *anchors))
    return found if has_lists else _documents(row)


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
    return Relevance({**first.grades, **second.grades}, tuple(listed), tuple(anchors))


def _quotes(row: Row) -> list[str]:
    value = row.get(QUOTE_OF_ROW)
    if isinstance(value, list):
        return [quote for quote in value if isinstance(quote, str) and quote.strip()]
    text = row.optional_text(QUOTE_OF_ROW)
    return [text] if text else []


def _grade_of_quote(row: Row) -> int:
    value = row.get(GRADE)
    if value in (None, ""):
        return HIGHEST_GRADE
    grade = row.as_whole(value, GRADE)
    if not 0 <= grade <= HIGHEST_GRADE:
        raise row.wrong(GRADE, "0, 1, 2 or 3", value)
    return grade


def _documents(row: Row) -> Relevance:
    value = row.get(DOCUMENT_OF_ROW)
    items = cell_items(row, DOCUMENT_OF_ROW) if isinstance(value, str) else [value]
    ids = [row.as_id(item, DOCUMENT_OF_ROW) for item in items] if isinstance(items, list) else []
    grade = row.get(GRADE)
    if grade in (None, ""):
        return Relevance({}, tuple(dict.fromkeys(ids)))
    return Relevance(dict.fromkeys(ids, row.as_whole(grade, GRADE)))
