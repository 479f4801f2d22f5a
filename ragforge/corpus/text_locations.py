"""Where a retrieved text stands in the documents, whatever cut it, stripped it or wrapped it.

Texts are compared by their letters and digits alone: folded to lower case and to NFKD, without
accents, blanks, punctuation and marks of markup. A splitter that drops `#`, joins lines, or puts a
title in front leaves them as they were.

A text is looked for in the document that is named, else through an index of short runs of letters
(k-grams) of all documents. What stands nowhere as a whole is placed by the k-grams that it shares
with one stretch of a document, as seed-and-extend aligners place a read: Altschul et al. 1990,
Journal of Molecular Biology 215(3).
"""

import unicodedata
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from ragforge.records import Chunk, Span

GRAM: Final = 12
"""Letters of a k-gram: two texts rarely share one by chance."""
MOST_PLACES: Final = 32
"""Places kept of a text that stands in many: what is everywhere tells nothing apart."""
LEAST_SHARED: Final = 40
"""Letters that a text shares with the documents at least, where it stands nowhere as a whole."""
LEAST_LIKENESS: Final = 0.3
"""Share of a text's letters that stand in the documents, from which it has a place in them."""
LEAST_LIKENESS_ANYWHERE: Final = 0.5
"""The same where the document is not named and the place is no unbroken stretch of twice as many
letters: words of a subject stand in many."""
LEAST_DENSITY: Final = 0.8
"""Share of the letters of a place that the text has, from which it is that place: a text that was
rewritten has a word here and there of it."""

_MOST_SHARED_BY: Final = 64
"""Places of a k-gram from which on it counts as boilerplate, and votes for none."""
_STEPS: Final = ((2_000_000, 1), (6_000_000, 2), (20_000_000, 4), (60_000_000, 8))
"""Letters of a corpus up to which each, every second, fourth, … k-gram is in the index."""
_WIDEST_STEP: Final = 16
_FOLDED_HELD: Final = 128
_CODEPOINTS: Final = 0x110000
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
_ALMOST_AS_MUCH: Final = 0.9
"""Of the letters at the best place, what another one has that cannot be told from it."""
_BESIDE_ALL: Final = 0.97
"""The same where the best place has each of its letters in the text, one behind the other."""
_LOOKED_AT: Final = 128
"""Places of which the spelling is compared; of more, none is told apart by it."""
_OFF: Final = 64
"""Characters, beside its own length, that a text may stand from where it is said to begin."""
_WORTH_A_LOOK: Final = 0.25
"""Of the k-grams that the likeliest place has, what another one has that may be the better."""
_PAIRS: Final = 20_000
"""Pairs of equal k-grams from which on those that a text repeats are left out."""

_LESS_THAN_ALL: Final = 0.9999

Places = npt.NDArray[np.int64]
_Letters = npt.NDArray[np.uint32]
_Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class TextLocation:
    """Where a text stands.

    Args:
        spans: Its place; several where the documents hold it in more than one that nothing tells
            apart, `MOST_PLACES` at most, in the order of the documents.
        likeness: Share of the letters of the text, or of its place where that has more, that both
            have: 1 where they are the same letters, and only there.
    """

    spans: tuple[Span, ...]
    likeness: float = 1.0

    @property
    def is_ambiguous(self) -> bool:
        """Whether it stands in several places."""
        return len(self.spans) > 1


class TextLocator:
    """Finds the places of texts in documents.

    Holds the letters of all documents, and 16 bytes for each, or every second to sixteenth, of
    them: an index of 10 million letters takes 40 MB. A text of fewer than `GRAM` letters, or in a
    large corpus of fewer than 27, is found in a document that is named alone.

    Args:
        documents: Text by id; order decides between nothing but the order of spans.
    """

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._texts = dict(documents)
        self._doc_ids = list(self._texts)
        self._number = {doc_id: at for at, doc_id in enumerate(self._doc_ids)}
        self._folded: OrderedDict[str, Places] = OrderedDict()
        self._letters = [_as_text(_letters(text)[0]) for text in self._texts.values()]
        self._starts = np.cumsum([0, *map(len, self._letters)])
        self._step = _step(int(self._starts[-1]))
        self._grams, self._at = self._indexed()

    def locate(
        self, text: str, *, doc_ids: Iterable[str] = (), near: int | None = None
    ) -> TextLocation | None:
        """Return where a text stands; None where it stands nowhere.

        Args:
            text: As it was retrieved.
            doc_ids: Documents that it is said to be of. What is in none of them as a whole is
                looked for in all; what is like it counts in them alone. Ids that there are not are
                passed over.
            near: Offset in its document where it is said to begin; it tells places in one document
                apart, if one of them is about there.
        """
        letters = _letters(text)[0]
        if not len(letters):
            return None
        wanted = _as_text(letters)
        named = [self._number[doc_id] for doc_id in doc_ids if doc_id in self._number]
        found = [place for doc in named for place in self._within(doc, wanted, near)]
        if not found:
            found = self._occurrences(wanted, letters)
        if found:
            spans = [self._span(doc, at, at + len(wanted), text) for doc, at in found]
            return TextLocation(self._told_apart(spans, text, near))
        return self._like(letters, text, named, near)

    def _within(self, doc: int, wanted: str, near: int | None) -> list[tuple[int, int]]:
        """Return the places of a text in one document: no part of a word, where it is short."""
        found = list(_occurrences(wanted, self._letters[doc]))
        if len(wanted) < GRAM and found:
            original, at = self._texts[self._doc_ids[doc]], self._original(self._doc_ids[doc])
            found = [
                first
                for first in found
                if _is_apart(original, int(at[first]), int(at[first + len(wanted) - 1]) + 1)
            ]
        if near is not None and len(found) > _LOOKED_AT:
            starts = self._original(self._doc_ids[doc])[found]
            found = [found[index] for index in np.argsort(np.abs(starts - near))[:_LOOKED_AT]]
        return [(doc, first) for first in found[:_LOOKED_AT]]

    def _indexed(self) -> tuple[_Hashes, Places]:
        """Return the hashes of k-grams, sorted, and where each stands in all letters."""
        hashes, places = [], []
        for start, text in zip(self._starts.tolist(), self._letters, strict=False):
            grams = _hashes(np.frombuffer(text.encode("utf-32-le"), np.uint32))[:: self._step]
            hashes.append(grams)
            places.append(np.arange(len(grams), dtype=np.int64) * self._step + start)
        if not hashes:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64)
        grams, at = np.concatenate(hashes), np.concatenate(places)
        order = np.argsort(grams, kind="stable")
        return grams[order], at[order]

    def _postings(self, hashes: _Hashes) -> tuple[Places, Places]:
        """Return for each hash where its postings begin and end."""
        first = np.searchsorted(self._grams, hashes, "left")
        return first, np.searchsorted(self._grams, hashes, "right")

    def _occurrences(self, wanted: str, letters: _Letters) -> list[tuple[int, int]]:
        """Return all places of a text as (document, place in its letters), through the index."""
        n_windows = len(letters) - GRAM - self._step + 2
        if n_windows < 1:
            return []
        first, last = self._postings(_hashes(letters))
        counts = last - first
        # One of `step` k-grams in a row is in the index, wherever the text begins; the rarest row.
        sums = np.convolve(counts, np.ones(self._step, np.int64), "valid")
        window = int(np.argmin(sums))
        found = []
        for offset in range(window, window + self._step):
            for place in self._at[first[offset] : last[offset]].tolist():
                doc = int(np.searchsorted(self._starts, place, "right")) - 1
                at = place - int(self._starts[doc]) - offset
                if at >= 0 and self._letters[doc].startswith(wanted, at):
                    found.append((doc, at))
                    if len(found) >= _LOOKED_AT:
                        return sorted(found)
        return sorted(found)

    def _like(
        self, letters: _Letters, text: str, named: Sequence[int], near: int | None
    ) -> TextLocation | None:
        """Return the stretch of a document that has most of a text's letters in their order."""
        hashes = _hashes(letters)
        if not len(hashes):
            return None
        stretches = _apart(self._stretches(hashes, len(letters), named))
        if not stretches:
            return None
        best = stretches[0]
        beside = _BESIDE_ALL if best.shared == best.end - best.start else _ALMOST_AS_MUCH
        rivals = [each for each in stretches if each.held >= beside * best.held]
        spans = [self._span(each.doc, each.start, each.end, text) for each in rivals[:MOST_PLACES]]
        # Of the text and of its place: what was cut out of the middle is missing as well.
        longer = max(len(letters), best.end - best.start)
        likeness = min(round(best.shared / longer, 4), _LESS_THAN_ALL)
        return TextLocation(self._told_apart(spans, text, near), likeness)

    def _stretches(
        self, hashes: _Hashes, n_letters: int, docs: Sequence[int]
    ) -> Iterator["_Stretch"]:
        """Yield the stretches that are dense in a text's k-grams, one a place."""
        first, last = self._postings(hashes)
        counts = last - first
        offsets = np.flatnonzero((counts > 0) & (counts <= _MOST_SHARED_BY))
        if not len(offsets):
            return
        seeds = np.concatenate([self._at[first[at] : last[at]] for at in offsets])
        diagonals = np.sort(seeds - np.repeat(offsets, counts[offsets]))
        for group in _groups(diagonals, max(2 * GRAM, n_letters // 2)):
            for doc in self._documents_of(int(group[0]), int(group[-1]) + n_letters):
                if docs and doc not in docs:
                    continue
                begin = int(self._starts[doc])
                low = max(0, int(group[0]) - begin - GRAM)
                high = min(len(self._letters[doc]), int(group[-1]) - begin + n_letters + GRAM)
                stretch = self._stretch(doc, low, high, hashes)
                if stretch is not None and _is_enough(stretch, n_letters, named=bool(docs)):
                    yield stretch

    def _documents_of(self, low: int, high: int) -> range:
        first = max(0, int(np.searchsorted(self._starts, low, "right")) - 1)
        return range(
            first, min(len(self._doc_ids), int(np.searchsorted(self._starts, high, "left")))
        )

    def _stretch(self, doc: int, low: int, high: int, hashes: _Hashes) -> "_Stretch | None":
        """Return the dense part of a stretch: k-grams of the text with no wide hole between."""
        part = np.frombuffer(self._letters[doc][low:high].encode("utf-32-le"), np.uint32)
        chain = _chain(_hashes(part), hashes)
        best: _Stretch | None = None
        held = 0
        for run in np.split(chain, np.flatnonzero(np.diff(chain[:, 0]) > LEAST_SHARED) + 1):
            if not len(run):
                continue
            steps = np.minimum(np.diff(run, axis=0).min(axis=1), GRAM)
            covered = int(steps.sum()) + GRAM
            held += covered
            start, end = int(run[0, 0]), int(run[-1, 0]) + GRAM
            if covered < LEAST_DENSITY * (end - start):
                continue
            if best is None or covered > best.shared:
                best = _Stretch(doc, low + start, low + end, covered)
        return best and replace(best, held=held)

    def _span(self, doc: int, start: int, end: int, text: str) -> Span:
        """Return the stretch of a document that some of its letters are, with its punctuation."""
        doc_id = self._doc_ids[doc]
        original, at = self._texts[doc_id], self._original(doc_id)
        first, behind = int(at[start]), int(at[end - 1]) + 1
        return _with_edges(doc_id, original, first, behind, text)

    def _original(self, doc_id: str) -> Places:
        """Return where each letter of a document stands in its text."""
        if doc_id in self._folded:
            self._folded.move_to_end(doc_id)
        else:
            self._folded[doc_id] = _letters(self._texts[doc_id])[1]
            if len(self._folded) > _FOLDED_HELD:
                self._folded.popitem(last=False)
        return self._folded[doc_id]

    def _told_apart(self, spans: Sequence[Span], text: str, near: int | None) -> tuple[Span, ...]:
        """Return the places that a text may be of, by its spelling and where it is said to be."""
        if len(spans) == 1:
            return tuple(spans)
        wanted = _spaced(text)
        spelled = [
            span
            for span in spans
            if _spaced(self._texts[span.doc_id][span.start : span.end]) == wanted
        ]
        left = spelled if spelled and len(spans) < _LOOKED_AT else list(spans)
        if near is not None:
            left = _nearest(left, near, _OFF + len(text))
        return tuple(left[:MOST_PLACES])


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Letters [start, end) of a document, of which a text has `shared`; `held` with those about.

    What a text leaves out parts the letters that it has of one place.
    """

    doc: int
    start: int
    end: int
    shared: int
    held: int = 0


class FoldedText:
    """A text by its letters and digits, in which other texts are looked for.

    Args:
        text: Such as a document.
    """

    def __init__(self, text: str) -> None:
        self.letters = _as_text(_letters(text)[0])
        self._text = text

    def places(self, letters: str) -> Iterator[tuple[int, int]]:
        """Yield the offsets [start, end) at which some letters stand, from the first to the last.

        Fewer than `GRAM` letters count as whole words alone: 80 does not stand in 1980.

        Args:
            letters: Of another folded text, one or more.
        """
        at = self.letters.find(letters)
        # Not kept: it takes eight times as much as the letters, and few texts hold any.
        offsets = _letters(self._text)[1] if at >= 0 else ()
        while at >= 0:
            start, end = int(offsets[at]), int(offsets[at + len(letters) - 1]) + 1
            if len(letters) >= GRAM or self._is_bounded(start, end):
                yield start, end
            at = self.letters.find(letters, at + 1)

    def _is_bounded(self, start: int, end: int) -> bool:
        before, behind = self._text[max(0, start - 1) : start], self._text[end : end + 1]
        return not (before.isalnum() or behind.isalnum())


def documents_of(chunks: Iterable[Chunk]) -> dict[str, str]:
    """Return the documents that chunks were cut from, by id, at the offsets that chunks have.

    Between two chunks a document has blanks, as many as the offsets say. Where chunks have no
    offsets they stand one behind the other, in their order, a line end between two.
    """
    of_document: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        of_document.setdefault(chunk.doc_id, []).append(chunk)
    return {doc_id: _text_of(listed) for doc_id, listed in of_document.items()}


def _text_of(chunks: Sequence[Chunk]) -> str:
    if any(chunk.end - chunk.start != len(chunk.text) for chunk in chunks):
        return "\n".join(chunk.text for chunk in chunks)
    parts: list[str] = []
    length = 0
    for chunk in sorted(chunks, key=lambda chunk: (chunk.start, chunk.end)):
        if chunk.start > length:
            parts.append("\n" * (chunk.start - length))
            length = chunk.start
        parts.append(chunk.text[length - chunk.start :])
        length = max(length, chunk.end)
    return "".join(parts)


def _with_edges(doc_id: str, original: str, start: int, end: int, text: str) -> Span:
    """Return a span with the punctuation and marks that the text has at its ends as well."""
    before = _outer(text)
    for char in reversed(before):
        at = start - 1
        while at >= 0 and original[at].isspace():
            at -= 1
        if at < 0 or original[at] != char:
            break
        start = at
    for char in _outer(text[::-1])[::-1]:
        at = end
        while at < len(original) and original[at].isspace():
            at += 1
        if at >= len(original) or original[at] != char:
            break
        end = at + 1
    return Span(doc_id=doc_id, start=start, end=end)


def _outer(text: str) -> str:
    """Return the marks before the first letter of a text, without blanks."""
    marks = []
    for char in text:
        if len(_folded_letters(char)):
            break
        if not char.isspace():
            marks.append(char)
    return "".join(marks)


def _nearest(spans: Sequence[Span], near: int, most: int) -> list[Span]:
    """Return of each document the span that begins nearest to an offset, if it is near enough."""
    by_document: dict[str, list[Span]] = {}
    for span in spans:
        by_document.setdefault(span.doc_id, []).append(span)
    left: list[Span] = []
    for listed in by_document.values():
        nearest = min(listed, key=lambda span: abs(span.start - near))
        left += [nearest] if abs(nearest.start - near) <= most else listed
    return left


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether no word goes on over the ends of a stretch, in scripts that have blanks."""
    return not (
        (start > 0 and _is_of_word(text[start - 1]) and _is_of_word(text[start]))
        or (end < len(text) and _is_of_word(text[end - 1]) and _is_of_word(text[end]))
    )


def _is_of_word(char: str) -> bool:
    return char.isdigit() or char.lower() != char.upper()


def _is_enough(stretch: _Stretch, n_letters: int, *, named: bool) -> bool:
    """Whether a text of so many letters has enough of a stretch for a place."""
    is_unbroken = stretch.shared == stretch.end - stretch.start
    is_telling = named or (is_unbroken and stretch.shared >= 2 * LEAST_SHARED)
    likeness = LEAST_LIKENESS if is_telling else LEAST_LIKENESS_ANYWHERE
    return stretch.shared >= max(LEAST_SHARED, likeness * n_letters)


def _groups(diagonals: Places, width: int) -> Iterator[Places]:
    """Yield the groups of sorted diagonals that no gap of more than a width parts, largest first.

    What was added to a text or left out of it shifts the diagonal from there on.
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(diagonals) > width) + 1])
    sizes = np.diff(starts, append=len(diagonals))
    for at in np.argsort(-sizes, kind="stable")[:MOST_PLACES].tolist():
        if sizes[at] < _WORTH_A_LOOK * sizes.max():
            return
        yield diagonals[starts[at] : starts[at] + sizes[at]]


def _apart(stretches: Iterable["_Stretch"]) -> list["_Stretch"]:
    """Return stretches, those with most letters first, without any that overlaps a better one."""
    apart: list[_Stretch] = []
    for stretch in sorted(stretches, key=lambda each: (-each.held, each.doc, each.start)):
        if not any(
            other.doc == stretch.doc and stretch.start < other.end and other.start < stretch.end
            for other in apart
        ):
            apart.append(stretch)
    return apart


def _chain(grams: _Hashes, wanted: _Hashes) -> Places:
    """Return the longest row of k-grams that stand in both texts in one order.

    Returns:
        Pairs (place in `grams`, place in `wanted`), both rising: the longest rising subsequence,
        after Fredman 1975, Discrete Mathematics 11(1).
    """
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]
    first = np.searchsorted(ordered, grams, "left")
    counts = np.searchsorted(ordered, grams, "right") - first
    if counts.sum() > _PAIRS:
        counts[counts > 1] = 0
    at = np.flatnonzero(counts)
    offsets = order[first[at]]
    if (counts[at] == 1).all() and (np.diff(offsets) > 0).all():
        return np.stack([at, offsets], axis=1)
    lasts: list[int] = []
    ends: list[int] = []
    places: list[tuple[int, int, int]] = []
    for place in at.tolist():
        low = int(first[place])
        for offset in order[low : low + int(counts[place])][::-1].tolist():
            length = bisect_left(lasts, offset)
            places.append((place, offset, ends[length - 1] if length else -1))
            if length == len(lasts):
                lasts.append(offset)
                ends.append(len(places) - 1)
            else:
                lasts[length], ends[length] = offset, len(places) - 1
    chain: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        place, offset, index = places[index]
        chain.append((place, offset))
    return np.array(chain[::-1], np.int64).reshape(-1, 2)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _occurrences(wanted: str, text: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _step(n_letters: int) -> int:
    return next((step for most, step in _STEPS if n_letters <= most), _WIDEST_STEP)


def _hashes(letters: _Letters) -> _Hashes:
    """Return the hash of the k-gram at each letter that has enough behind it."""
    n = len(letters) - GRAM + 1
    if n < 1:
        return np.zeros(0, np.uint64)
    wide = letters.astype(np.uint64)
    total = np.zeros(n, np.uint64)
    for at in range(GRAM):
        total = (total + wide[at : at + n]) * _FACTOR
    return (total ^ (total >> _HALF)) * _MIX


def _folded_letters(char: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(each for each in plain if each.isalnum())


class _Folding:
    """How many letters each code point has, and the first of them; filled as code points come."""

    def __init__(self) -> None:
        self.counts = np.full(_CODEPOINTS, 255, np.uint8)
        self.first = np.zeros(_CODEPOINTS, np.uint32)
        self.several: dict[int, _Letters] = {}

    def learn(self, codes: _Letters) -> None:
        unknown = np.unique(codes[self.counts[codes] == 255])
        for code in unknown.tolist():
            folded = _folded_letters(chr(code)) if not 0xD800 <= code < 0xE000 else ""
            self.counts[code] = len(folded)
            if folded:
                self.first[code] = ord(folded[0])
            if len(folded) > 1:
                self.several[code] = np.array([ord(each) for each in folded], np.uint32)


@cache
def _folding() -> _Folding:
    return _Folding()


def _letters(text: str) -> tuple[_Letters, Places]:
    """Return the letters and digits that a text is compared by, and where each stands in it."""
    folding = _folding()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    counts = folding.counts[codes]
    if (counts == 255).any():
        folding.learn(codes)
        counts = folding.counts[codes]
    if (counts > 1).any():
        at = np.repeat(np.arange(len(codes)), counts)
        letters = folding.first[codes[at]]
        begun = np.cumsum(counts, dtype=np.int64) - counts
        for place in np.flatnonzero(counts > 1).tolist():
            several = folding.several[int(codes[place])]
            letters[begun[place] : begun[place] + len(several)] = several
        return letters, at
    at = np.flatnonzero(counts)
    return folding.first[codes[at]], at


def _as_text(letters: _Letters) -> str:
    return letters.astype("<u4").tobytes().decode("utf-32-le")
