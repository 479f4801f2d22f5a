"""Tell which of several runs, or answer systems, is better, and whether that can be told at all.

Of each two, the first is A and the second B. Read the table so:
  winner    A or B where the difference is shown; TIE where its interval holds 0, or the test finds
            no difference (p corr. above --alpha). A TIE does not say that both are equal: see
            power. UNKNOWN where it rests on grades that say nothing about quality: those of the
            offline baseline (shared words), or those that `ragforge mock` made up; where failures
            could turn it round; or where one run finds more evidence in twice the text.
  interval  where the true difference lies, over queries like these. It is corrected: all measures
            and pairs of one call share the chance of --alpha (5 in 100) of any false finding, so
            the more you compare, the wider it gets. Ask for the measures you decide by, no more.
            It reaches as far as the paired bootstrap (BCa) or Student's t, whichever goes further.
  p         chance of so large a difference were A and B alike (paired randomisation test);
            p corr. is Holm's, and may be read by itself.
  letters   with three runs and more: runs that share a letter were not told apart.
  power     "shows" is the least true difference that so many queries show in 4 of 5 samples,
            "for half" how many queries would show half of it. A TIE with a large "shows" means:
            too few queries.
A run without any value is left out by name, as is one made on other chunks that nobody named. A
query on which a retriever failed is left out; a chunk whose judgment failed counts as not relevant.
The difference gets bounds, and where these hold 0 nobody is called better. Chunks that nobody
graded and only one run retrieved are counted, with how far they could move it.
--sample N and --split compare on a part of the queries, the same as in `ragforge evaluate`: means
and differences are of the whole set, each stratum of the sample by its weight. Runs made for a part
are compared on the queries in common, and unnamed ones are left out where others have more.
Without -m it is nDCG@10, RR, R@10, P@5 and Success@5; of runs with different chunks EvidenceR@10,
TokenR@10, TokenP@10 and TokenIoU@10, which do not depend on how text is cut.
With --calibrated the winner is that of the difference as people's labels correct it (see `ragforge
calibrate`); without, numbers by a language model are called uncalibrated in the first line.
With --judge, what the runs retrieved and nobody graded is graded first, by --model and within the
budget; --dry-run tells the most that it can take. A rerun goes on where it was stopped: it
retrieves anew, and pays for no grade twice.
The exit code is 0 whoever wins; `ragforge gate` decides. It is 4 where a --retriever worked on no
query: an earlier run of its name stays as it is, and is not compared in its place.

With --judge-as-needed runs are decided on a sample of the pairs, drawn by what they weigh in DCG@10
(or -m P@10): two runs that are far apart take about a quarter of the pool, close ones half. By -m
RR or Success@5 two runs are read down to their first hits, with nothing estimated. Of several runs
it tells which are worse for sure, and which may be the best: those hold the best run
in at least 95 %. The sample is kept apart from the judgments of the set.

Examples:
  ragforge compare --qrels qrels.trec --run bm25.trec --run dense.trec -m nDCG@10 -m RR
  ragforge compare --dataset set/ bm25 mine --moved 10
  ragforge compare --dataset set/ --retriever bm25 --retriever my_app.search:retriever
  ragforge compare --dataset set/ --retriever old --retriever new --judge --model gpt-5-mini
  ragforge compare --dataset set/ old new --judge-as-needed --model gpt-5-mini
  ragforge compare --dataset set/ a b c d e --judge-as-needed --model gpt-5-mini
  ragforge compare --dataset set/ --base main candidate-1 candidate-2 --json
  ragforge compare --dataset set/ --answers careful hasty
"""

import argparse
from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import (
    add_calibrated,
    add_common,
    add_json,
    add_mode,
    add_selection,
    add_verbose,
    calibration_of,
    choose_queries,
    is_calibrated,
    job_of,
    observed,
    refuse_selection,
    run_async,
    settings_of,
)
from ragforge.cli.next_step import after_comparing
from ragforge.cli.output import dumps, print_estimate, show
from ragforge.cli.parser import meant_as_dataset
from ragforge.cli.retrievers import (
    SECTIONS,
    add_retrievers,
    code_of,
    left_out,
    run_retrievers,
)
from ragforge.errors import EndpointError, UsageError

if TYPE_CHECKING:
    from ragforge.api.judged import Judged
    from ragforge.config import Settings
    from ragforge.evaluating.comparison import ComparisonReport
    from ragforge.files.set.dataset import Dataset
    from ragforge.llm.budget import BudgetAccount
    from ragforge.pipeline.comparing.deciding import ComparisonOptions
    from ragforge.pipeline.retrieving import RunResult

COMMON = (
    "--dataset",
    "--qrels",
    "--run",
    "--answers",
    "--retriever",
    "--judge",
    "--judge-as-needed",
    "--model",
    "--max-cost-usd",
    "--dry-run",
    "--base",
    "-m",
    "--alpha",
    "--calibrated",
    "--moved",
    "--sample",
    "--split",
    "--json",
)
"""Options of the short help, in its order."""
_FLAGS_OF_JUDGE_ALONE = ("split",)
"""The command's own --split is of all it does."""
_ALPHA = 0.05
MOVED = 10
"""Queries that gained, and that lost, in the JSON of each comparison."""
MOVED_SHOWN = 5
"""Those in the text, where only two runs are compared."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="RUN",
        help="with --dataset: runs, or answer systems with --answers (default: all)",
    )
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="compare a dataset's runs")
    parser.add_argument("--qrels", type=Path, metavar="FILE", help="judgments, for --run FILE")
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="FILE",
        help="with --qrels: a run to compare, two or more; with --dataset a run's name",
    )
    parser.add_argument(
        "--answers", action="store_true", help="compare answer systems by their answers' grades"
    )
    add_retrievers(parser)
    add_selection(parser)
    parser.add_argument(
        "--base", metavar="RUN", help="hold each other run against this one only, as A"
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=_ALPHA,
        metavar="X",
        help="chance of any false finding among all comparisons (default: 0.05)",
    )
    parser.add_argument(
        "--moved",
        type=int,
        metavar="N",
        help="show N queries that gained most and N that lost most in the first measure "
        f"(default: none; with --verbose {MOVED_SHOWN} for two runs)",
    )
    parser.add_argument(
        "--only-retrieved",
        action="store_true",
        help="leave out queries that a run lacks, rather than count them as 0",
    )
    parser.add_argument(
        "--judge",
        action="store_true",
        help="with --dataset: first grade what the runs retrieved and nobody graded yet, with "
        "--model, within --max-calls, --max-tokens and --max-cost-usd",
    )
    add_calibrated(parser)
    parser.add_argument(
        "--judge-as-needed",
        action="store_true",
        help="with --dataset: grade pairs of the runs by --model only until the decision is made, "
        "by one measure (-m DCG@10, P@10, RR or Success@5; default: DCG@10)",
    )
    add_mode(parser, again=True)
    add_verbose(parser)
    add_json(parser)
    add_common(
        parser, "evaluate", *SECTIONS, "judge", "budget", "prompts", without=_FLAGS_OF_JUDGE_ALONE
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    _check(arguments)
    if is_calibrated(arguments) and (arguments.dataset is None or arguments.answers):
        raise UsageError("--calibrated goes with the runs of --dataset DIR")
    _check_judging(arguments)
    settings = settings_of(arguments)
    if arguments.judge_as_needed:
        return _decided_as_needed(arguments, settings)
    _require_comparable(arguments, settings)
    if arguments.dry_run:
        return _estimate(arguments, settings)
    made, judged = [], None
    if arguments.retriever or arguments.judge:
        from ragforge.llm.budget import BudgetAccount

        account = BudgetAccount()
        made = _made(arguments, settings, account) if arguments.retriever else []
        judged = _judged(arguments, settings, left_out(made), account) if arguments.judge else None
    from ragforge.api.compared import RunComparison

    found = RunComparison(_compared(arguments, settings, left_out(made)))
    for warning in found.report.warnings:
        say(f"warning: {warning}")
    if arguments.json:
        print(dumps({**found.to_dict(), **({"judged": judged.to_dict()} if judged else {})}))
    else:
        if arguments.verbose or arguments.moved is not None:
            show(found.table(arguments.moved))
        else:
            show(found.summary())
        after_comparing(arguments, found)
    return code_of(made)


def _check_judging(arguments: argparse.Namespace) -> None:
    """Refuse flags of judging where nothing is judged.

    Raises:
        UsageError: One is given.
    """
    if arguments.judge or arguments.judge_as_needed:
        if arguments.dataset is None or arguments.answers:
            raise UsageError("--judge goes with the runs of --dataset DIR")
        if arguments.judge and arguments.judge_as_needed:
            raise UsageError("give --judge or --judge-as-needed, not both")
        return
    flags = ("dry_run", "retry_failed", "offline_replay", "again", "mix", "observer")
    given = [name for name in flags if getattr(arguments, name)]
    if given:
        raise UsageError(f"--{given[0].replace('_', '-')}: goes with --judge")


def _require_comparable(arguments: argparse.Namespace, settings: "Settings") -> None:
    """Refuse what cannot be compared before a retriever works or a model is paid, if one does."""
    if not (arguments.retriever or arguments.judge):
        return
    from ragforge.pipeline.comparing.runs import require_comparable
    from ragforge.pipeline.run_list import named_specs

    new = named_specs(arguments.retriever, arguments.name).keys()
    dataset, names = _dataset(arguments, settings), _names(arguments)
    require_comparable(dataset, names, new, settings.evaluate, _options(arguments))


def _estimate(arguments: argparse.Namespace, settings: "Settings") -> int:
    """Print what retrieving and judging will take."""
    from ragforge.pipeline.comparing.price import estimate_judging
    from ragforge.pipeline.run_list import named_specs

    new = named_specs(arguments.retriever, arguments.name)
    dataset, names = _dataset(arguments, settings), _names(arguments)
    with observed(arguments) as observer:
        job = job_of(arguments, settings, observer)
        counted = run_async(estimate_judging(dataset, names, new, job))
    if any("dense" in spec for spec in new.values()):
        say("embeddings of dense are not counted; `ragforge retrieve` keeps them in the store")
    print_estimate(counted, as_json=arguments.json)
    return 0


def _judged(
    arguments: argparse.Namespace, settings: "Settings", left: Set[str], account: "BudgetAccount"
) -> "Judged":
    """Judge what the runs to be compared retrieved and nobody graded."""
    from ragforge.api.judged import Judged, judging_lines
    from ragforge.pipeline.judge.judging import judge_dataset

    names = [name for name in _names(arguments) if name not in left]
    dataset = _dataset(arguments, settings)
    with observed(arguments) as observer:
        job = replace(job_of(arguments, settings, observer), account=account)
        result = run_async(judge_dataset(dataset, names, job))
    for line in judging_lines(result):
        say(line)
    return Judged(result)


def _decided_as_needed(arguments: argparse.Namespace, settings: "Settings") -> int:
    """Judge pairs until it is decided which of the runs is better."""
    from ragforge.api.decided import decide_runs, decision_of
    from ragforge.api.results import Estimate
    from ragforge.config import EvaluateSettings
    from ragforge.pipeline.comparing.needed_pairs import DEFAULT_MEASURE, Declared

    asked = settings.evaluate.measures
    measures = [DEFAULT_MEASURE] if asked == EvaluateSettings().measures else list(asked)
    if len(measures) != 1:
        raise UsageError("--judge-as-needed decides by one measure: name one with -m")
    if arguments.retriever:
        raise UsageError("--judge-as-needed compares runs that are there: retrieve them first")
    given = [
        flag
        for flag, is_given in (
            ("--alpha", arguments.alpha != _ALPHA),
            ("--base", arguments.base is not None),
            ("--moved", arguments.moved is not None),
            ("--only-retrieved", arguments.only_retrieved),
            ("--calibrated", is_calibrated(arguments)),
        )
        if is_given
    ]
    if given:
        raise UsageError(f"{given[0]}: does not go with --judge-as-needed")
    dataset, names = _dataset(arguments, settings), _names(arguments)
    names = names or dataset.run_names()
    with observed(arguments) as observer:
        job = job_of(arguments, settings, observer)
        found = decision_of(run_async(decide_runs(dataset, names, job, Declared(measures[0]))))
    if isinstance(found, Estimate):
        print_estimate(found.counted, as_json=arguments.json)
        return 0
    for warning in found.warnings:
        say(f"warning: {warning}")
    if arguments.json:
        print(dumps(found.to_dict()))
        return 0
    show(found.table())
    say("the grades are a sample, and are kept apart from the set's: `ragforge judge` completes it")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    if (arguments.dataset is None) == (arguments.qrels is None):
        raise UsageError(
            "give either --dataset DIR, or --qrels FILE with --run FILE --run FILE"
            + meant_as_dataset(arguments.names)
        )
    if arguments.dataset is None:
        if arguments.names:
            raise UsageError(f"{arguments.names[0]!r}: with --qrels give files as --run FILE")
        if arguments.answers or arguments.retriever or arguments.name:
            raise UsageError("--answers, --retriever and --name go with --dataset DIR")
        refuse_selection(arguments)
    if arguments.name and not arguments.retriever:
        raise UsageError("--name: goes with --retriever; a run that is there has its name")
    if arguments.answers and (arguments.retriever or arguments.run):
        raise UsageError("--answers compares answer systems; --run and --retriever make no answers")
    if arguments.moved is not None and arguments.moved < 0:
        raise UsageError(f"--moved: expected a whole number from 0, got {arguments.moved}")


def _compared(
    arguments: argparse.Namespace, settings: "Settings", left: Set[str]
) -> "ComparisonReport":
    """Compare what is named, but for the runs that are to be left out."""
    from ragforge.pipeline.comparing.answers import compare_answers
    from ragforge.pipeline.comparing.runs import compare_files, compare_runs

    options = _options(arguments)
    if arguments.dataset is None:
        paths = [Path(name) for name in arguments.run]
        return compare_files(arguments.qrels, paths, settings.evaluate, options)
    dataset, names = _dataset(arguments, settings), _names(arguments)
    if arguments.answers:
        return compare_answers(dataset, names, settings.evaluate, options)
    names = [name for name in names if name not in left]
    calibration = calibration_of(arguments, dataset)
    found = compare_runs(dataset, names, settings.evaluate, options)
    if calibration is None:
        return found
    from ragforge.calibration.comparing import with_calibration

    return with_calibration(found, calibration)


def _require_price(settings: "Settings") -> None:
    """Refuse what the judging would refuse, before any retriever has worked.

    Raises:
        ConfigError: A limit in dollars is set, and no price of the model is known.
    """
    from ragforge.config.sections import is_offline
    from ragforge.llm.budget import find_price, require_price

    model, budget = settings.model, settings.budget
    if budget.max_cost_usd is not None and not is_offline(model.name):
        require_price(find_price(model.name, model.address, budget), budget)


def _made(
    arguments: argparse.Namespace, settings: "Settings", account: "BudgetAccount"
) -> "list[RunResult]":
    """Make the runs of the retrievers.

    Raises:
        EndpointError: Too few of what was to be compared came of it.
        ConfigError: See `_require_price`.
    """
    from ragforge.pipeline.retrieving import require_working
    from ragforge.pipeline.run_list import named_specs

    dataset, names = _dataset(arguments, settings), _names(arguments)
    if arguments.judge:
        _require_price(settings)
    kept = set(names) - named_specs(arguments.retriever, arguments.name).keys()
    made = run_retrievers(arguments, dataset, settings, Progress(arguments.quiet), kept, account)
    require_working(made)
    left = left_out(made)
    if arguments.base in left or len(names) - len(left) < 2:
        raise EndpointError(f"there is nothing to compare without {', '.join(sorted(left))}")
    return made


def _dataset(arguments: argparse.Namespace, settings: "Settings") -> "Dataset":
    from ragforge.files.set.opening import open_dataset

    return choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)


def _names(arguments: argparse.Namespace) -> list[str]:
    """Return the names of all that is to be compared; [] where all that is there is meant."""
    from ragforge.pipeline.run_list import named_specs

    made = named_specs(arguments.retriever, arguments.name)
    return _with_base([*arguments.names, *arguments.run, *made], arguments.base)


def _with_base(names: list[str], base: str | None) -> list[str]:
    """Return the names with the base among them, unless all are meant."""
    return [base, *names] if names and base is not None and base not in names else names


def _options(arguments: argparse.Namespace) -> "ComparisonOptions":
    from ragforge.pipeline.comparing.deciding import ComparisonOptions

    return ComparisonOptions(
        alpha=arguments.alpha,
        baseline=arguments.base,
        only_retrieved=arguments.only_retrieved,
        n_moved=MOVED if arguments.moved is None else arguments.moved,
    )
