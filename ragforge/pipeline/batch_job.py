"""A job whose calls go through a provider's batch API, or through files for an offline server.

The job is run dry, and what it would ask becomes a batch; when replies are there it is run dry
again, and what follows from them becomes the next one. When nothing is left to ask, it is run in
earnest over the call store. So each start of the same command goes on where the last one stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ragforge.config import ModelSettings
from ragforge.deferred import dataclass
from ragforge.errors import BudgetError, DataError
from ragforge.llm.batches.records import LARGEST, OPEN, BatchFolder, BatchSize
from ragforge.observe import Event, silent
from ragforge.pipeline.job import Job

if TYPE_CHECKING:
    from ragforge.llm.batches.session import BatchSession

R = TypeVar("R")
POLL_EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Advance(Generic[R]):
    """How far a job is.

    Args:
        result: What it came to; None while there is anything to wait for.
        open_batches: With the provider's word of each.
        noted: Requests that are to be sent, and were not.
    """

    result: R | None = None
    open_batches: tuple[str, ...] = ()
    noted: int = 0


@dataclass(frozen=True, slots=True)
class BatchJob(Generic[R]):
    """A job in batches.

    Args:
        job: In earnest.
        models: Who is asked, with their settings.
        store_path: The call store.
        run: Does the job, dry or in earnest.
        size: Of a batch at most.
        in_stages: Whether what one stage writes changes what is asked when the job is done again,
            as facts do.
    """

    job: Job
    models: tuple[ModelSettings, ...]
    store_path: Path
    run: Callable[[Job], Awaitable[R]]
    size: BatchSize = LARGEST
    in_stages: bool = False

    async def live(self) -> R:
        """Return what the job comes to without batches.

        Batches that are under way are told of: what they bring is not waited for.
        """
        under_way = 0
        with suppress(DataError):  # Live calls need no batches.
            records = BatchFolder.beside(self.store_path).records()
            under_way = sum(record.calls for record in records if record.state in OPEN)
        if under_way and not self.job.mode.offline_replay:
            message = (
                f"{under_way:,} requests are under way in batches; asked live, they are paid "
                "again. --batch-api brings them in, --batch-api cancel ends them"
            )
            self.job.observer(Event("note", message=message))
        return await self.run(self.job)

    async def advance(self, *, submits: bool = True, ends: bool = True) -> Advance[R]:
        """Bring in what is there, send what follows, and end the job where nothing does.

        Args:
            submits: Whether anything is sent.
            ends: Whether the job is ended.

        Raises:
            EndpointError, BudgetError, DataError: What was bought is kept.
            ConfigError: Something may be sent, and a limit in dollars holds for a model whose
                price is not known.
        """
        async with self._session() as session:
            if submits:
                session.require_prices()
            await session.fetch()
            found = await self._open(session)
            if found:
                return Advance(open_batches=found)
            session.begin()
            await self._pass(session)
            session.check_given_up()
            if submits and await self._sent(session, ends=ends):
                found = await self._open(session)
                return Advance(open_batches=found)
            if session.noted or not ends:
                return Advance(noted=session.noted)
            account = session.spent_account()
        return Advance(await self.run(replace(self.job, account=account)))

    async def _sent(self, session: BatchSession, *, ends: bool) -> int:
        """Return how many batches were sent; where limits have no room left, the job may end."""
        try:
            return await session.submit()
        except BudgetError:
            if not ends:
                raise
            return 0  # The job writes what was bought, and tells of the limit as it does live.

    async def wait(self, every_s: float = POLL_EVERY_S) -> R:
        """Return what the job came to, however long that takes.

        Raises:
            EndpointError, BudgetError, ConfigError, DataError: As for `advance`.
        """
        while True:
            now = await self.advance()
            if now.result is not None:
                return now.result
            self.job.observer(Event("tick"))
            await asyncio.sleep(every_s)

    async def look(self) -> tuple[str, ...]:
        """Return the open batches with the provider's word of each; nothing is brought in."""
        async with self._session() as session:
            return await self._open(session)

    async def cancel(self) -> int:
        """End all open batches, and return how many; what is done of them can be brought in."""
        async with self._session() as session:
            return await session.cancel()

    async def write_requests(self, path: Path) -> int:
        """Write what the job would ask into a file for an offline server; nobody is asked.

        Returns:
            How many requests follow from what is in the call store.

        Raises:
            ConfigError, DataError: As for `advance`.
        """
        async with self._session(probes=False) as session:
            session.require_prices()
            session.begin()
            await self._pass(session)
            return session.write_requests(path)

    async def read_replies(self, path: Path) -> int:
        """Bring the replies in that an offline server wrote, and return how many."""
        async with self._session(share=1.0, probes=False) as session:
            session.read(path)
            await self._pass(session)
            return session.stored

    async def _pass(self, session: BatchSession) -> None:
        dry = replace(self.job.mode, dry_run=True)
        await self.run(replace(self.job, mode=dry, observer=silent, collector=session))

    async def _open(self, session: BatchSession) -> tuple[str, ...]:
        return tuple(
            f"{record.remote_id or record.name}: {status}, {record.calls:,} requests"
            for record, status in await session.look()
        )

    @asynccontextmanager
    async def _session(
        self, *, share: float | None = None, probes: bool = True
    ) -> AsyncIterator[BatchSession]:
        from ragforge.llm.batches.session import open_session

        costs = {} if share is None else {"share": share}
        settings, observer = self.job.settings, self.job.observer
        async with open_session(
            settings,
            self.models,
            self.store_path,
            observer,
            size=self.size,
            probes=probes,
            **costs,
        ) as session:
            yield session
