"""Ready-made schedules that refresh, evaluate, report and gate a set every night."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import field, replace
from os import PathLike
from pathlib import Path, PurePosixPath
from string import Template
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ragforge.api.results import Result
from ragforge.config import load
from ragforge.deferred import dataclass
from ragforge.errors import UsageError, did_you_mean
from ragforge.evaluating.formatting import render_table
from ragforge.files.shipped_folders import shipped
from ragforge.files.text import checked_name

if TYPE_CHECKING:
    from ragforge.api.call import Handle
    from ragforge.api.keywords import GateKeywords

CheckGate: TypeAlias = Callable[[str, list[str]], None]
"""Refuses flags of `ragforge gate`: told them as they were given, and as words."""

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


@dataclass(frozen=True, slots=True)
class _Shipped:
    """A shipped file."""

    file: str
    what: str
    place: str
    """Where it belongs."""


SCHEDULES: Final = {
    "systemd-service": _Shipped(
        "schedules/ragforge-nightly.service",
        "unit of systemd, confined, that runs the commands",
        "/etc/systemd/system/ragforge-nightly.service",
    ),
    "systemd-timer": _Shipped(
        "schedules/ragforge-nightly.timer",
        "timer that starts the unit every night",
        "/etc/systemd/system/ragforge-nightly.timer",
    ),
    "cron": _Shipped(
        "schedules/ragforge-nightly.cron",
        "line of a crontab that mails what failed",
        "/etc/cron.d/ragforge-nightly",
    ),
    "github": _Shipped(
        "schedules/github-workflow.yml",
        "workflow of GitHub Actions",
        ".github/workflows/ragforge-nightly.yml",
    ),
    "kubernetes": _Shipped(
        "schedules/kubernetes-cronjob.yaml",
        "CronJob with its volume",
        "kubectl apply -f FILE",
    ),
    "airflow": _Shipped(
        "schedules/airflow_dag.py", "DAG of Airflow 3", "the folder of DAGs: ragforge_nightly.py"
    ),
    "settings": _Shipped(
        "nightly.toml", "settings file that the others name", "nightly.toml beside your sets"
    ),
}


class _Holes(Template):
    """Holes are written @@{name}: $ and % mean something in every one of these files."""

    delimiter = "@@"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Schedule(Result):
    """A schedule, ready to be put into its place.

    Args:
        name: Of the kind, such as cron.
        place: Where it belongs.
        text: What is written there.
        notes: What to know: values that it has no use for, and what it trusts.
    """

    name: str
    place: str
    text: str
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge schedule NAME --json` prints."""
        return {"name": self.name, "place": self.place, "text": self.text}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row."""
        return [self.to_dict()]

    def table(self) -> str:
        """Return the text."""
        return self.text.removesuffix("\n")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ScheduleList(Result):
    """The kinds of schedules there are."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge schedule --json` prints."""
        return {"schedules": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each kind."""
        return [
            {"name": name, "what": item.what, "place": item.place}
            for name, item in SCHEDULES.items()
        ]

    def table(self) -> str:
        """Return the kinds, what each is, and where it belongs, as text."""
        rows = [list(row.values()) for row in self.rows()]
        return render_table(["schedule", "what it is", "where it belongs"], rows)


def list_schedules() -> ScheduleList:
    """List the kinds of schedules: for systemd, cron, GitHub, Kubernetes and Airflow."""
    return ScheduleList()


def schedule(
    name: str,
    *,
    dataset: str | PathLike[str] | None = None,
    config: str | PathLike[str] | None = None,
    directory: str | PathLike[str] | None = None,
    user: str | None = None,
    time: str | None = None,
    retriever: str | None = None,
    run: str | None = None,
    gate: "GateKeywords | None" = None,
    report: str | PathLike[str] | None = None,
    program: str | None = None,
) -> Schedule:
    """Fill in a ready-made schedule that refreshes, evaluates, reports and gates every night.

    Names and paths are put in as they are, so they may not have spaces or quotes.

    Args:
        name: Of the kind: see `list_schedules`; `settings` is an example of a settings file.
        dataset: The set; that of the settings file where None, else sets/help.
        config: The settings file; nightly.toml where None.
        directory: Where the commands run, absolute; this one where None.
        user: Who runs them; ragforge where None.
        time: HH:MM; 03:00 where None.
        retriever: A name, an address or `package.module:attribute`; bm25 where None.
        run: Name of the run; nightly where None.
        gate: Rules, as `EvaluationSet.gate` takes them: {"min": {"nDCG@10": 0.6}}.
        report: File of the report; report.html where None.
        program: How ragforge is called; as it is here where None.

    Raises:
        UsageError: There is no such kind, or a value would mean something else there, or can
            never work.
        TypeError: The gate takes no such rule.
    """
    given = {
        "dataset": dataset,
        "config": config,
        "directory": directory,
        "user": user,
        "time": time,
        "retriever": retriever,
        "run": run,
        "gate": None if gate is None else _gate_flags(gate),
        "report": report,
        "program": program,
    }
    texts = {key: None if value is None else str(value) for key, value in given.items()}
    from ragforge.api.call import as_keywords, naming_keywords  # The command needs neither.

    with naming_keywords():
        made = fill_schedule(name, texts, lambda text, words: None)
    return replace(made, notes=tuple(map(as_keywords, made.notes)))


def schedule_of(
    handle: "Handle",
    name: str,
    *,
    config: str | PathLike[str] | None = None,
    directory: str | PathLike[str] | None = None,
    user: str | None = None,
    time: str | None = None,
    retriever: str | None = None,
    run: str | None = None,
    gate: "GateKeywords | None" = None,
    report: str | PathLike[str] | None = None,
    program: str | None = None,
) -> Schedule:
    """Fill in a ready-made schedule for this set; see `ragforge.schedule`."""
    return schedule(
        name,
        dataset=handle.path,
        config=config,
        directory=directory,
        user=user,
        time=time,
        retriever=retriever,
        run=run,
        gate=gate,
        report=report,
        program=program,
    )


def fill_schedule(name: str, given: Mapping[str, str | None], check_gate: CheckGate) -> Schedule:
    """Return a schedule with values put in.

    Args:
        name: Of the kind.
        given: Values by flag, without dashes; None where one was not given.
        check_gate: Refuses rules that the gate does not take.

    Raises:
        UsageError: There is no such kind, or a value cannot be taken.
    """
    found = SCHEDULES.get(name)
    if found is None:
        near = did_you_mean(name, SCHEDULES)
        raise UsageError(f"no schedule {name!r}{near}; there are: {', '.join(SCHEDULES)}")
    holes = _Holes((shipped("configs") / found.file).read_text(encoding="utf-8"))
    wanted = set(holes.get_identifiers())
    text = holes.substitute(_values_of(given, wanted, name, check_gate))
    notes = []
    if passed_over := _unused(given, wanted):
        notes.append(f"not used by {name}: {', '.join(passed_over)}")
    if "config" in wanted and given.get("config") is None and Path(DEFAULTS["config"]).is_file():
        notes.append(
            f"settings: the schedule names {DEFAULTS['config']} of this folder, which may then "
            "choose code, commands, models and addresses: read it first"
        )
    return Schedule(name, found.place, text, tuple(notes))


def _gate_flags(gate: "GateKeywords") -> str:
    """Return rules as flags of `ragforge gate`.

    Raises:
        UsageError: They cannot be held.
        TypeError: There is no such rule.
    """
    from ragforge.api.gating import allowances, checked_rules, given_rules  # Not for --help.

    checked_rules(given_rules(gate), gate.get("baseline"))
    words: list[str] = []
    for name, value in gate.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, Mapping):
            for measure, least in value.items():
                words += [flag, f"{measure}={least!r}"]
        elif name == "allow":
            words += [f"--allow-{allowed}" for allowed in allowances(gate["allow"])]
        elif value is True:
            words.append(flag)
        elif value not in (None, False):
            words += [flag, str(value)]
    return shlex.join(words)


def _values_of(
    given: Mapping[str, str | None], wanted: Set[str], where: str, check_gate: CheckGate
) -> dict[str, str]:
    """Return what goes into the holes; what no hole wants is not looked at.

    Args:
        given: Values of flags; None where one was not given.
        wanted: Names of the holes.
        where: Name of the schedule.
        check_gate: Refuses rules that the gate does not take.

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
        words = _words("gate", flags["gate"])
        check_gate(flags["gate"], words)
        values |= {"gate": " ".join(words), "gate_list": ", ".join(map(json.dumps, words))}
    if "dataset" in wanted and "dataset" not in flags:
        flags["dataset"] = _dataset_of(Path(flags["config"]))
    flags.setdefault("directory", str(Path.cwd()))
    for name in sorted(wanted & flags.keys() - values.keys()):
        values[name] = _CHECKS.get(name, _scalar)(name, flags[name])
        if where == "github":
            _check_in_repository(name, values[name])
    return values


def _unused(given: Mapping[str, str | None], wanted: Set[str]) -> list[str]:
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
