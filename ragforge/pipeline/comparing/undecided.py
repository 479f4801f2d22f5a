"""What is open about the differences between runs: by failures, by holes, and by who graded.

Failed judgments and retrievals are one doubt, retrieved chunks that nobody judged another; each
is bounded with the other left as it is. No winner is named where several judges graded what a
difference rests on, or where the grades say nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from math import fsum, inf, log2
from typing import Final, NamedTuple, TypeAlias

from ragforge.deferred import dataclass
from ragforge.evaluating.chunkings import why_not_alike
from ragforge.evaluating.comparison import Unjudged
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import (
    count_silent,
    judge_command,
    judges_text,
    missing_grades_text,
    why_unknown,
)
from ragforge.evaluating.same_judge import (
    RankingPair,
    SameJudgeValues,
    measure_on_same_judge,
    mixed_grades,
)
from ragforge.measures import Scores, parse_measure
from ragforge.measures.bounds import (
    Interval,
    OpenChunk,
    OpenQuery,
    difference_bounds,
    failure_bounds,
    judgment_bounds,
)
from ragforge.measures.formulas import FORMULAS
from ragforge.measures.hit_table import FailedJudgments, JudgedRanking
from ragforge.measures.intervals import Ends
from ragforge.measures.listed_relevance import Ground, is_by_list
from ragforge.measures.measure_names import Measure, of_evidence
from ragforge.measures.scores import SCALE_TOP
from ragforge.measures.strata import Design
from ragforge.pipeline.comparing.amounts_of_text import more_text
from ragforge.pipeline.comparing.basis import ComparisonBasis, Qrels, RankedRun
from ragforge.pipeline.comparing.deciding import Key, Undecided
from ragforge.records.judgments import GradeOrigin

USUAL_DEPTH: Final = 10
"""Ranks that `ragforge judge` pools where nothing is said."""
UNLIKE: Final = 0.05
"""Share of the ranks, as they weigh, by which a run may have more chunks without a grade, or by
people."""
_NOISE: Final = 1e-12
_NOTHING: Final[Mapping[str, int | None]] = {}
Origins: TypeAlias = Mapping[tuple[str, str], GradeOrigin]
"""By query and chunk."""
_UNRECORDED = GradeOrigin("")


def undecided(
    basis: ComparisonBasis,
    runs: Sequence[RankedRun],
    couples: Sequence[tuple[str, str]],
    origins: Origins,
    *,
    is_pool: bool,
) -> dict[Key, Undecided]:
    """Return bounds of each couple's difference by each measure, and why none is called better.

    Args:
        basis: What they were measured on.
        runs: The runs.
        couples: Names of those that are compared.
        origins: Who gave the grades, as far as that is recorded.
        is_pool: Whether a judge graded, who may have left out what one of the runs retrieved, or
            people's labels are said to be of a pool; else these may be all there is.
    """
    by_key: dict[Key, Undecided] = {}
    by_judge: dict[Key, str] = {}
    why: dict[Key, str] = {}
    alike = [couple for couple in couples if basis.are_cut_alike(*couple)]
    for part, of_part in _by_texts(basis, alike):
        concerned = [run for run in runs if any(run.name in couple for couple in of_part)]
        for labels in part.labels(runs):
            by_key |= _open_differences(part, labels, concerned, of_part)
            by_judge |= _graded_by_several(part, labels, concerned, of_part)
        why |= _by_silent_grades(part, concerned, of_part, origins)
    by_key |= _open_by_own_values(of_evidence(basis.measures), basis.designs, runs, couples)
    # Of grades of other texts nothing is said but what each run's own failures could change.
    others = [couple for couple in couples if couple not in alike]
    designs = dict.fromkeys(basis.by_judgments, basis.design) if basis.design else {}
    by_key |= _open_by_own_values(basis.by_judgments, designs, runs, others)
    why |= {
        (a, b, name): why_not_alike(basis.texts.chunkings if basis.texts else {}, a, b)
        for a, b in others
        for name in basis.by_judgments
    }
    # What one judge did not grade comes first: its reason names the command that settles it.
    why |= {key: "; ".join(filter(None, (of, why.get(key)))) for key, of in by_judge.items()}
    why |= _by_unknown_hits(basis, couples)
    more = more_text(basis, runs, couples)
    return {
        key: replace(
            item,
            withheld=why.get(key) or (item.withheld if is_pool else ""),
            more_text=more.get(key),
        )
        for key, item in by_key.items()
    }


def _by_unknown_hits(basis: ComparisonBasis, couples: Iterable[tuple[str, str]]) -> dict[Key, str]:
    """Return the reasons to name no winner where a run has other names for all that it found."""
    return {
        (a, b, measure): "; ".join(f"run {name}: {basis.unknown[name]}" for name in unknown)
        for a, b in couples
        if (unknown := [name for name in (a, b) if name in basis.unknown])
        for measure in basis.measures
    }


def _open_differences(
    basis: ComparisonBasis,
    labels: Ground,
    runs: Sequence[RankedRun],
    couples: Sequence[tuple[str, str]],
) -> dict[Key, Undecided]:
    """Return the bounds that failures and holes set, in one pass over the queries."""
    qrels, measures, rel_threshold = labels
    if not measures:
        return {}
    is_of_list = basis.relevant is not None and is_by_list(parse_measure(measures[0]))
    parsed = {name: parse_measure(name) for name in measures}
    top = 1 if basis.is_binary or is_of_list else _top(qrels)
    tallies = {
        (a, b, name): _OpenSums(parsed[name], parsed[name].rel or rel_threshold, top, basis.design)
        for a, b in couples
        for name in measures
    }
    by_name = {run.name: run for run in runs}
    for query_id in sorted(qrels):
        judgments = qrels[query_id]
        if not judgments:
            continue
        placed = {
            run.name: _ranked_query(
                query_id,
                basis.graded_once(run.name, query_id, judgments),
                run,
                basis.leaves_open,
            )
            for run in runs
        }
        holes: _OpenHoles = {}
        for (a, b, name), tally in tallies.items():
            if basis.only_retrieved and not (placed[a].is_expected and placed[b].is_expected):
                continue
            of_a, of_b = by_name[a].values[name], by_name[b].values[name]
            known = query_id in of_a and query_id in of_b
            difference = of_b[query_id] - of_a[query_id] if known else None
            tally.add(query_id, placed[a], placed[b], difference, holes.setdefault((a, b), {}))
    return {key: tally.total() for key, tally in tallies.items()}


def _by_texts(
    basis: ComparisonBasis, couples: Iterable[tuple[str, str]]
) -> Iterator[tuple[ComparisonBasis, Sequence[tuple[str, str]]]]:
    """Yield the couples of runs that are cut alike with the grades of what both have."""
    by_texts: dict[frozenset[str], list[tuple[str, str]]] = {}
    for couple in couples:
        by_texts.setdefault(basis.with_other_texts(couple), []).append(couple)
    for names, of_texts in by_texts.items():
        yield basis.of_all(names), of_texts


def _open_by_own_values(
    measures: Iterable[str],
    designs: Mapping[str, Design],
    runs: Sequence[RankedRun],
    couples: Sequence[tuple[str, str]],
) -> dict[Key, Undecided]:
    """Return the bounds of measures of which each run has its own values, whatever the other's.

    Of evidence nothing but failed retrievals leaves them open.
    """
    by_name = {run.name: run for run in runs}
    found = {}
    for name in measures:
        for a, b in couples:
            of_a, of_b = (_possible(by_name[run].scores, name) for run in (a, b))
            shared = of_a.keys() & of_b.keys()
            known = {
                key: Interval(of_b[key].low - of_a[key].high, of_b[key].high - of_a[key].low)
                for key in shared
            }
            valued = by_name[a].values[name].keys() & by_name[b].values[name].keys()
            is_open = any(item.low != item.high for item in known.values())
            sums = _OpenSums(parse_measure(name), 1, 1, designs.get(name))
            bounds = sums.bounds(known, None) if is_open else None
            n_left_out = len(shared - valued)
            found[a, b, name] = Undecided(n_left_out, bounds, n_open=n_left_out)
    return found


def _possible(scores: Scores, name: str) -> dict[str, Interval]:
    """Return the value of each query as an interval, of failed ones as wide as their bounds."""
    values = scores.by_query(name)
    return {key: Interval(value, value) for key, value in values.items()} | scores.possible(name)


def _top(qrels: Qrels) -> int:
    grades = (grade for judged in qrels.values() for grade in judged.values())
    return max(SCALE_TOP, max((grade for grade in grades if grade), default=0))


class _RankedQuery(NamedTuple):
    """Where the chunks of a query stand in a run."""

    known: JudgedRanking
    """What has a grade."""
    holes: Mapping[str, int]
    """Ranks, ascending, of retrieved chunks that nobody judged."""
    failures: Mapping[str, int | None]
    """Ranks of the chunks whose judgment failed, in one order for all runs; None where they were
    not retrieved."""
    has_failed: bool
    """Whether the retrieval failed."""
    is_expected: bool
    """Whether the run has the query, or should have it."""


def _ranked_query(
    query_id: str,
    judgments: Mapping[str, int | None],
    run: RankedRun,
    leaves_open: Callable[[str], bool],
) -> _RankedQuery:
    ranked = run.ranked.get(query_id, ())
    ranks: list[int] = []
    grades: list[int] = []
    holes: dict[str, int] = {}
    failures: dict[str, int | None] = {
        chunk_id: None for chunk_id in judgments if judgments[chunk_id] is None
    }
    for rank, chunk_id in enumerate(ranked, 1):
        # Grades below 0 mark chunks that were pooled and left unjudged.
        grade = judgments.get(chunk_id, -1)
        if grade is None:
            failures[chunk_id] = rank
        elif grade < 0:
            if leaves_open(chunk_id):
                holes[chunk_id] = rank
        else:
            ranks.append(rank)
            grades.append(grade)
    judged = sorted((g for g in judgments.values() if g is not None and g >= 0), reverse=True)
    has_failed = query_id in run.failed
    known = JudgedRanking(query_id, ranks, grades, tuple(judged), len(ranked))
    expected = has_failed or query_id in run.ranked
    return _RankedQuery(known, holes, failures or _NOTHING, has_failed, expected)


@dataclass(slots=True)
class _OpenSums:
    """Adds up what is open about one measure of two runs."""

    measure: Measure
    rel: int
    top: int
    design: Design | None = None
    n: int = 0
    n_failed: int = 0
    n_only_a: int = 0
    n_only_b: int = 0
    n_both: int = 0
    weight: float = 0.0
    """Of the ranks looked at, by the run that is looked at further; see `rank_weight`."""
    only_a: float = 0.0
    only_b: float = 0.0
    """Weight of the ranks of chunks without a grade that only one run retrieved."""
    paired: dict[str, float] = field(default_factory=dict)
    """The differences, by query."""
    of_failures: dict[str, Interval] = field(default_factory=dict)
    """What differences may be, were nothing failed, of queries where that is not all one value."""
    of_holes: dict[str, Interval] = field(default_factory=dict)
    """The same, were everything judged."""

    def add(
        self,
        query_id: str,
        a: _RankedQuery,
        b: _RankedQuery,
        difference: float | None,
        holes: "_HolesByReach",
    ) -> None:
        """Add a query; the difference is None where a run has no value."""
        self.n += 1
        usual = self.measure.cutoff or USUAL_DEPTH
        looked_at = min(usual, max(self._reach(a.known), self._reach(b.known)))
        self.weight += _weight_of_top(self.measure.name, int(looked_at))
        certain = Interval(difference or 0.0, difference or 0.0)
        if difference is not None:
            self.paired[query_id] = difference
            over_holes = self._over_holes(a, b, certain, holes)
            if over_holes is not certain:
                self.of_holes[query_id] = over_holes
        if a.failures or a.has_failed or b.has_failed:
            self.n_failed += 1
            self.of_failures[query_id] = self._over_failures(a, b, difference)
        elif difference is None:
            self.of_failures[query_id] = certain

    def total(self) -> Undecided:
        """Return the bounds of the mean difference."""
        mean = self._mean(self.paired) if self.paired else None
        n_holes = self.n_only_a + self.n_only_b + self.n_both
        unjudged = None
        if n_holes:
            bounds = self.bounds(self._with_certain(self.of_holes), mean)
            unjudged = Unjudged(self.n_only_a, self.n_only_b, bounds, self.n_both)
        return Undecided(
            n_left_out=self.n - len(self.paired),
            failure_bounds=self.bounds(self._with_certain(self.of_failures), mean)
            if self.n_failed
            else None,
            n_open=len(self.of_failures),
            unjudged=unjudged,
            withheld="" if unjudged is None else self._judged_unlike(unjudged.bounds, mean),
        )

    def _with_certain(self, open_: Mapping[str, Interval]) -> dict[str, Interval]:
        """Return the bounds of all queries, in their order: sums depend on it."""
        found = {}
        for query_id in sorted(self.paired.keys() | open_.keys()):
            certain = self.paired.get(query_id) or 0.0
            found[query_id] = open_.get(query_id) or Interval(certain, certain)
        return found

    def _judged_unlike(self, bounds: Ends, mean: float | None) -> str:
        """Return why the lead may be that of the run whose chunks were judged; "" where it is not.

        A chunk without a grade counts as not relevant: the run with more of them loses for it.
        """
        if mean is None or not bounds.low <= 0 <= bounds.high:
            return ""
        of_a, of_b = (self.only_a, self.n_only_a), (self.only_b, self.n_only_b)
        is_b_behind = mean < 0 or (mean == 0 and self.only_b > self.only_a)
        (ahead, n_ahead), (behind, n_behind) = (of_a, of_b) if is_b_behind else (of_b, of_a)
        if behind - ahead <= UNLIKE * self.weight:
            return ""
        lower = ", which stand lower" if n_ahead >= n_behind else ""
        return (
            f"{n_behind:,} chunks that only the run behind retrieved have no grade, and "
            f"{n_ahead:,} of the one ahead{lower}; judge both alike first (`ragforge judge`)"
        )

    def _mean(self, values: Mapping[str, float]) -> float:
        """Return the mean of at least one value by query, over what the queries stand for."""
        if self.design is None:
            return sum(values.values()) / len(values)
        found = self.design.mean(values)
        assert found is not None
        return found

    def bounds(self, of: Mapping[str, Interval], difference: float | None) -> Ends:
        """Return the mean bounds; the difference is within, whatever was left out of it."""
        low = self._mean({query_id: item.low for query_id, item in of.items()})
        high = self._mean({query_id: item.high for query_id, item in of.items()})
        if difference is None:
            return Ends(low, high)
        return Ends(min(low, difference), max(high, difference))

    def _over_holes(
        self, a: _RankedQuery, b: _RankedQuery, certain: Interval, holes: "_HolesByReach"
    ) -> Interval:
        if not a.holes and not b.holes:
            return certain
        reach = self._reach(a.known), self._reach(b.known)
        found = holes.get(reach)
        if found is None:
            found = holes[reach] = _open(a.holes, b.holes, *reach)
        if not found.chunks:
            return certain
        self.n_only_a += len(found.only_a)
        self.n_only_b += len(found.only_b)
        self.n_both += len(found.chunks) - len(found.only_a) - len(found.only_b)
        self.only_a += sum(rank_weight(self.measure.name, rank) for rank in found.only_a)
        self.only_b += sum(rank_weight(self.measure.name, rank) for rank in found.only_b)
        return self._over(OpenQuery(a.known, b.known, found.chunks), certain)

    def _reach(self, ranking: JudgedRanking) -> float:
        """Return the last rank that can make a difference; RR and Success end at the first hit."""
        reach = self.measure.cutoff or inf
        if self.measure.name not in {"RR", "Success"}:
            return reach
        hits = zip(ranking.ranks, ranking.grades, strict=True)
        return min(reach, next((rank for rank, grade in hits if grade >= self.rel), inf))

    def _over_failures(
        self, a: _RankedQuery, b: _RankedQuery, difference: float | None
    ) -> Interval:
        if a.has_failed or b.has_failed:
            of_a, of_b = self._alone(a), self._alone(b)
            return Interval(of_b.low - of_a.high, of_b.high - of_a.low)
        chunks = [OpenChunk(rank, b.failures[item]) for item, rank in a.failures.items()]
        query = OpenQuery(a.known, b.known, chunks)
        if difference is None:
            return difference_bounds(query, self.measure, self.rel, self.top)
        return self._over(query, Interval(difference, difference))

    def _over(self, query: OpenQuery, certain: Interval) -> Interval:
        found = difference_bounds(query, self.measure, self.rel, self.top)
        # Sums in another order may miss the value itself by a rounding.
        return Interval(min(found.low, certain.low), max(found.high, certain.high))

    def _alone(self, placed: _RankedQuery) -> Interval:
        ranks = sorted(rank for rank in placed.failures.values() if rank is not None)
        failed = FailedJudgments(ranks, len(placed.failures) - len(ranks))
        ranking = placed.known._replace(failed=failed)
        if placed.has_failed:
            return failure_bounds(ranking, self.measure, self.rel, self.top, 0)
        return judgment_bounds(ranking, self.measure, self.rel, self.top)


class _Holes(NamedTuple):
    """What of a query nobody judged, as far as some measure looks."""

    chunks: Sequence[OpenChunk]
    only_a: Sequence[int]
    only_b: Sequence[int]
    """Ranks of those that only one run retrieved."""


_HolesByReach: TypeAlias = dict[tuple[float, float], _Holes]
"""Of a query as two runs answered it, by the last ranks in each that can make a difference."""
_OpenHoles: TypeAlias = dict[tuple[str, str], _HolesByReach]


def _open(
    of_a: Mapping[str, int], of_b: Mapping[str, int], reach_a: float, reach_b: float
) -> _Holes:
    """Return the holes that either run has within its reach."""
    chunks = []
    only_a, only_b = [], []
    for chunk_id, rank in of_a.items():
        if rank > reach_a:
            break
        other = of_b.get(chunk_id)
        if other is not None and other > reach_b:
            other = None
        if other is None:
            only_a.append(rank)
        chunks.append(OpenChunk(rank, other))
    for chunk_id, rank in of_b.items():
        if rank > reach_b:
            break
        other = of_a.get(chunk_id)
        if other is None or other > reach_a:
            only_b.append(rank)
            chunks.append(OpenChunk(None, rank))
    return _Holes(chunks, only_a, only_b)


def rank_weight(measure: str, rank: int) -> float:
    """Return what a rank counts: by its discount in DCG and nDCG, else as much as any other."""
    return 1 / log2(rank + 1) if measure in {"nDCG", "DCG"} else 1.0


@cache
def _weight_of_top(measure: str, n_ranks: int) -> float:
    return fsum(rank_weight(measure, rank) for rank in range(1, n_ranks + 1))


def _by_silent_grades(
    basis: ComparisonBasis,
    runs: Sequence[RankedRun],
    couples: Sequence[tuple[str, str]],
    origins: Origins,
) -> dict[Key, str]:
    """Return the reasons to name no winner where a difference rests on grades that say nothing."""
    if not any(item.says_nothing for item in set(origins.values())):
        return {}
    by_name = {run.name: run for run in runs}
    by_pair = {}
    for a, b in couples:
        for name in basis.by_judgments:
            couple = by_name[a], by_name[b]
            silent = count_silent(_rested_on(*couple, parse_measure(name), basis.qrels, origins))
            why = why_unknown(silent, _better_run(*couple, name))
            if why:
                by_pair[a, b, name] = why
    return by_pair


def _rested_on(
    a: RankedRun, b: RankedRun, measure: Measure, qrels: Qrels, origins: Origins
) -> Iterator[GradeOrigin]:
    """Yield the origin of each grade that the difference of two runs rests on."""
    by_all_relevant = FORMULAS[measure.name].response != "rises"
    for query_id, judged in qrels.items():
        of_a = a.ranked.get(query_id, ())[: measure.cutoff]
        of_b = b.ranked.get(query_id, ())[: measure.cutoff]
        if list(of_a) == list(of_b):
            continue
        seen = {*of_a, *of_b}
        for chunk_id, grade in judged.items():
            rests = chunk_id in seen or (by_all_relevant and (grade or 0) > 0)
            if rests and grade is not None:
                yield origins.get((query_id, chunk_id), _UNRECORDED)


def _better_run(a: RankedRun, b: RankedRun, measure: str) -> str:
    return better_mean({a.name: a.values[measure], b.name: b.values[measure]})


def better_mean(values: Mapping[str, Mapping[str, float]], *, lower_is_better: bool = False) -> str:
    """Return the one of two with the better mean over the queries of both; "" where neither has.

    Args:
        values: By name and query id, of two.
        lower_is_better: Whether that is so.
    """
    (a, of_a), (b, of_b) = values.items()
    difference = fsum(of_b[query_id] - of_a[query_id] for query_id in of_a.keys() & of_b.keys())
    if abs(difference) < 1e-12:
        return ""
    return b if (difference > 0) != lower_is_better else a


def _graded_by_several(
    basis: ComparisonBasis,
    labels: Ground,
    runs: Sequence[RankedRun],
    couples: Sequence[tuple[str, str]],
) -> dict[Key, str]:
    """Return the reasons to name no winner where several judges gave the grades."""
    reasons: dict[Key, str] = {}
    if basis.pair_judges.mixed:
        of_name = {run.name: run for run in runs}
        for a, b in couples:
            reasons |= _of_couple(basis, labels, (of_name[a], of_name[b]))
    return reasons


def _of_couple(
    basis: ComparisonBasis, labels: Ground, runs: tuple[RankedRun, RankedRun]
) -> dict[Key, str]:
    qrels, measures, rel_threshold = labels
    by = basis.pair_judges
    a, b = runs
    couples = [
        RankingPair(query_id, a.ranked.get(query_id, ()), b.ranked.get(query_id, ()))
        for query_id in by.mixed
        if query_id not in a.failed | b.failed
    ]
    readings = measure_on_same_judge(
        couples, qrels, by, measures, rel_threshold, dict.fromkeys(measures, 0)
    )
    lacking = {
        query_id: {name: one.lacking for name, one in of.items() if one.lacking}
        for query_id, of in readings.items()
    }
    mixed = mixed_grades(lacking, len(qrels), by)
    keys = {name: (a.name, b.name, name) for name in measures}
    if mixed is not None:
        needed = {(q, c) for q, of in lacking.items() for chunks in of.values() for c in chunks}
        n_queries = plural(sum(map(bool, lacking.values())), "query", "queries")
        command = "ragforge judge --pairs FILE --out FILE --model MODEL"
        if basis.where.is_dir():
            depth = _depth(needed, runs)
            command = judge_command(mixed.ask, str(basis.where), [a.name, b.name], depth=depth)
        reason = (
            f"in {n_queries} no one judge graded what both hold ({judges_text(mixed.judges)}), so "
            f"that a difference may be one of the judges; {missing_grades_text(mixed, command)}"
        )
        return {keys[name]: reason for name in mixed.measures}
    alone = (
        "in queries that several judges graded, the best possible values are of more than one "
        "judge; compare these two runs alone"
    )
    moved = {
        name
        for query_id, of in readings.items()
        for name, one in of.items()
        if _moved(one, name, query_id, runs)
    }
    return {keys[name]: alone for name in moved}


def _moved(
    one: SameJudgeValues, name: str, query_id: str, runs: tuple[RankedRun, RankedRun]
) -> bool:
    """Whether the values that are compared are others than those of one judge."""
    sides = zip((one.before, one.now), runs, strict=True)
    return any(
        reading.value is not None
        and abs(run.values[name].get(query_id, reading.value) - reading.value) > _NOISE
        for reading, run in sides
    )


def _depth(needed: set[tuple[str, str]], runs: Sequence[RankedRun]) -> int:
    """Return the deepest rank that is to be judged; 0 where that is not below the usual pool."""
    ranks = (
        rank
        for run in runs
        for query_id in {query_id for query_id, _ in needed}
        for rank, chunk_id in enumerate(run.ranked.get(query_id, ()), 1)
        if (query_id, chunk_id) in needed
    )
    deepest = max(ranks, default=0)
    return deepest if deepest > USUAL_DEPTH else 0
