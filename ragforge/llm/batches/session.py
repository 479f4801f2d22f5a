"""Bringing the requests of a job into batches, and their replies into the call store.

A job is run dry with the session as its collector: replies that have come are stored and gone on
with, so that the same pass meets what follows from them, such as a turn that repairs one.
"""

import asyncio
import math
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from ragforge.config import ModelSettings, Settings
from ragforge.config.sections import is_offline
from ragforge.deferred import dataclass
from ragforge.errors import BudgetError, CallError, DataError, EndpointError, UsageError
from ragforge.files.atomic import alone_in, make_folder, write_whole_bytes
from ragforge.llm.batches.collecting import (
    NOTHING,
    Buyer,
    Took,
    collect,
    reply_body,
    request_line,
    total,
)
from ragforge.llm.batches.records import (
    LARGEST,
    OPEN,
    OVER,
    BatchFolder,
    BatchRecord,
    BatchSize,
    is_much,
    read_line,
    read_lines,
)
from ragforge.llm.batches.remote import Provider, RemoteBatch, UnknownBatchError
from ragforge.llm.budget import BudgetAccount, Price, find_price, require_price
from ragforge.llm.chat import ChatReply, ChatRequest, Usage, estimate_tokens
from ragforge.llm.connect import connect
from ragforge.llm.endpoints import EndpointModel, endpoint_model
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


@dataclass(slots=True)
class _Wave:
    """Requests of one model on their way into a file."""

    record: BatchRecord
    stream: IO[bytes]
    n_bytes: int = 0
    most: Took = NOTHING


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
    """Replies of an offline server that came into the store."""
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
    _used: Took = NOTHING
    _under_way: set[str] = field(default_factory=set)
    _prices: dict[EndpointModel, Price | None] = field(default_factory=dict)
    _endpoints: dict[tuple[EndpointModel, Dialect | None], "OpenAIEndpoint"] = field(
        default_factory=dict
    )

    @property
    def folder(self) -> BatchFolder:
        """Where batches are noted."""
        return BatchFolder.beside(self.store.path)

    def records(self) -> list[BatchRecord]:
        """Return the batches of these models."""
        return [
            record
            for record in self.folder.records()
            if EndpointModel(record.endpoint, record.model) in self.models
        ]

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
        """Bring in what is over, all of it, then send what was to be sent.

        Raises:
            EndpointError: A batch was not worked on, or the provider cannot be asked about it; the
                replies of all others are in the store.
        """
        self.folder.remove_strays()
        troubles, unsent = [], []
        for record in self.records():
            if record.state in OVER:
                continue
            try:
                if not await self._bring_in(record):
                    unsent.append(record)
            except EndpointError as error:
                troubles.append(str(error))
        if troubles:
            more = f" (and {len(troubles) - 1:,} more)" if len(troubles) > 1 else ""
            raise EndpointError(f"{troubles[0]}{more}")
        for record in unsent:
            await self._send(record)

    async def _bring_in(self, record: BatchRecord) -> bool:
        """Store what came of a batch that is over; return False for one that was never sent."""
        if record.state != "downloaded":
            record, remote = await self._known(record)
            if remote is None:
                return False
            if not remote.is_over:
                return True
            record = await self._download(record, remote)
        self._collect(record)
        return True

    async def cancel(self) -> int:
        """End all open batches, and return how many.

        Raises:
            EndpointError: One could not be ended; all others are.
        """
        count, trouble = 0, None
        for record in self.records():
            if record.state in OPEN:
                try:
                    await self._cancel(record)
                except EndpointError as error:
                    trouble = error
                else:
                    count += 1
        if trouble is not None:
            raise trouble
        return count

    async def _cancel(self, record: BatchRecord) -> None:
        try:
            record, remote = await self._known(record)
        except UnknownBatchError:
            return self._give_up(record)
        if remote is None:
            self.folder.end(_unpaid(record, "cancelled"))
        elif not remote.is_over:
            await self._provider(record).cancel(remote.batch_id)

    def _give_up(self, record: BatchRecord) -> None:
        """End a batch of which nothing is heard any more; it may have been paid, all of it."""
        for key in self.folder.keys(record.name):
            self.store.note_unanswered(key, "the provider knows its batch no more")
        changes = {"state": "collected", "message": "given up", "was_cut": True}
        self.folder.end(record.model_copy(update=changes))

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

    async def _download(self, record: BatchRecord, remote: RemoteBatch) -> BatchRecord:
        parts = await self._provider(record).content(remote)
        if not parts and remote.status == "failed":
            self.folder.end(_unpaid(record, remote.message))
            raise EndpointError(
                f"batch {remote.batch_id} was not worked on: {remote.message or remote.status}; "
                "the same command sends it again"
            )
        write_whole_bytes(self.folder.replies_path(record.name), (part + b"\n" for part in parts))
        changes = {
            "state": "downloaded",
            "was_cut": remote.was_cut,
            "answered": remote.answered,
        }
        self._note(f"batch {remote.batch_id}: {remote.status}")
        return self.folder.write(record.model_copy(update=changes))

    def _collect(self, record: BatchRecord) -> None:
        """Put what came of a batch into the store, and note what it took."""
        who = EndpointModel(record.endpoint, record.model)
        buyer = Buyer(self.store, self._endpoint(who), self._price(who), self.share)
        collected = collect(record, self.folder, buyer)
        self.folder.end(collected)

    def _price(self, who: EndpointModel) -> Price | None:
        if who not in self._prices:
            model, budget = self.models[who], self.settings.budget
            self._prices[who] = find_price(model.name, model.address, budget)
        return self._prices[who]

    def require_prices(self) -> None:
        """Refuse a limit in dollars where the price of a model is not known.

        Raises:
            ConfigError: There is one.
        """
        for who in self.models:
            require_price(self._price(who), self.settings.budget)

    def begin(self) -> None:
        """Make ready for a pass of the job: know what was spent, and what was asked in vain."""
        self.folder.remove_strays()
        for record in self.records():
            self._tries.update(() if record.was_cut else record.missing)
            self._used = total(self._used, record.used)
            if record.state in OPEN:
                self._under_way.update(self.folder.keys(record.name))

    def read(self, path: Path) -> None:
        """Know the replies in a file of an offline server.

        Raises:
            DataError: It cannot be read.
        """
        for offset, line in read_lines(path):
            if reply_body(line) is not None:
                self._replies.setdefault(str(line["custom_id"]), _Place(path, offset))

    def withholds(self, key: str) -> bool:
        """Whatever is stored counts."""
        return False

    async def take(self, model: CountingModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Store the reply to a request and return it; where there is none, note the request.

        Raises:
            EndpointError, BudgetError: As for `fetch`.
        """
        who = EndpointModel(model.endpoint, model.model)
        reply = self._read(who, key, request)
        if reply is not None:
            cost_usd = model.price.cost_usd(reply.usage) * self.share if model.price else None
            self.store.put(key, model.endpoint, model.model, reply, cost_usd)
            self.stored += 1
            return replace(reply, key=key, cached=True)
        if key in self._under_way:
            return None
        if self._tries[key] >= _MOST_TRIES:
            self.given_up += 1
        elif self.probes and self.store.dialect(who.known_as) is None:
            return await self._ask_live(model, request)
        else:
            self._add(who, model, key, request)
        return None

    def _read(self, who: EndpointModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Return the reply of an offline server; None where there is none that can be read."""
        place = self._replies.pop(key, None)
        body = reply_body(read_line(place.path, place.offset)) if place else None
        return None if body is None else self._endpoint(who).read(body, request)

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
        line = request_line(key, self._endpoint(who).body(request))
        wave = self._wave(who, len(line))
        wave.stream.write(line)
        wave.n_bytes += len(line)
        wave.most = total(wave.most, most)
        self._used = total(self._used, most)
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

    def check_given_up(self) -> None:
        """Refuse to ask live what batches left unanswered where that is much; after a pass.

        Raises:
            EndpointError: It is too much to be an accident.
        """
        answered = sum(record.calls for record in self.records() if record.state == "collected")
        if is_much(self.given_up, answered):
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
            _close_whole(wave.stream)
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
        used = NOTHING
        for record in self.records():
            used = total(used, record.used)
        return BudgetAccount.after(used)

    def _provider(self, record: BatchRecord) -> Provider:
        return Provider(self._endpoint(EndpointModel(record.endpoint, record.model)))

    def _endpoint(self, who: EndpointModel) -> "OpenAIEndpoint":
        """Return the client of a model, as far as it is known how it wants to be asked."""
        from ragforge.llm.openai_endpoint import OpenAIEndpoint

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


def _unpaid(record: BatchRecord, message: str) -> BatchRecord:
    """Return the record of a batch that took nothing."""
    changes = {"state": "failed", "message": message, "calls": 0, "tokens": 0, "cost_usd": 0.0}
    return record.model_copy(update=changes)


def _close_whole(stream: IO[bytes]) -> None:
    """Close a file once the disk has it."""
    stream.flush()
    os.fsync(stream.fileno())
    stream.close()


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        yield from stream
