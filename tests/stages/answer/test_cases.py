from ragforge.records import Answer
from ragforge.stages.answer.cases import cases


def test_only_answers_that_can_be_compared_are_cases(query, chunk):
    """Answers to unknown queries, or to ones without expected answer, cannot be graded."""
    queries = [
        query(query_id="q1", expected_answer="krill"),
        query(query_id="q2"),
        query(query_id="q3", answerable=False),
    ]
    answers = [
        Answer(query_id=name, answer="a", chunk_ids=("c1", "gone"))
        for name in ("q3", "q1", "q2", "unknown")
    ]

    found = list(cases(queries, answers, {"c1": chunk("text")}))

    assert [(case.query.query_id, case.contexts) for case in found] == [
        ("q3", ("text",)),
        ("q1", ("text",)),
    ]
