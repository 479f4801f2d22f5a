"""Work that gave no result."""

from typing import Literal

from ragforge.records.record import FailureKind, NonEmpty, Record

Stage = Literal[
    "generate", "check", "retrieve", "judge", "ask", "facts", "answer", "ground", "audit", "recheck"
]


class Failure(Record):
    """A unit of work that gave no result. Never a value: the unit stays open."""

    what: Stage
    key: NonEmpty
    """The ids of the unit: `query_id`, `query_id/chunk_id`, `run/query_id` or `chunk_id`."""
    kind: FailureKind
    message: str
    raw: str = ""
    """The model's reply as it came."""
    call_keys: tuple[str, ...] = ()
    """Keys of the stored replies that were no use; forgotten when failed units are asked again."""
