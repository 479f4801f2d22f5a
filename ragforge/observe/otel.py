"""An observer that turns events into OpenTelemetry spans, metrics and events.

Nothing is exported unless the application that runs ragforge has set up an OpenTelemetry SDK;
without one, the API does nothing. The names are in `genai_names`.
"""

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ragforge.errors import ConfigError
from ragforge.observe import Event
from ragforge.observe import genai_names as names
from ragforge.observe.genai_names import Value, clean, error_type, messages, number, whole_numbers
from ragforge.observe.otel_evaluations import EVALUATION_EVENTS, EvaluationTelemetry, event_logger

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
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
    cost nothing now. What is told of evaluations is in `otel_evaluations`. The package
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
    _evaluations: EvaluationTelemetry | None = field(default=None, init=False, repr=False)
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
        elif event.name in EVALUATION_EVENTS:
            self._evaluation(event, self._instruments)

    def _evaluation(self, event: Event, instruments: _Instruments) -> None:
        if self._evaluations is None:
            from ragforge import __version__

            self._evaluations = EvaluationTelemetry(
                instruments.tracer,
                instruments.meter,
                event_logger(__version__, self.logger_provider),
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
