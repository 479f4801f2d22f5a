"""Find the chunk size, overlap, splitter and retriever that find most evidence.

Every combination cuts the documents, ranks the chunks for the queries of a set, and is measured by
where the quotes of the queries stand: no judge is asked, and no index has to be built. One table
tells them all; the best is named together with what is not told apart from it. In a terminal a
picture below it sets the measure against the tokens that it takes of a prompt.

What decides is EvidenceR within a budget of tokens: the share of the quotes that are whole in what
fits into the prompt. At equal k large chunks win by filling more of the prompt; at an equal budget
they do not. --decide-by takes another measure: EvidenceR@10, TokenIoU(tokens=1000), ….

Splitters: headings (ragforge's own, cuts at titles), recursive (at empty lines, else line ends,
sentences, blanks), sentences, or a chunker of yours as --chunker takes it. Titles around a piece
are searched with it, whichever cut it. A function or a class of yours is told size and overlap
where it has parameters chunk_size (or max_chars, size) and chunk_overlap (or overlap), as text
splitters of LangChain have; another is tried once, as it is.
An overlap is a number of characters, or a share of the size; the size includes it.

Retrievers: bm25, chargram, minilm, static, dense (embeddings of the endpoint: name
--embedding-model; --dry-run tells the price), A+B for fusion, A>minilm for ranking anew, or
pkg.mod:attr: a class whose constructor takes the chunks.

The documents are those that the chunks of the set were cut from; --documents reads them again, with
what no chunk holds. What was ranked is kept in the set: the same command goes on where it stopped,
and another size adds to what is there.

--system also answers which chunking gives the best answers: the best by evidence, and what is not
told apart from it, are asked for answers from what they retrieved, and these are graded as by
`ragforge answer`. A system that retrieves by itself cannot be swept.

--judge-as-needed also has --model grade what is retrieved, as evidence knows only the passages that
queries were made from. Chunks of different sizes cannot be added up, so prompts of one size are
held against each other: each counts by whether it holds a text that answers. Each is read only as
far as its first such text, and configurations that are told to be worse are read no further.

Examples:
  ragforge sweep --dataset set/
  ragforge sweep --dataset set/ --size 200,500,1000,2000 --overlap 0,20% --out sweep.html
  ragforge sweep --dataset set/ --splitter headings,recursive --retriever bm25,minilm,bm25+minilm
  ragforge sweep --dataset set/ --splitter my_app.cut:split --tokens 2000 -k 5,10
  ragforge sweep --dataset set/ --system model --model gpt-5-mini --dry-run
  ragforge sweep --dataset set/ --judge-as-needed --model gpt-5-mini --max-cost-usd 5
  ragforge sweep --dataset set/ --retriever dense --embedding-model text-embedding-3-small --dry-run
"""

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragforge.api.progress import say
from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    add_mode,
    add_selection,
    choose_queries,
    job_of,
    observed,
    run_async,
    settings_of,
    tell_chosen,
)
from ragforge.cli.next_step import after_sweep
from ragforge.cli.output import print_result, show_picture
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.api.sweeping import Swept
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.job import Job
    from ragforge.pipeline.sweep.finals import Answering
    from ragforge.pipeline.sweep.judged import Judging
    from ragforge.pipeline.sweep.plan import SweepPlan

COMMON = (
    "--dataset",
    "--size",
    "--overlap",
    "--splitter",
    "--retriever",
    "-k",
    "--decide-by",
    "--system",
    "--judge-as-needed",
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
        "--out",
        type=Path,
        metavar="FILE",
        help="a page (.html), its picture (.svg or .png), or .json",
    )
    _add_answers(parser)
    _add_judging(parser)
    add_selection(parser)
    add_mode(parser)
    add_json(parser)
    add_common(parser, "judge", *PAID, without=("split", "depth"))


def _add_answers(parser: argparse.ArgumentParser) -> None:
    """Add `--system` and what goes with it."""
    group = parser.add_argument_group("answers")
    group.add_argument(
        "--system",
        metavar="SPEC",
        help="have the best answered for too: `model` (the --model answers), http:URL that takes "
        "{query, contexts}, or pkg.mod:attr, a function f(query, contexts)",
    )
    group.add_argument(
        "--answer-top",
        type=int,
        metavar="N",
        help="answer for the first N by evidence (default: the best and what is not told apart "
        "from it, 5 at most)",
    )
    group.add_argument(
        "--ask-again", action="store_true", help="ask the system what it answered before, too"
    )
    group.add_argument(
        "--single-call",
        action="store_true",
        help="grade each answer as a whole, in one call, without drawing facts first",
    )


def _add_judging(parser: argparse.ArgumentParser) -> None:
    """Add `--judge-as-needed` and what goes with it."""
    group = parser.add_argument_group("a judge")
    group.add_argument(
        "--judge-as-needed",
        action="store_true",
        help="have --model grade retrieved texts too, only until it is told of which "
        "configurations prompts hold an answer most often",
    )
    group.add_argument(
        "--least-grade",
        type=int,
        choices=(2, 3),
        help="of a text that answers: 2 for a part of the answer, 3 for all of it. Default: 2.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.sweeping import check_out
    from ragforge.evaluating.formatting import plural
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.output_paths import check_outputs

    check_out(arguments.out)
    check_outputs({"--out": arguments.out}, {"--config": arguments.config})
    if arguments.processes is not None and arguments.processes < 1:
        raise UsageError(f"--processes {arguments.processes}: expected a number from 1")
    plan, answering, judging = _plan(arguments), _answering(arguments), _judging(arguments)
    settings = settings_of(arguments)
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    # What the user's splitter, retriever or system prints must not end up in the data on stdout.
    with observed(arguments) as observer, redirect_stdout(sys.stderr):
        job = job_of(arguments, settings, observer)
        asked = _Asked(answering, judging)
        found = run_async(_swept(arguments, dataset, plan, asked, job))
    if arguments.out is not None and not arguments.dry_run:
        found.write(arguments.out)
    if not arguments.json:
        tell_chosen(dataset)
    print_result(found, as_json=arguments.json)
    if found.report is not None and not arguments.json and sys.stdout.isatty():
        from ragforge.report.page.sweep import sweep_picture

        print()
        show_picture(sweep_picture(found.report))
    if found.failed:
        n_failed = plural(len(found.failed), "configuration")
        say(f"ragforge: error: {n_failed} could not be ranked; see above")
        return UsageError.exit_code
    after_sweep(arguments, found)
    return 0


class _Asked(NamedTuple):
    """Who is asked of what was retrieved."""

    answering: "Answering | None"
    judging: "Judging | None"


async def _swept(
    arguments: argparse.Namespace,
    dataset: "Dataset",
    plan: "SweepPlan",
    asked: "_Asked",
    job: "Job",
) -> "Swept":
    from ragforge.api.sweeping import Swept, n_cores
    from ragforge.pipeline.sweep.sweeping import forecast_sweep, sweep_dataset

    named = arguments.documents
    if arguments.dry_run:
        forecast = await forecast_sweep(
            dataset, plan, named, job, answering=asked.answering, judging=asked.judging
        )
        return Swept(forecast=forecast)
    n_processes = arguments.processes or n_cores()
    report = await sweep_dataset(
        dataset,
        plan,
        named,
        job,
        n_processes=n_processes,
        answering=asked.answering,
        judging=asked.judging,
    )
    return Swept(report)


def _plan(arguments: argparse.Namespace) -> "SweepPlan":
    from ragforge.api.sweeping import split_list
    from ragforge.pipeline.sweep.plan import sweep_plan

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
    return sweep_plan(decide_by=arguments.decide_by, **lists)


def _answering(arguments: argparse.Namespace) -> "Answering | None":
    from ragforge.pipeline.sweep.finals import Answering

    if arguments.system is None:
        for flag in ("--answer-top", "--ask-again", "--single-call"):
            if getattr(arguments, flag[2:].replace("-", "_")) not in (None, False):
                raise UsageError(f"{flag}: goes with --system")
        return None
    return Answering(arguments.system, arguments.answer_top, again=arguments.ask_again)


def _judging(arguments: argparse.Namespace) -> "Judging | None":
    from ragforge.pipeline.sweep.judged import Judging

    if not arguments.judge_as_needed:
        if arguments.least_grade is not None:
            raise UsageError("--least-grade: goes with --judge-as-needed")
        return None
    return Judging(arguments.least_grade or 2)
