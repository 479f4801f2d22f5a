"""Replies to the checks of generated queries, taken through the checks themselves."""

import asyncio
import json

import pytest
from fakes import FunctionModel

from ragforge.config import ModelSettings
from ragforge.llm.chat import ChatReply
from ragforge.llm.openai_endpoint import OpenAIEndpoint
from ragforge.llm.wire import Dialect
from ragforge.mock.query_replies import asked_about
from ragforge.mock.script import Draws
from ragforge.mock.stage_replies import stage_reply
from ragforge.observe import silent
from ragforge.prompts import load_prompt
from ragforge.records import Chunk, Evidence, Slot
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Anchored, Brief
from ragforge.stages.generate.checks.absence import Corpus
from ragforge.stages.generate.checks.checking import Checks, askers
from ragforge.stages.generate.kinds import KINDS
from ragforge.stages.generate.llm import LLMQueryWriter
from ragforge.stages.runner import Workers
from ragforge.testing import FixedRetriever

TEXTS = [
    "Beeswax is a natural polish for furniture.\nIt keeps oak boards from drying out in winter.",
    "Linseed hardens slowly under daylight.\nRags soaked with it may ignite without any flame.",
    "Shellac dissolves in alcohol.\nFlakes of shellac should be stored somewhere cool and dark.",
]
SETTINGS = ModelSettings(name="mock")


def said(request):
    texts = [turn.content for turn in request.messages if turn.role == "user"]
    reply = stage_reply(request.schema["properties"], texts, Draws(*texts))
    return ChatReply(json.dumps(reply))


def chunks_for(kind, at):
    count = KINDS[kind].passages
    places = [(at + step) % len(TEXTS) for step in range(count)]
    return tuple(Chunk(chunk_id=f"c{one}", doc_id=f"d{one}", text=TEXTS[one]) for one in places)


def brief(kind, at):
    chunks = chunks_for(kind, at)
    slot = Slot(
        slot_id=f"{at:06}-0",
        type=kind,
        difficulty="easy",
        persona="newcomer",
        language="en",
        stratum="",
        chunk_ids=tuple(chunk.chunk_id for chunk in chunks),
        doc_ids=tuple(chunk.doc_id for chunk in chunks),
    )
    return Brief(slot, chunks)


def anchored(of, place, candidate):
    evidence = [
        Evidence(
            doc_id=of.chunks[quote.passage].doc_id,
            chunk_id=of.chunks[quote.passage].chunk_id,
            quote=quote.text,
            hop=quote.passage + 1,
        )
        for quote in candidate.quotes
    ]
    return Anchored(of, place, candidate, tuple(evidence))


async def check(model, kind):
    """Have the mock write about each text and check what it wrote."""

    def asker(name):
        return Asker(model, "mock", SETTINGS, load_prompt(name))

    writer = LLMQueryWriter({KINDS[kind].prompt: asker(KINDS[kind].prompt)}, 0)
    found = []
    for at in range(len(TEXTS)):
        of = brief(kind, at)
        written = await writer.write(of, [])
        found += [anchored(of, place, each) for place, each in enumerate(written)]
    corpus = Corpus(
        FixedRetriever({}), lambda name: TEXTS[int(name.removeprefix("c"))], lambda name: []
    )
    return await Checks(askers(asker), corpus, Workers(3, silent)).check(found)


@pytest.mark.parametrize("kind", KINDS)
def test_most_of_what_the_mock_writes_passes_its_checks(kind):
    """A rehearsal in which nothing is accepted rehearses nothing behind it."""
    checked = asyncio.run(check(FunctionModel(said), kind))

    passed = [each for each in checked if each.passed]
    assert len(checked) == 9
    assert len(passed) >= 6
    assert [failure for each in checked for failure in each.failures] == []


def test_some_are_known_without_any_text():
    """The label is to be seen with both values in a rehearsal."""
    checked = asyncio.run(check(FunctionModel(said), "fact"))
    more = asyncio.run(check(FunctionModel(said), "why"))

    labels = {each.measured.closed_book for each in [*checked, *more]}
    assert labels == {"solved", "not solved"}


def test_the_mock_says_the_same_again():
    """A rehearsal is compared with the one before."""
    first, second = (asyncio.run(check(FunctionModel(said), "multi_hop")) for _ in range(2))

    assert first == second


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "plain"])
def test_checks_are_answered_however_they_ask(start, mode):
    """Endpoints differ in what they enforce, and the pipeline must be rehearsed with all."""
    settings = ModelSettings(name="m", base_url=start().running.url)

    async def go():
        endpoint = OpenAIEndpoint(settings, dialect=Dialect(mode=mode))
        try:
            return [each for kind in KINDS for each in await check(endpoint, kind)]
        finally:
            await endpoint.close()

    checked = asyncio.run(go())

    assert [failure for each in checked for failure in each.failures] == []


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which facts join oak and wax with polish?", ["oak", "wax", "polish"]),
        ("How does oak go together with wax or polish?", ["oak", "wax", "polish"]),
        ("Why does oak never depend on wax or polish?", ["oak", "wax", "polish"]),
        ("What is oak?", []),
        ("", []),
    ],
)
def test_the_mock_knows_its_own_questions(question, asked):
    """Of others it cannot tell which words were taken from a text."""
    assert asked_about(question) == asked
