"""JSON Lines runs to hits: the lines of a whole window are read at once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ragforge.files.scan.collecting import Collector, Qrels, merged
from ragforge.files.scan.decimals import parse_decimals
from ragforge.files.scan.json_hits import (
    Frame,
    Hits,
    Spans,
    find_in_columns,
    find_in_objects,
    read_frame,
)
from ragforge.files.scan.parts import Part, Sizes, scan_parts
from ragforge.files.scan.ranks import scores_rise
from ragforge.files.scan.rows import Bytes, Flags, Floats, Irregular, Positions, Rows
from ragforge.files.scan.tokens import texts_of, words_of
from ragforge.files.scan.window import Window
from ragforge.measures.hits import RunHits

_CONTROLS_END: Final = 0x20
_ASCII_END: Final = 0x80
_BLANK, _ZERO, _MINUS, _NEWLINE = b" 0-\n"
_NINE: Final = 9
_NUMBER: Final = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER: Final = 64


@dataclass(frozen=True, slots=True)
class ScannedRun:
    """What is kept of a run."""

    hits: RunHits
    latencies_s: dict[str, float]
    """By query id, of those for which the file says it."""


def scan_json_lines_run(
    path: Path, qrels: Qrels, *, n_threads: int, sizes: Sizes | None = None
) -> ScannedRun:
    """Find the judged chunks of a run of one query a line, as the line readers would read it.

    A line is `{"query_id": "q1", "ranking": [{"chunk_id": "d7", "score": 12.5}]}` or
    `{"query_id": "q1", "ids": ["d7"], "scores": [12.5]}`, as `json.dumps` writes it or without
    blanks, with any other fields that hold no list.

    Args:
        path: A file, not a pipe; unpacked where its name ends in .gz or .zst.
        qrels: Query id to chunk id to grade.
        n_threads: How many read at once, where the file is large and not packed.
        sizes: How the file is cut up; None for what is fast.

    Raises:
        Irregular: The file is of another shape or holds an error: read it line by line.
        DataError: The file cannot be read or unpacked.
    """
    collectors = scan_parts(path, _rows_of, qrels, n_threads=n_threads, sizes=sizes)
    return ScannedRun(merged(collectors), _latencies_s(collectors))


def _latencies_s(collectors: Sequence[Collector]) -> dict[str, float]:
    return {
        query_id: latency_s
        for collector in collectors
        for query_id, latency_s in collector.latencies_s.items()
    }


def _rows_of(window: Window, part: Part) -> Iterator[Rows]:
    """Yield the queries of the lines that begin in a part."""
    is_last = False
    while not is_last:
        window.read_on()
        starts, ends = _lines(window)
        is_last = window.at_end
        if part.end is not None:
            n_own = int(starts.searchsorted(window.position_of(part.end)))
            is_last |= n_own < len(starts)
            starts, ends = starts[:n_own], ends[:n_own]
        frames = [
            read_frame(window.buffer, start, end)
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            if start < end
        ]
        if frames:
            yield _rows(window.array, frames)
        window.drop(window.stop)


def _lines(window: Window) -> tuple[Positions, Positions]:
    """Return where lines start and end; refuse what would have to be unescaped."""
    text = window.array[window.start : window.stop]
    ends = np.flatnonzero(text < _CONTROLS_END)
    if (text[ends] != _NEWLINE).any() or window.buffer.find(b"\\", window.start, window.stop) >= 0:
        raise Irregular
    ends += window.start
    return np.concatenate(([window.start], ends + 1))[:-1], ends


def _rows(array: Bytes, frames: Sequence[Frame]) -> Rows:
    filled = [frame for frame in frames if any(span.start < span.end for span in frame.lists)]
    query_ids = [frame.query_id for frame in filled]
    empty_query_ids = {frame.query_id for frame in frames}.difference(query_ids)
    latencies_s = {
        frame.query_id: frame.latency_s for frame in frames if frame.latency_s is not None
    }
    if len(query_ids) + len(empty_query_ids) < len(frames):
        raise Irregular
    hits = _find(array, filled)
    scores = _scores(array, hits)
    rows = Rows(
        array,
        query_ids,
        hits.firsts,
        hits.id_starts,
        hits.id_ends,
        scores,
        sorted(empty_query_ids),
        latencies_s,
    )
    if scores_rise(rows):
        raise Irregular
    _refuse_blank_ids(rows)
    return rows


def _find(array: Bytes, frames: Sequence[Frame]) -> Hits:
    if not frames:
        return Hits(*[np.empty(0, np.int64)] * 5)
    n_lists = {len(frame.lists) for frame in frames}
    if n_lists == {1}:
        return find_in_objects(array, _spans(frames, 0))
    if n_lists == {2}:
        return find_in_columns(array, _spans(frames, 0), _spans(frames, 1))
    raise Irregular


def _spans(frames: Sequence[Frame], number: int) -> Spans:
    spans = [frame.lists[number] for frame in frames]
    return Spans(np.array([span.start for span in spans]), np.array([span.end for span in spans]))


def _scores(array: Bytes, hits: Hits) -> Floats:
    """Return the scores; refuse numbers that JSON does not spell so."""
    starts, ends = hits.score_starts, hits.score_ends
    if not len(starts):
        return np.empty(0)
    first = starts + (array.take(starts, mode="clip") == _MINUS)
    leading = array.take(first, mode="clip")
    is_padded = (leading == _ZERO) & _are_digits(array.take(first + 1, mode="clip"))
    whole = _are_digits(leading) & _are_digits(array.take(ends - 1, mode="clip"))
    if is_padded.any() or not whole.all():
        raise Irregular
    return parse_decimals(array, starts, ends, _read_number)


def _are_digits(characters: Bytes) -> Flags:
    return characters - np.uint8(_ZERO) <= _NINE


def _read_number(token: bytes) -> float:
    if len(token) > _LONGEST_NUMBER or _NUMBER.fullmatch(token) is None:
        raise ValueError(token)
    return float(token)


def _refuse_blank_ids(rows: Rows) -> None:
    """Refuse ids that are nothing but blanks; the line readers take others as they are."""
    firsts = rows.array.take(rows.id_starts, mode="clip")
    doubtful = np.flatnonzero((firsts == _BLANK) | (firsts >= _ASCII_END))
    if len(doubtful):
        words = words_of(rows.array, rows.id_starts[doubtful], rows.id_ends[doubtful])
        if not all(text.strip() for text in texts_of(words)):
            raise Irregular
