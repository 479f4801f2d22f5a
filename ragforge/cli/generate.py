r"""Make queries with answers and evidence from documents or chunks.

A plan comes first, without a call: so many queries of each type and difficulty, spread over all
documents. Each candidate must pass rules (its quote stands in the text, the question stands on
its own, nothing like it is in the set) and, with a model, checks: is it clear without the text, is
it answered from the evidence alone, does it need each of its hops, is it really unanswerable. Then
the chunks that could be relevant are pooled and judged, so that more than the source is known.

Without a model, queries are drawn from the text by rule: enough for a first run and for CI. The
same command goes on where an earlier run stopped; a larger -n adds to the set.

Examples:
  ragforge generate --documents docs/ -n 20 --out set/
  ragforge generate --chunks chunks.jsonl -n 50 --out set/ \
      --model qwen3 --base-url http://127.0.0.1:8080/v1 --checker gemma4
  ragforge generate --documents docs/ -n 50 --out set/ --model gpt-5-mini --dry-run
  ragforge generate --rederive --documents docs/ --max-chars 1000 --out set/
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    add_mode,
    add_verbose,
    job_of,
    observed,
    run_async,
    settings_of,
)
from ragforge.cli.next_step import after_queries
from ragforge.cli.output import dumps, print_estimate
from ragforge.config import Settings
from ragforge.errors import BudgetError, EndpointError, ShortfallError, UsageError

if TYPE_CHECKING:
    from ragforge.pipeline.generation.generating import GenerationResult
    from ragforge.pipeline.generation.source import ChunkSource

COMMON = (
    "--documents",
    "--chunks",
    "--out",
    "-n",
    "--model",
    "--base-url",
    "--checker",
    "--language",
    "--types",
    "--like",
    "--max-chars",
    "--dry-run",
    "--max-cost-usd",
    "--rederive",
    "--json",
)
"""Options of the short help, in its order."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--documents",
        nargs="+",
        action="extend",
        metavar="DOCS",
        help="files, folders, git:REPOSITORY@REVISION, sql:URL#QUERY or addresses such as s3://…",
    )
    source.add_argument("--chunks", type=Path, metavar="FILE", help="ready-made chunks")
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="directory of the dataset"
    )
    parser.add_argument(
        "--rederive",
        action="store_true",
        help="generate nothing: put these chunks under the set, and look its evidence up in them",
    )
    add_mode(parser)
    add_verbose(parser)
    add_json(parser)
    add_common(parser, "generate", "pool", "chunk", *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    settings = settings_of(arguments)
    with observed(arguments) as observer:
        from ragforge.pipeline.generation.source import ChunkSource

        source = ChunkSource(arguments.documents or [], arguments.chunks, settings.chunk, observer)
        if arguments.rederive and arguments.dry_run:
            raise UsageError(
                "--rederive asks nothing, so that it has no dry run; copy the set first"
            )
        if arguments.rederive:
            return _rederive(arguments, source)
        return _generate(arguments, source, settings)


def _generate(arguments: argparse.Namespace, source: "ChunkSource", settings: Settings) -> int:
    from ragforge.pipeline.generation.generating import generate_dataset
    from ragforge.report.generation import shortfall

    try:
        result = run_async(
            generate_dataset(arguments.out, source, job_of(arguments, settings, source.observer))
        )
    except (BudgetError, EndpointError):
        _print_stopped(arguments)
        raise
    if result.report is None:
        print_estimate(result.estimate or {}, as_json=arguments.json)
        return 0
    short = shortfall(result.report, result.generated.gave_up)
    if arguments.json:
        print(dumps({**_json(result), "shortfall": short or None}))
    elif result.report.n_accepted:
        _print_result(result, verbose=arguments.verbose)
        print(arguments.out)
        after_queries(arguments, result.dataset)
    if short:
        say(f"ragforge: error: {arguments.out}: {short}")
        return ShortfallError.exit_code
    return 0


def _print_stopped(arguments: argparse.Namespace) -> None:
    """Print how far a run came before it was stopped: it tells whether going on is worth it."""
    from ragforge.files.set.dataset import Dataset
    from ragforge.report.generation import stopped_line

    report = Dataset(arguments.out).generation()
    if report is not None and report.n_accepted and not arguments.json:
        say(f"{arguments.out}: {stopped_line(report)}")


def _rederive(arguments: argparse.Namespace, source: "ChunkSource") -> int:
    from ragforge.api.outcomes import Rederived
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.rederiving import rederive_dataset

    dataset = open_dataset(arguments.out)
    with source.prepared(dataset.store_path.parent) as chunks:
        found = rederive_dataset(dataset, chunks)
    made = Rederived(found)
    if arguments.json:
        print(dumps(made.to_dict()))
        return 0
    for line in made.table().split("\n"):
        say(line)
    print(arguments.out)
    return 0


def _json(result: "GenerationResult") -> dict[str, object]:
    assert result.report is not None
    from ragforge.report.generation import completion_json

    summary = result.completion.summary if result.completion else None
    return {
        "dataset": str(result.dataset.path),
        **result.report.model_dump(),
        "failed": len(result.generated.failures),
        "completion": completion_json(summary) if summary else None,
        "spent": result.dataset.manifest.spent.model_dump(),
    }


def _print_result(result: "GenerationResult", *, verbose: bool) -> None:
    from ragforge.report.generation import generation_summary, generation_text, spent_line

    assert result.report is not None
    spent = result.dataset.manifest.spent
    if verbose:
        say(generation_text(result.report))
        say(spent_line(spent, result.report.n_accepted))
        return
    for line in generation_summary(result.report, spent, str(result.dataset.files / "README.md")):
        say(line)
