"""The items that two evaluations have in common, measured on the same grades in both.

The grades of an item change when somebody judges what a new run retrieved. Its earlier value is one
on fewer grades, and no measure of what changed since; without it, just the queries on which the
runs differ would be gone. So the earlier ranking is scored again on the grades of today. Where
several judges gave these, both rankings are scored on those of one; where no judge graded what both
hold, the item has no value: an earlier ranking is not to be held against a later one by another
judge's grades, nor to lose by grades that are gone.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import inf, isinf
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.same_judge import (
    PairJudges,
    RankingPair,
    Reading,
    SameJudgeValues,
    measure_on_same_judge,
    mixed_grades,
)
from ragforge.files.set.baseline import Evaluated
from ragforge.measures import evaluate, parse_measure
from ragforge.measures.bounds import Interval
from ragforge.measures.listed_relevance import Ground, Listed, grounds
from ragforge.measures.measure_names import Measure, is_of_evidence
from ragforge.records import Evaluation, ItemValues, MixedGrades

LEFT_OUT: Final = 0.1
"""Share of the items in common from which on too many cannot be measured again."""
_ON_ALL_GRADES: Final = frozenset({"Judged", "bpref", "infAP"})
"""Measures that a grade of 0 moves too."""


@dataclass(frozen=True, slots=True)
class RescoringBasis:
    """The labels that rankings are scored on today."""

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
    pair_judges: PairJudges = field(default_factory=PairJudges)
    """Who gave the grades."""
    relevant: Listed = field(default_factory=dict)
    """What lists call relevant, by query, where they decide binary measures."""

    def grounds(self, query_ids: Iterable[str], measures: Iterable[str]) -> tuple[Ground, ...]:
        """Return the labels of some queries that measures are computed on."""
        wanted = [query_id for query_id in query_ids if query_id in self.qrels]
        return grounds(
            {query_id: self.qrels[query_id] for query_id in wanted},
            {query_id: self.relevant[query_id] for query_id in wanted if query_id in self.relevant},
            measures,
            self.rel_threshold,
        )


@dataclass(frozen=True, slots=True)
class CommonItem:
    """One item by measure; those are in it that both evaluations have."""

    before: Mapping[str, Reading]
    now: Mapping[str, Reading]
    """Empty where the query failed."""
    is_rescored: bool = False
    """Whether its grades changed, so that its ranking was scored again."""
    lacking: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By measure without a value, as no judge graded what both rankings hold: see
    `SameJudgeValues`."""
    alike: frozenset[str] = frozenset()
    """Measures that see one and the same ranking: a failed judgment moves both values equally, so
    that these are read as if none had failed."""


def common_items(
    before: Evaluated,
    now: Evaluated,
    basis: RescoringBasis | None = None,
    n_bounded: Mapping[str, float] | None = None,
) -> dict[str, CommonItem]:
    """Return the items in common by query, those of `before` measured on the grades of `now`.

    Args:
        before: The earlier one.
        now: The later one. An item whose query it has no value of counts as in common where the
            query is still in the set.
        basis: The grades of today; without it, items whose grades changed have no value.
        n_bounded: As for `measure_on_same_judge`; a tenth of the items where None.
    """
    of_now = now.by_query()
    both = [
        (item, of_now.get(item.query_id))
        for item in before.items
        if _is_same(item, of_now.get(item.query_id), basis)
    ]
    by_measure = [m for m in now.evaluation.measures if m in before.evaluation.measures]
    changed = {old.query_id for old, new in both if new is None or new.grades != old.grades}
    if not is_read_alike(before.evaluation, now.evaluation):
        changed = {old.query_id for old, _ in both}
    stale = _Stale(changed, before.evaluation.digests.judgments, now.evaluation.digests.judgments)
    olds = _readings([old for old, _ in both], before.evaluation, by_measure, stale, basis)
    is_of_today = basis is None or now.evaluation.digests.judgments == basis.judgments
    news = _readings(
        [new for _, new in both if new is not None],
        now.evaluation,
        by_measure,
        _Stale(set(), "", "") if is_of_today else stale,
        basis,
    )
    common = {
        old.query_id: CommonItem(
            olds[old.query_id],
            news[old.query_id] if new is not None else _without_value(old, olds, basis),
            old.query_id in changed and new is not None,
        )
        for old, new in both
    }
    if basis is not None:
        of_labels = [name for name in by_measure if not is_of_evidence(name)]
        paired = [(old, new) for old, new in both if new is not None]
        sides = _Side(before.evaluation, basis), _Side(now.evaluation, basis)
        most = dict.fromkeys(of_labels, LEFT_OUT * len(common)) if n_bounded is None else n_bounded
        common |= _on_same_judge(paired, common, sides, of_labels, basis, most)
    depths = {name: depth for name in by_measure if (depth := _depth_of(name)) is not None}
    is_same_run = before.evaluation.digests.rankings == now.evaluation.digests.rankings
    for old, new in both:
        if new is not None:
            common[old.query_id] = _of_both(common[old.query_id])
            deep = inf if is_same_run else _shared_depth(old, new)
            names = {name for name, depth in depths.items() if depth <= deep}
            common[old.query_id] = _read_alike(common[old.query_id], names)
    return common


def _of_both(item: CommonItem) -> CommonItem:
    """Return an item without measures of retrieval that it has a value of on one side alone.

    A query without judgments has values of measures of evidence, and none of the others.
    """
    alone = {name for name in item.before.keys() ^ item.now.keys() if _name_of(name)}
    if not alone:
        return item
    before = {name: of for name, of in item.before.items() if name not in alone}
    now = {name: of for name, of in item.now.items() if name not in alone}
    return replace(item, before=before, now=now)


def is_read_alike(before: Evaluation, now: Evaluation) -> bool:
    """Whether the same was relevant by the same grades."""
    return (before.rel_threshold, before.by_lists) == (now.rel_threshold, now.by_lists)


def mixed_of(
    lacking: Mapping[str, Mapping[str, Mapping[str, int]]],
    n_items: int,
    basis: RescoringBasis | None,
) -> MixedGrades | None:
    """Return the grades that are missing for measuring the common items on one judge's grades.

    Args:
        lacking: As `lacking_of` returns it.
        n_items: Items in common.
        basis: The grades of today.
    """
    return mixed_grades(lacking, n_items, basis.pair_judges) if basis and lacking else None


def lacking_of(common: Mapping[str, CommonItem]) -> dict[str, Mapping[str, Mapping[str, int]]]:
    """Return what no one judge graded, by query and measure, of items that lack something."""
    return {query_id: item.lacking for query_id, item in common.items() if item.lacking}


def _shared_depth(old: ItemValues, new: ItemValues) -> float:
    """Return down to which rank two rankings are known to be one and the same."""
    if old.ranking == new.ranking and old.n_retrieved == new.n_retrieved == len(old.ranking):
        return inf
    pairs = zip(old.ranking, new.ranking, strict=False)
    least = min(len(old.ranking), len(new.ranking))
    return next((rank for rank, (a, b) in enumerate(pairs) if a != b), least)


def _depth_of(measure: str) -> float | None:
    """Return how far down a measure looks; None where it may look at more than a ranking."""
    try:
        return parse_measure(measure).cutoff or inf
    except UsageError:  # Of answers, or of a later version.
        return None


def _read_alike(item: CommonItem, names: Container[str]) -> CommonItem:
    """Return an item without what failed judgments could change in some measures."""
    known = {
        name: (old.value, item.now[name].value)
        for name, old in item.before.items()
        if name in names and name in item.now
    }
    before, now = dict(item.before), dict(item.now)
    alike = set()
    for name, (old, new) in known.items():
        if old is not None and new is not None:
            before[name], now[name] = Reading(old, old, old), Reading(new, new, new)
            alike.add(name)
    return replace(item, before=before, now=now, alike=frozenset(alike))


class _Side:
    """The judges and chunk ids of one evaluation's rankings, read where they are needed."""

    def __init__(self, evaluation: Evaluation, basis: RescoringBasis) -> None:
        self.judges = {
            (grader.kind, grader.model, grader.prompt_sha256)
            for grader in evaluation.graders
            if grader.is_judge and grader.kind not in ("human", "rule")
        }
        self._is_other = evaluation.digests.ranked != basis.corpus
        self._basis = basis

    @cached_property
    def known(self) -> Container[str] | None:
        """The chunks of today; None where they are those of the evaluation."""
        return self._basis.chunk_ids() if self._is_other else None

    @cached_property
    def moved(self) -> Mapping[str, Sequence[str]]:
        """The ids of today of chunks that went by other ones."""
        return self._basis.moved() if self._is_other else {}


def _on_same_judge(
    paired: Sequence[tuple[ItemValues, ItemValues]],
    common: Mapping[str, CommonItem],
    sides: tuple[_Side, _Side],
    measures: Sequence[str],
    basis: RescoringBasis,
    n_bounded: Mapping[str, float],
) -> dict[str, CommonItem]:
    """Return the items whose rankings several judges graded, measured on one judge's grades."""
    pairs, items = [], {}
    mixed, (of_old, of_new) = basis.pair_judges.mixed, sides
    for old, new in paired:
        grades = basis.qrels.get(old.query_id)
        labelled = {*(grades or ()), *basis.relevant.get(old.query_id, ())}
        lost = _lost(old, labelled, sides) if grades else frozenset()
        if grades and (lost or old.query_id in mixed):
            before, now = _as_of_now(old, of_old.moved), _as_of_now(new, of_new.moved)
            pairs.append(RankingPair(old.query_id, before.ranking, now.ranking, lost))
            items[old.query_id] = before, now
    if not pairs or not measures:
        return {}
    by_query = _pair_readings(pairs, measures, basis, n_bounded)
    widest = _of_any_ranking(items, measures, basis)
    again = {}
    for query_id, readings in by_query.items():
        before, now = items[query_id]
        item, lacking = common[query_id], {}
        olds, news = dict(item.before), dict(item.now)
        for name, values in readings.items():
            if name not in olds or name not in news:
                continue
            measure, most = parse_measure(name), Reading(None, *widest[name][query_id])
            sides_read = (most, most) if isinf(values.before.high) else (values.before, values.now)
            olds[name] = _reading_from_stored(before, measure, sides_read[0], most, of_old.known)
            news[name] = _reading_from_stored(now, measure, sides_read[1], most, of_new.known)
            if values.lacking:
                lacking[name] = values.lacking
        again[query_id] = replace(item, before=olds, now=news, lacking=lacking)
    return again


def _of_any_ranking(
    query_ids: Iterable[str], measures: Sequence[str], basis: RescoringBasis
) -> dict[str, Mapping[str, Interval]]:
    """Return the range of values that any ranking could have, by measure and query."""
    possible: dict[str, Mapping[str, Interval]] = {}
    for qrels, names, threshold in basis.grounds(query_ids, measures):
        at_all = evaluate(qrels, {}, names, rel_threshold=threshold, failed=[*qrels])
        possible |= {name: at_all.possible(name) for name in names}
    return possible


def _pair_readings(
    pairs: Sequence[RankingPair],
    measures: Sequence[str],
    basis: RescoringBasis,
    n_bounded: Mapping[str, float],
) -> dict[str, dict[str, SameJudgeValues]]:
    """Return the values of ranking pairs on one judge's grades; see `measure_on_same_judge`."""
    query_ids = [pair.query_id for pair in pairs]
    by_query: dict[str, dict[str, SameJudgeValues]] = {query_id: {} for query_id in query_ids}
    by = basis.pair_judges
    for qrels, names, threshold in basis.grounds(query_ids, measures):
        of_names = measure_on_same_judge(pairs, qrels, by, names, threshold, n_bounded)
        for query_id, readings in of_names.items():
            by_query[query_id].update(readings)
    return by_query


def _lost(old: ItemValues, labelled: Container[str], sides: tuple[_Side, _Side]) -> frozenset[str]:
    """Return the chunks of an earlier ranking that were graded then, and are not any more.

    Where it is not recorded which these were, another judge tells of other grades.
    """
    before, now = sides
    ranks: Sequence[int] = old.graded or ()
    if old.graded is None:
        ranks = () if before.judges == now.judges else range(1, len(old.ranking) + 1)
    if all(old.ranking[rank - 1] in labelled for rank in ranks):
        return frozenset()
    ids = (old.ranking[rank - 1] for rank in ranks)
    here = (next(iter(before.moved.get(chunk_id, ())), chunk_id) for chunk_id in ids)
    lost = frozenset(chunk_id for chunk_id in here if chunk_id not in labelled)
    known = before.known if lost else None
    return lost if known is None else frozenset(item for item in lost if item in known)


@dataclass(frozen=True, slots=True)
class _Stale:
    """Which stored values are not those of today's grades."""

    query_ids: Container[str]
    """Of items whose relevant chunks changed."""
    before: str
    now: str
    """Digests of all grades."""

    def has(self, query_id: str, measure: str) -> bool:
        if is_of_evidence(measure):
            return False
        if query_id in self.query_ids:
            return True
        return self.before != self.now and _name_of(measure) in _ON_ALL_GRADES


def _is_same(old: ItemValues, new: ItemValues | None, basis: RescoringBasis | None) -> bool:
    if new is None:
        return basis is not None and old.query_id in basis.qrels
    return old.item == new.item


def _without_value(
    old: ItemValues, olds: Mapping[str, Mapping[str, Reading]], basis: RescoringBasis | None
) -> dict[str, Reading]:
    """Return the range of a query without judgments: it has no value, but did not fail."""
    if basis is None or basis.qrels.get(old.query_id):
        return {}
    return {name: Reading(None, 0.0, of.high) for name, of in olds[old.query_id].items()}


def _readings(
    items: Sequence[ItemValues],
    evaluation: Evaluation,
    measures: Sequence[str],
    stale: _Stale,
    basis: RescoringBasis | None,
) -> dict[str, dict[str, Reading]]:
    """Return the values of items: the stored ones where they still hold, else scored again."""
    readings_of = {item.query_id: dict(_stored(item, measures)) for item in items}
    again = [item for item in items if any(stale.has(item.query_id, name) for name in measures)]
    of_labels = [name for name in measures if not is_of_evidence(name)]
    scored = _rescored(again, evaluation, of_labels, basis)
    for query_id, readings in scored.items():
        readings_of[query_id].update(
            (name, of) for name, of in readings.items() if stale.has(query_id, name)
        )
    return readings_of


def _stored(item: ItemValues, measures: Sequence[str]) -> Iterator[tuple[str, Reading]]:
    for name in measures:
        if name in item.values:
            value = item.values[name]
            yield name, Reading(value, value, value)


def _rescored(
    items: Sequence[ItemValues],
    evaluation: Evaluation,
    measures: Sequence[str],
    basis: RescoringBasis | None,
) -> dict[str, dict[str, Reading]]:
    """Return the values of items' rankings on today's grades; nothing for ungraded ones."""
    if basis is None:
        nothing = {name: Reading(None, 0.0, inf) for name in measures}
        return {item.query_id: nothing for item in items}
    graded = [item for item in items if basis.qrels.get(item.query_id)]
    if not graded or not measures:
        return {}
    known = None
    if evaluation.digests.ranked != basis.corpus:
        known, moved = basis.chunk_ids(), basis.moved()
        graded = [_as_of_now(item, moved) for item in graded]
    run = {item.query_id: item.ranking for item in graded}
    rescored: dict[str, dict[str, Reading]] = {item.query_id: {} for item in graded}
    for qrels, names, threshold in basis.grounds(run, measures):
        scores = evaluate(qrels, run, names, rel_threshold=threshold)
        at_all = evaluate(qrels, {}, names, rel_threshold=threshold, failed=[*qrels])
        for name in names:
            possible, any_ranking = scores.possible(name), at_all.possible(name)
            for item in graded:
                value = scores.per_query.get(item.query_id, {}).get(name)
                low, high = possible.get(item.query_id, (value, value))
                widest = Reading(None, *any_ranking[item.query_id])
                read = widest if low is None or high is None else Reading(value, low, high)
                rescored[item.query_id][name] = _reading_from_stored(
                    item, parse_measure(name), read, widest, known
                )
    return rescored


def _as_of_now(item: ItemValues, moved: Mapping[str, Sequence[str]]) -> ItemValues:
    """Return an item with the ids of now in its ranking.

    A chunk that stands several times now is counted once, where it was found.
    """
    if moved.keys().isdisjoint(item.ranking):
        return item
    now = (next(iter(moved.get(chunk_id, ())), chunk_id) for chunk_id in item.ranking)
    return item.model_copy(update={"ranking": tuple(dict.fromkeys(now))})


def _reading_from_stored(
    item: ItemValues,
    measure: Measure,
    read: Reading,
    widest: Reading,
    known: Container[str] | None,
) -> Reading:
    """Return a value as far as the stored part of its ranking determines it."""
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
