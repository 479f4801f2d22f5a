"""What users install is the wheel, not the checkout."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Install the wheel in an environment of its own, and run its command elsewhere."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(place)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    [wheel] = place.glob("*.whl")
    venv.create(place / "venv")
    python = str(place / "venv" / "bin" / "python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)

    def go(elsewhere, *words):
        return subprocess.run(
            [python, "-m", "ragforge", *words],
            cwd=elsewhere,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=False,
        )

    return go


@pytest.mark.slow
@pytest.mark.wheel
def test_the_demo_runs_from_an_installed_wheel(run, tmp_path):
    """Prompts and the sample corpus must be in the wheel, and found from anywhere."""
    shown = run(tmp_path, "demo")

    assert shown.returncode == 0, shown.stderr
    assert "nDCG@10" in shown.stdout
    assert (tmp_path / "ragforge-demo" / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.wheel
def test_an_installed_wheel_prints_schedules(run, tmp_path):
    """Whoever installed it has no folder `configs/`."""
    shown = run(tmp_path, "schedule", "systemd-service")

    assert shown.returncode == 0, shown.stderr
    assert " refresh --quiet --config nightly.toml --dataset sets/help\n" in shown.stdout
