import pytest

from ragforge.evaluating.answers.diagnosis import NOT_JUDGED
from ragforge.evaluating.summary import summarise, summarise_system
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Hit,
    Judgment,
    Provenance,
    Query,
    Ranking,
    RetrievedText,
    Span,
)

RULE = Provenance(kind="rule", model="answer-rules-1")
OF_DOCUMENTS = RetrievedText(
    chunk_id="text:of-a", text="other", places=(Span(doc_id="a.md", start=0, end=5),)
)
OF_NOWHERE = RetrievedText(chunk_id="text:nowhere", text="of another manual")


@pytest.fixture
def answered_set(new_dataset):
    """Return a set whose labels are complete, with a right answer made from a context."""

    def make(context, n_unknown=0):
        made = new_dataset()
        made.write_chunks(
            Chunk(chunk_id=name, doc_id="a.md", text=name) for name in ("right", "other")
        )
        made.write_queries([Query(query_id="q1", query="What is it?", expected_answer="It.")])
        made.write_judgments([Judgment(query_id="q1", chunk_id="right", grade=1, source="human")])
        made.write_retrieved_texts([OF_DOCUMENTS, OF_NOWHERE])
        hits = tuple(Hit(chunk_id=name, score=1.0) for name in ("gone", "other"))
        made.write_run("old", [Ranking(query_id="q1", ranking=hits)])
        answer = Answer(
            query_id="q1", answer="It.", chunk_ids=context, n_unknown_passages=n_unknown
        )
        made.write_answers("sys", [answer])
        made.write_answer_grades(
            "sys",
            [
                AnswerGrade(
                    query_id="q1",
                    verdict="correct",
                    score=1.0,
                    has_hallucination=None,
                    rule="exact match",
                    provenance=RULE,
                )
            ],
        )
        return made

    return make


def readings(found):
    """Return what the first grid says of the query, and the context precision."""
    grid = found.diagnoses[0]
    named = [cell.reading for cell in grid.cells if cell.query_ids]
    return [*named, *(item.reason for item in grid.undecided)], grid.context.precision.mean


@pytest.mark.parametrize(
    ("context", "reading", "precision"),
    [
        (("of another index",), NOT_JUDGED, None),
        (("other", "of another index"), NOT_JUDGED, 0.0),
        (("text:nowhere",), NOT_JUDGED, None),
        (("right", "of another index"), "working", 1.0),
        (("other",), "lucky", 0.0),
        (("text:of-a",), "lucky", 0.0),
        (("a.md",), "working", 1.0),
    ],
    ids=["unknown", "unknown beside", "text of nowhere", "right", "other", "text", "document"],
)
def test_complete_labels_say_nothing_of_what_the_set_does_not_know(
    answered_set, context, reading, precision
):
    """Ids of another index, or of an earlier version, are no bad retrieval."""
    made = answered_set(context)

    assert readings(summarise_system(made, "sys")) == ([reading], precision)
    assert readings(summarise(made).answers[0]) == ([reading], precision)


def test_what_a_run_found_that_the_set_does_not_know_is_no_bad_retrieval(answered_set):
    """It stands in for a context."""
    assert readings(summarise_system(answered_set(()), "sys")) == ([NOT_JUDGED], 0.0)


def test_a_passage_that_no_id_names_is_no_bad_retrieval(answered_set):
    """It may be what the answer was made from."""
    assert readings(summarise_system(answered_set(("other",), 1), "sys")) == ([NOT_JUDGED], 0.0)
