"""Events of a run while it works: one frozen record per unit of work, model call and evaluation.

`log` and `otel` hold observers that pass the events on; nothing is sent anywhere unless
the user names one of them.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from ragforge.deferred import dataclass

Name: TypeAlias = Literal[
    "stage.start",
    "stage.end",
    "unit",
    "tick",
    "call",
    "retry",
    "flow",
    "note",
    "evaluation.start",
    "evaluation.query",
    "evaluation.measure",
    "evaluation.end",
    "grade",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Args:
        name: `stage.start` and `stage.end` frame a stage, `unit` is one finished unit of work,
            `tick` says every few seconds that the stage is still at it, however long a unit takes,
            `call` one call to a model that ended (bought, from the store, or failed), `retry` an
            attempt to be repeated, `flow` a change of what is sent at once, `note` a sentence for
            the user. `evaluation.start` and `evaluation.end` frame a run that is measured,
            `evaluation.query` is one query of it, `evaluation.measure` the mean of a measure;
            `grade` is one judgment or grade of an answer.
        stage: Which stage, such as "judge"; "" outside of any.
        outcome: How the unit, call, query or grade ended.
        message: The sentence of a note, the reason of a failure, retry or change of flow.
        numbers: As they apply: total, done, failed, count (things in a unit), calls (of a unit that
            is a shard, with what they took), prompt_tokens, completion_tokens, latency_s (of the
            reply, as it was when bought), wait_s, cost_usd, attempts, in_flight, temperature,
            max_output_tokens, seed. Of an evaluation: total, done, failed, without_judgments,
            retrieved, holes, longest_s (latency of a query). Of a query: latency_s, retrieved,
            holes, rank (of the first relevant chunk). Of a measure: low and high (of its interval),
            least and most (what failures could make of it), done, failed. Of a grade: grade.
        labels: As they apply to a call or retry: model (asked for), reply_model (that answered),
            endpoint (its address), schema (name of the reply's form), finish_reason, reply_id,
            wrapping (what stood around the JSON: thinking, channel, fence), kind (of a failed
            attempt or call: rate, transient, refused, invalid, …; of a query: retrieval, judgment).
            Of all that belongs to an evaluation: dataset, version, run, evaluation_id; of a query
            also query_id, found (perfect, hit, without_hit, without_relevant) and, where it failed,
            measures (names of those it has no value of). Of a grade: name (of what is graded),
            query_id, chunk_id or system, label.
        content: The turns of a call and its reply as (role, text), the question of a query, the
            explanation of a grade; for observers that were told to look at texts.
        measures: Values of a query, or the mean of a measure, by canonical name.
    """

    name: Name
    stage: str = ""
    outcome: Literal["", "done", "failed", "cached"] = ""
    message: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    content: tuple[tuple[str, str], ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)


class Observer(Protocol):
    """Receives events. Called in the event loop's thread: must not block and must not raise."""

    def __call__(self, event: Event) -> None:
        """Take one event."""


def silent(event: Event) -> None:
    """Ignore an event."""


def both(first: Observer, second: Observer) -> Observer:
    """Return an observer that tells two."""

    def tell(event: Event) -> None:
        first(event)
        second(event)

    return tell
