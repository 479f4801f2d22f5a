"""Grades whose text somebody took out of its chunk."""

import json

import pytest

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import Document
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.validating import lost_grades
from ragforge.records import Chunk, Judgment, Query


@pytest.fixture
def dataset(tmp_path):
    """A set of two chunks of one document, with one query."""
    made = create_dataset(tmp_path / "set", {"seed": "0"})
    made.write_chunks(
        [
            Chunk(chunk_id="a", doc_id="d", text="Oak is a tree", start=0, end=13),
            Chunk(chunk_id="b", doc_id="d", text=" that grows slowly.", start=13, end=32),
        ]
    )
    made.write_queries([Query(query_id="q", query="What is oak?")])
    return made


def edit(dataset, before, after):
    """Change a text in the file, as an editor does."""
    text = dataset.chunks_path.read_text("utf-8")
    dataset.chunks_path.write_text(text.replace(before, after), "utf-8")


def grade(chunk_id, evidence="", **more):
    return Judgment(query_id="q", chunk_id=chunk_id, grade=2, evidence=evidence, **more)


def test_nothing_is_lost_where_nobody_changed_the_chunks(dataset):
    """A quote that never stood there is another matter."""
    dataset.write_judgments([grade("a", "Elm is no tree")])

    assert lost_grades(dataset).n_of_judges == 0


@pytest.mark.parametrize("source", ["judge", "carried", "evidence"])
def test_a_grade_is_lost_with_its_quote(dataset, source):
    """It rests on words that are gone."""
    dataset.write_judgments([grade("a", "is a tree", source=source), grade("b", "grows slowly")])
    edit(dataset, "is a tree", "is a table")

    lost = lost_grades(dataset)

    assert (lost.n_of_judges, lost.n_of_people) == (1, 0)
    assert [item.chunk_id for item in lost.kept] == ["b"]


def test_a_grade_of_a_person_is_counted_and_kept(dataset):
    """What people decided is not ragforge's to throw away."""
    dataset.write_judgments([grade("a", "is a tree", source="human")])
    edit(dataset, "is a tree", "is a table")

    lost = lost_grades(dataset)

    assert (lost.n_of_judges, lost.n_of_people, len(lost.kept)) == (0, 1, 1)


def test_a_failed_judgment_is_no_grade(dataset):
    """It is judged again anyway, and its failure is part of the bounds until then."""
    failed = Judgment(query_id="q", chunk_id="a", grade=None, evidence="x", failure="error")
    dataset.write_judgments([failed])
    edit(dataset, "is a tree", "is a table")

    assert lost_grades(dataset).n_of_judges == 0


def test_a_quote_that_runs_over_two_chunks_still_stands(dataset):
    """Each of them holds a part, and has the grade of one."""
    quote = "Oak is a tree that grows slowly."
    dataset.write_judgments([grade(name, quote, source="evidence") for name in ("a", "b")])
    dataset.chunks_path.write_text(dataset.chunks_path.read_text("utf-8") + "\n", "utf-8")

    assert lost_grades(dataset).n_of_judges == 0


def test_an_id_that_ragforge_made_of_another_text_loses_its_grades(dataset):
    """Grades without a quote are of the text that the id stands for."""
    text = "Beeswax keeps oak from drying out."
    [chunk] = chunk_document(Document(doc_id="d2", title="", text=text, format="text"))
    dataset.write_chunks([chunk, *dataset.chunks()])
    dataset.write_judgments([grade(chunk.chunk_id), grade("a")])
    edit(dataset, json.dumps(text), json.dumps("Tea is hot."))

    lost = lost_grades(dataset)

    assert (lost.n_of_judges, [item.chunk_id for item in lost.kept]) == (1, ["a"])
