"""Levels of runs as people's labels correct them, beside those by the judge alone."""

from collections.abc import Collection
from typing import Final

from ragforge.evaluating.formatting import MISSING, Table, number, one_line
from ragforge.records import Calibration, CorrectedFigure

_DIGITS: Final = 4


def corrected_table(found: Calibration, runs: Collection[str]) -> Table:
    """Return a row for each measure and run that the labels are on.

    Args:
        found: As the labels have it.
        runs: That are shown.
    """
    rows = tuple(
        _row(figure) for figure in found.figures if not figure.is_difference and figure.run in runs
    )
    headers = ("measure", "run", "judge only", "corrected", "these queries", "queries like these")
    missing = [run for run in runs if run not in {figure.run for figure in found.figures}]
    note = f"not drawn for: {', '.join(one_line(run, 60) for run in missing)}" if missing else ""
    return Table("Corrected by people's labels", (*headers, "labels", "of pairs"), rows, note)


def levels_json(found: Calibration, runs: Collection[str]) -> dict[str, object]:
    """Return the corrected levels of runs as JSON has them."""
    figures = [
        figure.model_dump(mode="json")
        for figure in found.figures
        if not figure.is_difference and figure.run in runs
    ]
    return {**calibration_summary(found), "figures": figures}


def calibration_summary(found: Calibration) -> dict[str, object]:
    """Return what tells a calibration from others, as JSON has it."""
    return {
        "name": found.name,
        "design_sha256": found.design_sha256,
        "labels_sha256": found.labels_sha256,
        "labels": found.labels.n_used,
        "pairs": found.n_pairs,
        "queries": found.n_queries,
    }


def _row(figure: CorrectedFigure) -> tuple[str, ...]:
    corrected = figure.corrected
    return (
        figure.measure,
        one_line(figure.run, 60),
        number(figure.judge_only.value, _DIGITS),
        MISSING if corrected is None else number(corrected.value, _DIGITS),
        MISSING if corrected is None else _ends(corrected.low, corrected.high),
        MISSING if corrected is None else _ends(corrected.wide_low, corrected.wide_high),
        f"{figure.n:,}",
        f"{figure.n_pairs:,}",
    )


def _ends(low: float | None, high: float | None) -> str:
    return MISSING if low is None or high is None else f"[{number(low)}, {number(high)}]"
