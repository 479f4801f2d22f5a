from dataclasses import replace

import pytest
from checker import QUOTE, Checker, anchored, reading, shown, verdict, verdicts

from ragforge.stages.generate.checks.batches import Proof, item_of
from ragforge.stages.generate.checks.questions import (
    EvidenceReply,
    GivenAnswer,
    QuestionVerdict,
    agrees_by_rule,
    broken_question,
    broken_reading,
    distinct_readings,
    is_enough,
    known_answer,
    measured_difficulty,
    steps_left_out,
)

QUESTION = "How is the limit set?"


def said(**changes):
    fields = verdict({"id": "a", "question": QUESTION}, **changes)
    return QuestionVerdict.model_validate(fields)


@pytest.mark.parametrize(
    ("readings", "count"),
    [
        (["the limit of the pool", "the limit of retries"], 2),
        (["the limit of the pool", "The limit of the POOL."], 1),
        (["the limit of the pool", QUESTION], 1),
        ([QUESTION, "how is the limit set"], 0),
        (["the limit of the pool", "", "--"], 1),
    ],
)
def test_readings_count_once_and_by_what_they_add(readings, count):
    """A model that repeats itself has found no second meaning."""
    assert len(distinct_readings(said(readings=readings), QUESTION)) == count


@pytest.mark.parametrize("readings", [["the pool"], ["the pool", "the pool"], [QUESTION, "pools"]])
def test_one_reading_in_two_lines_is_not_ambiguous(readings):
    """The gate asks for two different things that can be meant."""

    def say(request):
        entries = shown(request, "questions")
        return {"questions": [verdict(each, readings=readings) for each in entries]}

    checked = Checker({"questions_check": say})(anchored(type="ambiguous", question=QUESTION))

    assert verdicts(checked) == {"ambiguity": "fail"}


@pytest.mark.parametrize("missing", ["", " ", "None", "none.", "Nothing", "N/A", "-", "null"])
def test_nothing_is_missing_however_it_is_said(missing):
    """Models fill in what may stay empty."""
    assert broken_question(said(missing=missing)) is None


@pytest.mark.parametrize("answer", ["unknown", "Unknown.", "I don't know.", "N/A"])
def test_who_says_that_it_does_not_know_knows_no_answer(answer):
    """A comparison would be paid for nothing."""
    assert known_answer(said(answer=answer), QUESTION) == ""


def test_none_may_be_an_answer():
    """It is the default of many a setting."""
    assert known_answer(said(answer="None"), QUESTION) == "None"


def test_keywords_are_shown_as_such():
    """They need not be a sentence to be clear."""
    checker = Checker()
    checker(anchored(0, type="keyword"), anchored(1))

    entries = shown(checker.model.asked[0], "questions")
    assert [entry["kind"] for entry in entries] == ["keywords", "question"]


def test_what_is_ambiguous_is_not_told():
    """A model that is told finds as many meanings as it is to find."""
    checker = Checker()
    checker(anchored(0, type="ambiguous"), anchored(1, type="false_premise"))

    assert {entry["kind"] for entry in shown(checker.model.asked[0], "questions")} == {"question"}


ONE, TWO, THREE = "Model A has port 80.", "Port 80 is slow.", "Slow ports are closed."


def left_out(*proofs):
    return [(name, [proof.text for proof in rest]) for name, rest in steps_left_out(proofs)]


def test_each_hop_is_left_out_with_all_its_quotes():
    """A step that two quotes give is still there when one of them goes."""
    proofs = [Proof(ONE, hop=1), Proof(TWO, hop=2), Proof(THREE, hop=2)]

    assert left_out(*proofs) == [("hop 1", [TWO, THREE]), ("hop 2", [ONE])]


def test_quotes_of_one_hop_are_steps_of_their_own():
    """Both may come from one passage, which makes them one hop."""
    assert left_out(Proof(ONE), Proof(TWO)) == [("quote 1", [TWO]), ("quote 2", [ONE])]


@pytest.mark.parametrize("proofs", [[], [Proof(ONE)], [Proof(ONE), Proof(ONE)]])
def test_one_step_cannot_be_left_out(proofs):
    """What is left would be nothing."""
    assert left_out(*proofs) == []


def test_a_quote_may_come_from_any_of_the_evidence():
    """The answer often stands in the last step."""
    said = EvidenceReply(quote="is slow", premise="ok", answerable="yes", answer="slowly")

    assert broken_reading(said, "How fast?", [Proof(ONE), Proof(TWO)]) is None


@pytest.mark.parametrize(
    "answer", ["", "unknown", "The quotes do not say.", "Not stated in the evidence."]
)
def test_a_no_may_be_put_in_words(answer):
    """Models like to say why they say nothing."""
    said = EvidenceReply(quote="", premise="ok", answerable="no", answer=answer)

    assert broken_reading(said, "How fast?", [Proof(ONE)]) is None


def test_none_may_be_read_from_evidence():
    """It is the default of many a setting."""
    said = EvidenceReply(quote="default is None", premise="ok", answerable="yes", answer="None")

    assert broken_reading(said, "What is it?", [Proof("The default is None.")]) is None


@pytest.mark.parametrize("answerable", ["yes", "no"])
def test_a_correction_counts_whether_or_not_it_is_called_an_answer(answerable):
    """Both can be said of a question that cannot be answered as it is put."""

    def say(request):
        return {**reading(request), "premise": "wrong", "answerable": answerable}

    checked = Checker({"evidence_answer": say})(anchored(type="false_premise"))

    assert verdicts(checked)["premise"] == "pass"


def test_a_candidate_without_evidence_is_no_pass():
    """There is nothing that could prove it."""
    checker = Checker()
    checked = checker(replace(anchored(), evidence=()))

    assert checked.rejection.code == "independent_answer_unknown"
    assert "no evidence" in checked.rejection.reason
    assert checker.schemas == ["questions_check"]


def test_hidden_characters_of_a_quote_make_no_difference():
    """A model cannot copy what it does not see."""
    checked = Checker()(anchored(quotes=[QUOTE.replace("time", "ti\u200bme")]))

    assert checked.passed


@pytest.mark.parametrize(
    ("rank", "agreement", "difficulty"),
    [
        (1, "agrees", "easy"),
        (3, "agrees", "easy"),
        (4, "agrees", "medium"),
        (10, "agrees", "medium"),
        (11, "agrees", "hard"),
        (None, "agrees", "hard"),
        (1, "in part", "medium"),
        (4, "in part", "hard"),
        (1, "differs", "hard"),
        (None, "differs", "hard"),
    ],
)
def test_a_query_is_as_hard_as_its_evidence_is_to_find_and_to_read(rank, agreement, difficulty):
    """The writer's word for it is a guess; these two were measured."""
    assert measured_difficulty(rank, 20, agreement) == difficulty


@pytest.mark.parametrize(
    ("rank", "depth", "agreement"),
    [(1, 10, "unknown"), (None, 0, "agrees"), (1, 0, "agrees"), (None, 9, "agrees")],
)
def test_what_was_not_measured_has_no_difficulty(rank, depth, agreement):
    """Evidence that is not in the first five may be the sixth."""
    assert measured_difficulty(rank, depth, agreement) is None


@pytest.mark.parametrize(
    ("expected", "answer", "language", "agrees"),
    [
        ("5 seconds", "5,000 ms", "en", True),
        ("1.5 km", "1,5 km", "de", True),
        ("1.5 km", "1,5 km", "en", False),
        ("March 3, 2025", "2025-03-03", "en", True),
        ("The HTTP proxy", "HTTP proxy", "en", True),
        ("5 seconds", "5 minutes", "en", False),
        ("5 seconds", "5", "en", False),
        ("", "", "en", False),
        (".", ".", "en", False),
        ("10⁶", "106", "en", False),
    ],
)
def test_only_what_is_certain_is_decided_by_rule(expected, answer, language, agrees):
    """The rest is read by a model."""
    item = item_of(anchored(answer=expected, language=language))

    assert agrees_by_rule(GivenAnswer(item, answer)) is agrees


@pytest.mark.parametrize("kind", ["fact", "temporal", "multi_hop", "false_premise", None])
def test_of_one_thing_a_part_is_not_enough(kind):
    """The expected answer then says more than is asked, or less."""
    assert not is_enough("in part", kind)


@pytest.mark.parametrize("kind", ["list", "fact"])
def test_an_answer_that_differs_is_never_enough(kind):
    """Whatever the type."""
    assert not is_enough("differs", kind)
