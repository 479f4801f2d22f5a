"""Pictures of a set as files: what to draw, in which form."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.summary import Summary
from ragforge.files.atomic import write_whole, write_whole_bytes
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.reporting import ReportOptions, report_summary
from ragforge.report.decision import pair_asked_for
from ragforge.report.page.picture import Picture, Theme, picture_svg
from ragforge.report.page.set_pictures import (
    calibration_picture,
    comparison_picture,
    trend_picture,
)
from ragforge.report.png import png_of

Subject = Literal["compare", "trend", "calibration"]
FORMS: Final = (".svg", ".png")


@dataclass(frozen=True, slots=True)
class PlotOptions:
    """What to draw, and how."""

    subject: Subject
    report: ReportOptions
    """Which runs, the base of a comparison, the calibration."""
    theme: Theme = "auto"


def plot(
    dataset: Dataset, out: Path | None, settings: EvaluateSettings, options: PlotOptions
) -> Picture:
    """Draw a picture into a file, and return what it shows.

    Args:
        dataset: What it is about.
        out: A file that ends in .svg or .png; None for none.
        settings: Measures and threshold.
        options: What to draw.

    Raises:
        UsageError: The ending is another, there is no such run, or PNG cannot be drawn here.
        DataError: There is nothing to draw, or the file cannot be written.
    """
    if out is not None:
        require_form(out)
    summary = report_summary(dataset, settings, options.report)
    picture = _PICTURES[options.subject](summary)
    if out is not None:
        write_picture(out, picture, options.theme)
    return picture


def require_form(out: Path) -> None:
    """Refuse a file that is no picture.

    Raises:
        UsageError: Its name ends in neither .svg nor .png.
    """
    if out.suffix.lower() not in FORMS:
        raise UsageError(f"--out {out}: expected a name that ends in {' or '.join(FORMS)}")


def write_picture(out: Path, picture: Picture, theme: Theme = "auto") -> None:
    """Write a picture in the form that the name asks for; a PNG is light unless dark is asked for.

    Raises:
        UsageError: PNG cannot be drawn here.
        DataError: The file cannot be written.
    """
    if out.suffix.lower() == ".svg":
        write_whole(out, [picture_svg(picture, theme)])
    else:
        drawn = picture_svg(picture, "light" if theme == "auto" else theme)
        write_whole_bytes(out, [png_of(drawn)])


def _compared(summary: Summary) -> Picture:
    if summary.comparison is None:
        reason = summary.not_compared or "a comparison needs two runs; `ragforge retrieve` adds one"
        raise DataError(reason)
    return comparison_picture(summary, pair_asked_for(summary.comparison, summary.base))


def _calibrated(summary: Summary) -> Picture:
    if summary.calibration is None:
        raise UsageError("a picture of a calibration needs one: see `ragforge calibrate`")
    return calibration_picture(summary.calibration)


_PICTURES: Final[Mapping[Subject, Callable[[Summary], Picture]]] = {
    "compare": _compared,
    "trend": trend_picture,
    "calibration": _calibrated,
}
