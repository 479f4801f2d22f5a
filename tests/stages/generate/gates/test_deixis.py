import dataclasses
import json
from pathlib import Path

import planted
import pytest

from ragforge.stages.generate.gates.shape import meta_talk
from ragforge.stages.generate.gates.standing_alone import points_away

_DATA = Path(__file__).parents[3] / "data"
[FOLLOW_UP] = [one for one in planted.honest() if one.what == "follow-up that points back"]


def rows(name):
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return pytest.mark.parametrize(
        "row", list(map(json.loads, lines)), ids=lambda row: row["question"][:40]
    )


def asking(question):
    return dataclasses.replace(FOLLOW_UP.candidate, question=question, standalone="", history=())


@rows("deictic_questions.jsonl")
def test_a_question_that_points_at_its_text_is_stopped(row):
    """Nobody who searches a corpus has a passage before him."""
    assert points_away(asking(row["question"]), row["language"]).code == "deictic"


@rows("honest_questions.jsonl")
def test_a_question_about_texts_is_let_through(row):
    """Documentation is about documents, tables and contexts."""
    assert points_away(asking(row["question"]), row["language"]) is None
    assert meta_talk(asking(row["question"])) is None


def test_a_follow_up_may_point_at_what_was_said_but_not_at_a_text():
    """ "Above" is a conversation there; "the passage" is still unseen."""
    away = dataclasses.replace(FOLLOW_UP.candidate, question="And according to the passage?")

    assert points_away(FOLLOW_UP.candidate, "en") is None
    assert points_away(away, "en").code == "deictic"


def test_what_a_follow_up_stands_for_may_not_point_back():
    """It is put alone to retrievers."""
    away = dataclasses.replace(
        FOLLOW_UP.candidate, standalone="When are the sockets mentioned above dropped?"
    )

    assert points_away(away, "en").code == "deictic"
