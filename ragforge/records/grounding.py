"""Whether answers say only what their context says."""

from typing import Annotated, Literal

from pydantic import Field

from ragforge.records.answers import Claim
from ragforge.records.provenance import Provenance
from ragforge.records.record import FailureKind, NonEmpty, Record


class Citation(Record):
    """A chunk that an answer cites for what it says."""

    sentence: str
    """What it is cited for, marks of citations left out."""
    chunk_id: NonEmpty
    """Of the chunk; what the answer cites where that is not in its context."""
    status: Literal["supports", "does not support", "not in the context"]


class Grounding(Record):
    """Whether an answer says only what its context says; there is no reference to compare with.

    `faithfulness` is None where a rule says why there is nothing to check, or the judge failed.
    """

    query_id: NonEmpty
    is_grounded: bool | None
    """Whether every claim is supported."""
    faithfulness: Annotated[float, Field(ge=0, le=1)] | None
    """Share of the claims that a chunk of the context supports."""
    claims: tuple[Claim, ...] = ()
    unclaimed: tuple[str, ...] = ()
    """The answer's words that claim nothing, as the judge sees it."""
    citations: tuple[Citation, ...] = ()
    """Those of sentences that claim something, and those that lead nowhere."""
    citation_precision: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the citations that support their sentence; None where there are none."""
    citation_recall: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the sentences with claims whose claims are all supported by chunks cited for them;
    None where nothing is cited or claimed."""
    rule: Literal["", "nothing said", "abstains", "no context", "nothing claimed"] = ""
    """Why there is nothing to check; only "nothing claimed" is for a judge to find."""
    flags: tuple[str, ...] = ()
    """What is suspicious in the answer and its context; it did not change what was found."""
    failure: FailureKind | None = None
    provenance: Provenance | None = None
