"""How runs do on batches that were drawn from logs: a series, such as production by week.

Batches are different questions. That one has a higher mean than the one before may be the questions
or the system, and is no trend of the set; the interval of the difference is one of two samples.
"""

from typing import Final

from ragforge.evaluating.formatting import MISSING, number, one_line, with_ends
from ragforge.evaluating.history.batches import BatchMean, BatchSeries, Level
from ragforge.evaluating.text_table import Table, render_table

BATCH_NOTE: Final = (
    "Batches are different questions: a difference between two may be one of the questions, and is "
    "no trend of the set. Its interval is one of two samples, not of pairs. As asked: each query "
    "weighs as often as it was asked, over its chance of being drawn, where the draw went by "
    "frequency; other draws may lack what is asked most. A batch stands for what was not in the "
    "set when it was drawn, and for nothing else that was asked."
)


def batches_text(series: BatchSeries) -> str:
    """Return a series as a terminal shows it."""
    table = batches_table(series)
    table_text = (
        render_table(table.headers, table.rows) if table.rows else f"{table.title}: no values"
    )
    return "\n".join([table_text, *_remarks(series), BATCH_NOTE])


def batches_table(series: BatchSeries) -> Table:
    """Return a series as rows of text, with what is to be known about it."""
    headers = [*("batch", "draw", "run", "n"), f"{series.measure}, as asked", "over queries"]
    headers += ["of what was asked", "against the batch before"]
    rows = [
        [
            one_line(row.batch, 40),
            row.draw,
            one_line(row.run, 40),
            f"{row.n:,} of {row.n_queries:,}",
            _level_text(row.as_asked),
            _level_text(row.over_queries),
            f"{row.share:.1%}",
            _difference(row),
        ]
        for row in series.rows
    ]
    if any(row.evaluated_at for row in series.rows):
        headers.append("evaluated (UTC)")
        for cells, row in zip(rows, series.rows, strict=True):
            cells.append(one_line(row.evaluated_at[:16].replace("T", " ")) or MISSING)
    note = " ".join([*(f"{remark}." for remark in _remarks(series)), BATCH_NOTE])
    title = f"{series.measure} by batch of production"
    return Table(title, tuple(headers), tuple(map(tuple, rows)), note)


def _remarks(series: BatchSeries) -> list[str]:
    """Return why differences are unknown, and what is not shown."""
    reasons: dict[str, list[str]] = {}
    for row in series.rows:
        if row.unknown:
            where = f"{one_line(row.batch, 40)}, run {one_line(row.run, 40)}"
            reasons.setdefault(row.unknown, []).append(where)
    return [
        *(f"UNKNOWN for {'; '.join(where)}: {reason}" for reason, where in reasons.items()),
        *series.notes,
    ]


def _level_text(level: Level | None) -> str:
    if level is None or level.interval is None:
        return number(level.mean if level else None)
    return with_ends(level.mean, level.interval.low, level.interval.high)


def _difference(row: BatchMean) -> str:
    if row.unknown:
        return "UNKNOWN"
    if row.diff is None or row.interval is None:
        return MISSING
    difference = f"{row.diff:+.3f} [{row.interval.low:+.3f}, {row.interval.high:+.3f}]"
    return difference if row.is_as_asked else f"{difference} over queries"
