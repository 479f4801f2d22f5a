"""What is known of batches: one small file each, written before anything is sent.

`NAME.json` is the record; `NAME.requests.jsonl` what is or was to be sent, and
`NAME.replies.jsonl` what came back, until all of it is in the call store.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.record_files import read_object, write_object
from ragforge.records.record import Record

State = Literal["intended", "sent", "downloaded", "collected", "failed"]
OPEN: Final = ("intended", "sent")
"""States of batches that are still to be heard of."""
OVER: Final = ("collected", "failed")
"""States of batches of which nothing is kept but the record."""

_FEW: Final = 20
_LIVE_SHARE: Final = 0.01
"""So many requests, or so many of all, are an accident."""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """The most that a provider takes in one batch; OpenAI's limits are a little higher."""

    requests: int = 50_000
    bytes: int = 190_000_000


LARGEST: Final = BatchSize()


class BatchRecord(Record):
    """One batch of one model at one endpoint.

    Args:
        name: Its own, which the provider keeps as metadata.
        state: intended before anything is sent; sent; downloaded; collected once its replies are in
            the store; failed where the provider did not work on it.
        remote_id: The provider's; "" until it is known.
        message: Why it failed.
        calls, tokens, cost_usd: What it can take at most, then what it took.
        answered: Requests that it gave a reply to, as the provider says.
        missing: Keys of requests that no reply can be read to.
        was_cut: Whether it was cancelled, or its time was over: what it left is no refusal.
    """

    name: str
    endpoint: str
    model: str
    state: State = "intended"
    remote_id: str = ""
    message: str = ""
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    answered: int | None = None
    missing: tuple[str, ...] = ()
    was_cut: bool = False

    @property
    def used(self) -> tuple[float, float, float]:
        """Calls, tokens and dollars."""
        return self.calls, self.tokens, self.cost_usd


class BatchFolder:
    """The batches beside a call store.

    Args:
        path: `batches/` in the store's folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def beside(cls, store_path: Path) -> "BatchFolder":
        """Return the folder of the batches of a call store; it need not be there."""
        return cls(store_path.parent / "batches")

    def requests_path(self, name: str) -> Path:
        """Return the requests of a batch."""
        return self.path / f"{name}.requests.jsonl"

    def replies_path(self, name: str) -> Path:
        """Return what came back of a batch."""
        return self.path / f"{name}.replies.jsonl"

    def records(self) -> list[BatchRecord]:
        """Return all batches, the first one first.

        Raises:
            DataError: A record does not hold to its format.
        """
        return [read_object(path, BatchRecord) for path in sorted(self.path.glob("*.json"))]

    def write(self, record: BatchRecord) -> BatchRecord:
        """Write a record, and return it."""
        write_object(self.path / f"{record.name}.json", record)
        return record

    def next_name(self, salt: str) -> str:
        """Return the name of a new batch: its number, and what tells it from those elsewhere."""
        return f"{len(list(self.path.glob('*.json'))):05d}-{salt}"

    def keys(self, name: str) -> Iterator[str]:
        """Yield the call keys of the requests of a batch."""
        for _, line in read_lines(self.requests_path(name)):
            yield str(line["custom_id"])

    def end(self, record: BatchRecord) -> None:
        """Write the record of a batch that is over, and remove its files."""
        self.write(record)
        self.requests_path(record.name).unlink(missing_ok=True)
        self.replies_path(record.name).unlink(missing_ok=True)

    def remove_strays(self) -> None:
        """Remove what processes that were killed left: unsent requests, files of what is over."""
        kept = {record.name for record in self.records() if record.state not in OVER}
        for path in self.path.glob("*.*.jsonl"):
            if path.name.partition(".")[0] not in kept:
                path.unlink()


def is_much(n_left: int, n_all: int) -> bool:
    """Whether more requests were left unanswered elsewhere than may be asked live in the end."""
    return n_left > max(_FEW, _LIVE_SHARE * n_all)


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the objects with an id in a file that may be torn, with their offsets.

    Raises:
        DataError: It cannot be read.
    """
    try:
        with path.open("rb") as stream:
            offset = 0
            for text in stream:
                line = _object(text)
                if line is not None:
                    yield offset, line
                offset += len(text)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_line(path: Path, offset: int) -> dict[str, object]:
    """Return the object that `read_lines` found at an offset.

    Raises:
        DataError: It cannot be read any more.
    """
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            line = _object(stream.readline())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if line is None:
        raise DataError(f"{path}: was changed while it was read")
    return line


def _object(text: bytes) -> dict[str, object] | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("custom_id"), str) else None
