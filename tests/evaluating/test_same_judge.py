"""Two rankings are measured on the grades of one judge, or have no value."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragforge.evaluating.judgments import settle
from ragforge.evaluating.same_judge import (
    NOBODY,
    RankingPair,
    Reading,
    have_different_judges,
    measure_on_same_judge,
    mixed_grades,
    pair_judges,
)
from ragforge.records import Judgment, Provenance

ONE = Provenance(kind="llm", model="one", prompt="judge", prompt_sha256="aa")
TWO = Provenance(kind="llm", model="two", prompt="judge", prompt_sha256="aa")
PERSON = Provenance(kind="human", model="a person")
MEASURES = ("P@2", "RR", "R@2", "nDCG@2", "Success@2")


def settled(*grades):
    """Settle grades of the query q: chunk, grade, provenance, and a source where it matters."""
    return settle(
        Judgment(
            query_id="q",
            chunk_id=chunk_id,
            grade=grade,
            provenance=by,
            source=source[0] if source else "judge",
        )
        for chunk_id, grade, by, *source in grades
    )


def read(found, before, now, measures=MEASURES, lost=()):
    """Measure a couple of rankings on settled grades."""
    qrels = {q: {c: one.grade for c, one in of.items()} for q, of in found.items()}
    couple = RankingPair("q", before, now, frozenset(lost))
    return measure_on_same_judge([couple], qrels, pair_judges(found), measures, 2)["q"]


def exactly(value):
    return Reading(value, value, value)


def test_rankings_by_two_judges_have_no_value():
    """The difference would be how much more lenient the second judge is."""
    found = read(settled(("a", 3, ONE), ("b", 2, TWO)), ("a",), ("b",), ("P@2", "nDCG@2"))

    assert [one.before.value for one in found.values()] == [None, None]
    assert [one.now.value for one in found.values()] == [None, None]
    assert found["P@2"].lacking == {"a": 0, "b": 1}


def test_what_is_not_known_is_bounded():
    """By hand: a is relevant by the first judge, and b may be by it or not."""
    found = read(settled(("a", 3, ONE), ("b", 2, TWO)), ("a",), ("b",), ("P@2",))["P@2"]

    assert (found.before, found.now) == (Reading(None, 0.5, 0.5), Reading(None, 0.0, 0.5))


def test_grades_of_another_judge_that_neither_ranking_holds_are_in_no_ideal():
    """By hand: of the first judge's two relevant chunks, each ranking finds one."""
    grades = settled(("a", 3, ONE), ("b", 3, ONE), ("x", 3, TWO), ("y", 3, TWO))

    found = read(grades, ("a",), ("b",), ("R@2",))["R@2"]

    assert (found.before, found.now) == (exactly(0.5), exactly(0.5))


def test_another_judge_below_the_cutoff_does_not_matter():
    """A measure cannot be wrong about what it does not look at."""
    grades = settled(("a", 3, ONE), ("b", 0, ONE), ("c", 0, ONE), ("x", 3, TWO))

    found = read(grades, ("a", "b", "x"), ("c", "a"), ("P@2", "nDCG@2"))

    assert {name: one.lacking for name, one in found.items()} == {"P@2": {}, "nDCG@2": {}}
    assert (found["P@2"].before, found["P@2"].now) == (exactly(0.5), exactly(0.5))


def test_reciprocal_rank_is_known_above_what_another_judge_graded():
    """It looks no further than the first relevant chunk."""
    grades = settled(("a", 3, ONE), ("b", 0, ONE), ("x", 3, TWO))

    found = read(grades, ("a", "x"), ("b", "a", "x"), ("RR",))["RR"]

    assert (found.before, found.now, found.lacking) == (exactly(1.0), exactly(0.5), {})


@pytest.mark.parametrize(
    ("by", "source"), [(PERSON, "human"), (None, "human"), (None, "evidence"), (TWO, "evidence")]
)
def test_grades_of_people_and_of_evidence_count_beside_those_of_any_judge(by, source):
    """They do not change with the judge."""
    grades = settled(("a", 3, ONE), ("b", 2, by, source), ("x", 0, TWO))

    found = read(grades, ("a",), ("b",), ("P@2",))["P@2"]

    assert (found.before, found.now) == (exactly(0.5), exactly(0.5))


def test_a_carried_grade_is_of_the_judge_that_gave_it():
    """That its chunk has another id now makes no other judge of it."""
    grades = settled(("a", 3, ONE, "carried"), ("b", 2, TWO))

    assert read(grades, ("a",), ("b",), ("P@2",))["P@2"].before.value is None


def test_a_ranking_does_not_differ_from_itself_whoever_graded():
    """Identity needs no judge."""
    grades = settled(("a", 3, ONE), ("b", 2, TWO))

    found = read(grades, ("a", "b"), ("a", "b"))

    assert all(one.before == one.now and not one.lacking for one in found.values())
    assert found["P@2"].now == exactly(1.0)


def test_a_grade_that_is_gone_is_not_one_of_no_use():
    """By hand: a may be relevant or not, so that nothing is known of its ranking."""
    found = read(settled(("b", 3, ONE)), ("a",), ("b",), ("P@2",), lost=["a"])["P@2"]

    assert (found.before, found.now.value) == (Reading(None, 0.0, 0.5), None)
    assert found.lacking == {"a": NOBODY}


def test_a_hole_that_always_was_one_counts_as_before():
    """Who never had a grade is bounded elsewhere; here it is as in any evaluation."""
    grades = settled(("b", 3, ONE), ("x", 1, TWO))

    assert read(grades, ("hole",), ("b",), ("P@2",))["P@2"].before == exactly(0.0)


def test_a_failed_judgment_keeps_its_bounds():
    """It is of no judge, and may have come out as anything."""
    grades = settled(("a", None, ONE), ("b", 3, ONE), ("x", 0, TWO))

    assert read(grades, ("a",), ("b",), ("P@2",))["P@2"].before == Reading(0.0, 0.0, 0.5)


CHUNKS = "abcde"
GRADE = st.integers(0, 3)
BY = st.sampled_from([ONE, TWO, PERSON])
ORDER = st.permutations(CHUNKS)
UNHURRIED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@UNHURRIED
@given(st.tuples(*[GRADE] * 5), st.tuples(*[BY] * 5), ORDER, ORDER)
def test_which_judge_came_first_changes_nothing(grades, by, before, now):
    """Names decide nothing: with the judges swapped the same is known."""
    other = {ONE: TWO, TWO: ONE, PERSON: PERSON}

    one_way = read(settled(*zip(CHUNKS, grades, by, strict=True)), before[:3], now[:3])
    swapped = [other[judge] for judge in by]
    other_way = read(settled(*zip(CHUNKS, grades, swapped, strict=True)), before[:3], now[:3])

    assert {name for name, of in one_way.items() if of.lacking} == {
        name for name, of in other_way.items() if of.lacking
    }


@UNHURRIED
@given(st.tuples(*[GRADE] * 5), ORDER, ORDER)
def test_grades_of_one_judge_give_every_value(grades, before, now):
    """Nothing may be lost where there is nothing to doubt."""
    found = read(settled(*zip(CHUNKS, grades, [ONE] * 5, strict=True)), before[:3], now[:3])

    assert all(of.before.value is not None and not of.lacking for of in found.values())


@pytest.mark.parametrize(
    ("update", "n_judges"),
    [
        ({}, 1),
        ({"call_key": "another"}, 1),
        ({"prompt": "renamed"}, 1),
        ({"model": "other"}, 2),
        ({"kind": "baseline"}, 2),
        ({"prompt_sha256": "bb"}, 2),
        ({"protocol": "votes 5 at 0.7"}, 2),
    ],
)
def test_a_judge_is_kind_model_prompt_text_and_protocol(update, n_judges):
    """Whatever moves grades makes another judge; the name of a prompt and a call do not."""
    by = pair_judges(settled(("a", 3, ONE), ("b", 3, ONE.model_copy(update=update))))

    assert (len(by.judges), bool(by.mixed)) == (n_judges, n_judges > 1)


def test_what_a_batch_left_to_be_asked_alone_is_of_the_same_judge():
    """It has another prompt, and is part of one way of judging."""
    batch = ONE.model_copy(update={"protocol": "batch 8 x 3", "prompt": "batch"})
    alone = ONE.model_copy(update={"protocol": "batch 8 x 3, alone", "prompt_sha256": "bb"})

    by = pair_judges(settled(("a", 3, batch), ("b", 3, alone)))

    assert (by.judges, dict(by.mixed)) == ((batch,), {})


def test_the_judge_to_ask_has_the_least_left_to_do():
    """Both could judge what is missing; one of them costs less."""
    grades = settled(("a", 3, ONE), ("b", 2, TWO), ("c", 2, TWO))
    lacking = {"q": {"P@2": {"a": 0, "b": 1, "c": 1, "d": NOBODY}, "RR": {"a": 0}}}

    found = mixed_grades(lacking, 5, pair_judges(grades))

    assert (found.ask, found.n_pairs, found.n_gone) == (TWO, 2, 1)
    assert (found.judges, found.measures) == ((ONE, TWO), {"P@2": 1, "RR": 1})


def test_a_model_is_asked_rather_than_the_offline_baseline():
    """A baseline's grades are no ground for a difference, however many there are."""
    offline = Provenance(kind="baseline", model="offline-lexical-1")
    grades = settled(("a", 3, offline), ("b", 2, offline), ("c", 2, TWO))
    lacking = {"q": {"RR": {"a": 0, "b": 0, "c": 1}}}

    found = mixed_grades(lacking, 1, pair_judges(grades))

    assert (found.ask, found.n_pairs) == (TWO, 2)


def test_nothing_lacking_is_nothing_mixed():
    """No sentence is made of nothing."""
    assert mixed_grades({"q": {}}, 3, pair_judges(settled(("a", 3, ONE)))) is None


def test_success_needs_one_relevant_chunk_by_the_judge():
    """What another judge graded above it cannot take it away."""
    grades = settled(("a", 3, ONE), ("x", 3, TWO))

    found = read(grades, ("x", "a"), ("a",), ("Success@2", "RR"))

    assert (found["Success@2"].before, found["Success@2"].lacking) == (exactly(1.0), {})
    assert found["RR"].before.value is None


@pytest.mark.parametrize(
    ("other", "is_other"), [(ONE, False), (TWO, True), (PERSON, False), (None, True)]
)
def test_a_grade_that_differs_may_be_another_judge_s(other, is_other):
    """Who compares two versions of a set is to see what only the judge changed."""
    [old], [new] = (settled(("a", grade, by))["q"].values() for grade, by in ((3, ONE), (1, other)))

    assert have_different_judges(old, new) == is_other
