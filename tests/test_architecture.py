"""The folder list is the architecture; these tests hold it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

HEAVY = set("openai aiohttp opentelemetry numpy pydantic httpx2 tqdm tenacity jsonlines".split())


def test_imports_point_down_the_layers():
    """A module that reaches up makes the house impossible to take apart again."""
    # In a process of its own: it sets logging up for the whole of one.
    command = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"

    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_imports_nothing_heavy(words):
    """What is typed to get help must answer at once."""
    listed = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ragforge", *words],
        capture_output=True,
        text=True,
        check=False,
    )

    modules = {line.rsplit("|", 1)[-1].strip() for line in listed.stderr.splitlines()}
    assert modules & HEAVY == set()


def test_importing_the_package_imports_nothing_else():
    """`import ragforge` in a user's program must cost next to nothing."""
    code = "import sys; old = set(sys.modules); import ragforge; print(*set(sys.modules) - old)"

    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert listed.stdout.split() == ["ragforge"]


@pytest.mark.parametrize("folder", ["datasets", "prompts", "configs", "tests"])
def test_top_level_folders_are_no_packages(folder):
    """A top-level `datasets` with an __init__.py would shadow the Hugging Face package."""
    assert not (ROOT / folder / "__init__.py").exists()


def test_only_the_command_line_prints():
    """Everything else is a library: its users decide what is shown."""
    talking = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "ragforge").rglob("*.py"))
        if "print(" in path.read_text(encoding="utf-8") and path.parent.name != "cli"
    ]

    assert talking == []


def test_contributors_are_shown_the_layers_of_the_contracts():
    """A picture that has aged sends whoever comes new to the wrong room."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = text.partition("<!-- layers -->\n```\n")[2].partition("```")[0]

    shown = [re.split(" {2,}", line)[0] for line in picture.splitlines()]

    optional = re.compile(r" \| \(\w+\)|\(\w+\) \| ")
    assert shown == [optional.sub("", layer) for layer in contract["layers"]]


def test_contributors_are_sent_to_files_that_are_there():
    """Names of files move; a guide that names the old ones is none."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_./]+(?:/|\.(?:py|toml|md)))`", text))

    assert named
    assert [
        name for name in named if not any((p / name).exists() for p in (ROOT, ROOT / "ragforge"))
    ] == []


def test_folders_that_are_slow_throughout_exist(pytestconfig):
    """A folder that is moved would come back into the quick run, and nobody would see why."""
    [own] = [
        plugin
        for plugin in pytestconfig.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", None) == str(ROOT / "tests" / "conftest.py")
    ]

    assert [name for name in own.SLOW_FOLDERS if not (ROOT / "tests" / name).is_dir()] == []
