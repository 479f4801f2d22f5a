"""What reports, lists of the worst queries and histories say, to be shown and taken on."""

from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Final

from ragforge.api.results import Result
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.causes.bad_queries import WorstReport
from ragforge.evaluating.history.batches import BatchMean, BatchSeries
from ragforge.evaluating.history.run_history import RunHistory
from ragforge.evaluating.history.trends import queries_needed_by
from ragforge.evaluating.summary import Summary
from ragforge.report.history import BATCH_NOTE, batches_text, history_text, missing_grade_lines
from ragforge.report.set_report import render_text, report_json
from ragforge.report.worst import render_worst, worst_json

FORMS: Final = {".html": "html", ".htm": "html", ".md": "markdown", ".txt": "text"}
"""Forms of reports by the ending of the file."""
LEAST_DIFFERENCE: Final = 0.05
_WIDTH: Final = 100


def form_of(out: Path, name: str = "out") -> str:
    """Return the form that the ending of a file names.

    Args:
        out: The file.
        name: What messages call it.

    Raises:
        UsageError: It names none.
    """
    form = FORMS.get(out.suffix.lower())
    if form is None:
        raise UsageError(f"{name} {out}: expected an ending of {', '.join(FORMS)}")
    return form


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class WrittenReport(Result):
    """A report: measures, which run is better, every query, failures.

    Args:
        summary: What it says.
        path: The file that was written; None where none was.
        notes: What was told on the way.
    """

    summary: Summary
    path: Path | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which runs are left out, and the like."""
        return tuple(self.summary.run_warnings)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge report --json` prints."""
        return dict(report_json(self.summary, self.path))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each run and measure."""
        return [
            {"run": run.name, "measure": name, **_estimate(found)}
            for run in self.summary.runs
            for name, found in run.estimates.items()
        ]

    def table(self) -> str:
        """Return the report as text."""
        return render_text(self.summary).removesuffix("\n")


def _estimate(found: Any) -> dict[str, Any]:  # noqa: ANN401  # an Estimate, named by the report
    return {
        "mean": found.mean,
        "low": found.interval.low if found.interval else None,
        "high": found.interval.high if found.interval else None,
        "n": found.n,
        "n_failed": found.n_failed,
    }


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class WorstQueries(Result):
    """Where runs do badly, and the likely cause of each.

    Args:
        report: All that was found.
        notes: What was told on the way.
    """

    report: WorstReport
    notes: tuple[str, ...] = field(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which runs are left out, and the like."""
        return self.report.warnings

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge worst --json` prints."""
        return dict(worst_json(self.report))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each listed query of each run, the worst first."""
        return [
            {
                "run": run.name,
                "query_id": bad.causes.query_id,
                "query": bad.detail.text.text,
                self.report.measure: bad.causes.value,
                "cause": bad.causes.code,
                "first_relevant": bad.first_relevant,
            }
            for run in self.report.runs
            for bad in run.worst
        ]

    def table(self) -> str:
        """Return the causes, counted, and the worst queries as text."""
        return render_worst(self.report)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RunHistories(Result):
    """How runs did over their evaluations.

    Args:
        dataset: The directory.
        runs: One a run.
        notes: What of the history could not be used, and which runs are stale.
    """

    dataset: Path
    runs: tuple[RunHistory, ...]
    notes: tuple[str, ...] = field(default=())

    def to_dict(self, n: int = 20, difference: float = LEAST_DIFFERENCE) -> dict[str, Any]:
        """Return what `ragforge history --json` prints for a set.

        Args:
            n: Evaluations of each run, the newest.
            difference: Least difference that matters.
        """
        return history_json(self, n, difference)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each evaluation and measure, the oldest first."""
        return [
            {
                "run": found.run,
                "at": item.at,
                "version": item.version,
                "evaluation_id": item.evaluation_id,
                "measure": name,
                "mean": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "n": mean.n,
                "n_failed": mean.n_failed,
            }
            for found in self.runs
            for item in found.evaluations
            for name, mean in item.measures.items()
        ]

    def table(self, n: int = 20, difference: float = LEAST_DIFFERENCE) -> str:
        """Return what changed and where measures go, as text."""
        if not self.runs:
            return f"{self.dataset}: no evaluation yet"
        return "\n\n".join(history_text(found, n, _WIDTH, difference) for found in self.runs)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BatchHistory(Result):
    """How runs do on each batch of queries that was drawn from logs, such as weeks.

    Batches are different questions: a difference between two is no trend of the set.

    Args:
        dataset: The directory.
        series: One a measure.
        notes: What of the history could not be used, and which runs are stale.
    """

    dataset: Path
    series: tuple[BatchSeries, ...]
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge history --by batch --json` prints for a set."""
        return {
            "dataset": str(self.dataset),
            "notes": list(self.notes),
            "series": [asdict(series) for series in self.series],
            "reading": BATCH_NOTE,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each batch, run and measure."""
        return [_batch_row(row) for series in self.series for row in series.rows]

    def table(self) -> str:
        """Return the batches of each measure as text."""
        if not self.series:
            return f"{self.dataset}: no evaluation yet"
        return "\n\n".join(map(batches_text, self.series))


def _batch_row(row: BatchMean) -> dict[str, Any]:
    return {
        "run": row.run,
        "batch": row.batch,
        "measure": row.measure,
        "mean": row.over_queries.mean,
        "mean_as_asked": None if row.as_asked is None else row.as_asked.mean,
        "n": row.n,
        "n_queries": row.n_queries,
        "since": row.since,
        "diff": row.diff,
        "low": None if row.interval is None else row.interval.low,
        "high": None if row.interval is None else row.interval.high,
        "unknown": row.unknown,
    }


def history_json(found: RunHistories, n: int, difference: float) -> dict[str, Any]:
    """Return the histories of a set's runs as `ragforge history --json` has them."""
    return {
        "dataset": str(found.dataset),
        "notes": list(found.notes),
        "runs": [_history_json(item, n, difference) for item in found.runs],
    }


def _history_json(found: RunHistory, n: int, difference: float) -> dict[str, Any]:
    lines = missing_grade_lines(found)
    return {
        "run": found.run,
        "before": found.before.evaluation_id if found.before else None,
        "now": found.now.evaluation_id,
        "n_repeats": found.n_repeats,
        "changes": [asdict(item) for item in found.changes],
        "trends": [asdict(item) for item in found.trends],
        "queries_needed": {
            item.measure: asdict(needed)
            for item in found.trends
            if (needed := queries_needed_by(item, difference)) is not None
        },
        "last": found.window_size,
        "trends_over_last": [asdict(item) for item in found.window],
        "moved": [
            {"measure": item.measure, "cause": item.cause, "all_items": item.full}
            for item in found.moved
        ],
        "evaluations": [item.model_dump(mode="json") for item in found.evaluations[-n:]],
        **({"missing_grades": lines} if lines else {}),
    }
