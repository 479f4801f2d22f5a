import json
import socket
import subprocess
import sys

import pytest

from ragforge.errors import ConfigError
from ragforge.observe import Event
from ragforge.observe import genai_names as names
from ragforge.observe.otel import OpenTelemetryObserver

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

NUMBERS = {
    "prompt_tokens": 120.0,
    "completion_tokens": 8.0,
    "latency_s": 1.5,
    "cost_usd": 0.002,
    "attempts": 2.0,
    "temperature": 0.0,
    "max_output_tokens": 1024.0,
    "seed": 7.0,
}
LABELS = {
    "model": "gpt-x",
    "reply_model": "gpt-x-0613",
    "endpoint": "https://api.mistral.ai/v1",
    "schema": "relevance",
    "finish_reason": "stop",
    "reply_id": "chatcmpl-1",
}
TEXTS = (("system", "be brief"), ("user", "grade this"), ("assistant", '{"grade": 2}'))
DONE = Event("call", outcome="done", numbers=NUMBERS, labels=LABELS, content=TEXTS)
CACHED = Event("call", outcome="cached", numbers=NUMBERS, labels=LABELS, content=TEXTS)
FAILED = Event(
    "call",
    outcome="failed",
    message="the model refused: I will not",
    numbers={"latency_s": 0.5},
    labels={"model": "gpt-x", "endpoint": "openai", "kind": "refused"},
    content=TEXTS[:2],
)


class Telemetry:
    """What an application's OpenTelemetry SDK gets of some events."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    def observer(self, *, texts=False):
        return OpenTelemetryObserver(
            texts=texts, tracer_provider=self.tracers, meter_provider=self.meters
        )

    def spans(self):
        return self.exporter.get_finished_spans()

    def metrics(self):
        data = self.reader.get_metrics_data()
        scopes = [] if data is None else data.resource_metrics[0].scope_metrics
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def points(self, name):
        return self.metrics()[name].data.data_points


@pytest.fixture
def telemetry():
    """Give telemetry that is shut down afterwards."""
    made = Telemetry()
    yield made
    made.tracers.shutdown()
    made.meters.shutdown()


def test_a_call_is_a_client_span_with_the_attributes_of_the_convention(telemetry):
    """Dashboards for models find calls by these names, and by no others."""
    telemetry.observer()(DONE)

    [span] = telemetry.spans()
    assert (span.name, span.kind) == ("chat gpt-x", SpanKind.CLIENT)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mistral_ai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 1024,
        "gen_ai.request.seed": 7,
        "gen_ai.output.type": "json",
        "gen_ai.response.model": "gpt-x-0613",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 8,
        "server.address": "api.mistral.ai",
        "server.port": 443,
        "ragforge.schema": "relevance",
        "ragforge.attempts": 2,
        "ragforge.cost_usd": 0.002,
        "ragforge.cached": False,
    }


def test_whole_numbers_are_whole_and_the_temperature_is_not(telemetry):
    """A backend drops, or files apart, an attribute whose type differs from the convention's."""
    telemetry.observer()(DONE)

    [span] = telemetry.spans()
    assert type(span.attributes["gen_ai.usage.input_tokens"]) is int
    assert type(span.attributes["gen_ai.request.seed"]) is int
    assert type(span.attributes["gen_ai.request.temperature"]) is float


def test_a_span_is_as_long_as_the_call_was(telemetry):
    """The event comes when the call has ended; a span from there on would last no time."""
    telemetry.observer()(DONE)

    [span] = telemetry.spans()
    assert span.end_time - span.start_time == 1_500_000_000


def test_spans_and_metrics_name_the_version_of_the_convention(telemetry):
    """A backend that translates between versions needs to know which this is."""
    telemetry.observer()(DONE)

    [span] = telemetry.spans()
    assert span.instrumentation_scope.name == "ragforge"
    assert span.instrumentation_scope.schema_url == "https://opentelemetry.io/schemas/1.41.0"


def test_a_failed_call_says_why(telemetry):
    """An alert on errors needs a class of error that it can group by."""
    telemetry.observer()(FAILED)

    [span] = telemetry.spans()
    assert span.attributes["error.type"] == "refused"
    assert span.status.status_code is StatusCode.ERROR


def test_a_failure_of_no_named_kind_is_other(telemetry):
    """The convention has a word for errors without a class; an absent one would read as success."""
    telemetry.observer()(Event("call", outcome="failed"))

    [span] = telemetry.spans()
    assert span.attributes["error.type"] == "_OTHER"


def test_a_call_from_the_store_takes_and_uses_nothing(telemetry):
    """Backends price spans by their tokens: a resumed run would seem to be paid for twice."""
    telemetry.observer()(CACHED)

    [span] = telemetry.spans()
    assert span.attributes["ragforge.cached"] is True
    assert span.end_time == span.start_time
    assert not [name for name in span.attributes if "usage" in name or "cost" in name]
    assert telemetry.metrics() == {}


def test_calls_are_children_of_the_stage(telemetry):
    """A trace must show which stage took the time."""
    observer = telemetry.observer()

    observer(Event("stage.start", stage="judge", numbers={"total": 40.0}))
    observer(DONE)
    observer(Event("stage.end", stage="judge"))

    call, stage = telemetry.spans()
    assert (stage.name, dict(stage.attributes)) == (
        "ragforge judge",
        {"ragforge.stage": "judge", "ragforge.stage.total": 40},
    )
    assert call.parent.span_id == stage.context.span_id
    assert stage.parent is None


def test_calls_are_children_of_the_stage_started_last(telemetry):
    """Generation judges its own queries: those calls are the inner stage's."""
    observer = telemetry.observer()

    observer(Event("stage.start", stage="generate"))
    observer(Event("stage.start", stage="judge"))
    observer(DONE)
    observer(Event("stage.end", stage="judge"))
    observer(FAILED)
    observer(Event("stage.end", stage="generate"))

    inner_call, inner, outer_call, outer = telemetry.spans()
    assert inner_call.parent.span_id == inner.context.span_id
    assert inner.parent.span_id == outer.context.span_id
    assert outer_call.parent.span_id == outer.context.span_id


def test_a_stage_may_end_before_one_that_started_later(telemetry):
    """Two stages at once must not end each other's spans."""
    observer = telemetry.observer()

    observer(Event("stage.start", stage="judge"))
    observer(Event("stage.start", stage="answer"))
    observer(Event("stage.end", stage="judge"))
    observer(Event("stage.end", stage="answer"))

    assert [span.name for span in telemetry.spans()] == ["ragforge judge", "ragforge answer"]


def test_the_inner_of_two_stages_of_one_name_ends_first(telemetry):
    """A stage that runs itself must not end its own parent."""
    observer = telemetry.observer()

    observer(Event("stage.start", stage="judge"))
    observer(Event("stage.start", stage="judge"))
    observer(Event("stage.end", stage="judge"))
    observer(Event("stage.end", stage="judge"))

    inner, outer = telemetry.spans()
    assert inner.parent.span_id == outer.context.span_id


def test_the_end_of_an_unknown_stage_is_passed_over(telemetry):
    """An observer that was added half-way through must not raise."""
    telemetry.observer()(Event("stage.end", stage="judge"))

    assert telemetry.spans() == ()


def test_a_run_is_part_of_the_trace_of_the_application(telemetry):
    """A nightly job that evaluates must see it in its own trace."""
    with telemetry.tracers.get_tracer("app").start_as_current_span("nightly") as nightly:
        observer = telemetry.observer()
        observer(Event("stage.start", stage="judge"))
        observer(Event("stage.end", stage="judge"))

    [stage, _] = telemetry.spans()
    assert stage.parent.span_id == nightly.get_span_context().span_id


def test_the_histograms_have_the_buckets_of_the_convention(telemetry):
    """The SDK's own buckets start at 5, which puts every call of a second into one."""
    telemetry.observer()(DONE)

    [duration] = telemetry.points("gen_ai.client.operation.duration")
    tokens, _ = telemetry.points("gen_ai.client.token.usage")
    assert duration.explicit_bounds == (
        *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
        *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    )
    assert tokens.explicit_bounds == (
        *(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536),
        *(262144, 1048576, 4194304, 16777216, 67108864),
    )


def test_metrics_have_the_units_of_the_convention(telemetry):
    """A histogram of milliseconds on an axis of seconds is wrong by a thousand."""
    observer = telemetry.observer()

    observer(DONE)
    observer(Event("unit", stage="judge", outcome="done"))
    observer(Event("retry"))

    assert {name: metric.unit for name, metric in telemetry.metrics().items()} == {
        "gen_ai.client.operation.duration": "s",
        "gen_ai.client.token.usage": "{token}",
        "ragforge.cost": "USD",
        "ragforge.units": "{unit}",
        "ragforge.retries": "{retry}",
    }


def test_tokens_are_counted_by_direction(telemetry):
    """Prices differ by direction, so the sum of both says nothing about a bill."""
    telemetry.observer()(DONE)

    points = telemetry.points("gen_ai.client.token.usage")
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in points}
    assert sums == {"input": 120, "output": 8}


def test_metrics_tell_models_and_endpoints_apart(telemetry):
    """Latency of two models in one histogram is that of neither."""
    telemetry.observer()(DONE)

    [duration] = telemetry.points("gen_ai.client.operation.duration")
    assert duration.sum == 1.5
    assert dict(duration.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mistral_ai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x-0613",
        "server.address": "api.mistral.ai",
        "server.port": 443,
    }


def test_failed_calls_are_timed_apart(telemetry):
    """A rate of errors is the share of durations that carry error.type."""
    telemetry.observer()(FAILED)

    [duration] = telemetry.points("gen_ai.client.operation.duration")
    assert (duration.count, duration.attributes["error.type"]) == (1, "refused")


def test_a_call_without_a_latency_is_in_no_histogram(telemetry):
    """A call that never got through did not take zero seconds."""
    telemetry.observer()(Event("call", outcome="failed", labels={"kind": "transient"}))

    assert telemetry.metrics() == {}


def test_what_was_paid_is_summed(telemetry):
    """The one alert everybody wants is on money."""
    observer = telemetry.observer()

    observer(DONE)
    observer(DONE)
    observer(CACHED)

    [point] = telemetry.points("ragforge.cost")
    assert point.value == 0.004
    assert point.attributes["gen_ai.request.model"] == "gpt-x"


def test_units_are_counted_by_stage_and_outcome(telemetry):
    """Failed units are what a report must be read with."""
    observer = telemetry.observer()

    observer(Event("unit", stage="judge", outcome="done"))
    observer(Event("unit", stage="judge", outcome="done"))
    observer(Event("unit", stage="judge", outcome="failed", message="no grade"))

    points = telemetry.points("ragforge.units")
    assert {point.attributes["ragforge.outcome"]: point.value for point in points} == {
        "done": 2,
        "failed": 1,
    }
    assert {point.attributes["ragforge.stage"] for point in points} == {"judge"}


def test_retries_are_counted_by_kind(telemetry):
    """Many of kind rate say that the limit of the endpoint is met, not that it is ill."""
    telemetry.observer()(Event("retry", labels={"model": "gpt-x", "kind": "rate"}))

    [point] = telemetry.points("ragforge.retries")
    assert (point.value, point.attributes["error.type"]) == (1, "rate")


def test_texts_stay_out_unless_asked_for(telemetry):
    """Traces leave the machine; the user's documents must not go with them unasked."""
    observer = telemetry.observer()

    observer(DONE)
    observer(FAILED)

    told = "".join(span.to_json() for span in telemetry.spans())
    assert not [text for text in ("grade this", '"grade', "I will not") if text in told]


def test_texts_are_messages_when_asked_for(telemetry):
    """Viewers of traces show a conversation only in the form of the convention."""
    telemetry.observer(texts=True)(DONE)

    [span] = telemetry.spans()
    assert json.loads(span.attributes["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
        {"role": "user", "parts": [{"type": "text", "content": "grade this"}]},
    ]
    assert json.loads(span.attributes["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": '{"grade": 2}'}],
            "finish_reason": "stop",
        }
    ]


def test_a_call_without_a_reply_has_no_output_message(telemetry):
    """The last turn of a question must not be shown as what the model said."""
    telemetry.observer(texts=True)(FAILED)

    [span] = telemetry.spans()
    assert len(json.loads(span.attributes["gen_ai.input.messages"])) == 2
    assert "gen_ai.output.messages" not in span.attributes
    assert span.status.description == "the model refused: I will not"


def test_lone_surrogates_are_replaced(telemetry):
    """Half a character in one reply makes the exporter lose the whole batch of spans."""
    labels = {"model": "\ud800", "reply_id": "a\udfff"}
    call = Event("call", outcome="done", labels=labels, content=(("assistant", "\ud83d"),))

    telemetry.observer(texts=True)(call)

    [span] = telemetry.spans()
    assert (span.name, span.attributes["gen_ai.response.id"]) == ("chat ?", "a?")
    assert json.loads(span.attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == "?"


def test_numbers_that_are_none_are_left_out(telemetry):
    """An observer must not raise, whatever an endpoint claims to have counted."""
    numbers = {"latency_s": float("inf"), "prompt_tokens": float("nan"), "seed": float("inf")}

    telemetry.observer()(Event("call", outcome="done", numbers=numbers))

    [span] = telemetry.spans()
    assert not [name for name in span.attributes if "usage" in name or "seed" in name]


@pytest.mark.parametrize(
    ("endpoint", "server"),
    [
        ("openai", ("openai", "api.openai.com", 443)),
        ("local", ("llama_cpp", None, None)),
        ("http://127.0.0.1:8080/v1", ("openai", "127.0.0.1", 8080)),
        ("http://[::1]/v1", ("openai", "::1", 80)),
        ("https://mine.openai.azure.com/x", ("azure.ai.openai", "mine.openai.azure.com", 443)),
        (
            "https://europe-west1-aiplatform.googleapis.com/v1",
            ("gcp.vertex_ai", "europe-west1-aiplatform.googleapis.com", 443),
        ),
        ("https://api.groq.com.evil.example", ("openai", "api.groq.com.evil.example", 443)),
        ("http://[broken", ("openai", None, None)),
        ("http://host:port", ("openai", None, None)),
        ("", ("openai", None, None)),
    ],
)
def test_the_endpoint_becomes_provider_host_and_port(telemetry, endpoint, server):
    """The provider says which flavour of telemetry this is; the host says who really answered."""
    telemetry.observer()(Event("call", outcome="done", labels={"endpoint": endpoint}))

    [span] = telemetry.spans()
    keys = ("gen_ai.provider.name", "server.address", "server.port")
    assert tuple(span.attributes.get(key) for key in keys) == server


def test_secrets_in_an_address_do_not_get_into_spans(telemetry):
    """OPENAI_BASE_URL is not checked as the settings are, and may hold a password."""
    labels = {"endpoint": "https://me:hunter2@proxy.example/v1?key=hunter2"}

    telemetry.observer()(Event("call", outcome="done", labels=labels))

    [span] = telemetry.spans()
    assert "hunter2" not in span.to_json()
    assert span.attributes["server.address"] == "proxy.example"


@pytest.mark.parametrize("texts", [False, True])
def test_nothing_is_sent_anywhere(telemetry, monkeypatch, texts):
    """Sending is the exporter's affair; ragforge promises no telemetry of its own."""

    def refuse(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    observer = telemetry.observer(texts=texts)

    observer(Event("stage.start", stage="judge"))
    observer(DONE)
    observer(FAILED)
    observer(Event("stage.end", stage="judge"))

    assert telemetry.tracers.force_flush()
    assert len(telemetry.spans()) == 3


def test_without_an_sdk_nothing_happens():
    """An application that has not set OpenTelemetry up must run as before, without a word."""
    code = (
        "from ragforge.observe import Event\n"
        "from ragforge.observe.otel import OpenTelemetryObserver\n"
        "observer = OpenTelemetryObserver(texts=True)\n"
        "for name in ('stage.start', 'unit', 'tick', 'call', 'retry', 'note', 'stage.end'):\n"
        "    observer(Event(name, outcome='done', stage='judge'))\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_the_package_is_imported_with_the_first_event():
    """Whoever does not use it must not wait for its import, nor need it to be there."""
    code = (
        "import sys\n"
        "from ragforge.observe import Event\n"
        "from ragforge.observe.otel import OpenTelemetryObserver\n"
        "observer = OpenTelemetryObserver()\n"
        "print('opentelemetry' in sys.modules)\n"
        "observer(Event('tick'))\n"
        "print('opentelemetry.trace' in sys.modules, 'opentelemetry.sdk' in sys.modules)\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == ["False", "True", "False"]


def test_a_missing_package_is_named(monkeypatch):
    """Who asked for traces must be told what to install, and not get a run without them."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(ConfigError, match=r"pip install 'ragforge\[otel\]'"):
        OpenTelemetryObserver()(Event("note"))


def test_every_name_is_one_of_the_convention():
    """A mistyped name is no error anywhere: its value is just never found."""
    attributes = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.gen_ai_attributes"
    )
    metrics = pytest.importorskip("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
    tests = pytest.importorskip("opentelemetry.semconv._incubating.attributes.test_attributes")
    # The package lists no events.
    known = [names.EVALUATION_RESULT]
    known += [value for module in (attributes, metrics, tests) for value in vars(module).values()]

    ours = [v for v in vars(names).values() if str(v).startswith(("gen_ai.", "test."))]

    assert [name for name in ours if name not in known] == []
