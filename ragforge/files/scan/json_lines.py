"""JSON Lines runs to hits: the lines of a whole window are read at once.

Of each line, the lists are taken out and the rest is parsed as JSON; the hits of all lists are then
found together, as positions in the bytes of the window.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import (
    ITEM_ID,
    LATENCY_MS,
    LATENCY_S,
    RANKING,
    SCORE,
    SCORES,
    goes_by,
)
from ragforge.files.row import Row, load_json, make_row, query_name
from ragforge.files.scan.collecting import (
    Collector,
    Qrels,
    falling_where_alike,
    merged,
    scores_rise,
)
from ragforge.files.scan.decimals import parse_decimals
from ragforge.files.scan.parts import Part, Sizes, Window, scan_parts
from ragforge.files.scan.rows import Bytes, Flags, Floats, Irregular, Positions, Rows
from ragforge.files.scan.tokens import find_byte, stands_at, texts_of, words_of
from ragforge.measures.hit_table import RunHits

_LIST: Final = re.compile(rb'":\s*\[')
_FAILED: Final = re.compile(rb'"(?:error|error_message)":\s*(?!null|"")')
_MOST_LISTS: Final = 2
_PLAIN: Final = re.compile(
    rb'(?P<before>\{"\w+": ?")(?P<query_id>[^"]+)(?P<lists>"(, ?"\w+": ?\[\]){1,2})'
    rb'(, ?"latency_s": ?(?P<latency_s>(0|[1-9][0-9]{0,8})\.[0-9]{1,20}))?\}'
)

_CONTROLS_END: Final = 0x20
_ASCII_END: Final = 0x80
_BLANK, _QUOTE, _COMMA, _CLOSING_BRACE, _ZERO, _MINUS, _NEWLINE = b' ",}0-\n'
_NINE: Final = 9
_NUMBER: Final = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER: Final = 64
_OBJECT: Final = re.compile(
    rb'(?P<before_id>\{"(?P<id>\w{1,24})":(?P<blank> ?)")[^"]{0,256}'
    rb'(?P<before_score>",(?P=blank)"(?P<score>\w{1,24})":(?P=blank))[^",}]{1,64}\}'
)
_LONGEST_OBJECT: Final = 512


@dataclass(frozen=True, slots=True)
class _Span:
    """The inside of a list: from behind the opening bracket to the closing one."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """A line: a query and where its hits are."""

    query_id: str
    latency_s: float | None
    lists: list[_Span]
    """One list of objects, or a list of ids and one of scores."""


def _read_frame(buffer: bytearray, start: int, end: int) -> _Frame:
    """Read a line, with its lists taken out, as the line readers would.

    Args:
        buffer: Holds the line, which has no backslashes and no control characters.
        start: Where the line begins.
        end: Behind the line.

    Raises:
        Irregular: It is no line of one of the shapes.
    """
    lists = _find_lists(buffer, start, end)
    edges = [start, *(edge for span in lists for edge in (span.start, span.end)), end]
    kept = b"".join(buffer[edges[at] : edges[at + 1]] for at in range(0, len(edges), 2))
    plain = _PLAIN.fullmatch(kept)
    query_id = "" if plain is None else plain["query_id"].decode()
    if plain is None or not query_id.strip():
        rest = _read_rest(kept, len(lists))
        query_id, latency_s = rest.query_id, rest.latency_s
    else:
        rest = _read_known_rest(plain["before"] + b"q" + plain["lists"] + b"}", len(lists))
        latency_s = None if plain["latency_s"] is None else float(plain["latency_s"])
    return _Frame(query_id, latency_s, lists[::-1] if rest.is_reversed else lists)


@dataclass(frozen=True, slots=True)
class _Rest:
    """A line whose lists are empty."""

    query_id: str
    latency_s: float | None
    is_reversed: bool
    """Whether the scores come before the ids."""


def _read_rest(kept: bytes, n_lists: int) -> _Rest:
    try:
        given = load_json(kept)
        if not isinstance(given, dict):
            raise Irregular
        row = make_row("", given)
        return _Rest(query_name(row), _latency_s(row), _is_reversed(given, n_lists))
    except (ValueError, RecursionError, DataError):
        raise Irregular from None


_read_known_rest = lru_cache(maxsize=64)(_read_rest)
"""Lines differ in their query and latency only: reading every one took a third of the time."""


def _find_lists(buffer: bytearray, start: int, end: int) -> list[_Span]:
    """Return the list of objects, else the lists that come first in the line, at most two."""
    spans: list[_Span] = []
    for _ in range(_MOST_LISTS):
        opening = _LIST.search(buffer, start, end)
        if opening is None:
            break
        inside = opening.end()
        is_objects = buffer[inside : inside + 1] == b"{"
        closing = buffer.rfind(b"]", inside, end) if is_objects else buffer.find(b"]", inside, end)
        if closing < 0:
            raise Irregular
        spans.append(_Span(inside, closing))
        start = closing
    return spans


def _is_reversed(given: Mapping[str, object], n_lists: int) -> bool:
    """Return whether scores come before ids; refuse others than these lists."""
    rankings = [name for name in given if goes_by(name, RANKING)]
    scores = [name for name in given if goes_by(name, SCORES)]
    emptied = [name for name, value in given.items() if value == []]
    if len(rankings) != 1 or len(emptied) != n_lists or len(scores) + 1 != n_lists:
        raise Irregular
    if emptied not in (rankings + scores, scores + rankings):
        raise Irregular
    return emptied != rankings + scores


def _latency_s(row: Row) -> float | None:
    for name, per_second in ((LATENCY_S, 1.0), (LATENCY_MS, 1000.0)):
        value = row.get(name)
        if value is None:
            continue
        if type(value) not in {int, float}:
            raise Irregular
        latency = row.as_number(value, name)
        if not 0 <= latency < float("inf"):
            raise Irregular
        return latency / per_second
    return None


@dataclass(frozen=True, slots=True)
class _Spans:
    """The insides of lists: from behind the opening brackets to the closing ones, ascending."""

    starts: Positions
    ends: Positions


@dataclass(frozen=True, slots=True)
class _Hits:
    """The hits of some lists, one list after the other, as positions in an array."""

    firsts: Positions
    """The number of the first hit of each list."""
    id_starts: Positions
    id_ends: Positions
    score_starts: Positions
    score_ends: Positions


def _find_in_objects(array: Bytes, lists: _Spans) -> _Hits:
    """Find hits that are objects of an id and a score, all written as the first one is.

    Args:
        array: The bytes.
        lists: Lists of objects; none is empty.

    Raises:
        Irregular: There is something else.
    """
    start = int(lists.starts[0])
    first = _OBJECT.match(array[start : start + _LONGEST_OBJECT].tobytes())
    if first is None or not _are_known(first["id"].decode(), first["score"].decode()):
        raise Irregular
    closings = _positions(array, start, int(lists.ends[-1]), _CLOSING_BRACE)
    numbers = closings.searchsorted(lists.starts)
    counts = closings.searchsorted(lists.ends) - numbers
    if not counts.all():
        raise Irregular
    firsts = counts.cumsum() - counts
    score_ends = closings[_ranges(numbers, counts)]
    if (score_ends[firsts + counts - 1] != lists.ends - 1).any():
        raise Irregular
    separator = b"," + first["blank"]
    openings = _behind_separators(array, score_ends[:-1] + 1, lists, firsts, separator)
    id_starts = openings + len(first["before_id"])
    id_ends = find_byte(array, id_starts, _QUOTE)
    score_starts = id_ends + len(first["before_score"])
    if (
        (score_starts >= score_ends).any()
        or not stands_at(array, openings, first["before_id"])
        or not stands_at(array, id_ends, first["before_score"])
    ):
        raise Irregular
    return _Hits(firsts, id_starts, id_ends, score_starts, score_ends)


def _find_in_columns(array: Bytes, ids: _Spans, scores: _Spans) -> _Hits:
    """Find hits of which ids and scores stand in two lists.

    Args:
        array: The bytes.
        ids: Lists of texts; none is empty.
        scores: Lists of as many numbers.

    Raises:
        Irregular: There is something else.
    """
    start = min(int(ids.starts[0]), int(scores.starts[0]))
    end = max(int(ids.ends[-1]), int(scores.ends[-1]))
    commas = _positions(array, start, end, _COMMA)
    firsts, id_starts, id_ends = _items(array, commas, ids)
    score_firsts, score_starts, score_ends = _items(array, commas, scores)
    if len(id_starts) != len(score_starts) or (firsts != score_firsts).any():
        raise Irregular
    quotes = array.take(id_starts, mode="clip") == _QUOTE
    quotes &= array.take(id_ends - 1, mode="clip") == _QUOTE
    n_quotes = sum(
        int(np.count_nonzero(array[start:end] == _QUOTE))
        for start, end in zip(ids.starts.tolist(), ids.ends.tolist(), strict=True)
    )
    if not quotes.all() or n_quotes != 2 * len(id_starts):
        raise Irregular
    return _Hits(firsts, id_starts + 1, id_ends - 1, score_starts, score_ends)


def _items(
    array: Bytes, commas: Positions, lists: _Spans
) -> tuple[Positions, Positions, Positions]:
    """Return the first item of each list, and where all items start and end."""
    numbers = commas.searchsorted(lists.starts)
    n_commas = commas.searchsorted(lists.ends) - numbers
    counts = n_commas + 1
    firsts = counts.cumsum() - counts
    # Each list's closing bracket stands behind its commas.
    ends = np.empty(int(counts.sum()), np.int64)
    is_last = np.zeros(len(ends), bool)
    is_last[firsts + n_commas] = True
    ends[is_last] = lists.ends
    inner = commas[_ranges(numbers, n_commas)]
    ends[~is_last] = inner
    blank = b" " if len(inner) and array[inner[0] + 1] == _BLANK else b""
    return firsts, _behind_separators(array, ends[:-1], lists, firsts, b"," + blank), ends


def _positions(array: Bytes, start: int, end: int, byte: int) -> Positions:
    return np.flatnonzero(array[start:end] == byte) + start


def _ranges(starts: Positions, counts: Positions) -> Positions:
    """Return so many whole numbers from each start on."""
    before = counts.cumsum() - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)


def _behind_separators(
    array: Bytes, places: Positions, lists: _Spans, firsts: Positions, separator: bytes
) -> Positions:
    """Return where items start: the first of a list at its start, others behind a separator.

    Args:
        array: The bytes.
        places: Where separators are due, behind each item but the last.
        lists: The lists.
        firsts: The number of the first item of each list.
        separator: What has to stand at the places, but between lists.

    Raises:
        Irregular: Something else stands there.
    """
    starts = np.empty(len(places) + 1, np.int64)
    np.add(places, len(separator), out=starts[1:])
    for at, byte in enumerate(separator):
        right = array.take(places + at, mode="clip") == byte
        right[firsts[1:] - 1] = True
        if not right.all():
            raise Irregular
    starts[firsts] = lists.starts
    return starts


def _are_known(id_name: str, score_name: str) -> bool:
    return goes_by(id_name, ITEM_ID) and goes_by(score_name, SCORE)


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
            _read_frame(window.buffer, start, end)
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
    if _FAILED.search(window.buffer, window.start, window.stop):
        raise Irregular  # Who reads line by line knows a failure from a ranking of nothing.
    ends += window.start
    return np.concatenate(([window.start], ends + 1))[:-1], ends


def _rows(array: Bytes, frames: Sequence[_Frame]) -> Rows:
    filled = [frame for frame in frames if any(span.start < span.end for span in frame.lists)]
    query_ids = [frame.query_id for frame in filled]
    empty_query_ids = {frame.query_id for frame in frames}.difference(query_ids)
    latencies_s = {
        frame.query_id: frame.latency_s for frame in frames if frame.latency_s is not None
    }
    if len(query_ids) + len(empty_query_ids) < len(frames):
        raise Irregular
    hits = _find(array, filled)
    scores = falling_where_alike(_scores(array, hits), hits.firsts)
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


def _find(array: Bytes, frames: Sequence[_Frame]) -> _Hits:
    if not frames:
        return _Hits(*[np.empty(0, np.int64)] * 5)
    n_lists = {len(frame.lists) for frame in frames}
    if n_lists == {1}:
        return _find_in_objects(array, _spans(frames, 0))
    if n_lists == {2}:
        return _find_in_columns(array, _spans(frames, 0), _spans(frames, 1))
    raise Irregular


def _spans(frames: Sequence[_Frame], number: int) -> _Spans:
    spans = [frame.lists[number] for frame in frames]
    return _Spans(np.array([span.start for span in spans]), np.array([span.end for span in spans]))


def _scores(array: Bytes, hits: _Hits) -> Floats:
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
