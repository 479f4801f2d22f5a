import subprocess
import sys
from types import ModuleType

import pytest


class FakeTask:
    """Stands for a BashOperator."""

    made = ()

    def __init__(self, **given):
        self.given = given
        self.followed_by = []
        type(self).made += (self,)

    def __rshift__(self, other):
        self.followed_by.append(other.given["task_id"])
        return other


class FakeDag:
    """Stands for a DAG."""

    made = ()

    def __init__(self, **given):
        self.given = given
        type(self).made += (self,)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return None


@pytest.fixture
def dag(scheduled, monkeypatch):
    """The DAG and its tasks by id, without Airflow."""
    names = ["", ".sdk", ".providers", ".providers.standard", ".providers.standard.operators"]
    bash = ModuleType("airflow.providers.standard.operators.bash")
    bash.BashOperator = type("Task", (FakeTask,), {})
    for name in names:
        monkeypatch.setitem(sys.modules, f"airflow{name}", ModuleType(f"airflow{name}"))
    monkeypatch.setitem(sys.modules, bash.__name__, bash)
    sys.modules["airflow.sdk"].DAG = type("Dag", (FakeDag,), {})
    text = scheduled("airflow", "--time", "04:05")
    exec(compile(text, "ragforge_nightly.py", "exec"), {"__name__": "ragforge_nightly"})
    [made] = sys.modules["airflow.sdk"].DAG.made
    return made.given, {task.given["task_id"]: task for task in bash.BashOperator.made}


def test_the_tasks_refresh_measure_and_decide(dag, night):
    """A DAG that was never run fails in the first night."""
    known, tasks = dag
    for task in tasks.values():
        subprocess.run(
            ["bash", "-c", task.given["bash_command"]],
            cwd=known["default_args"]["cwd"],
            env={"PATH": "/usr/bin:/bin"},
            check=True,
            capture_output=True,
        )

    assert night.found() == {"version": 2, "runs": ["nightly"], "report": True}


def test_the_tasks_follow_each_other(dag):
    """A gate that decides before the measures are there decides on those of yesterday."""
    _, tasks = dag

    assert {name: task.followed_by for name, task in tasks.items()} == {
        "refresh": ["evaluate"],
        "evaluate": ["report"],
        "report": ["gate"],
        "gate": [],
    }


def test_a_used_up_budget_skips_and_the_retriever_is_measured_all_the_same(dag):
    """Another try would spend another budget."""
    _, tasks = dag

    assert tasks["refresh"].given["skip_on_exit_code"] == 5
    assert tasks["evaluate"].given["trigger_rule"] == "none_failed"


@pytest.fixture
def refresh(dag, night):
    """Run the command of the task that refreshes and return its exit code."""

    def go():
        command = ["bash", "-c", dag[1]["refresh"].given["bash_command"]]
        return subprocess.run(
            command, cwd=night.place, env=night.environment, capture_output=True, check=False
        ).returncode

    return go


def test_an_endpoint_that_is_down_is_tried_again_after_half_an_hour(refresh, night):
    """It is up again by the morning more often than not."""
    pauses = night.end_refreshes_with(4, 4)

    assert refresh() == 0
    assert pauses.read_text(encoding="utf-8").split() == ["0", "1800", "1800"]


@pytest.mark.parametrize("code", [1, 2, 3, 5])
def test_what_would_fail_again_is_not_repeated(refresh, night, code):
    """Airflow must see the code as it is: 5 skips, others fail."""
    pauses = night.end_refreshes_with(code)

    assert refresh() == code
    assert pauses.read_text(encoding="utf-8").split() == ["0"]


def test_airflow_itself_repeats_nothing(dag):
    """It does not look at exit codes, so that it would repeat a failed check too."""
    known, tasks = dag

    assert known["default_args"]["retries"] == 0
    assert [name for name, task in tasks.items() if "retries" in task.given] == []


def test_nights_do_not_overlap_and_are_not_made_up_for(dag):
    """A month of missed nights is one refresh."""
    known, _ = dag

    assert (known["catchup"], known["max_active_runs"]) == (False, 1)
    assert known["schedule"] == "5 4 * * *"
