"""Deciding between two runs with as few judged pairs as it takes."""

import numpy as np
import pytest

from ragforge.errors import DataError, UsageError
from ragforge.measures.sequential import (
    EARLY,
    LAST,
    LEAST_PAIRS,
    SHARES,
    DecidingPairs,
    SequentialDecision,
    drawing_probabilities,
    shares_for,
)

N_QUERIES, N_RANKS = 50, 20


def runs(
    gain: float, seed: int = 1, n_queries: int = N_QUERIES
) -> tuple[DecidingPairs, np.ndarray]:
    """Return the pairs of two runs, of which B finds more by a gain, and all values."""
    generator = np.random.default_rng(seed)
    queries = np.repeat(np.arange(n_queries), N_RANKS).astype(np.intp)
    ranks = np.tile(np.arange(N_RANKS) // 2, n_queries)
    weights = np.tile([-1.0, 1.0], n_queries * N_RANKS // 2) / np.log2(ranks + 2)
    chance = 0.4 + gain * (weights > 0) + generator.normal(0, 0.1, n_queries)[queries]
    values = (generator.random(len(queries)) < chance).astype(float)
    features = np.stack([np.ones(len(queries)), 1 / np.log2(ranks + 2)], axis=1)
    places = generator.random(len(queries))
    return DecidingPairs(queries, weights, features, places, n_queries), values


def decide(pairs: DecidingPairs, values: np.ndarray, known: np.ndarray | None = None):
    """Return the decision and the object that made it."""
    nothing = np.zeros(len(values), dtype=bool)
    decision = SequentialDecision(pairs, SHARES, nothing if known is None else known)
    while True:
        wanted = decision.wanted()
        seen = np.full(len(values), np.nan)
        seen[wanted] = values[wanted]
        decided = decision.look(seen)
        if decided is not None:
            return decided, decision


def mean_difference(pairs: DecidingPairs, values: np.ndarray) -> float:
    """Return B minus A by all values."""
    return float(pairs.weights @ values) / pairs.n_queries


def test_a_clear_winner_takes_a_part_of_the_pairs():
    """That is what it is for."""
    pairs, values = runs(0.4)

    found, _ = decide(pairs, values)

    assert found.outcome == "b"
    assert found.look.n_judged < 0.4 * len(values)
    assert found.low < mean_difference(pairs, values) < found.high


def test_swapped_runs_give_the_other_winner_by_the_same_pairs():
    """Which run is named first decides nothing."""
    pairs, values = runs(0.4)
    swapped = DecidingPairs(
        pairs.queries, -pairs.weights, pairs.features, pairs.places, pairs.n_queries
    )

    found, other = decide(pairs, values)[0], decide(swapped, values)[0]

    assert (found.outcome, other.outcome) == ("b", "a")
    assert found.look.n_judged == other.look.n_judged


def test_all_pairs_give_the_full_difference():
    """The last look is no estimate."""
    pairs, values = runs(0.02, seed=3)
    all_known = np.ones(len(values), dtype=bool)
    decision = SequentialDecision(pairs, (1.0,), all_known)
    decision.wanted()

    found = decision.look(values)

    assert found.look.difference == pytest.approx(mean_difference(pairs, values), abs=1e-12)
    assert found.look.information == 1.0


def test_the_same_places_ask_for_the_same_pairs():
    """A decision that was killed goes on with what it has bought."""
    pairs, values = runs(0.1)

    first, second = (decide(pairs, values)[1].probabilities for _ in range(2))

    assert first.tolist() == second.tolist()


def test_each_look_asks_for_the_pairs_of_the_one_before():
    """What was judged is used."""
    pairs, values = runs(0.05)
    decision = SequentialDecision(pairs, SHARES, np.zeros(len(values), dtype=bool))

    first = set(decision.wanted())
    decision.look(values)
    second = set(decision.wanted())

    assert first < second


def test_runs_without_a_difference_are_rarely_called_different():
    """False winners stay at the five percent that were promised."""
    winners = 0
    for seed in range(300):
        pairs, values = runs(0.0, seed=seed)
        winners += decide(pairs, values)[0].outcome != "tie"

    assert winners / 300 < 0.085


@pytest.mark.parametrize(("n", "outcome"), [(4, "tie"), (5, "tie"), (6, "b")])
def test_few_queries_that_differ_name_a_winner_by_their_signs(n, outcome):
    """By t alone four that all go one way, which is chance in one case of eight, named one."""
    queries = np.repeat(np.arange(n), 2).astype(np.intp)
    weights, values = np.tile([-1.0, 1.0], n), np.tile([0.0, 1.0], n)
    places = np.linspace(0, 0.9, 2 * n)
    pairs = DecidingPairs(queries, weights, np.ones((2 * n, 1)), places, N_QUERIES)

    found, _ = decide(pairs, values)

    assert found.outcome == outcome
    assert (found.low > 0) == (outcome != "tie")


def test_no_winner_is_named_on_few_pairs():
    """Before a hundred pairs the spread is not known."""
    pairs, values = runs(0.6)

    found, _ = decide(pairs, values)

    assert found.look.n_judged >= LEAST_PAIRS


def test_pairs_that_were_graded_before_cost_nothing():
    """A baseline is judged once."""
    pairs, values = runs(0.4)
    known = pairs.weights < 0

    found, _ = decide(pairs, values, known)

    assert found.outcome == "b"
    assert found.look.n_judged < decide(pairs, values)[0].look.n_judged


def test_an_early_winner_has_a_wider_interval_than_a_late_one():
    """Early estimates of winners are too large; the interval allows for it."""
    assert EARLY > LAST


def test_a_pair_whose_judgment_failed_is_not_taken_for_a_zero():
    """A failure is never a value."""
    pairs, values = runs(0.4)
    decision = SequentialDecision(pairs, SHARES, np.zeros(len(values), dtype=bool))
    wanted = decision.wanted()
    seen = np.full(len(values), np.nan)
    seen[wanted[1:]] = values[wanted[1:]]

    decision.look(seen)

    assert decision.looks[0].n_judged == len(wanted) - 1


@pytest.mark.parametrize("grade", [0.0, 1.0, 3.0])
def test_a_judge_who_gives_all_the_same_grade_names_no_winner(grade):
    """Sums of equal grades differ by their rounding, and a sign of that is no finding."""
    decided = [decide(tops(seed), np.full(len(tops(seed).weights), grade))[0] for seed in range(8)]

    assert [each.outcome for each in decided] == ["tie"] * 8
    assert [each.low for each in decided] == [0.0] * 8


def test_a_run_that_is_better_by_the_same_in_every_query_wins():
    """Without any spread there is no t; the signs of fifty queries say enough."""
    pairs, _ = runs(0.0)

    decided, _ = decide(pairs, (pairs.weights > 0).astype(float))

    assert decided.outcome == "b"


def test_grades_that_are_all_alike_are_no_reason_to_stop():
    """The first hundred of a hard set may all be 0, and the difference lie in the others."""
    pairs, values = runs(0.4)
    decision = SequentialDecision(pairs, SHARES, np.zeros(len(values), dtype=bool))
    decided = None
    while decided is None and decision.n_judged < 400:
        decision.wanted()
        decided = decision.look(np.zeros(len(values)))

    assert decided is None


def tops(seed: int) -> DecidingPairs:
    """Return the pairs of two runs that order sixteen texts at random, and show ten."""
    generator = np.random.default_rng(seed)
    discounts = np.append(1 / np.log2(np.arange(2, 12)), np.zeros(6))
    orders = [[generator.permutation(16) for _ in "ab"] for _ in range(60)]
    weights = np.concatenate([discounts[b] - discounts[a] for a, b in orders])
    best = np.concatenate([np.minimum(a, b) for a, b in orders])
    kept = np.abs(weights) > 1e-12
    features = np.stack([np.ones(kept.sum()), 1 / np.log2(best[kept] + 2)], axis=1)
    queries = np.repeat(np.arange(60), 16)[kept]
    return DecidingPairs(queries, weights[kept], features, generator.random(kept.sum()), 60)


@pytest.mark.parametrize(
    ("gain", "allowed", "outcome"),
    [(0.0, 1.0, "passes"), (-0.4, 0.3, "fails"), (0.4, 0.0, "passes")],
)
def test_a_rule_on_a_drop_is_decided_by_a_part(gain, allowed, outcome):
    """Who asks whether a drop is ruled out need not know who is better."""
    pairs, values = runs(gain)

    decided = hold(pairs, values, allowed)

    assert decided.look.n_judged < 0.6 * len(values)
    assert outcome_of(decided, allowed) == outcome


def test_a_rule_ends_as_on_all_pairs_where_a_comparison_would_end_in_a_tie():
    """Runs that are as good are soon a tie; that there is no drop takes more."""
    ends, ties = [], []
    for seed in range(1, 10):
        pairs, values = runs(0.0, seed=seed)
        spread = np.bincount(pairs.queries, weights=pairs.weights * values).std(ddof=1)
        allowed = 2.9 * spread / N_QUERIES**0.5
        ends.append(outcome_of(hold(pairs, values, allowed), allowed))
        ties.append(outcome_of(decide(pairs, values)[0], allowed))

    assert ends == ["passes"] * 9
    assert ties.count("not shown") > 5


def hold(pairs: DecidingPairs, values: np.ndarray, allowed: float):
    """Decide whether B is lower than A by more than is allowed."""
    decision = SequentialDecision(pairs, SHARES, np.zeros(len(values), dtype=bool), allowed)
    while True:
        wanted = decision.wanted()
        seen = np.full(len(values), np.nan)
        seen[wanted] = values[wanted]
        decided = decision.look(seen)
        if decided is not None:
            return decided


def outcome_of(decided, allowed: float) -> str:
    """Return what a gate says."""
    if decided.low >= -allowed:
        return "passes"
    return "fails" if decided.high < 0 else "not shown"


def test_failures_are_bounded_by_the_worst_that_they_could_have_been():
    """What failed is not drawn at random."""
    pairs, values = runs(0.0, seed=5)
    decision = SequentialDecision(pairs, (1.0,), np.zeros(len(values), dtype=bool))
    decision.wanted()
    seen = values.copy()
    seen[:40] = np.nan
    decision.look(seen)
    low, high = decision.bounds(seen, 1.0)

    lifted = [np.where(pairs.weights * sign > 0, 1.0, 0.0) for sign in (-1, 1)]
    ends = [mean_difference(pairs, np.concatenate([each[:40], values[40:]])) for each in lifted]
    assert (low, high) == pytest.approx(tuple(ends))
    assert decision.bounds(values, 1.0) is None


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_probabilities_sum_to_the_share(share):
    """The plan says what a look costs."""
    weights = np.random.default_rng(1).exponential(size=500)

    found = drawing_probabilities(weights, np.zeros(500, dtype=bool), share)

    assert found.sum() == pytest.approx(share * 500)
    assert found.max() <= 1


def test_many_queries_are_looked_at_earlier():
    """At three hundred queries two percent of the pairs tell far runs apart."""
    assert shares_for(300)[0] < shares_for(50)[0]


def test_too_few_queries_are_refused():
    """Their spread decides, and nine do not show it."""
    pairs, values = runs(0.4, n_queries=9)

    with pytest.raises(UsageError, match="9 queries: expected at least 10"):
        SequentialDecision(pairs, SHARES, np.zeros(len(values), dtype=bool))


def test_pairs_that_weigh_nothing_are_refused():
    """They decide nothing and would be paid for."""
    pairs, values = runs(0.4)
    pairs.weights[0] = 0.0

    with pytest.raises(DataError, match="weigh something"):
        SequentialDecision(pairs, SHARES, np.zeros(len(values), dtype=bool))
