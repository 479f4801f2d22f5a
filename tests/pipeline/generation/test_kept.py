"""What people did to a set stays, whatever is generated afterwards."""

import json

import pytest
from pipeline.generation.making import (
    accepted,
    at,
    endpoint,
    files,
    generate,
    ids,
    pages,
    problems,
    run,
    stages,
)

from ragforge.files.set.dataset import Dataset
from ragforge.records import Judgment, Query


@pytest.fixture(scope="module")
def running():
    """An endpoint for all sets."""
    with endpoint() as served:
        yield served


@pytest.fixture
def out(tmp_path, running):
    """A set of five queries."""
    generate(tmp_path / "set", *at(running), n=5)
    return tmp_path / "set"


def decide(out, tmp_path, *decisions):
    """Bring decisions about queries in: id, decision, and further fields."""
    sheet = tmp_path / "sheet.csv"
    lines = ["query_id,revision,decision,new_query,new_answer"]
    lines += [f"{query_id},1,{decision},{more}" for query_id, decision, more in decisions]
    sheet.write_text("\n".join(lines) + "\n")
    done = run(["review", "import", str(sheet), "--dataset", str(out), "--reviewer", "Ann"])
    assert done.code == 0, done.err


def rows(out):
    lines = (out / "queries.jsonl").read_text().splitlines()
    return {row["query_id"]: row for row in map(json.loads, lines)}


def test_what_was_decided_stays_through_reruns_and_growth(out, tmp_path, running):
    """An hour of somebody's work must not be gone because a nightly job ran."""
    first, second, third, *_ = ids(out)
    decide(
        out,
        tmp_path,
        (first, "edit", "How long do returns take?,Thirty days."),
        (second, "pin", ","),
        (third, "approve", ","),
    )
    before = rows(out)

    assert generate(out, *at(running), n=5).code == 0
    assert rows(out) == before
    assert generate(out, *at(running), n=7).code == 0

    after = rows(out)
    assert {name: after[name] for name in (first, second, third)} == {
        name: before[name] for name in (first, second, third)
    }
    assert len(accepted(out)) == 7
    assert problems(out) == []


def test_a_rejected_query_is_replaced_and_does_not_come_back(out, tmp_path, running):
    """Else people would reject it again each month."""
    before = rows(out)
    first, second, *others = ids(out)
    decide(out, tmp_path, (first, "reject", ","), (second, "reject", ","))
    asked = len(running.seen)

    assert generate(out, *at(running), n=5).code == 0

    after = rows(out)
    assert (after[first]["status"], after[second]["status"]) == ("retired", "retired")
    assert {name: after[name] for name in others} == {name: before[name] for name in others}
    new = [after[name] for name in ids(out) if name not in before]
    assert len(new) == 2
    assert not {row["query"] for row in new} & {row["query"] for row in before.values()}
    assert stages(running)[asked:].count("write") == 2
    assert problems(out) == []


def test_a_set_with_rejections_is_made_again_without_a_call(out, tmp_path, running):
    """What follows a rejection is as settled as what came before it."""
    decide(out, tmp_path, (ids(out)[1], "reject", ","))
    generate(out, *at(running), n=5)
    decide(out, tmp_path, (ids(out)[0], "reject", ","))
    generate(out, *at(running), n=8)
    before, asked = files(out), len(running.seen)

    assert generate(out, *at(running), n=8).code == 0

    assert (files(out), len(running.seen)) == (before, asked)
    assert len(accepted(out)) == 8


def test_rejecting_in_a_grown_set_moves_nothing_else(out, tmp_path, running):
    """The replacement of one query must not shift the sources of those behind it."""
    generate(out, *at(running), n=8)
    gone, *others = ids(out)
    decide(out, tmp_path, (gone, "reject", ","))

    generate(out, *at(running), n=8)

    assert set(others) < set(ids(out))
    assert len(ids(out)) == 8


def test_imported_queries_and_their_grades_stay(out, running):
    """A set of a team's own is what generated queries are added to, not what they replace."""
    dataset = Dataset(out)
    own = Query(query_id="mine", query="Who pays?", expected_answer="We.", origin="human")
    chunk_id = next(chunk.chunk_id for chunk in dataset.chunks())
    grade = Judgment(query_id="mine", chunk_id=chunk_id, grade=2, source="human")
    dataset.write_queries([own, *dataset.all_queries()])
    dataset.write_judgments([grade, *dataset.judgments()])

    assert generate(out, *at(running), n=6).code == 0

    [kept] = [query for query in dataset.all_queries() if query.query_id == "mine"]
    assert kept.model_copy(update={"split": None}) == own
    assert [one for one in dataset.judgments() if one.source == "human"] == [grade]
    assert len(accepted(out)) == 7


def test_splits_stay_as_they_were_given(out, running):
    """A query that was tuned on must never turn up in the test."""
    before = {name: row["split"] for name, row in rows(out).items()}
    assert set(before.values()) <= {"dev", "test"}

    generate(out, *at(running), "--dev-share", "1", n=9)

    after = {name: row["split"] for name, row in rows(out).items()}
    assert {name: after[name] for name in before} == before


def test_what_runs_retrieved_keeps_the_grades_of_its_evidence(tmp_path):
    """A command that changes no query must not move what runs are measured by."""
    documents, out = pages(tmp_path / "documents", "one.md", "two.md"), tmp_path / "set"
    generate(out, documents=documents, n=1)
    run(["retrieve", "--dataset", str(out), "--retriever", "bm25", "-q"])
    before = (out / "judgments.jsonl").read_bytes()

    generate(out, documents=documents, n=1)

    assert before.count(b"\n") == 2
    assert (out / "judgments.jsonl").read_bytes() == before
