"""Chunks of a file whose ids look like those that ragforge gives to texts of runs."""

import json
from pathlib import Path

import pytest

from ragforge.cli import main
from ragforge.config import EvaluateSettings
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.observe import silent
from ragforge.pipeline.answer.asking_systems import PassageFinder
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.evaluating import evaluate_files
from ragforge.pipeline.intake.set_of_files import MeasuredFiles, set_of_files
from ragforge.pipeline.validating import validate
from ragforge.records import Chunk, Judgment, Query, text_id
from ragforge.retrieval import ContextPassage
from ragforge.retrieval.user_retrievers import ResultReader

GIFT, SHIP = "Gift cards are valid for five years.", "Shipping to Norway takes ten days."
A, B = text_id(GIFT), text_id(SHIP, "sh.md")
IN_SET = {A: f"id_{A}", B: f"id_{B}"}
MEASURED = EvaluateSettings(measures=("RR",))


def rows(path: Path, *written: object) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in written), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path):
    """Chunks with such ids, two questions that one of them answers each, and a perfect run."""
    (tmp_path / "qrels.trec").write_text(f"q1 0 {A} 3\nq2 0 {B} 3\n")
    (tmp_path / "run.trec").write_text(
        f"q1 Q0 {A} 1 9 x\nq1 Q0 {B} 2 8 x\nq2 Q0 {B} 1 9 x\nq2 Q0 {A} 2 8 x\n"
    )
    rows(tmp_path / "chunks.jsonl", {"_id": A, "text": GIFT}, {"_id": B, "text": SHIP})
    rows(
        tmp_path / "golden.jsonl",
        {"query_id": "q1", "query": "How long are gift cards valid?", "relevant": [A]},
        {
            "query_id": "q2",
            "query": "How long does Norway take?",
            "relevant": [{"chunk_id": B, "quote": SHIP, "doc_id": B}],
        },
    )
    return tmp_path


@pytest.fixture
def dataset(files):
    """The set made of them."""
    arguments = ["import", str(files / "golden.jsonl"), "--chunks", str(files / "chunks.jsonl")]
    assert main([*arguments, "--out", str(files / "set"), "--quiet"]) == 0
    return open_dataset(files / "set")


def reciprocal_rank(dataset):
    [run] = evaluate_runs(dataset, dataset.run_names(), MEASURED)
    return run.scores.mean("RR")


def test_their_chunks_have_other_ids_in_the_set(dataset):
    """What looks like the id of a text is one: grades of it are measured with no chunk."""
    assert [(chunk.chunk_id, chunk.doc_id) for chunk in dataset.chunks()] == sorted(
        (name, name) for name in IN_SET.values()
    )


def test_labels_and_runs_name_them_by_the_ids_of_the_file(dataset, files):
    """All grades of such a set were left out, and a perfect run had no value."""
    assert main(["import", "--run", str(files / "run.trec"), "--dataset", str(dataset.path)]) == 0

    assert {one.chunk_id for one in dataset.judgments()} == {*IN_SET.values()}
    assert reciprocal_rank(dataset) == 1
    assert validate(dataset).problems == []


def test_qrels_name_them_too(dataset, files):
    """Grades that come later are of the same chunks."""
    qrels = rows(files / "more.jsonl", {"query_id": "q1", "chunk_id": B, "grade": 2})

    assert main(["import", "--qrels", qrels, "--dataset", str(dataset.path)]) == 0
    assert ("q1", IN_SET[B]) in {(one.query_id, one.chunk_id) for one in dataset.judgments()}


def test_a_retriever_and_an_answer_name_them_by_either_id(dataset):
    """An index that was filled from the same file knows no other ids."""
    chunks = list(dataset.chunks())

    hits = ResultReader("mine", chunks).read([A, {"id": IN_SET[B]}], "?", 10)
    found = PassageFinder(chunks).find([ContextPassage((A,), ()), ContextPassage((B,), (SHIP,))])
    assert [hit.chunk_id for hit in hits] == [*IN_SET.values()]
    assert found.chunk_ids == (*IN_SET.values(),)


def test_the_other_ids_are_told(files, capsys):
    """Whoever looks into the set must know where its ids come from."""
    arguments = ["import", str(files / "golden.jsonl"), "--chunks", str(files / "chunks.jsonl")]
    main([*arguments, "--out", str(files / "set")])

    told = capsys.readouterr().err
    assert "2 chunks have ids of the look that texts of runs get; in a set these begin" in told


def test_files_alone_are_measured_with_such_ids(files):
    """A set of files, which has no chunks, has the grades that the files have."""
    measured = MeasuredFiles(files / "qrels.trec", (files / "run.trec",))

    with set_of_files(measured, silent) as dataset:
        assert reciprocal_rank(dataset) == 1
    runs = evaluate_files(files / "qrels.trec", [files / "run.trec"], MEASURED)
    assert runs.scores["run"].mean("RR") == 1


def test_a_set_of_before_with_such_ids_has_a_problem(tmp_path):
    """It measures nothing, and nobody would know why."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks([Chunk(chunk_id=A, doc_id="gc.md", text=GIFT)])
    made.write_queries([Query(query_id="q1", query="How long are gift cards valid?")])
    made.write_judgments([Judgment(query_id="q1", chunk_id=A, grade=3, source="human")])

    [problem] = validate(made).problems
    assert problem == (
        f"chunks.jsonl: 1 id of the look of {A}, which texts of runs get: its grades are left out; "
        "`ragforge import` into a new set gives others"
    )
