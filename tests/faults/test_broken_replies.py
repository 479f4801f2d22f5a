"""Rows 16, 18-24 and 43: replies that are late, torn, malformed or hostile.

Table: 400 calls, 32 at once, 200 ms. Here: 120 calls (240 where a fault is rare), 16 at once,
10-40 ms, and time limits of 0.5 s where the table has 2 s.
"""

import asyncio
import itertools
import time
from collections import Counter

import pytest
from endpoint import Reply, completion, fault
from fakes import request
from faults.harness import LATENCY, Product, Told, endpoint

from ragforge.errors import CallError
from ragforge.llm.connect import connect
from ragforge.observe import silent

TRANSPORTS = pytest.mark.parametrize("transport", ["aiohttp", "httpx2"])


def test_errors_of_the_server_cost_no_pair(start, product):
    """Row 16: long runs meet all of them (a fifth of the replies)."""
    shaky = product(start(latency=LATENCY, p500=0.1, p502_html=0.05, p503=0.05))

    shaky.judge()

    assert shaky.grades == shaky.expected
    assert shaky.endpoint.count("dup") == 0


def test_errors_of_the_server_are_met_by_no_more_attempts_than_allowed(start, product):
    """Row 16: each may be billed."""
    shaky, told = product(start(p500=0.2, p502_html=0.1, p503=0.1)), Told()

    shaky.judge(told, max_attempts=3)

    attempts = Counter(event.numbers["attempts"] for event in told.named("retry"))
    assert max(attempts) == 2
    assert {row["kind"] for row in shaky.failures} == {"error"}
    assert all("gave up after 3 attempts" in row["message"] for row in shaky.failures)


def test_waits_before_another_attempt_differ(start, product):
    """Row 16: calls that failed together must not come back together."""
    shaky, told = product(start(p500=0.2)), Told()

    shaky.judge(told)

    waits = [event.numbers["wait_s"] for event in told.named("retry")]
    assert len(waits) > 10
    assert len({round(wait_s, 6) for wait_s in waits if wait_s > 0.125}) > len(waits) / 3


async def one(settings, store, transport):
    """Ask once, and return what came of it."""
    async with connect(settings, store, silent) as connection:
        try:
            return await connection.model.ask(request())
        except CallError as error:
            return error


@TRANSPORTS
@pytest.mark.parametrize("script", [{"p_hang": 1.0}, {"p_slow": 1.0}], ids=["hang", "slow"])
def test_an_attempt_ends_at_its_limit(start, product, script, transport):
    """Rows 18 and 19: limits between two bytes never end a reply that dribbles (1 s, 0.3 s)."""
    late = product(start(**script))
    settings = late.settings(timeout_s=1, max_attempts=1, transport=transport)
    warm = product(start())
    asyncio.run(one(warm.settings(transport=transport), warm.store, transport))
    began_s = time.monotonic()

    ended = asyncio.run(one(settings, late.store, transport))

    assert "no reply within 1 s" in str(ended)
    assert 0.9 <= time.monotonic() - began_s <= 1.3


@pytest.fixture(
    scope="module", params=itertools.product(["hang", "slow", "abort"], ["aiohttp", "httpx2"])
)
def late(request, tmp_path_factory):
    """A run in which a twentieth of the replies do not come, and the name of the fault."""
    fault, transport = request.param
    with endpoint(latency="fixed:10", **{f"p_{fault}": 0.05}) as running:
        run = Product(tmp_path_factory.mktemp("late"), running)
        run.judge(timeout_s=0.5, transport=transport)
        yield run, fault


def test_a_reply_that_does_not_come_is_asked_for_again(late):
    """Rows 18-20: a twentieth of the replies, none of the pairs."""
    run, _ = late

    assert run.grades == run.expected


def test_a_reply_that_does_not_come_counts_as_perhaps_billed(late):
    """Rows 18-20: the provider's bill will be higher than the replies say."""
    run, fault = late

    assert run.unanswered == run.endpoint.faults(fault) == run.endpoint.count("dup") > 0


@TRANSPORTS
def test_a_connection_that_is_reset_costs_no_pair(start, product, transport):
    """Row 20: gateways restart."""
    shaky = product(start(latency="fixed:10", p_reset=0.1))

    shaky.judge(transport=transport)

    assert shaky.grades == shaky.expected


@TRANSPORTS
def test_a_connection_that_is_reset_does_not_count_as_billed(start, product, transport):
    """Row 20: nothing was made, so a budget must not shrink."""
    shaky = product(start(latency="fixed:10", p_reset=0.1))

    shaky.judge(transport=transport)

    assert shaky.endpoint.faults("reset") > 0
    assert shaky.unanswered == 0


@TRANSPORTS
def test_bodies_that_are_no_reply_are_asked_for_again(start, product, transport):
    """Row 21: gateways say 200 to anything."""
    odd = product(start(p_badbody=0.05, p_html200=0.05, p_empty=0.05))

    odd.judge(transport=transport)

    faults = sum(odd.endpoint.faults(name) for name in ("badbody", "html200", "empty"))
    assert odd.grades == odd.expected
    assert faults > 3
    assert odd.endpoint.count("requests") == 120 + faults


def test_bodies_that_are_never_a_reply_are_typed_failures(start, product):
    """Row 21: a bug in the endpoint is no bug here."""
    odd = product(start(p_badbody=0.5, p_empty=0.5), 20)

    ended = odd.main("-q", "--max-attempts", "2")

    assert ended.code == 4
    assert {row["kind"] for row in odd.failures} == {"error"}
    assert "this is a bug" not in ended.err


def test_tokens_that_are_not_told_are_estimated_and_marked(start, product):
    """Row 21: a budget must not count a call as free because nobody counted it."""
    untold = product(start(p_no_usage=0.1))

    untold.judge()

    marked = untold.ask_store(
        "SELECT prompt_tokens, completion_tokens FROM calls "
        "WHERE json_extract(reply, '$.usage.estimated')"
    )
    assert len(marked) == untold.endpoint.faults("no_usage") > 0
    assert all(prompt > 200 and completion > 10 for prompt, completion in marked)


@pytest.mark.parametrize("fault", ["fence", "think"])
def test_wrapping_around_a_reply_is_taken_off_without_a_call(start, product, fault):
    """Row 22: local models do it each time."""
    wrapped = product(start(**{f"p_{fault}": 1.0}), 40)

    wrapped.judge()

    assert wrapped.grades == wrapped.expected
    assert wrapped.endpoint.count("requests") == 40


def right_or_none(product):
    """Return the pairs whose grade is neither the one of the good reply nor missing."""
    pairs = zip(product.grades, product.expected, strict=True)
    return [pair for pair in pairs if pair[0] not in (None, pair[1])]


@pytest.mark.parametrize(
    "script", [{"p_badjson": 0.3, "p_fence": 0.2}, {"p_schema": 0.2}], ids=["json", "schema"]
)
def test_malformed_content_never_becomes_a_wrong_grade(start, product, script):
    """Rows 22 and 23: a guess at what a broken reply meant is a number without a source."""
    broken = product(start(**script), 240)

    broken.judge()

    assert right_or_none(broken) == []
    assert broken.grades.count(None) == len(broken.failures)
    assert {row["kind"] for row in broken.failures} <= {"invalid"}


@pytest.mark.parametrize("script", [{"p_badjson": 0.3}, {"p_schema": 0.3}], ids=["json", "schema"])
def test_most_malformed_content_is_repaired(start, product, script):
    """Rows 22 and 23: two bad replies in a row are 9 %, as many as stay without a grade."""
    broken = product(start(**script), 240)

    broken.judge()

    assert 0 < broken.grades.count(None) <= 0.15 * 240


def test_malformed_content_is_asked_for_once_more_at_most(start, product):
    """Row 22: a model that cannot hold to a schema would cost without end."""
    broken = product(start(p_badjson=1.0), 40)

    broken.main("-q")

    assert broken.endpoint.count("requests") <= 80


def test_a_reply_against_its_schema_never_is_a_judgment(start, product):
    """Row 23: grade 7, missing keys, other keys and other types."""
    broken = product(start(p_schema=1.0), 40)

    assert broken.main("-q").code == 4

    assert set(broken.grades) == {None}
    assert {row["kind"] for row in broken.failures} == {"invalid"}


ENDINGS = {"length": "truncated", "filter": "filtered", "refusal": "refused"}


@pytest.mark.parametrize(("fault", "kind"), ENDINGS.items())
def test_a_reply_that_ends_badly_is_a_failure_of_its_kind(start, product, fault, kind):
    """Row 24: each calls for something else from the user."""
    ending = product(start(**{f"p_{fault}": 0.3}), 120)

    ending.judge()

    assert {row["kind"] for row in ending.failures} == {kind}
    assert len(ending.failures) == ending.grades.count(None) > 0
    assert right_or_none(ending) == []


@pytest.mark.parametrize("fault", ["filter", "refusal"])
def test_a_reply_that_was_withheld_is_not_asked_for_again(start, product, fault):
    """Row 24: it would be withheld again, and billed again."""
    ending = product(start(**{f"p_{fault}": 0.1}), 120)

    ending.judge()
    ending.judge()

    assert ending.endpoint.count("requests") == 120


def test_a_reply_that_was_cut_off_is_asked_for_with_more_room(start, product):
    """Row 24: one retry with a larger cap saves most of them, and then it fails."""
    cut = product(start(p_length=1.0), 20)

    cut.main("-q")

    assert cut.endpoint.count("requests") == 40


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run in which every reply is hostile, of all five kinds."""
    with endpoint(p_hostile=1.0) as running:
        run = Product(tmp_path_factory.mktemp("hostile"), running, 40)
        yield run, run.run("--concurrency", "8")


def test_hostile_text_crashes_nothing(hostile):
    """Row 43: the texts come from the internet."""
    run, ended = hostile

    assert ended.code == 0
    assert len(run.judged) == 40
    assert "Traceback" not in ended.err


def test_hostile_text_does_not_reach_the_terminal(hostile):
    """Row 43: escapes can rewrite what the user sees, and what they type."""
    _, ended = hostile
    shown = ended.out + ended.err

    assert {char for char in shown if not char.isprintable()} <= {"\n"}
    assert len(shown) < 20_000


def test_hostile_words_of_a_refusal_do_not_reach_the_terminal(start, product, serve):
    """Row 43: an endpoint explains itself, and what it says is printed."""
    words = "no\x1b]0;owned\x07 such\x1b[2J\x00 model \u202e" + "A" * 100_000
    run = product(start(), 4)

    ended = run.main("--base-url", serve(lambda *_: fault(404, words)).url)

    assert ended.code == 4
    assert "such" in ended.err
    assert {char for char in ended.err if not char.isprintable()} <= {"\n"}
    assert len(ended.err) < 20_000


def test_hostile_text_is_never_a_wrong_grade(hostile):
    """Row 43: what is odd about the words is not odd about the grade."""
    run, _ = hostile

    assert right_or_none(run) == []


def test_hostile_text_is_kept_as_it_came(hostile):
    """Row 43: the reasoning of a judge can be looked up later."""
    run, _ = hostile
    kept = "".join(row["reasoning"] for row in run.judged)

    assert "\x1b[31mred" in kept
    assert "before\x00behind" in kept


def test_a_megabyte_is_not_sent_back(hostile):
    """Row 43: a model that rambles must not make its own repair cost a quarter million tokens."""
    run, _ = hostile

    assert run.endpoint.count("prompt_tokens") < 40 * 2 * 10_000


def test_a_megabyte_is_not_written_into_the_files(hostile):
    """Row 43: some such pairs would make a set that nobody can open."""
    run, _ = hostile
    lines = (run.out.read_bytes() + run.failed.read_bytes()).splitlines()

    assert max(map(len, lines)) < 200_000


def test_a_body_without_end_is_not_read(serve, settings_for, ask_all):
    """Row 43: the memory of the machine is not the endpoint's to fill."""
    body = {**completion("fine"), "padding": "x" * 40_000_000}
    endless = serve(lambda *_: Reply(body))

    [error] = ask_all(settings_for(endless.url, max_attempts=1), request())

    assert isinstance(error, CallError)
