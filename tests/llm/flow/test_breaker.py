import math

import pytest

from ragforge.llm.flow.pacer import OPENS_AFTER, Breaker


def fail(breaker, times, now=0.0):
    return [breaker.failed(now) for _ in range(times)]


@pytest.fixture
def used():
    """A breaker of an endpoint that answered before."""
    breaker = Breaker()
    breaker.answered()
    return breaker


@pytest.fixture
def opened(used):
    """A breaker that opened at 100 s."""
    fail(used, OPENS_AFTER, now=100.0)
    return used


def test_it_opens_after_failures_in_a_row(used):
    """Going on would use up the attempts of every call."""
    assert fail(used, OPENS_AFTER) == [False] * (OPENS_AFTER - 1) + [True]
    assert used.is_open


def test_an_answer_begins_the_count_anew(used):
    """An endpoint that fails now and then is not down."""
    fail(used, OPENS_AFTER - 1)
    used.answered()
    fail(used, OPENS_AFTER - 1)

    assert not used.is_open


def test_it_never_opens_for_an_endpoint_that_never_answered():
    """A wrong address does not become right by waiting."""
    breaker = Breaker()

    assert not any(fail(breaker, 100))
    assert not breaker.is_open


def test_it_knows_since_when(opened):
    """The wait is limited by the user."""
    assert opened.opened_at == 100.0


def test_the_first_probe_is_a_second_later(opened):
    """Most outages are short."""
    assert opened.wait_s(100.25) == 0.75


def test_a_probe_that_is_due_waits_no_longer(opened):
    """Calls may come long after the probe was due."""
    assert opened.wait_s(500.0) == 0.0


def test_there_is_one_probe_at_a_time(opened):
    """Many would be refused together and lost."""
    opened.probe()

    assert opened.wait_s(500.0) == math.inf


def test_a_failed_probe_is_followed_by_the_next(opened):
    """The endpoint may be back at any time."""
    opened.probe()
    opened.failed(101.0)

    assert opened.wait_s(101.0) == pytest.approx(1.1)


def test_pauses_between_probes_stay_short(opened):
    """Behind an hour's outage the run should go on within seconds."""
    for _ in range(100):
        opened.probe()
        opened.failed(101.0)

    assert opened.wait_s(101.0) == 5.0


def test_late_failures_of_earlier_calls_do_not_put_off_the_probe(opened):
    """With many calls in flight the first probe would be five seconds away."""
    fail(opened, 64, now=100.5)

    assert opened.wait_s(100.5) == 0.5


def test_a_failure_while_open_does_not_open_it_again(opened):
    """The user is told once."""
    opened.probe()

    assert fail(opened, OPENS_AFTER) == [False] * OPENS_AFTER


def test_an_answer_closes_it(opened):
    """The endpoint is back."""
    assert opened.answered()
    assert not opened.is_open


def test_an_answer_while_closed_closes_nothing(used):
    """Nothing is to be told."""
    assert not used.answered()


def test_it_opens_anew_with_short_pauses(opened):
    """The next outage has nothing to do with the last."""
    opened.probe()
    fail(opened, 1, now=110.0)
    opened.answered()
    fail(opened, OPENS_AFTER, now=200.0)

    assert opened.wait_s(200.0) == 1.0
