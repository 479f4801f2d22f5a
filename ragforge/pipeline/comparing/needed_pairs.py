"""The pairs that decide between some runs, and judging them look by look.

What is judged for a decision is a sample: it stays out of the judgments of the set, so that no
other command takes it for a pool. Replies are in the call store all the same: `judge` completes the
pool without asking for them again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import field
from math import log2, nan
from typing import Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.chunkings import chunkings, differ
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import GradedBy, count_grades
from ragforge.evaluating.judgments import on_authors_scale, settle
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.decision_samples import earlier_decisions, write_sample
from ragforge.files.set.document_level import document_level
from ragforge.files.set.sorted_records import ChunkTexts
from ragforge.files.set.unknown_hits import unknown_run_text
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers
from ragforge.measures.first_hits_several import SeveralFirstHits
from ragforge.measures.left_out import Common
from ragforge.measures.measure_names import Measure, parse_measure
from ragforge.measures.sequential import (
    LEAST_QUERIES,
    DecidingPairs,
    drawing_probabilities,
    shares_for,
)
from ragforge.measures.sequential_several import RankedPairs
from ragforge.observe import Event, Observer
from ragforge.pipeline.comparing.failed_queries import failed_queries
from ragforge.pipeline.comparing.tops import RunTops, run_tops
from ragforge.pipeline.comparing.undecided import UNLIKE, USUAL_DEPTH, rank_weight
from ragforge.pipeline.job import Job, all_failed
from ragforge.pipeline.judge.judge_run import JudgeRun, JudgingResult, judged_spool
from ragforge.pipeline.judge.judges import Judges, open_judges
from ragforge.pipeline.judge.pooling import KeptGrades
from ragforge.records import Failure, Judgment
from ragforge.records.judgments import GradeOrigin, origin_of
from ragforge.stages.judge.llm import refuse_shared_queries
from ragforge.stages.judge.pairs import Pair

DEFAULT_MEASURE: Final = "DCG@10"
FIRST_HITS: Final = ("RR", "Success")
"""Measures for which two runs are read down to their first hits."""
UNSEEN_P: Final = 0.025
_NOTHING: Final = 1e-12
_HIGHEST_GRADE: Final = 3
T = TypeVar("T", covariant=True)


@dataclass(frozen=True, slots=True)
class Declared:
    """What is fixed before the first call."""

    measure: str = DEFAULT_MEASURE
    """DCG@k, P@k, RR or Success@k."""
    seed: int = 0
    """Of the sample: the same one asks for the same pairs."""
    allowed: float | None = None
    """How much lower the second run may be, where that is to be decided; None for who is better."""
    least_queries: int = LEAST_QUERIES


BY_DEFAULT: Final[Declared] = Declared()


class Decision(Protocol[T]):
    """What goes on until it is decided; see `SequentialDecision`."""

    def wanted(self) -> Integers:
        """Return the pairs that are to be judged by the next look."""
        ...

    def look(self, values: Floats) -> T | None:
        """Return what is decided; None where more pairs are to be judged."""
        ...


class TextKey(NamedTuple):
    """A text retrieved for a query; the same words under two ids are one."""

    query_id: str
    text_sha256: str


@dataclass
class Unit:
    """A text of a query that one of the runs has among its top k."""

    key: TextKey
    chunk_id: str
    """The first id under which it was retrieved."""
    ranks: list[list[int]]
    """By run, from 0."""
    value: float | None = None
    """What a grade given before is worth."""
    grade: int | None = None
    origin: GradeOrigin | None = None
    """Who gave the grade."""

    @property
    def is_by_rule(self) -> bool:
        """Whether the grade is a baseline's, or made up by `ragforge mock`."""
        return self.origin is not None and self.origin.kind in ("baseline", "mock")

    def worths(self, discounts: Floats) -> list[float]:
        """Return what a value of 1 adds to each run's measure."""
        return [sum(float(discounts[rank]) for rank in ranks) for ranks in self.ranks]


@dataclass
class NeededPool:
    """The units of some runs; those that weigh nothing are counted and never asked for."""

    measure: Measure
    query_ids: list[str]
    units: list[Unit]
    by_chunk: Mapping[tuple[str, str], Unit]
    size: int
    seed: int
    n_runs: int
    query_weights: Floats
    """What each query stands for, 1 in the mean."""
    authors_threshold: int | None = None
    """As `Dataset.authors_threshold`."""
    common: Common = field(default_factory=dict)
    """By two runs of which one failed: the queries on which neither did."""
    n_without_text: int = 0
    """Retrieved pairs whose chunk is not in the set: they cannot be judged, and count 0."""

    @property
    def highest(self) -> float:
        """What the highest grade is worth; the lowest is worth 0."""
        return self.value(_HIGHEST_GRADE)

    @property
    def is_read(self) -> bool:
        """Whether runs are read down to their first hits."""
        return self.measure.name in FIRST_HITS

    @property
    def discounts(self) -> Floats:
        """What each rank is worth, from 0."""
        k = self.measure.cutoff or 0
        if self.measure.name == "P":
            return np.full(k, 1 / k)
        return np.array([1 / log2(rank + 2) for rank in range(k)])

    def value(self, grade: int) -> float:
        """Return what a grade is worth in the measure."""
        if self.measure.name in ("P", *FIRST_HITS):
            return float(grade >= (self.measure.rel or 2))
        return float(grade)

    def take(self, judgments: Iterable[Judgment]) -> None:
        """Take over grades that the set has: the judge's own, and those of people.

        Of several grades of a text the one that counts elsewhere counts here.
        """
        own: dict[TextKey, list[Judgment]] = {}
        for old in judgments:
            unit = self.by_chunk.get((old.query_id, old.chunk_id))
            if unit is not None and old.grade is not None:
                own.setdefault(unit.key, []).append(
                    old.model_copy(update={"chunk_id": unit.chunk_id})
                )
        for unit in self.units:
            for old in settle(own.get(unit.key, ())).get(unit.key.query_id, {}).values():
                self.grade(unit, old)
                unit.value = self.value(unit.grade or 0)

    def grade(self, unit: Unit, judgment: Judgment) -> None:
        """Give a unit the grade of a judgment, on the scale of the set's author."""
        found = on_authors_scale(judgment, self.authors_threshold)
        unit.grade, unit.origin = found.grade, origin_of(found)

    def shares(self, judgments: Iterable[Judgment]) -> list[float]:
        """Return by run what share of its top these are of, as the ranks weigh."""
        depth = self.measure.cutoff or USUAL_DEPTH
        units = {unit.key: unit for unit in self.by_chunk.values()}
        keys = {(one.query_id, one.chunk_id) for one in judgments}
        graded = {unit.key for pair, unit in self.by_chunk.items() if pair in keys}
        weights = np.zeros((2, self.n_runs))
        for key, unit in units.items():
            for run, ranks in enumerate(unit.ranks):
                top = (rank + 1 for rank in ranks if rank < depth)
                worth = sum(rank_weight(self.measure.name, rank) for rank in top)
                weights[:, run] += (worth, worth * (key in graded))
        return [float(found / every) if every else 0.0 for every, found in weights.T]

    def is_known(self) -> np.ndarray:
        """Return which units have a grade already."""
        return np.array([unit.value is not None for unit in self.units], dtype=bool)

    def lists(self) -> list[list[list[int]]]:
        """Return by query and run the places of the units, in the order of the ranks."""
        place = {query_id: i for i, query_id in enumerate(self.query_ids)}
        ranked: list[list[list[list[int]]]] = [[[] for _ in range(self.n_runs)] for _ in place]
        for at, unit in enumerate(self.units):
            for run, ranks in enumerate(unit.ranks):
                ranked[place[unit.key.query_id]][run].extend([rank, at] for rank in ranks)
        return [[[at for _, at in sorted(of)] for of in of_query] for of_query in ranked]

    def several_read(self) -> SeveralFirstHits:
        """Return the decision between the runs by their first hits."""
        values = np.array([nan if unit.value is None else unit.value for unit in self.units])
        places = [_place(self.seed, TextKey(query_id, "")) for query_id in self.query_ids]
        by_rank = self.measure.name == "RR"
        of_queries = np.array(places), self.query_weights, self.common
        return SeveralFirstHits(self.lists(), values, by_rank, *of_queries)

    def pairs(self) -> RankedPairs:
        """Return the units as a decision between several runs takes them."""
        place = {query_id: i for i, query_id in enumerate(self.query_ids)}
        best = np.array([min(rank for ranks in u.ranks for rank in ranks) for u in self.units])
        held = np.array([np.mean([bool(ranks) for ranks in unit.ranks]) for unit in self.units])
        discounts = self.discounts
        queries = np.array([place[unit.key.query_id] for unit in self.units], dtype=np.intp)
        worths = np.array([unit.worths(discounts) for unit in self.units])
        worths = worths.reshape(len(self.units), self.n_runs)  # Of no unit, too.
        return RankedPairs(
            queries,
            worths * self.query_weights[queries, np.newaxis],
            np.stack([np.ones(len(best)), 1 / np.log2(best + 2), held], axis=1),
            np.array([_place(self.seed, unit.key) for unit in self.units]),
            len(self.query_ids),
            self.common,
        )

    def pairs_of_two(self) -> DecidingPairs:
        """Return the units as a decision between two runs takes them."""
        found = self.pairs()
        weights = found.discounts[:, 1] - found.discounts[:, 0]
        return DecidingPairs(found.queries, weights, found.features, found.places, found.n_queries)

    def unseen_reach(self, n_queries: int, p: float) -> float:
        """Return how far from what all queries show the mean could be.

        Where all agree nothing is seen of how far others lie: as many as can well go unseen may be
        at either end.

        Args:
            n_queries: That were seen.
            p: Chance that as many as that go unseen.
        """
        unseen = 1 - p ** (1 / n_queries)
        return float(unseen * self.highest * float(self.discounts.sum()))

    def forecast(self, typical: tuple[float, float]) -> dict[str, object]:
        """Return how many pairs the decision may take.

        Args:
            typical: Shares of the pool that runs far apart took, and close ones.
        """
        discounts, known = self.pairs().discounts, self.is_known()
        weights = discounts.max(axis=1) - discounts.min(axis=1)
        first = drawing_probabilities(weights, known, shares_for(len(self.query_ids))[0])
        return self.counted(round(float(first[~known].sum())), typical)

    def counted(self, first_look: int, typical: tuple[float, float]) -> dict[str, object]:
        """Return how many pairs the decision may take.

        Args:
            first_look: Pairs of it.
            typical: As for `forecast`.
        """
        known = self.is_known()
        n_new = int((~known).sum())
        return {
            "measure": str(self.measure),
            "pairs": {
                "pool": self.size,
                "that_decide": len(self.units),
                "graded": int(known.sum()),
                "first_look": first_look,
                "expected_if_far": min(round(typical[0] * self.size), n_new),
                "expected_if_close": min(round(typical[1] * self.size), n_new),
                "at_most": n_new,
            },
        }


def _pool(found: RunTops, texts: ChunkTexts, declared: Declared, measure: Measure) -> NeededPool:
    units: dict[TextKey, Unit] = {}
    by_chunk: dict[tuple[str, str], Unit] = {}
    without_text = set()
    query_ids = found.query_ids
    for at, ranked in enumerate(found.rankings):
        for query_id in query_ids:
            for rank, chunk_id in enumerate(ranked.get(query_id, ())):
                if chunk_id in found.repeating.get(query_id, ()):
                    continue
                if chunk_id not in texts:
                    without_text.add((query_id, chunk_id))
                    continue
                digest = hashlib.sha256(texts[chunk_id].encode()).hexdigest()
                key = TextKey(query_id, digest)
                unit = units.setdefault(key, Unit(key, chunk_id, [[] for _ in found.rankings]))
                unit.ranks[at].append(rank)
                by_chunk[query_id, chunk_id] = unit
    pool = NeededPool(
        measure,
        query_ids,
        [],
        by_chunk,
        len(units),
        declared.seed,
        len(found.rankings),
        found.weigh(query_ids),
        n_without_text=len(without_text),
    )
    discounts = pool.discounts
    every = [unit for _, unit in sorted(units.items())]
    pool.units = every if pool.is_read else [u for u in every if _decides(u.worths(discounts))]
    return pool


def _decides(worths: Sequence[float]) -> bool:
    return max(worths) - min(worths) > _NOTHING


def _place(seed: int, key: TextKey) -> float:
    """Return a number in [0, 1) that says when a pair is drawn."""
    digest = hashlib.sha256(json.dumps([seed, *key]).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


class NeededJudging:
    """Judges units; with `--retry-failed` again where an earlier reply was no use.

    Its failures are in no file of the set, so that they are known when they are met again.
    """

    def __init__(
        self,
        dataset: Dataset,
        judges: Judges,
        queries: Mapping[str, str],
        texts: ChunkTexts | Mapping[str, str],
        observer: Observer,
    ) -> None:
        self._judges, self._queries, self._texts = judges, queries, texts
        self._folder = dataset.files
        self.observer = observer
        self.result = JudgingResult(judges.name)
        self._began_s = time.time()

    async def judge(self, units: Sequence[Unit]) -> dict[tuple[str, str], Judgment]:
        """Return the judgments of some units by query and chunk."""
        judgments, failures = await self._judge(units)
        if not (self._judges.job.mode.retry_failed and failures):
            return judgments
        stale = {one.key for one in self._judges.forget(failures, self._began_s)}
        again = [one for one in units if f"{one.key.query_id}/{one.chunk_id}" in stale]
        self.result.n_failed -= len(again)
        if not self.result.n_failed:
            self.result.first_failure = None
        return {**judgments, **(await self._judge(again))[0]} if again else judgments

    async def _judge(
        self, units: Sequence[Unit]
    ) -> tuple[dict[tuple[str, str], Judgment], list[Failure]]:
        chosen = sorted(units, key=lambda unit: (unit.key.query_id, unit.chunk_id))

        def pairs() -> Iterator[Pair]:
            for unit in chosen:
                query_id = unit.key.query_id
                text = self._texts[unit.chunk_id]
                yield Pair(query_id, self._queries[query_id], unit.chunk_id, text)

        with judged_spool(self._folder) as judged:
            await JudgeRun(self._judges, judged, self.result).judge(pairs, len(chosen))
            judgments = {(one.query_id, one.chunk_id): one for one in judged.results()}
            return judgments, [*judged.failures()]


@dataclass(frozen=True, slots=True)
class ReachedDecision(Generic[T]):
    """A decision, and the values that it was made on."""

    decided: T
    values: Floats
    """Of the units; NaN for those that were not asked for, or failed."""


async def until_decided(
    decision: Decision[T], pool: NeededPool, judging: NeededJudging, describe: Callable[[], str]
) -> ReachedDecision[T]:
    """Judge what a decision wants, look by look, until it is made.

    Args:
        decision: Between the runs of the pool.
        pool: Gets the grades.
        judging: Asks the judge.
        describe: Says after each look how things stand.

    Raises:
        EndpointError, BudgetError: Judging was stopped, or every pair failed.
    """
    values = np.array([np.nan if unit.value is None else unit.value for unit in pool.units])
    tried = ~np.isnan(values)
    while True:
        new = [int(i) for i in decision.wanted() if not tried[i]]
        if new:
            judged = await judging.judge([pool.units[i] for i in new])
            for i in new:
                unit = pool.units[i]
                one = judged.get((unit.key.query_id, unit.chunk_id))
                if one is not None and one.grade is not None:
                    pool.grade(unit, one)
                    values[i] = pool.value(unit.grade or 0)
                tried[i] = True
        _refuse_if_all_failed(judging.result)
        decided = decision.look(values)
        judging.observer(Event("note", message=describe()))
        if decided is not None:
            return ReachedDecision(decided, values)


@dataclass(frozen=True, slots=True)
class NeededRuns:
    """Runs whose pairs are judged as needed."""

    names: tuple[str, ...]
    pool: NeededPool
    judging: NeededJudging
    failed: Sequence[Set[str]]
    """By run: queries on which its retriever failed, or that ask something else since."""
    judge: str
    warnings: tuple[str, ...] = ()
    """What is to be told of the runs."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Queries on which one of the runs failed, sorted."""
        return tuple(sorted(set().union(*self.failed)))

    @property
    def is_baseline(self) -> bool:
        """Whether grades that say nothing about quality are among those used."""
        return any(unit.is_by_rule for unit in self.pool.units)

    @property
    def graded_by(self) -> tuple[GradedBy, ...]:
        """Who gave the grades that are used, those of before included."""
        return count_grades(unit.origin for unit in self.pool.units if unit.origin is not None)


@asynccontextmanager
async def needed_runs(
    dataset: Dataset, names: Sequence[str], job: Job, declared: Declared
) -> AsyncIterator[NeededRuns]:
    """Lend runs with the pairs that decide between them, and the judge.

    Args:
        dataset: Has chunks, queries and runs.
        names: Of the runs.
        job: Judge, split and budget.
        declared: By what is decided.

    Raises:
        UsageError: Fewer than two runs, another measure, labels that name documents, or runs of
            different chunks, whose measures are of other texts.
        DataError: There is no such run, it is empty, or it was made on other chunks.
    """
    asked = parse_measure(declared.measure)
    wanted = _with_threshold(dataset, asked, job)
    _check(dataset, names, asked)
    ranked = run_tops(dataset, names, wanted.cutoff, job.settings.judge.split)
    _refuse_unknown(dataset, names, ranked)
    retrieved = {c for of_run in ranked.rankings for of in of_run.values() for c in of}
    async with open_judges(job, dataset, "judge") as judges:
        refuse_shared_queries(judges.examples, ranked.asked)
        with dataset.chunk_texts(retrieved) as texts:
            pool = _pool(ranked, texts, declared, wanted)
            pool.authors_threshold = dataset.authors_threshold(_threshold(job))
            kept = KeptGrades(judges.provenances(), again=job.mode.again)
            given = (one for one in dataset.each_judgment() if one.query_id in ranked.asked)
            own = list(filter(kept.is_own, given))
            uneven = _uneven_labels(names, pool, own)
            if uneven:
                own = _by_judge_alone(dataset, own, kept)
            pool.take(own)
            threshold = pool.authors_threshold
            if ranked.left_out:
                failed = failed_queries(ranked, wanted, own, texts, threshold)
                pool.common = failed.common(pool.query_ids)
            judging = NeededJudging(dataset, judges, ranked.asked, texts, job.observer)
            warnings = (*ranked.warnings, *uneven, *_warnings(dataset, names, pool))
            runs = NeededRuns(tuple(names), pool, judging, ranked.failed, judges.name, warnings)
            yield runs
            if not job.mode.dry_run:
                judges.note_in(dataset)


def _refuse_unknown(dataset: Dataset, names: Sequence[str], ranked: RunTops) -> None:
    """Refuse a run of which nothing can be judged, as all of its ids are other names.

    Raises:
        DataError: The set knows no hit of one.
    """
    for name, of_run in zip(names, ranked.rankings, strict=True):
        if text := unknown_run_text(dataset, of_run, {}):
            raise DataError(f"run {name}: {text}")


def _uneven_labels(
    names: Sequence[str], pool: NeededPool, judgments: Iterable[Judgment]
) -> list[str]:
    """Return that people graded clearly more of what one run ranks; [] where they did not.

    A judge who is stricter than they are would grade the other alone.
    """
    shares = pool.shares(one for one in judgments if one.source == "human")
    if max(shares) - min(shares) <= UNLIKE:
        return []
    told = [f"{share:.0%} of what {name} ranks" for name, share in zip(names, shares, strict=True)]
    return [
        f"people graded {', '.join(told[:-1])} and {told[-1]}: so that no difference is one of who "
        "graded, the judge alone decides, and grades people's pairs too"
    ]


def _by_judge_alone(dataset: Dataset, own: Iterable[Judgment], kept: KeptGrades) -> list[Judgment]:
    """Return the judge's own grades, those of pairs that people graded included."""
    checks = filter(kept.is_by_judge, dataset.label_checks())
    return [*(one for one in own if one.source != "human"), *checks]


def _warnings(dataset: Dataset, names: Sequence[str], pool: NeededPool) -> Iterator[str]:
    """Yield what is to be told of a pool, and of what its runs were held against before."""
    if pool.n_without_text:
        pairs = plural(pool.n_without_text, "retrieved pair")
        yield f"{pairs} without a text in the set cannot be judged, and count as not relevant"
    for each in earlier_decisions(dataset, names):
        if (each.measure, each.seed) != (str(pool.measure), pool.seed):
            yield (
                f"these runs were decided before, by {each.measure} (seed {each.seed}): "
                f"{each.winner}; who decides several times and takes what pleases has more false "
                "winners than are told here"
            )


def warnings_of(runs: NeededRuns, left_out: Sequence[str]) -> tuple[str, ...]:
    """Return what must be known to read the figures of a decision."""
    found = list(runs.warnings)
    if left_out:
        left = plural(len(left_out), "query", "queries")
        found.append(f"{left} left out, on which a retriever or the judge failed")
    if runs.judging.result.n_failed:
        failed = plural(runs.judging.result.n_failed, "judgment")
        found.append(f"{failed} failed; `--retry-failed` asks again")
    return tuple(found)


def keep_sample(
    dataset: Dataset, runs: NeededRuns, found: Mapping[str, object], probabilities: Floats
) -> None:
    """Keep what was decided, with each grade and its probability, apart from the judgments."""
    pool = runs.pool
    graded = [
        {
            "query_id": unit.key.query_id,
            "chunk_id": unit.chunk_id,
            "grade": unit.grade,
            "probability": float(p),
        }
        for unit, p in zip(pool.units, probabilities, strict=True)
        if unit.grade is not None
    ]
    key = "\n".join([*runs.names, str(pool.measure), str(pool.seed)])
    name = hashlib.sha256(key.encode()).hexdigest()
    write_sample(dataset, name[:16], {**found, "seed": pool.seed, "grades": graded})


def _threshold(job: Job) -> int | Literal["auto"]:
    return job.settings.evaluate.rel_threshold


def _with_threshold(dataset: Dataset, measure: Measure, job: Job) -> Measure:
    """Return a binary measure with the threshold of settings or author, where it names none."""
    threshold = dataset.rel_threshold(_threshold(job))
    if measure.name not in ("P", *FIRST_HITS) or measure.rel is not None or threshold == "auto":
        return measure
    return measure._replace(rel=threshold)


def _check(dataset: Dataset, names: Sequence[str], measure: Measure) -> None:
    if len(set(names)) != len(names) or len(names) < 2:
        raise UsageError("--judge-as-needed compares two runs or more: name each once")
    is_drawn = measure.name in ("DCG", "P") and measure.cutoff and measure.gain == "linear"
    if measure.name not in FIRST_HITS and not is_drawn:
        raise UsageError(
            f"{measure}: --judge-as-needed decides by DCG@k, P@k, RR or Success@k; {_why(measure)}"
        )
    level = document_level(dataset, dataset.judgment_table())
    if differ(chunkings(dataset, level), names):
        reason = f"the runs have different chunks, and {measure} of each is of other texts"
        if not any(query.evidence for query in dataset.accepted_queries()):
            raise UsageError(f"{reason}; no query has evidence, by which they could be compared")
        raise UsageError(
            f"{reason}: compare them by evidence (`ragforge compare --dataset {dataset.path} "
            f"{' '.join(names)}`), which takes no judge"
        )


def _why(measure: Measure) -> str:
    """Return why a sample does not tell a measure, and which one is near."""
    k = measure.cutoff or 10
    if measure.name in ("nDCG", "DCG"):
        return (
            f"{measure.name} needs the grades of the whole pool for its ideal, or another gain; "
            f"the nearest is DCG@{k} (it agrees with nDCG in 32 of 33 decisions)"
        )
    if measure.name in ("R", "AP", "Rprec"):
        return f"how many chunks are relevant in all is known of no sample; the nearest is P@{k}"
    return f"the nearest is DCG@{k}"


def _refuse_if_all_failed(result: JudgingResult) -> None:
    first = result.first_failure
    if first is not None and not result.n_judged:
        raise all_failed(result.judge, f"judging failed on all {result.n_failed} pairs", first)
