"""Judges beside people, by labels alone: no model, no texts, no dataset."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from ragforge.calibration.label_files import OTHERS, Labels, PairKey, middle_grade
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.measures.agreement import N_GRADES
from ragforge.measures.grader_agreement import Agreement, Grader, agree
from ragforge.measures.locating import RankedChunks
from ragforge.measures.panel_weights import PanelWeights, panel_weights
from ragforge.measures.rank_correlation import kendall_tau
from ragforge.measures.routing import routed
from ragforge.measures.run_evaluation import evaluate

LEAST_RUNS: Final = 3
"""Orders of two runs agree or not, which is no correlation."""


@dataclass(frozen=True, slots=True)
class QueryAgreement:
    """How a judge grades one query beside people."""

    query_id: str
    n_pairs: int
    n_same: float
    """A pair that several people graded counts by the share of those who say the same."""
    bias: float
    """Mean of its grade minus the people's mean."""


@dataclass(frozen=True, slots=True)
class RunOrder:
    """How a judge orders runs beside people."""

    tau: float | None
    """Kendall's tau-b of the means; None where one of the orders has ties only."""
    top_tau: float | None
    """Among the better half of the runs by people."""
    people: Mapping[str, float]
    judge: Mapping[str, float]
    """Mean by run."""


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge beside people."""

    name: str
    agreement: Agreement
    by_query: tuple[QueryAgreement, ...]
    """Largest bias first."""
    n_ungraded: int
    """Pairs that people graded and the judge's file does not hold."""
    n_unlabelled: int
    """Pairs that the judge graded and people did not."""
    order: RunOrder | None = None


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """Judges beside people, and people beside people."""

    judges: tuple[JudgeReport, ...]
    """Highest quadratic kappa first; one without a value last."""
    people: JudgeReport | None
    """The second labeller beside the first, on the pairs that both graded: what a judge could reach
    at most; None where one labeller graded."""
    labellers: tuple[str, ...]
    without_pairs: tuple[str, ...] = ()
    """Judges that graded no pair of people's; they are in no table."""


def report_agreement(
    human: Labels,
    judges: Sequence[Labels],
    *,
    threshold: int = 2,
    runs: Mapping[str, Mapping[str, RankedChunks]] | None = None,
    measure: str = "nDCG@10",
    seed: int = 0,
) -> AgreementReport:
    """Return how each judge agrees with people, on the pairs that both graded.

    Args:
        human: Of one labeller or several: a pair counts in equal parts by each who graded it. The
            order of runs alone goes by the middle grade.
        judges: Each on pairs of its own; at least one.
        threshold: Lowest grade that counts as relevant.
        runs: By name, rankings by query; where there are three or more their order is compared.
        measure: By which runs are ordered.
        seed: Of the resampled queries.

    Raises:
        DataError: No judge and people graded a pair in common.
    """
    people, labelled = human.grades(), human.all_grades()
    without = [judge.name for judge in judges if not labelled.keys() & judge.grades().keys()]
    if len(without) == len(judges):
        why = "do query and chunk ids go by the same names in both files?"
        if any(OTHERS["judge"] in judge.skipped for judge in judges):
            why = (
                "rows of people are no judge's; what the judge of a set said of pairs that people "
                "labelled is in its label_checks.jsonl"
            )
        raise DataError(
            f"{', '.join(without)}: graded none of the {len(labelled):,} pairs that people graded; "
            f"{why}"
        )
    judges = [judge for judge in judges if judge.name not in without]
    reports = [_report(judge, labelled, threshold, seed) for judge in judges]
    if runs and len(runs) >= LEAST_RUNS:
        reports = [
            _with_order(report, judge, people, runs, measure)
            for report, judge in zip(reports, judges, strict=True)
        ]
    reports.sort(key=lambda report: (-_quadratic_kappa(report), report.name))
    return AgreementReport(
        tuple(reports),
        _between_people(human, threshold, seed),
        tuple(sorted(human.by_labeller)),
        tuple(without),
    )


@dataclass(frozen=True, slots=True)
class PanelReport:
    """Judges as a panel, beside people."""

    judges: tuple[str, ...]
    n_pairs: int
    """That people and all judges graded."""
    found: PanelWeights
    """Weights in the order of the judges."""


def report_panel(
    human: Labels, judges: Sequence[Labels], *, threshold: int = 2, seed: int = 0
) -> PanelReport:
    """Return weights of judges as a panel, and what they gain over equal ones.

    Raises:
        UsageError: There are fewer than two judges, or ten queries whose pairs all graded.
    """
    people = human.grades()
    graded = [judge.grades() for judge in judges]
    pairs = sorted(pair for pair in people if all(pair in each for each in graded))
    found = panel_weights(
        [pair.query_id for pair in pairs],
        [people[pair] for pair in pairs],
        [[each[pair] for pair in pairs] for each in graded],
        threshold=threshold,
        seed=seed,
    )
    return PanelReport(tuple(judge.name for judge in judges), len(pairs), found)


def report_routing(
    human: Labels, cheap: Labels, dear: Labels, *, threshold: int = 2, seed: int = 0
) -> Agreement:
    """Return how grades agree where the pairs that the cheap judge doubts go to the dear one.

    Raises:
        DataError: The cheap judge's file tells no doubt, or the three have no pair in common.
    """
    people, first, second = human.grades(), cheap.grades(), dear.grades()
    if not cheap.doubts:
        raise DataError(
            f"{cheap.name}: tells no doubt; routing needs rows with entropy_bits or grade_mean, "
            "which `ragforge judge --logprobs on` and `--votes N` give"
        )
    pairs = sorted(p for p in people if p in first and p in second and p in cheap.doubts)
    if not pairs:
        raise DataError(f"{cheap.name}, {dear.name}: no pair that people and both judges graded")
    return routed(
        [pair.query_id for pair in pairs],
        [people[pair] for pair in pairs],
        [first[pair] for pair in pairs],
        [second[pair] for pair in pairs],
        [cheap.doubts[pair] for pair in pairs],
        threshold=threshold,
        seed=seed,
    )


def _report(
    judge: Labels, people: Mapping[PairKey, Sequence[int]], threshold: int, seed: int
) -> JudgeReport:
    grades = judge.grades()
    both = [pair for pair in people if pair in grades]
    failed = [middle_grade(of) for pair, of in people.items() if pair in judge.failed]
    rows = [(pair, grade, 1 / len(people[pair])) for pair in both for grade in people[pair]]
    agreement = agree(
        [pair.query_id for pair, _, _ in rows],
        [grade for _, grade, _ in rows],
        [Grader(judge.name, [grades[pair] for pair, _, _ in rows])],
        failed=failed,
        weights=[weight for _, _, weight in rows],
        threshold=threshold,
        seed=seed,
    )
    return JudgeReport(
        judge.name,
        agreement,
        _by_query({pair: [grades[pair] - grade for grade in people[pair]] for pair in both}),
        len(people) - len(both) - len(failed),
        len(grades) - len(both),
    )


def _by_query(off: Mapping[PairKey, Sequence[int]]) -> tuple[QueryAgreement, ...]:
    """Return the rows of queries, by how far the judge is off each person's grade of a pair."""
    gathered: dict[str, list[Sequence[int]]] = {}
    for pair, by_person in off.items():
        gathered.setdefault(pair.query_id, []).append(by_person)
    rows = [
        QueryAgreement(
            query_id,
            len(pairs),
            sum(each.count(0) / len(each) for each in pairs),
            sum(sum(each) / len(each) for each in pairs) / len(pairs),
        )
        for query_id, pairs in gathered.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.bias), row.query_id)))


def _with_order(
    report: JudgeReport,
    judge: Labels,
    people: Mapping[PairKey, int],
    runs: Mapping[str, Mapping[str, RankedChunks]],
    measure: str,
) -> JudgeReport:
    """Return the report with the order of the runs, both by the pairs that both graded."""
    grades = judge.grades()
    both = [pair for pair in people if pair in grades]
    by_people = _means({pair: people[pair] for pair in both}, runs, measure)
    by_judge = _means({pair: grades[pair] for pair in both}, runs, measure)
    names = sorted(by_people, key=lambda name: -by_people[name])
    top = names[: max(ceil(len(names) / 2), 2)]
    order = RunOrder(
        kendall_tau([by_people[n] for n in names], [by_judge[n] for n in names]),
        kendall_tau([by_people[n] for n in top], [by_judge[n] for n in top]),
        by_people,
        by_judge,
    )
    return JudgeReport(
        report.name,
        report.agreement,
        report.by_query,
        report.n_ungraded,
        report.n_unlabelled,
        order,
    )


def _means(
    grades: Mapping[PairKey, int], runs: Mapping[str, Mapping[str, RankedChunks]], measure: str
) -> dict[str, float]:
    qrels: dict[str, dict[str, int]] = {}
    for pair, grade in grades.items():
        qrels.setdefault(pair.query_id, {})[pair.chunk_id] = grade
    return {
        name: evaluate(qrels, run, [measure]).mean(measure) or 0.0 for name, run in runs.items()
    }


def _between_people(human: Labels, threshold: int, seed: int) -> JudgeReport | None:
    """Return how the labeller with the second most labels agrees with the one with the most."""
    names = sorted(human.by_labeller, key=lambda name: (-len(human.by_labeller[name]), name))
    if len(names) < 2:
        return None
    first, second = (human.by_labeller[name] for name in names[:2])
    if not any(pair in first for pair in second):
        return None
    other = Labels(names[1], {"": second}, frozenset(), {}, {})
    return _report(other, {pair: [grade] for pair, grade in first.items()}, threshold, seed)


def _quadratic_kappa(report: JudgeReport) -> float:
    value = report.agreement.graders[0].figures["quadratic kappa"].value
    return -2.0 if value is None else value


def scale(threshold: int) -> int:
    """Return the size of the scale that a threshold parts.

    Raises:
        DataError: It parts nothing.
    """
    if not 1 <= threshold < N_GRADES:
        raise DataError(f"threshold: expected 1 to {N_GRADES - 1}, got {threshold}")
    return N_GRADES
