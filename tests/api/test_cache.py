"""The store of bought replies from Python."""

import asyncio
import json
import pathlib
from contextlib import closing

import pytest

import ragforge as rf
from ragforge.cli import main
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore


@pytest.fixture
def store(place):
    """A store of three replies, one of them of unknown price."""
    path = place / "calls.sqlite"
    with closing(CallStore(path)) as opened:
        for number in range(3):
            usage = Usage(1000, 20, estimated=number == 2)
            model, cost_usd = ("local", None) if number == 2 else ("gpt", 0.5)
            opened.put(f"{number:064x}", "e", model, ChatReply("x", usage=usage), cost_usd)
    return path


def told(capsys, *words):
    """Return what a command prints as JSON."""
    capsys.readouterr()
    assert main(["cache", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_stats_are_those_of_the_command(store, capsys):
    """One ledger, two doors."""
    found = rf.Cache(store).stats()

    assert found.to_dict() == told(capsys, "stats", "--store", store)
    assert [(row["model"], row["calls"], row["cost_usd"]) for row in found.rows()] == [
        ("gpt", 2, 1.0),
        ("local", 1, None),
    ]
    assert found.spent.calls == 3


def test_stats_are_shown_as_by_the_command(store, capsys):
    """The same table in a notebook and a shell."""
    main(["cache", "stats", "--store", str(store)])

    assert f"{rf.Cache(store).stats().table()}\n" == capsys.readouterr().out


def test_replies_are_carried_elsewhere(store, place):
    """A colleague pays for nothing twice."""
    exported = rf.Cache(store).export_replies("replies.jsonl")
    imported = rf.Cache("other/calls.sqlite").import_replies("replies.jsonl")

    assert exported.to_dict() == {
        "file": "replies.jsonl",
        "rows": 3,
        "left_out": 0,
        "salvaged": False,
    }
    assert (imported.to_dict()["rows"], imported.to_dict()["new"]) == (3, 3)
    assert rf.Cache("other/calls.sqlite").stats().spent.calls == 3


def test_lines_that_hold_no_reply_are_told(store, place):
    """What was passed over may have been paid for."""
    rf.Cache(store).export_replies("replies.jsonl")
    with pathlib.Path("replies.jsonl").open("a") as stream:
        stream.write("{}\n")

    imported = rf.Cache("other/calls.sqlite").import_replies("replies.jsonl")

    assert [note.partition(": ")[0] for note in imported.notes] == ["replies.jsonl:4"]


def test_an_export_does_not_write_over_its_store(store):
    """The replies would be gone."""
    with pytest.raises(rf.UsageError, match="is the call store itself"):
        rf.Cache(store).export_replies(store)


def test_a_dry_run_prunes_nothing(store):
    """First one looks, then one throws away."""
    would = rf.Cache(store).prune(model="gpt", dry_run=True)

    assert (would.to_dict()["calls"], would.to_dict()["dry_run"]) == (2, True)
    assert [row["model"] for row in rf.Cache(store).stats().rows()] == ["gpt", "local"]


def test_pruning_takes_out_what_was_named(store):
    """Others stay, and what all cost stays in the sums."""
    went = rf.Cache(store).prune(model="gpt")

    found = rf.Cache(store).stats()
    assert went.to_dict()["calls"] == 2
    assert ([row["model"] for row in found.rows()], found.spent.calls) == (["local"], 3)


@pytest.mark.parametrize("given", [{}, {"older_than_days": -1}, {"older_than_days": float("nan")}])
def test_pruning_needs_a_condition(store, given):
    """Everything would go."""
    with pytest.raises(rf.UsageError, match="older_than_days"):
        rf.Cache(store).prune(**given)


def test_a_set_has_its_store(by_hand, serve):
    """Nobody has to know where it lies."""
    by_hand.retrieve("bm25", quiet=True)
    by_hand.judge(model="m", base_url=serve().url, quiet=True)

    assert [row["model"] for row in by_hand.cache.stats().rows()] == ["m"]


def test_the_store_can_be_asked_in_a_loop(store):
    """A large one takes its time."""
    assert asyncio.run(rf.Cache(store).aio.stats()).spent.calls == 3
