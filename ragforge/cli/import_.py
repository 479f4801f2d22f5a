"""Bring a hand-made set of queries with relevant passages into a dataset.

Queries come in many shapes, such as {"queries": [{id, query, relevant_doc_ids}]}, BEIR folders,
CSV, or JSON Lines with quotes: {query_id, query, expected_answer, relevant: [{doc_id, quote,
grade}]}. A quote is looked up in the chunks, so the set outlives a change of the chunk size.

Example: ragforge import golden.jsonl --documents docs/ --out set/
"""

import argparse
from pathlib import Path

from ragforge.cli.flags import add_common, add_json, dumps, settings_of
from ragforge.cli.talk import Progress, complain


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("queries", type=Path, metavar="FILE", help="the hand-made set")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--documents", nargs="+", type=Path, metavar="DOCS", help="files or folders to chunk"
    )
    source.add_argument("--chunks", type=Path, metavar="FILE", help="ready-made chunks")
    source.add_argument("--dataset", type=Path, metavar="DIR", help="add to this dataset")
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory of the new dataset")
    parser.add_argument("--made-by", default="", metavar="WHO", help="who graded, for the records")
    add_json(parser)
    add_common(parser, "chunk")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.errors import UsageError
    from ragforge.files.opening import open_dataset
    from ragforge.pipeline.corpus import load_chunks
    from ragforge.pipeline.importing import dataset_for, import_queries

    observer = Progress(arguments.quiet)
    if arguments.dataset is None:
        if arguments.out is None:
            raise UsageError("--documents and --chunks need --out DIR")
        settings = settings_of(arguments)
        documents = arguments.documents or []
        chunks = load_chunks(documents, arguments.chunks, settings.chunk, observer)
        dataset = dataset_for(arguments.out, chunks)
    else:
        dataset = open_dataset(arguments.dataset)
    result = import_queries(arguments.queries, dataset, observer, made_by=arguments.made_by)
    if arguments.json:
        counts = {"queries": result.n_queries, "judgments": result.n_judgments}
        print(dumps({"dataset": str(dataset.path), **counts, "lost": result.n_lost}))
    else:
        complain(f"{result.n_queries} queries, {result.n_judgments} judgments taken in")
        print(dataset.path)
    return 0
