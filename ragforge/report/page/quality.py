"""The parts of the page about the chunks, and about what all of it cost."""

from ragforge.corpus.quality import ChunkQuality, Found
from ragforge.report.chunk_quality import FIXES, TITLES
from ragforge.report.inspection import MOST_CHUNKS
from ragforge.report.page.markup import Html, element, join
from ragforge.report.page.table import scroll_table, table_row
from ragforge.report.shown import one_line, plural, share
from ragforge.report.summary import Summary

_SHOWN = 3
"""Examples of each kind."""
_TEXT_CHARS = 140


def quality_block(summary: Summary) -> Html | None:
    """Return the findings about chunks; None where the dataset comes without its corpus."""
    quality = summary.quality
    if quality is None:
        if summary.counts.n_chunks <= MOST_CHUNKS:
            return None
        text = (
            f"There are {summary.counts.n_chunks:,} chunks, more than this page looks at. "
            "`ragforge chunk --report` looks at all of them."
        )
        return element("p", text, class_="empty")
    found = [item for item in quality.found if item.n_chunks]
    flagged = f"{plural(quality.n_flagged, 'chunk')} of {quality.n_chunks:,} with a finding"
    sizes = quality.chars
    told = (
        f"{flagged}. Half of the chunks have {sizes.lower_quartile:,} to {sizes.upper_quartile:,} "
        f"characters, the median {sizes.median:,}."
    )
    return join([element("p", told), _table(quality, found) if found else None])


def _table(quality: ChunkQuality, found: list[Found]) -> Html:
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
        for item in sorted(found, key=lambda item: -item.n_chunks)
    ]
    headers = ["finding", "chunks", "share", "what to do", "examples"]
    table = scroll_table("Findings about chunks", headers, body, [False, True, True, False, False])
    return element("div", table, class_="findings")


def _examples(item: Found) -> Html:
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
