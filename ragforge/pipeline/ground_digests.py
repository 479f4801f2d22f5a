"""What an evaluation rests on, as digests that tell whether it changed."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ragforge.evaluating.judgments import Settled
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.wholeness import chunks_digest
from ragforge.records import Judgment, Query

_ITEM_DIGITS: Final = 16
_GRADE_DIGITS: Final = 8


def item_digests(queries: Iterable[Query]) -> dict[str, str]:
    """Return what each item is, by query id: equal digests, equal items.

    That is what it asks for: its question, answer and evidence. Grades and chunk ids are no part of
    it, so that an item stays the same when more is judged.
    """
    return {query.query_id: _item(query) for query in queries}


def grades_digest(grades: Mapping[str, int | None], listed: Collection[str] | None = None) -> str:
    """Return what the grades above 0 of an item are; the others move no ranking's value.

    Args:
        grades: By chunk.
        listed: The relevant chunks, where lists decide what is relevant; None where grades do.
    """
    relevant = sorted((chunk_id, grade) for chunk_id, grade in grades.items() if grade)
    told = relevant if listed is None else [relevant, sorted(listed)]
    return _sha256(json.dumps(told))[:_GRADE_DIGITS]


def judgments_digest(settled: Settled) -> str:
    """Return what all grades are, failed ones and lists of relevant chunks too."""
    grades = {
        query_id: {chunk_id: _said(item) for chunk_id, item in sorted(judged.items())}
        for query_id, judged in sorted(settled.items())
    }
    return _sha256(json.dumps(grades))


def _said(judgment: Judgment) -> object:
    if judgment.relevant is None:
        return judgment.grade
    return [judgment.grade, judgment.relevant]


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
