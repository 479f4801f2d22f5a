"""Evaluate a whole run against qrels."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from math import fsum
from typing import Final, Literal

from ragforge.errors import DataError, UsageError
from ragforge.measures.bounds import Interval, failure_bounds, judgment_bounds
from ragforge.measures.formulas import BINARY, GRADED, Binary, binary
from ragforge.measures.names import Measure, parse_measure
from ragforge.measures.rankings import JudgedRanking, Judgments, RankedChunks, judged_ranking
from ragforge.measures.scores import Scores, Summary

DEFAULT_MEASURES: Final = (
    "nDCG@10",
    "P@5",
    "P@10",
    "R@5",
    "R@10",
    "RR",
    "AP",
    "Success@1",
    "Success@5",
    "Judged@10",
)

SCALE_TOP: Final = 3
"""Highest grade of the scale that judges are asked for."""
_EXAMPLES: Final = 3


@dataclass(slots=True)
class _Rankings:
    """The queries of the qrels by what can be said about them; each list is sorted by id."""

    valued: list[JudgedRanking] = field(default_factory=list)
    unjudgeable: list[JudgedRanking] = field(default_factory=list)
    """Retrieved, but every judgment failed."""
    failed: list[JudgedRanking] = field(default_factory=list)
    """With empty rankings, since retrieval failed."""
    without_judgments: list[str] = field(default_factory=list)
    missing_from_run: list[str] = field(default_factory=list)
    n_not_in_qrels: int = 0
    n_failed: int = 0
    """Queries with a failed judgment or failed retrieval."""
    warnings: list[str] = field(default_factory=list)

    def all(self) -> list[JudgedRanking]:
        return [*self.valued, *self.unjudgeable, *self.failed]


@dataclass(frozen=True, slots=True)
class _Scale:
    threshold: int
    """Lowest relevant grade where a measure names none."""
    highest: int
    """Highest grade that occurs; 0 where none does."""

    @property
    def top(self) -> int:
        """Highest grade that a failed judgment could have given."""
        return max(SCALE_TOP, self.highest)


def evaluate(
    qrels: Mapping[str, Judgments],
    run: Mapping[str, RankedChunks],
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    rel_threshold: int | Literal["auto"] = "auto",
    failed: Collection[str] = (),
) -> Scores:
    """Compute measures per query, and their means with bounds on what failures could change.

    Every query of the qrels counts, with 0 where the run lacks it. Queries that only the run has
    are ignored. A failure is never a value: see `Summary` and `ragforge.measures.bounds`.

    Args:
        qrels: Query id to chunk id to grade. None is a judgment that failed: the chunk counts as
            unjudged in the value, and as every possible grade in the bounds.
        run: Query id to scores by chunk id, or to chunk ids in their order. Of equal scores the
            larger chunk id comes first, as in trec_eval.
        measures: Names as `parse_measure` reads them. One that is named twice is computed once.
        rel_threshold: Lowest grade that binary measures without `rel=` count as relevant; "auto"
            is 2 where the qrels hold a grade above 1, else 1. nDCG, DCG and ERR do not use it.
        failed: Queries whose retrieval failed. They get no value, whatever the run holds.

    Raises:
        UsageError: A measure or the threshold cannot be taken.
        DataError: There are no qrels or no run, a score is not a number, a grade is no whole
            number, or a ranking lists a chunk twice.
    """
    wanted = _wanted(measures)
    _check_not_empty(qrels, run, failed)
    rankings = _judge(qrels, run, frozenset(failed))
    scale = _scale(rankings, rel_threshold)
    _check_scale(wanted, scale)
    return _scores(rankings, wanted, scale)


def _wanted(measures: Iterable[str | Measure]) -> dict[str, Measure]:
    texts = [measures] if isinstance(measures, str) else measures
    parsed = [parse_measure(str(text)) for text in texts]
    if not parsed:
        raise UsageError("measures: expected at least one, got none")
    return {str(measure): measure for measure in parsed}


def _check_not_empty(
    qrels: Mapping[str, Judgments], run: Mapping[str, RankedChunks], failed: Collection[str]
) -> None:
    if not qrels:
        raise DataError("qrels: expected at least one query, got none")
    if not run and not failed:
        raise DataError("run: expected at least one query, got none")


def _judge(
    qrels: Mapping[str, Judgments], run: Mapping[str, RankedChunks], failed: frozenset[str]
) -> _Rankings:
    rankings = _Rankings()
    for query_id in sorted(qrels):
        judgments = qrels[query_id]
        if not judgments:
            rankings.without_judgments.append(query_id)
        elif query_id in failed:
            rankings.failed.append(judged_ranking(query_id, judgments, {}))
        else:
            ranking = judged_ranking(query_id, judgments, run.get(query_id, ()))
            (rankings.valued if ranking.judged else rankings.unjudgeable).append(ranking)
            if query_id not in run:
                rankings.missing_from_run.append(query_id)
    rankings.n_not_in_qrels = len({*run, *failed} - qrels.keys())
    with_failures = sum(ranking.has_failures for ranking in rankings.valued)
    rankings.n_failed = with_failures + len(rankings.unjudgeable) + len(rankings.failed)
    rankings.warnings = _warnings(qrels, run, rankings)
    return rankings


def _scale(rankings: _Rankings, rel_threshold: int | Literal["auto"]) -> _Scale:
    highest = max((r.judged[0] for r in rankings.all() if r.judged), default=0)
    if rel_threshold == "auto":
        return _Scale(2 if highest > 1 else 1, highest)
    if type(rel_threshold) is not int or rel_threshold < 1:
        allowed = "expected 'auto' or a whole number of at least 1"
        raise UsageError(f"rel_threshold: {allowed}, got {rel_threshold!r}")
    return _Scale(rel_threshold, highest)


def _check_scale(wanted: Mapping[str, Measure], scale: _Scale) -> None:
    for name, measure in wanted.items():
        if measure.name == "ERR" and scale.highest > measure.max_grade:
            found = f"the qrels hold grade {scale.highest}"
            raise UsageError(f"measure {name!r}: {found}; expected max={scale.highest} or more")


def _scores(rankings: _Rankings, wanted: Mapping[str, Measure], scale: _Scale) -> Scores:
    columns = _columns(rankings.valued, wanted, scale)
    summaries = {
        name: _summary(columns[name], rankings, measure, scale) for name, measure in wanted.items()
    }
    return Scores(
        measures=tuple(wanted),
        rel_threshold=scale.threshold,
        query_ids=[ranking.query_id for ranking in rankings.valued],
        columns=columns,
        summaries=summaries,
        rankings=rankings.valued,
        failed=[ranking.query_id for ranking in rankings.failed],
        judgments_failed=[ranking.query_id for ranking in rankings.unjudgeable],
        without_judgments=rankings.without_judgments,
        missing_from_run=rankings.missing_from_run,
        n_not_in_qrels=rankings.n_not_in_qrels,
        warnings=rankings.warnings,
    )


def _columns(
    valued: list[JudgedRanking], wanted: Mapping[str, Measure], scale: _Scale
) -> dict[str, list[float]]:
    binaries: dict[int, list[Binary]] = {}
    columns = {}
    for name, measure in wanted.items():
        if measure.name in GRADED:
            value = GRADED[measure.name].value
            columns[name] = [value(ranking, measure) for ranking in valued]
            continue
        threshold = measure.rel or scale.threshold
        if threshold not in binaries:
            binaries[threshold] = [binary(ranking, threshold) for ranking in valued]
        compute = BINARY[measure.name].value
        columns[name] = [compute(query, measure) for query in binaries[threshold]]
    return columns


def _summary(column: list[float], rankings: _Rankings, measure: Measure, scale: _Scale) -> Summary:
    mean = _mean(column)
    if rankings.n_failed == 0:
        return Summary(mean, len(column), 0, mean, mean)
    intervals = _intervals(column, rankings, measure, scale)
    low = _mean([interval.low for interval in intervals])
    high = _mean([interval.high for interval in intervals])
    # Without the queries that have no value the mean may leave what is possible with them.
    means = [m for m in (low, mean, high) if m is not None]
    return Summary(mean, len(column), rankings.n_failed, min(means), max(means))


def _intervals(
    column: list[float], rankings: _Rankings, measure: Measure, scale: _Scale
) -> list[Interval]:
    """Bound the value of every query, those included that have none."""
    threshold, top = scale.threshold, scale.top
    longest = max(ranking.n_retrieved for ranking in rankings.all())
    return [
        *(
            judgment_bounds(ranking, measure, threshold, top)
            if ranking.has_failures
            else Interval(value, value)
            for ranking, value in zip(rankings.valued, column, strict=True)
        ),
        *(judgment_bounds(r, measure, threshold, top) for r in rankings.unjudgeable),
        *(failure_bounds(r, measure, threshold, top, longest) for r in rankings.failed),
    ]


def _mean(values: list[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _warnings(
    qrels: Mapping[str, Judgments], run: Mapping[str, RankedChunks], rankings: _Rankings
) -> list[str]:
    if not rankings.all():
        return ["no query of the qrels has a judgment"]
    expected = [*rankings.valued, *rankings.unjudgeable]
    judged = [ranking.query_id for ranking in expected]
    if run and judged and run.keys().isdisjoint(judged):
        return [
            f"no query of the run is judged: the qrels hold {_examples(judged)}, the run holds "
            f"{_examples(run)}; every value is 0"
        ]
    retrieving = [ranking for ranking in expected if ranking.n_retrieved]
    if not retrieving or any(r.ranks or r.failed_ranks for r in retrieving):
        return []
    first = retrieving[0].query_id
    return [
        f"no retrieved chunk is judged: for query {first!r} the qrels hold "
        f"{_examples(qrels[first])}, the run holds {_examples(run[first])}"
    ]


def _examples(ids: Collection[str]) -> str:
    shown = ", ".join(repr(example) for example in nsmallest(_EXAMPLES, ids))
    return f"{shown}, …" if len(ids) > _EXAMPLES else shown
