"""Leases: who may buy a reply, and for how long."""

import time

from ragforge.llm.store.owner import Owner, boot, read_owner

LEASE_S = 60.0
"""Seconds a lease lasts unless it is renewed."""

RENEWED_EVERY_S = 10.0
"""Seconds between two renewals."""

COLUMNS = "owner, boot, until_boot, until_wall"
"""What `holder` looks at."""


def ends() -> tuple[float, float]:
    """Return when a lease taken now ends, by the monotonic clock and by the wall clock."""
    return time.monotonic() + LEASE_S, time.time() + LEASE_S


def holder(owner: object, booted: object, until_boot: object, until_wall: object) -> Owner | None:
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
    found = read_owner(str(owner))
    here = booted == boot()
    until = until_boot if here else until_wall
    if found is None or found.is_gone or not isinstance(until, int | float):
        return None
    now = time.monotonic() if here else time.time()
    impossible = here and until > now + LEASE_S
    return None if now > until or impossible else found
