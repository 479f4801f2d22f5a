"""What the pages about other tools show of them is run with these tools."""

import os
import subprocess
from pathlib import Path

import pytest
from documentation.reader import DOCS, blocks_of

from ragforge.mock import Script, serving

PAGES = DOCS / "coming-from"


def code_of(page):
    """Return the code that a page shows of the other tool."""
    [code] = [block.text for block in blocks_of(PAGES / page) if block.language == "py"]
    return code


@pytest.mark.parametrize("name", ["ragas"])
def test_ragas_scores_two_retrievers(python, tmp_path):
    """The job of the page, without a model."""
    (tmp_path / "job.py").write_text(code_of("ragas.md"), "utf-8")
    told = python(tmp_path, "-W", "ignore", "job.py").splitlines()

    assert [line.split(" ")[0] for line in told[-2:]] == ["old", "new"]
    assert "1.0000" in told[-1]


@pytest.mark.parametrize("name", ["measures"])
def test_the_other_measures_say_the_same(python, tmp_path, monkeypatch):
    """Whoever changes the tool wants the figures to stay."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # compiling takes a minute
    (tmp_path / "job.py").write_text(code_of("python-measures.md"), "utf-8")
    trec, measures, ranx = python(tmp_path, "-W", "ignore", "job.py").splitlines()[-3:]

    assert "0.6309297" in trec
    assert "0.83333" in measures
    assert "0.79703" in measures
    assert "0.83333" in ranx
    assert "0.79703" in ranx


@pytest.mark.parametrize("name", ["deepeval"])
def test_deepeval_runs_the_test_of_the_page(python, tmp_path):
    """The mock's verdict is made up, so that only its coming counts."""
    (tmp_path / "test_case.py").write_text(code_of("deepeval.md"), "utf-8")
    script = Path(python(tmp_path, "-c", "import sys; print(sys.executable)").strip()).parent
    known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with serving(Script()) as endpoint:
        done = subprocess.run(
            [script / "deepeval", "test", "run", "test_case.py"],
            cwd=tmp_path,
            env={
                **known,
                "OPENAI_API_KEY": "sk-test",
                "OPENAI_BASE_URL": endpoint.url,
                "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        ledger = endpoint.ledger()

    assert done.returncode in (0, 1), done.stderr
    assert "Contextual" in done.stdout
    assert ledger["billed"] > 0
