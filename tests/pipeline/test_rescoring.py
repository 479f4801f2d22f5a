"""A regression must not hide on the queries that were judged because a new run differs there."""

import pytest
from ranked_sets import JUDGE

from ragforge.config import EvaluateSettings
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.evaluating.history.run_history import moved
from ragforge.evaluating.history.trends import trend
from ragforge.files.manifest import RunOrigin, digest_file
from ragforge.files.set.history import read_history
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.gating.verdict import check_run
from ragforge.pipeline.history import keep_evaluations, run_histories
from ragforge.records import Chunk, Evidence, Hit, Judgment, Query, Ranking

pytestmark = pytest.mark.slow


N = 40
N_WRONG = 12
"""Queries for which the new run returns other chunks, all of them of no use."""
IDS = [f"q{index:02}" for index in range(N)]
OLD = [f"old{index}" for index in range(5)]
NEW = [f"new{index}" for index in range(5)]
SETTINGS = EvaluateSettings(measures=("RR", "P@5"), rel_threshold=2)
NO_DROP = Rules(drops=(Threshold("RR", 0.02),))


def judged(query_id, chunk_ids, grade):
    return [
        Judgment(
            query_id=query_id, chunk_id=chunk_id, grade=grade, source="judge", provenance=JUDGE
        )
        for chunk_id in chunk_ids
    ]


def ranking(query_id, chunk_ids):
    hits = tuple(Hit(chunk_id=c, score=float(-rank)) for rank, c in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=hits)


@pytest.fixture
def dataset(tmp_path):
    """Forty queries of which the run has the right chunk first; all that it retrieved is judged."""
    made = create_dataset(tmp_path / "set", made_from={"seed": "0"})
    rights = [f"right-{query_id}" for query_id in IDS]
    made.write_chunks(
        [Chunk(chunk_id=c, doc_id="d", text=f"Of {c}.") for c in (*rights, *OLD, *NEW)]
    )
    made.write_queries(
        Query(
            query_id=query_id,
            query=f"What is {query_id}?",
            evidence=(Evidence(doc_id="d", chunk_id=f"right-{query_id}", quote=f"{query_id} is"),),
        )
        for query_id in IDS
    )
    made.write_judgments(
        item
        for query_id in IDS
        for item in [*judged(query_id, [f"right-{query_id}"], 3), *judged(query_id, OLD, 0)]
    )
    made.write_run("bm25", [ranking(q, [f"right-{q}", *OLD[:4]]) for q in IDS])
    return made


@pytest.fixture
def baseline(dataset):
    """The run as it was, kept in the history."""
    [run] = evaluate_runs(dataset, (), SETTINGS)
    keep_evaluations(dataset, [run])
    return run.baseline


def worsen(dataset):
    """Let the run miss on twelve queries, and judge what it returns there: of little use."""
    wrong = IDS[:N_WRONG]
    dataset.write_run(
        "bm25",
        [
            *(ranking(q, NEW) for q in wrong),
            *(ranking(q, [f"right-{q}", *OLD[:4]]) for q in IDS[N_WRONG:]),
        ],
    )
    more = [item for q in wrong for item in judged(q, NEW, 1)]
    dataset.write_judgments([*dataset.judgments(), *more])


def gate(dataset, baseline, rules=NO_DROP, allowed=()):
    [run] = evaluate_runs(dataset, (), SETTINGS)
    return check_run(dataset, run, rules, baseline, allowed)


def without(dataset, *chunk_ids):
    """Take chunks out; a live index still has them, and the run is made on the others anew."""
    dataset.write_chunks(c for c in dataset.chunks() if c.chunk_id not in chunk_ids)
    origin = RunOrigin(chunks_sha256=digest_file(dataset.chunks_path))
    dataset.write_run("bm25", dataset.run("bm25"), origin)


def judge_anew(dataset, query_ids):
    """Find one more relevant chunk for some queries."""
    more = [item for q in query_ids for item in judged(q, ["new0"], 2)]
    dataset.write_judgments([*dataset.judgments(), *more])


def test_a_run_that_fell_where_it_was_judged_anew_fails_the_gate(dataset, baseline):
    """By hand: 12 of 40 queries fell from 1 to 0."""
    worsen(dataset)

    verdict = gate(dataset, baseline)

    assert (verdict.outcome, verdict.checks[0].n) == ("FAIL", N)
    assert verdict.checks[0].value == pytest.approx(-0.3)


def test_the_note_says_how_many_items_were_scored_again(dataset, baseline):
    """Who reads the verdict must know which values are not those that were stored."""
    worsen(dataset)

    [note] = [text for text in gate(dataset, baseline).notes if "scored again" in text]

    assert note.startswith("the grades of 12 items changed since the baseline: its rankings of")


def test_the_history_says_that_the_system_moved(dataset, baseline):
    """`the set moved, not the system` would send people to the wrong place."""
    worsen(dataset)
    [now] = keep_evaluations(dataset, evaluate_runs(dataset, (), SETTINGS))

    bridge = now.bridge["RR"]

    assert (bridge.n, bridge.n_rescored, bridge.n_left_out) == (N, N_WRONG, 0)
    assert trend([baseline.evaluation, now], "RR").verdict == "DEGRADING"
    assert moved(baseline.evaluation, now, "RR").cause == "system"


def test_a_window_is_on_the_grades_of_today(dataset, baseline):
    """The first evaluation of ten was made before anything new was judged."""
    worsen(dataset)
    keep_evaluations(dataset, evaluate_runs(dataset, (), SETTINGS))
    judge_anew(dataset, IDS[-3:])
    keep_evaluations(dataset, evaluate_runs(dataset, (), SETTINGS))

    [found] = run_histories(dataset, read_history(dataset.path), measures=["RR"])

    [window] = found.window
    assert (window.verdict, window.on, window.n) == ("DEGRADING", "same items", N)


def test_an_earlier_ranking_is_measured_on_the_grades_of_now(dataset, baseline):
    """By hand: 2 of the 5 chunks are relevant now, one was before; the run is the same."""
    more = [item for q in IDS for item in judged(q, ["old0"], 2)]
    kept = [item for item in dataset.judgments() if item.chunk_id != "old0"]
    dataset.write_judgments([*kept, *more])

    check = gate(dataset, baseline, Rules(drops=(Threshold("P@5", 0.0),))).checks[0]

    assert (check.outcome, check.value, check.n) == ("PASS", 0.0, N)


def test_the_same_rankings_rule_out_any_drop(dataset, baseline):
    """What does not differ at all needs no statistics."""
    check = gate(dataset, baseline, Rules(drops=(Threshold("RR", 0.0),))).checks[0]

    assert (check.outcome, check.decided, check.decided_on) == ("PASS", 0.0, "identity")


def test_few_items_that_cannot_be_scored_again_count_at_their_worst(dataset, baseline):
    """By hand: two of forty could have been 1 and are 0 now, were a drop hidden there."""
    judge_anew(dataset, IDS[:2])
    gone = [f"right-{q}" for q in IDS[:2]]
    without(dataset, *gone)
    dataset.write_run(
        "bm25",
        [
            *(ranking(q, OLD) for q in IDS[:2]),
            *(ranking(q, [f"right-{q}", *OLD[:4]]) for q in IDS[2:]),
        ],
    )
    rules = Rules(drops=(Threshold("RR", 0.02),), by_point=True)

    verdict = gate(dataset, baseline, rules)

    check = verdict.checks[0]
    assert (check.n, check.value, check.outcome) == (N - 2, 0.0, "FAIL")
    assert check.decided == pytest.approx(-2 / N)
    assert "2 items cannot be compared with the baseline, and count at their worst" in verdict.notes


def test_items_left_out_may_be_allowed_and_are_told(dataset, baseline):
    """Somebody may know that the chunks that went are of no use."""
    judge_anew(dataset, IDS[:2])
    without(dataset, *(f"right-{q}" for q in IDS[:2]))
    rules = Rules(drops=(Threshold("RR", 0.02),), by_point=True)

    verdict = gate(dataset, baseline, rules, ["dataset-change"])

    assert verdict.outcome == "PASS"
    assert any(text.endswith("a drop there would not be seen") for text in verdict.notes)


def test_many_items_that_cannot_be_scored_again_refuse_the_gate(dataset, baseline):
    """On what is left anything could be shown."""
    judge_anew(dataset, IDS[:5])
    without(dataset, *(f"right-{q}" for q in IDS[:5]))

    [refusal] = gate(dataset, baseline).refusals

    assert refusal.flag == "--allow-dataset-change"
    assert refusal.reason.startswith("5 of the 40 items that are the same as in the baseline")


def test_changed_grades_are_not_told_as_changed_items(dataset, baseline):
    """`no item is the same` sends people to look for changed questions."""
    judge_anew(dataset, IDS)
    without(dataset, *(f"right-{q}" for q in IDS))

    [refusal] = gate(dataset, baseline, allowed=["dataset-change"]).refusals

    assert refusal.reason.startswith("no item can be compared with the baseline: their grades")


def test_queries_whose_judgments_are_gone_do_not_vanish(dataset, baseline):
    """A run would pass once nobody knows any more what it misses."""
    worsen(dataset)
    dataset.write_judgments(j for j in dataset.judgments() if j.query_id not in IDS[:N_WRONG])

    refusal = gate(dataset, baseline, allowed=["holes"]).refusals[-1]

    assert refusal.reason.startswith("12 of the 40 items")


def test_a_history_in_which_too_much_cannot_be_scored_again_has_no_verdict(dataset, baseline):
    """An interval of what is left would say something of other items."""
    judge_anew(dataset, IDS[:5])
    without(dataset, *(f"right-{q}" for q in IDS[:5]))
    [now] = keep_evaluations(dataset, evaluate_runs(dataset, (), SETTINGS))

    bridge = now.bridge["RR"]

    assert (bridge.n, bridge.n_left_out, bridge.low) == (N - 5, 5, None)
    assert trend([baseline.evaluation, now], "RR").verdict == "UNKNOWN"
