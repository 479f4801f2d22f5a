"""Labelling of answers by people: the facts that an answer states, ticked one by one."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragforge.calibration.label_tasks import TakenLabels
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import visible
from ragforge.files.atomic import write_whole
from ragforge.files.field_names import QUERY_ID, VERDICT, Field
from ragforge.files.formats.row_files import read_rows_of
from ragforge.files.row import Row
from ragforge.files.set.answer_labels import answer_label_key, answer_labels, write_answer_labels
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.output_paths import check_outputs
from ragforge.files.source_files import open_source
from ragforge.records import AnswerLabel, FactStatus, FactVerdict, Query, Verdict, answer_sha256
from ragforge.report.page.answer_labelling import (
    AnswerSheet,
    ShownAnswer,
    render_answer_labelling,
)
from ragforge.stages.answer.llm import SCORES, CheckedFact, score_of, verdict_of

SHAPES = ("what the page of answers saved",)
NOT_THERE = "the set has no such answer"
OTHER_ANSWER = "the answer has changed since it was labelled"
NOT_DRAWN = "answer is not among those drawn"
NO_VERDICT = "neither a verdict nor all facts"
_SYSTEM = Field("system", ("system",))
_LABELLER = Field("labeller", ("labeller",))
_STATUSES: Mapping[str, FactStatus] = {
    name: name for name in ("supported", "partial", "missing", "contradicted")
}
_VERDICTS: Mapping[str, Verdict] = {
    name: name for name in ("correct", "partial", "incorrect", "not_attempted")
}


@dataclass(frozen=True, slots=True)
class AnswerDraw:
    """Which answers are to be labelled.

    Args:
        systems: Whose answers.
        n: How many, about: all systems' answers to as many queries as that takes.
        seed: Of the draw; a larger n with the same seed adds queries.
    """

    systems: tuple[str, ...]
    n: int = 50
    seed: int = 0


def draw_answers(dataset: Dataset, draw: AnswerDraw) -> tuple[list[ShownAnswer], float]:
    """Return the drawn answers in a random order, and the probability with which each was drawn.

    Queries are drawn, each with the answers of all systems, so that systems are compared on the
    same ones.

    Raises:
        UsageError: Nothing is asked for.
        DataError: A system has no answers, or no query has answers of all systems.
    """
    if draw.n < 1 or not draw.systems:
        raise UsageError("label-answers: expected one system or more, and -n of at least 1")
    answers = {
        system: {item.query_id: item.answer for item in dataset.answers(system)}
        for system in draw.systems
    }
    queries = {query.query_id: query for query in dataset.require_queries()}
    known = [name for name in queries if all(name in of for of in answers.values())]
    if not known:
        raise DataError(f"{dataset.path}: no query has an answer of {', '.join(draw.systems)}")
    wanted = min(-(-draw.n // len(draw.systems)), len(known))
    chosen = sorted(known, key=lambda name: _place(draw.seed, name))[:wanted]
    shown = [
        _shown(queries[name], system, answers[system][name])
        for name in chosen
        for system in draw.systems
    ]
    shown.sort(key=lambda item: _place(draw.seed, item.query_id, item.system))
    return shown, wanted / len(known)


def _place(seed: int, *names: str) -> str:
    return hashlib.sha256("\0".join((str(seed), *names)).encode()).hexdigest()


def _shown(query: Query, system: str, answer: str) -> ShownAnswer:
    before = tuple(f"{turn.role}: {turn.text}" for turn in query.history)
    return ShownAnswer(query, system, before, answer, answer_sha256(answer))


def write_answer_page(
    dataset: Dataset, files: CalibrationFiles, draw: AnswerDraw, labeller: str, out: Path
) -> int:
    """Write the page on which a person labels answers, and return how many are open.

    Raises:
        UsageError: As for `draw_answers`; or the file is one of a dataset.
        DataError: As for `draw_answers`; or nothing is open.
    """
    check_outputs({"--page": out})
    drawn, _ = draw_answers(dataset, draw)
    done = {
        (item.query_id, item.system): item
        for item in answer_labels(files)
        if item.labeller == labeller
    }
    todo = [
        item
        for item in drawn
        if (label := done.get((item.query_id, item.system))) is None
        or label.answer_sha256 != item.answer_sha256
    ]
    if not todo:
        raise DataError(f"{files.folder}: {labeller} has labelled all {len(drawn):,} answers")
    sheet = AnswerSheet(dataset.manifest.name, labeller, todo, len(drawn) - len(todo))
    write_whole(out, [render_answer_labelling(sheet)])
    return len(todo)


def take_answer_labels(
    dataset: Dataset,
    files: CalibrationFiles,
    path: Path,
    draw: AnswerDraw,
    *,
    overrule: bool = False,
) -> TakenLabels:
    """Take the labels of a file in; verdict and score follow from the facts.

    Args:
        dataset: Has the answers.
        files: Where labels go.
        path: What the page saved.
        draw: Which answers were drawn.
        overrule: Whether a label may replace another one by the same person.

    Raises:
        DataError: The file cannot be read, or a row lacks a field.
    """
    drawn, probability = draw_answers(dataset, draw)
    known = {(item.query_id, item.system): item for item in drawn}
    taken = TakenLabels()
    new: list[AnswerLabel] = []
    for row in read_rows_of(open_source(path, "labels"), SHAPES):
        found = known.get((row.identifier(QUERY_ID), row.identifier(_SYSTEM)))
        label = NOT_DRAWN if found is None else _label(row, found, probability)
        if isinstance(label, str):
            taken.left_out[label] += 1
            taken.examples.setdefault(label, row.where)
        else:
            new.append(label)
    with files.alone():
        kept = {answer_label_key(label): label for label in answer_labels(files)}
        for label in new:
            _put(kept, label, taken, overrule=overrule)
        write_answer_labels(files, list(kept.values()))
    return taken


def _put(
    kept: dict[tuple[str, ...], AnswerLabel],
    label: AnswerLabel,
    taken: TakenLabels,
    *,
    overrule: bool,
) -> None:
    old = kept.get(answer_label_key(label))
    if old is None or old.answer_sha256 != label.answer_sha256:
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


def _label(row: Row, shown: ShownAnswer, probability: float) -> AnswerLabel | str:
    """Return the label that a row gives to an answer, or why it gives none."""
    given = row.given
    if given.get("answer_sha256") != shown.answer_sha256:
        return OTHER_ANSWER
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
        verdict = _VERDICTS.get(str(row.get(VERDICT)))
        score = None if verdict is None else SCORES[verdict]
    if verdict is None and not skipped:
        return NO_VERDICT
    seconds = given.get("seconds")
    return AnswerLabel(
        query_id=shown.query_id,
        system=shown.system,
        answer_sha256=shown.answer_sha256,
        probability=probability,
        labeller=visible(row.text(_LABELLER))[:80],
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
