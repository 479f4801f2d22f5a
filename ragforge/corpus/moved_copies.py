"""Which chunk of now is which of before, where several have one text."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from ragforge.records import with_place, without_place


class Copy(NamedTuple):
    """A chunk among those with one text; sorted as they stand.

    Args:
        doc_id: Of its document, before or now.
        start: Where it begins there.
        chunk_id: Its id.
        home: The id that its document has now; that of none where the document is gone.
    """

    doc_id: str
    start: int
    chunk_id: str
    home: str


def at_place(text_id: str, copies: Iterable[Copy]) -> list[Copy]:
    """Return the copies of a text, as they stand: those in its document where its id tells one."""
    of_text, everywhere = without_place(text_id), sorted(copies)
    own = [copy for copy in everywhere if with_place(of_text, copy.doc_id) == text_id]
    return own or everywhere


def match_copies(before: Iterable[Copy], now: Iterable[Copy]) -> dict[str, tuple[str, ...]]:
    """Return the ids that chunks with one text have now; nothing where none has the text now.

    What has its id in its document still stays. In one document the first is the first, and so on;
    what no document tells goes by the order of all. Where there are more now, the last stands for
    the others too; where there are fewer, what is left over goes with the last of its document, or
    with all.

    Args:
        before: Chunks of before.
        now: Those that may be these now.
    """
    old, new = sorted(before), sorted(now)
    there = {(copy.doc_id, copy.chunk_id) for copy in new}
    found = dict[str, tuple[str, ...]]()
    for copy in old:
        if (copy.home, copy.chunk_id) in there:
            found[copy.chunk_id] = (copy.chunk_id,)
    here: dict[str, list[str]] = {}
    for copy in new:
        if copy.chunk_id not in found:
            here.setdefault(copy.doc_id, []).append(copy.chunk_id)
    left: list[Copy] = []
    taken = {*found}
    by_home = sorted((copy for copy in old if copy.chunk_id not in found), key=lambda one: one.home)
    for home, copies in groupby(by_home, lambda one: one.home):
        of_home, places = [*copies], here.get(home, [])
        found |= _in_order(of_home, places)
        left += of_home[len(places) :]
        taken.update(places)
    left.sort()
    spare = [copy.chunk_id for copy in new if copy.chunk_id not in taken]
    found |= _in_order(left, spare)
    everywhere = [copy.chunk_id for copy in new]
    for copy in left[len(spare) :] if new else ():
        found[copy.chunk_id] = tuple(here.get(copy.home, [])[-1:] or everywhere)
    return found


def _in_order(before: Sequence[Copy], now: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the first for the first, and so on; the last of before has what is left of now."""
    pairs = dict[str, tuple[str, ...]]()
    for copy, place in zip(before, now, strict=False):
        pairs[copy.chunk_id] = (place,)
    if before and len(now) > len(before):
        pairs[before[-1].chunk_id] = tuple(now[len(before) - 1 :])
    return pairs
