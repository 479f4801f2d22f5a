"""Looking for many quotes in a whole corpus at once: by short stretches that a document has too.

The stretches of the quotes' folded bytes are hashed; all texts are gone over once, some at a time,
whatever the number of quotes. What is found this way is likely, not sure.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ragforge.corpus.quote_locations import fold
from ragforge.deferred import dataclass
from ragforge.records import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WIDTHS: Final = (16, 8, 4)
"""Bytes of a stretch; shorter ones stand in too many texts. A quote has the longest of which a
third of it holds one, so that one is left of it where chunks or an edit cut it."""
_STEP: Final = 8
"""Bytes from one stretch of a text to the next; all stretches of a quote are known, so that it is
seen wherever it begins. For stretches of four bytes, which short quotes have, it is one."""
_MOST_SHARING: Final = 32
"""Quotes that may share a stretch; one that more have is no sign of any."""
_LEAST_SHARE: Final = 4
"""One in so many of the stretches that a text with the quote has is in a chunk that may hold it."""
_BATCH_BYTES: Final = 1 << 20
_TABLE_BITS: Final = range(16, 25)
_SLOTS_EACH: Final = 16
_MOST_CANDIDATES: Final = 16
_HELD_CANDIDATES: Final = 64
_MIX: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def candidate_documents(quotes: Sequence[str], chunks: Iterable[Chunk]) -> list[list[str]]:
    """Return the documents that each quote, or most of it, may stand in.

    Args:
        quotes: As they are; a quote of less than four bytes is not looked for.
        chunks: Texts of the documents in any order; the chunks of a document may cut a quote.

    Returns:
        Ids of up to 16 documents for each quote, those with the most of its stretches in one chunk
        first, then by id.
    """
    patterns = [pattern for width in _WIDTHS if (pattern := _pattern(quotes, width))]
    hits: list[dict[str, int]] = [{} for _ in quotes]
    for batch in _batches(chunks) if patterns else ():
        for pattern in patterns:
            for chunk, quote, share in pattern.hits(batch):
                _note(hits[quote], batch.doc_ids[chunk], share)
    return [_best(candidates) for candidates in hits]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Folded texts one behind the other, each from a multiple of eight bytes on.

    Behind each are line ends, which none of them has.
    """

    data: bytes
    ends: Sequence[int]
    doc_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The stretches of one width.

    Args:
        width: Their bytes.
        step: Bytes from one stretch of a text to the next.
        hashes: Sorted.
        quotes: To which of them each stretch belongs.
        counts: How many stretches a text with a quote has at least, by the quote's number.
        bits: Of the hash, from above, that the table is made for.
        table: Whether a stretch has such an upper part of its hash.
    """

    width: int
    step: int
    hashes: "NDArray[np.uint64]"
    quotes: "NDArray[np.int64]"
    counts: "NDArray[np.int64]"
    bits: int
    table: "NDArray[np.bool_]"

    def hits(self, batch: _Batch) -> Iterator[tuple[int, int, int]]:
        """Yield chunks of a batch, quotes that may stand there, and how much speaks for it."""
        import numpy as np

        hashes = _hashes(_windows(batch.data, self.step), self.width, self.step)
        at = np.flatnonzero(self.table[_slots(hashes, self.bits)])
        first = np.searchsorted(self.hashes, hashes[at], "left")
        n = np.searchsorted(self.hashes, hashes[at], "right") - first
        at, first, n = at[n > 0], first[n > 0], n[n > 0]
        behind = np.cumsum(n)
        which = np.repeat(first - behind + n, n) + np.arange(int(behind[-1]) if len(n) else 0)
        chunk = np.searchsorted(np.asarray(batch.ends), np.repeat(at * self.step, n), "right")
        n_quotes = len(self.counts)
        # A stretch that a chunk has twice, as of a drawn line, counts once.
        seen = np.unique(chunk * len(self.hashes) + which)
        found = seen // len(self.hashes) * n_quotes + self.quotes[seen % len(self.hashes)]
        pairs, counts = np.unique(found, return_counts=True)
        enough = counts * _LEAST_SHARE >= self.counts[pairs % n_quotes]
        for pair, count in zip(pairs[enough].tolist(), counts[enough].tolist(), strict=True):
            yield pair // n_quotes, pair % n_quotes, count


def _pattern(quotes: Sequence[str], width: int) -> _Pattern | None:
    import numpy as np

    folded = ((number, fold(quote).encode()) for number, quote in enumerate(quotes))
    all_hashes = {
        number: np.unique(_hashes(_windows(data, 1), width, 1))
        for number, data in folded
        if _width(len(data)) == width
    }
    if not all_hashes:
        return None
    chosen = _telling(all_hashes)
    hashes = np.concatenate(list(chosen.values()))
    belongs = np.repeat(np.array(list(chosen)), [len(own) for own in chosen.values()])
    order = np.argsort(hashes, kind="stable")
    step = 1 if width < _STEP else _STEP
    counts = np.maximum(1, np.bincount(belongs, minlength=len(quotes)) // step)
    wanted = (_SLOTS_EACH * len(hashes)).bit_length()
    bits = min(max(wanted, _TABLE_BITS.start), _TABLE_BITS.stop - 1)
    table = np.zeros(1 << bits, np.bool_)
    table[_slots(hashes, bits)] = True
    return _Pattern(width, step, hashes[order], belongs[order], counts, bits, table)


def _telling(of_quotes: dict[int, "NDArray[np.uint64]"]) -> dict[int, "NDArray[np.uint64]"]:
    """Return which stretches of each quote to look for: those that few others have.

    A quote of which all are shared by many keeps all.
    """
    import numpy as np

    values, sharing = np.unique(np.concatenate(list(of_quotes.values())), return_counts=True)
    chosen = {}
    for number, hashes in of_quotes.items():
        rare = sharing[np.searchsorted(values, hashes)] <= _MOST_SHARING
        chosen[number] = hashes[rare] if rare.any() else hashes
    return chosen


def _width(size: int) -> int:
    return next((width for width in _WIDTHS if size >= 3 * width), 4 if size >= 4 else 0)


def _windows(data: bytes, step: int) -> "NDArray[np.uint64]":
    """Return the eight bytes from each byte, or each eighth, of the data on; zeros behind it."""
    import numpy as np

    padded = data + bytes(2 * _STEP)
    if step == _STEP:
        return np.frombuffer(padded, "<u8", -(-len(data) // _STEP))
    windows = np.empty(len(data), np.uint64)
    for at in range(min(_STEP, len(data))):
        windows[at::_STEP] = np.frombuffer(padded, "<u8", len(range(at, len(data), _STEP)), at)
    return windows


def _hashes(windows: "NDArray[np.uint64]", width: int, step: int) -> "NDArray[np.uint64]":
    """Return a hash of each stretch, in the order of the windows; none that ends behind the data.

    Args:
        windows: From `_windows`.
        width: Of a stretch, in bytes.
        step: Between two windows.
    """
    import numpy as np

    one, other = (np.uint64(factor) for factor in _MIX)
    hashes = (windows & np.uint64(0xFFFFFFFF) if width == 4 else windows) * one
    if width == 16:
        next_one = _STEP // step
        hashes[:-next_one] ^= windows[next_one:] * other
    return hashes[: max(0, len(windows) - (width - 1) // step)]


def _slots(hashes: "NDArray[np.uint64]", bits: int) -> "NDArray[np.int64]":
    import numpy as np

    return (hashes >> np.uint64(64 - bits)).view(np.int64)


def _batches(chunks: Iterable[Chunk]) -> Iterator[_Batch]:
    parts: list[bytes] = []
    ends: list[int] = []
    doc_ids: list[str] = []
    size = 0
    for chunk in chunks:
        data = fold(chunk.text).encode()
        parts.append(data + b"\n" * (_STEP - len(data) % _STEP))
        size += len(parts[-1])
        ends.append(size)
        doc_ids.append(chunk.doc_id)
        if size >= _BATCH_BYTES:
            yield _Batch(b"".join(parts), ends, doc_ids)
            parts, ends, doc_ids, size = [], [], [], 0
    if parts:
        yield _Batch(b"".join(parts), ends, doc_ids)


def _note(candidates: dict[str, int], doc_id: str, count: int) -> None:
    """Keep the best count of a document; which ones stay depends on no order."""
    candidates[doc_id] = max(count, candidates.get(doc_id, 0))
    if len(candidates) > _HELD_CANDIDATES:
        kept = {name: candidates[name] for name in _best(candidates)}
        candidates.clear()
        candidates.update(kept)


def _best(candidates: dict[str, int]) -> list[str]:
    ordered = sorted(candidates, key=lambda doc_id: (-candidates[doc_id], doc_id))
    return ordered[:_MOST_CANDIDATES]
