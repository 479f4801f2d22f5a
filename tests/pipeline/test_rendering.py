"""What `prompts render` shows of the checks is what they send."""

import asyncio

import pytest
from endpoint import datum

from ragforge.config import Settings
from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.rendering import PickedInput, render
from ragforge.records import Answer, Chunk, Evidence, Query

QUOTE = "The timeout is 5 seconds."


@pytest.fixture
def dataset(tmp_path):
    """A dataset with a query, its chunk and another, and the answer of a system."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        [
            Chunk(chunk_id="c1", doc_id="d", text=f"{QUOTE} Mostly.", heading_path=("Top", "Time")),
            Chunk(chunk_id="c2", doc_id="d", text="Retries are off."),
        ]
    )
    made.write_queries(
        [
            Query(
                query_id="q1",
                query="How long is the timeout?",
                expected_answer="5 seconds",
                evidence=(Evidence(doc_id="d", chunk_id="c1", quote=QUOTE),),
            ),
            Query(query_id="q2", query="How often?", expected_answer="never"),
        ]
    )
    made.write_answers(
        "rag",
        [
            Answer(query_id="q1", answer="five or so", chunk_ids=()),
            Answer(query_id="q2", answer="Never.", chunk_ids=()),
        ],
    )
    return made


@pytest.fixture
def turn(dataset):
    """Render a prompt and return the user's turn."""

    def go(name, **picked):
        fields = {"dataset": dataset, "query_id": "q1", **picked}
        rendered = asyncio.run(render(name, PickedInput(**fields), Settings()))
        return rendered.request.messages[1].content

    return go


def test_a_question_is_shown_without_its_text(turn):
    """As the check sees it."""
    [entry] = datum(turn("check_question"), "questions")

    assert entry["question"] == "How long is the timeout?"
    assert QUOTE not in turn("check_question")


def test_evidence_is_shown_under_its_titles(turn):
    """As the check sees it."""
    assert datum(turn("check_answer"), "quotes") == [{"titles": ["Top", "Time"], "quote": QUOTE}]


def test_the_answer_of_a_system_is_compared(turn):
    """There is no other answer in a dataset."""
    [pair] = datum(turn("compare_answers", system="rag"), "pairs")

    assert (pair["one answer"], pair["other answer"]) == ("5 seconds", "five or so")


def test_chunks_are_looked_through(turn):
    """As the check sees them, without their ids."""
    passages = datum(turn("find_answer", chunk_ids=("c1", "c2")), "passages")

    assert sorted(each["text"] for each in passages) == [
        "Retries are off.",
        f"{QUOTE} Mostly.",
    ]


def test_a_question_is_answered_from_chunks(turn):
    """As a sweep asks the model, with the chunks in the place of what was retrieved."""
    passages = datum(turn("read_contexts", chunk_ids=("c1", "c2")), "passages")

    assert sorted(passages) == ["Retries are off.", f"{QUOTE} Mostly."]


def test_an_answer_is_checked_again_by_the_chunks_of_its_evidence(turn):
    """As they are now; a refresh shows what stands around them as well."""
    prompt = turn("recheck_answer")

    assert datum(prompt, "expected answer") == "5 seconds"
    assert datum(prompt, "passages") == [{"titles": ["Top", "Time"], "text": f"{QUOTE} Mostly."}]


@pytest.mark.parametrize(
    ("name", "picked", "error", "message"),
    [
        ("check_answer", {"query_id": "q2"}, DataError, "the query has no evidence to read"),
        ("recheck_answer", {"query_id": "q2"}, DataError, "has no evidence to check again"),
        ("compare_answers", {"query_id": "q2", "system": "rag"}, DataError, "a rule decides"),
        ("compare_answers", {}, UsageError, "with --query QUERY_ID and --answers NAME"),
        ("find_answer", {}, UsageError, "--chunk CHUNK_ID twice or more"),
        ("check_question", {"query_id": ""}, UsageError, "--dataset DIR with --query QUERY_ID"),
    ],
)
def test_what_cannot_be_rendered_is_told(turn, name, picked, error, message):
    """Each says what to give instead."""
    with pytest.raises(error, match=message):
        turn(name, **picked)
