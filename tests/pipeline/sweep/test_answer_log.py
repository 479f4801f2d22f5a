"""The log of answers of a sweep: what a kill, a full disk or a hand made of it."""

import pytest

from ragforge.errors import DataError
from ragforge.pipeline.sweep.answer_log import AnswerLog


@pytest.fixture
def path(tmp_path):
    """Return the path of a log with one answer."""
    path = tmp_path / "answers.jsonl"
    AnswerLog.opened(path).add("a", "Whales eat\nkrill.")
    return path


def test_an_answer_is_there_after_the_process_that_had_it(path):
    """It may have been paid for."""
    assert AnswerLog.opened(path).answers == {"a": "Whales eat\nkrill."}


def test_a_line_that_was_cut_costs_that_answer_alone(path):
    """A kill hits between two bytes."""
    path.write_text(path.read_text() + '{"key": "b", "ans')

    AnswerLog.opened(path).add("c", "squid")

    assert AnswerLog.opened(path).answers == {"a": "Whales eat\nkrill.", "c": "squid"}


@pytest.mark.parametrize("line", ["[]", "3", '{"key": "b"}', "\ufffd"])
def test_what_is_no_answer_is_passed_over(path, line):
    """A file in a cache must not stop the work."""
    path.write_text(f"{line}\n{path.read_text()}")

    assert list(AnswerLog.opened(path).answers) == ["a"]


def test_a_log_that_is_begun_anew_is_empty(path):
    """A service may have changed behind its address."""
    assert AnswerLog.opened(path, anew=True).answers == {}
    assert AnswerLog.opened(path).answers == {}


def test_a_log_without_a_path_keeps_to_memory():
    """Of an object no digest tells whether it is the same as before."""
    log = AnswerLog.opened(None)
    log.add("a", "krill")

    assert log.answers == {"a": "krill"}


def test_a_disk_that_takes_nothing_is_named(tmp_path):
    """Nothing is asked on whose answer cannot be kept."""
    log = AnswerLog.opened(tmp_path / "answers.jsonl")
    (tmp_path / "answers.jsonl").mkdir()

    with pytest.raises(DataError, match="cannot be written"):
        log.add("a", "krill")
