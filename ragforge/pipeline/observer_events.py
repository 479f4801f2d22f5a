"""Telling evaluations: to observers query by query, and to Prometheus in a file.

Nothing is read here but what was evaluated, and nothing is kept: each event is made, told and gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from ragforge.errors import UsageError
from ragforge.evaluating.judgments import GRADE_MEANINGS
from ragforge.measures import Scores
from ragforge.observe import Event, Observer, both
from ragforge.observe.prometheus import write_prometheus
from ragforge.plugins import find
from ragforge.records import AnswerGrade, Judgment

if TYPE_CHECKING:
    from ragforge.pipeline.evaluated import EvaluatedRun

EVENTS = "events="
OPENTELEMETRY = "otel"


@contextmanager
def observing(
    names: Sequence[str], first: Observer, complain: Callable[[str], None]
) -> Iterator[Observer]:
    """Lend an observer that tells all that are named, until the run is over.

    Args:
        names: `otel`, `events=FILE`, an entry point of `ragforge.observers`, or `module:attribute`
            (an observer, or a class of which one is made).
        first: Told before all others.
        complain: Told when events cannot be written any more.

    Raises:
        UsageError: There is no such observer.
        ConfigError: The package it needs is missing.
        DataError: The file cannot be opened.
    """
    with ExitStack() as stack:
        observer = first
        for name in names:
            observer = both(observer, _open(name, stack, complain))
        # What is missing is missed here, not by the first call in the middle of the run.
        observer(Event("tick"))
        yield observer


def _open(name: str, stack: ExitStack, complain: Callable[[str], None]) -> Observer:
    from ragforge.files.set.output_paths import check_outputs

    if name.startswith(EVENTS):
        from ragforge.observe.log import EventFile

        if name == EVENTS:
            raise UsageError(f"observers: {name!r}: expected events=FILE")
        path = Path(name.removeprefix(EVENTS))
        check_outputs({"--observer": path})
        return stack.enter_context(EventFile(path, complain=complain))
    if name == OPENTELEMETRY:
        from ragforge.observe.otel import OpenTelemetryObserver

        return OpenTelemetryObserver()
    found = find("observers", name, built_in=(OPENTELEMETRY, "events=FILE"))
    made = found() if isinstance(found, type) else found
    if not callable(made):
        raise UsageError(f"observers: {name!r}: expected something that takes events, got {made!r}")
    return cast("Observer", made)  # what it takes cannot be asked


WATCHED: Final = ("P@5", "R@5", "RR", "nDCG@10")
"""Told of every run, whatever was asked for: what is drawn over months must not have gaps."""

_COUNTED: Final = ("NumRel", "NumRet")
_NO_TEXTS: Final[Mapping[str, str]] = {}


def emit_evaluations(
    evaluated: Iterable[EvaluatedRun],
    observer: Observer,
    *,
    texts: Mapping[str, str] = _NO_TEXTS,
) -> None:
    """Tell an observer of runs that were measured, run by run and query by query.

    Args:
        evaluated: The runs.
        observer: Gets `evaluation.start`, one `evaluation.query` a query sorted by id, one
            `evaluation.measure` a measure and `evaluation.end` of each run.
        texts: Question by query id, for observers that look at texts.
    """
    for one in evaluated:
        for event in _events(one, texts):
            observer(event)


def emit_judgments(judgments: Iterable[Judgment], observer: Observer) -> None:
    """Tell an observer of judgments, one event each; a failed one has no grade."""
    for item in judgments:
        yes = not item.is_failed
        observer(
            Event(
                "grade",
                outcome="done" if yes else "failed",
                numbers={"grade": item.grade} if item.grade is not None else {},
                labels={
                    "name": "relevance",
                    "query_id": item.query_id,
                    "chunk_id": item.chunk_id,
                    "label": GRADE_MEANINGS[item.grade] if item.grade is not None else "",
                    "kind": item.failure or "",
                },
                content=(("explanation", item.reasoning),) if item.reasoning else (),
            )
        )


def emit_answer_grades(system: str, grades: Iterable[AnswerGrade], observer: Observer) -> None:
    """Tell an observer of the grades of a system's answers, one event each."""
    for item in grades:
        observer(
            Event(
                "grade",
                outcome="done" if item.verdict is not None else "failed",
                numbers={"grade": item.score} if item.score is not None else {},
                labels={
                    "name": "answer",
                    "system": system,
                    "query_id": item.query_id,
                    "label": item.verdict or "",
                    "kind": item.failure or "",
                },
                content=(("explanation", item.explanation),) if item.explanation else (),
            )
        )


def write_evaluations(path: Path, evaluated: Iterable[EvaluatedRun]) -> None:
    """Write runs that were measured for the textfile collector of Prometheus' node_exporter.

    Raises:
        DataError: The file cannot be written.
    """
    from ragforge.pipeline.evaluated import mean_of

    write_prometheus(
        path,
        (
            evaluated_run.evaluation.model_copy(
                update={
                    "measures": {
                        name: mean_of(scores, name)
                        for name in _reported_measures(evaluated_run, scores)
                    }
                }
            )
            for evaluated_run in evaluated
            for scores in [_with_watched(evaluated_run.scores)]
        ),
    )


def _with_watched(scores: Scores) -> Scores:
    if set(WATCHED) <= set(scores.measures):
        return scores
    return scores.rescore([*scores.measures, *WATCHED], rel_threshold=scores.rel_threshold)


def _reported_measures(one: EvaluatedRun, scores: Scores) -> list[str]:
    asked = [*one.evaluation.measures, *WATCHED]
    return [name for name in dict.fromkeys(asked) if name in scores.measures]


def _events(evaluated: EvaluatedRun, texts: Mapping[str, str]) -> Iterator[Event]:
    scores = _with_watched(evaluated.scores)
    measures = _reported_measures(evaluated, scores)
    evaluation = evaluated.evaluation
    about = {
        "dataset": evaluation.dataset,
        "version": str(evaluation.version),
        "run": evaluation.run,
        **({"only_retrieved": "true"} if evaluation.only_retrieved else {}),
    }
    of_run = {**about, "evaluation_id": evaluation.evaluation_id}
    failures = dict.fromkeys(scores.failed, "retrieval")
    failures |= dict.fromkeys(scores.judgments_failed, "judgment")
    counts = {"done": len(scores.query_ids), "failed": len(failures)}
    whole = {**counts, "without_judgments": len(scores.without_judgments)}
    longest = {"longest_s": max(evaluated.measured.latencies_s.values(), default=0.0)}
    size = {"total": len(scores.query_ids) + len(failures), "depth": scores.depth}
    yield Event("evaluation.start", numbers={**size, **longest}, labels=of_run)
    yield from _queries(evaluated, scores, measures, about, texts)
    for query_id, kind in sorted(failures.items()):
        labels = {**about, "query_id": query_id, "kind": kind, "measures": " ".join(measures)}
        yield Event(
            "evaluation.query", outcome="failed", labels=labels, content=_question(texts, query_id)
        )
    for name in measures:
        yield _mean(scores, name, about)
    seen = {"retrieved": evaluation.n_retrieved, "holes": evaluation.n_holes}
    yield Event("evaluation.end", numbers={**whole, **seen}, labels=of_run)


def _queries(
    evaluated: EvaluatedRun,
    scores: Scores,
    measures: list[str],
    about: Mapping[str, str],
    texts: Mapping[str, str],
) -> Iterator[Event]:
    ranks, holes, latencies_s = (
        scores.first_relevant_rank,
        scores.unjudged,
        evaluated.measured.latencies_s,
    )
    counts = scores.rescore(_COUNTED, rel_threshold=scores.rel_threshold)
    n_relevant, n_retrieved = (
        dict(zip(counts.query_ids, counts.values(name), strict=True)) for name in _COUNTED
    )
    found = dict.fromkeys(scores.query_ids, "hit")
    found |= dict.fromkeys(scores.perfect, "perfect")
    found |= dict.fromkeys(scores.without_hit, "without_hit")
    found |= dict.fromkeys(scores.without_relevant, "without_relevant")
    for query_id in scores.query_ids:
        values = scores.per_query[query_id]
        numbers: dict[str, float] = {
            "holes": holes[query_id],
            "relevant": n_relevant[query_id],
            "retrieved": n_retrieved[query_id],
        }
        if (rank := ranks[query_id]) is not None:
            numbers["rank"] = rank
        if (latency_s := latencies_s.get(query_id)) is not None:
            numbers["latency_s"] = latency_s
        yield Event(
            "evaluation.query",
            outcome="done",
            numbers=numbers,
            labels={**about, "query_id": query_id, "found": found[query_id]},
            measures={name: values[name] for name in measures if name in values},
            content=_question(texts, query_id),
        )


def _mean(scores: Scores, name: str, about: Mapping[str, str]) -> Event:
    from ragforge.pipeline.evaluated import mean_of

    mean = mean_of(scores, name)
    ends = {
        "low": mean.low,
        "high": mean.high,
        "least": mean.least,
        "most": mean.most,
    }
    known = {key: value for key, value in ends.items() if value is not None}
    return Event(
        "evaluation.measure",
        numbers={"done": mean.n, "failed": mean.n_failed, **known},
        labels=about,
        measures={} if mean.mean is None else {name: mean.mean},
    )


def _question(texts: Mapping[str, str], query_id: str) -> tuple[tuple[str, str], ...]:
    return (("question", texts[query_id]),) if query_id in texts else ()
