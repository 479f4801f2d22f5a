"""Differences that may be of who graded: people what one run found, a judge what the other did.

People's grades count beside those of any judge. Where they are of both runs alike, a judge who is
stricter than people is so towards both. Where they are of one run, it alone escapes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ragforge.deferred import dataclass
from ragforge.evaluating.comparison import Compared, ComparisonReport, Outcome
from ragforge.evaluating.same_judge import judge_key, pair_judges
from ragforge.measures import parse_measure
from ragforge.measures.comparing import all_pairs, compare_pairs
from ragforge.pipeline.comparing.basis import ComparisonBasis, Qrels, RankedRun, measure_run
from ragforge.pipeline.comparing.undecided import UNLIKE, USUAL_DEPTH, rank_weight
from ragforge.records.judgments import JUDGED

if TYPE_CHECKING:
    from ragforge.evaluating.judgments import Settled
    from ragforge.files.set.dataset import Dataset
    from ragforge.records import ItemValues, Judgment, Provenance

_Pairs = Collection[tuple[str, str]]


def without_uneven(
    report: ComparisonReport,
    basis: ComparisonBasis,
    runs: Sequence[RankedRun],
    settled: Settled,
    checks: Callable[[], Iterable[Judgment]],
) -> ComparisonReport:
    """Return a comparison that calls nobody better where that hangs on whose chunks people graded.

    It is held against what the judge alone says, whose grades of people's pairs are in the label
    checks; where they are not, a warning says so.

    Args:
        report: By all grades.
        basis: What the runs were measured on.
        runs: All that were compared.
        settled: The grades that count, of the queries of the basis.
        checks: Returns the label checks, which few comparisons need.
    """
    origins = [item.origin for item in report.graded_by]
    by_people = any(one.source == "human" for one in origins)
    by_model = any(one.kind == "llm" and one.source == JUDGED for one in origins)
    if not (by_people and by_model) or basis.texts is not None or basis.relevant is not None:
        return report
    labels = _UnevenLabels(report, basis, {run.name: run for run in runs}, settled, checks)
    items = tuple(map(labels.judged, report.items))
    withheld = {one.comparison.measure for one in items if one.withheld}
    letters = {name: of for name, of in report.letters.items() if name not in withheld}
    warnings = (*report.warnings, *labels.warnings())
    return replace(report, items=items, letters=letters, warnings=warnings)


def uneven_tops(
    dataset: Dataset, now: Iterable[ItemValues], before: Iterable[ItemValues]
) -> _Shares | None:
    """Return people's share of the grades at the tops of two rankings; None where they are alike.

    Chunks that are gone have no grade.

    Args:
        dataset: Has the grades.
        now: The rankings of one evaluation.
        before: Those of another.
    """
    by_people = {
        (pair.query_id, pair.chunk_id): pair.grading.source == "human"
        for pair in dataset.judgment_table().pairs(lambda of: of.grade is not None)
    }
    shares = _Shares(*(_share_of_tops(by_people, each) for each in (now, before)))
    return shares if shares.are_uneven else None


def _share_of_tops(by_people: Mapping[tuple[str, str], bool], items: Iterable[ItemValues]) -> float:
    found = [
        by_people[item.query_id, chunk_id]
        for item in items
        for chunk_id in item.ranking[:USUAL_DEPTH]
        if (item.query_id, chunk_id) in by_people
    ]
    return sum(found) / len(found) if found else 0.0


@dataclass(frozen=True, slots=True)
class _Shares:
    """What share of their top ranks people graded."""

    a: float
    b: float

    @property
    def are_uneven(self) -> bool:
        """Whether one run has clearly more of them."""
        return abs(self.a - self.b) > UNLIKE


@dataclass(frozen=True)
class _UnevenLabels:
    """Comparisons, and what the judge alone says of them."""

    report: ComparisonReport
    basis: ComparisonBasis
    runs: Mapping[str, RankedRun]
    settled: Settled
    checks: Callable[[], Iterable[Judgment]]

    def judged(self, item: Compared) -> Compared:
        """Return a comparison, without a winner where the judge alone shows another outcome."""
        if not self._is_by_grades(item):
            return item
        shares = self._shares(item, self._labelled)
        if not shares.are_uneven or self._shares(item, self._unchecked).are_uneven:
            return item
        alone = self._alone(item)
        if alone == item.comparison.winner:
            return item
        said = {"A": f"{item.comparison.a} is better", "B": f"{item.comparison.b} is better"}
        return replace(
            item,
            withheld=f"{_by_people(item, shares)}, and by {self._judge.model} alone "
            f"{said.get(alone, 'neither is shown to be better')}; labels on a sample of both tell "
            "(`ragforge calibrate sample`, `compare --calibrated`)",
            has_uneven_labels=True,
        )

    def warnings(self) -> Iterator[str]:
        """Yield what is not known of differences, where the judge did not grade people's pairs."""
        told = dict[tuple[str, str], str]()
        for item in self.report.items:
            couple = item.comparison.a, item.comparison.b
            if couple in told or not self._is_by_grades(item):
                continue
            shares = self._shares(item, self._unchecked)
            if shares.are_uneven:
                told[couple] = (
                    f"{_by_people(item, shares)}, {self._judge.model} the rest: a difference may "
                    "be one of who graded; `ragforge judge --on-labels` lets the judge grade "
                    "people's pairs too, and then it is told"
                )
        yield from told.values()

    def _is_by_grades(self, item: Compared) -> bool:
        """Whether grades decide a comparison."""
        comparison = item.comparison
        is_open = not item.withheld and not comparison.is_identity
        return is_open and comparison.measure in self.basis.by_judgments

    @cached_property
    def _labelled(self) -> _Pairs:
        """Pairs near the top of a run that people graded."""
        measures = map(parse_measure, self.report.measures)
        depth = max(measure.cutoff or USUAL_DEPTH for measure in measures)
        return {
            (query_id, chunk_id)
            for run in self.runs.values()
            for query_id, ranked in run.ranked.items()
            for chunk_id in ranked[:depth]
            if self._is_by_people(query_id, chunk_id)
        }

    def _is_by_people(self, query_id: str, chunk_id: str) -> bool:
        one = self.settled.get(query_id, {}).get(chunk_id)
        return one is not None and one.source == "human" and one.grade is not None

    @cached_property
    def _judge(self) -> Provenance:
        """Who gave most of the grades that are not people's."""
        by = pair_judges(self.settled)
        return max(zip(by.counts, by.judges, strict=True), key=lambda counted: counted[0])[1]

    @cached_property
    def _checks(self) -> Mapping[tuple[str, str], int]:
        """What the judge gave to pairs that people graded."""
        judge = self._judge
        name = judge.kind, judge.model, judge.protocol, judge.prompt_sha256
        return {
            (check.query_id, check.chunk_id): check.grade
            for check in self.checks()
            if check.grade is not None and judge_key(check) == name
        }

    @cached_property
    def _unchecked(self) -> _Pairs:
        """Those of them that the judge did not grade."""
        return self._labelled - self._checks.keys()

    def _shares(self, item: Compared, pairs: _Pairs) -> _Shares:
        a, b = (
            self._share(self.runs[name], item.comparison.measure, pairs)
            for name in (item.comparison.a, item.comparison.b)
        )
        return _Shares(a, b)

    def _share(self, run: RankedRun, measure: str, pairs: _Pairs) -> float:
        parsed = parse_measure(measure)
        depth = parsed.cutoff or USUAL_DEPTH
        weights = [rank_weight(parsed.name, rank) for rank in range(1, depth + 1)]
        found = total = 0.0
        for query_id, ranked in run.ranked.items():
            for weight, chunk_id in zip(weights, ranked, strict=False):
                total += weight
                found += weight * ((query_id, chunk_id) in pairs)
        return found / total if total else 0.0

    def _alone(self, item: Compared) -> Outcome:
        """Return what the judge's grades say of a comparison, at the level it has among all."""
        comparison = item.comparison
        values = {
            name: {comparison.measure: self._by_judge[name].values[comparison.measure]}
            for name in (comparison.a, comparison.b)
        }
        pairs = all_pairs(values, [comparison.measure], design=self.basis.design)
        [found] = compare_pairs(pairs, 1 - comparison.level)
        return found.winner

    @cached_property
    def _by_judge(self) -> Mapping[str, RankedRun]:
        """The runs, measured on the judge's grades where it gave one."""
        qrels: Qrels = {
            query_id: {
                chunk_id: self._checks.get((query_id, chunk_id), grade)
                if self._is_by_people(query_id, chunk_id)
                else grade
                for chunk_id, grade in of_query.items()
            }
            for query_id, of_query in self.basis.qrels.items()
        }
        threshold = next(iter(self.runs.values())).scores.rel_threshold
        settings = self.basis.settings.model_copy(update={"rel_threshold": threshold})
        basis = replace(self.basis, qrels=qrels, settings=settings)
        return {
            name: measure_run(name, run.ranked, run.ranked.keys(), {*run.failed}, basis)
            for name, run in self.runs.items()
        }


def _by_people(item: Compared, shares: _Shares) -> str:
    a, b = item.comparison.a, item.comparison.b
    return f"people graded {shares.a:.0%} of what {a} ranks and {shares.b:.0%} of what {b} does"
