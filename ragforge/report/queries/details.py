"""All it takes to see why a query went as it did: rankings, grades, reasons, texts, answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

from ragforge.records import Judgment, Query
from ragforge.report.answers.records import SystemRecords
from ragforge.report.gathered import Gathered
from ragforge.report.queries.chunk_starts import ChunkStart
from ragforge.report.queries.replies import reply_key
from ragforge.report.runs import DEPTH, MeasuredRun, Task
from ragforge.report.shown import Excerpt, excerpt

MISSED: Final = 5
"""Relevant chunks shown that were not in the top ranks."""
_QUOTES: Final = 5
_TEXT_CHARS: Final = 1500
_QUOTE_CHARS: Final = 600
_REASON_CHARS: Final = 400

ChunkState: TypeAlias = Literal["graded", "failed", "listed", "unlisted", "unjudged"]
"""Graded; the judge gave no grade; relevant by a list without a grade; not relevant, as labels are
complete; nobody looked."""
NO_GRADE_SIGNS: Final[Mapping[str, str]] = {
    "unjudged": "?",
    "failed": "!",
    "listed": "+",
    "unlisted": "-",
}
"""What is shown in the place of a grade."""
NO_GRADE_MEANINGS: Final[Mapping[str, str]] = {
    "unjudged": "not judged",
    "failed": "judging failed",
    "listed": "listed as relevant, without a grade",
    "unlisted": "not listed, so not relevant",
}


@dataclass(frozen=True, slots=True)
class ShownChunk:
    """A chunk that a run retrieved, or should have, with what its judge said."""

    chunk_id: str
    grade: int | None
    state: ChunkState
    source: str
    """Where the grade is from; "" without one."""
    reasoning: Excerpt
    call_key: str
    """Of the judge's reply; "" where none is known."""
    quotes: tuple[str, ...]
    """The evidence to be seen in its text."""


@dataclass(frozen=True, slots=True)
class RunDetail:
    """What a run made of a query."""

    name: str
    n_retrieved: int
    top: tuple[str, ...]
    """Chunk ids, best first."""
    missed: tuple[str, ...]
    """Relevant chunks that are not in the top ranks, best grade first."""
    n_missed: int
    ranks: dict[str, int]
    """Of the missed ones that were retrieved after all."""


@dataclass(frozen=True, slots=True)
class AnswerDetail:
    """What a system answered."""

    system: str
    answer: Excerpt | None
    """None where there is no answer."""
    verdict: str
    """"" where it has no grade."""
    has_hallucination: bool | None
    explanation: Excerpt


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """One query, opened."""

    query_id: str
    text: Excerpt
    answerable: bool
    expected_answer: Excerpt | None
    evidence: tuple[Excerpt, ...]
    chunks: dict[str, ShownChunk]
    """Every chunk that any run shows."""
    runs: tuple[RunDetail, ...]
    answers: tuple[AnswerDetail, ...]


def query_detail(records: Gathered, query_id: str) -> QueryDetail:
    """Return what is shown of a query; texts of chunks and replies come from elsewhere."""
    query, judged = records.queries[query_id], records.settled.get(query_id, {})
    relevant = _relevant(records.task, query_id)
    runs = tuple(_run(run, query_id, relevant) for run in records.runs)
    wanted = dict.fromkeys(item for run in runs for item in (*run.top, *run.missed))
    answer = query.expected_answer
    unlabelled: ChunkState = "unlisted" if records.task.is_complete else "unjudged"
    return QueryDetail(
        query_id=query_id,
        text=excerpt(query.query, _TEXT_CHARS),
        answerable=query.answerable,
        expected_answer=None if answer is None else excerpt(answer, _TEXT_CHARS),
        evidence=tuple(excerpt(item.quote, _QUOTE_CHARS) for item in query.evidence[:_QUOTES]),
        chunks={item: _shown(item, judged.get(item), query, unlabelled) for item in wanted},
        runs=runs,
        answers=tuple(filter(None, map(partial(_answer, query_id), records.systems))),
    )


def _relevant(task: Task, query_id: str) -> list[str]:
    grades = task.qrels.get(query_id, {})
    wanted = task.relevant_in(query_id)
    return sorted(wanted, key=lambda chunk_id: (-(grades.get(chunk_id) or 0), chunk_id))


def _run(run: MeasuredRun, query_id: str, relevant: Iterable[str]) -> RunDetail:
    ranked = run.ranked.get(query_id, ())
    top = ranked[:DEPTH]
    missed = tuple(chunk_id for chunk_id in relevant if chunk_id not in top)
    shown = missed[:MISSED]
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(ranked, 1) if chunk_id in shown}
    return RunDetail(run.name, len(ranked), top, shown, len(missed), ranks)


def _shown(
    chunk_id: str, judgment: Judgment | None, query: Query, unlabelled: ChunkState
) -> ShownChunk:
    quotes = [item.quote for item in query.evidence if item.chunk_id == chunk_id]
    # Where chunks overlap, or were cut again, the quote of another chunk may stand in this one.
    quotes += [item.quote for item in query.evidence if item.chunk_id != chunk_id]
    if judgment is None:
        return ShownChunk(chunk_id, None, unlabelled, "", excerpt("", 0), "", tuple(quotes))
    if judgment.evidence:
        quotes.insert(0, judgment.evidence)
    return ShownChunk(
        chunk_id=chunk_id,
        grade=judgment.grade,
        state=_state(judgment),
        source=judgment.source,
        reasoning=excerpt(judgment.reasoning, _REASON_CHARS),
        call_key=reply_key(judgment),
        quotes=tuple(dict.fromkeys(quotes[:_QUOTES])),
    )


def _state(judgment: Judgment) -> ChunkState:
    if judgment.grade is not None:
        return "graded"
    return "failed" if judgment.is_failed else "listed"


def _answer(query_id: str, system: SystemRecords) -> AnswerDetail | None:
    answer, grade = system.answers.get(query_id), system.grades.get(query_id)
    if answer is None and grade is None:
        return None
    return AnswerDetail(
        system=system.system,
        answer=None if answer is None else excerpt(answer.answer, _TEXT_CHARS),
        verdict=(grade.verdict or "").replace("_", " ") if grade else "",
        has_hallucination=grade.has_hallucination if grade else None,
        explanation=excerpt(grade.explanation if grade else "", _REASON_CHARS),
    )


@dataclass(frozen=True, slots=True)
class Texts:
    """The long texts that queries share: kept for those that are shown, and no others."""

    starts: Mapping[str, ChunkStart]
    """By chunk."""
    replies: Mapping[str, Excerpt]
    """By call key."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The texts that some queries need."""

    chunk_quotes: dict[str, tuple[str, ...]]
    """Chunk id to the quotes to be seen in it."""
    call_keys: frozenset[str]
    reach: int
    """How many of the first queries get all their texts."""


def wanted_texts(
    records: Gathered, query_ids: Sequence[str], most: int, always: Iterable[str]
) -> Wanted:
    """Return the texts of the first queries, until there are enough.

    Args:
        records: Where they are from.
        query_ids: Queries in order.
        most: Chunks after which no further query is looked at; a fifth as many queries are looked
            at, however many chunks they share.
        always: Queries whose texts are wanted in any case.
    """
    quotes: dict[str, tuple[str, ...]] = {}
    keys: set[str] = set()

    def take(query_id: str) -> None:
        for chunk in query_detail(records, query_id).chunks.values():
            quotes[chunk.chunk_id] = (*quotes.get(chunk.chunk_id, ()), *chunk.quotes)[:_QUOTES]
            keys.add(chunk.call_key)

    reach = 0
    while reach < min(len(query_ids), most // 5) and len(quotes) < most:
        take(query_ids[reach])
        reach += 1
    for query_id in always:
        take(query_id)
    return Wanted(quotes, frozenset(keys - {""}), reach)
