"""Flags that commands share, and what is made of them: settings, a job, a part of the queries."""

import argparse
import gc
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ragforge.api.progress import Progress, say
from ragforge.cli.parser import add_settings_group
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.config import Setting, Settings, SettingsFile
    from ragforge.files.set.dataset import Dataset
    from ragforge.observe import Observer
    from ragforge.pipeline.job import Job, Mode
    from ragforge.records import Calibration

T = TypeVar("T")
PAID = ("model", "budget", "prompts")
"""Sections of settings that every command takes which may ask a model."""
_TITLES: Final = {
    "model": "model and endpoint",
    "budget": "budget",
    "chunk": "chunking of documents",
    "generate": "generation",
    "pool": "pools",
    "retrieve": "retrieval",
    "judge": "judging",
    "evaluate": "measures",
}


def add_common(
    parser: argparse.ArgumentParser,
    *sections: str,
    several: Collection[str] = (),
    without: Collection[str] = (),
) -> None:
    """Add the flags of some sections of settings, `--config` and `--quiet`.

    Args:
        parser: Gets them.
        sections: Of settings.
        several: Flags, without dashes, that take several values at once beside being repeated.
        without: Flags, without dashes, that the command has as its own, or has no use for.
    """
    for section in sections:
        from ragforge.config import each_setting  # Only commands with settings wait for it.

        group = add_settings_group(parser, _TITLES.get(section, section))
        for setting in (item for item in each_setting(section) if item.flag not in without):
            _add(group, setting, at_once=setting.flag in several)
    group = add_settings_group(parser, "settings and talk")
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file (default: ragforge.toml if there; see `ragforge config trust`)",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Add `--verbose`."""
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print all figures, and what they mean"
    )


def add_calibrated(parser: argparse.ArgumentParser) -> None:
    """Add what has a calibration used."""
    parser.add_argument(
        "--calibrated",
        action="store_true",
        help="correct by people's labels: see `ragforge calibrate`",
    )
    parser.add_argument(
        "--calibration",
        metavar="NAME",
        help="by which labels, where the set has several calibrations; --calibrated goes along",
    )


def refuse_calibrated(arguments: argparse.Namespace) -> None:
    """Refuse a calibration where there is no dataset.

    Raises:
        UsageError: One is asked for.
    """
    if is_calibrated(arguments):
        raise UsageError("--calibrated goes with --dataset DIR, which has the labels")


def calibration_of(arguments: argparse.Namespace, dataset: "Dataset") -> "Calibration | None":
    """Return the calibration that is asked for; None where none is."""
    if not is_calibrated(arguments):
        return None
    from ragforge.pipeline.calibrating import read_calibration

    return read_calibration(dataset, arguments.calibration)


def is_calibrated(arguments: argparse.Namespace) -> bool:
    """Whether a calibration is to be used."""
    return bool(arguments.calibrated or arguments.calibration)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object to stdout")


def settings_of(arguments: argparse.Namespace) -> "Settings":
    """Return the settings in force for a parsed command line; a file that was found is named.

    Raises:
        ConfigError: A value is not allowed, or the settings file cannot be taken or needs trust.
    """
    from ragforge.config import each_setting, load

    given = vars(arguments)
    flags = {
        setting.key: given[setting.dest]
        for setting in each_setting()
        if given.get(setting.dest) is not None
    }
    return load(given.get("config"), flags, on_found=_pass_over if given.get("quiet") else _name)


def _name(file: "SettingsFile") -> None:
    say(file.line)


def _pass_over(_: "SettingsFile") -> None:
    """Do nothing."""


def add_mode(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    """Add `--dry-run`, `--retry-failed`, and `--again` where there is anything to do again."""
    parser.add_argument(
        "--dry-run",
        "--estimate",
        action="store_true",
        help="print calls, tokens and money that a run would take, and ask nothing",
    )
    parser.add_argument(
        "--retry-failed",
        action="store_true",
        help="ask again where a stored reply was refused, cut off or unusable",
    )
    parser.add_argument(
        "--observer",
        action="append",
        default=[],
        metavar="NAME",
        help="tell each call and stage to: otel (OpenTelemetry), events=FILE (JSON Lines), or "
        "module:attribute",
    )
    parser.add_argument(
        "--offline-replay",
        action="store_true",
        help="take every reply from the call store; one that is not there ends the run (exit 4)",
    )
    if again:
        parser.add_argument(
            "--again",
            action="store_true",
            help="judge again what another model or prompt graded; human grades stay",
        )
        parser.add_argument(
            "--mix",
            action="store_true",
            help="let grades of another model or prompt stand beside the new ones",
        )


def mode_of(arguments: argparse.Namespace) -> "Mode":
    """Return how the stage is to be run."""
    from ragforge.pipeline.job import Mode  # Its records are not for --help.

    return Mode(
        dry_run=arguments.dry_run,
        retry_failed=arguments.retry_failed,
        again=getattr(arguments, "again", False),
        mix=getattr(arguments, "mix", False),
        offline_replay=arguments.offline_replay,
        single_call=getattr(arguments, "single_call", False),
        graded_by=getattr(arguments, "graded_by", ""),
        with_judge=getattr(arguments, "setting_model_name", None) is not None,
    )


def job_of(arguments: argparse.Namespace, settings: "Settings", observer: "Observer") -> "Job":
    """Return the job that a command is to do."""
    from ragforge.pipeline.job import Job

    return Job(settings, observer, mode_of(arguments))


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine comes to."""
    import asyncio  # No help waits for it.

    return asyncio.run(work)


def relieve_collector() -> None:
    """Let the collector of cyclic garbage look less often, and not at what is loaded already.

    Hundreds of calls in flight are many objects and hardly any cycles: a fifth of the CPU's time
    went into looking through them.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def observed(arguments: argparse.Namespace) -> "Iterator[Observer]":
    """Lend the progress line, with the observers that are named beside it."""
    relieve_collector()
    progress = Progress(arguments.quiet)
    if not arguments.observer:
        yield progress
        return
    from ragforge.pipeline.observer_events import observing

    with observing(arguments.observer, progress, say) as observer:
        yield observer


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add `--sample`, `--by` and `--split`; the seed is that of the settings."""
    group = parser.add_argument_group("queries")
    group.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="only N queries, drawn from each stratum in proportion; means are of the whole set",
    )
    group.add_argument(
        "--by",
        metavar="FIELD",
        help="strata of the sample: category, difficulty, type, persona, language, split, origin, "
        "expected_behaviour or none. Default: category, else difficulty, as far as queries have it",
    )
    group.add_argument(
        "--split", choices=("dev", "test"), help="only queries of this split; goes with --sample"
    )


def choose_queries(arguments: argparse.Namespace, dataset: "Dataset", seed: int) -> "Dataset":
    """Return the dataset with the part of its queries chosen that flags ask for.

    Args:
        arguments: Have what `add_selection` added.
        dataset: The whole set.
        seed: Of the sample: that of the settings.

    Raises:
        UsageError: A flag cannot be taken.
        DataError: There are no queries.
    """
    from ragforge.files.set.query_selection import RequestedQueries, choose

    if arguments.sample is None and arguments.by is not None:
        raise UsageError("--by: goes with --sample N")
    sample, split = arguments.sample, arguments.split
    if sample is None and split is None:
        return dataset
    wanted = RequestedQueries(split, sample, seed, arguments.by or "")
    chosen = choose(dataset.require_accepted_queries(), wanted)
    if sample is not None and (chosen is None or chosen.design is None):
        where = f"split {split}" if split else "the set"
        n = len(dataset.require_accepted_queries() if chosen is None else chosen.query_ids)
        say(f"--sample {sample}: {where} has {n:,} queries, and all are taken")
    return dataset.choosing(chosen)


def refuse_selection(arguments: argparse.Namespace) -> None:
    """Refuse the flags where there is no dataset to choose from.

    Raises:
        UsageError: One is given.
    """
    given = [name for name in ("sample", "by", "split") if getattr(arguments, name) is not None]
    if given:
        raise UsageError(f"--{given[0]}: goes with --dataset DIR, which has the queries")


def tell_chosen(dataset: "Dataset") -> None:
    """Print on stderr which queries are chosen, with the weights of their strata."""
    from ragforge.evaluating.selection import drawn_lines

    if dataset.chosen is not None:
        for line in drawn_lines(dataset.chosen):
            say(line)


def _add(group: "argparse._ArgumentGroup", setting: "Setting", *, at_once: bool) -> None:
    default = setting.info.default
    shown = ", ".join(default) if isinstance(default, tuple) else default
    text = " ".join(setting.text.split()).replace("%", "%%")
    default_note = "" if shown in ("", None) else f" Default: {shown}."
    extra = setting.info.json_schema_extra
    if isinstance(extra, dict) and "switch" in extra:
        group.add_argument(
            f"--{setting.flag}",
            dest=setting.dest,
            action="store_const",
            const=extra["switch"],
            help=f"{text} [{setting.environment}]",
        )
        return
    several = isinstance(default, tuple)
    dash = "-" if len(setting.flag) == 1 else "--"
    names = (
        ["-m", "--measure"] if several and setting.field == "measures" else [dash + setting.flag]
    )
    action = "append" if several else "store"
    group.add_argument(
        *names,
        dest=setting.dest,
        metavar=_metavar(setting),
        action="extend" if at_once else action,
        nargs="+" if at_once else None,
        help=f"{text}{default_note} [{setting.environment}]",
    )


def _metavar(setting: "Setting") -> str:
    annotation = str(setting.info.annotation)
    if setting.words:
        return "|".join(setting.words)
    if "Literal" in annotation:
        return "auto|N"
    if "tuple" in annotation or "str" in annotation:
        return setting.field.rsplit("_", 1)[-1].upper()
    return "X" if "float" in annotation else "N"
