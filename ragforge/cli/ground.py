"""Check that answers say only what their retrieved chunks say; no reference answer is needed.

Answers of live traffic come as JSON Lines {query_id, query, answer, contexts}, contexts being texts
or {chunk_id, text}; with --dataset, answers name chunks of the dataset. Each is taken apart into
claims, and each claim needs a quote from a chunk. Citations such as [2], [c12] or (source: c12) are
looked up: a chunk is cited rightly where it says a claim of the sentence.

Examples:
  ragforge ground --answers traffic.jsonl --out grounded.jsonl --model gpt-5-mini
  ragforge ground --dataset set/ --system-name my-rag --out grounded.jsonl --model gpt-5-mini
"""

import argparse
from functools import partial
from pathlib import Path

from ragforge.api.progress import say
from ragforge.cli.batch_api import add_batch_api, check_batch_api, done
from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    add_mode,
    job_of,
    observed,
    settings_of,
)
from ragforge.cli.next_step import say_next
from ragforge.cli.output import print_result
from ragforge.errors import UsageError

COMMON = (
    "--dataset",
    "--answers",
    "--model",
    "--base-url",
    "--dry-run",
    "--max-cost-usd",
    "--json",
)
"""Options of the short help, in its order."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--answers", type=Path, metavar="FILE", help="answers with their contexts")
    source.add_argument(
        "--system-name", metavar="NAME", help="check a system's answers in the dataset"
    )
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="where the chunks are that answers name"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where groundings are written"
    )
    add_batch_api(parser)
    add_mode(parser)
    add_json(parser)
    add_common(parser, *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.answered import Grounded, grounding_lines
    from ragforge.pipeline.batch_job import BatchJob
    from ragforge.pipeline.grounding import ground_system, ground_traffic
    from ragforge.pipeline.job import OutputFile

    settings = settings_of(arguments)
    check_batch_api(arguments)
    _check(arguments)
    if arguments.dataset is None:
        ground = partial(ground_traffic, arguments.answers, arguments.out)
        store = OutputFile.beside(arguments.out).store_path
    else:
        from ragforge.files.set.opening import open_dataset

        answers, dataset = (
            arguments.answers or arguments.system_name,
            open_dataset(arguments.dataset),
        )
        ground = partial(ground_system, dataset, answers, arguments.out)
        store = dataset.store_path
    with observed(arguments) as observer:
        job = job_of(arguments, settings, observer)
        result = done(arguments, BatchJob(job, (settings.model,), store, ground))
    if result is None:
        return 0
    if arguments.json or result.summary is None:
        found = Grounded(result.grounder, result.summary, counted=result.estimate)
        print_result(found, as_json=arguments.json)
        return 0
    for line in grounding_lines(result.grounder, result.summary):
        say(line)
    print(arguments.out)
    if arguments.dataset is not None:
        words = ["report", "--dataset", str(arguments.dataset), "--out", "report.html"]
        say_next(arguments, words, "all answers on a page")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    from ragforge.files.set.output_paths import refuse_to_replace
    from ragforge.records import Grounding

    if arguments.system_name is not None and arguments.dataset is None:
        raise UsageError("--system-name goes with --dataset DIR")
    answers = arguments.answers
    if arguments.system_name is not None:
        answers = arguments.dataset / "answers" / f"{arguments.system_name}.jsonl"
    if arguments.out.exists() and answers.exists() and arguments.out.samefile(answers):
        raise UsageError(f"--out {arguments.out}: is the file of answers itself; name another")
    refuse_to_replace(arguments.out, Grounding)
