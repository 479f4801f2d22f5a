"""Grade what a RAG system answered: verdict, score, and claims that no retrieved chunk supports.

Answers come as JSON Lines {query_id, answer, chunk_ids}, or from the system itself: an HTTP address
that takes {"query"}, a service of the settings ([systems.NAME], see docs/services.md), or
package.module:attribute. Verdicts are correct, partial, incorrect
and not_attempted; to abstain is correct where the question cannot be answered. A model splits each
expected answer into facts once, and looks for these in the answers; the facts are kept in the
dataset's queries.jsonl and may be edited there.

Answers that bring grades (isCorrect, isPartiallyCorrect, hasHallucination, score) are not graded
anew unless --model asks for a judge; both stay, with how far they agree. Scores alone are grades
where all of the file are 1 (correct), 0.5 (partial) or 0 (incorrect); another one shows another
scale, and none counts. What a file says is right (groundTruth) is the expected answer of queries
that have none.

--sample N asks and grades N queries only, the same as `ragforge retrieve` with the same --seed,
drawn from each stratum in proportion (category, else difficulty, or --by FIELD), --split those of
one split. Rates are those of the whole set, each stratum by its weight, which is printed. The
answers carry which queries they are for. Answers to other queries are not replaced by a sample.

A query on which the system fails has no answer and no value; where more of those asked now fail
than --max-failures, the exit code is 4 after all else was written. The same command asks them
again.

Whether retrieval or the model is to blame is told by the chunks that an answer was made from, or
by whole documents where its context or the labels name these (store.md for help/store.md).

Examples:
  ragforge answer --dataset set/ --answers answers.jsonl --name my-rag --model gpt-5-mini
  ragforge answer --dataset set/ --system http://127.0.0.1:8000/ask --name my-rag
  ragforge answer --dataset set/ --system my_app:ask --name my-rag-50 --sample 50 --seed 7
"""

import argparse
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.api.progress import say
from ragforge.cli.batch_api import add_batch_api, check_batch_api, done, is_batch_api
from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    add_mode,
    add_selection,
    add_verbose,
    choose_queries,
    job_of,
    observed,
    run_async,
    settings_of,
)
from ragforge.cli.next_step import after_answers
from ragforge.cli.output import code_of_failures, print_result, show, tell_overtaken
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.api.answered import Answered
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.job import Job

COMMON = (
    "--dataset",
    "--system",
    "--name",
    "--answers",
    "--graded-by",
    "--sample",
    "--model",
    "--base-url",
    "--dry-run",
    "--max-cost-usd",
    "--single-call",
    "--ask-again",
    "--answers-only",
    "--json",
)
"""Options of the short help, in its order."""
_MAX_FAILURES: Final = "5%"
_NO_JUDGE: Final = (
    "no judge was asked, as answers bring their grades; --model NAME asks one (offline is the "
    "baseline), and keeps both"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    _add_system(parser)
    parser.add_argument(
        "--name", metavar="NAME", help="name of the system (default: that of the file)"
    )
    parser.add_argument(
        "--single-call",
        action="store_true",
        help="compare each answer as a whole, in one call, without drawing facts first",
    )
    add_selection(parser)
    parser.add_argument(
        "--graded-by",
        default="",
        metavar="WHO",
        help="who gave the grades that the answers bring (default: the name of the file); systems "
        "are compared where it is the same",
    )
    add_batch_api(parser)
    add_mode(parser)
    add_json(parser)
    add_verbose(parser)
    add_common(parser, *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.answered import describe_asking
    from ragforge.evaluating.gate import parse_share
    from ragforge.files.set.opening import open_dataset

    settings = settings_of(arguments)
    check_batch_api(arguments)
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    name = _name_of_system(arguments)
    max_failures = parse_share(arguments.max_failures or _MAX_FAILURES, "--max-failures")
    with observed(arguments) as observer:
        found = _answered(arguments, dataset, name, job_of(arguments, settings, observer))
    if found is None:
        return 0
    overtaken = None if found.estimate is not None else tell_overtaken(dataset, "answers")
    if arguments.json or (found.graded is not None and found.estimate is not None):
        print_result(found, as_json=arguments.json)
    elif found.estimate is not None:
        count, note = found.table().splitlines()
        print(count)
        say(note)
    else:
        _print(found, overtaken or dataset.files, verbose=arguments.verbose)
        if overtaken is None:
            after_answers(arguments, dataset, name)
    asked = found.asked
    if asked is None or not asked.failures:
        return 0
    message = describe_asking(asked, name)
    return code_of_failures(message, len(asked.failures), asked.n_asked, max_failures)


def _add_system(parser: argparse.ArgumentParser) -> None:
    """Add `--answers`, `--system` and what goes with them."""
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--answers", type=Path, metavar="FILE")
    origin.add_argument(
        "--system",
        metavar="SPEC",
        help="ask a RAG system the queries that have no answer under --name yet: a service of the "
        "settings, http:URL or pkg.mod:attr",
    )
    parser.add_argument(
        "--ask-again",
        action="store_true",
        help="with --system: ask also the queries that have an answer",
    )
    parser.add_argument(
        "--answers-only",
        action="store_true",
        help="with --system: write the answers and grade nothing",
    )
    parser.add_argument(
        "--max-failures",
        metavar="SHARE",
        help="with --system: queries on which it may fail, 1%% or 0.01; more make the exit code 4. "
        "Default: 5%%.",
    )


def _name_of_system(arguments: argparse.Namespace) -> str:
    """Return the name under which answers are kept.

    Raises:
        UsageError: The flags do not go together.
    """
    if arguments.system is None:
        for flag in ("--ask-again", "--answers-only", "--max-failures"):
            if getattr(arguments, flag[2:].replace("-", "_")):
                raise UsageError(f"{flag}: goes with --system; --answers takes a file as it is")
    elif is_batch_api(arguments):
        raise UsageError("--system is asked live: --answers-only first, then --answers FILE")
    if arguments.name is not None:
        return str(arguments.name)
    if arguments.system is not None:
        raise UsageError("--system: expected --name NAME with it, to keep its answers under")
    return str(arguments.answers.name.split(".")[0])


def _answered(
    arguments: argparse.Namespace, dataset: "Dataset", name: str, job: "Job"
) -> "Answered | None":
    from ragforge.api.answered import ask_and_grade, grade
    from ragforge.pipeline.batch_job import BatchJob

    if arguments.system is None:
        graded = partial(grade, dataset, arguments.answers, name)
        models = (job.settings.model,)
        return done(arguments, BatchJob(job, models, dataset.store_path, graded, in_stages=True))
    # What the user's system prints must not end up in the data on stdout.
    with redirect_stdout(sys.stderr):
        return run_async(
            ask_and_grade(
                dataset,
                arguments.system,
                name,
                job,
                again=arguments.ask_again,
                answers_only=arguments.answers_only,
            )
        )


def _print(found: "Answered", files: Path, *, verbose: bool) -> None:
    from ragforge.api.answered import answer_lines
    from ragforge.report.answers import render_answers, render_rates

    for line in answer_lines(found):
        say(line)
    if found.graded is None or found.summary is None:
        assert found.asked is not None
        print(files / "answers" / found.asked.path.name)
        return
    if found.graded.given_by:
        say(f"{found.system}: {_NO_JUDGE}")
    show(render_answers(found.summary) if verbose else render_rates(found.summary))
    if not verbose:
        say("intervals are of 95 %, over queries; --verbose says what each rate counts")
    print(files / "answer_grades" / f"{found.system}.jsonl")
