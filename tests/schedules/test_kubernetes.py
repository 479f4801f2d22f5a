import shlex
import subprocess
import sys

import pytest
import yaml


@pytest.fixture
def manifests(scheduled):
    """The volume and the CronJob."""
    return list(yaml.safe_load_all(scheduled("kubernetes", "--time", "04:05")))


@pytest.fixture
def job(manifests):
    """What the CronJob starts."""
    return manifests[1]["spec"]["jobTemplate"]["spec"]


@pytest.fixture
def pod(job):
    """Where it runs."""
    return job["template"]["spec"]


def test_the_containers_refresh_measure_and_decide(pod, night):
    """A manifest that was never run fails in the first night."""
    for container in [*pod["initContainers"], *pod["containers"]]:
        subprocess.run(
            container["command"],
            cwd=night.place,
            env=night.environment,
            check=True,
            capture_output=True,
        )

    assert night.found() == {"version": 2, "runs": ["nightly"], "report": True}


@pytest.fixture
def refreshing(pod, night):
    """Start the container that refreshes, with a stand-in for the program, and return it."""

    def go(script):
        (night.bin / "ragforge").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        return subprocess.Popen(
            pod["initContainers"][0]["command"],
            cwd=night.place,
            env=night.environment,
            stdout=subprocess.PIPE,
        )

    return go


@pytest.mark.parametrize(
    ("code", "seen"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 0), (70, 70), (130, 130)]
)
def test_only_a_used_up_budget_lets_the_next_container_start(refreshing, code, seen):
    """The rules of the job decide by the code whether another pod tries again."""
    with refreshing(f"exit {code}") as process:
        process.communicate(timeout=30)

    assert process.returncode == seen


def test_the_stop_of_a_pod_reaches_the_refresh(refreshing):
    """Calls in flight end, and what they say is kept; a shell alone would pass over the signal."""
    code = "import signal; signal.signal(15, lambda *_: (print('stopped'), exit(130)));"
    code += "print('ready', flush=True); signal.pause()"
    with refreshing(shlex.join(["exec", sys.executable, "-c", code])) as process:
        process.stdout.readline()
        process.terminate()
        rest = process.stdout.read()

    assert rest == b"stopped\n"
    assert process.returncode == 130


def test_two_nights_never_run_at_once(manifests):
    """The second would only wait for the lock, and ask for a machine meanwhile."""
    spec = manifests[1]["spec"]

    assert (spec["concurrencyPolicy"], spec["schedule"]) == ("Forbid", "5 4 * * *")


def test_what_would_fail_again_ends_the_job(job):
    """Exit code 4, an endpoint that is down, is the one that is worth another try."""
    [disrupted, failed] = job["podFailurePolicy"]["rules"]

    assert disrupted["action"] == "Ignore"
    assert failed["action"] == "FailJob"
    assert failed["onExitCodes"] == {"operator": "In", "values": [1, 2, 3, 5, 70]}
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (2, "Never")


def test_all_containers_share_the_volume_and_are_confined(manifests, pod):
    """One that had another directory would measure another set."""
    containers = [*pod["initContainers"], *pod["containers"]]
    [volume] = [item for item in pod["volumes"] if item["name"] == "data"]

    assert volume["persistentVolumeClaim"]["claimName"] == manifests[0]["metadata"]["name"]
    assert {each["workingDir"] for each in containers} == {"/data"}
    assert {each["volumeMounts"][0]["mountPath"] for each in containers} == {"/data"}
    assert {each["securityContext"]["readOnlyRootFilesystem"] for each in containers} == {True}
