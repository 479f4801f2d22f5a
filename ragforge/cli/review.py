"""Have people look at queries: write a sheet for them, and take in what they decided.

  export   a table (.csv) or one offline page (.html): the queries on which checks disagree first,
           then some drawn at random, which alone tell how many of all queries are right
  import   the filled-in table, or what the page saved; all of it is taken in, or nothing

Decisions: approve, edit (with new_query or new_answer), reject, pin (approve and keep for good),
undecided (takes them back: the query is as it was before). reviews.jsonl of the set keeps who
decided what, and when.

Examples:
  ragforge review export --dataset set/ --out review.html --reviewer Ann
  ragforge review export --dataset set/ --out ann.html --reviewer Ann --part 1/2 --order document
  ragforge review import review.json --dataset set/ --reviewer Ann --dry-run
"""

import argparse
import re
from pathlib import Path

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, print_result
from ragforge.evaluating.formatting import plural


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="export|import")
    export = _add(actions, "export", "write a sheet for a reviewer")
    export.add_argument(
        "--out", required=True, type=Path, metavar="FILE", help="a new .csv or .html file"
    )
    export.add_argument(
        "--sample", type=int, metavar="N", help="drawn at random (default: 5 %%, at least 10)"
    )
    export.add_argument("--reviewer", default="", metavar="NAME", help="for whom the sheet is")
    export.add_argument(
        "--order",
        choices=("doubt", "document", "random"),
        default="doubt",
        help="the most doubtful first, by document, or at random (default: doubt)",
    )
    export.add_argument("--most", type=int, metavar="N", help="only the first N of that order")
    export.add_argument(
        "--part",
        type=_part,
        default=(1, 1),
        metavar="K/N",
        help="the K-th of N parts that share no query, for several reviewers at once",
    )
    bring = _add(actions, "import", "take decisions in")
    bring.add_argument("file", type=Path, metavar="FILE", help="a filled-in .csv, or a saved .json")
    bring.add_argument("--reviewer", default="", metavar="NAME", help="who decided")
    bring.add_argument(
        "--overrule", action="store_true", help="decide otherwise than another reviewer did"
    )
    bring.add_argument("--dry-run", action="store_true", help="check the file, and write nothing")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.action == "export":
        _export(arguments)
    else:
        _import(arguments)
    return 0


def _add(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, what: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=what, description=what)
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    add_json(parser)
    return parser


def _part(text: str) -> tuple[int, int]:
    """Return which part of how many."""
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected K/N such as 1/2, got {text!r}")
    return int(found[1]), int(found[2])


def _export(arguments: argparse.Namespace) -> None:
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.intake.review_sheets import Batch, export_sheet

    out = arguments.out
    part, parts = arguments.part
    rows = export_sheet(
        open_dataset(arguments.dataset),
        out,
        arguments.sample,
        " ".join(arguments.reviewer.split()),
        Batch(arguments.order, arguments.most, part, parts),
    )
    drawn = sum(bool(row.random) for row in rows)
    if arguments.json:
        print(dumps({"file": str(out), "queries": len(rows), "random": drawn}))
    else:
        say(f"{plural(len(rows), 'query', 'queries')} to decide about, {drawn} drawn at random")
        print(out)


def _import(arguments: argparse.Namespace) -> None:
    from ragforge.api.outcomes import Reviewed
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.intake.reviewing import review_dataset

    result = review_dataset(
        open_dataset(arguments.dataset),
        arguments.file,
        arguments.reviewer,
        overrule=arguments.overrule,
        dry_run=arguments.dry_run,
    )
    found = Reviewed(result, arguments.dry_run)
    if arguments.json:
        print_result(found, as_json=True)
        return
    say(found.table())
    print(arguments.dataset)
