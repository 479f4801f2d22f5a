"""Draw a picture of a set: as text, or as an .svg or .png (extra `png`) for a page.

  compare      two runs query by query, and by slice: what a comparison rests on
  trend        the means of each run over the evaluations of the set
  calibration  levels by the judge, by people and corrected

The picture of a sweep is drawn by `ragforge sweep`: below its table in a terminal, and as a file by
--out FILE.svg (or .png).

Examples:
  ragforge plot compare --dataset set/ --run bm25 --run dense
  ragforge plot compare --dataset set/ --run bm25 --run dense --out compare.svg
  ragforge plot trend --dataset set/ --out trend.png
  ragforge plot calibration --dataset set/ --out corrected.svg --theme dark
"""

import argparse
from pathlib import Path

from ragforge.cli.flags import add_common, add_json, settings_of
from ragforge.cli.output import dumps, show_picture


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("subject", choices=("compare", "trend", "calibration"), help="what to draw")
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="FILE.svg or FILE.png (default: text, as wide as the terminal)",
    )
    parser.add_argument(
        "--run", action="append", default=[], metavar="NAME", help="which run (default: all)"
    )
    parser.add_argument(
        "--base", default="", metavar="NAME", help="the run that the other is held against"
    )
    parser.add_argument(
        "--calibration",
        metavar="NAME",
        help="which calibration, where the set has several",
    )
    parser.add_argument(
        "--theme",
        choices=("auto", "light", "dark"),
        default="auto",
        help="auto follows the reader's window (default: auto; a .png is light)",
    )
    add_json(parser)
    add_common(parser, "evaluate")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.output_paths import check_outputs
    from ragforge.pipeline.calibrating import read_calibration
    from ragforge.pipeline.plotting import PlotOptions, plot
    from ragforge.pipeline.reporting import ReportOptions

    settings = settings_of(arguments).evaluate
    out = None if arguments.out == Path("-") else arguments.out
    check_outputs({"--out": out}, {"--config": arguments.config})
    dataset = open_dataset(arguments.dataset)
    asked = arguments.subject == "calibration"
    calibration = read_calibration(dataset, arguments.calibration) if asked else None
    report = ReportOptions(tuple(arguments.run), arguments.base, calibration)
    options = PlotOptions(arguments.subject, report, arguments.theme)
    picture = plot(dataset, out, settings, options)
    if arguments.json:
        file = None if out is None else str(out)
        print(dumps({"file": file, "title": picture.title, "shows": picture.told}))
    elif out is None:
        show_picture(picture)
    else:
        print(out)
    return 0
