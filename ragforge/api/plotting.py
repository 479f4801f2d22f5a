"""Pictures of a set: files, and what a notebook shows."""

from base64 import b64encode
from dataclasses import field, replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, Final, Unpack

from ragforge.api.arguments import checked
from ragforge.api.call import EVALUATE, Handle, begin, whole_of
from ragforge.api.jobs import Runs, names_of
from ragforge.api.keywords import EvaluateKeywords
from ragforge.api.results import Result
from ragforge.deferred import dataclass
from ragforge.pipeline.calibrating import read_calibration
from ragforge.pipeline.plotting import PlotOptions, Subject
from ragforge.pipeline.plotting import plot as plot_dataset
from ragforge.pipeline.reporting import ReportOptions
from ragforge.report.page.picture import Picture, Theme, picture_svg
from ragforge.report.picture_text import picture_text

_ARGUMENTS: Final = ("subject", "out", "runs", "base", "calibration", "theme")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Plotted(Result):
    """A picture; a notebook shows it.

    Args:
        picture: What it shows.
        path: The file; None where none was written.
        theme: Its colours.
        notes: What was told on the way.
    """

    picture: Picture
    path: Path | None = None
    theme: Theme = "auto"
    notes: tuple[str, ...] = field(default=())

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        return picture_svg(self.picture, self.theme)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge plot --json` prints."""
        file = None if self.path is None else str(self.path)
        return {"file": file, "title": self.picture.title, "shows": self.picture.told}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row, with file, title and what is shown in words."""
        return [self.to_dict()]

    def table(self) -> str:
        """Return the picture as text: what `ragforge plot` draws in a terminal."""
        return picture_text(self.picture)

    def _repr_html_(self) -> str:
        drawn = b64encode(self.svg.encode()).decode()
        told = escape(f"{self.picture.title}. {self.picture.told}")
        return f'<img alt="{told}" style="max-width:100%" src="data:image/svg+xml;base64,{drawn}">'


@checked
def plot(
    handle: Handle,
    subject: Subject,
    out: str | PathLike[str] | None = None,
    *,
    runs: Runs = (),
    base: str = "",
    calibration: str | None = None,
    theme: Theme = "auto",
    **settings: Unpack[EvaluateKeywords],
) -> Plotted:
    """Draw two runs held together, means over time, or what people's labels correct.

    Args:
        handle: The set.
        subject: What to draw.
        out: A file that ends in .svg or .png; none is written where None.
        runs: Which; all where empty. A comparison draws the pair that a report opens with.
        base: The run that the other is held against.
        calibration: Which calibration, where the set has several.
        theme: Auto follows the reader's window; a .png is light then.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: There is nothing to draw, or the file cannot be written.
        UsageError: The ending names no form, there is no such run, or PNG cannot be drawn here.
    """
    path = None if out is None else Path(out)
    takes = replace(EVALUATE, name="plot", arguments=_ARGUMENTS)
    with begin(takes, settings, handle.keywords) as call:
        dataset = whole_of(handle, "plot")
        asked = subject == "calibration"
        found = read_calibration(dataset, calibration) if asked else None
        report = ReportOptions(tuple(names_of(runs)), base, found)
        options = PlotOptions(subject, report, theme)
        picture = plot_dataset(dataset, path, call.settings.evaluate, options)
        return Plotted(picture, path, theme, tuple(call.notes))
