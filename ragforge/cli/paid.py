"""What commands that may ask a model share."""

import argparse
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ragforge.api.progress import Progress
from ragforge.api.results import estimate_text
from ragforge.cli.flags import dumps
from ragforge.cli.talk import complain
from ragforge.config import Settings
from ragforge.observe import Observer
from ragforge.pipeline.job import Job, Mode


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


def mode_of(arguments: argparse.Namespace) -> Mode:
    """Return how the stage is to be run."""
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


def job_of(arguments: argparse.Namespace, settings: Settings, observer: Observer) -> Job:
    """Return the job that a command is to do."""
    return Job(settings, observer, mode_of(arguments))


def relieve_collector() -> None:
    """Let the collector of cyclic garbage look less often, and not at what is loaded already.

    Hundreds of calls in flight are many objects and hardly any cycles: a fifth of the CPU's time
    went into looking through them.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def observed(arguments: argparse.Namespace) -> Iterator[Observer]:
    """Lend the progress line, with the observers that are named beside it."""
    relieve_collector()
    progress = Progress(arguments.quiet)
    if not arguments.observer:
        yield progress
        return
    from ragforge.pipeline.observer_events import observing

    with observing(arguments.observer, progress, complain) as observer:
        yield observer


def print_estimate(estimate: dict[str, Any], *, as_json: bool) -> None:
    """Print what a dry run counted."""
    if as_json:
        print(dumps(estimate))
        return
    print(estimate_text(estimate))
