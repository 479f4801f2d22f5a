"""TREC runs to hits: the columns of a whole window of lines are read at once."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ragforge.files.scan.arrays import Bytes, Positions, Words
from ragforge.files.scan.collecting import Qrels, merged
from ragforge.files.scan.decimals import parse_decimals
from ragforge.files.scan.parts import Part, Sizes, scan_parts
from ragforge.files.scan.rows import Rows
from ragforge.files.scan.tokens import changes, texts_of, words_of
from ragforge.files.scan.trec_lines import Lines, split_lines
from ragforge.files.scan.window import Window
from ragforge.measures.hits import RunHits


def scan_trec_run(
    path: Path, qrels: Qrels, *, n_threads: int, sizes: Sizes | None = None
) -> RunHits:
    """Find the judged chunks of a TREC run, as `ragforge.files.trec` would read it.

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
        lines = split_lines(window.array, window.start, window.stop)
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


def _rows(array: Bytes, lines: Lines, words: Words, firsts: Positions, behind: int) -> Rows:
    chosen = slice(int(firsts[0]), behind)
    return Rows(
        array,
        texts_of(words[firsts]),
        firsts - firsts[0],
        lines.id_starts[chosen],
        lines.id_ends[chosen],
        parse_decimals(array, lines.score_starts[chosen], lines.score_ends[chosen]),
    )
