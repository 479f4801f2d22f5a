"""Hold files of judges' grades against one of people's."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ragforge.calibration.answer_table import (
    AnswerKey,
    AnswerReport,
    read_answer_labels,
    report_answers,
)
from ragforge.calibration.judge_table import AgreementReport, report_agreement, scale
from ragforge.calibration.label_files import Labels, read_labels
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.files.formats.runs import read_run
from ragforge.files.record_files import read_records
from ragforge.files.source_files import plain_name
from ragforge.records import Answer, answer_sha256


@dataclass(frozen=True, slots=True)
class JudgeFiles:
    """What is compared."""

    report: AgreementReport
    labels: tuple[Labels, ...]
    """People's file, then the judges'."""
    threshold: int
    """Lowest grade that counts as relevant."""


def compare_judge_files(
    human: Path,
    judges: Sequence[Path],
    *,
    threshold: int | None = None,
    runs: Sequence[Path] = (),
    measure: str = "nDCG@10",
    seed: int = 0,
) -> JudgeFiles:
    """Return how the judges of some files agree with people; see `report_agreement`.

    Args:
        human: People's labels.
        judges: A file for each judge, at least one; a judge goes by the name of its file, with that
            of its folder where two files have one name.
        threshold: Lowest grade that counts as relevant, 1 to 3; where None it is 2, or 1 where
            people's grades go no further.
        runs: Run files, whose order by people is held against that by each judge.
        measure: By which runs are ordered.
        seed: Of the resampled queries.

    Raises:
        UsageError: No judge is named, or one twice.
        DataError: A file cannot be read, or holds no label that can be used.
    """
    if not judges:
        raise UsageError("name at least one file of a judge: --judge FILE")
    n_grades = scale(threshold or 1)
    people = read_labels(human, n_grades, source="human")
    threshold = threshold or min(2, max(1, people.highest))
    graders = [
        read_labels(path, n_grades, name, source="judge")
        for path, name in zip(judges, _names(judges), strict=True)
    ]
    rankings = {
        name: read_run(path).rankings for path, name in zip(runs, _names(runs), strict=True)
    }
    report = report_agreement(
        people, graders, threshold=threshold, runs=rankings, measure=measure, seed=seed
    )
    return JudgeFiles(report, (people, *graders), threshold)


def compare_answer_files(human: Path, judges: Sequence[Path]) -> AnswerReport:
    """Return how judges of answers agree with people; see `report_answers`.

    Args:
        human: People's labels of answers.
        judges: A file for each judge, at least one. Of those in the folder `answer_grades` of a set
            the answers are known: labels of others that a system gave before are left out.

    Raises:
        UsageError: No judge is named, or one twice.
        DataError: A file cannot be read, or holds no label that can be used.
    """
    if not judges:
        raise UsageError("name at least one file of graded answers: --graded FILE")
    graders = tuple(
        replace(read_answer_labels(path), name=name)
        for path, name in zip(judges, _names(judges), strict=True)
    )
    return report_answers(read_answer_labels(human, _graded_answers(judges)), graders)


def _graded_answers(judges: Iterable[Path]) -> dict[AnswerKey, set[str]]:
    """Return digests of the answers that were graded, as far as they lie beside their grades."""
    found: dict[AnswerKey, set[str]] = {}
    for path in judges:
        beside = path.parent.parent / "answers" / path.name
        if path.parent.name != "answer_grades" or not beside.is_file():
            continue
        for answer in read_records(beside, Answer, key=lambda item: item.query_id):
            key = AnswerKey(answer.query_id, plain_name(path))
            found.setdefault(key, set()).add(answer_sha256(answer.answer))
    return found


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the names of files, with their folders where two have the same.

    Raises:
        UsageError: A file comes twice.
    """
    short = [plain_name(path) for path in paths]
    names = [
        name if short.count(name) == 1 else f"{path.parent.name}/{path.name}"
        for path, name in zip(paths, short, strict=True)
    ]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name}: comes twice; name each file once")
    return names
