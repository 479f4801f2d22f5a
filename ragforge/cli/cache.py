"""Look into the store of bought replies, carry them elsewhere, and make it smaller.

Every reply of a model is kept in DIR/.ragforge/calls.sqlite, so that a rerun costs nothing.
  stats    what was bought, per model: calls, tokens, cost; what was set aside; who is buying now
  export   the replies as JSON Lines, to keep or to share; it holds no key of an API
  import   such a file into another store; of two replies to one call the later one stays
  prune    take replies out for good; they are bought again when asked for, and what they cost
           stays in the sums. All conditions that are given must hold.

Examples:
  ragforge cache stats --dataset set/
  ragforge cache export replies.jsonl --dataset set/
  ragforge cache import replies.jsonl --store other/.ragforge/calls.sqlite
  ragforge cache prune --dataset set/ --older-than 90 --model gpt-5-mini --dry-run
"""

import argparse
import math
import sys
from pathlib import Path

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError

_FAULTS_SHOWN = 10
_STANDARD = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="stats|export|import|prune"
    )
    _add(actions, "stats", "what was bought, and what became of it")
    export = _add(actions, "export", "write the replies as JSON Lines")
    export.add_argument("file", type=Path, metavar="FILE", help="where to; - for stdout")
    bring = _add(actions, "import", "take replies in")
    bring.add_argument("file", type=Path, metavar="FILE", help="what export wrote; - for stdin")
    prune = _add(actions, "prune", "take replies out for good")
    prune.add_argument(
        "--older-than", type=float, metavar="DAYS", help="replies bought longer ago than that"
    )
    prune.add_argument("--model", metavar="NAME", help="replies of this model, as stats names it")
    prune.add_argument(
        "--set-aside", action="store_true", help="replies that were forgotten or damaged"
    )
    prune.add_argument("--dry-run", action="store_true", help="say what would go, and keep it")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    path = _store_path(arguments)
    if arguments.action == "stats":
        _stats(path, as_json=arguments.json)
    elif arguments.action == "export":
        _export(path, arguments.file, as_json=arguments.json)
    elif arguments.action == "import":
        _import(path, arguments.file, as_json=arguments.json)
    else:
        _prune(path, arguments)
    return 0


def _add(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, what: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=what, description=what)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--dataset", type=Path, metavar="DIR", help="the dataset that was made")
    place.add_argument("--store", type=Path, metavar="FILE", help="a call store, wherever it is")
    add_json(parser)
    return parser


def _store_path(arguments: argparse.Namespace) -> Path:
    if arguments.dataset is None:
        store: Path = arguments.store
        return store
    from ragforge.files.set.opening import open_dataset

    return open_dataset(arguments.dataset).store_path


def _stats(path: Path, *, as_json: bool) -> None:
    from ragforge.api.cache import Cache

    stats = Cache(path).stats()
    if as_json:
        print(dumps(stats.to_dict()))
    else:
        show(stats.table())


def _export(path: Path, file: Path, *, as_json: bool) -> None:
    from ragforge.api.cache import Cache, exported_change
    from ragforge.llm.store.transfer import ExportCounts, export_lines

    if str(file) == _STANDARD:
        if as_json:
            raise UsageError("--json and the replies cannot both go to stdout; name a FILE")
        exported = ExportCounts()
        for line in export_lines(path, exported):
            sys.stdout.write(line)
        made = exported_change(path, file, exported)
    else:
        made = Cache(path).export_replies(file)
    for note in made.notes:
        say(note)
    if as_json:
        print(dumps(made.to_dict()))
    else:
        say(made.text)


def _import(path: Path, file: Path, *, as_json: bool) -> None:
    from ragforge.api.cache import Cache

    standard = str(file) == _STANDARD
    made = Cache(path).import_replies(Path("/dev/stdin") if standard else file)
    faults = made.counts["faults"]
    for fault in faults[:_FAULTS_SHOWN]:
        say(f"{file}:{fault['line']}: passed over: {fault['why']}")
    if len(faults) > _FAULTS_SHOWN:
        rest = ", ".join(str(fault["line"]) for fault in faults[_FAULTS_SHOWN:])
        say(f"{file}: passed over, too: lines {rest}")
    if as_json:
        print(dumps(made.to_dict()))
        return
    say(made.text)
    print(path)


def _prune(path: Path, arguments: argparse.Namespace) -> None:
    from ragforge.api.cache import Cache

    days = arguments.older_than
    if days is None and arguments.model is None and not arguments.set_aside:
        raise UsageError("prune needs --older-than DAYS, --model NAME or --set-aside")
    if days is not None and not (math.isfinite(days) and days >= 0):
        raise UsageError(f"--older-than: expected days >= 0, got {days:g}")
    went = Cache(path).prune(
        older_than_days=days,
        model=arguments.model,
        set_aside=arguments.set_aside,
        dry_run=arguments.dry_run,
    )
    print(dumps(went.to_dict()) if arguments.json else went.text)
