"""`ragforge judge --complete`: judge what probes find, whatever runs there are."""

import argparse
import asyncio

from ragforge.cli.flags import dumps
from ragforge.cli.paid import job_of, observed, print_estimate
from ragforge.cli.talk import complain, show
from ragforge.config import Settings
from ragforge.evaluating.completion import CompletionSummary
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.complete.completing import Completion, complete_whole
from ragforge.pipeline.holes import describe_holes, holes_of
from ragforge.report.completion import completion_json, completion_text


def complete(arguments: argparse.Namespace, dataset: Dataset, settings: Settings) -> int:
    """Complete the pools of a dataset, and print what came of it."""
    with observed(arguments) as observer:
        done = asyncio.run(complete_whole(dataset, job_of(arguments, settings, observer)))
    if done.estimate is not None:
        print_estimate(done.estimate, as_json=arguments.json)
        return 0
    assert done.summary is not None
    if arguments.json:
        print(dumps(_json(done, done.summary)))
        return 0
    show(completion_text(done.summary))
    for name, count in done.failed_probes.items():
        complain(f"probe {name} failed for {count:,} queries (see failures.jsonl)")
    judging = done.judging
    complain(
        f"judge {judging.judge}: {judging.n_judged:,} pairs judged now, {judging.n_failed:,} failed"
    )
    for line in filter(None, (describe_holes(holes, dataset) for holes in holes_of(dataset))):
        complain(line)
    print(dataset.files / "pool.jsonl")
    return 0


def _json(done: Completion, summary: CompletionSummary) -> dict[str, object]:
    judging = done.judging
    return {
        "judge": judging.judge,
        "judged": judging.n_judged,
        "failed": judging.n_failed,
        "failed_probes": dict(done.failed_probes),
        **completion_json(summary),
    }
