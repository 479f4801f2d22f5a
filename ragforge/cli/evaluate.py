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
others; an earlier run of its name stays as it is and is not measured.

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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median

from ragforge.cli.flags import add_common, add_json, dumps, settings_of
from ragforge.cli.observers import add_observers, require_dataset, require_folder, tell
from ragforge.cli.paid import observed
from ragforge.cli.retrievers import (
    SECTIONS,
    add_retrievers,
    code_of,
    left_out,
    run_retrievers,
)
from ragforge.cli.selecting import add_selection, choose_queries, refuse_selection
from ragforge.cli.talk import complain, show
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import MISSING, duration, number, one_line, plural
from ragforge.evaluating.graded_by import graded_json, graded_line
from ragforge.evaluating.judgments import LABELS_IN_WORDS
from ragforge.evaluating.patterns import patterns
from ragforge.evaluating.runs import Latency
from ragforge.evaluating.selection import Part, selection_json
from ragforge.evaluating.text_table import render_table
from ragforge.files.set.dataset import Dataset
from ragforge.measures import Scores, Summary, parse_measure
from ragforge.measures.strata import weighted_median
from ragforge.observe import Observer
from ragforge.pipeline.evaluated import EvaluatedRun
from ragforge.pipeline.evaluating import EvaluatedRuns, evaluate_dataset, evaluate_files

DIGITS = 4
_SHOWN = 3
LEVEL = 0.95
"""Of confidence intervals."""
WHOLE_SET = "whole set"
"""Label of the interval of what the whole set's mean would be."""


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """Add `--no-history`."""
    parser.add_argument(
        "--no-history",
        action="store_true",
        help="leave history.jsonl of the dataset as it is, rather than add a line for each run",
    )


def keep(
    arguments: argparse.Namespace,
    dataset: Dataset,
    runs: Sequence[EvaluatedRun],
    observer: Observer,
) -> list[EvaluatedRun]:
    """Add evaluations to the history unless told not to; return them as they were kept.

    A dataset that cannot be written is no reason to hold back what was measured on it: that it was
    not kept is said on stderr.
    """
    if arguments.no_history:
        return [*runs]
    from ragforge.pipeline.history import keep_evaluations  # Its numpy is not for --help.

    try:
        kept = keep_evaluations(dataset, runs, observer)
    except DataError as error:
        complain(f"warning: not kept in the history: {error}")
        return [*runs]
    return [
        replace(run, baseline=run.baseline.model_copy(update={"evaluation": evaluation}))
        for run, evaluation in zip(runs, kept, strict=True)
    ]


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
    add_observers(parser)
    add_json(parser)
    add_common(parser, "evaluate", *SECTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if (arguments.dataset is None) == (arguments.qrels is None):
        raise UsageError("give either --dataset DIR, or --qrels FILE with --run FILE")
    if arguments.dataset is None:
        _print(_of_files(arguments), arguments)
        return 0
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.output_paths import check_outputs

    require_folder(arguments)
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
        tell(arguments, keep(arguments, dataset, found.records, observer), observer)
    _print(found, arguments)
    return code_of(made)


def _of_files(arguments: argparse.Namespace) -> EvaluatedRuns:
    require_dataset(arguments)
    refuse_selection(arguments)
    if arguments.retriever or arguments.name:
        raise UsageError("--retriever and --name go with --dataset DIR, which has the queries")
    if not arguments.run:
        raise UsageError("--qrels needs at least one --run FILE")
    paths = [Path(name) for name in arguments.run]
    settings = settings_of(arguments).evaluate
    only_retrieved = arguments.only_retrieved
    return evaluate_files(arguments.qrels, paths, settings, only_retrieved=only_retrieved)


def _print(evaluated: EvaluatedRuns, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(dumps(_json(evaluated, per_query=arguments.per_query, interval=arguments.interval)))
    else:
        show(table_of(evaluated, interval=arguments.interval))
        if arguments.per_query:
            show(f"\n{_per_query(evaluated)}")
    for name, scores in evaluated.scores.items():
        for warning in scores.warnings:
            complain(f"warning: {name}: {warning}")
    for warning in evaluated.warnings:
        complain(f"warning: {warning}")


def table_of(evaluated: EvaluatedRuns, *, interval: bool = False) -> str:
    """Return who graded, the measures by runs, and what one must know to read them."""
    scores = list(evaluated.scores.values())
    first = scores[0]
    rows = list(_mean_rows(evaluated, interval=interval))
    rows.append(["queries", *(str(len(item.query_ids)) for item in scores)])
    if any(item.summary(first.measures[0]).n_failed for item in scores):
        failed = [str(item.summary(first.measures[0]).n_failed) for item in scores]
        rows.append(["with failures", *failed])
    rows.append(["without a hit", *(str(len(item.without_hit)) for item in scores)])
    rows.append(["perfect", *(str(len(item.perfect)) for item in scores)])
    rows.append(["median first relevant rank", *map(_median_rank, scores)])
    rows += _latency_rows(evaluated)
    notes = [_note(evaluated, interval=interval), *_warnings(evaluated)]
    table = render_table(["measure", *evaluated.scores], rows)
    return "\n".join([graded_line(evaluated.graded_by), table, *notes, *_selections(evaluated)])


def _mean_rows(evaluated: EvaluatedRuns, *, interval: bool) -> Iterator[list[str]]:
    for name in evaluated.measures:
        means = [_mean(item.summary(name)) for item in evaluated.scores.values()]
        if interval:
            ends = [_interval(item, name) for item in evaluated.scores.values()]
            means = [f"{mean} {of}" for mean, of in zip(means, ends, strict=True)]
        yield [name, *means]
        if evaluated.is_sampled:
            yield [
                f"  {WHOLE_SET}",
                *(_set_interval(item, name) for item in evaluated.scores.values()),
            ]


def _selections(evaluated: EvaluatedRuns) -> Iterator[str]:
    """Yield which queries runs were measured on, where that is not all, one time for each part."""
    of_part: dict[str, list[str]] = {}
    for record in evaluated.records:
        if record.chosen is not None:
            measured = frozenset(record.scores.query_ids)
            part = Part(record.chosen, record.scores.design, measured)
            of_part.setdefault("\n".join(part.lines), []).append(record.measured.name)
    for text, names in of_part.items():
        yield f"{', '.join(names)}: {text}"
    if evaluated.is_sampled:
        yield (
            f"{WHOLE_SET}: {LEVEL:.0%} confidence interval of the mean, were all of its queries "
            "asked; --interval gives that over queries like these"
        )


def _latency_rows(found: EvaluatedRuns) -> list[list[str]]:
    if not found.latencies:
        return []
    latencies = [found.latencies.get(name) for name in found.scores]
    medians = [item.median_s if item else None for item in latencies]
    tails = [item.p95_s if item else None for item in latencies]
    ends = [item.p99_s if item else None for item in latencies]
    means = [item.mean_s if item else None for item in latencies]
    return [
        ["mean latency", *map(_latency, means)],
        ["p50 latency", *map(_latency, medians)],
        ["p95 latency", *map(_latency, tails)],
        ["p99 latency", *map(_latency, ends)],
    ]


def _note(evaluated: EvaluatedRuns, *, interval: bool) -> str:
    note = evaluated.reading or f"relevant: grade >= {evaluated.rel_threshold}"
    if evaluated.labels:
        note += f"; {LABELS_IN_WORDS[evaluated.labels]}"
    if evaluated.n_by_document:
        note += f"; by documents: {plural(evaluated.n_by_document, 'query', 'queries')}"
    if interval:
        note += f"; (low-high): {LEVEL:.0%} confidence interval over queries"
    if evaluated.n_unanswerable:
        note += f"; {evaluated.n_unanswerable} unanswerable queries left out"
    if evaluated.judged_by:
        note += f"; judged by {', '.join(dict.fromkeys(evaluated.judged_by))}"
    if timed := _timed(evaluated):
        note += f"; latency of the queries that succeeded: {timed}"
    return note


def _warnings(evaluated: EvaluatedRuns) -> Iterator[str]:
    """Yield what brackets are, and which measures look further down than a run goes."""
    first = next(iter(evaluated.scores.values()))
    if first.without_judgments:
        queries = plural(len(first.without_judgments), "query", "queries")
        yield f"{queries} without any label, and in no mean: {_some(first.without_judgments)}"
    summaries = (
        item.summary(name) for item in evaluated.scores.values() for name in evaluated.measures
    )
    if any(summary.n_failed for summary in summaries):
        yield "[low, high]: no interval; the mean, had all failures come out worst, and best"
    if any(item.perfect for item in evaluated.scores.values()):
        yield "perfect: queries whose ranking could not be better, by what is judged"
    for name, scores in evaluated.scores.items():
        yield from (f"{name}: {sentence}" for sentence in patterns(scores))
        deeper = [
            measure
            for measure in evaluated.measures
            if 0 < scores.depth < (parse_measure(measure).cutoff or 0)
        ]
        if deeper:
            what = plural(scores.depth, "document" if evaluated.n_by_document else "chunk")
            yield (
                f"{name}: no ranking has more than {what}; "
                f"{', '.join(deeper)} {'looks' if len(deeper) == 1 else 'look'} further down"
            )


def _some(query_ids: Sequence[str]) -> str:
    more = ", …" if len(query_ids) > _SHOWN else ""
    return ", ".join(one_line(item, 40) for item in query_ids[:_SHOWN]) + more


def _json(evaluated: EvaluatedRuns, *, per_query: bool, interval: bool) -> dict[str, object]:
    runs, failures = {}, _failures(evaluated)
    for name, scores in evaluated.scores.items():
        latency = evaluated.latencies.get(name)
        means = scores.to_dict()
        means["measures"] = {
            measure: scores.summary(measure)._asdict()
            | ({"interval": asdict(scores.interval(measure, LEVEL))} if interval else {})
            | ({"set_interval": asdict(ends)} if (ends := scores.set_interval(measure)) else {})
            for measure in evaluated.measures
        }
        if per_query:
            means["per_query"] = {
                query_id: {measure: values[measure] for measure in evaluated.measures}
                for query_id, values in scores.per_query.items()
            }
        runs[name] = {
            **means,
            "depth": scores.depth,
            "first_relevant_rank": scores.first_relevant_rank,
            "latency_s": _latency_json(latency, failures.get(name, 0)),
        }
    return {
        **_selection_json(evaluated),
        "rel_threshold": evaluated.rel_threshold,
        "reading": evaluated.reading,
        "labels_complete": evaluated.labels == "complete",
        "labels": evaluated.labels,
        **({"queries_by_document": evaluated.n_by_document} if evaluated.n_by_document else {}),
        "judged_by": list(evaluated.judged_by),
        "graded_by": graded_json(evaluated.graded_by),
        "runs": runs,
        "warnings": list(evaluated.warnings),
    }


def _selection_json(found: EvaluatedRuns) -> dict[str, object]:
    """Return which queries runs were measured on, by name; {} where on all."""
    parts = {
        item.measured.name: selection_json(item.evaluation.selection)
        for item in found.records
        if item.evaluation.selection is not None
    }
    return {"selections": parts} if parts else {}


def _per_query(found: EvaluatedRuns) -> str:
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


def _set_interval(scores: Scores, measure: str) -> str:
    found = scores.set_interval(measure, LEVEL)
    if found is None or found.low is None:
        return MISSING
    return f"({number(found.low, DIGITS)}-{number(found.high, DIGITS)})"


def _median_rank(scores: Scores) -> str:
    ranks = {key: rank for key, rank in scores.first_relevant_rank.items() if rank is not None}
    if not ranks:
        return MISSING
    if scores.design is None:
        return f"{median(ranks.values()):g}"
    weights = scores.design.stratified(ranks).weights
    return f"{weighted_median(list(ranks.values()), weights):g}"


def _latency(seconds: float | None) -> str:
    return MISSING if seconds is None else duration(seconds)


def _failures(found: EvaluatedRuns) -> dict[str, int]:
    """Return on how many queries the retriever of each run failed, where it did."""
    counts = {
        run.measured.name: len(run.measured.summary.attention.failed) for run in found.records
    }
    return {name: count for name, count in counts.items() if count}


def _timed(evaluated: EvaluatedRuns) -> str:
    """Return of how many queries latencies are, of runs whose retriever failed on some."""
    return ", ".join(
        f"{name} {evaluated.latencies[name].n} of {evaluated.latencies[name].n + count}"
        for name, count in _failures(evaluated).items()
        if name in evaluated.latencies
    )


def _latency_json(found: Latency | None, n_failed: int) -> dict[str, float] | None:
    """Return percentiles over the n queries that succeeded; n_failed are not among them."""
    if found is None:
        return None
    return {"p50_s": found.median_s, **asdict(found), "n_failed": n_failed}
