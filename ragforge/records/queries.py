"""Queries with their true answers and the evidence for them."""

from typing import Annotated, Literal

from pydantic import Field

from ragforge.records.provenance import Provenance
from ragforge.records.record import NonEmpty, Record

Difficulty = Literal["easy", "medium", "hard"]
QueryType = Literal[
    "fact",
    "definition",
    "procedure",
    "comparison",
    "why",
    "list",
    "troubleshooting",
    "multi_hop",
    "temporal",
    "false_premise",
    "ambiguous",
    "keyword",
    "unanswerable",
]


class Evidence(Record):
    """A verbatim quote that holds the answer, or part of it."""

    doc_id: NonEmpty
    chunk_id: NonEmpty
    quote: NonEmpty
    start: Annotated[int, Field(ge=0)] | None = None
    end: Annotated[int, Field(ge=0)] | None = None
    """Offsets of the quote in the normalised document text; None where the chunk has none."""


class Fact(Record):
    """A statement that an answer to a query has to make (vital), or may well make (okay)."""

    fact_id: NonEmpty
    text: NonEmpty
    importance: Literal["vital", "okay"] = "vital"


class Query(Record):
    """A question with what is known to be its true answer."""

    query_id: NonEmpty
    query: NonEmpty
    expected_answer: str | None = None
    difficulty: Difficulty | None = None
    type: QueryType | None = None
    persona: str | None = None
    language: str = "en"
    answerable: bool = True
    facts: tuple[Fact, ...] = ()
    """What the expected answer comes to; drawn from it once, and open to a person's editing."""
    facts_by: Provenance | None = None
    """Who drew the facts; None where a person wrote them, or there are none."""
    facts_of: str = ""
    """From what they were drawn: the first 16 hex digits of the sha256 of the expected answer, ""
    where a person wrote them."""
    evidence: tuple[Evidence, ...] = ()
    source_chunk_ids: tuple[str, ...] = ()
    split: Literal["dev", "test"] | None = None
    status: Literal["accepted", "quarantined", "retired"] = "accepted"
    origin: Literal["synthetic", "human", "log"] = "synthetic"
    lineage: Provenance | None = None
