import pytest

from ragforge.records import Answer
from ragforge.stages.answer.cases import cases, unknown_passages


def test_only_answers_that_can_be_compared_are_cases(query, chunk):
    """Answers to unknown queries, or to ones without expected answer, cannot be graded."""
    queries = [
        query(query_id="q1", expected_answer="krill"),
        query(query_id="q2"),
        query(query_id="q3", answerable=False),
    ]
    answers = [
        Answer(query_id=name, answer="a", chunk_ids=("c1",))
        for name in ("q3", "q1", "q2", "unknown")
    ]

    found = list(cases(queries, answers, {"c1": chunk("text")}))

    assert [(case.query.query_id, case.contexts) for case in found] == [
        ("q3", ("text",)),
        ("q1", ("text",)),
    ]


@pytest.mark.parametrize(
    ("given", "n_unknown"),
    [
        ({"chunk_ids": ("c1",)}, 0),
        ({"chunk_ids": ("c1", "gone")}, 1),
        ({"chunk_ids": ("gone",)}, 1),
        ({"chunk_ids": ("c1",), "n_unknown_passages": 2}, 2),
    ],
)
def test_an_answer_with_an_unknown_passage_has_no_contexts(query, chunk, given, n_unknown):
    """What an unknown passage says would be held for made up."""
    chunks, answer = {"c1": chunk("text")}, Answer(query_id="q1", answer="a", **given)

    [case] = cases([query(expected_answer="krill")], [answer], chunks)

    assert case.contexts == (() if n_unknown else ("text",))
    assert unknown_passages(answer, chunks) == n_unknown
