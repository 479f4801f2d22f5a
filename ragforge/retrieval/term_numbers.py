"""Terms as numbers that need no list of terms to be read back."""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]

BITS = 48
"""Two of two million terms share a number with a probability below 1 %."""

_MOST_KNOWN = 500_000


class TermNumbers:
    """Gives each term its number; remembers the commonest, whatever the vocabulary."""

    def __init__(self) -> None:
        self._known = _Known()

    def __call__(self, terms: Iterable[str]) -> Numbers:
        """Return the numbers of the terms, in their order; each is below `2**BITS`."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        return np.frombuffer(b"".join(map(self._known.__getitem__, terms)), "<u8")


class _Known(dict[str, bytes]):
    def __missing__(self, term: str) -> bytes:
        digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=BITS // 8)
        number = self[term] = digest.digest().ljust(8, b"\0")
        return number
