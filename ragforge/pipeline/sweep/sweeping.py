"""Sweeping: each configuration cuts the documents, ranks them for the queries, and is measured.

Each configuration is written when it is done: a sweep that was stopped or killed goes on where it
was, and a new size adds to the old ones. The best may be asked for answers then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.config import Settings
from ragforge.config.services import asked_over_http
from ragforge.corpus.chunk_files import corpus_documents
from ragforge.corpus.documents import Document
from ragforge.corpus.file_texts import laid_out_text, rebuilt_documents
from ragforge.corpus.origins.fetching import fetch_documents
from ragforge.corpus.quality import token_count
from ragforge.corpus.sized_chunkers import SPLITTERS, splitter_version
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.configurations import Configuration
from ragforge.evaluating.evidence import placed_quotes
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.sweep import (
    RankedConfiguration,
    SweepForecast,
    SweepReport,
    SweptQueries,
    measure_sweep,
    trusted_evidence,
)
from ragforge.files.atomic import MIRRORS, make_own_place, write_whole
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.paths import require_own_place
from ragforge.observe import Event, silent
from ragforge.pipeline.backend import count_embeddings, embedder_of
from ragforge.pipeline.job import Job
from ragforge.pipeline.sweep.finals import Answering, Finals, finals_of, gradable, supposed_finals
from ragforge.pipeline.sweep.judged import (
    Judging,
    check_judging,
    forecast_judging,
    judge_prompts,
    prompts_of,
    supposed_texts,
)
from ragforge.pipeline.sweep.plan import OWN_INDEX, SweepPlan
from ragforge.pipeline.sweep.rankings import (
    RankingDepth,
    chunks_digest,
    cut,
    digest,
    kept_rankings,
)
from ragforge.pipeline.sweep.retrieving import (
    CutKey,
    Sources,
    SweepState,
    chunkings,
    cut_key,
    has_part,
    is_for_processes,
    is_held,
    rank_here,
    rank_in_processes,
)
from ragforge.pipeline.sweep.spending import Spending
from ragforge.plugins import find, sources_digest
from ragforge.records import Chunk
from ragforge.report.sweep import sweep_json
from ragforge.retrieval.local_models import LOCAL_MODELS, version_of
from ragforge.retrieval.retrievers import GROUP, RERANKED, make_retriever

if TYPE_CHECKING:
    from ragforge.llm.embedder import EndpointEmbedder
    from ragforge.retrieval.context_readers import ContextReader

FOLDER: Final = "sweep"
"""In the own place of a set: rankings by configuration, and `sweep.json`, the last result."""
RESULT: Final = "sweep.json"
_DENSE: Final = "dense"
_LEAST_KEPT: Final = 0.9
"""Share of the text below which chunks leave out more than marks."""
_NAMED: Final = 10
"""Queries that a warning names."""
_LARGE: Final = 200_000_000
"""Characters of documents from which on one process is enough for the memory."""


async def sweep_dataset(
    dataset: Dataset,
    plan: SweepPlan,
    documents: Sequence[str | Path],
    job: Job,
    *,
    n_processes: int = 1,
    answering: Answering | None = None,
    judging: Judging | None = None,
) -> SweepReport:
    """Try all configurations of a plan on the queries of a set, and write `sweep.json`.

    Args:
        dataset: Has queries with evidence. Where a part of them is chosen, only that is measured.
        plan: What to try.
        documents: Files, folders and origins; the documents that the chunks of the set were cut
            from where empty.
        job: Models and budget. Its observer is told of two stages, `sweep` and `embed`.
        n_processes: For what is ranked by words.
        answering: Who answers from what the first of them retrieve; None to ask nobody.
        judging: How a judge decides between them; None to ask none.

    Raises:
        UsageError, ConfigError: A retriever or the system cannot be made, no configuration worked,
            or the system retrieves by itself.
        DataError: The documents cannot be read, no query has evidence that stands in them, or the
            disk is full; what was ranked until then is kept.
        EndpointError, BudgetError: It was stopped; likewise.
    """
    spending = Spending(job.observer)
    reader = _check_answering(answering, job) if answering else None
    if judging:
        check_judging(plan.top)
    sources = _sources(dataset, documents, job)
    if answering:
        gradable(sources.swept)
    state = _begun(dataset, plan, sources, job.settings)
    if state.left:
        await _rank_what_is_left(dataset, state, sources, job, spending, n_processes)
    report = _report(dataset, state, sources, spending)
    _write(dataset, report)
    if judging and len(state.ranked) > 1:
        ranked = list(state.ranked.values())
        prompts = prompts_of(ranked, sources.swept, plan.top, judging)
        judged = await judge_prompts(ranked, prompts, sources.asked, dataset, job)
        report = replace(report, judged=judged)
        _write(dataset, report)
    if answering is None:
        return report
    from ragforge.pipeline.sweep.answers import AnswerPlace, answer_finals

    finals = finals_of(report.results, sources.swept, plan.top, answering)
    place = AnswerPlace(dataset, _folder(dataset))
    answers = await answer_finals(finals, place, answering, reader, job)
    report = replace(report, answers=answers)
    _write(dataset, report)
    return report


async def _rank_what_is_left(
    dataset: Dataset,
    state: SweepState,
    sources: Sources,
    job: Job,
    spending: Spending,
    n_processes: int,
) -> None:
    """Rank what no earlier sweep ranked: by words in processes, the rest here."""
    left = state.left
    counts = f"{plural(len(left), 'configuration')} to rank, {len(state.ranked)} there from before"
    job.observer(Event("note", message=counts))
    if sum(len(document.text) for document in sources.documents) > _LARGE:
        n_processes = 1
    by_words = [item for item in left if is_for_processes(item)] if n_processes > 1 else []
    await rank_in_processes(state, sources, by_words, n_processes, job.observer)
    counted = Job(job.settings, spending, job.mode, job.account)
    await rank_here(state, sources, dataset, counted)


def _write(dataset: Dataset, report: SweepReport) -> None:
    write_whole(_folder(dataset) / RESULT, [f"{_dumped(report)}\n"])


def _check_answering(answering: Answering, job: Job) -> ContextReader | None:
    from ragforge.pipeline.sweep.answers import check_answering

    return check_answering(answering, job)


async def forecast_sweep(
    dataset: Dataset,
    plan: SweepPlan,
    documents: Sequence[str | Path],
    job: Job,
    *,
    answering: Answering | None = None,
    judging: Judging | None = None,
) -> SweepForecast:
    """Cut the documents and count what a sweep would do, without ranking or asking anything.

    Args:
        dataset: As for `sweep_dataset`.
        plan: Likewise.
        documents: Likewise.
        job: In a dry run.
        answering: Likewise; a system that is not the model is not made.
        judging: Likewise.

    Raises:
        UsageError, DataError: As for `sweep_dataset`.
    """
    if answering and (answering.is_model or answering.system in job.settings.systems):
        _check_answering(answering, job)
    if judging:
        check_judging(plan.top)
    sources = _sources(dataset, documents, job)
    state = _begun(dataset, plan, sources, job.settings)
    n_texts = 0
    n_chunks = {item: each.n_chunks for item, each in state.ranked.items()}
    texts = list(sources.asked.values())
    largest: list[Chunk] = []
    async with embedder_of(job, dataset) as embedder:
        for chunks, configurations in chunkings(state, sources, state.left):
            n_chunks |= dict.fromkeys(configurations, len(chunks))
            tokens = sum(token_count(chunk.text) for chunk in chunks) / len(chunks)
            of_prompts = supposed_texts(tokens, len(sources.asked), plan.top)
            n_texts += of_prompts * len(configurations)
            largest = chunks if not largest or len(chunks) < len(largest) else largest
            if any(has_part(item.retriever, _DENSE) for item in configurations):
                _require_embedder(embedder)
                assert embedder is not None
                await count_embeddings(embedder, chunks, texts)
                texts = []
        estimate = embedder.estimate() if embedder else {}
    cost = estimate.get("cost_usd", 0.0)
    answers = None
    if answering and n_chunks:
        from ragforge.pipeline.sweep.answers import AnswerPlace, forecast_finals

        finals = _finals(dataset, state, sources, answering, largest)
        place = AnswerPlace(dataset, _folder(dataset))
        answers = await forecast_finals(finals, place, answering, job)
    judged = None
    if judging and n_chunks:
        ranked = list(state.ranked.values())
        if ranked:
            n_texts += prompts_of(ranked, sources.swept, plan.top, judging).pool.size
        judged = await forecast_judging(n_texts, not state.left, dataset, job)
    return SweepForecast(
        dataset=str(dataset.path),
        decided_by=str(plan.decided_by),
        configurations=tuple(n_chunks.items()),
        kept=tuple(state.ranked),
        failed=tuple(state.failed.items()),
        n_queries=len(sources.asked),
        n_documents=len(sources.documents),
        calls=_int(estimate.get("calls", 0)),
        cached=_int(estimate.get("cached", 0)),
        prompt_tokens=_int(estimate.get("prompt_tokens", 0)),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
        answers=answers,
        judged=judged,
    )


def _finals(
    dataset: Dataset,
    state: SweepState,
    sources: Sources,
    answering: Answering,
    chunks: Sequence[Chunk],
) -> Finals:
    """Return what is to be answered; where not all is ranked, what stands in for it."""
    plan = state.plan
    if state.left:
        left = [item for item in plan.configurations if item not in state.failed]
        return supposed_finals(left, chunks, sources.swept, plan.top, answering)
    report = _report(dataset, state, sources, Spending(silent))
    return finals_of(report.results, sources.swept, plan.top, answering)


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _require_embedder(embedder: EndpointEmbedder | None) -> None:
    if embedder is None:
        make_retriever(_DENSE, (), None)


def _dumped(report: SweepReport) -> str:
    import json

    return json.dumps(sweep_json(report), indent=2, ensure_ascii=False, allow_nan=False)


def _folder(dataset: Dataset) -> Path:
    return dataset.own_place / FOLDER


def _sources(dataset: Dataset, documents: Sequence[str | Path], job: Job) -> Sources:
    part = {query.query_id: query.asked for query in dataset.require_queries()}
    read = _read(dataset, documents, job) if documents else _rebuilt(dataset)
    texts = {document.doc_id: laid_out_text(document) for document in read}
    queries = trusted_evidence(dataset.require_accepted_queries(), texts)
    placed, unplaced = placed_quotes(queries, texts, {})
    asked = {query_id: text for query_id, text in part.items() if query_id in placed}
    if not asked:
        with_evidence = [query for query in queries if query.evidence]
        raise DataError(
            f"{dataset.path}: no query has evidence that stands in the documents"
            + (
                "; are they those that the set was made from, under the same names? "
                f"The set names {with_evidence[0].evidence[0].doc_id!r:.80}"
                if with_evidence
                else ": a sweep measures where quotes stand; `ragforge generate` makes queries "
                "with quotes, and `ragforge import` takes them as {doc_id, quote}"
            )
        )
    documents_by_id = {document.doc_id: document for document in read}
    swept = SweptQueries(queries, frozenset(asked), dataset.chosen, texts, documents_by_id)
    return Sources(
        read,
        dict(sorted(asked.items())),
        swept,
        sorted(part.keys() - placed.keys() - unplaced),
        sorted(part.keys() & unplaced),
    )


def _read(dataset: Dataset, documents: Sequence[str | Path], job: Job) -> list[Document]:
    settings, mirrors = job.settings.chunk, dataset.own_place / MIRRORS
    with fetch_documents(documents, mirrors, job.observer, settings) as paths:
        told = paths.observer_naming_origins(job.observer)
        return list(corpus_documents(paths, settings, told))


def _rebuilt(dataset: Dataset) -> list[Document]:
    """Return the documents that the chunks of a set were cut from, as far as these hold them."""
    if not dataset.chunks_path.exists():
        raise DataError(f"{dataset.path}: has no chunks; name the corpus: --documents DIR")
    return list(rebuilt_documents(dataset.chunks()))


def _begun(dataset: Dataset, plan: SweepPlan, sources: Sources, settings: Settings) -> SweepState:
    """Return the state with what earlier sweeps did."""
    _refuse_services(plan, settings)
    folder = _folder(dataset)
    make_own_place(dataset.own_place)
    require_own_place(dataset.own_place)
    corpus = digest(
        [[item.doc_id, item.title, item.format, item.text] for item in sources.documents]
    )
    asked = digest(sources.asked)
    pieces, failed = _pieces_of_users(plan, sources.documents)
    paths = {
        item: folder
        / f"{digest(corpus, asked, pieces.get(cut_key(item)), *_key(item, settings))}.json"
        for item in plan.configurations
    }
    wanted = RankingDepth.at_least(plan.most_texts, plan.most_tokens)
    state = SweepState(plan, wanted, paths, failed=failed)
    least = RankingDepth(plan.most_texts, plan.most_tokens)
    for item, path in paths.items():
        kept = None if is_held(item) or item in failed else kept_rankings(path, item, least)
        if kept is not None:
            state.ranked[item] = kept
    return state


def _pieces_of_users(
    plan: SweepPlan, documents: Sequence[Document]
) -> tuple[dict[CutKey, str], dict[Configuration, str]]:
    """Return digests of what splitters of users give now, and why others give nothing.

    What such a splitter imports or reads may have changed; only its pieces tell.
    """
    digests: dict[CutKey, str] = {}
    failed: dict[Configuration, str] = {}
    of_users = (item for item in plan.configurations if item.splitter not in SPLITTERS)
    for key, of_chunking in groupby(of_users, cut_key):
        listed = list(of_chunking)
        if all(is_held(item) for item in listed):
            continue
        try:
            with redirect_stdout(sys.stderr):
                digests[key] = chunks_digest(cut(listed[0], documents))
        except UsageError as error:
            failed |= dict.fromkeys(listed, str(error))
    return digests, failed


def _refuse_services(plan: SweepPlan, settings: Settings) -> None:
    """Refuse a service of the settings, which does not search what is cut here.

    Raises:
        UsageError: One is to be tried.
    """
    for item in plan.configurations:
        first = item.retriever.partition(RERANKED)[0]
        if first in asked_over_http(settings.retrievers) and not is_held(item):
            raise UsageError(OWN_INDEX.format(item.retriever))


def _key(item: Configuration, settings: Settings) -> list[object]:
    versions = [version_of(name) for name in LOCAL_MODELS if has_part(item.retriever, name)]
    model = settings.model if has_part(item.retriever, _DENSE) else None
    endpoint = [model.embedding_model, model.endpoint_id or model.address] if model else []
    version = splitter_version(item.splitter) if item.splitter in SPLITTERS else ""
    chunking = [str(item.splitter), version, item.size, item.overlap]
    return [chunking, str(item.retriever), versions, endpoint, _source_digest(item.retriever)]


def _source_digest(retriever: str) -> str:
    """Return the digest of the sources of a user's retriever; "" for a built-in one."""
    return sources_digest(find(GROUP, retriever.partition(RERANKED)[0])) if ":" in retriever else ""


def _report(
    dataset: Dataset, state: SweepState, sources: Sources, spending: Spending
) -> SweepReport:
    ranked = [state.ranked[item] for item in state.plan.configurations if item in state.ranked]
    if not ranked:
        first = next(iter(state.failed.values()))
        raise UsageError(
            f"no configuration of {len(state.failed)} could be ranked; the first: {first}"
        )
    results = measure_sweep(ranked, sources.swept, state.plan.tops, state.plan.decided_by)
    return SweepReport(
        dataset=str(dataset.path),
        decided_by=str(state.plan.decided_by),
        results=tuple(results),
        n_queries=len(sources.asked),
        n_documents=len(sources.documents),
        failed=tuple(state.failed.items()),
        calls=spending.calls,
        cost_usd=spending.cost_usd,
        warnings=tuple(_warnings(ranked, sources)),
    )


def _warnings(ranked: Sequence[RankedConfiguration], sources: Sources) -> Iterator[str]:
    if sources.without_evidence:
        yield (
            f"{_left_out(sources.without_evidence)}, without evidence: give them quotes by "
            "`ragforge import`, as {doc_id, quote}"
        )
    if sources.unplaced:
        yield (
            f"{_left_out(sources.unplaced)}, of whose quotes some stand nowhere in the documents: "
            "sweep those that the set was made from, or bring the set to these by `ragforge "
            "refresh`"
        )
    if len(sources.asked) == 1:
        yield "one query tells nothing of others: no interval, and nothing is told apart"
    yield from _cut_warnings(ranked, sources.documents)
    for each in ranked:
        if each.failed:
            first = next(iter(each.failed.values()))
            yield (
                f"{each.configuration.name}: failed on {len(each.failed)} of {len(sources.asked)} "
                f"queries, which have no value; the first: {first}"
            )


def _left_out(query_ids: Sequence[str]) -> str:
    """Return how many queries are left out, and the first of them by name."""
    named = ", ".join(query_ids[:_NAMED])
    more = f" and {len(query_ids) - _NAMED} more" if len(query_ids) > _NAMED else ""
    return f"{plural(len(query_ids), 'query', 'queries')} left out ({named}{more})"


def _cut_warnings(
    ranked: Sequence[RankedConfiguration], documents: Sequence[Document]
) -> Iterator[str]:
    """Yield what is odd of how documents were cut."""
    longest = max(len(document.text) for document in documents)
    n_visible = sum(len("".join(document.text.split())) for document in documents)
    chunkings = {cut_key(each.configuration): each for each in ranked}.values()
    whole = [each.configuration.cut_name for each in chunkings if _is_whole(each, longest)]
    if whole:
        yield (
            f"{'; '.join(whole)}: no document is longer, so none is cut for its length; larger "
            "sizes change nothing"
        )
    for each in chunkings:
        share = each.n_chunks * each.mean_chars / n_visible if n_visible else 1.0
        if share < _LEAST_KEPT:
            yield (
                f"{each.configuration.cut_name}: its chunks hold {share:.0%} of the text at most; "
                "quotes in what it leaves out cannot be found"
            )


def _is_whole(each: RankedConfiguration, longest: int) -> bool:
    size = each.configuration.size
    return size is not None and longest <= size - each.configuration.overlap
