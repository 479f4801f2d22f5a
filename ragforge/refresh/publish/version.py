"""The next version of a set, made step by step in a folder of its own."""

from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from ragforge.config import Settings
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.complete.completing import judging_settings, probing_retrievers
from ragforge.pipeline.generation.team import Team
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import open_judges
from ragforge.pipeline.surveying import Surveyed, open_survey
from ragforge.records import Action, CallCounts, JudgmentsDiff, Provenance, VersionDiff
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.coverage.coverage import fill_coverage
from ragforge.refresh.coverage.plans import plan_coverage
from ragforge.refresh.grades.carrying import carry_judgments, count_grades
from ragforge.refresh.grades.documents import settle_labelled
from ragforge.refresh.grades.moved_chunks import with_sources
from ragforge.refresh.items.decisions import Ledger
from ragforge.refresh.items.items import settle_items
from ragforge.refresh.items.passages import CorpusNow
from ragforge.refresh.items.rechecking import Recheckers
from ragforge.refresh.items.settled import SettledItem, SettledSet
from ragforge.refresh.pools.conflicts import doubted_queries, find_conflicts
from ragforge.refresh.pools.delta import DeltaPools, judge_new_chunks
from ragforge.refresh.pools.graded import without_judge
from ragforge.refresh.publish.checks import check_version
from ragforge.refresh.publish.ledgers import bridge_of, ledger_of
from ragforge.refresh.publish.splits import connections, parted, with_splits
from ragforge.refresh.quotes.locations import ItemSight
from ragforge.refresh.quotes.search import sight_items
from ragforge.refresh.spending import Counting, in_all
from ragforge.report.refresh import with_entry
from ragforge.retrieval import Retriever

POOLED_ANEW: Final[frozenset[Action]] = frozenset(
    {"relinked", "answer_changed", "converted", "revived", "added"}
)
"""What becomes of a query whose whole pool is looked at again: its evidence or answer is another,
or nobody looked at new chunks for it."""


@dataclass(slots=True)
class Version:
    """A version under way.

    Args:
        parent: The published version.
        staged: The one that is made.
        diff: What changed in the corpus.
        job: As given; in earnest, or counting only.
        bought: Knows what was bought.
        team: Who writes, checks and judges.
        who: Checks queries again.
        stack: Closes what was opened on the way.
        settled: The queries as they are now.
        judgments: What became of grades.
        calls: By purpose.
        shortfall: What could not be added, and why.
    """

    parent: Dataset
    staged: Dataset
    diff: CorpusDiff
    job: Job
    bought: Counting
    team: Team
    who: Recheckers
    stack: AsyncExitStack
    settled: SettledSet = field(default_factory=SettledSet)
    judgments: JudgmentsDiff = field(default_factory=JudgmentsDiff)
    calls: Counter[str] = field(default_factory=Counter)
    shortfall: str = ""
    _survey: Surveyed | None = None
    _retrievers: dict[str, Retriever] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings of the job."""
        return self.job.settings

    @property
    def number(self) -> int:
        """The number of the version."""
        return self.staged.manifest.version

    async def make(self) -> VersionDiff | None:
        """Write the version; None where a pinned query would be lost.

        Raises:
            EndpointError, BudgetError: The run was stopped; what was bought is in the call store.
            DataError: A file cannot be read or written.
        """
        await self.settle()
        if self.settled.broken_pins:
            return None
        await self.carry()
        changed = {
            item.query.query_id
            for item in self.settled.items
            if item.change is not None and item.change.action in POOLED_ANEW
        }
        edited = without_judge(self.staged, self.settled.queries)
        await self._pool(self.new_chunks(), changed | edited)
        if self.settled.broken_pins:
            return None
        await self._fill()
        return self._finish()

    async def settle(self) -> None:
        """Say what becomes of each query."""
        sights = self.sights()
        self.settled = await settle_items(
            [sight for sight in sights if sight.quotes],
            [sight.query for sight in sights if not sight.quotes],
            CorpusNow(self.staged.chunks_path, self.survey),
            self.who,
            self.settings,
            self.ledger(sights),
        )
        self.settled.replace(with_sources(self.settled.items, self.diff))
        self.settled.replace(settle_labelled(self.settled, self.parent, self.diff, self.number))
        self.calls["verify"] += self.settled.n_calls
        self.staged.replace_failures("recheck", self.settled.failures, _is_query)
        self._write_queries()

    def sights(self) -> list[ItemSight]:
        """Return where the quotes of each query stand now."""
        return sight_items(self.parent.all_queries(), self.parent, self.diff, self.settings.refresh)

    def ledger(self, sights: list[ItemSight]) -> Ledger:
        """Return what refreshes did to the queries so far."""
        return ledger_of(self.parent, self.number, sights, self.diff, self.settings.refresh)

    async def carry(self) -> None:
        """Bring grades and pools along."""
        judges = await self._judges()
        self.judgments = carry_judgments(self.staged, self.parent, self.diff, self.settled, judges)

    def survey(self) -> Surveyed:
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
        """Return the ids of the chunks that the version before did not have."""
        return frozenset(chunk.chunk_id for chunk in self.diff.added())

    @property
    def judges_pools(self) -> bool:
        """Whether pools are judged; without a model that is asked for with `--complete on`."""
        how = self.settings.generate.complete
        return how == "on" or (how == "auto" and self.team.asks)

    def retrievers(self) -> dict[str, Retriever]:
        """Return who looks for chunks."""
        if not self._retrievers:
            self._retrievers = probing_retrievers(self.survey(), self.team.embedder)
        return self._retrievers

    async def _judges(self) -> tuple[Provenance, ...]:
        judging = self.job.with_settings(judging_settings(self.settings))
        async with open_judges(judging, self.parent) as judges:
            return tuple(judges.provenances())

    async def estimate_pools(self) -> DeltaPools:
        """Return what judging the new chunks would take, in a dry run."""
        new_chunks, edited = self.new_chunks(), without_judge(self.staged, self.settled.queries)
        if not self.judges_pools or not (new_chunks or edited):
            return DeltaPools()
        return await self._judged(new_chunks, edited)

    async def _judged(self, new_chunks: Collection[str], whole: Collection[str]) -> DeltaPools:
        return await judge_new_chunks(
            self.staged,
            self.survey(),
            self.retrievers(),
            self.job,
            new_chunks=new_chunks,
            whole=whole,
        )

    async def _pool(self, new_chunks: Collection[str], whole: Collection[str]) -> None:
        """Judge what is new in pools, and take out queries that it contradicts."""
        if not self.judges_pools or not (new_chunks or whole):
            return
        done = await self._judged(new_chunks, whole)
        self.calls["judge"] += done.n_calls
        conflicts = await find_conflicts(
            self.staged,
            self.survey(),
            self.settled,
            self.who,
            doubted=doubted_queries(
                self.staged, self.parent, self.settled, new_chunks, whole, diff=self.diff
            ),
            version=self.number,
        )
        self.calls["conflicts"] += conflicts.n_calls
        self.settled.broken_pins += conflicts.broken_pins
        self.settled.replace(conflicts.items)
        self._write_queries()

    async def _fill(self) -> None:
        """Generate what is missing; what a new query's pool refutes is quarantined."""
        plan = plan_coverage(
            self.parent, self.settled, self.survey(), self.diff, self.settings, self.number
        )
        filled = await fill_coverage(
            self.staged,
            self.survey(),
            self.settled,
            plan,
            self.team,
            self.diff,
            self.job,
        )
        self.calls["generate"] += filled.n_calls
        self.shortfall = filled.shortfall
        self.settled.replace(filled.items)
        self._part_splits()
        self._write_queries()
        await self._pool((), {item.query.query_id for item in filled.items})

    def _part_splits(self) -> None:
        """Give new queries their split, and take out of theirs what connects the two."""
        staged, settled, survey = self.staged, self.settled, self.survey()
        settled.replace(with_splits(staged, settled, survey, self.settings))
        settled.connections = connections(staged, settled, survey, self.diff)
        parting = parted(settled, settled.connections, self.number)
        settled.replace(parting.items)
        settled.splits = parting.changes

    def _finish(self) -> VersionDiff:
        """Write what tells of the version, and check it."""
        staged, settled = self.staged, self.settled
        self.team.note_in(staged)
        before, now = self.parent.manifest, staged.manifest
        spent = in_all(before.spent, now.spent, self.bought.spent)
        staged.write_manifest(now.model_copy(update={"cutting": self.diff.cutting, "spent": spent}))
        changes = [item.change for item in settled.items if item.change is not None]
        changes += settled.splits
        staged.past.write_events([*self.parent.past.events(), *changes])
        renew_card(staged)
        diff = VersionDiff(
            version=self.number,
            parent=before.version,
            documents=self.diff.documents,
            items=_counts(settled.items),
            changes=tuple(sorted(changes, key=lambda one: (one.query_id, one.action))),
            judgments=count_grades(self.parent, staged, self.judgments.dropped),
            calls=CallCounts(**self.calls),
            bridge=bridge_of(self.parent, staged),
            shortfall=self.shortfall,
            checks=tuple(check_version(self.parent, staged, settled, self.diff, self.settings)),
        )
        staged.past.write_diff(diff)
        staged.past.write_changelog(with_entry(self.parent.past.changelog(), diff))
        return diff

    def _write_queries(self) -> None:
        self.staged.write_queries(self.settled.queries)
        revised = [
            item.before
            for item in self.settled.items
            if item.before is not None and item.query.revision > item.before.revision
        ]
        if revised:
            self.staged.past.write_revisions([*self.parent.past.revisions(), *revised])


def _counts(items: Iterable[SettledItem]) -> dict[str, int]:
    counts = Counter[str]()
    for item in items:
        was_accepted = item.before is not None and item.before.status == "accepted"
        action = item.change.action if item.change else "kept"
        if was_accepted or action in ("added", "revived"):
            counts[action] += 1
    return dict(sorted(counts.items()))


def _is_query(key: str) -> bool:
    """Whether a failed check was of a query, and not of a chunk beside it."""
    return "/" not in key
