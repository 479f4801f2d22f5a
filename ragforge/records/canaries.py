"""What is kept of canaries: a fixed set of pairs that a judge grades again from time to time."""

import operator
from typing import Annotated

from ragforge.records.model import Field
from ragforge.records.queries import Count
from ragforge.records.record import FailureKind, Grade, NonEmpty, Provenance, Record

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class CanaryPair(Record):
    """A pair, and what the judge said of it."""

    query_id: NonEmpty
    chunk_id: NonEmpty
    texts_sha256: Digest
    """Of query and text as they were shown: other words are another question."""
    people: Annotated[Grade | None, Field(exclude_if=lambda grade: grade is None)] = None
    """What people gave; None where nobody graded it."""
    grade: Grade | None
    """None where the judge failed."""
    failure: FailureKind | None = None
    again: Annotated[Grade | None, Field(exclude_if=lambda grade: grade is None)] = None
    """When it was asked a second time right then; only of a first canary."""


class AnsweredBy(Record):
    """Who answered, as the endpoint tells."""

    model: str
    fingerprint: str
    """Of its set-up; "" where the endpoint gives none."""
    n: Count
    """Replies."""


class Canary(Record):
    """One canary of a judge; a line of `canaries.jsonl`, which is only ever added to."""

    canary_id: str
    """Of all that follows."""
    judge: Provenance
    temperature: float
    number: Annotated[int, Field(ge=1)]
    """Of this judge's canaries."""
    first_id: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """The canary that it is held against; "" where it is the first, or begins anew."""
    at: NonEmpty
    """When, UTC, ISO 8601."""
    answered_by: tuple[AnsweredBy, ...]
    pairs: tuple[CanaryPair, ...]
    n_left_out: Count = 0
    """Pairs of the first whose texts changed or are gone."""
    signs: tuple[str, ...] = ()
    """Of a drift; none where the judge is as steady as it was."""
    p: Annotated[dict[str, float], Field(default_factory=dict, exclude_if=operator.not_)]
    """By sign: chance of so much or more from a judge that did not change."""
    calibrations: Annotated[dict[str, str], Field(default_factory=dict, exclude_if=operator.not_)]
    """Those of the judge that were there, with the digest of the grades they are bound to."""
