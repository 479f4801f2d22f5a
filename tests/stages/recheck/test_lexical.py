"""The baseline finds an answer by its words, or says that it does not."""

import pytest

from ragforge.stages.recheck.lexical import LexicalRecheck
from ragforge.stages.recheck.subject import Passage, Subject


@pytest.fixture
def said(wait):
    """Check an expected answer against texts."""

    def go(expected, *texts, others=()):
        passages = tuple(Passage(text) for text in texts)
        asked = Subject("q", "What?", expected, "answer", "en", (), others, passages)
        found = wait(LexicalRecheck().judge(asked))
        if found.proof is None:
            return found.verdict, None
        place = found.proof.place
        return found.verdict, texts[found.proof.passage][place.start : place.end]

    return go


def test_an_answer_stands_where_a_passage_has_its_words_and_numbers(said):
    """It is all that can be told without a model."""
    assert said("5 seconds", "It waits. The timeout is 5 seconds. Always.") == (
        "same",
        "The timeout is 5 seconds.",
    )


@pytest.mark.parametrize(
    "texts",
    [
        ("The timeout is 10 seconds.",),
        ("It takes 5 minutes.",),
        ("5 of them.", "Many seconds."),
        ("15 seconds", "5.5 seconds"),
        (),
    ],
)
def test_a_word_or_number_that_is_missing_is_no_answer(said, texts):
    """A part of an answer is none."""
    assert said("5 seconds", *texts) == ("none", None)


def test_a_proof_may_run_over_several_sentences(said):
    """An answer has parts; no sentence beside them belongs to it."""
    text = "It is slow. Call open first. Then call close. It is done."

    assert said("open, then close", text) == ("same", "Call open first. Then call close.")


@pytest.mark.parametrize("expected", ["", "no", "it is not"])
def test_an_answer_without_words_is_not_found(said, expected):
    """Each passage would have them."""
    assert said(expected, "It is not so, no.") == ("none", None)


def test_what_proves_another_step_is_left_out(said):
    """It proves that one alone."""
    assert said("5 seconds", "It is 5 seconds.", others=("It is 5 seconds.",)) == ("none", None)


def test_the_baseline_is_labelled_as_one(wait):
    """Nobody should take its word for that of a model."""
    asked = Subject("q", "What?", "5", "answer", "en", (), (), (Passage("5"),))

    assert wait(LexicalRecheck().judge(asked)).by.kind == "baseline"
