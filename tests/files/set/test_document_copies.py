import pytest

from ragforge.files.set.document_copies import CopiedTexts
from ragforge.files.set.document_level import DocumentLevel
from ragforge.files.set.judgment_table import read_judgment_table
from ragforge.records import Hit, Judgment, Ranking, text_id

NOTE = text_id("Keep the valve shut.")
AGAIN = text_id("Keep the valve shut.", "hit 2")
OTHER = text_id("Open it slowly.")
SEVERAL = {
    NOTE: frozenset(("a", "b")),
    AGAIN: frozenset(("a", "b")),
    OTHER: frozenset(("a", "b")),
}
DOCUMENTS = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}


def judged(chunk_id, grade, source="judge", level="chunk"):
    return Judgment(query_id="q", chunk_id=chunk_id, grade=grade, source=source, level=level)


@pytest.fixture
def level_of(tmp_path):
    """Makes a level and the grades by document of some judgments."""

    def make(*judgments):
        path = tmp_path / "judgments.jsonl"
        lines = sorted((one.chunk_id, one.model_dump_json()) for one in judgments)
        path.write_text("".join(f"{line}\n" for _, line in lines))
        table = read_judgment_table(path)
        copies = CopiedTexts(SEVERAL, DOCUMENTS, table)
        return DocumentLevel(frozenset("q"), DOCUMENTS, {}, copies), table

    return make


def measured(level_and_table, *hits):
    """Return the documents that hits count as, each with its grade."""
    level, table = level_and_table
    ranked = tuple(Hit(chunk_id=name, score=1 / rank) for rank, name in enumerate(hits, 1))
    found = level.ranking(Ranking(query_id="q", ranking=ranked)).ranking
    grades = level.folded("q", table.of_query("q", table.gradings))
    return [(hit.chunk_id, getattr(grades.get(hit.chunk_id), "grade", None)) for hit in found]


@pytest.mark.parametrize("grade", [0, 3])
def test_a_text_counts_by_its_own_grade_where_none_of_its_documents_is_labelled(level_of, grade):
    """A judge was paid for it, and `judge` says that nothing is left to grade."""
    made = level_of(judged("c", 2, "human", "document"), judged(NOTE, grade), judged("a1", 3))

    [(_, found)] = measured(made, NOTE)
    assert found == grade


def test_a_label_of_a_document_goes_before_the_grade_of_a_text_in_it(level_of):
    """A person said of the whole document what it is worth."""
    made = level_of(judged("b", 2, "human", "document"), judged(NOTE, 3), judged("a1", 3))

    assert measured(made, NOTE) == [("b", 2)]


def test_a_text_counts_as_the_document_of_a_labelled_chunk(level_of):
    """So does the same text with its source, and a whole chunk of either copy."""
    made = level_of(judged("c", 2, "human", "document"), judged("b1", 2, "human"))

    assert measured(made, NOTE) == [("b", 2)]


def test_a_chunk_that_people_call_not_relevant_decides_nothing_of_its_document(level_of):
    """Another passage of the document may be the answer."""
    made = level_of(judged("c", 2, "human", "document"), judged("a1", 0, "human"), judged(NOTE, 3))

    assert measured(made, NOTE) == [("a", 3)]


def test_a_text_keeps_its_rank_beside_one_of_its_documents(level_of):
    """What is behind it would move up if it were that document, and nothing says that it is."""
    made = level_of(judged("c", 2, "human", "document"), judged(NOTE, 0))

    assert measured(made, NOTE, "a1", "c1") == [("b", 0), ("a", 0), ("c", 2)]


def test_two_texts_of_the_same_documents_are_one_document(level_of):
    """With a source they are, too; else leaving it out would find it twice."""
    made = level_of(judged("c", 2, "human", "document"), judged(NOTE, 3), judged(OTHER, 3))

    assert measured(made, NOTE, OTHER, "c1") == [("a", 3), ("c", 2)]


def test_a_text_that_comes_again_is_of_the_next_document(level_of):
    """As a chunk is that comes twice; else what is behind it would move up."""
    made = level_of(judged("b", 2, "human", "document"))

    assert measured(made, NOTE, AGAIN, "c1") == [("b", 2), ("a", None), ("c", None)]


def test_a_failed_judgment_of_a_text_leaves_its_documents_without_a_grade(level_of):
    """A grade that was not given must not become 0."""
    failed = Judgment(query_id="q", chunk_id=NOTE, grade=None, failure="refused")
    made = level_of(judged("c", 2, "human", "document"), failed)

    assert measured(made, NOTE) == [("a", None)]
