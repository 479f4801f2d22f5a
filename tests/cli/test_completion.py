"""Completion as a shell does it."""

import os
import pty
import select
import shutil
import subprocess
import time

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


def typed(terminal, keys, until, seconds=20):
    """Type into a shell and return what it showed until a text was there or time is up."""
    os.write(terminal, keys.encode())
    shown, end = b"", time.monotonic() + seconds
    while until not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536)
    return shown


def test_the_first_tab_in_zsh_completes(capsys, tmp_path):
    """The file is read at the first Tab: one that answers only the second looks broken."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    main(["completion", "zsh"])
    (tmp_path / "_ragforge").write_text(capsys.readouterr().out, encoding="utf-8")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        ready = f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -uD; echo re''ady\n"
        assert b"ready" in typed(terminal, ready, b"\nready")

        assert b"completion" in typed(terminal, "ragforge complet\t", b"completion")
        assert b"--max-cost-usd" in typed(
            terminal, "\x15ragforge judge --max-co\t", b"--max-cost-usd"
        )
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ragforge comple", ["completion"]),
        ("ragforge judge --max-c", ["--max-calls", "--max-cost-usd"]),
        ("ragforge judge audit --att", ["--attack"]),
        ("ragforge judge au", ["audit"]),
        ("ragforge gate --fail-on ", ["not-shown", "regression"]),
    ],
)
def test_fish_completes(line, expected, capsys, tmp_path):
    """Commands, second words, options and values."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    main(["completion", "fish"])
    script = tmp_path / "ragforge.fish"
    script.write_text(capsys.readouterr().out, encoding="utf-8")

    done = subprocess.run(
        ["fish", "--no-config", "-c", f'source {script}; complete -C "{line}"'],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    shown = [row.split("\t")[0] for row in done.stdout.splitlines()]
    assert [word for word in shown if word != script.name] == expected


def test_a_shell_that_is_not_known_gets_the_nearest(capsys):
    """There are more shells than these."""
    assert main(["completion", "fsh"]) == 2
    assert "did you mean fish?" in capsys.readouterr().err
