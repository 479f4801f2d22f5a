"""Labelling of answers by people: the facts that an answer states, ticked one by one."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ragforge.calibration.label_tasks import TakenLabels
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.answers.records import expectation_of, facts_digest
from ragforge.evaluating.formatting import visible
from ragforge.files.atomic import write_whole
from ragforge.files.field_names import QUERY_ID, VERDICT, Field
from ragforge.files.formats.row_files import read_rows_of
from ragforge.files.row import Row
from ragforge.files.set.answer_labels import (
    answer_label_key,
    answer_labels,
    answer_sample,
    answer_sample_path,
    write_answer_labels,
    write_answer_sample,
)
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.output_paths import check_outputs
from ragforge.files.source_files import open_source
from ragforge.pipeline.labelling import refuse_renaming
from ragforge.records import (
    AnswerLabel,
    AnswerSample,
    FactStatus,
    FactVerdict,
    Query,
    Verdict,
    answer_sha256,
)
from ragforge.records.judgments import settled_verdict
from ragforge.report.page.answer_labelling import (
    AnswerSheet,
    ShownAnswer,
    render_answer_labelling,
)
from ragforge.stages.answer.llm import SCORES, CheckedFact, score_of, verdict_of

USUAL_ANSWERS: Final = 50
SHAPES = ("what the page of answers saved",)
OTHER_ANSWER = "the answer has changed since it was labelled"
OTHER_EXPECTATION = "what is expected, or its facts, has changed since it was labelled"
NOT_DRAWN = "answer is not among those drawn"
NO_VERDICT = "neither a verdict nor all facts"
SYSTEM = Field("system", ("system",))
_LABELLER = Field("labeller", ("labeller",))
_STATUSES: Mapping[str, FactStatus] = {
    name: name for name in ("supported", "partial", "missing", "contradicted")
}
_VERDICTS: Mapping[str, Verdict] = {
    name: name for name in ("correct", "partial", "incorrect", "not_attempted")
}


@dataclass(frozen=True, slots=True)
class AnswerDraw:
    """Which answers are to be drawn.

    Args:
        systems: Whose.
        n: How many, about: all systems' answers to as many queries as that takes.
        seed: Of the draw.
        again: Whether it may replace a sample of other systems or of another seed.
    """

    systems: tuple[str, ...]
    n: int = USUAL_ANSWERS
    seed: int = 0
    again: bool = False


def sample_answers(dataset: Dataset, files: CalibrationFiles, draw: AnswerDraw) -> AnswerSample:
    """Draw queries whose answers people are asked to label; a larger draw adds to a smaller one.

    Raises:
        UsageError: Nothing is asked for, or another sample is there.
        DataError: A system has no answers, or no query has answers of all systems.
    """
    if draw.n < 1 or not draw.systems:
        raise UsageError("sample --answers: expected one system or more, and -n of at least 1")
    answered = [{item.query_id for item in dataset.answers(name)} for name in draw.systems]
    known = set.intersection({query.query_id for query in dataset.require_queries()}, *answered)
    if not known:
        raise DataError(f"{dataset.path}: no query has an answer of {', '.join(draw.systems)}")
    before: tuple[str, ...] = ()
    if answer_sample_path(files).is_file() and not draw.again:
        old = answer_sample(files)
        if (old.systems, old.seed) != (draw.systems, draw.seed):
            raise UsageError(
                f"{files.folder}: has a sample of {', '.join(old.systems)} with seed {old.seed}; "
                "name these, or give --again"
            )
        before = tuple(name for name in old.query_ids if name in known)
    wanted = -(-draw.n // len(draw.systems)) - len(before)
    more = sorted(known - set(before), key=lambda name: _place(draw.seed, name))
    chosen = (*before, *more[: max(wanted, 0)])
    found = AnswerSample(
        seed=draw.seed, systems=draw.systems, query_ids=chosen, n_queries=len(known)
    )
    write_answer_sample(files, found)
    return found


def drawn_answers(dataset: Dataset, sample: AnswerSample) -> list[ShownAnswer]:
    """Return the drawn answers that are there, in a random order."""
    drawn = set(sample.query_ids)
    queries = {query.query_id: query for query in dataset.all_queries() if query.query_id in drawn}
    shown = [
        _shown(queries[item.query_id], system, item.answer)
        for system in sample.systems
        for item in dataset.answers(system)
        if item.query_id in queries
    ]
    return sorted(shown, key=lambda item: _place(sample.seed, item.query_id, item.system))


def _place(seed: int, *names: str) -> str:
    return hashlib.sha256("\0".join((str(seed), *names)).encode()).hexdigest()


def _shown(query: Query, system: str, answer: str) -> ShownAnswer:
    before = tuple(f"{turn.role}: {turn.text}" for turn in query.history)
    return ShownAnswer(
        query,
        system,
        before,
        answer,
        answer_sha256(answer),
        expectation_of(query),
        facts_digest(query) if query.facts else "",
    )


def _is_of(label: AnswerLabel, shown: ShownAnswer) -> bool:
    """Whether a label is of an answer by what is expected of it now."""
    return (
        label.answer_sha256 == shown.answer_sha256
        and label.expected_sha256 in ("", shown.expected_sha256)
        and label.facts_sha256 in ("", shown.facts_sha256)
    )


@dataclass(frozen=True, slots=True)
class AnswerLabelling:
    """Answers to be labelled by one person, in order."""

    labeller: str
    answers: tuple[ShownAnswer, ...]
    """Those without a label, and those that changed since, or of which something else is expected
    now."""
    n_done: int


def answer_labelling(dataset: Dataset, files: CalibrationFiles, labeller: str) -> AnswerLabelling:
    """Return what a person still has to label.

    Raises:
        DataError: No sample was drawn.
    """
    drawn = drawn_answers(dataset, answer_sample(files))
    done = {
        (item.query_id, item.system): item
        for item in answer_labels(files)
        if item.labeller == labeller
    }
    todo = []
    for shown in drawn:
        label = done.get((shown.query_id, shown.system))
        if label is None or not _is_of(label, shown):
            todo.append(shown)
    return AnswerLabelling(labeller, tuple(todo), len(drawn) - len(todo))


def answer_label_page(
    dataset: Dataset, files: CalibrationFiles, found: AnswerLabelling, *, post: str = ""
) -> str:
    """Return the page on which a person labels answers.

    Args:
        dataset: Has the name that is shown.
        files: Of the calibration, for messages.
        found: What is to be labelled.
        post: Path that each label is sent to; for "" the browser keeps all until they are saved.

    Raises:
        DataError: Nothing is open.
    """
    if not found.answers:
        raise DataError(
            f"{files.folder}: {found.labeller} has labelled all {found.n_done:,} answers"
        )
    sheet = AnswerSheet(dataset.manifest.name, found.labeller, found.answers, found.n_done, post)
    return render_answer_labelling(sheet)


def write_answer_page(
    dataset: Dataset, files: CalibrationFiles, found: AnswerLabelling, out: Path
) -> None:
    """Write the page on which a person labels answers, one file that loads nothing.

    Raises:
        UsageError: The file is one of a dataset.
        DataError: Nothing is open, or it cannot be written.
    """
    check_outputs({"--page": out})
    write_whole(out, [answer_label_page(dataset, files, found)])


def take_answer_labels(
    dataset: Dataset,
    files: CalibrationFiles,
    path: Path,
    labeller: str = "",
    *,
    overrule: bool = False,
) -> TakenLabels:
    """Take the labels of a file in; verdict and score follow from the facts.

    Args:
        dataset: Has the answers.
        files: Where labels go.
        path: What the page saved.
        labeller: Who labelled; "" for whom each row names.
        overrule: Whether a label may replace another one by the same person.

    Raises:
        DataError: No sample was drawn, the file cannot be read, or a row lacks a field.
        UsageError: One is given, and the file names another person, or several.
    """
    rows = list(read_rows_of(open_source(path, "labels"), SHAPES))
    refuse_renaming(path, labeller, {name for r in rows if (name := r.optional_text(_LABELLER))})
    taken = TakenLabels()
    labels = labels_of_answers(rows, dataset, answer_sample(files), labeller, taken)
    put_answer_labels(files, labels, taken, overrule=overrule)
    return taken


def labels_of_answers(
    rows: Iterable[Row],
    dataset: Dataset,
    sample: AnswerSample,
    labeller: str,
    taken: TakenLabels,
) -> list[AnswerLabel]:
    """Return the labels that rows give to drawn answers.

    Args:
        rows: From a file, from a page or from a terminal.
        dataset: Has the answers.
        sample: Which of them were drawn.
        labeller: Who labelled; "" for whom each row names.
        taken: Counts the rows that are left out.

    Raises:
        DataError: A row lacks a field.
    """
    known = {(item.query_id, item.system): item for item in drawn_answers(dataset, sample)}
    new = []
    for row in rows:
        found = known.get((row.identifier(QUERY_ID), row.identifier(SYSTEM)))
        name = visible(" ".join((labeller or row.text(_LABELLER)).split()))[:80]
        label = NOT_DRAWN if found is None else _label(row, found, sample.probability, name)
        if isinstance(label, str):
            taken.left_out[label] += 1
            taken.examples.setdefault(label, row.where)
        else:
            new.append(label)
    return new


def put_answer_labels(
    files: CalibrationFiles, labels: Iterable[AnswerLabel], taken: TakenLabels, *, overrule: bool
) -> None:
    """Write labels beside those that are there; a person's earlier label stands unless overruled.

    A skip gives way to a verdict without a word.
    """
    with files.alone():
        kept = {answer_label_key(label): label for label in answer_labels(files)}
        for label in labels:
            _put(kept, label, taken, overrule=overrule)
        write_answer_labels(files, list(kept.values()))


def remove_answer_label(files: CalibrationFiles, query_id: str, system: str, labeller: str) -> bool:
    """Take a label back, and return whether there was one."""
    with files.alone():
        labels = answer_labels(files)
        taken_back = (query_id, system, labeller)
        kept = [label for label in labels if answer_label_key(label) != taken_back]
        if len(kept) < len(labels):
            write_answer_labels(files, kept)
    return len(kept) < len(labels)


def _put(
    kept: dict[tuple[str, ...], AnswerLabel],
    label: AnswerLabel,
    taken: TakenLabels,
    *,
    overrule: bool,
) -> None:
    old = kept.get(answer_label_key(label))
    is_first = old is None or (old.skipped and not label.skipped)
    if old is None or is_first or _is_of_others(old, label):
        taken.n_new += 1
    elif (old.verdict, old.facts) == (label.verdict, label.facts):
        taken.n_known += 1
        return
    elif overrule:
        taken.n_changed += 1
    else:
        taken.n_standing += 1
        return
    kept[answer_label_key(label)] = label


def _is_of_others(old: AnswerLabel, new: AnswerLabel) -> bool:
    """Whether a label is of another answer, or by something else that is expected of it."""
    return (
        old.answer_sha256 != new.answer_sha256
        or old.expected_sha256 not in ("", new.expected_sha256)
        or old.facts_sha256 not in ("", new.facts_sha256)
    )


def _label(row: Row, shown: ShownAnswer, probability: float, labeller: str) -> AnswerLabel | str:
    """Return the label that a row gives to an answer, or why it gives none."""
    given = row.given
    if given.get("answer_sha256") != shown.answer_sha256:
        return OTHER_ANSWER
    if given.get("expected_sha256") not in (None, "", shown.expected_sha256):
        return OTHER_EXPECTATION
    if given.get("facts_sha256") not in (None, "", shown.facts_sha256):
        return OTHER_EXPECTATION
    skipped, says_more = given.get("skipped") is True, given.get("says_more") is True
    ticked = given.get("facts")
    statuses = {
        str(item.get("fact_id")): _STATUSES.get(str(item.get("status")))
        for item in (ticked if isinstance(ticked, Sequence) else ())
        if isinstance(item, Mapping)
    }
    checked = [
        CheckedFact(fact, status)
        for fact in shown.query.facts
        if (status := statuses.get(fact.fact_id)) is not None
    ]
    verdict: Verdict | None
    if shown.query.facts:
        is_whole = len(checked) == len(shown.query.facts)
        verdict = verdict_of(checked, says_more=says_more) if is_whole else None
        score = score_of(checked)
    else:
        said = _VERDICTS.get(str(row.get(VERDICT)))
        verdict = said and settled_verdict(said, answerable=shown.query.answerable)
        score = None if verdict is None else SCORES[verdict]
    if verdict is None and not skipped:
        return NO_VERDICT
    seconds = given.get("seconds")
    return AnswerLabel(
        query_id=shown.query_id,
        system=shown.system,
        answer_sha256=shown.answer_sha256,
        expected_sha256=shown.expected_sha256,
        facts_sha256="" if skipped else shown.facts_sha256,
        probability=probability,
        labeller=labeller,
        verdict=None if skipped else verdict,
        score=None if skipped else score,
        facts=()
        if skipped
        else tuple(FactVerdict(fact_id=item.fact.fact_id, status=item.status) for item in checked),
        says_more=says_more and not skipped,
        skipped=skipped,
        seconds=float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None,
        at=visible(str(given.get("at") or ""))[:40],
    )
