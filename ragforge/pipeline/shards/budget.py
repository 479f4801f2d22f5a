"""One budget for all workers of a plan: each takes a little at a time out of a common file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from ragforge.config import BudgetSettings
from ragforge.deferred import dataclass
from ragforge.errors import BudgetError, DataError
from ragforge.files.atomic import alone_in, write_whole
from ragforge.llm.budget import BudgetAccount, Need
from ragforge.pipeline.job import Job

LIMITS = ("max_calls", "max_tokens", "max_cost_usd")
_SHARE = 64
"""A worker takes this part of what is left: less and less, so that the end is shared, too."""


@dataclass(slots=True)
class SharedBudget:
    """What this worker may spend of the budget of a plan; see `SharedLimits`.

    What a worker took and did not use it gives back when it ends. What a killed one had taken
    counts as spent: it may have been.

    Args:
        path: The common file.
        limits: Of all workers and runs together.
    """

    path: Path
    limits: BudgetSettings
    taken: dict[str, float] = field(default_factory=dict)

    def granted(self, need: Need) -> BudgetSettings:
        """Return limits for this worker that hold what it needs, as far as there is any left.

        Raises:
            BudgetError: Not even what is in flight could make room.
            DataError: The common file cannot be read or written.
        """
        lacking = self._lacking(need.beside)
        if lacking:
            self._take(lacking, need)
        return self.limits.model_copy(update={name: self._limit(name) for name in LIMITS})

    def give_back(self, account: BudgetAccount) -> None:
        """Give back what was taken and not used; called when no call is in flight any more."""
        used = dict(zip(LIMITS, account.used, strict=True))
        with alone_in(self.path.parent):
            total = read_taken(self.path)
            for name, amount in self.taken.items():
                total[name] -= max(0.0, amount - used[name])
            if self.taken:
                _write(self.path, total)

    def _limit(self, name: str) -> float | int | None:
        if getattr(self.limits, name) is None:
            return None
        taken = self.taken.get(name, 0.0)
        return taken if name == "max_cost_usd" else int(taken)

    def _lacking(self, wanted: tuple[float, float, float]) -> dict[str, float]:
        """Return what is to be taken of each amount that is limited, to hold what is wanted."""
        lacks = {
            name: amount - self.taken.get(name, 0.0)
            for name, amount in zip(LIMITS, wanted, strict=True)
            if getattr(self.limits, name) is not None
        }
        return {name: lack for name, lack in lacks.items() if lack > 0}

    def _take(self, lacking: dict[str, float], need: Need) -> None:
        alone = self._lacking(need.alone)
        with alone_in(self.path.parent):
            total = read_taken(self.path)
            for name, lack in lacking.items():
                limit = getattr(self.limits, name)
                room = limit - total.get(name, 0.0)
                if alone.get(name, 0.0) > room:
                    flag = f"--{name.replace('_', '-')} {limit:g}"
                    raise BudgetError(f"{flag} is reached by all workers of the shards together")
                share = room / _SHARE if name == "max_cost_usd" else room // _SHARE
                # Where there is no room beside calls in flight, they are waited for.
                part = max(lack, share) if lack <= room else alone.get(name, 0.0)
                total[name] = total.get(name, 0.0) + part
                self.taken[name] = self.taken.get(name, 0.0) + part
            _write(self.path, total)


@contextmanager
def drawing_on(path: Path, job: Job) -> Iterator[None]:
    """Let a job draw on the budget of all workers; what it did not use is given back at the end.

    Args:
        path: The common file.
        job: Has the limits, and the account that they are drawn into.
    """
    limits = job.settings.budget
    if all(getattr(limits, name) is None for name in LIMITS):
        yield
        return
    shared = SharedBudget(path, limits)
    job.account.shared_limits = shared
    try:
        yield
    finally:
        job.account.shared_limits = None
        shared.give_back(job.account)


def book(path: Path, bought: Mapping[str, float]) -> None:
    """Count what was bought before there was a limit as taken.

    Args:
        path: The common file.
        bought: By the name of the limit.

    Raises:
        DataError: The file cannot be read or written.
    """
    with alone_in(path.parent):
        total = read_taken(path)
        total |= {name: max(amount, total.get(name, 0.0)) for name, amount in bought.items()}
        _write(path, total)


def _write(path: Path, total: Mapping[str, float]) -> None:
    write_whole(path, [json.dumps(total, indent=2), "\n"])


def used_up(path: Path, limits: BudgetSettings) -> str:
    """Return the flag of a limit of which nothing is left; "" for none.

    Raises:
        DataError: The common file cannot be read.
    """
    taken = read_taken(path)
    flags = (
        f"--{name.replace('_', '-')} {limit:g}"
        for name in LIMITS
        if (limit := getattr(limits, name)) is not None and taken.get(name, 0.0) >= limit
    )
    return next(flags, "")


def read_taken(path: Path) -> dict[str, float]:
    """Return what all workers took, by the name of the limit; nothing where none did.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        return {name: float(value) for name, value in json.loads(path.read_bytes()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: what was spent cannot be read: {error}") from error
