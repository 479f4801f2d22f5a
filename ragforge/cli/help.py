"""Explain a subject. There is one: `measures`, which measure is for what.

Examples:
  ragforge help measures
"""

import argparse

from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("subject", choices=("measures",), help="what to explain")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.report.measure_guide import GUIDE, guide_text

    if arguments.json:
        print(dumps({"measures": [entry._asdict() for entry in GUIDE]}))
    else:
        show(guide_text())
    return 0
