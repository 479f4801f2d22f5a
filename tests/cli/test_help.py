"""What the commands say of themselves."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from importlib import import_module

import pytest

from ragforge import errors
from ragforge.cli import COMMANDS, main
from ragforge.cli.help import GUIDE, guide_text, subjects
from ragforge.cli.parser import SCREEN_LINES, Parser, brief
from ragforge.config import Settings
from ragforge.files.shipped_folders import shipped
from ragforge.measures import parse_measure

TWO_WORDS = [("judge", "audit"), ("judge", "canary"), ("config", "trust")]
ACTIONS = [
    *(("cache", action) for action in ("stats", "export", "import", "prune")),
    *(("runs", action) for action in ("list", "rm", "rename")),
    *(("review", action) for action in ("export", "import")),
    *(("shard", action) for action in ("plan", "run", "status", "merge")),
    *(("calibrate", action) for action in ("label", "label-answers", "report")),
    *(("prompts", action) for action in ("list", "show", "diff", "render", "copy")),
]
ALL = [*((name,) for name in COMMANDS), *TWO_WORDS, *ACTIONS]


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """A pipe of the usual width."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def test_the_guide_names_measures_that_can_be_asked_for():
    """What it recommends is copied into the next command."""
    names = [entry.measure for entry in GUIDE]

    assert [parse_measure(name).name for name in names] == [n.partition("@")[0] for n in names]


def test_the_guide_fits_a_terminal_page():
    """It is read beside the numbers."""
    assert len(guide_text().splitlines()) < 40


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_help_of_a_command_fits_a_screen(words, capsys):
    """What scrolls away is not read."""
    assert main([*words, "--help"]) == 0

    shown = capsys.readouterr().out
    assert shown.count("\n") <= SCREEN_LINES
    assert shown.startswith(f"usage: ragforge {' '.join(words)}")


def on_terminal(words, lines, columns):
    """Return what a command prints on a terminal of a size."""
    inner, outer = pty.openpty()
    fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    sized = {name: text for name, text in os.environ.items() if name not in ("LINES", "COLUMNS")}
    command = [sys.executable, "-m", "ragforge", *words]
    subprocess.run(command, stdout=outer, check=True, env={**sized, "NO_COLOR": "1"})
    os.close(outer)
    shown = os.read(inner, 65_536).decode()
    os.close(inner)
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compare", "gate", "generate"])
def test_the_help_of_a_command_fits_a_small_screen(name):
    """A terminal has 24 lines until somebody makes it larger, and the prompt takes one."""
    shown = on_terminal([name, "--help"], 24, 80)

    lines = shown.splitlines()
    assert sum(max(1, -(-len(line) // 80)) for line in lines) < 24
    assert f"usage: ragforge {name}" in lines[0]
    assert "\nexamples:" in shown.replace("\r", "")
    assert "--help-all` shows" in lines[-1]


@pytest.mark.parametrize("words", [(name,) for name in COMMANDS] + TWO_WORDS, ids=" ".join)
def test_the_help_of_a_command_has_an_example(words, capsys):
    """Most people copy one, and change it."""
    main([*words, "--help"])

    assert f"\nexamples:\n  ragforge {' '.join(words)}" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_all_options_are_in_the_whole_help(name, capsys):
    """What no help shows does not exist."""
    module = import_module(f"ragforge.cli.{name.replace('import', 'import_')}")
    parser = Parser(prog=name)
    module.configure(parser)
    main([name, "--help-all"])

    shown = capsys.readouterr().out
    assert [
        flag for flag in parser._option_string_actions if flag not in shown and "help" not in flag
    ] in ([], ["-h"])


def test_the_short_help_tells_what_it_leaves_out(capsys):
    """A flag that is hidden must be found."""
    main(["judge", "--help"])
    short = capsys.readouterr().out
    main(["judge", "--help-all"])
    whole = capsys.readouterr().out

    assert "--pool-batch" not in short
    assert re.search(r"`ragforge judge --help-all` shows \d+ more options and how it works", short)
    assert "\npools:\n" in whole
    assert "[RAGFORGE_POOL_POOL_BATCH]" in whole


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Calls in flight; fewer now. Default: 8. [RAGFORGE_X_Y]", "calls in flight (default: 8)"),
        ("US dollars that may be spent; no limit.", "US dollars that may be spent"),
        ("what is done (default: all)", "what is done"),
        ("only this", "only this"),
        ("Kinds of query. Default: fact=22, procedure=12, keyword=66. [R_X]", "kinds of query"),
        ("measures such as P(rel=2)@5, RR", "measures such as P(rel=2)@5, RR"),
    ],
)  # fmt: skip
def test_an_option_is_told_in_its_first_words(text, first):
    """A line an option is what fits a screen."""
    assert brief(text) == first


def test_nothing_typed_shows_the_way_to_a_decision(capsys):
    """Who does not know a command does not know which help to ask for."""
    assert main([]) == 2

    shown = capsys.readouterr().out
    assert shown.count("\n") <= 25
    commands = re.findall(r"^  ragforge ([a-z]+)", shown, re.MULTILINE)
    assert set(commands) <= {*COMMANDS}


@pytest.mark.parametrize("name", subjects())
def test_a_subject_is_explained_on_a_page(name, capsys):
    """It is read between two commands."""
    assert main(["help", name]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert 10 <= len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= 110


def test_the_subjects_are_listed_and_a_wrong_one_gets_the_nearest(capsys):
    """A subject is guessed before it is looked up."""
    assert main(["help"]) == 0
    assert capsys.readouterr().out.count("\n") == len(subjects())
    assert main(["help", "budget"]) == 2
    assert "no subject 'budget'; did you mean budgets?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["compare"], ["judge", "audit"], ["cache", "prune"]])
def test_a_command_is_explained_by_its_help(words, capsys):
    """`help compare` is what people type."""
    main(["help", *words])
    asked = capsys.readouterr().out
    main([*words, "--help"])

    assert asked == capsys.readouterr().out


def test_every_exit_code_is_explained():
    """A script decides by it."""
    text = (shipped("docs/help") / "exit-codes.md").read_text("utf-8")
    raised = {
        item.exit_code
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, errors.RagforgeError)
    }

    explained = {int(number) for number in re.findall(r"^    (\d+) ", text, re.MULTILINE)}
    assert explained == raised | {0, 1, 70, 130}


def test_every_section_of_settings_is_named():
    """A section that no page names is never set."""
    text = (shipped("docs/help") / "settings.md").read_text("utf-8")

    assert [name for name in Settings.model_fields if f"[{name}]" not in text] == []
