"""Compare two runs by as few judged pairs as the decision takes.

What is judged for it is a sample: it stays out of the judgments of the set, so that no other
command takes it for a pool. Replies are in the call store all the same: `judge` completes the pool
without asking for them again.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import log2
from typing import Final, NamedTuple

import numpy as np

from ragforge.errors import DataError, UsageError
from ragforge.evaluating.cuttings import cuttings, differ
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.runs import rank_order
from ragforge.files.atomic import write_whole
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import ChunkTexts
from ragforge.files.set.stale_runs import usable_runs
from ragforge.measures.checked_samples import Floats
from ragforge.measures.measure_names import Measure, parse_measure
from ragforge.measures.sequential import (
    Decided,
    DecidingPairs,
    SequentialDecision,
    drawing_probabilities,
    shares_for,
)
from ragforge.observe import Event
from ragforge.pipeline.job import Job, all_failed
from ragforge.pipeline.judge.judge_run import JudgeRun, JudgingResult, judged_spool
from ragforge.pipeline.judge.judges import Judges, open_judges
from ragforge.pipeline.judge.pooling import KeptGrades
from ragforge.records import Judgment
from ragforge.stages.judge.llm import refuse_shared_queries
from ragforge.stages.judge.pairs import Pair

DEFAULT_MEASURE: Final = "DCG@10"
_TYPICAL: Final = (0.27, 0.55)
"""Of the pool: runs that are far apart, and close ones, on human-judged sets."""


class TextKey(NamedTuple):
    """A text retrieved for a query; the same words under two ids are one."""

    query_id: str
    text_sha256: str


@dataclass(frozen=True, slots=True)
class NeededComparison:
    """What was decided, and what it rests on."""

    a: str
    b: str
    measure: str
    winner: str
    """Name of a run, TIE, or UNKNOWN where the grades are no judge's."""
    decided: Decided
    pairs_used: int
    """Judged for this decision."""
    pairs_known: int
    """Of those that decide, graded before."""
    pool: int
    """Pairs that judging both runs as a whole would take."""
    looks: int
    n_queries: int
    left_out: tuple[str, ...]
    """Queries on which a retriever failed."""
    judge: str
    is_baseline: bool
    judging: JudgingResult

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known to read the figures."""
        found = []
        if self.left_out:
            left = plural(len(self.left_out), "query", "queries")
            found.append(f"{left} left out, on which a retriever failed")
        if self.judging.n_failed:
            failed = plural(self.judging.n_failed, "judgment")
            found.append(f"{failed} failed; what failed counts as not drawn")
        return tuple(found)

    def as_json(self) -> dict[str, object]:
        """Return it as JSON has it."""
        look = self.decided.look
        return {
            "a": self.a,
            "b": self.b,
            "measure": self.measure,
            "winner": self.winner,
            "difference": look.difference,
            "interval": [self.decided.low, self.decided.high],
            "pairs_used": self.pairs_used,
            "pairs_known": self.pairs_known,
            "pool": self.pool,
            "look": self.looks,
            "share": look.share,
            "information": look.information,
            "queries": self.n_queries,
            "left_out": list(self.left_out),
            "failed": self.judging.n_failed,
            "judge": self.judge,
        }


async def decide_as_needed(
    dataset: Dataset, names: Sequence[str], job: Job, measure: str = DEFAULT_MEASURE, seed: int = 0
) -> NeededComparison | dict[str, object]:
    """Judge pairs of two runs until the decision is made.

    Args:
        dataset: Has chunks, queries and runs.
        names: Of two runs, A and B.
        job: Judge, split and budget. A dry run judges nothing and returns what it would take.
        measure: DCG@k or P@k; fixed before the first call.
        seed: Of the sample: the same one asks for the same pairs.

    Raises:
        UsageError: Not two runs, another measure, fewer than ten queries, or runs of different
            chunks, whose DCG is of other texts.
        DataError: There is no such run, or it was made on other chunks.
        EndpointError, BudgetError: Judging was stopped; replies are kept, and the same command goes
            on; or every pair failed.
    """
    wanted = _with_threshold(parse_measure(measure), job)
    _check(dataset, names, wanted)
    rankings = _rankings(dataset, names, wanted.cutoff or 10)
    queries = _queries(dataset, job.settings.judge.split)
    left_out = tuple(sorted(q for q in queries if not all(q in ranked for ranked in rankings)))
    query_ids = sorted(queries.keys() - set(left_out))
    retrieved = {c for ranked in rankings for q in query_ids for c in ranked[q]}
    async with open_judges(job, dataset, "judge") as judges:
        refuse_shared_queries(judges.examples, queries)
        with dataset.chunk_texts(retrieved) as texts:
            pool = _pool(rankings, query_ids, texts, wanted, seed)
            kept = KeptGrades(judges.provenances(), again=job.mode.again)
            pool.take(dataset.each_judgment(), kept)
            if job.mode.dry_run:
                return pool.forecast()
            with _Judging(dataset, judges, queries, texts) as judging:
                decision = SequentialDecision(
                    pool.pairs(), shares_for(len(query_ids)), pool.is_known()
                )
                decided = await _until_decided(decision, pool, judging, job)
            judges.note_in(dataset)
    is_baseline = any(unit.is_by_rule for unit in pool.units)
    found = NeededComparison(
        a=names[0],
        b=names[1],
        measure=str(wanted),
        winner="UNKNOWN" if is_baseline else _winner(decided, names),
        decided=decided,
        pairs_used=decided.look.n_judged,
        pairs_known=int(pool.is_known().sum()),
        pool=pool.size,
        looks=len(decision.looks),
        n_queries=len(query_ids),
        left_out=left_out,
        judge=judges.name,
        is_baseline=is_baseline,
        judging=judging.result,
    )
    _write(dataset, found, pool, decision, seed)
    return found


def _with_threshold(measure: Measure, job: Job) -> Measure:
    """Return P@k with the threshold of the settings, where it names none and they do."""
    threshold = job.settings.evaluate.rel_threshold
    if measure.name != "P" or measure.rel is not None or threshold == "auto":
        return measure
    return measure._replace(rel=threshold)


def _check(dataset: Dataset, names: Sequence[str], measure: Measure) -> None:
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError("--judge-as-needed compares two runs: name both")
    if measure.name not in ("DCG", "P") or measure.cutoff is None or measure.gain != "linear":
        raise UsageError(
            f"{measure}: --judge-as-needed decides by DCG@k or P@k; nDCG needs the grades of the "
            "whole pool (and agrees with DCG in 32 of 33 decisions)"
        )
    usable_runs(dataset, names).require_any()
    if differ(cuttings(dataset), names):
        raise UsageError(
            "the runs have different chunks, whose DCG is of other texts: compare them by evidence "
            f"(`ragforge compare --dataset {dataset.path} {' '.join(names)}`), which takes no judge"
        )


def _queries(dataset: Dataset, split: str) -> dict[str, str]:
    asked = {
        each.query_id: each.asked
        for each in dataset.require_queries()
        if each.answerable and split in ("all", each.split)
    }
    if not asked:
        raise DataError(f"{dataset.path}: no query that chunks can answer in the split {split!r}")
    return asked


def _rankings(dataset: Dataset, names: Sequence[str], k: int) -> list[dict[str, tuple[str, ...]]]:
    return [
        {each.query_id: rank_order(each.ranking)[:k] for each in dataset.each_ranking(name)}
        for name in names
    ]


@dataclass
class _Unit:
    """A text of a query that one of the runs has in its top k."""

    key: TextKey
    chunk_id: str
    """The first id under which it was retrieved."""
    ranks: list[list[int]] = field(default_factory=lambda: [[], []])
    """By run, from 0."""
    value: float | None = None
    """What a grade given before is worth."""
    grade: int | None = None
    is_by_rule: bool = False
    """Whether the grade is a baseline's, or made up by `ragforge mock`."""

    def weight(self, discounts: Floats) -> float:
        """Return what a value of 1 adds to B minus A."""
        a, b = (sum(float(discounts[rank]) for rank in ranks) for ranks in self.ranks)
        return b - a


@dataclass
class _Pool:
    """The units of two runs; those that weigh nothing are counted and never asked for."""

    measure: Measure
    query_ids: list[str]
    units: list[_Unit]
    by_chunk: Mapping[tuple[str, str], _Unit]
    size: int
    seed: int

    @property
    def discounts(self) -> Floats:
        """What each rank is worth, from 0."""
        k = self.measure.cutoff or 0
        if self.measure.name == "P":
            return np.full(k, 1 / k)
        return np.array([1 / log2(rank + 2) for rank in range(k)])

    def value(self, grade: int) -> float:
        """Return what a grade is worth in the measure."""
        if self.measure.name == "P":
            return float(grade >= (self.measure.rel or 2))
        return float(grade)

    def take(self, judgments: Iterator[Judgment], kept: KeptGrades) -> None:
        """Take over the judge's own grades, and those of people, that the set has."""
        for old in judgments:
            unit = self.by_chunk.get((old.query_id, old.chunk_id))
            if unit is not None and old.grade is not None and kept.is_own(old):
                unit.grade, unit.value = old.grade, self.value(old.grade)
                unit.is_by_rule = _is_by_rule(old)

    def is_known(self) -> np.ndarray:
        """Return which units have a grade already."""
        return np.array([unit.value is not None for unit in self.units], dtype=bool)

    def pairs(self) -> DecidingPairs:
        """Return the units as the decision takes them."""
        place = {query_id: i for i, query_id in enumerate(self.query_ids)}
        best = np.array([min(min(ranks, default=10**6) for ranks in u.ranks) for u in self.units])
        both = np.array([all(unit.ranks) for unit in self.units], dtype=float)
        return DecidingPairs(
            np.array([place[unit.key.query_id] for unit in self.units], dtype=np.intp),
            np.array([unit.weight(self.discounts) for unit in self.units]),
            np.stack([np.ones(len(best)), 1 / np.log2(best + 2), both], axis=1),
            np.array([_place(self.seed, unit.key) for unit in self.units]),
            len(self.query_ids),
        )

    def forecast(self) -> dict[str, object]:
        """Return how many pairs the decision may take."""
        pairs, known = self.pairs(), self.is_known()
        n_new = int((~known).sum())
        first = drawing_probabilities(pairs.weights, known, shares_for(len(self.query_ids))[0])
        return {
            "measure": str(self.measure),
            "pairs": {
                "pool": self.size,
                "that_decide": len(self.units),
                "graded": int(known.sum()),
                "first_look": round(float(first[~known].sum())),
                "expected_if_far": min(round(_TYPICAL[0] * self.size), n_new),
                "expected_if_close": min(round(_TYPICAL[1] * self.size), n_new),
                "at_most": n_new,
            },
        }


def _pool(
    rankings: Sequence[Mapping[str, Sequence[str]]],
    query_ids: list[str],
    texts: ChunkTexts,
    measure: Measure,
    seed: int,
) -> _Pool:
    units: dict[TextKey, _Unit] = {}
    by_chunk: dict[tuple[str, str], _Unit] = {}
    for at, ranked in enumerate(rankings):
        for query_id in query_ids:
            for rank, chunk_id in enumerate(ranked[query_id]):
                if chunk_id not in texts:
                    continue
                digest = hashlib.sha256(texts[chunk_id].encode()).hexdigest()
                key = TextKey(query_id, digest)
                unit = units.setdefault(key, _Unit(key, chunk_id))
                unit.ranks[at].append(rank)
                by_chunk[query_id, chunk_id] = unit
    found = _Pool(measure, query_ids, [], by_chunk, len(units), seed)
    discounts = found.discounts
    found.units = [unit for _, unit in sorted(units.items()) if abs(unit.weight(discounts)) > 1e-12]
    return found


def _is_by_rule(judgment: Judgment) -> bool:
    by = judgment.provenance
    return by is not None and by.kind in ("baseline", "mock")


def _place(seed: int, key: TextKey) -> float:
    """Return a number in [0, 1) that says when a pair is drawn."""
    digest = hashlib.sha256(json.dumps([seed, *key]).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


class _Judging(AbstractContextManager["_Judging"]):
    """Judges units, and keeps their grades."""

    def __init__(
        self, dataset: Dataset, judges: Judges, queries: Mapping[str, str], texts: ChunkTexts
    ) -> None:
        self._judges, self._queries, self._texts = judges, queries, texts
        self._folder = dataset.files
        self.result = JudgingResult(judges.name)

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""

    async def judge(self, units: Sequence[_Unit]) -> dict[tuple[str, str], Judgment]:
        """Return the judgments of some units by query and chunk."""
        chosen = sorted(units, key=lambda unit: (unit.key.query_id, unit.chunk_id))

        def pairs() -> Iterator[Pair]:
            for unit in chosen:
                query_id = unit.key.query_id
                text = self._texts[unit.chunk_id]
                yield Pair(query_id, self._queries[query_id], unit.chunk_id, text)

        with judged_spool(self._folder) as judged:
            await JudgeRun(self._judges, judged, self.result).judge(pairs, len(chosen))
            return {(one.query_id, one.chunk_id): one for one in judged.results()}


async def _until_decided(
    decision: SequentialDecision, pool: _Pool, judging: _Judging, job: Job
) -> Decided:
    values = np.array([np.nan if unit.value is None else unit.value for unit in pool.units])
    tried = ~np.isnan(values)
    while True:
        wanted = decision.wanted()
        new = [int(i) for i in wanted if not tried[i]]
        if new:
            judged = await judging.judge([pool.units[i] for i in new])
            for i in new:
                unit = pool.units[i]
                one = judged.get((unit.key.query_id, unit.chunk_id))
                if one is not None and one.grade is not None:
                    unit.grade, unit.is_by_rule = one.grade, _is_by_rule(one)
                    values[i] = pool.value(one.grade)
                tried[i] = True
        _refuse_if_all_failed(judging.result)
        decided = decision.look(values)
        look = decision.looks[-1]
        message = (
            f"look {len(decision.looks)}: {plural(look.n_judged, 'pair')} judged of "
            f"{pool.size:,}, B - A {look.difference:+.4f}, z {look.z:.2f}"
        )
        job.observer(Event("note", message=message))
        if decided is not None:
            return decided


def _refuse_if_all_failed(result: JudgingResult) -> None:
    first = result.first_failure
    if first is not None and not result.n_judged:
        raise all_failed(result.judge, f"judging failed on all {result.n_failed} pairs", first)


def _winner(decided: Decided, names: Sequence[str]) -> str:
    return {"a": names[0], "b": names[1], "tie": "TIE"}[decided.outcome]


def _write(
    dataset: Dataset,
    found: NeededComparison,
    pool: _Pool,
    decision: SequentialDecision,
    seed: int,
) -> None:
    """Keep what was decided, with each grade and its probability."""
    graded = [
        {
            "query_id": unit.key.query_id,
            "chunk_id": unit.chunk_id,
            "grade": unit.grade,
            "probability": float(p),
        }
        for unit, p in zip(pool.units, decision.probabilities, strict=True)
        if unit.grade is not None
    ]
    name = hashlib.sha256(f"{found.a}\n{found.b}\n{found.measure}\n{seed}".encode()).hexdigest()
    folder = dataset.path / ".ragforge" / "decisions"
    folder.mkdir(parents=True, exist_ok=True)
    body = {**found.as_json(), "seed": seed, "grades": graded}
    write_whole(folder / f"{name[:16]}.json", [json.dumps(body, indent=1), "\n"])
