"""Data of a page in small packed blocks, which its script reads when they are wanted."""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ragforge.report.page.markup import Html, data_block
from ragforge.report.queries.blocks import detail_block, index_of, rows_block, texts_block
from ragforge.report.queries.table import QueryTable

ROWS_A_BLOCK: Final = 10_000
DETAILS_A_BLOCK: Final = 25
LEAST_FOR_DETAILS: Final = 300_000
"""Bytes that drill-downs may take, however much the rows take."""
_SHARE_OF_RANKINGS: Final = 0.6
"""What rankings and grades may take of the room for drill-downs; texts get the rest."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of blocks."""

    key: str
    content: Callable[[QueryTable, int, int], object]
    """Of a number of rows from some row on."""
    size: int
    """Rows in a block."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A table of queries as blocks of a page."""

    blocks: tuple[Html, ...]
    n_details: int
    """Queries, from the worst on, whose rankings are in it."""
    n_texts: int
    """Those whose chunks have their texts too."""


def pack_table(table: QueryTable, room: int) -> Packed:
    """Pack the rows of all queries, and the drill-downs of as many of the worst as there is room.

    Args:
        table: What is to be packed.
        room: Bytes for all blocks; rows come in any case.
    """
    n = len(table.rows)
    rows = _packed(_Kind("queries-rows", rows_block, ROWS_A_BLOCK), table, n, None)
    room = max(room - _size(rows), LEAST_FOR_DETAILS)
    kind = _Kind("queries-detail", detail_block, DETAILS_A_BLOCK)
    details = _packed(kind, table, n, int(room * _SHARE_OF_RANKINGS))
    kind = _Kind("queries-texts", texts_block, DETAILS_A_BLOCK)
    texts = _packed(kind, table, table.reach, room - _size(details))
    n_details = min(len(details) * DETAILS_A_BLOCK, n)
    n_texts = min(len(texts) * DETAILS_A_BLOCK, table.reach, n_details)
    index = index_of(table) | {
        "rowBlocks": len(rows),
        "aBlock": DETAILS_A_BLOCK,
        "details": n_details,
        "texts": n_texts,
    }
    first = data_block("queries-index", packed(index))
    return Packed((first, *rows, *details, *texts), n_details, n_texts)


def packed(value: object) -> bytes:
    """Return JSON, deflated: the same bytes for the same value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), 9)


def _packed(kind: _Kind, table: QueryTable, n: int, room: int | None) -> list[Html]:
    """Pack the first rows block by block, as long as there is room."""
    blocks: list[Html] = []
    for place, first in enumerate(range(0, n, kind.size)):
        content = kind.content(table, first, min(kind.size, n - first))
        found = data_block(f"{kind.key}-{place}", packed(content))
        if room is not None:
            room -= len(found.code)
            if room < 0:
                break
        blocks.append(found)
    return blocks


def _size(blocks: list[Html]) -> int:
    return sum(len(block.code) for block in blocks)
