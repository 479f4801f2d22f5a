"""The card of a dataset: its README.md, with the header that dataset hubs read."""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ragforge.files.manifest import Manifest
from ragforge.records import GenerationReport
from ragforge.report.generation import generation_lines, generation_tables, size_advice
from ragforge.report.markdown import escape_markdown, markdown_table

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
