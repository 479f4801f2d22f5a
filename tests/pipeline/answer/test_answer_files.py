import pytest

from ragforge.errors import DataError
from ragforge.files.formats.answers import AnswerRow
from ragforge.observe import silent
from ragforge.pipeline.answer.answer_files import other_verdicts, with_query_ids
from ragforge.records import Query

QUERIES = [
    Query(query_id="q1", query="What does the kettle cost?"),
    Query(query_id="q2", query="Who pays?"),
    Query(query_id="q3", query="who pays"),
]


def asked(question, answer="So."):
    return AnswerRow("", answer, question=question, where="a.json: item 1")


def test_answers_find_their_query_by_its_question():
    """Tutorials keep question and answer together, without an id."""
    [row] = with_query_ids([asked("what does the kettle cost")], QUERIES, silent)

    assert row.query_id == "q1"


def test_an_id_goes_before_the_question():
    """Two queries may ask the same of different users."""
    [row] = with_query_ids([AnswerRow("q3", "So.")], QUERIES, silent)

    assert row.query_id == "q3"


def test_an_id_of_another_question_is_refused():
    """The answer would be graded by what is right for another question."""
    row = AnswerRow("q2", "So.", asked="What does the kettle cost?", where="a.json: item 1")

    with pytest.raises(
        DataError,
        match=r"a\.json: item 1: query 'q2' asks 'Who pays\?', and the question of the row, "
        r"'What does the kettle cost\?', is that of 'q1'; leave the id or the question out",
    ):
        with_query_ids([row], QUERIES, silent)


def test_an_id_stands_beside_a_question_in_other_words():
    """Systems keep what they made of a question."""
    [row] = with_query_ids([AnswerRow("q2", "So.", asked="Payer?")], QUERIES, silent)

    assert row.query_id == "q2"


def test_the_number_of_a_row_is_no_id_of_a_query():
    """Tutorials number their rows under the name id."""
    numbered = AnswerRow("1", "So.", asked="What does the kettle cost?", has_plain_id=True)

    [row] = with_query_ids([numbered], QUERIES, silent)

    assert row.query_id == "q1"


def test_rows_of_a_question_that_comes_twice_go_to_its_queries_in_order():
    """Each of the two queries has an answer, and the user is told."""
    notes = []

    rows = with_query_ids(
        [asked("Who pays?", "a"), asked("Who pays?", "b")],
        QUERIES,
        lambda event: notes.append(event.message),
    )

    assert [(row.query_id, row.answer) for row in rows] == [("q2", "a"), ("q3", "b")]
    assert notes == ["answers by question: several queries of the set ask 1 of them: 'Who pays?'"]


def test_rows_whose_queries_expect_different_answers_are_left_out():
    """In the order of the ids a right answer would be graded by what is right for the other."""
    expected = ("3 km", "12 euros")
    queries = [
        query.model_copy(update={"expected_answer": text})
        for query, text in zip(QUERIES[1:], expected, strict=True)
    ]
    notes = []

    rows = with_query_ids(
        [asked("Who pays?", "12 euros"), asked("Who pays?", "3 km"), AnswerRow("q3", "So.")],
        queries,
        lambda event: notes.append(event.message),
    )

    assert [row.query_id for row in rows] == ["q3"]
    assert notes == [
        "answers by question: 1 of them left out, as several queries ask the same and expect "
        "different answers; name their query_id: 'Who pays?'"
    ]


@pytest.mark.parametrize(
    ("expected", "status", "order"),
    [
        (("12 euros.", "12 Euros"), "accepted", ["q2", "q3"]),
        (("3 km", "12 euros"), "retired", ["q3", "q2"]),
    ],
)
def test_no_row_is_left_out_for_a_stop_or_a_query_that_counts_no_more(expected, status, order):
    """One row is of either then, or of the query that counts."""
    first, last = (
        query.model_copy(update={"expected_answer": text})
        for query, text in zip(QUERIES[1:], expected, strict=True)
    )
    retired = first.model_copy(update={"status": status})

    rows = with_query_ids([asked("Who pays?"), asked("Who pays?")], [retired, last], silent)

    assert [row.query_id for row in rows] == order


def test_questions_that_nobody_asks_are_told():
    """An answer that is lost lowers no mean in silence."""
    notes = []

    rows = with_query_ids([asked("Why?")], QUERIES, lambda event: notes.append(event.message))

    assert rows == []
    assert notes == ["answers by question: no query of the set asks 1 of them: 'Why?'"]


def test_a_question_that_is_answered_too_often_is_refused():
    """Which answer counts cannot be told."""
    rows = [asked("What does the kettle cost?"), asked("what does the kettle cost?")]

    with pytest.raises(DataError, match=r"a\.json: item 1: .* comes twice"):
        with_query_ids(rows, QUERIES, silent)


def test_verdicts_that_are_no_grades_are_told():
    """Else answers count as not graded, or the offline baseline grades them, and nobody knows."""
    rows = [AnswerRow("q1", "So.", other_verdict="'pass'"), AnswerRow("q2", "So.")]

    assert list(other_verdicts(rows)) == [
        "1 verdict is none of correct, partial, incorrect, not_attempted, such as 'pass', and no "
        "grade"
    ]
