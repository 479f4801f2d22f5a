"""Finding why runs did badly: by records first, then by the texts of a few chunks, in one pass.

Each rule looks at one query and returns its finding, or nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.evaluating.causes.catalogue import CauseCode, Causes
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.runs import DEPTH, PRIMARY, MeasuredRun, Task
from ragforge.measures import Measure, evaluate, parse_measure
from ragforge.measures.listed_relevance import grounds
from ragforge.records import Chunk, Query

_LEAST_HALF_CHARS: Final = 12
"""A shorter half of a quote may stand anywhere by chance."""
_NEAR_CHARS: Final = 200
"""Between the end of a chunk and the start of the next there may be a title."""
_CROWDED: Final = 3
"""Repeats crowd if they take at least one of so many places above the first relevant chunk."""
FULL_GRADE: Final = 3
"""Of a chunk that answers on its own."""
_PART_GRADE: Final = 2
_ROUNDING: Final = 1e-9
"""Differences that rounding makes."""
_SETS: Final = frozenset({"SetP", "SetF"})
_FIRST_ALONE: Final = frozenset({"RR", "Success"})
"""Measures of where the first relevant chunk is: nothing below it moves them."""
"""Measures that are best where nothing but relevant chunks is retrieved."""


@dataclass(frozen=True, slots=True)
class _Place:
    doc_id: str
    start: int
    end: int


class ChunkMarks:
    """Keeps what is needed of the chunks that were asked for, not their texts."""

    def __init__(self) -> None:
        from ragforge.corpus.near_duplicates import (
            Repeats,  # It takes numpy, which few callers need.
        )

        self._compared: set[str] = set()
        self._quotes: dict[str, set[str]] = {}
        self._halves: dict[str, tuple[str, str, str]] = {}
        self._rows: list[str] = []
        self._repeats = Repeats()
        self._placed: set[str] = set()
        self._places: dict[str, _Place] = {}
        self._holds: dict[tuple[str, str], bool] = {}

    def compare(self, chunk_ids: Iterable[str]) -> None:
        """Ask for chunks to be compared with each other."""
        self._compared.update(chunk_ids)

    def look_for(self, quote: str, chunk_ids: Iterable[str]) -> None:
        """Ask for a quote to be looked for in chunks."""
        from ragforge.corpus.quote_locations import fold

        if quote not in self._halves:
            whole = fold(quote)
            middle = len(whole) // 2
            self._halves[quote] = whole, whole[:middle].strip(), whole[middle:].strip()
        for chunk_id in chunk_ids:
            self._quotes.setdefault(chunk_id, set()).add(quote)

    def place(self, chunk_ids: Iterable[str]) -> None:
        """Ask for where chunks stand in their documents."""
        self._placed.update(chunk_ids)

    def take(self, chunk: Chunk) -> None:
        """Take a chunk; one that nobody asked for is of no account."""
        from ragforge.corpus.quote_locations import fold

        chunk_id = chunk.chunk_id
        if chunk_id in self._compared:
            self._rows.append(chunk_id)
            self._repeats.add(chunk.text)
        if chunk_id in self._placed:
            self._places[chunk_id] = _Place(chunk.doc_id, chunk.start, chunk.end)
        rest = []
        for quote in self._quotes.get(chunk_id, ()):
            if quote in chunk.text:
                self._holds[quote, chunk_id] = True
            else:
                rest.append(quote)
        if rest:
            folded = fold(chunk.text)
            for quote in rest:
                self._look(quote, chunk_id, folded)

    def repeated(self, chunk_ids: Sequence[str]) -> list[int]:
        """Return the places, from 0, of chunks that say nearly what an earlier one says."""
        firsts = self._first
        if firsts.keys().isdisjoint(chunk_ids):
            return []
        seen, repeats = set(), []
        for place, chunk_id in enumerate(chunk_ids):
            first = firsts.get(chunk_id, chunk_id)
            if first in seen:
                repeats.append(place)
            seen.add(first)
        return repeats

    def cut(self, quote: str, chunk_ids: Iterable[str]) -> bool:
        """Whether none of these chunks has a quote whole, and some has a half of it."""
        held = [self._holds.get((quote, chunk_id)) for chunk_id in chunk_ids]
        return True not in held and False in held

    def neighbours(self, chunk_ids: Collection[str]) -> bool:
        """Whether these chunks, two or more, stand one behind the other in one document."""
        known = [self._places.get(chunk_id) for chunk_id in chunk_ids]
        placed = sorted((p.doc_id, p.start, p.end) for p in known if p is not None and p.end)
        return len(placed) == len(known) > 1 and all(
            one[0] == other[0] and other[1] - one[2] <= _NEAR_CHARS
            for one, other in pairwise(placed)
        )

    def _look(self, quote: str, chunk_id: str, folded: str) -> None:
        whole, *halves = self._halves[quote]
        if whole in folded:
            self._holds[quote, chunk_id] = True
        elif any(len(half) >= _LEAST_HALF_CHARS and half in folded for half in halves):
            self._holds[quote, chunk_id] = False

    @cached_property
    def _first(self) -> dict[str, str]:
        """The first chunk of each group of repeats, by each other of it."""
        pairs = dict(self._repeats.near()) | dict(self._repeats.exact()) if self._rows else {}
        return {self._rows[row]: self._rows[first] for row, first in pairs.items()}


class Case(NamedTuple):
    """A query on which a run did badly, with all that the rules look at."""

    query: Query
    state: CauseCode | None
    """Why there is no value, where there is none."""
    ranked: tuple[str, ...]
    grades: Mapping[str, int | None]
    threshold: int
    measure: Measure
    marks: ChunkMarks
    has_full_grades: bool
    """Whether some judgment of the set says that a chunk answers on its own."""
    noun: str
    """What is ranked and labelled: chunk or document."""
    listed: frozenset[str] | None
    """The relevant chunks, where a list says which they are; None where the grades do."""
    absent: frozenset[str]
    """Relevant chunks that the corpus does not have."""
    cutoff: int
    """The last rank that the measure looks at; 10 where it looks at all."""
    top: tuple[str, ...]
    """The ranks that are looked at for holes and repeats."""
    relevant: frozenset[str]
    """The chunks known to be relevant."""
    relevant_ranks: Sequence[int]
    """Where relevant chunks stand in the whole ranking."""
    first: int | None
    """Rank of the first relevant chunk."""
    above: tuple[str, ...]
    """The top as far as it stands above the first relevant chunk."""

    @property
    def compared(self) -> tuple[str, ...]:
        """The chunks among which repeats could have crowded out a relevant one."""
        beyond = range(self.cutoff + 1, self.cutoff + len(self.top) + 1)
        if any(rank in beyond for rank in self.relevant_ranks):
            return self.top
        return self.above if len(self.above) > 1 else ()

    @property
    def parts(self) -> list[str]:
        """The chunks that answer in part."""
        return [chunk_id for chunk_id, grade in self.grades.items() if grade == _PART_GRADE]

    def is_hole(self, chunk_id: str) -> bool:
        """Whether a chunk has no grade, and is not listed as relevant."""
        return self.grades.get(chunk_id) is None and chunk_id not in (self.listed or ())


Rule = Callable[[Case], str | None]
"""Returns what it found, "" where there is nothing to add, and None where it does not apply."""


def evidence_chunks(query: Query, relevant: frozenset[str]) -> set[str]:
    """Return the chunks in which a query's quotes are looked for."""
    return {*relevant, *query.source_chunk_ids, *(item.chunk_id for item in query.evidence)}


def apply_rules(case: Case) -> dict[CauseCode, str]:
    """Return the causes that apply with what was found, the likely one first; at least one."""
    if case.state is not None:
        return {case.state: ""}
    if not case.relevant:
        return {"judging_failed": ""} if _any_failed(case) else {"no_relevant_known": ""}
    if not case.ranked:
        return {"nothing_retrieved": ""}
    found = {code: rule(case) for code, rule in RULES.items()}
    applying = {code: detail for code, detail in found.items() if detail is not None}
    return applying or _order_or_missed(case)


def _order_or_missed(case: Case) -> dict[CauseCode, str]:
    """Return what is left where no rule applies: the order, or lesser chunks that are missing."""
    top = case.ranked[: case.cutoff]
    grades = [case.grades.get(chunk_id) or 0 for chunk_id in top]
    graded = {chunk_id for chunk_id, grade in case.grades.items() if grade}
    missed = graded.difference(top)
    if missed and grades == sorted(grades, reverse=True):
        return {"some_missed": f"{len(missed)} of {len(graded)} with a grade above 0"}
    return {"order": ""}


def _any_failed(case: Case) -> bool:
    return any(grade is None for grade in case.grades.values())


def _unjudged_on_top(case: Case) -> str | None:
    holes = sum(map(case.is_hole, case.top))
    above = sum(map(case.is_hole, case.above))
    if above and 2 * above >= len(case.above):
        return f"{above} of the {plural(len(case.above), case.noun)} above have no grade"
    if case.first is not None and case.measure.name in _FIRST_ALONE:
        return None  # What stands below moves no value.
    if 2 * holes > len(case.top) or (holes and case.measure.name == "Judged"):
        return f"{holes} of the top {len(case.top)} have no grade"
    return None


def _evidence_cut(case: Case) -> str | None:
    among = evidence_chunks(case.query, case.relevant)
    if any(case.marks.cut(item.quote, among) for item in case.query.evidence):
        return "the quote runs over two chunks"
    if not case.has_full_grades or any(item.hop > 1 for item in case.query.evidence):
        return None
    grades = {grade for grade in case.grades.values() if grade is not None}
    if max(grades, default=0) < FULL_GRADE and case.marks.neighbours(case.parts):
        return "neighbouring chunks answer in part, none on its own"
    return None


def _duplicates_crowd(case: Case) -> str | None:
    compared = case.compared
    places = case.marks.repeated(compared)
    if not places:
        return None
    repeats = [at for at in places if compared[at] not in case.relevant]
    above = [at for at in repeats if at < len(case.above)]
    last = case.cutoff
    pushed_out = any(last < rank <= last + len(repeats) for rank in case.relevant_ranks)
    if not pushed_out and not (above and _CROWDED * len(above) >= len(case.above)):
        return None
    if not _better_without(case, {compared[at] for at in repeats}):
        return None
    where = f"of the top {len(compared)}" if compared == case.top else f"of {len(compared)} above"
    return f"{len(repeats)} {where} repeat others"


def _better_without(case: Case, dropped: Set[str]) -> bool:
    kept = [chunk_id for chunk_id in case.ranked if chunk_id not in dropped]
    before, after = (
        evaluate(
            {"": case.grades},
            {"": ranked},
            [case.measure],
            rel_threshold=case.threshold,
            relevant=None if case.listed is None else {"": case.listed},
        ).values(case.measure)[0]
        for ranked in (list(case.ranked), kept)
    )
    return bool(after > before)


def _not_in_corpus(case: Case) -> str | None:
    missed = case.relevant.difference(case.ranked[: case.cutoff])
    if not missed or not missed <= case.absent:
        return None
    return f"{len(missed)} of {plural(len(case.relevant), f'relevant {case.noun}')}"


def _not_retrieved(case: Case) -> str | None:
    if case.first is not None or case.relevant <= case.absent:
        return None
    known = plural(len(case.relevant), f"relevant {case.noun}")
    return f"{known} known, none in {len(case.ranked)} ranks"


def _beyond_cutoff(case: Case) -> str | None:
    if case.first is None or case.first <= case.cutoff:
        return None
    return f"the first is at rank {case.first}"


def _ranked_low(case: Case) -> str | None:
    if case.first is None or case.first == 1 or case.first > case.cutoff:
        return None
    return f"the first is at rank {case.first}"


def _some_missed(case: Case) -> str | None:
    if case.first is None or case.first > case.cutoff:
        return None
    found = sum(rank <= case.cutoff for rank in case.relevant_ranks)
    missed = len(case.relevant) - found
    possible = min(len(case.relevant), case.cutoff)
    if found == possible or _not_in_corpus(case) is not None:
        return None
    return f"{missed} of {len(case.relevant)}"


RULES: Final[dict[CauseCode, Rule]] = {
    "unjudged_on_top": _unjudged_on_top,
    "evidence_cut": _evidence_cut,
    "duplicates_crowd": _duplicates_crowd,
    "not_retrieved": _not_retrieved,
    "beyond_cutoff": _beyond_cutoff,
    "ranked_low": _ranked_low,
    "not_in_corpus": _not_in_corpus,
    "some_missed": _some_missed,
}
"""In the order in which they explain: what casts doubt on the value first, what is a matter of the
chunks next, and last what is left to the ranking."""


@dataclass(frozen=True, slots=True)
class _Bad:
    query_id: str
    value: float | None
    best: float | None
    state: CauseCode | None
    """Why there is no value."""


class CauseFinder:
    """Finds the causes of all queries on which runs did badly.

    Args:
        runs: Measured on the task; one in which there was nothing to measure has no causes.
        task: What the runs were measured on.
        measure: By which a query does badly: its value is below the best that its judgments
            allow, or it has none.

    Raises:
        UsageError: The measure cannot be taken.
    """

    def __init__(self, runs: Iterable[MeasuredRun], task: Task, measure: str = PRIMARY) -> None:
        self._task = task
        self._measure = parse_measure(measure)
        self._queries = {query.query_id: query for query in task.queries}
        grades = (grade for judged in task.qrels.values() for grade in judged.values())
        self._has_full_grades = any(grade == FULL_GRADE for grade in grades)
        self._marks = ChunkMarks()
        self._has_corpus = False
        self._missing = {item for key in task.qrels for item in task.relevant_in(key)}
        """Relevant chunks, and documents, that were not among the chunks taken."""
        best = _best_values(task, self._measure)
        self._runs = sorted(runs, key=lambda run: run.name)
        self._bad: dict[str, list[_Bad]] = {}
        for run in self._runs:
            of_run = run.cut_task(task)
            best_of_run = best if of_run is task else _best_values(of_run, self._measure)
            self._bad[run.name] = list(_bad(run, of_run, self._measure, best_of_run))
        for _, _, case in self._cases():
            self._marks.compare(case.compared)
            self._look_for_quotes(case)

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk of the corpus; most are of no account."""
        self._marks.take(chunk)
        self._missing -= {chunk.chunk_id, chunk.doc_id}
        self._has_corpus = True

    def bad_queries(self) -> dict[str, frozenset[str]]:
        """Return the queries with a value below the best that their judgments allow, by run."""
        return {
            name: frozenset(bad.query_id for bad in found if bad.value is not None)
            for name, found in self._bad.items()
        }

    def causes(self) -> dict[str, dict[str, Causes]]:
        """Return why queries did badly, by run and query, both sorted."""
        absent = frozenset(self._missing) if self._has_corpus else frozenset[str]()
        by_run: dict[str, dict[str, Causes]] = {run.name: {} for run in self._runs}
        for name, bad, case in self._cases(absent):
            codes = apply_rules(case)
            causes = Causes(
                query_id=bad.query_id,
                value=bad.value,
                best=bad.best,
                codes=tuple(codes),
                detail=next(iter(codes.values())),
            )
            by_run[name][bad.query_id] = causes
        return by_run

    def _cases(self, absent: frozenset[str] = frozenset()) -> Iterator[tuple[str, _Bad, Case]]:
        for run in self._runs:
            for bad in self._bad[run.name]:
                yield run.name, bad, self._case(run, bad, absent)

    def _case(self, run: MeasuredRun, bad: _Bad, absent: frozenset[str]) -> Case:
        task = run.cut_task(self._task)
        ranked, grades = run.ranked.get(bad.query_id, ()), task.qrels[bad.query_id]
        # What was retrieved without a grade casts no doubt on a measure of evidence.
        of_evidence = self._measure.is_of_evidence
        nothing = (item for item in ranked if of_evidence or not task.leaves_open(item))
        grades = {**dict.fromkeys(nothing, 0), **grades}
        threshold = self._measure.rel or self._task.rel_threshold
        listed = self._listed(bad.query_id, task)
        relevant = (
            frozenset(
                chunk_id
                for chunk_id, grade in grades.items()
                if grade is not None and grade >= threshold
            )
            if listed is None
            else listed
        )
        ranks = [rank for rank, chunk_id in enumerate(ranked, 1) if chunk_id in relevant]
        first = ranks[0] if ranks else None
        cutoff = self._measure.cutoff or DEPTH
        top = ranked[: min(cutoff, DEPTH)]
        return Case(
            query=self._queries[bad.query_id],
            state=bad.state,
            ranked=ranked,
            grades=grades,
            threshold=threshold,
            measure=self._measure,
            marks=self._marks,
            has_full_grades=self._has_full_grades,
            noun=self._task.noun(bad.query_id),
            listed=listed,
            absent=absent,
            cutoff=cutoff,
            top=top,
            relevant=relevant,
            relevant_ranks=ranks,
            first=first,
            above=top if first is None else top[: first - 1],
        )

    def _listed(self, query_id: str, task: Task) -> frozenset[str] | None:
        """Return what a list calls relevant; None where the measure or the set goes by grades."""
        if self._measure.rel is not None or query_id not in task.relevant:
            return None
        return frozenset(task.relevant[query_id])

    def _look_for_quotes(self, case: Case) -> None:
        among = evidence_chunks(case.query, case.relevant)
        for item in case.query.evidence:
            self._marks.look_for(item.quote, among)
        self._marks.place(case.parts)


def _bad(
    run: MeasuredRun, task: Task, measure: Measure, best: Mapping[str, float]
) -> Iterator[_Bad]:
    """Yield the queries that did badly, sorted by id."""
    if run.scores is None:
        return
    scores = run.scores.rescore([measure], rel_threshold=task.rel_threshold)
    if measure.is_of_evidence:
        best = dict.fromkeys(scores.query_ids_of(measure), 1.0)
    states: dict[str, CauseCode] = {
        **dict.fromkeys(scores.failed, "retriever_failed"),
        **dict.fromkeys(
            scores.without_judgments, "no_relevant_known" if task.is_complete else "not_judged"
        ),
        **dict.fromkeys(scores.judgments_failed, "judging_failed"),
    }
    by_query = scores.by_query(measure)
    found = [
        _Bad(query_id, None, None, state)
        for query_id, state in states.items()
        if query_id not in by_query
    ]
    for query_id, value in by_query.items():
        if value < best[query_id] - _ROUNDING or not best[query_id]:
            found.append(_Bad(query_id, value, best[query_id], None))
    yield from sorted(found, key=lambda bad: bad.query_id)


def _best_values(task: Task, measure: Measure) -> dict[str, float]:
    """Return the highest value of each query that its judgments allow; {} where none tells."""
    if measure.is_of_evidence:
        return {}
    [ground] = grounds(task.qrels, task.relevant, [str(measure)], task.rel_threshold)
    lowest = (measure.rel or ground.rel_threshold) if measure.name in _SETS else 0
    ideal = {
        query_id: _ordered(judged, lowest) for query_id, judged in ground.qrels.items() if judged
    }
    if not ideal:
        return {}
    scores = evaluate(ground.qrels, ideal, [measure], rel_threshold=ground.rel_threshold)
    return dict(zip(scores.query_ids, scores.values(measure), strict=True))


def _ordered(judged: Mapping[str, int | None], lowest: int) -> list[str]:
    known = [(-grade, chunk_id) for chunk_id, grade in judged.items() if grade is not None]
    return [chunk_id for grade, chunk_id in sorted(known) if -grade >= lowest]
