import asyncio
import json

import pytest
from endpoint import datum
from fakes import FunctionModel, Recorder

from ragforge.config import Settings
from ragforge.llm.chat import ChatReply
from ragforge.llm.connect import Connection
from ragforge.pipeline.backend import Backend
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judge_run import PILOT_PAIRS, JudgeRun, JudgingResult, judged_spool
from ragforge.pipeline.judge.judges import Judges
from ragforge.prompts import load_prompt
from ragforge.stages.asking import Asker
from ragforge.stages.judge.pairs import Pair

MANY = PILOT_PAIRS // 2
"""Queries, of eight pairs each."""


def entry(grade):
    holds = grade >= 2
    evidence = "Blue whales" if holds else ""
    return {"reasoning": "so", "evidence": evidence, "contains_answer": holds, "grade": grade}


def replying(grade_at):
    """A model that grades by the place in the batch, and 1 where a passage stands alone."""

    def reply(request):
        if request.schema_name == "relevance":
            return ChatReply(json.dumps(entry(1)))
        shown = datum(request.messages[1].content, "passages")
        verdicts = [{"id": one["id"], **entry(grade_at(at))} for at, one in enumerate(shown)]
        return ChatReply(json.dumps({"verdicts": verdicts}))

    return FunctionModel(reply)


def pairs(n_queries):
    for query in range(n_queries):
        for chunk in range(8):
            text = f"Blue whales, note {query}, {chunk}."
            yield Pair(f"q{query:04}", f"What of {query}?", f"c{chunk}", text)


@pytest.fixture
def sit(tmp_path):
    """Judge pairs in batches of 8 and return what came of it."""

    def go(model, n_queries=MANY):
        settings = Settings.model_validate({"judge": {"batch": 8}, "model": {"name": "m"}})
        asker = Asker(model, "m", settings.model, load_prompt("judge_relevance_batch"))
        result, recorder = JudgingResult("m"), Recorder()
        judges = Judges(
            (Backend(asker, Connection(model, "m", None, None, concurrency=2)),),
            Job(settings, recorder),
        )
        with judged_spool(tmp_path) as judged:
            run = JudgeRun(judges, judged, result)
            asyncio.run(run.judge(lambda: pairs(n_queries), 8 * n_queries))
            judgments = list(judged.results())
        notes = [event.message for event in recorder.named("note")]
        return result, judgments, notes

    return go


@pytest.mark.slow
def test_batches_whose_order_moves_grades_are_given_up(sit):
    """Grades that depend on a shuffle are no property of the chunks."""
    model = replying(lambda at: 2 if at < 4 else 1)

    result, judgments, [note] = sit(model)

    assert result.gave_up_batches
    assert result.position.shift < -0.5
    assert "each passage is judged alone" in note
    assert {one.grade for one in judgments} == {1}
    assert {one.provenance.prompt for one in judgments} == {"judge_relevance"}
    assert (result.n_judged, result.n_failed, len(judgments)) == (8 * MANY, 0, 8 * MANY)


@pytest.mark.slow
def test_a_bias_is_found_out_long_before_the_end(sit):
    """What is given up was paid for."""
    model = replying(lambda at: 2 if at < 4 else 1)

    sit(model)

    batches = sum(request.schema_name == "relevance_batch" for request in model.asked)
    assert batches < 3 * 2 * PILOT_PAIRS // 8


def test_a_bias_that_shows_only_at_the_end_counts_as_well(sit):
    """A small set is no excuse."""
    result, judgments, _ = sit(replying(lambda at: 2 if at < 4 else 1), n_queries=2)

    assert result.gave_up_batches
    assert {one.grade for one in judgments} == {1}


def test_too_few_pairs_to_tell_are_judged_alone(sit):
    """A handful of new chunks a night must not be graded by their places unseen."""
    _, judgments, [note] = sit(replying(lambda at: 2 if at < 4 else 1), n_queries=1)

    assert "cannot be told from" in note
    assert {one.grade for one in judgments} == {1}
    assert {one.provenance.protocol for one in judgments} == {"batch 8 x 3, alone"}


@pytest.mark.slow
def test_batches_without_an_effect_stand(sit):
    """They are what the user asked for."""
    result, judgments, notes = sit(replying(lambda at: 2))

    assert not result.gave_up_batches
    assert result.position.shift == 0
    assert notes == []
    assert {(one.grade, len(one.votes)) for one in judgments} == {(2, 3)}
