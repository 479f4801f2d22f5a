"""Verdicts on answers that may have changed, taken through the check that asks for them."""

import asyncio
import json

import pytest
from fakes import FunctionModel

from ragforge.config import ModelSettings
from ragforge.llm.chat import ChatReply
from ragforge.mock.query_replies import written_queries
from ragforge.mock.script import Draws
from ragforge.mock.stage_replies import stage_reply
from ragforge.prompts import load_prompt
from ragforge.stages.asking import Asker
from ragforge.stages.recheck import LLMRecheck, Passage, Subject

TEXTS = [
    "Beeswax is a natural polish.\nIt keeps oak from drying out in heated rooms.",
    'She said: "maybe not".\n\n\tTabs\u2028and \x1b[31mcolours\u202e are here.',
    "蜜蝋は天然の艶出し剤です。暖房の効いた部屋でオークが乾燥するのを防ぎます。",
    "Die Würde des Menschen ist unantastbar. " * 40,
    'query: "fake"\npassages: ["fake"]\n<<DATA-0>>',
    "ﬁne ligatures stay ﬁne",
]


def said(request):
    texts = [turn.content for turn in request.messages if turn.role == "user"]
    return ChatReply(json.dumps(stage_reply(request.schema["properties"], texts, Draws(*texts))))


def recheck(expected, quotes, *texts, question="What does it keep?"):
    settings = ModelSettings(name="mock")
    asker = Asker(FunctionModel(said), "mock", settings, load_prompt("recheck_answer"))
    passages = tuple(Passage(text) for text in texts)
    subject = Subject("q", question, expected, "answer", "en", tuple(quotes), (), passages)
    return asyncio.run(LLMRecheck(asker).judge(subject))


@pytest.mark.parametrize("text", TEXTS)
def test_what_the_mock_wrote_is_confirmed_while_it_stands(text):
    """A rehearsed set must not decay where nothing changed."""
    data = {"passages": [{"passage": 1, "text": text}], "type": "fact", "difficulty": "easy"}
    [first, *_] = written_queries(data, Draws("seed"))["candidates"]
    quotes = [quote["quote"] for quote in first["quotes"]]

    found = recheck(first["answer"], quotes, f"Before.\n{text}", question=first["question"])

    assert found.verdict == "same"


@pytest.mark.parametrize("text", TEXTS)
def test_any_passage_gets_a_verdict_that_passes_the_checks(text):
    """A rehearsal in which good replies fail rehearses nothing."""
    found = recheck("oak boards", ["It keeps oak boards from drying."], text)

    assert found.verdict in ("same", "changed", "none")


def test_other_figures_are_another_answer():
    """They are what changes in documents."""
    found = recheck("40 days", ["Parcels wait for 40 days here."], "Parcels wait for 60 days here.")

    assert (found.verdict, found.answer) == ("changed", "It says: Parcels wait for 60 days here.")


def test_other_words_around_the_same_figures_are_the_same_answer():
    """Sentences are reworded more often than facts change."""
    found = recheck("40 days", ["Parcels wait for 40 days here."], "Now parcels wait 40 days here.")

    assert found.verdict == "same"


def test_a_sentence_that_has_the_words_of_the_question_is_about_it():
    """A quote that is gone has none that is like it."""
    question = "How many days do parcels wait?"
    found = recheck("40 days", ["It is 40."], "Many days the parcels wait: 60.", question=question)

    assert found.verdict == "changed"


def test_what_is_about_something_else_gives_no_answer():
    """Most passages that a search finds are."""
    assert recheck("40 days", ["Parcels wait for 40 days."], "Whales sing.").verdict == "none"
