"""Many short texts inside one array of bytes, compared and hashed eight bytes at a time."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from ragforge.files.scan.rows import Bytes, Flags, Irregular, Positions, Words

LONGEST_TOKEN: Final = 256
"""In bytes; longer ids are left to the line readers."""

_LOW_BYTES: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""Masks of the first n bytes of a word."""

_WORD: Final = 8
_MULTIPLIERS: Final = np.random.default_rng(0).integers(
    1, 2**63, LONGEST_TOKEN // _WORD, np.uint64
) * np.uint64(2) + np.uint64(1)


def gather(array: Bytes, starts: Positions, n_words: int) -> Words:
    """Return the words that begin at each start, as they stand: shape (len(starts), n_words).

    One fancy index costs about the same for one word as for six.
    """
    width = _WORD * n_words
    records: np.ndarray[tuple[int], np.dtype[np.void]] = np.ndarray(
        (len(array) - width + 1,), f"V{width}", array, strides=(1,)
    )
    return records[starts].view(np.uint64).reshape(-1, n_words)


def words_of(array: Bytes, starts: Positions, ends: Positions) -> Words:
    """Return tokens as words, zero behind their ends: equal rows are equal tokens.

    Args:
        array: The bytes, with `LONGEST_TOKEN` more behind the last token.
        starts: Of the tokens, which hold no NUL byte.
        ends: Behind the tokens.

    Raises:
        Irregular: A token is empty or longer than `LONGEST_TOKEN`.
    """
    lengths = ends - starts
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest < 1 or longest > LONGEST_TOKEN:
        raise Irregular
    words = gather(array, starts, -(-longest // _WORD))
    for at in range(shortest // _WORD, words.shape[1]):
        if shortest == longest:
            words[:, at] &= _LOW_BYTES[shortest - _WORD * at]
        else:
            words[:, at] &= _LOW_BYTES.take(lengths - _WORD * at, mode="clip")
    return words


def hash_words(words: Words) -> Words:
    """Hash tokens to 64 bits, of which the highest are the best mixed.

    Words of zero add nothing, so a token's hash does not depend on how long the others are.
    """
    hashes: Words = words[:, 0] * _MULTIPLIERS[0]
    for at in range(1, words.shape[1]):
        hashes += words[:, at] * _MULTIPLIERS[at]
    return hashes


def hash_texts(texts: Sequence[str]) -> Words:
    """Hash texts as `hash_words` does; 0 stands for those that no token can be."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    usable = (lengths > 0) & (lengths <= LONGEST_TOKEN)
    hashes = np.zeros(len(encoded), np.uint64)
    if usable.any():
        array = np.frombuffer(b"".join([*encoded, bytes(LONGEST_TOKEN)]), np.uint8)
        ends = lengths.cumsum()
        starts = ends - lengths
        hashes[usable] = hash_words(words_of(array, starts[usable], ends[usable]))
    return hashes


def texts_of(words: Words) -> list[str]:
    """Return the texts of tokens that are known to be UTF-8."""
    encoded: list[bytes] = words.view(f"S{_WORD * words.shape[1]}").ravel().tolist()
    return [token.decode() for token in encoded]


def stands_at(array: Bytes, positions: Positions, literal: bytes) -> bool:
    """Whether a short text stands at every one of the positions."""
    n_words = -(-len(literal) // _WORD)
    wanted = np.frombuffer(literal.ljust(_WORD * n_words, b"\0"), np.uint64)
    words = gather(array, positions, n_words)
    differences = words[:, :-1] != wanted[:-1]
    last = (words[:, -1] ^ wanted[-1]) & _LOW_BYTES[len(literal) - _WORD * (n_words - 1)]
    return not (differences.any() or last.any())


def find_byte(array: Bytes, starts: Positions, byte: int) -> Positions:
    """Return where a byte stands first at or behind each start.

    Raises:
        Irregular: It does not within `LONGEST_TOKEN`.
    """
    at = starts.copy()
    rows: Positions | slice = slice(None)
    for _ in range(LONGEST_TOKEN // _WORD):
        places = _first_places(gather(array, at[rows], 1)[:, 0], byte)
        at[rows] += places
        left = np.flatnonzero(places == _WORD)
        if not len(left):
            return at
        rows = left if isinstance(rows, slice) else rows[left]
    raise Irregular


def _first_places(words: Words, byte: int) -> Positions:
    """Return the place of the first such byte in each word; 8 where there is none."""
    differences = words ^ each_byte(byte)
    zeros = (differences - each_byte(0x01)) & ~differences & each_byte(0x80)
    # Ones below the highest bit of the first such byte, or all of them where there is none.
    below = (zeros - np.uint64(1)) & ~zeros
    return (np.bitwise_count(below) >> 3).astype(np.int64)


def each_byte(byte: int) -> np.uint64:
    """Return the word of eight equal bytes."""
    return np.uint64(int.from_bytes(bytes([byte]) * _WORD))


def changes(words: Words) -> Flags:
    """Return for each token but the first whether it differs from the one before."""
    changed: Flags = words[1:, 0] != words[:-1, 0]
    for at in range(1, words.shape[1]):
        changed |= words[1:, at] != words[:-1, at]
    return changed


def in_byte_order(words: Words) -> Words:
    """Return words that compare as numbers the way their bytes compare."""
    return words.byteswap()
