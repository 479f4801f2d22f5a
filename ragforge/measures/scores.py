"""What an evaluation found: values per query, their means, and which queries to look at."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from heapq import nsmallest

from ragforge.errors import UsageError
from ragforge.measures.formulas import GRADED
from ragforge.measures.names import Measure, parse_measure
from ragforge.measures.rankings import JudgedRanking

UNJUDGED_DEPTH = 10
"""Ranks from the top in which `Scores.unjudged` counts holes."""


@dataclass(frozen=True, slots=True)
class Summary:
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


@dataclass(frozen=True)
class Scores:
    """Values of one run; queries are sorted by id, so equal inputs give equal bytes.

    Not slotted, so that the views below are computed when first asked for and then kept.
    """

    measures: tuple[str, ...]
    """Canonical names, in the order asked for."""
    rel_threshold: int
    """Lowest grade that counted as relevant where a measure named none."""
    query_ids: list[str]
    """Queries with a value."""
    columns: Mapping[str, list[float]]
    """Measure to values, aligned with `query_ids`."""
    summaries: Mapping[str, Summary]
    """Measure to its means."""
    rankings: list[JudgedRanking]
    """What the values were computed from, aligned with `query_ids`."""
    failed: list[str]
    """Judged queries whose retrieval failed: they have no value."""
    judgments_failed: list[str]
    """Queries of which every judgment failed: they have no value."""
    without_judgments: list[str]
    """Queries whose judgments are empty: they have no value and are in no count."""
    missing_from_run: list[str]
    """Judged queries that the run lacks: they count 0."""
    n_not_in_qrels: int
    """Queries of the run (or failed ones) that the qrels lack: they are ignored."""
    warnings: list[str]
    """One text each for what makes the values doubtful."""

    def summary(self, measure: str | Measure) -> Summary:
        """Return mean and bounds of a measure, which may be named by an alias."""
        return self.summaries[self._computed(measure)]

    def mean(self, measure: str | Measure) -> float | None:
        """Return the mean over the queries with a value; None where there are none."""
        return self.summary(measure).mean

    def worst(self, n: int, measure: str | Measure) -> list[tuple[str, float]]:
        """Return the `n` queries of least value with their values, the least first."""
        column = self.columns[self._computed(measure)]
        pairs = zip(self.query_ids, column, strict=True)
        return nsmallest(n, pairs, key=lambda pair: (pair[1], pair[0]))

    @cached_property
    def per_query(self) -> dict[str, dict[str, float]]:
        """Query id to measure to value."""
        rows = zip(*(self.columns[name] for name in self.measures), strict=True)
        return {
            query_id: dict(zip(self.measures, row, strict=True))
            for query_id, row in zip(self.query_ids, rows, strict=True)
        }

    @cached_property
    def first_relevant_rank(self) -> dict[str, int | None]:
        """Rank of the first relevant chunk of each query with a value; None where none came."""
        threshold = self.rel_threshold
        return {
            query.query_id: next(
                (r for r, g in zip(query.ranks, query.grades, strict=True) if g >= threshold), None
            )
            for query in self.rankings
        }

    @cached_property
    def without_relevant(self) -> list[str]:
        """Queries that have no relevant chunk in the qrels: they count 0, as in trec_eval."""
        return [q.query_id for q in self.rankings if max(q.judged) < self.rel_threshold]

    @cached_property
    def without_hit(self) -> list[str]:
        """Queries that have a relevant chunk and retrieved none."""
        hopeless = set(self.without_relevant)
        found = self.first_relevant_rank
        return [q for q in self.query_ids if found[q] is None and q not in hopeless]

    @cached_property
    def perfect(self) -> list[str]:
        """Queries whose whole ranking could not be better: nDCG without cutoff is 1."""
        value, full = GRADED["nDCG"].value, Measure("nDCG")
        return [query.query_id for query in self.rankings if value(query, full) == 1.0]

    @cached_property
    def unjudged(self) -> dict[str, int]:
        """Chunks without a grade (or a negative one) in the top 10 of each query with a value."""
        counts = {}
        for query in self.rankings:
            reached = query.grades[: bisect_right(query.ranks, UNJUDGED_DEPTH)]
            holes = min(UNJUDGED_DEPTH, query.n_retrieved) - sum(g >= 0 for g in reached)
            counts[query.query_id] = holes
        return counts

    def to_dict(self, per_query: bool = False) -> dict[str, object]:
        """Return what JSON can hold; values per query only when asked for."""
        values = {"per_query": self.per_query} if per_query else {}
        return {
            "measures": {name: asdict(self.summaries[name]) for name in self.measures},
            **values,
            "rel_threshold": self.rel_threshold,
            "n_queries": len(self.query_ids),
            "n_not_in_qrels": self.n_not_in_qrels,
            "n_unjudged_in_top_10": sum(self.unjudged.values()),
            "failed": self.failed,
            "judgments_failed": self.judgments_failed,
            "without_judgments": self.without_judgments,
            "missing_from_run": self.missing_from_run,
            "without_relevant": self.without_relevant,
            "without_hit": self.without_hit,
            "perfect": self.perfect,
            "warnings": self.warnings,
        }

    def _computed(self, measure: str | Measure) -> str:
        name = str(parse_measure(str(measure)))
        if name not in self.columns:
            there = ", ".join(self.measures)
            raise UsageError(f"measure {name!r} was not computed; there are: {there}")
        return name
