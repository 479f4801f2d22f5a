"""Show how two versions of a set differ: queries, answers, evidence, grades, documents, and why.

Each version of a refreshed set is a directory under DIR/versions; any two datasets can be compared.
Of each query that differs it is told in what:
  added, gone    only one of them has it
  status         accepted, quarantined or retired
  revision       the documents gave another answer, or a person edited it; both are shown
  evidence       other quotes prove the answer
  places         the same quotes stand in other chunks or documents
  grades         chunks have other grades; a chunk that is new or gone counts as well
  split, labels  dev or test; anything else about it
The cause is what the refreshes in between wrote down: which document was added, changed, removed
or renamed. It is "not known" for what people did, and where the one set did not come of the other.

Examples:
  ragforge diff --dataset set/ --since 1
  ragforge diff set/versions/000001 set/versions/000003
  ragforge diff set/ set/rejected/000004 --json
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.cli.flags import add_json
from ragforge.cli.next_step import after_diff
from ragforge.cli.output import dumps, show
from ragforge.errors import DataError, UsageError

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset

_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "versions",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="two versions or datasets, the earlier one first",
    )
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="compare its published version with --since"
    )
    parser.add_argument("--since", type=int, metavar="N", help="number of the earlier version")
    parser.add_argument(
        "-n", type=int, default=_SHOWN, metavar="N", help=f"queries shown (default: {_SHOWN})"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.n < 0:
        raise UsageError(f"-n {arguments.n}: expected 0 or more")
    before, after = _two(arguments)
    from ragforge.refresh.version_diffs import compare_versions
    from ragforge.report.versions import differences_text

    found = compare_versions(before, after)
    if arguments.json:
        print(dumps(found.as_json()))
    else:
        show(differences_text(found, arguments.n))
        after_diff(arguments, after)
    return 0


def _two(arguments: argparse.Namespace) -> "tuple[Dataset, Dataset]":
    """Return what is compared, the earlier one first."""
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.versions import open_version

    paths, dataset, since = arguments.versions, arguments.dataset, arguments.since
    if dataset is None and since is None and len(paths) == 2:
        return _opened(paths[0]), _opened(paths[1])
    if dataset is not None and since is not None and not paths:
        now = open_dataset(dataset)
        return open_version(dataset, since), now
    raise UsageError("expected two directories, or --dataset DIR with --since N")


def _opened(path: Path) -> "Dataset":
    """Return a dataset, or the version that a path names; a missing one tells which there are."""
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.paths import REJECTED, VERSIONS
    from ragforge.files.set.versions import open_version

    if path.parent.name == VERSIONS and path.name.isdecimal() and not path.exists():
        return open_version(path.parent.parent, int(path.name))
    if path.parent.name == REJECTED and not path.exists():
        raise DataError(f"{path}: no such directory; no version of that number was rejected")
    return open_dataset(path)
