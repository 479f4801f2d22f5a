"""Labelling by people: what they are shown, and taking in what they say."""

import getpass
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ragforge.calibration.label_files import (
    CONTRADICTED,
    NO_GRADE,
    NOT_WHOLE,
    OUTSIDE,
    PairKey,
    PairText,
    are_binary,
    begins_at_1,
)
from ragforge.calibration.label_tasks import (
    DECIDING_LOOK,
    LabellingSummary,
    LabelOrder,
    LabelTask,
    Place,
    ShownPair,
    TakenLabels,
    disagreements,
    labelling_order,
    open_tasks,
    pair_text,
    summarise_labels,
)
from ragforge.calibration.text_places import TextPlaces
from ragforge.calibration.worded_labels import worded_labels
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import visible
from ragforge.files.atomic import write_whole
from ragforge.files.formats.label_rows import (
    LabelForm,
    LabelRow,
    WrittenLabels,
    grade_of_row,
    read_label_rows,
    write_label_rows,
)
from ragforge.files.row import parse_whole
from ragforge.files.set.calibrations import USUAL_NAME, CalibrationFiles, label_key
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.output_paths import check_outputs
from ragforge.files.text import shown
from ragforge.pipeline.labelled_grades import put_into_judgments
from ragforge.pipeline.shown_words import (
    example_of,
    is_in_doubt,
    other_passage,
    other_question,
)
from ragforge.records import Label, Query, SampledPair
from ragforge.records.judgments import wording_digest
from ragforge.report.page.labelling import LabelSheet, render_labelling

NOT_DRAWN: Final = "pair is not in the sample"
OTHER_TEXT: Final = "text has changed since it was labelled"
NO_LABELLER: Final = "nobody is named; --labeller does"
_MOST_NAME: Final = 80


@dataclass(frozen=True, slots=True)
class Labelling:
    """Pairs to be labelled by one person, in order."""

    labeller: str
    pairs: tuple[ShownPair, ...]
    """Those without a label."""
    n_done: int
    """Looks of this person that have one."""
    n_vanished: int
    """Pairs whose text is no longer in the set, or is another: they are left out."""


@dataclass(frozen=True, slots=True)
class LabelSelection:
    """Which pairs a person is to label, and what is shown of them.

    Args:
        labeller: The name.
        adjudicate: Whether to settle those on which others differ; else those of the sample.
        only_repeated: Whether of the sample only the pairs that are shown twice.
        show_answer: Whether the expected answer may be looked up; it leads to the passage that
            the query was made from.
        order: In which the pairs of the sample come.
        most: So many of those without a label; all where None.
    """

    labeller: str
    adjudicate: bool = False
    only_repeated: bool = False
    show_answer: bool = False
    order: LabelOrder = "random"
    most: int | None = None


def labelling(dataset: Dataset, files: CalibrationFiles, wanted: LabelSelection) -> Labelling:
    """Return what a person still has to label.

    Raises:
        DataError: There is no sample.
        UsageError: Fewer than one are wanted.
    """
    if wanted.most is not None and wanted.most < 1:
        raise UsageError(f"--most: expected at least 1, got {wanted.most}")
    sample, labels = files.sample(), worded_labels(dataset, files).now
    if wanted.adjudicate:
        tasks = disagreements(labels)
    else:
        places = _places(dataset, sample.pairs) if wanted.order == "document" else None
        tasks = labelling_order(sample, only_repeated=wanted.only_repeated, places=places)
    todo = open_tasks(tasks, labels, wanted.labeller)
    n_done = len(tasks) - len(todo)
    todo = todo[: wanted.most]
    pairs = _shown(dataset, todo, show_answer=wanted.show_answer)
    return Labelling(wanted.labeller, pairs, n_done, len(todo) - len(pairs))


def _places(dataset: Dataset, pairs: Iterable[SampledPair]) -> dict[str, Place]:
    """Return the document of each text and where in it the text begins, where it is in one."""
    if not dataset.chunks_path.exists():
        return {}
    now = _ids_now(dataset, ((pair.chunk_id, pair.text_sha256) for pair in pairs))
    with dataset.chunk_texts({*now.values()}) as texts:
        found = {name: texts.place(chunk_id) for (name, _), chunk_id in now.items()}
    return {name: place for name, place in found.items() if place is not None}


def _ids_now(dataset: Dataset, texts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the first id of now of each text that is in the set.

    Args:
        dataset: Has the texts.
        texts: Each as the id of its chunk when it was drawn, and its digest.
    """
    texts = list(texts)
    places = TextPlaces(dataset, (chunk_id for chunk_id, _ in texts))
    places.look_for(([chunk_id], digest) for chunk_id, digest in texts)
    found = {text: places.of([text[0]], text[1])[:1] for text in texts}
    return {text: ids[0] for text, ids in found.items() if ids}


def _shown(
    dataset: Dataset, tasks: Sequence[LabelTask], *, show_answer: bool
) -> tuple[ShownPair, ...]:
    """Return the pairs whose text is as it was when the sample was drawn, under whatever id."""
    if not tasks or not dataset.chunks_path.exists():
        return ()
    queries = {query.query_id: query for query in dataset.all_queries()}
    now = _ids_now(dataset, ((task.chunk_id, task.text_sha256) for task in tasks))
    found = []
    with dataset.chunk_texts({*now.values()}) as texts:
        for task in tasks:
            query = queries.get(task.query_id)
            chunk_id = now.get((task.chunk_id, task.text_sha256))
            if query is None or chunk_id is None:
                continue
            answer = _answer(query) if show_answer else ""
            before = tuple(f"{turn.role}: {turn.text}" for turn in query.history)
            task = replace(task, wording_sha256=wording_digest(query.asked))
            found.append(ShownPair(task, query.asked, before, texts[chunk_id], answer))
    return tuple(found)


def _answer(query: Query) -> str:
    facts = [f"- {fact.text}" for fact in query.facts]
    return "\n".join(filter(None, (query.expected_answer or "", *facts)))


def labeller_name(given: str) -> str:
    """Return the name of who labels: as given, else of the account on this machine.

    Raises:
        UsageError: The account has no name, or the name is too long.
    """
    try:
        name = visible(" ".join((given or getpass.getuser()).split()))
    except (OSError, KeyError) as error:
        raise UsageError("--labeller: say who labels") from error
    if not name or len(name) > _MOST_NAME:
        raise UsageError(f"--labeller: expected a name of up to {_MOST_NAME} characters")
    return name


def label_page(
    dataset: Dataset,
    files: CalibrationFiles,
    found: Labelling,
    *,
    post: str = "",
    name: str = "",
) -> str:
    """Return the page on which a person labels.

    Args:
        dataset: Has the name that is shown.
        files: With the sample.
        found: What is to be labelled.
        post: Path that each label is sent to; for "" the browser keeps all until they are saved.
        name: Last part of the path of the set's page, where a site serves this one.

    Raises:
        DataError: Nothing is open.
    """
    if not found.pairs:
        raise DataError(f"{files.folder}: {found.labeller} has nothing to label{_why(found)}")
    sheet = LabelSheet(
        dataset.manifest.name,
        found.labeller,
        f"{files.name}/{files.sample().design_sha256}",
        found.pairs,
        found.n_done,
        post,
        name,
        "" if files.name == USUAL_NAME else files.name,
    )
    return render_labelling(sheet)


def write_label_page(
    dataset: Dataset, files: CalibrationFiles, found: Labelling, out: Path
) -> None:
    """Write the page on which a person labels, one file that loads nothing.

    Raises:
        UsageError: The file is one of a dataset.
        DataError: Nothing is open, or it cannot be written.
    """
    check_outputs({"--page": out})
    write_whole(out, [label_page(dataset, files, found)])


def _why(found: Labelling) -> str:
    gone = f"; {found.n_vanished:,} pairs have another text than drawn" if found.n_vanished else ""
    return f": {found.n_done:,} are done{gone}"


def take_label_file(
    dataset: Dataset,
    files: CalibrationFiles,
    path: Path,
    labeller: str = "",
    *,
    overrule: bool = False,
    labels_only: bool = False,
) -> TakenLabels:
    """Take the labels of a file in: into the calibration, and as people's grades into the set.

    Args:
        dataset: Has the pairs.
        files: Where labels go.
        path: What `read_label_rows` reads.
        labeller: Who labelled, where the file says no name, or a tool's one account.
        overrule: Whether a label may replace another one by the same person.
        labels_only: Whether the judgments of the set stay as they are.

    Raises:
        UsageError: One is given, and the file names another person, or several.
        DataError: There is no sample, or the file cannot be read.
    """
    rows = read_label_rows(path)
    accounts = {row.labeller for row in rows if row.is_account and row.labeller}
    named = {row.labeller for row in rows if row.labeller} - accounts
    refuse_renaming(path, labeller, named or (accounts if len(accounts) > 1 else ()))
    taken = TakenLabels()
    labels = labels_of_rows(dataset, rows, files.sample().pairs, labeller, taken)
    _refuse_other_scale(path, labels, taken.left_out[OUTSIDE])
    labels = _without_contradicted(path, labels, taken)
    put_labels(files, labels, taken, overrule=overrule)
    grades = [label.grade for label in files.labels() if label.grade is not None]
    taken.are_binary = files.sample().rel_threshold > 1 and are_binary(grades)
    if not labels_only:
        put_into_judgments(dataset, files, taken)
    return taken


def refuse_renaming(path: Path, labeller: str, named: Collection[str]) -> None:
    """Refuse to take one person's labels for another's, who would then agree in all of them.

    Args:
        path: What is read.
        labeller: Who is said to have labelled; "" for whom the file names.
        named: By the file.

    Raises:
        UsageError: It names several people, or another one.
    """
    if not labeller or not {visible(" ".join(name.split())) for name in named} - {labeller}:
        return
    by = f"{len(named)} people" if len(named) > 1 else repr(next(iter(named)))
    raise UsageError(
        f"--labeller {labeller!r}: {path} names {by}; leave it out, and each label is of whom its "
        "row names"
    )


def _refuse_other_scale(path: Path, labels: Sequence[Label], n_outside: int) -> None:
    """Refuse labels on a scale that begins at 1, before one of them goes into the set.

    Raises:
        DataError: Hardly a grade is 0, and many are beyond the scale.
    """
    grades = [label.grade for label in labels if label.grade is not None]
    if begins_at_1(grades, n_outside):
        raise DataError(
            f"{path}: of {len(grades) + n_outside:,} grades {grades.count(0):,} are 0 and "
            f"{n_outside:,} none of 0 to 3: the scale seems to begin at 1; write the grades as 0 "
            "to 3"
        )


def _without_contradicted(path: Path, labels: Sequence[Label], taken: TakenLabels) -> list[Label]:
    """Return labels without those of one look that say different grades, and count these.

    Which of them is meant is not known; the order of the rows must not tell.
    """
    grades: dict[object, set[int]] = {}
    for label in labels:
        if label.grade is not None:
            grades.setdefault(_look_of(label), set()).add(label.grade)
    found = []
    for label in labels:
        if len(grades.get(_look_of(label), ())) < 2:
            found.append(label)
            continue
        taken.left_out[CONTRADICTED] += 1
        pair = f"query {shown(label.query_id)}, chunk {shown(label.chunk_id)}"
        taken.examples.setdefault(CONTRADICTED, f"{path}: {pair}, by {label.labeller}")
    return found


def labels_of_rows(
    dataset: Dataset,
    rows: Sequence[LabelRow],
    pairs: Iterable[SampledPair],
    labeller: str,
    taken: TakenLabels,
) -> list[Label]:
    """Return the labels that rows give to drawn pairs.

    Args:
        dataset: Has the questions.
        rows: From a file, or from a page.
        pairs: Of the sample.
        labeller: Who labelled; "" for whom each row names.
        taken: Counts the rows that are left out.
    """
    pairs = list(pairs)
    by_chunk = {
        PairKey(pair.query_id, chunk_id): pair
        for pair in pairs
        for chunk_id in (pair.chunk_id, *pair.same_text)
    }
    asked = {query.query_id: query.asked for query in dataset.all_queries()}
    by_text = {PairText(pair.query_id, pair.text_sha256): pair for pair in pairs}
    said = [row for row in rows if not row.is_open]
    taken.n_open += len(rows) - len(said)
    of_pairs = [
        by_text.get(PairText(row.query_id, row.text_sha256))
        or by_chunk.get(PairKey(row.query_id, row.chunk_id))
        for row in said
    ]
    texts = _texts_in_doubt(dataset, zip(said, of_pairs, strict=True))
    found = []
    for row, pair in zip(said, of_pairs, strict=True):
        name = visible(" ".join((labeller or row.labeller).split()))[:_MOST_NAME]
        question = asked.get(row.query_id, "")
        reason = _reason(row, pair, name) or other_question(row, question)
        if not reason and pair is not None:
            reason = other_passage(row, pair, texts)
        if reason:
            taken.left_out[reason] += 1
            taken.examples.setdefault(reason, example_of(row, reason))
        elif pair is not None:
            found.append(label_of(row, pair, name, wording_digest(question)))
    return found


def _texts_in_doubt(
    dataset: Dataset, rows: Iterable[tuple[LabelRow, SampledPair | None]]
) -> dict[str, str]:
    """Return the texts of pairs whose rows may show another passage, by their digest.

    Args:
        dataset: Has the texts.
        rows: Each with its pair; None where it has none.
    """
    doubted = {pair for row, pair in rows if pair is not None and is_in_doubt(row, pair)}
    if not doubted or not dataset.chunks_path.exists():
        return {}
    now = _ids_now(dataset, ((pair.chunk_id, pair.text_sha256) for pair in doubted))
    with dataset.chunk_texts({*now.values()}) as texts:
        return {digest: texts[chunk_id] for (_, digest), chunk_id in now.items()}


def _reason(row: LabelRow, pair: SampledPair | None, labeller: str) -> str:
    """Return why a row cannot be used; "" where it can."""
    if pair is None:
        return NOT_DRAWN
    if row.text_sha256 and row.text_sha256 != pair.text_sha256:
        return OTHER_TEXT
    if not labeller:
        return NO_LABELLER
    if not row.skipped and grade_of_row(row, 4) is None:
        if row.grade in (None, ""):
            return NO_GRADE
        return NOT_WHOLE if parse_whole(row.grade) is None else OUTSIDE
    if not 1 <= row.look <= DECIDING_LOOK:
        return "look is none of 1, 2 and 3"
    return ""


def label_of(row: LabelRow, pair: SampledPair, labeller: str, wording_sha256: str) -> Label:
    """Return the label that a row gives to a drawn pair, for a wording of its question."""
    seconds = row.seconds
    usable = seconds is not None and 0 <= seconds < float("inf")
    decides = row.decides or row.look == DECIDING_LOOK
    return Label(
        query_id=pair.query_id,
        chunk_id=pair.chunk_id,
        text_sha256=pair.text_sha256,
        stratum=pair.stratum,
        probability=pair.probability,
        labeller=labeller,
        grade=None if row.skipped else grade_of_row(row, 4),
        skipped=row.skipped,
        seconds=round(seconds, 3) if usable and seconds is not None else None,
        at=visible(row.at)[:40],
        look=DECIDING_LOOK if decides else row.look,
        decides=decides,
        wording_sha256=wording_sha256,
    )


def put_labels(
    files: CalibrationFiles, labels: Iterable[Label], taken: TakenLabels, *, overrule: bool
) -> None:
    """Write labels beside those that are there; a person's earlier label stands unless overruled.

    A skip gives way to a grade without a word.
    """
    with files.alone():
        kept = {label_key(label): label for label in files.labels()}
        looks = {_look_of(label): label for label in reversed(kept.values())}
        for label in labels:
            old = looks.get(_look_of(label)) or looks.get(_look_of(label, ""))
            if old is None or (old.skipped and not label.skipped):
                taken.n_new += 1
            elif old.grade == label.grade:
                taken.n_known += 1
                continue
            elif overrule:
                taken.n_changed += 1
            else:
                taken.n_standing += 1
                continue
            if old is not None:
                del kept[label_key(old)]
                looks.pop(_look_of(old))
            kept[label_key(label)] = looks[_look_of(label)] = label
        files.write_labels(kept.values())


def _look_of(label: Label, wording_sha256: str | None = None) -> tuple[PairText, str, int, str]:
    """Return which look of whom at which text a label is of, and for which words."""
    wording = label.wording_sha256 if wording_sha256 is None else wording_sha256
    return pair_text(label), label.labeller, label.look, wording


def remove_label(files: CalibrationFiles, task: LabelTask, labeller: str) -> bool:
    """Take a label back, and return whether there was one."""
    with files.alone():
        labels = files.labels()
        kept = [
            label
            for label in labels
            if (label.labeller, label.look) != (labeller, task.look) or not _is_on(task, label)
        ]
        if len(kept) < len(labels):
            files.write_labels(kept)
    return len(kept) < len(labels)


def _is_on(task: LabelTask, label: Label) -> bool:
    if task.wording_sha256 and label.wording_sha256 not in ("", task.wording_sha256):
        return False
    if task.text_sha256:
        return pair_text(label) == task.pair_text
    return PairKey(label.query_id, label.chunk_id) == task.pair


def export_labels(
    dataset: Dataset, files: CalibrationFiles, form: LabelForm, out: Path, labeller: str = ""
) -> WrittenLabels:
    """Write the pairs of the sample with their labels in the form of another tool.

    Args:
        dataset: Has the texts.
        files: With the sample and the labels.
        form: Of which tool.
        out: The file.
        labeller: Whose labels alone; pairs without one are written as open. For "" all labels,
            and open are the pairs that nobody labelled.

    Raises:
        UsageError: The file is one of a dataset.
        DataError: There is no sample, or the file cannot be written.
    """
    check_outputs({"--out": out})
    counting = worded_labels(dataset, files).now
    labels = [label for label in counting if labeller in ("", label.labeller)]
    by_task: dict[tuple[PairText, int], list[Label]] = {}
    for label in labels:
        by_task.setdefault((pair_text(label), label.look), []).append(label)
    tasks = labelling_order(files.sample())
    asked = {(task.pair_text, task.look) for task in tasks}
    tasks += sorted(
        (
            LabelTask(of[0].query_id, of[0].chunk_id, of[0].text_sha256, look)
            for (pair, look), of in by_task.items()
            if (pair, look) not in asked
        ),
        key=lambda task: (task.query_id, task.chunk_id, task.look),
    )
    texts = {pair.task.pair_text: pair for pair in _shown(dataset, tasks, show_answer=False)}
    rows = [
        row
        for task in tasks
        for row in _rows(
            task, texts.get(task.pair_text), by_task.get((task.pair_text, task.look), ())
        )
    ]
    return write_label_rows(out, form, rows)


def _rows(task: LabelTask, pair: ShownPair | None, labels: Iterable[Label]) -> list[LabelRow]:
    still = LabelRow(
        task.query_id,
        task.chunk_id,
        look=task.look,
        text_sha256=task.text_sha256,
        query=visible(pair.question) if pair else "",
        before=visible("\n".join(pair.before)) if pair else "",
        passage=visible(pair.text) if pair else "",
        wording_sha256=pair.task.wording_sha256 if pair else "",
    )
    rows = [
        replace(
            still,
            grade=label.grade,
            labeller=label.labeller,
            skipped=label.skipped,
            seconds=label.seconds,
            at=label.at,
            decides=label.decides,
        )
        for label in labels
    ]
    return rows or [still]


def labelling_summary(dataset: Dataset, files: CalibrationFiles) -> LabellingSummary:
    """Return how far labelling is; see `summarise_labels`.

    Raises:
        DataError: There is no sample, or a file does not hold to its format.
    """
    return summarise_labels(files.sample(), worded_labels(dataset, files).now)
