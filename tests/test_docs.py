"""The README says only what the program does."""

import argparse
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from ragforge import evaluate
from ragforge.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
MEASURES_PAGE = (ROOT / "docs" / "how-to" / "measures.md").read_text(encoding="utf-8")
PAGES = README + "".join(
    path.read_text("utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.parent.name not in ("help", "reference")
)
SHELL = "\n".join(re.findall(r"```sh\n(.*?)```", PAGES.replace("\\\n", " "), re.DOTALL))
INLINE = re.findall(
    r"`(ragforge [a-z]+ [^`]*)`",
    README
    + "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("[!hr]*/*.md")))
    + "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs/how-to").glob("*.md"))),
)
TOPICS = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs/help").glob("*.md")))
EXPLAINED = [line.strip().split("    ")[0] for line in re.findall("^    ragforge .*", TOPICS, re.M)]
SHOWN = sorted(
    {
        part.strip().removesuffix("&").strip()
        for line in [*SHELL.splitlines(), *INLINE, *EXPLAINED]
        for part in line.split("&&")
        if part.strip().startswith("ragforge ") and "COMMAND" not in part and "RECORD" not in part
    }
)


def test_the_python_shown_runs():
    """An example that fails is the first thing a new user meets."""
    qrels = {f"q{n}": {"d7": 3, "d9": 0, "d1": None} for n in range(9)}
    run = {f"q{n}": {"d7": 12.5, "d9": float(n)} for n in range(9)}
    known = {"qrels": qrels, "run": run}
    known |= {name: evaluate(qrels, run, ["nDCG@10"]) for name in ("base", "new")}

    for block in re.findall(r"```python\n(.*?)```", MEASURES_PAGE, re.DOTALL):
        exec(block, known)

    assert known["test"].p == 1.0


def test_the_help_block_is_what_the_program_prints(capsys):
    """A reader decides by this block whether the tool does what is needed."""
    main(["--help"])

    assert f"<!-- help -->\n```text\n{capsys.readouterr().out}```\n<!-- end -->" in COMMANDS_PAGE


@pytest.mark.parametrize("line", SHOWN)
def test_every_command_line_shown_can_be_typed(line):
    """A command copied from the README must not end in a usage error."""
    joined = re.sub(r"\b(judge|config) (audit|canary|trust)\b", r"\1:_\2", line)
    in_task = re.sub(r'"\$[A-Z_]+"', "0", joined)
    name, *words = shlex.split(in_task, comments=True)[1:]
    name, _, ending = name.partition(":")
    module = import_module(f"ragforge.cli.{name.replace('import', 'import_')}")
    parser = argparse.ArgumentParser()
    getattr(module, f"configure{ending}")(parser)

    assert parser.parse_args(words) is not None


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_with_all_its_flags(name, capsys):
    """Help that fails to format is found by the user, never by the author."""
    code = main([name, "--help"])

    assert code == 0
    assert f"usage: ragforge {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["LICENSE", "CHANGELOG.md", ".ci/run"])
def test_the_files_a_reader_looks_for_are_there(name):
    """Licence, history and gate have fixed places."""
    assert (ROOT / name).stat().st_size > 0


def test_the_recipes_shown_are_those_that_are_tested():
    """A recipe that is copied must run, and be short enough to be read."""
    files = {
        path.stem: path.read_text("utf-8") for path in (ROOT / "examples/recipes").glob("*.py")
    }
    del files["my_models"]
    page = (ROOT / "docs" / "recipes.md").read_text("utf-8")

    assert sorted(re.findall(r"```py\n(.*?)```", page, re.DOTALL)) == sorted(files.values())
    assert [name for name, text in files.items() if text.count("\n") > 15] == []


def test_ci_runs_the_command_of_the_readme():
    """What the README calls the tests must be what decides."""
    marked = re.search(r"<!-- test command -->\n```sh\n(.*?)\n```\n<!-- end -->", README, re.DOTALL)

    assert marked is not None
    assert marked[1].endswith(
        "ruff check . && ruff format --check . && mypy && pytest -n 3 --dist worksteal"
    )


def test_no_file_names_a_machine_path():
    """The product runs anywhere; a path of one machine in it is a mistake."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    pattern = re.compile("/" + r"(?:work|home|root|Users)/[a-z]")

    found = [
        name
        for name in listed
        if name
        and not name.startswith("tests/data/")
        and pattern.search((ROOT / name).read_text(encoding="utf-8", errors="replace"))
    ]

    assert found == []


def test_the_module_runs_as_the_command_does():
    """`python -m ragforge` is how schedulers call it."""
    shown = subprocess.run(
        [sys.executable, "-m", "ragforge", "--version"], capture_output=True, text=True, check=True
    )

    assert re.match(r"ragforge \d+\.\d+\.\d+\nPython 3\.", shown.stdout)
