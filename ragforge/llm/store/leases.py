"""Leases: who may buy a reply, and for how long."""

import functools
import operator
import os
import socket
import time
from dataclasses import field
from pathlib import Path

from ragforge.deferred import dataclass

LEASE_S = 60.0
"""Seconds a lease lasts unless it is renewed."""
RENEWED_EVERY_S = 10.0
"""Seconds between two renewals."""
COLUMNS = "owner, boot, until_boot, until_wall"
"""What `lease_holder` looks at."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One opened store in one process.

    Args:
        machine: Host, boot and process namespace: where a process id means something.
        boot_id: The boot alone: where the monotonic clock means something.
        pid: Process id.
        started: When the process began, in the kernel's count; a process id is used again.
        token: Tells the stores of one process apart.
    """

    machine: str
    boot_id: str
    pid: int
    started: str
    token: str

    def __str__(self) -> str:
        return "|".join((self.machine, self.boot_id, str(self.pid), self.started, self.token))

    @property
    def is_gone(self) -> bool:
        """Whether the process is known to have ended; False where nobody can tell from here."""
        if self.machine != _machine() or not self.started:
            return False
        return _started(self.pid) != self.started


def this_owner() -> Owner:
    """Return a new owner in this process."""
    pid = os.getpid()
    return Owner(_machine(), boot_id(), pid, _started(pid), os.urandom(8).hex())


def read_owner(text: str) -> Owner | None:
    """Return the owner that a lease names, None where the text is damaged."""
    parts = text.split("|")
    if len(parts) != 5 or not parts[2].isdecimal():
        return None
    return Owner(parts[0], parts[1], int(parts[2]), parts[3], parts[4])


@functools.cache
def boot_id() -> str:
    """Return the id of this boot of this machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{socket.gethostname()}-unknown"


@functools.cache
def _machine() -> str:
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = "unknown"
    return f"{socket.gethostname()}/{namespace}".replace("|", "-")


def _started(pid: int) -> str:
    """Return when a process began, "" where it is gone or the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name, in brackets, may hold blanks; a zombie has ended, too.
    state, *rest = stat.rpartition(")")[2].split()
    return "" if state == "Z" else rest[18]


def lease_ends() -> tuple[float, float]:
    """Return when a lease taken now ends, by the monotonic clock and by the wall clock."""
    return time.monotonic() + LEASE_S, time.time() + LEASE_S


def lease_holder(
    owner: object, booted: object, until_boot: object, until_wall: object
) -> Owner | None:
    """Return who holds a lease, None where nobody does any more.

    Of the same boot, the monotonic clock is the same, whatever is done to the wall clock; but
    where the system does not tell its boots apart, the lease may be of an earlier one, and then
    ends later than any can.

    Args:
        owner: As a lease names it. In any column damage may have put anything.
        booted: The boot that it was taken in.
        until_boot: When it ends, by the monotonic clock of that boot.
        until_wall: The same by the wall clock.
    """
    known = read_owner(str(owner))
    here = booted == boot_id()
    until = until_boot if here else until_wall
    if known is None or known.is_gone or not isinstance(until, int | float):
        return None
    now = time.monotonic() if here else time.time()
    impossible = here and until > now + LEASE_S
    return None if now > until or impossible else known


@dataclass(slots=True)
class Renewal:
    """When an owner renews its leases, and whether it ever came too late."""

    _ends: tuple[float, float] = field(default_factory=lease_ends, init=False)
    _was_late: bool = field(default=False, init=False)

    @property
    def is_late(self) -> bool:
        """Whether a lease may have been lost by now: either clock went on for too long."""
        now = time.monotonic(), time.time()
        self._was_late = self._was_late or any(map(operator.gt, now, self._ends))
        return self._was_late

    def note(self) -> None:
        """Note that all leases are renewed now."""
        if not self.is_late:
            self._ends = lease_ends()
