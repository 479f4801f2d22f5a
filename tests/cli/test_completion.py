"""Completion as a shell does it."""

import shutil
import subprocess

import pytest

from ragforge.cli import COMMANDS, main


@pytest.fixture
def complete(tmp_path, capsys):
    """Complete the last of some words in bash."""
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "ragforge.bash"
    script.write_text(capsys.readouterr().out, encoding="utf-8")

    def reply(*words):
        listed = " ".join(f"'{word}'" for word in ("ragforge", *words))
        code = (
            f"source {script}; COMP_WORDS=({listed}); COMP_CWORD={len(words)}; _ragforge; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-uc", code], capture_output=True, text=True, check=True)
        return done.stdout.split()

    return reply


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ev",), ["evaluate"]),
        (("re",), ["review", "retrieve", "report", "refresh"]),
        (("judge", "--max-c"), ["--max-calls", "--max-cost-usd"]),
        (("judge", "--transport", "a"), ["auto", "aiohttp"]),
        (("judge", "a"), ["audit"]),
        (("judge", "audit", "--att"), ["--attack"]),
        (("cache", "pr"), ["prune"]),
        (("cache", "prune", "--old"), ["--older-than"]),
        (("import", "--clicks", ""), ["ignore", "relevant"]),
        (("evaluate", "--dataset", "s"), []),
    ],
    ids=lambda words: " ".join(words),
)
def test_bash_completes(complete, words, expected):
    """Nobody types --max-cost-usd by heart; files are left to the shell."""
    assert sorted(complete(*words)) == sorted(expected)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_names_every_command(shell, capsys):
    """What is not completed is taken for what is not there."""
    main(["completion", shell])

    shown = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in shown] == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_script_is_one_of_its_shell(shell, capsys, tmp_path):
    """A quote too few would break every new shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    main(["completion", shell])
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out, encoding="utf-8")

    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_shell_that_is_not_known_gets_the_nearest(capsys):
    """There are more shells than these."""
    assert main(["completion", "fsh"]) == 2
    assert "did you mean fish?" in capsys.readouterr().err
