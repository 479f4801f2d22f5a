"""Levels of runs as people's labels correct them, beside those by the judge alone."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from ragforge.evaluating.formatting import MISSING, Table, number, one_line
from ragforge.records import Calibration, CorrectedFigure

_DIGITS: Final = 4


def corrected_table(
    found: Calibration, levels: Sequence[CorrectedFigure], runs: Collection[str]
) -> Table:
    """Return a row for each measure and run that the labels are on.

    Args:
        found: As the labels have it.
        levels: That are shown.
        runs: That are evaluated.
    """
    rows = tuple(map(_row, levels))
    headers = ("measure", "run", "judge only", "corrected", "these queries", "queries like these")
    missing = [run for run in runs if run not in {figure.run for figure in found.figures}]
    notes = [f"not drawn for: {', '.join(one_line(run, 60) for run in missing)}"] if missing else []
    refusals = dict.fromkeys(_refusals(levels))
    notes += [f"not corrected: {'; '.join(refusals)}"] if refusals else []
    if not levels and not missing:
        notes.append("the labels are of differences alone: `ragforge compare --calibrated`")
    title = "Corrected by people's labels"
    return Table(title, (*headers, "labels", "of pairs"), rows, "; ".join(notes))


def _refusals(levels: Iterable[CorrectedFigure]) -> Iterator[str]:
    return (level.refused for level in levels if level.corrected is None and level.refused)


def levels_json(found: Calibration, levels: Iterable[CorrectedFigure]) -> dict[str, object]:
    """Return corrected levels of runs as JSON has them."""
    figures = [figure.model_dump(mode="json") for figure in levels]
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
