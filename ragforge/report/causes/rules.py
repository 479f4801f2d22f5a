"""The rules that tell causes: each looks at one query and says what it found, or nothing."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ragforge.measures import Measure, evaluate
from ragforge.records import Query
from ragforge.report.causes.catalogue import CauseCode
from ragforge.report.causes.chunk_marks import ChunkMarks
from ragforge.report.runs import DEPTH
from ragforge.report.shown import plural

_CROWDED: Final = 3
"""Repeats crowd if they take at least one of so many places above the first relevant chunk."""
FULL_GRADE: Final = 3
"""Of a chunk that answers on its own."""
_PART_GRADE: Final = 2


@dataclass(frozen=True)
class Case:
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
    noun: str = "chunk"
    """What is ranked and labelled: chunk or document."""
    listed: frozenset[str] | None = None
    """The relevant chunks, where a list says which they are; None where the grades do."""
    absent: frozenset[str] = frozenset()
    """Relevant chunks that the corpus does not have."""

    @property
    def cutoff(self) -> int:
        """The last rank that the measure looks at; 10 where it looks at all."""
        return self.measure.cutoff or DEPTH

    @property
    def top(self) -> tuple[str, ...]:
        """The ranks that are looked at for holes and repeats."""
        return self.ranked[: min(self.cutoff, DEPTH)]

    @cached_property
    def relevant(self) -> frozenset[str]:
        """The chunks known to be relevant."""
        if self.listed is not None:
            return self.listed
        return frozenset(
            chunk_id
            for chunk_id, grade in self.grades.items()
            if grade is not None and grade >= self.threshold
        )

    @cached_property
    def relevant_ranks(self) -> list[int]:
        """Where relevant chunks stand in the whole ranking."""
        return [rank for rank, chunk in enumerate(self.ranked, 1) if chunk in self.relevant]

    @property
    def first(self) -> int | None:
        """Rank of the first relevant chunk."""
        return self.relevant_ranks[0] if self.relevant_ranks else None

    @property
    def above(self) -> tuple[str, ...]:
        """The top as far as it stands above the first relevant chunk."""
        return self.top if self.first is None else self.top[: self.first - 1]

    @property
    def compared(self) -> tuple[str, ...]:
        """The chunks among which repeats could have crowded out a relevant one."""
        last = self.cutoff
        if any(last < rank <= last + len(self.top) for rank in self.relevant_ranks):
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
    return {code: detail for code, detail in found.items() if detail is not None} or _rest(case)


def _rest(case: Case) -> dict[CauseCode, str]:
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
