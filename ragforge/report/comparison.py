"""A comparison as a document and as JSON, and the tables and sentences that others take from it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from ragforge.evaluating.comparison import Compared, ComparisonReport, MovedQuery
from ragforge.evaluating.formatting import (
    MISSING,
    Table,
    both_ends,
    enumerated,
    number,
    one_line,
    plural,
    share,
    signed,
)
from ragforge.evaluating.graded_by import graded_line
from ragforge.measures.comparing import Comparison
from ragforge.measures.intervals import Ends
from ragforge.measures.measure_names import by_judgments
from ragforge.report.document import Block, Document, Listing
from ragforge.report.text import TextLayout

_DIGITS: Final = 4
"""Of means and differences."""
SHORT: Final = 3
"""Digits of what is known less well: ends of intervals, least differences."""
_NAME_CHARS: Final = 60
_NO_BREAK: Final = "\xa0"
_BASELINE: Final = "baseline"
LEAST_SHOWN: Final = "the least true difference that so many queries show in 4 of 5 samples"
_LEGEND: Final = (
    "diff: mean of B less mean of A. interval: of the difference, widened so that the chance of "
    "any false finding in all of this is {alpha}: as far as the paired bootstrap (BCa) or "
    "Student's t reaches, whichever goes further. Where it holds 0, or p corr. is above {alpha}, "
    "the winner is TIE.",
    "p: paired randomisation test; p corr.: Holm over all measures and pairs. W/T/L: queries in "
    "which B has the higher, the same, the lower value.",
    f"d_z: mean difference in standard deviations. shows: {LEAST_SHOWN} (>= where most of them "
    "are the same in both, or hardly differ at all, as it may take more then); for half: queries "
    "that would show half of it.",
)
_SHORT_LEGEND: Final = (
    "diff: mean of B less mean of A. Intervals and p corr. allow for all comparisons made here; "
    "--verbose explains the columns and shows the queries that moved most."
)
_CORRECTED: Final = (
    "The winner is that of the corrected difference: its interval over queries like these, wide "
    "enough for all comparisons made here, leaves 0 out. Below are the uncorrected "
    "numbers, by all grades in the set: the judge's, and people's where there are some."
)
_LAYOUT: Final = TextLayout(118, clean=str, break_on_hyphens=False, indent="")
"""Names in sentences are made visible where they are put in."""
_TEXT_CHARS: Final = 60
_ID_CHARS: Final = 24


def render_comparison(report: ComparisonReport, n_moved: int = 0) -> str:
    """Return the whole comparison, without a line feed at its end.

    Args:
        report: What was found.
        n_moved: Queries to show that gained most, and that lost most, of each pair.
    """
    return _rendered(report, _comparison_document(report, n_moved))


def render_comparison_summary(report: ComparisonReport) -> str:
    """Return the comparison without the legend and the queries that moved."""
    blocks = (*_pair_blocks(report, 0), Listing("", (_SHORT_LEGEND, *_notes(report))))
    return _rendered(
        report, Document("", (graded_line(report.graded_by, report.correction),), blocks)
    )


def _rendered(report: ComparisonReport, document: Document) -> str:
    part = []
    if report.part is not None:
        head, *table = report.part.lines
        part.append("\n".join([_LAYOUT.paragraph(head), *table]))
    lead = map(_LAYOUT.paragraph, document.lead)
    return "\n\n".join([*lead, *part, *_LAYOUT.blocks(document)]).replace(_NO_BREAK, " ")


def _comparison_document(report: ComparisonReport, n_moved: int = 0) -> Document:
    """Return the comparison as a document, pair by pair.

    Three and more runs start with their means and the differences that survive the correction.
    """
    blocks = (*_pair_blocks(report, n_moved), Listing("", (*legend(report), *_notes(report))))
    return Document("", (graded_line(report.graded_by, report.correction),), blocks)


def _pair_blocks(report: ComparisonReport, n_moved: int) -> list[Block]:
    blocks: list[Block] = []
    if len(report.names) > 2:
        blocks.append(means_table(report))
        blocks.append(survivors_table(report))
    for items in by_pair(report.items):
        blocks += corrected_tables(items)
        blocks += [pair_table(items), Listing("", tuple(findings(items))), *unknown_tables(items)]
        blocks += _moved_tables(items, n_moved)
    return blocks


def means_table(report: ComparisonReport, digits: int = _DIGITS) -> Table:
    """Return the means of all runs, with letters where there are any."""
    rows = tuple(
        (name, *(_lettered(report, measure, name, digits) for measure in report.measures))
        for name in report.names
    )
    note = ""
    if report.letters:
        note = "Runs that share a letter were not told apart in that measure; a is the best group."
        bare = [measure for measure in report.measures if measure not in report.letters]
        note += f" No letters in {', '.join(bare)}: see what is UNKNOWN." if bare else ""
    elif report.baseline is not None:
        note = f"All others are held against {_display_name(report.baseline)} only."
        note = " ".join([note, *_several_better(report)])
    return Table("Means", (report.of.removesuffix("s"), *report.measures), rows, note)


def _several_better(report: ComparisonReport) -> Iterator[str]:
    """Yield which runs beat the baseline, by measure, where these are several."""
    for measure in report.measures:
        names = report.better_by(measure)
        if len(names) > 1:
            listed = enumerated(list(map(_display_name, names)))
            yield f"{measure}: {listed} beat it; which of them is best is not told."


def survivors_table(report: ComparisonReport) -> Table:
    """Return the differences that survive the correction.

    Where people's labels correct them, these have their intervals rather than p values.
    """
    surviving = survivors(report)
    is_corrected = report.calibration is not None
    rows = tuple(
        (
            item.comparison.measure,
            item.comparison.b if item.outcome == "B" else item.comparison.a,
            item.comparison.a if item.outcome == "B" else item.comparison.b,
            number(abs(item.diff or 0.0), _DIGITS),
            _corrected_lead(item) if is_corrected else p_text(item.comparison.p_corrected),
        )
        for item in surviving
    )
    count = f"{len(surviving)} of {plural(len(report.items), 'comparison')}"
    n_unknown = sum(item.outcome == "UNKNOWN" for item in report.items)
    notes = [] if surviving or n_unknown else ["None: nothing here tells these runs apart."]
    notes += [f"UNKNOWN in {plural(n_unknown, 'comparison')}."] if n_unknown else []
    title = f"Differences that survive the correction: {count}"
    sure = "queries like these" if is_corrected else "p corr."
    return Table(title, ("measure", "better", "worse", "by", sure), rows, " ".join(notes))


def pair_table(items: Sequence[Compared]) -> Table:
    """Return the measures of one pair; the winner stands with the corrected ones where there are.

    See `corrected_tables`.
    """
    first = items[0].comparison
    counts = {item.comparison.n for item in items}
    queries = plural(max(counts), "query", "queries")
    title = f"A = {_display_name(first.a)}, B = {_display_name(first.b)}; {queries}"
    is_corrected = any(item.corrected for item in items)
    headers: tuple[str, ...] = (
        *("measure", "A", "B", "diff", "%", "interval", "p", "p corr."),
        *(() if is_corrected else ("winner",)),
        *("W/T/L", "d_z", "shows", "for half"),
    )
    title += "; uncorrected" if is_corrected else ""
    rows: Iterable[tuple[str, ...]] = (_row(item, has_winner=not is_corrected) for item in items)
    if len(counts) > 1:
        headers = (*headers, "n")
        rows = ((*row, str(item.comparison.n)) for row, item in zip(rows, items, strict=True))
    return Table(title, headers, tuple(rows))


def corrected_tables(items: Sequence[Compared]) -> list[Table]:
    """Return the corrected differences of one pair; none where no calibration is used."""
    first = items[0].comparison
    rows = tuple(
        (
            item.comparison.measure,
            signed(corrected.judge_only, _DIGITS),
            signed(corrected.value, _DIGITS),
            interval_text(Ends(corrected.low, corrected.high)),
            interval_text(Ends(corrected.wide_low, corrected.wide_high)),
            item.outcome,
            f"{corrected.n:,}",
            f"{corrected.n_pairs:,}",
        )
        for item in items
        if (corrected := item.corrected) is not None
    )
    headers = (
        *("measure", "judge only", "corrected", "these queries", "queries like these"),
        *("winner", "labels", "of pairs"),
    )
    title = f"B - A by people's labels: A = {_display_name(first.a)}, B = {_display_name(first.b)}"
    return [Table(title, headers, rows, _CORRECTED)] if rows else []


def unknown_tables(items: Sequence[Compared]) -> list[Table]:
    """Return what is not known of a pair, and how far it could move the differences."""
    return [table for table in (_holes(items), _left_out(items)) if table.rows]


def _moved_tables(items: Sequence[Compared], n_moved: int) -> list[Table]:
    """Return the queries that moved most in the first measure; none where none moved."""
    first, n_moved = items[0], max(n_moved, 0)
    moved = [
        *(("gained", query) for query in first.gained[:n_moved]),
        *(("lost", query) for query in first.lost[:n_moved]),
    ]
    if not moved:
        return []
    is_ranked = any(query.first_a or query.first_b for _, query in moved)
    rows = tuple(_moved_row(what, query, is_ranked=is_ranked) for what, query in moved)
    ranks = ("rank A", "rank B") if is_ranked else ()
    note = "rank: of the first relevant chunk." if is_ranked else ""
    headers = ("B has", "diff", "A", "B", *ranks, "query", "text")
    return [Table(f"Queries that moved most in {first.comparison.measure}", headers, rows, note)]


def _holes(items: Sequence[Compared]) -> Table:
    """Return the retrieved chunks without a grade."""
    rows = tuple(
        (
            item.comparison.measure,
            signed(item.comparison.diff, _DIGITS),
            *map(str, (item.unjudged.n_only_a, item.unjudged.n_only_b, item.unjudged.n_both)),
            interval_text(item.unjudged.bounds),
        )
        for item in items
        if item.unjudged is not None
    )
    headers = (
        "measure",
        "diff",
        "only by A",
        "only by B",
        "by both",
        "diff, whatever their grades",
    )
    title = "Chunks retrieved that nobody graded, as far down as the measure looks"
    return Table(title, headers, rows)


def _left_out(items: Sequence[Compared]) -> Table:
    """Return how many queries are left out, or lack a judgment, because something failed."""
    rows = tuple(
        (
            item.comparison.measure,
            signed(item.comparison.diff, _DIGITS),
            str(item.n_left_out),
            str(item.n_open - item.n_left_out),
            interval_text(item.failure_bounds),
        )
        for item in items
        if item.n_open
    )
    headers = ("measure", "diff", "left out", "judgment failed", "diff, had nothing failed")
    return Table("Queries in which something failed or is missing", headers, rows)


def _row(item: Compared, *, has_winner: bool) -> tuple[str, ...]:
    comparison = item.comparison
    power = comparison.power
    return (
        comparison.measure,
        number(comparison.mean_a, _DIGITS),
        number(comparison.mean_b, _DIGITS),
        signed(comparison.diff, _DIGITS),
        _percent(comparison.percent),
        interval_text(comparison.interval),
        p_text(comparison.p),
        p_text(comparison.p_corrected),
        *([item.outcome] if has_winner else []),
        f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
        number(comparison.effect.cohen_dz, 2),
        detectable_text(comparison),
        MISSING if power is None or power.n_for_half is None else f"{power.n_for_half:,}",
    )


def _percent(value: float | None) -> str:
    return signed(value, 0 if value is not None and abs(value) >= 10 else 1)


def _lettered(report: ComparisonReport, measure: str, name: str, digits: int) -> str:
    mean = number(report.means[measure].get(name), digits)
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
    if _basis(report):
        yield _basis(report)
    if report.other_judges:
        yield one_line(report.other_judges)
    if _baseline_note(report):
        yield f"careful: {_baseline_note(report)}"


def part_sentences(report: ComparisonReport) -> list[str]:
    """Return a sentence on the part of the queries that was compared; [] where it was all."""
    return [report.part.head] if report.part else []


def by_pair(items: Iterable[Compared]) -> list[list[Compared]]:
    """Return the comparisons of each two together."""
    grouped = groupby(items, key=lambda item: (item.comparison.a, item.comparison.b))
    return [list(pair) for _, pair in grouped]


def _display_name(name: str) -> str:
    """Return the name of a run fit for a sentence."""
    return both_ends(name, _NAME_CHARS)


def survivors(report: ComparisonReport) -> list[Compared]:
    """Return the differences that survive the correction, by measure, the surest first."""
    order = {measure: place for place, measure in enumerate(report.measures)}
    surviving = [item for item in report.items if item.better is not None]

    def by_sureness(item: Compared) -> tuple[int, float, float]:
        corrected = item.corrected
        unsure = item.comparison.p
        if corrected is not None:
            unsure = (corrected.wide_high - corrected.wide_low) / abs(corrected.value)
        return order[item.comparison.measure], unsure, -abs(item.diff or 0.0)

    return sorted(surviving, key=by_sureness)


def interval_text(ends: Ends | None, digits: int = SHORT) -> str:
    """Return an interval; a dash where there is none."""
    if ends is None:
        return MISSING
    return f"[{number(ends.low, digits)}, {number(ends.high, digits)}]"


def detectable_text(comparison: Comparison) -> str:
    """Return the least difference that is shown; a dash where there is no spread to tell it by."""
    if comparison.power is None or comparison.power.detectable is None:
        return MISSING
    return f"{'>=' if _takes_more(comparison) else ''}{number(comparison.power.detectable, SHORT)}"


def p_text(p: float) -> str:
    """Return a p value; a small one by its magnitude, never as 0."""
    return f"{p:.4f}" if p >= 0.00005 or p == 0 else f"{p:.0e}"


def verdict(items: Sequence[Compared]) -> list[str]:
    """Return sentences on which of two runs is better, by measure.

    Args:
        items: The measures of one pair.
    """
    corrected = [
        _corrected_sentence(item) for item in items if item.corrected and not item.withheld
    ]
    known = [item.comparison for item in items if not item.withheld and not item.corrected]
    better = [_better(known, letter) for letter in ("B", "A")]
    ties = _ties([item for item in known if item.winner == "TIE" and not item.is_identity])
    if any(item.is_identity for item in known):
        ties = ["The same rankings in every query: nothing differs.", *ties]
    return [*corrected, *filter(None, better), *ties, *_unknown(items)]


def findings(items: Sequence[Compared]) -> list[str]:
    """Return which of two runs is better, and what could take its lead away."""
    return [*verdict(items), *_lead_caveats(items)]


def _lead_caveats(items: Sequence[Compared]) -> list[str]:
    """Return warnings where missing grades or answers could take a lead away."""
    sentences = []
    for item in items:
        comparison = item.comparison
        winner = item.better
        if winner is None or item.corrected is not None:
            continue
        if item.unjudged is not None and _holds_zero(item.unjudged.bounds):
            sentences.append(
                f"{comparison.measure}: the chunks without a grade could take "
                f"{_display_name(winner)}'s lead away; judge them before you decide."
            )
    return sentences


def warnings_of(report: ComparisonReport) -> tuple[str, ...]:
    """Return the warnings of a report, and those of leads that missing grades could take away.

    The text has these beside its verdict; who reads the winner alone needs them too.
    """
    caveats = (
        f"{item.comparison.a} and {item.comparison.b}: {text}"
        for item in report.items
        for text in _lead_caveats([item])
    )
    return (*report.every_warning, *caveats)


def has_doubtful_lead(item: Compared) -> bool:
    """Whether missing grades or answers could take the winner's lead away."""
    return bool(_lead_caveats([item]))


def is_of_evidence(report: ComparisonReport) -> bool:
    """Whether all that is compared by is computed from evidence."""
    return report.of == "runs" and not by_judgments(report.measures)


def _basis(report: ComparisonReport) -> str:
    """Return in one line what the values rest on."""
    if is_of_evidence(report):
        return "by the places of the queries' evidence, which no judge graded"
    parts = []
    if report.reading:
        parts.append(report.reading)
    elif report.by_lists:
        parts.append("relevant: as listed")
    elif report.rel_threshold is not None:
        parts.append(f"relevant: grade >= {report.rel_threshold}")
    if report.judged_by:
        judges = ", ".join(one_line(judge) for judge in dict.fromkeys(report.judged_by))
        parts.append(f"judged by {judges}")
    return "; ".join(parts)


def _baseline_note(report: ComparisonReport) -> str:
    """Return a note that grades are of no model or person, "" where that is not so."""
    if is_of_evidence(report):
        return ""
    rules = [
        f"by the offline {one_line(judge)}"
        for judge in report.judged_by
        if judge.startswith(_BASELINE)
    ]
    origins = [item.origin for item in report.graded_by]
    if not rules:
        is_of_baseline = any(by.is_shared_words or by.is_cosine for by in origins)
        rules = [f"by the offline {_BASELINE}"] if is_of_baseline else []
    made_up = ["made up by ragforge mock"] if any(by.is_made_up for by in origins) else []
    if not rules and not made_up:
        return ""
    return (
        f"grades {', '.join([*rules, *made_up])}: they show that things run, not which is better; "
        "judge with a model or people before you decide"
    )


def legend(report: ComparisonReport) -> list[str]:
    """Explain the columns of the table of a pair."""
    return [line.format(alpha=share(report.alpha)) for line in _LEGEND]


def _better(comparisons: Sequence[Comparison], letter: str) -> str:
    won = [item for item in comparisons if item.winner == letter]
    if not won:
        return ""
    name = won[0].b if letter == "B" else won[0].a
    listed = [
        f"{_named(item)} by {number(abs(item.diff or 0), SHORT)} {_lead(item)}" for item in won
    ]
    return f"{_display_name(name)} is better in {enumerated(listed)}."


def _named(comparison: Comparison) -> str:
    """Return the measure, with a word where the better value is the lower one."""
    is_higher = (comparison.diff or 0) > 0
    return (
        comparison.measure
        if is_higher == (comparison.winner == "B")
        else f"{comparison.measure} (lower)"
    )


def _lead(comparison: Comparison) -> str:
    """Return the interval of how far the winner is ahead, which no line break parts."""
    assert comparison.interval is not None
    low, high = sorted((abs(comparison.interval.low), abs(comparison.interval.high)))
    return interval_text(Ends(low, high)).replace(" ", _NO_BREAK)


def _corrected_sentence(item: Compared) -> str:
    corrected, comparison = item.corrected, item.comparison
    assert corrected is not None
    labels = plural(corrected.n, "label")
    if item.better is None:
        return f"{comparison.measure}: no difference shown, corrected by {labels}."
    return (
        f"{_display_name(item.better)} is better in {comparison.measure} by "
        f"{number(abs(corrected.value), SHORT)} {_corrected_lead(item)}, corrected by {labels}."
    )


def _corrected_lead(item: Compared) -> str:
    """Return how far the winner by people's labels is ahead, over queries like these."""
    assert item.corrected is not None
    low, high = sorted((abs(item.corrected.wide_low), abs(item.corrected.wide_high)))
    return interval_text(Ends(low, high)).replace(" ", _NO_BREAK)


def _ties(tied: Sequence[Comparison]) -> list[str]:
    if not tied:
        return []
    measures = enumerated([item.measure for item in tied], "or")
    least = [
        f"{'at least ' if _takes_more(item) else ''}{number(item.power.detectable, SHORT)} in "
        f"{item.measure}"
        for item in tied
        if item.power is not None and item.power.detectable
    ]
    n_queries = plural(max(item.n for item in tied), "query", "queries")
    sentence = f"No difference shown in {measures}, by {n_queries}."
    if least:
        sentence = (
            f"No difference shown in {measures}; with {n_queries} one of {enumerated(least)} "
            "would be seen in 4 of 5 samples."
        )
    alike = [item.measure for item in tied if item.power is not None and not item.power.sd]
    if not alike:
        return [sentence]
    return [
        sentence,
        f"In {enumerated(alike)} the difference is the same in all queries: they do not tell how "
        "far others would spread, and so not what difference would be seen.",
    ]


def _unknown(items: Sequence[Compared]) -> list[str]:
    """Return for which measures a winner is withheld, those of one reason in one sentence."""
    by_reason: dict[str, list[str]] = {}
    for item in items:
        if item.withheld:
            by_reason.setdefault(item.withheld, []).append(item.comparison.measure)
    return [
        f"UNKNOWN which is better in {enumerated(measures)}: {reason}."
        for reason, measures in by_reason.items()
    ]


def _takes_more(comparison: Comparison) -> bool:
    """Whether a difference has to be larger than the one that is said to be shown."""
    is_lower_bound = comparison.power is not None and comparison.power.is_lower_bound
    return is_lower_bound or comparison.ties > comparison.n / 2


def _holds_zero(ends: Ends) -> bool:
    return ends.low <= 0 <= ends.high
