import json
import subprocess

import pytest
import yaml


@pytest.fixture
def workflow(scheduled):
    """The workflow; YAML 1.1 reads its key `on` as true."""
    return yaml.safe_load(scheduled("github", "--time", "04:05"))


@pytest.fixture
def steps(workflow):
    """The steps of its one job."""
    return workflow["jobs"]["nightly"]["steps"]


def git(place, words):
    """Run git and return what it says."""
    return subprocess.run(
        ["git", "-C", str(place), *words.split()], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def origin(night):
    """The repository to which the directory is a clone with one commit."""
    path = night.place.parent / "origin.git"
    path.mkdir()
    git(path, "init -q --bare -b main")
    git(night.place, "init -q -b main")
    git(night.place, f"remote add origin {path}")
    git(night.place, "add nightly.toml")
    git(night.place, "-c user.name=a -c user.email=a@example.org commit -q -m first")
    git(night.place, "push -q -u origin main")
    return path


@pytest.fixture
def start(steps, night, origin):
    """Run the steps with a shell as the runner does, but for the installation."""
    summary = night.place.parent / "summary.md"
    scripts = [step["run"] for step in steps if "run" in step and step["name"] != "Install"]

    def go():
        for script in scripts:
            text = script.replace("${{ steps.refresh.outcome }}", "success")
            subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
                cwd=night.place,
                env={**night.environment, "GITHUB_STEP_SUMMARY": str(summary)},
                check=True,
            )
        return summary.read_text(encoding="utf-8")

    return go


def test_a_night_leaves_a_version_a_summary_and_a_commit(start, night, origin):
    """A workflow that was never run fails in the first night; the call store is in the cache."""
    summary = start()
    shown = json.loads(summary.partition("```json\n")[2].partition("```")[0])
    names = git(origin, "ls-tree -r --name-only main").splitlines()

    assert night.found() == {"version": 2, "runs": ["nightly"], "report": True}
    assert (shown["status"], shown["version"]) == ("published", 2)
    assert "## Refresh of sets/help: success" in summary
    assert "PASS" in summary
    assert "sets/help/current" in names
    assert [name for name in names if ".ragforge" in name] == []


def test_a_night_without_a_change_commits_nothing(start, night, origin):
    """A history of commits that say nothing hides those that do."""
    (night.place / "docs" / "repair-evenings.md").unlink()
    before = git(origin, "rev-parse main")
    start()

    assert night.found() == {"version": 1, "runs": ["nightly"], "report": True}
    assert git(origin, "rev-parse main") == before


def test_a_used_up_budget_does_not_keep_the_retriever_from_being_measured(start, night, origin):
    """What the set was yesterday still tells whether the retriever is worse."""
    before = git(origin, "rev-parse main")
    night.end_refreshes_with(5)
    start()

    assert night.found() == {"version": 1, "runs": ["nightly"], "report": True}
    assert git(origin, "rev-parse main") == before


def test_an_endpoint_that_is_down_is_tried_again_after_half_an_hour(start, night):
    """It is up again by the morning more often than not."""
    pauses = night.end_refreshes_with(4, 4)
    start()

    assert pauses.read_text(encoding="utf-8").split() == ["0", "1800", "1800"]
    assert night.found() == {"version": 2, "runs": ["nightly"], "report": True}


@pytest.mark.parametrize("codes", [(1,), (2,), (3,), (4, 4, 4)])
def test_what_cannot_be_mended_tonight_ends_the_job(start, night, codes):
    """A red job is what somebody looks at."""
    night.end_refreshes_with(*codes)

    with pytest.raises(subprocess.CalledProcessError, match=f"exit status {codes[-1]}"):
        start()


def test_the_call_store_survives_from_run_to_run(steps):
    """Each cache has a key of its own, as none is written over; a run that failed saves too."""
    [restore] = [step for step in steps if "cache/restore" in step.get("uses", "")]
    [save] = [step for step in steps if "cache/save" in step.get("uses", "")]

    assert restore["with"].pop("restore-keys") == "ragforge-"
    assert restore["with"] == save["with"]
    assert "run_id" in save["with"]["key"]
    assert save["if"] == "always()"


def test_the_workflow_may_write_contents_and_nothing_else(workflow):
    """It runs code of packages, every night."""
    assert workflow["permissions"] == {"contents": "write"}
    assert workflow[True]["schedule"] == [{"cron": "5 4 * * *"}]


def test_no_key_is_given_to_steps_that_do_not_need_it(workflow, steps):
    """An installation runs code of others."""
    assert set(workflow["jobs"]["nightly"]["env"]) == {"RAGFORGE_REFRESH_NOTIFY_URL"}
    assert [step["name"] for step in steps if "env" in step] == ["Refresh", "Evaluate"]
