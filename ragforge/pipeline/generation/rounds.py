"""Rounds of generation: one for each number asked for, then those that replace what is refuted."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.generation.generated_queries import GenerationInputs, is_kept, keep_generated
from ragforge.pipeline.generation.models import Briefs, GenerationModels, checks_of, writer_of
from ragforge.pipeline.job import Job
from ragforge.pipeline.surveying import StoredSurvey
from ragforge.records import Failure, Query
from ragforge.retrieval import Retriever
from ragforge.stages.generate.checks.questions import measured_difficulty
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.quotas import Cell, make_cells
from ragforge.stages.generate.stage import Generated, Generation, generate

if TYPE_CHECKING:
    from ragforge.pipeline.complete.completing import Completion

_ALIKE: Final[tuple[Callable[[Cell], tuple[str, ...]], ...]] = (
    lambda cell: (cell.type, cell.language, cell.difficulty, cell.persona),
    lambda cell: (cell.type, cell.language, cell.difficulty),
    lambda cell: (cell.type, cell.language),
    lambda cell: (cell.type,),
    lambda cell: (cell.language,),
    lambda cell: (),
)
"""What an old cell and a new one have in common where one stands for the other, closest first."""

RANKS = 20
"""Depth to which the evidence of a query is looked for, to tell how hard it is to find."""
MOST_REPLACEMENTS = 3
"""Rounds in which queries that the pools refute are replaced."""


def missing_cells(cells: Sequence[Cell], filled: Iterable[Cell]) -> list[Cell]:
    """Return the cells for which no filled one stands, in their order.

    A larger plan rarely holds the very cells of a smaller one; so each filled cell stands for the
    one that is most like it, the type before all else, so that the shares of the whole come near
    those of the plan.

    Args:
        cells: Of the plan as it is wanted now.
        filled: Those of earlier plans that have a query.
    """
    open_cells, left = list(cells), list(filled)
    for alike in _ALIKE:
        counts = Counter(map(alike, left))
        kept = []
        # The last go first, so that what is left are turns from the start of the plan.
        for cell in reversed(open_cells):
            if counts[alike(cell)]:
                counts[alike(cell)] -= 1
            else:
                kept.append(cell)
        open_cells = kept[::-1]
        left = _rest(left, alike, counts)
    return open_cells


def _rest(
    filled: list[Cell], alike: Callable[[Cell], tuple[str, ...]], counts: Counter[tuple[str, ...]]
) -> list[Cell]:
    """Return as many of the filled cells of each kind as are left over."""
    rest = []
    for cell in filled:
        if counts[alike(cell)]:
            counts[alike(cell)] -= 1
            rest.append(cell)
    return rest


def cell_like(query: Query) -> Cell:
    """Return the cell that a query fills whose own is not known any more."""
    return Cell(
        number=-1,
        type=query.type or "fact",
        difficulty=query.difficulty or "medium",
        persona=query.persona or "",
        language=query.language,
    )


async def with_rank(query: Query, retriever: Retriever) -> Query:
    """Return a query labelled with the rank of its evidence and how hard that is.

    One that no model checked, that has no answer, or that has the label stays as it is.

    Raises:
        CallError, RagforgeError: As the retriever raises them.
    """
    if query.measured is None or not query.answerable or query.measured.depth:
        return query
    wanted = {item.chunk_id for item in query.evidence}
    hits = await retriever.retrieve(query.asked, RANKS)
    ranks = (rank for rank, hit in enumerate(hits, start=1) if hit.chunk_id in wanted)
    rank = next(ranks, None)
    update = {
        "bm25_rank": rank,
        "depth": RANKS,
        "difficulty": measured_difficulty(rank, RANKS, query.measured.agreement),
    }
    return query.model_copy(update={"measured": query.measured.model_copy(update=update)})


@dataclass(slots=True)
class Rounds:
    """Generation under way.

    Args:
        dataset: Gets what comes out.
        survey: Of its corpus.
        models: Who works.
        inputs: What it starts from.
        job: What is wanted, and how the pools are judged.
        generated: What has come out; its queries are the accepted ones.
        refuted: Queries that were accepted, and whose pool says otherwise.
        completion: Of the pools; None where none was judged.
    """

    dataset: Dataset
    survey: StoredSurvey
    models: GenerationModels
    inputs: GenerationInputs
    job: Job
    generated: Generated = field(default_factory=Generated)
    refuted: list[Query] = field(default_factory=list)
    completion: "Completion | None" = None
    _generation: Generation | None = None
    _cells: dict[int, Cell] = field(default_factory=dict)
    _of_cell: dict[int, Sources] = field(default_factory=dict)
    _retrievers: dict[str, Retriever] = field(default_factory=dict)

    async def run(self) -> None:
        """Take each step again: what earlier ones came to is made as it was, from the call store.

        Raises:
            EndpointError, BudgetError: The run was stopped; what was accepted is in the dataset.
        """
        is_whole = False
        try:
            for step in self.inputs.steps:
                self._take_out(step.taken_out)
                await self._generate(step.n)
                await self._measure()
                await self._settle()
            if not self.inputs.steps:
                await self._refuted()
            is_whole = True
        finally:
            self._keep(is_whole=is_whole)

    def _keep(self, *, is_whole: bool) -> None:
        queries = [*self.generated.queries, *self.refuted]
        keep_generated(
            self.dataset,
            self.survey,
            queries,
            dev_share=self.job.settings.generate.dev_share,
            is_whole=is_whole,
        )
        self.dataset.replace_failures("generate", _of("generate", self.generated), _any)
        self.dataset.replace_failures("check", _of("check", self.generated), _any)
        self.dataset.write_plan(self.generated.slots)
        self.dataset.write_rejected(self.generated.rejected)
        self.models.note_in(self.dataset)

    async def _generate(self, n: int) -> None:
        """Accept as many queries as are missing to a number."""
        cells = self._missing_cells(n)
        used = Counter(chunk_id for slot in self.generated.slots for chunk_id in slot.chunk_ids)
        used.update(name for query in self.inputs.settled for name in query.source_chunk_ids)
        how = self.job.settings.generate
        sources = Sources(
            self.survey.cards(),
            cells,
            per_chunk=how.per_chunk,
            seed=self.job.settings.model.seed,
            used=used,
        )
        self._cells.update((cell.number, cell) for cell in cells)
        self._of_cell.update((cell.number, sources) for cell in cells)
        await self._work_off([OpenCell(cell.number) for cell in cells], sources)

    async def _work_off(self, cells: list[OpenCell], sources: Sources) -> None:
        if self._generation is None:
            self._generation = self._make_generation()
        await generate(cells, sources, self._generation, self.generated)

    def _missing_cells(self, n: int) -> list[Cell]:
        """Return the cells of a plan for n queries that those accepted so far do not fill.

        The plan is that of the whole set; what is settled has its part in it, rejected or not, so
        that a rejection does not move the others.
        """
        standing = [cell_like(query) for query in self.inputs.settled]
        how = self.job.settings.generate.model_copy(update={"n": n + len(standing)})
        filled = [self._cells[_cell_number(query)] for query in self.generated.queries] + standing
        missing = missing_cells(make_cells(how, self.job.settings.model.seed), filled)
        first = max(self._cells, default=-1) + 1
        return [replace(cell, number=first + at) for at, cell in enumerate(missing)]

    def _make_generation(self) -> Generation:
        models, settings = self.models, self.job.settings
        return Generation(
            writer=writer_of(models, settings, self.inputs.real),
            brief=Briefs(self.survey, settings.model.seed).of,
            taken=self.inputs.taken(),
            checks=checks_of(models, self.survey, self.job),
            workers=models.writer.stage_workers(self.job),
        )

    async def _measure(self) -> None:
        """Label the accepted queries with the rank of their evidence and how hard that is."""
        bm25 = self.survey.bm25
        self.generated.queries = [await with_rank(each, bm25) for each in self.generated.queries]

    @property
    def _completes(self) -> bool:
        how = self.job.settings.generate.complete
        return how == "on" or (how == "auto" and self.models.asks)

    async def _settle(self) -> None:
        """Judge the pools, and replace what they refute."""
        for last in range(MOST_REPLACEMENTS, -1, -1):
            # What an earlier run refuted goes at once: it never counts as accepted in between.
            out = self._ids & self._quarantined or await self._refuted()
            if not out:
                return
            await self._replace(out, again=last > 0)
        await self._refuted()

    @property
    def _ids(self) -> set[str]:
        return {query.query_id for query in self.generated.queries}

    @property
    def _quarantined(self) -> set[str]:
        own = self.inputs.own
        return {name for name, query in own.items() if query.status == "quarantined"}

    async def _refuted(self) -> set[str]:
        """Judge the pools; return who is refuted, but for queries that a person vouches for."""
        self.completion = None
        ids = self._ids | {q.query_id for q in self.inputs.settled if q.status == "accepted"}
        if not self._completes or not ids:
            return set()
        # Half a second of start-up that a set without judged pools does not need.
        from ragforge.pipeline.complete.completing import complete_dataset, probing_retrievers

        self._keep(is_whole=False)
        if not self._retrievers:
            self._retrievers = probing_retrievers(
                self.survey, self.models.embedder, self.job.settings.pool, self.dataset.own_place
            )
        self.completion = await complete_dataset(
            self.dataset, self.survey, self._retrievers, self.job, ids
        )
        kept = {name for name, query in self.inputs.own.items() if is_kept(query)}
        return self._ids & set(self.completion.conflicts) - kept

    def _take_out(self, query_ids: Collection[str]) -> list[Query]:
        queries = self.generated.queries
        self.generated.queries = [q for q in queries if q.query_id not in query_ids]
        return [query for query in queries if query.query_id in query_ids]

    async def _replace(self, out: Collection[str], *, again: bool) -> None:
        """Take queries out, and generate others in their cells."""
        gone = self._take_out(out)
        self.refuted += [query.model_copy(update={"status": "quarantined"}) for query in gone]
        if not again:
            return
        by_sources: dict[int, list[OpenCell]] = {}
        for query in gone:
            number = _cell_number(query)
            by_sources.setdefault(id(self._of_cell[number]), []).append(OpenCell(number))
        for cells in by_sources.values():
            await self._work_off(cells, self._of_cell[cells[0].number])
        await self._measure()


def _cell_number(query: Query) -> int:
    """Return the number of the cell that a generated query fills."""
    assert query.lineage is not None
    return int(query.lineage.slot.partition("-")[0])


def _of(stage: str, generated: Generated) -> list[Failure]:
    return [failure for failure in generated.failures if failure.what == stage]


def _any(key: str) -> bool:
    return True
