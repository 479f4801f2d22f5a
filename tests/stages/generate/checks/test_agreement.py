import pytest
from checker import anchored

from ragforge.stages.generate.checks.agreement import (
    GivenAnswer,
    agrees_by_rule,
    is_enough,
    measured_difficulty,
)
from ragforge.stages.generate.checks.batches import item_of


@pytest.mark.parametrize(
    ("rank", "agreement", "difficulty"),
    [
        (1, "agrees", "easy"),
        (3, "agrees", "easy"),
        (4, "agrees", "medium"),
        (10, "agrees", "medium"),
        (11, "agrees", "hard"),
        (None, "agrees", "hard"),
        (1, "in part", "medium"),
        (4, "in part", "hard"),
        (1, "differs", "hard"),
        (None, "differs", "hard"),
    ],
)
def test_a_query_is_as_hard_as_its_evidence_is_to_find_and_to_read(rank, agreement, difficulty):
    """The writer's word for it is a guess; these two were measured."""
    assert measured_difficulty(rank, 20, agreement) == difficulty


@pytest.mark.parametrize(
    ("rank", "depth", "agreement"),
    [(1, 10, "unknown"), (None, 0, "agrees"), (1, 0, "agrees"), (None, 9, "agrees")],
)
def test_what_was_not_measured_has_no_difficulty(rank, depth, agreement):
    """Evidence that is not in the first five may be the sixth."""
    assert measured_difficulty(rank, depth, agreement) is None


@pytest.mark.parametrize(
    ("expected", "answer", "language", "agrees"),
    [
        ("5 seconds", "5,000 ms", "en", True),
        ("1.5 km", "1,5 km", "de", True),
        ("1.5 km", "1,5 km", "en", False),
        ("March 3, 2025", "2025-03-03", "en", True),
        ("The HTTP proxy", "HTTP proxy", "en", True),
        ("5 seconds", "5 minutes", "en", False),
        ("5 seconds", "5", "en", False),
        ("", "", "en", False),
        (".", ".", "en", False),
        ("10⁶", "106", "en", False),
    ],
)
def test_only_what_is_certain_is_decided_by_rule(expected, answer, language, agrees):
    """The rest is read by a model."""
    item = item_of(anchored(answer=expected, language=language))

    assert agrees_by_rule(GivenAnswer(item, answer)) is agrees


@pytest.mark.parametrize("kind", ["fact", "temporal", "multi_hop", "false_premise", None])
def test_of_one_thing_a_part_is_not_enough(kind):
    """The expected answer then says more than is asked, or less."""
    assert not is_enough("in part", kind)


@pytest.mark.parametrize("kind", ["list", "fact"])
def test_an_answer_that_differs_is_never_enough(kind):
    """Whatever the type."""
    assert not is_enough("differs", kind)
