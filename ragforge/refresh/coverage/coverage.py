"""Generating the queries that a set lacks since its corpus changed, beside those that it has."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ragforge.config import Settings
from ragforge.corpus.survey import ChunkCard
from ragforge.files.manifest import Aim
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import key_of
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest
from ragforge.pipeline.backend import Backend
from ragforge.pipeline.generation.files import index_of
from ragforge.pipeline.generation.inputs import settled as standing
from ragforge.pipeline.generation.rounds import with_rank
from ragforge.pipeline.generation.source import real_queries
from ragforge.pipeline.generation.team import Briefs, Team, checks_of, writer_of
from ragforge.pipeline.job import Job
from ragforge.pipeline.surveying import Surveyed
from ragforge.records import Cause, Failure, ItemChange, Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.coverage.plans import CoveragePlan, seed_of
from ragforge.refresh.items.settled import SettledItem, SettledSet
from ragforge.stages.generate.gates.repeated_questions import Taken
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.quotas import Cell
from ragforge.stages.generate.stage import Generated, Generation, generate
from ragforge.stages.generate.truth import Rederived, derive
from ragforge.stages.runner import Workers


@dataclass(frozen=True, slots=True)
class Filled:
    """What filling came to.

    Args:
        items: The new queries, sorted by id; their evidence is judged, their pools are not.
        failures: Of writing and of checking.
        n_calls: Calls for it, those that the store answered included.
        shortfall: What is still missing and why, in a sentence; "" for nothing.
    """

    items: list[SettledItem] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    n_calls: int = 0
    shortfall: str = ""


async def fill_coverage(
    staged: Dataset,
    survey: Surveyed,
    settled: SettledSet,
    plan: CoveragePlan,
    team: Team,
    diff: CorpusDiff,
    job: Job,
) -> Filled:
    """Generate the queries of a plan.

    What was ever asked does not come again: no question of any version, retired and revised ones
    and rejected candidates included, nor one that is nearly the same. Fresh documents are asked
    about first, each chunk of them once; then whatever is least covered.

    Args:
        staged: The version that is made. Gets the grades that the evidence of the new queries
            gives, their slots, the rejected candidates, the failures, and what the set is kept at;
            the queries themselves are the caller's to write.
        survey: Of its corpus.
        settled: The queries that it has; not changed.
        plan: What is to be generated.
        team: Who writes and checks.
        diff: What changed in the corpus.
        job: Its seed, and calls in flight.

    Raises:
        EndpointError, BudgetError: It was stopped; what was bought is in the call store.
    """
    if not plan.cells:
        _note_aim(staged, plan, 0)
        return Filled(shortfall=plan.shortfall(0))
    count = _Count()
    counted = replace(team, writer=_counted(team.writer, count), checker=_checker(team, count))
    filling = _Filling(staged, survey, settled, plan, job.settings)
    await filling.run(_generation(staged, survey, settled, counted, job))
    generated = filling.generated
    queries = [standing(await with_rank(each, survey.bm25)) for each in generated.queries]
    index = index_of(queries, survey)
    derived = [derive(each, index) for each in queries]
    _keep(staged, generated, derived, team)
    _note_aim(staged, plan, len(derived))
    items = _items([one.query for one in derived], plan, diff)
    return Filled(
        items=sorted(items, key=lambda item: item.query.query_id),
        failures=generated.failures,
        n_calls=count.n,
        shortfall=plan.shortfall(len(derived), generated.gave_up),
    )


@dataclass(slots=True)
class _Filling:
    """Queries under way.

    Args:
        staged: Has the slots of earlier versions.
        survey: Of its corpus.
        settled: The queries that there are.
        plan: What is to be generated.
        settings: As given.
        generated: What has come out.
        number: Of the next cell; goes on where earlier versions ended.
    """

    staged: Dataset
    survey: Surveyed
    settled: SettledSet
    plan: CoveragePlan
    settings: Settings
    generated: Generated = field(default_factory=Generated)
    number: int = 0

    async def run(self, generation: Generation) -> None:
        """Fill the cells, as far as the corpus goes."""
        before = self.staged.plan()
        self.number = max((_cell_of(slot.slot_id) for slot in before), default=-1) + 1
        uses = Counter(name for slot in before for name in slot.chunk_ids)
        # The slots of queries that were settled are there as well, under the ids of their time.
        uses |= Counter(name for query in self.settled.queries for name in query.source_chunk_ids)
        self._say_what_is_asked()
        cells = list(self.plan.cells)
        n_fresh = len(self.plan.fresh)
        left = await self._work_off(cells[:n_fresh], self._fresh_cards(), uses, generation, 1)
        left += cells[n_fresh:]
        self.generated.gave_up = ""
        per_chunk = self.settings.generate.per_chunk
        await self._work_off(left, self.survey.cards(), uses, generation, per_chunk)

    def _say_what_is_asked(self) -> None:
        for query in self.settled.queries:
            if query.status == "accepted":
                for chunk_id in query.source_chunk_ids:
                    self.generated.asked.setdefault(chunk_id, []).append(query.asked)

    def _fresh_cards(self) -> Iterator[ChunkCard]:
        fresh = self.plan.fresh
        return (card for card in self.survey.cards() if card.chunk_id in fresh.get(card.doc_id, ()))

    async def _work_off(
        self,
        cells: Sequence[Cell],
        cards: Iterable[ChunkCard],
        uses: Counter[str],
        generation: Generation,
        per_chunk: int,
    ) -> list[Cell]:
        """Return the cells that came to nothing; uses grow."""
        if not cells:
            return []
        numbered = [replace(cell, number=self.number + at) for at, cell in enumerate(cells)]
        self.number += len(cells)
        seed = seed_of(self.settings, self.plan.version)
        sources = Sources(cards, numbered, per_chunk=per_chunk, seed=seed, used=uses)
        n_slots, n_queries = len(self.generated.slots), len(self.generated.queries)
        try:
            open_cells = [OpenCell(cell.number) for cell in numbered]
            await generate(open_cells, sources, generation, self.generated)
        finally:
            uses.update(name for slot in self.generated.slots[n_slots:] for name in slot.chunk_ids)
        filled = {_cell_of(_slot(query)) for query in self.generated.queries[n_queries:]}
        return [cell for cell in numbered if cell.number not in filled]


def _generation(
    staged: Dataset, survey: Surveyed, settled: SettledSet, team: Team, job: Job
) -> Generation:
    settings = job.settings
    return Generation(
        writer=writer_of(team, settings, real_queries(staged, settings.generate.like)),
        brief=Briefs(survey, settings.model.seed).of,
        taken=_taken(staged, settled),
        checks=checks_of(team, survey, job),
        workers=Workers(
            team.writer.workers(settings.model.concurrency), job.observer, team.writer.stop
        ),
    )


def _taken(staged: Dataset, settled: SettledSet) -> Taken:
    """Return every question that was ever asked in the set, or nearly got into it."""
    questions = Taken()
    for query in chain(settled.queries, staged.all_queries(), staged.past.revisions()):
        questions.add(query.query_id, query.asked)
    for rejected in staged.rejected():
        questions.add(f"candidate {rejected.slot_id}", rejected.question)
    return questions


def _keep(staged: Dataset, generated: Generated, derived: Sequence[Rederived], team: Team) -> None:
    """Write what came out beside what earlier versions left."""
    judgments = sorted((item for one in derived for item in one.judgments), key=key_of)
    if judgments:
        staged.add_judgments(iter(judgments))
    staged.write_plan([*staged.plan(), *generated.slots])
    if generated.rejected:
        staged.write_rejected([*staged.rejected(), *generated.rejected])
    for what in ("generate", "check"):
        failures = [failure for failure in generated.failures if failure.what == what]
        staged.replace_failures(what, failures, lambda _: True)
    team.note_in(staged)


def _note_aim(staged: Dataset, plan: CoveragePlan, n_added: int) -> None:
    manifest = staged.manifest
    aim = Aim(wanted=plan.wanted, accepted=plan.n_accepted + n_added)
    if manifest.aim != aim:
        staged.write_manifest(manifest.model_copy(update={"aim": aim}))


def _items(queries: Iterable[Query], plan: CoveragePlan, diff: CorpusDiff) -> Iterator[SettledItem]:
    """Yield new queries with why they came: one for a document, or one for a query that is lost."""
    growth = set(plan.growth)
    for query in queries:
        documents = [item.doc_id for item in query.evidence]
        grown = growth.intersection(documents)
        growth -= grown
        causes = [_came(doc_id, diff) for doc_id in sorted(grown)]
        detail = f"{plan.n_accepted} accepted, {plan.wanted} wanted"
        few = Cause(kind="too few queries", doc_id=next(iter(documents), ""), detail=detail)
        change = ItemChange(
            version=plan.version,
            query_id=query.query_id,
            action="added",
            revision=query.revision,
            causes=tuple(causes) or (few,),
            calls=len(query.lineage.call_keys) if query.lineage else 0,
        )
        yield SettledItem(None, query, change)


def _came(doc_id: str, diff: CorpusDiff) -> Cause:
    move = diff.moves.get(doc_id)
    after = move.now.sha256[:16] if move is not None and move.now is not None else ""
    return Cause(kind="document added", doc_id=doc_id, after=after)


def _slot(query: Query) -> str:
    assert query.lineage is not None
    return query.lineage.slot


def _cell_of(slot_id: str) -> int:
    """Return the number of a cell; -1 of a slot that somebody named by hand."""
    number = slot_id.partition("-")[0]
    return int(number) if number.isdecimal() else -1


@dataclass(slots=True)
class _Count:
    n: int = 0


@dataclass(frozen=True, slots=True)
class _Counted:
    """A model whose calls are counted, whoever answers them."""

    model: ChatModel
    count: _Count

    async def ask(self, request: ChatRequest) -> ChatReply:
        self.count.n += 1
        return await self.model.ask(request)


def _counted(backend: Backend, count: _Count) -> Backend:
    if backend.asker is None:
        return backend
    asker = replace(backend.asker, model=_Counted(backend.asker.model, count))
    return replace(backend, asker=asker)


def _checker(team: Team, count: _Count) -> Backend | None:
    return _counted(team.checker, count) if team.checker is not None else None
