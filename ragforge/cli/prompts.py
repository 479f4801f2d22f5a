"""List, show, compare, render or copy the prompts.

A folder given with --prompts-dir replaces shipped prompts by files of the same name; `copy` makes
one to edit. `render` prints what a model would be asked, and asks nothing.

Examples:
  ragforge prompts copy judge_relevance --to rubrics
  ragforge prompts diff judge_relevance --prompts-dir rubrics
  ragforge prompts render judge_relevance --prompts-dir rubrics --pairs pairs.jsonl --row 3
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import add_common, add_json, run_async, settings_of
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.pipeline.rendering import PickedInput


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
    from ragforge.api.prompts import RenderedPrompt
    from ragforge.pipeline.rendering import render

    settings = settings_of(arguments)
    found = run_async(render(arguments.name, _picked(arguments), settings))
    rendered = RenderedPrompt(found)
    if arguments.json:
        print(dumps(rendered.to_dict()))
    else:
        show(rendered.table())


def _picked(arguments: argparse.Namespace) -> "PickedInput":
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.rendering import PickedInput

    if arguments.pairs is None:
        if arguments.row is not None:
            raise UsageError("--row goes with --pairs, not with --dataset")
        return PickedInput(
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
    return PickedInput(pairs=arguments.pairs, row=row)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="list|show|diff|render|copy"
    )
    listing = actions.add_parser("list", help="names, versions, digests, and where each comes from")
    add_json(listing)
    add_common(listing, "prompts")
    show = actions.add_parser("show", help="one prompt, as it is used")
    show.add_argument("name", metavar="NAME")
    add_common(show, "prompts")
    diff = actions.add_parser(
        "diff", help="a prompt of --prompts-dir against the shipped one, or one against another"
    )
    diff.add_argument("name", metavar="NAME")
    diff.add_argument("other", metavar="OTHER", nargs="?", help="a second prompt")
    add_common(diff, "prompts")
    configure_render(actions.add_parser("render", help="the messages for one pair; asks nothing"))
    copy = actions.add_parser("copy", help="write a shipped prompt into a folder, to edit it")
    copy.add_argument("name", metavar="NAME")
    copy.add_argument("--to", type=Path, required=True, metavar="DIR", help="made where missing")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    actions = {
        "list": _list,
        "show": _show,
        "diff": _diff,
        "render": run_render,
        "copy": _copy,
    }
    actions[arguments.action](arguments)
    return 0


def _list(arguments: argparse.Namespace) -> None:
    from ragforge.api.prompts import list_prompts

    listed = list_prompts(settings_of(arguments).prompts.prompts_dir)
    if arguments.json:
        print(dumps(listed.to_dict()))
    else:
        show(listed.table())


def _show(arguments: argparse.Namespace) -> None:
    from ragforge.prompts import load_prompt

    prompt = load_prompt(arguments.name, settings_of(arguments).prompts.prompts_dir)
    print(f"# {prompt.name}, version {prompt.version}, sha256 {prompt.sha256}")
    show(f"# schema of the reply: {prompt.schema}\n")
    show(f"[system]\n{prompt.system.strip()}\n\n[user]\n{prompt.user.strip()}")


def _diff(arguments: argparse.Namespace) -> None:
    from ragforge.prompts import diff_override, diff_prompts

    folder = settings_of(arguments).prompts.prompts_dir
    if arguments.other is not None:
        differences = diff_prompts(arguments.name, arguments.other, folder)
    elif folder:
        differences = diff_override(arguments.name, folder)
    else:
        raise UsageError(
            "diff needs --prompts-dir DIR, to compare its prompt with the shipped one, or the "
            "name of a second prompt"
        )
    if differences:
        show(differences)
    else:
        say("no difference")


def _copy(arguments: argparse.Namespace) -> None:
    from ragforge.prompts import copy_prompt

    print(copy_prompt(arguments.name, arguments.to))
    say(f"edit it, raise its version, and give --prompts-dir {arguments.to} to use it")
