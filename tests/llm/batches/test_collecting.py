"""What came of a batch: which replies are kept, and what counts as paid."""

import json
from contextlib import closing

import pytest

from ragforge.config import ModelSettings
from ragforge.llm.batches.collecting import Buyer, collect
from ragforge.llm.batches.records import BatchFolder, BatchRecord
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.openai_endpoint import OpenAIEndpoint
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.ledger import read_ledger

MOST = 2 + 4 + 50
"""Tokens that a request can take at most: eight characters, a turn, and the reply it allows."""


def reply(key, content="fine", usage=(10, 5)):
    """Return the line of a reply."""
    body = {"choices": [{"message": {"content": content}}]}
    if usage is not None:
        body["usage"] = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
    return line(key, 200, body)


def line(key, status, body):
    return {"custom_id": key, "response": {"status_code": status, "body": body}, "error": None}


@pytest.fixture
def store(tmp_path):
    with closing(CallStore(tmp_path / "calls.sqlite")) as found:
        yield found


@pytest.fixture
def collected(tmp_path, store):
    """Collect a batch of two requests, k1 and k2, from what came back."""

    def go(*lines, torn="", answered=None):
        folder = BatchFolder(tmp_path)
        asked = {"messages": [{"role": "user", "content": "8 signs."}], "max_tokens": 50}
        folder.requests_path("b").write_text(
            "".join(json.dumps({"custom_id": key, "body": asked}) + "\n" for key in ("k1", "k2"))
        )
        text = "".join(f"{json.dumps(each)}\n" for each in lines)
        folder.replies_path("b").write_text(text + torn)
        endpoint = OpenAIEndpoint(ModelSettings(name="m", base_url="http://127.0.0.1:9/v1"))
        record = BatchRecord(name="b", endpoint="e", model="m", answered=answered)
        return collect(record, folder, Buyer(store, endpoint, Price(1e6, 1e6), 0.5))

    return go


def perhaps_billed(store):
    return read_ledger(store.path).unanswered


def test_replies_are_stored_at_their_share_of_the_price(collected, store):
    """The sums of a set are what was paid."""
    found = collected(reply("k2"), reply("k1"))

    assert (found.state, found.missing, found.used) == ("collected", (), (2, 30, 15.0))
    assert (store.get("k1").text, store.spent().cost_usd) == ("fine", 15.0)


def test_an_error_is_not_paid(collected, store):
    """Providers bill what their models say."""
    found = collected(reply("k1"), line("k2", 500, {"error": {"message": "oops"}}))

    assert (found.missing, found.used, perhaps_billed(store)) == (("k2",), (1, 15, 7.5), 0)


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}, 8),
        ({"choices": []}, MOST),
        ("<html>", MOST),
    ],
    ids=["which tells its tokens", "which does not", "no object"],
)
def test_a_reply_that_cannot_be_read_is_paid(collected, store, body, tokens):
    """What it does not tell counts as the most that it can be."""
    found = collected(reply("k1"), line("k2", 200, body))

    assert (found.missing, found.calls, found.tokens) == (("k2",), 2, 15 + tokens)
    assert perhaps_billed(store) == 1


@pytest.mark.parametrize(("torn", "answered"), [('{"custom_id": "k2", "resp', None), ("", 2)])
def test_a_reply_that_was_cut_off_is_perhaps_paid(collected, store, torn, answered):
    """A torn line shows it, or the provider's count."""
    found = collected(reply("k1"), torn=torn, answered=answered)

    assert (found.missing, found.calls, found.tokens) == (("k2",), 2, 15 + MOST)
    assert perhaps_billed(store) == 1


def test_a_request_that_was_not_worked_on_is_not_paid(collected, store):
    """A cancelled batch says how much it did."""
    found = collected(reply("k1"), answered=1)

    assert (found.missing, found.calls, perhaps_billed(store)) == (("k2",), 1, 0)


def test_of_several_replies_one_that_can_be_read_is_kept(collected, store):
    """Files hold lines twice, and lines of nobody."""
    found = collected(
        line("k1", 200, {"choices": []}), reply("k1"), reply("k2"), reply("k2", "no"), reply("k9")
    )

    assert (found.missing, found.calls, perhaps_billed(store)) == ((), 2, 0)
    assert [store.get(key) and store.get(key).text for key in ("k1", "k2", "k9")] == [
        "fine",
        "fine",
        None,
    ]


def test_a_reply_that_is_there_stays(collected, store):
    """Results rest on it; the other one was paid all the same."""
    store.put("k1", "e", "m", ChatReply("first", usage=Usage(1, 1)), None)
    found = collected(reply("k1"), reply("k2"))

    assert (store.get("k1").text, found.calls) == ("first", 2)


def test_collecting_again_counts_the_same(collected, store):
    """A process can be killed before it notes what came."""
    first = collected(reply("k1"), reply("k2"))

    assert collected(reply("k1"), reply("k2")) == first
    assert store.spent().calls == 2
