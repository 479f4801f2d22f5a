"""What a decision takes, before anything is bought."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from measured_set import make_measured_set

from ragforge.config import EvaluateSettings, Settings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.decision_plan import Spread
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.files.set.opening import open_dataset
from ragforge.llm.store.calls import CallStore
from ragforge.measures.paired import t_test
from ragforge.measures.power import queries_to_show
from ragforge.measures.unseen_values import difference_interval
from ragforge.observe import silent
from ragforge.pipeline.comparing.price import price_of_pairs
from ragforge.pipeline.evaluating import evaluate_dataset
from ragforge.pipeline.job import Job, Mode
from ragforge.pipeline.planning import (
    PlanOptions,
    _Couple,
    _needed,
    plan_decision,
    plan_gate,
    typical_plan,
)
from ragforge.report.plan import gate_plan_line


def planned(dataset, names=(), options=None, job=None):
    options = options or PlanOptions()
    price = asyncio.run(price_of_pairs(dataset, job)) if job else None
    model = job.settings.model.name if job else ""
    return plan_decision(dataset, names, EvaluateSettings(), options, model, price)


@pytest.fixture
def dataset(tmp_path):
    """A judged set of 40 queries with two runs, which differ more in some of them."""
    made = make_measured_set(tmp_path / "set", 40)
    made.write_judgments(
        item.model_copy(update={"grade": int(item.query_id[1:]) % 4})
        if item.chunk_id == "cx"
        else item
        for item in list(made.judgments())
    )
    return open_dataset(tmp_path / "set")


@pytest.mark.parametrize("difference", [0.05, 0.1])
def test_so_many_queries_show_the_difference_as_often_as_was_said(difference):
    """80 % of the sets of that size, where two retrievers truly differ by it."""
    plan = typical_plan(0)
    [row] = [row for row in plan.rows if row.difference == difference]
    generator = np.random.default_rng(3)

    shown = 0
    for _ in range(400):
        diffs = generator.normal(difference, plan.spread.sd, row.queries)
        shown += t_test(np.zeros(row.queries), diffs).p < 0.05

    assert shown / 400 == pytest.approx(0.8, abs=0.06)


def test_runs_of_the_set_tell_their_own_spread(dataset):
    """What two runs showed is worth more than what is typical."""
    plan = planned(dataset)

    assert (set(plan.spread.runs), plan.spread.n_couples) == ({"bad", "good"}, 1)
    assert plan.spread.n == plan.n_queries == 39  # Retrieval failed for the last.
    assert plan.shows is not None
    assert all(row.is_shown == (plan.shows <= row.difference) for row in plan.rows)
    queries = [row.queries for row in plan.rows]
    assert queries == sorted(queries, reverse=True)


def test_the_difference_that_is_shown_takes_the_queries_that_are_there(dataset):
    """Both are of the same spread and power."""
    plan = planned(dataset)
    again = planned(dataset, options=PlanOptions(differences=(plan.shows,)))

    assert again.rows[0].queries == pytest.approx(plan.n_queries, rel=0.1)


def test_the_plan_of_a_gate_goes_by_the_interval_that_it_decides_on(dataset):
    """A drop that is ruled out in four of five samples is larger than the interval reaches down."""
    rules = Rules(drops=(Threshold("RR", 0.4),))
    [plan] = plan_gate(dataset, (), EvaluateSettings(), rules)
    scores = evaluate_dataset(dataset, ["bad", "good"], EvaluateSettings(measures=("RR",))).scores
    bad, good = (scores[name].by_query("RR") for name in ("bad", "good"))
    diffs = np.array([good[query_id] - bad[query_id] for query_id in sorted(good)])
    reach = diffs.mean() - difference_interval(diffs, 0.95, bounded=True).low

    assert plan.shows > 1.2 * reach
    assert plan.passes_unchanged > 0.99
    assert plan.queries < plan.n_queries


def test_a_mean_that_cannot_be_is_not_planned(dataset):
    """No run is 0.1 above 0.99."""
    [plan] = plan_gate(
        dataset, ("good", "bad"), EvaluateSettings(), Rules(least=(Threshold("RR", 0.99),))
    )

    assert (plan.shows, plan.queries) == (None, None)
    assert "of no run whose values spread like these" in gate_plan_line(plan)


def test_a_large_difference_takes_more_queries_than_its_spread_alone_tells():
    """Of differences that hardly spread, the test takes 3 queries; the interval allows for one."""
    diffs = np.linspace(-0.02, 0.02, 40)
    couple = _Couple(Spread(0.012, 40), diffs, frozenset(), None)

    assert queries_to_show(diffs, 0.1) < 5
    assert _needed(couple, couple.spread, 0.1, "nDCG@10") > 15


def test_a_set_without_judged_runs_goes_by_what_is_typical(tmp_path):
    """Planning is for sets that are new."""
    make_measured_set(tmp_path / "set", 12)
    (tmp_path / "set" / "judgments.jsonl").unlink()

    plan = planned(open_dataset(tmp_path / "set"))

    assert (plan.spread.runs, plan.spread.sd, plan.n_queries) == ((), 0.3, 12)
    assert plan.rows == typical_plan(12).rows


def test_a_model_is_priced_and_nothing_is_asked(dataset):
    """A batch endpoint asks half."""
    settings = Settings()
    model = settings.model.model_copy(update={"name": "gpt-4o-mini"})
    job = Job(settings.model_copy(update={"model": model}), silent, Mode(dry_run=True))

    plan = planned(dataset, job=job)

    assert plan.model == "gpt-4o-mini"
    for row in plan.rows:
        assert row.calls == row.pairs
        assert row.cost_usd == pytest.approx(2 * row.cost_batch_usd)
    assert plan.rows[0].cost_usd > plan.rows[-1].cost_usd > 0
    store = CallStore(dataset.path / ".ragforge" / "calls.sqlite")
    assert list(store.rows()) == []
    store.close()


def test_dcg_is_planned_in_its_own_unit():
    """A sum of grades differs by more than a share."""
    assert [row.difference for row in typical_plan(50, "DCG@10").rows] == [0.2, 0.5, 1.0]


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (("one",), PlanOptions(), "expected two runs"),
        (("one", "other"), PlanOptions(), "are of a dataset"),
        ((), PlanOptions(differences=(0.1, -0.1)), "above 0"),
        ((), PlanOptions(measure="ERR@10"), r"what is typical of ERR\(max=3\)@10"),
        ((), PlanOptions(measure="nGCD"), "nDCG"),
    ],
)
def test_what_cannot_be_planned_is_told(names, options, message):
    """A plan for something else would be believed."""
    with pytest.raises(UsageError, match=message):
        planned(None, names, options)


def test_a_run_that_is_not_there_is_told(dataset):
    """It would else be planned by another."""
    with pytest.raises(DataError, match="nobody"):
        planned(dataset, ("nobody", dataset.run_names()[0]))


def test_options_are_usual_where_none_is_named():
    """Callers name differences, or get three."""
    assert PlanOptions().wanted == (0.02, 0.05, 0.10)
    assert replace(PlanOptions(), differences=(0.3, 0.1, 0.3)).wanted == (0.1, 0.3)
