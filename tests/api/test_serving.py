"""What is served for as long as a context lasts."""

import asyncio
import json
from urllib.request import urlopen

import pytest

import ragforge as rf
from ragforge.retrieval.local_models import is_installed


def test_a_mock_endpoint_judges(by_hand):
    """A rehearsal of everything, without a key."""
    by_hand.retrieve("bm25", quiet=True)

    with rf.mock_endpoint(seed=1) as mock:
        judged = by_hand.judge(model="mock", base_url=mock.url, quiet=True)
        billed = mock.ledger()["billed"]

    assert judged.n_judged == billed > 0


@pytest.mark.skipif(not is_installed("static"), reason="no weights")
def test_a_mock_endpoint_serves_the_vectors_of_a_local_model(by_hand):
    """Dense retrieval can be rehearsed with rankings that mean something."""
    with rf.mock_endpoint(embeddings="static") as mock:
        by_hand.retrieve("dense", embedding_model="static", base_url=mock.url, quiet=True)
    by_hand.retrieve("static", quiet=True)

    dense, local = (
        [[hit.chunk_id for hit in item.ranking] for item in by_hand.rankings(name)]
        for name in ("dense", "static")
    )
    assert dense == local


def test_embeddings_of_an_unknown_model_are_refused():
    """Random vectors in the place of a model would look like a bad retriever."""
    with pytest.raises(rf.UsageError, match="there are: random, minilm, static"):
        rf.mock_endpoint(embeddings="mini").__enter__()


def test_a_mock_endpoint_ends_with_its_context():
    """No test leaves a server behind."""
    with rf.mock_endpoint() as mock:
        pass

    with pytest.raises(OSError, match="refused"):
        urlopen(mock.url)


def test_several_can_be_served_in_turn():
    """Names of modules must not hide the function once it was used."""
    with rf.mock_endpoint() as first:
        pass
    with rf.mock_endpoint() as second:
        assert second.stats()["requests"] == 0

    assert first is not second


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"p500": 2}, rf.UsageError, "^p500: expected a probability"),
        ({"down_from_s": 1.0}, rf.UsageError, "^down_from_s and down_to_s"),
        ({"p_hng": 0.1}, TypeError, "did you mean 'p_hang'"),
    ],
)
def test_what_a_mock_cannot_do_is_refused(given, error, message):
    """In the words of Python."""
    with pytest.raises(error, match=message), rf.mock_endpoint(**given):
        pass


def test_a_mock_endpoint_refuses_what_it_is_told_to():
    """One name needs no list."""
    with rf.mock_endpoint(refuse="json_schema") as mock:
        assert mock.url.startswith("http://127.0.0.1:")


def test_a_mock_endpoint_can_be_awaited(by_hand):
    """Tests of services are async."""

    async def rehearse():
        await by_hand.aio.retrieve("bm25", quiet=True)
        async with rf.aio.mock_endpoint() as mock:
            return await by_hand.aio.judge(model="mock", base_url=mock.url, quiet=True)

    assert asyncio.run(rehearse()).n_judged > 0


def test_an_error_within_a_context_is_the_one_that_comes_out():
    """It says what failed."""

    async def fails():
        async with rf.aio.mock_endpoint():
            raise rf.DataError("of the caller")

    with pytest.raises(rf.DataError, match="of the caller"):
        asyncio.run(fails())


def test_pages_about_a_set_are_served(found):
    """In a notebook, beside the work on it."""
    found.evaluate(quiet=True)

    with rf.view(found) as address, urlopen(f"{address}api/datasets") as reply:
        listed = json.load(reply)["datasets"]

    assert [list(item["runs"]) for item in listed] == [["mine"]]


def test_pages_ask_for_a_token(found):
    """On a machine of several users."""
    token = "a" * 20

    with rf.view(found.path, token=token) as address:
        assert address.endswith(f"?token={token}")


@pytest.mark.parametrize(
    ("sets", "token", "error", "message"),
    [
        ([], "", rf.UsageError, "expected at least one set"),
        (["nowhere"], "", rf.DataError, "no such directory"),
        (["."], "short", rf.UsageError, "^token: expected 16"),
    ],
)
def test_what_cannot_be_served_is_refused(sets, token, error, message):
    """Before anything listens."""
    with pytest.raises(error, match=message), rf.view(*sets, token=token):
        pass
