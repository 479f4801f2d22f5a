import pytest

from ragforge.corpus.quote_locations import Location
from ragforge.stages.ground.counting import contradiction, counted_once, lay_out
from ragforge.stages.ground.settling import Checked

TEXT = "The Alpha costs 40 euros and ships in a week. Alpha costs little."


def at(*parts):
    return [
        Location(start, start + len(part))
        for part in parts
        for start in range(len(TEXT))
        if TEXT.startswith(part, start)
    ]


@pytest.fixture
def counted():
    """Count claims, each with its places; return their words."""

    def go(claims):
        checked = [Checked(tuple(at(part)), places, "") for part, places in claims.items()]
        return [
            [TEXT[span.start : span.end] for span in claim.spans]
            for claim in counted_once(checked, TEXT)
        ]

    return go


@pytest.mark.parametrize("places", [(), (0,)])
def test_a_claim_within_another_does_not_count(counted, places):
    """Slices of one supported sentence would outvote any invention."""
    claims = ["40 euros", "The Alpha costs 40 euros", "costs 40 euros"]

    assert counted(dict.fromkeys(claims, places)) == [["The Alpha costs 40 euros"]]


def test_claims_that_overlap_count_as_one(counted):
    """Windows that slide over a sentence are slices of it, too."""
    claims = {"Alpha costs 40": (0,), "40 euros and": (1,), "and ships in a week": (0,)}

    assert counted(claims) == [["Alpha costs 40 euros and"], ["and ships in a week"]]


def test_a_claim_that_also_stands_by_itself_counts(counted):
    """Its other place is what it claims."""
    claims = {"The Alpha costs 40 euros": (0,), "Alpha costs": ()}

    assert counted(claims) == [["The Alpha costs 40 euros"], ["Alpha costs"]]


@pytest.mark.parametrize(
    ("one", "other", "contradicts"),
    [
        ("The Alpha costs 40 euros", "40 euros", True),
        ("Alpha costs 40 euros", "40 euros and ships", True),
        ("Alpha costs 40 euros", "euros and ships in a week", False),
        ("Alpha costs 40 euros and", "and ships", False),
        ("The Alpha costs 40 euros", "Alpha costs", False),
    ],
)
def test_the_same_words_cannot_be_supported_and_not(one, other, contradicts):
    """Whichever were counted, the judge has said the opposite."""
    layout = lay_out([at(one), at(other)], TEXT)

    assert (contradiction(layout, [True, False], TEXT) is not None) == contradicts
    assert contradiction(layout, [True, True], TEXT) is None
