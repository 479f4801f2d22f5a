import subprocess

import pytest


@pytest.fixture
def start(scheduled, night):
    """Run the line with the shell and the bare environment of cron."""
    fields = scheduled("cron", "--time", "00:07").splitlines()[-1].split(maxsplit=6)
    assert fields[:6] == ["7", "0", "*", "*", "*", "ragforge"]

    def go():
        words = ["env", "-i", "PATH=/usr/bin:/bin", "/bin/sh", "-c", fields[6]]
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
    command = night.bin / "ragforge"
    script = command.read_text(encoding="utf-8")
    stop = '[ "$1" != refresh ] || exit 5\n'
    command.write_text(script.replace("exec", f"{stop}exec"), encoding="utf-8")
    done = start()

    assert done.returncode == 0, done.stdout
    assert night.found() == {"version": 1, "runs": ["nightly"], "report": True}
