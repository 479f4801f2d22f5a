"""Two sorted streams read together, each item beside the one of the same key."""

from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


def side_by_side(
    old: Iterator[T], new: Iterator[T], key: Callable[[T], str | tuple[str, ...]]
) -> Iterator[tuple[T | None, T | None]]:
    """Yield the items of both in order, those of one key together; one of a pair may be missing.

    Args:
        old: Sorted by key, each once.
        new: Sorted likewise.
        key: Of the same type for all.
    """
    before, now = next(old, None), next(new, None)
    while before is not None or now is not None:
        at = min(key(item) for item in (before, now) if item is not None)
        has_old = before is not None and key(before) == at
        has_new = now is not None and key(now) == at
        yield (before if has_old else None), (now if has_new else None)
        before = next(old, None) if has_old else before
        now = next(new, None) if has_new else now
