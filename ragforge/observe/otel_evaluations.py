"""Evaluations and grades as OpenTelemetry spans, metrics and events; `otel` passes them on.

Results are events of the Logs API, since events of spans are deprecated. Where the installed
opentelemetry-api has no such events, a warning is logged once and the rest is told all the same.
"""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ragforge.observe import Event
from ragforge.observe import genai_names as names
from ragforge.observe.genai_names import Value, clean, error_type, number, whole_numbers

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

EVALUATION_EVENTS: Final = frozenset(
    ("evaluation.start", "evaluation.query", "evaluation.measure", "evaluation.end", "grade")
)
"""Names of the events that are handled here."""

_GAUGES: Final = {"low": names.MEASURE_LOW, "high": names.MEASURE_HIGH}
_SUBJECTS: Final = {
    "run": names.RUN,
    "query_id": names.QUERY_ID,
    "chunk_id": names.CHUNK_ID,
    "system": names.SYSTEM,
    "evaluation_id": names.EVALUATION_ID,
}


@dataclass(slots=True)
class EvaluationTelemetry:
    """Makes a span of each run that is measured and of each of its queries, and sets the gauges.

    Where the latency of a query is known, its span holds one of the retrieval. Retrieval was before
    the evaluation, often days: these spans have its length, end when they are told of, and the span
    of the run starts early enough to hold them.

    Args:
        tracer, meter: Of ragforge.
        logger: Takes the events; None where there is none.
        texts: Tell questions and explanations.
        grades: Tell single grades.
    """

    tracer: "Tracer"
    meter: "Meter"
    logger: "Logger | None"
    texts: bool = False
    grades: bool = False
    _span: "Span | None" = field(default=None, init=False, repr=False)
    _instruments: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, event: Event, parent: "Context | None") -> None:
        """Take one event; `parent` is where a span outside of an evaluation belongs."""
        if event.name == "evaluation.start":
            self._start(event, parent)
        elif event.name == "evaluation.query":
            self._query(event, parent)
        elif event.name == "evaluation.measure":
            self._measure(event)
        elif event.name == "evaluation.end":
            self._end(event)
        elif self.grades:
            self._grade(event, parent)

    def _start(self, event: Event, parent: "Context | None") -> None:
        longest_s = number(event, "longest_s") or 0.0
        attributes = _subject(event)
        if dataset := event.labels.get("dataset"):
            attributes[names.TEST_SUITE_NAME] = clean(dataset)
        attributes |= whole_numbers(event, {"total": names.N_QUERIES, "depth": names.DEPTH})
        self._span = self.tracer.start_span(
            names.EVALUATION_SPAN,
            context=parent,
            attributes=attributes,
            start_time=time.time_ns() - round(max(longest_s, 0.0) * 1e9),
        )

    def _end(self, event: Event) -> None:
        holes = number(event, "holes") or 0.0
        self._instrument(names.HOLES).add(int(holes), _series(event))
        self._instrument(names.EVALUATIONS).add(1, _series(event))
        if self._span is not None:
            self._span.end()
            self._span = None

    def _query(self, event: Event, parent: "Context | None") -> None:
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        if self._span is not None:
            parent = set_span_in_context(self._span, parent)
        end_ns = time.time_ns()
        latency_s = number(event, "latency_s")
        start_ns = end_ns - round(max(latency_s or 0.0, 0.0) * 1e9)
        span = self.tracer.start_span(
            names.QUERY_SPAN,
            context=parent,
            attributes=self._query_attributes(event),
            start_time=start_ns,
        )
        if event.outcome == "failed":
            span.set_status(Status(StatusCode.ERROR))
            span.add_event(names.EXCEPTION, {names.EXCEPTION_TYPE: error_type(event)}, end_ns)
        place = set_span_in_context(span, parent)
        if latency_s is not None:
            place = self._retrieval(event, place, start_ns, end_ns)
            self._instrument(names.RETRIEVAL_DURATION).record(latency_s, _series(event))
        self._results(event, place)
        span.end(end_ns)
        self._instrument(names.QUERIES).add(1, {**_series(event), names.OUTCOME: event.outcome})

    def _retrieval(self, event: Event, parent: "Context", start_ns: int, end_ns: int) -> "Context":
        from opentelemetry.trace import SpanKind, set_span_in_context

        source = clean(event.labels.get("dataset", ""))
        attributes: dict[str, Value] = {
            names.OPERATION_NAME: names.RETRIEVAL,
            names.DATA_SOURCE_ID: source,
            names.RUN: clean(event.labels.get("run", "")),
        }
        if text := self._text(event):
            attributes[names.RETRIEVAL_QUERY_TEXT] = text
        span = self.tracer.start_span(
            f"{names.RETRIEVAL} {source}".rstrip(),
            context=parent,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=start_ns,
        )
        span.end(end_ns)
        return set_span_in_context(span, parent)

    def _results(self, event: Event, context: "Context") -> None:
        """Emit the values of a query; where it failed, an error for each measure that is named."""
        if self.logger is None:
            return
        about = _subject(event)
        for name, value in event.measures.items():
            if math.isfinite(value):
                self._result(name, {**about, names.EVALUATION_SCORE_VALUE: value}, context)
        if event.outcome == "failed":
            for name in event.labels.get("measures", "").split():
                self._result(name, {**about, names.ERROR_TYPE: error_type(event)}, context)

    def _grade(self, event: Event, parent: "Context | None") -> None:
        attributes = _subject(event)
        if (value := number(event, "grade")) is not None:
            attributes[names.EVALUATION_SCORE_VALUE] = value
        if label := event.labels.get("label"):
            attributes[names.EVALUATION_SCORE_LABEL] = clean(label)
        if event.outcome == "failed":
            attributes[names.ERROR_TYPE] = error_type(event)
        if text := self._text(event):
            attributes[names.EVALUATION_EXPLANATION] = text
        self._result(event.labels.get("name", "grade"), attributes, parent)

    def _result(
        self, name: str, attributes: Mapping[str, Value], context: "Context | None"
    ) -> None:
        if self.logger is None:
            return
        from opentelemetry._logs import LogRecord, SeverityNumber

        self.logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                context=context,
                severity_number=SeverityNumber.INFO,
                event_name=names.EVALUATION_RESULT,
                attributes={names.EVALUATION_NAME: clean(name), **attributes},
            )
        )

    def _measure(self, event: Event) -> None:
        for name, mean in event.measures.items():
            about = {**_series(event), names.MEASURE: clean(name)}
            if math.isfinite(mean):
                self._instrument(names.MEASURE_MEAN).set(mean, about)
                if self._span is not None:
                    self._span.set_attribute(f"{names.MEASURE}.{clean(name)}", mean)
            for key, gauge in _GAUGES.items():
                if (value := number(event, key)) is not None:
                    self._instrument(gauge).set(value, about)

    def _query_attributes(self, event: Event) -> dict[str, Value]:
        attributes = _subject(event)
        attributes[names.TEST_CASE_NAME] = clean(event.labels.get("query_id", ""))
        attributes |= {
            f"{names.MEASURE}.{clean(key)}": value for key, value in event.measures.items()
        }
        attributes |= whole_numbers(
            event,
            {
                "rank": names.FIRST_RELEVANT_RANK,
                "relevant": names.N_RELEVANT,
                "retrieved": names.N_RETRIEVED,
            },
        )
        if event.outcome == "failed":
            attributes[names.ERROR_TYPE] = error_type(event)
        if text := self._text(event):
            attributes[names.RETRIEVAL_QUERY_TEXT] = text
        return attributes

    def _text(self, event: Event) -> str:
        return clean("\n".join(text for _, text in event.content)) if self.texts else ""

    def _instrument(self, wanted: names.Instrument) -> Any:  # noqa: ANN401  # of three kinds
        made = self._instruments.get(wanted.name)
        if made is None:
            make = getattr(self.meter, f"create_{wanted.kind}")
            advice = (
                {"explicit_bucket_boundaries_advisory": wanted.buckets} if wanted.buckets else {}
            )
            made = make(wanted.name, wanted.unit, wanted.description, **advice)
            self._instruments[wanted.name] = made
        return made


def event_logger(version: str, provider: "LoggerProvider | None") -> "Logger | None":
    """Return the logger of events; None, and a warning is logged, where the API has none."""
    try:
        from opentelemetry._logs import LogRecord, get_logger

        LogRecord(context=None, event_name=names.EVALUATION_RESULT)
    except (ImportError, TypeError):
        logging.getLogger("ragforge").warning(
            "OpenTelemetry: this opentelemetry-api has no events in its Logs API; "
            "%s is not told; expected 1.35 or later",
            names.EVALUATION_RESULT,
        )
        return None
    return get_logger("ragforge", version, provider, names.SCHEMA_URL)


def _series(event: Event) -> dict[str, Value]:
    """Return the attributes of a metric's series: few values, so neither query nor version."""
    return {
        names.DATASET: clean(event.labels.get("dataset", "")),
        names.RUN: clean(event.labels.get("run", "")),
        **_only_retrieved(event),
    }


def _only_retrieved(event: Event) -> dict[str, Value]:
    """Return the attribute of evaluations that left out queries which the run lacks."""
    return {names.ONLY_RETRIEVED: True} if event.labels.get("only_retrieved") else {}


def _subject(event: Event) -> dict[str, Value]:
    """Return the attributes of a span's or event's subject: dataset, version, run, query."""
    labels = event.labels
    about: dict[str, Value] = {
        name: clean(labels[key]) for key, name in _SUBJECTS.items() if labels.get(key)
    }
    if dataset := labels.get("dataset"):
        about[names.DATASET] = clean(dataset)
    if (version := labels.get("version", "")).isdecimal():
        about[names.DATASET_VERSION] = int(version)
    return about | _only_retrieved(event)
