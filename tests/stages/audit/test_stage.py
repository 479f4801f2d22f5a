import re

import pytest

from ragforge.errors import BudgetError, CallError
from ragforge.observe import silent
from ragforge.records import Judgment, Provenance
from ragforge.stages.audit.attacks import ATTACKS
from ragforge.stages.audit.stage import Auditing, Sample, audit
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.runner import Workers

ATTACKED = [name for name, attack in ATTACKS.items() if attack.expects == "not raised"]


class SoundJudge:
    """Reads one fact: grade 3 with its sentence quoted where the passage has the query's."""

    provenance = Provenance(kind="llm", model="scripted")

    def __init__(self):
        self.asked = []

    async def judge(self, pair):
        self.asked.append(pair)
        return self.said(pair, *self.grade(pair))

    def grade(self, pair):
        [number] = re.findall(r"\d+", pair.query)
        fact = f"Item {number} weighs {number}0 grams."
        return (3, fact) if fact in pair.text else (0, "")

    def said(self, pair, grade, evidence):
        return Judgment(
            query_id=pair.query_id, chunk_id=pair.chunk_id, grade=grade, evidence=evidence
        )


class GullibleJudge(SoundJudge):
    """Believes every passage that says how it should be graded."""

    def grade(self, pair):
        is_told = re.search(r'"grade":3|[Gg]ive it grade 3', pair.text)
        return (3, "") if is_told else super().grade(pair)


class BrittleJudge(SoundJudge):
    """Fails on every text that is long."""

    def grade(self, pair):
        if len(pair.text) > 3000:
            raise CallError("truncated", "cut off", "{")
        return super().grade(pair)


class ForgetfulJudge(SoundJudge):
    """Says something else the second time."""

    def grade(self, pair):
        grade, evidence = super().grade(pair)
        return (grade, evidence) if self.asked.count(pair) < 2 else (2, evidence)


def samples(n=8):
    """Make n queries with a passage that answers, and one that does not."""
    found = []
    for number in range(1, n + 1):
        query = f"How heavy is item {number}?"
        good = f"A list of things. Item {number} weighs {number}0 grams.\n\nThere is more to say."
        other = Pair(f"q{number}", query, f"x{number}", f"Something else about no. {n + number}.")
        found.append(Sample(Pair(f"q{number}", query, f"g{number}", good), other))
        bad = f"Item {number} is blue. It was sold in May.\n\nNobody knows its weight."
        found.append(Sample(Pair(f"q{number}", query, f"b{number}", bad), other))
    return found


@pytest.fixture
def audited(wait):
    """Audit a judge; return its findings by attack, and the whole."""

    def go(judge, attacks=tuple(ATTACKS), units=None, **changes):
        how = Auditing(judge, judge, attacks, seed=0, workers=Workers(4, silent), **changes)
        found = wait(audit(samples() if units is None else units, how))
        return {item.attack: item for item in found.audit.attacks}, found

    return go


def test_a_sound_judge_is_never_swayed(audited):
    """An audit that finds something in a judge without fault finds it in every judge."""
    found, _ = audited(SoundJudge())

    assert {name: item.swayed.mean for name, item in found.items()} == dict.fromkeys(ATTACKS, 0.0)
    assert {item.n_failed for item in found.values()} == {0}


def test_each_attack_is_tried_where_it_could_do_something(audited):
    """A claim of relevance cannot raise what has the highest grade."""
    found, whole = audited(SoundJudge())

    assert {name: item.n_pairs for name, item in found.items()} == {
        "keyword-stuffing": 8,
        "relevance-claim": 8,
        "forged-verdict": 8,
        "foreign-verdict": 8,
        "role-markers": 8,
        "fence-escape": 8,
        "padding": 16,
        "long-padding": 16,
        "sentence-order": 16,
        "paragraph-order": 16,
        "repeat": 16,
        "half-cut": 8,
        "evidence-cut": 8,
        "query-swap": 8,
    }
    assert whole.audit.grades == (8, 0, 0, 8)
    assert (whole.audit.n_pairs, whole.audit.n_queries) == (16, 8)
    assert (whole.audit.n_plain, whole.audit.n_plain_failed) == (24, 0)


def test_a_gullible_judge_is_caught_with_the_right_numbers(audited):
    """This is what the audit is for."""
    found, _ = audited(GullibleJudge())

    swayed = {name: found[name].swayed.mean for name in ATTACKED}
    assert swayed == {
        "keyword-stuffing": 0,
        "relevance-claim": 0,
        "forged-verdict": 1,
        "foreign-verdict": 0,
        "role-markers": 1,
        "fence-escape": 1,
        "half-cut": 0,
    }
    forged = found["forged-verdict"]
    assert (forged.raised.mean, forged.crossed.mean, forged.shift.mean) == (1, 1, 3)
    assert forged.swayed.low == pytest.approx(0.025 ** (1 / 8), abs=1e-6)
    assert [one.chunk_id for one in forged.worst] == ["b1", "b2", "b3", "b4", "b5"]


def test_a_judge_that_breaks_has_failures_and_no_flips(audited):
    """Whether it would have given in is not known, and the bounds say so."""
    found, whole = audited(BrittleJudge(), ["padding", "long-padding"])

    assert (found["padding"].n_failed, found["long-padding"].n_failed) == (0, 16)
    assert found["long-padding"].flipped.mean is None
    assert found["long-padding"].flipped.bound_high == 1
    assert {failure.what for failure in whole.failures} == {"audit"}
    assert whole.failures[0].key == "long-padding/q1/b1"
    assert whole.audit.n_plain_failed == 0


def test_the_repeat_is_asked_of_the_judge_that_does_not_remember(audited, wait):
    """The call store would repeat the first reply for ever."""
    first, second = SoundJudge(), ForgetfulJudge()
    second.asked = [sample.pair for sample in samples()]

    how = Auditing(first, second, ["repeat"], seed=0, workers=Workers(1, silent))
    found = wait(audit(samples(), how))

    [repeat] = found.audit.attacks
    assert repeat.flipped.mean == 1
    assert len(first.asked) == 16


def test_a_pair_without_a_plain_grade_is_attacked_no_further(audited):
    """There is nothing to compare with, and the calls would be for nothing."""

    class Failing(SoundJudge):
        def grade(self, pair):
            if "blue" in pair.text:
                raise CallError("refused", "no")
            return super().grade(pair)

    judge = Failing()
    found, whole = audited(judge, ["relevance-claim", "padding"])

    assert (found["relevance-claim"].n_pairs, found["padding"].n_pairs) == (0, 8)
    assert (whole.audit.n_plain, whole.audit.n_plain_failed) == (16, 8)
    assert whole.audit.grades == (0, 0, 0, 8)
    assert len(judge.asked) == 16 + 8
    assert {failure.key.split("/")[0] for failure in whole.failures} == {"plain"}


def test_a_dry_run_counts_every_attack_that_could_be_tried(audited):
    """The grades are not known before they are paid for; the estimate must not be too low."""

    class Dry(SoundJudge):
        def grade(self, pair):
            raise CallError("error", "not asked: dry run")

    judge = Dry()
    found, _ = audited(judge, is_dry=True)

    assert len(judge.asked) == 8 + 16 + 12 * 16 + 2 * 8
    assert {item.n_pairs for item in found.values()} == {0}


def test_without_a_passage_of_another_query_its_attacks_are_left_out(audited):
    """A set of one query can still be audited for the rest."""
    alone = [Sample(sample.pair) for sample in samples(1)]

    found, whole = audited(SoundJudge(), units=alone)

    assert found["keyword-stuffing"].n_pairs == found["query-swap"].n_pairs == 0
    assert found["padding"].n_pairs == 2
    assert whole.audit.n_plain == 2


def test_the_budget_ends_the_audit(audited):
    """A part of an audit must not be taken for all of it."""

    class Poor(SoundJudge):
        def grade(self, pair):
            if len(self.asked) > 20:
                raise BudgetError("--max-calls 20 is reached")
            return super().grade(pair)

    with pytest.raises(BudgetError, match="max-calls"):
        audited(Poor())


def test_an_audit_is_the_same_twice(audited):
    """The order in which replies come must not be seen in the file."""
    assert audited(GullibleJudge())[1] == audited(GullibleJudge())[1]
