"""Check a dataset: every file against its format, ids against each other, digests, quotes.

A file that somebody changed by hand is noted, and a refresh does not start from it. With --accept
it is taken for the set's own, and files that are gone are forgotten, where nothing else is wrong.
Of chunks that were changed, grades of judges whose text is gone are dropped, and grades of answers
whose context reads otherwise; people's stay. Of questions that were changed, where runs tell that
they were others, grades of judges are dropped likewise.

Examples:
  ragforge validate --dataset set/
  ragforge validate --dataset set/ --accept
"""

import argparse
from pathlib import Path

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.next_step import after_validating
from ragforge.cli.output import print_result
from ragforge.errors import DataError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    parser.add_argument(
        "--accept",
        action="store_true",
        help="take files that were changed by hand for the set's own, and forget those that are "
        "gone",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.outcomes import Validated, describe_findings
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.validating import accept, validate

    dataset = open_dataset(arguments.dataset)
    findings = accept(dataset) if arguments.accept else validate(dataset)
    found = Validated(tuple(findings.problems), tuple(findings.notes))
    if arguments.json:
        print_result(found, as_json=True)
    else:
        for line in (*found.problems, *found.notes):
            say(line)
        print(f"{arguments.dataset}: {describe_findings(found)}")
        if found:
            after_validating(arguments)
    return 0 if found else DataError.exit_code
