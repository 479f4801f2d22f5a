"""What stands around the hits in the lines of a JSON Lines run: the ids of the queries."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ragforge.errors import DataError
from ragforge.files.fields import Row, load_json, make_row, query_name
from ragforge.files.names import LATENCY_MS, LATENCY_S, RANKING, SCORES, goes_by
from ragforge.files.scan.irregular import Irregular

_LIST: Final = re.compile(rb'":\s*\[')
_MOST_LISTS: Final = 2
_PLAIN: Final = re.compile(
    rb'(?P<before>\{"\w+": ?")(?P<query_id>[^"]+)(?P<lists>"(, ?"\w+": ?\[\]){1,2})'
    rb'(, ?"latency_s": ?(?P<latency_s>(0|[1-9][0-9]{0,8})\.[0-9]{1,20}))?\}'
)


@dataclass(frozen=True, slots=True)
class Span:
    """The inside of a list: from behind the opening bracket to the closing one."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A line: a query and where its hits are."""

    query_id: str
    latency_s: float | None
    lists: list[Span]
    """One list of objects, or a list of ids and one of scores."""


def read_frame(buffer: bytearray, start: int, end: int) -> Frame:
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
    return Frame(query_id, latency_s, lists[::-1] if rest.is_reversed else lists)


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


def _find_lists(buffer: bytearray, start: int, end: int) -> list[Span]:
    """Return the list of objects, else the lists that come first in the line, at most two."""
    spans: list[Span] = []
    for _ in range(_MOST_LISTS):
        opening = _LIST.search(buffer, start, end)
        if opening is None:
            break
        inside = opening.end()
        is_objects = buffer[inside : inside + 1] == b"{"
        closing = buffer.rfind(b"]", inside, end) if is_objects else buffer.find(b"]", inside, end)
        if closing < 0:
            raise Irregular
        spans.append(Span(inside, closing))
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
