"""Letters that say in a table of many runs which of them were told apart."""

from collections.abc import Iterable, Mapping
from string import ascii_letters


def letters(
    means: Mapping[str, float | None], differing: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return letters that two runs share where, and only where, no difference was found.

    Args:
        means: By run; the higher the mean, the earlier its letters. Runs without one come last.
        differing: Pairs of runs between which a difference was found.

    Returns:
        By run, in the order of `means`: its letters in alphabetical order, at least one. Beyond
        the 52 letters numbers in brackets follow.

    Source: Piepho 2004, Journal of Computational and Graphical Statistics 13(2): insert and absorb.
    """
    ranked = sorted(means, key=lambda run: (means[run] is None, -(means[run] or 0.0), run))
    place = {run: index for index, run in enumerate(ranked)}
    groups = [frozenset(place.values())] if place else []
    for a, b in differing:
        groups = _parted(groups, place[a], place[b])
    ordered = sorted(groups, key=sorted)
    return {
        run: "".join(_letter(n) for n, group in enumerate(ordered) if place[run] in group)
        for run in means
    }


def _parted(groups: list[frozenset[int]], a: int, b: int) -> list[frozenset[int]]:
    """Split each group that holds both in one without a and one without b, and absorb subsets."""
    kept = [group for group in groups if not {a, b} <= group]
    split = [group - {one} for group in groups if {a, b} <= group for one in (a, b)]
    for part in split:
        if not any(part <= group for group in kept):
            kept = [group for group in kept if not group <= part]
            kept.append(part)
    return kept


def _letter(n: int) -> str:
    return ascii_letters[n] if n < len(ascii_letters) else f"({n + 1})"
