import json

import pytest
from pydantic import ValidationError

from ragforge.llm.structured import reply_schema
from ragforge.stages.generate.kinds import PROMPTS
from ragforge.stages.generate.llm import (
    FollowUpsReply,
    QueriesReply,
    lacking,
    reply_type,
)

REPLIES = [reply_type(prompt, 3) for prompt in PROMPTS]
QUOTES = [{"passage": 1, "quote": "four tonnes of krill"}]
WHOLE = {"quotes": QUOTES, "question": "What?", "answer": "Krill.", "difficulty": "easy"}
BEFORE = {"first_question": "Who?", "first_answer": "It.", "standalone": "What does it eat?"}


def parsed(*proposals):
    reply = reply_type("generate_queries", 3)
    return reply.model_validate_json(json.dumps({"candidates": proposals}), strict=True)


@pytest.mark.parametrize(
    "malformed",
    [
        {},
        "What?",
        None,
        {**WHOLE, "difficulty": "extreme"},
        {**WHOLE, "type": "fact"},
        {**WHOLE, "quotes": ["four tonnes of krill"]},
        {**WHOLE, "quotes": [{"passage": "1", "quote": "krill"}]},
    ],
)
def test_a_malformed_proposal_leaves_those_beside_it(malformed):
    """They are paid for; the malformed one becomes a blank that the gates count."""
    first, second = parsed(malformed, WHOLE).proposals

    assert (lacking(first), lacking(second)) == ("quotes is empty", None)


def test_the_question_of_a_malformed_proposal_is_kept():
    """Whoever reads what was rejected wants to know which one it was."""
    [blank, _] = parsed({"question": "Why?"}, WHOLE).proposals

    assert blank.question == "Why?"


@pytest.mark.parametrize("malformed", [{}, {**WHOLE, "difficulty": "extreme"}])
def test_nothing_but_malformed_proposals_is_a_broken_rule(malformed):
    """The model is told which, and may mend it."""
    with pytest.raises(ValidationError, match="candidates"):
        parsed(malformed, malformed)


def test_a_reply_without_a_list_is_a_broken_rule():
    """No list is not an empty one."""
    with pytest.raises(ValidationError, match="candidates"):
        QueriesReply.model_validate_json('{"candidates": {}}', strict=True)


def test_an_empty_list_is_a_reply():
    """A passage may carry nothing of the kind, and a model should not have to make it up."""
    assert parsed().proposals == []


def test_more_proposals_than_wanted_are_no_broken_rule():
    """The bound is for grammars; what is too much is not read."""
    assert len(parsed(*[WHOLE] * 12).proposals) == 12


@pytest.mark.parametrize("name", ["question", "answer"])
def test_a_blank_part_is_told(name):
    """Hidden characters are blank as well."""
    [proposal] = parsed({**WHOLE, name: " \u200b"}).proposals

    assert lacking(proposal) == f"{name} is empty"


@pytest.mark.parametrize("name", ["first_question", "first_answer", "standalone"])
def test_a_follow_up_without_what_was_said_before_lacks_it(name):
    """It could not be understood, or not be retrieved for."""
    follow_up = {**WHOLE, **BEFORE, name: ""}
    [proposal] = FollowUpsReply.model_validate({"follow_ups": [follow_up]}).proposals

    assert lacking(proposal) == f"{name} is empty"


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_grammar_lets_through_as_many_as_are_asked_for(prompt):
    """A small model goes on until its tokens run out, and a reply that is cut off is no use."""
    [listed] = reply_schema(reply_type(prompt, 4))["properties"].values()

    assert listed["maxItems"] == 4


def test_bounds_for_grammars_are_not_checked():
    """Hosted endpoints take none; the gates decide on what is too long."""
    quotes = [{"passage": 1, "quote": "krill " * 200}] * 9
    found = parsed({**WHOLE, "quotes": quotes, "question": "What? " * 100})

    assert lacking(found.proposals[0]) is None


@pytest.mark.parametrize("reply", REPLIES)
def test_a_schema_can_be_enforced(reply):
    """Strict modes want every field required and no others, at all depths."""
    objects = []

    def walk(node):
        if isinstance(node, dict):
            objects.extend([node] if node.get("type") == "object" else [])
            node = list(node.values())
        if isinstance(node, list):
            for item in node:
                walk(item)

    walk(reply_schema(reply))

    assert len(objects) == 3
    assert all(each["required"] == list(each["properties"]) for each in objects)
    assert all(each["additionalProperties"] is False for each in objects)


@pytest.mark.parametrize("reply", REPLIES)
def test_quotes_come_before_questions(reply):
    """What is written first decides what is written behind it."""
    [listed] = reply_schema(reply)["properties"].values()
    names = list(listed["items"]["properties"])

    assert names[0] == "quotes"
    assert names[-3:] == ["question", "answer", "difficulty"]
