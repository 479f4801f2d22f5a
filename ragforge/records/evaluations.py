"""Evaluations as they are kept: a line of the history, and the values behind it."""

import operator
from typing import Annotated, Final

from ragforge.records.model import Field
from ragforge.records.queries import Count, Selection
from ragforge.records.record import JudgeKind, NonEmpty, Provenance, Record

_EVIDENCE_PROMPTS: Final = (
    "generate_queries",
    "generate_follow_ups",
    "find_answer",
    "recheck_answer",
)
"""Prompts that quotes come from, and no grade: what old evaluations tell evidence by."""


def _is_none(value: object) -> bool:
    return value is None


class MeasuredMean(Record):
    """A measure over the queries of a set."""

    mean: float | None
    """None where no query has a value."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval over queries like these; None with fewer than two."""
    n: Count
    """Queries with a value."""
    n_failed: Count = 0
    """Queries with a failed judgment, or on which the retriever failed."""
    least: float | None = None
    most: float | None = None
    """What the mean would be if all failures had come out worst, and best."""


class BridgeMean(Record):
    """A measure over the items that two evaluations have in common, unchanged."""

    n: Count
    before: float
    now: float
    diff: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval of the mean difference per item, further apart by what items left
    out could change; None with fewer than five, or where more than a tenth were left out."""
    n_rescored: Count = 0
    """Items whose grades changed, so that the earlier ranking was scored on the later grades."""
    n_left_out: Count = 0
    """Items whose earlier ranking cannot be scored on the later grades; they are not in `n`."""
    n_mixed: Count = Field(default=0, exclude_if=operator.not_)
    """Of these, items whose two rankings no one judge graded; see `MixedGrades`."""
    sd: Annotated[float, Field(ge=0)] | None = Field(default=None, exclude_if=_is_none)
    """Standard deviation of the differences per item, with the divisor n - 1; None with fewer than
    five, and in evaluations that do not tell."""
    n_tied: Count = Field(default=0, exclude_if=operator.not_)
    """Items of which the difference is 0."""
    p: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, exclude_if=_is_none)
    """Of the paired test of `compare`, where the interval leaves 0 out; None elsewhere, and in
    evaluations that do not tell."""


class MixedGrades(Record):
    """What keeps two evaluations, or two runs, from being measured on the grades of one judge.

    People's grades, and those that follow from evidence, count beside those of any judge.
    """

    n: Count
    """Items in common."""
    measures: dict[str, Count]
    """By measure: items of which no judge graded all that it looks at in both rankings."""
    n_pairs: Count
    """Pairs that `ask` would have to judge for all of them."""
    n_gone: Count = 0
    """Of these, pairs that had a grade at the time of the earlier evaluation, and have none now."""
    ask: Provenance
    """The judge of which the least is missing."""
    judges: tuple[Provenance, ...]
    """Those that graded what the two rankings hold."""


class Grader(Record):
    """Who made the grades that an evaluation rests on."""

    kind: JudgeKind | None
    """None where it is not recorded."""
    model: str = ""
    prompt: str = ""
    prompt_sha256: str = ""
    count: Count
    """Judgments made."""
    n_evidence: Count = 0
    """Of these, grades of chunks because they hold quotes of the queries."""
    n_unanswerable: Count | None = Field(default=None, exclude_if=_is_none)
    """Of these, grades of answers to questions that have none; None of runs, and where it is not
    recorded."""

    @property
    def is_judge(self) -> bool:
        """Whether it graded: a chunk that holds a quote has its grade whoever found that quote.

        Evaluations of before `n_evidence` tell it by the prompt that wrote or found the quotes.
        """
        return self.count > self.n_evidence and self.prompt not in _EVIDENCE_PROMPTS


class Timing(Record):
    """How long the retriever took for a query, in seconds; percentiles by nearest rank."""

    n: Count
    median_s: float
    p95_s: float
    p99_s: float


class Digests(Record):
    """What tells whether something changed: sha256 of contents, in hexadecimal."""

    corpus: str
    """Of the chunks that the run was made on."""
    mapped_to: str = Field(default="", exclude_if=operator.not_)
    """Of the chunks whose ids the rankings hold, where a refresh brought the run along to these; ""
    where they are those of `corpus`."""
    queries: str
    """Of the items measured: their questions, answers and evidence."""
    judgments: str
    """Of the grades, by query and chunk."""
    rankings: str
    """Of the chunk ids in their order; latencies and scores are not in it."""
    prompts: str
    """Of the prompts that grades were made with."""

    @property
    def ranked(self) -> str:
        """Of the chunks whose ids the rankings hold."""
        return self.mapped_to or self.corpus


class Spending(Record):
    """What the set took in all until then."""

    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    cost_usd: float | None


class Evaluation(Record):
    """One run measured on one state of a dataset: a line of `history.jsonl`."""

    evaluation_id: NonEmpty
    """First 16 hex digits of the sha256 of the line without this field."""
    at: str
    """When, UTC, ISO 8601 with seconds; "" in a baseline, whose bytes are to tell of its values."""
    dataset: str
    version: int
    run: NonEmpty
    rel_threshold: Annotated[int, Field(ge=1)]
    by_lists: bool = Field(default=False, exclude_if=operator.not_)
    """Whether lists of relevant chunks decided binary measures, rather than the threshold."""
    only_retrieved: bool = False
    """Whether queries that the run lacks were left out, rather than counted as 0."""
    selection: Selection | None = Field(default=None, exclude_if=_is_none)
    """The part of the queries that it was made on; None where that is all."""
    n_queries: Count
    """Answerable queries of the set, or of the selection."""
    n_failed: Count
    """Of these, those on which the retriever failed or of which a judgment failed."""
    n_retrieved: Count
    """Chunks in the top 10 of the run."""
    n_holes: Count
    """Of these, those without a grade."""
    measures: dict[str, MeasuredMean]
    """By canonical name, in the order asked for."""
    graders: tuple[Grader, ...]
    digests: Digests
    spent: Spending
    timing: Timing | None
    tool_version: str
    git_commit: str = ""
    git_branch: str = ""
    """Of the working directory; "" outside of a repository."""
    bridge_to: str = ""
    """The evaluation of this run before; "" where there is none, or no item can be compared."""
    bridge: dict[str, BridgeMean] = Field(default={})
    """By measure: on the items that are equal in both, by the later grades."""
    mixed: MixedGrades | None = Field(default=None, exclude_if=_is_none)
    """What keeps items from being compared with `bridge_to`; None where nothing does."""
    by_one_judge: bool = Field(default=False, exclude_if=operator.not_)
    """Whether several judges graded, and the bridge was made of the grades of one for each item."""


KEPT_RANKS: Final = 100
"""Chunks of a ranking that are kept to be scored again, at most."""


class ItemValues(Record):
    """The values of one item of an evaluation."""

    query_id: NonEmpty
    item: NonEmpty
    """First 16 hex digits of a sha256 of its question, answer and evidence: what it asks for."""
    grades: NonEmpty
    """First 8 hex digits of a sha256 of its grades above 0, by chunk."""
    values: dict[str, float]
    """By measure, on these grades."""
    ranking: tuple[str, ...]
    """Chunk ids, best first, as deep as the measures look, and at most 100: what can be scored
    again on other grades. A measure that looks deeper than what is kept of a longer ranking (AP
    without a cutoff) cannot; but RR can where a kept chunk is relevant."""
    n_retrieved: Count
    """Length of the ranking before it was cut."""
    graded: tuple[int, ...] | None = Field(default=None, exclude_if=_is_none)
    """Ranks in `ranking`, from 1, of the chunks that had a grade; None where it is not recorded."""


class Baseline(Record):
    """An evaluation with its values per item, for later runs to be held against."""

    evaluation: Evaluation
    items: tuple[ItemValues, ...]
    """Sorted by query."""

    def by_query(self) -> dict[str, ItemValues]:
        """Return the items by query."""
        return {item.query_id: item for item in self.items}
