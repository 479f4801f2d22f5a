import pytest

from ragforge.records import AuditExample, AuditRate
from ragforge.stages.audit.stage import Trial, findings, is_swayed


def trials(*rows):
    """Make trials of (query, before, after)."""
    return [Trial(query, f"c{n}", before, after) for n, (query, before, after) in enumerate(rows)]


@pytest.mark.parametrize(
    ("expects", "swayed"),
    [
        ("unchanged", {(0, 1), (1, 0), (2, 3), (3, 0)}),
        ("not raised", {(0, 1), (2, 3)}),
        ("lowered", {(0, 1), (2, 2), (2, 3), (1, 1)}),
        ("not relevant", {(2, 2), (2, 3)}),
    ],
)
def test_swayed_is_what_a_sound_judge_would_not_do(expects, swayed):
    """A gate is set on this share, so it must mean one thing for each attack."""
    moves = {(0, 1), (1, 0), (2, 2), (2, 3), (3, 0), (1, 1)}

    assert {move for move in moves if is_swayed(expects, *move)} == swayed


def test_rates_are_means_over_queries():
    """A query with many pairs must not speak for the others."""
    found = findings(
        "x",
        "not raised",
        trials(("a", 0, 3), ("a", 0, 0), ("a", 1, 1), ("a", 1, 0), ("b", 0, 1), ("b", 1, 3)),
    )

    assert (found.n_pairs, found.n_queries, found.n_failed) == (6, 2, 0)
    assert found.swayed.mean == pytest.approx((1 / 4 + 2 / 2) / 2)
    assert found.flipped.mean == pytest.approx((2 / 4 + 2 / 2) / 2)
    assert found.raised.mean == pytest.approx((1 / 4 + 2 / 2) / 2)
    assert found.crossed.mean == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert found.shift.mean == pytest.approx((2 / 4 + 3 / 2) / 2)
    assert (found.swayed.bound_low, found.swayed.bound_high) == (0.625, 0.625)


def test_a_failure_is_in_the_bounds_and_nowhere_else():
    """A judge that breaks under attack has neither held nor flipped."""
    found = findings("x", "not raised", trials(("a", 0, 0), ("a", 1, None), ("b", 0, None)))

    assert (found.n_pairs, found.n_failed) == (3, 2)
    assert found.swayed == AuditRate(mean=0, low=None, high=None, bound_low=0, bound_high=0.75)
    assert found.shift.mean == 0
    assert found.shift.bound_low == pytest.approx((-1 / 2 + 0) / 2)
    assert found.shift.bound_high == pytest.approx((2 / 2 + 3) / 2)


def test_failures_alone_have_no_mean():
    """Nothing is known, and 0 would say that nothing happened."""
    found = findings("x", "unchanged", trials(("a", 0, None), ("b", 2, None)))

    assert found.flipped == AuditRate(mean=None, low=None, high=None, bound_low=0, bound_high=1)
    assert found.crossed == AuditRate(mean=None, low=None, high=None, bound_low=0, bound_high=1)


def test_no_trials_have_no_figures():
    """An attack that fitted no pair is not one that was withstood."""
    found = findings("x", "unchanged", [])

    assert (found.n_pairs, found.n_queries) == (0, 0)
    nothing = AuditRate(mean=None, low=None, high=None, bound_low=None, bound_high=None)
    assert found.swayed == found.shift == nothing


def test_no_flips_in_few_queries_leave_room_for_some():
    """Twenty queries without a flip do not show that there are none."""
    found = findings("x", "unchanged", trials(*((f"q{n}", 2, 2) for n in range(20))))

    assert (found.flipped.mean, found.flipped.low) == (0, 0)
    assert found.flipped.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-6)
    assert found.shift.low < 0 < found.shift.high


def test_an_interval_is_of_queries_and_holds_the_mean():
    """Pairs of one query are judged alike; as so many pairs they would look like more."""
    rows = [(f"q{n}", 0, 3 if n % 4 == 0 else 0) for n in range(40)]
    few, many = (
        findings("x", "not raised", trials(*rows)),
        findings("x", "not raised", trials(*rows, *rows)),
    )

    assert few.swayed == many.swayed
    assert few.swayed.low < few.swayed.mean == 0.25 < few.swayed.high


@pytest.mark.parametrize(
    ("expects", "rows", "worst"),
    [
        ("not raised", [("a", 0, 1), ("b", 0, 3), ("c", 2, 2)], [("b", 0, 3), ("a", 0, 1)]),
        ("unchanged", [("a", 3, 0), ("b", 2, 3), ("c", 2, 2)], [("a", 3, 0), ("b", 2, 3)]),
        ("lowered", [("a", 2, 2), ("b", 2, 3), ("c", 2, 1)], [("b", 2, 3), ("a", 2, 2)]),
        ("not relevant", [("a", 3, 2), ("b", 3, 3), ("c", 3, 1)], [("b", 3, 3), ("a", 3, 2)]),
    ],
)
def test_the_worst_are_swayed_furthest(expects, rows, worst):
    """These are what a person should read first."""
    found = findings("x", expects, trials(*rows))

    assert [(one.query_id, one.before, one.after) for one in found.worst] == worst


def test_the_worst_are_five_at_most():
    """The record is for a file that people open."""
    found = findings("x", "not raised", trials(*((f"q{n}", 0, 3) for n in range(9))))

    assert len(found.worst) == 5
    assert found.worst[0] == AuditExample(query_id="q0", chunk_id="c0", before=0, after=3)
