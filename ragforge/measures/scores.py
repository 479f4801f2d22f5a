"""Scores of an evaluation: values per query, their means, and which queries to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ragforge.errors import UsageError
from ragforge.measures.formulas import FORMULAS
from ragforge.measures.listed_relevance import LEAST_RELEVANT, is_by_list
from ragforge.measures.measure_names import Measure, parse_measure, parse_measures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragforge.measures.bounds import Interval
    from ragforge.measures.evidence_coverage import RunEvidence
    from ragforge.measures.intervals import ConfidenceInterval
    from ragforge.measures.judged_queries import Judged
    from ragforge.measures.strata import Design

RelThreshold: TypeAlias = int | Literal["auto"]

UNJUDGED_DEPTH: Final = 10
"""Ranks from the top in which `Scores.unjudged` counts holes."""
SCALE_TOP: Final = 3
"""Highest grade of the scale that judges are asked for."""


class Summary(NamedTuple):
    """A measure over all queries."""

    mean: float | None
    """Mean of the `n` values; None where there are none. Counts are averaged too, not summed."""
    n: int
    """Queries with a value."""
    n_failed: int
    """Queries with a failed judgment, or whose retrieval failed."""
    low: float | None
    """Least mean, were nothing failed: over the queries with a value and those failures left out.
    It is at most `mean`; None where no query could have a value."""
    high: float | None
    """Greatest such mean, at least `mean`; equals `low` and `mean` where nothing failed."""


class Scores:
    """Values of one run, frozen; queries are sorted by id, so equal inputs give equal bytes.

    Attributes:
        measures: Canonical names, in the order asked for.
        rel_threshold: Lowest grade that counted as relevant where a measure named none.
        summaries: Measure to its means.
        failed: Judged queries whose retrieval failed: they have no value.
        judgments_failed: Queries of which every judgment failed: they have no value.
        without_judgments: Queries whose judgments are empty: they have no value and are in no
            count.
        missing_from_run: Judged queries that the run lacks: they count 0, or are left out where
            only retrieved ones were asked for.
        n_not_in_qrels: Queries of the run (or failed ones) that the qrels lack: they are ignored.
        warnings: One text each for what makes the values doubtful.
        design: What the queries are a sample of; None where they are all there is.
    """

    measures: tuple[str, ...]
    rel_threshold: int
    summaries: Mapping[str, Summary]
    failed: tuple[str, ...]
    judgments_failed: tuple[str, ...]
    without_judgments: tuple[str, ...]
    missing_from_run: tuple[str, ...]
    n_not_in_qrels: int
    warnings: tuple[str, ...]
    design: Design | None
    _columns: Mapping[str, Sequence[float]]
    _summaries: Mapping[str, Summary]
    _evidence: RunEvidence | None
    _judged: Judged
    _by_list: Judged | None

    def __init__(
        self,
        judged: Judged,
        columns: Mapping[str, Sequence[float]],
        summaries: Mapping[str, Summary],
        rel_threshold: int,
        by_list: Judged | None = None,
        design: Design | None = None,
        evidence: RunEvidence | None = None,
    ) -> None:
        # What the lists hold is more than what has a grade.
        warnings = judged.warnings if by_list is None else by_list.warnings
        self.__dict__.update(
            measures=tuple(columns),
            rel_threshold=rel_threshold,
            summaries=MappingProxyType(summaries),
            failed=tuple(ranking.query_id for ranking in judged.failed),
            judgments_failed=tuple(ranking.query_id for ranking in judged.unjudgeable),
            without_judgments=tuple(judged.without_judgments),
            missing_from_run=tuple(judged.missing_from_run),
            n_not_in_qrels=judged.n_not_in_qrels,
            warnings=(*warnings, *(() if evidence is None else evidence.warnings)),
            design=design,
            _columns=columns,
            _summaries=summaries,
            _evidence=evidence,
            _judged=judged,
            _by_list=by_list,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Scores are frozen: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Scores are frozen: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        """Return how a copy is made: what is read-only cannot be pickled."""
        return Scores, (
            self._judged,
            self._columns,
            self._summaries,
            self.rel_threshold,
            self._by_list,
            self.design,
            self._evidence,
        )

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Queries with a value; of measures of evidence see `query_ids_of`."""
        return tuple(self._judged.table.query_ids)

    @cached_property
    def columns(self) -> Mapping[str, tuple[float, ...]]:
        """Measure to values, aligned with `query_ids_of` it."""
        return MappingProxyType({name: tuple(values) for name, values in self._columns.items()})

    def summary(self, measure: str | Measure) -> Summary:
        """Return mean and bounds of a measure, which may be named by an alias."""
        return self.summaries[self._computed(measure)]

    def mean(self, measure: str | Measure) -> float | None:
        """Return the mean over the queries with a value; None where there are none."""
        return self.summary(measure).mean

    def values(self, measure: str | Measure) -> tuple[float, ...]:
        """Return the values of a measure, aligned with `query_ids_of` it."""
        return tuple(self._columns[self._computed(measure)])

    def query_ids_of(self, measure: str | Measure) -> tuple[str, ...]:
        """Return the queries with a value of a measure, sorted.

        They are `query_ids`, but of measures of evidence: those whose evidence has a place in the
        documents, judged or not.
        """
        evidence = self._evidence_of(self._computed(measure))
        return self.query_ids if evidence is None else tuple(evidence.query_ids)

    def by_query(self, measure: str | Measure) -> dict[str, float]:
        """Return the values of a measure by query id; only of queries that have one."""
        return dict(zip(self.query_ids_of(measure), self.values(measure), strict=True))

    def design_of(self, measure: str | Measure) -> Design | None:
        """Return what the queries with a value of a measure are a sample of."""
        evidence = self._evidence_of(self._computed(measure))
        return self.design if evidence is None else evidence.design

    def n_beyond(self, measure: str | Measure) -> int:
        """Return of how many queries the whole ranking fits into the budget of a measure."""
        name = self._computed(measure)
        evidence = self._evidence_of(name)
        return 0 if evidence is None else evidence.n_beyond(parse_measure(name))

    @property
    def n_failed(self) -> int:
        """Queries with a failed judgment, or whose retrieval failed."""
        return self._judged.n_failed

    def worst(self, n: int, measure: str | Measure | None = None) -> list[tuple[str, float]]:
        """Return the `n` queries of least value with their values, the least first.

        Args:
            n: How many, at most.
            measure: By which; by default the first that was asked for.
        """
        values = self.by_query(self.measures[0] if measure is None else measure)
        return nsmallest(n, values.items(), key=lambda pair: (pair[1], pair[0]))

    def rescore(
        self, measures: Iterable[str | Measure], *, rel_threshold: RelThreshold = "auto"
    ) -> Scores:
        """Compute other measures, cutoffs or thresholds; the run is not read again.

        Args:
            measures: As for `evaluate`.
            rel_threshold: As for `evaluate`; not taken over from these scores.

        Raises:
            UsageError: A measure or the threshold cannot be taken.
        """
        wanted = parse_measures(measures)
        found = score(
            self._judged, wanted, rel_threshold, by_list=self._by_list, evidence=self._evidence
        )
        return found if self.design is None else found.of_sample(self.design)

    def with_evidence(self, evidence: RunEvidence, measures: Iterable[str | Measure]) -> Scores:
        """Compute measures, those of evidence among them.

        Args:
            evidence: What the run retrieved for queries whose evidence has places.
            measures: As for `evaluate`.

        Raises:
            UsageError: A measure cannot be taken.
        """
        wanted = parse_measures(measures)
        found = score(
            self._judged, wanted, self.rel_threshold, by_list=self._by_list, evidence=evidence
        )
        return found if self.design is None else found.of_sample(self.design)

    def of_sample(self, design: Design) -> Scores:
        """Return these scores as those of a sample: means and intervals are of what it stands for.

        Values per query stay as they are.

        Args:
            design: Has every query that could have been drawn and would count, drawn or not.
        """
        summaries = {
            name: _sample_summary(
                summary,
                dict(zip(self.query_ids, self._columns[name], strict=True)),
                self.possible(name) if summary.n_failed else {},
                design,
            )
            if self._evidence_of(name) is None
            else summary
            for name, summary in self.summaries.items()
        }
        return Scores(
            self._judged,
            self._columns,
            summaries,
            self.rel_threshold,
            self._by_list,
            design,
            self._evidence,
        )

    @cached_property
    def per_query(self) -> Mapping[str, Mapping[str, float]]:
        """Query id to measure to value; only measures of which the query has one."""
        rows = self.rows()
        return MappingProxyType({key: MappingProxyType(values) for key, values in rows.items()})

    def rows(self) -> dict[str, dict[str, float]]:
        """Return the values by query and measure, made anew: `per_query` is held."""
        if self._evidence is not None:
            return {query_id: self.row(query_id) for query_id in self.measured_ids}
        names = self.measures
        rows = zip(*self._columns.values(), strict=True)
        return {
            query_id: dict(zip(names, row, strict=True))
            for query_id, row in zip(self.query_ids, rows, strict=True)
        }

    @property
    def measured_ids(self) -> Sequence[str]:
        """Queries with a value of any measure, sorted."""
        if self._evidence is None:
            return self.query_ids
        return sorted({*self.query_ids, *self._evidence.query_ids})

    def row(self, query_id: str) -> dict[str, float]:
        """Return the values of a query by measure; only of measures of which it has one."""
        return {
            name: self._columns[name][places[query_id]]
            for name, places in self._places.items()
            if query_id in places
        }

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        """By measure: the places of the queries in its column."""
        judged = {query_id: place for place, query_id in enumerate(self.query_ids)}
        if self._evidence is None:
            return dict.fromkeys(self.measures, judged)
        quoted = {query_id: place for place, query_id in enumerate(self._evidence.query_ids)}
        return {name: quoted if self._evidence_of(name) else judged for name in self.measures}

    @cached_property
    def first_relevant_rank(self) -> Mapping[str, int | None]:
        """Rank of the first relevant chunk of each query with a value; None where none came."""
        judged, rel = self._relevance
        ranks = judged.columns.listed(judged.columns.first(judged.columns.hits(rel)))
        found = zip(self.query_ids, ranks, strict=True)
        return MappingProxyType({query_id: rank or None for query_id, rank in found})

    @cached_property
    def without_relevant(self) -> tuple[str, ...]:
        """Queries that have no relevant chunk in the qrels: they count 0, as in trec_eval."""
        judged, rel = self._relevance
        counts = judged.columns.listed(judged.columns.n_judged(rel))
        return tuple(q for q, count in zip(self.query_ids, counts, strict=True) if count == 0)

    @cached_property
    def without_hit(self) -> tuple[str, ...]:
        """Queries that have a relevant chunk and retrieved none."""
        hopeless = set(self.without_relevant)
        found = self.first_relevant_rank
        return tuple(q for q in self.query_ids if found[q] is None and q not in hopeless)

    @cached_property
    def perfect(self) -> tuple[str, ...]:
        """Queries whose whole ranking could not be better: nDCG without cutoff is 1.

        Where lists decide what is relevant, it is by the lists as well as by the grades.
        """
        sides = [judged for judged in (self._judged, self._by_list) if judged is not None]
        columns = (judged.columns for judged in sides)
        ndcg = (of.listed(FORMULAS["nDCG"].value(of, Measure("nDCG"), 1)) for of in columns)
        rows = zip(*ndcg, strict=True)
        return tuple(
            query_id
            for query_id, values in zip(self.query_ids, rows, strict=True)
            if all(value == 1.0 for value in values)
        )

    @cached_property
    def unjudged(self) -> Mapping[str, int]:
        """Chunks without a grade (or a negative one) in the top 10 of each query with a value."""
        columns = self._relevance[0].columns
        judged = columns.listed(columns.count(columns.hits(0), UNJUDGED_DEPTH))
        lengths = self._judged.table.n_retrieved
        found = zip(self.query_ids, lengths, judged, strict=True)
        return MappingProxyType(
            {query_id: min(UNJUDGED_DEPTH, length) - known for query_id, length, known in found}
        )

    @property
    def is_by_list(self) -> bool:
        """Whether lists of relevant chunks decide binary measures, and grades the others."""
        return self._by_list is not None

    @property
    def depth(self) -> int:
        """Chunks of the longest ranking of a query with a value: no measure sees further down."""
        return max(self._judged.table.n_retrieved, default=0)

    def array(self, measure: str | Measure) -> NDArray[np.float64]:
        """Return the values of a measure as an array of shape (queries,), see `query_ids_of`."""
        import numpy as np

        return np.array(self._columns[self._computed(measure)], np.float64)

    def interval(self, measure: str | Measure, level: float = 0.95) -> ConfidenceInterval:
        """Return a confidence interval of the mean over queries like these.

        It is the BCa interval of the ideal bootstrap, and allows for values that nobody saw, see
        `unseen_values`: the same values give the same interval, as no resample is drawn.
        Measures without bounds, such as DCG, have no interval where all values are the same.
        Failures widen it not at all; their bounds are in the `summary`.

        Args:
            measure: One that was computed.
            level: Share of intervals made so that hold the true mean.
        """
        from ragforge.measures.unseen_values import interval_by_measure

        name = self._computed(measure)
        design = self.design_of(name)
        if design is not None:
            from ragforge.measures.stratified import sample_interval

            drawn = design.stratified(self.query_ids_of(name))
            return sample_interval(name, self._columns[name], drawn, level)
        return interval_by_measure(name, self._columns[name], level)

    def set_interval(
        self, measure: str | Measure, level: float = 0.95
    ) -> ConfidenceInterval | None:
        """Return an interval of what the mean would be, were all queries of the set asked.

        That of `interval` also allows for the set itself being one choice of queries.

        Args:
            measure: One that was computed.
            level: As for `interval`.

        Returns:
            None where these are not the scores of a sample.

        Source: `ragforge.measures.stratified`.
        """
        name = self._computed(measure)
        design = self.design_of(name)
        if design is None:
            return None
        from ragforge.measures.stratified import set_interval

        drawn = design.stratified(self.query_ids_of(name))
        return set_interval(name, self._columns[name], drawn, level)

    def possible(self, measure: str | Measure) -> dict[str, Interval]:
        """Return the bounds of the value of each query with a failure, those without a value too.

        Args:
            measure: One that was computed.
        """
        name = self._computed(measure)
        evidence = self._evidence_of(name)
        if evidence is not None:
            from ragforge.measures.bounds import Interval

            return dict.fromkeys(evidence.failed, Interval(0.0, 1.0))
        measure = parse_measure(name)
        judged, rel = _basis(measure, self._judged, self.rel_threshold, self._by_list)
        return _possible(judged, measure, rel)

    def to_pandas(self) -> Any:  # noqa: ANN401  # pandas is no dependency
        """Return the values as a pandas data frame: a row for each query, a column a measure.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas as pd

        if self._evidence is not None:
            return pd.DataFrame(self._table, index=pd.Index(list(self.per_query), name="query_id"))
        return pd.DataFrame(dict(self._columns), index=pd.Index(self.query_ids, name="query_id"))

    def to_polars(self) -> Any:  # noqa: ANN401  # polars is no dependency
        """Return the values as a polars data frame with a column query_id and one a measure.

        Raises:
            ImportError: polars is not installed.
        """
        import polars as pl

        if self._evidence is not None:
            return pl.DataFrame({"query_id": list(self.per_query), **self._table})
        return pl.DataFrame({"query_id": self.query_ids, **self._columns})

    def to_dict(self, per_query: bool = False) -> dict[str, object]:
        """Return the scores as plain mappings for JSON; values per query only when asked for."""
        values = {"per_query": self.rows()} if per_query else {}
        return {
            "measures": {name: self.summaries[name]._asdict() for name in self.measures},
            **values,
            "rel_threshold": self.rel_threshold,
            "n_queries": len(self.query_ids),
            "n_not_in_qrels": self.n_not_in_qrels,
            "n_unjudged_in_top_10": sum(self.unjudged.values()),
            "failed": list(self.failed),
            "judgments_failed": list(self.judgments_failed),
            "without_judgments": list(self.without_judgments),
            "missing_from_run": list(self.missing_from_run),
            "without_relevant": list(self.without_relevant),
            "without_hit": list(self.without_hit),
            "perfect": list(self.perfect),
            "warnings": list(self.warnings),
        }

    @property
    def _table(self) -> dict[str, list[float | None]]:
        """Return the values by measure, of all queries with any; None where one has none of it."""
        rows = self.rows().values()
        return {name: [values.get(name) for values in rows] for name in self.measures}

    @property
    def _relevance(self) -> tuple[Judged, int]:
        """Return what says which chunks are relevant, and the lowest grade in it that does."""
        if self._by_list is not None:
            return self._by_list, LEAST_RELEVANT
        return self._judged, self.rel_threshold

    def _evidence_of(self, name: str) -> RunEvidence | None:
        """Return what a measure is computed from, where that is evidence and not judgments."""
        if self._evidence is None or not parse_measure(name).is_of_evidence:
            return None
        return self._evidence

    def _computed(self, measure: str | Measure) -> str:
        name = str(parse_measure(str(measure)))
        if name not in self._columns:
            there = ", ".join(self.measures)
            raise UsageError(f"measure {name!r} was not computed; there are: {there}")
        return name


def score(
    judged: Judged,
    wanted: Mapping[str, Measure],
    rel_threshold: RelThreshold,
    *,
    by_list: Judged | None = None,
    evidence: RunEvidence | None = None,
) -> Scores:
    """Compute measures of a run whose judged chunks are found.

    Args:
        judged: The run.
        wanted: Measures by canonical name.
        rel_threshold: As for `evaluate`.
        by_list: The same run and queries, judged by lists of what is relevant: binary measures are
            computed on it. None where grades decide all.
        evidence: What measures of evidence are computed from; without it they are refused.

    Raises:
        UsageError: A measure or the threshold cannot be taken.
    """
    threshold = threshold_of(judged.highest_grade, rel_threshold)
    _check_scale(wanted, judged.highest_grade)
    values: dict[str, Sequence[float]] = {}
    summaries: dict[str, Summary] = {}
    for name, measure in wanted.items():
        if evidence is not None and measure.is_of_evidence:
            values[name] = evidence.values(measure)
            summaries[name] = _evidence_summary(values[name], evidence)
            continue
        basis, rel = _basis(measure, judged, threshold, by_list)
        columns = basis.columns
        values[name] = columns.listed(FORMULAS[measure.name].value(columns, measure, rel))
        summaries[name] = _summary(values[name], basis, measure, rel)
    return Scores(judged, values, summaries, threshold, by_list, evidence=evidence)


def _basis(
    measure: Measure, judged: Judged, threshold: int, by_list: Judged | None
) -> tuple[Judged, int]:
    """Return what a measure is computed on, and the lowest grade in it that is relevant."""
    if by_list is not None and is_by_list(measure):
        return by_list, LEAST_RELEVANT
    return judged, measure.rel or threshold


def threshold_of(highest_grade: int, rel_threshold: RelThreshold) -> int:
    """Return the lowest grade that counts as relevant.

    Args:
        highest_grade: In the qrels.
        rel_threshold: As for `evaluate`.

    Raises:
        UsageError: It cannot be taken.
    """
    if rel_threshold == "auto":
        return 2 if highest_grade > 1 else 1
    if type(rel_threshold) is not int or rel_threshold < 1:
        allowed = "expected 'auto' or a whole number of at least 1"
        raise UsageError(f"rel_threshold: {allowed}, got {rel_threshold!r}")
    return rel_threshold


def _check_scale(wanted: Mapping[str, Measure], highest: int) -> None:
    for name, measure in wanted.items():
        if measure.name == "ERR" and highest > measure.max_grade:
            found = f"the qrels hold grade {highest}"
            raise UsageError(f"measure {name!r}: {found}; expected max={highest} or more")


def _summary(values: Sequence[float], judged: Judged, measure: Measure, threshold: int) -> Summary:
    mean = _mean(values)
    if judged.n_failed == 0:
        return Summary(mean, len(values), 0, mean, mean)
    low, high = _bounds(values, judged, measure, threshold)
    # Without the queries that have no value the mean may leave what is possible with them.
    means = [m for m in (low, mean, high) if m is not None]
    return Summary(mean, len(values), judged.n_failed, min(means), max(means))


def _evidence_summary(values: Sequence[float], evidence: RunEvidence) -> Summary:
    """Return the summary of a measure of evidence: only failures of retrieval leave it open."""
    by_query = dict(zip(evidence.query_ids, values, strict=True))
    mean, failed = evidence.mean(by_query), evidence.failed
    if not failed:
        return Summary(mean, len(values), 0, mean, mean)
    low = evidence.mean({**by_query, **dict.fromkeys(failed, 0.0)})
    high = evidence.mean({**by_query, **dict.fromkeys(failed, 1.0)})
    means = [item for item in (low, mean, high) if item is not None]
    return Summary(mean, len(values), len(failed), min(means), max(means))


def _sample_summary(
    summary: Summary,
    values: Mapping[str, float],
    possible: Mapping[str, Interval],
    design: Design,
) -> Summary:
    """Return the summary of a sample: each query weighs as much as it stands for."""
    mean = design.mean(values)
    if not possible:
        return Summary(mean, summary.n, summary.n_failed, mean, mean)
    lowest = design.mean({**values, **{key: item.low for key, item in possible.items()}})
    highest = design.mean({**values, **{key: item.high for key, item in possible.items()}})
    means = [item for item in (lowest, mean, highest) if item is not None]
    return Summary(
        mean, summary.n, summary.n_failed, min(means, default=None), max(means, default=None)
    )


def _bounds(
    values: Sequence[float], judged: Judged, measure: Measure, threshold: int
) -> tuple[float | None, float | None]:
    """Return the means of the bounds of every query, those included that have no value."""
    possible = _possible(judged, measure, threshold)
    certain = [
        value
        for query_id, value in zip(judged.table.query_ids, values, strict=True)
        if query_id not in possible
    ]
    lows = [bounds.low for bounds in possible.values()]
    highs = [bounds.high for bounds in possible.values()]
    return _mean([*certain, *lows]), _mean([*certain, *highs])


def _possible(judged: Judged, measure: Measure, threshold: int) -> dict[str, Interval]:
    """Return the bounds of each query with a failure, by query id."""
    from ragforge.measures.bounds import failure_bounds, judgment_bounds

    table, rel = judged.table, measure.rel or threshold
    top = max(SCALE_TOP, judged.highest_grade)
    graded = [*(table.ranking(index) for index in table.failures), *judged.unjudgeable]
    longest = max(
        [*table.n_retrieved, *(query.n_retrieved for query in judged.unjudgeable)], default=0
    )
    found = {item.query_id: judgment_bounds(item, measure, rel, top) for item in graded}
    for query in judged.failed:
        found[query.query_id] = failure_bounds(query, measure, rel, top, longest)
    return found


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None
