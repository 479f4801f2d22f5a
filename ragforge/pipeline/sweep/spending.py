"""What calls of a part of a sweep cost."""

from ragforge.observe import Event, Observer


class Spending:
    """An observer that counts calls and money on the way to another one.

    Args:
        observer: Is told all.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.calls = 0
        self.cost_usd: float | None = 0.0

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.name == "call" and event.outcome == "done":
            self.calls += 1
            cost = event.numbers.get("cost_usd")
            known = cost is not None and self.cost_usd is not None
            self.cost_usd = (self.cost_usd or 0.0) + (cost or 0.0) if known else None
        self._observer(event)
