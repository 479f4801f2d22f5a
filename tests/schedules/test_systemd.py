import getpass
import shlex
import shutil
import subprocess

import pytest


@pytest.fixture
def service(scheduled):
    """The unit as text."""
    return scheduled("systemd-service", "--user", getpass.getuser())


@pytest.fixture
def start(service, night):
    """Run the commands of the unit in their order, as systemd does; return their exit codes."""
    lines = [line.partition("=")[2] for line in service.splitlines() if line[:10] == "ExecStart="]

    def go(environment):
        done = [
            subprocess.run(
                shlex.split(line),
                cwd=night.place,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            for line in lines
        ]
        return [(each.returncode, each.stderr) for each in done]

    return go


def settings_of(unit):
    """Return what a unit sets; of what stands twice the last."""
    lines = [line for line in unit.splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_commands_of_the_service_refresh_measure_and_decide(start, night):
    """A unit that was never run fails in the first night, when nobody looks."""
    outcomes = start({"PATH": "/usr/bin:/bin"})

    assert [code for code, _ in outcomes] == [0, 0, 0, 0], outcomes
    assert night.found() == {"version": 2, "runs": ["nightly"], "report": True}


def test_the_service_may_write_only_where_it_runs(service, night):
    """A night job reads documents that others wrote."""
    found = settings_of(service)

    assert found["WorkingDirectory"] == found["ReadWritePaths"] == str(night.place)
    assert found["ProtectSystem"] == "strict"
    assert found["EnvironmentFile"] == f"-{night.place}/nightly.env"


def test_the_service_tries_again_only_what_may_pass(service):
    """A failed check fails again, and a budget that is used up would be spent twice."""
    found = settings_of(service)

    assert found["Restart"] == "on-failure"
    assert found["RestartPreventExitStatus"].split() == ["1", "2", "3", "70"]
    assert found["SuccessExitStatus"] == "5"


def test_the_timer_makes_up_for_a_night_in_which_the_machine_was_off(scheduled):
    """Without it a set on a laptop is never refreshed."""
    found = settings_of(scheduled("systemd-timer", "--time", "04:05"))

    assert (found["OnCalendar"], found["Persistent"]) == ("*-*-* 04:05:00", "true")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_both_units(service, scheduled, tmp_path):
    """It passes over what it does not know with a line in the log."""
    paths = [tmp_path / f"ragforge-nightly.{kind}" for kind in ("service", "timer")]
    for path, text in zip(paths, [service, scheduled("systemd-timer")], strict=True):
        path.write_text(text, encoding="utf-8")

    done = subprocess.run(
        ["systemd-analyze", "verify", *map(str, paths)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
