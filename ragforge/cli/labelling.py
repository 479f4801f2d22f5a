"""`ragforge calibrate label`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural

if TYPE_CHECKING:
    from ragforge.calibration.label_tasks import TakenLabels
    from ragforge.files.set.calibrations import CalibrationFiles
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.answer_labelling import AnswerLabelling
    from ragforge.pipeline.labelling import LabelSelection

LABEL: Final = """Grade the pairs of a sample, one at a time, without seeing what the judge said.

--page writes one offline file; its labels are saved from it and read with --from. --terminal asks
here. `ragforge view DIR --label NAME` serves the page. Keys: 0 to 3 grade, s skips, u takes back.
Without any of them: who labelled how much, and how people agree.

Labels become people's grades in the set. What a person said before stands. A judge's grade of the
pair goes to label_checks.jsonl, where `calibrate apply` finds it; --labels-only leaves it in place.

Examples:
  ragforge calibrate label --dataset set/ --labeller Ann --page ann.html
  ragforge calibrate label --dataset set/ --from labels-Ann.jsonl
  ragforge calibrate label --dataset set/ --labeller Bob --only-repeated --terminal
  ragforge calibrate label --dataset set/ --export label-studio --out tasks.json
"""
LABEL_ANSWERS: Final = """Tick which facts answers state, without seeing who answered or judged.

The answers are those that `calibrate sample --answers` drew. --page writes one offline file; its
labels are saved from it and read with --from. --terminal asks here. `ragforge view DIR --label
NAME` serves the page.
Keys: 1 to 9 turn the status of a fact, m says that more is stated, Enter goes on, s skips, u takes
back. Verdict and score follow from the facts as for a judge; where a query has no facts the verdict
is asked for. Labels go to calibration/NAME/answer_labels.jsonl, which `calibrate report` reads.

Examples:
  ragforge calibrate sample --dataset set/ --answers rag --answers rag-new -n 100
  ragforge calibrate label-answers --dataset set/ --labeller Ann --page answers.html
  ragforge calibrate label-answers --dataset set/ --from answer-labels-Ann.jsonl
  ragforge calibrate label-answers --dataset set/ --labeller Bob --terminal
"""
_FORMS: Final = ("jsonl", "csv", "label-studio", "argilla")


def configure_label(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the action `label` with its arguments."""
    label = actions.add_parser("label", help="grade the pairs of a sample", description=LABEL)
    how = _add_labelling(label, "from the page, CSV, JSON Lines, Label Studio, Argilla")
    how.add_argument("--export", choices=_FORMS, metavar="FORM", help=", ".join(_FORMS))
    label.add_argument("--out", type=Path, metavar="FILE", help="of --export")
    label.add_argument(
        "--adjudicate", action="store_true", help="settle pairs on which others differ"
    )
    label.add_argument(
        "--only-repeated",
        action="store_true",
        help="only pairs that are shown twice: enough for a second person's kappa",
    )
    label.add_argument(
        "--show-answer",
        action="store_true",
        help="let the expected answer be looked up; it favours its own source",
    )
    label.add_argument(
        "--order",
        choices=("random", "document"),
        default="random",
        help="as drawn, or each 25 of these by document (default: random)",
    )
    label.add_argument("--most", type=int, metavar="N", help="only the first N without a label")
    label.add_argument(
        "--labels-only", action="store_true", help="leave the judgments of the set as they are"
    )
    add_json(label)


def configure_label_answers(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add the action `label-answers` with its arguments."""
    label = actions.add_parser(
        "label-answers", help="tick which facts answers state", description=LABEL_ANSWERS
    )
    _add_labelling(label, "from the page", required=True)
    add_json(label)


def add_calibration(parser: argparse.ArgumentParser) -> None:
    """Add which calibration of which set is meant."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the dataset")
    parser.add_argument(
        "--name", metavar="NAME", help="of the calibration (people, or the only one there is)"
    )


def _add_labelling(
    label: argparse.ArgumentParser, sources: str, *, required: bool = False
) -> argparse._MutuallyExclusiveGroup:
    """Add what labelling pairs and labelling answers have in common; return the ways to label."""
    add_calibration(label)
    label.add_argument("--labeller", default="", metavar="NAME", help="who labels (the login name)")
    how = label.add_mutually_exclusive_group(required=required)
    how.add_argument("--page", type=Path, metavar="FILE", help="write the offline page")
    how.add_argument("--terminal", action="store_true", help="ask here")
    how.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help=f"take labels in: {sources}"
    )
    label.add_argument(
        "--overrule", action="store_true", help="replace other labels by the same person"
    )
    return how


def run_sample_answers(arguments: argparse.Namespace) -> int:
    """Draw answers: the action `sample` with `--answers`."""
    from ragforge.files.set.answer_labels import answer_sample_path
    from ragforge.files.set.calibrations import USUAL_NAME, calibration_files
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.answer_labelling import AnswerDraw, sample_answers
    from ragforge.report.labelling import answer_sample_json

    if arguments.run or arguments.measure:
        raise UsageError("calibrate sample: --answers goes without --run and -m")
    dataset = open_dataset(arguments.dataset)
    files = calibration_files(dataset, arguments.name or USUAL_NAME)
    systems = tuple(dict.fromkeys(arguments.answers))
    draw = AnswerDraw(systems, arguments.n, arguments.seed, arguments.again)
    found = sample_answers(dataset, files, draw)
    path = answer_sample_path(files)
    if arguments.json:
        print(dumps(answer_sample_json(found, path)))
        return 0
    n = len(found.query_ids)
    answers, queries = plural(n * len(systems), "answer"), plural(n, "query", "queries")
    say(f"{answers} to {queries} of {found.n_queries:,}")
    print(path)
    return 0


def run_label_answers(arguments: argparse.Namespace) -> int:
    """Run the action."""
    from ragforge.files.set.answer_labels import answer_labels_path, the_answer_calibration
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.answer_labelling import (
        answer_labelling,
        take_answer_labels,
        write_answer_page,
    )
    from ragforge.pipeline.labelling import labeller_name
    from ragforge.report.labelling import taken_json, taken_lines

    dataset = open_dataset(arguments.dataset)
    files = the_answer_calibration(dataset, arguments.name)
    told: dict[str, object] = {"file": str(answer_labels_path(files))}
    if arguments.source is not None:
        labeller = " ".join(arguments.labeller.split())
        taken = take_answer_labels(
            dataset, files, arguments.source, labeller, overrule=arguments.overrule
        )
        _refuse_none(taken, arguments.source)
        told |= taken_json(taken)
        lines = taken_lines(taken)
    else:
        found = answer_labelling(dataset, files, labeller_name(arguments.labeller))
        told |= {"labeller": found.labeller, "answers": len(found.answers)}
        if arguments.page is not None:
            write_answer_page(dataset, files, found, arguments.page)
            told["file"] = str(arguments.page)
            lines = [f"{plural(len(found.answers), 'answer')} for {found.labeller}"]
        else:
            n = _answers_in_terminal(dataset, files, found)
            told["labelled"] = n
            lines = [f"{plural(n, 'answer')} labelled, {len(found.answers) - n:,} open"]
    if arguments.json:
        print(dumps(told))
        return 0
    for line in lines:
        say(line)
    print(told["file"])
    return 0


def _answers_in_terminal(
    dataset: "Dataset", files: "CalibrationFiles", found: "AnswerLabelling"
) -> int:
    from ragforge.cli.label_terminal import ask_about_answers, opened_terminal

    with opened_terminal(sys.stdin, sys.stderr) as terminal:
        return ask_about_answers(dataset, found, files, terminal)


def run_label(arguments: argparse.Namespace) -> int:
    """Run the action."""
    from ragforge.files.set.calibrations import the_calibration
    from ragforge.files.set.opening import open_dataset

    if (arguments.export is None) != (arguments.out is None):
        raise UsageError("calibrate label: --export and --out go together")
    if arguments.adjudicate and (arguments.export is not None or arguments.source is not None):
        raise UsageError(
            "calibrate label: --adjudicate goes with --page or --terminal; labels that such a page "
            "saved say that they settle a pair, and --from takes them in without it"
        )
    dataset = open_dataset(arguments.dataset)
    files = the_calibration(dataset, arguments.name)
    if arguments.page is not None:
        _page(arguments, dataset, files)
    elif arguments.terminal:
        _terminal(arguments, dataset, files)
    elif arguments.source is not None:
        _take(arguments, dataset, files)
    elif arguments.export is not None:
        _export(arguments, dataset, files)
    else:
        _summary(arguments, dataset, files)
    return 0


def _wanted(arguments: argparse.Namespace) -> "LabelSelection":
    from ragforge.pipeline.labelling import LabelSelection, labeller_name

    return LabelSelection(
        labeller_name(arguments.labeller),
        arguments.adjudicate,
        arguments.only_repeated,
        arguments.show_answer,
        arguments.order,
        arguments.most,
    )


def _page(arguments: argparse.Namespace, dataset: "Dataset", files: "CalibrationFiles") -> None:
    from ragforge.pipeline.labelling import labelling, write_label_page

    found = labelling(dataset, files, _wanted(arguments))
    write_label_page(dataset, files, found, arguments.page)
    told = {
        "file": str(arguments.page),
        "labeller": found.labeller,
        "pairs": len(found.pairs),
        "done": found.n_done,
        "vanished": found.n_vanished,
    }
    if arguments.json:
        print(dumps(told))
        return
    say(f"{plural(len(found.pairs), 'pair')} for {found.labeller}, {found.n_done:,} done before")
    if found.n_vanished:
        say(f"{found.n_vanished:,} left out: their text is another than drawn")
    print(arguments.page)


def _terminal(arguments: argparse.Namespace, dataset: "Dataset", files: "CalibrationFiles") -> None:
    from ragforge.calibration.label_tasks import TakenLabels
    from ragforge.cli.label_terminal import ask, opened_terminal
    from ragforge.pipeline.labelled_grades import put_into_judgments
    from ragforge.pipeline.labelling import labelling

    found = labelling(dataset, files, _wanted(arguments))
    if found.n_vanished:
        say(f"{found.n_vanished:,} left out: their text is another than drawn")
    with opened_terminal(sys.stdin, sys.stderr) as terminal:
        n = ask(found, files, terminal)
    taken = TakenLabels(n_new=n)
    if not arguments.labels_only:
        put_into_judgments(dataset, files, taken)
    _tell(taken, dataset, files, as_json=arguments.json)


def _take(arguments: argparse.Namespace, dataset: "Dataset", files: "CalibrationFiles") -> None:
    from ragforge.pipeline.labelling import take_label_file

    taken = take_label_file(
        dataset,
        files,
        arguments.source,
        " ".join(arguments.labeller.split()),
        overrule=arguments.overrule,
        labels_only=arguments.labels_only,
    )
    _refuse_none(taken, arguments.source)
    _tell(taken, dataset, files, as_json=arguments.json)


def _refuse_none(taken: "TakenLabels", source: Path) -> None:
    """Refuse a file of which no row can be used.

    Raises:
        DataError: All rows were left out.
    """
    if taken.left_out and not (taken.n_new or taken.n_known or taken.n_changed or taken.n_standing):
        why = "; ".join(f"{text} ({taken.examples[text]})" for text in taken.left_out)
        raise DataError(f"{source}: no label was taken in: {why}")


def _tell(
    taken: "TakenLabels", dataset: "Dataset", files: "CalibrationFiles", *, as_json: bool
) -> None:
    from ragforge.pipeline.labelling import labelling_summary
    from ragforge.report.labelling import summary_json, summary_text, taken_json, taken_lines

    summary = labelling_summary(dataset, files)
    if as_json:
        print(dumps({**taken_json(taken), **summary_json(summary)}))
        return
    for line in taken_lines(taken):
        say(line)
    show(summary_text(summary))


def _export(arguments: argparse.Namespace, dataset: "Dataset", files: "CalibrationFiles") -> None:
    from ragforge.files.formats.label_rows import LABEL_STUDIO_CONFIG
    from ragforge.pipeline.labelling import export_labels

    out = arguments.out
    written = export_labels(
        dataset, files, arguments.export, out, " ".join(arguments.labeller.split())
    )
    if arguments.json:
        told = {"labels": written.n_labels, "open": written.n_open, "lost": list(written.lost)}
        print(dumps({"file": str(out), **told}))
        return
    say(f"{plural(written.n_labels, 'label')}, {written.n_open:,} open")
    if written.lost:
        say(f"what {arguments.export} cannot hold: {', '.join(written.lost)}")
    if arguments.export == "label-studio":
        say(f"labelling interface of the project:\n{LABEL_STUDIO_CONFIG}")
    print(out)


def _summary(arguments: argparse.Namespace, dataset: "Dataset", files: "CalibrationFiles") -> None:
    from ragforge.pipeline.labelling import labelling_summary
    from ragforge.report.labelling import summary_json, summary_text

    summary = labelling_summary(dataset, files)
    if arguments.json:
        print(dumps(summary_json(summary)))
    else:
        show(summary_text(summary))
