"""What making a set came to: the funnel of generation, the completed pools, and the set's card.

Figures of pools are over queries that the corpus answers; what is relevant to one that it should
not answer is a conflict.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ragforge.evaluating.completion import CompletionSummary
from ragforge.evaluating.decision_plan import TYPICAL_SPREADS
from ragforge.evaluating.formatting import (
    MISSING,
    Table,
    number,
    one_line,
    plural,
    render_table,
    share,
    with_ends,
)
from ragforge.files.manifest import Manifest, Spent
from ragforge.measures.power import detectable_difference
from ragforge.records import Coverage, FunnelStep, GenerationReport, ShareRow, Spread
from ragforge.report.document import Listing
from ragforge.report.markdown import escape_markdown, markdown_block
from ragforge.report.text import table_text

if TYPE_CHECKING:
    from ragforge.measures.capture_recapture import Completeness

_TOO_ALIKE: Final = 0.70
"""Median overlap from which questions flatter lexical search; people who had the passage before
them reached it (XQuAD, English: 0.71)."""

_SIZES: Final = (
    (20, "too few for anything but a first look; 20-50 do for a sanity check"),
    (100, "enough for a sanity check (20-50); take 100-200 or more before a deployment"),
    (200, "enough for a check before deployment (100-200); take 200 or more to compare variants"),
)
_LARGE: Final = "enough to compare variants (200 or more)"
_CONFLICTS_SHOWN: Final = 5

_SIZE_CATEGORIES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
_NO_COUNTS: Final[Mapping[str, int]] = MappingProxyType({})
_ORIGINS: Final = {"synthetic": "generated", "human": "by people", "log": "of a log"}
_LIMITS: Final = (
    "Queries that a model wrote rank systems much like those of people do, but absolute scores on "
    "them are less trustworthy than differences.",
    "Relevance beyond the evidence is what a judge said; `ragforge judge --on-labels` tells how "
    "far it agrees with people.",
    "Completeness is an upper estimate: the probes of a pool find the same easy chunks.",
)


def generation_text(report: GenerationReport) -> str:
    """Return the whole report for a terminal, without a line feed at its end."""
    blocks = map(table_text, _generation_tables(report))
    return "\n\n".join([*blocks, "\n".join(_generation_lines(report))])


def generation_summary(report: GenerationReport, spent: Spent, card: str) -> list[str]:
    """Return the figures to decide by, five lines at most.

    Args:
        report: Of the generation.
        spent: By all calls behind the set.
        card: Where all figures stand.
    """
    tried = next((step.n for step in report.funnel), 0)
    stopped = ", ".join(
        f"{code.replace('_', ' ')} {count}"
        for step in report.funnel
        for code, count in step.reasons.items()
    )
    why = f", stopped: {stopped}" if stopped else ""
    documents, chunks = report.documents, report.chunks
    lines = [
        f"{plural(report.n_accepted, 'query', 'queries')} of {report.n_wanted:,} wanted, "
        f"{plural(tried, 'source')} tried{why}; {spent_line(spent, report.n_accepted)}",
        f"covered: {documents.covered:,} of {plural(documents.total, 'document')}, "
        f"{chunks.covered:,} of {plural(chunks.total, 'chunk')}; all figures: --verbose, {card}",
    ]
    if report.overlap is not None and report.overlap.median >= _TOO_ALIKE:
        lines += _overlap_lines(report)
    lines.append("; ".join(_pool_lines(report)))
    return [*lines, size_advice(report.n_accepted)]


def _generation_tables(report: GenerationReport) -> list[Table]:
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


def _generation_lines(report: GenerationReport) -> list[str]:
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
    least = detectable_difference(TYPICAL_SPREADS["nDCG"], n)
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
    alike = "" if overlap.median < _TOO_ALIKE else "; such questions flatter lexical search"
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


def completion_json(summary: CompletionSummary) -> dict[str, object]:
    """Return the figures for a program."""
    figures = asdict(summary)
    figures["grades"] = {str(grade): count for grade, count in enumerate(summary.grades)}
    figures |= {"completeness": summary.completeness, "low": summary.low, "high": summary.high}
    figures["depths"] = {str(depth): count for depth, count in summary.depths}
    return figures


def completion_text(summary: CompletionSummary) -> str:
    """Return the figures for a reader, without a line feed at the end."""
    rows = [[probe.probe, f"{probe.n_found:,}", f"{probe.n_only:,}"] for probe in summary.probes]
    table = render_table(["probe", "relevant beyond the source", "found by it alone"], rows)
    return "\n".join(
        [table, "", *_completion_lines(summary)] if rows else [*_completion_lines(summary)]
    )


def _completion_lines(summary: CompletionSummary) -> Iterator[str]:
    n = summary.n_items or 1
    failed = f", {summary.n_ungraded:,} without a grade" if summary.n_ungraded else ""
    yield (
        f"pools: {plural(summary.n_items, 'query', 'queries')}, "
        f"{plural(summary.n_pairs, 'chunk')} ({summary.n_pairs / n:.1f} each){failed}; "
        f"{summary.n_calls / n:.1f} calls a query"
    )
    grades = ", ".join(f"{grade}: {count:,}" for grade, count in enumerate(summary.grades))
    depths = ", ".join(f"{depth}: {count:,}" for depth, count in summary.depths)
    yield f"grades {grades}; queries by depth of the pool {depths or MISSING}"
    high = f" to {number(summary.others_high, 2)}" if summary.n_ungraded else ""
    yield (
        f"relevant beyond the source: {number(summary.others_mean, 2)}{high} a query; "
        f"{share(summary.several_share)} of {summary.n_answerable:,} queries have more than one "
        "relevant chunk"
    )
    yield f"completeness: {_completeness(summary)}"
    if summary.n_outside:
        yield f"relevant chunks known from elsewhere that no pool holds: {summary.n_outside:,}"
    if summary.conflicts:
        named = ", ".join(one_line(query_id) for query_id in summary.conflicts[:_CONFLICTS_SHOWN])
        more = len(summary.conflicts) - _CONFLICTS_SHOWN
        yield (
            f"unanswerable, yet the corpus answers: {named}"
            f"{f' and {more:,} more' if more > 0 else ''}"
        )


def _completeness(summary: CompletionSummary) -> str:
    estimate = summary.at_most
    if estimate.share is None:
        return "cannot be told; it takes relevant chunks beyond the source and two probes"
    by_all, by_two = (_estimate(each) for each in (summary.by_all, summary.by_two))
    return (
        f"at most {_estimate(estimate)} of the relevant chunks are in the pools, "
        f"{number(estimate.n_missing, 0)} or more are not (by all probes {by_all}, by query "
        f"against source {by_two})"
    )


def _estimate(completeness: "Completeness") -> str:
    ends = completeness.interval
    return with_ends(completeness.share, ends.low if ends else None, ends.high if ends else None, 2)


def render_card(
    manifest: Manifest,
    report: GenerationReport,
    languages: Iterable[str],
    n_judgments: int,
    origins: Mapping[str, int] = _NO_COUNTS,
) -> str:
    """Return the card as Markdown with a YAML header; names in it are data, not markup.

    Args:
        manifest: Of the dataset.
        report: What generating it came to.
        languages: Of the queries.
        n_judgments: Graded pairs.
        origins: Accepted queries by where they are from; without, those of the report alone.
    """
    n_queries = sum(origins.values()) or report.n_accepted
    name = escape_markdown(manifest.name)
    counts = (
        f"{n_queries:,} queries{_by_origin(origins)} over {report.documents.total:,} documents in "
        f"{report.chunks.total:,} chunks, {n_judgments:,} graded pairs."
    )
    licence = escape_markdown(manifest.licence) or "not stated; that of the documents applies"
    blocks = [
        _card_header(manifest, n_queries, languages),
        f"# {name}",
        f"An evaluation set for retrieval-augmented generation, version {manifest.version}: "
        f"{counts}",
        markdown_block(Listing("made from", tuple(_provenance(manifest)))),
        *map(markdown_block, _generation_tables(report)),
        markdown_block(Listing("figures", tuple(_card_figures(manifest, report, n_queries)))),
        "## Licence",
        licence,
        "## Limits",
        "\n".join(f"- {line}" for line in _LIMITS),
    ]
    return "\n\n".join(blocks) + "\n"


def _card_header(manifest: Manifest, n_queries: int, languages: Iterable[str]) -> str:
    size = next((name for most, name in _SIZE_CATEGORIES if n_queries < most), "100K<n<1M")
    fields: Mapping[str, object] = {
        "pretty_name": manifest.name,
        "language": sorted(languages),
        "license": manifest.licence or "other",
        "task_categories": ["text-retrieval", "question-answering"],
        "size_categories": [size],
        "tags": ["rag", "evaluation", "ragforge"],
        "configs": [
            {"config_name": name, "data_files": f"{name}.jsonl"}
            for name in ("queries", "chunks", "judgments")
        ],
    }
    # JSON is YAML; so no value can break out of the header.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=True)}" for key, value in fields.items()]
    return "\n".join(["---", *lines, "---"])


def _by_origin(origins: Mapping[str, int]) -> str:
    """Return where queries are from, in brackets; "" where generation made all."""
    counted = {name: n for name, n in origins.items() if n}
    if not counted.keys() - {"synthetic"}:
        return ""
    return f" ({', '.join(f'{counted[name]:,} {_ORIGINS[name]}' for name in sorted(counted))})"


def _card_figures(manifest: Manifest, report: GenerationReport, n_queries: int) -> list[str]:
    lines = _generation_lines(report)
    if n_queries != report.n_accepted:
        made = f"the tables and figures here are of the {report.n_accepted:,} generated queries"
        lines = [f"{made}, as they were made", *lines[:-1], size_advice(n_queries)]
    audit = manifest.audit
    return lines if audit is None else [f"reviewed by people: {audit.in_words()}", *lines]


def _provenance(manifest: Manifest) -> Iterable[str]:
    yield from (f"{key}: {value or 'none'}" for key, value in sorted(manifest.made_from.items()))
    yield f"models: {', '.join(manifest.models) or 'none'}"
    spent = manifest.spent
    cost = "unknown" if spent.usd is None else f"{spent.usd:.4f} USD"
    tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens"
    yield f"spent: {spent.calls:,} calls, {tokens}, cost {cost}"
