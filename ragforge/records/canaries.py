"""What is kept of canaries: a fixed set of pairs that a judge grades again from time to time."""

import operator
from typing import Annotated, Final

from ragforge.deferred import pattern
from ragforge.records.model import Field
from ragforge.records.queries import Count
from ragforge.records.record import FailureKind, Grade, NonEmpty, Provenance, Record

_SINCE: Final = pattern(r"(?:, |^)(since drift \d{4}-\d\d-\d\d [0-9a-f]+)(?=,|$)")
"""In a protocol: the judge is not the one of before a canary."""
_ID_DIGITS: Final = 8

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
    """As it was named at the first one; its protocol says after which drift that was."""
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

    @property
    def since(self) -> str:
        """What the protocol of the judge ends in from this canary on, which found a drift."""
        return f"since drift {self.at[:10]} {self.canary_id[:_ID_DIGITS]}"


def since_drift(protocol: str) -> str:
    """Return the part of a protocol that says since which drift a judge is who it is, or ""."""
    found = _SINCE.search(protocol)
    return found[1] if found else ""


def before_drift(judge: Provenance) -> Provenance:
    """Return a judge as it was named before any drift."""
    return judge.model_copy(update={"protocol": _SINCE.sub("", judge.protocol)})
