"""The report as one HTML page: no request, readable without its script, same data, same bytes."""

from collections.abc import Iterable

from ragforge.corpus.quality import ChunkQuality, Finding
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural, share
from ragforge.evaluating.graded_by import graded_line
from ragforge.evaluating.summary import MOST_CHUNKS, Summary
from ragforge.report.chunk_quality import FIXES, TITLES
from ragforge.report.corrected_levels import corrected_table
from ragforge.report.decision import decision_of
from ragforge.report.document import Notice
from ragforge.report.history import batches_table
from ragforge.report.judges import agreement_table, audit_tables
from ragforge.report.notices import notices, size_line
from ragforge.report.page.comparison import comparison_block
from ragforge.report.page.decision import decision_card
from ragforge.report.page.diagnosis import answers_block, causes_block, diagnosis_block
from ragforge.report.page.history import changes_block, trend_block
from ragforge.report.page.markup import (
    Html,
    document,
    element,
    folded_table,
    join,
    page_file,
    page_head,
    scroll_table,
    table_block,
    table_row,
    with_code,
)
from ragforge.report.page.packed_queries import FilesBeside
from ragforge.report.page.queries import queries_css, queries_script, queries_section, worst_block
from ragforge.report.page.runs import (
    all_grades_figure,
    headline_block,
    slices_block,
    spending_block,
    spread_block,
)
from ragforge.report.tables import (
    failures_table,
    grades_table,
    judges_table,
    meanings_table,
    provenance_table,
    queries_table,
    slice_dimensions,
)

_SHOWN = 3
"""Examples of each kind."""
_TEXT_CHARS = 140


def _quality_block(summary: Summary) -> Html | None:
    """Return the findings about chunks; None where the dataset comes without its corpus."""
    quality = summary.quality
    if quality is None:
        if summary.counts.n_chunks <= MOST_CHUNKS:
            return None
        text = (
            f"There are {summary.counts.n_chunks:,} chunks, more than this page looks at. "
            "`ragforge chunk --report` looks at all of them."
        )
        return element("p", *with_code(text), class_="empty")
    findings = [item for item in quality.found if item.n_chunks]
    flagged = f"{plural(quality.n_flagged, 'chunk')} of {quality.n_chunks:,} with a finding"
    sizes = quality.chars
    sentence = (
        f"{flagged}. Half of the chunks have {sizes.lower_quartile:,} to {sizes.upper_quartile:,} "
        f"characters, the median {sizes.median:,}."
    )
    return join([element("p", sentence), _table(quality, findings) if findings else None])


def _table(quality: ChunkQuality, findings: list[Finding]) -> Html:
    body = [
        table_row(
            TITLES[item.kind],
            [
                element("td", f"{item.n_chunks:,}", class_="num"),
                element("td", share(item.n_chunks, quality.n_chunks), class_="num"),
                element("td", FIXES[item.kind]),
                element("td", _examples(item)),
            ],
        )
        for item in sorted(findings, key=lambda item: -item.n_chunks)
    ]
    headers = ["finding", "chunks", "share", "what to do", "examples"]
    table = scroll_table("Findings about chunks", headers, body, [False, True, True, False, False])
    return element("div", table, class_="findings")


def _examples(item: Finding) -> Html:
    listed = [
        element(
            "li",
            element("code", one_line(example.chunk_id, 40)),
            " ",
            element("bdi", one_line(example.doc_id, 60)),
            element("span", one_line(example.note, 120), class_="bounds"),
            element("span", one_line(example.text, _TEXT_CHARS), class_="quoted", dir="auto"),
        )
        for example in item.examples[:_SHOWN]
    ]
    return element(
        "details",
        element("summary", plural(len(listed), "example")),
        element("ul", *listed),
        class_="ids",
    )


def render_html(summary: Summary, beside: FilesBeside | None = None) -> str:
    """Return the page. All data in it is text: no markup, no links, no hidden characters.

    Args:
        summary: What it says.
        beside: Takes what the page has no room for; it is left out where None.
    """
    css = page_file("page.css") + page_file("charts.css") + queries_css()
    head = page_head(f"{one_line(summary.making.name)}: ragforge report")
    sections = [section for section in _sections(summary, beside) if section.body is not None]
    has_files = beside is not None and bool(beside.address)
    body = [
        element("a", "Skip to the results", href="#main", class_="skip"),
        *(
            element("a", "Skip to all queries", href="#queries", class_="skip")
            for section in sections
            if section.key == "queries"
        ),
        _header(summary),
        element(
            "main", *_opening(summary), _contents(sections), *map(_section, sections), id="main"
        ),
        element("footer", element("p", _origin(summary, has_files=has_files))),
    ]
    page = document(
        lang="en", head=head, body=body, css=css, script=queries_script(), loads=has_files
    )
    return page.code


@dataclass(frozen=True, slots=True)
class _Section:
    key: str
    title: str
    body: Html | None
    """None where there is nothing to say."""


def _sections(summary: Summary, beside: FilesBeside | None) -> Iterable[_Section]:
    yield from _overview(summary)
    if summary.runs or summary.answers:
        yield _Section("queries", "All queries", queries_section(summary.table, beside))
    if summary.runs:
        yield _Section("worst", "Worst queries", worst_block(summary.table))
    if summary.answers:
        yield _Section("answers", "Answers", answers_block(summary))
    yield _Section("judging", "Judging", _judging(summary))
    yield _Section("reading", "How to read the measures", _reading(summary))
    provenance = [
        table_block(provenance_table(summary.making), titled=False),
        folded_table(queries_table(summary)),
    ]
    yield _Section("provenance", "Provenance", join(provenance))


def _overview(summary: Summary) -> Iterable[_Section]:
    """Yield what moved and why, then the measures and the past, before any single query."""
    if len(summary.runs) > 1:
        yield _Section("comparison", "Which is better", comparison_block(summary))
    if slice_dimensions(summary):
        yield _Section("slices", "Slices", slices_block(summary))
    yield _Section("causes", "Likely causes", causes_block(summary))
    yield _Section("retrieval", "Retrieval", headline_block(summary))
    if summary.calibration is not None:
        corrected = corrected_table(
            summary.calibration, summary.levels, [run.name for run in summary.runs]
        )
        yield _Section("corrected", "Corrected by people", table_block(corrected, titled=False))
    if summary.answers:
        yield _Section("diagnosis", "Retrieval or the model?", diagnosis_block(summary))
    if summary.runs:
        yield _Section("spread", "Query by query", spread_block(summary))
        yield _Section("changes", "What changed", changes_block(summary))
    yield _Section("trend", "Over time", trend_block(summary))
    batches = table_block(batches_table(summary.batches)) if summary.batches else None
    yield _Section("batches", "Production by batch", batches)
    yield _Section("chunks", "Chunks", _quality_block(summary))
    yield _Section("spending", "Cost and time", spending_block(summary))


def _header(summary: Summary) -> Html:
    nothing = "No judgment succeeded." if summary.counts.n_pairs else "Nothing is judged yet."
    graded = graded_line(summary.graded_by, summary.correction)
    judged = f"{graded[0].upper()}{graded[1:]}." if summary.graded_by else nothing
    return element(
        "header",
        element("p", "Evaluation report", class_="eyebrow"),
        element("h1", one_line(summary.making.name), dir="auto"),
        element("p", judged, class_="lede judges"),
        element("p", f"{size_line(summary)}.", class_="sizes"),
        *(_notice(notice) for notice in notices(summary) if notice.is_loud),
    )


def _opening(summary: Summary) -> Iterable[Html]:
    """Yield what the report comes to, then what to be careful about: the loud part stands above."""
    decision = decision_of(summary)
    if decision is not None:
        yield decision_card(decision)
    yield from (_notice(notice) for notice in notices(summary) if not notice.is_loud)


def _notice(notice: Notice) -> Html:
    return element(
        "div",
        element("strong", notice.title),
        element("p", *with_code(notice.text)),
        class_="notice loud" if notice.is_loud else "notice",
        role="note",
    )


def _contents(sections: Iterable[_Section]) -> Html:
    links = [
        element("li", element("a", section.title, href=f"#{section.key}")) for section in sections
    ]
    return element("nav", element("ul", *links), aria_label="Contents")


def _section(section: _Section) -> Html:
    key = f"{section.key}-title"
    return element(
        "section",
        element("h2", section.title, id=key),
        section.body,
        id=section.key,
        aria_labelledby=key,
    )


def _judging(summary: Summary) -> Html:
    counts = summary.counts
    unjudged = (
        f"{counts.n_failed_pairs:,} of {counts.n_pairs:,} judged pairs have no grade because "
        "their judgment failed."
    )
    agreement = map(agreement_table, summary.agreement)
    audit = audit_tables(summary.audit)
    tables = [
        judges_table(summary),
        *agreement,
        *audit,
        grades_table(summary),
        failures_table(summary),
    ]
    none = None if summary.failures else element("p", "No stage recorded a failure.")
    chart = all_grades_figure(summary)
    return join([element("p", unjudged), chart, *map(table_block, tables), none])


def _reading(summary: Summary) -> Html:
    table = meanings_table(summary)
    rows = [join([element("dt", name), element("dd", text)]) for name, text in table.rows]
    return join([element("p", table.note), element("dl", *rows)])


def _origin(summary: Summary, *, has_files: bool) -> str:
    made = f"Made by ragforge {summary.making.tool_version}".rstrip()
    loaded = "nothing but the files beside it" if has_files else "nothing"
    return f"{made}. This page loads {loaded} and sends nothing."
