r"""Make queries with answers and evidence from documents or chunks.

Without a model, queries are drawn from the text by rule: enough for a first run and for CI. With a
model, each query comes with an answer, a difficulty, a type and a quote that is checked against
the chunk. The same command goes on where an earlier run stopped.

Examples:
  ragforge generate --documents docs/ -n 20 --out set/
  ragforge generate --chunks chunks.jsonl -n 50 --out set/ \
      --model qwen3 --base-url http://127.0.0.1:8080/v1
"""

import argparse
import asyncio
from collections import Counter
from pathlib import Path

from ragforge.cli.flags import PAID, add_common, add_json, dumps, settings_of
from ragforge.cli.paid import add_mode, mode_of, observed, print_estimate
from ragforge.cli.talk import complain
from ragforge.errors import ShortfallError
from ragforge.pipeline.generating import GenerationResult
from ragforge.stages.generate.stage import Generated


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--documents", nargs="+", type=Path, metavar="DOCS", help="files or folders to chunk"
    )
    source.add_argument("--chunks", type=Path, metavar="FILE", help="ready-made chunks")
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="directory of the dataset"
    )
    add_mode(parser)
    add_json(parser)
    add_common(parser, "generate", "chunk", *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.pipeline.corpus import load_chunks
    from ragforge.pipeline.generating import generate_dataset, shortfall

    settings = settings_of(arguments)
    documents = arguments.documents or []
    with observed(arguments) as observer:
        chunks = load_chunks(documents, arguments.chunks, settings.chunk, observer)
        result = asyncio.run(
            generate_dataset(arguments.out, chunks, settings, observer, mode_of(arguments))
        )
    if result.estimate is not None:
        print_estimate(result.estimate, as_json=arguments.json)
        return 0
    short = shortfall(result, settings.generate.n)
    if arguments.json:
        print(dumps({**_json(result, len(chunks)), "shortfall": short or None}))
    else:
        _tell(result.generated, len(chunks))
        print(arguments.out)
    if short:
        complain(f"ragforge: error: {short}")
        return ShortfallError.exit_code
    return 0


def _json(result: GenerationResult, n_chunks: int) -> dict[str, object]:
    queries = result.generated.queries
    return {
        "dataset": str(result.dataset.path),
        "chunks": n_chunks,
        "queries": len(queries),
        "failed": len(result.generated.failures),
        "rejected": dict(sorted(result.generated.rejected.items())),
        "difficulty": dict(sorted(Counter(item.difficulty or "" for item in queries).items())),
        "documents_covered": len({item.evidence[0].doc_id for item in queries}),
        "spent": result.dataset.manifest.spent.model_dump(),
    }


def _tell(generated: Generated, n_chunks: int) -> None:
    documents = {item.evidence[0].doc_id for item in generated.queries}
    complain(
        f"{len(generated.queries)} queries from {n_chunks} chunks, {len(documents)} documents "
        f"covered; rejected: {sum(generated.rejected.values())}, failed: {len(generated.failures)}"
    )
    for code, count in sorted(generated.rejected.items()):
        complain(f"  rejected, {code}: {count}")
