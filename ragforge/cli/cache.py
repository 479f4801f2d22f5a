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
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import plural, render_table

if TYPE_CHECKING:
    from ragforge.files.manifest import Spent
    from ragforge.llm.store.ledger import Ledger, ModelLedger

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
    parser = actions.add_parser(name, help=what, description=what, allow_abbrev=False)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--dataset", type=Path, metavar="DIR", help="the dataset that was made")
    place.add_argument("--store", type=Path, metavar="FILE", help="a call store, wherever it is")
    add_json(parser)
    return parser


def _store_path(arguments: argparse.Namespace) -> Path:
    from ragforge.files.set.opening import open_dataset

    if arguments.dataset is None:
        store: Path = arguments.store
        return store
    return open_dataset(arguments.dataset).store_path


def _stats(path: Path, *, as_json: bool) -> None:
    from ragforge.llm.store.ledger import read_ledger

    ledger = read_ledger(path)
    if as_json:
        print(dumps(_ledger_json(path, ledger)))
        return
    headers = ["model", "calls", "prompt tokens", "completion tokens", "estimated", "cost USD"]
    rows = [_model_row(item) for item in ledger.models]
    show(render_table([*headers, "forgotten", "damaged"], rows))
    spent = ledger.spent
    print(
        f"\nall runs: {plural(spent.calls, 'call')}, {spent.prompt_tokens:,} prompt and "
        f"{spent.completion_tokens:,} completion tokens, cost {_money(spent)} USD; "
        f"{ledger.pruned:,} of the replies were pruned"
    )
    print(f"attempts perhaps billed without a reply: {ledger.unanswered:,}")
    held = [
        f"{plural(item.leases, 'lease')} by process {item.pid} on {item.host}"
        for item in ledger.holdings
    ]
    print(f"held now: {', '.join(held) or 'no lease'}")
    print(f"{path}: {ledger.file_bytes:,} bytes")


def _model_row(item: "ModelLedger") -> list[str]:
    counts = (item.spent.calls, item.spent.prompt_tokens, item.spent.completion_tokens)
    numbers = [f"{count:,}" for count in (*counts, item.estimated)]
    return [item.model, *numbers, _money(item.spent), f"{item.forgotten:,}", f"{item.damaged:,}"]


def _money(spent: "Spent") -> str:
    return "unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f}"


def _ledger_json(path: Path, ledger: "Ledger") -> dict[str, object]:
    return {
        "store": str(path),
        "file_bytes": ledger.file_bytes,
        "models": [
            {
                "model": item.model,
                **item.spent.model_dump(),
                "estimated": item.estimated,
                "forgotten": item.forgotten,
                "damaged": item.damaged,
            }
            for item in ledger.models
        ],
        "spent": ledger.spent.model_dump(),
        "pruned": ledger.pruned,
        "unanswered": ledger.unanswered,
        "leases": [
            {"pid": item.pid, "host": item.host, "leases": item.leases} for item in ledger.holdings
        ],
    }


def _export(path: Path, file: Path, *, as_json: bool) -> None:
    from ragforge.files.atomic import write_whole
    from ragforge.files.source_files import is_packed
    from ragforge.llm.store.transfer import ExportCounts, export_lines

    exported = ExportCounts()
    if str(file) == _STANDARD:
        if as_json:
            raise UsageError("--json and the replies cannot both go to stdout; name a FILE")
        for line in export_lines(path, exported):
            sys.stdout.write(line)
    else:
        if is_packed(file):
            raise UsageError(f"{file}: is written plain; pack it afterwards")
        if file.exists() and path.exists() and file.samefile(path):
            raise UsageError(f"{file}: is the call store itself")
        write_whole(file, export_lines(path, exported))
    if exported.salvaged:
        say(f"{path}: is damaged; what can be read was written")
    if as_json:
        counts = {
            "rows": exported.rows,
            "left_out": exported.left_out,
            "salvaged": exported.salvaged,
        }
        print(dumps({"file": str(file), **counts}))
    else:
        say(
            f"{plural(exported.rows, 'reply', 'replies')} written, "
            f"{exported.left_out:,} left out: set aside or damaged"
        )


def _import(path: Path, file: Path, *, as_json: bool) -> None:
    from ragforge.llm.store.transfer import import_file

    imported = import_file(Path("/dev/stdin") if str(file) == _STANDARD else file, path)
    for fault in imported.faults[:_FAULTS_SHOWN]:
        say(f"{file}:{fault.line}: passed over: {fault.why}")
    if len(imported.faults) > _FAULTS_SHOWN:
        rest = ", ".join(str(fault.line) for fault in imported.faults[_FAULTS_SHOWN:])
        say(f"{file}: passed over, too: lines {rest}")
    if as_json:
        lines = [{"line": fault.line, "why": fault.why} for fault in imported.faults]
        print(
            dumps({"store": str(path), "rows": imported.rows, "new": imported.new, "faults": lines})
        )
        return
    say(
        f"{plural(imported.rows, 'reply', 'replies')} read, {imported.new:,} of them new here; "
        f"{plural(len(imported.faults), 'line')} passed over"
    )
    print(path)


def _prune(path: Path, arguments: argparse.Namespace) -> None:
    from ragforge.llm.store.ledger import PruneFilter, count_prunable, prune

    days = arguments.older_than
    if days is None and arguments.model is None and not arguments.set_aside:
        raise UsageError("prune needs --older-than DAYS, --model NAME or --set-aside")
    if days is not None and not (math.isfinite(days) and days >= 0):
        raise UsageError(f"--older-than: expected days >= 0, got {days:g}")
    unwanted = PruneFilter(days, arguments.model, arguments.set_aside)
    went = (count_prunable if arguments.dry_run else prune)(path, unwanted)
    if arguments.json:
        sizes = {"bytes_before": went.bytes_before, "bytes_after": went.bytes_after}
        told = {"store": str(path), "dry_run": arguments.dry_run, **went.spent.model_dump()}
        print(dumps({**told, **sizes}))
        return
    what = plural(went.spent.calls, "reply", "replies")
    took = f"{went.spent.prompt_tokens:,} prompt and {went.spent.completion_tokens:,} completion"
    print(
        f"{what} {'would go' if arguments.dry_run else 'taken out'} "
        f"({took} tokens, cost {_money(went.spent)} USD)"
    )
    if not arguments.dry_run:
        print(f"{path}: {went.bytes_before:,} -> {went.bytes_after:,} bytes")
