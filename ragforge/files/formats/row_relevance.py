"""What a hand-made row says is relevant to its query: ids, grades, quotes."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Final

from ragforge.deferred import dataclass, pattern
from ragforge.errors import DataError
from ragforge.files.field_names import (
    CHUNK_OF_ROW,
    DOC_ID,
    DOCUMENT_OF_QUOTE,
    DOCUMENT_OF_ROW,
    EVIDENCE,
    GRADE,
    GRADE_BY_NAME,
    GRADE_OF_ITEM,
    GRADE_OF_LIST,
    GRADE_OF_TEXTS,
    GRADES,
    ITEM_ID,
    QUERY,
    QUOTE,
    QUOTE_OF_ROW,
    REFERENCE_TEXTS,
    RELEVANT,
    SOURCE_CHUNK,
    TEXT,
    Field,
    normal_name,
)
from ragforge.files.formats.named_texts import NamedText, text_beside
from ragforge.files.row import (
    Row,
    cell_items,
    grade_in_words,
    is_grade,
    load_json,
    load_literal,
    make_row,
)
from ragforge.files.text import shown
from ragforge.measures.listed_relevance import LabelledQuery, explaining_threshold, labels_of
from ragforge.scripts import reads_as_words

HIGHEST_GRADE = 3
_DEGREE: Final = pattern(r"(partial|part|somewhat|marginal|weak|high|very|full|perfect)(ly)?rele")
_BY_LISTS: Final = (
    "lists of relevant ids and grades do not go by one threshold: the lists decide P, R, RR, AP "
    "and Success, the grades nDCG, DCG and ERR"
)
"""How both are read then."""

_HOP: Final = pattern(r"\s*<\d{1,3}-hop>\s*")
"""Before each text of a question of ragas about several."""
_OF_GOLDENS: Final = tuple(
    Field(name, (name,)) for name in ("actual_output", "context", "source_file")
)
"""Which rows are goldens that deepeval saved: its tables join contexts by a bar."""
_BAR: Final = pattern(r"(?<=\S)\||\|(?=\S)")
"""Not a bar with blanks on both sides, as between the cells of a table."""
_MARK: Final = Field("relevant", ("relevant",))
"""Beside a passage it says whether that is relevant; elsewhere it holds a list."""
EVIDENCE_SHAPE: Final = (
    'expected {"doc_id": "a.md", "quote": "…"} for each passage, with its words; documents that '
    "are relevant as a whole go into relevant_doc_ids"
)
_BY_NAME_OF_ITEM: Final = GRADE_BY_NAME._replace(
    accepted=(*GRADE_BY_NAME.accepted, "relevant", "correct", "gold")
)
_SURELY_QUOTE: Final = Field("quote", ("quote", "evidence_quote", "supporting_quote"))


def lists_in_words(relevant: Container[str], query_ids: Iterable[str], rel_threshold: int) -> str:
    """Return in words how lists and grades are read that no threshold explains.

    Args:
        relevant: The queries that have a list.
        query_ids: All queries with labels.
        rel_threshold: Lowest grade that is relevant for those without a list.
    """
    if all(query_id in relevant for query_id in query_ids):
        return _BY_LISTS
    return f"{_BY_LISTS}; queries without a list go by grade >= {rel_threshold}"


@dataclass(frozen=True, slots=True)
class GradedQuote:
    """A passage named by its document and a quote from it, and its grade from 0 to 3."""

    doc_id: str
    """"" where the file does not say in which document the quote stands."""
    quote: str
    grade: int
    must_stand: bool = True
    """False where a tool keeps texts that may be put together otherwise than in the documents."""
    chunk_id: str = ""
    """Of the chunk in which it is said to stand; "" where the file names none."""
    where: str = field(default="", compare=False)
    """Where the row stands."""
    parts: tuple["GradedQuote", ...] = field(default=(), compare=False)
    """What it may be put together of, where it stands nowhere as a whole."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """What is relevant to one query."""

    grades: dict[str, int | None]
    """Id to the grade the file gives; None where it says null."""
    listed: tuple[str, ...] = ()
    """Ids the file calls relevant; some of them may have a grade too."""
    graded_quotes: tuple[GradedQuote, ...] = ()
    is_list: bool = False
    """Whether the listed ids are all that is relevant, so that none is where there are no ids."""
    texts: tuple[NamedText, ...] = ()
    """What passages that are named by ids read, as far as the file says it."""

    @property
    def is_empty(self) -> bool:
        """Whether no passage is named."""
        return not (self.grades or self.listed or self.graded_quotes)

    @property
    def decides(self) -> bool:
        """Whether the listed ids say more than the grades: they are all, or have grades too."""
        return self.is_list or not self.grades.keys().isdisjoint(self.listed)

    def settled(self, grade: int) -> dict[str, int | None]:
        """Return the grades of all ids, the listed ones with this grade."""
        return {**dict.fromkeys(self.listed, grade), **self.grades}

    def relevant_from(self, threshold: int) -> tuple[str, ...]:
        """Return the listed ids, and those whose grade is as high as the threshold."""
        graded = (one for one, grade in self.grades.items() if (grade or 0) >= threshold)
        return tuple(dict.fromkeys((*self.listed, *graded)))


def read_relevance(row: Row) -> Relevance:
    """Read the lists and maps of relevant passages of a row.

    An id that is both listed and graded has the grade it was given, even 0; see
    `settle_relevance` for what the list says then. A grade of the row is that of all it lists.

    Raises:
        DataError: A list, an id or a grade is of a wrong type, an id comes twice, or what the row
            lists has other grades than the row.
    """
    _refuse_degrees(row)
    row.refuse_two(RELEVANT)
    row.refuse_two(GRADES)
    named = _relevant(row)
    grades = named.grades
    for chunk_id, grade in _grades(row).items():
        if grades.setdefault(chunk_id, grade) != grade:
            raise row.wrong(GRADES, f"grade {grades[chunk_id]} as in {RELEVANT.name}", grade)
    return _graded_by_row(row, _with_text(row, named))


def _with_text(row: Row, named: Relevance) -> Relevance:
    """Return the one passage that a row names with the text that the row has beside it."""
    names = {*named.listed, *named.grades}
    if len(names) != 1 or named.texts:
        return named
    return replace(named, texts=text_beside(row, names.pop(), row.get(QUERY)))


def _graded_by_row(row: Row, named: Relevance) -> Relevance:
    """Return what a row lists with the grade of the row, where it has one.

    Raises:
        DataError: Some of it has another grade of its own, or the grade is none.
    """
    value = row.get(GRADE_OF_LIST)
    if value in (None, "") or not (named.listed or named.grades):
        return named
    grade = row.as_grade(value, GRADE_OF_LIST)
    for name, own in named.grades.items():
        if own not in (None, grade):
            raise row.wrong(GRADE_OF_LIST, f"grade {own}, which {shown(name)} has", value)
    grades = {**dict.fromkeys(named.listed, grade), **named.grades}
    return replace(named, grades=grades, listed=(), is_list=False)


def _refuse_degrees(row: Row) -> None:
    """Refuse a row that lists passages by how relevant they are, as `partially_relevant`.

    Raises:
        DataError: It does; no grade is made up for them, and none of them is passed over.
    """
    for name, value in row.given.items():
        if _DEGREE.match(normal_name(name)) and value not in (None, "", [], {}):
            raise DataError(
                f"{row.where}: {name}: says how relevant passages are, and no grade; expected "
                '"graded_relevance": {"d7": 3, "d8": 1}'
            )


@dataclass(frozen=True, slots=True)
class SettledRelevance:
    """What a file says is relevant, query by query, and what counts as relevant in it."""

    grades: dict[str, dict[str, int | None]]
    """By query and id; ids that are listed without a grade have the lowest that is relevant."""
    rel_threshold: int | None = None
    """Lowest grade that is relevant as the lists have it; None where there are none beside
    grades, or none explains them."""
    relevant: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The lists by query, where no threshold explains them: then `grades` holds no grade for ids
    that have none in the file, but for queries without any."""
    by_lists: str = _BY_LISTS
    """How they are read, in a sentence."""

    def marks(self, query_id: str) -> dict[str, bool]:
        """Return whether the ids of a query are listed, where lists decide what is relevant."""
        listed = self.relevant.get(query_id)
        if listed is None:
            return {}
        ids = (*listed, *self.grades[query_id])
        return {chunk_id: chunk_id in listed for chunk_id in dict.fromkeys(ids)}

    @property
    def reading(self) -> str:
        """How lists and grades are read together, in a sentence; "" where there are not both."""
        if self.relevant:
            return self.by_lists
        if self.rel_threshold is not None:
            return f"relevant: grade >= {self.rel_threshold}, as the lists of relevant ids have it"
        return ""


def settle_relevance(of_queries: Mapping[str, Relevance]) -> SettledRelevance:
    """Return grades and relevance by query, as the lists and grades of a file say together.

    Args:
        of_queries: What its rows say, by query.
    """
    labelled = [
        LabelledQuery(relevance.grades, relevance.listed)
        for relevance in of_queries.values()
        if relevance.decides and any(grade is not None for grade in relevance.grades.values())
    ]
    threshold = explaining_threshold(labelled, HIGHEST_GRADE)
    every = [
        grade
        for relevance in of_queries.values()
        for grade in (*relevance.grades.values(), *(of.grade for of in relevance.graded_quotes))
    ]
    usual = _grade_of_listed(every)
    if labelled and threshold is None:
        listed = {
            query_id: relevance.listed if relevance.decides else relevance.relevant_from(usual)
            for query_id, relevance in of_queries.items()
            if relevance.decides or relevance.listed
        }
        grades = {query_id: relevance.grades for query_id, relevance in of_queries.items()}
        by_lists = lists_in_words(
            listed, (relevance for relevance, of in grades.items() if of), usual
        )
        return SettledRelevance(labels_of(grades, listed, usual).graded, None, listed, by_lists)
    grade = usual if threshold is None else threshold
    return SettledRelevance(
        {query_id: relevance.settled(grade) for query_id, relevance in of_queries.items()},
        threshold,
    )


def _grade_of_listed(grades: Iterable[int | None]) -> int:
    """Return the grade of ids that are called relevant without one.

    It is the lowest that binary measures count as relevant: 2 where the file holds grades above
    1, else 1. With 1 in a graded file a list of relevant ids would say that none is.

    Args:
        grades: All grades the file gives, those of quotes too.
    """
    return 2 if any(grade is not None and grade > 1 for grade in grades) else 1


def _grade_of_quote(row: Row) -> int:
    """Return the grade that goes with a quote, the highest where the row gives none.

    Raises:
        DataError: It is no grade.
    """
    grade = _given_grade(row, GRADE)
    return HIGHEST_GRADE if grade is None else grade


def _given_grade(row: Row, field: Field) -> int | None:
    value = row.get(field)
    if value in (None, ""):
        row.refuse_blank(_BY_NAME_OF_ITEM if field is GRADE_OF_ITEM else GRADE_BY_NAME)
        return None
    grade = row.as_grade(value, field)
    if not 0 <= grade <= HIGHEST_GRADE:
        raise row.wrong(field, "0, 1, 2 or 3", value)
    return grade


def _relevant(row: Row) -> Relevance:
    """Return the relevance in the list or map of relevant passages of a row."""
    given = row.get(RELEVANT)
    value = cell_items(row, RELEVANT)
    if isinstance(given, str) and not row.is_of_table and isinstance(value, list) and value[1:]:
        raise row.wrong(RELEVANT, "a list, as one text may be one id or several", given)
    grades = _graded(row, RELEVANT, value) if isinstance(value, Mapping) else {}
    listed: list[str] = []
    graded_quotes: list[GradedQuote] = []
    texts: list[NamedText] = []
    for place, item in enumerate(_items(row, RELEVANT, value)):
        if not isinstance(item, Mapping):
            listed.append(row.as_id(item, RELEVANT))
            continue
        inner = make_row(f"{row.where}: {RELEVANT.name}", item)
        if inner.has(QUOTE):
            graded_quotes.append(_graded_quote(inner, row))
            continue
        # What only counts the items names no passage of a document.
        is_number = inner.get(ITEM_ID) in (place, place + 1) and inner.has(DOC_ID)
        name = inner.identifier(DOC_ID if is_number else ITEM_ID)
        texts += text_beside(inner, name)
        if inner.has(GRADE_OF_ITEM):
            _put(row, RELEVANT, grades, name, _grade(inner))
        else:
            listed.append(name)
    _refuse_twice(row, [*listed, *grades])
    if listed:  # What has a grade is in the list as well.
        listed += [chunk_id for chunk_id, grade in grades.items() if grade]
    is_empty = value == [] and given not in (None, "")
    is_list = bool(listed) or is_empty
    return Relevance(grades, tuple(listed), tuple(graded_quotes), is_list, tuple(texts))


def _grades(row: Row) -> dict[str, int | None]:
    value = cell_items(row, GRADES)
    if isinstance(value, Mapping):
        return _graded(row, GRADES, value)
    grades: dict[str, int | None] = {}
    for item in _items(row, GRADES, value):
        if not isinstance(item, Mapping):
            raise row.wrong(GRADES, "grades by id", item)
        inner = make_row(f"{row.where}: {GRADES.name}", item)
        inner.require(GRADE_OF_ITEM)
        _put(row, GRADES, grades, inner.identifier(ITEM_ID), _grade(inner))
    return grades


def _graded(row: Row, field: Field, value: Mapping[str, object]) -> dict[str, int | None]:
    grades: dict[str, int | None] = {}
    for chunk_id, given in value.items():
        grade = None if given is None else row.as_whole(given, field)
        _put(row, field, grades, row.as_id(chunk_id, field), grade)
    return grades


def _grade(inner: Row) -> int | None:
    value = inner.get(GRADE_OF_ITEM)
    if value is None:
        inner.refuse_blank(_BY_NAME_OF_ITEM)
        return None
    return inner.as_grade(value, GRADE_OF_ITEM)


def _graded_quote(inner: Row, row: Row) -> GradedQuote:
    """Return a quote in a list with its grade, else that of the row, else the highest.

    Raises:
        DataError: Both have one, and they differ.
    """
    named = inner.get(DOCUMENT_OF_QUOTE) not in (None, "")
    doc_id = inner.identifier(DOCUMENT_OF_QUOTE) if named else ""
    quote = inner.text(QUOTE if inner.has(QUOTE) else TEXT)
    own, of_row = _given_grade(inner, GRADE_OF_ITEM), _given_grade(row, GRADE_OF_LIST)
    if None not in (own, of_row) and own != of_row:
        raise row.wrong(GRADE_OF_LIST, f"grade {own}, which {shown(quote)} has", of_row)
    grades = (grade for grade in (own, of_row, HIGHEST_GRADE) if grade is not None)
    return GradedQuote(doc_id, quote, next(grades), chunk_id=_chunk_id(inner), where=inner.where)


def _chunk_id(row: Row) -> str:
    """Return the id of the one chunk that a row names; "" where it names none, or several."""
    value = row.get(CHUNK_OF_ROW)
    items = cell_items(row, CHUNK_OF_ROW) if isinstance(value, str) else [value]
    if not isinstance(items, list) or len(items) != 1 or items[0] in (None, ""):
        return ""
    return row.as_id(items[0], CHUNK_OF_ROW)


def _items(row: Row, field: Field, value: object) -> list[object]:
    if isinstance(value, Mapping):
        return []
    if not isinstance(value, list):
        raise row.wrong(field, "a list of ids or grades by id", value)
    return value


def _put(
    row: Row, field: Field, grades: dict[str, int | None], chunk_id: str, grade: int | None
) -> None:
    if chunk_id in grades:
        raise row.wrong(field, "every id once", chunk_id)
    grades[chunk_id] = grade


def _refuse_twice(row: Row, chunk_ids: list[str]) -> None:
    seen: set[str] = set()
    for chunk_id in chunk_ids:
        if chunk_id in seen:
            raise row.wrong(RELEVANT, "every id once", chunk_id)
        seen.add(chunk_id)


def with_mark(row: Row) -> Row:
    """Return a row that says under `relevant` whether the passage it names is, with that as grade.

    Raises:
        DataError: It has another grade, too.
    """
    mark = row.get(_MARK)
    of_passage = [row.get(field) for field in (QUOTE_OF_ROW, CHUNK_OF_ROW, DOCUMENT_OF_ROW)]
    grade = grade_in_words(mark)
    if not is_grade(mark) or (grade is not None and not 0 <= grade <= HIGHEST_GRADE):
        return row
    if row.has(GRADES) or all(value in (None, "") for value in of_passage):
        return row
    if row.get(GRADE_OF_LIST) not in (None, ""):
        raise row.wrong(RELEVANT, "ids, or no other grade of the passage", mark)
    others = {
        name: value
        for name, value in row.given.items()
        if normal_name(name) not in (_MARK.name, GRADE.name)
    }
    return make_row(row.where, {**others, GRADE.name: mark}, is_of_table=row.is_of_table)


def relevance_of_row(row: Row) -> Relevance:
    """Return the grades, lists and quotes of a row.

    A quote is a passage of grade 3 unless the row gives another grade. One without the id of its
    document is to be looked up in all; what is called evidence may then be an explanation, and is
    passed over. A chunk or a document alone has the grade of the row, and counts as listed where
    there is none and no list, and so does the chunk that a query was written from; text in its
    place is a quote.

    Raises:
        DataError: A list, an id, a quote or a grade is of a wrong type, or an id comes twice.
    """
    _refuse_degrees(row)
    has_lists = row.has(RELEVANT, GRADES)
    relevance = read_relevance(row) if has_lists else Relevance({})
    named = row.get(DOCUMENT_OF_ROW) not in (None, "")
    if evidence := _evidence(row):
        return replace(relevance, graded_quotes=(*relevance.graded_quotes, *evidence))
    quotes = _quotes(row, QUOTE_OF_ROW if named else _SURELY_QUOTE)
    if quotes:
        doc_id = row.identifier(DOCUMENT_OF_ROW) if named else ""
        return _with_quotes(row, relevance, doc_id, quotes)
    if has_lists:
        return relevance
    if row.get(CHUNK_OF_ROW) not in (None, ""):
        return _of_chunk(row, _named(row, CHUNK_OF_ROW))
    if named:
        texts = _reference_texts(row).graded_quotes or _source_texts(row)
        return _of_document(row, texts) if texts else _named(row, DOCUMENT_OF_ROW)
    return _source_chunks(row) if row.get(SOURCE_CHUNK) else _reference_texts(row)


def _with_quotes(row: Row, listed: Relevance, doc_id: str, quotes: Iterable[str]) -> Relevance:
    """Return what a row lists, and its quotes, which stand in the one chunk that it names."""
    grade, chunk_id = _grade_of_quote(row), _chunk_id(row)
    graded_quotes = tuple(
        GradedQuote(doc_id, quote, grade, chunk_id=chunk_id, where=row.where) for quote in quotes
    )
    names = {*listed.listed, *listed.grades}
    texts = text_beside(row, chunk_id, row.get(QUERY)) if chunk_id and not names else ()
    if len(names) == 1:
        texts = tuple(NamedText(name, quote, row.where) for name in names for quote in quotes)
    return replace(
        listed,
        graded_quotes=(*listed.graded_quotes, *graded_quotes),
        texts=(*listed.texts, *texts),
    )


def grade_of_passage(row: Row) -> bool | None:
    """Return whether a row grades the passage that it names; None where it names none.

    None too for lists and for quotes of documents without a grade beside them, and for maps that
    hold their own grades.
    """
    if row.has(RELEVANT) and row.has(GRADE_OF_LIST) and not row.has(GRADES):
        relevance = read_relevance(row)
        if not (relevance.listed or relevance.grades):
            return None
        is_graded = row.get(GRADE_OF_LIST) not in (None, "")
        if not is_graded:
            row.refuse_blank(GRADE_BY_NAME)
        return is_graded
    named = [row.get(field) for field in (QUOTE_OF_ROW, CHUNK_OF_ROW, DOCUMENT_OF_ROW)]
    if all(value in (None, "") for value in named):
        return None
    if row.has(GRADES) or any(isinstance(value, list) for value in named):
        return None
    if row.has(RELEVANT):
        return False if row.has(_MARK) and row.get(RELEVANT) in (None, "") else None
    if row.get(GRADE) not in (None, ""):
        return True
    row.refuse_blank(GRADE_BY_NAME)
    quote, chunk, _ = named
    is_evidence = quote not in (None, "") and chunk in (None, "")
    return None if is_evidence and not (row.is_of_table or row.has(GRADE)) else False


def _reference_texts(row: Row) -> Relevance:
    """Return texts that hold the answer as quotes: all of it where there is one, else parts.

    A grade of the row is that of each.
    """
    value = row.get(REFERENCE_TEXTS)
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = literal_of(value)
    items = value if isinstance(value, list) else [value]
    given = (_without_hop(item) for item in items if isinstance(item, str))
    texts = [text for text in given if text.strip()]
    grade = _given_grade(row, GRADE_OF_TEXTS) if texts else None
    if grade is None:
        grade = HIGHEST_GRADE if len(texts) == 1 else HIGHEST_GRADE - 1
    quotes = [GradedQuote("", text, grade, must_stand=False) for text in texts]
    if len(quotes) == 1 and isinstance(value, str) and all(row.has(name) for name in _OF_GOLDENS):
        part_grade = _given_grade(row, GRADE_OF_TEXTS)
        quotes = [_joined_contexts(quotes[0], part_grade)]
    return Relevance({}, graded_quotes=tuple(quotes))


def _joined_contexts(whole: GradedQuote, grade: int | None) -> GradedQuote:
    """Return contexts that deepeval joined by bars, which may be one with bars in it, too.

    Args:
        whole: All of them as one quote.
        grade: Of each; of several parts of an answer where None.
    """
    lines = (
        [line] if line.strip().startswith("|") and line.strip().endswith("|") else _BAR.split(line)
        for line in whole.quote.splitlines(keepends=True)
    )
    texts = [""]
    for first, *others in lines:
        texts[-1] += first
        texts += others
    given = HIGHEST_GRADE - 1 if grade is None else grade
    parts = [replace(whole, quote=text.strip(), grade=given) for text in texts if text.strip()]
    is_several = len(parts) > 1 and all(reads_as_words(part.quote) for part in parts)
    return replace(whole, parts=tuple(parts)) if is_several else whole


def _without_hop(text: str) -> str:
    mark = _HOP.match(text)
    return text[mark.end() :] if mark else text


def _of_chunk(row: Row, named: Relevance) -> Relevance:
    """Return the chunk that a row names with the one text beside it, which holds the answer."""
    quotes = _reference_texts(row).graded_quotes
    if named.texts or len(quotes) != 1 or not (name := _chunk_id(row)):
        return named
    return replace(named, texts=(NamedText(name, quotes[0].quote, row.where),))


def _of_document(row: Row, texts: Iterable[GradedQuote]) -> Relevance:
    """Return texts beside the name of a document as quotes of it, with the grade of the row."""
    doc_id, graded = row.identifier(DOCUMENT_OF_ROW), row.get(GRADE) not in (None, "")
    grade = _grade_of_quote(row) if graded else None
    quotes = (
        GradedQuote(doc_id, text.quote, text.grade if grade is None else grade) for text in texts
    )
    return Relevance({}, graded_quotes=tuple(quotes))


def literal_of(cell: str) -> object:
    """Return what a cell holds, as JSON or as Python writes it; else the cell."""
    for read in (load_json, load_literal):
        try:
            return read(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return cell


def joined(first: Relevance, second: Relevance, where: str) -> Relevance:
    """Return the relevance of one query in two rows together.

    Raises:
        DataError: They give different grades to one id, or to one quote.
    """
    quoted = {(of.doc_id, of.quote): of.grade for of in first.graded_quotes}
    for of in second.graded_quotes:
        there = quoted.get((of.doc_id, of.quote), of.grade)
        if there != of.grade:
            raise DataError(
                f"{where}: {shown(of.quote)}: expected grade {there} as in a row before, got "
                f"{of.grade}"
            )
    for chunk_id, grade in second.grades.items():
        if first.grades.get(chunk_id, grade) != grade:
            raise DataError(
                f"{where}: {shown(chunk_id)}: expected grade {first.grades[chunk_id]} as in a row "
                f"before, got {grade}"
            )
    listed = dict.fromkeys((*first.listed, *second.listed))
    graded_quotes = dict.fromkeys((*first.graded_quotes, *second.graded_quotes))
    is_list = first.is_list or second.is_list
    texts = dict.fromkeys((*first.texts, *second.texts))
    grades = {**first.grades, **second.grades}
    return Relevance(grades, tuple(listed), tuple(graded_quotes), is_list, tuple(texts))


def _evidence(row: Row) -> list[GradedQuote]:
    """Return quotes with their documents, as queries of a set have them.

    Raises:
        DataError: Some are quotes, and one is not.
    """
    inner = list(_evidence_items(row))
    if not any(one.has(QUOTE, TEXT) for one in inner):
        return []
    for one in inner:
        if not one.has(QUOTE, TEXT):
            raise DataError(f"{one.where}: has no quote, got {one.names()}; {EVIDENCE_SHAPE}")
    return [_graded_quote(one, row) for one in inner]


def _evidence_items(row: Row) -> Iterator[Row]:
    """Yield the objects that a row has as evidence, each with its place where there are several."""
    value = row.get(QUOTE_OF_ROW)
    items = value if isinstance(value, list) else [value]
    for number, item in enumerate(items, start=1):
        if isinstance(item, Mapping):
            place = f", item {number}" if len(items) > 1 else ""
            yield make_row(f"{row.where}: {EVIDENCE.name}{place}", item)


def lacks_quotes(row: Row) -> bool:
    """Whether a row has objects as evidence, of which none holds a quote."""
    inner = list(_evidence_items(row))
    return bool(inner) and not any(one.has(QUOTE, TEXT) for one in inner)


def _quotes(row: Row, field: Field) -> list[str]:
    value = row.get(field)
    if isinstance(value, list):
        return [quote for quote in value if isinstance(quote, str) and quote.strip()]
    text = row.optional_text(field)
    return [text] if text else []


def _source_texts(row: Row) -> tuple[GradedQuote, ...]:
    """Return what the chunks that a query was written from say, where the row holds it."""
    return _source_chunks(row).graded_quotes if row.get(SOURCE_CHUNK) else ()


def _source_chunks(row: Row) -> Relevance:
    """Return the chunks that a query was written from: ids of one word, else what they say."""
    value = row.get(SOURCE_CHUNK)
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and reads_as_words(item)]
    ids = [row.as_id(item, SOURCE_CHUNK) for item in items if item not in texts]
    graded_quotes = tuple(GradedQuote("", text, _grade_of_quote(row)) for text in texts)
    named = Relevance({}, tuple(dict.fromkeys(ids)), graded_quotes)
    return _graded_by_row(row, _with_text(row, named))


def _named(row: Row, field: Field) -> Relevance:
    """Return the chunk or the document that a row names, with its grade and its text."""
    value = row.get(field)
    items = cell_items(row, field) if isinstance(value, str) else [value]
    ids = [row.as_id(item, field) for item in items] if isinstance(items, list) else []
    grade = row.get(GRADE)
    if grade in (None, ""):
        return _with_text(row, Relevance({}, tuple(dict.fromkeys(ids))))
    return _with_text(row, Relevance(dict.fromkeys(ids, row.as_grade(grade, GRADE))))
