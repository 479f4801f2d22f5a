"""Where a retrieved text stands in the documents, whatever cut it, stripped it or wrapped it.

Texts are compared by their letters and digits: folded to lower case and to NFKD, without accents,
blanks, punctuation and marks of markup. A splitter that drops `#`, joins lines, or puts a title in
front leaves them as they were. What has another sign there, as -11 for 11, is only like its place.

A text is looked for in the document that is named, else through an index of short runs of letters
(k-grams) of all documents. What stands nowhere as a whole is placed by the k-grams that it shares
with one stretch of a document, as seed-and-extend aligners place a read: Altschul et al. 1990,
Journal of Molecular Biology 215(3).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.corpus.laid_out import joined
from ragforge.corpus.letters import GRAM, Letters, Places, as_text, folded_letters, letters_of
from ragforge.corpus.wordings import has_same_signs
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.files.text import normalize
from ragforge.records import Chunk, Span

if TYPE_CHECKING:
    import numpy.typing as npt

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
_MARKED: Final = 2048
"""Letters of a document after which it is kept where one stands."""
_FACTOR: Final = 0x9E3779B97F4A7C15
_MIX: Final = 0xD6E8FEB86659FD93
_HALF: Final = 32
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

_FOUR_BYTES: Final = 2**32
_MOST_RUNS: Final = 200
"""Runs of equal k-grams that are put into a row, the longest; a text rewritten has fewer."""
_LESS_THAN_ALL: Final = 0.9999

_Hashes: TypeAlias = "npt.NDArray[np.uint64]"


@dataclass(frozen=True, slots=True)
class TextLocation:
    """Where a text stands.

    Args:
        spans: Its place; several where the documents hold it in more than one that nothing tells
            apart, `MOST_PLACES` at most, in the order of the documents.
        likeness: Share of the letters of the text, or of its place where that has more, that both
            have: 1 where they are the same letters and signs, and only there.
        has_other_signs: Whether the letters are the same, and a sign is another one.
    """

    spans: tuple[Span, ...]
    likeness: float = 1.0
    has_other_signs: bool = False

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
        self._letters: list[str] = []
        self._marks: list[Places] = []
        for each in self._texts.values():
            letters, at = letters_of(each)
            self._letters.append(as_text(letters))
            self._marks.append(_marks(at))
        self._starts = np.cumsum([0, *map(len, self._letters)])
        self._step = _step(int(self._starts[-1]))
        self._index = self._indexed()

    def readings(self, _: str) -> Sequence[str]:
        """Return nothing: texts are looked for as they are."""
        return ()

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
        letters = letters_of(text)[0]
        if not len(letters):
            return None
        wanted = as_text(letters)
        named = [self._number[doc_id] for doc_id in doc_ids if doc_id in self._number]
        found = [place for doc in named for place in self._within(doc, wanted, near)]
        if not found:
            hashes = _hashes(letters)
            found = self._occurrences(wanted, hashes)
            if not found:
                seeds = _Seeds(hashes, *self._index.ends(hashes))
                return self._like(seeds, text, named, near)
        spans = [self._span(doc, at, at + len(wanted), text) for doc, at in found]
        same = self._saying(spans, text)
        left = same if same and len(spans) < _LOOKED_AT else spans
        likeness = 1.0 if same else _LESS_THAN_ALL
        return TextLocation(tuple(self._told_apart(left, text, near)), likeness, not same)

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

    def _indexed(self) -> _GramIndex:
        """Return where the k-grams stand in all letters."""
        hashes, places = [], []
        for start, text in zip(self._starts.tolist(), self._letters, strict=False):
            grams = _hashes(np.frombuffer(text.encode("utf-32-le"), np.uint32))[:: self._step]
            hashes.append(grams)
            places.append(np.arange(len(grams), dtype=np.int64) * self._step + start)
        if not hashes:
            return _GramIndex(np.zeros(0, np.uint64))
        return _GramIndex(np.concatenate(hashes), np.concatenate(places))

    def _occurrences(self, wanted: str, hashes: _Hashes) -> list[tuple[int, int]]:
        """Return all places of a text as (document, place in its letters), through the index."""
        last = len(hashes) - self._step
        if last < 0:
            return []
        # One of `step` k-grams in a row is in the index, wherever the text begins. A few rows do:
        # to look up each k-gram takes ten times as long in a large index.
        rows = np.unique([0, last // 2, last])
        first, counts = self._rows(hashes, rows)
        if counts.sum(axis=1).min() > _MOST_SHARED_BY:
            rows = np.arange(last + 1)
            first, counts = self._rows(hashes, rows)
        rarest = int(np.argmin(counts.sum(axis=1)))
        return self._among(wanted, int(rows[rarest]), first[rarest], counts[rarest])

    def _rows(self, hashes: _Hashes, rows: Places) -> tuple[Places, Places]:
        """Return for `step` k-grams from each row on where their places begin, and how many."""
        first, counts = self._index.ends(hashes[rows[:, None] + np.arange(self._step)].ravel())
        return first.reshape(-1, self._step), counts.reshape(-1, self._step)

    def _among(self, wanted: str, row: int, first: Places, counts: Places) -> list[tuple[int, int]]:
        """Return the places of a text among those of its k-grams from one on."""
        found = []
        for offset in range(self._step):
            begun = int(first[offset])
            for place in self._index.at[begun : begun + int(counts[offset])].tolist():
                doc = int(np.searchsorted(self._starts, place, "right")) - 1
                at = place - int(self._starts[doc]) - row - offset
                if at >= 0 and self._letters[doc].startswith(wanted, at):
                    found.append((doc, at))
                    if len(found) >= _LOOKED_AT:
                        return sorted(found)
        return sorted(found)

    def _like(
        self, seeds: _Seeds, text: str, named: Sequence[int], near: int | None
    ) -> TextLocation | None:
        """Return the stretch of a document that has most of a text's letters in their order."""
        if not len(seeds.hashes):
            return None
        stretches = _apart(self._stretches(seeds, named))
        if not stretches:
            return None
        best = stretches[0]
        beside = _BESIDE_ALL if best.shared == best.end - best.start else _ALMOST_AS_MUCH
        rivals = [each for each in stretches if each.held >= beside * best.held]
        spans = [self._span(each.doc, each.start, each.end, text) for each in rivals[:MOST_PLACES]]
        # Of the text and of its place: what was cut out of the middle is missing as well.
        longer = max(seeds.n_letters, best.end - best.start)
        likeness = min(round(best.shared / longer, 4), _LESS_THAN_ALL)
        return TextLocation(tuple(self._told_apart(spans, text, near)), likeness)

    def _stretches(self, seeds: _Seeds, docs: Sequence[int]) -> Iterator[_Stretch]:
        """Yield the stretches that are dense in a text's k-grams, one a place, largest first."""
        diagonals = self._diagonals(seeds, docs)
        n_letters, wanted = seeds.n_letters, _GramIndex(seeds.hashes)
        stretch_of: dict[str, _Stretch | None] = {}
        for group in _groups(diagonals, max(2 * GRAM, n_letters // 2)):
            for doc in self._documents_of(int(group[0]), int(group[-1]) + n_letters):
                if docs and doc not in docs:
                    continue
                begin = int(self._starts[doc])
                low = max(0, int(group[0]) - begin - GRAM)
                high = min(len(self._letters[doc]), int(group[-1]) - begin + n_letters + GRAM)
                part = self._letters[doc][low:high]
                if part not in stretch_of:
                    stretch_of[part] = _stretch(part, wanted)
                stretch = stretch_of[part]
                if stretch is not None and _is_enough(stretch, n_letters, named=bool(docs)):
                    yield replace(
                        stretch, doc=doc, start=low + stretch.start, end=low + stretch.end
                    )

    def _diagonals(self, seeds: _Seeds, docs: Sequence[int]) -> Places:
        """Return, sorted, where the text would begin by each of its k-grams that tells a place."""
        offsets = np.flatnonzero((seeds.counts > 0) & (seeds.counts <= _MOST_SHARED_BY))
        counts = seeds.counts[offsets]
        found = self._index.at[_ranges(seeds.first[offsets], counts)]
        diagonals: Places = found - np.repeat(offsets, counts)
        if docs:
            diagonals = diagonals[np.isin(np.searchsorted(self._starts, found, "right") - 1, docs)]
        return np.sort(diagonals)

    def _documents_of(self, low: int, high: int) -> range:
        first = max(0, int(np.searchsorted(self._starts, low, "right")) - 1)
        return range(
            first, min(len(self._doc_ids), int(np.searchsorted(self._starts, high, "left")))
        )

    def _span(self, doc: int, start: int, end: int, text: str) -> Span:
        """Return the stretch of a document that some of its letters are, with its punctuation."""
        doc_id = self._doc_ids[doc]
        original, marks = self._texts[doc_id], self._marks[doc]
        # The letters from one mark to the next alone: a document may be a book.
        low, skipped = marks[start // _MARKED]
        behind = -(-end // _MARKED)
        high = int(marks[behind, 0]) + 1 if behind < len(marks) else len(original)
        at = letters_of(original[int(low) : high])[1] + int(low)
        begins, ends = int(at[start - int(skipped)]), int(at[end - 1 - int(skipped)]) + 1
        return _with_edges(doc_id, original, begins, ends, text)

    def _original(self, doc_id: str) -> Places:
        """Return where each letter of a document stands in its text."""
        if doc_id in self._folded:
            self._folded.move_to_end(doc_id)
        else:
            self._folded[doc_id] = letters_of(self._texts[doc_id])[1]
            if len(self._folded) > _FOLDED_HELD:
                self._folded.popitem(last=False)
        return self._folded[doc_id]

    def _saying(self, spans: Sequence[Span], text: str) -> list[Span]:
        """Return the places of a text's letters that have its signs as well: 11 is not -11."""
        says = {_spaced(text): True}
        for span in spans:
            there = self._texts[span.doc_id][span.start : span.end]
            if (key := _spaced(there)) not in says:
                says[key] = has_same_signs(text, there)
        stretches = ((span, self._texts[span.doc_id][span.start : span.end]) for span in spans)
        return [span for span, there in stretches if says[_spaced(there)]]

    def _told_apart(self, spans: Sequence[Span], text: str, near: int | None) -> list[Span]:
        """Return the places that a text may be of, by its spelling and where it is said to be."""
        if len(spans) == 1:
            return list(spans)
        wanted = _spaced(text)
        spelled = [
            span
            for span in spans
            if _spaced(self._texts[span.doc_id][span.start : span.end]) == wanted
        ]
        left = spelled if spelled and len(spans) < _LOOKED_AT else list(spans)
        if near is not None:
            left = _nearest(left, near, _OFF + len(text))
        return left[:MOST_PLACES]


class _GramIndex:
    """Where k-grams stand.

    Args:
        grams: Their hashes, one a place.
        places: Where each stands, rising; its number where None.
    """

    def __init__(self, grams: _Hashes, places: Places | None = None) -> None:
        order = np.argsort(grams, kind="stable")
        ordered = grams[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]) != 0)
        self._distinct = ordered[starts]
        number = np.uint32 if len(grams) < _FOUR_BYTES else np.int64
        self._starts = np.append(starts, len(grams)).astype(number)
        self.at: Places = order if places is None else places[order]

    def ends(self, grams: _Hashes) -> tuple[Places, Places]:
        """Return for each k-gram where its places begin in `at`, and how many there are."""
        if not len(self._distinct):
            return np.zeros(len(grams), np.int64), np.zeros(len(grams), np.int64)
        number = np.minimum(np.searchsorted(self._distinct, grams), len(self._distinct) - 1)
        first = self._starts[number].astype(np.int64)
        counts = self._starts[number + 1].astype(np.int64) - first
        return first, np.where(self._distinct[number] == grams, counts, 0)


@dataclass(frozen=True, slots=True)
class _Seeds:
    """The k-grams of a text, and their places in an index: where these begin, and how many."""

    hashes: _Hashes
    first: Places
    counts: Places

    @property
    def n_letters(self) -> int:
        """Of the text."""
        return len(self.hashes) + GRAM - 1


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


def _stretch(letters: str, wanted: _GramIndex) -> _Stretch | None:
    """Return the dense part of some letters: k-grams of the text with no wide hole between."""
    chain = _chain(_hashes(np.frombuffer(letters.encode("utf-32-le"), np.uint32)), wanted)
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
            best = _Stretch(0, start, end, covered)
    return best and replace(best, held=held)


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
    return joined(parts)


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
        if len(folded_letters(char)):
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
    if not len(diagonals):
        return
    starts = np.concatenate([[0], np.flatnonzero(np.diff(diagonals) > width) + 1])
    sizes = np.diff(starts, append=len(diagonals))
    for at in np.argsort(-sizes, kind="stable")[:MOST_PLACES].tolist():
        if sizes[at] < _WORTH_A_LOOK * sizes.max():
            return
        yield diagonals[starts[at] : starts[at] + sizes[at]]


def _apart(stretches: Iterable[_Stretch]) -> list[_Stretch]:
    """Return stretches, those with most letters first, without any that overlaps a better one."""
    apart: list[_Stretch] = []
    for stretch in sorted(stretches, key=lambda each: (-each.held, each.doc, each.start)):
        if not any(
            other.doc == stretch.doc and stretch.start < other.end and other.start < stretch.end
            for other in apart
        ):
            apart.append(stretch)
    return apart


def _chain(grams: _Hashes, wanted: _GramIndex) -> Places:
    """Return the longest row of k-grams that stand in both texts in one order.

    Pairs of equal k-grams one behind the other in both texts make a run. The best row of runs is
    that of most k-grams, where a run that begins before the one before has ended is cut there.

    Returns:
        Pairs (place in `grams`, place in `wanted`), both rising.
    """
    first, counts = wanted.ends(grams)
    if counts.sum() > _PAIRS:
        counts[counts > 1] = 0
    at = np.flatnonzero(counts)
    offsets = wanted.at[first[at]]
    if (counts[at] == 1).all() and (offsets[1:] > offsets[:-1]).all():
        return np.stack([at, offsets], axis=1)
    counts, first = counts[at], first[at]
    return _best_row(_runs(np.repeat(at, counts), wanted.at[_ranges(first, counts)]))


@dataclass(frozen=True, slots=True)
class _Runs:
    """Equal k-grams one behind the other in two texts: where each run begins, and how many."""

    places: Places
    offsets: Places
    lengths: Places


def _runs(places: Places, offsets: Places) -> _Runs:
    """Return the runs that pairs of equal k-grams make, by where they end, at most `_MOST_RUNS`."""
    order = np.lexsort((places, places - offsets))
    places, offsets = places[order], offsets[order]
    begins = np.ones(len(places) + 1, bool)
    begins[1:-1] = (places[1:] - places[:-1] != 1) | (offsets[1:] - offsets[:-1] != 1)
    ends = np.flatnonzero(begins)
    starts, lengths = ends[:-1], ends[1:] - ends[:-1]
    if len(starts) > _MOST_RUNS:
        longest = np.sort(np.argsort(-lengths, kind="stable")[:_MOST_RUNS])
        starts, lengths = starts[longest], lengths[longest]
    places, offsets = places[starts], offsets[starts]
    by_end = np.argsort(places + lengths, kind="stable")
    return _Runs(places[by_end], offsets[by_end], lengths[by_end])


def _best_row(runs: _Runs) -> Places:
    """Return the pairs of the runs that have most of them in one order, with what is cut off."""
    n = len(runs.lengths)
    behind_place = (runs.places + runs.lengths)[:, None] - runs.places
    behind_offset = (runs.offsets + runs.lengths)[:, None] - runs.offsets
    cut = np.maximum(np.maximum(behind_place, behind_offset), 0)
    gains = np.where(cut < runs.lengths, runs.lengths - cut, -len(cut) - int(runs.lengths.sum()))
    totals = runs.lengths.copy()
    before = np.full(n, -1)
    for at in range(1, n):
        sums = totals[:at] + gains[:at, at]
        # Of several that are as good the nearest: it leaves out least between.
        best = at - 1 - int(sums[::-1].argmax())
        if sums[best] > totals[at]:
            totals[at], before[at] = sums[best], best
    row: list[Places] = []
    at = int(totals.argmax())
    while at >= 0:
        earlier = int(before[at])
        steps = np.arange(int(cut[earlier, at]) if earlier >= 0 else 0, int(runs.lengths[at]))
        row.append(np.stack([runs.places[at] + steps, runs.offsets[at] + steps], axis=1))
        at = earlier
    return np.concatenate(row[::-1])


def _ranges(first: Places, counts: Places) -> Places:
    """Return the numbers from each first one on, as many as its count, one behind the other."""
    begun = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(begun - first, counts)


def _spaced(text: str) -> str:
    return " ".join(normalize("NFC", text).split())


def _occurrences(wanted: str, text: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _step(n_letters: int) -> int:
    return next((step for most, step in _STEPS if n_letters <= most), _WIDEST_STEP)


def _hashes(letters: Letters) -> _Hashes:
    """Return the hash of the k-gram at each letter that has enough behind it."""
    n = len(letters) - GRAM + 1
    if n < 1:
        return np.zeros(0, np.uint64)
    wide = letters.astype(np.uint64)
    total = np.zeros(n, np.uint64)
    for at in range(GRAM):
        total = (total + wide[at : at + n]) * np.uint64(_FACTOR)
    return (total ^ (total >> np.uint64(_HALF))) * np.uint64(_MIX)


def _marks(at: Places) -> Places:
    """Return of each `_MARKED`th letter where its character stands, and the first letter of that.

    A character may be several letters: a ligature, or a fraction.
    """
    places = at[::_MARKED]
    return np.stack([places, np.searchsorted(at, places)], axis=1)
