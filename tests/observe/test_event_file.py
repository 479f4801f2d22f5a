import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragforge.errors import DataError
from ragforge.observe import Event
from ragforge.observe.log import EventFile

NOTE = Event("note", message="one")
CALL = Event(
    "call",
    stage="judge",
    outcome="failed",
    message="no\ngrade",
    numbers={"latency_s": 0.5},
    labels={"kind": "invalid"},
    content=(("user", "which?"), ("assistant", "that\u2028one")),
)
FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="needs Linux' /dev/full")


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def test_each_event_is_one_object_on_one_line(tmp_path):
    """What reads the file, grep or jq, takes it line by line."""
    path = tmp_path / "events.jsonl"

    with EventFile(path) as events:
        events(CALL)

    [row] = rows(path)
    del row["time"]
    assert row == {
        "name": "call",
        "stage": "judge",
        "outcome": "failed",
        "message": "no\ngrade",
        "numbers": {"latency_s": 0.5},
        "labels": {"kind": "invalid"},
    }


def test_the_time_is_in_utc(tmp_path):
    """Files of machines in two time zones must sort into one order."""
    path = tmp_path / "events.jsonl"

    with EventFile(path) as events:
        events(NOTE)

    time = datetime.fromisoformat(rows(path)[0]["time"])
    assert time.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - time) < timedelta(minutes=5)


def test_texts_are_written_when_asked_for(tmp_path):
    """Looking into a bad judgment needs the prompt; nobody gets it who did not say so."""
    path = tmp_path / "events.jsonl"

    with EventFile(path, texts=True) as events:
        events(CALL)

    assert rows(path)[0]["content"] == [
        {"role": "user", "text": "which?"},
        {"role": "assistant", "text": "that\u2028one"},
    ]


def test_a_later_run_appends(tmp_path):
    """A resumed run must not erase what the first one was charged for."""
    path = tmp_path / "events.jsonl"

    with EventFile(path) as events:
        events(NOTE)
    with EventFile(path) as events:
        events(Event("note", message="two"))

    assert [row["message"] for row in rows(path)] == ["one", "two"]


def test_a_severed_last_line_does_not_swallow_the_next(tmp_path):
    """A killed run leaves half a line; the next run's first event must stay readable."""
    path = tmp_path / "events.jsonl"
    path.write_text('{"name": "no', encoding="ascii")

    with EventFile(path) as events:
        events(NOTE)

    assert json.loads(path.read_text(encoding="ascii").splitlines()[1])["message"] == "one"


def test_a_line_is_in_the_file_at_once(tmp_path):
    """`tail -f` must show a run as it goes, and a killed run must leave its events."""
    path = tmp_path / "events.jsonl"

    with EventFile(path) as events:
        events(NOTE)
        assert len(rows(path)) == 1


def test_numbers_that_json_lacks_are_null(tmp_path):
    """A bare NaN makes the whole line unreadable to every parser but Python's."""
    path = tmp_path / "events.jsonl"

    with EventFile(path) as events:
        events(Event("call", numbers={"latency_s": float("nan")}))

    assert rows(path)[0]["numbers"] == {"latency_s": None}


def test_lone_surrogates_are_written(tmp_path):
    """A model can reply with half a character; an observer must not raise."""
    path = tmp_path / "events.jsonl"

    with EventFile(path) as events:
        events(Event("note", message="\ud800"))

    assert rows(path)[0]["message"] == "\ud800"


@needs_a_full_disk
def test_a_full_disk_is_complained_of_once():
    """The judgments are what is paid for; their log must not end the run, nor flood it."""
    complaints = []

    with EventFile(FULL, complain=complaints.append) as events:
        events(NOTE)
        events(NOTE)

    assert complaints == [
        "/dev/full: No space left on device; events are no longer written, the run goes on"
    ]


@needs_a_full_disk
def test_a_full_disk_is_logged_where_nobody_listens(caplog):
    """Who gave nothing to complain to must not find the end of the file missing without a word."""
    with EventFile(FULL) as events:
        events(NOTE)

    assert caplog.record_tuples == [
        (
            "ragforge",
            logging.WARNING,
            "/dev/full: No space left on device; events are no longer written, the run goes on",
        )
    ]


def test_a_file_that_cannot_be_made_is_an_error(tmp_path):
    """A mistyped path must be said before the first call is paid for."""
    path = tmp_path / "missing" / "events.jsonl"

    with pytest.raises(DataError, match=r"events\.jsonl: cannot be opened: No such file"):
        EventFile(path)


def test_events_after_the_end_are_passed_over(tmp_path):
    """A stray event of a task that is being cancelled must not raise."""
    path = tmp_path / "events.jsonl"
    with EventFile(path) as events:
        events(NOTE)

    events(NOTE)

    assert len(rows(path)) == 1
