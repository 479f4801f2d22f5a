"""A token bucket over a clock that the caller brings."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Bucket:
    """Fills evenly up to a capacity; what is taken may be settled later.

    Times are seconds of one monotonic clock: a step of the wall clock changes nothing, and a
    process that was suspended finds one full bucket, not the sum of what it missed.

    Args:
        per_s: What flows in each second.
        capacity: What it holds at most.
        now: The time at which it is full.
    """

    per_s: float
    capacity: float
    now: float
    level: float = field(init=False)
    """What may be taken at the last look; negative where a settled amount was larger."""

    def __post_init__(self) -> None:
        self.level = self.capacity

    def wait_s(self, amount: float, now: float) -> float:
        """Return the seconds until an amount may be taken; a larger one than fits waits for all."""
        self._fill(now)
        lacking = min(amount, self.capacity) - self.level
        return max(0.0, lacking / self.per_s)

    def take(self, amount: float, now: float) -> None:
        """Take an amount, or give one back where it is negative."""
        self._fill(now)
        self.level = min(self.capacity, self.level - amount)

    def at_most(self, level: float, now: float) -> None:
        """Lower the level to what the endpoint says is left."""
        self._fill(now)
        self.level = min(self.level, level)

    def change(self, per_s: float, capacity: float, now: float) -> None:
        """Go on with another rate; what is in it stays as far as it fits."""
        self._fill(now)
        self.per_s, self.capacity = per_s, capacity
        self.level = min(self.level, capacity)

    def _fill(self, now: float) -> None:
        self.level = min(self.capacity, self.level + (now - self.now) * self.per_s)
        self.now = now
