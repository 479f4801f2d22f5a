"""What a refresh bought, and what a set took in all."""

import pytest

from ragforge.files.manifest import Spent
from ragforge.observe import Event
from ragforge.refresh.spending import BoughtCalls, spent_in_all


@pytest.fixture
def told():
    """What reached the observer behind."""
    return []


@pytest.fixture
def bought(told):
    """Counts, and passes on."""
    return BoughtCalls(told.append)


def call(outcome, **numbers):
    return Event("call", outcome=outcome, numbers=numbers)


def test_only_what_was_bought_counts(bought):
    """Replies of the call store are free, and a failure is none."""
    bought(call("cached", prompt_tokens=5))
    bought(call("failed"))
    bought(call("done", prompt_tokens=10, completion_tokens=2, cost_usd=0.5))

    expected = Spent(calls=1, prompt_tokens=10, completion_tokens=2, cost_usd=0.5)
    assert bought.spent == expected


def test_a_call_without_a_price_leaves_the_cost_unknown(bought):
    """A sum without one of its parts would be too low."""
    bought(call("done", prompt_tokens=10, cost_usd=0.5))
    bought(call("done", prompt_tokens=10))

    assert bought.spent.cost_usd is None


def test_a_note_that_comes_again_is_told_once(bought, told):
    """A refresh opens its models several times, and each opening has the same to say."""
    bought(Event("note", message="no model is asked"))
    bought(Event("note", message="no model is asked"))

    assert [event.message for event in told] == ["no model is asked"]


KNOWN = Spent(calls=30, prompt_tokens=300, completion_tokens=30, cost_usd=3.0)
BOUGHT = Spent(calls=5, prompt_tokens=50, completion_tokens=5, cost_usd=0.5)


def test_the_call_store_knows_what_was_spent():
    """It also has what killed runs bought."""
    assert spent_in_all(Spent(calls=20), KNOWN, BOUGHT) == KNOWN


def test_a_lost_call_store_does_not_make_a_set_cheaper():
    """What the versions before took stands in their manifests."""
    expected = Spent(calls=35, prompt_tokens=350, completion_tokens=35, cost_usd=3.5)
    assert spent_in_all(KNOWN, BOUGHT, BOUGHT) == expected


def test_an_unknown_cost_stays_unknown():
    """Nobody knows what the whole took where one part is not known."""
    parent = KNOWN.model_copy(update={"cost_usd": None})
    assert spent_in_all(parent, BOUGHT, BOUGHT).cost_usd is None
