"""Secrets are shown nowhere and stored nowhere, even where a service echoes them."""

import asyncio
import base64
import json

import pytest
from scripted_service import Answer

from ragforge.config import RetrieverService, SystemService
from ragforge.corpus.text_locations import TextLocator, documents_of
from ragforge.errors import CallError, ConfigError, EndpointError
from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.services.retriever import ServiceRetriever
from ragforge.retrieval.services.system import ServiceSystem

from .conftest import SECRET, TOKEN

OAUTH = {"client_id": "rag", "client_secret": "${SECRET}"}


def test_a_secret_in_a_reply_is_masked_before_it_is_read(scripted, system, answer):
    """A text of an answer is written into files and shown on pages."""
    packed = base64.b64encode(TOKEN.encode()).decode()
    escaped = "".join(f"%{ord(letter):02x}" for letter in TOKEN)
    scripted.answer = Answer({"answer": f"You sent {TOKEN}, {packed} and {escaped}."})

    found = answer(system(headers={"Authorization": "Bearer ${TOKEN}"}))

    assert found.text == "You sent [key], [key] and [key]."


def test_a_secret_in_a_text_that_is_kept_is_masked(scripted, retriever, ask, chunks):
    """Retrieved texts are stored with the run."""
    scripted.answer = Answer([{"text": f"some other text with {TOKEN} in it"}])
    texts = RetrievedTexts(CorpusDocuments(chunks(a="red"), documents_of, TextLocator))

    ask(retriever(chunks(a="red"), texts=texts, headers={"X-Token": "${TOKEN}"}), "q")

    assert [texts.text(held) for held in texts.ids] == ["some other text with [key] in it"]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_a_secret_in_an_error_is_masked(scripted, retriever, failure, status):
    """Failure records are published with a set."""
    scripted.answer = Answer({"headers": {"Authorization": f"Bearer {TOKEN}"}}, status)

    error = failure(retriever(headers={"Authorization": "Bearer ${TOKEN}"}, max_attempts=1))

    assert TOKEN not in str(error)
    assert TOKEN not in getattr(error, "raw", "")


@pytest.mark.parametrize(
    "reply",
    [
        Answer("no such key: 7h3k", 400),
        Answer('{"half": "7h3k'),
        Answer("<html>7h3k</html>", kind="text/html"),
        Answer({"error": "bad key 7h3k"}),
        Answer({"query": "7h3k", "hits": []}),
        Answer({"hits": [{"7h3k": 1}]}),
        Answer({"7h3k": 1}),
    ],
)
def test_a_short_secret_is_masked_in_messages(scripted, client_of, failure, reply):
    """It may be a word of a text, but no word of an error or of a failure record."""
    service = RetrieverService(url=scripted.url, headers={"X-Key": "${PIN}"})
    client = client_of("retrievers.docs", service, {"PIN": "7h3k"})
    scripted.answer = reply

    error = failure(ServiceRetriever("docs", service, client=client))

    assert "7h3k" not in f"{error} {error.raw} {error.__cause__}"


def test_a_short_secret_is_masked_in_what_a_system_did_not_say(scripted, client_of):
    """Likewise."""
    service = SystemService(url=scripted.url, headers={"X-Key": "${PIN}"})
    client = client_of("systems.rag", service, {"PIN": "7h3k"})
    scripted.answer = Answer({"told": "7h3k"})

    with pytest.raises(CallError) as caught:  # the message is looked at below
        asyncio.run(ServiceSystem("rag", service, client=client).answer("Why?"))

    assert "7h3k" not in f"{caught.value} {caught.value.raw}"


def test_nothing_secret_is_in_a_repr_or_an_exchange(scripted, retriever):
    """Objects land in logs and tracebacks."""
    scripted.answer = Answer([{"text": f"echo {TOKEN}"}])
    found = retriever(
        headers={"Authorization": "Bearer ${TOKEN}"},
        params={"sig": "${TOKEN}"},
        body={"q": "{query}", "key": "${TOKEN}"},
    )
    exchanges = []

    asyncio.run(found.results("q", 3, exchanges.append))

    [exchange] = exchanges
    told = f"{exchange!r} {found.client!r} {found.client.secrets!r} {vars(found.client)!r}"
    assert exchange.headers["Authorization"] == "Bearer ${TOKEN}"
    assert exchange.address == f"{scripted.url}/search?sig=${{TOKEN}}"
    assert exchange.body == {"q": "q", "key": "${TOKEN}"}
    assert TOKEN not in told.replace(str(found.client._variables), "")


def test_a_variable_of_the_address_alone_is_no_secret(scripted, client_of, ids, chunks):
    """Texts name hosts; masked, they would stand nowhere in the corpus."""
    service = RetrieverService(url="${BASE}/x")
    client = client_of("retrievers.docs", service, {"BASE": scripted.url})
    scripted.answer = Answer([{"text": f"see {scripted.url}"}])

    found = ServiceRetriever("docs", service, chunks(a=f"see {scripted.url}"), client=client)

    assert ids(found, "q") == ["a"]


@pytest.fixture
def granting(make_scripted):
    """A token endpoint that gives a new token each time."""
    server = make_scripted()
    server.answer = lambda _: {
        "access_token": f"granted-token-{len(server.seen)}",
        "token_type": "Bearer",
        "expires_in": 3600,
    }
    return server


def test_a_token_is_fetched_once_and_sent(scripted, granting, retriever, ask):
    """Client credentials are how one service asks another."""
    found = retriever(oauth={"token_url": f"{granting.url}/token", "scope": "search", **OAUTH})

    async def several():
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(found.retrieve(f"q{number}", 1))

    asyncio.run(several())

    [seen] = granting.seen
    assert seen.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert dict(part.split("=") for part in seen.content.decode().split("&")) == {
        "grant_type": "client_credentials",
        "scope": "search",
        "client_id": "rag",
        "client_secret": SECRET,
    }
    assert {seen.headers["Authorization"] for seen in scripted.seen} == {"Bearer granted-token-1"}


def test_client_and_secret_may_go_into_a_header(scripted, granting, retriever, ask):
    """Some endpoints take nothing else."""
    oauth = {"token_url": granting.url, "client_auth": "basic", **OAUTH}

    ask(retriever(oauth=oauth), "q")

    [seen] = granting.seen
    expected = base64.b64encode(f"rag:{SECRET}".encode()).decode()
    assert seen.headers["Authorization"] == f"Basic {expected}"
    assert SECRET not in seen.content.decode()


def test_a_token_that_is_refused_is_fetched_anew(scripted, granting, retriever, ids):
    """It may be revoked before it expires."""
    scripted.answer = lambda seen: (
        Answer(["a"])
        if seen.headers["Authorization"] == "Bearer granted-token-2"
        else Answer("expired", 401)
    )

    assert ids(retriever(oauth={"token_url": granting.url, **OAUTH}), "q") == ["a"]
    assert len(granting.seen) == 2


def test_a_token_that_expires_is_fetched_anew(scripted, granting, retriever, ask):
    """A run lasts longer than a token."""
    granting.answer = lambda _: {"access_token": f"t-{len(granting.seen)}", "expires_in": 0}
    found = retriever(oauth={"token_url": granting.url, **OAUTH})

    ask(found, "q")
    ask(found, "q")

    assert len(granting.seen) == 2


def test_a_new_token_that_is_refused_too_ends_the_run(scripted, granting, retriever, failure):
    """It is fetched once more, and not for ever."""
    scripted.answer = lambda seen: Answer(f"no: {seen.headers['Authorization']}", 401)

    error = failure(retriever(oauth={"token_url": granting.url, **OAUTH}))

    assert isinstance(error, EndpointError)
    assert "does not take the token of its oauth" in str(error)
    assert "granted-token" not in str(error)
    assert len(granting.seen) == 2


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Answer({"error": "invalid_client", "was": SECRET}, 401), "no token: status 401"),
        (Answer("<html>", kind="text/html"), "no token: the reply is no JSON"),
        (Answer({"token": "x"}), "no token: the reply holds no access_token"),
        (Answer({"access_token": "a\r\nX-Evil: 1"}), "the reply holds no access_token"),
        (Answer("", 302, (("Location", "http://127.0.0.1:1/"),)), "no token: status 302"),
    ],
)
def test_without_a_token_nothing_is_asked(scripted, granting, retriever, failure, reply, told):
    """The reason is told, and the secret is not."""
    granting.answer = reply

    error = failure(retriever(oauth={"token_url": granting.url, **OAUTH}))

    assert isinstance(error, EndpointError)
    assert told in str(error)
    assert SECRET not in str(error)
    assert scripted.seen == []


def test_exchanges_can_be_written_as_json(scripted, retriever):
    """A probe shows them."""
    exchanges = []
    asyncio.run(retriever(body={"q": "{query}"}).results("q", 1, exchanges.append))

    assert json.dumps(exchanges[0].body) == '{"q": "q"}'


def test_a_busy_token_endpoint_is_asked_again(scripted, granting, retriever, ids, waits):
    """It is no reason to end a run."""
    scripted.answer = Answer(["a"])
    granting.answers(Answer("busy", 503), Answer({"access_token": "granted-token-9"}))

    assert ids(retriever(oauth={"token_url": granting.url, **OAUTH}), "q") == ["a"]
    assert waits[0] == 1.0


def test_a_token_endpoint_that_is_no_address_is_told_before_any_query(retriever):
    """Filled in, it may hold a secret, and is not repeated."""
    with pytest.raises(
        ConfigError, match=r"oauth\.token_url = '\$\{SECRET\}/token': is no"
    ) as caught:
        retriever(oauth={"token_url": "${SECRET}/token", **OAUTH})

    assert SECRET not in str(caught.value)
