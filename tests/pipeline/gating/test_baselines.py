import subprocess

import pytest
from labelled_sets import graded_set
from ranked_sets import ranked_set

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.evaluating.runs import rank_order
from ragforge.files.set.baseline import write_baseline
from ragforge.pipeline.gating.subjects import find_baseline
from ragforge.pipeline.gating.verdict import check_run, evaluate_for
from ragforge.pipeline.history import keep_evaluations
from ragforge.records import Provenance


def evaluated(dataset):
    return evaluate_for(Rules(), dataset, "now", EvaluateSettings())


@pytest.fixture
def dataset(tmp_path):
    """Thirty queries and one run."""
    return ranked_set(tmp_path / "set", {"now": [1] * 30})


def test_a_file_is_read(dataset, tmp_path):
    """The name is a path unless it is one of two words."""
    run = evaluated(dataset)
    write_baseline(tmp_path / "b.json", run.baseline)

    found = find_baseline(dataset, run, str(tmp_path / "b.json"))

    assert found.items == run.baseline.items


def test_last_is_the_newest_evaluation_of_something_else(dataset, tmp_path):
    """The run was usually evaluated just before the gate, and would be held against itself."""
    before = evaluated(dataset)
    keep_evaluations(dataset, [before])
    now = evaluated(ranked_set(tmp_path / "set", {"now": [2] * 30}))
    keep_evaluations(dataset, [now])

    assert find_baseline(dataset, now, "last").items == before.baseline.items


def test_last_is_what_is_like_now_where_nothing_ever_changed(dataset):
    """The gate of a project that stands still must not end in an error."""
    keep_evaluations(dataset, [evaluated(dataset)])
    keep_evaluations(dataset, [evaluated(dataset)])
    rules = Rules(drops=(Threshold("RR", 0.0),))
    now = evaluate_for(rules, dataset, "now", EvaluateSettings())

    verdict = check_run(dataset, now, rules, find_baseline(dataset, now, "last"))

    assert verdict.outcome == "PASS"
    assert "the rankings are those of the baseline" in verdict.notes
    assert any("this very state: no drop could have been found" in note for note in verdict.notes)


def test_last_without_a_history_is_an_error(dataset):
    """The message must say how to get one."""
    with pytest.raises(DataError, match=r"no earlier evaluation of 'now'.*`ragforge evaluate`"):
        find_baseline(dataset, evaluated(dataset), "last")


def test_main_is_the_file_as_the_branch_has_it(dataset, monkeypatch):
    """A pull request must not bring its own bar."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    run = evaluated(dataset)
    write_baseline(dataset.path / "baseline.json", run.baseline)
    for words in (["init", "-b", "main"], ["add", "baseline.json"], ["commit", "-m", "add"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(
            ["git", *identity, *words], cwd=dataset.path, check=True, capture_output=True
        )
    (dataset.path / "baseline.json").write_text("{}", "utf-8")

    assert find_baseline(dataset, run, "main").items == run.baseline.items


def without_texts_of_now(before):
    """Return a baseline of which two thirds of what it ranked are gone, as in a new version."""
    items = [
        item.model_copy(
            update={"ranking": [f"gone-{c}" if i % 3 else c for i, c in enumerate(item.ranking)]}
        )
        for item in before.items
    ]
    return before.model_copy(update={"items": tuple(items)})


@pytest.mark.parametrize(
    ("labelled", "is_told", "as_of_now"),
    [
        (("a",), True, lambda before: before),
        (("a", "b"), False, lambda before: before),
        (("a", "b"), False, without_texts_of_now),
    ],
)
def test_people_who_graded_the_baseline_alone_are_told(labelled, is_told, as_of_now, tmp_path):
    """A judge that is stricter than they are makes a drop of a run that is as good."""
    made = graded_set(tmp_path / "set")
    rules = Rules(drops=(Threshold("P@10", 0.02),))
    before = evaluate_for(rules, made, "a", EvaluateSettings()).baseline
    tops = {
        (each.query_id, chunk_id)
        for name in labelled
        for each in made.run(name)
        for chunk_id in rank_order(each.ranking)[:10]
    }
    made.add_judgments(
        one.model_copy(update={"source": "human", "provenance": Provenance(kind="human")})
        for one in made.judgments()
        if (one.query_id, one.chunk_id) in tops
    )

    subject = evaluate_for(rules, made, "b", EvaluateSettings())
    verdict = check_run(made, subject, rules, as_of_now(before))

    told = any("a judge the rest" in note for note in verdict.notes)
    assert told is is_told
