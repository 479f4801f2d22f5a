import sqlite3
from contextlib import closing

import pytest

from ragforge.errors import DataError
from ragforge.files.manifest import Spent
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.ledger import (
    ActiveOwner,
    ModelLedger,
    PruneFilter,
    count_prunable,
    prune,
    read_ledger,
    size_of,
)

DAY_S = 86_400


@pytest.fixture
def buy(store):
    """Put a reply of a given model and price into the store."""

    def put(key, model="m", cost_usd=0.5, estimated=False):
        usage = Usage(100, 20, estimated=estimated)
        store.put(key, "e", model, ChatReply("x" * 2000, usage=usage), cost_usd)

    return put


@pytest.fixture
def execute(path):
    """Change the file behind the store's back."""

    def run(statement, *values):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement, values)

    return run


def test_each_model_has_its_sums(path, buy):
    """Whoever pays wants to know for what."""
    buy("a", "dear", 0.5)
    buy("b", "dear", 0.25, estimated=True)
    buy("c", "cheap", 0.0)

    assert read_ledger(path).models == (
        ModelLedger("cheap", Spent(calls=1, prompt_tokens=100, completion_tokens=20, cost_usd=0.0)),
        ModelLedger(
            "dear",
            Spent(calls=2, prompt_tokens=200, completion_tokens=40, cost_usd=0.75),
            estimated=1,
        ),
    )


def test_an_unknown_price_makes_the_cost_unknown(path, buy):
    """It is not 0, nor the sum of the rest."""
    buy("a", cost_usd=None)
    buy("b", cost_usd=0.5)

    ledger = read_ledger(path)

    assert (ledger.models[0].spent.cost_usd, ledger.spent.cost_usd) == (None, None)


def test_what_is_set_aside_is_told_and_stays_paid(path, store, buy, execute):
    """A row whose damage nobody has met yet counts as damaged, too."""
    for key in ("forgotten", "met", "unmet", "good"):
        buy(key)
    store.forget(["forgotten"])
    execute("UPDATE calls SET reply = replace(reply, 'xx', 'xy') WHERE key IN ('met', 'unmet')")
    store.get("met")

    [model] = read_ledger(path).models

    assert (model.forgotten, model.damaged, model.spent.calls) == (1, 2, 4)


def test_attempts_without_a_reply_are_counted(path, store):
    """They may have been billed."""
    store.note_unanswered("k", "timeout")

    assert read_ledger(path).unanswered == 1


def test_who_is_buying_is_told(path, store, other):
    """Whoever wants to prune must know whom to wait for."""
    store.claim("a")
    store.claim("b")
    host = store.owner.machine.partition("/")[0]

    assert read_ledger(path).holdings == (ActiveOwner(store.owner.pid, host, 2),)


def test_a_lease_that_has_ended_holds_nothing(path, store, execute):
    """The process that took it is gone."""
    store.claim("a")
    execute("UPDATE leases SET until_boot = 0")

    assert read_ledger(path).holdings == ()


def test_the_size_is_that_of_the_file_and_its_journal(path, buy):
    """New replies are in the journal alone."""
    buy("a")

    journal = path.with_name(f"{path.name}-wal")
    assert read_ledger(path).file_bytes == path.stat().st_size + journal.stat().st_size


def test_a_store_of_an_earlier_version_can_be_read(path, buy, execute):
    """It had no table of what was pruned."""
    buy("a")
    execute("DROP TABLE pruned")

    assert read_ledger(path).spent.calls == 1


@pytest.mark.parametrize(
    ("selected", "left"),
    [
        (PruneFilter(model="m2"), {"old", "new"}),
        (PruneFilter(older_than_days=30), {"new", "other"}),
        (PruneFilter(older_than_days=30, model="m2"), {"old", "new", "other"}),
        (PruneFilter(older_than_days=0), set()),
        (PruneFilter(set_aside=True), {"old", "new", "other"}),
        (PruneFilter(model="unknown"), {"old", "new", "other"}),
    ],
)
def test_what_all_conditions_fit_goes(path, store, buy, execute, selected, left):
    """What is not named must stay: it was paid."""
    buy("old")
    buy("new")
    buy("other", "m2")
    execute("UPDATE calls SET bought_at = bought_at - ? WHERE key = 'old'", 31 * DAY_S)

    count = count_prunable(path, selected).spent.calls
    went = prune(path, selected).spent.calls

    assert {row.key for row in store.rows()} == left
    assert (count, went) == (3 - len(left), 3 - len(left))


def test_what_was_set_aside_goes(path, store, buy, execute):
    """Forgotten, damaged, and damaged without anybody having met it."""
    for key in ("forgotten", "met", "unmet", "good"):
        buy(key)
    store.forget(["forgotten"])
    execute("UPDATE calls SET reply = replace(reply, 'xx', 'xy') WHERE key IN ('met', 'unmet')")
    store.get("met")

    assert prune(path, PruneFilter(set_aside=True)).spent.calls == 3
    assert [row.key for row in store.rows()] == ["good"]


def test_counting_changes_nothing(path, buy):
    """That is the point of a dry run."""
    buy("a")
    before = path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()
    count_prunable(path, PruneFilter(model="m"))

    assert (path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()) == before


def test_what_was_pruned_stays_paid(path, store, buy):
    """The manifest says what a dataset has cost over all its runs; that cannot fall."""
    buy("a", cost_usd=0.5)
    before = store.spent()
    prune(path, PruneFilter(model="m"))
    buy("b", cost_usd=0.25)
    prune(path, PruneFilter(model="m"))

    assert read_ledger(path).pruned == 2
    assert store.spent() == before.model_copy(
        update={"calls": 2, "prompt_tokens": 200, "completion_tokens": 40, "cost_usd": 0.75}
    )


def test_a_pruned_reply_of_unknown_price_leaves_the_cost_unknown(path, store, buy):
    """Forgetting it would make the rest look like the whole."""
    buy("a", cost_usd=None)
    prune(path, PruneFilter(model="m"))
    buy("b", cost_usd=0.25)

    assert store.spent().cost_usd is None


def test_the_file_shrinks(path, fill):
    """Else nothing would be gained."""
    fill(path, 500)
    before = size_of(path)

    pruned = prune(path, PruneFilter(model="m"))

    assert (pruned.bytes_before, pruned.bytes_after) == (before, size_of(path))
    assert pruned.bytes_after < before / 10


def test_a_store_that_is_open_goes_on_after_a_prune(path, store, buy):
    """A run between two calls holds no lease and must not break."""
    buy("a")
    prune(path, PruneFilter(model="m"))
    buy("b")

    assert (store.get("a"), store.get("b").text[0]) == (None, "x")


def test_nothing_is_pruned_under_a_buyer(path, store, buy):
    """It may be about to use what would go."""
    buy("a")
    store.claim("b")

    with pytest.raises(DataError, match=rf"is in use: process {store.owner.pid} on .* is buying"):
        prune(path, PruneFilter(model="m"))

    assert store.get("a") is not None


def test_a_dead_buyer_is_no_reason_to_wait(path, store, buy, execute):
    """Its lease stays in the file after a kill."""
    buy("a")
    store.claim("b")
    execute(
        "UPDATE leases SET owner = replace(owner, '|' || ? || '|', '|4194305|')", store.owner.pid
    )

    assert prune(path, PruneFilter(model="m")).spent.calls == 1


def test_a_store_that_is_not_there_is_named(path):
    """A mistyped path must not become an empty store."""
    with pytest.raises(DataError, match=r"calls\.sqlite: there is no call store"):
        prune(path, PruneFilter(model="m"))

    assert not path.exists()


def test_a_damaged_store_is_not_pruned(path, fill):
    """What could be saved from it would be lost."""
    fill(path, 300)
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xee" * 8192 + content[16384:])

    with pytest.raises(DataError, match="damaged"):
        prune(path, PruneFilter(model="m"))

    assert not list(path.parent.glob("*damaged*"))


def test_a_large_sum_does_not_overflow(path, store, buy, execute):
    """Damaged counts must not end a run that has finished its work."""
    buy("a")
    buy("b")
    execute("UPDATE calls SET prompt_tokens = 9223372036854775807")

    with closing(CallStore(path)) as opened:
        assert opened.spent().calls == 2
