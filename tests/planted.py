"""Candidates with one planted defect each, and honest ones; prints which gate caught which.

`python tests/planted.py` prints the table.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragforge.records import Chunk, Lineage, Slot, Turn
from ragforge.stages.generate.candidates import Anchored, Brief, Candidate, Quoted
from ragforge.stages.generate.gates.checking import check
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked

_DATA = Path(__file__).parent / "data"
_TEXTS = json.loads((_DATA / "planted_passages.json").read_text(encoding="utf-8"))
_BEHAVIOURS = {
    "unanswerable": "abstain",
    "false_premise": "correct_premise",
    "ambiguous": "clarify",
}
ASKED = (
    ("q_first", "What is the default connect timeout of an httpx client?"),
    ("q_retired", "How can the connection pool limits of a client be changed?"),
    ("q_german", "Wie viele Verbindungen hält der Pool eines Clients höchstens offen?"),
    ("q_chinese", "httpx 客户端的默认连接超时时间是多少秒\uff1f"),
)
"""What is taken when they are checked."""


@dataclass(frozen=True)
class Planted:
    """A candidate with what must become of it.

    Args:
        what: The defect, in a few words; for an honest one what is special about it.
        code: That must catch it; "" for honest ones.
    """

    what: str
    code: str
    candidate: Candidate
    brief: Brief


def planted() -> list[Planted]:
    """Return the candidates with a defect."""
    return list(_read("planted_defects.jsonl"))


def honest() -> list[Planted]:
    """Return the candidates without one."""
    return list(_read("honest_candidates.jsonl"))


def canaries() -> list[Planted]:
    """Return what was written of a passage that gives orders, by models that obey and others."""
    return list(_read("canary_candidates.jsonl"))


def verdict(one: Planted) -> str:
    """Return the code under which a candidate is stopped; "" if it passes."""
    found = check(one.candidate, one.brief, QuestionsAsked(ASKED), 0)
    return "" if isinstance(found, Anchored) else found.code


def _read(name: str) -> Iterator[Planted]:
    for line in (_DATA / name).read_text(encoding="utf-8").splitlines():
        yield _planted(json.loads(line))


def _planted(row: dict) -> Planted:
    texts = [_TEXTS[name] for name in row.get("passages", ["pool"])]
    chunks = tuple(
        Chunk(chunk_id=f"c{at}", doc_id=f"d{at}", text=text) for at, text in enumerate(texts)
    )
    query_type = row.get("type", "fact")
    slot = Slot(
        slot_id="000000-0",
        type=query_type,
        difficulty="easy",
        persona="developer",
        language=row.get("language", "en"),
        stratum="docs",
        chunk_ids=tuple(chunk.chunk_id for chunk in chunks),
        doc_ids=tuple(chunk.doc_id for chunk in chunks),
    )
    candidate = Candidate(
        question=row["question"],
        answer=row["answer"],
        quotes=tuple(Quoted(text, passage) for text, passage in row["quotes"]),
        difficulty="easy",
        type=query_type,
        lineage=Lineage(kind="llm", model="planted", slot=slot.slot_id),
        behaviour=row.get("behaviour", _BEHAVIOURS.get(query_type, "answer")),
        standalone=row.get("standalone", ""),
        history=tuple(Turn(role=role, text=text) for role, text in row.get("history", [])),
    )
    return Planted(row["what"], row.get("code", ""), candidate, Brief(slot, chunks))


def main() -> None:
    """Print what was planted, what should catch it and what did."""
    rows = [*planted(), *canaries(), *honest()]
    for one in rows:
        found, expected = verdict(one) or "passes", one.code or "passes"
        mark = "ok" if found == expected else "WRONG"
        sys.stdout.write(f"{expected:20} {found:20} {mark:6} {one.what}\n")


if __name__ == "__main__":
    main()
