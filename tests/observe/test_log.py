import logging

import pytest

from ragforge.observe import Event
from ragforge.observe.log import LogObserver

CALL = Event(
    "call",
    outcome="done",
    numbers={"prompt_tokens": 12.0, "latency_s": 0.25},
    labels={"model": "judge-1", "reply_model": "judge-1-0613"},
    content=(("user", "the secret question"), ("assistant", "the secret reply")),
)


@pytest.fixture
def told(caplog):
    """Return what the root logger gets to hear of an event."""
    caplog.set_level(logging.DEBUG, logger="ragforge")

    def tell(event):
        LogObserver()(event)
        [record] = caplog.records
        return record

    return tell


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (Event("stage.start", stage="judge"), logging.INFO),
        (Event("stage.end", stage="judge"), logging.INFO),
        (Event("note", message="so"), logging.INFO),
        (Event("retry", message="busy"), logging.INFO),
        (Event("flow", message="fewer at once"), logging.INFO),
        (Event("tick", stage="judge"), logging.DEBUG),
        (Event("unit", stage="judge", outcome="done"), logging.DEBUG),
        (Event("unit", stage="judge", outcome="failed"), logging.WARNING),
        (Event("call", outcome="done"), logging.DEBUG),
        (Event("call", outcome="cached"), logging.DEBUG),
        (Event("call", outcome="failed"), logging.WARNING),
        (Event("evaluation.start"), logging.INFO),
        (Event("evaluation.measure"), logging.INFO),
        (Event("evaluation.end"), logging.INFO),
        (Event("evaluation.query", outcome="done"), logging.DEBUG),
        (Event("evaluation.query", outcome="failed"), logging.WARNING),
        (Event("grade", outcome="done"), logging.DEBUG),
    ],
)
def test_the_level_says_how_much_it_matters(told, event, level):
    """A log at WARNING must show what failed, and nothing that happens a thousand times a run."""
    assert told(event).levelno == level


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Event("note", message="two were left out"), "two were left out"),
        (
            Event("stage.start", stage="judge", numbers={"total": 40.0}),
            "judge: stage.start (total=40)",
        ),
        (
            Event("unit", stage="judge", outcome="failed", message="no grade"),
            "judge: unit failed: no grade",
        ),
        (
            CALL,
            "call done (model=judge-1, reply_model=judge-1-0613, prompt_tokens=12, latency_s=0.25)",
        ),
    ],
)
def test_the_message_says_what_happened(told, event, message):
    """Who logs without structure must still see stage, reason and cost."""
    assert told(event).getMessage() == message


def test_numbers_and_labels_become_fields(told):
    """A log pipeline must be able to sum tokens without parsing sentences."""
    record = vars(told(CALL))

    assert {key: value for key, value in record.items() if key.startswith("ragforge_")} == {
        "ragforge_event": "call",
        "ragforge_stage": "",
        "ragforge_outcome": "done",
        "ragforge_prompt_tokens": 12.0,
        "ragforge_latency_s": 0.25,
        "ragforge_model": "judge-1",
        "ragforge_reply_model": "judge-1-0613",
    }


def test_fields_named_as_those_of_a_record_are_taken(told):
    """`logging` raises KeyError for an extra field called name, which would end the run."""
    record = told(Event("call", numbers={"created": 1.0}, labels={"name": "a", "message": "b"}))

    assert (record.name, record.ragforge_name, record.ragforge_message) == ("ragforge", "a", "b")


def test_texts_stay_out(told):
    """Prompts hold the user's documents; a log is kept and shipped by others."""
    assert "secret" not in repr(vars(told(CALL)))


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a\nERROR forged", r"a\nERROR forged"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("\u202etxt.exe", r"\u202etxt.exe"),
        ("\ud800", r"\ud800"),
        ("Größe 大", "Größe 大"),
    ],
)
def test_control_characters_are_escaped(told, message, shown):
    """A reply must not forge a line of the log, nor steer the terminal that shows it."""
    record = told(Event("retry", message=message, labels={"kind": message}))

    assert record.getMessage() == f"retry: {shown} (kind={shown})"
    assert record.ragforge_kind == shown


def test_formatting_waits_for_a_handler(told):
    """Aggregators group records by their template, which must not hold the message itself."""
    record = told(Event("unit", stage="judge", outcome="failed", message="100% wrong"))

    assert record.msg == "%s: %s: %s"
    assert record.args == ("judge", "unit failed", "100% wrong")


def test_a_level_that_is_off_is_left_alone(caplog):
    """Logging belongs to the application: its levels and handlers decide."""
    logger = logging.getLogger("ragforge")
    before = (logger.level, list(logger.handlers), logging.root.level, list(logging.root.handlers))

    LogObserver()(CALL)

    assert caplog.records == []
    after = (logger.level, list(logger.handlers), logging.root.level, list(logging.root.handlers))
    assert after == before


def test_another_logger_can_be_given(caplog):
    """A service that runs two evaluations tells them apart by logger."""
    LogObserver(logging.getLogger("nightly"))(Event("call", outcome="failed", message="busy"))

    assert caplog.record_tuples == [("nightly", logging.WARNING, "call failed: busy")]


def test_measures_are_told_by_name(told):
    """A log of evaluations without their values would be of no use."""
    event = Event("evaluation.measure", labels={"run": "bm25"}, measures={"nDCG@10": 0.5})

    record = told(event)

    assert record.getMessage() == "evaluation.measure (run=bm25, nDCG@10=0.5)"
    assert getattr(record, "ragforge_nDCG@10") == 0.5
