"""Progress: on terminals, in logs, and in notebooks, where there is no terminal."""

import sys
from types import SimpleNamespace

import pytest

from ragforge.api import progress as bars
from ragforge.api.progress import Progress, in_notebook, say
from ragforge.observe import Event


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(bars.time, "monotonic", lambda: now[0])
    return now


def test_a_notebook_shows_a_bar(capsys):
    """stderr of a kernel is no terminal, and a cell without a sign of life looks hung."""
    progress = Progress(notebook=True)
    progress(Event("stage.start", stage="judge", numbers={"total": 4.0}))
    progress(Event("unit", stage="judge", outcome="done"))
    progress(Event("stage.end", stage="judge"))

    shown = capsys.readouterr()
    assert "judge:   0%" in shown.err
    assert shown.out == ""


def test_a_kernel_is_told_from_a_shell(monkeypatch):
    """IPython in a terminal draws its own bars."""
    for shell, expected in (
        (SimpleNamespace(kernel=object()), True),
        (SimpleNamespace(), False),
        (None, False),
    ):
        found = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", found)
        assert in_notebook() is expected


def test_a_long_silence_is_broken_by_a_plain_line(clock, capsys):
    """A hanging endpoint must not look like a hanging program."""
    progress = Progress()
    progress(Event("stage.start", stage="judge", numbers={"total": 4.0}))
    progress(Event("unit", stage="judge", outcome="done"))
    clock[0] = 31.0

    progress(Event("tick", stage="judge"))

    assert "judge: 1 of 4 done, 0 failed" in capsys.readouterr().err


def test_a_tick_soon_after_the_last_line_says_nothing(clock, capsys):
    """A log must not fill up with signs of life."""
    progress = Progress()
    progress(Event("stage.start", stage="judge"))
    clock[0] = 10.0

    progress(Event("tick", stage="judge"))

    assert capsys.readouterr().err == ""


def test_quiet_means_no_progress(clock, capsys):
    """`-q` is for schedulers that mail whatever is printed."""
    progress = Progress(quiet=True)
    progress(Event("stage.start", stage="judge"))
    clock[0] = 31.0

    progress(Event("tick", stage="judge"))
    progress(Event("stage.end", stage="judge"))

    assert capsys.readouterr().err == ""


def test_what_a_terminal_would_obey_is_shown_instead(capsys):
    """A reply of a model must not clear the screen or rename the window."""
    say("\x1b[2Jgone\x07")

    assert capsys.readouterr().err == "\\x1b[2Jgone\\x07\n"


def test_a_failure_that_comes_again_is_told_once(capsys):
    """A retriever that is down says the same of every query."""
    progress = Progress()
    progress(Event("stage.start", stage="retrieve"))

    for message in ("no index", "no index", "no\nreply"):
        progress(Event("unit", stage="retrieve", outcome="failed", message=message))

    assert capsys.readouterr().err == "retrieve: failed: no index\nretrieve: failed: no reply\n"
