"""The next version of a set, made step by step in a folder of its own."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import field
from itertools import groupby
from typing import Final, NamedTuple

from ragforge.config import Settings
from ragforge.deferred import dataclass
from ragforge.evaluating.same_judge import JudgeKey, canonical_judge_keys, judge_key
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import corpus_digest
from ragforge.files.set.sorted_records import Key, key_of
from ragforge.measures.scores import threshold_of
from ragforge.observe import Event
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.carried_runs import CarriedRun, ChunkChange, carry_runs
from ragforge.pipeline.evaluated import grades_digest, item_digests
from ragforge.pipeline.generation.models import GenerationModels
from ragforge.pipeline.graded_quotes import by_rank
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import open_judges
from ragforge.pipeline.surveying import StoredSurvey, open_survey
from ragforge.pipeline.text_grades import failures_at, grade_retrieved
from ragforge.records import (
    Action,
    CallCounts,
    Judgment,
    JudgmentsDiff,
    Provenance,
    Query,
    Stage,
    VersionCheck,
    VersionDiff,
    is_text_id,
)
from ragforge.records.judgments import Grading
from ragforge.refresh.conflicts import find_conflicts, possible_conflicts
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.corpus.document_map import DocumentMap
from ragforge.refresh.coverage import fill_coverage, plan_coverage
from ragforge.refresh.delta_pools import DeltaPools, judge_new_chunks, without_judge
from ragforge.refresh.grades.carrying import carry_judgments, count_grades
from ragforge.refresh.grades.labelled_documents import (
    document_map_of,
    moved_documents,
    update_labelled,
)
from ragforge.refresh.grades.moved_chunks import new_to_readers, with_sources
from ragforge.refresh.queries.decisions import QueryHistory, query_history
from ragforge.refresh.queries.passages import CorpusNow
from ragforge.refresh.queries.rechecking import Recheckers
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.refresh.queries.updating import update_queries
from ragforge.refresh.quotes.locations import LocatedQuery, locate_queries
from ragforge.refresh.spending import BoughtCalls, spent_in_all
from ragforge.refresh.splits import connections, split_changes, with_splits
from ragforge.refresh.version_checks import check_version
from ragforge.report.versions import with_entry
from ragforge.retrieval import Retriever

POOLED_ANEW: Final[frozenset[Action]] = frozenset(
    {"relinked", "answer_changed", "converted", "revived", "added"}
)
"""What becomes of a query whose whole pool is looked at again: its evidence or answer is another,
or nobody looked at new chunks for it."""

_OF_ANSWERS: Final[tuple[Stage, ...]] = ("ask", "answer")
"""Stages whose failures belong to the answers of systems, which a version does not take along."""


@dataclass(slots=True)
class Version:
    """A version under way.

    Args:
        parent: The published version.
        staged: The one that is made.
        diff: What changed in the corpus.
        job: As given; in earnest, or counting only.
        bought: Knows what was bought.
        models: Who writes, checks and judges.
        recheckers: Checks queries again.
        stack: Closes what was opened on the way.
        updated: The queries as they are now.
        judgments: What became of grades.
        calls: By purpose.
        shortfall: What could not be added, and why.
    """

    parent: Dataset
    staged: Dataset
    diff: CorpusDiff
    job: Job
    bought: BoughtCalls
    models: GenerationModels
    recheckers: Recheckers
    stack: AsyncExitStack
    updated: UpdatedQueries = field(default_factory=UpdatedQueries)
    judgments: JudgmentsDiff = field(default_factory=JudgmentsDiff)
    calls: Counter[str] = field(default_factory=Counter)
    shortfall: str = ""
    _survey: StoredSurvey | None = None
    _retrievers: dict[str, Retriever] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings of the job."""
        return self.job.settings

    @property
    def number(self) -> int:
        """The number of the version."""
        return self.staged.manifest.version

    @property
    def document_map(self) -> DocumentMap:
        """Where the documents of the version before are now."""
        return document_map_of(self.parent, self.diff)

    async def make(self) -> VersionDiff | None:
        """Write the version; None where a pinned query would be lost.

        Raises:
            EndpointError, BudgetError: The run was stopped; what was bought is in the call store.
            DataError: A file cannot be read or written.
        """
        await self.settle()
        if self.updated.broken_pins:
            return None
        await self.carry()
        changed = {
            item.query.query_id
            for item in self.updated.items
            if item.change is not None and item.change.action in POOLED_ANEW
        }
        edited = without_judge(self.staged, self.updated.queries)
        await self._pool(self.new_chunks(), changed | edited, again=self.job.mode.retry_failed)
        if self.updated.broken_pins:
            return None
        await self._fill()
        return self._finish()

    async def settle(self) -> None:
        """Say what becomes of each query."""
        located_queries = self.located_queries()
        self.updated = await update_queries(
            [located for located in located_queries if located.quotes],
            [located.query for located in located_queries if not located.quotes],
            CorpusNow(self.staged.chunks_path, self.survey),
            self.recheckers,
            self.settings,
            self.history(located_queries),
        )
        self.updated.replace(with_sources(self.updated.items, self.diff, self.document_map))
        self.updated.replace(update_labelled(self.updated, self.parent, self.diff, self.number))
        self.calls["verify"] += self.updated.n_calls
        self.staged.replace_failures("recheck", self.updated.failures, _is_query)
        self._write_queries()

    def located_queries(self) -> list[LocatedQuery]:
        """Return where the quotes of each query stand now."""
        return locate_queries(
            self.parent.all_queries(),
            self.parent,
            self.diff,
            self.settings.refresh,
            self.document_map,
        )

    def history(self, located_queries: list[LocatedQuery]) -> QueryHistory:
        """Return what refreshes did to the queries so far."""
        return query_history(
            self.parent, self.number, located_queries, self.document_map, self.settings.refresh
        )

    async def carry(self) -> None:
        """Bring grades and pools along."""
        judges = await self._judges()
        self.judgments = carry_judgments(self.staged, self.parent, self.diff, self.updated, judges)

    def survey(self) -> StoredSurvey:
        """Return what is known of the corpus; it takes as long as the corpus is large."""
        if self._survey is None:
            self._survey = self.stack.enter_context(
                open_survey(
                    self.staged.chunks_path,
                    self.staged.own_place,
                    self.job.observer,
                    seed=self.settings.model.seed,
                )
            )
        return self._survey

    def new_chunks(self) -> frozenset[str]:
        """Return the ids of the chunks that readers of the version before did not have."""
        return new_to_readers(self.diff)

    @property
    def judges_pools(self) -> bool:
        """Whether pools are judged; without a model that is asked for with `--complete on`."""
        how = self.settings.generate.complete
        return how == "on" or (how == "auto" and self.models.asks)

    def retrievers(self) -> dict[str, Retriever]:
        """Return who looks for chunks."""
        from ragforge.pipeline.complete.completing import probing_retrievers

        if not self._retrievers:
            self._retrievers = probing_retrievers(
                self.survey(), self.models.embedder, self.settings.pool, self.staged.own_place
            )
        return self._retrievers

    async def _judges(self) -> tuple[Provenance, ...]:
        from ragforge.pipeline.complete.completing import judging_settings

        judging = self.job.with_settings(judging_settings(self.settings))
        async with open_judges(judging, self.parent) as judges:
            return tuple(judges.provenances())

    async def estimate_pools(self) -> DeltaPools:
        """Return what judging the new chunks would take, in a dry run."""
        new_chunks, edited = self.new_chunks(), without_judge(self.staged, self.updated.queries)
        again = self.job.mode.retry_failed
        if not self.judges_pools or not (new_chunks or edited or again):
            return DeltaPools()
        return await self._judged(new_chunks, edited, again=again)

    async def _judged(
        self, new_chunks: Collection[str], whole: Collection[str], *, again: bool
    ) -> DeltaPools:
        return await judge_new_chunks(
            self.staged,
            self.survey(),
            self.retrievers(),
            self.job,
            new_chunks=new_chunks,
            whole=whole,
            again=again,
        )

    async def _pool(
        self, new_chunks: Collection[str], whole: Collection[str], *, again: bool = False
    ) -> None:
        """Judge what is new in pools, and take out queries that it contradicts.

        Args:
            new_chunks: Ids of chunks.
            whole: Ids of queries that get a whole pool.
            again: Whether pairs that failed are judged again, whatever is new.
        """
        if not self.judges_pools or not (new_chunks or whole or again):
            return
        failed = {
            (one.query_id, one.chunk_id) for one in self.staged.each_judgment() if one.is_failed
        }
        done = await self._judged(new_chunks, whole, again=again)
        self.calls["judge"] += done.n_calls
        conflicts = await find_conflicts(
            self.staged,
            self.survey(),
            self.updated,
            self.recheckers,
            possible=possible_conflicts(
                self.staged,
                self.parent,
                self.updated,
                new_chunks,
                whole,
                diff=self.diff,
                failed_before=failed,
            ),
            version=self.number,
        )
        self.calls["conflicts"] += conflicts.n_calls
        self.updated.broken_pins += conflicts.broken_pins
        self.updated.replace(conflicts.items)
        self._write_queries()

    async def _fill(self) -> None:
        """Generate what is missing; what a new query's pool refutes is quarantined."""
        plan = plan_coverage(
            self.parent, self.updated, self.survey(), self.diff, self.settings, self.number
        )
        filled = await fill_coverage(
            self.staged,
            self.survey(),
            self.updated,
            plan,
            self.models,
            self.diff,
            self.job,
        )
        self.calls["generate"] += filled.n_calls
        self.shortfall = filled.shortfall
        self.updated.replace(filled.items)
        self._part_splits()
        self._write_queries()
        await self._pool((), {item.query.query_id for item in filled.items})

    def _part_splits(self) -> None:
        """Give new queries their split, and take out of theirs what connects the two."""
        staged, updated, survey = self.staged, self.updated, self.survey()
        updated.replace(with_splits(staged, updated, survey, self.settings))
        updated.connections = connections(staged, updated, survey, self.diff)
        parting = split_changes(updated, updated.connections, self.number)
        updated.replace(parting.items)
        updated.splits = parting.changes

    def _finish(self) -> VersionDiff:
        """Write what tells of the version, and check it."""
        staged, updated = self.staged, self.updated
        self.models.note_in(staged)
        before, now = self.parent.manifest, staged.manifest
        spent = spent_in_all(before.spent, now.spent, self.bought.spent)
        staged.write_manifest(
            now.model_copy(update={"cutting": self.diff.chunking, "spent": spent})
        )
        changes = [item.change for item in updated.items if item.change is not None]
        changes += updated.splits
        staged.past.write_events([*self.parent.past.events(), *changes])
        renew_card(staged)
        diff = VersionDiff(
            version=self.number,
            parent=before.version,
            documents=self.diff.documents,
            items=_counts(updated.items),
            changes=tuple(sorted(changes, key=lambda one: (one.query_id, one.action))),
            judgments=count_grades(self.parent, staged, self.judgments.dropped),
            calls=CallCounts(**self.calls),
            bridge=bridge_of(self.parent, staged),
            shortfall=self.shortfall,
            answers_left=_leave_answers(staged, self.parent),
            not_accepted=_not_accepted(updated.queries),
            lost_relevant=_lost_relevant(self.parent, staged),
            checks=tuple(self._checks()),
        )
        for carried in _carry_runs_along(staged, self.parent, self.diff):
            self.job.observer(Event("note", message=carried.sentence))
        staged.past.write_diff(diff)
        staged.past.write_changelog(with_entry(self.parent.past.changelog(), diff))
        return diff

    def _checks(self) -> list[VersionCheck]:
        return check_version(
            self.parent,
            self.staged,
            self.updated,
            self.diff,
            self.settings,
            is_judged=self.judges_pools or not self.new_chunks(),
        )

    def _write_queries(self) -> None:
        self.staged.write_queries(self.updated.queries)
        revised = [
            item.before
            for item in self.updated.items
            if item.before is not None and item.query.revision > item.before.revision
        ]
        if revised:
            self.staged.past.write_revisions([*self.parent.past.revisions(), *revised])


def _counts(items: Iterable[UpdatedQuery]) -> dict[str, int]:
    counts = Counter[str]()
    for item in items:
        was_accepted = item.before is not None and item.before.status == "accepted"
        action = item.change.action if item.change else "kept"
        if was_accepted or action in ("added", "revived"):
            counts[action] += 1
    return dict(sorted(counts.items()))


def _not_accepted(queries: Iterable[Query]) -> dict[str, int]:
    counts = Counter(query.status for query in queries if query.status != "accepted")
    return dict(sorted(counts.items()))


def _lost_relevant(parent: Dataset, staged: Dataset) -> tuple[str, ...]:
    """Return the ids of accepted queries that had a relevant chunk, and have none any more."""
    before = parent.judgment_table()
    highest = max((given.grade or 0 for given in before.gradings), default=0)
    threshold = threshold_of(highest, parent.manifest.rel_threshold or "auto")

    def is_relevant(given: Grading) -> bool:
        return bool(given.relevant) or (given.grade or 0) >= threshold

    had, has = (
        # Texts of runs are no chunks that anybody can find.
        {pair.query_id for pair in table.pairs(is_relevant) if not is_text_id(pair.chunk_id)}
        for table in (before, staged.judgment_table())
    )
    accepted = {query.query_id for query in staged.queries() if query.answerable}
    return tuple(sorted((had - has) & accepted))


def _leave_answers(staged: Dataset, parent: Dataset) -> dict[str, int]:
    """Drop what failed of systems whose answers are not brought along, and count the answers."""
    for stage in _OF_ANSWERS:
        staged.replace_failures(stage, (), lambda _: True)
    return {name: len(parent.answers(name)) for name in parent.answer_names()}


def _is_query(key: str) -> bool:
    """Whether a failed check was of a query, and not of a chunk beside it."""
    return "/" not in key


def bridge_of(parent: Dataset, staged: Dataset) -> tuple[str, ...]:
    """Return the ids of the queries that ask for the same and have the same grades above 0, sorted.

    They are accepted in both versions, with the same question, answer and quotes, and the same
    chunks have the same grades above 0. A chunk that only has another id now is the same; one that
    is gone, or a new one that is relevant, makes a difference. So a system that finds the same
    texts has the same values on them. No two judges graded them in the one version or the other:
    else a system that finds other texts is held against itself by another judge.
    """
    before, now = item_digests(parent.queries()), item_digests(staged.queries())
    same = {query_id for query_id in before if before[query_id] == now.get(query_id)}
    old = dict(_grades(parent, same, staged.past.moved_chunks()))
    new = dict(_grades(staged, same, {}))
    nothing = _Graded(grades_digest({}), frozenset())
    both = {one: (old.get(one, nothing), new.get(one, nothing)) for one in same}
    judges = canonical_judge_keys(key for pair in both.values() for of in pair for key in of.judges)
    return tuple(
        sorted(
            query_id
            for query_id, (before, after) in both.items()
            if before.digest == after.digest
            and len({judges[key] for key in before.judges | after.judges}) < 2
        )
    )


class _Graded(NamedTuple):
    """The grades of a query, and who gave them."""

    digest: str
    judges: frozenset[JudgeKey]


def _grades(
    dataset: Dataset, query_ids: set[str], moved: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, _Graded]]:
    """Yield what the grades of queries are, and who gave them."""
    for query_id, of_query in groupby(dataset.each_judgment(), lambda judgment: judgment.query_id):
        if query_id in query_ids:
            judged = list(of_query)
            of_now = [
                (i, judgment)
                for judgment in judged
                # Texts of runs come and go with these, and are none of the set's grades.
                if not is_text_id(judgment.chunk_id)
                for i in moved.get(judgment.chunk_id, (judgment.chunk_id,))
            ]
            marks = {chunk_id: judgment.relevant for chunk_id, judgment in of_now}
            listed = [chunk_id for chunk_id, is_relevant in marks.items() if is_relevant]
            has_list = any(mark is not None for mark in marks.values())
            grades = {chunk_id: judgment.grade for chunk_id, judgment in of_now}
            judges = frozenset(
                key for judgment in judged if (key := judge_key(judgment)) is not None
            )
            yield query_id, _Graded(grades_digest(grades, listed if has_list else None), judges)


def _carry_runs_along(staged: Dataset, parent: Dataset, diff: CorpusDiff) -> tuple[CarriedRun, ...]:
    """Write the runs of the version before into the next, and return what became of each.

    Runs that were stale stay behind. Grades of chunks that are gone go along with their texts, and
    so do those of texts, whatever their documents are called now; what failed stays failed.

    Args:
        staged: Has the chunks, queries and judgments of now.
        parent: The version before.
        diff: What changed in the corpus.

    Raises:
        DataError: A file cannot be read or written.
    """
    document_map = document_map_of(parent, diff)
    change = ChunkChange(
        before=document_map.before,
        added=document_map.added,
        now=staged.chunks,
        digest=corpus_digest(staged),
        doc_id_now=document_map.of,
        untraced=document_map.untraced,
        chunking=diff.chunking,
        moved=moved_documents(parent, diff),
    )
    carried = carry_runs(staged, parent, change)
    _carry_grades(staged, parent, carried.texts)
    grade_retrieved(staged)
    return carried.runs


def _carry_grades(staged: Dataset, parent: Dataset, gone: Mapping[str, str]) -> None:
    """Give the texts of chunks that are gone the grades that these had, and their failures."""
    if not gone:
        return
    graded = {key_of(item): not item.is_failed for item in staged.each_judgment()}
    of_gone = (item for item in parent.each_judgment() if item.chunk_id in gone)
    carried: dict[Key, Judgment] = {}
    for item in by_rank(of_gone):
        pair = item.query_id, gone[item.chunk_id]
        is_known = pair in graded and (graded[pair] or item.is_failed)
        if item.source != "evidence" and not is_known:
            update = {"chunk_id": pair[1], "copied_from": ""}
            carried[pair] = item.model_copy(update=update)
    if not carried:
        return
    staged.add_judgments(iter([carried[pair] for pair in sorted(carried)]))

    def now(pair: Key) -> list[str]:
        item = carried.get((pair[0], gone.get(pair[1], "")))
        return [item.chunk_id] if item is not None and item.is_failed else []

    moved = failures_at(parent.failures(), now)
    staged.replace_failures("judge", moved, {one.key for one in moved}.__contains__)
