"""One invocation of a command: parse, run, and turn whatever goes wrong into an exit code.

Where it can be gone on with, the command is shown without what may be secret in its addresses.
"""

import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Final

from ragforge import __version__
from ragforge.api.progress import say
from ragforge.cli import COMMANDS
from ragforge.cli.output import dumps
from ragforge.cli.parser import Parser
from ragforge.deferred import pattern
from ragforge.errors import (
    BudgetError,
    DataError,
    EndpointError,
    PlanLimitError,
    RagforgeError,
    UsageError,
)

BUG: Final = 70
_INSIDE: Final = pattern(r"(?<![^\s\"'=])[^\s\"'=]*://[^\s\"']*")
_SQL: Final = "sql:"
_GIT: Final = pattern(r"git:[^/@]*:[^@]*@")


def invoke(command: ModuleType, words: Sequence[str], second: str = "") -> int:
    """Run a command's module.

    Args:
        command: Has `configure(parser)`, which adds its arguments, and `run(arguments) -> int`; its
            docstring is the help. Of a command of two words it has, for `judge audit`,
            `configure_audit`, `run_audit` and `AUDIT_HELP`.
        words: The command's name and what stands behind it.
        second: The second word of its name; "" where it has one.
    """
    n_names, ending = (2, f"_{second}") if second else (1, "")
    text = getattr(command, f"{second.upper()}_HELP") if second else command.__doc__
    parser = Parser(
        prog=f"ragforge {' '.join(words[:n_names])}",
        description=text or COMMANDS[words[0]],
        common=getattr(command, f"{second.upper()}_COMMON" if second else "COMMON", ()),
    )
    if threading.current_thread() is threading.main_thread():
        _end_as_by_ctrl_c()
    try:
        getattr(command, f"configure{ending}")(parser)
        code: int = getattr(command, f"run{ending}")(parser.parse_args(words[n_names:]))
        if sys.stdout is not None:
            sys.stdout.flush()
    except RagforgeError as error:
        return _explained(error, words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else UsageError.exit_code
    except OSError as error:
        where = error.filename or "standard output"
        return _explained(DataError(f"{where}: {error.strerror or error}"), words)
    except Exception:  # noqa: BLE001  # the last frame: a bug becomes exit code 70 and a log file
        return _bug(words)
    return code


def _end_as_by_ctrl_c() -> None:
    """Have a scheduler's stop, and a terminal that is closed, lose no more than Ctrl-C does."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP.
        # Under nohup it is ignored, and the command goes on.
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def _explained(error: RagforgeError, words: Sequence[str]) -> int:
    say(f"ragforge: error: {error}")
    if isinstance(error, EndpointError | BudgetError) and not isinstance(error, PlanLimitError):
        when = "With a higher limit" if isinstance(error, BudgetError) else "When that is mended"
        say(f"{when}, the same command goes on where this one stopped:\n{resume_hint(words)}")
    if "--json" in words:
        with suppress(OSError):
            print(dumps({"error": {"message": str(error), "exit_code": error.exit_code}}))
    return error.exit_code


def _bug(words: Sequence[str]) -> int:
    import tempfile
    import traceback

    descriptor, name = tempfile.mkstemp(prefix="ragforge-bug-", suffix=".log")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(f"ragforge {__version__}, Python {sys.version}\n")
        log.write(f"{shlex.join(shown_words(words))}\n\n{traceback.format_exc()}")
    say(f"ragforge: this is a bug: {sys.exc_info()[1]!r}\nDetails are in {Path(name)}")
    return BUG


def resume_hint(words: Sequence[str]) -> str:
    """Return the command on a line of its own, with a word on what was taken out of it."""
    shown = list(shown_words(words))
    note = "" if shown == list(words) else "\n(… stands for what may be secret: put it back)"
    return f"  ragforge {shlex.join(shown)}{note}"


def shown_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command, addresses without user, password, query and fragment."""
    masked: list[str] = []
    before = ""
    for word in words:
        if not word.startswith("-"):
            masked.append(_shown(before, word))
        else:
            flag, mark, value = word.partition("=")
            masked.append(f"{flag}={_shown(flag, value)}" if mark else word)
        before = word
    return masked


def _shown(flag: str, value: str) -> str:
    from ragforge.corpus.origins.origin import looks_like_address, shown_host, shown_url

    if flag == "--notify-url":
        return shown_host(value)
    if flag == "--notify-command":
        return _INSIDE.sub(lambda match: shown_host(match[0]), value)
    if value.lower().startswith(_SQL):
        url, mark, query = value[len(_SQL) :].partition("#")
        is_torn = "@" in re.split(r"\s", query.lstrip(), maxsplit=1)[0]
        return f"{_SQL}{'…' if is_torn else shown_url(url)}{mark and '#…'}"
    if value.startswith("git:") and "://" not in value:
        return "git:…" if _GIT.match(value) else value
    if looks_like_address(value):
        return shown_url(value)
    return value
