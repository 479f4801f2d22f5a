"""Answers of a RAG system, with what it had in its context.

Answers to the queries of a set name their context by ids or by quotes, and may bring a grade. Live
traffic brings the passages themselves, and no reference answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Final, get_args

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import (
    ANSWER,
    ANSWER_SCORE,
    DOC_ID,
    EXPLANATION,
    GROUND_TRUTH,
    HALLUCINATION,
    IN_CONTEXT,
    IS_CORRECT,
    IS_PARTIAL,
    ITEM_ID,
    N_UNKNOWN_PASSAGES,
    QUERY,
    QUERY_ID,
    QUERY_ID_OF_PAIR,
    QUERY_OF_PAIR,
    QUOTE,
    TEXT,
    TOTALS,
    VERDICT,
    Field,
    normal_name,
)
from ragforge.files.formats.query_words import truth_of
from ragforge.files.formats.row_files import none_found, read_document, read_rows_of, unknown_shape
from ragforge.files.record_files import explain
from ragforge.files.row import (
    Row,
    cell_items,
    cost_of,
    given_failure,
    latency_of,
    load_json,
    make_row,
    parse_number,
    query_name,
)
from ragforge.files.source_files import open_source, plain_name
from ragforge.files.text import is_unicode, shown
from ragforge.records import GivenGrade, Provenance, Verdict
from ragforge.records.model import pydantic

SHAPES: Final = (
    'JSON Lines or a JSON list: {"query_id": "q1", "answer": "…", "chunk_ids": ["d7"]}',
    'with quotes: {"query_id": "q1", "answer": "…", "retrieved": [{"doc_id": "a.md", '
    '"quote": "…"}]}',
    'with texts: {"query_id": "q1", "answer": "…", "contexts": ["…"]}',
    'with other names: {"id": "q1", "generatedAnswer": "…", "retrievedDocs": ["d7"]}',
    'by question: {"perQuestion": [{"query": "How …?", "aiAnswer": "…"}]}',
    'graded already: {"query": "How …?", "aiAnswer": "…", "isCorrect": true, "score": 1.0}',
    "CSV or TSV with a header: query_id,answer,chunk_ids (ids between ;)",
)


_VERDICTS: Final[Mapping[str, Verdict]] = {
    **{normal_name(word): word for word in get_args(Verdict)},
    "partiallycorrect": "partial",
}
_VERDICT_OF_SCORE: Final[Mapping[float | None, Verdict]] = {
    0.0: "incorrect",
    0.5: "partial",
    1.0: "correct",
}
"""What scores say that stand alone, where a file has no others: 1 is the worst of a scale from 1 to
5, and the best similarity."""
_CONTRADICTED_BY: Final[Mapping[Verdict, float]] = {"correct": 0.0, "incorrect": 1.0}
_TRAFFIC_SHAPES: Final = (
    'JSON Lines or a JSON list: {"query_id": "q1", "query": "How …?", "answer": "…", '
    '"contexts": ["…", "…"]}',
    'with ids: {"id": "q1", "response": "…", "contexts": [{"chunk_id": "d7", "text": "…"}]}',
)
_QUESTION: Final = Field("query", (*QUERY_OF_PAIR.accepted, "user_input", "input"))
_CONTEXTS: Final = Field(
    "contexts",
    (
        *("contexts", "context", "retrieved_contexts", "retrieval_context", "passages"),
        *("chunks", "retrieved_chunks", "documents", "source_documents", "retrieved_documents"),
        *("retrieved_docs", "docs", "retrieved"),
    ),
)
_OF_CHUNK: Final = Field("chunk_id", ("chunk_id", "passage_id"))
_OF_DOCUMENT: Final = Field("doc_id", (*DOC_ID.accepted, "did"))
_PASSAGE_TEXT: Final = Field(TEXT.name, (*TEXT.accepted, *QUOTE.accepted, "snippet", "body"))


@dataclass(frozen=True, slots=True)
class QuotedPassage:
    """A passage named by its document and a quote from it."""

    doc_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer and its context, in the order the system had it."""

    query_id: str
    """"" where the row names its query by the question alone."""
    answer: str
    chunk_ids: tuple[str, ...] = ()
    """As the file names them, by id or by what they say; empty where it names passages by quotes.
    """
    passages: tuple[QuotedPassage, ...] = ()
    n_unknown_passages: int = 0
    """Further passages, that are known to be in no chunk."""
    latency_s: float | None = None
    cost_usd: float | None = None
    query_sha256: str = ""
    """Of the question that it answers, where a set's own file says it."""
    question: str = ""
    """"" where the row has an id."""
    grade: GivenGrade | None = None
    """None where the row brings none; a score alone is none yet, see `graded_by_scores`."""
    lone_score: str = field(default="", compare=False)
    """The score of a row that says no verdict, as a message repeats it; "" without."""
    grade_of_score: GivenGrade | None = field(default=None, compare=False)
    """What that score says on a scale from 0 to 1; None where it is none of 0, 0.5 and 1."""
    other_verdict: str = field(default="", compare=False)
    """A verdict that is no `Verdict`, as a message repeats it; "" without."""
    expected_answer: str | None = None
    """What the file says is right; None where it does not say."""
    where: str = field(default="", compare=False)
    """File and place of the row."""
    asked: str = field(default="", compare=False)
    """The question that stands beside an id; "" without either."""
    has_plain_id: bool = field(default=False, compare=False)
    """Whether the id is just called so, and may be the number of the row."""
    failure: str = ""
    """Why there is no answer; "" where there is one, which may be empty."""


def read_answers(path: Path, *, graded_by: str = "") -> Iterator[AnswerRow]:
    """Yield the answers of a file in its order, one at a time but for `.json`.

    An answer may be empty; that is what the system said, unless the row has an error. A row that
    says whether its answer is correct, or its verdict, brings a grade; of scores alone see
    `graded_by_scores`. `groundTruth` and the like is the expected answer. Further fields are passed
    over.

    Args:
        path: A file of one of `SHAPES`, or with the near names that `field_names` lists.
        graded_by: Who gave the grades that the rows bring; the name of the file where "".

    Raises:
        DataError: The file cannot be read, has none of the shapes or holds no answer; a row lacks
            a field or holds one of a wrong type; or a query is answered twice. Raised when the
            row's turn comes.
    """
    seen: set[str] = set()
    number = 0
    for number, row in enumerate(read_rows_of(open_source(path), SHAPES), 1):
        if number == 1 and not row.has(QUERY_ID, ANSWER):
            raise unknown_shape(path, SHAPES)
        answer = _answer_row(row, graded_by or plain_name(path))
        if answer.query_id in seen:
            raise DataError(f"{row.where}: query {shown(answer.query_id)} comes twice")
        if answer.query_id:
            seen.add(answer.query_id)
        yield answer
    if not number:
        raise none_found(path, "answer")


def graded_by_scores(rows: Iterable[AnswerRow]) -> list[AnswerRow]:
    """Return the rows of a file, those with a score alone graded by it where it is on their scale.

    Scores are of one scale in a file. One that is none of 0, 0.5 and 1, wherever it stands, shows
    another one, and then no score alone is a grade.

    Args:
        rows: All of the file.
    """
    listed = list(rows)
    if any(row.lone_score and row.grade_of_score is None for row in listed):
        return listed
    return [replace(row, grade=row.grade or row.grade_of_score) for row in listed]


def _answer_row(row: Row, source: str) -> AnswerRow:
    failure = "" if row.get(ANSWER) else given_failure(row)
    answer = "" if failure else _answer_text(row)
    chunk_ids: list[str] = []
    passages: list[QuotedPassage] = []
    for item in _context(row):
        if not isinstance(item, Mapping):
            chunk_ids.append(row.as_id(item, IN_CONTEXT))
            continue
        inner = make_row(f"{row.where}: {IN_CONTEXT.name}", item)
        if inner.has(QUOTE):
            passages.append(QuotedPassage(inner.identifier(DOC_ID), inner.text(QUOTE)))
        elif inner.has(TEXT) and not inner.has(ITEM_ID):
            chunk_ids.append(inner.text(TEXT))
        else:
            chunk_ids.append(inner.identifier(ITEM_ID))
    if chunk_ids and passages:
        raise row.wrong(IN_CONTEXT, "either ids or quotes", row.get(IN_CONTEXT))
    by_question = not row.has(QUERY_ID) and row.has(QUERY)
    return AnswerRow(
        query_id="" if by_question else row.identifier(QUERY_ID),
        answer=answer,
        chunk_ids=tuple(chunk_ids),
        passages=tuple(passages),
        n_unknown_passages=_n_unknown(row),
        latency_s=latency_of(row),
        cost_usd=cost_of(row),
        query_sha256=_text_or_nothing(row.given.get("query_sha256")),
        question=row.text(QUERY) if by_question else "",
        grade=_grade(row, source),
        lone_score=_lone_score(row),
        other_verdict=_other_verdict(row),
        grade_of_score=_grade_of_score(row, source),
        expected_answer=_text(row, GROUND_TRUTH) or None,
        where=row.where,
        asked=_text(row, QUERY) if not by_question else "",
        has_plain_id=not row.has(QUERY_ID_OF_PAIR),
        failure=failure,
    )


def _text_or_nothing(value: object) -> str:
    return value if isinstance(value, str) else ""


def _answer_text(row: Row) -> str:
    """Return the answer of a row; it may be empty.

    Raises:
        DataError: It is missing or no text.
    """
    row.require(ANSWER)
    answer = row.get(ANSWER)
    if not isinstance(answer, str) or not is_unicode(answer):
        raise row.wrong(ANSWER, "text", answer)
    return answer


def _grade(row: Row, source: str) -> GivenGrade | None:
    """Return the grade that a row brings; None where neither flags nor verdict say it.

    Raises:
        DataError: Its parts contradict each other, or one has a wrong type.
    """
    kept = row.given.get("given")
    if isinstance(kept, Mapping):  # A file of a dataset's own.
        try:
            return GivenGrade.model_validate(kept)
        except pydantic.ValidationError as error:
            raise DataError(f"{row.where}: given: {explain(error)}") from error
    verdict = _verdict(row)
    return None if verdict is None else _given(row, verdict, _score(row, verdict), source)


def _grade_of_score(row: Row, source: str) -> GivenGrade | None:
    """Return what a score alone says on a scale from 0 to 1; None where it says nothing there."""
    score = parse_number(row.get(ANSWER_SCORE)) if _lone_score(row) else None
    verdict = _VERDICT_OF_SCORE.get(score)
    return None if verdict is None else _given(row, verdict, score, source)


def _given(row: Row, verdict: Verdict, score: float | None, source: str) -> GivenGrade:
    return GivenGrade(
        verdict=verdict,
        score=score,
        has_hallucination=truth_of(row, HALLUCINATION),
        explanation=_text(row, EXPLANATION),
        provenance=Provenance(kind="file", model=source),
    )


def _verdict(row: Row) -> Verdict | None:
    is_correct, is_partial = truth_of(row, IS_CORRECT), truth_of(row, IS_PARTIAL)
    if is_correct and is_partial:
        raise row.wrong(IS_PARTIAL, "false, as is_correct is true", is_partial)
    stated = _VERDICTS.get(normal_name(str(row.get(VERDICT))))
    if is_correct is None and not is_partial:
        return stated
    verdict: Verdict = "correct" if is_correct else "partial" if is_partial else "incorrect"
    if stated is None or stated == verdict:
        return verdict
    if stated == "not_attempted" and verdict == "incorrect":
        return stated
    raise row.wrong(VERDICT, f"{verdict}, as is_correct and is_partially_correct say", stated)


def _other_verdict(row: Row) -> str:
    value = row.get(VERDICT)
    is_read = value in (None, "") or _verdict(row) is not None or row.given.get("given") is not None
    return "" if is_read else shown(value)


def _lone_score(row: Row) -> str:
    value = row.get(ANSWER_SCORE)
    says_verdict = any(
        row.get(name) not in (None, "") for name in (IS_CORRECT, IS_PARTIAL, VERDICT)
    )
    is_alone = value not in (None, "") and not says_verdict and row.given.get("given") is None
    return shown(value) if is_alone else ""


def _score(row: Row, verdict: Verdict) -> float | None:
    value = row.get(ANSWER_SCORE)
    if value is None or value == "":
        return None
    score = parse_number(value)
    if score is None or not 0 <= score <= 1:
        raise row.wrong(ANSWER_SCORE, "a number from 0 to 1, as the row grades its answer", value)
    if score == _CONTRADICTED_BY.get(verdict):
        expected = "more than 0" if verdict == "correct" else "less than 1"
        raise row.wrong(ANSWER_SCORE, f"{expected}, as the row says {verdict}", value)
    return score


def _text(row: Row, field: Field) -> str:
    """Return a text; "" where there is none, or something else stands there."""
    value = row.get(field)
    return value.strip() if isinstance(value, str) and is_unicode(value) else ""


def read_totals(path: Path) -> dict[str, float]:
    """Return the totals that stand beside the answers of a JSON file, by what they are of.

    `correct`, `partial` and `hallucination` are rates, `score` is a mean, `questions` a count.
    """
    source = open_source(path)
    document = read_document(source) if source.kind == "json" else None
    if not isinstance(document, dict):
        return {}
    row = make_row(str(path), document)
    values = {name: parse_number(row.get(field)) for name, field in TOTALS.items()}
    return {name: value for name, value in values.items() if value is not None}


def _n_unknown(row: Row) -> int:
    if not row.has(N_UNKNOWN_PASSAGES):
        return 0
    value = row.get(N_UNKNOWN_PASSAGES)
    count = row.as_whole(value, N_UNKNOWN_PASSAGES)
    if count < 0:
        raise row.wrong(N_UNKNOWN_PASSAGES, "a whole number of at least 0", value)
    return count


def _context(row: Row) -> list[object]:
    value = cell_items(row, IN_CONTEXT)
    if not isinstance(value, list):
        raise row.wrong(IN_CONTEXT, "a list of ids or quotes", value)
    return value


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A passage that a system had before it.

    Args:
        chunk_id: Its place in the context, from 1, where the file gives no id.
        text: May be empty.
    """

    chunk_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """An answer with its context, in the order the system had it.

    Args:
        query_id: The question itself where the file gives no id.
        question: "" where the file gives none.
        answer: May be empty.
        contexts: Empty where nothing was retrieved.
        failure: Why there is no answer; "" where there is one, which may be empty.
    """

    query_id: str
    question: str
    answer: str
    contexts: tuple[ContextRow, ...]
    failure: str = ""


def read_traffic(path: Path) -> Iterator[TrafficRow]:
    """Yield the answers of a file in its order, one at a time but for `.json`.

    Further fields are passed over. `.gz` and `.zst` are unpacked.

    Args:
        path: A file of one of `_TRAFFIC_SHAPES`, or with near names.

    Raises:
        DataError: The file cannot be read, has none of the shapes or holds no answer; a row lacks
            a field or holds one of a wrong type; an id comes twice, or that of a chunk with two
            texts; or the place of a text without id is the id of another. Raised when the row's
            turn comes.
    """
    seen: set[str] = set()
    for row in read_rows_of(open_source(path, "answer"), _TRAFFIC_SHAPES):
        if not seen and not row.has(ANSWER):
            raise unknown_shape(path, _TRAFFIC_SHAPES)
        answer = _traffic_row(row)
        if answer.query_id in seen:
            raise DataError(
                f"{row.where}: query {shown(answer.query_id)} comes twice; give each answer an id "
                "of its own"
            )
        seen.add(answer.query_id)
        yield answer
    if not seen:
        raise none_found(path, "answer")


def _traffic_row(row: Row) -> TrafficRow:
    failure = "" if row.get(ANSWER) else given_failure(row)
    answer = "" if failure else _answer_text(row)
    if not failure:
        row.require(_CONTEXTS)
    return TrafficRow(
        query_id=_query_name(row),
        question=row.optional_text(_QUESTION) or "",
        answer=answer,
        contexts=() if failure else tuple(_contexts(row, _context_items(row))),
        failure=failure,
    )


def _query_name(row: Row) -> str:
    if row.get(QUERY_ID) is None and row.get(_QUESTION) is not None:
        return row.text(_QUESTION)
    return query_name(row)


def _context_items(row: Row) -> list[object]:
    """Return the items of a context; a text that is no JSON list is one passage."""
    value = row.get(_CONTEXTS)
    if isinstance(value, str):
        try:
            listed = load_json(value) if value.lstrip().startswith("[") else None
        except (ValueError, RecursionError):
            listed = None
        value = listed if isinstance(listed, list) else [value]
    if value is None:
        return []
    if not isinstance(value, list):
        raise row.wrong(_CONTEXTS, "a list of texts or of objects with a text", value)
    return value


def _contexts(row: Row, items: list[object]) -> Iterator[ContextRow]:
    texts: dict[str, str] = {}
    named: set[str] = set()
    nameless: set[str] = set()
    for place, item in enumerate(items, start=1):
        inner = _item_row(row, item, place)
        passage = _context_row(row, inner or item, place)
        has_id = inner is not None and inner.get(ITEM_ID) is not None
        (named if has_id else nameless).add(passage.chunk_id)
        if inner is not None and not _names_document(inner):
            _refuse_another(inner, passage, texts.setdefault(passage.chunk_id, passage.text))
        yield passage
    for chunk_id in sorted(named & nameless):
        raise DataError(
            f"{row.where}: {_CONTEXTS.name}: item {chunk_id} has no id, and another has the id "
            f"{shown(chunk_id)}; give ids to all or to none, else a citation could mean both"
        )


def _refuse_another(inner: Row, passage: ContextRow, text: str) -> None:
    if passage.text != text:
        raise DataError(
            f"{inner.where}: {shown(passage.chunk_id)} is also the id of another text; give each "
            "passage an id of its own, or name its document in doc_id"
        )


def _item_row(row: Row, item: object, place: int) -> Row | None:
    if not isinstance(item, Mapping):
        return None
    return make_row(f"{row.where}: {_CONTEXTS.name}: item {place}", item)


def _names_document(inner: Row) -> bool:
    """Whether a passage is named by its document, as its neighbours may be."""
    return inner.get(_OF_CHUNK) is None and inner.get(_OF_DOCUMENT) is not None


def _context_row(row: Row, item: object, place: int) -> ContextRow:
    chunk_id, text = str(place), item
    if isinstance(item, Row):
        item.require(_PASSAGE_TEXT)
        text = item.get(_PASSAGE_TEXT)
        if item.get(ITEM_ID) is not None:
            chunk_id = item.identifier(ITEM_ID)
    if not isinstance(text, str) or not is_unicode(text):
        raise row.wrong(_CONTEXTS, f"a text as item {place}", text)
    return ContextRow(chunk_id, text)
