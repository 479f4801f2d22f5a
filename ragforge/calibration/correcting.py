"""Measures of runs by a judge, corrected by people's labels on a sample of their pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final

from ragforge.calibration.expected import expected_values
from ragforge.calibration.label_files import BINARY, PairText, are_binary, middle_grade
from ragforge.calibration.population import UNGRADED, LabelPopulation, highest_value
from ragforge.calibration.sampling import population_of, strata_of
from ragforge.calibration.used_labels import UsedLabels, use_labels
from ragforge.calibration.worded_labels import worded_labels
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import number, plural, signed
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.measures.agreement import N_GRADES
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import (
    CorrectedMean,
    Integers,
    LabelledPairs,
    Method,
    corrected_mean,
)
from ragforge.measures.corrected_ndcg import (
    ModelledNDCG,
    RunDiscounts,
    divisors,
    ideal_dcg,
    ndcg_difference,
    ndcg_level,
    refuse_labels,
    refuse_misfit,
)
from ragforge.measures.distributions import normal_quantile, student_quantile
from ragforge.measures.grade_model import GradedPool, GradeModel, fit_grades
from ragforge.measures.intervals import Ends
from ragforge.measures.measure_names import Measure
from ragforge.measures.sequential import sign_score
from ragforge.measures.unseen_values import allowing_for_unseen
from ragforge.records import LabelSample
from ragforge.records.calibrations import Calibration, CorrectedFigure, CorrectedValue

_LEVEL: Final = 0.95
_SURE: Final = 0.99
"""Of the interval by which two labellers are told to grade apart; there are several figures."""
_CHANCE_KAPPA: Final = 0.05
_FEW: Final = 10
_MOST_SKIPPED: Final = 0.1
"""Share of the drawn pairs that may be skipped and count as if they had not been drawn."""
_FEW_SKIPS: Final = 3


def apply_labels(
    dataset: Dataset, files: CalibrationFiles, *, model_assisted: bool = False
) -> Calibration:
    """Return what people would find, by the labels of a calibration.

    Args:
        dataset: As it is now.
        files: Of the calibration.
        model_assisted: Whether levels of nDCG are given, which rest on a model of the grades.

    Raises:
        DataError: The sample is of other runs, another judge, or other grades than those of now.
    """
    sample = files.sample()
    population = population_of(dataset, sample)
    used = use_labels(sample, worded_labels(dataset, files), dataset.judgments(), dataset)
    _refuse_skips(used)
    numbers = population.digests(sample.seed)
    corrected = _Corrected(population, sample, used, strata_of(population), numbers.parts)
    return Calibration(
        name=files.name,
        design_sha256=sample.design_sha256,
        labels_sha256=used.sha256,
        judge=sample.judge,
        parser=sample.parser,
        scale=sample.scale,
        rel_threshold=sample.rel_threshold,
        runs=sample.runs,
        measures=sample.measures,
        n_pairs=len(population.units),
        n_queries=len(population.query_ids),
        n_ungraded=population.n_ungraded,
        labels=used.counts,
        agreement=used.agreement,
        figures=tuple(corrected.figures(model_assisted=model_assisted)),
        warnings=(*_warnings(population, used, sample), *corrected.labellers_apart()),
    )


def _refuse_skips(used: UsedLabels) -> None:
    """Refuse labels of which many were skipped.

    Raises:
        UsageError: They were, more than a tenth.
    """
    n, n_skipped = used.counts.n_used + used.counts.n_skipped, used.counts.n_skipped
    if n_skipped > max(_FEW_SKIPS, _MOST_SKIPPED * n):
        raise UsageError(
            f"{n_skipped:,} of {n:,} drawn pairs were skipped: what people skip is seldom like "
            "what they grade, and no interval knows how; grade them (`ragforge calibrate label "
            "--export csv --out FILE` writes them, `--from FILE` takes them in), then apply again"
        )


@dataclass(frozen=True)
class _Corrected:
    population: LabelPopulation
    sample: LabelSample
    used: UsedLabels
    strata: Integers
    parts: Integers

    def figures(self, *, model_assisted: bool) -> Iterator[CorrectedFigure]:
        """Yield levels, then differences, of each measure."""
        for name, measure in self.population.question.parsed.items():
            for run, against in self._asked():
                if measure.name != "nDCG":
                    yield self._over(run, against)._linear(name, measure, run, against)
                elif against or model_assisted:
                    yield self._over(run, against)._modelled(name, measure, run, against)

    def _over(self, run: str, against: str) -> _Corrected:
        """Return the labels on the queries that a level of a run is over, or a difference."""
        counted = self.population.counted(run, against)
        if counted.all():
            return self
        kept = np.flatnonzero(counted[self.population.queries])
        return replace(
            self,
            population=self.population.within(counted),
            strata=self.strata[kept],
            parts=self.parts[kept],
        )

    def _asked(self) -> list[tuple[str, str]]:
        """Return runs, and what each is held against; "" for a level."""
        question = self.population.question
        first, *others = question.runs
        levels = [(run, "") for run in question.runs] if question.of != "differences" else []
        apart = [(run, first) for run in others] if question.of != "levels" else []
        return [*levels, *apart]

    def labellers_apart(self) -> Iterator[str]:
        """Yield by how much a figure is another by the labels of one person than by another's.

        Each pair that both graded has the difference of what they say as its value. No interval has
        that in it: it is of the people who graded.
        """
        looks, counted = self.used.first_looks, self.used.grades
        for one, other in combinations(sorted(looks), 2):
            both = sorted(looks[one].keys() & looks[other].keys() & counted.keys())
            apart = {pair: (looks[one][pair], looks[other][pair]) for pair in both}
            found = [text for text in self._figures_apart(apart) if text]
            if found:
                yield (
                    f"{one} and {other} grade apart: by the {len(both)} pairs that both graded, "
                    f"{one} has {'; '.join(found)} than {other}; no interval has that in it, so "
                    "settle what a grade means, or let both label all"
                )

    def _figures_apart(self, apart: Mapping[PairText, tuple[int, int]]) -> Iterator[str]:
        for name, measure in self.population.question.parsed.items():
            if measure.name == "nDCG":
                continue
            for run, against in self._asked():
                over = self._over(run, against)
                mine, theirs = (
                    over._values(measure, {pair: (each[i],) for pair, each in apart.items()})
                    for i in (0, 1)
                )
                pairs = over._labelled(over._weights(name, run, against), measure, mine - theirs)
                pairs = replace(pairs, priors=np.zeros(len(pairs.priors)))
                try:
                    shift = corrected_mean(pairs)
                except UsageError:
                    continue
                low, high = shift.interval(level=_SURE)
                if low > 0 or high < 0:
                    of = f"{run} - {against}" if against else run
                    yield f"{name} of {of} {signed(shift.value)} [{signed(low)}, {signed(high)}]"

    def _linear(self, name: str, measure: Measure, run: str, against: str = "") -> CorrectedFigure:
        weights = self._weights(name, run, against)
        pairs = self._labelled(weights, measure, self._values(measure, self.used.grades))
        n = int((~np.isnan(pairs.values)).sum())
        by_judge = self._judge_only(weights, measure)
        found: dict[Method, CorrectedValue | None] = {}
        refused = ""
        most = highest_value(measure)
        least = -most if against else 0.0
        methods: tuple[Method, ...] = ("grade means", "people only", "no judge", "ppi++")
        for method in methods:
            try:
                found[method] = _value(corrected_mean(pairs, method), least, most)
            except UsageError as error:
                refused = str(error)
                found[method] = None
        return CorrectedFigure(
            measure=name,
            run=run,
            against=against,
            judge_only=by_judge,
            corrected=found["grade means"],
            people_only=found["people only"],
            without_judge=found["no judge"],
            tuned=found["ppi++"],
            n=n,
            n_pairs=len(pairs.weights),
            n_queries=len(self.population.query_ids),
            refused=refused,
        )

    def _weights(self, name: str, run: str, against: str = "") -> Floats:
        levels = self.population.levels
        return levels[name, run] - levels[name, against] if against else levels[name, run]

    def _labelled(self, weights: Floats, measure: Measure, values: Floats) -> LabelledPairs:
        population = self.population
        kept = np.flatnonzero(weights)
        threshold = measure.rel or self.sample.rel_threshold
        return LabelledPairs(
            population.queries[kept],
            weights[kept],
            population.judged[kept],
            values[kept],
            self.strata[kept],
            self.parts[kept],
            max(len(population.query_ids), 1),
            expected_values(measure, threshold),
        )

    def _values(self, measure: Measure, given: Mapping[PairText, Sequence[int]]) -> Floats:
        """Return the mean value of the labels of each pair, NaN where it has none."""
        threshold = measure.rel or self.sample.rel_threshold
        found = np.full(len(self.population.units), np.nan)
        for pair, grades in given.items():
            of = [float(g >= threshold) if measure.name == "P" else float(g) for g in grades]
            if pair in self._places:
                found[self._places[pair]] = sum(of) / len(of)
        return found

    @cached_property
    def _places(self) -> Mapping[PairText, int]:
        """Where each pair stands among the units."""
        units = self.population.units
        return {PairText(unit.query_id, unit.text_sha256): i for i, unit in enumerate(units)}

    def _judge_only(self, weights: Floats, measure: Measure) -> CorrectedValue:
        values = self.population.judge_values(measure, measure.rel or self.sample.rel_threshold)
        by_query: Floats = np.bincount(
            self.population.queries,
            weights=weights * values,
            minlength=len(self.population.query_ids),
        ).astype(np.float64)
        return _over_queries(by_query)

    def _modelled(
        self, name: str, measure: Measure, run: str, against: str = ""
    ) -> CorrectedFigure:
        of_a = self._weights(name, run)
        of_b = self._weights(name, against) if against else of_a
        by_people = self._values(measure, self.used.grades)
        pairs = self._labelled(of_a - of_b if against else of_a, measure, by_people)
        corrected, refused = None, ""
        is_census = len(self._places.keys() & self.used.grades.keys()) == len(self._places)
        try:
            if is_census:
                apart = of_b if against else np.zeros_like(of_a)
                corrected = self._counted_ndcg(measure, of_a, apart)
            else:
                corrected = self._ndcg(measure, of_a, of_b, is_difference=bool(against))
        except UsageError as error:
            refused = str(error)
        by_judge = self._ndcg_by_judge(measure, of_a)
        if against:
            by_judge = by_judge - self._ndcg_by_judge(measure, of_b)
        return CorrectedFigure(
            measure=name,
            run=run,
            against=against,
            judge_only=_over_queries(by_judge),
            people_only=None,
            corrected=corrected,
            without_judge=None,
            n=int((~np.isnan(pairs.values)).sum()),
            n_pairs=len(pairs.weights),
            n_queries=len(self.population.query_ids),
            model_assisted=not is_census,
            refused=refused,
        )

    def _counted_ndcg(self, measure: Measure, of_a: Floats, apart: Floats) -> CorrectedValue:
        """Return nDCG, or a difference, by labels on all pairs: nothing is left to a model."""
        units, n = self.population.units, len(self.population.query_ids)
        values = self._values(measure, self.used.grades)
        dcg = np.bincount(self.population.queries, (of_a - apart) * values, n)
        # The best ranking has each chunk, though two have one text.
        chunks = np.repeat(np.arange(len(units)), [1 + len(unit.same_text) for unit in units])
        gains, queries = values[chunks], self.population.queries[chunks]
        order = np.lexsort((-gains, queries))
        ranks = np.arange(len(order)) - np.searchsorted(queries[order], queries[order])
        discounts = np.where(ranks < (measure.cutoff or 0), 1 / np.log2(ranks + 2), 0.0)
        ideal = np.bincount(queries[order], gains[order] * discounts, n)
        by_query: Floats = np.divide(dcg, ideal, out=np.zeros(n), where=ideal > 0)
        error = float(np.std(by_query, ddof=1)) / n**0.5 if n > 1 else float("inf")
        mean, degrees = float(by_query.mean()), float(max(n - 1, 1))
        counted = CorrectedMean("people only", mean, 0.0, 1.0, error, degrees, by_query)
        return _value(counted, -1.0 if apart.any() else 0.0, 1.0)

    def _ndcg(
        self, measure: Measure, of_a: Floats, of_b: Floats, *, is_difference: bool
    ) -> CorrectedValue:
        """Return nDCG by estimator R: corrected DCG over divisors that a model supplies."""
        model, k = self._graded(of_a, of_b), measure.cutoff or 0
        runs, generator = RunDiscounts(of_a, of_b), np.random.default_rng(self.sample.seed)
        by = divisors(model, runs, k, generator)
        values = self._values(measure, self.used.grades)

        def corrected(weights: Floats) -> CorrectedMean:
            return corrected_mean(self._labelled(weights, measure, values))

        mean_a = corrected(of_a)
        if not is_difference:
            return _modelled_value(ndcg_level(mean_a, by.a), 0.0)
        refuse_misfit(model, runs, k, generator)
        apart = of_a - of_b
        divided = corrected(apart * by.by_query[self.population.queries])
        found = ndcg_difference(mean_a, corrected(of_b), corrected(apart), by, divided)
        return _modelled_value(found, -1.0)

    def _graded(self, of_a: Floats, of_b: Floats) -> GradeModel:
        """Return the model of the grades, fitted to the labels."""
        population = self.population
        heaviest = np.maximum(of_a, of_b)
        grades = np.full(len(population.units), -1, dtype=np.intp)
        for pair, given in self.used.grades.items():
            if pair in self._places:
                grades[self._places[pair]] = middle_grade(given)
        features = np.hstack(
            [
                np.eye(N_GRADES + 1)[population.judged][:, 1:],
                (heaviest > 0)[:, np.newaxis],
                heaviest[:, np.newaxis],
            ]
        )
        pool = GradedPool(population.queries, features, grades, len(population.query_ids), N_GRADES)
        refuse_labels(pool, heaviest > 0)
        return fit_grades(pool)

    def _ndcg_by_judge(self, measure: Measure, weights: Floats) -> Floats:
        population = self.population
        judged = np.where(population.judged == UNGRADED, 0, population.judged)
        n = len(population.query_ids)
        ideal = ideal_dcg(population.queries, judged, n, N_GRADES, measure.cutoff or 0)
        dcg = np.bincount(population.queries, weights=weights * judged, minlength=n)
        found: Floats = np.divide(dcg, ideal, out=np.zeros(n), where=ideal > 0)
        return found


def _value(mean: CorrectedMean, least: float, most: float) -> CorrectedValue:
    """Return what was found, within what the measure can be.

    Queries that are much alike tell little of others: as for measures that nobody corrects, the
    interval over queries like these allows for one that nobody saw. That of a difference holds 0
    where few queries differ, and their signs may be chance.
    """

    def within(value: float) -> float:
        return min(max(value, least), most)

    low, high = map(within, mean.interval())
    wide: tuple[float | None, float | None] = (None, None)
    if len(mean.by_query) > 1:
        usual = Ends(*mean.interval("queries like these"))
        found = allowing_for_unseen(mean.by_query, usual, Ends(least, most), _LEVEL)
        if least < 0 and sign_score(mean.by_query) <= normal_quantile((1 + _LEVEL) / 2):
            found = Ends(min(found.low, 0.0), max(found.high, 0.0))
        wide = within(found.low), within(found.high)
    value = within(mean.value)
    return CorrectedValue(value=value, low=low, high=high, wide_low=wide[0], wide_high=wide[1])


def _modelled_value(of: ModelledNDCG, least: float) -> CorrectedValue:
    """Return nDCG, or a difference of at least -1; levels have no interval over queries like these.

    That interval is never narrower than the one over these queries, whatever the degrees.
    """

    def reach(error: float, degrees: float) -> float:
        return student_quantile((1 + _LEVEL) / 2, degrees) * error

    def within(value: float) -> float:
        return min(max(value, least), 1.0)

    half = reach(of.error, of.degrees)
    wide: tuple[float | None, float | None] = (None, None)
    if of.wide_error is not None:
        wide_half = max(reach(of.wide_error, of.wide_degrees), half)
        wide = within(of.value - wide_half), within(of.value + wide_half)
    return CorrectedValue(
        value=within(of.value),
        low=within(of.value - half),
        high=within(of.value + half),
        wide_low=wide[0],
        wide_high=wide[1],
    )


def _over_queries(by_query: Floats) -> CorrectedValue:
    """Return the mean over queries, with the interval of queries like these."""
    n = len(by_query)
    value = float(by_query.mean()) if n else 0.0
    if n < 2:
        return CorrectedValue(value=value, low=None, high=None, wide_low=None, wide_high=None)
    half = student_quantile((1 + _LEVEL) / 2, n - 1) * float(by_query.std(ddof=1)) / n**0.5
    return CorrectedValue(
        value=value, low=None, high=None, wide_low=value - half, wide_high=value + half
    )


def _warnings(population: LabelPopulation, used: UsedLabels, sample: LabelSample) -> Iterator[str]:
    counts = used.counts
    told = (
        (counts.n_open, "drawn pair", f"of {len(sample.pairs):,} without a label yet"),
        (
            counts.n_beyond,
            "label",
            "left out, behind the first drawn pair that nobody saw: label in the order of the "
            "sample, and they count",
        ),
        (counts.n_not_drawn, "label", "left out, on pairs that were not drawn"),
        (counts.n_former, "label", "left out, of another wording of the question"),
        (
            counts.n_by_hand,
            "grade",
            "of people left out, on pairs that were not drawn: how likely they were chosen is not "
            "known",
        ),
        (counts.n_skipped, "drawn pair", "skipped: they count as if not drawn"),
        (counts.n_vanished, "label", "on chunks that the set no longer has"),
        (
            population.n_ungraded,
            "pair",
            "without a grade of the judge: 0 for it, and by labels of such pairs when corrected",
        ),
    )
    yield from (f"{plural(n, noun)} {text}" for n, noun, text in told if n)
    if population.n_left_out:
        yield f"left out: {plural(population.n_left_out, 'query', 'queries')} on which a run failed"
    elif population.question.of != "differences":
        for run, n in population.n_failed.items():
            if n:
                failed = plural(n, "query", "queries")
                yield f"left out of {run} and its differences: {failed} on which it failed"
    for each in used.agreement:
        if each.kappa is not None and each.kappa <= _CHANCE_KAPPA and each.n >= _FEW:
            yield (
                f"{each.labeller} and {each.other} agree no better than chance (kappa "
                f"{number(each.kappa, 2)} on {each.n} pairs): settle these before you rely on "
                "either"
            )
    yield from _warnings_of_grades(population, used, sample)


def _warnings_of_grades(
    population: LabelPopulation, used: UsedLabels, sample: LabelSample
) -> Iterator[str]:
    given = set(population.judged.tolist()) - {UNGRADED}
    grades = [grade for of in used.grades.values() for grade in of]
    if sample.rel_threshold > 1 and are_binary(grades) and max(given, default=0) > 1:
        yield BINARY
    if len(given) == 1:
        yield f"the judge says {given.pop()} of all pairs: it adds nothing to the labels"
