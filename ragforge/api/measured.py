"""Runs that were measured, as text, JSON and rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ragforge.api.results import Result, shown_html
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import (
    MISSING,
    Table,
    duration,
    number,
    one_line,
    plural,
    render_table,
)
from ragforge.evaluating.graded_by import graded_json, graded_line
from ragforge.evaluating.judgments import LABELS_IN_WORDS
from ragforge.evaluating.patterns import patterns
from ragforge.evaluating.runs import Latency
from ragforge.evaluating.selection import Part, selection_json
from ragforge.measures import Scores, Summary, parse_measure
from ragforge.measures.measure_names import by_judgments, of_evidence
from ragforge.measures.scores import UNJUDGED_DEPTH
from ragforge.measures.strata import weighted_median
from ragforge.pipeline.evaluating import EvaluatedRuns
from ragforge.report.corrected_levels import corrected_table, levels_json

DIGITS: Final = 4
LEVEL: Final = 0.95
"""Of confidence intervals."""
WHOLE_SET: Final = "whole set"
"""Label of the interval of what the whole set's mean would be."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class MeasuredRuns(Result):
    """Runs with their measures: the means, and every query's values.

    Args:
        found: What was measured, on what.
        notes: What was told on the way.
    """

    found: EvaluatedRuns
    notes: tuple[str, ...] = field(default=())

    @property
    def runs(self) -> Mapping[str, Scores]:
        """The scores of each run by its name, in the order asked for."""
        return MappingProxyType(self.found.scores)

    @property
    def measures(self) -> tuple[str, ...]:
        """Canonical names, in the order asked for."""
        return self.found.measures

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known to read the figures: of single runs, then of all."""
        own = (f"{name}: {text}" for name, item in self.runs.items() for text in item.warnings)
        return (*own, *self.found.warnings)

    def __getitem__(self, run: str) -> Scores:
        """Return the scores of a run."""
        return self.found.scores[run]

    def mean(self, measure: str, run: str | None = None) -> float | None:
        """Return the mean of a measure; None where no query has a value.

        Args:
            measure: One that was computed.
            run: Whose; the only one where None.

        Raises:
            UsageError: It is not named, and there are several; or there is no such run.
        """
        return self._of(run).mean(measure)

    def summary(self, measure: str, run: str | None = None) -> Summary:
        """Return the mean with n, failures and the bounds on what these could change."""
        return self._of(run).summary(measure)

    def to_dict(self, *, per_query: bool = False, interval: bool = False) -> dict[str, Any]:
        """Return what `ragforge evaluate --json` prints."""
        return evaluation_json(self.found, per_query=per_query, interval=interval)

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of each run and query, a column a measure."""
        return [
            {"run": name, "query_id": query_id, **{one: values.get(one) for one in self.measures}}
            for name, scores in self.runs.items()
            for query_id, values in scores.per_query.items()
        ]

    def table(self, *, interval: bool = False) -> str:
        """Return the means as text, with who graded and what must be known to read them."""
        return evaluation_text(self.found, interval=interval)

    def write_prometheus(self, path: str | PathLike[str]) -> None:
        """Write gauges for the textfile collector of Prometheus' node_exporter.

        Args:
            path: A name that ends in .prom; others are not read there.

        Raises:
            DataError: The file cannot be written.
        """
        from ragforge.pipeline.observer_events import write_evaluations

        write_evaluations(Path(path), self.found.records)

    def _of(self, run: str | None) -> Scores:
        names = tuple(self.runs)
        if run is None and len(names) == 1:
            return self.runs[names[0]]
        if run is None or run not in self.runs:
            raise UsageError(f"run {run}: expected one of: {', '.join(names)}")
        return self.runs[run]

    def _repr_html_(self) -> str:
        table, notes = _means(self.found, interval=False), _notes(self.found, interval=False)
        return shown_html(
            head=[graded_line(self.found.graded_by, self.found.correction)],
            tables=[table],
            bars=table.headers[1:],
        ) + shown_html(head=notes)


def evaluation_text(found: EvaluatedRuns, *, interval: bool = False) -> str:
    """Return who graded, the measures by runs, and what one must know to read them."""
    means = _means(found, interval=interval)
    table = render_table(means.headers, means.rows)
    head = graded_line(found.graded_by, found.correction)
    return "\n".join([head, table, *_corrected(found), *_notes(found, interval=interval)])


def _corrected(found: EvaluatedRuns) -> Iterator[str]:
    if found.calibration is not None:
        corrected = corrected_table(found.calibration, found.levels, list(found.scores))
        yield f"\n{corrected.title}\n{render_table(corrected.headers, corrected.rows)}"
        if corrected.note:
            yield corrected.note


def per_query_text(found: EvaluatedRuns) -> str:
    """Return the values of each query and run as a table."""
    measures = found.measures
    rows = [
        [query_id, name, *(number(values.get(measure), DIGITS) for measure in measures)]
        for name, scores in found.scores.items()
        for query_id, values in scores.per_query.items()
    ]
    return render_table(["query", "run", *measures], sorted(rows))


def _notes(found: EvaluatedRuns, *, interval: bool) -> list[str]:
    return [_note(found, interval=interval), *_warnings(found), *_selections(found)]


def _means(found: EvaluatedRuns, *, interval: bool) -> Table:
    scores = list(found.scores.values())
    rows = list(_mean_rows(found, interval=interval))
    rows.append(["queries", *(str(len(item.query_ids)) for item in scores)])
    if measures := of_evidence(found.measures):
        counts = [len(item.query_ids_of(measures[0])) for item in scores]
        rows.append(["with evidence", *map(str, counts)])
    if any(item.n_failed for item in scores):
        failed = [str(item.n_failed) for item in scores]
        rows.append(["with failures", *failed])
    rows.append(["without a hit", *(str(len(item.without_hit)) for item in scores)])
    rows.append(["perfect", *(str(len(item.perfect)) for item in scores)])
    rows.append(["median first relevant rank", *map(_median_rank, scores)])
    rows += _latency_rows(found)
    return Table("", ("measure", *found.scores), tuple(map(tuple, rows)))


def _mean_rows(found: EvaluatedRuns, *, interval: bool) -> Iterator[list[str]]:
    for name in found.measures:
        means = [_mean(item.summary(name)) for item in found.scores.values()]
        if interval:
            ends = [_interval(item, name) for item in found.scores.values()]
            means = [f"{mean} {of}" for mean, of in zip(means, ends, strict=True)]
        yield [name, *means]
        if found.is_sampled:
            yield [f"  {WHOLE_SET}", *(_set_interval(item, name) for item in found.scores.values())]


def _selections(found: EvaluatedRuns) -> Iterator[str]:
    """Yield which queries runs were measured on, where that is not all, one time for each part."""
    of_part: dict[str, list[str]] = {}
    for record in found.records:
        if record.chosen is not None:
            measured = frozenset(record.scores.query_ids)
            part = Part(record.chosen, record.scores.design, measured)
            of_part.setdefault("\n".join(part.lines), []).append(record.measured.name)
    for text, names in of_part.items():
        yield f"{', '.join(names)}: {text}"
    if found.is_sampled:
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


def _note(found: EvaluatedRuns, *, interval: bool) -> str:
    note = found.reading or f"relevant: grade >= {found.rel_threshold}"
    if found.labels:
        note += f"; {LABELS_IN_WORDS[found.labels]}"
    if found.n_by_document:
        note += f"; by documents: {plural(found.n_by_document, 'query', 'queries')}"
    if interval:
        note += f"; (low-high): {LEVEL:.0%} confidence interval over queries"
    if found.n_unanswerable:
        note += f"; {found.n_unanswerable} unanswerable queries left out"
    if found.judged_by:
        note += f"; judged by {', '.join(dict.fromkeys(found.judged_by))}"
    if timed := _timed(found):
        note += f"; latency of the queries that succeeded: {timed}"
    return note


def _warnings(found: EvaluatedRuns) -> Iterator[str]:
    """Yield what brackets are, and which measures look further down than a run goes."""
    first = next(iter(found.scores.values()))
    if first.without_judgments:
        queries = plural(len(first.without_judgments), "query", "queries")
        yield f"{queries} without any label, and in no mean: {_some(first.without_judgments)}"
    summaries = (item.summary(name) for item in found.scores.values() for name in found.measures)
    if any(summary.n_failed for summary in summaries):
        yield "[low, high]: no interval; the mean, had all failures come out worst, and best"
    if any(item.perfect for item in found.scores.values()):
        yield (
            "perfect: queries whose whole ranking could not be better, down to the last relevant "
            "chunk that is judged; a measure @k, and `ragforge worst` by it, looks at k ranks alone"
        )
    yield from _holes(found)
    for name, scores in found.scores.items():
        yield from (f"{name}: {sentence}" for sentence in _missing(scores))
        yield from (f"{name}: {sentence}" for sentence in patterns(scores))
        deeper = [
            measure
            for measure in found.measures
            if 0 < scores.depth < (parse_measure(measure).cutoff or 0)
        ]
        beyond = {item: scores.n_beyond(item) for item in found.measures}
        for measure, n_whole in beyond.items():
            if n_whole:
                n_queries = len(scores.query_ids_of(measure))
                rankings = plural(n_queries, "ranking")
                yield (
                    f"{name}: {measure}: {n_whole:,} of {rankings} fit into the budget to their "
                    "end; a larger -k of `ragforge retrieve` fills it"
                )
        if deeper:
            what = plural(scores.depth, "document" if found.n_by_document else "chunk")
            yield (
                f"{name}: no ranking has more than {what}; "
                f"{', '.join(deeper)} {'looks' if len(deeper) == 1 else 'look'} further down"
            )


def _holes(found: EvaluatedRuns) -> Iterator[str]:
    """Yield how many chunks of each run nobody graded, where measures go by grades."""
    if not by_judgments(found.measures):
        return
    for record in found.records:
        now = record.evaluation
        if now.n_holes:
            yield (
                f"{now.run}: {now.n_holes:,} of {now.n_retrieved:,} chunks in the top "
                f"{UNJUDGED_DEPTH} are holes, and count as not relevant; `ragforge judge` fills "
                "them"
            )


def _missing(scores: Scores) -> Iterator[str]:
    """Yield which judged queries a run lacks, such as those that came after it was made."""
    lacking = scores.missing_from_run
    if not lacking or len(lacking) == len(scores.query_ids):
        return  # A run without any judged query is told as such.
    is_counted = lacking[0] in scores.query_ids
    outcome = "count 0" if is_counted else "are left out"
    n_judged = len(scores.query_ids) + (0 if is_counted else len(lacking))
    counts = f"{len(lacking):,} of {n_judged:,} judged queries"
    yield f"lacks {counts}, which {outcome}: {_some(lacking)}"


def _some(query_ids: Sequence[str]) -> str:
    more = ", …" if len(query_ids) > _SHOWN else ""
    return ", ".join(one_line(item, 40) for item in query_ids[:_SHOWN]) + more


def evaluation_json(
    found: EvaluatedRuns, *, per_query: bool = False, interval: bool = False
) -> dict[str, Any]:
    """Return what `ragforge evaluate --json` prints."""
    runs, failures = {}, _failures(found)
    for name, scores in found.scores.items():
        latency = found.latencies.get(name)
        told = scores.to_dict()
        told["measures"] = {
            measure: scores.summary(measure)._asdict()
            | ({"interval": asdict(scores.interval(measure, LEVEL))} if interval else {})
            | ({"set_interval": asdict(ends)} if (ends := scores.set_interval(measure)) else {})
            for measure in found.measures
        }
        if per_query:
            told["per_query"] = {
                query_id: {
                    measure: values[measure] for measure in found.measures if measure in values
                }
                for query_id, values in scores.per_query.items()
            }
        runs[name] = {
            **told,
            "depth": scores.depth,
            "first_relevant_rank": dict(scores.first_relevant_rank),
            "latency_s": _latency_json(latency, failures.get(name, 0)),
        }
    return {
        **_selection_json(found),
        "rel_threshold": found.rel_threshold,
        "reading": found.reading,
        "labels_complete": found.labels == "complete",
        "labels": found.labels,
        **({"queries_by_document": found.n_by_document} if found.n_by_document else {}),
        "judged_by": list(found.judged_by),
        "graded_by": graded_json(found.graded_by),
        **(
            {"calibration": levels_json(found.calibration, found.levels)}
            if found.calibration
            else {}
        ),
        "runs": runs,
        "warnings": list(found.warnings),
    }


def _selection_json(found: EvaluatedRuns) -> dict[str, object]:
    """Return which queries runs were measured on, by name; {} where on all."""
    parts = {
        item.measured.name: selection_json(item.evaluation.selection)
        for item in found.records
        if item.evaluation.selection is not None
    }
    return {"selections": parts} if parts else {}


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
        from statistics import median

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


def _timed(found: EvaluatedRuns) -> str:
    """Return of how many queries latencies are, of runs whose retriever failed on some."""
    return ", ".join(
        f"{name} {found.latencies[name].n} of {found.latencies[name].n + count}"
        for name, count in _failures(found).items()
        if name in found.latencies
    )


def _latency_json(found: Latency | None, n_failed: int) -> dict[str, float] | None:
    """Return percentiles over the n queries that succeeded; n_failed are not among them."""
    if found is None:
        return None
    return {"p50_s": found.median_s, **asdict(found), "n_failed": n_failed}
