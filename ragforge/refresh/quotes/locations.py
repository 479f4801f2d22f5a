"""Where the quotes of a set stand in its corpus as it is now."""

from dataclasses import dataclass
from typing import Literal

from ragforge.corpus.quote_locations import Placement
from ragforge.records import Cause, Evidence, Query

QuoteState = Literal["kept", "moved", "nearby change", "elsewhere", "similar", "gone"]
"""kept: its chunk is as it was. moved: verbatim in its document, which changed far from it only.
nearby change: verbatim, and the text around it changed. elsewhere: verbatim in another document.
similar: in other words. gone: nowhere. In this order; a query is as its worst quote."""
STATES: tuple[QuoteState, ...] = (
    "kept",
    "moved",
    "nearby change",
    "elsewhere",
    "similar",
    "gone",
)


@dataclass(frozen=True, slots=True)
class QuoteSight:
    """A quote, and where it stands now.

    Args:
        evidence: As the set has it.
        state: What became of it.
        doc_id: The document in which it stands now; its own where it is gone.
        placement: Where it stands there; None where it is gone. For `kept`, None where its
            document did not change at all: then nothing about it needs a second look.
        likeness: 1 where it stands verbatim, else the share of its wording that is there; 0 gone.
        causes: Why it is not as it was; () for `kept`.
    """

    evidence: Evidence
    state: QuoteState
    doc_id: str
    placement: Placement | None = None
    likeness: float = 1.0
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemSight:
    """A query, and where its quotes stand now, in the order of its evidence."""

    query: Query
    quotes: tuple[QuoteSight, ...]

    @property
    def state(self) -> QuoteState:
        """That of its worst quote; `kept` where it has none."""
        return max((quote.state for quote in self.quotes), key=STATES.index, default="kept")

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Those of its quotes, each once."""
        return tuple(dict.fromkeys(cause for quote in self.quotes for cause in quote.causes))
