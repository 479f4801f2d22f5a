"""What is billed, what is counted, and what both forget."""

import hashlib
import http.client
import json

import pytest


@pytest.fixture
def client(start):
    """An endpoint without faults."""
    return start()


def test_equal_bodies_are_one_entry(client, plain):
    """What was bought twice shows."""
    for text in ("a", "b", "a"):
        client.chat(plain(text))
    ledger = client.running.ledger()

    assert (ledger["bodies"], ledger["billed"], ledger["dup"]) == (2, 3, 1)


def test_the_order_of_keys_makes_no_other_body(client, plain):
    """The same request by another client is the same purchase."""
    body = plain()
    client.chat(body)
    client.chat(dict(reversed(body.items())))

    assert client.running.ledger()["bodies"] == 1


def test_bodies_are_named_by_the_sha256_of_canonical_json(client, plain):
    """A test can find its own requests."""
    client.chat(plain())
    canonical = json.dumps(plain(), sort_keys=True, separators=(",", ":"))

    assert client.running.ledger(full=True)["by_body"] == {
        hashlib.sha256(canonical.encode()).hexdigest(): 1
    }


def test_tokens_are_a_quarter_of_the_characters(client, plain):
    """Spending can be compared with it to the token."""
    said = client.chat(plain("x" * 400)).text
    ledger = client.running.ledger()

    assert (ledger["prompt_tokens"], ledger["completion_tokens"]) == (100, len(said) // 4)


def test_the_ledger_holds_what_usage_says(client, judging):
    """A client that sums up usage must come to the same."""
    usage = client.chat(judging()).json["usage"]
    ledger = client.running.ledger()

    assert usage["prompt_tokens"] == ledger["prompt_tokens"]
    assert usage["completion_tokens"] == ledger["completion_tokens"]


def test_refused_requests_are_not_billed(client):
    """A provider charges for replies."""
    client.chat({"model": "m"})

    assert client.running.ledger()["billed"] == 0


def test_who_dies_waiting_is_billed(start, plain):
    """The model works on when nobody listens."""
    client = start(latency="fixed:60000")
    with client.waiting(plain()):
        client.wait_until(in_flight=1)

    assert client.running.ledger()["billed"] == 1


def test_who_leaves_is_no_longer_in_flight(start, plain):
    """Else a limit on requests at once would fill with the dead."""
    client = start(latency="fixed:60000")
    with client.waiting(plain()):
        client.wait_until(in_flight=1)
    client.wait_until(in_flight=0)

    assert client.running.stats()["max_in_flight"] == 1


def test_the_ledger_is_served(client, plain):
    """Tests in other languages and processes read it too."""
    client.chat(plain())

    assert client.ask("GET", "/__ledger").json == client.running.ledger()


def test_bodies_are_served_on_demand(client, plain):
    """A long run's ledger is long."""
    client.chat(plain())
    plainly, fully = client.ask("GET", "/__ledger"), client.ask("GET", "/__ledger?full=1")

    assert ("by_body" in plainly.json, len(fully.json["by_body"])) == (False, 1)


def test_stats_count_replies_by_status(client, plain):
    """What happened, at a glance."""
    client.chat(plain())
    client.chat(b"no JSON")
    client.ask("GET", "/nowhere")

    assert client.running.stats()["by_status"] == {"200": 1, "400": 1, "404": 1}


def test_stats_are_served(client, plain):
    """As the ledger is."""
    client.chat(plain())

    assert client.ask("GET", "/v1/__stats").json["requests"] == 1


def test_arrivals_are_told_on_demand(client, plain):
    """Pacing is read from the times between them."""
    client.chat(plain("a"))
    client.chat(plain("b"))
    first, second = client.running.stats(full=True)["sends"]

    assert 0 <= first <= second < 60


def test_looking_changes_nothing(client):
    """Whoever watches must not be counted as a client."""
    client.ask("GET", "/__stats")

    assert client.ask("GET", "/__stats").json["requests"] == 0


def test_connections_are_counted_once_each(client, plain):
    """A client that opens one for each request is slow, and this shows it."""
    connection = http.client.HTTPConnection(*client.address, timeout=10)
    for text in ("a", "b", "c"):
        connection.request("POST", "/v1/chat/completions", json.dumps(plain(text)))
        connection.getresponse().read()
    connection.close()

    assert client.running.stats()["connections"] == 1


def test_a_reset_forgets_what_was_billed_and_counted(client, plain):
    """Several tests can share one endpoint."""
    client.chat(plain())
    client.ask("POST", "/__reset", {})

    assert client.running.ledger()["billed"] == 0
    assert client.running.stats()["requests"] == 0


def test_a_reset_brings_the_same_faults_again(start, plain):
    """The attempts are counted anew."""
    client = start(p500=0.5)
    first = [client.chat(plain()).status for _ in range(10)]
    client.running.reset()

    assert [client.chat(plain()).status for _ in range(10)] == first
