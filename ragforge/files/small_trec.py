"""Small TREC runs to the ranks of their judged chunks: a few tens of milliseconds, no numpy.

As the scanners for large files do, this gives exactly what the line readers would give, or nothing.
Text is split a block at a time, so that the memory of the last block is used again.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, compress, count
from math import isnan
from operator import ne
from pathlib import Path
from typing import Final, NamedTuple

from ragforge.files.lines import open_unpacked
from ragforge.measures.hits import HitsCollector, JudgedHits, RunHits
from ragforge.measures.locating import Judgments, falls, ranks_by_score

_BLOCK_BYTES: Final = 1 << 14
_BLANKS: Final = 5
_CHUNK: Final = 2
_SCORE: Final = 4
_ODD: Final = "\ufffd\t\r\v\f\0\x1c\x1d\x1e\x1f"
"""Characters that part columns too, that no text holds, and what stands for those beyond ASCII."""


class _Query(NamedTuple):
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
    found = HitsCollector(qrels)
    for query in _whole_queries(path, block_bytes):
        if query is None or found.has(query.query_id):
            return None
        judgments = qrels.get(query.query_id)
        hits = _hits(query, judgments or {})
        if hits is None:
            return None
        if judgments is None:
            found.add_other(query.query_id)
        else:
            found.add(query.query_id, query.chunk_ids, hits)
    return found.collected()


def _hits(query: _Query, judgments: Judgments) -> JudgedHits | None:
    ids = query.chunk_ids
    rank_of = dict(zip(ids, range(1, len(ids) + 1), strict=True))
    if len(rank_of) < len(ids) or isnan(sum(query.scores)):
        return None
    if not falls(query.scores):
        rank_of = ranks_by_score(
            query.query_id, judgments, dict(zip(ids, query.scores, strict=True))
        )
    found = sorted((rank_of[c], grade) for c, grade in judgments.items() if c in rank_of)
    return JudgedHits(len(ids), [rank for rank, _ in found], [grade for _, grade in found])


def _whole_queries(path: Path, block_bytes: int) -> Iterator[_Query | None]:
    """Yield the lines of each query, or None where a line is irregular."""
    pending: _Query | None = None
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


def _queries(block: bytes) -> Iterator[_Query | None]:
    """Cut lines at single blanks; yield None where they are not of six columns with a number."""
    text = block.decode("ascii", "replace")
    words = text.split(" ")
    # Five blanks a line: every fifth piece holds the tag of a line, its end, and the next query.
    seams = words[_BLANKS:-1:_BLANKS]
    n_ends = text.count("\n")
    scores = _numbers(words[_SCORE::_BLANKS])
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
        yield _Query(query_id, chunk_ids[start : at + 1], scores[start : at + 1])
        query_id, start = parts[1], at + 1
    yield _Query(query_id, chunk_ids[start:], scores[start:])


def _is_odd(text: str) -> bool:
    """Whether a line has an empty column, or a character takes a closer look."""
    blanks = "  " in text or " \n" in text or text.endswith(" ")
    return blanks or any(character in text for character in _ODD)


def _numbers(words: list[str]) -> list[float] | None:
    if "_" in "".join(words):  # Python reads 1_0 as 10.
        return None
    try:
        return list(map(float, words))
    except ValueError:
        return None
