"""Measuring one run: means with bounds, spread over queries, slices, holes, latency."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import ceil, fsum
from sys import intern
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import MISSING, from_to, number, plural
from ragforge.files.set.document_level import DocumentLevel
from ragforge.files.set.query_selection import ChosenQueries
from ragforge.measures.measure_names import SYNTAX, by_judgments, parse_measure
from ragforge.records import Hit, Query, Ranking, is_text_id

if TYPE_CHECKING:
    from ragforge.evaluating.chunkings import Chunking
    from ragforge.measures import Scores
    from ragforge.measures.intervals import Ends
    from ragforge.measures.listed_relevance import Listed
    from ragforge.measures.locating import RankedChunks
    from ragforge.measures.strata import Design


PRIMARY: Final = "nDCG@10"
"""The measure that decides where nobody names one; see `Task.primary`."""
TELL_NOTHING: Final = ("Judged", "NumRet", "NumRel")
"""Measures by which no run is better than another."""
DEPTH: Final = 10
"""Ranks that are looked at for holes and shown for bad queries."""
BINS: Final = 10
RANK_BUCKETS: Final = (
    ("1", 1),
    ("2", 2),
    ("3", 3),
    ("4-5", 5),
    ("6-10", 10),
    ("beyond 10", None),
)
"""Label and last rank of each bucket; None has no end."""
NO_HIT: Final = "none"
NOT_SET: Final = "not set"
NOTHING_MEASURED: Final = "the run is empty, or there is no answerable query: nothing was measured"
Qrels = Mapping[str, Mapping[str, int | None]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of values in [0, 1] with bounds: all that has no value at 0, and all of it at 1."""

    mean: float | None
    """Over the values that exist; None where there are none."""
    n: int
    n_failed: int
    low: float | None
    high: float | None
    interval: Ends | None = None
    """95 %, of the mean over queries like these; None where it is not known."""

    @property
    def is_bounded(self) -> bool:
        """Whether what has no value could change the mean, so that its bounds say something."""
        return self.n_failed > 0 and self.low is not None

    def __str__(self) -> str:
        if not self.is_bounded:
            return number(self.mean)
        if self.mean is None:
            return MISSING
        return f"{number(self.mean)} [{number(self.low)}, {number(self.high)}]"


def with_interval(estimate: Estimate) -> str:
    """Return a mean with its interval in round brackets, and bounds on failures in square ones."""
    if estimate.mean is None:
        return str(estimate)
    ends = estimate.interval
    mean = number(estimate.mean)
    known = f"{mean} ({from_to(ends.low, ends.high)})" if ends else mean
    return (
        f"{known} [{number(estimate.low)}, {number(estimate.high)}]"
        if estimate.is_bounded
        else known
    )


def with_counts(estimate: Estimate) -> str:
    """Return a mean with its interval; where something failed, with bounds and numbers too."""
    shown = with_interval(estimate)
    return f"{shown} ({counts(estimate, 'with failures')})" if estimate.n_failed else shown


def counts(estimate: Estimate, failed: str = "failed") -> str:
    """Return the numbers of values, and of failures if there are any."""
    return f"n {estimate.n:,}" + (f", {estimate.n_failed:,} {failed}" if estimate.n_failed else "")


NOTHING: Final = Estimate(None, 0, 0, None, None)


@dataclass(frozen=True, slots=True)
class Holes:
    """Retrieved chunks in the top ranks that have no grade."""

    n_retrieved: int
    n_unjudged: int
    """Never judged."""
    n_failed: int
    """Judged without success."""

    @property
    def share(self) -> float | None:
        """Share of the retrieved chunks that have no grade; None where nothing was retrieved."""
        if not self.n_retrieved:
            return None
        return (self.n_unjudged + self.n_failed) / self.n_retrieved


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the retriever took."""

    median_s: float
    p95_s: float
    p99_s: float
    """All by nearest rank, but the median."""
    n: int
    mean_s: float


@dataclass(frozen=True, slots=True)
class Slice:
    """The measures of a run over the queries that share a property."""

    dimension: str
    value: str
    n_queries: int
    estimates: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class BucketCount:
    """One bar of a distribution."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """How much of what is relevant was found down to a rank, in the mean over the queries."""

    k: int
    mean: float
    interval: Ends | None


@dataclass(frozen=True, slots=True)
class Attention:
    """Queries to look at, by what is special about them; ids are sorted."""

    without_hit: tuple[str, ...] = ()
    """A relevant chunk is known and none was retrieved."""
    perfect: tuple[str, ...] = ()
    """The whole ranking could not be better, by nDCG without a cutoff."""
    without_relevant: tuple[str, ...] = ()
    """No relevant chunk is known, so that no ranking can do well: they count 0."""
    without_judgments: tuple[str, ...] = ()
    """Nothing was judged: they are in no mean."""
    judgments_failed: tuple[str, ...] = ()
    """Every judgment failed: they have no value."""
    missing: tuple[str, ...] = ()
    """The run lacks them: they count 0."""
    failed: tuple[str, ...] = ()
    """The retriever failed on them: they have no value."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, measured."""

    name: str
    estimates: dict[str, Estimate]
    """By measure, in the order asked for."""
    primary: Estimate
    """Of the measure that decides."""
    histogram: tuple[BucketCount, ...]
    """Queries by their value of that measure, in ten bins; the last one includes 1. Empty where its
    values are not from 0 to 1."""
    first_relevant: tuple[BucketCount, ...]
    """Queries by the rank of their first relevant chunk."""
    attention: Attention
    holes: Holes
    latency: Latency | None
    warnings: tuple[str, ...]
    usd_per_query: float | None = None
    """What a query cost in the mean, in US dollars; None where that is not known."""
    slices: tuple[Slice, ...] = ()
    """These and what follows only a report looks at: `details` fills them in."""
    curve: tuple[CurvePoint, ...] = ()
    """Recall by how far down one looks; empty where nothing was measured."""
    top_grades: tuple[BucketCount, ...] = ()
    """What the top ranks hold: chunks by grade, unjudged and failed ones apart."""
    patterns: tuple[str, ...] = ()
    """What the measures mean together, a sentence each; empty where they say nothing more."""

    @property
    def counted(self) -> Estimate:
        """What tells over how many queries the means are: of judgments, where any is of these."""
        of_judgments = by_judgments(self.estimates)
        return self.estimates[of_judgments[0]] if of_judgments else self.primary


@dataclass(frozen=True, slots=True)
class Task:
    """What runs are measured on."""

    queries: Sequence[Query]
    """The answerable ones."""
    qrels: Qrels
    """Has all of these queries, those without judgments too."""
    measures: Sequence[str]
    """Canonical names."""
    rel_threshold: int
    primary: str = PRIMARY
    """The measure that decides: whose spread over queries is shown, and by which queries are called
    bad."""
    only_retrieved: bool = False
    """Whether queries that a run lacks are left out, rather than counted as 0."""
    is_complete: bool = False
    """Whether what has no label is not relevant, so that no chunk of the set is a hole; a text of
    a run that is no chunk is one all the same, as nobody labelled those."""
    level: DocumentLevel = field(default_factory=DocumentLevel)
    """Folds to documents what is measured on them."""
    relevant: Listed = field(default_factory=dict)
    """What people list as relevant, by query, where no threshold on the grades says so: it decides
    binary measures. Of a query that is not in it, the grades decide."""
    design: Design | None = None
    """What the queries are a sample of; None where they are all there is."""
    chosen: ChosenQueries | None = None
    """The part of the set's queries that these are; None where all."""
    population: Sequence[Query] = ()
    """The answerable queries of the whole set, where a part was chosen."""
    text_grades: Qrels = field(default_factory=dict)
    """Grades of texts that runs retrieved and that are no chunks of the set, by query: for runs
    that have such."""
    chunking: Chunking | None = None
    """The texts that a run is measured with which has such; None for one of the set's chunks."""

    def goes_by(self, query_id: str, chunk_id: str) -> bool:
        """Whether a run is measured on the grades that a chunk or text has for a query."""
        if query_id in self.level.query_ids:
            return self.level.goes_by(chunk_id) or not is_text_id(chunk_id)
        return not is_text_id(chunk_id) if self.chunking is None else chunk_id in self.chunking

    def noun(self, query_id: str) -> str:
        """Return what is retrieved and labelled for a query: chunk or document."""
        return "document" if query_id in self.level.query_ids else "chunk"

    def of_part(self, chosen: ChosenQueries | None) -> Task:
        """Return the task on a part of these queries."""
        if chosen is None or chosen is self.chosen:
            return self
        # Who is judged says nothing of what a stratum is of the set.
        design = chosen.design.within(self.qrels) if chosen.design else None
        return replace(
            self,
            relevant={key: of for key, of in self.relevant.items() if key in chosen.query_ids},
            queries=[item for item in self.queries if item.query_id in chosen.query_ids],
            qrels={key: of for key, of in self.qrels.items() if key in chosen.query_ids},
            design=design,
            chosen=chosen,
            population=self.queries,
        )

    @property
    def is_by_document(self) -> bool:
        """Whether all queries are measured on documents, however runs cut these."""
        labelled = {key for key, of in self.qrels.items() if of}
        return bool(labelled) and labelled <= self.level.query_ids

    def of_chunking(self, chunking: Chunking | None) -> Task:
        """Return the task for a run with texts that are no chunks: on grades of texts cut alike.

        Queries that are measured on documents stay as they are.
        """
        if chunking is None or self.is_by_document:
            return self
        folded, texts, threshold = self.level.query_ids, self.text_grades, self.rel_threshold
        return replace(
            self,
            qrels={
                key: of
                if key in folded
                else chunking.grades(key, of, texts.get(key, {}), threshold)
                for key, of in self.qrels.items()
            },
            relevant={
                key: of
                if key in folded
                else chunking.listed(key, of, texts.get(key, {}), threshold)
                for key, of in self.relevant.items()
            },
            chunking=chunking,
        )

    def leaves_open(self, chunk_id: str) -> bool:
        """Whether it is not known of a chunk without a label that it is not relevant."""
        if not self.is_complete or is_text_id(chunk_id):
            return True
        return chunk_id in self.level.lacking

    def relevant_in(self, query_id: str) -> Collection[str]:
        """Return the chunks that are known to be relevant to a query."""
        if query_id in self.relevant:
            return self.relevant[query_id]
        grades = self.qrels.get(query_id, {})
        return {
            chunk_id
            for chunk_id, grade in grades.items()
            if grade is not None and grade >= self.rel_threshold
        }


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run with its scores, before it is summarised."""

    name: str
    ranked: dict[str, tuple[str, ...]]
    """Chunk ids by query, best first."""
    scores: Scores | None
    """None where there was nothing to measure."""
    summary: RunSummary
    latencies_s: dict[str, float] = field(default_factory=dict)
    """By query, where the retriever was timed."""
    task: Task | None = None
    """What it was measured on, where that is a part of the queries, or texts of its own chunking;
    None where it is all queries and the set's chunks."""
    as_retrieved: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The rankings in which chunks have the ids of others that hold the same quotes, as they came.
    """

    @property
    def retrieved(self) -> Mapping[str, Sequence[str]]:
        """What was retrieved, under its own ids."""
        came = self.as_retrieved
        return {key: came.get(key, of) for key, of in self.ranked.items()} if came else self.ranked

    def by_query(self, measure: str) -> dict[str, float]:
        """Return the value of each query by a measure; none of a run that could not be scored."""
        return {} if self.scores is None else self.scores.by_query(measure)

    def cut_task(self, task: Task) -> Task:
        """Return the task whose grades the run was measured on, its own or that of all runs."""
        has_own = self.task is not None and self.task.chunking is not None
        return self.task if has_own and self.task is not None else task


def measure_run(
    name: str,
    rankings: Iterable[Ranking],
    failed: Iterable[str],
    task: Task,
    usd_per_query: float | None = None,
) -> MeasuredRun:
    """Measure one run by judgments; for measures of evidence see `with_evidence_measures`.

    Args:
        name: Of the run.
        rankings: What was retrieved; queries outside of the task are passed over.
        failed: Queries on which the retriever failed; one that has a ranking does not count.
        task: The queries, judgments and measures.
        usd_per_query: What a query cost; None where that is not known.
    """
    from ragforge.measures.locating import falls

    run: dict[str, tuple[str, ...] | dict[str, float]] = {}
    latencies_s: dict[str, float] = {}
    for item in rankings:
        if item.query_id in task.qrels:
            scored = {intern(hit.chunk_id): hit.score for hit in item.ranking}
            # Nothing is asked of scores that fall but the order.
            run[item.query_id] = tuple(scored) if falls(scored.values()) else scored
            if item.latency_s is not None:
                latencies_s[item.query_id] = item.latency_s
    lost = (set(failed) & task.qrels.keys()) - run.keys()
    ranked = {
        query_id: found if isinstance(found, tuple) else _ordered(found)
        for query_id, found in run.items()
    }
    scores = _evaluate(task, run, lost)
    # Measures of evidence are not computed yet.
    primary = next(iter(by_judgments([task.primary])), PRIMARY)
    if scores is not None and task.design is not None:
        if task.only_retrieved:
            refuse_left_out_of_sample(name, len(scores.missing_from_run))
        scores = scores.of_sample(task.design)
    summary = RunSummary(
        name=name,
        estimates={name: estimate_of(scores, name) for name in by_judgments(task.measures)},
        primary=estimate_of(scores, primary),
        histogram=histogram_of(scores, primary),
        first_relevant=_first_relevant(scores),
        attention=_attention(scores, sorted(lost)),
        holes=_holes(ranked, task),
        latency=latency_of([*latencies_s.values()]),
        warnings=tuple(scores.warnings) if scores else (NOTHING_MEASURED,),
        usd_per_query=usd_per_query,
    )
    part = task if task.chosen or task.chunking else None
    return MeasuredRun(name, ranked, scores, summary, latencies_s, part)


def rank_order(hits: Iterable[Hit]) -> tuple[str, ...]:
    """Return the chunk ids as they are ranked: by score, equal ones by id, both descending."""
    return _ordered({intern(hit.chunk_id): hit.score for hit in hits})


def by_document_text(n_queries: int) -> str:
    """Return a note that queries are measured by documents."""
    queries = plural(n_queries, "query is", "queries are")
    return (
        f"{queries} measured by documents, as labels name some: chunks count as their documents, "
        "each at its best rank."
    )


def missing_text(n_missing: int, noun: str = "chunk") -> str:
    """Return a note that the corpus lacks chunks, or documents, that people call relevant."""
    chunks = plural(n_missing, f"relevant {noun} is", f"relevant {noun}s are")
    return f"{chunks} not in the corpus: no run can find them, and recall is measured by them."


def out_of_reach(names: Iterable[str], rel_threshold: int, highest: int) -> str:
    """Return the measures whose threshold no grade reaches, in words; "" where there is none.

    Args:
        names: Of the measures.
        rel_threshold: Lowest grade that counts as relevant, unless a measure says another.
        highest: Grade in the judgments.
    """
    measures = [parse_measure(name) for name in names]
    thresholds = {
        str(measure): measure.rel or rel_threshold
        for measure in measures
        if "rel" in SYNTAX[measure.name].settings
    }
    affected = [name for name, threshold in thresholds.items() if threshold > highest]
    default = ""
    if rel_threshold > highest:
        default = f"Relevant means grade {rel_threshold} or above here. "
    if not (affected or default):
        return ""
    zero = f" These measures are 0 for every ranking: {', '.join(affected)}." if affected else ""
    return f"{default}The highest grade in the judgments is {highest}.{zero}"


def _ordered(scored: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(sorted(scored, key=lambda item: (scored[item], item), reverse=True))


def primary_of(measures: Sequence[str]) -> str:
    """Return the measure that decides: the first of those asked for by which a run can be better.

    Args:
        measures: Canonical names; empty where nobody asked for any.
    """
    telling = (name for name in measures if parse_measure(name).name not in TELL_NOTHING)
    return next(telling, PRIMARY)


def estimate_of(scores: Scores | None, measure: str) -> Estimate:
    """Return the mean of a measure with its bounds."""
    if scores is None:
        return NOTHING
    summary = scores.summary(measure)
    return Estimate(summary.mean, summary.n, summary.n_failed, summary.low, summary.high)


def _evaluate(
    task: Task, run: Mapping[str, RankedChunks], failed: Collection[str]
) -> Scores | None:
    """Score the run; None where there is nothing to score, which is no 0."""
    from ragforge.measures import evaluate

    if not task.qrels or not (run or failed):
        return None
    return evaluate(
        task.qrels,
        run,
        [*by_judgments(task.measures), PRIMARY],
        rel_threshold=task.rel_threshold,
        failed=failed,
        only_retrieved=task.only_retrieved,
        relevant=task.relevant or None,
    )


def refuse_left_out_of_sample(run: str, n_lacked: int) -> None:
    """Refuse to leave out queries that were drawn: others of their stratum would stand for them.

    Raises:
        UsageError: There is one.
    """
    if n_lacked:
        raise UsageError(
            f"--only-retrieved: run {run} lacks {plural(n_lacked, 'query', 'queries')} of the "
            "sample, and the others would stand for them; go without --sample, or without "
            "--only-retrieved, so that they count 0"
        )


def _attention(scores: Scores | None, failed: Sequence[str]) -> Attention:
    if scores is None:
        return Attention(failed=tuple(failed))
    return Attention(
        without_hit=tuple(scores.without_hit),
        perfect=tuple(scores.perfect),
        without_relevant=tuple(scores.without_relevant),
        without_judgments=tuple(scores.without_judgments),
        judgments_failed=tuple(scores.judgments_failed),
        missing=tuple(scores.missing_from_run),
        failed=tuple(failed),
    )


def histogram_of(scores: Scores | None, measure: str) -> tuple[BucketCount, ...]:
    """Count the queries by their value, in ten bins; () where values may be above 1."""
    from ragforge.measures.unseen_values import is_bounded

    if not is_bounded(measure):
        return ()
    counts = [0] * BINS
    for value in scores.values(measure) if scores else ():
        counts[min(int(value * BINS), BINS - 1)] += 1
    return tuple(
        BucketCount(f"{index / BINS:.1f}-{(index + 1) / BINS:.1f}", count)
        for index, count in enumerate(counts)
    )


def _first_relevant(scores: Scores | None) -> tuple[BucketCount, ...]:
    counts = dict.fromkeys([*(label for label, _ in RANK_BUCKETS), NO_HIT], 0)
    if scores is not None:
        hopeless = set(scores.without_relevant)
        for query_id, rank in scores.first_relevant_rank.items():
            if query_id not in hopeless:
                counts[_bucket(rank)] += 1
    return tuple(BucketCount(label, count) for label, count in counts.items())


def _bucket(rank: int | None) -> str:
    if rank is None:
        return NO_HIT
    return next(label for label, last in RANK_BUCKETS if last is None or rank <= last)


def _holes(ranked: Mapping[str, Sequence[str]], task: Task) -> Holes:
    n_retrieved = n_unjudged = n_failed = 0
    for query_id, chunk_ids in ranked.items():
        judged, listed = task.qrels.get(query_id, {}), task.relevant.get(query_id, ())
        for chunk_id in chunk_ids[:DEPTH]:
            n_retrieved += 1
            is_open = chunk_id not in judged and chunk_id not in listed
            n_unjudged += is_open and task.leaves_open(chunk_id)
            n_failed += chunk_id in judged and judged[chunk_id] is None
    return Holes(n_retrieved, n_unjudged, n_failed)


def latency_of(seconds: Sequence[float]) -> Latency | None:
    """Return median, 95th and 99th percentile and mean; None where nothing was timed."""
    if not seconds:
        return None
    ordered, n = sorted(seconds), len(seconds)
    median_s = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    p95_s, p99_s = (ordered[ceil(share * n) - 1] for share in (0.95, 0.99))
    return Latency(median_s, p95_s, p99_s, n, fsum(ordered) / n)
