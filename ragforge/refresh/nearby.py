"""Whether a quote still stands in its document, and whether the text around it is as it was."""

from dataclasses import dataclass
from itertools import islice
from typing import Final

from ragforge.corpus.anchors import Location, Page, Placement, standing_at
from ragforge.corpus.folding import FoldedText
from ragforge.corpus.pages import Surroundings, alike
from ragforge.records import Evidence
from ragforge.refresh.sights import QuoteState

_MOST_SPOTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Standing:
    """How a quote stood in the version before.

    Args:
        placement: None where it did not stand in its document any more.
        around: The text around it; where it did not stand, what its evidence tells of that.
    """

    placement: Placement | None
    around: Surroundings


@dataclass(frozen=True, slots=True)
class Place:
    """A verbatim place of a quote.

    Args:
        placement: Where it is.
        is_same_chunks: Whether the chunks that held the quote before still hold it there.
        is_same_around: Whether the text around it is as it was.
        n_alike: Characters around it that are as they were, counted from the quote on.
    """

    placement: Placement
    is_same_chunks: bool
    is_same_around: bool
    n_alike: int

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """What tells the likelier of two places; higher is better."""
        return self.is_same_chunks, self.is_same_around, self.n_alike


def standing(evidence: Evidence, page: Page, chars: int) -> Standing:
    """Return how a quote stands in the version before.

    Args:
        evidence: With the quote.
        page: Its document there.
        chars: How much of the text around it counts, to either side.
    """
    spot = page.spot(evidence)
    if spot is None:
        before, after = FoldedText(evidence.prefix).text, FoldedText(evidence.suffix).text
        return Standing(None, Surroundings(before.lstrip(), after.rstrip()))
    return Standing(page.placed(spot), page.around(spot, chars))


def likeliest(quote: str, was: Standing, page: Page, chars: int) -> Place | None:
    """Return the place of a quote on a page that is most like where it stood; None for no place.

    Of equals it is the first. Of a quote that stands there more than 10,000 times, as only one of
    next to nothing does, those are looked at.
    """
    spots = islice(page.spots(quote), _MOST_SPOTS)
    places = (_place(spot, was, page, chars) for spot in spots)
    return max(places, key=lambda place: place.rank, default=None)


def state_at(evidence: Evidence, place: Place, *, is_same_text: bool) -> QuoteState:
    """Return what became of a quote that stands in its document, or in that under a new id.

    Args:
        evidence: As the set has it.
        place: Where it stands now.
        is_same_text: Whether the document has the same text, so that nothing around it changed.
    """
    if place.is_same_chunks and standing_at(evidence, place.placement) == evidence:
        return "kept"
    if place.is_same_chunks or place.is_same_around or is_same_text:
        return "moved"
    return "nearby change"


def _place(spot: Location, was: Standing, page: Page, chars: int) -> Place:
    placement, around = page.placed(spot), page.around(spot, chars)
    return Place(
        placement,
        is_same_chunks=was.placement is not None and _read(was.placement) == _read(placement),
        is_same_around=was.placement is not None and was.around == around,
        n_alike=alike(was.around.before[::-1], around.before[::-1])
        + alike(was.around.after, around.after),
    )


def _read(placement: Placement) -> list[tuple[str, str]]:
    return [(chunk.chunk_id, chunk.text) for chunk in placement.chunks]
