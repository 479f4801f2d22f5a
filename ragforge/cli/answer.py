"""Grade what a RAG system answered: verdict, score, and claims that no retrieved chunk supports.

Answers come as JSON Lines {query_id, answer, chunk_ids}, or from the system itself: an HTTP address
that takes {"query"}, or package.module:attribute. Verdicts are correct, partial, incorrect
and not_attempted; to abstain is correct where the question cannot be answered. A model splits each
expected answer into facts once, and looks for these in the answers; the facts are kept in the
dataset's queries.jsonl and may be edited there.

Answers that bring grades (isCorrect, isPartiallyCorrect, hasHallucination, score) are not graded
anew unless --model asks for a judge; both stay, with how far they agree. A score alone is a grade
where it is 1 (correct), 0.5 (partial) or 0 (incorrect). What a file says is right (groundTruth) is
the expected answer of queries that have none.

--sample N asks and grades N queries only, the same as `ragforge retrieve` with the same --seed,
drawn from each stratum in proportion (category, else difficulty, or --by FIELD), --split those of
one split. Rates are those of the whole set, each stratum by its weight, which is printed. The
answers carry which queries they are for. Answers to other queries are not replaced by a sample.

Whether retrieval or the model is to blame is told by the chunks that an answer was made from, or
by whole documents where its context or the labels name these (store.md for help/store.md).

Examples:
  ragforge answer --dataset set/ --answers answers.jsonl --name my-rag --model gpt-5-mini
  ragforge answer --dataset set/ --system http://127.0.0.1:8000/ask --name my-rag
  ragforge answer --dataset set/ --system my_app:ask --name my-rag-50 --sample 50 --seed 7
"""

import argparse
import asyncio
import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

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
    settings_of,
)
from ragforge.cli.output import dumps, print_estimate, show
from ragforge.errors import UsageError
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.answer.answering import AnsweringResult
from ragforge.pipeline.answer.asking_systems import AskingResult, ask_queries
from ragforge.pipeline.job import Job

NO_JUDGE = (
    "no judge was asked, as each answer brings a grade; --model NAME asks one (offline is the "
    "baseline), and keeps both"
)


def add_system(parser: argparse.ArgumentParser) -> None:
    """Add `--answers`, `--system` and what goes with them."""
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--answers", type=Path, metavar="FILE")
    origin.add_argument(
        "--system",
        metavar="SPEC",
        help="ask a RAG system the queries that have no answer under --name yet: http:URL or "
        "pkg.mod:attr",
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


def name_of_system(arguments: argparse.Namespace) -> str:
    """Return the name under which answers are kept.

    Raises:
        UsageError: The flags do not go together.
    """
    if arguments.system is None:
        for flag in ("--ask-again", "--answers-only"):
            if getattr(arguments, flag[2:].replace("-", "_")):
                raise UsageError(f"{flag}: goes with --system; --answers takes a file as it is")
    if arguments.name is not None:
        return str(arguments.name)
    if arguments.system is not None:
        raise UsageError("--system: expected --name NAME with it, to keep its answers under")
    return str(arguments.answers.name.split(".")[0])


def asked(arguments: argparse.Namespace, dataset: Dataset, job: Job) -> AskingResult | None:
    """Ask the system, if one is named; return None where answers come from a file."""
    if arguments.system is None:
        return None
    name = name_of_system(arguments)
    # What the user's system prints must not end up in the data on stdout.
    with redirect_stdout(sys.stderr):
        return asyncio.run(
            ask_queries(dataset, arguments.system, name, job, again=arguments.ask_again)
        )


def print_asked(made: AskingResult, arguments: argparse.Namespace) -> None:
    """Print what asking came to, where nothing is graded behind it."""
    if arguments.dry_run:
        if arguments.json:
            print(dumps(calls_of_system(made)))
            return
        print(f"queries to ask the system: {made.n_asked}")
        say("calls of the judge cannot be counted before the answers are there")
        return
    if arguments.json:
        print(dumps({"system": arguments.name, "file": str(made.path), **counts(made)}))
        return
    n_failed = len(made.failures)
    say(f"{arguments.name}: {made.n_asked - n_failed} queries answered, {n_failed} failed")
    print(made.path)


def calls_of_system(made: AskingResult | None) -> dict[str, int]:
    """Return what a dry run would ask the system, beside what it would ask the judge."""
    return {} if made is None else {"system_calls": made.n_asked}


def counts(result: AskingResult | None) -> dict[str, int]:
    """Return what asking came to, for `--json`."""
    if result is None:
        return {}
    return {"asked": result.n_asked, "kept": result.n_kept, "not_answered": len(result.failures)}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR")
    add_system(parser)
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
    add_mode(parser)
    add_json(parser)
    add_common(parser, *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.evaluating.summary import summarise_system
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.answer.answering import grade_system
    from ragforge.report.answers import answers_json, render_answers

    settings = settings_of(arguments)
    threshold = settings.evaluate.rel_threshold
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    system = name_of_system(arguments)
    with observed(arguments) as observer:
        job = job_of(arguments, settings, observer)
        made = asked(arguments, dataset, job)
        if made is not None and (arguments.answers_only or not made.path.exists()):
            print_asked(made, arguments)
            return 0
        answers = arguments.answers if made is None else made.path
        result = asyncio.run(grade_system(dataset, answers, system, job))
    if result.estimate is not None:
        print_estimate({**result.estimate, **calls_of_system(made)}, as_json=arguments.json)
    elif arguments.json:
        found = answers_json(summarise_system(dataset, system, rel_threshold=threshold))
        print(dumps({**_json(result), **found, **counts(made)}))
    else:
        verdicts = Counter(item.verdict or "failed" for item in result.grades)
        told = ", ".join(f"{name} {count}" for name, count in sorted(verdicts.items()))
        say(f"{system}: {result.n_answers} answers, {_judge(result)}: {told}")
        say(f"{system}: {_told_by_rule(result) if not result.given_by else NO_JUDGE}")
        show(render_answers(summarise_system(dataset, system, rel_threshold=threshold)))
        print(dataset.files / "answer_grades" / f"{system}.jsonl")
    return 0


def _judge(result: AnsweringResult) -> str:
    return f"by the grades of {result.given_by}" if result.given_by else f"judge {result.judge}"


def _by_rule(result: AnsweringResult) -> dict[str, int]:
    """Return how many answers each rule decided."""
    return dict(sorted(Counter(item.rule for item in result.grades if item.rule).items()))


def _told_by_rule(result: AnsweringResult) -> str:
    by_rule = _by_rule(result)
    listed = ", ".join(f"{rule} {count}" for rule, count in by_rule.items())
    share = f"{sum(by_rule.values())} of {len(result.grades)} decided by rule, without the judge"
    return f"{share}: {listed}" if listed else share


def _json(result: AnsweringResult) -> dict[str, object]:
    verdicts = Counter(item.verdict or "failed" for item in result.grades)
    return {
        "system": result.system,
        "judge": None if result.given_by else result.judge,
        "graded_by_file": result.given_by or None,
        "decided_by_rule": _by_rule(result),
        "verdicts": dict(sorted(verdicts.items())),
    }
