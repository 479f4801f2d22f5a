"""TREC runs to hits: the columns of a whole window of lines are read at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from ragforge.deferred import dataclass
from ragforge.files.scan.collecting import Qrels, merged
from ragforge.files.scan.decimals import parse_decimals
from ragforge.files.scan.parts import Part, Sizes, Window, scan_parts
from ragforge.files.scan.rows import Bytes, Irregular, Positions, Rows, Words
from ragforge.files.scan.tokens import changes, texts_of, words_of
from ragforge.measures.hit_table import RunHits

_COLUMNS: Final = 6
_GLUED_COLUMNS: Final = 11
"""Two rows without a line end between them, which the line reader refuses."""
_BLANK, _TAB, _NEWLINE, _COMMENT = b" \t\n#"
_BLANKS: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a window that hold a hit, as positions in its buffer."""

    starts: Positions
    query_starts: Positions
    query_ends: Positions
    id_starts: Positions
    id_ends: Positions
    score_starts: Positions
    score_ends: Positions


def _split_lines(array: Bytes, start: int, stop: int) -> _Lines:
    """Find the columns of whole lines.

    Args:
        array: The bytes of the lines, and more.
        start: Where the first line begins.
        stop: Behind the newline of the last line.

    Raises:
        Irregular: A line is neither blank, nor a comment, nor has six columns between blanks and
            tabs, or there are other control characters.
    """
    if start == stop:
        return _Lines(*[np.empty(0, np.int64)] * 7)
    lines = _split_plain(array, start, stop)
    return _split_any(array, start, stop) if lines is None else lines


def _split_plain(array: Bytes, start: int, stop: int) -> _Lines | None:
    """Return the columns where all lines have six with one blank or tab between; else None."""
    text = array[start:stop]
    blank = text <= _BLANK
    ends = np.flatnonzero(blank)
    if len(ends) % _COLUMNS or blank[0] or (blank[1:] & blank[:-1]).any():
        return None
    columns = np.empty((_COLUMNS, len(ends) // _COLUMNS), np.int64)
    np.add(ends.reshape(-1, _COLUMNS).T, start, out=columns)
    n_lines = columns.shape[1]
    n_controls = np.count_nonzero(text < _BLANK)
    if n_controls != n_lines and n_controls - np.count_nonzero(text == _TAB) != n_lines:
        return None
    if not (array.take(columns[-1], mode="clip") == _NEWLINE).all():
        return None
    starts = np.empty(n_lines, np.int64)
    starts[0] = start
    np.add(columns[-1, :-1], 1, out=starts[1:])
    if (array.take(starts, mode="clip") == _COMMENT).any():
        return None
    return _Lines(
        starts, starts, columns[0], columns[1] + 1, columns[2], columns[3] + 1, columns[4]
    )


def _split_any(array: Bytes, start: int, stop: int) -> _Lines:
    """Return the columns of lines with any blanks, comments and further columns."""
    text = array[start:stop]
    blank = text <= _BLANK
    if np.count_nonzero(blank) != sum(np.count_nonzero(text == kind) for kind in _BLANKS):
        raise Irregular
    # Columns begin and end in turn, and the last newline is behind all of them.
    edges = np.flatnonzero(np.diff(blank, prepend=True))
    starts, ends = edges[::2], edges[1::2]
    newlines = np.flatnonzero(text == _NEWLINE)
    behind = starts.searchsorted(newlines)
    firsts = np.concatenate(([0], behind[:-1]))
    line_starts = np.concatenate(([0], newlines[:-1] + 1))
    taken = behind > firsts
    taken[taken] = text[starts[firsts[taken]]] != _COMMENT
    firsts, behind, line_starts = firsts[taken], behind[taken], line_starts[taken]
    widths = behind - firsts
    if len(firsts) and (widths.min() < _COLUMNS or widths.max() >= _GLUED_COLUMNS):
        raise Irregular
    starts, ends = starts + start, ends + start
    return _Lines(
        line_starts + start,
        starts[firsts],
        ends[firsts],
        starts[firsts + 2],
        ends[firsts + 2],
        starts[firsts + 4],
        ends[firsts + 4],
    )


def scan_trec_run(
    path: Path, qrels: Qrels, *, n_threads: int, sizes: Sizes | None = None
) -> RunHits:
    """Find the judged chunks of a TREC run, as `ragforge.files.formats.trec` would read it.

    Args:
        path: A file, not a pipe; unpacked where its name ends in .gz or .zst.
        qrels: Query id to chunk id to grade.
        n_threads: How many read at once, where the file is large and not packed.
        sizes: How the file is cut up; None for what is fast.

    Raises:
        Irregular: The file is of another shape or holds an error: read it line by line.
        DataError: The file cannot be read or unpacked.
    """
    return merged(scan_parts(path, _rows_of, qrels, n_threads=n_threads, sizes=sizes))


def _rows_of(window: Window, part: Part) -> Iterator[Rows]:
    """Yield the queries of a part: those of which the line before the first begins in it.

    The line that a part begins with may be in the middle of a query, and only the line before
    could tell. The first query of the file belongs to the first part.
    """
    is_begun = part.begin == 0
    while True:
        window.read_on()
        lines = _split_lines(window.array, window.start, window.stop)
        if not len(lines.starts):
            if window.at_end:
                return
            window.drop(window.stop)
            continue
        words = words_of(window.array, lines.query_starts, lines.query_ends)
        firsts = np.flatnonzero(changes(words)) + 1
        n_own, is_last = len(firsts), window.at_end
        if part.end is not None:
            end = window.position_of(part.end)
            n_own = int(lines.starts[firsts - 1].searchsorted(end))
            is_last |= n_own < len(firsts) or (
                not is_begun and not n_own and lines.starts[-1] >= end
            )
        own = np.concatenate(([0], firsts[:n_own])) if is_begun else firsts[:n_own]
        behind = int(firsts[n_own]) if n_own < len(firsts) else len(lines.starts)
        if not is_last:
            # More of the last query may follow; before the first one there is nothing to keep.
            is_begun = len(own) > 0
            behind = int(own[-1]) if is_begun else behind - 1
            own = own[:-1]
        if len(own):
            yield _rows(window.array, lines, words, own, behind)
        if is_last:
            return
        window.drop(int(lines.starts[behind]))


def _rows(array: Bytes, lines: _Lines, words: Words, firsts: Positions, behind: int) -> Rows:
    chosen = slice(int(firsts[0]), behind)
    return Rows(
        array,
        texts_of(words[firsts]),
        firsts - firsts[0],
        lines.id_starts[chosen],
        lines.id_ends[chosen],
        parse_decimals(array, lines.score_starts[chosen], lines.score_ends[chosen]),
    )
