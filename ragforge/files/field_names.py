"""Which names each field goes by in the files of others: the one list of them.

Names are compared without case, underscores, dashes and blanks: `relevant_doc_ids` stands for
`relevantDocIds` and `Relevant Doc IDs` as well. Only a leading underscore counts (`_id`).
"""

import re
from collections.abc import Collection
from functools import cache, lru_cache
from typing import NamedTuple


class Field(NamedTuple):
    """A field: what messages call it, and the names it is known by, the first found counts."""

    name: str
    accepted: tuple[str, ...]
    null_counts: bool = False
    """Whether null under the first name that a row has is its value, whatever others say."""


QUERY_ID_OF_PAIR = Field("query_id", ("query_id", "qid", "topic_id", "question_id", "topic"))
QUERY_ID = Field("query_id", (*QUERY_ID_OF_PAIR.accepted, "id", "_id"))
QUERY = Field("query", ("query", "question", "query_text", "user_input", "input", "text"))
QUERY_OF_PAIR = Field("query", ("query", "question", "query_text"))
CHUNK_ID = Field(
    "chunk_id",
    ("chunk_id", "passage_id", "docno", "doc_id", "document_id", "corpus_id", "pid", "did"),
)
"""Beside `docno`, the `docid` of Terrier is its number in an index."""
ITEM_ID = Field(
    "id",
    (
        *("chunk_id", "passage_id", "corpus_id", "docno", "pid", "id", "_id"),
        *("doc_id", "document_id", "did"),
    ),
)
"""Of one passage in a list of them: beside an id of its own, `doc_id` is the document it is of."""
ID_OF_CHUNK = Field("chunk_id", ("chunk_id", "id", "_id", "passage_id", "docno", "pid"))
"""In files of chunks, where `doc_id` is the document that a chunk is a part of."""
TEXT = Field(
    "text",
    (
        *("text", "content", "contents", "page_content"),
        *("passage", "passage_text", "chunk_text", "chunk"),
    ),
)
DOC_ID = Field("doc_id", ("doc_id", "document_id"))
DOCUMENT = Field("doc_id", (*DOC_ID.accepted, "document"))
TITLE = Field("title", ("title",))
METADATA = Field("metadata", ("metadata",))
QUOTE = Field("quote", ("quote",))
GRADE = Field(
    "grade",
    (
        *("grade", "relevance", "rel", "relevance_score", "relevance_grade", "relevance_label"),
        *("relevance_judgment", "relevance_judgement", "judgment", "judgement", "is_relevant"),
        *("human_grade", "human_label", "gain", "rating", "label", "score", "value"),
    ),
    null_counts=True,
)
GRADE_OF_ITEM = GRADE._replace(accepted=(*GRADE.accepted, "relevant", "correct", "gold"))
"""Of one passage in a list of them."""
GRADE_OF_TEXTS = GRADE._replace(
    accepted=tuple(name for name in GRADE.accepted if name not in ("score", "value"))
)
"""Of texts that a tool keeps beside a question: its score may be of anything, as of an answer."""
GRADE_OF_LIST = GRADE._replace(
    accepted=tuple(
        name
        for name in GRADE.accepted
        if name not in ("label", "human_label", "rating", "score", "value")
    )
)
"""Of all that a row lists as relevant: a label or a rating beside it may be of anything."""
GRADE_BY_NAME = GRADE._replace(
    accepted=(
        *("grade", "relevance", "rel", "relevance_grade", "relevance_label", "human_grade"),
        *("relevance_judgment", "relevance_judgement", "judgment", "judgement", "is_relevant"),
    )
)
"""Whose names can hardly be of anything else."""
EVIDENCE = Field("evidence", ("evidence",))
REASONING = Field("reasoning", ("reasoning",))
CONTAINS_ANSWER = Field("contains_answer", ("contains_answer",))
GRADES = Field(
    "graded_relevance",
    (
        *("graded_relevance", "relevance_scores", "relevance_grades", "relevance_labels"),
        *("relevance_judgments", "relevance_judgements", "judgments", "judgements", "grades"),
    ),
)
RELEVANT = Field(
    "relevant",
    (
        "relevant_chunk_ids",
        "relevant_doc_ids",
        "relevant_document_ids",
        "relevant_ids",
        "relevant",
        "relevant_chunks",
        "relevant_docs",
        "relevant_documents",
        "reference_context_ids",
        *("relevant_chunk_id", "relevant_doc_id", "relevant_document_id", "relevant_id"),
        *("gold_ids", "gold_chunk_ids", "gold_doc_ids", "gold_document_ids"),
        *("expected_ids", "expected_chunk_ids", "expected_doc_ids", "expected_document_ids"),
        *("positive_ids", "positive_chunk_ids", "positive_doc_ids", "positive_document_ids"),
    ),
)
SCORE = Field("score", ("score", "similarity", "sim"))
RANK = Field("rank", ("rank", "position"))
FAILED = Field("error", ("error", "error_message"))
"""Why a row has no result."""
RANKING = Field(
    "ranking",
    (
        "ranking",
        "retrieved_chunk_ids",
        "retrieved_doc_ids",
        "retrieved_ids",
        "retrieved_docs",
        "retrieved_documents",
        "retrieved_chunks",
        "retrieved_context_ids",
        "retrieved",
        "results",
        "hits",
        "chunk_ids",
        "ids",
    ),
)
SCORES = Field("scores", ("scores",))
"""Aligned with a ranking that is a list of ids."""
LATENCY_S = Field("latency_s", ("latency_s", "latency_seconds"))
LATENCY_MS = Field("latency_ms", ("latency_ms", "latency_milliseconds"))
COST_USD = Field("cost_usd", ("cost_usd", "usd", "usd_cost", "total_cost_usd"))
EXPECTED_ANSWER = Field(
    "expected_answer",
    (
        *("expected_answer", "ground_truth", "correct_answer", "reference_answer"),
        *("expected_output", "expected_response", "reference_output"),
        *("answer", "reference"),
    ),
)
"""Where there is one of the first names, `answer` is what a system said."""
GROUND_TRUTHS = Field("ground_truths", ("ground_truths",))
"""A list of expected answers, as ragas had it before 0.1; `answer` is what a system said."""
ANSWERS = Field("answers", ("answers",))
"""Answers with their places in `context`, as SQuAD has them."""
REFERENCE_TEXTS = Field("reference_contexts", ("reference_contexts", "context"))
"""Texts that hold the answer, as ragas and deepeval keep them."""
DIFFICULTY = Field("difficulty", ("difficulty", "difficulty_level", "complexity"))
TYPE = Field("type", ("type", "query_type"))
CATEGORY = Field("category", ("category",))
ANSWERABLE = Field("answerable", ("answerable", "is_answerable"))
UNANSWERABLE = Field(
    "unanswerable", ("unanswerable", "is_unanswerable", "is_impossible", "impossible")
)
"""Says the opposite, as SQuAD does."""
EXPECTED_BEHAVIOUR = Field(
    "expected_behaviour", ("expected_behaviour", "expected_behavior", "behaviour", "behavior")
)
QUOTE_OF_ROW = Field("quote", ("quote", "evidence", "evidence_quote", "supporting_quote"))
DOCUMENT_OF_ROW = Field("doc_id", ("doc_id", "document_id", "source_doc_id"))
"""In rows about a query that name one passage."""
DOCUMENT_OF_QUOTE = Field("doc_id", (*DOCUMENT_OF_ROW.accepted, "document"))
"""Of one quote in a list of them."""
CHUNK_OF_ROW = Field("chunk_id", ("chunk_id", "passage_id"))
"""In rows about a query that name one chunk: it is meant, whatever document stands beside it."""
SOURCE_CHUNK = Field(
    "source_chunk", ("source_chunk", "source_chunk_id", "source_chunks", "source_chunk_ids")
)
"""In rows about a query that was written from a chunk."""
LANGUAGE = Field("language", ("language", "lang"))
PERSONA = Field("persona", ("persona",))
ANSWER = Field(
    "answer",
    (
        *("answer", "generated_answer", "actual_output", "response", "output"),
        *("ai_answer", "model_answer", "rag_answer", "predicted_answer"),
    ),
)
IS_CORRECT = Field("is_correct", ("is_correct",))
IS_PARTIAL = Field(
    "is_partially_correct", ("is_partially_correct", "is_partial", "is_partly_correct")
)
VERDICT = Field("verdict", ("verdict",))
HALLUCINATION = Field("has_hallucination", ("has_hallucination", "is_hallucination"))
ANSWER_SCORE = Field("score", ("score",))
TOTALS = {
    "questions": Field("total_questions", ("total_questions",)),
    "correct": Field("correct_rate", ("correct_rate",)),
    "partial": Field("partially_correct_rate", ("partially_correct_rate", "partial_rate")),
    "hallucination": Field("hallucination_rate", ("hallucination_rate",)),
    "score": Field("average_score", ("average_score", "mean_score")),
}
"""What a JSON object of graded answers says of all of them."""
EXPLANATION = Field("explanation", ("explanation", "reasoning", "reason"))
GROUND_TRUTH = Field(
    "expected_answer",
    tuple(name for name in EXPECTED_ANSWER.accepted if name != "answer"),
)
"""In rows about an answer, where `answer` is what the system said."""
IN_CONTEXT = Field(
    "chunk_ids",
    ("chunk_ids", "doc_ids", *RANKING.accepted, "contexts", "retrieved_contexts"),
)
N_UNKNOWN_PASSAGES = Field("n_unknown_passages", ("n_unknown_passages",))
ROWS = Field(
    "rows",
    (
        *("queries", "questions", "test_cases", "cases", "tests", "examples", "items", "rows"),
        *("data", "results", "answers", "judgments", "qrels", "pairs", "rankings", "runs"),
        *("per_question", "per_query"),
    ),
)
"""Under which a JSON object holds the list of its rows."""
CHUNK_ROWS = Field("chunks", ("chunks",))
"""Under which a JSON object holds a list of chunks; it may hold queries beside them."""

NUMBERS = Field(
    "number",
    ("revision", "look", "seconds", "lead_time", "entropy_bits", "grade_mean", "probability"),
)
"""Of sheets and tables that are written here."""
_OF_NUMBERS = (
    *(QUERY_ID, ITEM_ID, ID_OF_CHUNK, DOCUMENT, RELEVANT, RANKING, IN_CONTEXT, SOURCE_CHUNK),
    *(DOCUMENT_OF_ROW, GRADE_OF_ITEM, GRADES, SCORE, SCORES, RANK, DIFFICULTY, NUMBERS),
    *(LATENCY_S, LATENCY_MS, COST_USD, N_UNKNOWN_PASSAGES, *TOTALS.values()),
)
"""Those that hold numbers, ids or lists of them."""
_MOST_COLUMNS = 256
"""More names are ids, which there is no time to look at; features to learn a ranking by are 136."""


@lru_cache(maxsize=4096)
def normal_name(name: str) -> str:
    """Return the form in which names of fields are compared."""
    mark = "_" if name.startswith("_") else ""
    return mark + re.sub(r"[\s_-]", "", name).lower()


@cache
def normal_names(field: Field) -> tuple[str, ...]:
    """Return the names that a field is known by as they are compared, the first found counts."""
    return tuple(map(normal_name, field.accepted))


def goes_by(name: str, field: Field) -> bool:
    """Whether a field is known by a name."""
    return normal_name(name) in normal_names(field)


def are_columns(names: Collection[object]) -> bool:
    """Whether names are those of columns: of queries, and of chunks or lists of them."""
    if len(names) > _MOST_COLUMNS:
        return False
    texts = [name for name in names if isinstance(name, str)]
    of_chunks = (CHUNK_ID, RANKING, RELEVANT)
    return any(goes_by(name, QUERY_ID_OF_PAIR) for name in texts) and any(
        goes_by(name, field) for name in texts for field in of_chunks
    )


def holds_numbers(name: str) -> bool:
    """Whether a column of a name holds numbers or ids, and no text."""
    return any(goes_by(name, field) for field in _OF_NUMBERS)


@lru_cache(maxsize=1)
def known_names() -> frozenset[str]:
    """Return all names of fields in the form in which they are compared."""
    fields = (field for field in globals().values() if isinstance(field, Field))
    return frozenset(normal_name(name) for field in fields for name in field.accepted)
