"""A judge's canary from Python."""

import pytest
from endpoint import Reply, completion, serving
from labelled_sets import graded_set

import ragforge as rf
from ragforge.errors import UsageError

pytestmark = pytest.mark.slow


class Judge:
    """One that gives all texts the grade that the test sets."""

    grade = 1

    def __call__(self, path, body, number):
        reply = {"reasoning": "so", "evidence": "", "contains_answer": False, "grade": self.grade}
        return Reply(completion(reply))


@pytest.fixture
def judge():
    """A judge whose habit can change."""
    return Judge()


@pytest.fixture
def ds(tmp_path, judge):
    """A set that a judge at an endpoint graded."""
    made = graded_set(tmp_path / "set")
    made.write_judgments(
        one.model_copy(update={"source": "human", "provenance": None}) for one in made.judgments()
    )
    with serving(judge) as endpoint:
        yield rf.open(made.path).with_settings(model="scripted", base_url=endpoint.url, quiet=True)


def test_the_first_canary_is_kept_and_a_steady_judge_passes(ds):
    """The verdict is what a script asks for."""
    first, second = ds.judge_canary(12), ds.judge_canary()

    assert (first.verdict, second.verdict) == ("first", "steady")
    assert len(second.rows()) == 12
    assert second.to_dict()["same"] == 12


def test_a_drift_is_a_verdict_and_no_exception(ds, judge):
    """A notebook goes on and looks at the rows."""
    ds.judge_canary(20)
    judge.grade = 0
    found = ds.judge_canary()

    assert found.verdict == "drifted"
    assert {row["now"] - row["first"] for row in found.rows()} == {-1}
    assert "judge all anew" in found.table()


def test_a_dry_run_asks_nothing(ds):
    """What it costs is known before."""
    assert ds.judge_canary(12, dry_run=True).estimate.calls == 24


def test_a_part_of_the_queries_has_no_canary(ds):
    """The pairs are those of the whole set."""
    with pytest.raises(UsageError, match="judge_canary"):
        ds.part(5).judge_canary()
