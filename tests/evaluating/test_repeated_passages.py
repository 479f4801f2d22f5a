"""Tests of which texts are one passage of a query."""

import pytest

from ragforge.evaluating.repeated_passages import Passages, Place, RepeatedPassages
from ragforge.records import text_id

SENTENCE, OTHER = text_id("sentence"), text_id("other")
OPEN, OPEN_AGAIN = text_id("section"), text_id("section", "hit 2")
IN_A, IN_B = text_id("section", "a"), text_id("section", "b")
MORE = text_id("section, read more")
WHOLE, LONGER, PART, ELSEWHERE = (text_id(name) for name in ("whole", "longer", "part", "else"))
PLACES = {
    "c0": Place("d", 0, 100),
    "c1": Place("d", 5, 105),
    WHOLE: Place("d", 0, 100),
    LONGER: Place("d", 0, 120),
    PART: Place("d", 10, 40),
    ELSEWHERE: Place("e", 0, 100),
    IN_A: Place("a", 40, 140),
    IN_B: Place("b", 70, 170),
    OPEN: [Place("a", 40, 140), Place("b", 70, 170)],
    OPEN_AGAIN: [Place("a", 40, 140), Place("b", 70, 170)],
    MORE: [Place("a", 40, 145), Place("b", 70, 175)],
}
LETTERS = {SENTENCE: "parkingcostselevencrowns", OTHER: "parkingcostselevencrownsprint"}


def places_of(chunk_id):
    places = PLACES.get(chunk_id, ())
    return [places] if isinstance(places, Place) else places


def graded(hits, grades, rel_threshold=2):
    passages = Passages(places_of, lambda chunk_id: LETTERS.get(chunk_id, ""))
    once = RepeatedPassages({"q": hits}, passages)
    return once.graded("q", grades, rel_threshold)


@pytest.mark.parametrize("copies", [(WHOLE, LONGER), (WHOLE, "c0"), (SENTENCE, OTHER)])
def test_what_a_run_found_stands_for_its_copies(copies):
    """The best possible ranking has each passage once, whichever form of it was found."""
    grades = dict.fromkeys(copies, 3)
    first, second = copies

    assert graded([first], grades) == {first: 3}
    assert graded([second], grades) == {second: 3}


def test_the_first_of_two_hits_counts():
    """The second one is graded, and finds nothing new."""
    assert graded([LONGER, WHOLE], {WHOLE: 3, LONGER: 2}) == {WHOLE: 0, LONGER: 2}


def test_copies_that_a_run_did_not_find_count_once():
    """It lacks one passage."""
    assert graded([], {WHOLE: 3, LONGER: 2}) == {WHOLE: 3}


def test_a_form_that_lost_the_answer_takes_nothing_from_the_other():
    """A service that cuts passages short does not have found what it cut off."""
    assert graded([WHOLE], {WHOLE: 1, LONGER: 3}) == {WHOLE: 1, LONGER: 3}
    assert graded([WHOLE], {WHOLE: 2, LONGER: 3}) == {WHOLE: 2}


def test_a_part_is_no_other_passage_than_a_hit_and_another_hit_all_the_same():
    """A run could find the one or the other, and the longer one of two hits says more."""
    assert graded([WHOLE], {WHOLE: 3, PART: 2}) == {WHOLE: 3}
    assert graded([PART, WHOLE], {WHOLE: 3, PART: 2}) == {WHOLE: 3, PART: 2}
    assert graded([], {WHOLE: 3, PART: 2}) == {WHOLE: 3, PART: 2}


@pytest.mark.parametrize("others", [("c0", "c1"), (WHOLE, ELSEWHERE), (WHOLE, SENTENCE)])
def test_what_is_not_known_to_be_one_passage_counts_as_two(others):
    """Chunks of the set are what they are; and texts elsewhere are others."""
    grades = dict.fromkeys(others, 3)

    assert graded(others[:1], grades) == grades


def test_failed_and_worthless_copies_stay():
    """They are in no best possible ranking."""
    grades = {WHOLE: None, LONGER: 3, "c0": 0}

    assert graded([LONGER], grades) == grades


def test_hits_that_read_the_same_may_stand_in_two_places():
    """Nothing tells which of them is which, so that both count where they were found."""
    one, two = text_id("same"), text_id("same", "hit 2")
    passages = Passages(lambda _: (), lambda _: "thesametextinseveralplaces")
    once = RepeatedPassages({"q": [one, two]}, passages)

    assert once.graded("q", {one: 3, two: 3}, 2) == {one: 3, two: 3}


def test_a_text_that_may_be_at_a_place_is_no_other_passage_than_the_one_there():
    """A run without sources fell by half as soon as another one told where the same texts are."""
    assert graded([OPEN], {OPEN: 3, IN_A: 3}) == {OPEN: 3}
    assert graded([IN_A], {OPEN: 3, IN_A: 3}) == {IN_A: 3}
    assert graded([OPEN], {OPEN: 3, MORE: 3}) == {OPEN: 3}
    assert graded([], {OPEN: 3, IN_B: 3}) in ({OPEN: 3}, {IN_B: 3})


def test_a_text_that_may_be_at_two_places_is_at_one_of_them():
    """What it is not leaves something to be found."""
    grades = {OPEN: 3, IN_A: 3, IN_B: 3}

    assert (
        len(graded([OPEN], grades)) == len(graded([IN_A], grades)) == len(graded([], grades)) == 2
    )
    assert graded([IN_A, IN_B], grades) == {IN_A: 3, IN_B: 3}
    assert len(graded([], grades | {OPEN_AGAIN: 3})) == 2


def test_two_hits_that_may_be_at_two_places_are_two():
    """The documents hold both."""
    grades = {OPEN: 3, OPEN_AGAIN: 3, IN_A: 3, IN_B: 3}

    assert graded([OPEN, OPEN_AGAIN], grades) == {OPEN: 3, OPEN_AGAIN: 3}
    assert graded([OPEN, MORE], {OPEN: 3, MORE: 3}) == {OPEN: 3, MORE: 3}
