"""The columns of the lines of a TREC run, found all at once."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ragforge.files.scan.arrays import Bytes, Positions
from ragforge.files.scan.irregular import Irregular

_COLUMNS: Final = 6
_GLUED_COLUMNS: Final = 11
"""Two rows without a line end between them, which the line reader refuses."""
_BLANK, _TAB, _NEWLINE, _COMMENT = b" \t\n#"
_BLANKS: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a window that hold a hit, as positions in its buffer."""

    starts: Positions
    query_starts: Positions
    query_ends: Positions
    id_starts: Positions
    id_ends: Positions
    score_starts: Positions
    score_ends: Positions


def split_lines(array: Bytes, start: int, stop: int) -> Lines:
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
        return Lines(*[np.empty(0, np.int64)] * 7)
    lines = _split_plain(array, start, stop)
    return _split_any(array, start, stop) if lines is None else lines


def _split_plain(array: Bytes, start: int, stop: int) -> Lines | None:
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
    return Lines(starts, starts, columns[0], columns[1] + 1, columns[2], columns[3] + 1, columns[4])


def _split_any(array: Bytes, start: int, stop: int) -> Lines:
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
    return Lines(
        line_starts + start,
        starts[firsts],
        ends[firsts],
        starts[firsts + 2],
        ends[firsts + 2],
        starts[firsts + 4],
        ends[firsts + 4],
    )
