"""From facts and claims to a score and a verdict: arithmetic, never asked of a model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ragforge.records import Claim, Fact, FactStatus, Verdict

_WEIGHTS: Final = {"vital": 1.0, "okay": 0.5}
_LENIENT: Final[Mapping[FactStatus, float]] = {"supported": 1.0, "partial": 0.5}
_STRICT: Final[Mapping[FactStatus, float]] = {"supported": 1.0}


@dataclass(frozen=True, slots=True)
class Said:
    """A fact, and what an answer says of it."""

    fact: Fact
    status: FactStatus


def score_of(said: Sequence[Said]) -> float | None:
    """Return the weighted share of facts that are said, those said in part by half, in [0, 1].

    A fact that may be left out weighs half of a vital one. None where there are no facts: nothing
    was checked, so nothing was right.
    """
    return _share(said, _LENIENT)


def strict_score_of(said: Sequence[Said]) -> float | None:
    """Return what `score_of` returns if facts that are said in part count as missing."""
    return _share(said, _STRICT)


def verdict_of(said: Sequence[Said], *, says_more: bool) -> Verdict | None:
    """Return the verdict, None where there are no facts.

    Only vital facts decide; where a person marked none as vital, all do. But an answer that
    contradicts any fact is at most partly right.

    Args:
        said: All facts of the query.
        says_more: Whether the answer also states something beyond the facts.
    """
    vital = [item.status for item in said if item.fact.importance == "vital"]
    statuses = vital or [item.status for item in said]
    if not statuses:
        return None
    if "contradicted" in statuses:
        return "incorrect"
    if set(statuses) == {"supported"}:
        return "partial" if any(item.status == "contradicted" for item in said) else "correct"
    if not {"supported", "partial"}.isdisjoint(statuses):
        return "partial"
    silent = not says_more and all(item.status == "missing" for item in said)
    return "not_attempted" if silent else "incorrect"


def explain(said: Sequence[Said], claims: Iterable[Claim]) -> str:
    """Return in words what a score and a verdict come from."""
    counts = []
    for importance in _WEIGHTS:
        statuses = [item.status for item in said if item.fact.importance == importance]
        if statuses:
            counts.append(f"{statuses.count('supported')} of {len(statuses)} {importance} facts")
    unsupported = [claim.text for claim in claims if not claim.is_supported]
    details = chain(
        (_named(status, said) for status in ("contradicted", "missing", "partial")),
        (_listed("not in the chunks", unsupported),),
    )
    return "; ".join([f"says {' and '.join(counts)}", *filter(None, details)])


def _share(said: Sequence[Said], values: Mapping[FactStatus, float]) -> float | None:
    total = sum(_WEIGHTS[item.fact.importance] for item in said)
    if not total:
        return None
    return (
        sum(_WEIGHTS[item.fact.importance] * values.get(item.status, 0.0) for item in said) / total
    )


def _named(status: str, said: Iterable[Said]) -> str:
    word = "said in part" if status == "partial" else status
    return _listed(word, [item.fact.text for item in said if item.status == status])


def _listed(word: str, texts: Sequence[str]) -> str:
    return f"{word}: {', '.join(map(repr, texts))}" if texts else ""
