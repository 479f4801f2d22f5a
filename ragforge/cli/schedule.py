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
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from string import Template
from types import MappingProxyType
from typing import Final, NoReturn

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps
from ragforge.config import load
from ragforge.errors import UsageError
from ragforge.files.shipped_folders import shipped
from ragforge.files.text import checked_name

DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "config": "nightly.toml",
        "user": "ragforge",
        "time": "03:00",
        "retriever": "bm25",
        "run": "nightly",
        "gate": "--min nDCG@10=0.60 --max-failures 0.01",
        "report": "report.html",
    }
)
"""Of the flags, where they are not given."""
DATASET: Final = "sets/help"
"""Where neither --dataset nor the settings file names one; that of the shipped settings."""
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
"""Where systemd and the crontab look for programs."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@=,+-]+")
"""What means itself in a shell, in units of systemd, in crontabs, in YAML and in Python."""
_SCALAR: Final = re.compile(r"[A-Za-z0-9_./](.*[^:])?")
"""What YAML takes for a text, no command for a flag, and systemd for a plain path."""
_USER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}")
_CLOCK: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_HOURS: Final = frozenset({"hour", "minute", "hour_padded", "minute_padded"})
_OF_FLAGS: Final[Mapping[str, Set[str]]] = MappingProxyType(
    {
        "time": _HOURS,
        "gate": frozenset({"gate", "gate_list"}),
        "config": frozenset({"config", "dataset"}),
    }
)
"""Flags that are put in under other names; the settings file also names the set."""

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


def values_of(given: Mapping[str, str | None], wanted: Set[str], where: str) -> dict[str, str]:
    """Return what goes into the holes; what no hole wants is not looked at.

    Args:
        given: Values of flags; None where one was not given.
        wanted: Names of the holes.
        where: Name of the schedule.

    Raises:
        UsageError: A value would mean something else in a schedule, or can never work.
    """
    flags = {**DEFAULTS, **{name: text for name, text in given.items() if text is not None}}
    values: dict[str, str] = {}
    if wanted & _HOURS:
        values |= _clock(flags["time"])
    if "program" in wanted:
        values["program"] = " ".join(_program(flags.get("program"), where))
    if wanted & _OF_FLAGS["gate"]:
        values |= _rules(flags["gate"])
    if "dataset" in wanted and "dataset" not in flags:
        flags["dataset"] = _dataset_of(Path(flags["config"]))
    flags.setdefault("directory", str(Path.cwd()))
    for name in sorted(wanted & flags.keys() - values.keys()):
        values[name] = _CHECKS.get(name, _scalar)(name, flags[name])
        if where == "github":
            _check_in_repository(name, values[name])
    return values


def unused(given: Mapping[str, str | None], wanted: Set[str]) -> list[str]:
    """Return the flags that were given and that no hole wants."""
    return [
        f"--{name}"
        for name, text in given.items()
        if text is not None and not wanted & _OF_FLAGS.get(name, frozenset({name}))
    ]


def _clock(time: str) -> dict[str, str]:
    clock = _CLOCK.fullmatch(time)
    if clock is None:
        raise UsageError(f"--time {time}: expected HH:MM, such as 03:00")
    hour, minute = clock.groups()
    return {
        "hour": str(int(hour)),
        "minute": str(int(minute)),
        "hour_padded": hour,
        "minute_padded": minute,
    }


def _dataset_of(config: Path) -> str:
    named = load(config).refresh.dataset if config.is_file() else ""
    return named or DATASET


def _program(given: str | None, where: str) -> list[str]:
    if given is None:
        here = Path(sys.executable).parent / "ragforge"
        found = str(here) if here.is_file() else shutil.which("ragforge")
        words = [found] if found else [sys.executable, "-m", "ragforge"]
        return [_plain("program", word) for word in words]
    words = _words("program", given)
    first = words[0]
    if "/" in first:
        _absolute("program", first)
    elif shutil.which(first, path=None if where == "airflow" else PATH) is None:
        places = "the PATH" if where == "airflow" else PATH
        raise UsageError(
            f"--program {first!r}: no such program in {places}; expected an absolute path, such as "
            "/opt/ragforge/bin/ragforge"
        )
    return words


def _rules(text: str) -> dict[str, str]:
    """Return flags of `ragforge gate`, which its own parser has to take."""
    from ragforge.cli import gate

    words = _words("gate", text)
    parser = _Refusing(prog="ragforge gate", add_help=False, allow_abbrev=False)
    gate.configure(parser)
    try:
        read = parser.parse_args(["--dataset", "DIR", "--run", "NAME", *words])
        gate.rules_of(read)
    except UsageError as error:
        raise UsageError(f"--gate {text!r}: {error}") from error
    if (read.dataset, read.run) != (Path("DIR"), "NAME"):
        raise UsageError(
            f"--gate {text!r}: holds --dataset or --run; give those to `ragforge schedule` itself"
        )
    return {"gate": " ".join(words), "gate_list": ", ".join(json.dumps(word) for word in words)}


class _Refusing(argparse.ArgumentParser):
    """One that raises where others print and end the program."""

    def error(self, message: str) -> NoReturn:
        """Refuse the words."""
        raise UsageError(message)


def _words(name: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--{name} {text!r}: {str(error).lower()}") from error
    if not words:
        raise UsageError(f"--{name}: expected at least one word")
    for word in words:
        if _plain(name, word).endswith(":"):
            raise UsageError(f"--{name} {word!r}: ends with a colon, which YAML reads as a key")
    return words


def _plain(name: str, text: str) -> str:
    if not _PLAIN.fullmatch(text):
        raise UsageError(
            f"--{name} {text!r}: expected letters, digits and _ . / : @ = , + - only, which mean "
            "the same in every kind of schedule"
        )
    return text


def _scalar(name: str, text: str) -> str:
    if not _SCALAR.fullmatch(_plain(name, text)):
        raise UsageError(
            f"--{name} {text!r}: expected a letter, digit or one of _ . / first and no colon last; "
            "a command would read it as a flag, or YAML as something else"
        )
    return text


def _absolute(name: str, text: str) -> str:
    path = PurePosixPath(_scalar(name, text))
    if not path.is_absolute() or ".." in path.parts:
        raise UsageError(
            f"--{name} {text!r}: expected an absolute path without .., as a schedule starts in "
            "another directory than this one"
        )
    return text


def _user(name: str, text: str) -> str:
    if not _USER.fullmatch(text):
        raise UsageError(
            f"--{name} {text!r}: expected the name of a user: a letter or _, then up to 30 "
            "letters, digits and _ . -"
        )
    return text


def _run(name: str, text: str) -> str:
    try:
        return _plain(name, checked_name(text))
    except UsageError as error:
        raise UsageError(f"--{name}: {error}") from error


def _check_in_repository(name: str, text: str) -> None:
    path = PurePosixPath(text)
    if name in ("config", "dataset", "report") and (path.is_absolute() or ".." in path.parts):
        raise UsageError(
            f"--{name} {text!r}: expected a path in the repository, which the workflow checks out"
        )


_CHECKS: Final[Mapping[str, Callable[[str, str], str]]] = MappingProxyType(
    {"directory": _absolute, "user": _user, "run": _run}
)


@dataclass(frozen=True, slots=True)
class _Schedule:
    """A shipped file."""

    file: str
    what: str
    place: str
    """Where it belongs."""


SCHEDULES: Final = {
    "systemd-service": _Schedule(
        "schedules/ragforge-nightly.service",
        "unit of systemd, confined, that runs the commands",
        "/etc/systemd/system/ragforge-nightly.service",
    ),
    "systemd-timer": _Schedule(
        "schedules/ragforge-nightly.timer",
        "timer that starts the unit every night",
        "/etc/systemd/system/ragforge-nightly.timer",
    ),
    "cron": _Schedule(
        "schedules/ragforge-nightly.cron",
        "line of a crontab that mails what failed",
        "/etc/cron.d/ragforge-nightly",
    ),
    "github": _Schedule(
        "schedules/github-workflow.yml",
        "workflow of GitHub Actions",
        ".github/workflows/ragforge-nightly.yml",
    ),
    "kubernetes": _Schedule(
        "schedules/kubernetes-cronjob.yaml",
        "CronJob with its volume",
        "kubectl apply -f FILE",
    ),
    "airflow": _Schedule(
        "schedules/airflow_dag.py", "DAG of Airflow 3", "the folder of DAGs: ragforge_nightly.py"
    ),
    "settings": _Schedule(
        "nightly.toml", "settings file that the others name", "nightly.toml beside your sets"
    ),
}


class _Holes(Template):
    """Holes are written @@{name}: $ and % mean something in every one of these files."""

    delimiter = "@@"


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
        _list(as_json=arguments.json)
        return 0
    schedule = SCHEDULES.get(arguments.name)
    if schedule is None:
        raise UsageError(f"no schedule {arguments.name!r}; there are: {', '.join(SCHEDULES)}")
    source = (shipped("configs") / schedule.file).read_text(encoding="utf-8")
    holes = _Holes(source)
    given = {name: getattr(arguments, name) for name in _FLAGS}
    wanted = set(holes.get_identifiers())
    text = holes.substitute(values_of(given, wanted, arguments.name))
    if passed_over := unused(given, wanted):
        say(f"not used by {arguments.name}: {', '.join(passed_over)}")
    if "config" in wanted and arguments.config is None and Path(DEFAULTS["config"]).is_file():
        say(
            f"settings: the schedule names {DEFAULTS['config']} of this folder, which may then "
            "choose code, commands, models and addresses: read it first"
        )
    if arguments.json:
        print(dumps({"name": arguments.name, "place": schedule.place, "text": text}))
    else:
        print(text, end="")
    return 0


def _list(*, as_json: bool) -> None:
    if as_json:
        found = [
            {"name": name, "what": item.what, "place": item.place}
            for name, item in SCHEDULES.items()
        ]
        print(dumps({"schedules": found}))
        return
    from ragforge.evaluating.formatting import render_table

    rows = [[name, item.what, item.place] for name, item in SCHEDULES.items()]
    print(render_table(["schedule", "what it is", "where it belongs"], rows))
