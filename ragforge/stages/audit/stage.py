"""Auditing a judge: it is asked about plain texts, and then about what the attacks made of them.

The pairs are spread over grades and queries, drawn by a seed.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import partial
from math import fsum
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.measures.checked_samples import mean, sample
from ragforge.measures.rates import interval_of
from ragforge.records import (
    AttackFindings,
    AuditExample,
    AuditRate,
    Expectation,
    Failure,
    JudgeAudit,
    Judgment,
)
from ragforge.stages.audit.attacks import ANY, ATTACKS, Target, attacked, draws
from ragforge.stages.judge.pairs import RELEVANT_FROM, Pair, PairId
from ragforge.stages.runner import Collected, Judge, Work, Workers, collect
from ragforge.stages.words import sentences

PLAIN: Final = "plain"
_OF_DRAWN: Final = ("", "search")
"""What attacks on drawn pairs need; the others are made of texts that somebody supplies."""
"""In the place of an attack's name: the text as it is."""

_LOWEST, _HIGHEST = 0, 3
_EXAMPLES: Final = 5
_SPARE: Final = 4
"""Pairs of a grade looked at for each that may be drawn; more would hardly spread wider."""


@dataclass(frozen=True, slots=True)
class KnownPair:
    """A pair that may be drawn.

    Args:
        pair: Its ids.
        grade: The one it is known to have; None where nobody judged it.
    """

    pair: PairId
    grade: int | None


def draw(candidates: Iterable[KnownPair], n: int, seed: int) -> list[PairId]:
    """Draw pairs: grades in turn, and of each grade a pair of the query drawn from least.

    Args:
        candidates: In any order, each pair once.
        n: How many; all where there are fewer.
        seed: At least 0.

    Returns:
        The pairs, sorted.
    """
    by_grade: dict[int | None, dict[str, list[PairId]]] = {}
    for candidate in candidates:
        of_grade = by_grade.setdefault(candidate.grade, {})
        of_grade.setdefault(candidate.pair.query_id, []).append(candidate.pair)
    strata = [_spread(of_query, n, seed) for _, of_query in sorted(by_grade.items(), key=_order)]
    drawn: list[PairId] = []
    used: Counter[str] = Counter()
    while len(drawn) < n and any(strata):
        for stratum in filter(None, strata):
            if len(drawn) < n:
                # min keeps the first of equals: the order of the stratum decides.
                pair = min(stratum, key=lambda each: used[each.query_id])
                stratum.remove(pair)
                used[pair.query_id] += 1
                drawn.append(pair)
    return sorted(drawn)


def others(
    drawn: Sequence[PairId], known: Mapping[str, Container[str]], seed: int
) -> dict[PairId, PairId]:
    """Return for each drawn pair one of another query, to take a passage about something else from.

    Args:
        drawn: As `draw` returns them.
        known: By query, the chunks that may have to do with it; they are not taken.
        seed: At least 0.

    Returns:
        The others by pair; a pair for which there is none is left out.
    """
    partners = {}
    for pair in drawn:
        strange = [
            other
            for other in drawn
            if other.query_id != pair.query_id and other.chunk_id not in known[pair.query_id]
        ]
        if strange:
            partners[pair] = min(strange, key=lambda other: hashed(seed, *pair, *other))
    return partners


def _spread(of_query: Mapping[str, Sequence[PairId]], n: int, seed: int) -> list[PairId]:
    """Return the pairs of a grade that may be drawn: one of each query, then a second of each."""
    turns = (
        (turn, hashed(seed, *pair), pair)
        for pairs in of_query.values()
        for turn, pair in enumerate(sorted(pairs, key=lambda each: hashed(seed, *each)))
    )
    return [pair for _, _, pair in heapq.nsmallest(_SPARE * n, turns)]


def _order(stratum: tuple[int | None, object]) -> int:
    """Grades in turn from 0, what nobody judged behind them."""
    grade = stratum[0]
    return 4 if grade is None else grade


def hashed(seed: int, *ids: str) -> str:
    """Return what orders things at random, the same way every time."""
    return hashlib.sha256("\0".join((str(seed), *ids)).encode("utf-8", "replace")).hexdigest()


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
    """Return how far an attack moved the grades of a judge.

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
    """Return a value rounded to 6 decimals, equal on all machines; never -0."""
    return round(value, 6) + 0.0


def _outcomes(before: int, value: Callable[[int, int], float]) -> list[float]:
    return [value(before, after) for after in range(_LOWEST, _HIGHEST + 1)]


def _worst(expects: Expectation, trials: Iterable[Trial]) -> tuple[AuditExample, ...]:
    """Return the swayed pairs whose grade moved furthest; of cuts and swaps, moved up furthest."""
    swayed = [
        AuditExample.model_validate(asdict(trial))
        for trial in trials
        if trial.after is not None and is_swayed(expects, trial.before, trial.after)
    ]
    swayed.sort(key=lambda one: (-_distance(expects, one), one.query_id, one.chunk_id))
    return tuple(swayed[:_EXAMPLES])


def _distance(expects: Expectation, example: AuditExample) -> int:
    if expects == "unchanged":
        return abs(example.after - example.before)
    return example.after if expects == "not relevant" else example.after - example.before


@dataclass(frozen=True, slots=True)
class Sample:
    """A pair that a judge is audited on.

    Args:
        pair: The pair.
        other: The same query with a passage of another one; None where there is none.
    """

    pair: Pair
    other: Pair | None = None


@dataclass(frozen=True, slots=True)
class Counterpart:
    """Two texts of the same content, supplied by somebody.

    Args:
        plain: The pair as it is.
        shown: The same query with the other text.
    """

    plain: Pair
    shown: Pair


@dataclass(frozen=True, slots=True)
class Auditing:
    """How a judge is audited.

    Args:
        judge: Who is audited.
        again: The same judge, whose replies do not come from where those of `judge` are kept.
        attacks: Keys of `ATTACKS`.
        seed: Of the draws of the attacks; at least 0.
        workers: How many texts are in work at once, and who is told.
        is_dry: Whether nothing is really asked; then every attack counts that could be tried.
        counterparts: By attack, the texts of those that are made of what somebody supplies.
        search_calls: That a search may make for one pair, the last one included, which confirms.
    """

    judge: Judge[Pair, Judgment]
    again: Judge[Pair, Judgment]
    attacks: Sequence[str]
    seed: int
    workers: Workers
    is_dry: bool = False
    counterparts: Mapping[str, Sequence[Counterpart]] = field(default_factory=dict)
    search_calls: int = 0


@dataclass(frozen=True, slots=True)
class Audited:
    """Result of an audit.

    Args:
        audit: Says by whom; the temperature is left open.
        failures: Of plain and attacked texts; the keys are ATTACK/QUERYID/CHUNKID.
    """

    audit: JudgeAudit
    failures: list[Failure]


@dataclass(frozen=True, slots=True)
class _Unit:
    """One text for one query.

    Args:
        attack: A key of `ATTACKS`, or `PLAIN`.
        pair: With the text that is shown.
        before: The grade it will be compared with; None for a plain text, and in a dry run.
    """

    attack: str
    pair: Pair
    before: int | None = None

    @property
    def key(self) -> str:
        return f"{self.attack}/{self.pair.key}"


@dataclass(frozen=True, slots=True)
class _JudgedText:
    """A text with the judgment it got; None where the judge failed."""

    unit: _Unit
    judgment: Judgment | None


async def audit(samples: Sequence[Sample], auditing: Auditing) -> Audited:
    """Audit a judge on some pairs.

    Args:
        samples: The pairs, each once.
        auditing: Whom and how.

    Raises:
        EndpointError, BudgetError: As the judge raises them. Nothing is left then but what its
            call store holds; with that, the next audit goes on where this one stopped.
    """
    samples = _used(samples, auditing)
    plain = await _ask(_plain(samples, auditing), auditing)
    tried = await _ask(_attacks(samples, _by_pair(plain.results), auditing), auditing)
    trials: dict[str, list[Trial]] = {name: [] for name in auditing.attacks}
    for given in tried.results:
        trials[given.unit.attack].extend(_trial(given))
    found = tuple(findings(name, ATTACKS[name].expects, trials[name]) for name in auditing.attacks)
    record = _record(samples, plain, found, auditing)
    return Audited(record, sorted([*plain.failures, *tried.failures], key=lambda each: each.key))


def _used(samples: Sequence[Sample], auditing: Auditing) -> Sequence[Sample]:
    """Return the pairs that the attacks start from.

    Where all attacks are made of what somebody supplies, the drawn ones would be asked for nothing.
    """
    if any(ATTACKS[name].needs in _OF_DRAWN for name in auditing.attacks):
        return samples
    supplied = (each for name in auditing.attacks for each in auditing.counterparts.get(name, ()))
    return [Sample(pair) for pair in {each.plain.key: each.plain for each in supplied}.values()]


def _plain(samples: Iterable[Sample], auditing: Auditing) -> Iterator[_Unit]:
    """Yield the texts as they are, and all others that an attack compares with."""
    needs_other = any(ATTACKS[name].on_other for name in auditing.attacks)
    for drawn in samples:
        yield _Unit(PLAIN, drawn.pair)
        if needs_other and drawn.other is not None:
            yield _Unit(PLAIN, drawn.other)
    for name in auditing.attacks:
        for given in auditing.counterparts.get(name, ()):
            yield _Unit(PLAIN, given.plain)


def _attacks(
    samples: Iterable[Sample], plain: Mapping[str, Judgment | None], auditing: Auditing
) -> Iterator[_Unit]:
    for drawn in samples:
        for name in auditing.attacks:
            if ATTACKS[name].needs in _OF_DRAWN:
                unit = _unit(name, drawn, plain, auditing)
                if unit is not None:
                    yield unit
    for name in auditing.attacks:
        for given in auditing.counterparts.get(name, ()):
            judgment = plain.get(given.plain.key)
            if judgment is not None or auditing.is_dry:
                yield _Unit(name, given.shown, judgment.grade if judgment else None)


def _unit(
    name: str, sample: Sample, plain: Mapping[str, Judgment | None], auditing: Auditing
) -> _Unit | None:
    """Return an attack on a pair, None where it has nothing to be compared with or made of."""
    attack = ATTACKS[name]
    compared = sample.other if attack.on_other else sample.pair
    target = sample.other if attack.on_other or attack.shows_other else sample.pair
    if compared is None or target is None:
        return None
    judgment = plain.get(compared.key)
    if judgment is None and not auditing.is_dry:
        return None
    grade = judgment.grade if judgment else None
    if grade is not None and grade not in attack.grades:
        return None
    if attack.needs == "search":
        return _Unit(name, target, grade)
    evidence = judgment.evidence if judgment else _some_evidence(target.text)
    text = attacked(name, Target(target, evidence), auditing.seed)
    if text is None:
        return None
    return _Unit(name, Pair(target.query_id, target.query, target.chunk_id, text), grade)


def _some_evidence(text: str) -> str:
    """Return the last sentence of a text in the place of evidence, which a dry run lacks."""
    return next(reversed(sentences(text)), "")


async def _ask(units: Iterable[_Unit], auditing: Auditing) -> Collected[_JudgedText]:
    """Ask about all units; of those that show the same text for the same purpose, the first.

    Where it is stopped nothing is kept: an audit of a part would pass for one of the whole.
    """
    distinct = {unit.key: unit for unit in reversed(list(units))}
    work: Work[_Unit, _JudgedText] = Work(
        stage="audit",
        key=lambda unit: unit.key,
        do=partial(_judged, auditing),
        workers=auditing.workers,
        blank=lambda unit, _: _JudgedText(unit, None),
    )
    return await collect(list(distinct.values()), work)


async def _judged(auditing: Auditing, unit: _Unit) -> _JudgedText:
    if unit.attack != PLAIN and ATTACKS[unit.attack].needs == "search":
        return _JudgedText(unit, await _searched(auditing, unit))
    is_again = unit.attack != PLAIN and ATTACKS[unit.attack].vote > 0
    judge = auditing.again if is_again else auditing.judge
    return _JudgedText(unit, await judge.judge(unit.pair))


@dataclass(slots=True)
class _Search:
    """Where a search stands.

    Args:
        at: The highest text so far, the latest of equals.
        height: Its grade, and what the model nearly said.
        said: The judgment of the highest of all steps; None before one got a grade.
    """

    at: Pair
    height: tuple[int, float]
    said: Judgment | None = None

    def take(self, step: Pair, judgment: Judgment) -> None:
        """Go on from a step that is no lower: a scale of four grades is mostly plateau."""
        if judgment.grade is None:
            return
        value = (judgment.grade, judgment.grade_mean or -1.0)
        if self.said is None or judgment.grade >= (self.said.grade or _LOWEST):
            self.said = judgment
        if value >= self.height:
            self.at, self.height = step, value


async def _searched(auditing: Auditing, unit: _Unit) -> Judgment:
    """Climb from a passage to one that the judge grades higher; see `insert_word`.

    The call store answers the steps of an earlier audit, so that a search goes on where it was
    stopped.

    Raises:
        CallError: No step got a grade, or what the search ended with did not.
    """
    attack, chance = ATTACKS[unit.attack], draws(unit.attack, unit.pair, auditing.seed)
    start = unit.before or _LOWEST
    search, failed = _Search(unit.pair, (start, -1.0)), CallError("error", "no call for a search")
    for _ in range(auditing.search_calls - 1):
        step = replace(search.at, text=attack.make(Target(search.at), chance) or search.at.text)
        try:
            search.take(step, await auditing.judge.judge(step))
        except CallError as error:
            failed = error
            if auditing.is_dry:
                search.at = step  # As long as it can get, and no request like one before.
        if search.height[0] >= RELEVANT_FROM:
            break
    if auditing.is_dry or search.height[0] > start:
        return await auditing.again.judge(search.at)
    if search.said is None:
        raise failed
    return search.said


def _by_pair(results: Iterable[_JudgedText]) -> dict[str, Judgment | None]:
    return {given.unit.pair.key: given.judgment for given in results}


def _trial(given: _JudgedText) -> Iterator[Trial]:
    before = given.unit.before
    if before is not None:
        pair = given.unit.pair
        after = given.judgment.grade if given.judgment else None
        yield Trial(pair.query_id, pair.chunk_id, before, after)


def _record(
    samples: Sequence[Sample],
    plain: Collected[_JudgedText],
    findings: tuple[AttackFindings, ...],
    auditing: Auditing,
) -> JudgeAudit:
    by_pair = _by_pair(plain.results)
    own = [by_pair.get(sample.pair.key) for sample in samples]
    grades = [judgment.grade for judgment in own if judgment is not None]
    judge = auditing.judge.provenance
    if any(each and each.provenance and each.provenance.kind == "mock" for each in own):
        judge = judge.model_copy(update={"kind": "mock"})
    return JudgeAudit(
        judge=judge,
        temperature=None,
        seed=auditing.seed,
        n_pairs=len(samples),
        n_queries=len({sample.pair.query_id for sample in samples}),
        grades=tuple(grades.count(grade) for grade in ANY),
        n_plain=len(plain.results),
        n_plain_failed=len(plain.failures),
        attacks=findings,
    )
