"""Print a ready-made schedule that refreshes, evaluates, reports and gates every night.

Without a name, lists what there is. Each schedule runs the same four commands: `refresh`,
`evaluate` with your retriever, `report`, and `gate`; their exit codes decide what is tried again.
Names and paths are put in as they are, so they may not have spaces or quotes; what can never work,
such as a rule that `gate` does not take, is refused. `settings` is a commented example of the
settings file that the others name.

Examples:
  ragforge schedule
  ragforge schedule settings > nightly.toml
  ragforge schedule cron --config nightly.toml --time 02:30 | sudo tee /etc/cron.d/ragforge-nightly
  ragforge schedule systemd-service --user search --retriever my_app.search:retriever
  ragforge schedule github --dataset sets/help --gate "--max-drop nDCG@10=0.02 --baseline last"
"""

import argparse
from typing import Final

from ragforge.api.progress import say
from ragforge.api.schedules import (
    DATASET,
    DEFAULTS,
    SCHEDULES,
    fill_schedule,
    list_schedules,
)
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps
from ragforge.cli.parser import Parser
from ragforge.errors import UsageError

_FLAGS: Final = {
    "config": ("FILE", ""),
    "dataset": ("DIR", f"default: that of the settings file where it is there, else {DATASET}"),
    "directory": ("DIR", "where the commands run, absolute (default: this one)"),
    "user": ("NAME", ""),
    "time": ("HH:MM", ""),
    "retriever": ("SPEC", ""),
    "run": ("NAME", ""),
    "gate": ("RULES", "flags of `ragforge gate`, as one word"),
    "report": ("FILE", ""),
    "program": (
        "COMMAND",
        "how ragforge is called: an absolute path, or a name on PATH (default: as it is here)",
    ),
}
"""What is put in: how the value is called, and what else is to be told of it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of {', '.join(SCHEDULES)}")
    add_json(parser)
    group = parser.add_argument_group("what is put in")
    for name, (metavar, text) in _FLAGS.items():
        default = f"default: {DEFAULTS[name]}" if name in DEFAULTS else ""
        told = "; ".join(filter(None, (text, default)))
        group.add_argument(f"--{name}", metavar=metavar, help=told)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.name is None:
        listed = list_schedules()
        print(dumps(listed.to_dict()) if arguments.json else listed.table())
        return 0
    given = {name: getattr(arguments, name) for name in _FLAGS}
    made = fill_schedule(arguments.name, given, _check_gate)
    for note in made.notes:
        say(note)
    if arguments.json:
        print(dumps(made.to_dict()))
    else:
        print(made.text, end="")
    return 0


def _check_gate(text: str, words: list[str]) -> None:
    """Refuse flags that the parser of `ragforge gate` does not take."""
    from ragforge.cli import gate

    parser = Parser(prog="ragforge gate", add_help=False)
    gate.configure(parser)
    try:
        read = parser.parse_args(words)
        gate.rules_of(read)
    except UsageError as error:
        raise UsageError(f"--gate {text!r}: {error}") from error
    if read.dataset is not None or read.run is not None:
        raise UsageError(
            f"--gate {text!r}: holds --dataset or --run; give those to `ragforge schedule` itself"
        )
    if read.plan or read.answers is not None:
        flag = "--plan" if read.plan else "--answers"
        raise UsageError(f"--gate {text!r}: {flag} decides on no run, and a schedule makes one")
    if read.judge_as_needed == (read.base is None):
        raise UsageError(f"--gate {text!r}: --judge-as-needed and --base RUN go together")
