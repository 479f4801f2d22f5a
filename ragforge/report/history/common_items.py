"""The items that two evaluations have in common, measured on the same grades in both.

The grades of an item change when somebody judges what a new run retrieved. Its earlier value is one
on fewer grades, and no measure of what changed since; without it, just the queries on which the
runs differ would be gone. So the earlier ranking is scored again on the grades of today.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from ragforge.errors import UsageError
from ragforge.measures import evaluate, parse_measure
from ragforge.measures.names import Measure
from ragforge.records import Baseline, Evaluation, ItemValues

LEFT_OUT: Final = 0.1
"""Share of the items in common from which on too many cannot be measured again."""
_ON_ALL_GRADES: Final = frozenset({"Judged", "bpref", "infAP"})
"""Measures that a grade of 0 moves too."""


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What rankings are scored on today."""

    qrels: Mapping[str, Mapping[str, int | None]]
    rel_threshold: int
    corpus: str
    """Digest of the chunks; "" where there are none."""
    judgments: str
    """Digest of the grades."""
    chunk_ids: Callable[[], Container[str]]
    """Reads those of the corpus; asked only where the corpus changed."""
    moved: Callable[[], Mapping[str, Sequence[str]]] = dict
    """Reads the ids of now of chunks that went by other ones, likewise."""


class Reading(NamedTuple):
    """The value of an item on the grades of today."""

    value: float | None
    """None where it cannot be told."""
    low: float
    high: float
    """What it could have been, had no judgment failed; where there is no value, what it could be,
    whatever it is that is not known."""


@dataclass(frozen=True, slots=True)
class CommonItem:
    """One item by measure; those are in it that both evaluations have."""

    before: Mapping[str, Reading]
    now: Mapping[str, Reading]
    """Empty where the query failed."""
    is_rescored: bool = False
    """Whether its grades changed, so that its ranking was scored again."""


def common_items(
    before: Baseline, now: Baseline, yardstick: Yardstick | None = None
) -> dict[str, CommonItem]:
    """Return the items in common by query, those of `before` measured on the grades of `now`.

    Args:
        before: The earlier one.
        now: The later one. An item whose query it has no value of counts as in common where the
            query is still in the set.
        yardstick: The grades of today; without it, items whose grades changed have no value.
    """
    of_now = {item.query_id: item for item in now.items}
    both = [
        (item, of_now.get(item.query_id))
        for item in before.items
        if _is_same(item, of_now.get(item.query_id), yardstick)
    ]
    by_measure = [m for m in now.evaluation.measures if m in before.evaluation.measures]
    changed = {old.query_id for old, new in both if new is None or new.grades != old.grades}
    if before.evaluation.rel_threshold != now.evaluation.rel_threshold:
        changed = {old.query_id for old, _ in both}
    stale = _Stale(changed, before.evaluation.digests.judgments, now.evaluation.digests.judgments)
    olds = _readings([old for old, _ in both], before.evaluation, by_measure, stale, yardstick)
    is_of_today = yardstick is None or now.evaluation.digests.judgments == yardstick.judgments
    news = _readings(
        [new for _, new in both if new is not None],
        now.evaluation,
        by_measure,
        _Stale(set(), "", "") if is_of_today else stale,
        yardstick,
    )
    return {
        old.query_id: CommonItem(
            olds[old.query_id],
            news[old.query_id] if new is not None else _without_value(old, olds, yardstick),
            old.query_id in changed and new is not None,
        )
        for old, new in both
    }


@dataclass(frozen=True, slots=True)
class _Stale:
    """Which stored values are not those of today's grades."""

    query_ids: Container[str]
    """Of items whose relevant chunks changed."""
    before: str
    now: str
    """Digests of all grades."""

    def has(self, query_id: str, measure: str) -> bool:
        if query_id in self.query_ids:
            return True
        return self.before != self.now and _name_of(measure) in _ON_ALL_GRADES


def _is_same(old: ItemValues, new: ItemValues | None, yardstick: Yardstick | None) -> bool:
    if new is None:
        return yardstick is not None and old.query_id in yardstick.qrels
    return old.item == new.item


def _without_value(
    old: ItemValues, olds: Mapping[str, Mapping[str, Reading]], yardstick: Yardstick | None
) -> dict[str, Reading]:
    """Return what a query without judgments could come to: it has no value, but did not fail."""
    if yardstick is None or yardstick.qrels.get(old.query_id):
        return {}
    return {name: Reading(None, 0.0, of.high) for name, of in olds[old.query_id].items()}


def _readings(
    items: Sequence[ItemValues],
    evaluation: Evaluation,
    measures: Sequence[str],
    stale: _Stale,
    yardstick: Yardstick | None,
) -> dict[str, dict[str, Reading]]:
    """Return what items come to: what is stored where it stands, else scored again."""
    found = {item.query_id: dict(_stored(item, measures)) for item in items}
    again = [item for item in items if any(stale.has(item.query_id, name) for name in measures)]
    scored = _rescored(again, evaluation, measures, yardstick)
    for query_id, readings in scored.items():
        found[query_id].update(
            (name, of) for name, of in readings.items() if stale.has(query_id, name)
        )
    return found


def _stored(item: ItemValues, measures: Sequence[str]) -> Iterator[tuple[str, Reading]]:
    for name in measures:
        if name in item.values:
            value = item.values[name]
            yield name, Reading(value, value, value)


def _rescored(
    items: Sequence[ItemValues],
    evaluation: Evaluation,
    measures: Sequence[str],
    yardstick: Yardstick | None,
) -> dict[str, dict[str, Reading]]:
    """Return what the rankings of items come to on today's grades; nothing for ungraded ones."""
    if yardstick is None:
        nothing = {name: Reading(None, 0.0, inf) for name in measures}
        return {item.query_id: nothing for item in items}
    graded = [item for item in items if yardstick.qrels.get(item.query_id)]
    if not graded or not measures:
        return {}
    qrels = {item.query_id: yardstick.qrels[item.query_id] for item in graded}
    known = None
    if evaluation.digests.corpus != yardstick.corpus:
        known, moved = yardstick.chunk_ids(), yardstick.moved()
        graded = [_as_of_now(item, moved) for item in graded]
    run = {item.query_id: item.ranking for item in graded}
    threshold = yardstick.rel_threshold
    scores = evaluate(qrels, run, measures, rel_threshold=threshold)
    at_all = evaluate(qrels, {}, measures, rel_threshold=threshold, failed=[*qrels])
    found: dict[str, dict[str, Reading]] = {item.query_id: {} for item in graded}
    for name in measures:
        possible, any_ranking = scores.possible(name), at_all.possible(name)
        for item in graded:
            value = scores.per_query.get(item.query_id, {}).get(name)
            low, high = possible.get(item.query_id, (value, value))
            widest = Reading(None, *any_ranking[item.query_id])
            read = widest if low is None or high is None else Reading(value, low, high)
            found[item.query_id][name] = _told(item, parse_measure(name), read, widest, known)
    return found


def _as_of_now(item: ItemValues, moved: Mapping[str, Sequence[str]]) -> ItemValues:
    """Return an item with the ids of now in its ranking.

    A chunk that stands several times now is counted once, where it was found.
    """
    if moved.keys().isdisjoint(item.ranking):
        return item
    now = (next(iter(moved.get(chunk_id, ())), chunk_id) for chunk_id in item.ranking)
    return item.model_copy(update={"ranking": tuple(dict.fromkeys(now))})


def _told(
    item: ItemValues,
    measure: Measure,
    read: Reading,
    widest: Reading,
    known: Container[str] | None,
) -> Reading:
    """Return what the stored part of a ranking tells of its value."""
    if measure.name == "NumRet":
        return Reading(item.n_retrieved, item.n_retrieved, item.n_retrieved)
    unknown = _first_unknown(item, known)
    if unknown > (measure.cutoff or inf):
        return read
    if measure.name == "RR" and read.value is not None:
        first = round(1 / read.value) if read.value else inf
        return read if first < unknown or unknown == inf else Reading(None, read.low, 1 / unknown)
    return read if unknown == inf else widest


def _first_unknown(item: ItemValues, known: Container[str] | None) -> float:
    """Return the first rank of which nothing is known today; infinite where there is none.

    That is one whose chunk is not in the corpus any more, or one below those that were kept.
    """
    if known is not None:
        for rank, chunk_id in enumerate(item.ranking, 1):
            if chunk_id not in known:
                return rank
    return len(item.ranking) + 1 if item.n_retrieved > len(item.ranking) else inf


def _name_of(measure: str) -> str:
    try:
        return parse_measure(measure).name
    except UsageError:  # Of answers, or of a later version.
        return ""
