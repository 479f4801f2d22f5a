"""The command line: the only place that prints. Each command is a module, imported when chosen.

stdout carries data, stderr carries talk. What the exit codes mean is in `errors`.
"""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "demo": "the whole pipeline on the shipped sample: dataset, judgments, measures, report",
    "chunk": "cut documents into chunks",
    "generate": "make queries with answers and evidence from documents or chunks",
    "retrieve": "run a retriever over the queries",
    "sweep": "find the chunk size, splitter and retriever that find most evidence",
    "runs": "list the runs of a dataset, remove or rename one",
    "judge": "grade how well retrieved chunks answer the queries, 0-3",
    "answer": "grade the answers of a RAG system",
    "ground": "check that answers say only what their retrieved chunks say",
    "evaluate": "compute measures from judgments and runs",
    "compare": "tell which of several runs or systems is better, and how surely",
    "gate": "decide whether a run may ship, by thresholds and a baseline: an exit code for CI",
    "history": "show how runs did over time: what changed, and where measures go",
    "diff": "show how two versions of a set differ, and why",
    "report": "write a page about a dataset: measures, worst queries, failures",
    "worst": "show where a run does badly, and the likely cause",
    "view": "serve live pages about datasets on loopback",
    "refresh": "follow a corpus that changed: the next version of a set, night by night",
    "schedule": "print a schedule for every night: systemd, cron, GitHub, Kubernetes, Airflow",
    "import": "bring queries, labels, runs and logs of others into a dataset",
    "export": "write a dataset in the form of other tools: TREC, BEIR, JSON",
    "review": "have people approve, edit, reject or pin queries: a sheet out, decisions in",
    "validate": "check a dataset: formats, ids, digests",
    "schema": "print the JSON schema of a record",
    "prompts": "list, show, compare or copy the prompts; render what a model would be asked",
    "config": "show the settings in force",
    "cache": "look into the call store: what was bought, export, import, prune",
    "help": "explain a subject: measures",
    "mock": "serve a scriptable OpenAI-compatible endpoint on loopback, to rehearse with",
}
"""Every command with what it does; the order is that of the help."""

_TWO_WORDS = frozenset({("judge", "audit"), ("config", "trust")})
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
        "sweep",
    ),
    "what was done is kept",
)
"""Commands that keep what an interrupt leaves half done."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: The words behind the program's name; those of the process where None.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _dispatch(words)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _interrupted(words)
    except OSError as error:
        print(f"ragforge: error: standard output: {error.strerror}", file=sys.stderr)
        return 3


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_help(), flush=True)
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from ragforge import __version__

        print(f"ragforge {__version__}")
        return 0
    name = words[0]
    if name not in COMMANDS:
        return _unknown(name)
    from ragforge.cli.invocation import invoke

    second = words[1] if tuple(words[:2]) in _TWO_WORDS else ""
    return invoke(import_module(f"ragforge.cli.{name.replace('import', 'import_')}"), words, second)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: ragforge COMMAND [OPTION…]     (also: python -m ragforge COMMAND …)",
            "",
            "Make, judge and measure evaluation sets for retrieval-augmented generation.",
            "",
            "commands:",
            *lines,
            "",
            "start here:",
            "  ragforge demo                                         no key, no network",
            "  ragforge generate --documents DOCS -n 20 --out SET    your own documents, offline",
            "  ragforge COMMAND --help                               what a command takes",
            "",
            "exit codes: 0 done, 1 gate failed, 2 usage, 3 bad data, 4 model endpoint,",
            "            5 budget or shortfall, 70 bug, 130 interrupted",
        ]
    )


def _unknown(name: str) -> int:
    from ragforge.errors import did_you_mean

    near = did_you_mean(name, COMMANDS) or "; `ragforge --help` lists them"
    print(f"ragforge: error: no command {name!r}{near}", file=sys.stderr)
    return 2


def _interrupted(words: Sequence[str]) -> int:
    from ragforge.cli.invocation import resume_hint

    print(
        f"\nragforge: interrupted; {_KEPT.get(words[0], 'nothing was written')}. To go on:\n"
        f"{resume_hint(words)}",
        file=sys.stderr,
    )
    return 130
