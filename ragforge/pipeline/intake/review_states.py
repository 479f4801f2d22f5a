"""Whether a query is as a reviewer saw it, and whether its evidence still stands."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.corpus.quote_locations import ChunkIndex, fold
from ragforge.files.formats.review_sheet import SheetDecision, sheet_text
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import DocumentLines
from ragforge.records import Chunk, Query
from ragforge.stages.generate.truth import Rederived, derive

QUARANTINED: Final = "quarantined"
"""The flag of a query that no refresh or check accepts."""
_STATUSES: Final = ("accepted", "quarantined", "retired")


def state_of(query: Query) -> str:
    """Return what tells whether anything of a query changed since somebody saw it."""
    return hashlib.sha256(query.model_dump_json().encode()).hexdigest()[:16]


def shown_state(query: Query) -> str:
    """Return what tells whether a query is as a sheet showed it: its status, words and quotes.

    No spreadsheet takes it for a number.
    """
    return _digest(query, query.status)


def is_as_shown(row: SheetDecision, query: Query) -> bool:
    """Whether a query of the same revision is as a row showed it.

    Decisions alone make no other state: who rejected may approve after all. Sheets of before there
    were states are taken by what else they show.
    """
    if row.state:
        return row.state in {_digest(query, status) for status in _possible_statuses(query)}
    if row.shown_evidence is not None:
        quotes = sheet_text(evidence_text(query))
        if row.shown_evidence.split() != quotes.split():
            return False
    was_told = row.shown_flags is None or QUARANTINED in row.shown_flags.split("; ")
    return was_told or query.status != "quarantined" or _is_decided(query)


def evidence_text(query: Query) -> str:
    """Return the quotes of a query as a sheet shows them."""
    return "\n\n".join(item.quote for item in query.evidence)


def is_as_decided(query: Query) -> bool:
    """Whether the status of a query is what a person's decision gave it."""
    rejected = query.reviewed is not None and query.reviewed.decision == "reject"
    return _is_decided(query) and query.status == ("retired" if rejected else "accepted")


def where_evidence_stands(dataset: Dataset, queries: Sequence[Query]) -> dict[str, Rederived]:
    """Return queries with their quotes where these stand now, by id.

    Evidence that stands where it says is left as it is. Of a set without chunks nothing is known.

    Raises:
        DataError: The chunks cannot be read.
    """
    doc_ids = {item.doc_id for query in queries for item in query.evidence}
    if not doc_ids or not dataset.chunks_path.exists():
        return {}
    found = {}
    with DocumentLines(dataset.chunks_path, doc_ids) as lines:
        for query in queries:
            named = sorted({item.doc_id for item in query.evidence})
            chunks = [chunk for name in named for chunk in lines.chunks_of(name)]
            is_in_place = _is_in_place(query, chunks)
            found[query.query_id] = (
                Rederived(query, (), ()) if is_in_place else derive(query, ChunkIndex(chunks))
            )
    return found


def _is_in_place(query: Query, chunks: Iterable[Chunk]) -> bool:
    texts = {chunk.chunk_id: chunk.text for chunk in chunks}
    return all(item.quote in texts.get(item.chunk_id, "") for item in query.evidence)


def _possible_statuses(query: Query) -> tuple[str, ...]:
    return _STATUSES if is_as_decided(query) else (query.status,)


def _is_decided(query: Query) -> bool:
    return query.reviewed is not None or query.pinned is not None


def _digest(query: Query, status: str) -> str:
    parts = (
        status,
        query.query,
        query.standalone,
        [[turn.role, turn.text] for turn in query.history],
        query.expected_answer,
        query.answerable,
        [fold(item.quote) for item in query.evidence],
    )
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return f"s_{base64.b32encode(digest).decode().lower()[:16]}"
