"""Measuring two rankings of a query on the grades of one judge.

Judges differ in strictness by more than systems differ in quality. Where chunks of one ranking were
graded by one judge and those of the other by another, a difference of values is one of the judges.
Grades of people, and those that follow from a query's evidence, count beside those of any judge. A
grade that was carried to another chunk id is still of the judge that gave it.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product, takewhile
from math import inf
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.judgments import Settled
from ragforge.measures import Scores, evaluate, parse_measure
from ragforge.measures.measure_names import Measure
from ragforge.records import MixedGrades, Provenance
from ragforge.records.canaries import before_drift, since_drift
from ragforge.records.judgments import JudgmentOrGrading

NOBODY: Final = -1
"""Stands for the judge of a grade that is gone."""
NOT_BY_GRADES: Final = frozenset({"Judged", "NumRet", "NumRel"})
"""Measures that tell nothing of how good a ranking is."""
_ANY_JUDGE: Final = ("human", "evidence")
"""Sources of grades that count beside those of any judge."""
_NOT_JUDGES: Final = ("human", "rule")
_ALONE: Final = ", alone"
_FIRST_HIT: Final = ("RR", "Success")
"""Measures that one relevant chunk settles."""
_UNRECORDED: Final = Provenance(kind="llm")

JudgeKey: TypeAlias = tuple[str, str, str, str]
"""Kind, model, protocol, and digest of the prompt."""
_Grades = Mapping[str, int | None]
_Qrels: TypeAlias = Mapping[str, _Grades]
_NO_LACK: Final[Mapping[str, int]] = {}


class Reading(NamedTuple):
    """The value of a measure for one query, on some grades."""

    value: float | None
    """None where it cannot be told."""
    low: float
    high: float
    """What it could have been, had no judgment failed; where there is no value, what it could be,
    whatever it is that is not known."""


_OPEN: Final = Reading(None, 0.0, inf)


@dataclass(frozen=True, slots=True)
class PairJudges:
    """Which judge gave the grades that count."""

    judges: tuple[Provenance, ...] = ()
    """Of the set: equal are those of the same kind, model, prompt text and protocol. What a batch
    left to be asked for alone is of the judge of the batch."""
    counts: tuple[int, ...] = ()
    """Grades of each."""
    mixed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of the queries that several judges graded: chunk to index of its judge, without the chunks
    whose grade counts for any."""

    def names_of(self, judges: Mapping[int, int]) -> str:
        """Return the names of some judges, those of the highest counts first.

        Those of one model are told apart by how they were asked.
        """
        models = Counter(judge.model for judge in self.judges)
        ordered = sorted(judges, key=lambda judge: (-judges[judge], judge))
        named = []
        for judge in map(self.judges.__getitem__, ordered):
            name = judge.model or judge.kind
            way = judge.protocol or judge.prompt
            named.append(f"{name}, {way}" if models[judge.model] > 1 and way else name)
        return "; ".join(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class RankingPair:
    """Two rankings of a query."""

    query_id: str
    before: Sequence[str]
    now: Sequence[str]
    lost: frozenset[str] = frozenset()
    """Chunks of `before` that had a grade and have none any more."""


class SameJudgeValues(NamedTuple):
    """Two values on the grades of one judge."""

    before: Reading
    now: Reading
    lacking: Mapping[str, int] = _NO_LACK
    """Where no judge graded what a measure looks at: chunk to the judge that did, or `NOBODY`. The
    readings have no value then, but tell what one judge could have made of it."""


def pair_judges(settled: Settled) -> PairJudges:
    """Return the judges of the grades that count, and the queries that several of them graded."""
    counts: Counter[JudgeKey] = Counter()
    names: dict[JudgeKey, Provenance] = {}
    several: dict[str, dict[str, JudgeKey]] = {}
    for query_id, judged in settled.items():
        # Gradings are few, and many chunks have the same.
        once = {id(item): item for item in judged.values()}
        keys = {one: key for one, item in once.items() if (key := judge_key(item)) is not None}
        for one, n in Counter(map(id, judged.values())).items():
            if one in keys:
                counts[keys[one]] += n
        if len(set(keys.values())) > 1:
            several[query_id] = {
                chunk_id: keys[id(item)] for chunk_id, item in judged.items() if id(item) in keys
            }
        for one, key in keys.items():
            if key not in names:
                names[key] = _named(once[one])
    same = canonical_judge_keys(counts)
    judges = sorted(set(same.values()))
    number = {key: judges.index(same[key]) for key in counts}
    totals = [0] * len(judges)
    for key, count in counts.items():
        totals[number[key]] += count
    mixed = {q: {c: number[key] for c, key in of.items()} for q, of in several.items()}
    return PairJudges(
        tuple(names[key] for key in judges),
        tuple(totals),
        {q: of for q, of in mixed.items() if len(set(of.values())) > 1},
    )


def several_judges_text(
    qrels: _Qrels,
    by: PairJudges,
    rankings: Sequence[Mapping[str, Sequence[str]]],
    measures: Sequence[str],
) -> str:
    """Return that means over all grades are not what comparisons count; "" where they are.

    Args:
        qrels: All grades, by query and chunk.
        by: Who gave them.
        rankings: Of the runs that are measured.
        measures: Canonical names, of measures that are computed from judgments.
    """
    if not by.mixed or not measures:
        return ""
    counted, left = grades_of_one_judge(qrels, by, rankings, measures)
    out = left_out(qrels, counted, by)
    if not out and not left.mixed:
        return ""
    everyone = Counter(judge for judges in by.mixed.values() for judge in judges.values())
    kept = Counter(
        judge
        for query_id, judges in by.mixed.items()
        if query_id not in left.mixed
        for judge in {judges[name] for name in counted[query_id] if name in judges}
    )
    which = f" ({by.names_of(kept)})" if kept else ""
    return (
        f"means rest on grades of several judges ({by.names_of(everyone)}) in "
        f"{plural(len(by.mixed), 'query', 'queries')}; compare and gate count those of one in "
        f"each{which}"
    )


def left_out(qrels: _Qrels, counted: _Qrels, by: PairJudges) -> Counter[int]:
    """Return how many grades are not counted, by judge."""
    return Counter(
        judge
        for query_id, judges in by.mixed.items()
        for chunk_id, judge in judges.items()
        if chunk_id in qrels[query_id] and chunk_id not in counted[query_id]
    )


def grades_of_one_judge(
    qrels: _Qrels,
    by: PairJudges,
    rankings: Sequence[Mapping[str, Sequence[str]]],
    measures: Sequence[str],
) -> tuple[_Qrels, PairJudges]:
    """Return the grades that runs are measured on, and the queries that are left with several.

    Where one judge graded all that the measures look at in all runs, grades of others are left out:
    they are of chunks that no run holds, and would only move what values are divided by.
    """
    reach = max((parse_measure(name).cutoff or inf for name in measures), default=inf)
    counted, left = dict(qrels), {}
    for query_id, judges in by.mixed.items():
        chunks = (c for ranked in rankings for c in _top(ranked.get(query_id, ()), reach))
        seen = {judges[chunk_id] for chunk_id in chunks if chunk_id in judges}
        if len(seen) > 1:
            left[query_id] = judges
        else:
            of = seen or {_most(judges)}
            counted[query_id] = {
                chunk_id: grade
                for chunk_id, grade in qrels[query_id].items()
                if chunk_id not in judges or judges[chunk_id] in of
            }
    return counted, replace(by, mixed=left)


def lists_without(
    relevant: Mapping[str, Collection[str]], qrels: _Qrels, counted: _Qrels
) -> dict[str, list[str]]:
    """Return lists without chunks that are relevant by grades that are left out.

    Args:
        relevant: What is listed as relevant, by query.
        qrels: All grades.
        counted: Those that are not left out.
    """
    return {
        query_id: [
            chunk_id
            for chunk_id in listed
            if chunk_id in counted.get(query_id, {}) or chunk_id not in qrels.get(query_id, {})
        ]
        for query_id, listed in relevant.items()
    }


def whose_grades_text(qrels: _Qrels, counted: _Qrels, by: PairJudges, left: PairJudges) -> str:
    """Return whose grades a run's means leave out, and where they mix judges all the same.

    Args:
        qrels: All grades.
        counted: Those that its means rest on.
        by: Who gave all.
        left: Of the queries whose top chunks several judges graded.
    """
    out, told = left_out(qrels, counted, by), []
    if out:
        told.append(
            f"{plural(out.total(), 'grade')} by {by.names_of(out)} {_are(out.total())} left out of "
            "means, of chunks that the run does not hold as far up as the measures look: in each "
            "query the grades of one judge count"
        )
    if left.mixed:
        mixed = Counter(judge for judges in left.mixed.values() for judge in judges.values())
        n_queries = plural(len(left.mixed), "query", "queries")
        told.append(
            f"in {n_queries} several judges ({by.names_of(mixed)}) graded what the run holds, and "
            "its means mix them; let one judge grade all of it"
        )
    return "; ".join(told)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _most(judges: Mapping[str, int]) -> int:
    given = list(judges.values())
    return min(set(given), key=lambda judge: (-given.count(judge), judge))


def measure_on_same_judge(
    pairs: Sequence[RankingPair],
    qrels: Mapping[str, _Grades],
    by: PairJudges,
    measures: Iterable[str],
    rel_threshold: int,
    n_bounded: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, dict[str, SameJudgeValues]]:
    """Measure pairs of rankings, both of a pair on the grades of one and the same judge.

    Chunks that another judge graded are left out of ideals and counts where neither ranking has
    them as far up as the measure looks; where one has, and it matters, there is no value.

    Args:
        pairs: One a query, of queries with grades.
        qrels: All grades, by query and chunk.
        by: Who gave them.
        measures: Canonical names.
        rel_threshold: Lowest grade that counts as relevant.
        n_bounded: By measure: queries without a value of which it is worked out what it could be,
            all where it is not named; where there are more, bounds are left open: they take long,
            and nobody uses them.

    Returns:
        By query and measure; measures that tell nothing of grades are left out.
    """
    values: dict[str, dict[str, SameJudgeValues]] = {pair.query_id: {} for pair in pairs}
    by_reach: dict[float, list[str]] = {}
    for name in measures:
        measure = parse_measure(name)
        if measure.name not in NOT_BY_GRADES:
            by_reach.setdefault(measure.cutoff or inf, []).append(name)
    for reach, names in by_reach.items():
        views = [_View(pair, qrels[pair.query_id], by, reach) for pair in pairs]
        for name, query_id, value in _at_reach(views, names, rel_threshold, n_bounded):
            values[query_id][name] = value
    return values


def mixed_grades(
    lacking: Mapping[str, Mapping[str, Mapping[str, int]]], n_items: int, by: PairJudges
) -> MixedGrades | None:
    """Return the grades that are missing for comparing two evaluations, or runs, on one judge.

    The judge to ask is the one that has the least left to do; a model goes before a baseline, and a
    judge since its last drift before what nobody can ask any more.

    Args:
        lacking: As in `SameJudgeValues`, by query and measure.
        n_items: Items in common.
        by: Who graded.

    Returns:
        None where nothing is missing.
    """
    measures = Counter(name for of in lacking.values() for name in of)
    if not measures:
        return None
    pairs = {
        (query_id, chunk_id): judge
        for query_id, of in lacking.items()
        for chunks in of.values()
        for chunk_id, judge in chunks.items()
    }
    have = Counter(pairs.values())
    numbers = range(len(by.judges))
    gone = [one for one in by.judges if any(_has_drifted_to(one, other) for other in by.judges)]
    first = min(
        numbers,
        key=lambda number: (
            by.judges[number].kind != "llm",
            by.judges[number] in gone,
            -have[number],
            -by.counts[number],
        ),
        default=None,
    )
    ask = _UNRECORDED if first is None else by.judges[first]
    seen = [by.judges[number] for number in sorted(have.keys() - {NOBODY})]
    return MixedGrades(
        n=n_items,
        measures=dict(sorted(measures.items())),
        n_pairs=len(pairs) - (0 if first is None else have[first]),
        n_gone=have[NOBODY],
        ask=ask,
        judges=tuple(seen) or (ask,),
    )


def judge_key(judgment: JudgmentOrGrading) -> JudgeKey | None:
    """Return the identity of a grade's judge; None for grades that count beside any judge's."""
    by = judgment.provenance
    if judgment.grade is None or judgment.source in _ANY_JUDGE:
        return None
    if by is None:
        return "", "", "", ""
    if by.kind in _NOT_JUDGES:
        return None
    return by.kind, by.model, by.protocol, by.prompt_sha256


def have_different_judges(judgment: JudgmentOrGrading, other: JudgmentOrGrading) -> bool:
    """Whether two grades are of different judges; those that count beside any are of none."""
    keys = [key for item in (judgment, other) if (key := judge_key(item)) is not None]
    return len(set(canonical_judge_keys(keys).values())) > 1


def _has_drifted_to(judge: Provenance, other: Provenance) -> bool:
    if before_drift(judge) != before_drift(other):
        return False
    return since_drift(judge.protocol) < since_drift(other.protocol)


def _named(judgment: JudgmentOrGrading) -> Provenance:
    by = judgment.provenance
    return _UNRECORDED if by is None else by.model_copy(update={"call_key": ""})


def canonical_judge_keys(keys: Iterable[JudgeKey]) -> dict[JudgeKey, JudgeKey]:
    """Return each key's canonical one: pairs asked alone are of the judge of the batches."""
    keys = set(keys)
    canonical = {key: key for key in keys}
    for kind, model, protocol, prompt in keys:
        if protocol.endswith(_ALONE):
            base = kind, model, protocol.removesuffix(_ALONE)
            batches = [key for key in keys if key[:3] == base]
            if len(batches) == 1:
                canonical[kind, model, protocol, prompt] = batches[0]
    return canonical


class _View:
    """The part of a ranking pair within a measure's cutoff, and the judges that graded it."""

    __slots__ = ("by", "grades", "is_same", "judges", "looked", "pair", "seen", "tops")

    def __init__(self, pair: RankingPair, grades: _Grades, by: PairJudges, reach: float) -> None:
        self.pair = pair
        self.grades = grades
        self.by = by.mixed.get(pair.query_id, {})
        before, now = _top(pair.before, reach), _top(pair.now, reach)
        self.tops = before, now
        self.is_same = before == now
        self.looked = {*before, *now}
        self.seen = Counter(self.by[c] for c in self.looked if c in self.by)
        whole = Counter(self.by.values())
        order = sorted(whole, key=lambda judge: (-self.seen[judge], -whole[judge], judge))
        self.judges = [judge for judge in order if self.seen[judge]] or order[:1] or [NOBODY]

    def lacking(self, judge: int) -> dict[str, int]:
        """Return the chunks in reach that a judge did not grade, with the judge that did."""
        lost = dict.fromkeys(self.pair.lost & self.looked, NOBODY)
        others = {c: by for c in self.looked if (by := self.by.get(c, judge)) != judge}
        return {**others, **lost}

    def everything(self) -> dict[str, int]:
        """Return the chunks in reach that keep any single judge from covering both rankings."""
        lost = dict.fromkeys(self.pair.lost & self.looked, NOBODY)
        return {**{c: self.by[c] for c in self.looked if c in self.by}, **lost}

    def judge_for(self, measure: Measure, rel: int) -> int | None:
        """Return the first judge that graded all that a measure looks at; None for none."""
        for judge in self.judges:
            lacking = self.lacking(judge)
            if not lacking or self._is_settled(measure, lacking, rel):
                return judge
        return None

    def _is_settled(self, measure: Measure, lacking: Container[str], rel: int) -> bool:
        """Whether a relevant chunk in each ranking settles the measure, whatever is not graded."""
        if measure.name not in _FIRST_HIT:
            return False
        return all(
            any(
                (self.grades.get(chunk_id) or 0) >= rel
                for chunk_id in (ranking if measure.name == "Success" else _until(ranking, lacking))
                if chunk_id not in lacking
            )
            for ranking in self.tops
        )

    def of(self, judge: int) -> dict[str, int | None]:
        """Return the grades of a judge, and those that count beside them."""
        return {c: grade for c, grade in self.grades.items() if self.by.get(c, judge) == judge}

    def open(self, judge: int) -> dict[str, int | None]:
        """Return the same, with chunks in reach that lack a grade of the judge as unknown."""
        return {**self.of(judge), **dict.fromkeys(self.lacking(judge))}


def _until(ranking: Iterable[str], lacking: Container[str]) -> Iterable[str]:
    return takewhile(lambda chunk_id: chunk_id not in lacking, ranking)


def _top(ranking: Sequence[str], reach: float) -> Sequence[str]:
    return tuple(ranking if reach == inf else ranking[: int(reach)])


def _at_reach(
    views: Sequence[_View],
    names: Sequence[str],
    rel_threshold: int,
    n_bounded: Mapping[str, float],
) -> Iterator[tuple[str, str, SameJudgeValues]]:
    """Yield the values of measures of one cutoff, each by the first judge that graded enough."""
    same = [view for view in views if view.is_same]
    grades = {view.pair.query_id: view.grades for view in same}
    for view, name, before, now in _measured(same, grades, names, rel_threshold):
        yield name, view.pair.query_id, SameJudgeValues(before, now)
    others = [view for view in views if not view.is_same]
    open_: dict[str, list[_View]] = {}
    chosen: dict[int, dict[str, set[str]]] = {}
    for name, view in product(names, others):
        measure = parse_measure(name)
        judge = view.judge_for(measure, measure.rel or rel_threshold)
        if judge is None:
            open_.setdefault(name, []).append(view)
        else:
            chosen.setdefault(judge, {}).setdefault(view.pair.query_id, set()).add(name)
    yield from _chosen(others, chosen, names, rel_threshold)
    for name, of_name in open_.items():
        most = n_bounded.get(name, inf)
        for view, before, now in _bounded(of_name, name, rel_threshold, most):
            yield name, view.pair.query_id, SameJudgeValues(before, now, view.everything())


def _chosen(
    views: Sequence[_View],
    chosen: Mapping[int, Mapping[str, Container[str]]],
    names: Sequence[str],
    rel_threshold: int,
) -> Iterator[tuple[str, str, SameJudgeValues]]:
    """Yield the values by the judge chosen for each measure, by judge and query."""
    for judge, wanted in sorted(chosen.items()):
        some = [view for view in views if view.pair.query_id in wanted]
        grades = {view.pair.query_id: view.of(judge) for view in some}
        for view, name, before, now in _measured(some, grades, names, rel_threshold):
            if name in wanted[view.pair.query_id]:
                yield name, view.pair.query_id, SameJudgeValues(before, now)


def _bounded(
    views: Sequence[_View], name: str, rel_threshold: int, n_bounded: float
) -> Iterator[tuple[_View, Reading, Reading]]:
    """Yield the bounds of the values of rankings that no single judge graded."""
    if len(views) > n_bounded:
        yield from ((view, _OPEN, _OPEN) for view in views)
        return
    grades = {view.pair.query_id: view.open(view.judges[0]) for view in views}
    for view, _, before, now in _measured(views, grades, [name], rel_threshold):
        yield view, _without_value(before), _without_value(now)


def _without_value(of: Reading) -> Reading:
    return Reading(None, of.low, of.high)


def _measured(
    views: Sequence[_View],
    qrels: Mapping[str, _Grades],
    names: Sequence[str],
    rel_threshold: int,
) -> Iterator[tuple[_View, str, Reading, Reading]]:
    """Yield the readings of both rankings, by query and measure."""
    if not views:
        return
    scored = [
        evaluate(qrels, run, names, rel_threshold=rel_threshold)
        for run in (
            {view.pair.query_id: view.pair.before for view in views},
            {view.pair.query_id: view.pair.now for view in views},
        )
    ]
    tables = [[_Column(scores, name) for name in names] for scores in scored]
    for view in views:
        for place, name in enumerate(names):
            before, now = (table[place](view.pair.query_id) for table in tables)
            yield view, name, before, now


class _Column:
    """Looks up readings of one measure."""

    __slots__ = ("possible", "values")

    def __init__(self, scores: Scores, name: str) -> None:
        self.values = dict(zip(scores.query_ids, scores.values(name), strict=True))
        self.possible = scores.possible(name)

    def __call__(self, query_id: str) -> Reading:
        value = self.values.get(query_id)
        low, high = self.possible.get(query_id, (value, value))
        return (
            Reading(value, 0.0, inf) if low is None or high is None else Reading(value, low, high)
        )
