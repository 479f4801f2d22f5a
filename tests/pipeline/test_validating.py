import json

import pytest
from versioned_sets import make_set, refreshed

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import Document
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.pipeline.lost_grades import lost_grades
from ragforge.pipeline.validating import accept, validate
from ragforge.records import Chunk, Hit, Judgment, Query, Ranking, VersionDiff
from ragforge.records.refresh import CallCounts, DocumentsDiff, JudgmentsDiff


@pytest.fixture
def home(tmp_path):
    """A set with the versions 1 and 2."""
    path = make_set(tmp_path / "set").path
    refreshed(path, "b")
    return path


def diff_of(version):
    """Return the diff of a version that changed nothing."""
    return VersionDiff(
        version=version,
        parent=1,
        documents=DocumentsDiff(),
        items={},
        changes=(),
        judgments=JudgmentsDiff(),
        calls=CallCounts(),
        bridge=(),
    )


@pytest.mark.parametrize("place", [".", "versions/000001", "current"])
def test_a_refreshed_set_and_its_versions_are_valid(home, place):
    """What refreshes write must pass what is asked of any set."""
    found = validate(open_dataset(home / place))

    assert (found.problems, found.notes) == ([], [])


def test_a_file_in_the_place_of_a_link_is_a_problem(home):
    """Whoever edits it believes that it is the set."""
    (home / "queries.jsonl").unlink()
    (home / "queries.jsonl").write_text("{}", "utf-8")

    found = validate(open_dataset(home))

    assert found.problems == [
        "queries.jsonl: differs from current/queries.jsonl, which is published; it should be a "
        "link to it"
    ]


def test_a_diff_of_another_version_is_a_problem(home):
    """It would tell of changes that are not in this one."""
    open_dataset(home).past.write_diff(diff_of(7))

    found = validate(open_dataset(home))

    assert found.problems == ["diff.json: version: expected 2, as in manifest.json, got 7"]


def test_a_version_under_another_number_is_a_problem(home):
    """Evaluations name versions by the manifest, people by the folder."""
    (home / "versions" / "000001").rename(home / "versions" / "000009")

    found = validate(open_dataset(home / "versions" / "000009"))

    assert found.problems == ["manifest.json: version: expected 9, got 1"]


@pytest.mark.parametrize("name", ["documents.jsonl", "revisions.jsonl", "events.jsonl"])
def test_what_a_refresh_wrote_is_read_too(home, name):
    """The next refresh builds on it."""
    (home / "versions" / "000002" / name).write_text("{", "utf-8")

    [problem] = validate(open_dataset(home)).problems

    assert f"{name}:1:" in problem


def test_a_file_that_the_manifest_lists_and_that_is_gone_is_a_problem(home):
    """What refreshes then start from is not the set."""
    (home / "versions" / "000002" / "judgments.jsonl").unlink()

    found = validate(open_dataset(home))

    assert found.problems == ["judgments.jsonl: is missing, though manifest.json lists it"]


def test_an_edit_is_accepted_where_nothing_else_is_wrong(home):
    """From then on it is what ragforge wrote."""
    path = home / "versions" / "000002" / "queries.jsonl"
    path.write_text(path.read_text("utf-8").replace("What is b of 00?", "What, then?"), "utf-8")

    found = accept(open_dataset(home))

    assert (found.problems, found.notes) == ([], ["queries.jsonl: accepted as it is"])


def test_queries_that_were_emptied_are_not_accepted(home):
    """Their judgments are still there: nobody did that on purpose."""
    (home / "versions" / "000002" / "queries.jsonl").write_text("", "utf-8")

    found = accept(open_dataset(home))

    assert found.problems == ["judgments.jsonl: 40 query ids are unknown, such as q00, q01, q02"]
    assert found.notes[-1] == "nothing was accepted: first mend the problems"


def test_source_that_names_no_chunk_is_told_of(home):
    """A query is not wrong for it; but what it was made of cannot be looked up."""
    dataset = open_dataset(home)
    first, *others = dataset.all_queries()
    lost = first.model_copy(update={"source_chunk_ids": ("c_lost",), "status": "accepted"})
    dataset.write_queries([lost, *others])

    found = validate(open_dataset(home))

    assert found.notes[0] == ("queries.jsonl: 1 source chunk ids are unknown, such as c_lost")


def on_document(query_id, chunk_id, **fields):
    return Query(
        query_id=query_id, query=f"What is {query_id}?", source_chunk_ids=(chunk_id,), **fields
    )


def test_documents_that_connect_the_splits_are_noted(tmp_path):
    """What tunes a system on dev may give away answers in test."""
    made = make_set(tmp_path / "set")
    made.write_chunks(Chunk(chunk_id=f"c{n}", doc_id=f"d{n}", text="a text") for n in "12")
    made.write_judgments([])
    made.write_queries(
        [
            on_document("q1", "c1", split="dev"),
            on_document("q2", "c1", split="test"),
            on_document("q3", "c2", split="test"),
            on_document("q4", "c1", split_before="test"),
        ]
    )
    (made.path / "runs" / "bm25.jsonl").unlink()

    found = validate(open_dataset(made.path))

    assert [note for note in found.notes if note.startswith("queries.jsonl")] == [
        "queries.jsonl: 1 queries are in no split, as their documents connect them with the other "
        "one, such as q4",
        "queries.jsonl: documents connect dev and test through 1 queries, such as q2 with q1: what "
        "tunes a system on dev may give away answers in test",
    ]


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


@pytest.fixture
def reworded(dataset):
    """The set with grades and a run, whose question was changed in the file."""
    dataset.write_judgments([grade("a", source="human"), grade("b", "grows slowly")])
    hits = (Hit(chunk_id="a", score=1),)
    dataset.write_run("bm25", [Ranking(query_id="q", ranking=hits).for_question("What is oak?")])
    path = dataset.path / "queries.jsonl"
    path.write_text(path.read_text("utf-8").replace("oak", "elm"), "utf-8")
    return dataset


def test_accepting_a_reworded_question_drops_the_grades_that_judges_gave_it(reworded):
    """They are of another question, and would decide between runs of this one."""
    noted = validate(reworded).notes
    found = accept(reworded)

    assert "1 grades of judges are of questions that read otherwise in all runs: --" in noted[0]
    assert "1 grades of people are of questions that read otherwise in all runs: they" in noted[1]
    assert any("dropped; `ragforge judge` makes new ones" in note for note in found.notes)
    assert [item.source for item in reworded.judgments()] == ["human"]


def test_a_question_that_a_run_was_asked_as_it_is_keeps_its_grades(reworded):
    """They may be of the words of now."""
    reworded.write_run("new", [Ranking(query_id="q", ranking=()).for_question("What is elm?")])
    accept(reworded)

    assert len(reworded.judgments()) == 2


def test_a_reworded_question_keeps_its_grades_where_no_run_says_what_it_was(dataset):
    """Nothing tells that it was another one."""
    dataset.write_judgments([grade("b")])
    path = dataset.path / "queries.jsonl"
    path.write_text(path.read_text("utf-8").replace("oak", "elm"), "utf-8")
    accept(dataset)

    assert len(dataset.judgments()) == 1
