"""The report on generating a set: funnel, coverage and shares, in tables and lines."""

from collections.abc import Iterable
from typing import Final

from ragforge.evaluating.formatting import MISSING, number, plural, share
from ragforge.evaluating.text_table import Table
from ragforge.files.manifest import Spent
from ragforge.measures.power import detectable_difference
from ragforge.records import Coverage, FunnelStep, GenerationReport, ShareRow, Spread
from ragforge.report.text import table_text

TOO_ALIKE: Final = 0.70
"""Median overlap from which questions flatter lexical search; people who had the passage before
them reached it (XQuAD, English: 0.71)."""

_USUAL_SD: Final = 0.3
"""Of the differences of nDCG@10 between two retrievers, query by query, where none is known yet."""

_SIZES: Final = (
    (20, "too few for anything but a first look; 20-50 do for a sanity check"),
    (100, "enough for a sanity check (20-50); take 100-200 or more before a deployment"),
    (200, "enough for a check before deployment (100-200); take 200 or more to compare variants"),
)
_LARGE: Final = "enough to compare variants (200 or more)"


def generation_text(report: GenerationReport) -> str:
    """Return the whole report for a terminal, without a line feed at its end."""
    blocks = map(table_text, generation_tables(report))
    return "\n\n".join([*blocks, "\n".join(generation_lines(report))])


def generation_tables(report: GenerationReport) -> list[Table]:
    """Return the funnel, the coverage and the shares."""
    return [
        Table(
            "Funnel",
            ("step", "of", "n", "passed", "share [95 %]", "stopped by"),
            tuple(map(_funnel_row, report.funnel)),
        ),
        Table(
            "Coverage",
            ("of", "total", "covered", "not covered, and why"),
            (_coverage_row("documents", report.documents), _coverage_row("chunks", report.chunks)),
        ),
        Table(
            "Shares",
            ("margin", "kind", "queries", "share", "wanted"),
            tuple(map(_share_row, report.shares)),
        ),
    ]


def generation_lines(report: GenerationReport) -> list[str]:
    """Return what the tables do not say, a sentence a line."""
    off = ", ".join(f"{margin} {value:.2f}" for margin, value in report.variation.items())
    lines = [
        f"distance from the shares wanted (total variation, 0 none): {off or MISSING}",
        f"duplicates turned away: {report.n_duplicates:,}; in the set: 0",
        *_overlap_lines(report),
        *_length_lines(report.query_words, report.real_words),
    ]
    for title, counts in (
        ("answered by the model without any text", report.closed_book),
        ("answer from the evidence alone against the expected one", report.agreement),
        ("rank of the evidence by BM25", report.evidence_rank),
        ("grades in the pool", report.grades),
        ("splits", report.splits),
    ):
        if counts:
            lines.append(f"{title}: {_counted(counts)}")
    for declared, measured in report.difficulty.items():
        lines.append(f"declared {declared}, measured: {_counted(measured)}")
    return [*lines, *_pool_lines(report), size_advice(report.n_accepted)]


def size_advice(n: int) -> str:
    """Return for which decisions so many queries do."""
    advice = next((text for least, text in _SIZES if n < least), _LARGE)
    least = detectable_difference(_USUAL_SD, n)
    power_text = ""
    if least is not None and least >= 1:
        power_text = "; no difference in nDCG@10 can be told apart"
    elif least:
        power_text = f"; two retrievers must differ by {least:.3f} nDCG@10 to be told apart"
    return f"sample size: {plural(n, 'query', 'queries')}, {advice}{power_text} (80 % power)"


def shortfall(report: GenerationReport, gave_up: str = "") -> str:
    """Return why fewer queries came out than were wanted, "" where as many did.

    Args:
        report: Of the generation.
        gave_up: Why it ended with sources left; "" where none was.
    """
    if report.n_accepted >= report.n_wanted:
        return ""
    reasons = [
        f"{code.replace('_', ' ')} {count}"
        for step in report.funnel
        for code, count in step.reasons.items()
    ]
    asked = next((step.n for step in report.funnel), 0)
    spent = "and all are used up" if report.n_accepted else "nothing to ask in them"
    why = "stopped: " + ", ".join(reasons) if reasons else spent
    if not asked:
        why = "no chunk is long enough to ask about"
    end = "the corpus carries no more"
    if gave_up:
        end = f"gave up, {gave_up}"
    elif any("pool_conflict" in step.reasons for step in report.funnel):
        end = "the rounds that replace what pools refute are over"
    return (
        f"{report.n_accepted} of {report.n_wanted} queries; {end}: "
        f"{plural(asked, 'source was', 'sources were')} tried, {why}"
    )


def stopped_line(report: GenerationReport) -> str:
    """Return how far a generation came that was stopped."""
    queries = plural(report.n_accepted, "query", "queries")
    return f"{queries} of the {report.n_wanted:,} wanted so far"


def spent_line(spent: Spent, n_accepted: int) -> str:
    """Return what the calls behind the set took, all runs together."""
    if not spent.calls:
        return "spent in all: no calls"
    cost = "cost unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f} USD"
    each = f" ({spent.calls / n_accepted:.1f} an accepted query)" if n_accepted else ""
    tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens"
    return f"spent in all: {plural(spent.calls, 'call')}{each}, {tokens}, {cost}"


def _funnel_row(step: FunnelStep) -> tuple[str, ...]:
    ends = "" if step.low is None else f" [{100 * step.low:.0f}, {100 * (step.high or 0):.0f}]"
    share_text = f"{share(step.n_passed, step.n)}{ends}" if step.n else MISSING
    stopped = ", ".join(f"{code} {count}" for code, count in step.reasons.items())
    return (step.name, step.unit, f"{step.n:,}", f"{step.n_passed:,}", share_text, stopped)


def _coverage_row(what: str, coverage: Coverage) -> tuple[str, ...]:
    why = ", ".join(f"{reason} {count:,}" for reason, count in coverage.uncovered.items())
    return (what, f"{coverage.total:,}", f"{coverage.covered:,}", why)


def _share_row(row: ShareRow) -> tuple[str, ...]:
    wanted = MISSING if row.target is None else f"{100 * row.target:.0f} %"
    return (row.margin, row.name, str(row.n), f"{100 * row.share:.0f} %", wanted)


def _overlap_lines(report: GenerationReport) -> Iterable[str]:
    if report.overlap is None:
        return
    overlap = report.overlap
    alike = "" if overlap.median < TOO_ALIKE else "; such questions flatter lexical search"
    yield (
        f"words shared with the chunk: median {overlap.median:.2f} ({overlap.q1:.2f} to "
        f"{overlap.q3:.2f}); real queries {report.real_overlap:.2f}{alike}"
    )


def _length_lines(own: Spread | None, real: Spread | None) -> Iterable[str]:
    if own is None:
        return
    beside = f"; real queries {_quartiles(real)}" if real else ""
    yield f"words of a query: {_quartiles(own)}{beside}"


def _pool_lines(report: GenerationReport) -> Iterable[str]:
    if report.relevant_per_query is None:
        yield (
            "relevance is known for the source chunks only: no pool was judged (--complete on, or "
            "`ragforge judge --complete`)"
        )
        return
    each = number(report.relevant_per_query, 2)
    yield f"relevant chunks (grade >= 2) a query, sources included: {each}"
    if report.completeness is not None:
        ends = ""
        if report.completeness_low is not None:
            ends = f" [{share(report.completeness_low)}, {share(report.completeness_high)}]"
        found = f"{share(report.completeness)}{ends}"
        yield f"relevant chunks beside the sources that are in the pools, at most: {found}"


def _quartiles(spread: Spread) -> str:
    return f"median {spread.median:g} ({spread.q1:g} to {spread.q3:g})"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
