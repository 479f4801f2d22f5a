"""People's grades for other wordings of questions: `former_grades.jsonl`.

They belong to no version of the set: a wording may come back in any.
"""

from collections.abc import Iterable
from typing import Final

from ragforge.files.record_files import read_records, write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import pair_and_judge
from ragforge.records import FormerGrade

FILE: Final = "former_grades.jsonl"


def read_former_grades(dataset: Dataset) -> list[FormerGrade]:
    """Return the grades, sorted; [] where there are none.

    Raises:
        DataError: The file does not hold to the format.
    """
    path = dataset.home / FILE
    return list(read_records(path, FormerGrade, key=former_key)) if path.is_file() else []


def write_former_grades(dataset: Dataset, grades: Iterable[FormerGrade]) -> None:
    """Write all grades; of those of one person for one wording of a pair the last."""
    by_key = {former_key(grade): grade for grade in grades}
    if by_key or (dataset.home / FILE).is_file():
        write_records(dataset.home / FILE, by_key.values(), former_key)


def former_key(grade: FormerGrade) -> tuple[str, ...]:
    """Return what grades are sorted by, and what no two have alike."""
    query_id, chunk_id, *who = pair_and_judge(grade.judgment)
    return query_id, chunk_id, grade.wording_sha256, *who
