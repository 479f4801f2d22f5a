"""Find out how far a judge can be trusted, by labels of people, and correct measures by them.

  plan           tell how many labels give which width, before anybody labels
  sample         draw the pairs that people are asked to grade; a larger -n adds, and spoils none
  label          grade these pairs: on an offline page, in the terminal, or in another tool
  label-answers  tick which facts answers state
  apply          correct P@k, DCG@k and nDCG@k by the labels
  report         hold files of judges' grades against people's: no model, no texts, no dataset

Examples:
  ragforge calibrate plan --dataset set/ --run old --run new -m P@10
  ragforge calibrate sample --dataset set/ --run old --run new -m P@10 -m DCG@10 -n 200
  ragforge calibrate label --dataset set/ --labeller Ann --page ann.html
  ragforge calibrate apply --dataset set/
  ragforge calibrate report --human people.trec --judge gpt.trec
"""

import argparse
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.labelling import (
    add_calibration,
    configure_label,
    configure_label_answers,
    run_label,
    run_label_answers,
    run_sample_answers,
)
from ragforge.cli.next_step import say_next
from ragforge.cli.output import dumps, show
from ragforge.deferred import dataclass
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.calibration.label_files import Labels
    from ragforge.calibration.population import Question
    from ragforge.files.set.dataset import Dataset
    from ragforge.records import Calibration

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]

_REPORT: Final = """Hold files of judges' grades against one of people's.

Files are TREC qrels, CSV with a header or JSON Lines with query_id, chunk_id and grade. A column
`labeller` tells several people apart: a pair counts in equal parts by each who graded it, and
their own agreement is the most that a judge could reach. Weights of panels, routing and the order
of runs go by their middle grade. Grades outside of 0-3 are left out and counted.

kappa is 1 for agreement and 0 for chance; quadratic kappa and alpha forgive near misses. At the
threshold: sensitivity is the share of relevant pairs that the judge finds, specificity that of the
others that it leaves. bias is its grade minus people's. In brackets are 95 % intervals that
resample queries. tau says how alike judge and people order runs, top tau the better half of them.

With --answers the files are about answers: query_id, system and verdict (correct, partial,
incorrect, not_attempted) or score; or which of two answers people prefer: query_id, system_a,
system_b, preference. A judge's scores of both are held against it. Of several people the middle
verdict counts, of two the stricter, and the mean of scores. Labels of an answer that its system
has changed since (answer_sha256), or of which something else is expected now (expected_sha256,
facts_sha256), are left out and counted.

Examples:
  ragforge calibrate report --human people.trec --judge gpt.trec
  ragforge calibrate report --human people.csv --judge a.jsonl --judge b.jsonl --json
  ragforge calibrate report --human people.trec --judge judges/*.trec --run runs/*.trec
  ragforge calibrate report --answers --human people.csv --graded set/answer_grades/rag.jsonl
"""
_SAMPLE: Final = """Draw the pairs that people are asked to grade.

Only pairs that weigh in the measures and runs named are drawn, at random within strata of weight
and judge's grade, and with known probabilities. They go to calibration/NAME/sample.json, in the
order in which to label them: labels count as far as there is no gap. With a larger -n pairs are
added behind. Runs, judge and grades are kept as digests; where one changed, --again draws for what
is there now, and labels on pairs that are drawn again still count. Without --run and -m it draws
for the runs and measures of the sample that is there.

Examples:
  ragforge calibrate sample --dataset set/ --run old --run new -m P@10 -m DCG@10 -n 200
  ragforge calibrate sample --dataset set/ --run new -m nDCG@10 -n 400 --repeat-share 0.1
  ragforge calibrate sample --dataset set/ --again
  ragforge calibrate sample --dataset set/ --answers rag --answers rag-new -n 100
"""
_LABELS: Final = 200
_REPEATS: Final = 0.1
_PLAN: Final = """Tell how wide intervals will be, by the number of labels, and how many part runs.

Without --run it is for the calibration that is there. Before any label the spread is that of judges
of other sets; labels that are there take its place.

Examples:
  ragforge calibrate plan --dataset set/ --run old --run new -m P@10 -m DCG@10
  ragforge calibrate plan --dataset set/ -n 300 -n 600
"""
_APPLY: Final = """Correct measures by the labels, and write calibration/NAME/calibration.json.

Each row has what the judge says alone, what the labels say alone, and both: on these queries, and
on queries like these. "no judge" is the interval of the same labels where the judge gives one grade
to all pairs; the judge's share is how much narrower the judge makes it. A run, a judge or grades
that changed since the sample was drawn are refused. nDCG differences need 100 labels, 40 of them on
retrieved pairs, and 30 queries; its levels rest on a model of the grades: --model-assisted.

Examples:
  ragforge calibrate apply --dataset set/
  ragforge calibrate apply --dataset set/ --name spring --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _configure_plan(actions)
    _configure_sample(actions)
    configure_label(actions)
    configure_label_answers(actions)
    _configure_apply(actions)
    _configure_report(actions)


def _configure_sample(actions: "Actions") -> None:
    sample = actions.add_parser(
        "sample", help="draw the pairs that people are asked to grade", description=_SAMPLE
    )
    _add_question(sample)
    sample.add_argument(
        "--answers",
        action="append",
        default=[],
        metavar="SYSTEM",
        help="draw answers of this system, instead of pairs, for label-answers",
    )
    sample.add_argument(
        "-n",
        dest="n",
        type=int,
        metavar="N",
        help="pairs to label in all (200; with --again alone as many as before)",
    )
    sample.add_argument(
        "--repeat-share",
        type=float,
        default=_REPEATS,
        metavar="X",
        help="share of the pairs that each labeller is shown twice (0.1)",
    )
    _add_seed(sample, "of the draw")
    sample.add_argument(
        "--again",
        action="store_true",
        help="replace a sample that was drawn for other runs, measures or grades; without --run "
        "and -m draw for those of the sample that is there",
    )
    add_json(sample)


def _configure_plan(actions: "Actions") -> None:
    plan = actions.add_parser(
        "plan", help="tell how many labels give which width", description=_PLAN
    )
    _add_question(plan)
    plan.add_argument(
        "-n",
        dest="sizes",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="numbers of labels (50, 100, 200, 400, 800)",
    )
    add_json(plan)


def _configure_apply(actions: "Actions") -> None:
    apply = actions.add_parser("apply", help="correct measures by the labels", description=_APPLY)
    add_calibration(apply)
    apply.add_argument(
        "--model-assisted",
        action="store_true",
        help="give levels of nDCG too, which rest on a model of the grades",
    )
    add_json(apply)


def _add_question(parser: argparse.ArgumentParser) -> None:
    add_calibration(parser)
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME",
        help="a run; the others are held against the first",
    )
    parser.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="NAME",
        help="P@k, DCG@k or nDCG@k",
    )
    parser.add_argument(
        "--of",
        choices=("levels", "differences", "both"),
        default="both",
        help="what is to be known; differences alone need the fewest labels (both)",
    )
    parser.add_argument(
        "--judge",
        metavar="MODEL",
        help="whose grades are corrected, where several judged; where one model judged in several "
        "ways, all that the refusal says of it",
    )
    _add_threshold(parser, "that of the set, else 2")


def _configure_report(actions: "Actions") -> None:
    report = actions.add_parser(
        "report", help="agreement of judges with people", description=_REPORT
    )
    report.add_argument(
        "--human", required=True, type=Path, metavar="FILE", help="labels of people"
    )
    _add_files(report, "--judge", "grades of a judge; as many as there are")
    report.add_argument(
        "--answers", action="store_true", help="the files are about answers: see --graded"
    )
    _add_files(report, "--graded", "answers graded by a judge; as many as there are")
    _add_files(report, "--run", "runs, three or more, whose order is compared")
    report.add_argument(
        "-m", "--measure", default="nDCG@10", metavar="NAME", help="that orders runs (nDCG@10)"
    )
    _add_threshold(report, "2, or 1 where people's grades go no further")
    report.add_argument(
        "--panel-weights",
        action="store_true",
        help="fit weights of the judges as a panel, and try them on queries kept out of the fit",
    )
    report.add_argument(
        "--route",
        action="store_true",
        help="show what is gained where the second judge is asked only what the first one doubts",
    )
    report.add_argument(
        "--by-query", action="store_true", help="show the queries with the largest bias too"
    )
    _add_seed(report, "of the intervals")
    add_json(report)


def _add_files(parser: argparse.ArgumentParser, flag: str, text: str) -> None:
    """Add an option that takes several files, and may be given several times."""
    parser.add_argument(
        flag, nargs="+", action="extend", default=[], type=Path, metavar="FILE", help=text
    )


def _add_threshold(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument(
        "--rel-threshold",
        type=int,
        metavar="N",
        help=f"lowest grade that counts as relevant ({usual})",
    )


def _add_seed(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=f"{text} (0)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    actions = {
        "plan": _plan,
        "sample": _sample,
        "label": run_label,
        "label-answers": run_label_answers,
        "apply": _apply,
        "report": _report,
    }
    return actions[arguments.action](arguments)


def _sample(arguments: argparse.Namespace) -> int:
    is_anew = arguments.again and not (arguments.run or arguments.measure or arguments.answers)
    if arguments.n is None and not is_anew:
        arguments.n = _LABELS
    if arguments.answers:
        return run_sample_answers(arguments)
    if not is_anew and not (arguments.run and arguments.measure):
        raise UsageError("calibrate sample: name runs and measures (--run, -m), or --answers")
    from ragforge.calibration.sampling import SampleOptions
    from ragforge.files.set.calibrations import USUAL_NAME, calibration_files, the_calibration
    from ragforge.pipeline.calibrating import sample_anew, sample_labels
    from ragforge.report.calibration import sample_json, sample_text

    dataset = _dataset(arguments)
    if is_anew:
        _refuse_part_of_question(arguments)
        files = the_calibration(dataset, arguments.name)
        drawn = sample_anew(dataset, arguments.name, arguments.n, arguments.seed or None)
    else:
        again = arguments.again
        options = SampleOptions(arguments.n, arguments.seed, arguments.repeat_share, again)
        files = calibration_files(dataset, arguments.name or USUAL_NAME)
        drawn = sample_labels(dataset, _question(arguments, dataset), options, files.name)
    if arguments.json:
        print(dumps(sample_json(drawn)))
    else:
        show(sample_text(drawn, str(files.folder / "sample.json")))
        words = ["calibrate", "label", *_named(arguments), "--page", "labels.html"]
        say_next(arguments, words, "grade these pairs in a browser")
    return 0


def _refuse_part_of_question(arguments: argparse.Namespace) -> None:
    """Refuse to change a question that is drawn for again.

    Raises:
        UsageError: A part of it is given.
    """
    given = {
        "--of": arguments.of != "both",
        "--judge": arguments.judge is not None,
        "--rel-threshold": arguments.rel_threshold is not None,
        "--repeat-share": arguments.repeat_share != _REPEATS,
    }
    for flag, is_given in given.items():
        if is_given:
            raise UsageError(f"{flag}: goes with --run and -m")


def _plan(arguments: argparse.Namespace) -> int:
    from ragforge.pipeline.calibrating import plan_calibration
    from ragforge.report.calibration import plan_json, plan_text

    if bool(arguments.run) != bool(arguments.measure):
        raise UsageError("--run and -m go together")
    dataset = _dataset(arguments)
    question = _question(arguments, dataset) if arguments.run else None
    plan = plan_calibration(dataset, question, arguments.name, arguments.sizes)
    if arguments.json:
        print(dumps(plan_json(plan)))
    else:
        show(plan_text(plan))
    return 0


def _apply(arguments: argparse.Namespace) -> int:
    from ragforge.pipeline.calibrating import apply_calibration
    from ragforge.report.calibration import calibration_json, calibration_text

    found = apply_calibration(
        _dataset(arguments), arguments.name, model_assisted=arguments.model_assisted
    )
    for warning in found.warnings:
        say(f"warning: {warning}")
    if arguments.json:
        print(dumps(calibration_json(found)))
    else:
        show(calibration_text(found))
        _after_apply(arguments, found)
    return 0


def _after_apply(arguments: argparse.Namespace, found: "Calibration") -> None:
    """Say what comes after labels were applied: more of them, or a decision by them."""
    if found.labels.n_open:
        words = ["calibrate", "label", *_named(arguments), "--page", "labels.html"]
        say_next(arguments, words, f"{found.labels.n_open:,} drawn pairs have no label yet")
    elif len(found.runs) > 1:
        measures = [word for name in found.measures for word in ("-m", name)]
        words = ["--dataset", str(arguments.dataset), *(run.name for run in found.runs), *measures]
        by = ["--calibration", arguments.name] if arguments.name else ["--calibrated"]
        say_next(arguments, ["compare", *words, *by], "which is better, by people's labels?")


def _named(arguments: argparse.Namespace) -> list[str]:
    name = ["--name", arguments.name] if arguments.name else []
    return ["--dataset", str(arguments.dataset), *name]


def _dataset(arguments: argparse.Namespace) -> "Dataset":
    from ragforge.files.set.opening import open_dataset

    return open_dataset(arguments.dataset)


def _question(arguments: argparse.Namespace, dataset: "Dataset") -> "Question":
    from ragforge.pipeline.calibrating import question_of

    return question_of(
        dataset,
        arguments.run,
        arguments.measure,
        of=arguments.of,
        judge=arguments.judge,
        rel_threshold=arguments.rel_threshold,
    )


def _report(arguments: argparse.Namespace) -> int:
    if arguments.answers:
        return _report_answers(arguments)
    if arguments.graded:
        raise UsageError("--graded names graded answers: give --answers too, or --judge FILE")
    from ragforge.pipeline.judge_table import compare_judge_files
    from ragforge.report.judge_table import (
        judge_table_json,
        judge_table_text,
        left_out_json,
        scale_warnings,
        skipped_lines,
    )

    found = compare_judge_files(
        arguments.human,
        arguments.judge,
        threshold=arguments.rel_threshold,
        runs=arguments.run,
        measure=arguments.measure,
        seed=arguments.seed,
    )
    for line in skipped_lines(found.labels):
        say(line)
    for line in scale_warnings(found.labels, found.threshold):
        say(line)
    together = _judges_together(arguments, found.labels, found.threshold)
    if arguments.json:
        left_out = {"left_out": left_out_json(found.labels)}
        print(dumps({**judge_table_json(found.report), **left_out, **together.fields}))
    else:
        show(judge_table_text(found.report, by_query=arguments.by_query))
        for text in together.texts:
            show(f"\n{text}")
    return 0


@dataclass(frozen=True, slots=True)
class _Together:
    """What several judges come to together, as JSON and as text."""

    fields: dict[str, object] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)


def _judges_together(
    arguments: argparse.Namespace, labels: "Sequence[Labels]", threshold: int
) -> _Together:
    from ragforge.calibration.judge_table import report_panel, report_routing
    from ragforge.report.judge_table import panel_json, panel_text, routing_json, routing_text

    people, *judges = labels
    seed = arguments.seed
    together = _Together()
    if arguments.panel_weights:
        panel = report_panel(people, judges, threshold=threshold, seed=seed)
        together.fields["panel"] = panel_json(panel)
        together.texts.append(panel_text(panel))
    if arguments.route:
        if len(judges) != 2:
            raise UsageError("--route: name two judges, the cheap one first")
        routing = report_routing(people, *judges, threshold=threshold, seed=seed)
        together.fields["routing"] = routing_json(routing)
        together.texts.append(routing_text(routing))
    return together


def _report_answers(arguments: argparse.Namespace) -> int:
    from ragforge.evaluating.formatting import plural
    from ragforge.pipeline.judge_table import compare_answer_files
    from ragforge.report.judge_table import answer_table_json, answer_table_text

    if arguments.judge:
        raise UsageError("--judge names grades of chunks: with --answers give --graded FILE")
    if arguments.panel_weights or arguments.route:
        raise UsageError("--panel-weights and --route are for grades of chunks, not for --answers")
    report = compare_answer_files(arguments.human, arguments.graded)
    for reason, n in report.left_out.items():
        say(f"{arguments.human.name}: {plural(n, 'row')} left out: {reason}")
    if arguments.json:
        print(dumps(answer_table_json(report)))
    else:
        show(answer_table_text(report))
    return 0
