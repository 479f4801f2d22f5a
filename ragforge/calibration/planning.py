"""How many labels for which width, before anybody labels.

Within a stratum the label of a pair is expected to miss the mean of its grade as labels of other
sets missed it, or as the labels do that are there. What a sample of n then leaves open follows
from the strata; what other queries would change follows from the judge's grades, and from how much
labels of one query, and of what one run alone found for it, have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Final

from ragforge.calibration.expected import expected_values, expected_variances
from ragforge.calibration.label_files import PairText
from ragforge.calibration.population import LabelPopulation, Question, load_population
from ragforge.calibration.sampling import population_of, strata_of
from ragforge.calibration.used_labels import use_labels
from ragforge.calibration.worded_labels import worded_labels
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.measures.agreement import N_GRADES
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import LEAST_LABELS, MOST_DRAWN, Integers
from ragforge.measures.distributions import student_quantile
from ragforge.measures.label_sampling import LEAST_OF_STRATUM, label_allocation, label_sizes
from ragforge.measures.measure_names import Measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES: Final = (50, 100, 200, 400, 800)
_PRIOR_LABELS: Final = 4.0
_POWER: Final = 0.84
"""Of the normal distribution: a difference is shown in 4 of 5 samples."""
_FITTED: Final = 5
ALIKE_IN_QUERY: Final = 0.25
"""Share of the variance of labels around what their grades let expect that all pairs of a query
have in common. The two are by least squares on TREC DL 2019 and RAG 2025; see
`benchmarks/planned_widths.py`."""
ALIKE_IN_RUN: Final = 0.06
"""The same of the pairs that one run alone found for a query."""


@dataclass(frozen=True, slots=True)
class PlannedWidth:
    """What a sample would leave open about one figure."""

    measure: str
    run: str
    against: str
    n: int
    """Labels in all."""
    width: float
    """Of the 95 % interval over these queries; 0 where all pairs are labelled."""
    wide_width: float | None
    """Over queries like these; None with one query, which tells nothing of others."""


@dataclass(frozen=True, slots=True)
class PlannedDifference:
    """How many labels tell two runs apart in 4 of 5 samples, if they differ as expected."""

    measure: str
    run: str
    against: str
    expected: float
    """What labels are expected to come to: of each grade of the judge, as people meant it on other
    sets, and as far as there are labels, on this one."""
    by_judge: float
    """The difference by the judge's grades as they are."""
    n: int | None
    """Over these queries; None where not even labels on all pairs do."""
    n_wide: int | None
    """Over queries like these; None where it takes more queries, not labels."""


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """How many labels for which width."""

    n_pairs: int
    n_queries: int
    n_least: int
    """Labels that a sample has at least, one or two of each kind of pair."""
    n_labels: int
    """Labels that the spread is known from; 0 where it is that of other sets."""
    widths: tuple[PlannedWidth, ...]
    differences: tuple[PlannedDifference, ...]


def plan_labels(
    dataset: Dataset,
    files: CalibrationFiles | None,
    question: Question | None,
    sizes: Sequence[int] = (),
) -> LabelPlan:
    """Return how wide intervals will be, by the number of labels.

    Args:
        dataset: Has the runs, and the judge's grades.
        files: Of a calibration whose labels tell how they spread; None for none.
        question: What is asked; that of the calibration where None.
        sizes: Numbers of labels; the usual ones where empty. All pairs come last.

    Raises:
        UsageError: Nothing is asked, or no pair decides.
    """
    sample = files.sample() if files is not None and files.exists else None
    if question is not None:
        population = load_population(dataset, question)
    elif sample is not None:
        population = population_of(dataset, sample)
    else:
        raise UsageError("name runs and measures: --run A --run B -m P@10")
    if not len(population.units) or not population.weights().any():
        raise UsageError("no pair decides: the runs rank alike as far as the measures look")
    labels: dict[PairText, tuple[int, ...]] = {}
    if sample is not None and files is not None:
        used = use_labels(sample, worded_labels(dataset, files), dataset.judgments(), dataset)
        labels = dict(used.grades)
    return _Planning(population, strata_of(population), labels).plan(sizes or SIZES)


@dataclass(frozen=True)
class _Planning:
    population: LabelPopulation
    strata: Integers
    labels: dict[PairText, tuple[int, ...]]

    def plan(self, sizes: Sequence[int]) -> LabelPlan:
        population = self.population
        n_pairs = len(population.units)
        least = max(self._least(), LEAST_LABELS)
        usable = sorted({n for n in sizes if least <= n <= MOST_DRAWN * n_pairs})
        figures = list(self._figures())
        drawn = {n: self._drawn(n) for n in (*usable, n_pairs)}
        return LabelPlan(
            n_pairs,
            len(population.query_ids),
            least,
            len(self.labels),
            tuple(
                self._width(figure, n, drawn[n]) for figure in figures for n in (*usable, n_pairs)
            ),
            tuple(self._apart(figure) for figure in figures if figure.against),
        )

    def _least(self) -> int:
        _, counts = np.unique(self.strata[self._sizes() > 0], return_counts=True)
        return int(np.minimum(counts, LEAST_OF_STRATUM).sum())

    def _sizes(self) -> Floats:
        ideal = self.population.question.needs_ideal
        weights = self.population.weights()
        return label_sizes(weights, self.population.judged, N_GRADES, ideal=ideal)

    def _drawn(self, n: int) -> Floats:
        """Return the share of each pair's stratum that a sample of n draws, shape (N,)."""
        drawn = label_allocation(self.strata, self._sizes(), n)
        counts = np.bincount(self.strata)
        shares = np.array([drawn.get(s, 0) / max(size, 1) for s, size in enumerate(counts)])
        found: Floats = shares[self.strata]
        return found

    def _figures(self) -> Iterator[_Figure]:
        population, question = self.population, self.population.question
        first, *others = question.runs
        levels = [(run, "") for run in question.runs] if question.of != "differences" else []
        apart = [(run, first) for run in others] if question.of != "levels" else []
        for name, measure in question.parsed.items():
            if measure.name == "nDCG":
                continue
            means, variances = self._known(measure)
            by_judge = population.judge_values(measure, measure.rel or question.rel_threshold)
            for run, against in (*levels, *apart):
                weights = (
                    population.difference(name, run) if against else (population.levels[name, run])
                )
                counted = population.counted(run, against)
                yield _Figure(name, run, against, weights, by_judge, means, variances, counted)

    def _known(self, measure: Measure) -> tuple[Floats, Floats]:
        """Return mean and variance of values by the judge's grade, by the labels there are."""
        threshold = measure.rel or self.population.question.rel_threshold
        means = expected_values(measure, threshold)
        variances = expected_variances(measure, threshold)
        if not self.labels:
            return means, variances
        values: dict[int, list[float]] = {}
        for unit, judged in zip(self.population.units, self.population.judged, strict=True):
            for grade in self.labels.get(PairText(unit.query_id, unit.text_sha256), ()):
                value = float(grade >= threshold) if measure.name == "P" else float(grade)
                values.setdefault(int(judged), []).append(value)
        for grade, of in values.items():
            n = len(of) + _PRIOR_LABELS
            mean = (sum(of) + _PRIOR_LABELS * means[grade]) / n
            squares = sum((value - mean) ** 2 for value in of)
            variances[grade] = (squares + _PRIOR_LABELS * variances[grade]) / n
            means[grade] = mean
        return means, variances

    def _width(self, figure: _Figure, n: int, drawn: Floats) -> PlannedWidth:
        error, wide = self._errors(figure, drawn)
        quantile = student_quantile(0.975, _degrees(figure, drawn))
        over = student_quantile(0.975, max(figure.n_queries - 1, 1))
        wide_width = 2 * over * wide if isfinite(wide) else None
        return PlannedWidth(
            figure.measure, figure.run, figure.against, n, 2 * quantile * error, wide_width
        )

    def _errors(self, figure: _Figure, drawn: Floats) -> tuple[float, float]:
        """Return the standard errors over these queries, and over queries like these."""
        m = figure.n_queries
        judged = self.population.judged
        degrees = _degrees(figure, drawn)
        # What is fitted to labels lies nearer to them than to others; of all pairs there are none.
        is_census = bool((drawn[figure.weights != 0] == 1).all())
        fitted = 1.0 if is_census else (degrees + _FITTED - 1) / degrees
        squares = fitted * figure.weights**2 * figure.variances[judged]
        rate = np.maximum(drawn, 1e-12)
        own = float((squares * (1 - drawn) / rate).sum()) / m**2
        known = figure.weights * figure.means[judged]
        by_query = self._by_query(figure, known)
        between = float(by_query.var(ddof=1)) / m if m > 1 else float("inf")
        missed = figure.weights * np.sqrt(figure.variances[judged])
        alike = ALIKE_IN_QUERY * float((self._by_query(figure, missed) ** 2).sum())
        alike += ALIKE_IN_RUN * float((self._by_query(figure, np.abs(missed)) ** 2).sum())
        return sqrt(own), sqrt(between + (alike + float((squares / rate).sum())) / m**2)

    def _by_query(self, figure: _Figure, values: Floats) -> Floats:
        """Return the sums of values of pairs over the queries of a figure."""
        n_all = len(self.population.query_ids)
        sums = np.bincount(self.population.queries, weights=values, minlength=n_all)
        found: Floats = sums[figure.counted].astype(np.float64)
        return found

    def _apart(self, figure: _Figure) -> PlannedDifference:
        judged, m = self.population.judged, figure.n_queries
        expected = float((figure.weights * figure.means[judged]).sum()) / m
        found: list[int | None] = []
        for place in (0, 1):
            low, high = max(self._least(), LEAST_LABELS), len(self.population.units)
            if low > high or not self._shows(figure, high, place, expected):
                found.append(None)
                continue
            while low < high:
                half = (low + high) // 2
                if self._shows(figure, half, place, expected):
                    high = half
                else:
                    low = half + 1
            found.append(low)
        by_judge = float((figure.weights * figure.by_judge).sum()) / m
        return PlannedDifference(
            figure.measure, figure.run, figure.against, expected, by_judge, found[0], found[1]
        )

    def _shows(self, figure: _Figure, n: int, place: int, expected: float) -> bool:
        drawn = self._drawn(n)
        error = self._errors(figure, drawn)[place]
        return abs(expected) > (student_quantile(0.975, _degrees(figure, drawn)) + _POWER) * error


@dataclass(frozen=True, slots=True)
class _Figure:
    measure: str
    run: str
    against: str
    weights: Floats
    by_judge: Floats
    """Of each pair; mean and variance below are of people's labels, by the judge's grade."""
    means: Floats
    variances: Floats
    counted: NDArray[np.bool_]
    """Which queries it is over."""

    @property
    def n_queries(self) -> int:
        """How many these are; 1 at the least."""
        return max(int(self.counted.sum()), 1)


def _degrees(figure: _Figure, drawn: Floats) -> float:
    """Return the degrees of freedom that labels on the pairs of a figure leave, 1 at the least."""
    return max(float(drawn[figure.weights != 0].sum()) - _FITTED, 1.0)
