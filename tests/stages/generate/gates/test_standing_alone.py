# ruff: noqa: RUF001 -- signs of one script look like those of another; these are meant.

import dataclasses

import planted
import pytest

from ragforge.stages.generate.gates.standing_alone import copied_run, given_away

[FACT] = [one for one in planted.honest() if one.what == "fact"]
TEXT = "The novel The Old Man and the Sea was written in Cuba. Each pooled connection is kept open."


def copied(question, query_type="fact"):
    [chunk] = FACT.brief.chunks
    brief = dataclasses.replace(FACT.brief, chunks=(chunk.model_copy(update={"text": TEXT}),))
    candidate = dataclasses.replace(FACT.candidate, question=question, type=query_type)
    return copied_run(candidate, brief)


@pytest.mark.parametrize(
    ("question", "query_type"),
    [
        ("Who wrote The Old Man and the Sea?", "fact"),
        ("each pooled connection is kept open", "keyword"),
        ('Why do I read "Each pooled connection is kept open"?', "troubleshooting"),
        ("Is each pooled connection closed?", "fact"),
    ],
)
def test_names_keywords_and_pasted_errors_are_no_copies(question, query_type):
    """They are what users type, in the words of the text."""
    assert copied(question, query_type) is None


def test_most_of_a_short_question_may_not_come_from_the_text():
    """Such questions flatter lexical retrievers."""
    assert copied("Why each pooled connection is kept open?").code == "copied"


@pytest.mark.parametrize(
    ("question", "answer", "language"),
    [
        ("Which is larger, a blue or a fin whale?", "a blue whale", "en"),
        ("Do whales eat krill?", "No, it does not.", "en"),
        ("Ist der Wal oder der Hai größer?", "der Wal", "de"),
        ("鲸鱼还是鲨鱼更大？", "鲸鱼", "zh"),
    ],
)
def test_a_choice_among_what_is_named_is_no_answer_given_away(question, answer, language):
    """The question offers both, and tells neither."""
    candidate = dataclasses.replace(FACT.candidate, question=question, answer=answer)

    assert given_away(candidate, language) is None


def test_words_that_carry_nothing_do_not_hide_an_answer():
    """German articles are no content."""
    candidate = dataclasses.replace(
        FACT.candidate, question="Warum ist Krill das Futter von Walen?", answer="der Krill"
    )

    assert given_away(candidate, "de").code == "answer_in_question"
