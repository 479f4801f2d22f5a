"""Noticing that an endpoint is down, and trying again gently until it is back."""

import math
from dataclasses import dataclass, field

OPENS_AFTER = 8
"""Attempts that fail one after the other, none succeeding, before an endpoint counts as down."""

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 5.0
_PAUSE_GROWS = 1.1


@dataclass(slots=True)
class Breaker:
    """Open while the endpoint is down: then one probe at a time, seconds apart.

    An endpoint that never answered is not down but wrong; it never opens for one.

    Args:
        opens_after: Attempts that must fail one after the other.
    """

    opens_after: int = OPENS_AFTER
    opened_at: float = field(default=math.nan, init=False)
    _failures: int = field(default=0, init=False)
    _answered: bool = field(default=False, init=False)
    _probe_at: float = field(default=math.inf, init=False)
    _pause_s: float = field(default=_FIRST_PAUSE_S, init=False)

    @property
    def is_open(self) -> bool:
        """Whether the endpoint counts as down."""
        return not math.isnan(self.opened_at)

    def wait_s(self, now: float) -> float:
        """Return the seconds until the next probe; infinite while one is under way."""
        return max(0.0, self._probe_at - now)

    def probe(self) -> None:
        """Note that a probe is on its way."""
        self._probe_at = math.inf

    def failed(self, now: float) -> bool:
        """Note an attempt that met no working endpoint; return whether this opens the breaker."""
        self._failures += 1
        if self.is_open:
            # Calls that were in flight when it opened fail later, and are no probes.
            if math.isinf(self._probe_at):
                self._pause_s = min(_LONGEST_PAUSE_S, self._pause_s * _PAUSE_GROWS)
                self._probe_at = now + self._pause_s
            return False
        if not self._answered or self._failures < self.opens_after:
            return False
        self.opened_at, self._pause_s = now, _FIRST_PAUSE_S
        self._probe_at = now + self._pause_s
        return True

    def answered(self) -> bool:
        """Note an answer of any kind; return whether this closes the breaker."""
        was_open = self.is_open
        self._answered, self._failures = True, 0
        self.opened_at, self._probe_at = math.nan, math.inf
        return was_open
