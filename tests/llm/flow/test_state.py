import math

import pytest

from ragforge.llm.flow.state import FIRST_IN_FLIGHT, Flow
from ragforge.llm.wire import RateLimit, RateLimits

PROMPT_TOKENS = 100.0


@pytest.fixture
def flow():
    """What is known at 0 s of an endpoint of which nothing is known."""
    return Flow(64, 0.0)


def send(flow, calls, now=0.0):
    return [flow.send(PROMPT_TOKENS, now) for _ in range(calls)]


def accept(flow, tickets, now):
    for ticket in tickets:
        flow.accepted(ticket, now, used_tokens=150.0, reply_tokens=50.0)


def refuse(flow, tickets, now, retry_after_s=None):
    return [flow.rejected(ticket, now, retry_after_s) for ticket in tickets]


def apply_limits(flow, *, requests=None, tokens=None, now=0.0):
    flow.apply_limits(RateLimits(requests, tokens), now)


def test_it_begins_with_few_calls(flow):
    """An endpoint that takes sixteen at once would refuse the rest of sixty-four."""
    send(flow, FIRST_IN_FLIGHT)

    assert flow.wait_s(PROMPT_TOKENS, 0.0) == math.inf


def test_it_never_begins_with_more_than_the_user_allows():
    """The user's limit holds from the first call."""
    assert Flow(2, 0.0).limit == 2


def test_each_reply_makes_room_for_one_more(flow):
    """The number doubles with each round, until something speaks against it."""
    accept(flow, send(flow, FIRST_IN_FLIGHT), 0.2)

    assert flow.limit == FIRST_IN_FLIGHT + 1


def test_a_flow_that_does_not_fill_its_limit_does_not_grow(flow):
    """Replies to few calls do not show that many are taken."""
    for now in range(100):
        accept(flow, send(flow, 1, float(now)), now + 0.5)

    assert flow.limit == FIRST_IN_FLIGHT


def test_it_grows_to_what_the_user_allows_and_no_further():
    """The user's limit holds for ever."""
    flow = Flow(10, 0.0)
    for now in range(10):
        accept(flow, send(flow, int(flow.limit), float(now)), now + 0.5)

    assert flow.limit == 10


def test_a_single_refusal_changes_nothing(flow):
    """Some endpoints refuse one call in twenty, whatever the load."""
    [ticket] = send(flow, 1)

    assert refuse(flow, [ticket], 0.1) == [False]
    assert flow.limit == FIRST_IN_FLIGHT


def test_refusals_among_many_replies_are_no_overload(flow):
    """Slowing down does not help against refusals at random."""
    for now in range(20):
        accept(flow, send(flow, 7, float(now)), now + 0.2)
        refuse(flow, send(flow, 1, float(now)), now + 0.2)

    assert flow.overloads == 0


def test_several_refusals_are_an_overload(flow):
    """It must be noticed before a storm has begun."""
    assert refuse(flow, send(flow, 4), 0.1) == [False, False, False, True]


def test_behind_an_overload_less_is_in_flight_than_was_taken(flow):
    """What was in flight when others were refused is what the endpoint takes."""
    refuse(flow, send(flow, 8)[:4], 0.1)

    assert flow.limit == 3


def test_refusals_of_calls_sent_before_an_overload_are_no_news(flow):
    """One crowd must not be answered by two cuts."""
    tickets = send(flow, 8)
    refuse(flow, tickets[:4], 0.1)

    assert refuse(flow, tickets[4:], 0.1) == [False] * 4


def test_refusals_right_behind_an_overload_cut_once_more(flow):
    """The first cut was too small where refusals were still on their way."""
    refuse(flow, send(flow, 8)[:4], 0.1)
    refuse(flow, send(flow, 8, 0.2)[:3], 0.3)

    assert flow.overloads == 2
    assert flow.measured is None


def test_refusals_of_most_calls_behind_an_overload_show_a_rate(flow):
    """Fewer at once did not help, so the endpoint counts calls per time."""
    refuse(flow, send(flow, 8)[:4], 0.1)
    refuse(flow, send(flow, 4, 0.2)[:3], 0.3)

    assert flow.measured is not None


def test_refusals_behind_two_cuts_show_a_rate(flow):
    """A third cut would help no more than the second."""
    refuse(flow, send(flow, 8)[:4], 0.1)
    refuse(flow, send(flow, 8, 0.2)[:3], 0.3)
    refuse(flow, send(flow, 8, 0.4)[:3], 0.5)

    assert flow.measured is not None


def test_a_long_wait_that_is_asked_for_shows_a_rate(flow):
    """Who says when to come back counts calls per time."""
    refuse(flow, send(flow, 8)[:4], 0.1, retry_after_s=3.0)

    assert flow.measured is not None


def test_a_wait_that_is_asked_for_is_held(flow):
    """Whatever comes earlier is refused."""
    refuse(flow, send(flow, 8)[:4], 1.0, retry_after_s=3.0)

    assert flow.wait_s(PROMPT_TOKENS, 1.0) >= 3.0


def test_a_longer_wait_of_a_late_refusal_is_held(flow):
    """A limit a day may be told behind a limit a minute."""
    tickets = send(flow, 8)
    refuse(flow, tickets[:4], 1.0, retry_after_s=3.0)
    refuse(flow, tickets[4:5], 1.1, retry_after_s=60.0)

    assert flow.hold_until == pytest.approx(61.1)


def test_holds_grow_while_nothing_is_taken(flow):
    """An endpoint that refuses all and says nothing must not be hammered."""
    holds = []
    for now in (1.0, 10.0, 20.0):
        refuse(flow, send(flow, 4, now), now, retry_after_s=2.0 if now == 1 else None)
        holds.append(flow.hold_until - now)

    assert holds == [2.0, 1.0, 2.0]


def test_an_end_that_says_nothing_frees_the_place(flow):
    """A lost slot would slow the run down for good."""
    [ticket] = send(flow, 1)
    flow.failed(ticket, 0.1)

    assert flow.in_flight == 0


def test_the_users_requests_a_minute_hold_from_the_start():
    """Nobody but the user may know the limit."""
    flow = Flow(64, 0.0, requests_per_minute=60)
    send(flow, 1)

    assert flow.wait_s(PROMPT_TOKENS, 0.0) == 1.0


def test_the_users_tokens_a_minute_hold_from_the_start():
    """A reply is reserved with its prompt, before anybody knows its length."""
    flow = Flow(64, 0.0, tokens_per_minute=600)
    send(flow, 1)

    assert flow.wait_s(PROMPT_TOKENS, 0.0) == pytest.approx((100 + 256) / 10)


def test_tokens_that_were_not_used_are_given_back():
    """Reserving the longest reply for all would waste most of the limit."""
    flow = Flow(64, 0.0, tokens_per_minute=60000)
    [ticket] = send(flow, 1)
    flow.accepted(ticket, 0.0, used_tokens=150.0, reply_tokens=50.0)

    assert flow.tokens.level == 850.0


def test_refused_calls_cost_no_tokens():
    """The endpoint did not work on them."""
    flow = Flow(64, 0.0, tokens_per_minute=60000)
    refuse(flow, send(flow, 1), 0.0)

    assert flow.tokens.level == 1000.0


def test_replies_are_reserved_as_nine_of_ten_are_long(flow):
    """More would waste the limit, less would be refused."""
    lengths = [float(10 * (number * 7 % 100)) for number in range(5000)]
    for now, length in enumerate(lengths):
        [ticket] = send(flow, 1, float(now))
        flow.accepted(ticket, now + 0.5, used_tokens=length, reply_tokens=length)

    assert 800 < flow.reply_tokens < 990


def test_a_told_limit_is_kept_a_little_below(flow):
    """The clocks of two machines do not beat alike."""
    apply_limits(flow, requests=RateLimit(1200.0, 1199.0))

    assert flow.requests.per_s == pytest.approx(19.6)


def test_a_told_limit_ends_the_slow_start(flow):
    """It says what the slow start would find out."""
    apply_limits(flow, requests=RateLimit(1200.0, 1199.0))

    assert flow.limit == 64


def test_a_told_limit_does_not_undo_an_overload(flow):
    """Endpoints have limits that they do not tell."""
    refuse(flow, send(flow, 8)[:4], 0.1)
    apply_limits(flow, requests=RateLimit(1200.0, 1199.0))

    assert flow.limit == 3


def test_a_lower_limit_of_the_users_stays():
    """The user may share the limit with others."""
    flow = Flow(64, 0.0, requests_per_minute=60)
    apply_limits(flow, requests=RateLimit(1200.0, 1199.0))

    assert flow.requests.per_s == 1.0


def test_a_lower_limit_than_the_users_holds():
    """The user may be wrong."""
    flow = Flow(64, 0.0, requests_per_minute=6000)
    apply_limits(flow, requests=RateLimit(60.0, 59.0))

    assert flow.requests.per_s == pytest.approx(0.98)


def test_little_left_is_waited_for(flow):
    """Others use the same key."""
    apply_limits(flow, requests=RateLimit(60.0, 0.0))

    assert flow.wait_s(PROMPT_TOKENS, 0.0) == pytest.approx(2 / 0.98)


def test_what_flows_in_during_a_hold_does_not_go_out_at_once():
    """All would come back together and be refused together."""
    flow = Flow(64, 0.0, requests_per_minute=600)
    refuse(flow, send(flow, 8)[:4], 0.0, retry_after_s=3.0)

    assert flow.requests.wait_s(1.0, 3.0) == pytest.approx(0.1)


def test_a_restart_begins_with_few_calls(flow):
    """An endpoint that has just come back has cold caches and a queue."""
    flow.limit = 64.0
    flow.restart()

    assert flow.limit == FIRST_IN_FLIGHT


def test_a_measured_rate_is_lowered_to_what_was_taken_in_between(flow):
    """A bucket that was empty twice let through what flows into it."""
    refuse(flow, send(flow, 8)[:4], 0.0, retry_after_s=2.0)
    for now in range(10, 20):
        accept(flow, send(flow, 1, float(now)), now + 0.1)
    refuse(flow, send(flow, 3, 20.0), 20.0)

    assert flow.measured.per_s == pytest.approx(0.97 * 14 / 20)


def test_a_rate_that_makes_no_difference_is_given_up(flow):
    """Who shares a limit with others is refused at any rate; slowing down only starves."""
    refuse(flow, send(flow, 8)[:4], 0.0, retry_after_s=2.0)
    for start in (5.0, 7.0, 9.0):
        for now in (start, start + 0.2, start + 0.4):
            accept(flow, send(flow, 1, now), now)
        refuse(flow, send(flow, 8, start + 0.5), start + 0.5)

    assert flow.measured is None
