"""The command line: the only place that prints. Each command is a module, imported when chosen.

stdout carries data, stderr carries talk. What the exit codes mean is in `errors`.
"""

import atexit
import errno
import gc
import io
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TextIO, cast

COMMANDS = {
    "init": "look at this folder, ask five questions at most, write a ragforge.toml",
    "demo": "the whole pipeline on the shipped sample: dataset, judgments, measures, report",
    "chunk": "cut documents into chunks",
    "generate": "make queries with answers and evidence from documents or chunks",
    "import": "bring queries, labels, runs and logs of others into a dataset",
    "review": "have people approve, edit, reject or pin queries: a sheet out, decisions in",
    "validate": "check a dataset: formats, ids, digests",
    "export": "write a dataset in the form of other tools: TREC, BEIR, JSON",
    "plan": "say how many queries and judged pairs a decision takes, and what they cost",
    "retrieve": "run a retriever over the queries",
    "judge": "grade how well retrieved chunks answer the queries, 0-3",
    "shard": "judge more pairs than one machine should: cut, run anywhere, merge",
    "calibrate": "find out how far a judge can be trusted, by labels of people",
    "answer": "grade the answers of a RAG system",
    "ground": "check that answers say only what their retrieved chunks say",
    "probe": "ask a retriever or system one question, and show what is understood of its reply",
    "sweep": "find the chunk size, splitter and retriever that find most evidence",
    "runs": "list the runs of a dataset, remove or rename one",
    "evaluate": "compute measures from judgments and runs",
    "compare": "tell which of several runs or systems is better, and how surely",
    "gate": "decide whether a run may ship, by thresholds and a baseline: an exit code for CI",
    "worst": "show where a run does badly, and the likely cause",
    "report": "write a page about a dataset: measures, worst queries, failures",
    "plot": "draw a picture of a set: a comparison, a trend, a calibration",
    "view": "serve live pages about datasets on loopback",
    "history": "show how runs did over time: what changed, and where measures go",
    "refresh": "follow a corpus that changed: the next version of a set, night by night",
    "diff": "show how two versions of a set differ, and why",
    "schedule": "print a schedule for every night: systemd, cron, GitHub, Kubernetes, Airflow",
    "help": "explain a subject: measures, chunks, judges, budgets, files, exit-codes, …",
    "config": "show the settings in force",
    "prompts": "list, show, compare or copy the prompts; render what a model would be asked",
    "cache": "look into the call store: what was bought, export, import, prune",
    "schema": "print the JSON schema of a record",
    "completion": "print a script by which bash, zsh or fish complete commands and options",
    "mock": "serve a scriptable OpenAI-compatible endpoint on loopback, to rehearse with",
}
"""Every command with what it does; the order is that of the help."""

_HEADINGS = {
    "init": "make a set",
    "plan": "run and grade",
    "evaluate": "measure and decide",
    "refresh": "keep it fresh",
    "help": "look up, set up",
}
"""What stands above a command in the help."""
_MAIN_PATH = """\
ragforge makes, judges and measures evaluation sets for retrieval-augmented generation.

try it, without a key and without network:
  ragforge demo

from your documents and your retriever to "is the change better?":
  ragforge generate --documents docs/ -n 50 --out my-set    queries, with answers
  ragforge compare --dataset my-set --retriever SPEC --retriever SPEC --judge
                                          runs, grades 0-3, which is better, how surely
  ragforge gate --dataset my-set --run NAME --min RR=0.6    an exit code for CI

from questions that you have and a service:
  ragforge import questions.csv --out my-set                then compare, and gate

each command says what to do next; step by step they are retrieve, judge, evaluate

more:
  ragforge init              looks at this folder, and writes a ragforge.toml
  ragforge --help            all commands
  ragforge COMMAND --help    what a command takes
  ragforge help TOPIC        measures, chunks, judges, budgets, files, exit-codes, settings, …"""

TWO_WORDS = frozenset({("judge", "audit"), ("judge", "canary"), ("config", "trust")})
"""Commands of two words, in the module of the first, which alone is a command too."""
_KEPT = dict.fromkeys(
    (
        "generate",
        "retrieve",
        "judge",
        "answer",
        "ground",
        "evaluate",
        "compare",
        "demo",
        "refresh",
        "shard",
        "sweep",
    ),
    "what was done is kept",
)
"""Commands that keep what an interrupt leaves half done."""


_COLLECT_AFTER = 200_000
"""Objects that are made before the collector looks at the youngest; Python has 700."""


class _Outliving:
    """A stream whose reader may leave: the command goes on, and its exit code says how it ended.

    So may one who closes the terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, to nowhere when the reader has left."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._write_nowhere(error)
            return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        try:
            self._stream.flush()
        except OSError as error:
            self._write_nowhere(error)

    def _write_nowhere(self, error: OSError) -> None:
        """Drop what is written from now on, unless the error is another one than a reader's end."""
        is_device = stat.S_ISCHR(os.fstat(self._stream.fileno()).st_mode)
        is_closed_terminal = error.errno == errno.EIO and is_device
        if not (isinstance(error, BrokenPipeError) or is_closed_terminal):
            raise error
        self.give_up()

    def give_up(self) -> None:
        """Write nowhere from now on, and there what could not be written."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._stream.flush()


@contextmanager
def _outliving_streams() -> Iterator[None]:
    """Let stdout and stderr outlive their readers, and write any text."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (
        cast(TextIO, _Outliving(stream)) if isinstance(stream, io.TextIOWrapper) else stream
        for stream in streams
    )
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                _end(stream)
        sys.stdout, sys.stderr = streams


def _end(stream: TextIO) -> None:
    """Hand on the last of what was written.

    What a full disk does not take is given up: Python would try once more, and end with code 120.
    """
    try:
        stream.flush()
    except OSError:
        if isinstance(stream, _Outliving):
            stream.give_up()
    except ValueError:
        pass  # It is closed.


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: The words behind the program's name; those of the process where None.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    # Threads of OpenBLAS spin for 30 ms when numpy is imported, whether anything is to be computed
    # or not; so they sleep after 2^4 cycles.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # A twentieth of the start goes into looking for garbage among what was just imported.
    gc.set_threshold(_COLLECT_AFTER)
    # A sixth of a short command goes into looking, as it ends, for what may be taken apart.
    atexit.register(gc.freeze)
    with _outliving_streams():
        try:
            return _dispatch(words)
        except KeyboardInterrupt:
            return _interrupted(words)
        except OSError as error:
            print(f"ragforge: error: standard output: {error.strerror}", file=sys.stderr)
            return 3


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_help() if words else _MAIN_PATH, flush=True)
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from ragforge.cli.versions import version_text

        print(version_text())
        return 0
    name = words[0]
    if name not in COMMANDS:
        return _unknown(name)
    from ragforge.cli.invocation import invoke

    second = words[1] if tuple(words[:2]) in TWO_WORDS else ""
    return invoke(import_module(f"ragforge.cli.{name.replace('import', 'import_')}"), words, second)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = []
    for name, what in COMMANDS.items():
        if name in _HEADINGS:
            lines += ["", f"{_HEADINGS[name]}:"]
        lines.append(f"  {name:<{width}}  {what}")
    return "\n".join(
        [
            "usage: ragforge COMMAND [OPTION…]     (also: python -m ragforge COMMAND …)",
            "",
            "Make, judge and measure evaluation sets for retrieval-augmented generation.",
            *lines,
            "",
            "`ragforge` alone shows the way from documents to a decision, `ragforge help` which",
            "subjects are explained, `ragforge COMMAND --help` what a command takes.",
        ]
    )


def _unknown(name: str) -> int:
    from ragforge.errors import did_you_mean

    is_option = name.startswith("-")
    there = ("--help", "--version") if is_option else COMMANDS
    near = did_you_mean(name, there) or "; `ragforge --help` lists them"
    from ragforge.api.progress import say

    say(f"ragforge: error: no {'option' if is_option else 'command'} {name!r}{near}")
    return 2


def _interrupted(words: Sequence[str]) -> int:
    from ragforge.cli.invocation import resume_hint

    print(
        f"\nragforge: interrupted; {_KEPT.get(words[0], 'nothing was written')}. To go on:\n"
        f"{resume_hint(words)}",
        file=sys.stderr,
    )
    return 130
