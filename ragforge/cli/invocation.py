"""One invocation of a command: parse, run, and turn whatever goes wrong into an exit code."""

import argparse
import os
import shlex
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from ragforge import __version__
from ragforge.cli import COMMANDS
from ragforge.cli.flags import dumps
from ragforge.cli.resuming import resume_hint, shown_words
from ragforge.cli.talk import complain
from ragforge.errors import BudgetError, DataError, EndpointError, RagforgeError, UsageError

BUG = 70


def invoke(command: ModuleType, words: Sequence[str], n_names: int = 1) -> int:
    """Run a command's module.

    Args:
        command: Has `configure(parser)`, which adds its arguments, and `run(arguments) -> int`.
        words: The command's name and what stands behind it.
        n_names: How many words the name has.
    """
    parser = argparse.ArgumentParser(
        prog=f"ragforge {' '.join(words[:n_names])}",
        description=command.__doc__ or COMMANDS[words[0]],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if threading.current_thread() is threading.main_thread():
        # A scheduler's stop is to lose no more than Ctrl-C does.
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        command.configure(parser)
        code: int = command.run(parser.parse_args(words[n_names:]))
        if sys.stdout is not None:
            sys.stdout.flush()
    except RagforgeError as error:
        return _explained(error, words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else UsageError.exit_code
    except BrokenPipeError:
        raise
    except OSError as error:
        where = error.filename or "standard output"
        return _explained(DataError(f"{where}: {error.strerror or error}"), words)
    except Exception:  # noqa: BLE001  # the last frame: a bug becomes exit code 70 and a log file
        return _bug(words)
    return code


def _explained(error: RagforgeError, words: Sequence[str]) -> int:
    complain(f"ragforge: error: {error}")
    if isinstance(error, EndpointError | BudgetError):
        when = "With a higher limit" if isinstance(error, BudgetError) else "When that is mended"
        complain(f"{when}, the same command goes on where this one stopped:\n{resume_hint(words)}")
    if "--json" in words:
        with suppress(OSError):
            print(dumps({"error": {"message": str(error), "exit_code": error.exit_code}}))
    return error.exit_code


def _bug(words: Sequence[str]) -> int:
    descriptor, name = tempfile.mkstemp(prefix="ragforge-bug-", suffix=".log")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(f"ragforge {__version__}, Python {sys.version}\n")
        log.write(f"{shlex.join(shown_words(words))}\n\n{traceback.format_exc()}")
    complain(f"ragforge: this is a bug: {sys.exc_info()[1]!r}\nDetails are in {Path(name)}")
    return BUG
