"""Generating a set of queries: in waves, in the plan's order, until enough are accepted."""

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import field, replace
from typing import Protocol

from ragforge.deferred import dataclass
from ragforge.errors import EndpointError
from ragforge.observe import Event
from ragforge.records import Failure, Query, Rejected, Slot
from ragforge.stages.generate.candidates import (
    Anchored,
    Brief,
    Candidate,
    QueryWriter,
    Rejection,
)
from ragforge.stages.generate.checks.checking import CheckedCandidate
from ragforge.stages.generate.gates.checking import check
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.truth import query_id
from ragforge.stages.runner import Work, Workers, run

_WAVE = 96
"""Cells in work at once; a multiple of what the checks put into one call. It must not depend on
the concurrency: the accepted queries would."""

IN_VAIN = 60
"""Sources in a row without an accepted query, after which no more are paid for."""

_UNHEARD = 8
"""Candidates in a row about which the checker was asked without any reply, after which it counts
as down; what it cannot check is not worth writing."""

UNKNOWN = 24
"""Candidates in a row of which the checks could say nothing, after which no more are paid for."""

_NO_CANDIDATE = "no_candidate"
_NO_PARTNER = "no_partner"
_WRITER_FAILED = "writer_failed"


class Checker(Protocol):
    """Checks what passed the rules."""

    async def check(self, items: Sequence[Anchored]) -> list[CheckedCandidate]:
        """Return the gates' verdicts on each candidate, in their order.

        Raises:
            EndpointError, BudgetError: Nothing can be checked any more.
        """


@dataclass(slots=True)
class Generated:
    """What generation left.

    Args:
        queries: Accepted, in the order they were.
        failures: Slots for which the writer gave nothing usable, and checks that failed.
        rejected: Candidates that a gate stopped.
        slots: All that were tried.
        asked: Accepted questions by the chunk they are about.
        n_candidates: Candidates that the rules looked at.
        n_checked: Candidates that were checked by a model, or would have been.
        gave_up: Why no more sources were tried although there are some; "" where that is not so.
        lost: How many slots gave no candidate, by reason.
        n_unheard: Candidates in a row to whose checks no reply came.
        n_unknown: Candidates in a row of which the checks could say nothing.
    """

    queries: list[Query] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    asked: dict[str, list[str]] = field(default_factory=dict)
    n_candidates: int = 0
    n_checked: int = 0
    gave_up: str = ""
    lost: Counter[str] = field(default_factory=Counter)
    n_unheard: int = 0
    n_unknown: int = 0

    def reject(self, slot_id: str, place: int, candidate: Candidate, why: Rejection) -> None:
        """Note that a gate stopped a candidate."""
        self.rejected.append(
            Rejected(
                slot_id=slot_id,
                place=place,
                question=candidate.question,
                answer=candidate.answer,
                code=why.code,
                reason=why.reason,
            )
        )


@dataclass(frozen=True, slots=True)
class Generation:
    """How a set is generated.

    Args:
        writer: Who proposes queries.
        brief: Makes the brief of a slot; None where its chunks cannot be had, such as a second hop.
        taken: The questions that the set has already, retired ones included; grows.
        checks: Checks what passed the rules; None where nothing does.
        workers: How many slots are in work at once, and who is told.
    """

    writer: QueryWriter
    brief: Callable[[Slot], Awaitable[Brief | None]]
    taken: QuestionsAsked
    checks: Checker | None
    workers: Workers


async def generate(
    cells: Iterable[OpenCell], sources: Sources, generation: Generation, generated: Generated
) -> None:
    """Generate a query for each cell; fewer where the corpus carries no more.

    The accepted ones depend on the plan and the replies, not on which reply came first.

    Args:
        cells: What is wanted.
        sources: Which chunks each is to be about.
        generation: How.
        generated: Is filled, also when the run is stopped.

    Raises:
        EndpointError, BudgetError: As the writer or the checks raise them; or no reply comes to
            any check.
    """
    waiting, dry = deque(cells), list[OpenCell]()
    # No chunk comes twice in a wave: what was asked about it before has to be known.
    most = max(1, min(_WAVE, sources.n_chunks))
    in_vain = 0
    generation.workers.observer(Event("stage.start", stage="generate"))
    try:
        while waiting and in_vain < IN_VAIN and generated.n_unknown < UNKNOWN:
            cells_now = [waiting.popleft() for _ in range(min(most, len(waiting)))]
            slots = sources.take(cells_now)
            tried = [(c, slot) for c, slot in zip(cells_now, slots, strict=True) if slot]
            dry += [cell for cell, slot in zip(cells_now, slots, strict=True) if slot is None]
            wave = _Wave(generation, generated)
            await wave.work_off([slot for _, slot in tried])
            in_vain = 0 if wave.accepted else in_vain + len(tried)
            waiting.extend(wave.left(tried))
            if not waiting and wave.unsuited:
                # What did not suit one type may suit another, of which there was nothing left.
                waiting.extend(dry)
                dry.clear()
        if waiting and generated.n_unknown >= UNKNOWN:
            generated.gave_up = "check after check gave no usable verdict"
        elif waiting and in_vain >= IN_VAIN:
            generated.gave_up = "source after source gave none"
    finally:
        generation.workers.observer(Event("stage.end", stage="generate"))


@dataclass(slots=True)
class _Line:
    """The candidates of a brief that nobody has looked at yet."""

    brief: Brief
    rest: Iterator[tuple[int, Candidate]]


@dataclass(slots=True)
class _Wave:
    """Slots that are worked off together.

    Args:
        generation: How.
        generated: Is filled.
        accepted: Ids of the slots that gave a query.
        unsuited: Ids of those whose chunks carry no query of their type.
    """

    generation: Generation
    generated: Generated
    accepted: set[str] = field(default_factory=set)
    unsuited: set[str] = field(default_factory=set)

    async def work_off(self, slots: Sequence[Slot]) -> None:
        """Write, check and accept."""
        briefs = [brief for slot in slots if (brief := await self._brief(slot)) is not None]
        written: dict[str, list[Candidate]] = {}
        try:
            await self._write(briefs, written)
        finally:
            # What is written when a run stops counts, unless it would have to be checked first.
            if self.generation.checks is None:
                self._settle_by_rules(briefs, written)
        if self.generation.checks is not None:
            await self._settle(briefs, written, self.generation.checks)

    def left(self, tried: Sequence[tuple[OpenCell, Slot]]) -> Iterator[OpenCell]:
        """Yield the cells that still need a query."""
        for cell, slot in tried:
            if slot.slot_id not in self.accepted:
                yield OpenCell(cell.number, unsuited=slot.slot_id in self.unsuited)

    async def _brief(self, slot: Slot) -> Brief | None:
        brief = await self.generation.brief(slot)
        self.generated.slots.append(brief.slot if brief else slot)
        if brief is None:
            self.generated.lost[_NO_PARTNER] += 1
            self.unsuited.add(slot.slot_id)
        return brief

    async def _write(self, briefs: list[Brief], written: dict[str, list[Candidate]]) -> None:
        async def write(brief: Brief) -> tuple[str, list[Candidate]]:
            asked = self.generated.asked.get(brief.slot.chunk_ids[0], [])
            return brief.slot.slot_id, await self.generation.writer.write(brief, asked)

        workers = self.generation.workers
        work: Work[Brief, tuple[str, list[Candidate]]] = Work(
            stage="generate",
            key=lambda brief: f"{brief.slot.slot_id}/{brief.slot.chunk_ids[0]}",
            do=write,
            workers=replace(workers, concurrency=max(1, min(workers.concurrency, len(briefs)))),
        )
        async with aclosing(run(briefs, work)) as outcomes:
            async for outcome in outcomes:
                if outcome.failure is not None:
                    self.generated.failures.append(outcome.failure)
                    self.generated.lost[_WRITER_FAILED] += 1
                elif outcome.result is not None:
                    slot_id, candidates = outcome.result
                    written[slot_id] = candidates
                    if not candidates:
                        self.generated.lost[_NO_CANDIDATE] += 1
                        self.unsuited.add(slot_id)

    def _settle_by_rules(self, briefs: list[Brief], written: dict[str, list[Candidate]]) -> None:
        for line in _lines(briefs, written):
            found = self._next(line)
            if found is not None:
                self._accept(found, None)

    async def _settle(
        self, briefs: list[Brief], written: dict[str, list[Candidate]], checks: Checker
    ) -> None:
        """Check one candidate of each brief, then the next one of those that failed."""
        lines = list(_lines(briefs, written))
        while lines and self.generated.n_unknown < UNKNOWN:
            pending = [(line, item) for line in lines if (item := self._next(line)) is not None]
            if not pending:
                return
            checked = await checks.check([item for _, item in pending])
            lines = []
            for (line, item), result in zip(pending, checked, strict=True):
                self.generated.failures += result.failures
                if result.passed:
                    self._accept(item, result)
                else:
                    candidate = item.candidate
                    slot_id = item.brief.slot.slot_id
                    why = result.rejection
                    assert why is not None
                    self.generated.reject(slot_id, item.place, candidate, why)
                    lines.append(line)
                self._heed(result)

    def _heed(self, result: CheckedCandidate) -> None:
        """Stop where the checker seems to be down."""
        is_unknown = any(gate.verdict == "unknown" for gate in result.gates)
        self.generated.n_unknown = self.generated.n_unknown + 1 if is_unknown else 0
        failed = [failure for failure in result.failures if failure.kind == "error"]
        is_unheard = not result.passed and not result.call_keys and bool(failed)
        self.generated.n_unheard = self.generated.n_unheard + 1 if is_unheard else 0
        if self.generated.n_unheard >= _UNHEARD:
            raise EndpointError(
                f"no reply to the checks of {_UNHEARD} candidates in a row: {failed[-1].message}"
            )

    def _next(self, line: _Line) -> Anchored | None:
        """Return the next candidate that passes the rules."""
        for place, candidate in line.rest:
            self.generated.n_candidates += 1
            verdict = check(candidate, line.brief, self.generation.taken, place)
            if isinstance(verdict, Anchored):
                self.generated.n_checked += 1
                # Also if a check stops it: the same question is not to be checked again.
                self.generation.taken.add(_id_of(verdict), candidate.asked)
                return verdict
            self.generated.reject(line.brief.slot.slot_id, place, candidate, verdict)
        return None

    def _accept(self, item: Anchored, checked: CheckedCandidate | None) -> None:
        slot = item.brief.slot
        query = _accepted(item, checked)
        self.accepted.add(slot.slot_id)
        self.generated.queries.append(query)
        for chunk_id in slot.chunk_ids:
            self.generated.asked.setdefault(chunk_id, []).append(query.asked)


def _lines(briefs: list[Brief], written: dict[str, list[Candidate]]) -> Iterator[_Line]:
    for brief in briefs:
        yield _Line(brief, iter(enumerate(written.get(brief.slot.slot_id, []))))


def _id_of(item: Anchored) -> str:
    """Return the id that a candidate gets as a query."""
    candidate = item.candidate
    said = f"{candidate.standalone}\n{candidate.question}" if candidate.standalone else None
    return query_id(said or candidate.question, item.brief.slot.language)


def _accepted(item: Anchored, checked: CheckedCandidate | None) -> Query:
    """Return the query that a candidate becomes.

    Args:
        item: The candidate with its evidence.
        checked: What a model found of it; None where none was asked.
    """
    candidate, slot = item.candidate, item.brief.slot
    answerable = candidate.behaviour != "abstain"
    return Query(
        query_id=_id_of(item),
        query=candidate.question,
        expected_answer=candidate.answer,
        difficulty=candidate.difficulty,
        type=candidate.type,
        # A rule takes on nobody's manner.
        persona=slot.persona if candidate.lineage.kind != "baseline" else None,
        language=slot.language,
        answerable=answerable,
        expected_behaviour=candidate.behaviour,
        standalone=candidate.standalone,
        history=candidate.history,
        evidence=item.evidence if answerable else (),
        source_chunk_ids=slot.chunk_ids,
        gates=checked.gates if checked else (),
        measured=checked.measured if checked else None,
        lineage=candidate.lineage.model_copy(
            update={"call_keys": checked.call_keys if checked else ()}
        ),
    )
