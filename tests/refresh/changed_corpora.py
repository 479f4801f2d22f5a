"""A set, the corpus that it was made of, and the same corpus some time later."""

import asyncio
import hashlib
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ragforge.config import ChunkSettings, Settings
from ragforge.files.manifest import FileEntry, digest_file
from ragforge.files.record_files import write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.shipped_folders import shipped
from ragforge.observe import silent
from ragforge.pipeline.generation.generating import generate_dataset
from ragforge.pipeline.generation.models import GenerationModels, open_models
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.job import EARNEST, Job, Mode
from ragforge.pipeline.surveying import StoredSurvey, open_survey
from ragforge.records import Chunk, DocumentsDiff, Query, SourceDocument
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentMove
from ragforge.refresh.coverage import (
    CoveragePlan,
    FilledCoverage,
    estimate_coverage,
    fill_coverage,
    plan_coverage,
)
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery

T = TypeVar("T")

HELPCENTRE = shipped("datasets") / "helpcentre" / "documents"
FIRST = ("payment", "price-match", "privacy", "returns-2024", "shipping-2024", "warranty-2023")
"""Documents that the first version knows."""


def settings_of(**sections: Mapping[str, object]) -> Settings:
    """Return settings, offline where no model is named."""
    return Settings.model_validate(sections)


def folder_of(place: Path, names: Iterable[str]) -> Path:
    """Put policies of the help centre into a folder."""
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(HELPCENTRE / "policies" / f"{name}.md", place / f"{name}.md")
    return place


def source_of(documents: Path) -> ChunkSource:
    """Return documents as what they are cut into."""
    return ChunkSource([documents], None, ChunkSettings(max_chars=600), silent)


def make_set(out: Path, documents: Path, settings: Settings) -> Dataset:
    """Generate a set."""
    asyncio.run(generate_dataset(out, source_of(documents), Job(settings, silent)))
    return Dataset(out)


@dataclass(frozen=True, slots=True)
class Later:
    """A version under way.

    Args:
        parent: The version before.
        staged: The one that is made, with the chunks of now.
        diff: What changed.
        survey: Of the chunks of now.
    """

    parent: Dataset
    staged: Dataset
    diff: CorpusDiff
    survey: StoredSurvey

    def updated(self, *retired: str) -> UpdatedQueries:
        """Return the queries: without their evidence they are retired, and so are those named."""
        there = {document for document, move in _documents(self.staged.chunks()).items() if move}
        return UpdatedQueries([_settled(q, there, retired) for q in self.parent.all_queries()])

    def plan(self, updated: UpdatedQueries, settings: Settings) -> CoveragePlan:
        """Plan for version 2."""
        return plan_coverage(self.parent, updated, self.survey, self.diff, settings, 2)

    def fill(
        self, updated: UpdatedQueries, settings: Settings, mode: Mode = EARNEST
    ) -> FilledCoverage:
        """Plan for version 2, and do it."""
        plan = self.plan(updated, settings)

        job = Job(settings, silent, mode)

        async def work(models: GenerationModels) -> FilledCoverage:
            return await fill_coverage(
                self.staged, self.survey, updated, plan, models, self.diff, job
            )

        return asyncio.run(_with_models(self.parent, job, work))

    def estimate(self, updated: UpdatedQueries, settings: Settings) -> dict[str, object]:
        """Count what the plan for version 2 would take."""
        plan = self.plan(updated, settings)

        async def work(models: GenerationModels) -> dict[str, object]:
            return await estimate_coverage(plan, models, self.survey, settings, ())

        return asyncio.run(
            _with_models(self.parent, Job(settings, silent, Mode(dry_run=True)), work)
        )


async def _with_models(
    parent: Dataset, job: Job, work: Callable[[GenerationModels], Awaitable[T]]
) -> T:
    async with AsyncExitStack() as stack:
        return await work(await open_models(stack, job, parent))


@contextmanager
def later(parent: Dataset, documents: Path, place: Path) -> Iterator[Later]:
    """Lend a staged version of a set whose documents are others now."""
    staged = place / "staged"
    shutil.copytree(parent.path, staged, ignore=shutil.ignore_patterns(".ragforge"))
    with ExitStack() as stack:
        chunks = stack.enter_context(source_of(documents).prepared(place / "now"))
        diff = _diff(parent, chunks.path, chunks.entry, place)
        shutil.copy(chunks.path, staged / "chunks.jsonl")
        survey = stack.enter_context(open_survey(staged / "chunks.jsonl", place, silent))
        yield Later(parent, Dataset(staged, store_of=parent.path), diff, survey)


def _settled(query: Query, there: Iterable[str], retired: Iterable[str]) -> UpdatedQuery:
    lost = any(item.doc_id not in there for item in query.evidence) or query.query_id in retired
    now = query.model_copy(update={"status": "retired"}) if lost else query
    return UpdatedQuery(query, now)


def _documents(chunks: Iterable[Chunk]) -> dict[str, SourceDocument]:
    texts: dict[str, list[str]] = {}
    for chunk in chunks:
        texts.setdefault(chunk.doc_id, []).append(chunk.text)
    return {
        doc_id: SourceDocument(
            doc_id=doc_id,
            sha256=hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest(),
            n_chars=sum(map(len, found)),
            n_chunks=len(found),
        )
        for doc_id, found in texts.items()
    }


def _diff(parent: Dataset, path: Path, entry: FileEntry, place: Path) -> CorpusDiff:
    old = {chunk.chunk_id: chunk for chunk in parent.chunks()}
    new = {chunk.chunk_id: chunk for chunk in _chunks(path)}
    before, now = _documents(old.values()), _documents(new.values())
    moves = {
        doc_id: DocumentMove(before.get(doc_id), now.get(doc_id))
        for doc_id in sorted({*before, *now})
        if before.get(doc_id) != now.get(doc_id)
    }
    added = [new[name] for name in new if name not in old]
    removed = [old[name] for name in old if name not in new]
    for name, chunks in (("added", added), ("removed", removed)):
        write_records(place / f"{name}.jsonl", chunks, lambda chunk: chunk.chunk_id)
    write_records(place / "documents.jsonl", now.values(), lambda document: document.doc_id)
    return CorpusDiff(
        documents=DocumentsDiff(
            added=tuple(sorted(set(now) - set(before))),
            removed=tuple(sorted(set(before) - set(now))),
            changed=tuple(name for name, move in moves.items() if move.before and move.now),
            n_before=len(before),
            n_now=len(now),
            chunks_kept=len(new) - len(added),
            chunks_added=len(added),
            chunks_removed=len(removed),
        ),
        moves=moves,
        chunks_path=path,
        chunks=entry,
        documents_path=place / "documents.jsonl",
        documents_entry=FileEntry(sha256=digest_file(place / "documents.jsonl"), records=len(now)),
        added_path=place / "added.jsonl",
        removed_path=place / "removed.jsonl",
        chunking="",
    )


def _chunks(path: Path) -> list[Chunk]:
    return [Chunk.model_validate_json(line) for line in path.read_text().splitlines()]
