import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.llm.flow.state import TokenBucket


@pytest.fixture
def bucket():
    """Two a second, four at most, full at 10 s."""
    return TokenBucket(per_s=2.0, capacity=4.0, now=10.0)


def test_a_full_bucket_gives_what_it_holds_at_once(bucket):
    """A short run below the limit must not be slowed down."""
    assert bucket.wait_s(4.0, 10.0) == 0.0


def test_what_is_lacking_is_waited_for(bucket):
    """A call sent earlier would be refused."""
    bucket.take(4.0, 10.0)

    assert bucket.wait_s(3.0, 10.5) == 1.0


def test_it_fills_up_to_its_capacity_only(bucket):
    """A night's pause gives no right to a night's calls."""
    bucket.take(4.0, 10.0)

    assert bucket.wait_s(4.0, 40_000.0) == 0.0
    assert bucket.level == 4.0


def test_more_than_fits_waits_until_it_is_full(bucket):
    """A prompt above the limit of a second would else never be sent."""
    bucket.take(4.0, 10.0)

    assert bucket.wait_s(100.0, 10.0) == 2.0


def test_more_than_fits_is_paid_off_before_the_next(bucket):
    """The rate holds over a longer time, whatever the single amounts."""
    bucket.take(10.0, 10.0)

    assert bucket.wait_s(1.0, 10.0) == 3.5


def test_what_is_given_back_may_be_taken_again(bucket):
    """Tokens that were reserved for a short reply are free for others."""
    bucket.take(4.0, 10.0)
    bucket.take(-3.0, 10.0)

    assert bucket.wait_s(3.0, 10.0) == 0.0


def test_what_is_given_back_does_not_overfill(bucket):
    """A reservation settled late must not make a burst."""
    bucket.take(-3.0, 10.0)

    assert bucket.level == 4.0


def test_the_level_is_lowered_to_what_is_said_to_be_left(bucket):
    """Others may use the same limit."""
    bucket.at_most(1.0, 10.0)

    assert bucket.wait_s(4.0, 10.0) == 1.5


def test_the_level_is_not_raised_to_what_is_said_to_be_left(bucket):
    """A reply tells of the time before the calls behind it were sent."""
    bucket.take(4.0, 10.0)
    bucket.at_most(3.0, 10.0)

    assert bucket.level == 0.0


def test_another_rate_keeps_what_fits(bucket):
    """Learning the limit is no new burst."""
    bucket.change(per_s=1.0, capacity=3.0, now=10.0)

    assert (bucket.level, bucket.wait_s(3.0, 10.0)) == (3.0, 0.0)


def test_another_rate_counts_from_the_change(bucket):
    """The time before it flowed at the old rate."""
    bucket.take(4.0, 10.0)
    bucket.change(per_s=1.0, capacity=4.0, now=11.0)

    assert bucket.wait_s(4.0, 11.0) == 2.0


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 8)), min_size=1, max_size=50),
    st.floats(0.1, 20),
    st.floats(1, 10),
)
def test_never_more_flows_than_the_capacity_and_the_rate_allow(steps, per_s, capacity):
    """This is the one promise a limit is about."""
    bucket, now, taken = TokenBucket(per_s, capacity, 0.0), 0.0, 0.0
    for pause_s, amount in steps:
        now += pause_s
        now += bucket.wait_s(amount, now)
        bucket.take(amount, now)
        taken += amount

    assert taken <= capacity + per_s * now + max(amount for _, amount in steps) + 1e-6
