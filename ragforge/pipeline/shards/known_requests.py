"""What a command would ask, held against the requests that shards were planned for."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import field

from ragforge.deferred import dataclass
from ragforge.llm.chat import ChatReply, ChatRequest
from ragforge.llm.store.models import CountingModel

_DIGITS = 16


class CallKeys:
    """Keys of calls, in eight bytes each.

    Two keys share these by a chance of 1 in 2^64.

    Args:
        keys: In hexadecimal digits; any order.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._sorted = array("Q", map(_short, keys))
        if any(one > other for one, other in zip(self._sorted, self._sorted[1:], strict=False)):
            self._sorted = array("Q", sorted(self._sorted))

    def __contains__(self, key: str) -> bool:
        short = _short(key)
        place = bisect_left(self._sorted, short)
        return place < len(self._sorted) and self._sorted[place] == short


def _short(key: str) -> int:
    return int(key[:_DIGITS], 16)


@dataclass(slots=True)
class ComparedRequests:
    """Holds what a job would ask now against what is known; a `Collector`.

    Replies to known requests count as missing, as they were: what follows from them is not met.

    Args:
        planned: What the shards ask.
        following: What followed from their replies when these were taken over.
        n_planned: Of them, how many the job would ask.
        n_more: What it would ask that is not known.
    """

    planned: CallKeys
    following: CallKeys
    n_planned: int = 0
    n_more: int = 0

    def withholds(self, key: str) -> bool:
        """Whether a call is known."""
        return key in self.planned or key in self.following

    async def take(self, model: CountingModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Count a request; nobody is asked."""
        if key in self.planned:
            self.n_planned += 1
        elif key not in self.following:
            self.n_more += 1
        return None


@dataclass(slots=True)
class OpenRequests:
    """Takes the keys of what a job would ask; a `Collector`."""

    keys: list[str] = field(default_factory=list)

    def withholds(self, key: str) -> bool:
        """Nothing that is stored is asked."""
        return False

    async def take(self, model: CountingModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Note a key; nobody is asked."""
        self.keys.append(key)
        return None
