"""What became of grades, counted from the files of two versions."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import key_of
from ragforge.records import Judgment, JudgmentsDiff

_Kind = Literal["kept", "carried", "judged", "evidence", "failed"]
_NEW: Final = frozenset({"judge"})
"""What only this version's judges leave: what follows a chunk is marked, or a person's."""


def count_grades(parent: Dataset, staged: Dataset, dropped: int) -> JudgmentsDiff:
    """Return how many rows of a version's judgments are of which kind.

    Args:
        parent: The version before.
        staged: The version.
        dropped: Grades of people and judges whose chunk is gone.

    Raises:
        DataError: A file cannot be read.
    """
    counts = Counter[str](_kinds(parent.each_judgment(), staged.each_judgment()))
    waiting = len(staged.past.dormant_grades())
    return JudgmentsDiff(dropped=dropped, dormant=waiting, **counts)


def _kinds(before: Iterator[Judgment], now: Iterator[Judgment]) -> Iterator[_Kind]:
    old = next(before, None)
    for judgment in now:
        while old is not None and key_of(old) < key_of(judgment):
            old = next(before, None)
        yield _kind(judgment, is_same=old == judgment)


def _kind(judgment: Judgment, *, is_same: bool) -> _Kind:
    if judgment.is_failed:
        return "failed"
    if judgment.source == "evidence":
        return "evidence"
    if is_same:
        return "kept"
    return "judged" if judgment.source in _NEW else "carried"
