"""Bringing the requests of a job into batches, and their replies into the call store.

A job is run dry with the session as its collector: replies that have come are stored and gone on
with, so that the same pass meets what follows from them, such as a turn that repairs one.
"""

import asyncio
import json
import math
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from ragforge.config import ModelSettings, Settings
from ragforge.config.sections import is_offline
from ragforge.deferred import dataclass
from ragforge.errors import BudgetError, CallError, DataError, EndpointError, UsageError
from ragforge.files.atomic import alone_in, make_folder, write_whole_bytes
from ragforge.llm.batches.records import (
    LARGEST,
    OPEN,
    BatchFolder,
    BatchRecord,
    BatchSize,
    read_line,
    read_lines,
)
from ragforge.llm.batches.remote import Provider, RemoteBatch
from ragforge.llm.budget import BudgetAccount
from ragforge.llm.chat import ChatReply, ChatRequest, Usage, estimate_tokens
from ragforge.llm.connect import EndpointModel, connect, endpoint_model
from ragforge.llm.retries import AttemptError
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.models import CountingModel
from ragforge.llm.wire import Dialect
from ragforge.observe import Event, Observer

if TYPE_CHECKING:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint

DISCOUNT: Final = 0.5
"""What a reply of a batch costs, as a share of the price of a live one."""
_MOST_TRIES: Final = 2
"""Batches that may leave a request unanswered before it is asked live."""
Took: TypeAlias = tuple[float, float, float]
"""Calls, tokens and dollars."""
_NOTHING: Final[Took] = (0, 0, 0.0)
_FEW: Final = 20
_LIVE_SHARE: Final = 0.01
"""So many requests, or so many of all, may be asked live in the end; more are no accident."""


@dataclass(slots=True)
class _Wave:
    """Requests of one model on their way into a file."""

    record: BatchRecord
    stream: IO[bytes]
    n_bytes: int = 0
    most: Took = _NOTHING


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a reply lies: the line of a file, by its offset."""

    path: Path
    offset: int


@dataclass(slots=True)
class BatchSession:
    """The batches of one call store, for a job that asks some models.

    Args:
        settings: With the budget; it holds over all batches of the store.
        models: Who is asked, with their settings.
        store: The call store.
        observer: Told of what happens.
        size: Of a batch at most.
        share: What a reply costs, as a share of the price of a live one.
        probes: Whether a request may be asked live, to learn how the endpoint wants to be asked.
    """

    settings: Settings
    models: dict[EndpointModel, ModelSettings]
    store: CallStore
    observer: Observer
    size: BatchSize = LARGEST
    share: float = DISCOUNT
    probes: bool = True
    stored: int = 0
    """Replies that came into the store."""
    noted: int = 0
    """Requests that are to go out."""
    beyond: int = 0
    """Requests that the budget has no room for."""
    given_up: int = 0
    """Requests that batches left unanswered, and that are to be asked live."""
    _replies: dict[str, _Place] = field(default_factory=dict)
    _tries: Counter[str] = field(default_factory=Counter)
    _waves: dict[EndpointModel, list[_Wave]] = field(default_factory=dict)
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _used: Took = _NOTHING
    _spent: dict[str, Took] = field(default_factory=dict)
    _endpoints: dict[tuple[EndpointModel, Dialect | None], "OpenAIEndpoint"] = field(
        default_factory=dict
    )

    @property
    def folder(self) -> BatchFolder:
        """Where batches are noted."""
        return BatchFolder(self.store.path.parent / "batches")

    def records(self) -> list[BatchRecord]:
        """Return the batches of these models."""
        return [
            record
            for record in self.folder.records()
            if EndpointModel(record.endpoint, record.model) in self.models
        ]

    def is_open(self) -> bool:
        """Whether there are batches still to be heard of."""
        return any(record.state in OPEN for record in self.records())

    async def close(self) -> None:
        """Close connections and files; requests that were not sent are noted again next time."""
        for waves in self._waves.values():
            for wave in waves:
                wave.stream.close()
        for endpoint in self._endpoints.values():
            await endpoint.close()

    async def look(self) -> list[tuple[BatchRecord, str]]:
        """Return all open batches with the provider's word of how far they are."""
        found = []
        for record in self.records():
            if record.state in OPEN:
                record, remote = await self._known(record)
                found.append((record, remote.status if remote else "to be sent"))
        return found

    async def fetch(self) -> None:
        """Send what was to be sent, and bring in what is over.

        Raises:
            EndpointError: The provider cannot be asked, or did not work on a batch.
        """
        for record in self.records():
            if record.state not in OPEN:
                continue
            record, remote = await self._known(record)
            if remote is None:
                await self._send(record)
            elif remote.is_over:
                await self._download(record, remote)

    async def cancel(self) -> int:
        """End all open batches, and return how many."""
        count = 0
        for record in self.records():
            if record.state in OPEN:
                record, remote = await self._known(record)
                if remote is None:
                    self.folder.write(record.model_copy(update={"state": "failed"}))
                elif not remote.is_over:
                    await self._provider(record).cancel(remote.batch_id)
                count += 1
        return count

    async def _known(self, record: BatchRecord) -> tuple[BatchRecord, RemoteBatch | None]:
        """Return a batch as the provider tells it; one that was perhaps made is looked for."""
        provider = self._provider(record)
        if record.remote_id:
            return record, await provider.look(record.remote_id)
        remote = await provider.find(record.name)
        if remote is None:
            return record, None
        return self._adopted(record, remote), remote

    def _adopted(self, record: BatchRecord, remote: RemoteBatch) -> BatchRecord:
        changes = {"state": "sent", "remote_id": remote.batch_id}
        return self.folder.write(record.model_copy(update=changes))

    async def _send(self, record: BatchRecord) -> None:
        provider, path = self._provider(record), self.folder.requests_path(record.name)
        try:
            remote = await provider.submit(record.name, path)
        except AttemptError as error:
            # Whether it was made is found out before anything is sent again.
            found = await provider.find(record.name)
            if found is None:
                raise EndpointError(f"batch API: {error}; the same command goes on") from error
            remote = found
        self._adopted(record, remote)
        self._note(f"batch {remote.batch_id}: {record.calls:,} requests sent")

    async def _download(self, record: BatchRecord, remote: RemoteBatch) -> None:
        provider = self._provider(record)
        parts = [await provider.content(file_id) for file_id in remote.files]
        if not parts and remote.status == "failed":
            changes = {"state": "failed", "message": remote.message, "calls": 0, "tokens": 0}
            self.folder.write(record.model_copy(update={**changes, "cost_usd": 0.0}))
            raise EndpointError(
                f"batch {remote.batch_id} was not worked on: {remote.message or remote.status}; "
                "the same command sends it again"
            )
        write_whole_bytes(self.folder.replies_path(record.name), (part + b"\n" for part in parts))
        changes = {"state": "downloaded", "was_cut": remote.was_cut}
        self.folder.write(record.model_copy(update=changes))
        self._note(f"batch {remote.batch_id}: {remote.status}")

    def begin(self) -> None:
        """Make ready for a pass of the job: know what has come, and what was asked in vain."""
        self.folder.remove_strays()
        for record in self.records():
            self._tries.update(() if record.was_cut else record.missing)
            path = self.folder.replies_path(record.name)
            if path.exists():
                self.read(path)
            # What came of it is counted as it is stored.
            used = (0, 0, 0.0) if record.state == "downloaded" else record.used
            self._used = _sum(self._used, used)
        for record in self.records():
            if record.state == "downloaded" and not record.was_cut:
                self._tries.update(self._unanswered(record.name))

    def _unanswered(self, name: str) -> Iterator[str]:
        """Yield the keys of a batch that have no reply."""
        for key in self.folder.keys(name):
            if key not in self._replies and self.store.get(key) is None:
                yield key

    def read(self, path: Path) -> None:
        """Know the replies in a file.

        Raises:
            DataError: It cannot be read.
        """
        for offset, line in read_lines(path):
            if _body(line) is not None:
                self._replies.setdefault(str(line["custom_id"]), _Place(path, offset))

    async def take(self, model: CountingModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Store the reply to a request and return it; where there is none, note the request.

        Raises:
            EndpointError, BudgetError: As for `fetch`.
        """
        who = EndpointModel(model.endpoint, model.model)
        place = self._replies.pop(key, None)
        body = _body(read_line(place.path, place.offset)) if place else None
        if place is not None and body is not None:
            reply = self._endpoint(who).read(body, request)
            if reply is not None:
                return self._keep(model, key, reply, place)
        if self._tries[key] >= _MOST_TRIES:
            self.given_up += 1
        elif self.probes and self.store.dialect(who.known_as) is None:
            return await self._ask_live(model, request)
        else:
            self._add(who, model, key, request)
        return None

    def _keep(self, model: CountingModel, key: str, reply: ChatReply, place: _Place) -> ChatReply:
        cost = model.price.cost_usd(reply.usage) * self.share if model.price else None
        self.store.put(key, model.endpoint, model.model, reply, cost)
        self.stored += 1
        took = (1, reply.usage.prompt_tokens + reply.usage.completion_tokens, cost or 0.0)
        name = self.folder.name_of(place.path)
        self._spent[name] = _sum(self._spent.get(name, _NOTHING), took)
        self._used = _sum(self._used, took)
        return replace(reply, key=key, cached=True)

    async def _ask_live(self, model: CountingModel, request: ChatRequest) -> ChatReply | None:
        """Ask one request live, by which the endpoint shows how it wants to be asked for JSON."""
        async with self._probing:
            return await self._probe(model, request)

    async def _probe(self, model: CountingModel, request: ChatRequest) -> ChatReply | None:
        who = EndpointModel(model.endpoint, model.model)
        if self.store.dialect(who.known_as) is not None:
            return await self.take(model, model.key(request), request)
        settings = self.settings.model_copy(update={"model": model.settings})
        account = BudgetAccount.after(self._used)
        async with connect(settings, self.store.path, self.observer, account) as connection:
            try:
                return await connection.model.ask(request)
            except CallError:
                return None  # Another request shows it, or the job meets the same failure.
            finally:
                calls, tokens, cost_usd = account.used
                before, self._used = self._used, account.used
                self.folder.write(
                    BatchRecord(
                        name=self.folder.next_name(f"live-{os.urandom(4).hex()}"),
                        endpoint=model.endpoint,
                        model=model.model,
                        state="collected",
                        calls=int(calls - before[0]),
                        tokens=int(tokens - before[1]),
                        cost_usd=cost_usd - before[2],
                    )
                )

    def _add(
        self, who: EndpointModel, model: CountingModel, key: str, request: ChatRequest
    ) -> None:
        tokens = Usage(estimate_tokens(request), request.max_output_tokens)
        cost = model.price.cost_usd(tokens) * self.share if model.price else 0.0
        most = (1, tokens.prompt_tokens + tokens.completion_tokens, cost)
        if not self._fits(most):
            self.beyond += 1
            return
        line = _request_line(key, self._endpoint(who).body(request))
        wave = self._wave(who, len(line))
        wave.stream.write(line)
        wave.n_bytes += len(line)
        wave.most = _sum(wave.most, most)
        self._used = _sum(self._used, most)
        self.noted += 1

    def _fits(self, most: Took) -> bool:
        budget = self.settings.budget
        limits = (budget.max_calls, budget.max_tokens, budget.max_cost_usd)
        return all(
            used + amount <= (math.inf if limit is None else limit)
            for used, amount, limit in zip(self._used, most, limits, strict=True)
        )

    def _wave(self, who: EndpointModel, n_bytes: int) -> _Wave:
        waves = self._waves.setdefault(who, [])
        last = waves[-1] if waves else None
        if (
            last is None
            or last.most[0] >= self.size.requests
            or last.n_bytes + n_bytes > self.size.bytes
        ):
            name = f"{self.folder.next_name(os.urandom(8).hex())}-{len(waves)}"
            try:
                stream = self.folder.requests_path(name).open("wb")
            except OSError as error:
                raise DataError(f"{self.folder.path}: {error.strerror or error}") from error
            record = BatchRecord(name=name, endpoint=who.endpoint, model=who.name)
            waves.append(_Wave(record, stream))
        return waves[-1]

    def settle(self) -> None:
        """Note what came of the batches that were brought in; called when the pass is over.

        Raises:
            EndpointError: Too much was left unanswered to be an accident.
        """
        for record in self.records():
            if record.state != "downloaded":
                continue
            keys = self.folder.keys(record.name)
            missing = tuple(key for key in keys if self.store.get(key) is None)
            calls, tokens, cost_usd = self._spent.get(record.name, _NOTHING)
            took = {"calls": int(calls), "tokens": int(tokens), "cost_usd": cost_usd}
            changes = {"state": "collected", "missing": missing, **took}
            self.folder.write(record.model_copy(update=changes))
            self.folder.requests_path(record.name).unlink(missing_ok=True)
            replies = self.folder.replies_path(record.name)
            # Replies that this job has not asked for another may.
            if not any(place.path == replies for place in self._replies.values()):
                replies.unlink(missing_ok=True)
        if self.given_up > max(_FEW, _LIVE_SHARE * self.stored):
            raise EndpointError(
                f"{self.given_up:,} requests were left unanswered by {_MOST_TRIES} batches; "
                "without --batch-api they are asked live, at the full price"
            )

    async def submit(self) -> int:
        """Send what was noted, and return how many batches it makes.

        Raises:
            BudgetError: There is no room for a single request.
            EndpointError: The provider takes no more.
        """
        if not self.noted:
            if self.beyond:
                raise BudgetError(
                    f"the limits have no room for the most that any of {self.beyond:,} open "
                    "requests can take"
                )
            return 0
        waves = [wave for each in self._waves.values() for wave in each]
        records = []
        for wave in waves:
            wave.stream.close()
            calls, tokens, cost_usd = wave.most
            took = {"calls": int(calls), "tokens": int(tokens), "cost_usd": cost_usd}
            records.append(self.folder.write(wave.record.model_copy(update=took)))
        for record in records:
            await self._send(record)
        return len(records)

    def write_requests(self, path: Path) -> int:
        """Write what was noted into one file instead, and return how many requests it holds.

        Raises:
            DataError: It cannot be written.
        """
        waves = [wave for each in self._waves.values() for wave in each]
        for wave in waves:
            wave.stream.close()
        files = [self.folder.requests_path(wave.record.name) for wave in waves]
        write_whole_bytes(path, (line for file in files for line in _lines(file)))
        for file in files:
            file.unlink()
        return self.noted

    def spent_account(self) -> BudgetAccount:
        """Return an account in which everything counts that batches took."""
        used = _NOTHING
        for record in self.records():
            used = _sum(used, record.used)
        return BudgetAccount.after(used)

    def _provider(self, record: BatchRecord) -> Provider:
        return Provider(self._endpoint(EndpointModel(record.endpoint, record.model)))

    def _endpoint(self, who: EndpointModel) -> "OpenAIEndpoint":
        from ragforge.llm.openai_endpoint import OpenAIEndpoint

        """Return the client of a model, as far as it is known how it wants to be asked."""
        dialect = self.store.dialect(who.known_as)
        if (who, dialect) not in self._endpoints:
            self._endpoints[who, dialect] = OpenAIEndpoint(self.models[who], dialect=dialect)
        return self._endpoints[who, dialect]

    def _note(self, message: str) -> None:
        self.observer(Event("note", message=message))


@asynccontextmanager
async def open_session(
    settings: Settings,
    models: Iterable[ModelSettings],
    store_path: Path,
    observer: Observer,
    *,
    size: BatchSize = LARGEST,
    share: float = DISCOUNT,
    probes: bool = True,
) -> AsyncIterator[BatchSession]:
    """Open the batches beside a call store; nobody else works on them meanwhile.

    Args:
        settings: With the budget.
        models: Who may be asked.
        store_path: The call store.
        observer: Told of what happens.
        size: Of a batch at most.
        share: What a reply costs, see `BatchSession`.
        probes: Whether a request may be asked live, likewise.

    Raises:
        UsageError: A model is served from a file, or none is asked.
        DataError: The store cannot be opened.
    """
    named = {}
    for model in models:
        if is_offline(model.name) or model.name.startswith("local:"):
            raise UsageError(f"--model {model.name}: has no batch API; name one at an endpoint")
        named[await endpoint_model(model)] = model
    with closing(CallStore(store_path)) as store:
        session = BatchSession(
            settings, named, store, observer, size=size, share=share, probes=probes
        )
        make_folder(session.folder.path)
        with alone_in(session.folder.path):
            try:
                yield session
            finally:
                await session.close()


def _sum(one: Took, other: Took) -> Took:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _request_line(key: str, body: bytes) -> bytes:
    head = json.dumps({"custom_id": key, "method": "POST", "url": "/v1/chat/completions"})
    return b'%s,"body":%s}\n' % (head[:-1].encode(), body)


def _body(line: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the chat completion in a line of replies; None where it is an error."""
    response = line.get("response")
    if not isinstance(response, dict) or response.get("status_code") != 200:
        return None
    body = response.get("body")
    return body if isinstance(body, dict) else None


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        yield from stream
