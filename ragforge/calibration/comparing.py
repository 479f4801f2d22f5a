"""Comparisons decided by corrected differences rather than by the judge alone."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from ragforge.calibration.population import is_correctable
from ragforge.errors import UsageError
from ragforge.evaluating.comparison import Compared, ComparisonReport, CorrectedDifference
from ragforge.evaluating.formatting import plural
from ragforge.measures import parse_measure
from ragforge.measures.distributions import student_quantile
from ragforge.records import Calibration, CorrectedFigure, CorrectedValue

_USUAL: Final = 0.975
_USUAL_MEASURE: Final = "DCG@10"
_USUAL_SIZE: Final = "200"


def with_calibration(report: ComparisonReport, found: Calibration) -> ComparisonReport:
    """Return a comparison whose winners are those of corrected differences.

    A winner is shown where the interval over queries like these, wide enough for all comparisons
    made, leaves 0 out. For nDCG that of DCG has to show the same run as the better one.

    Args:
        report: By the judge alone.
        found: As the labels have it.

    Raises:
        UsageError: The comparison is of answers, or of a part of the queries, or leaves out what a
            run lacks.
    """
    if report.of != "runs":
        raise UsageError("--calibrated corrects comparisons of runs")
    if report.part is not None:
        raise UsageError("--calibrated: the labels are of all queries, not of a part of them")
    refuse_left_out(report.n_lacked)
    require_threshold(found, report.rel_threshold, report.measures, by_lists=report.by_lists)
    level = report.alpha / max(len(report.items), 1)
    items = tuple(_corrected(item, found, level) for item in report.items)
    # Letters are of the judge's grades alone.
    warnings = tuple(dict.fromkeys((*report.warnings, *found.warnings)))
    return replace(report, items=items, letters={}, calibration=found, warnings=warnings)


def refuse_left_out(n_lacked: Mapping[str, int]) -> None:
    """Refuse runs measured without the queries that they lack.

    Args:
        n_lacked: Queries left out, by run.

    Raises:
        UsageError: There is one.
    """
    for run, n in n_lacked.items():
        raise UsageError(
            f"calibrated: run {run} lacks {plural(n, 'query', 'queries')}, left out by "
            "--only-retrieved, while the labels are of all queries and count them 0: two different "
            "numbers; go without --only-retrieved, or let the run answer them (`ragforge retrieve`)"
        )


def require_threshold(
    found: Calibration, threshold: int | None, measures: Iterable[str], *, by_lists: bool
) -> None:
    """Refuse a calibration for which other grades are relevant.

    Args:
        found: As the labels have it.
        threshold: In force.
        measures: Those that are corrected.
        by_lists: Whether lists say what is relevant, rather than the threshold.

    Raises:
        UsageError: It is one.
    """
    binary = [name for name in measures if (by := parse_measure(name)).name == "P" and not by.rel]
    if binary and by_lists:
        raise UsageError(f"calibrated: {binary[0]} goes by lists here, and labels are grades")
    if binary and threshold != found.rel_threshold:
        raise UsageError(
            f"calibrated: {binary[0]} counts grades from {threshold} on here, and calibration "
            f"{found.name} those from {found.rel_threshold} on; give both the same --rel-threshold"
        )


def _stretch(level: float, n_queries: int) -> float:
    """Return how much wider an interval of a level is than one of 95 %."""
    degrees = max(n_queries - 1, 1)
    return student_quantile(1 - level / 2, degrees) / student_quantile(_USUAL, degrees)


def _corrected(item: Compared, found: Calibration, level: float) -> Compared:
    comparison = item.comparison
    figure = _difference(found, comparison.measure, comparison.a, comparison.b)
    if figure is None:
        return replace(item, withheld=_why_not_drawn(found, comparison.measure))
    if figure.corrected is None:
        return replace(item, withheld=f"it is not corrected: {figure.refused}")
    decided = figure.corrected
    if decided.wide_low is None or decided.wide_high is None:
        return replace(item, withheld="one query tells nothing of queries like it")
    assert decided.low is not None
    assert decided.high is not None
    value, stretch = decided.value, _stretch(level, figure.n_queries or found.n_queries)
    wide_low = value - stretch * (value - decided.wide_low)
    wide_high = value + stretch * (decided.wide_high - value)
    if figure.model_assisted:
        linear = _by_dcg(found, figure, comparison.a, comparison.b)
        if linear is None:
            return replace(item, withheld="it is decided on DCG, which was not drawn for")
        if not _agrees(linear, value, stretch):
            wide_low, wide_high = min(wide_low, 0.0), max(wide_high, 0.0)
    corrected = CorrectedDifference(
        judge_only=figure.judge_only.value,
        value=value,
        low=decided.low,
        high=decided.high,
        wide_low=wide_low,
        wide_high=wide_high,
        n=figure.n,
        n_pairs=figure.n_pairs,
    )
    decided_on = replace(item, corrected=corrected, withheld="")
    withheld = decided_on.why_open or (item.not_by_question if decided_on.better else "")
    return replace(decided_on, withheld=withheld)


def _why_not_drawn(found: Calibration, measure: str) -> str:
    if not is_correctable(measure):
        return f"labels correct P@k, DCG@k and nDCG@k, and not {measure}"
    return (
        f"calibration {found.name} was not drawn for it: `ragforge calibrate sample` with these "
        "runs and this measure"
    )


def next_labels(report: ComparisonReport) -> tuple[str, ...]:
    """Return the rest of the `ragforge calibrate` by which an unknown first measure gets known.

    Args:
        report: Decided by a calibration.
    """
    assert report.calibration is not None
    found, measure = report.calibration, report.measures[0]
    open_ = [one for one in report.of_measure(measure) if one.outcome == "UNKNOWN"]
    figures = [_difference(found, measure, c.a, c.b) for c in (one.comparison for one in open_)]
    if all(figure is not None and figure.corrected is None for figure in figures):
        return ("label", "--name", found.name, "--page", "labels.html")
    return (*first_sample(report), "--name", f"{found.name}-2")


def first_sample(report: ComparisonReport) -> tuple[str, ...]:
    """Return the rest of the `ragforge calibrate` that draws for the first measure of all runs."""
    measure = report.measures[0]
    drawn_by = [measure] if is_correctable(measure) else [_USUAL_MEASURE]
    if measure.startswith("nDCG"):
        drawn_by.append(f"DCG@{parse_measure(measure).cutoff}")
    runs = [word for name in report.names for word in ("--run", name)]
    by = [word for name in drawn_by for word in ("-m", name)]
    return ("sample", *runs, *by, "-n", _USUAL_SIZE)


def linear_instead(report: ComparisonReport) -> str:
    """Return DCG where nDCG, the first measure, is unknown with all labels, and DCG is corrected.

    "" where more labels may tell.

    Args:
        report: Decided by a calibration.
    """
    assert report.calibration is not None
    found, measure = report.calibration, report.measures[0]
    if not measure.startswith("nDCG") or found.labels.n_open:
        return ""
    linear = f"DCG@{parse_measure(measure).cutoff}"
    open_ = [one.comparison for one in report.of_measure(measure) if one.outcome == "UNKNOWN"]
    figures = [_difference(found, linear, c.a, c.b) for c in open_]
    return linear if all(of is not None and of.corrected is not None for of in figures) else ""


def _difference(found: Calibration, measure: str, a: str, b: str) -> CorrectedFigure | None:
    """Return b minus a; None where the calibration is not of it."""
    figure = found.figure(measure, b, a)
    if figure is not None:
        return figure
    other = found.figure(measure, a, b)
    return None if other is None else _turned(other)


def _turned(figure: CorrectedFigure) -> CorrectedFigure:
    return figure.model_copy(
        update={
            "run": figure.against,
            "against": figure.run,
            "judge_only": _negative(figure.judge_only),
            "corrected": None if figure.corrected is None else _negative(figure.corrected),
        }
    )


def _negative(of: CorrectedValue) -> CorrectedValue:
    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return CorrectedValue(
        value=-of.value,
        low=minus(of.high),
        high=minus(of.low),
        wide_low=minus(of.wide_high),
        wide_high=minus(of.wide_low),
    )


def _by_dcg(found: Calibration, figure: CorrectedFigure, a: str, b: str) -> CorrectedValue | None:
    linear = f"DCG@{parse_measure(figure.measure).cutoff}"
    dcg = _difference(found, linear, a, b)
    return None if dcg is None or dcg.corrected is None else dcg.corrected


def _agrees(dcg: CorrectedValue, value: float, stretch: float) -> bool:
    """Whether DCG shows the better run over queries like these, and it is the one by nDCG."""
    if dcg.wide_low is None or dcg.wide_high is None:
        return False
    end = dcg.wide_low if dcg.value > 0 else dcg.wide_high
    is_shown = (dcg.value - stretch * (dcg.value - end)) * dcg.value > 0
    return is_shown and dcg.value * value > 0
