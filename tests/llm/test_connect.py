import asyncio
import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from endpoint import Reply, answering, completion, fault
from fakes import Recorder, request

from ragforge.errors import BudgetError, CallError, ConfigError, EndpointError
from ragforge.llm.connect import connect
from ragforge.observe import silent

pytestmark = pytest.mark.slow


KEY = "sk-test-0123456789"
FINE = completion("fine")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def fine(path, body, number):
    return Reply(FINE)


def failing_first(reply, times):
    """Give a bad reply some times, then good ones."""
    return lambda path, body, number: reply if number < times else Reply(FINE)


BUSY = fault(429, "slow down", retry_after_ms="1")

PASSING = {
    "429 ms": BUSY,
    "429 s": fault(429, "slow down", retry_after="0.001"),
    "429 date": fault(429, "slow down", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
    "429 and a page": Reply(
        b"<html>", status=429, content_type="text/html", headers={"retry-after-ms": "1"}
    ),
    "500": fault(500, "oops", retry_after_ms="1"),
    "502 page": Reply(
        b"<html>", status=502, content_type="text/html", headers={"retry-after-ms": "1"}
    ),
    "503": fault(503, "starting", retry_after_ms="1"),
}


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_passes_costs_no_unit(serve, settings_for, ask_all, reply):
    """Long runs meet every one of these."""
    endpoint, recorder = serve(failing_first(reply, 2)), Recorder()

    [answer] = ask_all(settings_for(endpoint.url), request(), observer=recorder)

    assert answer.text == "fine"
    assert len(endpoint.seen) == 3
    assert len(recorder.named("retry")) == 2


def test_attempts_are_as_many_as_the_user_allows(serve, settings_for, ask_all):
    """Each may be billed."""
    endpoint = serve(lambda *_: fault(503, "starting", retry_after_ms="1"))

    [error] = ask_all(settings_for(endpoint.url, max_attempts=4), request())

    assert isinstance(error, CallError)
    assert "gave up after 4 attempts" in str(error)
    assert len(endpoint.seen) == 4


def test_an_endpoint_that_refuses_everything_is_left_after_the_wait_allowed(
    serve, settings_for, ask_all
):
    """A daily limit that is used up must not look like a program that hangs."""
    endpoint = serve(lambda *_: BUSY)

    [error] = ask_all(settings_for(endpoint.url, max_wait_s=0.5), request())

    assert isinstance(error, EndpointError)
    assert "has refused every call" in str(error)


STOPPING = {
    "401": fault(401, "wrong key"),
    "403": fault(403, "not allowed"),
    "404": fault(404, "no such model"),
    "quota": fault(429, "pay first", code="insufficient_quota"),
}


@pytest.mark.parametrize("reply", STOPPING.values(), ids=STOPPING.keys())
def test_a_fault_that_stays_ends_the_run_at_the_first_call(serve, settings_for, ask_all, reply):
    """Asking again with a refused key only delays the message, and may lock it out."""
    endpoint = serve(lambda *_: reply)

    errors = ask_all(settings_for(endpoint.url), *[request(vote=n) for n in range(8)])

    assert [type(error) for error in errors] == [EndpointError] * 8
    assert len(endpoint.seen) == 1


def test_nothing_is_asked_twice_over_two_runs(serve, settings_for, ask_all):
    """A finished run reruns with 0 calls."""
    endpoint, recorder = serve(fine), Recorder()
    questions = [request(vote=n) for n in range(5)]
    ask_all(settings_for(endpoint.url), *questions)

    replies = ask_all(settings_for(endpoint.url), *questions, observer=recorder)

    assert len(endpoint.seen) == 5
    assert {reply.cached for reply in replies} == {True}
    assert {event.outcome for event in recorder.named("call")} == {"cached"}


def test_two_addresses_of_one_endpoint_share_replies(serve, settings_for, ask_all):
    """A server that moved, or a replica beside it, gives the same replies: none is bought twice."""
    here, there = serve(fine), serve(fine)
    ask_all(settings_for(here.url, endpoint_id="prod"), request())

    [reply] = ask_all(settings_for(there.url, endpoint_id="prod"), request())

    assert (reply.cached, len(there.seen)) == (True, 0)


def test_two_endpoints_at_one_address_share_nothing(serve, settings_for, ask_all):
    """The name says who answers; another name is somebody else."""
    endpoint = serve(fine)
    ask_all(settings_for(endpoint.url, endpoint_id="prod"), request())

    ask_all(settings_for(endpoint.url, endpoint_id="trial"), request())

    assert len(endpoint.seen) == 2


def test_replies_of_a_server_that_moved_are_found_by_its_old_address(serve, settings_for, ask_all):
    """What was bought before endpoints had names stays worth its price."""
    before, after = serve(fine), serve(fine)
    [bought] = ask_all(settings_for(before.url), request())

    [reply] = ask_all(settings_for(after.url, endpoint_id=before.url), request())

    assert (reply.cached, reply.key, len(after.seen)) == (True, bought.key, 0)


def test_observers_are_told_where_a_named_endpoint_is(serve, settings_for, ask_all):
    """A trace leads to a machine, not to a name of the user's own."""
    endpoint, recorder = serve(fine), Recorder()

    ask_all(settings_for(endpoint.url, endpoint_id="prod"), request(), observer=recorder)

    [call] = recorder.named("call")
    assert call.labels["endpoint"] == endpoint.url


def test_a_failed_call_is_asked_again_by_the_next_run(serve, settings_for, ask_all):
    """A failure is never a value, so it is not stored as one."""
    endpoint = serve(failing_first(fault(400, "odd"), 1))
    [error] = ask_all(settings_for(endpoint.url), request())

    [reply] = ask_all(settings_for(endpoint.url), request())

    assert isinstance(error, CallError)
    assert (reply.text, reply.cached) == ("fine", False)


def test_the_next_run_knows_the_dialect(serve, settings_for, ask_all):
    """Learning costs refused calls; it is done once for an endpoint and model."""

    def respond(path, body, number):
        if "temperature" in body:
            return fault(400, "'temperature' is not supported", param="temperature")
        return Reply(FINE)

    endpoint = serve(respond)
    ask_all(settings_for(endpoint.url), request())
    learning = len(endpoint.seen)

    ask_all(settings_for(endpoint.url), request(vote=1))

    assert learning == 2
    assert len(endpoint.seen) == 3


def test_another_model_learns_for_itself(serve, settings_for, ask_all):
    """Two models of one provider take different parameters."""
    endpoint = serve(
        lambda path, body, number: (
            fault(400, "'seed' is not supported", param="seed")
            if body["model"] == "picky" and "seed" in body
            else Reply(FINE)
        )
    )
    ask_all(settings_for(endpoint.url, name="picky"), request())
    ask_all(settings_for(endpoint.url, name="plain"), request())

    assert ["seed" in body for body in endpoint.bodies] == [True, False, True]


def test_equal_requests_in_flight_are_one_call(serve, settings_for, ask_all):
    """Duplicate pairs are common, and each must be paid once."""
    endpoint = serve(fine)

    replies = ask_all(settings_for(endpoint.url), *[request()] * 50)

    assert len(endpoint.seen) == 1
    assert {reply.text for reply in replies} == {"fine"}


def test_each_bought_reply_is_told_once(serve, settings_for, ask_all):
    """The progress line adds up tokens from these events."""
    endpoint, recorder = serve(fine), Recorder()

    ask_all(settings_for(endpoint.url), *[request()] * 3, observer=recorder)

    calls = recorder.named("call")
    assert sorted(event.outcome for event in calls) == ["cached", "cached", "done"]
    [done] = [event for event in calls if event.outcome == "done"]
    assert (done.numbers["prompt_tokens"], done.numbers["completion_tokens"]) == (10.0, 5.0)


def test_a_budget_of_calls_is_not_exceeded_at_the_server(serve, settings_for, ask_all):
    """What counts is what the provider saw."""
    endpoint = serve(fine)
    questions = [request(vote=n) for n in range(20)]

    outcomes = ask_all(settings_for(endpoint.url, {"max_calls": 7}), *questions)

    assert len(endpoint.seen) == 7
    assert sum(isinstance(outcome, BudgetError) for outcome in outcomes) == 13


def test_retries_count_against_the_budget(serve, settings_for, ask_all):
    """A provider that fails half the time must not double the bill."""
    endpoint = serve(lambda *_: BUSY)

    [error] = ask_all(settings_for(endpoint.url, {"max_calls": 2}), request())

    assert isinstance(error, BudgetError)
    assert len(endpoint.seen) == 2


def test_replies_from_the_store_cost_no_budget(serve, settings_for, ask_all):
    """A run that stopped at its limit goes on where it was."""
    endpoint = serve(fine)
    questions = [request(vote=n) for n in range(6)]
    ask_all(settings_for(endpoint.url, {"max_calls": 3}), *questions)

    replies = ask_all(settings_for(endpoint.url, {"max_calls": 3}), *questions)

    assert {reply.text for reply in replies} == {"fine"}
    assert len(endpoint.seen) == 6


def test_a_limit_in_dollars_without_a_price_is_refused_before_any_call(
    serve, settings_for, ask_all
):
    """The limit would never be reached."""
    endpoint = serve(fine)

    with pytest.raises(ConfigError, match="--max-cost-usd"):
        ask_all(settings_for(endpoint.url, {"max_cost_usd": 1}), request())

    assert endpoint.seen == []


def store_of(tmp_path):
    return tmp_path / "calls.sqlite"


def test_a_damaged_store_is_told(serve, settings_for, ask_all, tmp_path):
    """The user must learn why replies are bought again."""
    store_of(tmp_path).write_bytes(b"junk" * 1000)
    recorder = Recorder()

    ask_all(settings_for(serve(fine).url), request(), observer=recorder)

    [note] = recorder.named("note")
    assert f"it is set aside as {store_of(tmp_path)}.damaged-1" in note.message


def test_the_address_from_the_environment_is_part_of_the_keys(
    serve, settings_for, ask_all, monkeypatch
):
    """The client takes its address from there where no flag names one."""
    one, other = serve(fine), serve(lambda *_: Reply(completion("other")))
    monkeypatch.setenv("OPENAI_BASE_URL", one.url)
    ask_all(settings_for(""), request())
    monkeypatch.setenv("OPENAI_BASE_URL", other.url)

    [reply] = ask_all(settings_for(""), request())

    assert (reply.text, reply.cached) == ("other", False)


def test_a_slash_behind_the_address_changes_no_key(serve, settings_for, ask_all):
    """It is the same endpoint."""
    endpoint = serve(fine)
    ask_all(settings_for(endpoint.url), request())

    [reply] = ask_all(settings_for(f"{endpoint.url}/"), request())

    assert reply.cached


def test_the_key_is_in_no_file_log_or_exception(
    serve, settings_for, ask_all, tmp_path, caplog, capsys
):
    """Stores and logs are passed on when somebody asks for help."""
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    endpoint = serve(
        lambda path, body, number: Reply(FINE) if number == 0 else Reply(echo, status=401)
    )

    _, error = ask_all(settings_for(endpoint.url), request(), request(vote=1))

    files = b"".join(path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file())
    assert endpoint.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert "Incorrect API key provided: [key]" in str(error)
    assert KEY not in repr(error)
    assert KEY.encode() not in files
    assert KEY not in caplog.text
    assert KEY not in "".join(capsys.readouterr())


def test_every_reply_is_in_the_store_under_its_key(serve, settings_for, ask_all, tmp_path):
    """Records name the key; with it a reader finds what the model said."""
    [reply] = ask_all(settings_for(serve(fine).url), request())

    with closing(sqlite3.connect(store_of(tmp_path))) as store:
        [(key, text)] = store.execute("SELECT key, reply FROM calls").fetchall()
    assert key == reply.key
    assert json.loads(text)["text"] == "fine"


def test_a_dry_run_asks_nothing_and_counts_everything(serve, settings_for, ask_all, tmp_path):
    """The cost must be known before it is spent; replies there are say what others will take."""
    endpoint = serve(fine)
    settings = settings_for(
        endpoint.url, {"input_usd_per_mtok": 1, "output_usd_per_mtok": 2}, max_output_tokens=300
    )
    ask_all(settings, request("a" * 32, max_output_tokens=300))

    async def dry():
        async with connect(settings, store_of(tmp_path), silent, dry_run=True) as connection:
            for text in ("a" * 32, "b" * 32, "c" * 32):
                try:
                    await connection.model.ask(request(text, max_output_tokens=300))
                except CallError:
                    continue
            return connection.tally.estimate()

    assert asyncio.run(dry()) == {
        "calls": 2,
        "calls_high": 4,
        "cached": 1,
        "tokens": {"low": 36 + 3, "expected": 36 + 10, "high": 72 + 1200},
        "seconds": 0.0,
        "cost_usd": {"low": 0.000042, "expected": 0.000056, "high": 0.002472},
    }
    assert len(endpoint.seen) == 1


def test_faults_of_every_kind_at_once_lose_no_reply_that_can_be_had(serve, settings_for, ask_all):
    """Real endpoints mix their faults."""
    hard = [BUSY, fault(500, "oops", retry_after_ms="1")]
    seen = {}

    def respond(path, body, number):
        vote = body["messages"][-1]["content"]
        seen[vote] = seen.get(vote, 0) + 1
        return Reply(FINE) if seen[vote] > 2 else hard[(number + seen[vote]) % 2]

    endpoint = serve(respond)
    questions = [request(str(n)) for n in range(40)]

    replies = ask_all(settings_for(endpoint.url), *questions)

    assert [reply.text for reply in replies] == ["fine"] * 40
    assert len(endpoint.seen) == 120


def test_a_reply_of_each_schema_satisfies_the_stage_that_asks(serve, settings_for, ask_all):
    """The tests of the stages rely on this endpoint's good replies."""
    endpoint = serve(answering)
    prompt = 'query: "blue whales eat"\npassage: "Blue whales eat krill."'

    [reply] = ask_all(settings_for(endpoint.url), request(prompt))

    assert json.loads(reply.text)["grade"] == 2
