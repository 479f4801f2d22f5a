"""Where few items are of two judges, they are bounded; where many are, nothing is said."""

import pytest
from two_judges import IDS, NEW, OLD, make_set, rank

from ragforge.config import EvaluateSettings
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.evaluating.history.common_items import RescoringBasis
from ragforge.evaluating.history.trends import bridge
from ragforge.files.set.baseline import values_in
from ragforge.files.set.history import read_history
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.gating.verdict import check_run
from ragforge.pipeline.history import keep_evaluations, run_histories
from ragforge.records import Judgment, Provenance

pytestmark = pytest.mark.slow


LENIENT = Provenance(kind="llm", model="lenient", prompt="judge", prompt_sha256="ab" * 32)
STRICT = LENIENT.model_copy(update={"model": "strict"})
SETTINGS = EvaluateSettings(measures=("nDCG@10", "RR"), rel_threshold=2)


def judged(by_query):
    """Yield a grade of each chunk that either ranking holds, by the judge of its query.

    The strict judge graded the chunks that only the earlier ranking holds, where it is named.
    """
    for query_id, by in by_query.items():
        for name in sorted({*OLD, *NEW}):
            is_strict = by == STRICT and name not in NEW
            worth = int(name[-1])
            yield Judgment(
                query_id=query_id,
                chunk_id=f"{query_id}-{name}",
                grade=max(0, worth - 1) if is_strict else worth,
                provenance=STRICT if is_strict else LENIENT,
            )


def evaluate(dataset, settings=SETTINGS):
    """Evaluate the run and keep it."""
    runs = evaluate_runs(dataset, ["bm25"], settings)
    [kept] = keep_evaluations(dataset, runs)
    return runs[0], kept


@pytest.fixture
def moved(tmp_path):
    """Return what the run comes to where the strict judge graded a part of some queries."""

    def make(n_strict):
        dataset = make_set(tmp_path / "set")
        dataset.write_judgments(judged(dict.fromkeys(IDS, LENIENT)))
        before, _ = evaluate(dataset)
        rank(dataset, NEW)
        by_query = {q: STRICT if n < n_strict else LENIENT for n, q in enumerate(IDS)}
        dataset.write_judgments(judged(by_query))
        return dataset, before, *evaluate(dataset)

    return make


def test_few_items_of_two_judges_widen_the_interval(moved):
    """Left out for nothing, they could hide what moved."""
    _, _, _, whole = moved(0)
    _, _, _, kept = moved(2)

    same, wide = whole.bridge["nDCG@10"], kept.bridge["nDCG@10"]
    assert (same.n, same.n_mixed, wide.n, wide.n_mixed) == (30, 0, 28, 2)
    assert wide.low < same.low
    assert wide.high > same.high


def test_many_items_of_two_judges_leave_no_interval(moved):
    """More than a tenth of the items could say anything."""
    _, _, _, kept = moved(4)

    assert kept.bridge["nDCG@10"].low is None
    assert kept.mixed.measures == {"RR": 4, "nDCG@10": 4}
    assert (kept.mixed.n, kept.mixed.n_pairs, kept.mixed.ask) == (30, 12, LENIENT)


def test_items_that_a_gate_cannot_compare_count_at_their_worst(moved):
    """What another judge said of them may hide a drop."""
    dataset, before, run, _ = moved(2)
    rules = Rules(drops=(Threshold("nDCG@10", 0.0),))

    verdict = check_run(dataset, run, rules, before.baseline, ("grading-change",))
    bought = check_run(*moved(0)[0::2], rules, before.baseline)

    assert "2 items cannot be compared with the baseline, and count at their worst" in verdict.notes
    assert (verdict.outcome, bought.outcome) == ("NOT_SHOWN", "PASS")
    assert verdict.checks[0].value == pytest.approx(bought.checks[0].value, abs=0.01)


def test_values_kept_before_ranks_were_marked_are_not_trusted_past_another_judge(moved):
    """An earlier version did not write down what had a grade: it may be gone."""
    _, before, run, _ = moved(0)
    bare = before.baseline.model_copy(
        update={
            "items": tuple(i.model_copy(update={"graded": None}) for i in before.baseline.items)
        }
    )
    other = tuple(g.model_copy(update={"model": "another"}) for g in bare.evaluation.graders)
    foreign = bare.evaluation.model_copy(update={"graders": other})
    grades = {
        q: {c: grade for c, grade in of.items() if c.split("-")[1] in NEW}
        for q, of in run.qrels.items()
    }
    basis = RescoringBasis(grades, 2, run.evaluation.digests.corpus, "other", dict)

    same = bridge(bare, run.baseline, basis)
    changed = bridge(bare.model_copy(update={"evaluation": foreign}), run.baseline, basis)

    assert (same.mixed, same.means["nDCG@10"].n) == (None, 30)
    assert changed.means.keys() == set()
    assert changed.mixed.n_gone == changed.mixed.n_pairs == 90


def test_the_values_say_which_ranks_had_a_grade(moved):
    """So that a grade that goes is seen to be gone."""
    dataset, _, _, _ = moved(0)
    history = read_history(dataset.home)

    kept = values_in(dataset.home, history, history.evaluations[0])

    assert {item.graded for item in kept.items} == {(1, 2, 3, 4)}


def test_a_state_that_could_not_be_compared_is_passed_over_once_it_can(moved):
    """The newer evaluation of the same ranking is held against the state before both."""
    dataset, _, _, kept = moved(30)
    dataset.write_judgments(judged(dict.fromkeys(IDS, LENIENT)))
    _, again = evaluate(dataset)

    assert again.bridge_to == kept.bridge_to
    [found] = run_histories(dataset, read_history(dataset.home), measures=["nDCG@10"])
    assert found.trends[0].verdict == "IMPROVING"


def test_a_measure_that_an_evaluation_lacks_is_held_against_the_one_before_it(tmp_path):
    """Another measure of the newest evaluation is held against the one in between."""
    dataset = make_set(tmp_path / "set")
    dataset.write_judgments(judged(dict.fromkeys(IDS, LENIENT)))
    _, first = evaluate(dataset)
    rank(dataset, NEW)
    dataset.write_judgments(judged(dict.fromkeys(IDS, STRICT)))
    _, second = evaluate(dataset, SETTINGS.model_copy(update={"measures": ("nDCG@10",)}))
    rank(dataset, OLD)
    evaluate(dataset)

    [found] = run_histories(dataset, read_history(dataset.home), measures=["nDCG@10", "RR"])

    since = [item.since for item in found.trends]
    assert since == [second.evaluation_id, first.evaluation_id]
