"""The tables about answers, as rows of text: verdicts, rates, slices, and what to blame."""

from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate
from ragforge.report.answers.context import ContextUse
from ragforge.report.answers.diagnosis import READINGS, Cell, Diagnosis
from ragforge.report.answers.rates import DIMENSIONS, AnswerSlice
from ragforge.report.answers.summary import AnswerSummary
from ragforge.report.answers.words import (
    ANSWERS_NOTE,
    CONTEXT_NOTE,
    DIAGNOSIS_NOTE,
    GIVEN_NOTE,
    LENGTH_NOTE,
    RATE_LABELS,
    RATES_NOTE,
    SLICES_NOTE,
)
from ragforge.report.shown import MISSING, number, one_line, plural, share
from ragforge.report.table import Table

DOCUMENTS: Final = 12
"""Documents shown, those with the most queries; the rest is in `ragforge answer --json`."""
GIVEN_SHOWN: Final = 5
_MEANS: Final = ("their score", "judge's score")
_RATE_HEADERS: Final = ("value", "n", "failed", "bounds")


def answer_tables(systems: Sequence[AnswerSummary]) -> list[Table]:
    """Return the tables about answers, in the order of the report; some may have no rows."""
    return [
        answers(systems),
        given(systems),
        rates(systems),
        *slices(systems),
        lengths(systems),
        diagnosis(systems),
        contexts(systems),
    ]


def answers(systems: Sequence[AnswerSummary]) -> Table:
    """Counts of answers by verdict, and of what has none."""
    rows = tuple(
        (
            item.system,
            *(f"{count:,}" for count in item.verdicts.values()),
            f"{item.n_failed:,}",
            f"{item.n_ungraded:,}",
            f"{item.n_unanswered:,}",
            f"{item.n_unchecked:,}",
        )
        for item in systems
    )
    headers = (
        "system",
        "correct",
        "partial",
        "incorrect",
        "not attempted",
        "failed",
        "not graded",
        "no answer",
        "unchecked",
    )
    return Table("Answers by verdict", headers, rows, ANSWERS_NOTE)


def given(systems: Sequence[AnswerSummary]) -> Table:
    """How far the grades that count agree with those that came with the answers."""
    rows = []
    for item in systems:
        found = item.given
        if found is not None:
            n, n_same = len(found.pairs), len(found.pairs) - len(found.differing)
            rows.append(
                (
                    item.system,
                    ", ".join(one_line(source, 40) for source in found.sources),
                    f"{n:,}",
                    f"{n_same:,} ({share(n_same / n)})",
                    number(found.kappa),
                    number(found.mean_given),
                    number(found.mean_judged),
                    ", ".join(one_line(name, 20) for name in found.differing[:GIVEN_SHOWN]),
                )
            )
    headers = ("system", "grades of", "both", "same verdict", "kappa", *_MEANS, "differing")
    return Table("Grades that came with the answers", headers, tuple(rows), GIVEN_NOTE)


def rates(systems: Sequence[AnswerSummary]) -> Table:
    """Every rate of every system."""
    rows = tuple(
        (item.system, label, *_rate_cells(item.rates[name]))
        for item in systems
        for name, label in RATE_LABELS.items()
    )
    return Table("Answer rates", ("system", "rate", *_RATE_HEADERS), rows, RATES_NOTE)


def slices(systems: Sequence[AnswerSummary]) -> list[Table]:
    """The main rates by property of the query, a table each."""
    tables: list[Table] = []
    for dimension in DIMENSIONS:
        parts = {item.system: _shown(item, dimension) for item in systems}
        if any(len(found) > 1 for found in parts.values()):
            rows = tuple(
                (system, *_slice(part)) for system, found in parts.items() for part in found
            )
            notes = [_left_out(systems, dimension), "" if tables else SLICES_NOTE]
            tables.append(_slice_table(dimension, rows, " ".join(filter(None, notes))))
    return tables


def lengths(systems: Sequence[AnswerSummary]) -> Table:
    """Whether longer answers score higher or lower."""
    rows = []
    for item in systems:
        found = item.length.slope
        reading = "look at the judge" if item.length.is_suspicious else ""
        slope = MISSING if found.slope is None else f"{found.slope:+.3f}"
        rows.append((item.system, slope, p_value(found.p), f"{found.n:,}", reading))
    headers = ("system", "slope", "p", "n", "reading")
    return Table("Score and length", headers, tuple(rows), LENGTH_NOTE)


def diagnosis(systems: Sequence[AnswerSummary]) -> Table:
    """Whether retrieval or the model is to blame, by system and run."""
    rows = tuple(
        (item.system, context_name(grid), *_diagnosis(grid))
        for item in systems
        for grid in item.diagnoses
    )
    headers = ("system", "context", *READINGS.values(), "undecided")
    return Table("Retrieval or the model?", headers, rows, DIAGNOSIS_NOTE)


def contexts(systems: Sequence[AnswerSummary]) -> Table:
    """Whether the chunks were needed, and what those did that were not."""
    rows = tuple(
        (item.system, context_name(grid), *row)
        for item in systems
        for grid in item.diagnoses
        for row in _context(grid.context)
    )
    headers = ("system", "context", "what", *_RATE_HEADERS)
    return Table("Were the chunks needed?", headers, rows, CONTEXT_NOTE)


def context_name(grid: Diagnosis) -> str:
    """Say which chunks stand for the context of the answers."""
    return f"top 5 of {grid.run}" if grid.run else "its own chunks"


def with_interval(rate: Rate) -> str:
    """Return a rate with its interval in brackets."""
    return f"{number(rate.mean)} ({ends(rate.interval)})" if rate.interval else number(rate.mean)


def ends(found: Ends) -> str:
    """Return the ends of an interval."""
    return f"{number(found.low)} to {number(found.high)}"


def bounds(rate: Rate) -> str:
    """Return the bounds of a rate; "" where nothing could move it."""
    if rate.bounds is None or rate.bounds.low == rate.bounds.high:
        return ""
    return f"{number(rate.bounds.low)} to {number(rate.bounds.high)}"


def count_of(rate: Rate) -> str:
    """Return over how many values a rate is, and how many there should be if that is more."""
    n_all = rate.n + rate.n_failed + rate.n_absent
    return f"{rate.n:,} of {n_all:,}" if n_all > rate.n else f"{rate.n:,}"


def share_of(cell: Cell) -> str:
    """Return the share of a field with its interval."""
    found = cell.share.interval
    reach = f", {100 * found.low:.0f} to {100 * found.high:.0f} %" if found else ""
    return share(cell.share.mean) + reach


def p_value(p: float | None) -> str:
    """Return a p value, small ones as a limit."""
    if p is None:
        return MISSING
    return "below 0.001" if p < 0.001 else number(p)


def _rate_cells(rate: Rate) -> tuple[str, ...]:
    return (with_interval(rate), count_of(rate), f"{rate.n_failed:,}", bounds(rate))


def _shown(item: AnswerSummary, dimension: str) -> list[AnswerSlice]:
    found = [part for part in item.slices if part.dimension == dimension]
    if dimension == "document" and len(found) > DOCUMENTS:
        return sorted(found, key=lambda part: (-part.n_queries, part.value))[:DOCUMENTS]
    return found


def _slice(part: AnswerSlice) -> Iterable[str]:
    yield one_line(part.value, 60)
    yield f"{part.n_queries:,}"
    yield f"{part.rates['score'].n:,}"
    yield f"{part.rates['score'].n_failed:,}"
    for rate in part.rates.values():
        yield with_interval(rate)
    yield "too small to read" if part.is_small else ""


def _slice_table(dimension: str, rows: tuple[tuple[str, ...], ...], note: str) -> Table:
    headers = (
        "system",
        dimension,
        "queries",
        "graded",
        "failed",
        "mean score",
        "correct",
        "hallucination",
        "reading",
    )
    width = len(headers) if any(row[-1] for row in rows) else len(headers) - 1
    return Table(
        f"Answers by {dimension}", headers[:width], tuple(row[:width] for row in rows), note
    )


def _left_out(systems: Sequence[AnswerSummary], dimension: str) -> str:
    n_all = max(sum(part.dimension == dimension for part in item.slices) for item in systems)
    if dimension != "document" or n_all <= DOCUMENTS:
        return ""
    rest = plural(n_all - DOCUMENTS, "document with fewer queries is", "documents are")
    return f"{rest} left out here; `ragforge answer --json` has all."


def _diagnosis(grid: Diagnosis) -> Iterable[str]:
    for cell in grid.cells:
        count = f"{len(cell.query_ids):,}"
        yield count if cell.share.mean is None else f"{count} ({share_of(cell)})"
    yield f"{sum(len(item.query_ids) for item in grid.undecided):,}"


def _context(use: ContextUse) -> Iterable[tuple[str, ...]]:
    yield ("context precision", *_rate_cells(use.precision))
    yield ("score, relevant only", *_rate_cells(use.clean.score))
    yield ("score, with irrelevant", *_rate_cells(use.noisy.score))
    apart = use.difference
    value = MISSING if apart is None else f"{apart.mean:+.3f} ({ends(apart.interval)})"
    yield ("difference", value, "", "", "")
    yield ("wrong claim, relevant only", *_rate_cells(use.clean.wrong_claims))
    yield (
        "wrong claim, with irrelevant",
        *_rate_cells(use.noisy.wrong_claims),
    )
