import pytest

from ragforge.stages.answer.lexical import LexicalAnswerJudge, token_f1, unsupported_sentences
from ragforge.stages.answer.stage import Case


@pytest.fixture
def grade(query, wait):
    """Grade an answer against an expected one."""

    def go(answer, expected, *contexts, **changes):
        case = Case(query(expected_answer=expected, **changes), answer, contexts)
        return wait(LexicalAnswerJudge().judge(case))

    return go


@pytest.mark.parametrize(
    ("given", "expected", "f1"),
    [
        ("blue whales eat krill", "blue whales eat krill", 1.0),
        ("krill", "blue whales eat krill", 2 * 1 * 0.25 / 1.25),
        ("they eat krill and fish", "krill", 2 * 0.2 * 1 / 1.2),
        ("fish fish krill", "fish krill krill", 2 / 3),
        ("squid", "krill", 0.0),
        ("", "krill", 0.0),
        ("", "", 0.0),
    ],
)
def test_token_f1_is_the_harmonic_mean_of_precision_and_recall(given, expected, f1):
    """Worked by hand from Rajpurkar et al. 2016."""
    assert token_f1(given.split(), expected.split()) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "expected", "verdict", "score"),
    [
        ("Krill", "krill", "correct", 1.0),
        ("The krill.", "krill", "correct", 1.0),
        ("they eat krill", "whales eat krill", "correct", 2 / 3),
        ("it is mostly krill", "whales eat krill", "incorrect", 2 / 7),
        ("mostly small krill", "krill, fish", "partial", 0.4),
        ("squid", "krill", "incorrect", 0.0),
        ("+", "+", "correct", 1.0),
        ("-", "+", "incorrect", 0.0),
        ("***", "krill", "incorrect", 0.0),
    ],
)
def test_the_verdict_follows_the_shared_words(grade, answer, expected, verdict, score):
    """Articles, case and punctuation are no difference; other signs alone are."""
    found = grade(answer, expected)

    assert found.verdict == verdict
    assert found.score == pytest.approx(score)


def test_a_claim_where_nothing_can_be_known_is_incorrect(grade):
    """Whatever it says, it was made up."""
    found = grade("Krill.", None, answerable=False)

    assert (found.verdict, found.score) == ("incorrect", 0.0)


CONTEXT = "The tower was built in 1889 and is 330 metres tall. Over 1,000 people work there."


@pytest.mark.parametrize(
    ("answer", "unsupported"),
    [
        ("The tower is 330 metres tall.", []),
        ("The tower is 324 metres tall.", ["The tower is 324 metres tall."]),
        ("It was built in 1889. 1000 people work there.", []),
        ("It was built in 1889. It opened in 1890.", ["It opened in 1890."]),
        ("Penguins swim under water.", ["Penguins swim under water."]),
        ("330", []),
        ("", []),
    ],
)
def test_a_sentence_with_an_unknown_number_or_subject_is_unsupported(answer, unsupported):
    """A wrong figure in otherwise copied words is the usual invention."""
    assert unsupported_sentences(answer, (CONTEXT,)) == unsupported


@pytest.mark.parametrize(
    ("contexts", "answer", "has_hallucination"),
    [
        ((CONTEXT,), "It was built in 1889.", False),
        ((CONTEXT,), "It was built in 1900.", True),
        ((CONTEXT, "In 1900 it was built anew."), "It was built in 1900.", False),
        ((), "It was built in 1900.", None),
    ],
)
def test_hallucination_is_checked_against_the_contexts_only(
    grade, contexts, answer, has_hallucination
):
    """Without contexts nothing was checked, and unchecked is not clean."""
    assert grade(answer, "1889", *contexts).has_hallucination is has_hallucination


def test_the_explanation_names_what_is_unsupported(grade):
    """A person must see what to check."""
    assert grade("It was built in 1900.", "1889", CONTEXT).explanation == (
        "token F1 0.00; not in the chunks: 'It was built in 1900.'"
    )


def test_it_calls_itself_a_baseline(grade):
    """Reports and gates must be able to tell it from a judge."""
    assert grade("a", "b").provenance.kind == "baseline"


def test_an_abstention_that_is_not_expected_is_no_attempt(query, wait):
    """Where the expected answer says "not", no rule comes first, and nothing is made up."""
    case = Case(query(expected_answer="It does not ship to Spain."), "I don't know.", ("text",))

    found = wait(LexicalAnswerJudge().judge(case))

    assert (found.verdict, found.score, found.has_hallucination) == ("not_attempted", 0.0, False)
