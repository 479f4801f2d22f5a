import pytest

from ragforge.stages.judge.lexical import LexicalJudge
from ragforge.stages.judge.pairs import Pair

QUERY = "red green blue amber violet ochre teal"


def judge(wait, text, query=QUERY):
    return wait(LexicalJudge().judge(Pair("q", query, "c", text)))


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("red green blue amber violet ochre teal", 3),
        ("red green blue amber violet ochre", 3),
        ("red green blue amber violet", 2),
        ("red green blue amber", 1),
        ("red green blue", 1),
        ("red green", 0),
        ("nothing", 0),
    ],
)
def test_the_grade_is_the_share_of_the_querys_words(wait, text, grade):
    """The floor that a model must beat has to be simple enough to explain."""
    judgment = judge(wait, text)

    assert (judgment.grade, judgment.contains_answer) == (grade, grade >= 2)


def test_evidence_is_the_first_sentence_with_the_most_words(wait):
    """A reader must see why the chunk was found relevant."""
    text = "Nothing here. Red green blue amber violet. Violet amber blue green red."

    assert judge(wait, text).evidence == "Red green blue amber violet."


@pytest.mark.parametrize("text", ["red", "nothing"])
def test_what_is_not_relevant_has_no_evidence(wait, text):
    """Evidence on a grade below 2 would contradict it."""
    assert judge(wait, text).evidence == ""


@pytest.mark.parametrize("query", ["", "the of and", "?!"])
def test_a_query_without_words_matches_nothing(wait, query):
    """A share of nothing is not everything."""
    assert judge(wait, "any text", query).grade == 0


def test_it_calls_itself_a_baseline(wait):
    """Reports and gates must be able to tell it from a judge."""
    assert judge(wait, "x").provenance.kind == "baseline"
