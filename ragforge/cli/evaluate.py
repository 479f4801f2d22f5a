"""Compute measures from judgments and runs, per query and in the mean.

Every query with judgments counts: one that the run lacks scores 0, unless --only-retrieved leaves
it out. Judgments and runs are read in TREC format, as JSON Lines, JSON, CSV and BEIR folders, also
packed (.gz, .zst). Large run files are streamed.

Examples:
  ragforge evaluate --qrels qrels.trec --run bm25.trec --run dense.trec -m nDCG@10 -m RR
  ragforge evaluate --dataset set/ --json --per-query
  ragforge evaluate --qrels qrels.trec --run run.trec -m "P(rel=2)@5" -m "RBP(p=0.9)" --interval
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from statistics import median

from ragforge.cli.flags import add_common, add_json, dumps, settings_of
from ragforge.cli.talk import complain
from ragforge.errors import UsageError
from ragforge.measures import Scores, Summary
from ragforge.pipeline.evaluating import Evaluation, evaluate_dataset, evaluate_files
from ragforge.report.shown import MISSING, duration, number
from ragforge.report.table import render_table

DIGITS = 4
LEVEL = 0.95
"""Of confidence intervals."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="evaluate a dataset's runs")
    parser.add_argument("--qrels", type=Path, metavar="FILE", help="judgments")
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="FILE",
        help="run to evaluate, several may be given; with --dataset a run's name (default: all)",
    )
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
    add_json(parser)
    add_common(parser, "evaluate")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    found = _evaluate(arguments)
    if arguments.json:
        print(dumps(_json(found, per_query=arguments.per_query, interval=arguments.interval)))
    else:
        print(table_of(found, interval=arguments.interval))
        if arguments.per_query:
            print(f"\n{_per_query(found)}")
    for name, scores in found.scores.items():
        for warning in scores.warnings:
            complain(f"warning: {name}: {warning}")
    return 0


def table_of(found: Evaluation, *, interval: bool = False) -> str:
    """Return the measures by runs, with what one must know to read them."""
    scores = list(found.scores.values())
    first = scores[0]
    rows = [[name, *(_mean(item.summary(name)) for item in scores)] for name in found.measures]
    if interval:
        for row in rows:
            row[1:] = [
                f"{mean} {_interval(item, row[0])}"
                for mean, item in zip(row[1:], scores, strict=True)
            ]
    rows.append(["queries", *(str(len(item.query_ids)) for item in scores)])
    if any(item.summary(first.measures[0]).n_failed for item in scores):
        failed = [str(item.summary(first.measures[0]).n_failed) for item in scores]
        rows.append(["with failures", *failed])
    rows.append(["without a hit", *(str(len(item.without_hit)) for item in scores)])
    rows.append(["perfect", *(str(len(item.perfect)) for item in scores)])
    rows.append(["median first relevant rank", *map(_median_rank, scores)])
    if found.latencies:
        latencies = [found.latencies.get(name) for name in found.scores]
        medians = [item.median_s if item else None for item in latencies]
        tails = [item.p95_s if item else None for item in latencies]
        rows.append(["median latency", *map(_latency, medians)])
        rows.append(["p95 latency", *map(_latency, tails)])
    note = f"relevant: grade >= {found.rel_threshold}"
    if interval:
        note += f"; (low-high): {LEVEL:.0%} confidence interval over queries, BCa bootstrap"
    if found.n_unanswerable:
        note += f"; {found.n_unanswerable} unanswerable queries left out"
    if found.judged_by:
        note += f"; judged by {', '.join(dict.fromkeys(found.judged_by))}"
    return f"{render_table(['measure', *found.scores], rows)}\n{note}"


def _evaluate(arguments: argparse.Namespace) -> Evaluation:
    settings = settings_of(arguments).evaluate
    only_retrieved = arguments.only_retrieved
    if (arguments.dataset is None) == (arguments.qrels is None):
        raise UsageError("give either --dataset DIR, or --qrels FILE with --run FILE")
    if arguments.dataset is not None:
        from ragforge.files.opening import open_dataset

        dataset = open_dataset(arguments.dataset)
        return evaluate_dataset(dataset, arguments.run, settings, only_retrieved=only_retrieved)
    if not arguments.run:
        raise UsageError("--qrels needs at least one --run FILE")
    paths = [Path(name) for name in arguments.run]
    return evaluate_files(arguments.qrels, paths, settings, only_retrieved=only_retrieved)


def _json(found: Evaluation, *, per_query: bool, interval: bool) -> dict[str, object]:
    runs = {}
    for name, scores in found.scores.items():
        latency = found.latencies.get(name)
        told = scores.to_dict()
        told["measures"] = {
            measure: scores.summary(measure)._asdict()
            | ({"interval": asdict(scores.interval(measure, LEVEL))} if interval else {})
            for measure in found.measures
        }
        if per_query:
            told["per_query"] = {
                query_id: {measure: values[measure] for measure in found.measures}
                for query_id, values in scores.per_query.items()
            }
        runs[name] = {
            **told,
            "first_relevant_rank": scores.first_relevant_rank,
            "latency_s": asdict(latency) if latency else None,
        }
    return {
        "rel_threshold": found.rel_threshold,
        "judged_by": list(found.judged_by),
        "runs": runs,
    }


def _per_query(found: Evaluation) -> str:
    measures = found.measures
    rows = [
        [query_id, name, *(number(values[measure], DIGITS) for measure in measures)]
        for name, scores in found.scores.items()
        for query_id, values in scores.per_query.items()
    ]
    return render_table(["query", "run", *measures], sorted(rows))


def _mean(summary: Summary) -> str:
    shown = number(summary.mean, DIGITS)
    if not summary.n_failed:
        return shown
    return f"{shown} [{number(summary.low, DIGITS)}, {number(summary.high, DIGITS)}]"


def _interval(scores: Scores, measure: str) -> str:
    found = scores.interval(measure, LEVEL)
    if found.low is None:
        return f"({MISSING})"
    return f"({number(found.low, DIGITS)}-{number(found.high, DIGITS)})"


def _median_rank(scores: Scores) -> str:
    ranks = [rank for rank in scores.first_relevant_rank.values() if rank is not None]
    return f"{median(ranks):g}" if ranks else MISSING


def _latency(seconds: float | None) -> str:
    return MISSING if seconds is None else duration(seconds)
