"""Print a ready-made schedule that refreshes, evaluates, reports and gates every night.

Without a name, lists what there is. Each schedule runs the same four commands: `refresh`,
`evaluate` with your retriever, `report`, and `gate`; their exit codes decide what is tried again.
Names and paths are put in as they are, so they may not have spaces or quotes. `settings` is a
commented example of the settings file that the others name.

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
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from ragforge.cli.flags import add_json, dumps
from ragforge.config import load
from ragforge.errors import UsageError
from ragforge.files.resources import shipped

_DATASET: Final = "sets/help"
"""Where neither --dataset nor the settings file names one; that of the shipped settings."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@=,+-]+")
"""What means itself in a shell, in units of systemd, in crontabs, in YAML and in Python."""
_CLOCK: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


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
    group.add_argument(
        "--config", default="nightly.toml", metavar="FILE", help="default: nightly.toml"
    )
    group.add_argument(
        "--dataset",
        metavar="DIR",
        help=f"default: that of the settings file where it is there, else {_DATASET}",
    )
    group.add_argument(
        "--directory", metavar="DIR", help="where the commands run (default: this one)"
    )
    group.add_argument("--user", default="ragforge", metavar="NAME", help="default: ragforge")
    group.add_argument("--time", default="03:00", metavar="HH:MM", help="default: 03:00")
    group.add_argument("--retriever", default="bm25", metavar="SPEC", help="default: bm25")
    group.add_argument("--run", default="nightly", metavar="NAME", help="default: nightly")
    group.add_argument(
        "--gate",
        default="--min nDCG@10=0.60 --max-failures 0.01",
        metavar="RULES",
        help="flags of `ragforge gate`, as one word (default: --min nDCG@10=0.60 --max-failures "
        "0.01)",
    )
    group.add_argument(
        "--report", default="report.html", metavar="FILE", help="default: report.html"
    )
    group.add_argument(
        "--program", metavar="COMMAND", help="how ragforge is called (default: as it is here)"
    )


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
    text = holes.substitute(_values(arguments, set(holes.get_identifiers())))
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
    from ragforge.report.table import render_table

    rows = [[name, item.what, item.place] for name, item in SCHEDULES.items()]
    print(render_table(["schedule", "what it is", "where it belongs"], rows))


def _values(arguments: argparse.Namespace, wanted: Set[str]) -> dict[str, str]:
    """Return what goes into the holes; what no hole wants is not looked at."""
    clock = _CLOCK.fullmatch(arguments.time)
    if clock is None:
        raise UsageError(f"--time {arguments.time}: expected HH:MM, such as 03:00")
    hour, minute = clock.groups()
    texts = {
        "config": arguments.config,
        "dataset": arguments.dataset or _dataset_of(Path(arguments.config)),
        "directory": arguments.directory or str(Path.cwd()),
        "user": arguments.user,
        "retriever": arguments.retriever,
        "run": arguments.run,
        "report": arguments.report,
    }
    rules = _words("gate", arguments.gate)
    return {
        **{name: _plain(name, text) for name, text in texts.items() if name in wanted},
        "program": " ".join(_program(arguments.program)) if "program" in wanted else "",
        "gate": " ".join(rules),
        "gate_list": ", ".join(json.dumps(word) for word in rules),
        "hour": str(int(hour)),
        "minute": str(int(minute)),
        "hour_padded": hour,
        "minute_padded": minute,
    }


def _dataset_of(config: Path) -> str:
    named = load(config).refresh.dataset if config.is_file() else ""
    return named or _DATASET


def _program(given: str | None) -> list[str]:
    if given is not None:
        return _words("program", given)
    here = Path(sys.executable).parent / "ragforge"
    found = str(here) if here.is_file() else shutil.which("ragforge")
    words = [found] if found else [sys.executable, "-m", "ragforge"]
    return [_plain("program", word) for word in words]


def _words(name: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--{name} {text!r}: {str(error).lower()}") from error
    if not words:
        raise UsageError(f"--{name}: expected at least one word")
    return [_plain(name, word) for word in words]


def _plain(name: str, text: str) -> str:
    if not _PLAIN.fullmatch(text):
        raise UsageError(
            f"--{name} {text!r}: expected letters, digits and _ . / : @ = , + - only, which mean "
            "the same in every kind of schedule"
        )
    return text
