"""A comparison as JSON and as text, with the tables that reports and the page take from it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Final

from ragforge.evaluating.comparison import Compared, ComparisonReport, MovedQuery
from ragforge.evaluating.formatting import MISSING, number, one_line, plural, share, signed
from ragforge.evaluating.graded_by import graded_json, graded_line
from ragforge.evaluating.selection import part_json
from ragforge.evaluating.text_table import Table
from ragforge.measures.intervals import Ends
from ragforge.report.comparison.sentences import (
    DIGITS,
    NO_BREAK,
    SHORT,
    baseline_note,
    basis,
    by_pair,
    detectable_text,
    display_name,
    interval_text,
    lead_caveats,
    legend,
    p_text,
    survivors,
    verdict,
)
from ragforge.report.text import TextLayout

_LAYOUT: Final = TextLayout(118, clean=str, break_on_hyphens=False)
"""Names in sentences are made visible where they are put in."""
_TEXT_CHARS: Final = 60
_ID_CHARS: Final = 24


def comparison_json(report: ComparisonReport) -> dict[str, object]:
    """Return what `ragforge compare --json` prints.

    `low` and `high` are the ends of the corrected interval; `winner` is A, B, TIE or UNKNOWN, and
    `why` says what makes it UNKNOWN.
    """
    return {
        "of": report.of,
        "names": list(report.names),
        "measures": list(report.measures),
        "base": report.baseline,
        "comparisons": [_compared(item) for item in report.items],
        "alpha": report.alpha,
        "letters": report.letters,
        "means": report.means,
        "n_values": report.n_values,
        "warnings": list(report.warnings),
        **({"selection": part_json(report.part)} if report.part else {}),
        "rel_threshold": report.rel_threshold,
        "judged_by": list(report.judged_by),
        "graded_by": graded_json(report.graded_by),
    }


def _compared(item: Compared) -> dict[str, object]:
    comparison = item.comparison
    return {
        "a": comparison.a,
        "b": comparison.b,
        "measure": comparison.measure,
        "mean_a": comparison.mean_a,
        "mean_b": comparison.mean_b,
        "diff": comparison.diff,
        "low": _low(comparison.interval),
        "high": _high(comparison.interval),
        "p": _finite(comparison.p),
        "p_corrected": _finite(comparison.p_corrected),
        "winner": item.outcome,
        "wins": comparison.wins,
        "ties": comparison.ties,
        "losses": comparison.losses,
        "why": item.withheld or None,
        "same_rankings": comparison.is_identity,
        "percent": comparison.percent,
        "level": comparison.level,
        "low_alone": _low(comparison.interval_alone),
        "high_alone": _high(comparison.interval_alone),
        "p_t": _finite(comparison.p_t),
        "n": comparison.n,
        "n_left_out": item.n_left_out,
        "effect": asdict(comparison.effect),
        "power": None if comparison.power is None else asdict(comparison.power),
        "unjudged": _unjudged(item),
        "failure_bounds": _ends(item.failure_bounds),
        "moved": {
            "gained": [_moved(query) for query in item.gained],
            "lost": [_moved(query) for query in item.lost],
        },
    }


def _unjudged(item: Compared) -> dict[str, object] | None:
    unjudged = item.unjudged
    if unjudged is None:
        return None
    return {
        "n_only_a": unjudged.n_only_a,
        "n_only_b": unjudged.n_only_b,
        "n_both": unjudged.n_both,
        "bounds": _ends(unjudged.bounds),
    }


def _moved(query: MovedQuery) -> dict[str, object]:
    return {**asdict(query), "diff": query.diff}


def _ends(ends: Ends | None) -> dict[str, float] | None:
    return None if ends is None else {"low": ends.low, "high": ends.high}


def _low(ends: Ends | None) -> float | None:
    return None if ends is None else ends.low


def _high(ends: Ends | None) -> float | None:
    return None if ends is None else ends.high


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def render_comparison(report: ComparisonReport, n_moved: int = 0) -> str:
    """Return the whole comparison, without a line feed at its end.

    Three and more runs start with their means and the differences that survive the correction.

    Args:
        report: What was found.
        n_moved: Queries to show that gained most, and that lost most, of each pair.
    """
    parts = [_wrapped(graded_line(report.graded_by))]
    if report.part is not None:
        head, *rest = report.part.lines
        parts.append("\n".join([_wrapped(head), *rest]))
    if len(report.names) > 2:
        parts += [_table_text(means_table(report)), _table_text(survivors_table(report))]
    parts += [_pair(items, n_moved) for items in by_pair(report.items)]
    parts.append("\n".join([*map(_wrapped, legend(report)), *map(_wrapped, _notes(report))]))
    return "\n\n".join(parts)


def means_table(report: ComparisonReport) -> Table:
    """Return the means of all runs, with letters where there are any."""
    rows = tuple(
        (name, *(_lettered(report, measure, name) for measure in report.measures))
        for name in report.names
    )
    note = ""
    if report.letters:
        note = "Runs that share a letter were not told apart in that measure; a is the best group."
        bare = [measure for measure in report.measures if measure not in report.letters]
        note += f" No letters in {', '.join(bare)}: see what is UNKNOWN." if bare else ""
    elif report.baseline is not None:
        note = f"All others are held against {display_name(report.baseline)} only."
    return Table("Means", (report.of.removesuffix("s"), *report.measures), rows, note)


def survivors_table(report: ComparisonReport) -> Table:
    """Return the differences that survive the correction."""
    surviving = survivors(report)
    rows = tuple(
        (
            comparison.measure,
            comparison.b if comparison.winner == "B" else comparison.a,
            comparison.a if comparison.winner == "B" else comparison.b,
            number(abs(comparison.diff or 0.0), DIGITS),
            p_text(comparison.p_corrected),
        )
        for comparison in surviving
    )
    count = f"{len(surviving)} of {plural(len(report.items), 'comparison')}"
    n_unknown = sum(item.outcome == "UNKNOWN" for item in report.items)
    notes = [] if surviving or n_unknown else ["None: nothing here tells these runs apart."]
    notes += [f"UNKNOWN in {plural(n_unknown, 'comparison')}."] if n_unknown else []
    title = f"Differences that survive the correction: {count}"
    return Table(title, ("measure", "better", "worse", "by", "p corr."), rows, " ".join(notes))


def pair_table(items: Sequence[Compared]) -> Table:
    """Return the measures of one pair."""
    first = items[0].comparison
    counts = {item.comparison.n for item in items}
    queries = plural(max(counts), "query", "queries")
    title = f"A = {display_name(first.a)}, B = {display_name(first.b)}; {queries}"
    headers: tuple[str, ...] = (
        *("measure", "A", "B", "diff", "%", "interval", "p", "p corr.", "winner"),
        *("W/T/L", "d_z", "shows", "for half"),
    )
    rows: Iterable[tuple[str, ...]] = (_row(item) for item in items)
    if len(counts) > 1:
        headers = (*headers, "n")
        rows = ((*_row(item), str(item.comparison.n)) for item in items)
    return Table(title, headers, tuple(rows))


def unknown_tables(items: Sequence[Compared]) -> list[Table]:
    """Return what is not known of a pair, and how far it could move the differences."""
    return [table for table in (_holes(items), _left_out(items)) if table is not None]


def moved_table(items: Sequence[Compared], n_moved: int) -> Table | None:
    """Return the queries that moved most in the first measure; None where none moved."""
    if not items or n_moved < 1:
        return None
    first = items[0]
    moved = [
        *(("gained", query) for query in first.gained[:n_moved]),
        *(("lost", query) for query in first.lost[:n_moved]),
    ]
    if not moved:
        return None
    is_ranked = any(query.first_a or query.first_b for _, query in moved)
    rows = tuple(_moved_row(what, query, is_ranked=is_ranked) for what, query in moved)
    ranks = ("rank A", "rank B") if is_ranked else ()
    note = "rank: of the first relevant chunk." if is_ranked else ""
    headers = ("B has", "diff", "A", "B", *ranks, "query", "text")
    return Table(f"Queries that moved most in {first.comparison.measure}", headers, rows, note)


def _pair(items: Sequence[Compared], n_moved: int) -> str:
    sentences = [_wrapped(line) for line in (*verdict(items), *lead_caveats(items))]
    moved = moved_table(items, n_moved)
    tables = [*unknown_tables(items), *([moved] if moved else [])]
    blocks = [_table_text(table) for table in tables]
    return "\n\n".join(["\n".join([_table_text(pair_table(items)), "", *sentences]), *blocks])


def _holes(items: Sequence[Compared]) -> Table | None:
    """Return the retrieved chunks without a grade; None where there are none."""
    rows = [
        (
            item.comparison.measure,
            signed(item.comparison.diff, DIGITS),
            *map(str, (item.unjudged.n_only_a, item.unjudged.n_only_b, item.unjudged.n_both)),
            interval_text(item.unjudged.bounds),
        )
        for item in items
        if item.unjudged is not None
    ]
    headers = (
        "measure",
        "diff",
        "only by A",
        "only by B",
        "by both",
        "diff, whatever their grades",
    )
    title = "Chunks retrieved that nobody graded, as far down as the measure looks"
    return Table(title, headers, tuple(rows)) if rows else None


def _left_out(items: Sequence[Compared]) -> Table | None:
    """Return the queries left out because something failed; None where there are none."""
    rows = [
        (
            item.comparison.measure,
            signed(item.comparison.diff, DIGITS),
            str(item.n_left_out),
            interval_text(item.failure_bounds),
        )
        for item in items
        if item.n_left_out
    ]
    headers = ("measure", "diff", "queries left out", "diff, had nothing failed")
    return (
        Table("Queries left out because something failed or is missing", headers, tuple(rows))
        if rows
        else None
    )


def _row(item: Compared) -> tuple[str, ...]:
    comparison = item.comparison
    power = comparison.power
    return (
        comparison.measure,
        number(comparison.mean_a, DIGITS),
        number(comparison.mean_b, DIGITS),
        signed(comparison.diff, DIGITS),
        _percent(comparison.percent),
        interval_text(comparison.interval),
        p_text(comparison.p),
        p_text(comparison.p_corrected),
        item.outcome,
        f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
        number(comparison.effect.cohen_dz, 2),
        detectable_text(comparison),
        MISSING if power is None or power.n_for_half is None else f"{power.n_for_half:,}",
    )


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.{0 if abs(value) >= 10 else 1}f}"


def _lettered(report: ComparisonReport, measure: str, name: str) -> str:
    mean = number(report.means[measure].get(name), DIGITS)
    counts = report.n_values.get(measure, {})
    n = counts.get(name, 0)
    of_fewer = f"(n={n:,})" if n < max(counts.values(), default=0) else ""
    letter = report.letters.get(measure, {}).get(name, "")
    return " ".join(filter(None, (mean, letter, of_fewer)))


def _moved_row(what: str, query: MovedQuery, *, is_ranked: bool) -> tuple[str, ...]:
    ranks = [MISSING if rank is None else str(rank) for rank in (query.first_a, query.first_b)]
    return (
        what,
        signed(query.diff, SHORT),
        number(query.value_a, SHORT),
        number(query.value_b, SHORT),
        *(ranks if is_ranked else ()),
        one_line(query.query_id, _ID_CHARS),
        one_line(query.text, _TEXT_CHARS),
    )


def _notes(report: ComparisonReport) -> Iterable[str]:
    if report.alpha != 0.05:
        yield f"alpha: {share(report.alpha)}"
    if basis(report):
        yield basis(report)
    if baseline_note(report):
        yield f"careful: {baseline_note(report)}"


def _table_text(table: Table) -> str:
    if table.rows:
        return _LAYOUT.table(table)
    return "\n".join(filter(None, (table.title, _wrapped(table.note))))


def _wrapped(text: str) -> str:
    return _LAYOUT.paragraph(text).replace(NO_BREAK, " ")
