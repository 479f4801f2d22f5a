"""Labels by people: asking for them, taking them in, and how far they are."""

from os import PathLike
from pathlib import Path
from typing import Any

from ragforge.api.call import Handle, as_keywords, whole_of
from ragforge.api.outcomes import Counted
from ragforge.api.results import Result
from ragforge.api.sources import Records, as_file, by_rows, is_path
from ragforge.calibration.label_tasks import LabellingSummary, LabelOrder, TakenLabels
from ragforge.deferred import dataclass
from ragforge.files.formats.label_rows import LabelForm
from ragforge.files.set.answer_labels import (
    answer_labels_path,
    answer_sample_path,
    the_answer_calibration,
)
from ragforge.files.set.calibrations import (
    USUAL_NAME,
    CalibrationFiles,
    calibration_files,
    the_calibration,
)
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.answer_labelling import (
    USUAL_ANSWERS,
    AnswerDraw,
    answer_labelling,
    sample_answers,
    take_answer_labels,
    write_answer_page,
)
from ragforge.pipeline.labelling import (
    LabelSelection,
    labeller_name,
    labelling,
    labelling_summary,
    take_label_file,
    write_label_page,
)
from ragforge.pipeline.labelling import export_labels as export_labels_of
from ragforge.report.labelling import (
    answer_sample_json,
    summary_json,
    summary_text,
    taken_json,
    taken_lines,
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Labelled(Result):
    """How far labelling is, and how people agree.

    Args:
        summary: Of all labels that are there.
        taken: What became of rows that were taken in; None where none were.
    """

    summary: LabellingSummary
    taken: TakenLabels | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What became of rows that were taken in, in sentences."""
        return () if self.taken is None else tuple(map(as_keywords, taken_lines(self.taken)))

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge calibrate label --json` prints."""
        told = {} if self.taken is None else taken_json(self.taken)
        return {**told, **summary_json(self.summary)}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each labeller."""
        people = self.to_dict()["labellers"]
        return list(people)

    def table(self) -> str:
        """Return who labelled how much, and how people agree, as text."""
        return "\n".join([*self.notes, as_keywords(summary_text(self.summary))])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LabelFile(Result):
    """A page or a file on which pairs are to be labelled.

    Args:
        path: Of the file.
        n_open: Looks at pairs that have no label.
        n_done: Those that have one; of a page, by its labeller.
        lost: What the form of a file cannot hold, in words.
        n_vanished: Pairs left out of a page: their text is another than drawn.
    """

    path: Path
    n_open: int
    n_done: int
    lost: tuple[str, ...] = ()
    n_vanished: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "file": str(self.path),
            "open": self.n_open,
            "done": self.n_done,
            "lost": list(self.lost),
            "vanished": self.n_vanished,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all counts."""
        return [self.to_dict()]

    def table(self) -> str:
        """Return the counts in words."""
        lost = f"; it cannot hold {', '.join(self.lost)}" if self.lost else ""
        gone = f"; {self.n_vanished:,} vanished" if self.n_vanished else ""
        return f"{self.path}: {self.n_open:,} open, {self.n_done:,} labelled{gone}{lost}"


def write_labelling_page(
    handle: Handle,
    out: str | PathLike[str],
    *,
    labeller: str = "",
    name: str | None = None,
    adjudicate: bool = False,
    only_repeated: bool = False,
    show_answer: bool = False,
    order: LabelOrder = "random",
    most: int | None = None,
) -> LabelFile:
    """Write the offline page on which one person labels the drawn pairs.

    Args:
        handle: The set.
        out: The file.
        labeller: Who labels; the login name where "".
        name: Of the calibration; the only one where None.
        adjudicate: Only the pairs on which others differ.
        only_repeated: Only pairs that are shown twice: enough for a second person's kappa.
        show_answer: Let the expected answer be looked up; it favours its own source.
        order: As drawn, or each 25 of these by document.
        most: Only so many of those without a label.

    Raises:
        DataError: Nothing was drawn, or nothing is open.
        UsageError: The file is one of a set, or `most` is below 1.
    """
    dataset, files = _opened(handle, "write_labelling_page", name)
    name_of = labeller_name(labeller)
    wanted = LabelSelection(name_of, adjudicate, only_repeated, show_answer, order, most)
    found = labelling(dataset, files, wanted)
    write_label_page(dataset, files, found, Path(out))
    return LabelFile(Path(out), len(found.pairs), found.n_done, n_vanished=found.n_vanished)


def add_labels(
    handle: Handle,
    labels: Records,
    *,
    labeller: str = "",
    name: str | None = None,
    overrule: bool = False,
    labels_only: bool = False,
) -> Labelled:
    """Take people's labels in: into the calibration, and as people's grades into the set.

    Rows that cannot be used are left out, counted and told: see `Labelled.notes`.

    Args:
        handle: The set.
        labels: What the page saved, or JSON Lines, CSV, Label Studio or Argilla; or records or a
            data frame with query_id, chunk_id and grade, and labeller, skipped, look, seconds.
        labeller: Who labelled, where that is not in the rows.
        name: Of the calibration; the only one where None.
        overrule: Replace other labels by the same person.
        labels_only: Leave the judgments of the set as they are.

    Raises:
        DataError: Nothing was drawn, or the file cannot be read.
        UsageError: One is given, and the rows name another person, or several.
    """
    dataset, files = _opened(handle, "add_labels", name)
    with as_file(labels, "labels", with_nulls=True) as path:
        taken = take_label_file(
            dataset,
            files,
            path,
            " ".join(labeller.split()),
            overrule=overrule,
            labels_only=labels_only,
        )
    _name_rows(taken.examples, labels, path)
    return Labelled(labelling_summary(dataset, files), taken)


def export_labels(
    handle: Handle,
    out: str | PathLike[str],
    form: LabelForm = "jsonl",
    *,
    labeller: str = "",
    name: str | None = None,
) -> LabelFile:
    """Write the drawn pairs, with the labels there are, for another tool.

    Args:
        handle: The set.
        out: The file.
        form: `jsonl`, `csv`, `label-studio` or `argilla`.
        labeller: Whose labels alone; those of all, and open what nobody labelled, where "".
        name: Of the calibration; the only one where None.

    Raises:
        DataError: Nothing was drawn, or the file cannot be written.
        UsageError: There is no such form, or the file is one of a set.
    """
    dataset, files = _opened(handle, "export_labels", name)
    written = export_labels_of(dataset, files, form, Path(out), " ".join(labeller.split()))
    return LabelFile(Path(out), written.n_open, written.n_labels, written.lost)


def labels(handle: Handle, *, name: str | None = None) -> Labelled:
    """Tell who labelled how much, and how people agree.

    Args:
        handle: The set.
        name: Of the calibration; the only one where None.

    Raises:
        DataError: Nothing was drawn.
    """
    dataset, files = _opened(handle, "labels", name)
    return Labelled(labelling_summary(dataset, files))


def draw_answers(
    handle: Handle,
    *systems: str,
    n: int = USUAL_ANSWERS,
    name: str = USUAL_NAME,
    seed: int = 0,
    again: bool = False,
) -> Counted:
    """Draw answers that people are asked to label; a larger n adds, and spoils none.

    Args:
        handle: The set.
        systems: Whose answers; all of them on the same queries.
        n: Answers in all, about.
        name: Of the calibration.
        seed: Of the draw.
        again: Replace a sample of other systems or of another seed.

    Raises:
        DataError: A system has no answers, or no query has answers of all.
        UsageError: Nothing is asked for, or another sample is there.
    """
    dataset = whole_of(handle, "draw_answers")
    files = calibration_files(dataset, name)
    found = sample_answers(dataset, files, AnswerDraw(systems, n, seed, again))
    return Counted("drawn", answer_sample_json(found, answer_sample_path(files)))


def write_answer_labelling_page(
    handle: Handle, out: str | PathLike[str], *, labeller: str = "", name: str | None = None
) -> LabelFile:
    """Write the offline page on which one person ticks which facts answers state.

    Args:
        handle: The set.
        out: The file.
        labeller: Who labels; the login name where "".
        name: Of the calibration; the only one with a sample of answers where None.

    Raises:
        DataError: No answers were drawn, or all are labelled.
        UsageError: The file is one of a set.
    """
    dataset = whole_of(handle, "write_answer_labelling_page")
    files = the_answer_calibration(dataset, name)
    found = answer_labelling(dataset, files, labeller_name(labeller))
    write_answer_page(dataset, files, found, Path(out))
    return LabelFile(Path(out), len(found.answers), found.n_done)


def add_answer_labels(
    handle: Handle,
    labels: Records,
    *,
    labeller: str = "",
    name: str | None = None,
    overrule: bool = False,
) -> Counted:
    """Take people's labels of answers in; verdict and score follow from the facts.

    Args:
        handle: The set.
        labels: What the page saved; or records with query_id, system, answer_sha256, and facts or
            a verdict.
        labeller: Who labelled, where that is not in the rows.
        name: Of the calibration; the only one with a sample of answers where None.
        overrule: Replace other labels by the same person.

    Raises:
        DataError: No answers were drawn, the file cannot be read, or a row lacks a field.
        UsageError: One is given, and the rows name another person, or several.
    """
    dataset = whole_of(handle, "add_answer_labels")
    files = the_answer_calibration(dataset, name)
    with as_file(labels, "labels", with_nulls=True) as path:
        taken = take_answer_labels(
            dataset, files, path, " ".join(labeller.split()), overrule=overrule
        )
    _name_rows(taken.examples, labels, path)
    told = {"file": str(answer_labels_path(files)), **taken_json(taken)}
    notes = tuple(map(as_keywords, taken_lines(taken)))
    return Counted("labels of answers", told, notes, "\n".join(notes))


def _name_rows(examples: dict[str, str], labels: Records, path: Path) -> None:
    """Let examples of what is left out name rows of what was given, unless that is a file."""
    if not is_path(labels):
        examples.update({reason: by_rows(where, path) for reason, where in examples.items()})


def _opened(handle: Handle, call: str, name: str | None) -> tuple[Dataset, CalibrationFiles]:
    dataset = whole_of(handle, call)
    return dataset, the_calibration(dataset, name)
