"""The wheel as people install it: by uvx and pipx, on newer Pythons, with the oldest packages."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEWER = ("3.12", "3.13", "3.14")


def run(folder, *words, **variables):
    """Return what a command says."""
    known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, words)],
        cwd=folder,
        env={**known, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    """Return the folder of uv, uvx and pipx."""
    place = tmp_path_factory.mktemp("tools")
    run(place, sys.executable, "-m", "venv", place / "venv")
    run(place, place / "venv" / "bin" / "python", "-m", "pip", "install", "-q", "uv", "pipx")
    return place / "venv" / "bin"


@pytest.fixture
def environment(tools, tmp_path):
    """Make an environment of some Python, and return its interpreter."""

    def make(python, *installed):
        made = tmp_path / "env" / "bin" / "python"
        run(tmp_path, tools / "uv", "venv", "-q", "--python", python, tmp_path / "env")
        run(tmp_path, tools / "uv", "pip", "install", "-q", "--python", made, *installed)
        return made

    return make


def interpreter(version):
    """Return a Python of a version; None where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(pyenv.glob(f"{version}.*/bin/python"))
    return str(kept[-1]) if kept else shutil.which(f"python{version}")


def shows_the_sample(python, folder):
    """Run the whole pipeline on the sample, and look at what came of it."""
    told = run(folder, python, "-m", "ragforge", "demo", "--out", "sample")
    found = run(folder, python, "-m", "ragforge", "evaluate", "--dataset", "sample")
    assert (folder / "sample" / "report.html").stat().st_size > 100_000
    assert "bm25" in told
    return re.findall(r"0\.\d{3}", found)


def test_uvx_runs_the_wheel(tools, wheel, tmp_path):
    """Nothing is installed for good."""
    told = run(tmp_path, tools / "uvx", "--from", wheel, "ragforge", "--version")

    assert told.startswith("ragforge ")


def test_pipx_installs_the_wheel(tools, wheel, tmp_path):
    """The command is on the path, in an environment of its own."""
    place = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    run(tmp_path, tools / "pipx", "install", "-q", "--python", sys.executable, wheel, **place)

    assert run(tmp_path, tmp_path / "bin" / "ragforge", "--version").startswith("ragforge ")


@pytest.mark.parametrize("version", NEWER)
def test_newer_pythons_measure_the_same(environment, wheel, tmp_path, version):
    """A set made on one machine is measured on another."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    (tmp_path / "new").mkdir()
    (tmp_path / "own").mkdir()
    newer = shows_the_sample(environment(python, wheel), tmp_path / "new")

    assert newer
    known = {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "ragforge", "evaluate", "--dataset", tmp_path / "new" / "sample"]
    assert re.findall(r"0\.\d{3}", run(tmp_path / "own", *words, **known)) == newer


def test_the_oldest_packages_that_are_allowed_are_enough(tools, environment, wheel, tmp_path):
    """A lower bound that nobody tried is a guess."""
    oldest = tmp_path / "oldest.txt"
    resolve = ["pip", "compile", "-q", "--resolution", "lowest-direct", "--extra", "rank"]
    run(tmp_path, tools / "uv", *resolve, ROOT / "pyproject.toml", "-o", oldest)
    python = environment(sys.executable, "-r", oldest)
    install = ["pip", "install", "-q", "--no-deps", "--python", python, wheel]
    run(tmp_path, tools / "uv", *install)

    assert shows_the_sample(python, tmp_path)
