"""What an evaluation rests on, as digests that tell whether it changed."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Final

from ragforge.files.dataset import Dataset
from ragforge.files.manifest import digest_file
from ragforge.files.versions.wholeness import chunks_digest
from ragforge.records import Judgment, Query
from ragforge.report.judging import Settled

_ITEM_DIGITS: Final = 16
_GRADE_DIGITS: Final = 8


def item_digests(queries: Iterable[Query]) -> dict[str, str]:
    """Return what each item is, by query id: equal digests, equal items.

    That is what it asks for: its question, answer and evidence. Grades and chunk ids are no part of
    it, so that an item stays the same when more is judged.
    """
    return {query.query_id: _item(query) for query in queries}


def grades_digest(grades: Mapping[str, int | None]) -> str:
    """Return what the grades above 0 of an item are; the others move no ranking's value."""
    relevant = sorted((chunk_id, grade) for chunk_id, grade in grades.items() if grade)
    return _sha256(json.dumps(relevant))[:_GRADE_DIGITS]


def grades_of(judged: Mapping[str, Judgment]) -> dict[str, int | None]:
    """Return the grades of a query by chunk, sorted; None is a failed judgment."""
    return {chunk_id: item.grade for chunk_id, item in sorted(judged.items())}


def judgments_digest(settled: Settled) -> str:
    """Return what all grades are, failed ones too."""
    grades = {query_id: grades_of(judged) for query_id, judged in sorted(settled.items())}
    return _sha256(json.dumps(grades))


def corpus_digest(dataset: Dataset) -> str:
    """Return what the chunks are; "" where there are none."""
    path = dataset.chunks_path
    return (chunks_digest(dataset) or digest_file(path)) if path.exists() else ""


def _item(query: Query) -> str:
    quotes = sorted(item.quote for item in query.evidence)
    asked = [query.asked, query.expected_answer, quotes]
    return _sha256(json.dumps(asked))[:_ITEM_DIGITS]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
