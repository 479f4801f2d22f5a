import asyncio
import json
from pathlib import Path
from typing import Annotated

import pytest
from fakes import ScriptedModel, request, saying
from pydantic import BaseModel, ConfigDict, Field

from ragforge.errors import CallError
from ragforge.llm.chat import ChatReply, Message
from ragforge.llm.structured import (
    MAX_REPLY_CHARS,
    ask_structured,
    parse_object,
    reply_schema,
    reply_wrapping,
)
from ragforge.stages.judge.llm import RelevanceReply, broken_rule

PASSAGE = "Far out at sea, blue whales eat krill. They do so in summer."
LINES = (Path(__file__).parent.parent / "data" / "bad_replies.jsonl").read_text().splitlines()
CASES = {case["name"]: case for case in map(json.loads, LINES)}
ACCEPTED = {name: case for name, case in CASES.items() if isinstance(case["expected"], int)}
FAILED = {name: case for name, case in CASES.items() if isinstance(case["expected"], str)}
GOOD = json.dumps({"reasoning": "", "evidence": "", "contains_answer": False, "grade": 0})


def check(reply):
    return broken_rule(reply, PASSAGE)


def judge(model):
    return asyncio.run(ask_structured(model, request("judge"), RelevanceReply, check))


def reply(case):
    return ChatReply(case["text"], finish_reason=case["finish_reason"], refusal=case["refusal"])


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_reply_is_taken_as_it_stands(case):
    """Rejecting what a model said well would cost money and leave holes."""
    model = ScriptedModel([reply(case)])

    found = judge(model)

    assert found.value.grade == case["expected"]
    assert not found.repaired
    assert len(model.asked) == 1


@pytest.mark.parametrize("case", FAILED.values(), ids=FAILED.keys())
def test_a_bad_reply_is_a_failure_of_its_kind(case):
    """Each of these has become a confident wrong grade in some tool of the field."""
    with pytest.raises(CallError, match=r".") as caught:
        judge(ScriptedModel([reply(case)]))

    assert caught.value.kind == case["expected"]
    assert caught.value.raw == (case["refusal"] or case["text"])


INVALID = {name: case for name, case in FAILED.items() if case["expected"] == "invalid"}


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
def test_one_repair_turn_rescues_a_bad_reply(case):
    """Most models mend their reply when told what is wrong with it."""
    model = ScriptedModel([reply(case), ChatReply(GOOD)])

    found = judge(model)

    assert (found.value.grade, found.repaired) == (0, True)
    assert len(model.asked) == 2


def test_there_is_no_second_repair_turn():
    """A model that does not mend its reply would be asked, and paid, for ever."""
    model = saying("no", "no", GOOD)

    with pytest.raises(CallError, match=r"exactly one JSON object.*\(after one repair turn\)"):
        judge(model)

    assert len(model.asked) == 2


def test_the_repair_turn_shows_the_reply_and_the_rule_it_broke():
    """Without the rule a model repeats its mistake."""
    bad = GOOD.replace('"grade": 0', '"grade": 7')
    model = saying(bad, GOOD)

    judge(model)

    [first, again] = model.asked
    said, turn = again.messages[-2:]
    assert again.messages[:-2] == first.messages
    assert said == Message("assistant", bad)
    assert turn.role == "user"
    assert "grade: input should be less than or equal to 3, got 7" in turn.content


@pytest.mark.parametrize(
    ("evidence", "grade", "rule"),
    [
        ("whales eat plankton", 2, "evidence does not occur in the passage"),
        ("", 2, "evidence is empty"),
        ("krill", 0, "grade is 0 but evidence is given"),
    ],
)
def test_rules_of_the_stage_are_quoted_too(evidence, grade, rule):
    """They are what well-formed replies break."""
    bad = {"reasoning": "", "evidence": evidence, "contains_answer": grade >= 2, "grade": grade}
    model = saying(json.dumps(bad), GOOD)

    judge(model)

    assert rule in model.asked[1].messages[-1].content


@pytest.mark.parametrize(
    ("second", "kind"),
    [
        (ChatReply("cut", finish_reason="length"), "truncated"),
        (ChatReply("", finish_reason="content_filter"), "filtered"),
        (ChatReply("", refusal="No."), "refused"),
        (ChatReply("I'm sorry, I can't."), "refused"),
    ],
)
def test_the_repair_turn_can_fail_in_every_way(second, kind):
    """The second reply is trusted no more than the first."""
    with pytest.raises(CallError, match=r".") as caught:
        judge(ScriptedModel([ChatReply("bad"), second]))

    assert caught.value.kind == kind


def test_a_lone_surrogate_can_be_sent_back():
    """JSON lets a model escape half a character, which no request can hold."""
    model = saying("\ud800", GOOD)

    judge(model)

    assert model.asked[1].messages[-2].content == "\\ud800"


def test_a_huge_reply_is_not_parsed():
    """Parsing must not stall the event loop for the other calls."""
    with pytest.raises(CallError, match=f"longer than {MAX_REPLY_CHARS} characters"):
        judge(saying(" " * MAX_REPLY_CHARS + GOOD))


def test_the_raw_object_is_returned_without_its_wrapping():
    """What is validated is exactly what the model wrote."""
    assert parse_object('<think>{"b": 2}</think>\n```json\n{"a": 1}\n```') == '{"a": 1}'


WRAPPERS = {
    "fence": "```json\n{}\n```",
    "fence in capitals": "```JSON\n{}\n```",
    "think": "<think>hm</think>{}",
    "thinking": "<thinking>hm</thinking>\n{}",
    "two thoughts": "<think>a</think>\n<think>b</think>\n{}",
    "lone end": "hm</think>\n{}",
    "final channel": "<|channel|>final<|message|>{}",
    "all channels": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final"
    "<|message|>{}<|return|>",
    "thought and fence": "<think>hm</think>\n```JSON\n{}\n```",
}


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
def test_no_wrapper_makes_a_grade_of_a_hostile_reply(wrapper):
    """What is taken off is told by marks at the ends; a grade is never looked for inside."""

    def grade(text):
        try:
            return judge(saying(wrapper.replace("{}", text))).value.grade
        except CallError:
            return None

    bodies = [case["text"] for case in INVALID.values() if len(case["text"]) < 100_000]

    assert len(bodies) > 90
    assert [text for text in bodies if grade(text) is not None] == []


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
def test_what_is_wrapped_is_the_same_verdict(wrapper):
    """Reasoning models and chat servers wrap every reply; each refused one would cost a turn."""
    found = judge(saying(wrapper.replace("{}", GOOD)))

    assert (found.value.grade, found.repaired) == (0, False)
    assert reply_wrapping(wrapper.replace("{}", GOOD)) != ""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (GOOD, ""),
        (f"```JSON\n{GOOD}\n```", "fence"),
        (f"hm</think>{GOOD}", "thinking"),
        (f"<think>a</think><thinking>b</thinking>```\n{GOOD}\n```", "thinking and fence"),
        (f"<|channel|>final<|message|>{GOOD}", "channel"),
    ],
)
def test_the_wrapping_is_named(text, named):
    """Who runs the model can then mend its template."""
    assert reply_wrapping(text) == named


def test_a_million_thoughts_are_taken_off_in_one_pass():
    """A reply must not stall the event loop for the other calls."""
    text = "<think></think>" * 60_000 + GOOD

    assert parse_object(text) == GOOD


def test_a_truncated_reply_says_what_to_raise():
    """The remedy is one flag."""
    with pytest.raises(CallError, match="cut off after 0 tokens; raise --max-output-tokens"):
        judge(ScriptedModel([ChatReply("{", finish_reason="length")]))


class Inner(BaseModel):
    """Not shown."""

    title: Annotated[str, Field(title="x", description="y")]


class Outer(BaseModel):
    """Not shown."""

    model_config = ConfigDict(extra="forbid")

    first: Inner
    rest: list[Inner]


def test_a_schema_is_sent_without_references_and_prose():
    """Strict modes and grammars of small servers take plain schemas only."""
    inner = {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }

    assert reply_schema(Outer) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"first": inner, "rest": {"type": "array", "items": inner}},
        "required": ["first", "rest"],
    }


def test_the_grade_is_an_enumeration_in_the_schema():
    """Strict modes hold to an enumeration where they refuse bounds."""
    properties = reply_schema(RelevanceReply)["properties"]

    assert properties["grade"] == {"type": "integer", "enum": [0, 1, 2, 3]}
    assert list(properties) == ["reasoning", "evidence", "contains_answer", "grade"]
