"""Where evaluations are told beside what is printed: observers, and a file for Prometheus."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragforge.cli.talk import complain
from ragforge.errors import UsageError
from ragforge.observe import Observer
from ragforge.pipeline.evaluated import EvaluatedRun


def add_observers(parser: argparse.ArgumentParser) -> None:
    """Add `--observer` and `--prometheus`."""
    parser.add_argument(
        "--observer",
        action="append",
        default=[],
        metavar="NAME",
        help="with --dataset: tell each run and query to: otel (OpenTelemetry), events=FILE (JSON "
        "Lines), or module:attribute",
    )
    parser.add_argument(
        "--prometheus",
        type=Path,
        metavar="FILE",
        help="with --dataset: write gauges for node_exporter's textfile collector, which reads "
        "names that end in .prom",
    )


def require_dataset(arguments: argparse.Namespace) -> None:
    """Refuse what needs a dataset where there is none.

    Raises:
        UsageError: Something is to be told.
    """
    if arguments.observer or arguments.prometheus is not None:
        raise UsageError("--observer and --prometheus go with --dataset DIR, which names the runs")


def require_folder(arguments: argparse.Namespace) -> None:
    """Refuse a file for Prometheus whose folder is not there.

    Raises:
        UsageError: It is not: no collector would read a folder that was made by mistake.
    """
    path: Path | None = arguments.prometheus
    if path is not None and not path.parent.is_dir():
        raise UsageError(
            f"--prometheus {path}: there is no folder {path.parent}; expected the one that "
            "node_exporter's --collector.textfile.directory names"
        )


def tell(
    arguments: argparse.Namespace, evaluated: Sequence[EvaluatedRun], observer: Observer
) -> None:
    """Tell of runs that were measured, where that was asked for.

    Raises:
        DataError: The file cannot be written.
    """
    if arguments.observer:
        from ragforge.pipeline.observer_events import emit_evaluations

        emit_evaluations(evaluated, observer)
    if arguments.prometheus is not None:
        from ragforge.pipeline.observer_events import write_evaluations

        write_evaluations(arguments.prometheus, evaluated)
        if arguments.prometheus.suffix != ".prom":
            complain(
                f"note: {arguments.prometheus.name}: node_exporter reads files whose names end in "
                ".prom only"
            )
