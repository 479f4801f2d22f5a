"""Follow a corpus that changed: make the next version of a set, or none where nothing changed.

Every night the same command: documents are compared with those of the published version by their
content. Queries whose quotes stand where they stood are kept for nothing; where the text around a
quote changed, or it moved to another document, one call checks that it still proves the answer;
where it is gone, the corpus is searched for another that does. A query that the documents do not
answer any more is retired, or becomes one to abstain from. Grades stay with their chunks; only new
chunks that enter the pool of a query are judged. What is missing then is generated, and the new
version is checked before it is published in one step. Until then, and where a check fails, the
published version stays as it is.

Nothing changed: no call, no new version, exit code 0. A run that was stopped or killed is taken up
by the next one: replies that were bought come from the call store.

Exit codes: 0 published or nothing to do, 1 a check of the version failed (see rejected/), 2 a
pinned query lost its evidence, 3 documents cannot be read or too many are gone, 4 model endpoint,
5 budget.

Examples:
  ragforge refresh --documents docs/ --dataset set/ --model gpt-5-mini --dry-run
  ragforge refresh --documents docs/ --dataset set/ --model gpt-5-mini --max-cost-usd 2
  ragforge refresh --config configs/nightly.toml --json
  ragforge refresh --documents git:../handbook@main:docs --dataset set/
  ragforge refresh --dataset set/ --rollback 3
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    add_mode,
    job_of,
    observed,
    run_async,
    settings_of,
)
from ragforge.cli.next_step import after_refresh
from ragforge.cli.output import dumps, show
from ragforge.config import Settings
from ragforge.errors import RagforgeError, UsageError
from ragforge.evaluating.formatting import plural

if TYPE_CHECKING:
    from ragforge.refresh.left_behind import LeftBehind

COMMON = (
    "--dataset",
    "--documents",
    "--model",
    "--base-url",
    "--checker",
    "--max-new",
    "--at-least",
    "--keep",
    "--dry-run",
    "--max-cost-usd",
    "--json",
)
"""Options of the short help, in its order."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--chunks", type=Path, metavar="FILE", help="ready-made chunks, instead of documents"
    )
    parser.add_argument(
        "--accept-churn",
        action="store_true",
        help="go on although much of the corpus is gone, and publish although much of the set "
        "changed; for the night after a great move, not for a schedule",
    )
    parser.add_argument(
        "--allow-baseline",
        action="store_true",
        help="let the offline baseline refresh a set that a model made",
    )
    parser.add_argument(
        "--rollback",
        type=int,
        metavar="N",
        help="publish version N again, and do nothing else; versions after it are kept",
    )
    add_mode(parser)
    add_json(parser)
    add_common(parser, "refresh", "chunk", "generate", "pool", *PAID, several=("documents",))


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    settings = settings_of(arguments)
    if not settings.refresh.dataset:
        raise UsageError("name the set: --dataset DIR, or dataset under [refresh] in --config")
    path = Path(settings.refresh.dataset)
    if arguments.rollback is not None:
        return _roll_back(path, arguments)
    if (arguments.chunks is None) == (not settings.refresh.documents):
        raise UsageError(
            "name the corpus: --documents DIR (or documents under [refresh] in --config), or "
            "--chunks FILE, and not both"
        )
    return _refresh(path, settings, arguments)


def _refresh(path: Path, settings: Settings, arguments: argparse.Namespace) -> int:
    from ragforge.refresh.refreshing import RefreshOptions, refresh_dataset
    from ragforge.report.versions import refresh_text

    options = RefreshOptions(
        accept_churn=arguments.accept_churn,
        allow_baseline=arguments.allow_baseline,
        chunk_file=arguments.chunks,
    )
    with observed(arguments) as observer:
        summary = run_async(refresh_dataset(path, job_of(arguments, settings, observer), options))
    if arguments.json:
        print(dumps(summary.as_json()))
    else:
        show(refresh_text(summary))
        after_refresh(arguments, summary)
    return summary.exit_code


def _roll_back(path: Path, arguments: argparse.Namespace) -> int:
    from ragforge.files.set.versions import roll_back

    if arguments.dry_run:
        raise UsageError("--rollback takes no --dry-run: it switches one link, and back again")
    behind = _left_behind(path, arguments.rollback)
    version = roll_back(path, arguments.rollback).manifest.version
    if arguments.json:
        told = {"status": "rolled back", "dataset": str(path), "version": version, "exit_code": 0}
        counts = {
            "grades_left_behind": behind.n_grades if behind else None,
            "decisions_left_behind": behind.n_decisions if behind else None,
        }
        print(dumps({**told, **counts}))
        return 0
    say(f"version {version} is published again; the next refresh starts from it")
    if behind is None:
        say("whether people graded or decided anything since cannot be read")
    elif behind.n_grades or behind.n_decisions:
        say(
            f"{plural(behind.n_grades, 'grade')} and {plural(behind.n_decisions, 'decision')} of "
            f"people are in version {behind.version} alone, and do not count now; "
            f"--rollback {behind.version} publishes it again"
        )
    show(str(path))
    return 0


def _left_behind(path: Path, version: int) -> "LeftBehind | None":
    """Return what people gave since a version; None where one of the two cannot be read."""
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.versions import open_version
    from ragforge.refresh.left_behind import left_behind

    try:
        return left_behind(open_dataset(path), open_version(path, version))
    except (RagforgeError, OSError):
        return None
