"""The sentences and numbers of a comparison, the same in a terminal and in Markdown."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from ragforge.evaluating.comparison import Compared, ComparisonReport
from ragforge.evaluating.formatting import MISSING, number, one_line, plural, share
from ragforge.measures.comparing import Comparison
from ragforge.measures.intervals import Ends

DIGITS: Final = 4
"""Of means and differences."""
SHORT: Final = 3
"""Digits of what is known less well: ends of intervals, least differences."""
NAME_CHARS: Final = 60
NO_BREAK: Final = "\xa0"
BASELINE: Final = "baseline"
LEGEND: Final = (
    "diff: mean of B less mean of A. interval: of the difference, widened so that the chance of "
    "any false finding in all of this is {alpha}: as far as the paired bootstrap (BCa) or "
    "Student's t reaches, whichever goes further. Where it holds 0, or p corr. is above {alpha}, "
    "the winner is TIE.",
    "p: paired randomisation test; p corr.: Holm over all measures and pairs. W/T/L: queries in "
    "which B has the higher, the same, the lower value.",
    "d_z: mean difference in standard deviations. shows: the least true difference that so many "
    "queries show in 4 of 5 samples (>= where most of them are the same in both, as it may take "
    "more then); for half: queries that would show half of it.",
)


def part_sentences(report: ComparisonReport) -> list[str]:
    """Return a sentence on the part of the queries that was compared; [] where it was all."""
    return [report.part.head] if report.part else []


def by_pair(items: Iterable[Compared]) -> list[list[Compared]]:
    """Return the comparisons of each two together."""
    grouped = groupby(items, key=lambda item: (item.comparison.a, item.comparison.b))
    return [list(found) for _, found in grouped]


def display_name(name: str) -> str:
    """Return the name of a run fit for a sentence."""
    return one_line(name, NAME_CHARS)


def survivors(report: ComparisonReport) -> list[Comparison]:
    """Return the differences that survive the correction, by measure, the surest first."""
    order = {measure: place for place, measure in enumerate(report.measures)}
    shown = [item.comparison for item in report.items if item.better is not None]
    return sorted(shown, key=lambda item: (order[item.measure], item.p, -abs(item.diff or 0.0)))


def interval_text(ends: Ends | None, digits: int = SHORT) -> str:
    """Return an interval; a dash where there is none."""
    if ends is None:
        return MISSING
    return f"[{ends.low:.{digits}f}, {ends.high:.{digits}f}]"


def detectable_text(comparison: Comparison) -> str:
    """Return the least difference that is shown; a dash where there is no spread to tell it by."""
    if comparison.power is None or comparison.power.detectable is None:
        return MISSING
    return f"{'>=' if _mostly_tied(comparison) else ''}{number(comparison.power.detectable, SHORT)}"


def p_text(p: float) -> str:
    """Return a p value; a small one by its magnitude, never as 0."""
    return f"{p:.4f}" if p >= 0.00005 or p == 0 else f"{p:.0e}"


def verdict(items: Sequence[Compared]) -> list[str]:
    """Return sentences on which of two runs is better, by measure.

    Args:
        items: The measures of one pair.
    """
    known = [item.comparison for item in items if not item.withheld]
    better = [_better(known, letter) for letter in ("B", "A")]
    ties = _ties([item for item in known if item.winner == "TIE" and not item.is_identity])
    if any(item.is_identity for item in known):
        ties = ["The same rankings in every query: nothing differs.", *ties]
    return [*filter(None, better), *ties, *_unknown(items)]


def lead_caveats(items: Sequence[Compared]) -> list[str]:
    """Return warnings where missing grades or answers could take a lead away."""
    sentences = []
    for item in items:
        comparison = item.comparison
        winner = item.better
        if winner is None:
            continue
        if item.unjudged is not None and _holds_zero(item.unjudged.bounds):
            sentences.append(
                f"{comparison.measure}: the chunks without a grade could take "
                f"{display_name(winner)}'s lead away; judge them before you decide."
            )
        if item.failure_bounds is not None and _holds_zero(item.failure_bounds):
            sentences.append(
                f"{comparison.measure}: the {plural(item.n_left_out, 'query', 'queries')} left out "
                f"could take {display_name(winner)}'s lead away; mend the failures first."
            )
    return sentences


def basis(report: ComparisonReport) -> str:
    """Say in one line what the values rest on."""
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


def baseline_note(report: ComparisonReport) -> str:
    """Say that grades are of no model or person, "" where that is not so."""
    rules = [
        f"by the offline {one_line(judge)}"
        for judge in report.judged_by
        if judge.startswith(BASELINE)
    ]
    origins = [item.origin for item in report.graded_by]
    if not rules:
        rules = [f"by the offline {BASELINE}"] if any(by.is_shared_words for by in origins) else []
    made_up = ["made up by ragforge mock"] if any(by.is_made_up for by in origins) else []
    if not rules and not made_up:
        return ""
    return (
        f"grades {', '.join([*rules, *made_up])}: they show that things run, not which is better; "
        "judge with a model or people before you decide"
    )


def legend(report: ComparisonReport) -> list[str]:
    """Explain the columns of the table of a pair."""
    return [line.format(alpha=share(report.alpha)) for line in LEGEND]


def _better(comparisons: Sequence[Comparison], letter: str) -> str:
    won = [item for item in comparisons if item.winner == letter]
    if not won:
        return ""
    name = won[0].b if letter == "B" else won[0].a
    listed = [
        f"{_named(item)} by {number(abs(item.diff or 0), SHORT)} {_lead(item)}" for item in won
    ]
    return f"{display_name(name)} is better in {_enumerated(listed)}."


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
    return interval_text(Ends(low, high)).replace(" ", NO_BREAK)


def _ties(tied: Sequence[Comparison]) -> list[str]:
    if not tied:
        return []
    measures = _enumerated([item.measure for item in tied], "or")
    least = [
        f"{'at least ' if _mostly_tied(item) else ''}{number(item.power.detectable, SHORT)} in "
        f"{item.measure}"
        for item in tied
        if item.power is not None and item.power.detectable
    ]
    n_queries = plural(max(item.n for item in tied), "query", "queries")
    sentence = f"No difference shown in {measures}, by {n_queries}."
    if least:
        sentence = (
            f"No difference shown in {measures}; with {n_queries} one of {_enumerated(least)} "
            "would be seen in 4 of 5 samples."
        )
    alike = [item.measure for item in tied if item.power is not None and not item.power.sd]
    if not alike:
        return [sentence]
    return [
        sentence,
        f"In {_enumerated(alike)} the difference is the same in all queries: they do not tell how "
        "far others would spread, and so not what difference would be seen.",
    ]


def _unknown(items: Sequence[Compared]) -> list[str]:
    """Say of which measures a winner is withheld, those of one reason in one sentence."""
    by_reason: dict[str, list[str]] = {}
    for item in items:
        if item.withheld:
            by_reason.setdefault(item.withheld, []).append(item.comparison.measure)
    return [
        f"UNKNOWN which is better in {_enumerated(measures)}: {reason}."
        for reason, measures in by_reason.items()
    ]


def _mostly_tied(comparison: Comparison) -> bool:
    return comparison.ties > comparison.n / 2


def _enumerated(parts: Sequence[str], last: str = "and") -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def _holds_zero(ends: Ends) -> bool:
    return ends.low <= 0 <= ends.high
