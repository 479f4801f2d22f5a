import subprocess

import pytest


@pytest.fixture
def start(scheduled, night):
    """Run the line with the shell and the bare environment of cron."""
    fields = scheduled("cron", "--time", "00:07").splitlines()[-1].split(maxsplit=6)
    assert fields[:6] == ["7", "0", "*", "*", "*", "ragforge"]

    def go(path="/usr/bin:/bin"):
        words = ["env", "-i", f"PATH={path}", "/bin/sh", "-c", fields[6]]
        return subprocess.run(words, cwd="/", capture_output=True, text=True, check=False)

    return go


def test_the_line_of_the_crontab_refreshes_measures_and_decides(start, night):
    """cron gives a program hardly any environment, and mails what is printed."""
    done = start()

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert night.found() == {"version": 2, "runs": ["nightly"], "report": True}
    assert "gate: PASS" in (night.place / "nightly.log").read_text(encoding="utf-8")


def test_what_fails_is_mailed_and_ends_the_line(start, night):
    """cron mails what is printed."""
    (night.place / "nightly.env").write_text("RAGFORGE_REFRESH_KEEP=none\n", encoding="utf-8")
    done = start()

    assert done.returncode == 2
    assert "RAGFORGE_REFRESH_KEEP" in done.stdout
    assert night.found() == {"version": 1, "runs": [], "report": False}


def test_a_used_up_budget_does_not_keep_the_retriever_from_being_measured(start, night):
    """What the set was yesterday still tells whether the retriever is worse."""
    night.end_refreshes_with(5)
    done = start()

    assert done.returncode == 0, done.stdout
    assert night.found() == {"version": 1, "runs": ["nightly"], "report": True}


def test_an_endpoint_that_is_down_is_tried_again_after_half_an_hour(start, night):
    """It is up again by the morning more often than not."""
    pauses = night.end_refreshes_with(4, 4)
    done = start(night.environment["PATH"])

    assert done.returncode == 0, done.stdout
    assert pauses.read_text(encoding="utf-8").split() == ["0", "1800", "1800"]
    assert night.found() == {"version": 2, "runs": ["nightly"], "report": True}


def test_the_third_try_is_the_last(start, night):
    """The line of one night must not meet that of the next."""
    night.end_refreshes_with(4, 4, 4)
    done = start(night.environment["PATH"])

    assert done.returncode == 4
    assert night.found() == {"version": 1, "runs": [], "report": False}


def test_a_failed_check_is_not_repeated(start, night):
    """The same documents come to the same version."""
    pauses = night.end_refreshes_with(1)
    done = start(night.environment["PATH"])

    assert done.returncode == 1
    assert pauses.read_text(encoding="utf-8").split() == ["0"]
