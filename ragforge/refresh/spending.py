"""What a refresh bought, and what all versions of a set cost."""

from ragforge.files.manifest import Spent
from ragforge.observe import Event, Observer


class BoughtCalls:
    """An observer that passes events on, and counts calls that were bought.

    A refresh opens its models several times; a note about one is passed on once.

    Args:
        observer: Told of everything.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._calls = self._prompt_tokens = self._completion_tokens = self._unpriced = 0
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
        self._prompt_tokens += int(numbers.get("prompt_tokens", 0))
        self._completion_tokens += int(numbers.get("completion_tokens", 0))
        self._cost_usd += numbers.get("cost_usd", 0.0)
        self._unpriced += "cost_usd" not in numbers

    @property
    def spent(self) -> Spent:
        """What was bought so far."""
        return Spent(
            calls=self._calls,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            cost_usd=None if self._unpriced else self._cost_usd,
        )


def spent_in_all(parent: Spent, known: Spent, bought: Spent) -> Spent:
    """Return what a version and those before it took.

    Args:
        parent: Up to the version before.
        known: What the call store knows of; all, unless it was lost.
        bought: In this run.
    """
    if known.calls >= parent.calls:
        return known
    costs = (parent.cost_usd, bought.cost_usd)
    return Spent(
        calls=parent.calls + bought.calls,
        prompt_tokens=parent.prompt_tokens + bought.prompt_tokens,
        completion_tokens=parent.completion_tokens + bought.completion_tokens,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )
