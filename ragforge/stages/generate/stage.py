"""Generating a set of queries: in the plan's order, until enough are accepted."""

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ragforge.observe import Event, Observer
from ragforge.records import Chunk, Failure, Judgment, Query
from ragforge.stages.generate.candidates import Candidate, QueryWriter
from ragforge.stages.generate.gates import Passed, check, normal_question
from ragforge.stages.generate.plan import ROUNDS, Seed, plan_round
from ragforge.stages.runner import Work, nothing, run


@dataclass(slots=True)
class Generated:
    """What generation left.

    Args:
        queries: Accepted, in the plan's order.
        failures: Chunks for which the writer gave nothing usable.
        rejected: How many candidates each gate stopped.
        tried: Ids of the chunks that were asked about.
        without: Chunks that gave no candidate.
        taken: The accepted questions, normalised.
    """

    queries: list[Query] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    tried: set[str] = field(default_factory=set)
    without: int = 0
    taken: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Generation:
    """How a set is generated.

    Args:
        writer: Who proposes queries.
        n: Queries to deliver.
        seed: Decides the order of the chunks.
        language: Of the queries.
        concurrency: Chunks in work at once.
        observer: Told of progress.
        on_stop: As in `Work`.
    """

    writer: QueryWriter
    n: int
    seed: int
    language: str
    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing


async def generate(
    chunks: Sequence[Chunk], generation: Generation, keep: Callable[[Generated], None]
) -> Generated:
    """Generate queries; fewer than wanted where the chunks carry no more.

    The accepted ones depend on the plan only, not on which reply came first.

    Args:
        chunks: The corpus.
        generation: How.
        keep: Called once, at the end or at a stop, with everything accepted so far.

    Raises:
        EndpointError, BudgetError: As the writer raises them, after `keep`.
    """
    generated = Generated()
    order = plan_round(chunks, generation.seed)
    generation.observer(Event("stage.start", stage="generate"))
    try:
        for number in range(ROUNDS):
            waiting = list(reversed(order))
            while waiting and len(generated.queries) < generation.n:
                size = min(len(waiting), generation.n - len(generated.queries))
                window = [Seed(waiting.pop(), number) for _ in range(size)]
                await _work_off(window, generation, generated)
    finally:
        generation.observer(Event("stage.end", stage="generate"))
        keep(generated)
    return generated


def evidence_judgments(queries: Sequence[Query]) -> list[Judgment]:
    """Return what the evidence itself says: the chunk a quote comes from answers its query."""
    return [
        Judgment(
            query_id=query.query_id,
            chunk_id=evidence.chunk_id,
            grade=3,
            contains_answer=True,
            evidence=evidence.quote,
            reasoning="the query was written from this chunk",
            source="evidence",
            provenance=query.lineage,
        )
        for query in queries
        for evidence in query.evidence
    ]


def query_id(question: str, language: str) -> str:
    """Return the id that the same question in the same language always gets."""
    digest = hashlib.sha256(f"{language}\n{normal_question(question)}".encode()).digest()
    return f"q_{base64.b32encode(digest).decode().lower()[:16]}"


async def _work_off(seeds: list[Seed], generation: Generation, generated: Generated) -> None:
    """Write candidates for the seeds and accept them in the seeds' order."""
    asked: dict[str, list[str]] = {}
    for query in generated.queries:
        asked.setdefault(query.source_chunk_ids[0], []).append(query.query)
    written: dict[Seed, Candidate | None] = {}

    async def write(seed: Seed) -> tuple[Seed, Candidate | None]:
        earlier = asked.get(seed.chunk.chunk_id, [])
        return seed, await generation.writer.write(seed, earlier)

    work: Work[Seed, tuple[Seed, Candidate | None]] = Work(
        stage="generate",
        key=lambda seed: seed.chunk.chunk_id,
        do=write,
        concurrency=min(generation.concurrency, len(seeds)),
        observer=generation.observer,
        on_stop=generation.on_stop,
    )
    try:
        async with aclosing(run(seeds, work)) as outcomes:
            async for outcome in outcomes:
                generated.tried.add(outcome.unit.chunk.chunk_id)
                if outcome.failure is not None:
                    generated.failures.append(outcome.failure)
                elif outcome.result is not None:
                    written[outcome.unit] = outcome.result[1]
    finally:
        for seed in seeds:
            if seed in written:
                _accept(seed, written[seed], generation, generated)


def _accept(
    seed: Seed, candidate: Candidate | None, generation: Generation, generated: Generated
) -> None:
    if candidate is None:
        generated.without += 1
        return
    checked = check(candidate, seed.chunk, generated.taken)
    if isinstance(checked, Passed):
        generated.taken.add(normal_question(candidate.question))
        generated.queries.append(_query(checked, seed.chunk, generation.language))
    else:
        generated.rejected[checked] += 1


def _query(passed: Passed, chunk: Chunk, language: str) -> Query:
    candidate = passed.candidate
    return Query(
        query_id=query_id(candidate.question, language),
        query=candidate.question,
        expected_answer=candidate.answer,
        difficulty=candidate.difficulty,
        type=candidate.type,
        language=language,
        evidence=(passed.evidence,),
        source_chunk_ids=(chunk.chunk_id,),
        lineage=candidate.lineage,
    )
