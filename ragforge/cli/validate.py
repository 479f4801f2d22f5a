"""Check a dataset: every file against its format, ids against each other, digests, quotes."""

import argparse
from pathlib import Path

from ragforge.cli.flags import add_json, dumps
from ragforge.cli.talk import complain
from ragforge.errors import DataError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.opening import open_dataset
    from ragforge.pipeline.validating import validate

    found = validate(open_dataset(arguments.dataset))
    if arguments.json:
        print(dumps({"problems": list(found.problems), "notes": list(found.notes)}))
    else:
        for line in (*found.problems, *found.notes):
            complain(line)
        print(f"{arguments.dataset}: {len(found.problems)} problems, {len(found.notes)} notes")
    return DataError.exit_code if found.problems else 0
