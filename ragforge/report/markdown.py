"""The report as Markdown, fit for a pull request or a job summary."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ragforge.evaluating.formatting import one_line, visible
from ragforge.evaluating.summary import Summary
from ragforge.evaluating.text_table import Table, numeric_column
from ragforge.files.manifest import Manifest
from ragforge.records import GenerationReport
from ragforge.report.document import Block, Listing, Notice
from ragforge.report.generation import generation_lines, generation_tables, size_advice
from ragforge.report.tables import report_document

_ESCAPES: Final = (
    (re.compile(r"&"), "&amp;"),
    (re.compile(r"<"), "&lt;"),
    (re.compile(r">"), "&gt;"),
    (re.compile(r"([\\`*_{}\[\]|~$!])"), r"\\\1"),
    (re.compile(r"(?<!\w)([@#])(?=\w)"), r"\1&#8288;"),
    (re.compile(r"://"), "&#58;//"),
    (re.compile(r"\b(www)\.", re.IGNORECASE), r"\1&#46;"),
)
"""In this order. The last three keep mentions of people, numbers of issues and addresses from
becoming links: hosts look for the first two in the rendered text, so a joiner has to part them.
"""

_SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
_NO_COUNTS: Final[Mapping[str, int]] = MappingProxyType({})
_ORIGINS: Final = {"synthetic": "generated", "human": "by people", "log": "of a log"}
_LIMITS: Final = (
    "Queries that a model wrote rank systems much like those of people do, but absolute scores on "
    "them are less trustworthy than differences.",
    "Relevance beyond the evidence is what a judge said; `ragforge judge --on-labels` tells how "
    "far it agrees with people.",
    "Completeness is an upper estimate: the probes of a pool find the same easy chunks.",
)


def render_markdown(summary: Summary) -> str:
    """Return the report as Markdown; data in it is text and no markup, link or mention."""
    document = report_document(summary)
    graded, size = document.lead
    head = [f"# {escape_markdown(document.title)}", escape_markdown(graded), size]
    return "\n\n".join([*head, *map(markdown_block, document.blocks)]) + "\n"


def escape_markdown(text: str) -> str:
    """Return a text, on one line, that Markdown and the HTML in it show as it is."""
    line = visible(" ".join(text.split()))
    for pattern, replacement in _ESCAPES:
        line = pattern.sub(replacement, line)
    return line


def markdown_block(
    block: Block, escape: Callable[[str], str] = escape_markdown, level: int = 2
) -> str:
    """Return a block of a document as Markdown.

    Args:
        block: Of any kind.
        escape: Of the texts of notices and lists.
        level: Of its heading.
    """
    if isinstance(block, Notice):
        alert = "> [!WARNING]\n" if block.is_loud else ""
        return f"{alert}> **{escape(block.title)}.** {escape(block.text)}"
    if isinstance(block, Listing):
        head = [f"{'#' * level} {block.title.capitalize()}", ""] if block.title else []
        return "\n".join([*head, *(f"- {escape(one_line(line, 1000))}" for line in block.lines)])
    return markdown_table(block, level)


def markdown_table(table: Table, level: int = 2) -> str:
    """Return a table under its title."""
    columns = zip(*table.rows, strict=True)
    rule = ["---:" if numeric_column(column) else ":---" for column in columns]
    rows = [table.headers, *table.rows]
    head, *body = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    lines = [
        f"{'#' * level} {escape_markdown(table.title)}",
        "",
        head,
        f"| {' | '.join(rule)} |",
        *body,
    ]
    return "\n".join([*lines, *(["", escape_markdown(table.note)] if table.note else [])])


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
        _header(manifest, n_queries, languages),
        f"# {name}",
        f"An evaluation set for retrieval-augmented generation, version {manifest.version}: "
        f"{counts}",
        "## Made from",
        "\n".join(f"- {escape_markdown(key)}: {value}" for key, value in _origin(manifest)),
        *map(markdown_table, generation_tables(report)),
        "## Figures",
        "\n".join(f"- {escape_markdown(line)}" for line in _figures(manifest, report, n_queries)),
        "## Licence",
        licence,
        "## Limits",
        "\n".join(f"- {line}" for line in _LIMITS),
    ]
    return "\n\n".join(blocks) + "\n"


def _header(manifest: Manifest, n_queries: int, languages: Iterable[str]) -> str:
    size = next((name for most, name in _SIZES if n_queries < most), "100K<n<1M")
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


def _figures(manifest: Manifest, report: GenerationReport, n_queries: int) -> list[str]:
    lines = generation_lines(report)
    if n_queries != report.n_accepted:
        made = f"the tables and figures here are of the {report.n_accepted:,} generated queries"
        lines = [f"{made}, as they were made", *lines[:-1], size_advice(n_queries)]
    audit = manifest.audit
    return lines if audit is None else [f"reviewed by people: {audit.in_words()}", *lines]


def _origin(manifest: Manifest) -> Iterable[tuple[str, str]]:
    for key, value in sorted(manifest.made_from.items()):
        yield key, escape_markdown(value) or "none"
    yield "models", escape_markdown(", ".join(manifest.models)) or "none"
    spent = manifest.spent
    cost = "unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f} USD"
    tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens"
    yield "spent", f"{spent.calls:,} calls, {tokens}, cost {cost}"
