"""Progress in notebooks, where there is no terminal."""

import sys
from types import SimpleNamespace

from ragforge.api.progress import Progress, in_notebook
from ragforge.observe import Event


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
