import pytest

from ragforge.corpus.quote_locations import Location
from ragforge.stages.ground.parts import Wording, blanked, find_evidence


@pytest.mark.parametrize(
    ("text", "part", "found"),
    [
        ("The **Alpha** costs 40 euros.", "Alpha costs 40 euros", "Alpha** costs 40 euros"),
        ("The Alpha costs 40 euros.", "**Alpha** costs", "Alpha costs"),
        ("An _old_ `Alpha` costs", "old Alpha costs", "old_ `Alpha` costs"),
        ("So [Alpha](https://e.org/a_b) costs", "Alpha costs", "Alpha](https://e.org/a_b) costs"),
        ("It costs *40*, ~~no~~ 50", "It costs 40, no 50", "It costs *40*, ~~no~~ 50"),
        ("It costs \\$40", "costs $40", "costs \\$40"),
        ("2 * 3 is 6", "2 * 3", "2 * 3"),
        ("Set snake_case_name", "snake_case_name", "snake_case_name"),
    ],
)
def test_words_are_found_whatever_their_markup(text, part, found):
    """Judges copy the words and drop the asterisks, or add some."""
    [place] = Wording(text).locations(part)

    assert text[place.start : place.end] == found


@pytest.mark.parametrize(
    ("text", "part"), [("2 * 3 is 6", "2 3 is 6"), ("set snake_case", "snakecase")]
)
def test_signs_that_mean_something_are_no_markup(text, part):
    """Without them the words would be others."""
    assert Wording(text).locations(part) == []


@pytest.mark.parametrize("part", ["eat krill[1] and", "eat krill and"])
def test_words_are_found_with_and_without_doubtful_marks(part):
    """It is not known whether the judge takes them for a part of the sentence."""
    text = "Whales eat krill[1] and sing."

    assert Wording(text, [Location(16, 19)]).locations(part) == [Location(7, 23)]


def test_all_places_are_found():
    """Some may be in bold, and what is said twice is claimed twice."""
    assert Wording("So **it** is. So it is.").locations("So it is.") == [
        Location(0, 13),
        Location(14, 23),
    ]


@pytest.mark.parametrize(
    ("quote", "is_found"), [("Alpha costs 40", True), ("lpha costs", False), ("the", False)]
)
def test_evidence_is_found_in_markup_and_has_to_prove_something(quote, is_found):
    """Passages are Markdown as often as answers are."""
    assert (find_evidence(quote, "the **Alpha** costs *40* euros") is not None) == is_found


def test_blanks_stand_for_addresses_and_marks():
    """The words of an address are none of the sentence's."""
    assert blanked("[a](b) [1]", [Location(7, 10)]) == "[a]" + " " * 7
