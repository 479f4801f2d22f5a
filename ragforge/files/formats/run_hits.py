"""Run files of which only the ranks of the judged chunks are kept."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain, compress, count
from math import isnan
from operator import ne
from pathlib import Path
from typing import Final, NamedTuple

from ragforge.errors import UsageError
from ragforge.files.formats.trec import refuse_distances
from ragforge.files.source_files import Source, has_header, is_packed, open_source, open_unpacked
from ragforge.measures.hit_table import HitsCollector, JudgedHits, RunHits
from ragforge.measures.locating import Judgments, falls, judged_hits, ranks_by_score

_BLOCK_BYTES: Final = 1 << 14
_BLANKS: Final = 5
_CHUNK: Final = 2
_SCORE: Final = 4
_ODD: Final = "\ufffd\t\r\v\f\0\x1c\x1d\x1e\x1f"
"""Characters that part columns too, that no text holds, and what stands for those beyond ASCII."""

LARGE_BYTES: Final = 8 << 20
"""From here on a file is scanned: below, the import of numpy takes longer than reading it."""
_PACKED_TO: Final = 4
"""How many times smaller packed files are, at least."""
_THREADS: Final = 2
"""Threads by default: more of them wait for each other more than they read."""


class _QueryLines(NamedTuple):
    """Lines of one query."""

    query_id: str
    chunk_ids: list[str]
    scores: list[float]


def locate_trec_run(
    path: Path, qrels: Mapping[str, Judgments], block_bytes: int = _BLOCK_BYTES
) -> RunHits | None:
    """Find the judged chunks of a TREC run.

    Args:
        path: A file that can be read twice.
        qrels: Query id to chunk id to grade.
        block_bytes: How much is split at a time.

    Returns:
        The hits; None where a line is not six columns of ASCII between single blanks, the lines of
        a query do not stand together, or something else has to be looked at line by line.
    """
    collector = HitsCollector(qrels)
    for query in _whole_queries(path, block_bytes):
        if query is None or collector.has(query.query_id):
            return None
        judgments = qrels.get(query.query_id)
        hits = _hits(query, judgments or {})
        if hits is None:
            return None
        if judgments is None:
            collector.add_other(query.query_id)
        else:
            collector.add(query.query_id, query.chunk_ids, hits)
    return collector.collected()


def _hits(query: _QueryLines, judgments: Judgments) -> JudgedHits | None:
    ids = query.chunk_ids
    rank_of = dict(zip(ids, range(1, len(ids) + 1), strict=True))
    if len(rank_of) < len(ids) or isnan(sum(query.scores)):
        return None
    if not falls(query.scores):
        rank_of = ranks_by_score(
            query.query_id, judgments, dict(zip(ids, query.scores, strict=True))
        )
    found = [(rank_of[c], grade) for c, grade in judgments.items() if c in rank_of]
    found.sort()  # No two have one rank, so a grade that is None is not compared.
    return JudgedHits(len(ids), [rank for rank, _ in found], [grade for _, grade in found])


def _whole_queries(path: Path, block_bytes: int) -> Iterator[_QueryLines | None]:
    """Yield the lines of each query, or None where a line is irregular."""
    pending: _QueryLines | None = None
    for block in _blocks(path, block_bytes):
        for query in _queries(block):
            if query is None or not query.query_id or query.query_id.startswith("#"):
                yield None
            elif pending is not None and pending.query_id == query.query_id:
                pending.chunk_ids.extend(query.chunk_ids)
                pending.scores.extend(query.scores)
            else:
                if pending is not None:
                    yield pending
                pending = query
    if pending is not None:
        yield pending


def _blocks(path: Path, block_bytes: int) -> Iterator[bytes]:
    """Yield whole lines, without the end of the last."""
    rest = b""
    with open_unpacked(path) as stream:
        while read := stream.read(block_bytes):
            rest += read
            cut = rest.rfind(b"\n")
            if cut >= 0:
                yield rest[:cut]
            rest = rest[cut + 1 :]
    if rest:
        yield rest


def _queries(block: bytes) -> Iterator[_QueryLines | None]:
    """Cut lines at single blanks; yield None where they are not of six columns with a number."""
    text = block.decode("ascii", "replace")
    words = text.split(" ")
    # Five blanks a line: every fifth piece holds the tag of a line, its end, and the next query.
    seams = words[_BLANKS:-1:_BLANKS]
    n_ends = text.count("\n")
    scores = _numbers(words[_SCORE::_BLANKS], text)
    regular = len(words) == _BLANKS * (n_ends + 1) + 1 and len(seams) == n_ends
    if not regular or scores is None or _is_odd(text):
        yield None
        return
    chunk_ids = words[_CHUNK::_BLANKS]
    query_id, start = words[0], 0
    # Seams are alike within a query, so one in a thousand is looked at.
    for at in chain(range(min(1, n_ends)), compress(count(1), map(ne, seams, seams[1:]))):
        parts = seams[at].split("\n")
        if len(parts) != 2:  # The tag, and the next query.
            yield None
            return
        yield _QueryLines(query_id, chunk_ids[start : at + 1], scores[start : at + 1])
        query_id, start = parts[1], at + 1
    yield _QueryLines(query_id, chunk_ids[start:], scores[start:])


def _is_odd(text: str) -> bool:
    """Whether a line has an empty column, or a character takes a closer look."""
    blanks = "  " in text or " \n" in text or text.endswith(" ")
    return blanks or any(character in text for character in _ODD)


def _numbers(words: list[str], text: str) -> list[float] | None:
    if "_" in text and "_" in "".join(words):  # Python reads 1_0 as 10.
        return None
    try:
        return list(map(float, words))
    except ValueError:
        return None


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
        DataError: The file cannot be read or unpacked, or is refused by `refuse_distances`.
    """
    if n_threads is not None and n_threads < 1:
        raise UsageError(f"n_threads: expected a whole number of at least 1, got {n_threads!r}")
    try:
        status = path.stat()
    except OSError:
        return None  # Whoever reads it next says why.
    if not stat.S_ISREG(status.st_mode):
        return None
    source = open_source(path)
    is_trec = _is_trec_run(source)
    if status.st_size < (LARGE_BYTES // _PACKED_TO if is_packed(path) else LARGE_BYTES):
        return locate_trec_run(path, qrels) if is_trec else None
    from ragforge.files.formats.runs import Scattered
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


def _is_trec_run(source: Source) -> bool:
    """Whether a run is a TREC file; raises as `refuse_distances`."""
    is_trec = source.kind == "columns" and not has_header(source)
    if is_trec:
        refuse_distances(source.path, source.groups)
    return is_trec


def _one_by_one(path: Path, qrels: Mapping[str, Judgments]) -> RunHits:
    """Read a large file by the line, and keep one query at a time.

    Raises:
        Scattered: The hits of a query do not stand together.
    """
    from ragforge.files.formats.runs import Scattered, each_ranking

    collector = HitsCollector(qrels)
    latencies_s: list[float] = []
    for query_id, ranking, latency_s in each_ranking(path):
        if collector.has(query_id):
            raise Scattered
        if latency_s is not None:
            latencies_s.append(latency_s)
        judgments = qrels.get(query_id)
        if judgments is None:
            collector.add_other(query_id)
        else:
            collector.add(query_id, ranking, judged_hits(query_id, judgments, ranking))
    return collector.collected(latencies_s)


def _processors() -> int:
    return min(_THREADS, os.cpu_count() or 1)
