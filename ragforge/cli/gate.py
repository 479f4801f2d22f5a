r"""Decide whether a run may ship: thresholds and a baseline in, an exit code out (0 pass, 1 fail).

Each rule has one of three outcomes. PASS: shown to be held, as the low end of the mean's 95 %
interval is at or above the threshold. FAIL: shown not to be held, as not even the high end is; of a
drop: its whole interval is one, and the test of `compare` finds it. NOT SHOWN: neither, with how
many queries would tell. A run that is not shown to fail passes (exit code 0); --fail-on not-shown
stops it as well. --point decides on means, as if these queries were all that counts. --max-drop
looks at the paired differences from a baseline: a file written by --write-baseline and kept in git,
`last` (the newest evaluation of the history that differs from now; the newest where all are like
now, so that nothing fell), or `main` (the file as the main branch has it). Where grades changed
since, the baseline's rankings are scored again on the grades of now. Failures count at their worst.
The gate refuses, with exit code 1, what it cannot judge: too few queries, many ungraded chunks, the
offline judge or a mock, a baseline of other items or judges. With --sample N or --split, and for a
run made with them, it decides on those queries: means are of the whole set, each stratum of the
sample by its weight, and their intervals are over queries like these, so that a sample never passes
by knowing more than the set. A baseline of other queries is refused; --allow-dataset-change holds
against it on those in common. Where it fails (exit code 1, not 2 or 3), notify_command and
notify_url of [refresh] are told. With --judge-as-needed, a budget that ends before the rule is
decided is exit code 5; --junit, --markdown and --github then tell of a refusal.

Examples:
  ragforge gate --dataset set/ --run bm25 --min nDCG@10=0.60 --max-failures 1%
  ragforge gate --dataset set/ --run bm25 --write-baseline set/baseline.json
  ragforge gate --dataset set/ --run new --max-drop RR=0.02 --baseline main --github --junit g.xml
  ragforge gate --qrels qrels.trec --run new.trec --min nDCG@10=0.60 --max-drop RR=0.02 \
      --baseline baseline.json
  ragforge gate --dataset set/ --min nDCG@10=0.6 --max-drop RR=0.02 --plan
  ragforge gate --dataset set/ --base old --run new --max-drop DCG@10=0.2 --judge-as-needed \
      --model gpt-5-mini --max-cost-usd 1
  ragforge gate --dataset set/ --answers mine --min correct=0.8 --max hallucination=0.05
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import (
    add_calibrated,
    add_common,
    add_json,
    add_mode,
    add_selection,
    calibration_of,
    choose_queries,
    job_of,
    observed,
    refuse_calibrated,
    refuse_selection,
    run_async,
    settings_of,
)
from ragforge.cli.measured_files import add_measured, measured
from ragforge.cli.next_step import after_gate
from ragforge.cli.output import print_estimate, print_result
from ragforge.cli.parser import Once
from ragforge.errors import BudgetError, DataError, UsageError

if TYPE_CHECKING:
    from ragforge.config import RefreshSettings
    from ragforge.evaluating.gate import Allowance, Rules, Verdict
    from ragforge.pipeline.gating.subjects import Subject

FAIL_ON: Final = ("regression", "not-shown")
_ALLOW: "Final[dict[Allowance, str]]" = {
    "few": "decide on fewer queries than --min-queries",
    "holes": "decide though more chunks than --max-holes have no grade",
    "baseline-judge": "decide though most grades, or for a drop any, are of the offline judge "
    "or a mock",
    "dataset-change": "hold against a baseline of another dataset or version, on equal items only; "
    "leave out those that cannot be compared any more",
    "grading-change": "hold against a baseline of another judge, prompt or relevance threshold, "
    "or though the judge drifted since",
}
COMMON = (
    "--dataset",
    "--qrels",
    "--run",
    "--answers",
    "--min",
    "--max",
    "--max-drop",
    "--plan",
    "--baseline",
    "--max-failures",
    "--point",
    "--fail-on",
    "--judge-as-needed",
    "--junit",
    "--markdown",
    "--github",
    "--json",
)
"""Options of the short help, in its order."""
_FLAGS_OF_JUDGE_ALONE = ("split",)
"""The command's own --split is of all it does."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_measured(parser)
    parser.add_argument(
        "--run",
        action=Once,
        metavar="NAME",
        help="which run (default: the only one); with --qrels its file",
    )
    parser.add_argument(
        "--answers",
        action=Once,
        metavar="SYSTEM",
        help="decide on the graded answers of a system instead",
    )
    add_selection(parser)
    _add_rules(parser)
    add_calibrated(parser)
    _add_baseline(parser)
    allowances = parser.add_argument_group("what else would refuse the gate")
    for name, text in _ALLOW.items():
        allowances.add_argument(f"--allow-{name}", action="store_true", help=text)
    out = parser.add_argument_group("outputs")
    add_json(parser)
    out.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    out.add_argument("--markdown", type=Path, metavar="FILE", help="write a comment below 60 kB")
    out.add_argument(
        "--github",
        action="store_true",
        help="print annotations, and append to the file $GITHUB_STEP_SUMMARY",
    )
    judging = parser.add_argument_group("judging what the rule needs")
    judging.add_argument(
        "--judge-as-needed",
        action="store_true",
        help="hold --run against another run of the set, --base: grade pairs of both by --model "
        "only until one --max-drop of DCG@k, P@k, RR or Success@k is decided on",
    )
    judging.add_argument("--base", action=Once, metavar="NAME", help="the run that ships now")
    add_mode(parser, again=True)
    add_common(
        parser, "evaluate", "judge", "model", "budget", "prompts", without=_FLAGS_OF_JUDGE_ALONE
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.gating import GateBasis, GateDecision, decide

    rules = rules_of(arguments)
    if arguments.plan:
        return _plan(arguments, rules)
    if arguments.judge_as_needed:
        return _held_as_needed(arguments, rules)
    _refuse_judging(arguments)
    _check_outputs(arguments)
    settings = settings_of(arguments)
    observer = Progress(arguments.quiet)
    if arguments.qrels is not None:
        _check_files(arguments, rules)
    with measured(arguments, observer) as (opened, names):
        dataset = choose_queries(arguments, opened, settings.model.seed)
        calibration = calibration_of(arguments, dataset)
        held = GateBasis(
            arguments.baseline, arguments.baseline_file, _allowed(arguments), calibration
        )
        name = next(iter(names), None)
        subject, verdict = decide(dataset, name, arguments.answers, rules, held, settings.evaluate)
    print_result(GateDecision(verdict), as_json=arguments.json)
    _write_outputs(arguments, verdict)
    if arguments.write_baseline is not None:
        _write_baseline(arguments.write_baseline, subject, verdict)
    if not verdict.passed:
        _notify(verdict, settings.refresh, observer)
    after_gate(arguments, verdict)
    return 0 if verdict.passed else 1


def _plan(arguments: argparse.Namespace, rules: "Rules") -> int:
    """Print what the rules can show with the queries of a set."""
    if arguments.dataset is None or arguments.answers is not None:
        raise UsageError("--plan goes with --dataset DIR, and with rules of retrieval")
    from ragforge.api.planned import PlannedGate
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.planning import plan_gate

    settings = settings_of(arguments)
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    names = [] if arguments.run is None else [arguments.run]
    print_result(
        PlannedGate(plan_gate(dataset, names, settings.evaluate, rules)), as_json=arguments.json
    )
    return 0


def _held_as_needed(arguments: argparse.Namespace, rules: "Rules") -> int:
    """Judge pairs of two runs until a drop is decided on."""
    from ragforge.api.needed_gate import hold_as_needed, needed_gate, undecided
    from ragforge.files.set.opening import open_dataset

    if None in (arguments.dataset, arguments.run, arguments.base):
        raise UsageError("--judge-as-needed goes with --dataset DIR, --run NAME and --base NAME")
    given = [name for name in ("baseline", "write_baseline", "answers") if getattr(arguments, name)]
    if given:
        raise UsageError(f"--{given[0].replace('_', '-')}: does not go with --judge-as-needed")
    _check_outputs(arguments)
    if arguments.allow_few:
        rules = replace(rules, min_queries=0)
    names = (arguments.base, arguments.run)
    settings = settings_of(arguments)
    dataset = choose_queries(arguments, open_dataset(arguments.dataset), settings.model.seed)
    with observed(arguments) as observer:
        job = job_of(arguments, settings, observer)
        try:
            found = run_async(hold_as_needed(dataset, names, rules, job))
        except BudgetError as error:
            _write_outputs(arguments, undecided(dataset, names, rules, str(error)))
            raise
    if isinstance(found, dict):
        print_estimate(found, as_json=arguments.json)
        return 0
    held = needed_gate(dataset, found, rules)
    for warning in held.warnings:
        say(f"warning: {warning}")
    print_result(held, as_json=arguments.json)
    _write_outputs(arguments, held.verdict)
    if not held.passed:
        _notify(held.verdict, settings.refresh, Progress(arguments.quiet))
    return 0 if held.passed else 1


def _notify(verdict: "Verdict", settings: "RefreshSettings", observer: Progress) -> None:
    """Tell of a gate that did not pass."""
    from ragforge.pipeline.notifying import notify_gate  # A gate that passes needs none of it.

    notify_gate(verdict, settings, observer)


def _refuse_judging(arguments: argparse.Namespace) -> None:
    """Refuse flags of judging where nothing is judged.

    Raises:
        UsageError: One is given.
    """
    flags = ("base", "dry_run", "retry_failed", "offline_replay", "again", "observer")
    given = [name for name in flags if getattr(arguments, name)]
    if given:
        raise UsageError(f"--{given[0].replace('_', '-')}: goes with --judge-as-needed")


def _check_files(arguments: argparse.Namespace, rules: "Rules") -> None:
    """Refuse what only a dataset has.

    Raises:
        UsageError: It is asked for.
    """
    from ragforge.measures.measure_names import require_judgments_only

    refuse_selection(arguments)
    refuse_calibrated(arguments)
    require_judgments_only(rules.measures)
    if arguments.answers is not None:
        raise UsageError("--answers goes with --dataset DIR, which has the answers")
    if arguments.baseline == "last":
        raise UsageError(
            "--baseline last: goes with --dataset DIR, which has a history; name a file"
        )
    if arguments.baseline == "main" and arguments.baseline_file is None:
        raise UsageError("--baseline main: with --qrels, name the file with --baseline-file")


def _add_rules(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--min",
        action="append",
        default=[],
        metavar="MEASURE=X",
        help="mean that must be reached, such as nDCG@10=0.70; several may be given",
    )
    rules.add_argument(
        "--max",
        action="append",
        default=[],
        metavar="MEASURE=X",
        help="mean that must not be passed, of measures of which less is better: hallucination",
    )
    rules.add_argument(
        "--max-drop",
        action="append",
        default=[],
        metavar="MEASURE=X",
        help="how much lower than the baseline's a mean may be, such as RR=0.02; RR=auto for the "
        "least that the queries can rule out",
    )
    rules.add_argument(
        "--plan",
        action="store_true",
        help="before there is a run: say what each rule can show with these queries, and end",
    )
    rules.add_argument(
        "--max-failures", metavar="SHARE", help="queries that may have failed: 1%% or 0.01"
    )
    rules.add_argument(
        "--min-queries", metavar="N", help="refuse to decide on fewer queries. Default: 25."
    )
    rules.add_argument(
        "--max-holes",
        metavar="SHARE",
        help="refuse where more of the top 10 have no grade. Default: 10%%.",
    )
    rules.add_argument(
        "--point", action="store_true", help="decide on means, not on ends of their intervals"
    )
    rules.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default=FAIL_ON[0],
        help="what stops a run: a regression that is shown (a mean below its threshold, a drop), "
        "or also what is not shown either way. Default: regression.",
    )


def _add_baseline(parser: argparse.ArgumentParser) -> None:
    baseline = parser.add_argument_group("baseline")
    baseline.add_argument(
        "--baseline", action=Once, metavar="FILE|last|main", help="what it is held against"
    )
    baseline.add_argument(
        "--baseline-file",
        type=Path,
        metavar="FILE",
        help="the file that `--baseline main` reads. Default: DIR/baseline.json.",
    )
    baseline.add_argument(
        "--write-baseline",
        type=Path,
        metavar="FILE",
        help="write this run as a baseline, if all rules are shown to be held",
    )


def rules_of(arguments: argparse.Namespace) -> "Rules":
    """Return the rules that flags name; a `UsageError` tells which cannot be taken."""
    from ragforge.api.gating import GivenRules
    from ragforge.api.gating import rules_of as rules_given

    rules = rules_given(
        GivenRules(
            least=arguments.min,
            most=arguments.max,
            drops=arguments.max_drop,
            max_failures=arguments.max_failures,
            min_queries=arguments.min_queries,
            max_holes=arguments.max_holes,
            by_point=arguments.point,
            answers=arguments.answers,
            dashes="--",
            fail_on=arguments.fail_on,
        )
    )
    _check_together(arguments, rules)
    return rules


def _check_together(arguments: argparse.Namespace, rules: "Rules") -> None:
    if arguments.answers is not None and arguments.run is not None:
        raise UsageError("give either --run NAME or --answers SYSTEM")
    if not rules.n_checks and arguments.write_baseline is None:
        raise UsageError(
            "nothing to check: give --min MEASURE=X, --max-drop MEASURE=X or --max-failures SHARE"
        )
    is_held_otherwise = arguments.plan or arguments.judge_as_needed
    if rules.drops and arguments.baseline is None and not is_held_otherwise:
        raise UsageError("--max-drop needs a --baseline: FILE, last or main")
    if arguments.baseline_file is not None and arguments.baseline != "main":
        raise UsageError("--baseline-file goes with `--baseline main`")


def _check_outputs(arguments: argparse.Namespace) -> None:
    from ragforge.files.set.output_paths import BASELINE, check_outputs

    named = arguments.baseline
    is_file = named is not None and named not in ("last", "main")
    outputs = {"--junit": arguments.junit, "--markdown": arguments.markdown}
    inputs = {"--baseline-file": arguments.baseline_file, "--config": arguments.config}
    check_outputs(
        {**outputs, BASELINE: arguments.write_baseline},
        {**inputs, "--baseline": Path(named) if is_file else None},
    )


def _allowed(arguments: argparse.Namespace) -> "list[Allowance]":
    return [name for name in _ALLOW if getattr(arguments, f"allow_{name.replace('-', '_')}")]


def _write_outputs(arguments: argparse.Namespace, verdict: "Verdict") -> None:
    """Write the verdict in the forms that are asked for beside what is printed."""
    from ragforge.files.atomic import write_whole

    if arguments.junit is not None:
        from ragforge.report.junit import render_junit

        write_whole(arguments.junit, [render_junit(verdict)])
    if arguments.markdown is not None:
        from ragforge.report.gate import render_gate_markdown

        write_whole(arguments.markdown, [render_gate_markdown(verdict)])
    if arguments.github:
        _tell_github(verdict, as_json=arguments.json)


def _tell_github(verdict: "Verdict", *, as_json: bool) -> None:
    from ragforge.report.gate import annotations

    # The runner reads commands from both streams; stdout may have to be JSON alone.
    stream = sys.stderr if as_json else sys.stdout
    for line in annotations(verdict):
        print(line, file=stream)
    named = os.environ.get("GITHUB_STEP_SUMMARY")
    if not named:
        say("no step summary was written: GITHUB_STEP_SUMMARY is not set")
        return
    _append_summary(Path(named), verdict)


def _append_summary(path: Path, verdict: "Verdict") -> None:
    from ragforge.report.gate import step_summary

    try:
        with path.open("ab") as stream:
            text = step_summary(verdict, stream.tell() + 1)
            stream.write(f"\n{text}".encode() if text else b"")
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
    if not text:
        say(f"no step summary was written: {path} has no room left below 1 MiB")


def _write_baseline(path: Path, subject: "Subject", verdict: "Verdict") -> None:
    from ragforge.files.set.baseline import write_baseline

    if not verdict.is_shown:
        why = "not all rules are shown to be held" if verdict.passed else "the gate did not pass"
        say(f"{path}: not written, as {why}")
        return
    write_baseline(path, subject.baseline)
    checked = "" if verdict.checks else "nothing checked; "
    say(f"{path}: {checked}baseline of {subject.evaluation.run} written")
