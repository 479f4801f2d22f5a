"""The queries that a set lacks since its corpus changed: how many, about what, and making them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256
from itertools import chain

from ragforge.config import Settings
from ragforge.corpus.chunk_cards import is_askable
from ragforge.corpus.survey import ChunkCard, Survey
from ragforge.deferred import dataclass
from ragforge.files.manifest import Aim
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import key_of
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest
from ragforge.pipeline.backend import Backend
from ragforge.pipeline.generation.generated_queries import documents_of, index_of
from ragforge.pipeline.generation.generated_queries import settled as standing
from ragforge.pipeline.generation.models import (
    Briefs,
    GenerationModels,
    checks_of,
    estimate_cells,
    writer_of,
)
from ragforge.pipeline.generation.rounds import cell_like, missing_cells, with_rank
from ragforge.pipeline.generation.source import real_queries
from ragforge.pipeline.job import Job
from ragforge.pipeline.surveying import StoredSurvey
from ragforge.records import Cause, Failure, ItemChange, Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.refresh.quotes.locations import cause_of
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.quotas import Cell, make_cells
from ragforge.stages.generate.stage import Generated, Generation, generate
from ragforge.stages.generate.truth import Rederived, derive
from ragforge.stages.runner import Workers

BY_HAND = "none of its queries was generated, so none is generated into it"


@dataclass(frozen=True, slots=True)
class CoveragePlan:
    """The queries that a version gets.

    Args:
        version: For which it is.
        n_accepted: Accepted queries before any is added.
        wanted: Accepted queries that refreshes keep the set at, from this version on.
        cells: One for each query to generate, numbered from 0.
        fresh: The documents that are asked about first, each once, with their new chunks: added
            or changed ones without a query; no more than there are cells.
        growth: Those of the added documents for which the set grows by a query.
        refused: Why there are fewer cells than queries are missing; "" where there are not.
    """

    version: int
    n_accepted: int
    wanted: int
    cells: tuple[Cell, ...] = ()
    fresh: Mapping[str, frozenset[str]] = field(default_factory=dict)
    growth: frozenset[str] = frozenset()
    refused: str = ""

    @property
    def n_missing(self) -> int:
        """How many queries fewer than wanted there are."""
        return max(0, self.wanted - self.n_accepted)

    def shortfall(self, n_added: int, gave_up: str = "") -> str:
        """Return what is still missing and why, in a sentence; "" where nothing is.

        Args:
            n_added: Queries that were generated.
            gave_up: Why generation stopped where it had sources left; "" where it did not.
        """
        if n_added >= self.n_missing:
            return ""
        why = [self.refused] if self.refused else []
        if n_added < len(self.cells):
            why.append(gave_up or "the corpus carries no more of them")
        return (
            f"{n_added} of {self.n_missing} missing queries were added (the set is kept at "
            f"{self.wanted}): {'; '.join(why)}"
        )


def seed_of(settings: Settings, version: int) -> int:
    """Return the seed by which the sources and kinds of a version's new queries are chosen."""
    text = f"coverage\n{settings.model.seed}\n{version}"
    return int.from_bytes(sha256(text.encode()).digest()[:4])


def plan_coverage(
    parent: Dataset,
    updated: UpdatedQueries,
    survey: Survey,
    diff: CorpusDiff,
    settings: Settings,
    version: int,
) -> CoveragePlan:
    """Return which queries a version lacks.

    As many are accepted as its parent had, or as `refresh.at_least` asks for: what is lost is
    replaced, by this version or, where `refresh.max_new` or the corpus does not allow it, by later
    ones. Beyond that the set grows with its corpus, at the rate at which it covers it: where
    queries of the parent rest on a third of its documents, a third of the added ones are given a
    query. Which ones is decided by hashing their ids, so that a document a night adds up to the
    same as all of them at once; 10,000 new documents beside a set of 20 queries on 1,000 ask for
    some 200, and `refresh.max_new` says how many of these come now. A set that a person made is
    left as it is.

    Args:
        parent: The version before.
        updated: Its queries as they are now.
        survey: Of the corpus as it is now.
        diff: What changed in it.
        settings: As given.
        version: The number of the version that is made.
    """
    now = [query for query in updated.queries if query.status == "accepted"]
    before = [item.before for item in updated.items if item.before is not None]
    accepted = [query for query in before if query.status == "accepted"]
    is_made = any(query.origin == "synthetic" for query in updated.queries)
    fresh = _fresh(now, survey, diff) if is_made else {}
    share = _covered_share(accepted, diff)
    growth = {
        doc_id
        for doc_id in set(diff.documents.added).intersection(fresh)
        if _share_of_digest(f"grow\n{settings.model.seed}\n{doc_id}") < share
    }
    wanted = _wanted(parent, len(accepted)) + len(growth)
    wanted = max(wanted, settings.refresh.at_least or 0)
    missing = max(0, wanted - len(now))
    most = settings.refresh.max_new if is_made else 0
    n_new = min(missing, most)
    return CoveragePlan(
        version=version,
        n_accepted=len(now),
        wanted=wanted,
        cells=_cells(now, n_new, settings, version),
        fresh=_first(fresh, growth, n_new, seed_of(settings, version)),
        growth=frozenset(growth),
        refused="" if missing <= most else _refusal(settings, is_made=is_made),
    )


async def estimate_coverage(
    plan: CoveragePlan,
    models: GenerationModels,
    survey: StoredSurvey,
    settings: Settings,
    real: Sequence[str],
) -> dict[str, object]:
    """Return how many queries a plan generates and what that takes, pools included.

    Args:
        plan: What is to be generated.
        models: In a dry run.
        survey: Of the corpus.
        settings: As given.
        real: Queries of users, whose manner is taken on.
    """
    counts = {"queries": len(plan.cells), "missing": plan.n_missing}
    if not plan.cells:
        return {**counts, "calls": 0}
    return {**counts, **await estimate_cells(models, survey, settings, real, plan.cells)}


def _wanted(parent: Dataset, n_accepted: int) -> int:
    """Return the number that the set is kept at: its own, and what came by other ways since.

    Queries that a refresh found again are a surplus that no later one adds to.
    """
    aim = parent.manifest.aim
    if aim is None:
        return n_accepted
    return aim.wanted + max(0, n_accepted - max(aim.accepted, aim.wanted))


def _refusal(settings: Settings, *, is_made: bool) -> str:
    if not is_made:
        return BY_HAND
    return f"refresh.max_new allows {settings.refresh.max_new}"


def _covered_share(accepted: Iterable[Query], diff: CorpusDiff) -> float:
    """Return the share of the documents of the parent that its queries rest on."""
    covered = {item.doc_id for query in accepted for item in query.evidence}
    return min(1.0, len(covered) / diff.documents.n_before) if diff.documents.n_before else 0.0


def _fresh(queries: Sequence[Query], survey: Survey, diff: CorpusDiff) -> dict[str, frozenset[str]]:
    """Return the added and changed documents without a query, with the new chunks to ask about."""
    there = {*diff.documents.added, *diff.documents.changed}
    if not there:
        return {}
    there -= set[str]().union(*documents_of(queries, survey).values())
    fresh: dict[str, set[str]] = {}
    for chunk in diff.added():
        if (
            chunk.doc_id in there
            and is_askable(chunk.text)
            and _says_new(chunk.chunk_id, survey, there)
        ):
            fresh.setdefault(chunk.doc_id, set()).add(chunk.chunk_id)
    return {doc_id: frozenset(ids) for doc_id, ids in fresh.items()}


def _says_new(chunk_id: str, survey: Survey, there: Collection[str]) -> bool:
    """Whether no older document holds the text of a chunk as well."""
    return all(survey.chunk(copy).doc_id in there for copy in survey.near_duplicates(chunk_id))


def _first(
    fresh: Mapping[str, frozenset[str]], growth: Collection[str], n: int, seed: int
) -> dict[str, frozenset[str]]:
    """Return the n documents to ask about first: those that the set grows for, then others."""
    order = sorted(
        fresh, key=lambda name: (name not in growth, _share_of_digest(f"{seed}\n{name}"), name)
    )
    return {doc_id: fresh[doc_id] for doc_id in sorted(order[:n])}


def _cells(
    accepted: Sequence[Query], n_new: int, settings: Settings, version: int
) -> tuple[Cell, ...]:
    """Return cells that bring the shares of the whole set back to those of the settings."""
    if not n_new:
        return ()
    how = settings.generate.model_copy(update={"n": len(accepted) + n_new})
    whole = make_cells(how, seed_of(settings, version))
    missing = missing_cells(whole, map(cell_like, accepted))
    return tuple(
        Cell(number, cell.type, cell.difficulty, cell.persona, cell.language)
        for number, cell in enumerate(missing)
    )


def _share_of_digest(text: str) -> float:
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) / (1 << 64)


@dataclass(frozen=True, slots=True)
class FilledCoverage:
    """What filling came to.

    Args:
        items: The new queries, sorted by id; their evidence is judged, their pools are not.
        failures: Of writing and of checking.
        n_calls: Calls for it, those that the store answered included.
        shortfall: What is still missing and why, in a sentence; "" for nothing.
    """

    items: list[UpdatedQuery] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    n_calls: int = 0
    shortfall: str = ""


async def fill_coverage(
    staged: Dataset,
    survey: StoredSurvey,
    updated: UpdatedQueries,
    plan: CoveragePlan,
    models: GenerationModels,
    diff: CorpusDiff,
    job: Job,
) -> FilledCoverage:
    """Generate the queries of a plan.

    What was ever asked does not come again: no question of any version, retired and revised ones
    and rejected candidates included, nor one that is nearly the same. Fresh documents are asked
    about first, each chunk of them once; then whatever is least covered.

    Args:
        staged: The version that is made. Gets the grades that the evidence of the new queries
            gives, their slots, the rejected candidates, the failures, and what the set is kept at;
            the queries themselves are the caller's to write.
        survey: Of its corpus.
        updated: The queries that it has; not changed.
        plan: What is to be generated.
        models: Who writes and checks.
        diff: What changed in the corpus.
        job: Its seed, and calls in flight.

    Raises:
        EndpointError, BudgetError: It was stopped; what was bought is in the call store.
    """
    if not plan.cells:
        _note_aim(staged, plan, 0)
        return FilledCoverage(shortfall=plan.shortfall(0))
    count = _Count()
    counted = replace(
        models, writer=_counted(models.writer, count), checker=_checker(models, count)
    )
    filling = _Filling(staged, survey, updated, plan, job.settings)
    await filling.run(_generation(staged, survey, updated, counted, job))
    generated = filling.generated
    queries = [standing(await with_rank(each, survey.bm25)) for each in generated.queries]
    index = index_of(queries, survey)
    derived = [derive(each, index) for each in queries]
    _keep(staged, generated, derived, models)
    _note_aim(staged, plan, len(derived))
    items = _items([one.query for one in derived], plan, diff)
    return FilledCoverage(
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
        updated: The queries that there are.
        plan: What is to be generated.
        settings: As given.
        generated: What has come out.
        number: Of the next cell; goes on where earlier versions ended.
    """

    staged: Dataset
    survey: StoredSurvey
    updated: UpdatedQueries
    plan: CoveragePlan
    settings: Settings
    generated: Generated = field(default_factory=Generated)
    number: int = 0

    async def run(self, generation: Generation) -> None:
        """Fill the cells, as far as the corpus goes."""
        before = self.staged.plan()
        self.number = max((_cell_of(slot.slot_id) for slot in before), default=-1) + 1
        uses = Counter(name for slot in before for name in slot.chunk_ids)
        # The slots of queries that were kept are there as well, under the ids of their time.
        uses |= Counter(name for query in self.updated.queries for name in query.source_chunk_ids)
        self._note_questions()
        cells = list(self.plan.cells)
        n_fresh = len(self.plan.fresh)
        left = await self._work_off(cells[:n_fresh], self._fresh_cards(), uses, generation, 1)
        left += cells[n_fresh:]
        self.generated.gave_up = ""
        per_chunk = self.settings.generate.per_chunk
        await self._work_off(left, self.survey.cards(), uses, generation, per_chunk)

    def _note_questions(self) -> None:
        for query in self.updated.queries:
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
        filled = {_cell_of(_slot_of(query)) for query in self.generated.queries[n_queries:]}
        return [cell for cell in numbered if cell.number not in filled]


def _generation(
    staged: Dataset,
    survey: StoredSurvey,
    updated: UpdatedQueries,
    models: GenerationModels,
    job: Job,
) -> Generation:
    settings = job.settings
    return Generation(
        writer=writer_of(models, settings, real_queries(staged, settings.generate.like)),
        brief=Briefs(survey, settings.model.seed).of,
        taken=_asked_so_far(staged, updated),
        checks=checks_of(models, survey, job),
        workers=Workers(
            models.writer.workers(settings.model.concurrency), job.observer, models.writer.stop
        ),
    )


def _asked_so_far(staged: Dataset, updated: UpdatedQueries) -> QuestionsAsked:
    """Return every question that was ever asked in the set, or nearly got into it."""
    questions = QuestionsAsked()
    for query in chain(updated.queries, staged.all_queries(), staged.past.revisions()):
        questions.add(query.query_id, query.asked)
    for rejected in staged.rejected():
        questions.add(f"candidate {rejected.slot_id}", rejected.question)
    return questions


def _keep(
    staged: Dataset, generated: Generated, derived: Sequence[Rederived], models: GenerationModels
) -> None:
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
    models.note_in(staged)


def _note_aim(staged: Dataset, plan: CoveragePlan, n_added: int) -> None:
    manifest = staged.manifest
    aim = Aim(wanted=plan.wanted, accepted=plan.n_accepted + n_added)
    if manifest.aim != aim:
        staged.write_manifest(manifest.model_copy(update={"aim": aim}))


def _items(
    queries: Iterable[Query], plan: CoveragePlan, diff: CorpusDiff
) -> Iterator[UpdatedQuery]:
    """Yield new queries with why they came: one for a document, or one for a query that is lost."""
    growth = set(plan.growth)
    for query in queries:
        documents = [item.doc_id for item in query.evidence]
        grown = growth.intersection(documents)
        growth -= grown
        causes = [cause_of(doc_id, diff.moves[doc_id]) for doc_id in sorted(grown)]
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
        yield UpdatedQuery(None, query, change)


def _slot_of(query: Query) -> str:
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


def _checker(models: GenerationModels, count: _Count) -> Backend | None:
    return _counted(models.checker, count) if models.checker is not None else None
