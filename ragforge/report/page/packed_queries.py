"""The table of queries as packed blocks: rows by column, drill-downs, and texts that they share.

All texts in them have their hidden characters made visible; the script puts them in as text only.
"""

import json
import sys
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, Protocol

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import Excerpt, one_line, visible
from ragforge.evaluating.judgments import GRADE_MEANINGS
from ragforge.evaluating.query_details import (
    ChunkStart,
    QueryDetail,
    RunDetail,
    spans,
    visible_pieces,
)
from ragforge.evaluating.query_table import FACETS, QueryRow, QueryTable
from ragforge.evaluating.runs import DEPTH
from ragforge.report.page.markup import Html, data_block

STATES: Final = {
    "measured": "",
    "no_relevant": "nothing relevant known",
    "missing": "not in the run",
    "failed": "failed",
    "judging_failed": "judging failed",
    "not_judged": "not judged",
    "unplaced": "evidence without a place",
    "unanswerable": "not measured",
}
"""The state of a cell in words."""
SOURCE_MEANINGS: Final = {
    "human": "graded by a person",
    "evidence": "graded by the evidence",
    "judge": "graded by the judge",
    "carried": "grade carried over",
}
_SOURCES: Final[Mapping[str, int]] = {
    source: place for place, source in enumerate(("", *SOURCE_MEANINGS))
}
_DIGITS: Final = 9
"""Enough for the page to round as all others do."""
_NO_GRADE: Final[Mapping[str, int]] = {"unjudged": -1, "failed": -2, "listed": -3, "unlisted": -4}
_ROWS_A_BLOCK: Final = 10_000
_QUERIES_A_BLOCK: Final = 100
_LEAST_FOR_DETAILS: Final = 300_000
"""Bytes that drill-downs may take, however much the rows take."""
_LEVEL: Final = 6
"""Of zlib: 9 takes twice as long and saves a hundredth."""
_LEVEL_BESIDE: Final = 2
"""Of files that nobody mails: a quarter of the time, for a tenth more bytes."""


class FilesBeside(Protocol):
    """Where drill-downs go for which the page has no room: files that its script loads."""

    def put(self, name: str, code: str) -> None:
        """Write a file.

        Raises:
            DataError: It cannot be written.
        """

    @property
    def address(self) -> str:
        """Where all that were written are, as the page links to it; "" where there is none."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A table of queries as blocks of a page."""

    blocks: tuple[Html, ...]
    n_inside: int
    """Queries, from the worst on, whose drill-downs are in the page."""
    address: str
    """Of the folder with those of all others; "" where they are left out, or there are none."""


def pack_table(table: QueryTable, room: int, beside: FilesBeside | None = None) -> Packed:
    """Pack the rows of all queries, and the drill-downs of as many of the worst as there is room.

    Args:
        table: What is to be packed.
        room: Bytes for all blocks; rows come in any case.
        beside: Takes the drill-downs of the other queries; they are left out where None.
    """
    rows = _row_blocks(table)
    room = max(room - _size(rows), _LEAST_FOR_DETAILS)
    n, n_inside = table.reach, 0
    inside: list[Html] = []
    for first, content in _drilldowns(table):
        blocks = []
        if room >= 0:
            blocks = [data_block(key, _deflated(value)) for key, value in content.items()]
            room -= _size(blocks)
        if room >= 0:
            inside += blocks
            n_inside = min(first + _QUERIES_A_BLOCK, n)
        elif beside is None:
            break
        else:
            for key, value in content.items():
                text = b64encode(_deflated(value, _LEVEL_BESIDE)).decode()
                beside.put(f"{key}.js", f'ragforgeBlock("{key}","{text}")\n')
    address = "" if beside is None else beside.address
    index = _index_of(table) | {
        "rowBlocks": len(rows),
        "aBlock": _QUERIES_A_BLOCK,
        "details": n if address else n_inside,
        "files": address,
    }
    first_block = data_block("queries-index", _deflated(index))
    return Packed((first_block, *rows, *inside), n_inside, address)


def _deflated(value: object, level: int = _LEVEL) -> bytes:
    """Return JSON, deflated: the same bytes for the same value."""
    return zlib.compress(_json(value), level)


def _json(value: object) -> bytes:
    """Return JSON as `json` has it, by pydantic in a third of the time where that is there."""
    if core := sys.modules.get("pydantic_core"):
        written: bytes = core.to_json(value, inf_nan_mode="strings")
        return written
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _row_blocks(table: QueryTable) -> list[Html]:
    blocks = []
    for place, first in enumerate(range(0, len(table.rows), _ROWS_A_BLOCK)):
        content = _deflated(_rows_block(table, first, _ROWS_A_BLOCK))
        blocks.append(data_block(f"queries-rows-{place}", content))
    return blocks


def _size(blocks: list[Html]) -> int:
    return sum(len(block.code) for block in blocks)


def _index_of(table: QueryTable) -> dict[str, object]:
    """Return what all blocks are read by: names, and the words behind their numbers."""
    return {
        "measure": table.measure,
        "ofEvidence": table.is_of_evidence,
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
        "sources": ["", *SOURCE_MEANINGS.values()],
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


def _drilldowns(table: QueryTable) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the first row of each block, with what is shown of its queries, by key.

    Texts of chunks stand apart, once: with the block of the first query that shows them.
    """
    at: dict[str, tuple[int, int]] = {}
    for block, first in enumerate(range(0, table.reach, _QUERIES_A_BLOCK)):
        rows = table.rows[first : min(first + _QUERIES_A_BLOCK, table.reach)]
        details = [table.detail(row.query_id) for row in rows]
        chunk_ids = list(dict.fromkeys(item for detail in details for item in detail.chunks))
        texts = table.texts(details)
        starts = {item: texts.starts.get(item) for item in chunk_ids}
        new = [item for item in chunk_ids if item not in at]
        at.update((item, (block, place)) for place, item in enumerate(new))
        places = _places(chunk_ids)
        content: dict[str, object] = {
            f"queries-detail-{block}": {
                "chunks": list(map(visible, chunk_ids)),
                "at": [at[item] for item in chunk_ids],
                "queries": [_detail(one, places, starts, texts.replies) for one in details],
            }
        }
        if new:
            content[f"queries-texts-{block}"] = [_start(starts[item]) for item in new]
        yield first, content


def _detail(
    detail: QueryDetail,
    places: Mapping[str, int],
    starts: Mapping[str, ChunkStart | None],
    known: Mapping[str, Excerpt],
) -> dict[str, object]:
    """Return a query: its chunks by column, and by their place what few of them have."""
    own = _places(detail.chunks)
    chunks = detail.chunks.values()
    keys = [key for key in dict.fromkeys(chunk.call_key for chunk in chunks) if key in known]
    replies = _places(keys)
    answer = detail.expected_answer
    return {
        "text": _excerpt(detail.text),
        "answerable": detail.answerable,
        "answer": None if answer is None else _excerpt(answer),
        "evidence": list(map(_excerpt, detail.evidence)),
        "chunks": [places[chunk_id] for chunk_id in detail.chunks],
        "grades": [_NO_GRADE[of.state] if of.grade is None else of.grade for of in chunks],
        "sources": [_SOURCES[chunk.source] for chunk in chunks],
        "reasons": [_excerpt(chunk.reasoning) for chunk in chunks],
        "marks": {
            own[chunk.chunk_id]: marks
            for chunk in chunks
            if (marks := _marks(starts[chunk.chunk_id], chunk.quotes))
        },
        "replies": [_excerpt(known[key]) for key in keys],
        "reply": {
            own[chunk.chunk_id]: replies[chunk.call_key]
            for chunk in chunks
            if chunk.call_key in replies
        },
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


def _marks(start: ChunkStart | None, quotes: tuple[str, ...]) -> list[int]:
    """Return where marked pieces begin and end in the shown text, in code points."""
    if start is None:
        return []
    text = start.text.text
    marked = spans(text, quotes)
    if not marked:
        return []
    at, ends = 0, []
    for piece in visible_pieces(text, marked):
        at += len(piece)
        ends.append(at)
    return [end for pair in list(pairwise(ends))[::2] for end in pair]


def _excerpt(text: Excerpt) -> str | list[str]:
    """Return a text, with a note where it is cut."""
    shown = visible(text.text)
    return shown if len(text.text) == text.length else [shown, text.cut_note]


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
