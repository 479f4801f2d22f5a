"""Judge more pairs than one machine should: cut them, run the parts anywhere, merge the results.

  plan     cut a file of pairs into shards, and decide what all of them must agree on; or a corpus
           of many million chunks, which is looked through before queries are made of it
  run      work shards off: all that are free, or one; any number of workers, on any machines that
           share the folder. What a killed worker leaves is taken over
  status   how many shards are done, in work and left, and what was spent
  merge    write the file that `ragforge judge --pairs` would have written, or the survey that
           `ragforge generate` would have made

A shard has a call store of its own: what was bought is not bought again. A limit such as
--max-calls holds over all workers together.

Examples:
  ragforge shard plan --pairs pairs.jsonl --into work/ --model gpt-5-mini --max-cost-usd 50
  ragforge shard run work/
  ragforge shard run work/ --index 17
  ragforge shard status work/ --json
  ragforge shard merge work/ --out judged.jsonl
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    observed,
    relieve_collector,
    run_async,
    settings_of,
)
from ragforge.cli.output import dumps, show
from ragforge.cli.parser import count
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import plural

if TYPE_CHECKING:
    from ragforge.observe import Observer
    from ragforge.pipeline.shards.plan import ShardFolder, ShardPlan
    from ragforge.pipeline.shards.progress import ShardProgress

_PAIRS_PER_SHARD = 2000
_CHUNKS_PER_SHARD = 50_000
_FEW = 10
"""Shards in work that are listed."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="plan|run|status|merge")
    _configure_plan(actions.add_parser("plan", help="cut the work into shards", description=_PLAN))
    _configure_run(_add(actions, "run", "work shards off", _RUN))
    add_json(_add(actions, "status", "how far the work is", _STATUS))
    merge = _add(actions, "merge", "put the judgments together", _MERGE)
    merge.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the judgments; of chunks, the dataset's folder",
    )
    add_json(merge)


def _configure_plan(plan: argparse.ArgumentParser) -> None:
    source = plan.add_mutually_exclusive_group(required=True)
    source.add_argument("--pairs", type=Path, metavar="FILE", help="what to judge")
    source.add_argument(
        "--chunks", type=Path, metavar="FILE", help="a chunks.jsonl that is to be looked through"
    )
    plan.add_argument("--into", type=Path, required=True, metavar="DIR", help="the shards' folder")
    plan.add_argument(
        "--pairs-per-shard",
        type=count,
        default=_PAIRS_PER_SHARD,
        metavar="N",
        help=f"a shard is closed with the query that reaches it (default {_PAIRS_PER_SHARD})",
    )
    plan.add_argument(
        "--chunks-per-shard",
        type=count,
        default=_CHUNKS_PER_SHARD,
        metavar="N",
        help=f"of --chunks (default {_CHUNKS_PER_SHARD})",
    )
    plan.add_argument(
        "--workers",
        type=count,
        metavar="W",
        help="workers that share --concurrency and the limits a minute (default: as planned "
        "before, else 1)",
    )
    plan.add_argument(
        "--dry-run",
        "--estimate",
        action="store_true",
        help="print calls, tokens and money that all shards would take, and write nothing",
    )
    _add_observer(plan)
    add_json(plan)
    add_common(plan, "judge", *PAID, without=("depth", "split"))


def _configure_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("--index", type=int, metavar="N", help="this shard only (default: all)")
    run.add_argument(
        "--on",
        choices=("this-machine", "ray"),
        help="start as many workers as the plan has (`shard plan --workers`), and start again what "
        "is killed: on this machine, or by Ray, where RAY_ADDRESS says",
    )
    run.add_argument("--base-url", metavar="URL", help="where this worker asks a named endpoint")
    run.add_argument(
        "--retry-failed", action="store_true", help="ask again where a reply was no use"
    )
    _add_observer(run)
    run.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


_PLAN = """\
Cut the pairs of a file into shards of whole queries. The folder holds all that a worker needs but
the API key: pairs, settings, prompts, examples. Planned again for the same work, limits, speed and
the address of a named endpoint change, and what is done stays. A limit that is left out then holds
on. With --batch the first 400 pairs are judged now, to decide for all shards whether the place in a
batch moves grades.

With --chunks a corpus is cut that is looked through for near-duplicates, topics and an index, which
asks no model; only --seed matters. `shard merge work/ --out my-set` puts the result among the own
files of the dataset that has these chunks, where `generate`, `judge` and `refresh` find it.

Examples:
  ragforge shard plan --pairs pairs.jsonl --into work/ --model gpt-5-mini --dry-run
  ragforge shard plan --pairs pairs.jsonl --into work/ --model m --endpoint-id prod \\
      --base-url http://10.0.0.7:8000/v1 --workers 8 --concurrency 256
  ragforge shard plan --chunks my-set/chunks.jsonl --into work/ --workers 8
"""
_RUN = """\
Work shards off, one after the other, until all are done: those that other workers are at are waited
for, and taken over where their worker is gone. Start as many workers as you like.

With --on they are started for you, and started again when they are killed.

Examples:
  ragforge shard run work/
  ragforge shard run work/ --on this-machine
  ragforge shard run work/ --index "$SLURM_ARRAY_TASK_ID"
  ragforge shard run work/ --on ray
"""
_STATUS = """\
Tell how many shards are done, in work and left, which workers are at them, and what was spent.

Examples:
  ragforge shard status work/ --json
"""
_MERGE = """\
Write the judgments of all shards into one file, the one that `ragforge judge --pairs` writes. It is
refused while a shard is missing, was changed, or was judged in another way.

Examples:
  ragforge shard merge work/ --out judged.jsonl
  ragforge shard merge work/ --out my-set
"""


def _add(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    what: str,
    text: str,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=what, description=text)
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `shard plan` made")
    return parser


def _add_observer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--observer", action="append", default=[], metavar="NAME", help="as for `ragforge judge`"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.pipeline.shards.plan import ShardFolder

    if arguments.action == "plan":
        return _plan(arguments, ShardFolder(arguments.into))
    folder = ShardFolder(arguments.folder)
    if arguments.action == "run":
        return _run(arguments, folder)
    if arguments.action == "status":
        return _status(arguments, folder)
    return _merge(arguments, folder)


def _plan(arguments: argparse.Namespace, folder: "ShardFolder") -> int:
    from ragforge.pipeline.job import Job
    from ragforge.pipeline.shards.planning import plan_pairs

    settings = settings_of(arguments)
    if arguments.chunks is not None:
        return _plan_survey(arguments, folder)
    if arguments.dry_run:
        return _estimate(arguments)
    with observed(arguments) as observer:
        plan = run_async(
            plan_pairs(
                arguments.pairs,
                folder,
                Job(settings, observer),
                pairs_per_shard=arguments.pairs_per_shard,
                workers=arguments.workers,
            )
        )
    if arguments.json:
        print(dumps({"shards": len(plan.shards), "pairs": plan.size, "batched": plan.batched}))
        return 0
    say(f"{plan.size:,} pairs in {len(plan.shards):,} shards, to be judged by {plan.asked}")
    return _next(folder)


def _plan_survey(arguments: argparse.Namespace, folder: "ShardFolder") -> int:
    from ragforge.pipeline.shards.survey import plan_survey

    if arguments.dry_run:
        raise UsageError("--dry-run: looking through --chunks asks no model")
    plan = plan_survey(
        arguments.chunks,
        folder,
        settings_of(arguments),
        size=arguments.chunks_per_shard,
        workers=arguments.workers,
    )
    if arguments.json:
        print(dumps({"shards": len(plan.shards), "chunks": plan.size}))
        return 0
    say(f"{plan.size:,} chunks in {len(plan.shards):,} shards")
    return _next(folder)


def _next(folder: "ShardFolder") -> int:
    say(f"next: ragforge shard run {folder.path}  # as often, and on as many machines, as you like")
    print(folder.plan_path)
    return 0


def _estimate(arguments: argparse.Namespace) -> int:
    """Print what judging would take; nothing stays on the disk."""
    from tempfile import TemporaryDirectory

    from ragforge.api.judged import Judged
    from ragforge.cli.output import print_result
    from ragforge.pipeline.job import Job, Mode
    from ragforge.pipeline.judge.judging import judge_file

    with observed(arguments) as observer, TemporaryDirectory() as place:
        job = Job(settings_of(arguments), observer, Mode(dry_run=True))
        result = run_async(judge_file(arguments.pairs, Path(place) / "judged.jsonl", job))
    print_result(Judged(result), as_json=arguments.json)
    return 0


def _run(arguments: argparse.Namespace, folder: "ShardFolder") -> int:
    from ragforge.pipeline.shards.running import with_address

    plan = folder.read_plan()
    if arguments.base_url is not None:
        plan = with_address(plan, arguments.base_url)
    indexes = range(len(plan.shards)) if arguments.index is None else [arguments.index]
    if arguments.index is not None and not 0 <= arguments.index < len(plan.shards):
        raise UsageError(
            f"--index {arguments.index}: the plan has shards 0 to {len(plan.shards) - 1}"
        )
    relieve_collector()
    with observed(arguments) as observer:
        if arguments.on is not None:
            return _run_by_several(arguments, folder, plan, indexes, observer)
        mine = run_async(_worked_off(arguments, folder, plan, indexes, observer))
    say(f"{len(mine)} of {len(indexes)} shards worked off here; the others were done elsewhere")
    return 0


def _run_by_several(
    arguments: argparse.Namespace,
    folder: "ShardFolder",
    plan: "ShardPlan",
    indexes: "range | list[int]",
    observer: "Observer",
) -> int:
    from ragforge.pipeline.job import Mode
    from ragforge.pipeline.shards.running import told_once

    if arguments.on == "ray":
        from ragforge.pipeline.shards.on_ray import run_on_ray as run_on
    else:
        from ragforge.pipeline.shards.on_this_machine import run_on_this_machine as run_on

    mode = Mode(retry_failed=arguments.retry_failed)
    count = run_on(folder, plan, indexes, mode, told_once(observer))
    workers = plural(min(plan.workers, len(indexes)), "worker")
    say(f"{count} of {plural(len(indexes), 'shard')} worked off by {workers}")
    return 0


async def _worked_off(
    arguments: argparse.Namespace,
    folder: "ShardFolder",
    plan: "ShardPlan",
    indexes: "range | list[int]",
    observer: "Observer",
) -> list[int]:
    from ragforge.pipeline.job import Job, Mode
    from ragforge.pipeline.shards.running import ShardRun, told_once, worker_job

    mode = Mode(retry_failed=arguments.retry_failed)
    job = worker_job(Job(folder.settings(plan), told_once(observer), mode), plan)
    return await ShardRun(folder, plan, job).run(indexes)


def _status(arguments: argparse.Namespace, folder: "ShardFolder") -> int:
    from ragforge.pipeline.shards.progress import progress_of

    found = progress_of(folder)
    if arguments.json:
        spent = found.spent.model_dump() if found.spent else None
        print(dumps({**asdict(found), "left": found.left, "spent": spent}))
    else:
        show("\n".join(_status_lines(found)))
    return 0


def _status_lines(found: "ShardProgress") -> list[str]:
    lines = [
        f"shards  {found.done:,} of {found.shards:,} done, {len(found.running):,} in work, "
        f"{found.left:,} left",
        f"done    {found.succeeded:,} of {found.size:,} {found.kind}"
        + (f" by {found.asked}, {found.failed:,} failed" if found.asked else ""),
    ]
    lines += [
        f"        {index} by {worker}" for index, worker in list(found.running.items())[:_FEW]
    ]
    if found.spent is not None:
        cost = found.spent.cost_usd
        price = "price unknown" if cost is None else f"{cost:.4f} USD"
        lines.append(f"spent   {found.spent.calls:,} calls, {price}, but for shards in work")
    for name, amount in found.taken.items():
        lines.append(f"budget  --{name.replace('_', '-')}: {amount:,g} spent or held by workers")
    return lines


def _merge(arguments: argparse.Namespace, folder: "ShardFolder") -> int:
    from ragforge.api.judged import Judged, agreement_text, check_place, judging_lines
    from ragforge.cli.output import print_result
    from ragforge.pipeline.shards.merging import merge_shards

    if folder.read_plan().kind == "chunks":
        return _merge_survey(arguments, folder)
    check_place(arguments.out, None, "--out")
    result = merge_shards(folder, arguments.out)
    if arguments.json:
        print_result(Judged(result), as_json=True)
        return 0
    if result.agreement is not None:
        show(f"{agreement_text(result.agreement)}\n")
    for line in judging_lines(result):
        say(line)
    print(arguments.out)
    return 0


def _merge_survey(arguments: argparse.Namespace, folder: "ShardFolder") -> int:
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.shards.survey import merge_survey_shards

    place = merge_survey_shards(folder, Dataset(arguments.out))
    if arguments.json:
        print(dumps({"survey": str(place)}))
        return 0
    say(f"{arguments.out} finds what is known of its chunks there")
    print(place)
    return 0
