"""Scripts: what they refuse, and what decides what happens."""

import pytest

from ragforge.errors import UsageError
from ragforge.mock.script import Script, descriptions, fault_chances, fault_of, flag, parse_latency


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"p429": 1.5}, "--p429: expected a probability from 0 to 1, got 1.5"),
        ({"p_hang": -0.1}, "--p-hang: expected a probability from 0 to 1, got -0.1"),
        ({"p500": float("nan")}, "--p500: expected a probability"),
        ({"p429": 0.6, "p500": 0.6}, "all faults together: .* up to 1, got 1.2"),
        ({"latency": "soon"}, "--latency: expected fixed:MS, .* got 'soon'"),
        ({"latency": "fixed:1,2"}, "--latency: expected"),
        ({"latency": "fixed:1.2.3"}, "--latency: expected"),
        ({"latency": "lognorm:200"}, "--latency: expected"),
        ({"latency": "uniform:3,2"}, "--latency: expected"),
        ({"rpm": 0}, "--rpm: expected a number above 0, got 0"),
        ({"tpm": float("inf")}, "--tpm: expected a number above 0, got inf"),
        ({"slow_s": -1}, "--slow-s: expected 0 or more, got -1"),
        ({"retry_after": "soon"}, "--retry-after: no 'soon'; there are: none, seconds"),
        ({"rl_headers": "yes"}, "--rl-headers: no 'yes'; there are: on, off"),
        ({"refuse": ("top_p",)}, "--refuse: no 'top_p'; there are: json_schema"),
        ({"always_status": 200}, "--always-status: expected 400 to 599, got 200"),
        ({"down_from_s": 1.0}, "--down-from-s and --down-to-s: expected both"),
        ({"down_from_s": 2.0, "down_to_s": 1.0}, "--down-to-s: expected more than"),
        ({"redirect_to": "http://a\r\nx: y"}, "--redirect-to: expected an ASCII URL"),
    ],
)
def test_what_cannot_be_is_refused(fields, message):
    """A typing error must not become a test that tests nothing."""
    with pytest.raises(UsageError, match=message):
        Script(**fields)


def test_every_field_is_described():
    """The sentences are the help."""
    assert set(descriptions()) == set(Script.__dataclass_fields__)


def test_faults_are_named_without_their_prefix():
    """Statistics count them by these names."""
    assert list(fault_chances(Script(p429=0.1, p502_html=0.1, p_no_usage=0.1))) == [
        "429",
        "502_html",
        "no_usage",
    ]


def test_a_field_that_is_no_fault_has_no_fault_name():
    """A name may begin with p for other reasons."""
    assert (fault_of("prompt"), fault_of("seed")) == ("", "")


def test_flags_have_dashes():
    """As all flags of the command line."""
    assert flag("p502_html") == "--p502-html"


def test_the_key_is_not_shown():
    """A script that is printed in a failing test ends up in logs."""
    assert "secret" not in repr(Script(auth="secret-key"))


@pytest.mark.parametrize(
    ("text", "draw", "seconds"),
    [
        ("fixed:20", 0.9, 0.02),
        ("uniform:100,300", 0.25, 0.15),
        ("lognorm:200,0.4", 0.5, 0.2),
        ("lognorm:200,0.4", 0.8413447460685429, 0.2983649395282541),
    ],
)
def test_latencies_follow_their_distribution(text, draw, seconds):
    """One sigma above the median is exp(0.4) times it."""
    assert parse_latency(text)(draw) == pytest.approx(seconds)


def test_no_latency_is_endless():
    """The ends of a log-normal distribution are at 0 and beyond all bounds."""
    assert parse_latency("lognorm:200,1")(0.0) > 0
    assert parse_latency("lognorm:200,1")(1.0) < 60


def statuses(client, plain):
    return [client.chat(plain(str(number % 5))).status for number in range(30)]


def test_equal_seeds_bring_equal_faults(start, plain):
    """A failing rehearsal can be repeated."""
    assert statuses(start(p500=0.5, seed=1), plain) == statuses(start(p500=0.5, seed=1), plain)


def test_another_seed_brings_other_faults(start, plain):
    """One rehearsal is no proof."""
    assert statuses(start(p500=0.5, seed=1), plain) != statuses(start(p500=0.5, seed=2), plain)


def test_another_attempt_may_go_well(start, plain):
    """A fault that stayed for ever would be another fault."""
    client = start(p500=0.5)

    assert {client.chat(plain()).status for _ in range(20)} == {200, 500}


def test_the_order_of_requests_changes_no_fault(start, plain):
    """Concurrent clients send in any order."""
    first, second = start(p500=0.5), start(p500=0.5)
    forth = {number: first.chat(plain(str(number))).status for number in range(20)}
    back = {number: second.chat(plain(str(number))).status for number in reversed(range(20))}

    assert forth == back


def test_rejections_by_a_limit_are_no_attempts(start, plain):
    """How fast a client asks must not decide what faults it meets."""
    free, limited = start(p500=0.5), start(p500=0.5, quota_after=10**6, rpm=60, burst_s=5)
    free_statuses = [free.chat(plain()).status for _ in range(8)]
    limited_statuses = [limited.chat(plain()).status for _ in range(8)]

    assert limited_statuses[:5] == free_statuses[:5]


def test_a_delay_is_kept(start, plain):
    """A reply that comes too early would make a client look fast."""
    client = start(latency="fixed:60000")
    with client.waiting(plain()) as connection:
        connection.settimeout(0.03)
        with pytest.raises(TimeoutError):
            connection.recv(1)
