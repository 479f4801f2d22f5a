"""What a run tells while it works: one frozen event per unit of work and per model call."""

from dataclasses import dataclass, field
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Args:
        name: `stage.start` and `stage.end` frame a stage, `unit` is one finished unit of work,
            `tick` says every few seconds that the stage is still at it, however long a unit takes,
            `call` one reply (bought or from the store), `retry` an attempt to be repeated,
            `note` a sentence for the user.
        stage: Which stage, such as "judge"; "" outside of any.
        outcome: How the unit or call ended.
        message: The sentence of a note, the reason of a failure or retry.
        numbers: total, prompt_tokens, completion_tokens, latency_s, wait_s, cost_usd as they apply.
    """

    name: Literal["stage.start", "stage.end", "unit", "tick", "call", "retry", "note"]
    stage: str = ""
    outcome: Literal["", "done", "failed", "cached"] = ""
    message: str = ""
    numbers: dict[str, float] = field(default_factory=dict)


class Observer(Protocol):
    """Receives events. Called in the event loop's thread: must not block and must not raise."""

    def __call__(self, event: Event) -> None:
        """Take one event."""


def silent(event: Event) -> None:
    """Take no notice."""
