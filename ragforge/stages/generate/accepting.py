"""From a candidate to a query, and the id it has."""

import base64
import hashlib

from ragforge.records import Query
from ragforge.stages.generate.candidates import Anchored
from ragforge.stages.generate.checks.standing import Checked
from ragforge.stages.generate.gates.taken import normal_question


def query_id(question: str, language: str) -> str:
    """Return the id that the same question in the same language always gets."""
    digest = hashlib.sha256(f"{language}\n{normal_question(question)}".encode()).digest()
    return f"q_{base64.b32encode(digest).decode().lower()[:16]}"


def id_of(item: Anchored) -> str:
    """Return the id that a candidate gets as a query."""
    candidate = item.candidate
    said = f"{candidate.standalone}\n{candidate.question}" if candidate.standalone else None
    return query_id(said or candidate.question, item.brief.slot.language)


def accepted(item: Anchored, checked: Checked | None) -> Query:
    """Return the query that a candidate becomes.

    Args:
        item: The candidate with its evidence.
        checked: What a model found of it; None where none was asked.
    """
    candidate, slot = item.candidate, item.brief.slot
    answerable = candidate.behaviour != "abstain"
    return Query(
        query_id=id_of(item),
        query=candidate.question,
        expected_answer=candidate.answer,
        difficulty=candidate.difficulty,
        type=candidate.type,
        # A rule takes on nobody's manner.
        persona=slot.persona if candidate.lineage.kind != "baseline" else None,
        language=slot.language,
        answerable=answerable,
        expected_behaviour=candidate.behaviour,
        standalone=candidate.standalone,
        history=candidate.history,
        evidence=item.evidence if answerable else (),
        source_chunk_ids=slot.chunk_ids,
        gates=checked.gates if checked else (),
        measured=checked.measured if checked else None,
        lineage=candidate.lineage.model_copy(
            update={"call_keys": checked.call_keys if checked else ()}
        ),
    )
