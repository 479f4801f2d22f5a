"""Compute measures from judgments and runs, per query and in the mean.

Every query with judgments counts: one that the run lacks scores 0, unless --only-retrieved leaves
it out. Judgments and runs are read in TREC format, as JSON Lines, JSON, CSV and BEIR folders, also
packed (.gz, .zst). Large run files are streamed.

With --dataset each run adds a line to the set's history.jsonl, which `ragforge history` reads. A
run made on other chunks than those of now is refused where it is named, and else left out.

--sample N measures N queries only, the same in every command with the same --seed, drawn from each
stratum (category, else difficulty, or --by FIELD) in proportion, and two at least. Means are those
of the whole set, each stratum by its weight, which is printed; "whole set" is the 95 % interval of
what the mean would be, were all of its queries asked. --interval is of queries like these, and
allows for the set being one choice of them too. --split takes one split. A run that was made for a
part of the queries is measured on that part, without any flag.

With --retriever the runs are made first: all retrievers and their queries at the same time. A
query on which a retriever fails has no value and is no 0; the mean gets bounds instead: [low, high]
is what it would be, had all failures come out worst, and best. It is no interval. Latencies
(p50, p95, p99) are those of a system under this load; --concurrency 1 asks one query at a time,
one retriever after the other, for the latency of each alone. A retriever is asked once a query and
given up after --timeout-s. Where one works on no query, the exit code is 4 behind the table of the
others; an earlier run of its name stays as it is and is not measured. So it is where one fails on
more than 5 % and an earlier run has more of the queries.

Examples:
  ragforge evaluate --qrels qrels.trec --run bm25.trec --run dense.trec -m nDCG@10 -m RR
  ragforge evaluate --dataset set/ --json --per-query
  ragforge evaluate --dataset set/ --retriever bm25 --retriever my_app.search:retriever
  ragforge evaluate --dataset set/ --retriever http://127.0.0.1:8000/search --concurrency 1
  ragforge evaluate --dataset set/ --run dense-50 --split test
  ragforge evaluate --dataset set/ --retriever my_app.search:retriever --sample 50 --seed 7
  ragforge evaluate --qrels qrels.trec --run run.trec -m "P(rel=2)@5" -m "RBP(p=0.9)" --interval
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import (
    add_calibrated,
    add_common,
    add_json,
    add_selection,
    calibration_of,
    choose_queries,
    is_calibrated,
    observed,
    refuse_calibrated,
    refuse_selection,
    settings_of,
)
from ragforge.cli.next_step import after_measuring
from ragforge.cli.output import dumps, show
from ragforge.cli.retrievers import (
    SECTIONS,
    add_retrievers,
    code_of,
    left_out,
    run_retrievers,
)
from ragforge.errors import UsageError
from ragforge.observe import Observer

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.evaluated import EvaluatedRun
    from ragforge.pipeline.evaluating import EvaluatedRuns

COMMON = (
    "--dataset",
    "--qrels",
    "--run",
    "--retriever",
    "--name",
    "-m",
    "-k",
    "--rel-threshold",
    "--sample",
    "--split",
    "--per-query",
    "--interval",
    "--concurrency",
    "--json",
)
"""Options of the short help, in its order."""


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """Add `--no-history`."""
    parser.add_argument(
        "--no-history",
        action="store_true",
        help="leave history.jsonl of the dataset as it is, rather than add a line for each run",
    )


def keep(
    arguments: argparse.Namespace,
    dataset: "Dataset",
    runs: "Sequence[EvaluatedRun]",
    observer: Observer,
) -> "list[EvaluatedRun]":
    """Add evaluations to the history unless told not to; return them as they were kept.

    What cannot be kept, or is of a version that is not published, is still shown: that it was not
    kept is said on stderr.
    """
    if arguments.no_history:
        return [*runs]
    from ragforge.pipeline.history import kept_in_history  # Its numpy is not for --help.

    kept, warning = kept_in_history(dataset, runs, observer)
    if warning:
        say(f"warning: {warning}")
    return kept


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="evaluate a dataset's runs")
    parser.add_argument("--qrels", type=Path, metavar="FILE", help="judgments")
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="FILE",
        help="run to evaluate, several may be given; with --dataset a run's name (default: all, "
        "or those of the retrievers)",
    )
    add_retrievers(parser)
    add_selection(parser)
    parser.add_argument("--per-query", action="store_true", help="values of each query too")
    parser.add_argument(
        "--only-retrieved",
        action="store_true",
        help="leave out queries that a run lacks, rather than count them as 0",
    )
    parser.add_argument(
        "--interval",
        action="store_true",
        help="95%% confidence interval of each mean over queries like these",
    )
    add_keeping(parser)
    _add_observers(parser)
    add_calibrated(parser)
    add_json(parser)
    add_common(parser, "evaluate", *SECTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if (arguments.dataset is None) == (arguments.qrels is None):
        raise UsageError("give either --dataset DIR, or --qrels FILE with --run FILE")
    if arguments.dataset is None:
        refuse_calibrated(arguments)
        of_files = _of_files(arguments)
        _print(of_files, arguments)
        after_measuring(arguments, list(of_files.scores))
        return 0
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.output_paths import check_outputs
    from ragforge.pipeline.evaluating import evaluate_dataset

    _require_folder(arguments)
    check_outputs({"--prometheus": arguments.prometheus}, {"--config": arguments.config})
    settings = settings_of(arguments)
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    with observed(arguments) as observer:
        made = run_retrievers(arguments, dataset, settings, observer, set(arguments.run))
        left = left_out(made)
        names = [*arguments.run, *(item.name for item in made if item.name not in left)]
        if made and not names:
            return code_of(made)
        only_retrieved = arguments.only_retrieved
        found = evaluate_dataset(dataset, names, settings.evaluate, only_retrieved=only_retrieved)
        if is_calibrated(arguments):
            from ragforge.pipeline.calibrating import with_levels

            found = with_levels(found, calibration_of(arguments, dataset))
        _tell_observers(arguments, keep(arguments, dataset, found.records, observer), observer)
    _print(found, arguments)
    after_measuring(arguments, list(found.scores))
    return code_of(made)


def _of_files(arguments: argparse.Namespace) -> "EvaluatedRuns":
    _require_dataset(arguments)
    refuse_selection(arguments)
    if arguments.retriever or arguments.name:
        raise UsageError("--retriever and --name go with --dataset DIR, which has the queries")
    if not arguments.run:
        raise UsageError("--qrels needs at least one --run FILE")
    paths = [Path(name) for name in arguments.run]
    settings = settings_of(arguments).evaluate
    only_retrieved = arguments.only_retrieved
    from ragforge.pipeline.evaluating import evaluate_files

    return evaluate_files(arguments.qrels, paths, settings, only_retrieved=only_retrieved)


def _print(evaluated: "EvaluatedRuns", arguments: argparse.Namespace) -> None:
    from ragforge.api.measured import MeasuredRuns, per_query_text

    found = MeasuredRuns(evaluated)
    if arguments.json:
        print(dumps(found.to_dict(per_query=arguments.per_query, interval=arguments.interval)))
    else:
        show(found.table(interval=arguments.interval))
        if arguments.per_query:
            show(f"\n{per_query_text(evaluated)}")
    for warning in found.warnings:
        say(f"warning: {warning}")


def _add_observers(parser: argparse.ArgumentParser) -> None:
    """Add `--observer` and `--prometheus`."""
    parser.add_argument(
        "--observer",
        action="append",
        default=[],
        metavar="NAME",
        help="with --dataset: tell each run and query to: otel (OpenTelemetry), events=FILE (JSON "
        "Lines), or module:attribute",
    )
    parser.add_argument(
        "--prometheus",
        type=Path,
        metavar="FILE",
        help="with --dataset: write gauges for node_exporter's textfile collector, which reads "
        "names that end in .prom",
    )


def _require_dataset(arguments: argparse.Namespace) -> None:
    """Refuse what needs a dataset where there is none.

    Raises:
        UsageError: Something is to be told.
    """
    if arguments.observer or arguments.prometheus is not None:
        raise UsageError("--observer and --prometheus go with --dataset DIR, which names the runs")


def _require_folder(arguments: argparse.Namespace) -> None:
    """Refuse a file for Prometheus whose folder is not there.

    Raises:
        UsageError: It is not: no collector would read a folder that was made by mistake.
    """
    path: Path | None = arguments.prometheus
    if path is not None and not path.parent.is_dir():
        raise UsageError(
            f"--prometheus {path}: there is no folder {path.parent}; expected the one that "
            "node_exporter's --collector.textfile.directory names"
        )


def _tell_observers(
    arguments: argparse.Namespace, evaluated: "Sequence[EvaluatedRun]", observer: Observer
) -> None:
    """Tell of runs that were measured, where that was asked for.

    Raises:
        DataError: The file cannot be written.
    """
    if arguments.observer:
        from ragforge.pipeline.observer_events import emit_evaluations

        emit_evaluations(evaluated, observer)
    if arguments.prometheus is not None:
        from ragforge.pipeline.observer_events import write_evaluations

        write_evaluations(arguments.prometheus, evaluated)
        if arguments.prometheus.suffix != ".prom":
            say(
                f"note: {arguments.prometheus.name}: node_exporter reads files whose names end in "
                ".prom only"
            )
