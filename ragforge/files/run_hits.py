"""Run files of which only the ranks of the judged chunks are kept."""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ragforge.errors import UsageError
from ragforge.files.headers import has_header
from ragforge.files.lines import is_packed, open_source
from ragforge.files.small_trec import locate_trec_run
from ragforge.measures.hits import HitsCollector, RunHits
from ragforge.measures.locating import Judgments, judged_hits

LARGE_BYTES: Final = 8 << 20
"""From here on a file is scanned: below, the import of numpy takes longer than reading it."""
_PACKED_TO: Final = 4
"""How many times smaller packed files are, at least."""
_THREADS: Final = 2
"""Threads by default: more of them wait for each other more than they read."""


def read_located(
    path: Path, qrels: Mapping[str, Mapping[str, int | None]], n_threads: int | None = None
) -> RunHits | None:
    """Find the judged chunks in a run file, without keeping the others.

    Args:
        path: The file.
        qrels: Query id to chunk id to grade.
        n_threads: How many read it; by default two, or one where there is only one processor.

    Returns:
        The hits; None where the file is no regular file or its shape not the usual one, so that
        `read_run` has to read it.

    Raises:
        UsageError: `n_threads` is below 1.
        DataError: The file cannot be read or unpacked.
    """
    if n_threads is not None and n_threads < 1:
        raise UsageError(f"n_threads: expected a whole number of at least 1, got {n_threads!r}")
    try:
        found = path.stat()
    except OSError:
        return None  # Whoever reads it next says why.
    if not stat.S_ISREG(found.st_mode):
        return None
    source = open_source(path)
    is_trec = source.kind == "columns" and not has_header(source)
    if found.st_size < (LARGE_BYTES // _PACKED_TO if is_packed(path) else LARGE_BYTES):
        return locate_trec_run(path, qrels) if is_trec else None
    from ragforge.files.runs import Scattered
    from ragforge.files.scan import Irregular, scan_json_lines_run, scan_trec_run

    try:
        if is_trec:
            return scan_trec_run(path, qrels, n_threads=n_threads or _processors())
        if source.kind == "jsonl":
            run = scan_json_lines_run(path, qrels, n_threads=n_threads or _processors())
            return run.hits._replace(latencies_s=tuple(run.latencies_s.values()))
    except Irregular:
        with suppress(Scattered):
            return _one_by_one(path, qrels)
    return None


def _one_by_one(path: Path, qrels: Mapping[str, Judgments]) -> RunHits:
    """Read a large file by the line, and keep one query at a time.

    Raises:
        Scattered: The hits of a query do not stand together.
    """
    from ragforge.files.runs import Scattered, each_ranking

    found = HitsCollector(qrels)
    latencies_s: list[float] = []
    for query_id, ranking, latency_s in each_ranking(path):
        if found.has(query_id):
            raise Scattered
        if latency_s is not None:
            latencies_s.append(latency_s)
        judgments = qrels.get(query_id)
        if judgments is None:
            found.add_other(query_id)
        else:
            found.add(query_id, ranking, judged_hits(query_id, judgments, ranking))
    return found.collected(latencies_s)


def _processors() -> int:
    return min(_THREADS, os.cpu_count() or 1)
