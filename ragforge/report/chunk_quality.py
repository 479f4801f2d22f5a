"""The report on chunks, as text and as JSON: sizes, findings of each kind, and the fix for it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from ragforge.corpus.quality import ChunkQuality, Example, Finding, Kind
from ragforge.evaluating.formatting import Table, one_line, plural, share
from ragforge.report.text import REPORT_LAYOUT, table_text

_WIDTH = 88
_TEXT_CHARS = 100

TITLES: Final[dict[Kind, str]] = {
    "too_small": "too small",
    "too_large": "too large",
    "sentence_cut": "sentence cut",
    "table_cut": "table cut",
    "list_cut": "list cut",
    "code_cut": "code fence cut",
    "heading_alone": "heading alone",
    "duplicate": "duplicate",
    "near_duplicate": "near-duplicate",
    "stale": "stale version",
    "boilerplate": "boilerplate",
    "unreadable": "unreadable",
}
FIXES: Final[dict[Kind, str]] = {
    "too_small": "Less than 12 words answer nothing and take a place in the ranking. Put them "
    "together with what stands around them, or leave them out.",
    "too_large": "Lower --max-chars. Code fences and tables are kept whole up to twice as much: "
    "break long ones up in the source, or embed with a model that reads more.",
    "sentence_cut": "Cut at the ends of sentences, as the chunker `headings` does, or let chunks "
    "overlap by a sentence.",
    "table_cut": "Rows mean nothing without the names of their columns. Raise --max-chars until "
    "the table fits, or part it in the source and repeat its header.",
    "list_cut": "Raise --max-chars until the list fits, or part it by headings in the source. "
    "Keep the line that leads in together with its list.",
    "code_cut": "Raise --max-chars until the fence fits, or shorten the listing in the source; "
    "where the source lacks the closing fence, add it.",
    "heading_alone": "Put a heading into the chunk of the text below it.",
    "duplicate": "Copies push other chunks out of the top ranks. Index one, and leave the others "
    "out (--exclude).",
    "near_duplicate": "Index one of them, or say in each what sets it apart: product, version, "
    "region.",
    "stale": "Leave older versions out (--exclude), or put the version into the index and filter "
    "by it. Else old answers are retrieved as if they held today.",
    "boilerplate": "The same paragraph in many documents matches every query. Strip navigation, "
    "banners and footers before chunking.",
    "unreadable": "Convert the source again: with OCR, with its right encoding, or from the "
    "original. What cannot be read is better left out.",
}
"""What to do about each kind."""


def quality_json(quality: ChunkQuality) -> dict[str, object]:
    """Return the report as one JSON object: counts, sizes, and all kinds with up to 5 examples."""
    return {
        "documents": quality.n_documents,
        "chunks": quality.n_chunks,
        "flagged": quality.n_flagged,
        "sizes": {"chars": asdict(quality.chars), "words": asdict(quality.words)},
        "findings": [
            {
                "kind": finding.kind,
                "chunks": finding.n_chunks,
                "share": round(finding.n_chunks / quality.n_chunks, 6),
                "fix": FIXES[finding.kind],
                "examples": [asdict(example) for example in finding.examples],
            }
            for finding in quality.found
        ],
    }


def quality_text(quality: ChunkQuality) -> str:
    """Return the report for a terminal, with a line feed at its end."""
    flagged = f"{quality.n_flagged:,} with a finding ({share(quality.n_flagged, quality.n_chunks)})"
    head = ", ".join(
        (plural(quality.n_documents, "document"), plural(quality.n_chunks, "chunk"), flagged)
    )
    blocks = [head, table_text(_sizes(quality)), table_text(_counts(quality))]
    blocks += ["\n".join(_details(finding)) for finding in quality.found if finding.n_chunks]
    return "\n\n".join(blocks) + "\n"


def _sizes(quality: ChunkQuality) -> Table:
    rows = tuple(
        (name, *(f"{size:,}" for size in asdict(sizes).values()))
        for name, sizes in (("characters", quality.chars), ("words", quality.words))
    )
    return Table("Sizes", ("", "least", "25 %", "median", "75 %", "most"), rows)


def _counts(quality: ChunkQuality) -> Table:
    rows = tuple(
        (TITLES[finding.kind], f"{finding.n_chunks:,}", share(finding.n_chunks, quality.n_chunks))
        for finding in quality.found
    )
    return Table("Findings", ("kind", "chunks", "share"), rows)


def _details(finding: Finding) -> Iterator[str]:
    yield f"{TITLES[finding.kind].capitalize()}: {plural(finding.n_chunks, 'chunk')}"
    yield REPORT_LAYOUT.paragraph(f"Fix: {FIXES[finding.kind]}", "  ", "  ")
    for example in finding.examples:
        yield f"  - {one_line(_place(example), _WIDTH)}"
        yield f"    {one_line(example.note, 2 * _WIDTH)}"
        yield f"    “{one_line(example.text, _TEXT_CHARS)}”"
    if finding.n_chunks > len(finding.examples):
        yield f"    and {finding.n_chunks - len(finding.examples):,} more"


def _place(example: Example) -> str:
    return " > ".join((f"{example.chunk_id} {example.doc_id}", *example.heading_path[-1:]))
