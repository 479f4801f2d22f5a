import pytest

from ragforge.records import Evidence, Provenance
from ragforge.stages.generate.candidates import Candidate
from ragforge.stages.generate.gates import Passed, check, normal_question

TEXT = "The blue whale is the largest animal.\nIt eats about four tonnes of krill on a summer day."


def candidate(**changes):
    fields = {
        "question": "How much does a blue whale eat daily?",
        "answer": "four tonnes of krill",
        "evidence": "eats about four tonnes of krill",
        "difficulty": "easy",
        "type": "fact",
        "lineage": Provenance(kind="llm"),
    }
    return Candidate(**{**fields, **changes})


def test_a_good_candidate_passes_with_its_evidence_anchored(chunk):
    """Offsets let evidence be found again when the corpus is cut anew."""
    passed = check(candidate(), chunk(TEXT, start=100, end=100 + len(TEXT)), set())

    start = 100 + TEXT.index("eats")
    assert passed == Passed(
        candidate(),
        Evidence(
            doc_id="d1",
            chunk_id="c1",
            quote="eats about four tonnes of krill",
            start=start,
            end=start + 31,
        ),
    )


def test_evidence_is_kept_as_it_stands_in_the_chunk(chunk):
    """A quote with other white space would not be found verbatim later."""
    passed = check(candidate(evidence="largest  animal. It eats"), chunk(TEXT), set())

    assert passed.evidence.quote == "largest animal.\nIt eats"


def test_evidence_of_a_chunk_without_offsets_has_none(chunk):
    """0 would be a place, and the wrong one."""
    passed = check(candidate(), chunk(TEXT), set())

    assert (passed.evidence.start, passed.evidence.end) == (None, None)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"evidence": "eats five tonnes"}, "evidence_not_found"),
        ({"evidence": ""}, "evidence_not_found"),
        ({"evidence": " \n"}, "evidence_not_found"),
        ({"question": "Why?"}, "question_length"),
        ({"question": ""}, "question_length"),
        ({"question": "why " * 101}, "question_length"),
        ({"answer": " "}, "answer_empty"),
        ({"question": "Does a whale eat four tonnes of krill?"}, "answer_in_question"),
        ({"question": "What does the passage say whales eat?"}, "deictic"),
        ({"question": "According to the text, what do whales eat?"}, "deictic"),
        ({"question": "What is mentioned above on whales?"}, "deictic"),
        ({"question": "How much is shown in this table for whales?"}, "deictic"),
        (
            {
                "question": "It eats about four tonnes of krill on a summer day, or what?",
                "answer": "yes, daily",
            },
            "copied",
        ),
    ],
)
def test_each_gate_stops_its_fault_under_its_code(chunk, changes, code):
    """The counts by code tell a user what a writer does wrong."""
    assert check(candidate(**changes), chunk(TEXT), set()) == code


@pytest.mark.parametrize(
    "question",
    [
        "How do I document a text field?",
        "Which section of a whale is the largest?",
        "What is eaten in a paragraph of the sea, about four of krill?",
        "four tonnes of krill on a summer day: who?",
    ],
)
def test_gates_let_similar_good_questions_through(chunk, question):
    """A gate that stops good questions skews the set."""
    found = check(candidate(question=question, answer="a whale eats it"), chunk(TEXT), set())

    assert isinstance(found, Passed)


def test_a_question_that_is_taken_is_a_duplicate(chunk):
    """Two equal queries would count twice in every mean."""
    taken = {normal_question("how much does a BLUE whale eat daily")}

    assert check(candidate(), chunk(TEXT), taken) == "duplicate"
