"""Which cells of a plan are still to be filled where queries of a smaller one are there."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ragforge.records import Query
from ragforge.stages.generate.quotas import Cell

_ALIKE: Final[tuple[Callable[[Cell], tuple[str, ...]], ...]] = (
    lambda cell: (cell.type, cell.language, cell.difficulty, cell.persona),
    lambda cell: (cell.type, cell.language, cell.difficulty),
    lambda cell: (cell.type, cell.language),
    lambda cell: (cell.type,),
    lambda cell: (cell.language,),
    lambda cell: (),
)
"""What an old cell and a new one have in common where one stands for the other, closest first."""


def missing_cells(cells: Sequence[Cell], filled: Iterable[Cell]) -> list[Cell]:
    """Return the cells for which no filled one stands, in their order.

    A larger plan rarely holds the very cells of a smaller one; so each filled cell stands for the
    one that is most like it, the type before all else, so that the shares of the whole come near
    those of the plan.

    Args:
        cells: Of the plan as it is wanted now.
        filled: Those of earlier plans that have a query.
    """
    open_cells, left = list(cells), list(filled)
    for alike in _ALIKE:
        counts = Counter(map(alike, left))
        kept = []
        # The last go first, so that what is left are turns from the start of the plan.
        for cell in reversed(open_cells):
            if counts[alike(cell)]:
                counts[alike(cell)] -= 1
            else:
                kept.append(cell)
        open_cells = kept[::-1]
        left = _rest(left, alike, counts)
    return open_cells


def _rest(
    filled: list[Cell], alike: Callable[[Cell], tuple[str, ...]], counts: Counter[tuple[str, ...]]
) -> list[Cell]:
    """Return as many of the filled cells of each kind as are left over."""
    rest = []
    for cell in filled:
        if counts[alike(cell)]:
            counts[alike(cell)] -= 1
            rest.append(cell)
    return rest


def cell_like(query: Query) -> Cell:
    """Return the cell that a query fills whose own is not known any more."""
    return Cell(
        number=-1,
        type=query.type or "fact",
        difficulty=query.difficulty or "medium",
        persona=query.persona or "",
        language=query.language,
    )
