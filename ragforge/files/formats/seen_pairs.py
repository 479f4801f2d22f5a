"""Which pairs of a file came before, in some ten bytes each."""

from array import array
from collections import OrderedDict
from enum import Enum, auto
from typing import Final

_AT_HAND: Final = 1024
"""Queries whose pairs can be looked up at once: most files have the pairs of a query together."""
_CODE_BITS: Final = 3
"""Grades 0 to 3, and none."""
_HASH: Final = (1 << 61) - 1


class Seen(Enum):
    """What is known of a pair."""

    NEW = auto()
    ALIKE = auto()
    """It came before, with the same grade or likewise without one."""
    OTHERWISE = auto()
    """It came before with another grade."""


class SeenPairs:
    """Remembers pairs by their query and a hash of the chunk's id, with the grade that came along.

    Two chunks of a query share a hash by a chance of 1 in 2^61: of 10^7 pairs, 100 a query, by one
    of 1 in 4,000 million.
    """

    def __init__(self) -> None:
        self._kept: dict[str, array[int]] = {}
        self._at_hand: OrderedDict[str, dict[int, int]] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether there was any."""
        return bool(self._kept or self._at_hand)

    def take(self, query_id: str, chunk_id: str, grade: int | None) -> Seen:
        """Remember a pair, and return what is known of it."""
        of_query = self._at_hand.get(query_id)
        if of_query is None:
            of_query = self._fetched(query_id)
        name, code = hash(chunk_id) & _HASH, 0 if grade is None else grade + 1
        before = of_query.setdefault(name, -1 - code)
        if before < 0:
            of_query[name] = code
            return Seen.NEW
        return Seen.ALIKE if before == code else Seen.OTHERWISE

    def _fetched(self, query_id: str) -> dict[int, int]:
        """Return the pairs of a query, which are at hand from now on."""
        if len(self._at_hand) >= _AT_HAND:
            oldest, pairs = self._at_hand.popitem(last=False)
            packed = (name << _CODE_BITS | code for name, code in pairs.items())
            self._kept[oldest] = array("Q", packed)
        mask = (1 << _CODE_BITS) - 1
        kept = self._kept.pop(query_id, ())
        found = {pair >> _CODE_BITS: pair & mask for pair in kept}
        self._at_hand[query_id] = found
        return found
