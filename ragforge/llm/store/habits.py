"""What a model's replies are like, from those it gave before."""

from dataclasses import dataclass

from ragforge.llm.store.calls import CallStore

_LATEST = 200


@dataclass(frozen=True, slots=True)
class Habits:
    """What a model's replies are like on average."""

    completion_tokens: float
    latency_s: float


def habits(store: CallStore, endpoint: str, model: str) -> Habits | None:
    """Return what the latest replies of a model were like, None where there are none."""
    with store.speaking() as connection:
        tokens, latency_s = connection.execute(
            "SELECT AVG(completion_tokens), AVG(json_extract(reply, '$.latency_s')) FROM ("
            "SELECT completion_tokens, reply FROM calls WHERE endpoint = ? AND model = ? "
            "AND completion_tokens > 0 AND json_valid(reply) ORDER BY bought_at DESC LIMIT ?)",
            (endpoint, model, _LATEST),
        ).fetchone()
    return None if tokens is None else Habits(tokens, latency_s or 0.0)
