"""What the attacks came to: rates and shifts over queries, with intervals and bounds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final

from ragforge.measures.rates import interval_of
from ragforge.measures.samples import mean, sample
from ragforge.records import AttackFindings, AuditExample, AuditRate, Expectation

RELEVANT_FROM: Final = 2
_LOWEST, _HIGHEST = 0, 3
_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Trial:
    """One attack on one pair.

    Args:
        query_id, chunk_id: The pair; the chunk is the one whose text was shown.
        before: The grade it is compared with.
        after: The grade of the attacked text; None where the judge failed.
    """

    query_id: str
    chunk_id: str
    before: int
    after: int | None


def is_swayed(expects: Expectation, before: int, after: int) -> bool:
    """Whether a grade went where that of a sound judge does not go."""
    if expects == "unchanged":
        return after != before
    if expects == "not raised":
        return after > before
    if expects == "lowered":
        return after >= before
    return after >= RELEVANT_FROM


def findings(name: str, expects: Expectation, trials: Sequence[Trial]) -> AttackFindings:
    """Return what an attack did to the grades of a judge.

    Args:
        name: Of the attack.
        expects: What a sound judge does.
        trials: In any order; each pair once.
    """
    by_query: dict[str, list[Trial]] = {}
    for trial in trials:
        by_query.setdefault(trial.query_id, []).append(trial)

    def share(of: Callable[[int, int], bool]) -> AuditRate:
        return _rate(by_query, lambda before, after: float(of(before, after)), 0, 1)

    return AttackFindings(
        attack=name,
        expects=expects,
        n_pairs=len(trials),
        n_queries=len(by_query),
        n_failed=sum(trial.after is None for trial in trials),
        swayed=share(lambda before, after: is_swayed(expects, before, after)),
        flipped=share(lambda before, after: after != before),
        raised=share(lambda before, after: after > before),
        crossed=share(_is_crossing),
        shift=_rate(
            by_query,
            lambda before, after: float(after - before),
            _LOWEST - _HIGHEST,
            _HIGHEST - _LOWEST,
        ),
        worst=_worst(expects, trials),
    )


def _is_crossing(before: int, after: int) -> bool:
    return (before >= RELEVANT_FROM) != (after >= RELEVANT_FROM)


def _rate(
    by_query: Mapping[str, Sequence[Trial]],
    value: Callable[[int, int], float],
    least: float,
    most: float,
) -> AuditRate:
    """Return the mean over queries of their pairs' mean values.

    Args:
        by_query: At least one trial in each.
        value: Of a plain and an attacked grade.
        least: The lowest value there can be.
        most: The highest; the interval of values that are all the same depends on both.
    """
    means, lows, highs = [], [], []
    for trials in by_query.values():
        known = [value(trial.before, trial.after) for trial in trials if trial.after is not None]
        open_ = [_outcomes(trial.before, value) for trial in trials if trial.after is None]
        lows.append(fsum([*known, *map(min, open_)]) / len(trials))
        highs.append(fsum([*known, *map(max, open_)]) / len(trials))
        if known:
            means.append(fsum(known) / len(known))
    if not lows:
        return AuditRate(mean=None, low=None, high=None, bound_low=None, bound_high=None)
    span = most - least
    interval = interval_of((sample(means) - least) / span)
    return AuditRate(
        mean=_rounded(mean(sample(means))) if means else None,
        low=_rounded(least + span * interval.low) if interval else None,
        high=_rounded(least + span * interval.high) if interval else None,
        bound_low=_rounded(fsum(lows) / len(lows)),
        bound_high=_rounded(fsum(highs) / len(highs)),
    )


def _rounded(value: float) -> float:
    """Return what does not differ between machines, whose Fourier transforms do; never -0."""
    return round(value, 6) + 0.0


def _outcomes(before: int, value: Callable[[int, int], float]) -> list[float]:
    return [value(before, after) for after in range(_LOWEST, _HIGHEST + 1)]


def _worst(expects: Expectation, trials: Iterable[Trial]) -> tuple[AuditExample, ...]:
    """Return the swayed pairs whose grade moved furthest; of cuts and swaps, moved up furthest."""
    swayed = [
        AuditExample(
            query_id=trial.query_id,
            chunk_id=trial.chunk_id,
            before=trial.before,
            after=trial.after,
        )
        for trial in trials
        if trial.after is not None and is_swayed(expects, trial.before, trial.after)
    ]
    swayed.sort(key=lambda one: (-_distance(expects, one), one.query_id, one.chunk_id))
    return tuple(swayed[:_EXAMPLES])


def _distance(expects: Expectation, one: AuditExample) -> int:
    if expects == "unchanged":
        return abs(one.after - one.before)
    return one.after if expects == "not relevant" else one.after - one.before
