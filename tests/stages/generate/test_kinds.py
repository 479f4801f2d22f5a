from typing import get_args

import pytest

from ragforge.prompts import load_prompt
from ragforge.records import Behaviour, Difficulty, QueryType
from ragforge.stages.generate.kinds import (
    GAPS,
    KINDS,
    PROMPTS,
    degree_of,
    focus_of,
    length_of,
    persona_of,
)


def test_every_type_has_its_meaning():
    """A slot of a type without one could not be written."""
    assert set(KINDS) == set(get_args(QueryType))


@pytest.mark.parametrize("query_type", get_args(QueryType))
def test_a_meaning_is_one_line(query_type):
    """It is shown behind a name on a line of its own."""
    meaning = KINDS[query_type].meaning

    assert len(meaning.splitlines()) == 1
    assert meaning.endswith(".")


def test_the_prompts_are_those_of_the_types():
    """One that is not handed to the writer would be missed in the middle of a run."""
    assert {kind.prompt for kind in KINDS.values()} == set(PROMPTS)


def test_every_behaviour_is_called_for_by_a_type():
    """A system that never abstains must be found out."""
    assert {kind.behaviour for kind in KINDS.values()} == set(get_args(Behaviour))


@pytest.mark.parametrize("difficulty", get_args(Difficulty))
def test_a_near_miss_is_hard_in_another_way(difficulty):
    """Nothing states or combines into what is missing."""
    assert degree_of(difficulty, "unanswerable") != degree_of(difficulty, "fact")


def test_the_kinds_of_gap_are_explained_to_the_writer():
    """A name alone is read in as many ways as there are models."""
    system = load_prompt("generate_unanswerable").system

    assert [gap for gap in GAPS if f"\n{gap}: " not in system] == []


@pytest.mark.parametrize(
    ("query_type", "usual", "length"),
    [
        ("fact", 0, "6 to 16 words"),
        ("fact", 22, "12 to 32 words"),
        ("keyword", 0, "2 to 6 words"),
        ("keyword", 1, "1 to 2 words"),
    ],
)
def test_lengths_follow_those_of_real_queries(query_type, usual, length):
    """Types keep their proportions: search words stay shorter than questions."""
    assert length_of(query_type, usual) == length


def test_a_persona_in_the_users_own_words_stays():
    """Who asks is theirs to say."""
    assert persona_of("a nurse on night shift") == "a nurse on night shift"
    assert persona_of("Expert").startswith("somebody who knows it well")


def test_slots_look_at_different_places():
    """Writers keep to the first sentences where nothing sends them on."""
    assert len({focus_of("fact", f"{number:06}-0", 3) for number in range(40)}) == 6


def test_near_misses_take_turns_in_their_kinds():
    """Left alone, models ask for a missing detail only."""
    focus = focus_of("unanswerable", "000000-0", 3)
    named = [gap for gap in GAPS if gap in focus]

    assert len(named) == 3


def test_no_kind_of_gap_comes_twice():
    """There are six, whatever number is asked for."""
    focus = focus_of("unanswerable", "000000-0", 10)

    assert sorted(gap for gap in GAPS if focus.count(gap) == 1) == sorted(GAPS)
