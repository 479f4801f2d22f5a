import json

import pytest

from ragforge.errors import DataError
from ragforge.files.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.importing import import_queries
from ragforge.records import (
    Chunk,
    Evidence,
    Fact,
    Judgment,
    Lineage,
    Pin,
    Provenance,
    Query,
    Review,
)

TEXT = "The fee is ten percent. Parcels arrive in three days."
ROW = {
    "id": "q1",
    "question": "What is the fee?",
    "answer": "Ten percent.",
    "doc_id": "a.md",
    "quote": "The fee is ten percent.",
    "difficulty": "simple",
    "category": "Fees",
}


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        [
            Chunk(chunk_id="c1", doc_id="a.md", text=TEXT, end=len(TEXT)),
            Chunk(chunk_id="c2", doc_id="b.md", text="Beeswax is for oak."),
        ]
    )
    return made


@pytest.fixture
def bring(dataset, tmp_path):
    """Import rows into the dataset."""

    def run(*rows, observer=silent):
        path = tmp_path / "golden.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return import_queries(path, dataset, observer, made_by="Ann")

    return run


def one(dataset):
    [query] = dataset.all_queries()
    return query


def change(dataset, **fields):
    dataset.write_queries([one(dataset).model_copy(update=fields)])


def test_labelled_row_keeps_difficulty_and_category(dataset, bring):
    """People slice their sets by their own words."""
    bring(ROW)

    query = one(dataset)
    assert (query.difficulty, query.category, query.origin) == ("easy", "Fees", "human")
    assert query.lineage == Lineage(kind="human", model="Ann")
    assert (query.evidence[0].start, query.evidence[0].suffix[:9]) == (0, " Parcels ")
    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("c1", 3)]


def test_importing_again_changes_nothing(dataset, bring):
    """A set in a repository is imported by every build."""
    bring(ROW)
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    bring(ROW)

    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before


@pytest.mark.parametrize(
    "settled",
    [
        {"split": "dev"},
        {"status": "retired", "reviewed": Review(decision="reject", by="Ben")},
        {"pinned": Pin(by="Ben")},
        {"reviewed": Review(decision="approve", by="Ben", random=True)},
        {"revision": 3},
        {
            "facts": (Fact(fact_id="f1", text="Ten percent."),),
            "facts_by": Provenance(kind="llm", model="m"),
            "facts_of": "0000000000000000",
        },
    ],
)
def test_what_is_settled_about_a_query_outlives_another_import(dataset, bring, settled):
    """The file of questions knows nothing of it."""
    bring(ROW)
    change(dataset, **settled)
    before = one(dataset)

    bring(ROW)

    assert one(dataset) == before


def test_other_wording_is_another_revision_in_the_same_split(dataset, bring):
    """A review is of a text; a split is for good."""
    bring(ROW)
    change(dataset, split="test", reviewed=Review(decision="approve", by="Ben"))
    grades = [
        Judgment(query_id="q1", chunk_id="c2", grade=1),
        Judgment(query_id="q9", chunk_id="c2", grade=1),
    ]
    dataset.write_judgments([*dataset.judgments(), *grades])

    bring({**ROW, "question": "How high is the fee?"})

    query = one(dataset)
    assert (query.query, query.revision, query.split) == ("How high is the fee?", 2, "test")
    assert query.reviewed is None
    assert [(item.query_id, item.source) for item in dataset.judgments()] == [
        ("q1", "human"),
        ("q9", "judge"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"reviewed": Review(decision="edit", by="Ben"), "revision": 2},
        {"pinned": Pin(by="Ben")},
    ],
)
def test_query_that_a_person_edited_or_pinned_stays_word_by_word(dataset, bring, fields):
    """An older file must not undo a review."""
    bring(ROW)
    change(dataset, expected_answer="A tenth.", **fields)
    before, told = one(dataset), []

    bring(ROW, observer=told.append)

    assert one(dataset) == before
    assert "1 queries that people pinned or edited in review stay" in told[0].message


def test_queries_of_an_older_set_keep_all_that_is_known_of_them(dataset, bring):
    """Moving a set to another chunk size is no reason to review it again."""
    older = Query(
        query_id="q1",
        query="What is the fee?",
        expected_answer="Ten percent.",
        split="dev",
        revision=2,
        status="accepted",
        reviewed=Review(decision="edit", by="Ben"),
        pinned=Pin(by="Ben"),
        category="Fees",
        lineage=Lineage(kind="llm", model="m", seed=3),
        evidence=(Evidence(doc_id="a.md", chunk_id="old", quote="The fee is ten percent."),),
    )

    bring(older.model_dump(mode="json"))

    found = one(dataset)
    kept = older.model_dump(exclude={"evidence", "source_chunk_ids"})
    assert found.model_dump(exclude={"evidence", "source_chunk_ids"}) == kept
    assert [item.chunk_id for item in found.evidence] == ["c1"]
    assert [(item.chunk_id, item.source) for item in dataset.judgments()] == [("c1", "evidence")]


def test_set_of_other_documents_is_refused(dataset, bring):
    """Queries without a relevant passage would all score 0."""
    with pytest.raises(DataError, match="1 relevant passages are in no chunk: q1: a"):
        bring({**ROW, "quote": "gone"})

    assert dataset.all_queries() == []


def test_grades_of_people_outlive_a_set_that_tells_none(dataset, bring):
    """A dataset's own queries come without grades."""
    bring(ROW)
    query = one(dataset)
    human = Judgment(query_id="q1", chunk_id="c1", grade=2, source="human")
    dataset.write_judgments([human])

    bring(query.model_dump(mode="json"))

    assert dataset.judgments() == [human]
