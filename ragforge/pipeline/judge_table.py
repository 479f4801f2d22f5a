"""Hold files of judges' grades against one of people's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ragforge.calibration.answer_table import (
    AnswerKey,
    AnswerReport,
    GradedAnswer,
    read_answer_labels,
    report_answers,
    without_queries,
)
from ragforge.calibration.judge_table import AgreementReport, report_agreement, scale
from ragforge.calibration.label_files import Labels, read_labels
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.answers.records import (
    SystemRecords,
    expectation_of,
    facts_digest,
    read_systems,
)
from ragforge.files.formats.runs import read_run
from ragforge.files.record_files import read_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.paths import MANIFEST
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
            it is known what was graded: labels of other answers that a system gave before, or by
            something else that was expected, are left out, and so are grades.

    Raises:
        UsageError: No judge is named, or one twice.
        DataError: A file cannot be read, or holds no label that can be used.
    """
    if not judges:
        raise UsageError("name at least one file of graded answers: --graded FILE")
    known = {path: _records(path) for path in judges}
    graders = []
    for path, name in zip(judges, _names(judges), strict=True):
        read, records = replace(read_answer_labels(path), name=name), known[path]
        if records is not None:
            read = without_queries(read, records.outdated | records.edited)
        graders.append(read)
    return report_answers(read_answer_labels(human, _graded_answers(known)), tuple(graders))


def _graded_answers(
    known: Mapping[Path, SystemRecords | None],
) -> dict[AnswerKey, list[GradedAnswer]]:
    """Return the answers that were graded, as far as they lie beside their grades."""
    found: dict[AnswerKey, list[GradedAnswer]] = {}
    for path, records in known.items():
        beside = path.parent.parent / "answers" / path.name
        if path.parent.name != "answer_grades" or not beside.is_file():
            continue
        queries = records.queries if records is not None else {}
        for answer in read_records(beside, Answer, key=lambda item: item.query_id):
            key = AnswerKey(answer.query_id, plain_name(path))
            query = queries.get(answer.query_id)
            of = GradedAnswer(
                answer_sha256(answer.answer),
                expectation_of(query) if query else "",
                facts_digest(query) if query else "",
            )
            found.setdefault(key, []).append(of)
    return found


def _records(path: Path) -> SystemRecords | None:
    """Return what a set knows of the system whose grades a file has; None for any other file."""
    dataset = Dataset(path.parent.parent)
    if path.parent.name != "answer_grades" or not (dataset.files / MANIFEST).is_file():
        return None
    queries = {query.query_id: query for query in dataset.all_queries()}
    systems = read_systems(dataset, (), queries)
    return next((of for of in systems if of.system == plain_name(path)), None)


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
