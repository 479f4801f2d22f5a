"""Decimal numbers in an array of bytes to float64, each exactly as `float` reads it.

Digits are added up eight at a time inside 64-bit words. A number of at most 2**53 divided by a
power of ten of at most 10**22 is rounded once, so exact (Clinger 1990, PLDI); one of more digits is
divided with a second float64 for the remainder. What is left, such as exponents, `float` reads.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from ragforge.files.scan.rows import Bytes, Flags, Floats, Irregular, Positions, Words
from ragforge.files.scan.tokens import each_byte, gather

BEFORE: Final = 24
"""Bytes that have to be there before the first number, whatever they are."""

_WORD: Final = 8
_ZERO, _DOT, _MINUS = 0x30, 0x2E, 0x2D
_ALL: Final = np.uint64(2**64 - 1)
_MOST_WORDS: Final = 3
_MOST_IN_FIRST: Final = np.uint64(99)
"""Of three words the first may add this much: 18 digits fit an int64."""
_EXACT: Final = 2**53
_LARGEST_POWER: Final = 22
_POWERS: Final = np.array([10.0**n for n in range(_LARGEST_POWER + 1)])
_SPLIT: Final = 2.0**27 + 1
_HIGH_BYTES: Final = np.array(
    [(_ALL << np.uint64(64 - 8 * n)) if n else 0 for n in range(9)], np.uint64
)
"""Masks of the last n bytes of a word."""


_ZEROS, _TOPS, _BELOW_TOPS = each_byte(_ZERO), each_byte(0x80), each_byte(0x7F)
_OVER_NINE: Final = each_byte(0x80 - 10)
_DOTS: Final = each_byte(_ZERO ^ _DOT)
_PLACES: Final = np.uint64(int.from_bytes(range(8)))
"""Times 2**(8 * n) has n in the last byte."""


def parse_decimals(
    array: Bytes,
    starts: Positions,
    ends: Positions,
    read: Callable[[bytes], float] = float,
) -> Floats:
    """Return the values of the tokens.

    Args:
        array: The bytes, with `BEFORE` more before the first token.
        starts: Of the tokens.
        ends: Behind the tokens.
        read: Reads, or refuses with a ValueError, what has other than digits and one dot behind
            an optional minus.

    Raises:
        Irregular: One is no number, NaN, or holds an underscore or other than ASCII.
    """
    minus: Flags = array.take(starts, mode="clip") == _MINUS
    has_minus = bool(minus.any())
    begins = starts + minus if has_minus else starts
    lengths = ends - begins
    n_words = min(max(-(-int(lengths.max()) // _WORD), 1), _MOST_WORDS)
    words = _words_to(array, ends, lengths, n_words)
    n_decimals = _decimals_of_first(array, int(starts[0]), int(ends[0]))
    dotted: Flags = array.take(ends - (n_decimals + 1), mode="clip") == _DOT
    if 0 < n_decimals < int(lengths.min()) and dotted.all():
        values, known = _read_aligned(words, n_decimals)
    else:
        values, known = _read_any(words, lengths)
    known &= lengths <= _WORD * n_words
    if has_minus:
        np.negative(values, out=values, where=minus)
    if not known.all():
        _parse_rest(array, starts, ends, np.flatnonzero(~known), values, read)
    return values


def _decimals_of_first(array: Bytes, start: int, end: int) -> int:
    """Return how many digits the first number has behind its dot, at most a word of them."""
    return min(len(array[start:end].tobytes().partition(b".")[2]), _WORD)


def _words_to(array: Bytes, ends: Positions, lengths: Positions, n_words: int) -> list[Words]:
    """Return the words up to each end, the first one first; digits stand as their values."""
    columns = gather(array, ends - _WORD * n_words, n_words)
    words = []
    for at in range(n_words):
        word = columns[:, at] ^ _ZEROS
        behind = _WORD * (n_words - 1 - at)
        if lengths.min() < behind + _WORD:
            word &= _HIGH_BYTES.take(lengths - behind, mode="clip")
        words.append(word)
    return words


def _read_aligned(words: list[Words], n_decimals: int) -> tuple[Floats, Flags]:
    """Return values of numbers with the dot at one place, and which of the values are right."""
    behind_dot = _HIGH_BYTES[n_decimals]
    last = _moved(words, len(words) - 1)
    last &= ~behind_dot
    last |= words[-1] & behind_dot
    digits = [*(_moved(words, at) for at in range(len(words) - 1)), last]
    return _values(digits, n_decimals)


def _read_any(words: list[Words], lengths: Positions) -> tuple[Floats, Flags]:
    """Return values of numbers with the dot anywhere or none, and which of the values are right."""
    n_words = len(words)
    seen = np.zeros(len(words[0]), np.uint64)
    n_decimals = np.zeros(len(words[0]), np.uint64)
    single = np.ones(len(words[0]), bool)
    behind_dot = []
    for at, word in enumerate(words):
        dots = ((((word ^ _DOTS) + _BELOW_TOPS) | word) & _TOPS) ^ _TOPS
        here = np.uint64(0) - (dots != 0).astype(np.uint64)
        single &= (here & seen) == 0
        behind_dot.append((np.uint64(0) - (dots << np.uint64(1))) | seen)
        seen |= here
        place = ((dots >> np.uint64(7)) * _PLACES) >> np.uint64(56)
        n_decimals += here & (np.uint64(_WORD * (n_words - at) - 1) - place)
    digits = []
    for at, word in enumerate(words):
        kept = behind_dot[at] | ~seen
        digit = _moved(words, at)
        digit &= ~kept
        digit |= word & kept
        digits.append(digit)
    values, known = _values(digits, n_decimals.view(np.int64))
    has_digits = lengths + seen.view(np.int64) > 0
    return values, known & single & has_digits


def _moved(words: list[Words], at: int) -> Words:
    """Return one of the words of numbers that are moved on by a byte, over their dot."""
    moved = words[at] << np.uint64(8)
    if at:
        moved |= words[at - 1] >> np.uint64(56)
    return moved


def _values(digits: list[Words], n_decimals: int | Positions) -> tuple[Floats, Flags]:
    """Return digits over powers of ten, and which of the values are right."""
    spoilt = ((digits[0] + _OVER_NINE) | digits[0]) & _TOPS
    for word in digits[1:]:
        spoilt |= ((word + _OVER_NINE) | word) & _TOPS
    known: Flags = spoilt == 0
    whole = _sum_digits(digits[0])
    if len(digits) == _MOST_WORDS:
        known &= whole <= _MOST_IN_FIRST
    for word in digits[1:]:
        whole *= np.uint64(10**_WORD)
        whole += _sum_digits(word)
    wholes = whole.view(np.int64)
    if not isinstance(n_decimals, int):
        known &= n_decimals <= _LARGEST_POWER
        n_decimals = np.minimum(n_decimals, _LARGEST_POWER)
    if int(whole.max()) <= _EXACT:
        return wholes / _POWERS[n_decimals], known
    values, sure = _divided(np.where(known, wholes, 0), _POWERS[n_decimals])
    return values, known & sure


def _sum_digits(word: Words) -> Words:
    """Return the number that eight digits make, one a byte (Lemire 2021, arXiv:2101.11408)."""
    total = (word * np.uint64(10 * 2**8 + 1)) >> np.uint64(8)
    total &= np.uint64(0x00FF00FF00FF00FF)
    total *= np.uint64(100 * 2**16 + 1)
    total >>= np.uint64(16)
    total &= np.uint64(0x0000FFFF0000FFFF)
    total *= np.uint64(10000 * 2**32 + 1)
    total >>= np.uint64(32)
    return total


def _divided(wholes: Positions, powers: Floats | np.float64) -> tuple[Floats, Flags]:
    """Divide whole numbers below 10**18, and tell which of the results are surely rounded right.

    The remainder of the rounded quotient is computed without error but its own rounding (Dekker
    1971, Numerische Mathematik 18), 2**-100 of the quotient. Where 2**-83 more or less makes no
    difference, the result is right; exact ties are among the rest.
    """
    high = wholes.astype(np.float64)
    low = (wholes - high.astype(np.int64)).astype(np.float64)
    quotients = high / powers
    products = quotients * powers
    quotients_high, quotients_low = _halves(quotients)
    powers_high, powers_low = _halves(powers)
    errors = quotients_high * powers_high - products
    errors += quotients_high * powers_low
    errors += quotients_low * powers_high
    errors += quotients_low * powers_low
    corrections = ((high - products) - errors + low) / powers
    doubts = quotients * 2.0**-83
    values = quotients + (corrections - doubts)
    return values, values == quotients + (corrections + doubts)


def _halves(values: Floats | np.float64) -> tuple[Floats | np.float64, Floats | np.float64]:
    scaled = values * _SPLIT
    high = scaled - (scaled - values)
    return high, values - high


def _parse_rest(
    array: Bytes,
    starts: Positions,
    ends: Positions,
    rows: Positions,
    values: Floats,
    read: Callable[[bytes], float],
) -> None:
    first, last = int(starts[rows[0]]), int(ends[rows[-1]])
    text = array[first:last].tobytes()
    spans = zip((starts[rows] - first).tolist(), (ends[rows] - first).tolist(), strict=True)
    tokens = [text[start:end] for start, end in spans]
    try:
        numbers = np.fromiter(map(read, tokens), np.float64, len(tokens))
    except ValueError:
        raise Irregular from None
    # Python reads 1_0 as 10.
    if np.isnan(numbers).any() or b"_" in b" ".join(tokens):
        raise Irregular
    values[rows] = numbers
