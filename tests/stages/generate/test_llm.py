import json

import pytest
from endpoint import datum
from fakes import saying

from ragforge.errors import CallError
from ragforge.stages.generate.llm import LLMQueryWriter
from ragforge.stages.generate.plan import Seed

TEXT = "The blue whale is the largest animal.\nIt eats about four tonnes of krill a day."


def said(**changes):
    reply = {
        "evidence": "about four tonnes of krill",
        "question": " How much does a blue whale eat? ",
        "answer": "four tonnes",
        "difficulty": "easy",
        "type": "fact",
        **changes,
    }
    return json.dumps(reply)


@pytest.fixture
def write(asker, chunk, wait):
    """Write a query by what a model says."""

    def go(model, asked=(), number=0):
        writer = LLMQueryWriter(asker("generate_query", model), "de")
        seed = Seed(chunk(TEXT, heading_path=("Whales", "Food")), number)
        return wait(writer.write(seed, asked))

    return go


def test_a_reply_becomes_a_candidate(write):
    """What the model declares is kept; gates look at it later."""
    found = write(said())

    assert (found.question, found.answer) == ("How much does a blue whale eat?", "four tonnes")
    assert (found.evidence, found.difficulty, found.type) == (
        "about four tonnes of krill",
        "easy",
        "fact",
    )
    assert found.lineage.prompt == "generate_query"


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"evidence": "about five tonnes"}, "evidence does not occur in the passage"),
        ({"evidence": " "}, "evidence is empty"),
        ({"question": " "}, "question is empty"),
        ({"answer": ""}, "answer is empty"),
        ({"type": "riddle"}, "type: input should be"),
        ({"difficulty": 1}, "difficulty: input should be"),
        ({"language": "de"}, "language: extra inputs"),
    ],
)
def test_a_reply_that_breaks_a_rule_is_a_failure(write, changes, rule):
    """A query without proof in its chunk cannot be judged by."""
    with pytest.raises(CallError, match=rule) as caught:
        write(said(**changes))

    assert caught.value.kind == "invalid"


def test_the_passage_and_its_headings_reach_the_model_as_data(write):
    """A chunk out of its section is often not understood."""
    model = saying(said())

    write(model)

    user = model.asked[0].messages[1].content
    assert datum(user, "section") == "Whales > Food"
    assert datum(user, "passage") == TEXT
    assert user.endswith('Write one question in the language "de".')


def test_questions_that_are_taken_are_named(write):
    """Else the second round asks the first question again."""
    model = saying(said())

    write(model, ["What is a whale?", 'Say "hi"?'], number=1)

    user = model.asked[0].messages[1].content
    assert user.endswith(
        'It asks for something else than these: ["What is a whale?", "Say \\"hi\\"?"].'
    )


def test_each_round_is_a_call_of_its_own(write):
    """The store would answer the second round with the first one's reply."""
    model = saying(said())

    write(model, number=0)
    write(model, number=1)

    assert [request.vote for request in model.asked] == [0, 1]
