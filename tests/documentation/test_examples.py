"""The examples, run as their heads say, each in a copy of its folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.slow


@pytest.fixture
def example(tmp_path):
    """Return a function that runs a command in a copy of an example's folder."""

    def copy(name):
        place = tmp_path / name
        shutil.copytree(EXAMPLES / name, place)

        def run(command):
            known = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
            bin_folder = str(Path(sys.executable).parent)
            done = subprocess.run(
                ["sh", "-euc", command],
                cwd=place,
                env={**known, "PATH": f"{bin_folder}:{known['PATH']}", "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            return done.stdout

        run.place = place
        return run

    return copy


def test_a_suite_holds_a_retriever_to_its_measures(example):
    """And fails when the retriever finds nothing any more."""
    run = example("ci")
    run("sh make_set.sh")
    assert "1 passed" in run("pytest -q -p no:cacheprovider")

    (run.place / "retriever.py").write_text("def search(query, k):\n    return ['Nothing.']\n")
    run("ragforge retrieve --dataset my-set --retriever retriever:search --name mine -k 5")
    with pytest.raises(AssertionError, match="1 failed"):
        run("pytest -q -p no:cacheprovider")


def test_the_workflow_decides(example):
    """Its steps are run in their order, but for what sets the machine up."""
    run = example("ci")
    steps = yaml.safe_load((run.place / "workflow.yml").read_text())["jobs"]["gate"]["steps"]
    told = [
        run(step["run"])
        for step in steps
        if "run" in step and not step["run"].startswith("pip install")
    ]

    assert len(told) == 3
    assert "::notice title=ragforge gate::PASS" in told[-1]
    assert "PASS" in (run.place / "gate.md").read_text()


def test_a_night_follows_the_documents(example):
    """The second night finds a changed page, and the set has another version."""
    run = example("nightly")
    run("sh night.sh")
    page = run.place / "documents" / "visits.md"
    page.write_text(page.read_text().replace("ninety minutes", "two hours"))
    told = run("sh night.sh")

    assert "2 evaluations" in told
    assert '"version": 2' in run("cat my-set/manifest.json")
