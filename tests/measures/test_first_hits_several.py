"""Deciding between several runs by their first hits."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.first_hits import FirstHits
from ragforge.measures.first_hits_several import SeveralFirstHits
from ragforge.measures.sequential import weaker_score

N_QUERIES, DEPTH = 60, 5


def pool(chances, seed=1, n_queries=N_QUERIES):
    """Return lists of runs without a text in common, and which texts are hits."""
    generator = np.random.default_rng(seed)
    shape = (n_queries, len(chances), DEPTH)
    places = np.arange(np.prod(shape)).reshape(shape)
    hits = generator.random(shape) < np.array(chances)[np.newaxis, :, np.newaxis]
    return places.tolist(), hits.reshape(-1).astype(float)


def decision(lists, n, *, by_rank=False, seed=0):
    """Return a decision that starts from nothing."""
    places = np.random.default_rng(seed).random(len(lists))
    return SeveralFirstHits(lists, np.full(n, np.nan), by_rank, places, np.ones(len(lists)))


def decide(lists, values, *, by_rank=False, failed=()):
    """Return the standings and the decision that made them."""
    reading = decision(lists, len(values), by_rank=by_rank)
    seen = np.full(len(values), np.nan)
    while True:
        wanted = reading.wanted()
        seen[wanted] = values[wanted]
        seen[list(failed)] = np.nan
        found = reading.look(seen.copy())
        if found is not None:
            return reading.unless_failed(found, seen, 1.0), reading


@pytest.mark.parametrize("by_rank", [True, False])
def test_what_finds_nothing_is_dropped_and_read_no_further(by_rank):
    """A run that is told to be worse costs nothing more."""
    lists, values = pool([0.5, 0.45, 0.0])

    found, _ = decide(lists, values, by_rank=by_rank)

    assert 2 not in found.may_be_best
    assert {each.run: each.beaten_by for each in found.runs}[2] in (0, 1)
    assert found.n_judged < 0.6 * len(values)


def test_of_two_runs_it_says_what_reading_both_to_the_end_says():
    """Looks before the last cost hardly any power."""
    lists, values = pool([0.3, 0.6], seed=4)
    whole = FirstHits(lists, np.full(len(values), np.nan), by_rank=False)
    told = None
    while told is None:
        whole.wanted()
        told = whole.look(values)

    found, _ = decide(lists, values)

    assert told.outcome == "b"
    assert found.may_be_best == (1,)


def test_equal_runs_are_rarely_told_apart():
    """Of three equal runs one is dropped in five percent at most."""
    dropped = [len(decide(*pool([0.3] * 3, seed=seed))[0].may_be_best) < 3 for seed in range(100)]

    assert np.mean(dropped) < 0.09


def test_the_same_lists_are_not_read():
    """Nothing differs, whatever the texts are worth."""
    lists, values = pool([0.5])
    found, _ = decide([[of[0], of[0], of[0]] for of in lists], values)

    assert (found.n_judged, len(found.may_be_best)) == (0, 3)


def test_a_text_is_asked_for_once():
    """Calls are paid for."""
    lists, values = pool([0.4, 0.5, 0.3])
    reading = decision(lists, len(values))
    asked: list[int] = []
    while True:
        asked.extend(wanted := reading.wanted().tolist())
        if reading.look(np.where(np.isin(np.arange(len(values)), asked), values, np.nan)):
            break
        assert wanted or reading.n_looks

    assert len(asked) == len(set(asked))


def test_a_run_is_not_beaten_where_failures_could_save_it():
    """A judge that refuses the texts of one run does not decide against it."""
    lists, values = pool([0.5, 0.5])
    of_second = [at for of in lists for at in of[1]]

    found, _ = decide(lists, values, failed=of_second)

    assert len(found.may_be_best) == 2


@pytest.mark.parametrize(("n_ahead", "is_told"), [(4, False), (5, False), (6, True)])
def test_few_queries_that_differ_are_told_by_their_signs(n_ahead, is_told):
    """Four of four happen in one of eight, which by t would be less than one of twenty."""
    diffs = np.array([1.0] * n_ahead + [0.0] * (50 - n_ahead))

    assert (weaker_score(diffs) > 1.96) == is_told
    assert weaker_score(-diffs) == pytest.approx(-weaker_score(diffs))


def test_differences_that_rounding_tells_apart_are_of_one_size():
    """Seven of eight by a fifth happen in one of fourteen; 0.6 less 0.4 is no fifth to the bit."""
    ahead = [0.6 - 0.4, 0.8 - 0.6, *[0.2] * 5]
    diffs = np.array([*ahead, -0.2, *[0.0] * 92])

    assert weaker_score(diffs) == pytest.approx(weaker_score(diffs.round(9)))
    assert weaker_score(diffs) < 1.96


def test_a_difference_that_is_the_same_in_all_queries_is_told():
    """Without any spread there is no t."""
    assert weaker_score(np.ones(40)) > 5


def test_texts_without_any_hit_leave_open_what_others_have():
    """A judge who finds nothing in forty queries has not shown that no run is better."""
    lists, _ = pool([0.5, 0.5])
    reading = FirstHits(lists, np.zeros(N_QUERIES * 2 * DEPTH), by_rank=False)
    same = FirstHits([[of[0], of[0]] for of in lists], np.zeros(600), by_rank=False)

    found, alike = reading.look(reading.values), same.look(same.values)

    assert (found.outcome, alike.outcome) == ("tie", "tie")
    assert found.low < -0.04 < 0.04 < found.high
    assert (alike.low, alike.high) == (0.0, 0.0)


def test_too_few_queries_are_refused():
    """Their spread decides."""
    lists, values = pool([0.5, 0.5], n_queries=9)

    with pytest.raises(UsageError, match="9 queries"):
        decision(lists, len(values))
