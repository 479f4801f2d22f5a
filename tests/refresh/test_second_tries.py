"""Checks that gave nothing, asked for again by the refresh after it."""

from contextlib import closing

import pytest

from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
from ragforge.records import Failure
from ragforge.refresh.refreshing import try_again

FAILED = Failure(
    what="recheck", key="q1", kind="invalid", message="no JSON", raw="Well.", call_keys=("a", "b")
)
"""A check whose first reply and whose repaired one were no use."""


@pytest.fixture
def store(tmp_path):
    """A call store with the two replies."""
    with closing(CallStore(tmp_path / "calls.sqlite")) as opened:
        opened.put("a", "endpoint", "model", ChatReply("Hm."), None)
        opened.put("b", "endpoint", "model", ChatReply("Well."), None)
        yield opened


def test_replies_of_a_failed_check_are_put_aside(store):
    """Served from the store, a night's nonsense would keep a query out for good."""
    try_again(store, [FAILED])

    assert (store.get("a"), store.get("b")) == (None, None)


def test_a_check_that_was_asked_for_again_is_left_alone(store):
    """A refresh that was killed behind it must not pay for it twice."""
    store.put("b", "endpoint", "model", ChatReply("Something else."), None)

    try_again(store, [FAILED])

    assert store.get("a").text == "Hm."


def test_a_refusal_is_asked_for_again_as_well(store):
    """It is no answer either."""
    store.put("b", "endpoint", "model", ChatReply("", refusal="I cannot."), None)

    try_again(store, [FAILED.model_copy(update={"raw": "I cannot."})])

    assert store.get("b") is None


def test_failures_of_other_stages_are_left_alone(store):
    """They have their own flag."""
    try_again(store, [FAILED.model_copy(update={"what": "judge"})])

    assert store.get("b").text == "Well."
