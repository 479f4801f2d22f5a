"""Verdicts of the mock on passages, taken through the check of the judge that asks for them."""

import json

import pytest

from ragforge.mock.script import Draws
from ragforge.mock.stage_replies import stage_reply
from ragforge.stages.judge.llm import RelevanceReply, broken_rule

QUERY = "How does a client keep sessions open?"
TEXTS = [
    "```python\n>>> r\n...\n```\nA client keeps its sessions open.\n---\n}",
    '```json\n{\n"http": {\n"client": "keep sessions open",\n}\n}\n```',
    "client keep\nsessions open\nthis\n...",
    "Ein Client hält Sitzungen offen, client keep sessions open.\n\n***\n```",
    "...\n```",
]


@pytest.mark.parametrize("text", TEXTS)
def test_evidence_of_the_mock_passes_the_check_of_the_judge(text):
    """A few in a thousand judgments of a mock without faults failed, of a fence or three dots."""
    shown = f"query: {json.dumps(QUERY)}\npassage: {json.dumps(text)}"
    replies = [
        RelevanceReply.model_validate(
            stage_reply(RelevanceReply.model_fields, [shown], Draws(f"{seed}"))
        )
        for seed in range(40)
    ]

    assert {broken_rule(reply, text) for reply in replies} == {None}
