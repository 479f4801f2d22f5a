"""What the engine reaches against endpoints with limits; the bar is that of the design."""

import itertools
import math
import time

import pytest
import virtual_time

CALLS = 400
STORM_IDEAL_S = (CALLS - 20) / 20
"""1,200 calls a minute, of which a second's worth may come at once."""

SEEDS = range(5)
MANY_SEEDS = range(10)


def whole_seconds(lacking_s):
    return math.ceil(lacking_s)


@pytest.fixture
def storm(simulate, endpoint):
    """Ask an endpoint that takes 1,200 calls a minute."""

    def ask(seed, *, tells_limits, **how):
        taking = endpoint(
            seed,
            requests_per_minute=1200,
            tells_limits=tells_limits,
            retry_after_s=whole_seconds if tells_limits else lambda lacking_s: None,
        )
        return simulate(taking, CALLS, 64, **how)

    return ask


@pytest.fixture
def token_storm(simulate, endpoint):
    """Ask an endpoint that takes 60,000 tokens a minute and says so."""

    def ask(seed):
        return simulate(endpoint(seed, tokens_per_minute=60_000, tells_limits=True), CALLS, 64)

    return ask


@pytest.fixture
def crowd(simulate, endpoint):
    """Ask an endpoint that takes 16 calls at once."""
    return lambda seed: simulate(endpoint(seed, most_in_flight=16), 1000, 64)


def pooled_refused_share(runs):
    refused = sum(len(run.endpoint.refused) for run in runs)
    return refused / sum(len(run.endpoint.sent) for run in runs)


def busiest(times, window_s):
    """Return the most events that any window of this length holds."""
    return max(sum(1 for at in times if start <= at < start + window_s) for start in times)


@pytest.mark.parametrize("tells_limits", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_call_is_lost_in_a_storm(storm, seed, tells_limits):
    """Other engines give up a third to half of the calls here."""
    assert storm(seed, tells_limits=tells_limits).done == CALLS


@pytest.mark.parametrize("seed", SEEDS)
def test_a_told_limit_is_hardly_ever_exceeded(storm, seed):
    """The headers of the first reply say enough."""
    assert storm(seed, tells_limits=True).refused_share <= 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_a_told_limit_is_used_up(storm, seed):
    """Caution that costs more than a seventh of the time is waste."""
    assert storm(seed, tells_limits=True).ended_at <= 1.15 * STORM_IDEAL_S


@pytest.mark.slow
def test_an_untold_limit_is_found_with_few_refusals(storm):
    """Endpoints that count refusals as abuse lock keys out."""
    assert pooled_refused_share([storm(seed, tells_limits=False) for seed in MANY_SEEDS]) <= 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_an_untold_limit_is_used_up(storm, seed):
    """The rate that was measured must be the endpoint's, not half of it."""
    assert storm(seed, tells_limits=False).ended_at <= 1.3 * STORM_IDEAL_S


@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_on_calls_in_flight_is_settled_at(crowd, seed):
    """More are refused, fewer leave the endpoint idle."""
    later = sorted(crowd(seed).endpoint.in_flight[500:])

    assert 14 <= later[len(later) // 2] <= 18


@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_on_calls_in_flight_is_used_up(crowd, endpoint, seed):
    """It must not be taken for a limit on calls a minute."""
    ideal_s = 1000 / 16 * endpoint().mean_latency_s

    assert crowd(seed).ended_at <= 1.3 * ideal_s


@pytest.mark.parametrize("retry_after_s", [None, 1])
@pytest.mark.parametrize("seed", range(3))
def test_random_refusals_cost_little(simulate, endpoint, seed, retry_after_s):
    """An engine that slows down at each of them takes forty times as long."""
    clean = simulate(endpoint(seed), 2000, 32)
    refused = simulate(
        endpoint(seed, refused_share=0.05, retry_after_s=lambda lacking_s: retry_after_s), 2000, 32
    )

    assert clean.ended_at / refused.ended_at >= 0.8


def test_a_limit_on_tokens_is_hardly_ever_exceeded(token_storm):
    """Lengths of replies are known only behind them."""
    assert pooled_refused_share([token_storm(seed) for seed in MANY_SEEDS]) <= 0.02


@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_on_tokens_is_used_up(token_storm, seed):
    """Reserving the longest reply for each call makes runs five times as long."""
    run = token_storm(seed)
    tokens = sum(
        reply.usage.prompt_tokens + reply.usage.completion_tokens for reply in run.outcomes
    )

    assert run.ended_at <= 1.3 * (tokens - 1000) / 1000


def test_the_users_limit_on_requests_is_kept(simulate, endpoint):
    """The endpoint says nothing, and its bill is the user's."""
    run = simulate(endpoint(), 200, 64, requests_per_minute=600)

    assert busiest(run.endpoint.sent, 1.0) <= 20


def test_the_users_limit_on_requests_is_used_up(simulate, endpoint):
    """It is a limit, not a wish for caution."""
    run = simulate(endpoint(), 200, 64, requests_per_minute=600)

    assert run.ended_at <= 1.1 * (200 - 10) / 10


@pytest.fixture
def herd(simulate, endpoint):
    """Refuse all 64 calls in flight, and ask them to come back in three seconds."""

    def ask(seed):
        refusing = endpoint(seed, refusing=(3.0, 3.3), retry_after_s=lambda lacking_s: 3.0)
        run = simulate(refusing, 3000, 64)
        [(told_at, _)] = run.flow_told
        return told_at, run.endpoint.sent

    return ask


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_sent_while_the_endpoint_asks_to_wait(herd, seed):
    """Whatever comes earlier is refused."""
    told_at, sent = herd(seed)

    assert [at for at in sent if told_at < at < told_at + 3] == []


@pytest.mark.parametrize("second", range(2))
@pytest.mark.parametrize("seed", range(3))
def test_calls_do_not_come_back_together(herd, seed, second):
    """A herd is refused again, as a herd."""
    told_at, sent = herd(seed)
    start = told_at + 3 + second
    later = [at for at in sent if start <= at < start + 1.5]
    begun = [at for at in later if at < later[0] + 1]

    assert busiest(begun, 0.1) <= 0.2 * len(begun)


@pytest.mark.parametrize("workers", [1, 64])
def test_no_wait_asked_for_is_no_hot_loop(simulate, endpoint, workers):
    """Some gateways say 0 and refuse again."""
    lying = endpoint(refusing=(2.0, 12.0), retry_after_s=lambda lacking_s: 0.0)
    run = simulate(lying, 1000, 32, workers=workers)

    assert len([at for at in run.endpoint.sent if 3 <= at < 12]) <= 18


def test_too_long_a_wait_ends_every_call(simulate, endpoint):
    """No call of the run can succeed within the user's patience."""
    closed = endpoint(refusing=(2.0, math.inf), retry_after_s=lambda lacking_s: 3600.0)
    run = simulate(closed, CALLS, 32)
    errors = [str(outcome) for outcome in run.outcomes if isinstance(outcome, Exception)]

    assert run.done + len(errors) == CALLS
    assert all("asks to wait 3600 s, until " in error for error in errors)


def test_a_suspended_process_sends_no_burst(simulate, endpoint):
    """Behind a lid that was closed for a minute lies not a minute's worth of calls."""

    def sleep_for_a_minute(client):
        virtual_time.at(5.0, virtual_time.suspend, 60.0)

    run = simulate(endpoint(), 200, 64, sleep_for_a_minute, requests_per_minute=600)

    assert len([at for at in run.endpoint.sent if 65 <= at < 66]) in range(10, 21)


def test_a_suspended_process_keeps_within_a_told_limit(storm):
    """The endpoint's bucket is full, and no fuller."""

    def sleep_for_a_minute(client):
        virtual_time.at(5.0, virtual_time.suspend, 60.0)

    run = storm(0, tells_limits=True, beside=sleep_for_a_minute)

    assert (run.done, len(run.endpoint.refused)) == (CALLS, 0)


def test_steps_of_the_wall_clock_change_nothing(storm, monkeypatch):
    """Clocks are set while runs of hours go on."""
    undisturbed = storm(0, tells_limits=False)
    steps = itertools.cycle([0.0, 3600.0, -3600.0])
    began = time.time()
    monkeypatch.setattr(time, "time", lambda: began + next(steps))
    disturbed = storm(0, tells_limits=False)

    assert disturbed.endpoint.sent == undisturbed.endpoint.sent
