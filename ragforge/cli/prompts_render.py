"""`ragforge prompts render`: the messages for one pair, as the stage would send them."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.cli.flags import add_common, add_json, dumps, settings_of
from ragforge.cli.talk import show
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.pipeline.picking import Picked
    from ragforge.pipeline.rendering import Rendered


def configure_render(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", metavar="NAME")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--dataset", type=Path, metavar="DIR", help="where the ids are looked up")
    source.add_argument("--pairs", type=Path, metavar="FILE", help="a file of pairs to judge")
    parser.add_argument("--query", metavar="QUERY_ID", help="in the dataset")
    parser.add_argument(
        "--chunk",
        action="append",
        default=[],
        metavar="CHUNK_ID",
        help="in the dataset; several for a prompt for batches",
    )
    parser.add_argument("--answers", metavar="NAME", help="system whose answer to the query it is")
    parser.add_argument("--row", type=int, metavar="N", help="pair of the file, from 1 (default 1)")
    parser.add_argument(
        "--examples", dest="setting_judge_examples", metavar="FILE", help="as for `judge`"
    )
    parser.add_argument("--batch", dest="setting_judge_batch", metavar="N", help="as for `judge`")
    parser.add_argument(
        "--language",
        dest="setting_generate_language",
        action="append",
        metavar="CODE",
        help="as for `generate`; the first one counts",
    )
    add_json(parser)
    add_common(parser, "model", "prompts")


def run_render(arguments: argparse.Namespace) -> None:
    """Print the messages; hidden characters as escapes, but with --json as they are."""
    from ragforge.pipeline.rendering import render

    settings = settings_of(arguments)
    found = asyncio.run(render(arguments.name, _picked(arguments), settings))
    if arguments.json:
        print(dumps(_json(found)))
        return
    turns = [f"[{turn.role}]\n{turn.content}" for turn in found.request.messages]
    show("\n\n".join(turns))


def _picked(arguments: argparse.Namespace) -> "Picked":
    from ragforge.files.opening import open_dataset
    from ragforge.pipeline.picking import Picked

    if arguments.pairs is None:
        if arguments.row is not None:
            raise UsageError("--row goes with --pairs, not with --dataset")
        return Picked(
            dataset=open_dataset(arguments.dataset),
            query_id=arguments.query or "",
            chunk_ids=tuple(dict.fromkeys(arguments.chunk)),
            system=arguments.answers or "",
        )
    if arguments.query or arguments.chunk or arguments.answers:
        raise UsageError("--query, --chunk and --answers go with --dataset, not with --pairs")
    row = 1 if arguments.row is None else arguments.row
    if row < 1:
        raise UsageError(f"--row {row}: expected a whole number from 1")
    return Picked(pairs=arguments.pairs, row=row)


def _json(found: "Rendered") -> dict[str, object]:
    request = found.request
    return {
        "prompt": {
            "name": found.prompt.name,
            "version": found.prompt.version,
            "sha256": found.prompt.sha256,
        },
        "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
        "schema": request.schema,
        "call_key": found.call_key,
    }
