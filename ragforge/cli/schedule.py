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
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from ragforge.cli.flags import add_json, dumps
from ragforge.cli.schedule_values import DATASET, DEFAULTS, unused, values_of
from ragforge.cli.talk import complain
from ragforge.errors import UsageError
from ragforge.files.resources import shipped


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
        complain(f"not used by {arguments.name}: {', '.join(passed_over)}")
    if "config" in wanted and arguments.config is None and Path(DEFAULTS["config"]).is_file():
        complain(
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
    from ragforge.report.table import render_table

    rows = [[name, item.what, item.place] for name, item in SCHEDULES.items()]
    print(render_table(["schedule", "what it is", "where it belongs"], rows))
