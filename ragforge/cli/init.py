"""Look at a folder, ask five questions at most, and write a commented ragforge.toml.

What is there already is offered as the answer: folders with documents, tables of questions, sets,
and names of variables that hold keys; no key is read. A ragforge.toml that is there is never
written over. The new one is trusted as it is, for it holds your answers; the next command is
printed.

Examples:
  ragforge init
  ragforge init --yes
  ragforge init --documents docs/ --model gpt-5-mini --yes
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.config import DEFAULT_FILE, load, trust
from ragforge.errors import ConfigError, DataError, UsageError

if TYPE_CHECKING:
    from ragforge.pipeline.first_settings import Answers, Found

_SHOWN = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--yes", action="store_true", help="ask nothing, and take what is offered")
    parser.add_argument("--documents", metavar="DIR", help="where the documents are")
    parser.add_argument("--questions", metavar="FILE", help="a table of questions that you have")
    parser.add_argument(
        "--retriever", metavar="SPEC", help="yours: an address or pkg.mod:attr; bm25 for none"
    )
    parser.add_argument(
        "--model",
        metavar="NAME[@URL]",
        help="what grades; offline is a baseline that costs nothing",
    )
    parser.add_argument("--dataset", metavar="DIR", help="where the set is, or is to be")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.pipeline.first_settings import look_around, next_command, settings_text

    path = Path(DEFAULT_FILE)
    if path.exists() or path.is_symlink():
        raise UsageError(f"./{path}: is there already, and stays; `ragforge config` shows it")
    found = look_around(Path(), os.environ)
    answers = _answers(arguments, found)
    content = settings_text(answers, found).encode()
    _check(content)
    _write_new(path, content)
    try:
        trust(path, content)
    except ConfigError as error:
        say(f"note: not trusted: {error}; name it with --config {path}")
    command = f"ragforge {next_command(answers, found)}"
    if arguments.json:
        print(dumps({"file": str(path), "next": command}))
    else:
        show(str(path))
        say(f"next: {command}")
    return 0


def _answers(arguments: argparse.Namespace, found: "Found") -> "Answers":
    from ragforge.pipeline.first_settings import Answers

    offered = Answers(
        documents=next(iter(found.documents), ""),
        questions=next(iter(found.tables), ""),
        dataset=next(iter(found.sets), "my-set"),
    )
    flags = ("documents", "questions", "retriever", "model", "dataset")
    given = {name: value for name in flags if (value := getattr(arguments, name)) is not None}
    answers = replace(offered, **given)
    if arguments.yes:
        return answers
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on; --yes takes what is offered")
    _tell(found)
    asked: list[tuple[str, str, Callable[[str], bool]]] = [
        ("documents", "Where are your documents? A folder, or none", _is_folder),
        ("questions", "A table of questions that you have? A file, or none", _is_file),
        ("retriever", "Your retriever? An address, package.module:name, or bm25", bool),
        ("model", "Which model grades? NAME, NAME@URL, or offline", bool),
        ("dataset", "Where is the set to be?", bool),
    ]
    for name, question, is_right in asked:
        if name not in given and not (name == "questions" and not found.tables):
            answers = replace(answers, **{name: _ask(question, getattr(answers, name), is_right)})
    return answers


def _tell(found: "Found") -> None:
    """Say what lies here."""
    folders = [f"{name} ({n:,})" for name, n in found.documents.items()][:_SHOWN]
    for what, names in (
        ("documents", folders),
        ("sets", found.sets[:_SHOWN]),
        ("tables of questions", found.tables[:_SHOWN]),
        ("keys, by name", found.keys[:_SHOWN]),
    ):
        say(f"{what}: {', '.join(names) or 'none found'}")


def _ask(question: str, offered: str, is_right: Callable[[str], bool]) -> str:
    """Return an answer; nothing typed takes what is offered."""
    while True:
        sys.stderr.write(f"{question} [{offered or 'none'}]: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise UsageError("the answers ended; nothing was written")
        answer = line.strip() or offered
        answer = "" if answer == "none" else answer
        if is_right(answer):
            return answer
        say(f"{answer or 'none'}: there is no such thing here")


def _is_folder(answer: str) -> bool:
    return not answer or Path(answer).is_dir()


def _is_file(answer: str) -> bool:
    return not answer or Path(answer).is_file()


def _check(content: bytes) -> None:
    """Refuse settings that no command would take, before anything is written.

    Raises:
        ConfigError: An answer is not allowed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DEFAULT_FILE
        path.write_bytes(content)
        try:
            load(path, environment={})
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"{path}: ", "")) from error


def _write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there.

    Raises:
        DataError: It cannot be written, or is there meanwhile.
    """
    try:
        with path.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
