"""Find the chunk size, overlap, splitter and retriever that find most evidence.

Every combination cuts the documents, ranks the chunks for the queries of a set, and is measured by
where the quotes of the queries stand: no judge is asked, and no index has to be built. One table
tells them all; the best is named together with what is not told apart from it.

What decides is EvidenceR within a budget of tokens: the share of the quotes that are whole in what
fits into the prompt. At equal k large chunks win by filling more of the prompt; at an equal budget
they do not. --decide-by takes another measure: EvidenceR@10, TokenIoU(tokens=1000), ….

Splitters: headings (ragforge's own, under the titles), recursive (at empty lines, else line ends,
sentences, blanks), sentences, or a chunker of yours as --chunker takes it. A function or a class of
yours is told size and overlap where it has parameters chunk_size (or max_chars, size) and
chunk_overlap (or overlap), as text splitters of LangChain have; another is tried once, as it is.
An overlap is a number of characters, or a share of the size; the size includes it.

Retrievers: bm25, chargram, minilm, static, dense (embeddings of the endpoint: name
--embedding-model; --dry-run tells the price), A+B for fusion, A>minilm for ranking anew, or
pkg.mod:attr: a class whose constructor takes the chunks.

The documents are those that the chunks of the set were cut from; --documents reads them again, with
what no chunk holds. What was ranked is kept in the set: the same command goes on where it stopped,
and another size adds to what is there.

Examples:
  ragforge sweep --dataset set/
  ragforge sweep --dataset set/ --size 200,500,1000,2000 --overlap 0,20% --out sweep.html
  ragforge sweep --dataset set/ --splitter headings,recursive --retriever bm25,minilm,bm25+minilm
  ragforge sweep --dataset set/ --splitter my_app.cut:split --tokens 2000 -k 5,10
  ragforge sweep --dataset set/ --retriever dense --embedding-model text-embedding-3-small --dry-run
"""

import argparse
import asyncio
import sys
from contextlib import redirect_stdout
from pathlib import Path

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import (
    add_common,
    add_json,
    add_selection,
    choose_queries,
    settings_of,
    tell_chosen,
)
from ragforge.cli.output import print_result
from ragforge.errors import UsageError

COMMON = (
    "--dataset",
    "--size",
    "--overlap",
    "--splitter",
    "--retriever",
    "-k",
    "--decide-by",
    "--sample",
    "--split",
    "--out",
    "--json",
)
"""Options of the short help, in its order."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    parser.add_argument(
        "--documents",
        nargs="+",
        action="extend",
        default=[],
        metavar="DOCS",
        help="what the set was made from (default: put together from its chunks)",
    )
    for flag, default, text in (
        ("--size", "200,500,1000,2000", "characters of a chunk"),
        ("--overlap", "0", "characters that neighbours share, or a share of the size: 0,20%%"),
        ("--splitter", "headings,recursive", "headings, recursive, sentences or pkg.mod:attr"),
        ("--retriever", "bm25", "bm25, chargram, minilm, static, dense, A+B or pkg.mod:attr"),
        ("--tokens", "1000,2000,4000", "budgets of a prompt; 0 for none"),
    ):
        parser.add_argument(
            flag,
            action="append",
            metavar="LIST",
            help=f"{text}; several between commas. Default: {default}.",
        )
    parser.add_argument(
        "-k", action="append", metavar="LIST", help="texts from the top, beside the budgets: 5,10"
    )
    parser.add_argument(
        "--decide-by",
        default="",
        metavar="MEASURE",
        help="measure of evidence that decides (default: EvidenceR within the middle budget)",
    )
    parser.add_argument(
        "--processes", type=int, metavar="N", help="that rank by words (default: one a core)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="a page (.html), its picture (.svg), or .json"
    )
    parser.add_argument(
        "--dry-run",
        "--estimate",
        action="store_true",
        help="print configurations, chunks, calls and money, and rank nothing",
    )
    add_selection(parser)
    add_json(parser)
    add_common(parser, "model", "budget")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.sweeping import Swept, check_out, n_cores, split_list
    from ragforge.evaluating.formatting import plural
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.output_paths import check_outputs
    from ragforge.pipeline.job import Job, Mode
    from ragforge.pipeline.sweep.plan import sweep_plan
    from ragforge.pipeline.sweep.sweeping import forecast_sweep, sweep_dataset

    check_out(arguments.out)
    check_outputs({"--out": arguments.out}, {"--config": arguments.config})
    if arguments.processes is not None and arguments.processes < 1:
        raise UsageError(f"--processes {arguments.processes}: expected a number from 1")
    given = {
        "sizes": arguments.size,
        "overlaps": arguments.overlap,
        "splitters": arguments.splitter,
        "retrievers": arguments.retriever,
        "tokens": arguments.tokens,
        "cutoffs": arguments.k,
    }
    lists = {name: split_list(texts) for name, texts in given.items() if texts is not None}
    if lists.get("tokens") == ["0"]:
        lists["tokens"] = []
    plan = sweep_plan(decide_by=arguments.decide_by, **lists)
    settings = settings_of(arguments)
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    job = Job(settings, Progress(arguments.quiet), Mode(dry_run=arguments.dry_run))
    # What the user's splitter or retriever prints must not end up in the data on stdout.
    with redirect_stdout(sys.stderr):
        if arguments.dry_run:
            found = Swept(
                forecast=asyncio.run(forecast_sweep(dataset, plan, arguments.documents, job))
            )
        else:
            n_processes = arguments.processes or n_cores()
            work = sweep_dataset(dataset, plan, arguments.documents, job, n_processes=n_processes)
            found = Swept(asyncio.run(work))
    if arguments.out is not None and not arguments.dry_run:
        found.write(arguments.out)
    if not arguments.json:
        tell_chosen(dataset)
    print_result(found, as_json=arguments.json)
    if found.failed:
        n_failed = plural(len(found.failed), "configuration")
        say(f"ragforge: error: {n_failed} could not be ranked; see above")
        return UsageError.exit_code
    return 0
