from dataclasses import replace

import pytest
from checker import QUOTE, Checker, anchored, reading, verdicts

from ragforge.stages.generate.checks.batches import Proof
from ragforge.stages.generate.checks.evidence import EvidenceReply, broken_rule, steps_left_out

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

    assert broken_rule(said, "How fast?", [Proof(ONE), Proof(TWO)]) is None


@pytest.mark.parametrize(
    "answer", ["", "unknown", "The quotes do not say.", "Not stated in the evidence."]
)
def test_a_no_may_be_put_in_words(answer):
    """Models like to say why they say nothing."""
    said = EvidenceReply(quote="", premise="ok", answerable="no", answer=answer)

    assert broken_rule(said, "How fast?", [Proof(ONE)]) is None


def test_none_may_be_an_answer():
    """It is the default of many a setting."""
    said = EvidenceReply(quote="default is None", premise="ok", answerable="yes", answer="None")

    assert broken_rule(said, "What is it?", [Proof("The default is None.")]) is None


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
