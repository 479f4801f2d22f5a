"""Write a page about a dataset: measures, worst queries, diagnosis, failures, who judged.

The page is one file without any external request, readable without JavaScript. The ending of --out
decides the form: .html, .md or .txt; without --out the text goes to stdout.

Example: ragforge report --dataset set/ --out report.html
"""

import argparse
from pathlib import Path

from ragforge.cli.flags import add_common, settings_of
from ragforge.errors import UsageError

FORMS = {".html": "html", ".htm": "html", ".md": "markdown", ".txt": "text"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE", help="FILE.html, FILE.md or FILE.txt")
    add_common(parser, "evaluate")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.opening import open_dataset
    from ragforge.pipeline.reporting import report_summary, write_report

    settings = settings_of(arguments).evaluate
    dataset = open_dataset(arguments.dataset)
    if arguments.out is None:
        from ragforge.report.text import render_text

        print(render_text(report_summary(dataset, settings)), end="")
        return 0
    form = FORMS.get(arguments.out.suffix.lower())
    if form is None:
        raise UsageError(f"--out {arguments.out}: expected an ending of {', '.join(FORMS)}")
    write_report(dataset, arguments.out, form, settings)
    print(arguments.out)
    return 0
