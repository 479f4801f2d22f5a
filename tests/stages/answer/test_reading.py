"""A model that answers from contexts."""

import json

import pytest
from endpoint import datum

from ragforge.errors import CallError
from ragforge.stages.answer.reading import ModelReader


@pytest.fixture
def read(asker, wait):
    """Return what a model answers that says these texts in turn."""

    def go(*replies, contexts=("Whales eat krill.", "Oak is a tree.")):
        reader = ModelReader(asker("read_contexts", *replies))
        return wait(reader.read("What do whales eat?", contexts)), reader.asker.model.asked

    return go


def test_question_and_contexts_are_shown_as_data(read):
    """Corpus text must not steer the model."""
    answer, [request] = read(json.dumps({"answer": "krill"}))

    turn = request.messages[-1].content
    assert answer == "krill"
    assert datum(turn, "question") == "What do whales eat?"
    assert datum(turn, "passages") == ["Whales eat krill.", "Oak is a tree."]


def test_a_query_without_contexts_is_asked_too(read):
    """That the model does not know it is an answer."""
    answer, _ = read(json.dumps({"answer": "I do not know."}), contexts=())

    assert answer == "I do not know."


def test_an_empty_answer_is_no_answer(read):
    """It would be graded as one."""
    with pytest.raises(CallError, match="the answer is empty"):
        read(json.dumps({"answer": " . "}), json.dumps({"answer": ""}))
