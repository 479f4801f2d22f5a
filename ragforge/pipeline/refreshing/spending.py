"""What a refresh bought, counted from the events of its calls."""

from ragforge.observe import Event, Observer
from ragforge.report.refresh.summary import Spent


class Counting:
    """An observer that passes events on, and counts calls that were bought.

    A refresh opens its models several times; a note about one is passed on once.

    Args:
        observer: Told of everything.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._calls = self._tokens = self._unpriced = 0
        self._cost_usd = 0.0
        self._notes = set[str]()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.name == "note" and event.message in self._notes:
            return
        self._notes.update([event.message] if event.name == "note" else [])
        self._observer(event)
        if event.name != "call" or event.outcome != "done":
            return
        numbers = event.numbers
        self._calls += 1
        self._tokens += int(numbers.get("prompt_tokens", 0) + numbers.get("completion_tokens", 0))
        self._cost_usd += numbers.get("cost_usd", 0.0)
        self._unpriced += "cost_usd" not in numbers

    @property
    def spent(self) -> Spent:
        """What was bought so far."""
        return Spent(self._calls, self._tokens, None if self._unpriced else self._cost_usd)
