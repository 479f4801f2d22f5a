"""The table of queries as packed blocks: rows by column, drill-downs, and texts that they share.

All texts in them have their hidden characters made visible; the script puts them in as text only.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ragforge.evaluating.formatting import Excerpt, one_line, visible
from ragforge.evaluating.judgments import GRADE_MEANINGS
from ragforge.evaluating.query_details import (
    ChunkDetail,
    ChunkStart,
    QueryDetail,
    RunDetail,
    Texts,
    spans,
    visible_pieces,
)
from ragforge.evaluating.query_table import FACETS, QueryRow, QueryTable
from ragforge.evaluating.runs import DEPTH, PRIMARY
from ragforge.report.page.markup import Html, data_block

STATES: Final = {
    "measured": "",
    "no_relevant": "nothing relevant known",
    "missing": "not in the run",
    "failed": "failed",
    "judging_failed": "judging failed",
    "not_judged": "not judged",
    "unanswerable": "not measured",
}
"""The state of a cell in words."""
SOURCE_MEANINGS: Final = {
    "human": "graded by a person",
    "evidence": "graded by the evidence",
    "judge": "graded by the judge",
    "carried": "grade carried over",
}
_DIGITS: Final = 4
_NO_GRADE: Final[Mapping[str, int]] = {"unjudged": -1, "failed": -2, "listed": -3, "unlisted": -4}
_ROWS_A_BLOCK: Final = 10_000
_DETAILS_A_BLOCK: Final = 25
_LEAST_FOR_DETAILS: Final = 300_000
"""Bytes that drill-downs may take, however much the rows take."""
_SHARE_OF_RANKINGS: Final = 0.6
"""What rankings and grades may take of the room for drill-downs; texts get the rest."""


@dataclass(frozen=True, slots=True)
class _BlockKind:
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
    rows = _blocks_within(_BlockKind("queries-rows", _rows_block, _ROWS_A_BLOCK), table, n, None)
    room = max(room - _size(rows), _LEAST_FOR_DETAILS)
    kind = _BlockKind("queries-detail", _detail_block, _DETAILS_A_BLOCK)
    details = _blocks_within(kind, table, n, int(room * _SHARE_OF_RANKINGS))
    kind = _BlockKind("queries-texts", _texts_block, _DETAILS_A_BLOCK)
    texts = _blocks_within(kind, table, table.reach, room - _size(details))
    n_details = min(len(details) * _DETAILS_A_BLOCK, n)
    n_texts = min(len(texts) * _DETAILS_A_BLOCK, table.reach, n_details)
    index = _index_of(table) | {
        "rowBlocks": len(rows),
        "aBlock": _DETAILS_A_BLOCK,
        "details": n_details,
        "texts": n_texts,
    }
    first = data_block("queries-index", _deflated(index))
    return Packed((first, *rows, *details, *texts), n_details, n_texts)


def _deflated(value: object) -> bytes:
    """Return JSON, deflated: the same bytes for the same value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), 9)


def _blocks_within(kind: _BlockKind, table: QueryTable, n: int, room: int | None) -> list[Html]:
    """Pack the first rows block by block, as long as there is room."""
    blocks: list[Html] = []
    for place, first in enumerate(range(0, n, kind.size)):
        content = kind.content(table, first, min(kind.size, n - first))
        block = data_block(f"{kind.key}-{place}", _deflated(content))
        if room is not None:
            room -= len(block.code)
            if room < 0:
                break
        blocks.append(block)
    return blocks


def _size(blocks: list[Html]) -> int:
    return sum(len(block.code) for block in blocks)


def _index_of(table: QueryTable) -> dict[str, object]:
    """Return what all blocks are read by: names, and the words behind their numbers."""
    return {
        "measure": PRIMARY,
        "depth": DEPTH,
        "n": len(table.rows),
        "runs": list(map(visible, table.runs)),
        "systems": list(map(visible, table.systems)),
        "facets": [
            {"name": name, "values": _values(row.facets[place] for row in table.rows)}
            for place, name in enumerate(FACETS)
        ],
        "states": list(STATES.values()),
        "causes": _causes(table.rows),
        "verdicts": _verdicts(table.rows),
        "grades": list(GRADE_MEANINGS),
        "sources": SOURCE_MEANINGS,
    }


def _rows_block(table: QueryTable, first: int, size: int) -> dict[str, object]:
    """Return some rows by column."""
    rows = table.rows[first : first + size]
    causes, verdicts = _places(_causes(table.rows)), _places(_verdicts(table.rows))
    states = _places(STATES)
    facets = [_places(_values(row.facets[n] for row in table.rows)) for n in range(len(FACETS))]
    return {
        "id": [visible(row.query_id) for row in rows],
        "text": [row.text for row in rows],
        "facets": [
            [known[row.facets[place]] for row in rows] for place, known in enumerate(facets)
        ],
        "runs": [
            {
                "value": [_rounded(row.cells[place].value) for row in rows],
                "first": [row.cells[place].first for row in rows],
                "holes": [row.cells[place].holes for row in rows],
                "state": [states[row.cells[place].state] for row in rows],
                "cause": [causes[row.cells[place].cause] for row in rows],
            }
            for place in range(len(table.runs))
        ],
        "verdicts": [
            [verdicts[row.verdicts[place]] for row in rows] for place in range(len(table.systems))
        ],
    }


def _detail_block(table: QueryTable, first: int, size: int) -> dict[str, object]:
    """Return the drill-downs of some rows, without the texts that they share."""
    details = _details(table, first, size)
    chunk_ids = _chunk_ids(details)
    places = _places(chunk_ids)
    return {
        "chunks": list(map(visible, chunk_ids)),
        "queries": [_detail(detail, places) for detail in details],
    }


def _texts_block(table: QueryTable, first: int, size: int) -> dict[str, object]:
    """Return the texts of the chunks of some rows, each once, and what their judges said."""
    details = _details(table, first, size)
    starts = table.texts.starts
    return {
        "chunks": [_start(starts.get(chunk_id)) for chunk_id in _chunk_ids(details)],
        "queries": [_query_texts(detail, table.texts) for detail in details],
    }


def _details(table: QueryTable, first: int, size: int) -> list[QueryDetail]:
    return [table.detail(row.query_id) for row in table.rows[first : first + size]]


def _chunk_ids(details: Iterable[QueryDetail]) -> list[str]:
    return list(dict.fromkeys(chunk_id for detail in details for chunk_id in detail.chunks))


def _detail(detail: QueryDetail, places: Mapping[str, int]) -> dict[str, object]:
    own = _places(detail.chunks)
    answer = detail.expected_answer
    return {
        "text": _excerpt(detail.text),
        "answerable": detail.answerable,
        "answer": None if answer is None else _excerpt(answer),
        "evidence": list(map(_excerpt, detail.evidence)),
        "chunks": [_chunk(chunk, places[chunk.chunk_id]) for chunk in detail.chunks.values()],
        "runs": [_run(run, own) for run in detail.runs],
        "answers": [
            {
                "system": visible(item.system),
                "text": None if item.answer is None else _excerpt(item.answer),
                "verdict": item.verdict,
                "hallucinates": bool(item.has_hallucination),
                "reason": _excerpt(item.explanation),
            }
            for item in detail.answers
        ],
    }


def _chunk(chunk: ChunkDetail, place: int) -> list[object]:
    grade = _NO_GRADE[chunk.state] if chunk.grade is None else chunk.grade
    return [place, grade, chunk.source]


def _run(run: RunDetail, own: Mapping[str, int]) -> dict[str, object]:
    return {
        "n": run.n_retrieved,
        "top": [own[chunk_id] for chunk_id in run.top],
        "missed": [[own[chunk_id], run.ranks.get(chunk_id, 0)] for chunk_id in run.missed],
        "nMissed": run.n_missed,
    }


def _start(start: ChunkStart | None) -> list[object] | None:
    if start is None:
        return None
    where = one_line(" / ".join(filter(None, (start.doc_id, start.heading))), 160)
    return [where, int(start.offset > 0), visible(start.text.text), start.cut_note]


def _query_texts(detail: QueryDetail, texts: Texts) -> dict[str, object]:
    chunks = detail.chunks.values()
    keys = [
        key for key in dict.fromkeys(chunk.call_key for chunk in chunks) if key in texts.replies
    ]
    places = _places(keys)
    return {
        "marks": [_marks(texts.starts.get(chunk.chunk_id), chunk.quotes) for chunk in chunks],
        "reasons": [_excerpt(chunk.reasoning) for chunk in chunks],
        "replies": [_excerpt(texts.replies[key]) for key in keys],
        "reply": [places.get(chunk.call_key, -1) for chunk in chunks],
    }


def _marks(start: ChunkStart | None, quotes: tuple[str, ...]) -> list[int]:
    """Return where marked pieces begin and end in the shown text, in code points."""
    if start is None:
        return []
    text = start.text.text
    at, ends = 0, []
    for piece in visible_pieces(text, spans(text, quotes)):
        at += len(piece)
        ends.append(at)
    return [end for pair in list(pairwise(ends))[::2] for end in pair]


def _excerpt(text: Excerpt) -> list[str]:
    return [visible(text.text), text.cut_note]


def _causes(rows: Iterable[QueryRow]) -> list[str]:
    return _values(cell.cause for row in rows for cell in row.cells)


def _verdicts(rows: Iterable[QueryRow]) -> list[str]:
    return _values(verdict for row in rows for verdict in row.verdicts)


def _values(values: Iterable[str]) -> list[str]:
    """Return what there is, sorted, after "" for nothing."""
    return ["", *sorted(set(values) - {""})]


def _places(values: Iterable[str]) -> dict[str, int]:
    return {value: place for place, value in enumerate(values)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
