import logging
from dataclasses import replace
from unittest.mock import ANY

import pytest

from ragforge.observe import Event
from ragforge.observe import genai_names as names
from ragforge.observe.otel import OpenTelemetryObserver

pytest.importorskip("opentelemetry.sdk")

import opentelemetry._logs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

ABOUT = {"dataset": "help", "version": "3", "run": "bm25"}
SERIES = {"ragforge.dataset": "help", "ragforge.run": "bm25"}
START = Event(
    "evaluation.start",
    numbers={"total": 2, "depth": 10, "longest_s": 0.25},
    labels={**ABOUT, "evaluation_id": "ab12"},
)
DONE = Event(
    "evaluation.query",
    outcome="done",
    numbers={"holes": 1, "rank": 2, "relevant": 3, "retrieved": 10, "latency_s": 0.25},
    labels={**ABOUT, "query_id": "q1", "found": "hit"},
    measures={"RR": 0.5, "nDCG@10": 0.75},
    content=(("question", "Where is it?"),),
)
FAILED = Event(
    "evaluation.query",
    outcome="failed",
    labels={**ABOUT, "query_id": "q2", "kind": "retrieval", "measures": "RR nDCG@10"},
)
MEAN = Event(
    "evaluation.measure",
    numbers={"done": 1, "failed": 1, "low": 0.25, "high": 0.75, "least": 0.25, "most": 0.75},
    labels=ABOUT,
    measures={"RR": 0.5},
)
END = Event("evaluation.end", numbers={"done": 1, "failed": 1, "holes": 1}, labels=START.labels)
GRADE = Event(
    "grade",
    outcome="done",
    numbers={"grade": 2},
    labels={"name": "relevance", "query_id": "q1", "chunk_id": "c1", "label": "part"},
    content=(("explanation", "it says so"),),
)


class Telemetry:
    """What an application's OpenTelemetry SDK gets of some events."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.records = InMemoryLogRecordExporter()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self.records))

    def tell(self, *events, **options):
        observer = OpenTelemetryObserver(
            tracer_provider=self.tracers,
            meter_provider=self.meters,
            logger_provider=self.loggers,
            **options,
        )
        for event in events:
            observer(event)

    def spans(self):
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def points(self, name):
        [scope] = self.reader.get_metrics_data().resource_metrics[0].scope_metrics
        found = {metric.name: metric for metric in scope.metrics}
        return found[name].data.data_points

    def results(self):
        return [item.log_record for item in self.records.get_finished_logs()]


@pytest.fixture
def telemetry():
    """Give telemetry that is shut down afterwards."""
    made = Telemetry()
    yield made
    made.tracers.shutdown()
    made.meters.shutdown()
    made.loggers.shutdown()


def test_an_evaluation_holds_its_queries_and_a_query_its_retrieval(telemetry):
    """A trace that is no tree cannot be read."""
    telemetry.tell(START, DONE, END)

    spans = telemetry.spans()
    evaluation, query = spans["ragforge evaluate"], spans["ragforge query"]
    assert evaluation.parent is None
    assert query.parent.span_id == evaluation.context.span_id
    assert spans["retrieval help"].parent.span_id == query.context.span_id


def test_an_evaluation_says_what_was_measured(telemetry):
    """A trace is found by dataset, version and run."""
    telemetry.tell(START, END)

    assert dict(telemetry.spans()["ragforge evaluate"].attributes) == {
        **SERIES,
        "ragforge.dataset.version": 3,
        "ragforge.evaluation.id": "ab12",
        "test.suite.name": "help",
        "ragforge.evaluation.n_queries": 2,
        "ragforge.evaluation.depth": 10,
    }


def test_an_evaluation_holds_its_means(telemetry):
    """Traces are compared by them without opening each query."""
    telemetry.tell(START, MEAN, END)

    assert telemetry.spans()["ragforge evaluate"].attributes["ragforge.measure.RR"] == 0.5


def test_evaluations_are_counted(telemetry):
    """A night without one is an alert."""
    telemetry.tell(START, END, START, END)

    [point] = telemetry.points("ragforge.evaluations")
    assert (point.value, dict(point.attributes)) == (2, SERIES)


def test_a_failed_query_has_an_exception(telemetry):
    """Viewers list errors by these events."""
    telemetry.tell(START, FAILED, END)

    [event] = telemetry.spans()["ragforge query"].events
    assert (event.name, dict(event.attributes)) == ("exception", {"exception.type": "retrieval"})


def test_a_query_has_its_values(telemetry):
    """Who looks for the worst queries sorts spans by these."""
    telemetry.tell(START, DONE, END)

    assert dict(telemetry.spans()["ragforge query"].attributes) == {
        **SERIES,
        "ragforge.dataset.version": 3,
        "ragforge.query.id": "q1",
        "test.case.name": "q1",
        "ragforge.measure.RR": 0.5,
        "ragforge.measure.nDCG@10": 0.75,
        "ragforge.query.first_relevant_rank": 2,
        "ragforge.query.n_relevant": 3,
        "ragforge.query.n_retrieved": 10,
    }


def test_a_retrieval_is_as_long_as_it_was(telemetry):
    """Traces are searched for slow retrievals."""
    telemetry.tell(START, DONE, END)

    span = telemetry.spans()["retrieval help"]
    assert span.kind == SpanKind.CLIENT
    assert span.end_time - span.start_time == 250_000_000
    assert span.attributes["gen_ai.operation.name"] == "retrieval"
    assert span.attributes["gen_ai.data_source.id"] == "help"


def test_a_run_begins_before_its_retrievals(telemetry):
    """Viewers shift or cut a child that begins before its parent."""
    telemetry.tell(START, DONE, END)

    spans = telemetry.spans()
    assert spans["ragforge evaluate"].start_time <= spans["retrieval help"].start_time


def test_a_failed_query_is_an_error_without_values(telemetry):
    """A failure that is drawn as 0 blames the ranking for the network."""
    telemetry.tell(START, FAILED, END)

    span = telemetry.spans()["ragforge query"]
    assert span.status.status_code == StatusCode.ERROR
    assert span.attributes["error.type"] == "retrieval"
    assert [key for key in span.attributes if key.startswith("ragforge.measure")] == []


def test_the_gauges_hold_mean_and_interval(telemetry):
    """Alerts are set on them."""
    telemetry.tell(START, MEAN, END)

    found = {
        name: [(point.value, dict(point.attributes)) for point in telemetry.points(name)]
        for name in ("ragforge.measure", "ragforge.measure.low", "ragforge.measure.high")
    }
    about = {**SERIES, "ragforge.measure": "RR"}
    assert found == {
        "ragforge.measure": [(0.5, about)],
        "ragforge.measure.low": [(0.25, about)],
        "ragforge.measure.high": [(0.75, about)],
    }


def test_means_without_the_queries_that_a_run_lacks_are_another_series(telemetry):
    """A gauge must not jump because one night left out what was not found."""
    telemetry.tell(replace(MEAN, labels={**MEAN.labels, "only_retrieved": "true"}))

    [point] = telemetry.points("ragforge.measure")
    assert dict(point.attributes) == {
        **SERIES,
        "ragforge.measure": "RR",
        "ragforge.only_retrieved": True,
    }


def test_a_measure_without_a_value_leaves_the_gauge_alone(telemetry):
    """No value is no 0."""
    telemetry.tell(START, MEAN, Event("evaluation.measure", labels=ABOUT), END)

    assert [point.value for point in telemetry.points("ragforge.measure")] == [0.5]


def test_latencies_are_a_histogram_in_seconds(telemetry):
    """Percentiles over nights come from it."""
    telemetry.tell(START, DONE, DONE, END)

    [point] = telemetry.points("ragforge.retrieval.duration")
    assert (point.count, point.sum, dict(point.attributes)) == (2, 0.5, SERIES)
    assert tuple(point.explicit_bounds) == names.RETRIEVAL_DURATION.buckets


def test_queries_are_counted_by_outcome(telemetry):
    """The share of failures is a quotient of these."""
    telemetry.tell(START, DONE, DONE, FAILED, END)

    counts = {
        p.attributes["ragforge.outcome"]: p.value for p in telemetry.points(names.QUERIES.name)
    }
    assert counts == {"done": 2, "failed": 1}


def test_holes_are_counted(telemetry):
    """Values fall when a retriever finds what nobody judged."""
    telemetry.tell(START, DONE, END)

    [point] = telemetry.points("ragforge.evaluation.holes")
    assert (point.value, dict(point.attributes)) == (1, SERIES)


def test_each_value_is_a_result_event_of_the_retrieval(telemetry):
    """The convention hangs a result on the operation that was evaluated."""
    telemetry.tell(START, DONE, END)

    records = telemetry.results()
    assert {record.event_name for record in records} == {"gen_ai.evaluation.result"}
    assert {record.span_id for record in records} == {
        telemetry.spans()["retrieval help"].context.span_id
    }
    assert [dict(record.attributes) for record in records] == [
        {
            **SERIES,
            "ragforge.dataset.version": 3,
            "ragforge.query.id": "q1",
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.value": value,
        }
        for name, value in (("RR", 0.5), ("nDCG@10", 0.75))
    ]


def test_a_failed_query_has_results_with_an_error_and_no_value(telemetry):
    """Whoever averages the events must not find a number there."""
    telemetry.tell(START, FAILED, END)

    assert [
        (item.attributes["gen_ai.evaluation.name"], item.attributes["error.type"])
        for item in telemetry.results()
        if "gen_ai.evaluation.score.value" not in item.attributes
    ] == [("RR", "retrieval"), ("nDCG@10", "retrieval")]


@pytest.mark.parametrize(("texts", "found"), [(False, []), (True, ["Where is it?"] * 2)])
def test_questions_are_told_only_when_asked_for(telemetry, texts, found):
    """Questions of users may be confidential."""
    telemetry.tell(START, DONE, END, texts=texts)

    spans = telemetry.exporter.get_finished_spans()
    told = [span.attributes.get("gen_ai.retrieval.query.text") for span in spans]
    assert [text for text in told if text] == found


def test_grades_are_told_only_when_asked_for(telemetry):
    """A night judges tens of thousands of pairs."""
    telemetry.tell(GRADE)

    assert telemetry.results() == []


@pytest.mark.parametrize(
    ("texts", "explained"),
    [(False, {}), (True, {"gen_ai.evaluation.explanation": "it says so"})],
)
def test_a_grade_is_a_result(telemetry, texts, explained):
    """Viewers of judges know this event."""
    telemetry.tell(GRADE, grades=True, texts=texts)

    [record] = telemetry.results()
    assert dict(record.attributes) == {
        "gen_ai.evaluation.name": "relevance",
        "gen_ai.evaluation.score.value": 2,
        "gen_ai.evaluation.score.label": "part",
        "ragforge.query.id": "q1",
        "ragforge.chunk.id": "c1",
        **explained,
    }


def test_a_failed_grade_is_an_error_without_a_value(telemetry):
    """An unparseable reply must not become a grade of 0 on its way to a dashboard."""
    failed = Event("grade", outcome="failed", labels={"name": "relevance", "kind": "invalid"})

    telemetry.tell(failed, grades=True)

    [record] = telemetry.results()
    assert dict(record.attributes) == {
        "gen_ai.evaluation.name": "relevance",
        "error.type": "invalid",
    }


def test_an_api_without_events_tells_the_rest(telemetry, monkeypatch, caplog):
    """An application may pin an older API; its traces must not end with an exception."""
    monkeypatch.setattr(opentelemetry._logs, "LogRecord", object)
    caplog.set_level(logging.WARNING, logger="ragforge")

    telemetry.tell(START, DONE, DONE, END)

    assert "ragforge evaluate" in telemetry.spans()
    assert [record.getMessage() for record in caplog.records] == [ANY]
    assert "gen_ai.evaluation.result is not told" in caplog.text


def test_a_value_without_end_is_not_told(telemetry):
    """Exporters refuse a whole batch for it."""
    endless = Event(
        "evaluation.query", outcome="done", labels=ABOUT, measures={"DCG": float("inf")}
    )

    telemetry.tell(START, endless, END)

    assert telemetry.results() == []
