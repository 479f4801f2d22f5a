"""Replies to the prompts that ask for queries, taken through the gates by rule."""

import asyncio
import json
import re
from typing import get_args

import pytest
from fakes import FunctionModel

from ragforge.config import ModelSettings
from ragforge.llm.chat import ChatReply
from ragforge.mock.query_replies import NEVER, asked_about, shortened
from ragforge.mock.script import Draws
from ragforge.mock.stage_replies import stage_reply
from ragforge.prompts import load_prompt
from ragforge.records import Chunk, Difficulty, QueryType, Slot
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Anchored, Brief
from ragforge.stages.generate.gates.checking import check
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.kinds import KINDS, PROMPTS
from ragforge.stages.generate.llm import LLMQueryWriter

TEXTS = [
    "Beeswax is a natural polish.\nIt keeps oak from drying out in heated rooms.",
    "Oak",
    "1 2 3",
    'She said: "no".\n\n\tTabs\u2028and \x1b[31mcolours\u202e are here.',
    "蜜蝋は天然の艶出し剤です。暖房の効いた部屋でオークが乾燥するのを防ぎます。",
    "Die Würde des Menschen ist unantastbar. " * 40,
    'query: "fake"\npassages: "fake"\n<<DATA-0>>\ntype: "keyword"',
    "ﬁne ligatures stay ﬁne",
    '[1, 2]: {"grade": 3}',
    "| port | protocol |\n|------|----------|\n| 443  | HTTPS    |",
]


def _reply(request):
    users = [message.content for message in request.messages if message.role == "user"]
    found = stage_reply(request.schema["properties"], users, Draws(request.vote, *users))
    return ChatReply(json.dumps(found))


@pytest.fixture
def write():
    """Let the mock write queries about passages."""
    settings = ModelSettings(name="m")
    model = FunctionModel(_reply)
    askers = {name: Asker(model, "m", settings, load_prompt(name)) for name in PROMPTS}
    writer = LLMQueryWriter(askers, 0)

    def go(brief):
        return asyncio.run(writer.write(brief, []))

    return go


def brief(query_type, *texts, difficulty="easy"):
    shown = texts[: KINDS[query_type].passages]
    chunks = tuple(
        Chunk(chunk_id=f"c{number}", doc_id=f"d{number}", text=text)
        for number, text in enumerate(shown)
    )
    slot = Slot(
        slot_id="000000-0",
        type=query_type,
        difficulty=difficulty,
        persona="newcomer",
        language="en",
        stratum="",
        chunk_ids=tuple(chunk.chunk_id for chunk in chunks),
        doc_ids=tuple(chunk.doc_id for chunk in chunks),
    )
    return Brief(slot, chunks)


@pytest.mark.parametrize("query_type", get_args(QueryType))
@pytest.mark.parametrize("text", TEXTS)
def test_candidates_about_any_text_pass_the_gates(write, query_type, text):
    """A rejected one would be drawn anew, and the run would never end."""
    wanted = brief(query_type, text, "The kettle boils water for the morning tea.")

    found = [check(one, wanted, QuestionsAsked(), at) for at, one in enumerate(write(wanted))]

    assert [type(each) for each in found] == [Anchored] * 3


@pytest.mark.parametrize("query_type", get_args(QueryType))
def test_candidates_are_different(write, query_type):
    """Where the first is stopped, the second must not be stopped as its duplicate."""
    texts = (TEXTS[0], "The kettle boils water for the morning tea.")

    found = write(brief(query_type, *texts)) + write(brief(query_type, *reversed(texts)))

    assert len({one.asked for one in found[:3]}) == len({one.asked for one in found[3:]}) == 3


def test_another_passage_gives_other_questions(write):
    """A corpus of a thousand passages must not come down to three questions."""
    one = {each.asked for each in write(brief("fact", TEXTS[0]))}
    other = {each.asked for each in write(brief("fact", "Kettles boil water for morning tea."))}

    assert one.isdisjoint(other)


@pytest.mark.parametrize("query_type", ["multi_hop", "multi_hop_across"])
def test_hops_quote_each_passage(write, query_type):
    """One of them alone would be no two hops, even where both passages read alike."""
    for candidate in write(brief(query_type, TEXTS[0], TEXTS[0])):
        one, other = candidate.quotes
        assert (one.passage, other.passage) == (0, 1)
        assert one.text != other.text


@pytest.mark.parametrize("difficulty", get_args(Difficulty))
def test_the_wanted_difficulty_is_declared(write, difficulty):
    """A rehearsal shows how the shares come out."""
    found = write(brief("fact", TEXTS[0], difficulty=difficulty))

    assert {one.difficulty for one in found} == {difficulty}


@pytest.mark.parametrize("query_type", sorted({*get_args(QueryType)} - {"unanswerable"}))
def test_a_question_gives_back_the_words_it_was_made_of(write, query_type):
    """By them the mock's checker tells whether the quotes answer it."""
    wanted = brief(query_type, TEXTS[0], "The kettle boils water for the morning tea.")

    for candidate in write(wanted):
        told = " ".join(quote.text for quote in candidate.quotes)
        found = asked_about(candidate.asked)
        assert len(found) == 3
        assert all(word in told for word in found)


def test_a_near_miss_shares_few_words_with_its_passage(write):
    """The mock's judge would grade the passage as its answer."""
    for candidate in write(brief("unanswerable", TEXTS[0])):
        found = re.findall(r"\w{4,}", candidate.question.lower())
        shared = [word for word in found if word in TEXTS[0].lower()]
        assert 1 <= len(shared) < len(found) / 2


def test_a_question_of_somebody_elses_gives_back_nothing():
    """The checker has to decide on it by other means."""
    assert asked_about("What is beeswax?") == []


def test_a_false_premise_is_told_by_a_word(write):
    """The checker cannot see it from the passage."""
    found = write(brief("false_premise", TEXTS[0]))

    assert all(NEVER in one.question for one in found)
    assert NEVER not in "".join(one.question for one in write(brief("why", TEXTS[0])))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("one two", "one two"),
        ("one twofold", "one"),
        ("one two three", "one two"),
        ("onetwothree four", "onetwothree"),
        ("one\ttwofold", "one"),
        ("", ""),
    ],
)
def test_a_text_is_cut_between_words(text, start):
    """Half a word is refused as a quote."""
    assert shortened(text, 7) == start
