"""The two paths of the README's first screen, run as they stand there, to a gate that decides."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from endpoint import answering, serving
from shown_app import NAMES, SEARCH, SERVICES, TOKEN, searching

from ragforge.files.shipped_folders import shipped

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def service():
    """A search service behind a token, on loopback."""
    with searching() as url:
        yield url


def commands(path):
    """Return the commands of a block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"<!-- {path} -->\n```sh\n(.*?)```\n<!-- end -->", text, re.DOTALL)
    assert block is not None
    return [shlex.split(line)[1:] for line in block[1].splitlines()]


def typed(words, **environment):
    """Run a command in a process of its own, as it is typed."""
    return subprocess.run(
        [sys.executable, "-m", "ragforge", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_folder_to_decision(tmp_path, monkeypatch):
    """Two commands tell which is better, without a key, and a gate decides by it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(shipped("datasets")) / "helpcentre" / "documents", "docs")
    Path("my_app").mkdir()
    Path("my_app/search.py").write_text(SEARCH, encoding="utf-8")
    generate, compare, gate = commands("first path")

    assert typed(generate).returncode == 0
    compared, decided = typed(compare), typed(gate)

    assert "new is better in EvidenceR@10" in compared.stdout
    assert (decided.returncode, "gate: PASS" in decided.stdout) == (0, True)
    refused = typed([word if word != "new" else "old" for word in gate])
    assert (refused.returncode, "gate: FAIL" in refused.stdout) == (1, True)


def test_table_and_service_to_decision(tmp_path, monkeypatch, service):
    """A service behind a token, whose documents nobody else has, and three commands."""
    pytest.importorskip("jmespath")
    monkeypatch.chdir(tmp_path)

    Path("services.toml").write_text(SERVICES.format(url=service), encoding="utf-8")
    rows = "".join(f"How many euros does the {name} cost?;It depends.\n" for name in NAMES)
    Path("questions.csv").write_text(f"input;expected_output\n{rows}", encoding="utf-8-sig")

    with serving(answering) as judge:
        environment = {
            "DOCS_TOKEN": TOKEN,
            "OPENAI_API_KEY": "sk-test",
            "RAGFORGE_MODEL_BASE_URL": judge.url,
            "RAGFORGE_BUDGET_INPUT_USD_PER_MTOK": "1",
            "RAGFORGE_BUDGET_OUTPUT_USD_PER_MTOK": "1",
        }
        done = [typed(words, **environment) for words in commands("second path")]

    assert [one.returncode for one in done] == [0, 0, 0]
    assert "new is better in nDCG@10" in done[1].stdout
    assert "gate: PASS" in done[2].stdout
    everything = "".join(path.read_text() for path in Path("my-set").rglob("*.json*"))
    assert TOKEN not in everything + "".join(one.stdout + one.stderr for one in done)
    assert json.loads(Path("my-set/manifest.json").read_text())["models"] == ["gpt-5-mini"]
