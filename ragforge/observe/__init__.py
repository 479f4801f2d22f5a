"""What a run tells while it works: one frozen event per unit of work and per model call.

`log` and `otel` hold observers that pass the events on; nothing is sent anywhere unless
the user names one of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Args:
        name: `stage.start` and `stage.end` frame a stage, `unit` is one finished unit of work,
            `tick` says every few seconds that the stage is still at it, however long a unit takes,
            `call` one call to a model that ended (bought, from the store, or failed), `retry` an
            attempt to be repeated, `flow` a change of what is sent at once, `note` a sentence for
            the user.
        stage: Which stage, such as "judge"; "" outside of any.
        outcome: How the unit or call ended.
        message: The sentence of a note, the reason of a failure, retry or change of flow.
        numbers: As they apply: total, done, failed, count (things in a unit), prompt_tokens,
            completion_tokens, latency_s (of the reply, as it was when bought), wait_s, cost_usd,
            attempts, in_flight, temperature, max_output_tokens, seed.
        labels: As they apply to a call or retry: model (asked for), reply_model (that answered),
            endpoint (its address), schema (name of the reply's form), finish_reason, reply_id,
            wrapping (what stood around the JSON: fence, thinking), kind (of a failed attempt or
            call: rate, transient, refused, invalid, …).
        content: The turns of a call and its reply as (role, text), for observers that were told
            to look at texts.
    """

    name: Literal["stage.start", "stage.end", "unit", "tick", "call", "retry", "flow", "note"]
    stage: str = ""
    outcome: Literal["", "done", "failed", "cached"] = ""
    message: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    content: tuple[tuple[str, str], ...] = ()


class Observer(Protocol):
    """Receives events. Called in the event loop's thread: must not block and must not raise."""

    def __call__(self, event: Event) -> None:
        """Take one event."""


def silent(event: Event) -> None:
    """Take no notice."""


def both(first: Observer, second: Observer) -> Observer:
    """Return an observer that tells two."""

    def tell(event: Event) -> None:
        first(event)
        second(event)

    return tell
