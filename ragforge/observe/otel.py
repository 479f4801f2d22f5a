"""An observer that turns events into OpenTelemetry spans, metrics and events.

Nothing is exported unless the application that runs ragforge has set up an OpenTelemetry SDK;
without one, the API does nothing. The names are in `genai_names`.

Results of evaluations are events of the Logs API, since events of spans are deprecated. Where the
installed opentelemetry-api has no such events, a warning is logged once and the rest is told all
the same.
"""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ragforge.deferred import dataclass
from ragforge.errors import ConfigError
from ragforge.observe import Event
from ragforge.observe import genai_names as names
from ragforge.observe.genai_names import Value, clean, error_type, messages, number, whole_numbers

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider


_ADDRESSES: Final = {"openai": "https://api.openai.com"}
"""Endpoints that go by a name, and where they are."""
_PORTS: Final = {"http": 80, "https": 443}
_PROVIDER_IN_PROCESS: Final = {"local": "llama_cpp"}

_REQUEST_NUMBERS: Final = {
    "max_output_tokens": names.REQUEST_MAX_TOKENS,
    "seed": names.REQUEST_SEED,
}
_USAGE_NUMBERS: Final = {
    "prompt_tokens": names.INPUT_TOKENS,
    "completion_tokens": names.OUTPUT_TOKENS,
    "attempts": names.ATTEMPTS,
}
_REPLY_LABELS: Final = {
    "reply_model": names.RESPONSE_MODEL,
    "reply_id": names.RESPONSE_ID,
    "schema": names.SCHEMA,
}
_EVALUATION_EVENTS: Final = frozenset(
    ("evaluation.start", "evaluation.query", "evaluation.measure", "evaluation.end", "grade")
)
"""Names of the events that `_EvaluationTelemetry` takes."""
_GAUGES: Final = {"low": names.MEASURE_LOW, "high": names.MEASURE_HIGH}
_SUBJECTS: Final = {
    "run": names.RUN,
    "query_id": names.QUERY_ID,
    "chunk_id": names.CHUNK_ID,
    "system": names.SYSTEM,
    "evaluation_id": names.EVALUATION_ID,
}


@dataclass(frozen=True, slots=True)
class _Instruments:
    tracer: "Tracer"
    meter: "Meter"
    duration: "Histogram"
    tokens: "Histogram"
    units: "Counter"
    retries: "Counter"
    cost: "Counter"


@dataclass(frozen=True, slots=True)
class _OpenStage:
    name: str
    span: "Span"


@dataclass(slots=True)
class OpenTelemetryObserver:
    """Makes a span of every stage, call to a model, run that is measured and query of it.

    A call is the child of the stage that was started last and has not ended; a stage outside of
    any is the child of the span that is current in the application. A call from the store has a
    span without length and without tokens, and is in no metric but `ragforge.units`: it took and
    cost nothing now. Evaluations are told by `_EvaluationTelemetry`. The package
    `opentelemetry` is imported with the first event.

    Args:
        texts: Put the turns and replies of calls, the reasons of failures, and questions into the
            spans, and explanations of grades into the events.
        tracer_provider, meter_provider, logger_provider: Where to instead of the application's
            global ones.
        grades: Tell each single judgment and grade of an answer as an event, where events of them
            come in.

    Raises:
        ConfigError: On the first event, when opentelemetry-api is not installed.
    """

    texts: bool = False
    tracer_provider: "TracerProvider | None" = None
    meter_provider: "MeterProvider | None" = None
    logger_provider: "LoggerProvider | None" = None
    grades: bool = False
    _instruments: _Instruments | None = field(default=None, init=False, repr=False)
    _evaluations: "_EvaluationTelemetry | None" = field(default=None, init=False, repr=False)
    _stages: list[_OpenStage] = field(default_factory=list, init=False, repr=False)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if self._instruments is None:
            self._instruments = _connect(self.tracer_provider, self.meter_provider)
        if event.name == "call":
            self._call(event, self._instruments)
        elif event.name == "stage.start":
            self._start(event, self._instruments)
        elif event.name == "stage.end":
            self._end(event)
        elif event.name == "unit":
            outcome = {names.STAGE: clean(event.stage), names.OUTCOME: event.outcome}
            self._instruments.units.add(1, outcome)
        elif event.name == "retry":
            self._instruments.retries.add(
                1, {**_request_attributes(event), names.ERROR_TYPE: error_type(event)}
            )
        elif event.name in _EVALUATION_EVENTS:
            self._evaluation(event, self._instruments)

    def _evaluation(self, event: Event, instruments: _Instruments) -> None:
        if self._evaluations is None:
            from ragforge import __version__

            self._evaluations = _EvaluationTelemetry(
                instruments.tracer,
                instruments.meter,
                _event_logger(__version__, self.logger_provider),
                self.texts,
                self.grades,
            )
        self._evaluations(event, self._parent())

    def _start(self, event: Event, instruments: _Instruments) -> None:
        stage = clean(event.stage)
        attributes: dict[str, Value] = {names.STAGE: stage}
        if (total := number(event, "total")) is not None:
            attributes[names.STAGE_TOTAL] = int(total)
        span = instruments.tracer.start_span(
            f"ragforge {stage}", context=self._parent(), attributes=attributes
        )
        self._stages.append(_OpenStage(event.stage, span))

    def _end(self, event: Event) -> None:
        for place in reversed(range(len(self._stages))):
            if self._stages[place].name == event.stage:
                self._stages.pop(place).span.end()
                return

    def _call(self, event: Event, instruments: _Instruments) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        end_ns = time.time_ns()
        # The latency of a stored reply is that of the day it was bought.
        took_s = 0.0 if event.outcome == "cached" else number(event, "latency_s") or 0.0
        attributes = _call_attributes(event)
        if self.texts:
            attributes |= messages(event)
        span = instruments.tracer.start_span(
            f"{names.CHAT} {attributes.get(names.REQUEST_MODEL, '')}".rstrip(),
            context=self._parent(),
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=end_ns - round(max(took_s, 0.0) * 1e9),
        )
        if event.outcome == "failed":
            reason = clean(event.message) if self.texts else None
            span.set_status(Status(StatusCode.ERROR, reason))
            message = {names.EXCEPTION_MESSAGE: reason} if reason else {}
            span.add_event(
                names.EXCEPTION, {names.EXCEPTION_TYPE: error_type(event), **message}, end_ns
            )
        span.end(end_ns)
        if event.outcome != "cached":
            _measure(event, instruments)

    def _parent(self) -> "Context | None":
        if not self._stages:
            return None
        from opentelemetry.trace import set_span_in_context

        return set_span_in_context(self._stages[-1].span)


def _connect(
    tracer_provider: "TracerProvider | None", meter_provider: "MeterProvider | None"
) -> _Instruments:
    try:
        from opentelemetry import metrics, trace
    except ImportError as error:
        raise ConfigError(
            "OpenTelemetry: needs the package opentelemetry-api; pip install 'ragforge[otel]'"
        ) from error
    from ragforge import __version__

    scope = ("ragforge", __version__)
    tracer = trace.get_tracer(*scope, tracer_provider, names.SCHEMA_URL)
    meter = metrics.get_meter(*scope, meter_provider, names.SCHEMA_URL)
    return _Instruments(
        tracer=tracer,
        meter=meter,
        duration=meter.create_histogram(
            names.OPERATION_DURATION,
            names.OPERATION_DURATION_UNIT,
            "Duration of calls to the model",
            explicit_bucket_boundaries_advisory=names.OPERATION_DURATION_BUCKETS,
        ),
        tokens=meter.create_histogram(
            names.TOKEN_USAGE,
            names.TOKEN_USAGE_UNIT,
            "Tokens of calls to the model",
            explicit_bucket_boundaries_advisory=names.TOKEN_USAGE_BUCKETS,
        ),
        units=meter.create_counter(names.UNITS, "{unit}", "Units of work that ended"),
        retries=meter.create_counter(names.RETRIES, "{retry}", "Attempts that were repeated"),
        cost=meter.create_counter(names.COST, "USD", "Price of the calls that were paid for"),
    )


def _measure(event: Event, instruments: _Instruments) -> None:
    about = _request_attributes(event)
    if reply_model := event.labels.get("reply_model"):
        about[names.RESPONSE_MODEL] = clean(reply_model)
    for key, direction in (("prompt_tokens", names.INPUT), ("completion_tokens", names.OUTPUT)):
        if (count := number(event, key)) is not None:
            instruments.tokens.record(int(count), {**about, names.TOKEN_TYPE: direction})
    if (cost_usd := number(event, "cost_usd")) is not None:
        instruments.cost.add(cost_usd, about)
    if (latency_s := number(event, "latency_s")) is not None:
        error = {names.ERROR_TYPE: error_type(event)} if event.outcome == "failed" else {}
        instruments.duration.record(latency_s, {**about, **error})


def _call_attributes(event: Event) -> dict[str, Value]:
    cached = event.outcome == "cached"
    attributes: dict[str, Value] = {**_request_attributes(event), names.CACHED: cached}
    attributes |= whole_numbers(event, _REQUEST_NUMBERS)
    if (temperature := number(event, "temperature")) is not None:
        attributes[names.REQUEST_TEMPERATURE] = temperature
    # Backends price a span by its tokens; those of a stored reply were paid for when bought.
    if not cached:
        attributes |= whole_numbers(event, _USAGE_NUMBERS)
        if (cost_usd := number(event, "cost_usd")) is not None:
            attributes[names.COST_USD] = cost_usd
    return attributes | _reply_attributes(event)


def _reply_attributes(event: Event) -> dict[str, Value]:
    labels = event.labels
    attributes: dict[str, Value] = {
        name: clean(labels[key]) for key, name in _REPLY_LABELS.items() if labels.get(key)
    }
    if labels.get("schema"):
        attributes[names.OUTPUT_TYPE] = names.JSON
    if labels.get("finish_reason"):
        attributes[names.FINISH_REASONS] = [clean(labels["finish_reason"])]
    if event.outcome == "failed":
        attributes[names.ERROR_TYPE] = error_type(event)
    return attributes


def _request_attributes(event: Event) -> dict[str, Value]:
    """Return operation, model and server of a call: the attributes of spans and metrics."""
    attributes: dict[str, Value] = {names.OPERATION_NAME: names.CHAT}
    attributes |= _server(event.labels.get("endpoint", ""))
    if model := event.labels.get("model"):
        attributes[names.REQUEST_MODEL] = clean(model)
    return attributes


@lru_cache(maxsize=64)
def _server(endpoint: str) -> dict[str, Value]:
    """Return provider, host and port of an endpoint; callers must not change the mapping."""
    if endpoint in _PROVIDER_IN_PROCESS:
        return {names.PROVIDER_NAME: _PROVIDER_IN_PROCESS[endpoint]}
    try:
        parts = urlsplit(_ADDRESSES.get(endpoint, endpoint))
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        host, port = "", None
    server: dict[str, Value] = {names.PROVIDER_NAME: names.provider(host)}
    if host:
        server[names.SERVER_ADDRESS] = clean(host)
    if host and port:
        server[names.SERVER_PORT] = port
    return server


@dataclass(slots=True)
class _EvaluationTelemetry:
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


def _event_logger(version: str, provider: "LoggerProvider | None") -> "Logger | None":
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
