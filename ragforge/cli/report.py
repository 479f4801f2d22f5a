"""Write a page about a dataset: what changed, measures, which run is better, and every query.

The page asks nobody for anything. A small script sorts, filters and opens queries; without it
everything else is there. Where there are too many queries for a page of about a megabyte, what was
retrieved for the better ones goes into a folder beside it, FILE_files, and is loaded from there
when a query is opened; --single writes one file. The ending of --out decides the form: .html, .md
or .txt; without --out the text goes to stdout.

Two and more runs are compared with each other. --base compares them with one run only: fewer
comparisons, so that smaller differences are shown. The first -m decides, and what is shown of
single queries, slices, causes, latency and cost is by it; nDCG@10 where none is named, and
EvidenceR@10 where runs have different chunks.

Examples:
  ragforge report --dataset set/ --out report.html
  ragforge report --dataset set/ --out report.md --base bm25 -m nDCG@10 -m R@20
  ragforge report --dataset set/ --run bm25 --run dense --json
"""

import argparse
from pathlib import Path

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import (
    add_calibrated,
    add_common,
    add_json,
    calibration_of,
    refuse_calibrated,
    settings_of,
)
from ragforge.cli.measured_files import add_measured, measured
from ragforge.cli.next_step import after_report
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_measured(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="FILE.html, FILE.md or FILE.txt")
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME",
        help="which run (default: all); with --qrels its file",
    )
    parser.add_argument(
        "--base", default="", metavar="NAME", help="the run that all others are held against"
    )
    parser.add_argument(
        "--single",
        action="store_true",
        help="write FILE.html as one file, however large, without a folder beside it",
    )
    add_calibrated(parser)
    add_json(parser)
    add_common(parser, "evaluate")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.reports import form_of
    from ragforge.files.set.output_paths import check_outputs
    from ragforge.pipeline.reporting import ReportOptions, report_summary, write_report
    from ragforge.report.set_report import render_text

    settings = settings_of(arguments).evaluate
    form = None if arguments.out is None else form_of(arguments.out, "--out")
    if arguments.single and form != "html":
        raise UsageError("--single: is for a page: --out FILE.html")
    files = {"--config": arguments.config, "--qrels": arguments.qrels}
    check_outputs({"--out": arguments.out}, {**files, "--queries": arguments.queries})
    with measured(arguments, Progress(arguments.quiet)) as (dataset, names):
        if arguments.qrels is not None:
            refuse_calibrated(arguments)
        calibration = calibration_of(arguments, dataset)
        options = ReportOptions(tuple(names), arguments.base, calibration)
        if form is None:
            summary = report_summary(dataset, settings, options)
        else:
            summary = write_report(
                dataset, arguments.out, form, settings, options, is_single=arguments.single
            )
    for warning in summary.run_warnings:
        say(f"warning: {warning}")
    if arguments.json:
        from ragforge.report.set_report import report_json

        print(dumps(report_json(summary, arguments.out)))
    else:
        show(render_text(summary).removesuffix("\n") if form is None else str(arguments.out))
        after_report(arguments, dataset, has_runs=bool(summary.runs))
    return 0
