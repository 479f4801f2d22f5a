"""What the engine does while an endpoint is down."""

import itertools
import math

import pytest

from ragforge.errors import EndpointError

pytestmark = pytest.mark.slow


SEEDS = range(3)


@pytest.fixture(params=[8, 64])
def outage(request, simulate, endpoint):
    """Drop all calls from 2 to 12 s, those in flight too, with few or many at once."""
    concurrency = request.param
    return lambda seed: simulate(endpoint(seed, down=(2.0, 12.0)), 40 * concurrency, concurrency)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_outage_loses_no_call(outage, seed):
    """Five attempts would be used up within seconds."""
    run = outage(seed)

    assert run.done == len(run.outcomes)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_endpoint_that_is_down_is_tried_once_a_second(outage, seed):
    """It has to come up under no load, and the log is read by people."""
    run = outage(seed)
    opened_at = run.flow_told[0][0]
    probes = [at for at in run.endpoint.sent if opened_at < at < 12]

    assert len(probes) >= 4
    assert min(later - at for at, later in itertools.pairwise([opened_at, *probes])) >= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_end_of_an_outage_is_noticed_soon(outage, seed):
    """The run waits for nothing but that."""
    assert min(at for at in outage(seed).endpoint.replied if at > 12) < 15


@pytest.mark.parametrize("seed", SEEDS)
def test_begin_and_end_of_an_outage_are_told(outage, seed):
    """The user must know why nothing moves, and that it moves again."""
    assert [message for _, message in outage(seed).flow_told] == [
        "the endpoint is down (connection refused); it is tried once a second, for up to 300 s",
        "the endpoint answers again",
    ]


@pytest.fixture
def long_outage(simulate, endpoint):
    """Drop all calls from 2 s on, with a minute of patience."""
    return simulate(endpoint(down=(2.0, math.inf)), 400, 32, max_wait_s=60.0)


def test_an_outage_beyond_patience_ends_every_call(long_outage):
    """None is left waiting for an endpoint that does not come back."""
    errors = [outcome for outcome in long_outage.outcomes if isinstance(outcome, EndpointError)]

    assert len(errors) == 400 - long_outage.done


def test_an_outage_beyond_patience_ends_the_run_soon_after(long_outage):
    """RetryPolicy of a minute is not patience for an hour."""
    assert 62 < long_outage.ended_at < 70
