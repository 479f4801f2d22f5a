"""The history of runs: text of one run for a terminal, and the tables of a report.

Batches that were drawn from logs are a series of their own, such as production by week. They are
different questions: that one has a higher mean than the one before may be the questions or the
system, and is no trend of the set; the interval of the difference is one of two samples.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ragforge.evaluating.formatting import (
    MISSING,
    Table,
    display_width,
    duration,
    number,
    one_line,
    plural,
    render_table,
    share,
    signed,
    with_ends,
)
from ragforge.evaluating.graded_by import judge_command, judges_text, missing_grades_text, silent_of
from ragforge.evaluating.history.batches import BatchMean, BatchSeries, Level
from ragforge.evaluating.history.changes import n_same_items
from ragforge.evaluating.history.run_history import (
    Moved,
    RunHistory,
    Step,
    changes_since_last,
    followed_measure,
    not_evaluated_yet,
    trends,
)
from ragforge.evaluating.history.trends import (
    LEAST_DIFFERENCE,
    Trend,
    has_several_judges,
    is_open,
    is_same_set,
    queries_needed_by,
)
from ragforge.evaluating.runs import PRIMARY
from ragforge.files.set.history import History
from ragforge.measures.intervals import Ends
from ragforge.measures.measure_names import is_of_evidence
from ragforge.records import BridgeMean, Evaluation, MeasuredMean, MixedGrades

NOTE: Final = (
    "Verdicts are by the 95 % interval and the test, each by itself: of twenty where nothing "
    "moved, one is wrong."
)
_LEAST_BAR: Final = 20
_MOST_ITEMS: Final = 1_000_000
"""Beyond so many nobody asks how many exactly."""
_LEAST_SPAN: Final = 0.05
"""Of the axis; noise is not to look like a trend."""
_CAUSE_TEXTS: Final = {
    "system": "the system moved",
    "set": "the set moved, not the system as far as the same items show",
    "judgments": "the grades moved, not the system as far as the same items show",
    "both": "the system moved, and the set",
    "failures": "it is over other queries, as some failed; neither system nor set is shown to have "
    "moved",
    "neither": "neither system nor set is shown to have moved",
}

NEWER: Final = (
    "What is there now was not evaluated yet; it stands here as the last state. "
    "`ragforge evaluate` writes it down."
)

BATCH_NOTE: Final = (
    "Batches are different questions: a difference between two may be one of the questions, and is "
    "no trend of the set. Its interval is one of two samples, not of pairs. As asked: each query "
    "weighs as often as it was asked, over its chance of being drawn, where the draw went by "
    "frequency; other draws may lack what is asked most. A batch stands for what was not in the "
    "set when it was drawn, and for nothing else that was asked."
)


def history_text(
    history: RunHistory, rows: int = 20, width: int = 80, least: float = LEAST_DIFFERENCE
) -> str:
    """Return the history of a run as text, what changed first.

    Args:
        history: The run.
        rows: Evaluations to list, the newest; those that only repeat one another are one row.
        width: Columns of the terminal.
        least: The least difference that matters.
    """
    last = history.evaluations[-1]
    count = plural(len(history.evaluations), "evaluation")
    queries = plural(last.n_queries, "query", "queries")
    if last.selection is not None:
        queries += f" ({last.selection.in_words})"
    title = f"{one_line(history.run)}: {count}, the last of {queries} at {_minute(last.at)}"
    steps = history.steps[-rows:]
    table = _steps_table(steps, history.measures[0]) if history.measures else ""
    chart = _chart(steps, history.measures[0], width) if history.measures else []
    parts = [
        "\n".join([title, *_change_lines(history)]),
        _trends_text(history, least),
        table,
        "\n".join(chart),
    ]
    return "\n\n".join(part for part in parts if part)


def missing_grade_lines(history: RunHistory) -> list[str]:
    """Return what keeps the last two states from being compared, and the command that buys it."""
    return list(_mixed_lines(history)) if history.before is not None else []


def _change_lines(history: RunHistory) -> list[str]:
    alike = f"; {plural(history.n_repeats, 'repeat')} since" if history.n_repeats else ""
    if history.before is None:
        return ["All evaluations are alike." if alike else "There is no evaluation before it."]
    between = f"from {_times(history.before, history.now)}{alike}"
    if not history.changes:
        return [f"Nothing changed {between}."]
    causes = [_cause_line(item) for item in history.moved if _is_of_head(history, item)][:1]
    lines = [f"  - {item.text}" for item in history.changes]
    return [f"Changed {between}:", *lines, *filter(None, causes)]


def _is_of_head(history: RunHistory, moved: Moved) -> bool:
    """Whether it is of the measure that comes first, and between the states that are."""
    first = history.trends[0]
    ends = history.before.evaluation_id if history.before else "", history.now.evaluation_id
    return moved.measure == first.measure and (first.since, first.until) == ends


def _cause_line(moved: Moved) -> str:
    if moved.same is None or moved.cause not in _CAUSE_TEXTS:
        return ""
    full = "" if moved.full is None else f"{signed(moved.full)} over all items, "
    return (
        f"{moved.measure}: {full}{signed(moved.same.diff)} on the "
        f"{moved.same.n:,} that are the same{_rescored_note(moved.same)}: "
        f"{_CAUSE_TEXTS[moved.cause]}."
    )


def _rescored_note(bridge: BridgeMean) -> str:
    """Return on how many items the earlier ranking was scored again, and on how many not."""
    remarks = []
    if bridge.n_rescored:
        remarks.append(f"{bridge.n_rescored:,} of them scored again on the later grades")
    if bridge.n_left_out:
        remarks.append(f"{bridge.n_left_out:,} more left out, as they cannot be")
    return f" ({'; '.join(remarks)})" if remarks else ""


def _trends_text(history: RunHistory, least: float) -> str:
    if history.before is None:
        return ""
    window = {item.measure: item for item in history.window}
    headers = ["measure", "all items", "same items", "difference", "verdict", "over"]
    if window:
        headers.append(f"first to last of {history.window_size}")
    same = {item.measure: item.same for item in history.moved}
    rows = []
    for item in history.trends:
        row = [item.measure, _means_of_all(history, item), _means_of_same(same.get(item.measure))]
        row += [_trend_difference(item), item.verdict, _n_items(item)]
        if window:
            long = window.get(item.measure)
            row.append(
                f"{long.verdict} {_trend_difference(long)}, {_n_items(long)}" if long else MISSING
            )
        rows.append(row)
    needed = "\n".join(_needed_lines(history.trends, least))
    table = render_table(headers, rows)
    return "\n".join(filter(None, [table, *_trend_notes(history), needed]))


def _needed_text(trend: Trend, least: float) -> str:
    """Return how many items a verdict would need; "" where there is one, or nothing tells.

    Args:
        trend: Where a measure went.
        least: The least difference that matters.
    """
    needed = queries_needed_by(trend, least)
    if needed is None:
        return ""
    more = "at least " if needed.is_lower_end else ""
    text = f"one of {least:.3g} takes {_count_text(needed.for_least, more)}"
    if needed.for_seen is not None:
        text = f"{signed(trend.diff)} as seen takes {_count_text(needed.for_seen, more)}, {text}"
    return f"{trend.measure}, over {trend.n:,}: {text}"


def _count_text(n: int, more: str) -> str:
    return f"more than {_MOST_ITEMS:,}" if n > _MOST_ITEMS else f"{more}{n:,}"


def _needed_lines(trends: Iterable[Trend], least: float) -> Iterator[str]:
    """Yield how many items it takes where no difference was shown."""
    listed = list(filter(None, (_needed_text(item, least) for item in trends)))
    if listed:
        yield "Items that would show a difference in 4 of 5 samples, were they spread as these:"
        yield from (f"  {text}" for text in listed)


def _means_of_all(history: RunHistory, trend: Trend) -> str:
    old, new = history.find(trend.since), history.find(trend.until)
    if new is None:  # A repeat of the newest state may be the first to have the measure.
        having = (one for one in reversed(history.evaluations) if trend.measure in one.measures)
        new = next(having, history.now)
    return _from_to(
        _mean_of(old.measures.get(trend.measure) if old else None),
        _mean_of(new.measures.get(trend.measure)),
    )


def _means_of_same(bridge: BridgeMean | None) -> str:
    return MISSING if bridge is None else _from_to(bridge.before, bridge.now)


def _trend_notes(history: RunHistory) -> Iterator[str]:
    """Yield why verdicts are unknown, and which are of other evaluations than the head names."""
    yield from _left_out_lines(history.moved)
    yield from _mixed_lines(history)
    by_grades = any(not is_of_evidence(item.measure) for item in history.trends)
    if by_grades and (silent := silent_of(history.now.graders)).any:
        yield (
            f"UNKNOWN where grades are {silent.basis}: these differences say nothing about quality."
        )
    head = history.before, history.now
    of_other_set: dict[int, list[str]] = {}
    elsewhere: dict[str, list[str]] = {}
    for item in history.trends:
        old, new = history.find(item.since), history.find(item.until)
        if old is None or new is None:
            continue
        if (old, new) != head:
            elsewhere.setdefault(_times(old, new), []).append(item.measure)
        is_other = item.on == "all items" and not is_same_set(old, new)
        if is_other and not has_several_judges(old, new):
            of_other_set.setdefault(n_same_items(old, new), []).append(item.measure)
    for times, measures in elsewhere.items():
        yield f"{', '.join(measures)}: from {times}, the last two states measured by it."
    yield from _other_set_lines(of_other_set)


def _other_set_lines(measures: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Yield why no verdict is given over all items.

    Args:
        measures: By how many items are known to be the same.
    """
    for n_same, names in measures.items():
        reason = "the set changed and none of its items is known to be the same"
        if n_same:
            reason = (
                f"of {', '.join(names)}: the set changed and none of its "
                f"{plural(n_same, 'same item')} can be scored in both, as the earlier ranking held "
                "chunks that are gone, or was not kept as deep"
            )
        yield (
            f"UNKNOWN over all items{'' if n_same else ':'} {reason}; easier queries or other "
            "grades would pass for a better retriever."
        )


def _left_out_lines(moved: Iterable[Moved]) -> Iterator[str]:
    """Yield which measures leave out some of the same items: a ranking has no score for them."""
    of_count: dict[tuple[int, int], list[str]] = {}
    for item in moved:
        if item.same is not None and item.same.n_left_out > item.same.n_mixed:
            of = item.same
            count = of.n_left_out - of.n_mixed, of.n + of.n_left_out
            of_count.setdefault(count, []).append(item.measure)
    for (n, n_all), measures in of_count.items():
        are = "is" if n == 1 else "are"
        yield (
            f"{n:,} of {plural(n_all, 'same item')} {are} left out of {', '.join(measures)}: the "
            "earlier ranking held chunks that are gone, or was not kept as deep."
        )


def _mixed_lines(history: RunHistory) -> Iterator[str]:
    """Yield which items no one judge graded in both rankings, and what is to be done."""
    seen: set[tuple[str, str]] = set()
    for item in history.trends:
        old, new = history.find(item.since), history.find(item.until)
        if old is None or new is None or (item.since, item.until) in seen:
            continue
        seen.add((item.since, item.until))
        if new.mixed is not None and new.bridge_to == old.evaluation_id:
            yield from _ungraded_lines(history, old, new.mixed)
        elif is_open(old, new):
            yield (
                "UNKNOWN: the judge changed, and the values of an evaluation are not kept any "
                "more; a difference may be one of the judges."
            )


def _ungraded_lines(history: RunHistory, before: Evaluation, mixed: MixedGrades) -> Iterator[str]:
    n_of: dict[int, list[str]] = {}
    for name in history.measures:
        if count := mixed.measures.get(name):
            n_of.setdefault(count, []).append(name)
    if not n_of:
        return
    for count, names in n_of.items():
        yield (
            f"{count:,} of {plural(mixed.n, 'same item')} left out of {', '.join(names)}: no one "
            "judge graded both rankings, and a difference would be one of the judges."
        )
    if len(mixed.judges) > 1:
        yield f"Their grades are of {judges_text(mixed.judges)}."
    command = judge_command(
        mixed.ask, history.dataset, [history.run], n_earlier=_n_back(history, before)
    )
    yield f"{missing_grades_text(mixed, command)}."


def _n_back(history: RunHistory, before: Evaluation) -> int:
    """Return how many rankings back an evaluation is, from the newest one."""
    later = history.evaluations[history.evaluations.index(before) :]
    return max(1, len({item.digests.rankings for item in later}) - 1)


def _steps_table(steps: Sequence[Step], measure: str) -> str:
    headers = ["time (UTC)", "", "version", "n", measure, "failures", "holes", "judge"]
    headers += ["cost", "p50 latency", "changed"]
    return render_table(headers, [_step_row(step, measure) for step in steps])


def _step_row(step: Step, measure: str) -> list[str]:
    item = step.evaluation
    mean = item.measures.get(measure)
    judges = sorted({grader.model or grader.kind or "" for grader in item.graders} - {""})
    return [
        _minute(item.at),
        f"x{step.count}" if step.count > 1 else "",
        str(item.version),
        _n_queries(item, mean),
        _mean_with_ends(mean),
        str(item.n_failed),
        share(item.n_holes, item.n_retrieved),
        one_line(", ".join(judges), 30) or MISSING,
        _step_cost(step),
        MISSING if item.timing is None else duration(item.timing.median_s),
        ", ".join(dict.fromkeys(change.what for change in step.changes)),
    ]


def _n_queries(item: Evaluation, mean: MeasuredMean | None) -> str:
    if mean is None:
        return MISSING
    if item.selection is None:
        return str(mean.n)
    return f"{mean.n} ({item.selection.in_words})"


def _chart(steps: Sequence[Step], measure: str, width: int) -> list[str]:
    """Return one line for each evaluation: its interval on an axis that all share."""
    measured = [step.evaluation.measures.get(measure) for step in steps]
    values = [value for of in measured if of is not None for value in _points(of)]
    if not values:
        return []
    labels = [_step_label(step) for step in steps]
    indent = max(map(display_width, labels))
    space = max(_LEAST_BAR, width - indent - 4)
    axis = _axis(values)
    low = number(axis.low)
    ends = f"{low}{number(axis.high):>{space - len(low)}}"
    head = f"{measure:<{indent}}  {ends}"
    lines = [
        f"{label:<{indent}}  {_interval_bar(of, axis, space)}"
        for label, of in zip(labels, measured, strict=True)
    ]
    return [head, *lines]


def _step_label(step: Step) -> str:
    return f"{_minute(step.evaluation.at)}{f' x{step.count}' if step.count > 1 else ''}"


def _axis(values: Iterable[float]) -> Ends:
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    missing = max(0.0, _LEAST_SPAN - (high - low)) / 2
    return Ends(low - missing, high + missing)


def _interval_bar(mean: MeasuredMean | None, axis: Ends, space: int) -> str:
    if mean is None or mean.mean is None:
        return "(no value)"
    cells = [" "] * space
    if mean.low is not None and mean.high is not None:
        low, high = _cell(mean.low, axis, space), _cell(mean.high, axis, space)
        cells[low : high + 1] = "-" * (high + 1 - low)
        cells[low], cells[high] = "[", "]"
    cells[_cell(mean.mean, axis, space)] = "o"
    return "".join(cells).rstrip()


def _cell(value: float, axis: Ends, space: int) -> int:
    return round((value - axis.low) / (axis.high - axis.low) * (space - 1))


def _points(mean: MeasuredMean) -> list[float]:
    return [value for value in (mean.low, mean.mean, mean.high) if value is not None]


def _times(old: Evaluation, new: Evaluation) -> str:
    """Return both times, with seconds where minutes do not part them."""
    times = [_minute(old.at), _minute(new.at)]
    if times[0] == times[1]:
        times = [_second(old.at), _second(new.at)]
    return " to ".join(times)


def _minute(at: str) -> str:
    return one_line(at[:16].replace("T", " ")) or MISSING


def _second(at: str) -> str:
    return one_line(at[:19].replace("T", " ")) or MISSING


def _mean_of(mean: MeasuredMean | None) -> float | None:
    return None if mean is None else mean.mean


def _from_to(old: float | None, new: float | None) -> str:
    return f"{number(old)} → {number(new)}"


def _mean_with_ends(mean: MeasuredMean | None) -> str:
    return MISSING if mean is None else with_ends(mean.mean, mean.low, mean.high)


def _trend_difference(trend: Trend) -> str:
    if trend.is_identity:
        return f"{signed(trend.diff)}, the same rankings"
    return _signed_with_ends(trend.diff, trend.low, trend.high)


def _signed_with_ends(diff: float | None, low: float | None, high: float | None) -> str:
    return signed(diff) if low is None else f"{signed(diff)} [{signed(low)}, {signed(high)}]"


def _n_items(trend: Trend) -> str:
    return f"{trend.n:,} {trend.on}"


def _step_cost(step: Step) -> str:
    if step.cost_usd is not None:
        return f"{step.cost_usd:.4f} USD"
    return MISSING if step.calls is None else plural(step.calls, "call")


def changes_table(history: History, runs: Sequence[str]) -> Table:
    """Return what changed since the last evaluation, as rows of text."""
    rows = tuple(
        (item.change.what, item.change.text, ", ".join(item.runs) or "all")
        for item in changes_since_last(history, runs)
    )
    note = NEWER if set(not_evaluated_yet(history)) & set(runs) else ""
    return Table("What changed since the last evaluation", ("what", "how", "runs"), rows, note)


def trends_table(history: History, runs: Sequence[str], decides: str = PRIMARY) -> Table:
    """Return full and bridge score of each run with a trend, in the `followed_measure`."""
    measure, found = followed_measure(history, decides), trends(history, runs, decides)
    rows = tuple(_trend_row(history, trend) for trend in found if trend.since)
    headers = ("run", "before", "now", "items", "difference", "interval", "trend")
    note = (
        "Before and now are over all items of the set as it was each time. The difference is on "
        "the items that did not change between the two, where there are any: it tells a changed "
        "system from a changed set. It is a trend where its 95 % interval leaves 0 out, and the "
        "test of a comparison finds it. Where the set changed and no item that is known to be the "
        "same can be scored, it is UNKNOWN: easier queries would pass for a better retriever."
    )
    note = " ".join([note, *_mixed_trends(history, found, measure), *_needed_by_run(found)])
    return Table(f"{measure} since the last evaluation", headers, rows, note)


def _mixed_trends(history: History, found: Iterable[Trend], measure: str) -> Iterator[str]:
    """Yield for which runs no trend is known, as no one judge graded both rankings."""
    for movement in found:
        now = history.find(movement.until)
        mixed = now.mixed if now is not None and now.bridge_to == movement.since else None
        if mixed is not None and measure in mixed.measures:
            command = judge_command(mixed.ask, "DIR", [movement.run], n_earlier=1)
            yield (
                f"{movement.run}: of {mixed.measures[measure]:,} items no one judge graded both "
                f"rankings ({judges_text(mixed.judges)}); {missing_grades_text(mixed, command)}."
            )


def _needed_by_run(trends: Iterable[Trend]) -> Iterator[str]:
    """Yield how many items would show a difference, by run, where none was shown."""
    for item in trends:
        if text := _needed_text(item, LEAST_DIFFERENCE):
            yield f"{item.run}: items that would show a difference in 4 of 5 samples: {text}."


def _trend_row(history: History, trend: Trend) -> tuple[str, ...]:
    evaluations = history.of_run(trend.run)
    measured = {item.evaluation_id: item.measures.get(trend.measure) for item in evaluations}
    old, new = measured[trend.since], measured[trend.until]
    items = f"{trend.n:,} unchanged" if trend.on == "same items" else "all"
    ends = "the same rankings" if trend.is_identity else MISSING
    if not trend.is_identity and trend.low is not None and trend.high is not None:
        ends = f"[{signed(trend.low)}, {signed(trend.high)}]"
    return (
        trend.run,
        number(old.mean if old else None),
        number(new.mean if new else None),
        items,
        signed(trend.diff),
        ends,
        trend.verdict,
    )


def batches_text(series: BatchSeries) -> str:
    """Return a series as a terminal shows it."""
    table = batches_table(series)
    table_text = (
        render_table(table.headers, table.rows) if table.rows else f"{table.title}: no values"
    )
    return "\n".join([table_text, *_batch_remarks(series), BATCH_NOTE])


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
            _level_cell(row.as_asked),
            _level_cell(row.over_queries),
            f"{row.share:.1%}",
            _batch_difference(row),
        ]
        for row in series.rows
    ]
    if any(row.evaluated_at for row in series.rows):
        headers.append("evaluated (UTC)")
        for cells, row in zip(rows, series.rows, strict=True):
            cells.append(_minute(row.evaluated_at))
    note = " ".join([*(f"{remark}." for remark in _batch_remarks(series)), BATCH_NOTE])
    title = f"{series.measure} by batch of production"
    return Table(title, tuple(headers), tuple(map(tuple, rows)), note)


def _batch_remarks(series: BatchSeries) -> list[str]:
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


def _level_cell(level: Level | None) -> str:
    if level is None or level.interval is None:
        return number(level.mean if level else None)
    return with_ends(level.mean, level.interval.low, level.interval.high)


def _batch_difference(row: BatchMean) -> str:
    if row.unknown:
        return "UNKNOWN"
    if row.diff is None or row.interval is None:
        return MISSING
    difference = _signed_with_ends(row.diff, row.interval.low, row.interval.high)
    return difference if row.is_as_asked else f"{difference} over queries"
