import random

import pytest

from ragforge.pipeline.judge.judge_run import PositionSums
from ragforge.records import Judgment, Vote


def position_effect(judgments):
    sums = PositionSums()
    for judgment in judgments:
        sums.add(judgment)
    return sums.effect()


def judgment(query_id, *votes, copied_from=""):
    return Judgment(
        query_id=query_id,
        chunk_id="c",
        grade=1,
        copied_from=copied_from,
        votes=tuple(Vote(model="m", grade=grade, position=at) for at, grade in votes),
    )


def test_the_shift_is_the_slope_within_pairs():
    """Good passages that happen to stand in front are no effect of the place."""
    found = position_effect([judgment("q1", (0, 3), (1, 2)), judgment("q2", (0, 1), (1, 0))])

    assert (found.shift, found.n_pairs) == (-1.0, 2)


def test_places_that_do_not_matter_show_no_effect():
    """A better passage at every place is better at every place."""
    found = position_effect([judgment(f"q{at}", (0, at % 4), (3, at % 4)) for at in range(20)])

    assert (found.shift, found.p, found.is_significant) == (0.0, 1.0, False)


@pytest.mark.parametrize("lean", [-1, 1])
def test_a_leaning_judge_is_found_out(lean):
    """Batches of such a judge would reward the order in which they happen to be shown."""
    drawn = random.Random(7)
    judgments = []
    for query in range(40):
        places = drawn.sample(range(8), 3)
        votes = [
            (at, min(3, max(0, 1 + lean * (at > 3) + drawn.choice((0, 0, 1))))) for at in places
        ]
        judgments.append(judgment(f"q{query}", *votes))

    found = position_effect(judgments)

    assert found.is_significant
    assert found.shift * lean > 0
    assert found.low <= found.shift <= found.high


def test_noise_alone_is_hardly_ever_called_an_effect():
    """A batch run that is given up for nothing costs twice."""
    drawn = random.Random(3)
    alarms = 0
    for _ in range(200):
        judgments = [
            judgment(f"q{query}", *((at, drawn.randrange(4)) for at in drawn.sample(range(8), 3)))
            for query in range(15)
        ]
        alarms += position_effect(judgments).is_significant

    assert alarms <= 8


@pytest.mark.parametrize(
    "judgments",
    [
        [],
        [judgment("q1")],
        [judgment("q1", (0, 3))],
        [judgment("q1", (2, 3), (2, 1))],
        [judgment("q1", (0, 3), (1, 1))],
        [judgment("q1", (0, 3), (1, 1)), judgment("q2", (0, 3), (1, 1), copied_from="d")],
    ],
)
def test_nothing_can_be_said_without_two_places(judgments):
    """One order shows the grades and the order at once."""
    assert position_effect(judgments) is None


def test_few_pairs_are_no_evidence():
    """Two coins that fall alike prove nothing."""
    found = position_effect([judgment("q1", (0, 3), (7, 0)), judgment("q2", (0, 3), (7, 0))])

    assert (found.is_told, found.is_significant) == (False, False)


def test_one_query_is_enough():
    """Places are drawn anew for each passage, so that a leaning judge shows in one long list."""
    found = position_effect([judgment("q1", (0, 3), (7, 0)) for _ in range(12)])

    assert found.is_significant
    assert (found.shift, found.low, found.high) == (-3.0, -3.0, -3.0)
