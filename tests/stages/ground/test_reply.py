import json
from pathlib import Path

import pytest
from fakes import ScriptedModel

from ragforge.errors import CallError
from ragforge.llm.chat import ChatReply
from ragforge.stages.ground.llm import LLMGrounder
from ragforge.stages.ground.parts import Exchange, Passage

LINES = (Path(__file__).parents[2] / "data" / "bad_grounding_replies.jsonl").read_text()
CASES = {case["name"]: case for case in map(json.loads, LINES.splitlines())}
FAILED = {name: case for name, case in CASES.items() if isinstance(case["expected"], str)}
TAKEN = {name: case for name, case in CASES.items() if name not in FAILED}

EXCHANGE = Exchange(
    "q",
    "What are blue whales like?",
    "Blue whales eat krill [1]. They weigh 150 tonnes and sing at night [2]. "
    "Do you want to know more?",
    (
        Passage("c-1", "Far out at sea, blue whales eat krill."),
        Passage("c-2", "A blue whale weighs up to 150 tonnes."),
    ),
)


@pytest.fixture
def ground(asker, wait):
    """Check the answer by a reply that a model gives each time it is asked."""

    def go(case):
        reply = ChatReply(
            case["text"], finish_reason=case["finish_reason"], refusal=case["refusal"]
        )
        model = ScriptedModel([reply, reply])
        return wait(LLMGrounder(asker("check_claims", model)).judge(EXCHANGE))

    return go


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN.keys())
def test_a_reply_that_holds_to_the_rules_is_taken(ground, case):
    """A right finding that is thrown away is paid for and leaves a hole."""
    assert ground(case).faithfulness == case["expected"]


@pytest.mark.parametrize("case", FAILED.values(), ids=FAILED.keys())
def test_a_bad_reply_is_a_failure_and_no_faithfulness(ground, case):
    """Every tool of the field has a path where one of these becomes a confident number."""
    with pytest.raises(CallError) as caught:
        ground(case)

    assert caught.value.kind == case["expected"]


def test_the_corpus_is_large_enough():
    """A handful of bad replies proves little."""
    assert len(FAILED) >= 25
