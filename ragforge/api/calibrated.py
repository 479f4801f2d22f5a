"""Calibrating a judge: plan, draw, apply labels; and what comes of it."""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ragforge.api.call import Handle, whole_of
from ragforge.api.results import Result
from ragforge.calibration.planning import LabelPlan
from ragforge.calibration.sampling import USUAL_LABELS, USUAL_REPEATS, DrawnSample, SampleOptions
from ragforge.deferred import dataclass
from ragforge.files.set.calibrations import USUAL_NAME, calibration_files
from ragforge.pipeline.calibrating import (
    apply_calibration,
    plan_calibration,
    question_of,
    sample_labels,
)
from ragforge.records import Calibration, CorrectedFigure, LabelSample
from ragforge.records.calibrations import SampleOf
from ragforge.report.calibration import (
    calibration_json,
    calibration_text,
    plan_json,
    plan_text,
    sample_json,
    sample_text,
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Calibrated(Result):
    """Measures by a judge, corrected by people's labels.

    Args:
        found: With what it rests on.
    """

    found: Calibration

    @property
    def figures(self) -> tuple[CorrectedFigure, ...]:
        """Levels and differences: by the judge alone, by people alone, by both."""
        return self.found.figures

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known to read it."""
        return self.found.warnings

    def figure(self, measure: str, run: str, against: str = "") -> CorrectedFigure | None:
        """Return the level of a run, or its difference from another; None where not drawn for."""
        return self.found.figure(measure, run, against)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge calibrate apply --json` prints."""
        return dict(calibration_json(self.found))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each figure."""
        return [_row(figure) for figure in self.found.figures]

    def table(self) -> str:
        """Return the figures as text."""
        return calibration_text(self.found)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DrawnLabels(Result):
    """Which pairs people are asked to grade.

    Args:
        drawn: The sample, and what became of an earlier one.
        path: The file of the sample.
    """

    drawn: DrawnSample
    path: str

    @property
    def sample(self) -> LabelSample:
        """The pairs, in the order in which to label them."""
        return self.drawn.sample

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge calibrate sample --json` prints."""
        return dict(sample_json(self.drawn))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair; without the stratum, which tells the judge's grade."""
        return [
            {"query_id": pair.query_id, "chunk_id": pair.chunk_id, "twice": pair.twice}
            for pair in self.sample.pairs
        ]

    def table(self) -> str:
        """Return what was drawn as text."""
        return sample_text(self.drawn, self.path)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PlannedLabels(Result):
    """How many labels for which width.

    Args:
        plan: All of it.
        notes: What was told on the way.
    """

    plan: LabelPlan
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge calibrate plan --json` prints."""
        return dict(plan_json(self.plan))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each figure and number of labels."""
        return [
            {
                "measure": item.measure,
                "run": item.run,
                "against": item.against,
                "n": item.n,
                "width": item.width,
                "wide_width": item.wide_width,
            }
            for item in self.plan.widths
        ]

    def table(self) -> str:
        """Return the plan as text."""
        return plan_text(self.plan)


def calibrate(
    handle: Handle, name: str | None = None, *, model_assisted: bool = False
) -> Calibrated:
    """Correct measures by people's labels, and write `calibration/NAME/calibration.json`.

    Args:
        handle: The set.
        name: Of the calibration; the only one where None.
        model_assisted: Give levels of nDCG too, which rest on a model of the grades.

    Raises:
        DataError: There is no such calibration, or a run, the judge or its grades changed.
    """
    dataset = whole_of(handle, "calibrate")
    return Calibrated(apply_calibration(dataset, name, model_assisted=model_assisted))


def draw_labels(
    handle: Handle,
    *runs: str,
    measures: str | Sequence[str],
    n: int = USUAL_LABELS,
    of: SampleOf = "both",
    judge: str | None = None,
    name: str = USUAL_NAME,
    seed: int = 0,
    repeat_share: float = USUAL_REPEATS,
    again: bool = False,
    rel_threshold: int | None = None,
) -> DrawnLabels:
    """Draw the pairs that people are asked to grade; a larger n adds, and spoils none.

    Args:
        handle: The set.
        runs: At least one; the others are held against the first.
        measures: P@k, DCG@k or nDCG@k.
        n: Pairs in all.
        of: Whether levels, differences or both are wanted.
        judge: Its model, where several judges graded; where one model graded in several ways, all
            that the refusal says of it.
        name: Of the calibration.
        seed: Of the draw.
        repeat_share: Share of the pairs that each labeller is shown twice.
        again: Replace a sample for other runs, measures or grades; labels count where drawn again.
        rel_threshold: Lowest relevant grade; the set's where None.

    Raises:
        DataError: A run is missing or stale, nothing is judged, or there is a sample for another
            question.
        UsageError: An argument cannot be taken, or no pair decides.
    """
    dataset = whole_of(handle, "draw_labels")
    question = question_of(
        dataset, runs, _names(measures), of=of, judge=judge, rel_threshold=rel_threshold
    )
    drawn = sample_labels(dataset, question, SampleOptions(n, seed, repeat_share, again), name)
    return DrawnLabels(drawn, str(calibration_files(dataset, name).folder / "sample.json"))


def plan_labels(
    handle: Handle,
    *runs: str,
    measures: str | Sequence[str] = (),
    sizes: Sequence[int] = (),
    of: SampleOf = "both",
    judge: str | None = None,
    name: str | None = None,
    rel_threshold: int | None = None,
) -> PlannedLabels:
    """Tell how many labels for which width, and how many tell runs apart.

    Args:
        handle: The set.
        runs: As for `draw_labels`; those of the calibration where none is named.
        measures: As for `draw_labels`.
        sizes: Numbers of labels; the usual ones where empty.
        of: As for `draw_labels`.
        judge: As for `draw_labels`.
        name: Of the calibration whose labels tell how they spread.
        rel_threshold: As for `draw_labels`.

    Raises:
        DataError: As for `draw_labels`.
        UsageError: An argument cannot be taken, or no pair decides.
    """
    dataset = whole_of(handle, "plan_labels")
    question = None
    if runs:
        question = question_of(
            dataset, runs, _names(measures), of=of, judge=judge, rel_threshold=rel_threshold
        )
    return PlannedLabels(plan_calibration(dataset, question, name, sizes))


def _names(measures: str | Sequence[str]) -> list[str]:
    return [measures] if isinstance(measures, str) else list(measures)


def _row(figure: CorrectedFigure) -> dict[str, Any]:
    corrected = figure.corrected
    return {
        "measure": figure.measure,
        "run": figure.run,
        "against": figure.against,
        "judge_only": figure.judge_only.value,
        "people_only": None if figure.people_only is None else figure.people_only.value,
        "corrected": None if corrected is None else corrected.value,
        "low": None if corrected is None else corrected.low,
        "high": None if corrected is None else corrected.high,
        "wide_low": None if corrected is None else corrected.wide_low,
        "wide_high": None if corrected is None else corrected.wide_high,
        "judges_share": figure.judges_share,
        "n": figure.n,
        "n_pairs": figure.n_pairs,
    }
