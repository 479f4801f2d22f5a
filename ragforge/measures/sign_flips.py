"""How a sum is distributed when the sign of each term is a fair coin.

Under the null hypothesis of a paired comparison each difference could as well have had the other
sign. The functions return the share of sign patterns whose sum is at least as far from 0 as the
observed one, which is the two-sided p value; the observed pattern counts too, so it is never 0
before it underflows.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ragforge.errors import UsageError
from ragforge.measures.samples import Floats, checked_seed

LARGEST_ENUMERATION: Final = 20
"""Terms of which all patterns are tried; half a million sums, as mirrored ones are alike."""
_GROUP: Final = 8
"""Terms whose signs one random byte gives."""
_TIE: Final = 1e-11
"""Sums this close, relative to the sum of all sizes, are equal but for float noise."""


def enumerated_p(sizes: Floats, observed: float) -> float:
    """Return the exact p value by trying every pattern.

    Args:
        sizes: Sizes of the terms, shape (n,), n at most 20; none is negative.
        observed: The sum that was found.
    """
    if not len(sizes):
        return 1.0
    sums = sizes[:1].copy()
    for size in sizes[1:]:
        sums = np.concatenate([sums - size, sums + size])
    return float(np.mean(np.abs(sums) >= _least(sizes, observed)))


def lattice_p(cells: NDArray[np.int64], observed: int) -> float:
    """Return the exact p value for whole numbers, by counting subsets of each sum.

    The sum is that of the terms with a plus, less the others: as far out as `observed` are the
    patterns whose lesser side weighs at most what it weighs there.

    Args:
        cells: Sizes of the terms, shape (n,); none is negative.
        observed: The sum that was found.

    Source: Pagano and Tritchler 1983, JASA 78(382), by recursion where they transform.
    """
    lesser = (int(cells.sum()) - abs(observed)) // 2
    share = np.zeros(lesser + 1)
    share[0] = 1.0
    # The large ones first: what falls off the end need not be carried along.
    for cell in np.sort(cells)[::-1].tolist():
        share *= 0.5
        if 0 < cell <= lesser:
            share[cell:] += share[:-cell].copy()
        elif not cell:
            share *= 2
    return min(1.0, 2 * float(share.sum()))


def lattice_cost(cells: NDArray[np.int64], observed: int) -> int:
    """Return how many additions `lattice_p` needs."""
    return len(cells) * ((int(cells.sum()) - abs(observed)) // 2 + 1)


def sampled_p(sizes: Floats, observed: float, n_permutations: int, seed: int) -> float:
    """Return the p value from random patterns, the observed one added: (hits + 1) / (B + 1).

    Each eight terms have a table of their 256 signed sums, which a random byte indexes: a pattern
    of 1,000 terms costs 125 additions.

    Args:
        sizes: Sizes of the terms, shape (n,); none is negative.
        observed: The sum that was found.
        n_permutations: B, at least 1.
        seed: For PCG64, whose stream numpy keeps the same over its versions.

    Raises:
        UsageError: B is below 1, or the seed below 0.

    Source: Phipson and Smyth 2010, Statistical Applications in Genetics 9(1), 39.
    """
    if n_permutations < 1:
        raise UsageError(f"expected at least 1 permutation, got {n_permutations}")
    bits = np.random.PCG64(checked_seed(seed))
    sums = np.zeros(n_permutations)
    n_words = -(-n_permutations // _GROUP)
    for table in _signed_sums(sizes):
        sums += table.take(bits.random_raw(n_words).view(np.uint8)[:n_permutations])
    hits = int(np.count_nonzero(np.abs(sums) >= _least(sizes, observed)))
    return (hits + 1) / (n_permutations + 1)


def _signed_sums(sizes: Floats) -> Floats:
    """Return the sums of eight terms at a time under every pattern, shape (ceil(n / 8), 256)."""
    terms = np.zeros((-(-len(sizes) // _GROUP), _GROUP))
    terms.flat[: len(sizes)] = sizes
    sums = np.zeros((len(terms), 1))
    for column in range(_GROUP):
        term = terms[:, column : column + 1]
        sums = np.concatenate([sums - term, sums + term], axis=1)
    return sums


def _least(sizes: Floats, observed: float) -> float:
    return abs(observed) - _TIE * float(sizes.sum())
