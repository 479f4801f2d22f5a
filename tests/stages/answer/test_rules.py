import pytest

from ragforge.stages.answer.cases import Case
from ragforge.stages.answer.rules import equal_values, graded_by_rule, same_text


@pytest.fixture
def by_rule(query):
    """Grade an answer by rule."""

    def go(answer, text="What do whales eat?", **changes):
        return graded_by_rule(Case(query(text, **changes), answer, ("text",)))

    return go


@pytest.mark.parametrize(
    ("answerable", "verdict", "score"), [(True, "not_attempted", 0.0), (False, "correct", 1.0)]
)
@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("I don't know.", "abstention"),
        ("", "empty answer"),
        (" ", "empty answer"),
        ("\u200b", "empty answer"),
        ("\u2060 \ufeff", "empty answer"),
        ("...", "empty answer"),
    ],
)
def test_to_abstain_is_right_only_where_nothing_can_be_known(
    by_rule, answer, rule, answerable, verdict, score
):
    """A system that invents answers to unanswerable questions must score below an honest one."""
    grade = by_rule(answer, answerable=answerable, expected_answer="krill" if answerable else None)

    assert (grade.verdict, grade.score, grade.has_hallucination) == (verdict, score, False)
    assert (grade.rule, grade.provenance.kind) == (rule, "rule")


@pytest.mark.parametrize(
    ("expected", "answer", "rule"),
    [
        ("krill", "The krill.", "exact match"),
        ("1000", "1,000", "equal number"),
        ("14 March 2025", "2025-03-14", "equal date"),
        ("3 km", "3000 m", "equal quantity"),
    ],
)
def test_what_equals_the_expected_answer_is_correct(by_rule, expected, answer, rule):
    """No judge is needed to see that, and whether the context holds it was not checked."""
    grade = by_rule(answer, expected_answer=expected)

    assert (grade.verdict, grade.score, grade.has_hallucination) == ("correct", 1.0, None)
    assert (grade.rule, grade.provenance.kind) == (rule, "rule")


@pytest.mark.parametrize("answer", ["squid", "Blue whales eat krill.", "krill, mostly"])
def test_an_answer_with_other_content_is_left_to_a_judge(by_rule, answer):
    """A rule decides only what needs no reading."""
    assert by_rule(answer, expected_answer="krill") is None


def test_an_unequal_number_is_left_to_a_judge(by_rule):
    """It may be rounded, or count something else: only a reader can tell."""
    assert by_rule("1001", expected_answer="1000") is None


def test_an_answer_to_an_unanswerable_question_is_left_to_a_judge(by_rule):
    """What stands beside such a question is no answer to it."""
    assert by_rule("krill", expected_answer="krill", answerable=False) is None


def test_an_expected_answer_that_reads_like_an_abstention_is_left_to_a_judge(by_rule):
    """`It is not mentioned in the documentation` can be the true answer."""
    answer = "This is not mentioned in the text."

    assert by_rule(answer, expected_answer="Not mentioned in the documentation.") is None


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("It is not mentioned", "not mentioned"),
        ("It is unknown", "Unknown"),
        ("The manufacturer does not say.", "No information is available."),
        ("The policy doesn\u2019t say", "The documents do not say."),
        ("Nobody knows", "I don't know"),
        ("Das wei\u00df niemand.", "Ich wei\u00df es nicht."),
        ("Personne ne le sait.", "Je ne sais pas."),
        ("\u6ca1\u6709\u4eba\u77e5\u9053\u3002", "\u4e0d\u77e5\u9053"),
    ],
)
def test_an_abstention_may_be_what_is_expected(by_rule, expected, answer):
    """A rule that marks a right answer 0 is never looked at again."""
    assert by_rule(answer, expected_answer=expected) is None


@pytest.mark.parametrize("answer", ["???", "***"])
def test_punctuation_may_be_what_is_expected(by_rule, answer):
    """Which sign ends a question is a question too."""
    assert by_rule(answer, expected_answer="?") is None


@pytest.mark.parametrize("answer", ["\U0001f44d", "+", "\u221e"])
def test_signs_are_no_empty_answer(by_rule, answer):
    """They may say all there is to say."""
    assert by_rule(answer, expected_answer="krill") is None


def test_an_expected_abstention_can_be_matched_word_by_word(by_rule):
    """The same words are the same answer, whatever they say."""
    expected = "It is not mentioned in the documentation."

    assert by_rule(expected, expected_answer=expected).rule == "exact match"


def test_an_empty_answer_needs_no_judge(by_rule):
    """Nothing can make it right."""
    grade = by_rule("", expected_answer="The flag is not mentioned in the documentation.")

    assert grade.verdict == "not_attempted"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("krill", "Krill"),
        ("krill", "KRILL!"),
        ("krill", " the  krill. "),
        ("a blue whale", "Blue whale"),
        ("the capital of the Netherlands", "The capital of Netherlands."),
        ("krill", '"Krill."'),
        ("yes", "YES"),
        ("It is", "it is"),
        ("don't", "don\u2019t"),
        ("office", "o\ufb03ce"),
        ("caf\u00e9", "cafe\u0301"),
        ("-5", "\u22125"),
        ("C++", "C++."),
        ("1.5", "1.5."),
        ("东京", "东京。"),
        ("The Who", "The Who"),
    ],
)
def test_the_same_text_written_otherwise_is_the_same(one, other):
    """A call to be told that costs money and may be answered wrongly."""
    assert same_text(one, other)
    assert same_text(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-5", "5"),
        ("C++", "C"),
        ("C#", "C"),
        (".NET", "NET"),
        ("1.5", "15"),
        ("1.5", "1 5"),
        ("10\u2076", "106"),
        ("1\u00bd", "11/2"),
        ("5!", "5"),
        ("vitamin A", "vitamin"),
        ("vitamin A deficiency", "vitamin deficiency"),
        ("a few users", "few users"),
        ("5 mW", "5 MW"),
        ("kB", "KB"),
        ("US", "us"),
        ("__init__", "init"),
        ("f()", "f"),
        ("No access is free", "No, access is free"),
        ("not", "no"),
        ("krill", "krill and squid"),
        ("", ""),
        (".", "."),
        ("the", "the"),
        ("the", "a"),
        ("...", "krill"),
        ("***", "***"),
    ],
)
def test_what_may_be_something_else_is_not_the_same(one, other):
    """A wrong answer that a rule lets pass is never looked at again."""
    assert not same_text(one, other)
    assert not same_text(other, one)


@pytest.mark.parametrize(
    ("expected", "answer", "kind"),
    [
        ("5%", "5 percent.", "quantity"),
        ("1,000", "1 000", "number"),
        ("\u22125", "-5", "number"),
        ("2025-03-14", "2025-03-15", None),
        ("5", "5 km", None),
        ("krill", "krill", None),
    ],
)
def test_values_are_compared_as_what_they_are(expected, answer, kind):
    """Only the same kind of thing can be equal."""
    assert equal_values(expected, answer, "en") == kind
