"""Why a run did badly on a query: a closed set of causes, each in words.

For all who show causes, in the one pass over the chunks that they make anyway:

    finder = CauseFinder(runs, task, measure)      # of causes.finder; MeasuredRun, Task
    for chunk in dataset.chunks():                 # or take_census(..., others=[finder.take])
        finder.take(chunk)
    found = finder.causes()                        # run name -> query id -> Causes
    groups = grouped(found[name].values())         # the commonest cause first
    CAUSES[found[name][query_id].code]             # CauseText(title, meaning, remedy)
"""

from collections.abc import Iterable
from math import fsum
from typing import Final, Literal, TypeAlias

from ragforge.deferred import dataclass

CauseCode: TypeAlias = Literal[
    "retriever_failed",
    "not_judged",
    "judging_failed",
    "no_relevant_known",
    "nothing_retrieved",
    "unjudged_on_top",
    "evidence_cut",
    "duplicates_crowd",
    "not_retrieved",
    "beyond_cutoff",
    "ranked_low",
    "not_in_corpus",
    "some_missed",
    "order",
]
BLAMELESS: Final = frozenset({"not_judged", "judging_failed", "no_relevant_known", "not_in_corpus"})
"""Causes that say nothing of the run."""


@dataclass(frozen=True, slots=True)
class CauseText:
    """A cause in words."""

    title: str
    meaning: str
    remedy: str


CAUSES: Final[dict[CauseCode, CauseText]] = {
    "retriever_failed": CauseText(
        "retriever failed",
        "The retriever gave an error, so the query has no value.",
        "See failures.jsonl for the message, and run `ragforge retrieve` again.",
    ),
    "not_judged": CauseText(
        "not judged",
        "No chunk was judged for the query, so it has no value.",
        "Run `ragforge judge` on this run.",
    ),
    "judging_failed": CauseText(
        "judging failed",
        "Judgments failed and no relevant chunk is known without them.",
        "See failures.jsonl for the message, and run `ragforge judge` again.",
    ),
    "no_relevant_known": CauseText(
        "no relevant chunk known",
        "Nothing that was judged is relevant, so no ranking can do well.",
        "Judge more chunks (`ragforge judge --complete`); if none answers, mark it unanswerable.",
    ),
    "nothing_retrieved": CauseText(
        "nothing retrieved",
        "The run has no chunk for the query.",
        "Run the retriever on this query; look for filters and for words that the index lacks.",
    ),
    "unjudged_on_top": CauseText(
        "unjudged on top",
        "At least half of what stands above the first relevant chunk, or more than half of the "
        "top, has no grade: the value itself is in doubt.",
        "Judge the top of this run with `ragforge judge`, and measure again.",
    ),
    "evidence_cut": CauseText(
        "chunk boundary cuts the evidence",
        "No chunk holds the answer as a whole, but neighbours hold its parts.",
        "Chunk with more overlap or along headings; longer chunks hold it together.",
    ),
    "duplicates_crowd": CauseText(
        "duplicate chunks crowd",
        "Chunks that say nearly the same take the places of relevant ones.",
        "Drop repeats from the index, or show one chunk of each group of repeats.",
    ),
    "not_retrieved": CauseText(
        "no relevant chunk retrieved",
        "A relevant chunk is known, and the run has none.",
        "Compare the words of query and chunk: add a lexical or dense retriever, expand the "
        "query, or retrieve more.",
    ),
    "beyond_cutoff": CauseText(
        "relevant, but beyond the cutoff",
        "The first relevant chunk comes below the last rank that is looked at.",
        "Rerank more candidates: what is wanted is already retrieved.",
    ),
    "ranked_low": CauseText(
        "relevant, but low",
        "The first relevant chunk is in the top ranks, below others that are not relevant.",
        "Rerank the top; look at what the chunks above it share with the query.",
    ),
    "not_in_corpus": CauseText(
        "relevant ids that the corpus lacks",
        "All relevant chunks that the run misses are not in the corpus: no run can find them.",
        "Bring the documents, or mend the labels; the retriever is not to blame.",
    ),
    "some_missed": CauseText(
        "some relevant chunks missed",
        "A relevant chunk is at rank 1, others that count are not in the top ranks.",
        "Retrieve more, or more varied chunks; queries of several parts may be split.",
    ),
    "order": CauseText(
        "ranked below others",
        "All relevant chunks are in the top ranks, not in the best order.",
        "Rerank the top: better chunks stand below lesser ones.",
    ),
}
"""Every cause in words, in the order of the rules: the first that applies is the likely one."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Why a query did badly."""

    query_id: str
    value: float | None
    """Of the measure; None where the query has none."""
    best: float | None
    """The highest value that the judgments allow; None where there is no value."""
    codes: tuple[CauseCode, ...]
    """All that apply, at least one; the first is the likely cause."""
    detail: str
    """What was found for the first, in a few words; texts of data are not in it."""

    @property
    def code(self) -> CauseCode:
        """The likely cause."""
        return self.codes[0]


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """The queries of a run that have one likely cause."""

    code: CauseCode
    query_ids: tuple[str, ...]
    """Sorted."""
    share: float
    """Of the queries that did badly."""
    mean: float | None
    """Of the values; None where no query has one."""


def grouped(causes: Iterable[Causes]) -> tuple[CauseGroup, ...]:
    """Return queries by their likely cause, the commonest first, then in the order of the rules."""
    members: dict[CauseCode, list[Causes]] = {code: [] for code in CAUSES}
    for query_causes in causes:
        members[query_causes.code].append(query_causes)
    total = sum(map(len, members.values()))
    by_size = sorted(members.items(), key=lambda item: -len(item[1]))
    return tuple(
        _group(code, query_causes, total) for code, query_causes in by_size if query_causes
    )


def _group(code: CauseCode, members: list[Causes], total: int) -> CauseGroup:
    values = [item.value for item in members if item.value is not None]
    return CauseGroup(
        code=code,
        query_ids=tuple(sorted(item.query_id for item in members)),
        share=len(members) / total,
        mean=fsum(values) / len(values) if values else None,
    )
