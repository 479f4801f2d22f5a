import pytest
from measured_set import make_measured_set

from ragforge.config import EvaluateSettings
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.observer_events import (
    WATCHED,
    emit_answer_grades,
    emit_evaluations,
    emit_judgments,
    write_evaluations,
)
from ragforge.records import AnswerGrade, Judgment


@pytest.fixture
def dataset(tmp_path):
    """Four answerable queries; the run `good` failed on the last."""
    return make_measured_set(tmp_path / "small")


@pytest.fixture
def told(dataset):
    """Return the events of some runs."""

    def tell(*runs, measures=(), **options):
        events = []
        found = evaluate_runs(dataset, runs, EvaluateSettings(measures=measures))
        emit_evaluations(found, events.append, **options)
        return events

    return tell


def test_means_without_the_queries_that_a_run_lacks_are_told_as_such(dataset):
    """They are not to be drawn in one line with those of all queries."""
    events = []
    found = evaluate_runs(dataset, ["bad"], EvaluateSettings(), only_retrieved=True)
    emit_evaluations(found, events.append)

    assert {event.labels.get("only_retrieved") for event in events} == {"true"}


def test_each_run_is_framed(told):
    """Observers keep a span open from the one to the other."""
    names = [event.name for event in told("good", measures=("RR",))]

    assert names == [
        "evaluation.start",
        *["evaluation.query"] * 4,
        *["evaluation.measure"] * 4,
        "evaluation.end",
    ]


def test_the_watched_measures_are_told_whatever_was_asked_for(told):
    """A line drawn over months must not have a gap because one night asked for something else."""
    first = told("bad", measures=("AP",))[1]

    assert list(first.measures) == ["AP", *WATCHED]


def test_a_query_has_its_values(told):
    """Who looks for the worst query of a night looks into its span."""
    first = told("bad", measures=("RR",))[1]

    assert (first.outcome, first.labels["query_id"]) == ("done", "q00")
    assert first.measures["RR"] == 0.5
    assert first.numbers == {
        "holes": 1,
        "rank": 2,
        "relevant": 1,
        "retrieved": 3,
        "latency_s": 0.02,
    }


def test_a_query_on_which_the_retriever_failed_has_no_value(told):
    """A failure is never a value: a 0 here would draw a bad retriever instead of a broken one."""
    last = told("good", measures=("RR",))[4]

    assert (last.outcome, last.labels["query_id"], last.labels["kind"]) == (
        "failed",
        "q03",
        "retrieval",
    )
    assert dict(last.measures) == {}
    assert last.labels["measures"].split() == ["RR", "P@5", "R@5", "nDCG@10"]


def test_failures_and_holes_are_counted_at_the_end(told):
    """Without them a mean looks better founded than it is."""
    end = told("good")[-1]

    assert dict(end.numbers) == {
        "done": 3,
        "failed": 1,
        "without_judgments": 0,
        "retrieved": 9,
        "holes": 3,
    }


def test_a_mean_comes_with_interval_and_bounds(told):
    """A gauge without its interval invites reading noise as news."""
    event = told("good", measures=("RR",))[5]

    assert dict(event.measures) == {"RR": 1.0}
    assert (event.numbers["least"], event.numbers["most"]) == (0.75, 1.0)


@pytest.mark.parametrize(
    ("texts", "content"), [({}, ()), ({"q00": "Where?"}, (("question", "Where?"),))]
)
def test_questions_are_told_only_where_they_are_given(told, texts, content):
    """Questions of users are nobody's business unless somebody says so."""
    assert told("bad", texts=texts)[1].content == content


def test_an_unanswerable_query_is_not_told(told):
    """It is in no measure of retrieval."""
    ids = [event.labels.get("query_id") for event in told("bad")]

    assert "never" not in ids


def test_the_file_for_prometheus_has_the_watched_measures_too(dataset, tmp_path):
    """Gauges and file are drawn in the same pictures."""
    found = evaluate_runs(dataset, ["bad"], EvaluateSettings(measures=("AP",)))

    write_evaluations(tmp_path / "ragforge.prom", found)

    text = (tmp_path / "ragforge.prom").read_text(encoding="utf-8")
    means = [line for line in text.splitlines() if line.startswith("ragforge_measure{")]
    assert [line.rpartition('measure="')[2] for line in means] == [
        'AP"} 0.5',
        'P@5"} 0.2',
        'R@5"} 1.0',
        'RR"} 0.5',
        'nDCG@10"} 0.6309297535714574',
    ]


def test_a_failed_judgment_is_told_without_a_grade():
    """A dashboard of grades must not show what the judge never said."""
    events = []
    failed = Judgment(query_id="q", chunk_id="c", grade=None, failure="refused")

    emit_judgments([failed], events.append)

    [event] = events
    assert (event.outcome, event.labels["kind"], dict(event.numbers)) == ("failed", "refused", {})


def test_a_judgment_is_told_with_its_meaning():
    """A 2 says nothing to whoever did not read the scale."""
    events = []

    emit_judgments([Judgment(query_id="q", chunk_id="c", grade=2, reasoning="so")], events.append)

    [event] = events
    assert event.labels["label"] == "part of the answer"
    assert (event.numbers["grade"], event.content) == (2, (("explanation", "so"),))


def test_a_grade_of_an_answer_names_the_system():
    """Several systems answer the same queries."""
    events = []
    grade = AnswerGrade(query_id="q", verdict="partial", score=0.5, has_hallucination=None)

    emit_answer_grades("rag-a", [grade], events.append)

    [event] = events
    assert (event.labels["system"], event.labels["label"]) == ("rag-a", "partial")
    assert event.numbers["grade"] == 0.5
