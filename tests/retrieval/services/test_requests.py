"""What is sent to a service, and what is refused before anything is sent."""

import asyncio
import json

import pytest
from scripted_service import Answer

from ragforge.config import RetrieverService
from ragforge.errors import ConfigError
from ragforge.retrieval.services.client import ServiceClient
from ragforge.retrieval.services.dialects import plan_of
from ragforge.retrieval.services.retriever import ServiceRetriever
from ragforge.retrieval.waiting import counting_waits

from .conftest import TOKEN


def test_holes_of_a_body_are_filled_with_text_and_numbers(scripted, retriever, ask):
    """A service that wants a number refuses a text."""
    body = {"q": "{query}", "size": "{k}", "note": "first {k} of {query}", "deep": [{"x": True}]}

    ask(retriever(body=body), 'Wie "groß"?', k=3)

    [seen] = scripted.seen
    assert (seen.method, seen.path) == ("POST", "/search")
    assert seen.headers["Content-Type"] == "application/json"
    assert seen.json == {
        "q": 'Wie "groß"?',
        "size": 3,
        "note": 'first 3 of Wie "groß"?',
        "deep": [{"x": True}],
    }


def test_a_body_may_be_written_as_json(scripted, retriever, ask):
    """Users paste what they sent with curl; quotes in a question must not break it."""
    ask(retriever(body='{"q": "{query}", "size": "{k}"}'), 'a "b"', k=2)

    assert scripted.seen[0].json == {"q": 'a "b"', "size": 2}


def test_parameters_and_path_are_escaped(scripted, retriever, ask):
    """A question may hold what has a meaning in an address."""
    url = f"{scripted.url}/v1/{{query}}/find?lang=de"

    ask(retriever(url=url, params={"q": "{query}", "n": "{k}"}), "a/b&c=d?", k=4)

    [seen] = scripted.seen
    assert seen.method == "GET"
    assert seen.path == "/v1/a%2Fb%26c%3Dd%3F/find"
    assert seen.params == {"lang": "de", "q": "a/b&c=d?", "n": "4"}
    assert seen.content == b""


def test_a_query_within_another_language_is_quoted_as_json(scripted, retriever, ask):
    """GraphQL has strings within a text; a quote in a question must not end one."""
    ask(retriever(body={"query": "{ Get(q: {query:json}, n: {k}) { id } }"}), 'say "x"', k=5)

    assert scripted.seen[0].json == {"query": '{ Get(q: "say \\"x\\"", n: 5) { id } }'}


def test_headers_hold_variables_of_the_environment(scripted, retriever, ask):
    """That is where a token is."""
    ask(retriever(headers={"Authorization": "Bearer ${TOKEN}", "X-Tenant": "docs"}), "q")

    [seen] = scripted.seen
    assert seen.headers["Authorization"] == f"Bearer {TOKEN}"
    assert seen.headers["X-Tenant"] == "docs"


def test_a_header_replaces_that_of_the_same_name(scripted, retriever, ask):
    """Names of headers have no case; sent twice, a service takes either."""
    ask(retriever(headers={"accept": "text/json", "content-type": "application/x-json"}), "q")

    names = [name.lower() for name in scripted.seen[0].headers]
    assert names.count("accept") == names.count("content-type") == 1
    assert scripted.seen[0].headers["accept"] == "text/json"


def test_a_body_may_be_sent_as_a_form(scripted, retriever, ask):
    """Older services take nothing else."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    ask(retriever(headers=headers, body={"q": "{query}", "n": "{k}"}), "a b&c", k=3)

    assert scripted.seen[0].content == b"q=a+b%26c&n=3"


def test_an_address_may_be_a_variable(scripted, client_of, ask):
    """The same settings serve staging and production."""
    service = RetrieverService(url="${BASE}/search", dialect="ragforge")
    client = client_of("retrievers.docs", service, {"BASE": scripted.url})

    ask(ServiceRetriever("docs", service, client=client), "q", k=1)

    assert scripted.seen[0].path == "/search"
    assert scripted.seen[0].json == {"query": "q", "k": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"headers": {"Authorization": "Bearer ${NO_SUCH}"}},
            r"^retrievers\.docs\.headers\.Authorization: the variable NO_SUCH of the environment "
            "is not set$",
        ),
        (
            {"params": {"q": "{query}", "api_key": "${EMPTY}"}},
            r"params\.api_key: the variable EMPTY of the environment is empty$",
        ),
        (
            {"headers": {"X-Token": "${BROKEN}"}},
            "the variable BROKEN of the environment holds a line break",
        ),
        ({"body": {"q": "{qurey}"}}, r"body: no hole \{qurey\}; did you mean \{query\}\?"),
        ({"body": {"q": "fixed"}}, r"docs: nothing asks for \{query\}"),
        ({"body": '{"q": {query}}'}, "body: is no JSON .*holes stand in quotes"),
        ({"headers": {"X-Query": "{query}"}}, r"headers\.X-Query: no hole \{query\}"),
        ({"headers": {"X-A": "a\nX-Evil: b"}}, "'X-A': no header can have this name or value"),
        ({"headers": {"X A": "b"}}, "'X A': no header can have this name or value"),
        ({"results": "hits.["}, r"results = 'hits\.\[': is no JMESPath"),
        ({"url": "${BROKEN}/x"}, r"url = '\$\{BROKEN\}/x': is no address once it is filled in"),
        ({"dialect": "qdrant"}, "collection: qdrant needs the name of one"),
        (
            {"dialect": "qdrant", "collection": "c"},
            "no embedding model is set; name the one that the index was made with",
        ),
    ],
)
def test_what_cannot_work_is_told_before_any_query(scripted, client_of, fields, message):
    """The setting and the variable are named, and never what a variable holds."""
    service = RetrieverService.model_validate({"url": f"{scripted.url}/search", **fields})
    environment = {"EMPTY": "", "BROKEN": "se\ncret"}

    def make():
        client = client_of("retrievers.docs", service, environment)
        return ServiceRetriever("docs", service, client=client)

    with pytest.raises(ConfigError, match=message) as caught:
        make()

    assert "cret" not in str(caught.value).replace("secret", "")
    assert scripted.seen == []


def test_results_are_read_by_their_paths(scripted, retriever, ask, chunks):
    """Every service calls things otherwise."""
    scripted.answer = Answer(
        {"data": {"items": [{"meta": {"key": "b"}, "rank": {"value": "2.5"}, "t": "blue"}]}}
    )
    found = retriever(
        chunks(a="red", b="blue"),
        results="data.items",
        id="meta.key",
        text="t",
        score="rank.value",
    )

    assert [(hit.chunk_id, hit.score) for hit in ask(found, "q")] == [("b", 2.5)]


def test_a_result_without_a_known_id_is_found_by_its_text(scripted, retriever, ids, chunks):
    """An engine has ids of its own."""
    scripted.answer = Answer({"items": [{"uid": "0b5e", "passage": "blue"}]})

    found = retriever(chunks(a="red", b="blue"), results="items", id="uid", text="passage")

    assert ids(found, "q") == ["b"]


def test_a_table_of_columns_is_read_as_rows(scripted, retriever, ask):
    """Chroma gives ids, texts and distances each as a list of its own."""
    scripted.answer = Answer(
        {"ids": [["a", "b"]], "documents": [["red", "blue"]], "distances": [[0.1, 0.4]], "x": None}
    )

    found = retriever(
        results="{key: ids[0], text: documents[0], distance: distances[0], none: x}",
        id="key",
        score="distance",
    )

    assert [hit.chunk_id for hit in ask(found, "q")] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('["größe"]'.encode("latin-1"), "application/json; charset=ISO-8859-1"),
        ('\ufeff["größe"]'.encode(), "application/json; charset=utf-8"),
        ('["größe"]'.encode(), "application/json; charset=no-such"),
        ('["größe"]'.encode(), "application/json; charset=punycode"),
        ('["größe"]'.encode("utf-16"), 'application/json; charset="utf-16"'),
    ],
)
def test_a_reply_is_read_in_the_encoding_that_it_names(scripted, retriever, ids, body, kind):
    """Older services write other ones, and some a byte order mark."""
    scripted.answer = Answer(body, kind=kind)

    assert ids(retriever(), "q") == ["größe"]


def test_nothing_found_is_a_value(scripted, retriever, ask):
    """The search worked."""
    scripted.answer = Answer({"items": []})

    assert ask(retriever(results="items", id="id"), "q") == []


def test_one_target_has_a_pace_of_its_own(scripted, retriever, waits):
    """A service behind a limit of its own must not be asked faster than it takes."""
    paced = retriever(requests_per_minute=1, concurrency=1)

    async def several():
        for _ in range(3):
            await paced.retrieve("q", 1)

    asyncio.run(several())

    assert len(scripted.seen) == 3
    assert len(waits) == 2
    assert all(0 < wait <= 120 for wait in waits)


def test_so_many_requests_are_in_flight_at_once(scripted, retriever):
    """A small service must not be overrun by a large pool of workers."""
    limited = retriever(concurrency=2)

    async def several():
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(limited.retrieve(f"q{number}", 1))

    asyncio.run(several())

    assert len(scripted.seen) == 8
    assert scripted.most_in_flight <= 2


def test_what_a_query_waits_for_its_turn_is_counted(scripted):
    """A limit of ours must not pass for a slow service."""
    service = RetrieverService(url=scripted.url, requests_per_minute=600)
    client = ServiceClient("retrievers.docs", service, plan_of(service), timeout_s=10)
    found = ServiceRetriever("docs", service, client=client)

    async def waited():
        with counting_waits() as waits:
            await found.retrieve("q", 1)
        return waits.waited_s

    async def two_at_once():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(waited()) for _ in range(2)]
        return [task.result() for task in tasks]

    first, second = asyncio.run(two_at_once())
    assert first < 0.05 <= second


def test_the_body_is_sent_whole(scripted, retriever, ask):
    """Characters beyond ASCII are escaped, so that no service guesses an encoding."""
    ask(retriever(), "größer 🎉")

    assert json.loads(scripted.seen[0].content.decode("ascii"))["query"] == "größer 🎉"
