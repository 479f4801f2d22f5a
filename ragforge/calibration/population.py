"""The pairs that measures of runs depend on, each with its weight and the judge's grade.

A pair is a query and a text: chunks of a query with one text are one pair, and weigh together.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.graded_by import judge_text
from ragforge.evaluating.judgments import failed_by_name, settle
from ragforge.evaluating.runs import rank_order
from ragforge.evaluating.same_judge import canonical_judge_keys
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import document_level
from ragforge.files.set.stale_runs import usable_runs
from ragforge.measures import parse_measure
from ragforge.measures.agreement import N_GRADES
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import N_PARTS, Integers
from ragforge.measures.measure_names import Measure
from ragforge.records import Judgment, Provenance, SampledRun, label_text_sha256
from ragforge.records.calibrations import SampleOf

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNGRADED: Final = N_GRADES
"""Stands for the grade where the judge gave none."""
_MEASURES: Final = ("P", "DCG", "nDCG")
_LEVEL_SHARE: Final = 0.5
"""What a level weighs beside a difference, where both are asked for."""
_USUAL_THRESHOLD: Final = 2


class Unit(NamedTuple):
    """A pair."""

    query_id: str
    chunk_id: str
    """The first by id of those with the text."""
    text_sha256: str
    same_text: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What a calibration is to answer."""

    runs: tuple[str, ...]
    """The others are held against the first."""
    measures: tuple[str, ...]
    of: SampleOf = "both"
    judge: Provenance | str | None = None
    """The model, or all that `judge_text` says; None for the one that graded, where that is one."""
    rel_threshold: int = _USUAL_THRESHOLD

    def __post_init__(self) -> None:
        if not self.runs or not self.measures:
            raise UsageError("name at least one run and one measure")
        twice = next((run for run in self.runs if self.runs.count(run) > 1), None)
        if twice is not None:
            raise UsageError(f"run {twice!r} is named twice")
        if self.of == "differences" and len(self.runs) < 2:
            raise UsageError("differences: name two runs or more")
        for name in self.measures:
            correctable(name)

    @property
    def parsed(self) -> dict[str, Measure]:
        """The measures by their canonical names."""
        return {str(measure): measure for measure in map(parse_measure, self.measures)}

    @property
    def depth(self) -> int:
        """Ranks that the measures look at."""
        return max(measure.cutoff or 0 for measure in self.parsed.values())

    @property
    def needs_ideal(self) -> bool:
        """Whether a measure depends on what no run retrieved."""
        return any(measure.name == "nDCG" for measure in self.parsed.values())


@dataclass(frozen=True, slots=True)
class LabelPopulation:
    """The pairs that decide, N of them; all arrays have the shape (N,) and are aligned."""

    question: Question
    query_ids: tuple[str, ...]
    """Of the measures, sorted; with those that have no pair."""
    units: tuple[Unit, ...]
    """Sorted."""
    queries: Integers
    """Places in `query_ids`."""
    judged: Integers
    """From 0 to 3; `UNGRADED` where the judge gave none. Texts with several have the first."""
    levels: Mapping[tuple[str, str], Floats]
    """By measure and run: what a value of 1 adds to the sum over queries."""
    judge: Provenance
    runs: tuple[SampledRun, ...]
    grades_sha256: str
    n_vanished: int
    """Pairs whose text is no longer in the set."""
    own: Mapping[str, NDArray[np.bool_]]
    """By run: whether a query is one of its, on which it did not fail; shape (queries,)."""
    n_failed: Mapping[str, int]
    """By run: queries on which it failed."""
    n_left_out: int
    """Queries that are left out of all, as a run failed on them: of differences alone."""

    def difference(self, measure: str, run: str) -> Floats:
        """Return the weights of a run minus those of the first, on the queries of both."""
        first = self.question.runs[0]
        found: Floats = self.levels[measure, run] - self.levels[measure, first]
        found[~self.counted(run, first)[self.queries]] = 0.0
        return found

    def counted(self, run: str, against: str = "") -> NDArray[np.bool_]:
        """Return which queries a level of a run is over, or its difference from another."""
        found: NDArray[np.bool_] = self.own[run] & self.own[against or run]
        return found

    def within(self, counted: NDArray[np.bool_]) -> LabelPopulation:
        """Return the pairs of some of the queries.

        Args:
            counted: Which, shape (queries,).
        """
        kept = np.flatnonzero(counted[self.queries])
        numbers = np.cumsum(counted) - 1
        return replace(
            self.of_units(kept),
            query_ids=tuple(
                key for key, is_kept in zip(self.query_ids, counted, strict=True) if is_kept
            ),
            queries=numbers[self.queries[kept]],
            own={run: of[counted] for run, of in self.own.items()},
        )

    def of_units(self, kept: Integers) -> LabelPopulation:
        """Return some of the pairs, by their places, of the same queries."""
        return replace(
            self,
            units=tuple(self.units[i] for i in kept),
            queries=self.queries[kept],
            judged=self.judged[kept],
            levels={key: weights[kept] for key, weights in self.levels.items()},
        )

    @property
    def n_ungraded(self) -> int:
        """Pairs without a grade by the judge."""
        return int((self.judged == UNGRADED).sum())

    def judge_values(self, measure: Measure, threshold: int) -> Floats:
        """Return the value of each pair by the judge's grade as it is; 0 without one."""
        judged = np.where(self.judged == UNGRADED, 0, self.judged)
        found = (judged >= threshold) if measure.name == "P" else judged
        return found.astype(np.float64)

    def weights(self) -> Floats:
        """Return what each pair weighs at most in what is asked, from 0 to 1."""
        found = np.zeros(len(self.units))
        runs, of = self.question.runs, self.question.of
        for measure in self.question.parsed:
            if of != "differences" or len(runs) < 2:
                levels = np.max([self.levels[measure, run] for run in runs], axis=0)
                share = 1.0 if of == "levels" or len(runs) < 2 else _LEVEL_SHARE
                found = np.maximum(found, share * _scaled(levels))
            if of != "levels" and len(runs) > 1:
                apart = [np.abs(self.difference(measure, run)) for run in runs[1:]]
                found = np.maximum(found, _scaled(np.max(apart, axis=0)))
        return found

    def digests(self, seed: int) -> UnitNumbers:
        """Return numbers of each pair that seed, query and text alone decide."""
        every = b"".join(
            hashlib.sha256(f"{seed}\0{unit.query_id}\0{unit.text_sha256}".encode()).digest()
            for unit in self.units
        )
        words = np.frombuffer(every, dtype=">u8").reshape(-1, 4)
        numbers = (words >> np.uint64(11)).astype(np.float64) / 2**53
        parts = (words[:, 1] % np.uint64(N_PARTS)).astype(np.intp)
        return UnitNumbers(numbers[:, 0], parts, numbers[:, 2])


@dataclass(frozen=True, slots=True)
class UnitNumbers:
    """What chance decides of each pair, the same on every day."""

    places: Floats
    """In [0, 1): in this order the pairs of a stratum are drawn."""
    parts: Integers
    """From 0 to N_PARTS - 1."""
    repeats: Floats
    """In [0, 1): below the share of repeats, a pair is shown twice."""


def is_correctable(name: str) -> bool:
    """Whether labels can correct a measure."""
    measure = parse_measure(name)
    has_cutoff = measure.cutoff is not None and measure.gain == "linear"
    return measure.name in _MEASURES and has_cutoff


def correctable(name: str) -> Measure:
    """Return a measure that labels can correct.

    Raises:
        UsageError: It is none of them.
    """
    measure = parse_measure(name)
    if not is_correctable(name):
        raise UsageError(
            f"measure {name!r}: a sample of labels corrects P@k, DCG@k and nDCG@k with linear "
            "gain; others are no sum over pairs, and need a label on each pair that they look at"
        )
    return measure


def load_population(
    dataset: Dataset, question: Question, drawn: Iterable[tuple[str, str, str]] = ()
) -> LabelPopulation:
    """Return the pairs that decide a question on a dataset.

    Args:
        dataset: Has queries, chunks, judgments and the runs.
        question: What is asked.
        drawn: Query, chunk and digest of the text of pairs that a sample drew: they are known by it
            where their text is gone.

    Raises:
        DataError: A run is missing or stale, a judge graded nothing, or several did.
        UsageError: The labels of the set name documents, or a run is of a weighted sample.
    """
    judgments = dataset.judgments()
    if document_level(dataset, dataset.judgment_table()).query_ids:
        raise UsageError(
            f"{dataset.path}: has labels that name documents, and people are shown chunks, of "
            "which none tells the grade of its document; make a set whose chunks are whole "
            "documents ({id, text} as `ragforge import --chunks`), and calibrate there"
        )
    judge, grades = _grades(dataset, judgments, question.judge)
    asked = _queries(dataset, question, judgments)
    rankings, failed = _rankings(dataset, question, asked)
    own = {run: asked[run] - failed[run] for run in question.runs}
    n_left_out = 0
    if question.of == "differences":
        shared = set.intersection(*own.values())
        n_left_out = len(set.intersection(*asked.values()) - shared)
        own = dict.fromkeys(own, shared)
    query_ids = tuple(sorted(set.union(*own.values())))
    pairs = _pairs(question, rankings, grades if question.needs_ideal else {}, query_ids)
    texts = _text_digests(dataset, {pair[1] for pair in pairs}, drawn, pairs)
    found = _units(question, query_ids, pairs, texts.digests, rankings, grades)
    kept = replace(
        found,
        judge=judge,
        n_vanished=texts.n_vanished,
        own={
            run: np.array([key in of for key in query_ids], dtype=bool) for run, of in own.items()
        },
        n_failed={run: len(of) for run, of in failed.items()},
        n_left_out=n_left_out,
    )
    return _without_weight(kept)


def _scaled(weights: Floats) -> Floats:
    heaviest = float(weights.max(initial=0.0))
    return weights / heaviest if heaviest else weights


def _queries(
    dataset: Dataset, question: Question, judgments: Iterable[Judgment]
) -> dict[str, set[str]]:
    """Return the answerable queries with a judgment that each run was made for.

    Of differences alone they are those of all runs.
    """
    judged = {judgment.query_id for judgment in judgments}
    every = {
        query.query_id
        for query in dataset.require_accepted_queries()
        if query.answerable and query.query_id in judged
    }
    found = {name: set(every) for name in question.runs}
    for name in question.runs:
        chosen = dataset.chosen_of_run(name)
        if chosen is not None and chosen.design is not None:
            raise UsageError(
                f"run {name!r} is of a weighted sample of the queries: the sum that labels correct "
                "counts all queries alike; retrieve for all of them (`ragforge retrieve` without "
                "--sample), and calibrate that run"
            )
        if chosen is not None:
            found[name] &= chosen.query_ids
    if question.of == "differences":
        return dict.fromkeys(found, set.intersection(*found.values()))
    return found


def _rankings(
    dataset: Dataset, question: Question, asked: Mapping[str, set[str]]
) -> tuple[dict[str, dict[str, tuple[str, ...]]], dict[str, set[str]]]:
    """Return the top of each run by query, and the queries on which it failed."""
    usable = usable_runs(dataset, list(question.runs)).require_any()
    failed = failed_by_name(dataset.failures(), "retrieve")
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    without: dict[str, set[str]] = {}
    for name in question.runs:
        found[name] = {
            item.query_id: rank_order(item.ranking)[: question.depth]
            for item in usable.rankings(name)
            if item.query_id in asked[name]
        }
        lost = failed.get(name, set()) | set(usable.unasked.get(name, set()))
        without[name] = (lost & asked[name]) - found[name].keys()
    return found, without


def _grades(
    dataset: Dataset, judgments: Iterable[Judgment], wanted: Provenance | str | None
) -> tuple[Provenance, dict[str, dict[str, int]]]:
    """Return a judge with its grades by query and chunk; those by evidence are among them."""
    given = [item for item in chain(judgments, dataset.label_checks()) if item.source != "human"]
    by_rule = [item for item in given if item.source == "evidence"]
    by_others = list(_by_judges(given))
    judge_of = _judges_of({who for who, _ in by_others})
    by_judge: dict[Provenance, list[Judgment]] = {}
    for who, item in by_others:
        by_judge.setdefault(judge_of[who], []).append(item)
    counts = Counter({who: len(of) for who, of in by_judge.items()})
    # Whoever has label checks alone graded the set before whoever grades it now.
    now = {judge_of[who] for who, _ in _by_judges(judgments)}
    if wanted is None and len(now) == 1:
        counts = Counter({who: counts[who] for who in now})
    judge = _the_judge(dataset, counts, wanted)
    found: dict[str, dict[str, int]] = {}
    for query_id, of_query in settle([*by_rule, *by_judge[judge]]).items():
        graded = {name: item.grade for name, item in of_query.items() if item.grade is not None}
        found[query_id] = graded
    return judge, found


def counts_no_more(dataset: Dataset, judge: Provenance) -> bool:
    """Whether other judges alone gave the grades that count; label checks do not.

    Raises:
        DataError: A file cannot be read.
    """
    now = {who for who, _ in _by_judges(dataset.judgments())}
    checked = {who for who, _ in _by_judges(dataset.label_checks())}
    judge_of = _judges_of({*now, *checked, judge})
    return bool(now) and judge_of[judge] not in {judge_of[who] for who in now}


def _by_judges(given: Iterable[Judgment]) -> Iterator[tuple[Provenance, Judgment]]:
    """Yield what judges said, each with who did."""
    for item in given:
        if item.source not in ("human", "evidence") and item.provenance is not None:
            yield _identity(item.provenance), item


def _judges_of(named: Collection[Provenance]) -> dict[Provenance, Provenance]:
    """Return the judge that each name is of: what a batch left to be asked for alone is of its."""
    keys: dict[Provenance, tuple[str, str, str, str]] = {
        who: (who.kind, who.model, who.protocol, who.prompt_sha256) for who in named
    }
    same = canonical_judge_keys(keys.values())
    by_key = {keys[who]: who for who in sorted(named, key=lambda who: who.prompt, reverse=True)}
    return {who: by_key[same[key]] for who, key in keys.items()}


def _the_judge(
    dataset: Dataset, counts: Counter[Provenance], wanted: Provenance | str | None
) -> Provenance:
    if not counts:
        raise DataError(
            f"{dataset.path}: no judge graded anything; `ragforge judge` does, and people's labels "
            "then correct it"
        )
    if isinstance(wanted, Provenance) and wanted not in counts:
        there = ", ".join(sorted(map(judge_text, counts)))
        raise DataError(
            f"{dataset.path}: {judge_text(wanted)} graded nothing that is left; there are "
            f"grades of {there}"
        )
    if isinstance(wanted, Provenance):
        return wanted
    if wanted is not None:
        named = [who for who in counts if wanted in (who.model, judge_text(who))]
        if not named:
            raise DataError(f"{dataset.path}: judge {wanted!r} graded nothing")
        counts = Counter({who: counts[who] for who in named})
    if len(counts) > 1:
        listed = ", ".join(f"{judge_text(who)}: {n:,}" for who, n in counts.most_common())
        raise UsageError(
            f"{dataset.path}: several judges graded ({listed}); labels correct one of them, so "
            f"name it (`--judge {shlex.quote(_name_among(counts))}`), or let one grade all: "
            "`ragforge judge --again`"
        )
    return next(iter(counts))


def _name_among(counts: Counter[Provenance]) -> str:
    """Return what names the judge of most grades: its model where no other has that."""
    [(most, _)] = counts.most_common(1)
    has_own_model = [who.model for who in counts].count(most.model) == 1
    return most.model if has_own_model else judge_text(most)


def _identity(provenance: Provenance) -> Provenance:
    """Return who judged, without the call."""
    return Provenance(
        kind=provenance.kind,
        model=provenance.model,
        prompt=provenance.prompt,
        prompt_sha256=provenance.prompt_sha256,
        protocol=provenance.protocol,
    )


def _pairs(
    question: Question,
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
    pool: Mapping[str, Iterable[str]],
    query_ids: Sequence[str],
) -> list[tuple[str, str]]:
    """Return the pairs that a run retrieved, and of a pool all, sorted."""
    found = []
    for query_id in query_ids:
        chunks = set(pool.get(query_id, ()))
        for name in question.runs:
            chunks.update(rankings[name].get(query_id, ()))
        found += [(query_id, chunk_id) for chunk_id in sorted(chunks)]
    return found


@dataclass(frozen=True, slots=True)
class _Texts:
    digests: Mapping[tuple[str, str], str]
    n_vanished: int


def _text_digests(
    dataset: Dataset,
    wanted: set[str],
    drawn: Iterable[tuple[str, str, str]],
    pairs: Iterable[tuple[str, str]],
) -> _Texts:
    """Return the digest of each pair's text."""
    of_sample = {(query_id, chunk_id): digest for query_id, chunk_id, digest in drawn}
    by_chunk: dict[str, str] = {}
    if dataset.chunks_path.exists():
        with dataset.chunk_texts(wanted) as texts:
            by_chunk = {c: label_text_sha256(texts[c]) for c in sorted(wanted) if c in texts}
    found, n_vanished = {}, 0
    for pair in pairs:
        digest = by_chunk.get(pair[1])
        if digest is None:
            n_vanished += 1
            digest = of_sample.get(pair) or hashlib.sha256(f"\0{pair[1]}".encode()).hexdigest()
        found[pair] = digest
    return _Texts(found, n_vanished)


def _units(
    question: Question,
    query_ids: tuple[str, ...],
    pairs: Sequence[tuple[str, str]],
    digests: Mapping[tuple[str, str], str],
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
    grades: Mapping[str, Mapping[str, int]],
) -> LabelPopulation:
    at = {query_id: i for i, query_id in enumerate(query_ids)}
    chunks_of: dict[tuple[str, str], list[str]] = {}
    for query_id, chunk_id in pairs:
        chunks_of.setdefault((query_id, digests[query_id, chunk_id]), []).append(chunk_id)
    units = tuple(
        sorted(
            Unit(query_id, chunks[0], digest, tuple(chunks[1:]))
            for (query_id, digest), chunks in chunks_of.items()
        )
    )
    place = {
        (unit.query_id, chunk_id): i
        for i, unit in enumerate(units)
        for chunk_id in (unit.chunk_id, *unit.same_text)
    }
    judged = np.full(len(units), UNGRADED, dtype=np.intp)
    for i, unit in enumerate(units):
        of_query = grades.get(unit.query_id, {})
        given = [of_query[c] for c in (unit.chunk_id, *unit.same_text) if c in of_query]
        if given:
            judged[i] = given[0]
    levels = {}
    for name, measure in question.parsed.items():
        discounts = _discounts(measure)
        for run in question.runs:
            weights = np.zeros(len(units))
            for query_id in query_ids:
                top = rankings[run].get(query_id, ())[: len(discounts)]
                for rank, chunk_id in enumerate(top):
                    weights[place[query_id, chunk_id]] += discounts[rank]
            levels[name, run] = weights
    return LabelPopulation(
        question,
        query_ids,
        units,
        np.array([at[unit.query_id] for unit in units], dtype=np.intp),
        judged,
        levels,
        Provenance(kind="llm"),
        tuple(
            SampledRun(name=run, rankings_sha256=_digest(sorted(rankings[run].items())))
            for run in question.runs
        ),
        _digest([(*pair, grades.get(pair[0], {}).get(pair[1])) for pair in pairs]),
        0,
        {},
        {},
        0,
    )


def _without_weight(of: LabelPopulation) -> LabelPopulation:
    """Return the pairs that what is asked depends on."""
    if of.question.needs_ideal:
        return of
    return of.of_units(np.flatnonzero(of.weights()))


def highest_value(measure: Measure) -> float:
    """Return the most that P@k or DCG@k can be: all of the top k of the highest grade."""
    return float(_discounts(measure).sum()) * (1 if measure.name == "P" else N_GRADES - 1)


def _discounts(measure: Measure) -> Floats:
    k = measure.cutoff or 0
    if measure.name == "P":
        return np.full(k, 1 / k)
    found: Floats = 1 / np.log2(np.arange(2, k + 2))
    return found


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
