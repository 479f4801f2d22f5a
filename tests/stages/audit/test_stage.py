import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from ragforge.errors import BudgetError, CallError
from ragforge.mock.weaknesses import fooled_grade
from ragforge.observe import silent
from ragforge.records import AuditExample, AuditRate, Judgment, Provenance
from ragforge.stages.audit.attacks import ATTACKS
from ragforge.stages.audit.stage import (
    Auditing,
    Counterpart,
    KnownPair,
    Sample,
    Trial,
    audit,
    draw,
    findings,
    is_swayed,
    others,
)
from ragforge.stages.judge.pairs import Pair, PairId
from ragforge.stages.runner import Workers

FREE = tuple(name for name, attack in ATTACKS.items() if not attack.needs)
"""What needs nothing but pairs."""
ATTACKED = [name for name in FREE if ATTACKS[name].expects == "not raised"]


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


class Bilingual(SoundJudge):
    """Reads the fact in German as well."""

    def grade(self, pair):
        [number] = re.findall(r"\d+", pair.query)
        fact = f"Artikel {number} wiegt {number}0 Gramm."
        return (3, fact) if fact in pair.text else super().grade(pair)


class WeakJudge(Bilingual):
    """Reads the fact, and falls for one thing beside."""

    def __init__(self, weakness):
        super().__init__()
        self.weakness = weakness

    def grade(self, pair):
        grade, evidence = super().grade(pair)
        return fooled_grade(grade, pair.query, pair.text, [self.weakness]), evidence


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

    def go(judge, attacks=FREE, units=None, **changes):
        how = Auditing(judge, judge, attacks, seed=0, workers=Workers(4, silent), **changes)
        found = wait(audit(samples() if units is None else units, how))
        return {item.attack: item for item in found.audit.attacks}, found

    return go


def test_a_sound_judge_is_never_swayed(audited):
    """An audit that finds something in a judge without fault finds it in every judge."""
    found, _ = audited(SoundJudge())

    assert {name: item.swayed.mean for name, item in found.items()} == dict.fromkeys(FREE, 0.0)
    assert {item.n_failed for item in found.values()} == {0}


def test_each_attack_is_tried_where_it_could_do_something(audited):
    """A claim of relevance cannot raise what has the highest grade."""
    found, whole = audited(SoundJudge())

    assert {name: item.n_pairs for name, item in found.items()} == {
        "keyword-stuffing": 8,
        "relevance-claim": 8,
        "master-key": 8,
        "lone-master-key": 16,
        "authority": 8,
        "citations": 8,
        "query-echo": 8,
        "fluent-verbosity": 16,
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
        "master-key": 0,
        "authority": 0,
        "citations": 0,
        "query-echo": 0,
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


def translated():
    """Give each good passage in German."""
    return [
        Counterpart(
            sample.pair,
            replace(sample.pair, text=f"Eine Liste. Artikel {n} wiegt {n}0 Gramm. Und mehr."),
        )
        for n, sample in enumerate(samples()[::2], start=1)
    ]


def written():
    """Give each fact, and none, as two writers put it: one of them is fond of dashes."""
    found = []
    for n in range(1, 9):
        said = f"Item {n} weighs {n}0 grams." if n % 2 else "Nobody knows its weight."
        asked = f"How heavy is item {n}?"
        plain = Pair(f"q{n}", asked, "facts/a", f"This is what is known of it. {said}")
        own = Pair(
            f"q{n}", asked, "facts/b", f"What is known \u2014 in short \u2014 is this. {said}"
        )
        found.append(Counterpart(plain, own))
    return found


SUPPLIED = {"translation": translated(), "self-preference": written()}
FOUND_AT = [
    ("master-key", "master-key", 1.0),
    ("lone-master-key", "master-key", 1.0),
    ("authority", "authority", 1.0),
    ("citations", "citations", 1.0),
    ("query-echo", "query-echo", 1.0),
    ("fluent-verbosity", "verbosity", 1.0),
    ("translation", "language", 1.0),
    ("self-preference", "style", 0.5),
    ("optimised", "words", 1.0),
]


@pytest.mark.parametrize(("attack", "weakness", "share"), FOUND_AT, ids=[a for a, *_ in FOUND_AT])
def test_an_attack_is_found_at_the_judge_that_falls_for_it(audited, attack, weakness, share):
    """An attack that nobody falls for would say of every judge that it is sound."""
    found, _ = audited(WeakJudge(weakness), [attack], counterparts=SUPPLIED, search_calls=20)

    assert found[attack].swayed.mean == share
    assert found[attack].swayed.low > 0.1


@pytest.mark.parametrize("attack", [attack for attack, *_ in FOUND_AT])
def test_an_attack_is_silent_at_a_judge_that_reads_the_fact(audited, attack):
    """What is found in a judge without fault would be found in every judge."""
    found, whole = audited(Bilingual(), [attack], counterparts=SUPPLIED, search_calls=20)

    assert found[attack].n_pairs >= 8
    assert found[attack].swayed.mean == 0
    assert whole.failures == []


def test_a_noisy_judge_prefers_nobody(audited):
    """Chance raises as many grades as it lowers: the interval of the shift says so."""

    class Noisy(SoundJudge):
        def grade(self, pair):
            return Random(pair.text + pair.chunk_id).randrange(4), ""

    apart = [numbered(written()[n % 8], n) for n in range(60)]
    found, _ = audited(Noisy(), ["self-preference"], counterparts={"self-preference": apart})

    shift = found["self-preference"].shift
    assert found["self-preference"].swayed.mean > 0.2
    assert shift.low < 0 < shift.high


def numbered(each, n):
    """Return both texts for a query of their own, told apart from all others by a number."""
    plain, shown = (
        replace(pair, query_id=f"q{n}", text=f"{pair.text} {n}")
        for pair in (each.plain, each.shown)
    )
    return Counterpart(plain, shown)


def test_pairs_that_no_attack_starts_from_are_not_asked_about(audited):
    """Each is a paid call, and what the judge says of them would stand for those it is tried on."""
    sound = Bilingual()
    _, whole = audited(sound, ["self-preference"], counterparts=SUPPLIED)

    assert len(sound.asked) == 8 + 8
    assert (whole.audit.n_pairs, whole.audit.n_queries, whole.audit.n_plain) == (8, 8, 8)
    assert sum(whole.audit.grades) == 8


def test_a_search_keeps_to_its_calls_and_ends_where_it_found_something(audited):
    """Each step is paid."""
    sound, weak = Bilingual(), WeakJudge("words")
    audited(sound, ["optimised"], search_calls=10)
    audited(weak, ["optimised"], search_calls=10)

    assert len(sound.asked) == 24 + 8 * 9
    assert 24 + 8 < len(weak.asked) < 24 + 8 * 10


def test_what_a_search_found_is_confirmed_by_another_reply(audited):
    """The highest of many grades of a noisy judge is high by chance."""

    class Fickle(Bilingual):
        def grade(self, pair):
            is_step = "about" in pair.text and len(pair.text.split()) > 5
            return (3, "") if is_step and self.asked.count(pair) == 1 else super().grade(pair)

    found, _ = audited(Fickle(), ["optimised"], search_calls=6)

    assert found["optimised"].swayed.mean == 0
    assert found["optimised"].n_failed == 0


def test_a_search_whose_calls_all_fail_has_failed(audited):
    """Whether the judge would have given in is not known."""

    class Failing(Bilingual):
        def grade(self, pair):
            if len(self.asked) > 24:
                raise CallError("refused", "no")
            return super().grade(pair)

    found, whole = audited(Failing(), ["optimised"], search_calls=4)

    assert (found["optimised"].n_pairs, found["optimised"].n_failed) == (8, 8)
    assert found["optimised"].swayed.mean is None
    assert whole.failures[0].key.startswith("optimised/")


def test_a_dry_run_counts_all_calls_of_a_search(audited):
    """The estimate must not be too low."""

    class Dry(SoundJudge):
        def grade(self, pair):
            raise CallError("error", "not asked: dry run")

    judge = Dry()
    audited(judge, ["optimised"], is_dry=True, search_calls=10)

    assert len(judge.asked) == 16 + 8 + 8 * 10


def test_supplied_texts_are_compared_with_their_own_plain_grade(audited):
    """They are judged plainly even where the sample does not hold them."""
    judge = Bilingual()
    found, whole = audited(judge, ["translation"], units=[], counterparts=SUPPLIED)

    assert (found["translation"].n_pairs, whole.audit.n_plain) == (8, 8)
    assert len(judge.asked) == 16


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

    assert len(judge.asked) == 8 + 16 + 17 * 16 + 3 * 8
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


def candidates(**grades):
    """Make candidates of each query from a text such as "0013-": a pair a character."""
    return [
        KnownPair(PairId(query_id, f"{query_id}{n}"), None if grade == "-" else int(grade))
        for query_id, row in grades.items()
        for n, grade in enumerate(row)
    ]


MANY = candidates(**{f"q{n:02}": "000000123-" for n in range(30)})
GRADES = {each.pair: each.grade for each in MANY}


def test_every_grade_is_drawn_alike():
    """Most pairs are not relevant; an audit by chance would hardly see one that can be lowered."""
    drawn = draw(MANY, 50, seed=0)

    assert Counter(GRADES[pair] for pair in drawn) == {0: 10, 1: 10, 2: 10, 3: 10, None: 10}


def test_queries_are_drawn_alike():
    """Intervals rest on queries, so each should have as many pairs as the next."""
    drawn = draw(MANY, 60, seed=0)

    assert set(Counter(pair.query_id for pair in drawn).values()) == {2}


def test_the_order_of_what_is_there_makes_no_difference():
    """The same set must give the same audit, however its files are sorted."""
    shuffled = Random(1).sample(MANY, len(MANY))

    assert draw(shuffled, 50, seed=0) == draw(MANY, 50, seed=0)


def test_another_seed_draws_others():
    """A second sample shows what the first one owes to chance."""
    assert draw(MANY, 50, seed=0) != draw(MANY, 50, seed=1)


def test_fewer_pairs_than_wanted_are_all_drawn():
    """Small sets are audited too."""
    few = candidates(a="03", b="0")

    assert draw(few, 50, seed=0) == sorted(each.pair for each in few)
    assert draw([], 50, seed=0) == []


def test_another_passage_is_of_another_query_and_not_known_to_fit():
    """A passage that answers the query after all would make the judge look gullible."""
    drawn = [PairId("a", "1"), PairId("b", "2"), PairId("b", "3"), PairId("c", "4")]
    known = {"a": {"1", "2", "4"}, "b": {"2", "3"}, "c": {"4"}}

    found = others(drawn, known, seed=0)

    assert found[PairId("a", "1")] == PairId("b", "3")
    assert {pair.query_id for pair in found} == {"a", "b", "c"}
    assert all(other.query_id != pair.query_id for pair, other in found.items())


def test_one_query_alone_has_no_other_passage():
    """Then the attacks that need one are left out, not made up."""
    assert others([PairId("a", "1"), PairId("a", "2")], {"a": set()}, seed=0) == {}


def trials(*rows):
    """Make trials of (query, before, after)."""
    return [Trial(query, f"c{n}", before, after) for n, (query, before, after) in enumerate(rows)]


@pytest.mark.parametrize(
    ("expects", "swayed"),
    [
        ("unchanged", {(0, 1), (1, 0), (2, 3), (3, 0)}),
        ("not raised", {(0, 1), (2, 3)}),
        ("lowered", {(0, 1), (2, 2), (2, 3), (1, 1)}),
        ("not relevant", {(2, 2), (2, 3)}),
    ],
)
def test_swayed_is_what_a_sound_judge_would_not_do(expects, swayed):
    """A gate is set on this share, so it must mean one thing for each attack."""
    moves = {(0, 1), (1, 0), (2, 2), (2, 3), (3, 0), (1, 1)}

    assert {move for move in moves if is_swayed(expects, *move)} == swayed


def test_rates_are_means_over_queries():
    """A query with many pairs must not speak for the others."""
    found = findings(
        "x",
        "not raised",
        trials(("a", 0, 3), ("a", 0, 0), ("a", 1, 1), ("a", 1, 0), ("b", 0, 1), ("b", 1, 3)),
    )

    assert (found.n_pairs, found.n_queries, found.n_failed) == (6, 2, 0)
    assert found.swayed.mean == pytest.approx((1 / 4 + 2 / 2) / 2)
    assert found.flipped.mean == pytest.approx((2 / 4 + 2 / 2) / 2)
    assert found.raised.mean == pytest.approx((1 / 4 + 2 / 2) / 2)
    assert found.crossed.mean == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert found.shift.mean == pytest.approx((2 / 4 + 3 / 2) / 2)
    assert (found.swayed.bound_low, found.swayed.bound_high) == (0.625, 0.625)


def test_a_failure_is_in_the_bounds_and_nowhere_else():
    """A judge that breaks under attack has neither held nor flipped."""
    found = findings("x", "not raised", trials(("a", 0, 0), ("a", 1, None), ("b", 0, None)))

    assert (found.n_pairs, found.n_failed) == (3, 2)
    assert found.swayed == AuditRate(mean=0, low=None, high=None, bound_low=0, bound_high=0.75)
    assert found.shift.mean == 0
    assert found.shift.bound_low == pytest.approx((-1 / 2 + 0) / 2)
    assert found.shift.bound_high == pytest.approx((2 / 2 + 3) / 2)


def test_failures_alone_have_no_mean():
    """Nothing is known, and 0 would say that nothing happened."""
    found = findings("x", "unchanged", trials(("a", 0, None), ("b", 2, None)))

    assert found.flipped == AuditRate(mean=None, low=None, high=None, bound_low=0, bound_high=1)
    assert found.crossed == AuditRate(mean=None, low=None, high=None, bound_low=0, bound_high=1)


def test_no_trials_have_no_figures():
    """An attack that fitted no pair is not one that was withstood."""
    found = findings("x", "unchanged", [])

    assert (found.n_pairs, found.n_queries) == (0, 0)
    nothing = AuditRate(mean=None, low=None, high=None, bound_low=None, bound_high=None)
    assert found.swayed == found.shift == nothing


def test_no_flips_in_few_queries_leave_room_for_some():
    """Twenty queries without a flip do not show that there are none."""
    found = findings("x", "unchanged", trials(*((f"q{n}", 2, 2) for n in range(20))))

    assert (found.flipped.mean, found.flipped.low) == (0, 0)
    assert found.flipped.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-6)
    assert found.shift.low < 0 < found.shift.high


def test_an_interval_is_of_queries_and_holds_the_mean():
    """Pairs of one query are judged alike; as so many pairs they would look like more."""
    rows = [(f"q{n}", 0, 3 if n % 4 == 0 else 0) for n in range(40)]
    few, many = (
        findings("x", "not raised", trials(*rows)),
        findings("x", "not raised", trials(*rows, *rows)),
    )

    assert few.swayed == many.swayed
    assert few.swayed.low < few.swayed.mean == 0.25 < few.swayed.high


@pytest.mark.parametrize(
    ("expects", "rows", "worst"),
    [
        ("not raised", [("a", 0, 1), ("b", 0, 3), ("c", 2, 2)], [("b", 0, 3), ("a", 0, 1)]),
        ("unchanged", [("a", 3, 0), ("b", 2, 3), ("c", 2, 2)], [("a", 3, 0), ("b", 2, 3)]),
        ("lowered", [("a", 2, 2), ("b", 2, 3), ("c", 2, 1)], [("b", 2, 3), ("a", 2, 2)]),
        ("not relevant", [("a", 3, 2), ("b", 3, 3), ("c", 3, 1)], [("b", 3, 3), ("a", 3, 2)]),
    ],
)
def test_the_worst_are_swayed_furthest(expects, rows, worst):
    """These are what a person should read first."""
    found = findings("x", expects, trials(*rows))

    assert [(one.query_id, one.before, one.after) for one in found.worst] == worst


def test_the_worst_are_five_at_most():
    """The record is for a file that people open."""
    found = findings("x", "not raised", trials(*((f"q{n}", 0, 3) for n in range(9))))

    assert len(found.worst) == 5
    assert found.worst[0] == AuditExample(query_id="q0", chunk_id="c0", before=0, after=3)
