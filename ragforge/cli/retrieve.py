"""Run a retriever over the queries of a dataset; the result is a run.

Retrievers: bm25, chargram (character n-grams, forgives typing errors), dense (embeddings of the
endpoint), an HTTP address that takes {"query", "k"}, or package.module:attribute: a function, or
an object with invoke, retrieve or get_relevant_documents. It is asked once a query and given up
after --timeout-s.

An earlier run of that name is replaced, but not by one without rankings, nor by one that was
interrupted and has fewer queries.

Examples:
  ragforge retrieve --dataset set/ --retriever bm25
  ragforge retrieve --dataset set/ --retriever my_app.search:retriever --name mine
"""

import argparse
import asyncio
import sys
from contextlib import redirect_stdout
from pathlib import Path

from ragforge.cli.flags import add_common, add_json, dumps, settings_of
from ragforge.cli.talk import Progress, complain


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR")
    parser.add_argument(
        "--retriever",
        required=True,
        metavar="SPEC",
        help="bm25, chargram, dense, http:URL or pkg.mod:attr",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="name of the run (default: that of the retriever)"
    )
    parser.add_argument("--trec", type=Path, metavar="FILE", help="write a TREC run file too")
    add_json(parser)
    add_common(parser, "retrieve", "model")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.opening import open_dataset
    from ragforge.files.output_places import check_outputs
    from ragforge.pipeline.holes import holes_of, told
    from ragforge.pipeline.retrieving import make_runs, require_working
    from ragforge.pipeline.run_names import named_specs

    check_outputs({"--trec": arguments.trec}, {"--config": arguments.config})
    settings = settings_of(arguments)
    dataset = open_dataset(arguments.dataset)
    names = [] if arguments.name is None else [arguments.name]
    specs = named_specs([arguments.retriever], names)
    # What the user's retriever prints must not end up in the data on stdout.
    with redirect_stdout(sys.stderr):
        [made] = asyncio.run(make_runs(dataset, specs, settings, Progress(arguments.quiet)))
    require_working([made])
    name = made.name
    if arguments.trec:
        from ragforge.files.trec_writing import write_trec_run

        rankings = {
            item.query_id: {hit.chunk_id: hit.score for hit in item.ranking}
            for item in made.rankings
        }
        write_trec_run(arguments.trec, rankings, name)
    path = dataset.files / "runs" / f"{name}.jsonl"
    if arguments.json:
        found = {"run": name, "file": str(path), "queries": len(made.rankings)}
        print(dumps({**found, "failed": len(made.failures)}))
    else:
        complain(f"{len(made.rankings)} queries retrieved, {len(made.failures)} failed")
        for line in filter(None, (told(holes, dataset) for holes in holes_of(dataset, [name]))):
            complain(line)
        print(path)
    return 0
