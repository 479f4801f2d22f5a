"""Generated queries of a set: which they are, what generation starts from, and what it writes."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ragforge.config import Settings
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.files.manifest import GenerationStep
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.generation.models import GenerationModels
from ragforge.pipeline.generation.source import Prepared, take_corpus
from ragforge.records import Judgment, Query
from ragforge.stages.answer.facts import keeping_facts
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.splits import assign_splits
from ragforge.stages.generate.truth import derive

SETTLED = "settled"
"""In the place of the slot of a query that is not made again."""


def is_own(query: Query) -> bool:
    """Whether generation made a query, and makes it again."""
    return _is_made(query) and not is_settled(query)


def is_settled(query: Query) -> bool:
    """Whether generation made a query that now stands by itself."""
    return query.lineage is not None and query.lineage.slot == SETTLED


def is_kept(query: Query) -> bool:
    """Whether a person had a hand in a query, so that it is never written over."""
    is_decided = query.pinned is not None or query.reviewed is not None
    return is_decided or query.revision > 1 or query.status == "retired"


def settle(dataset: Dataset) -> None:
    """Settle the queries of a dataset; what was asked for so far is forgotten."""
    dataset.write_queries([settled(query) for query in dataset.all_queries()])
    manifest = dataset.manifest
    if manifest.steps:
        dataset.write_manifest(manifest.model_copy(update={"steps": ()}))


def settled(query: Query) -> Query:
    """Return a query that is not made again, where it was generated."""
    if query.lineage is None or not is_own(query):
        return query
    lineage = query.lineage.model_copy(update={"slot": SETTLED})
    return query.model_copy(update={"lineage": lineage})


def _is_made(query: Query) -> bool:
    return query.origin == "synthetic" and query.lineage is not None and query.lineage.slot != ""


@dataclass(frozen=True, slots=True)
class GenerationInputs:
    """What generation starts from.

    Args:
        steps: What was asked for so far beyond what is settled; the last is what is wanted now.
            Each is generated in its turn, so that a set that grew step by step comes out the same
            again.
        others: Queries of the set that generation did not make.
        own: Those that it made, by id.
        real: Queries of users, whose manner is taken on.
    """

    steps: tuple[GenerationStep, ...]
    others: tuple[Query, ...]
    own: dict[str, Query]
    real: tuple[str, ...]

    @property
    def n_wanted(self) -> int:
        """How many queries are wanted, settled ones included."""
        return self.n_settled + (self.steps[-1].n if self.steps else 0)

    @property
    def settled(self) -> list[Query]:
        """Generated queries that stand by themselves, rejected ones included."""
        return [query for query in self.others if is_settled(query)]

    @property
    def n_settled(self) -> int:
        """How many of those count."""
        return sum(query.status == "accepted" for query in self.settled)

    def taken(self) -> QuestionsAsked:
        """Return the questions that must not come again."""
        found = QuestionsAsked()
        for query in self.others:
            found.add(query.query_id, query.asked)
        return found


def open_inputs(
    out: Path, chunks: Prepared, made_from: dict[str, str], settings: Settings, real: Sequence[str]
) -> GenerationInputs:
    """Make the dataset, or open the one that the same inputs made, and tell what is in it.

    Raises:
        UsageError: The directory holds another dataset, or one edited by hand.
        DataError: It cannot be made or read.
    """
    dataset = create_dataset(out, made_from)
    if dataset.changed_by_hand("queries.jsonl"):
        raise UsageError(
            f"{dataset.path / 'queries.jsonl'}: was changed by hand since it was generated; "
            "name another --out so that no edit is lost, or make edits with `ragforge review`"
        )
    take_corpus(dataset, chunks)
    queries = dataset.all_queries()
    steps = _steps(dataset, settings.generate.n, queries)
    return GenerationInputs(
        steps=steps,
        others=tuple(query for query in queries if not is_own(query)),
        own={query.query_id: query for query in queries if is_own(query)},
        real=tuple(real),
    )


def made_from(
    digest: str, settings: Settings, models: GenerationModels, real: Sequence[str]
) -> dict[str, str]:
    """Return the inputs that decide which queries come out, apart from their number.

    Args:
        digest: Of the chunks.
        settings: As given.
        models: With its prompts.
        real: Queries whose manner is taken on.
    """
    how = settings.generate
    shares = (how.types, how.difficulties, how.personas)
    return {
        "chunks": digest,
        "model": models.writer.name,
        "checker": models.checker.name if models.checker else "",
        "prompts": " ".join(digest[:12] for _, digest in sorted(models.prompts.items())),
        "seed": str(settings.model.seed),
        "language": ",".join(how.language),
        "kinds": "; ".join(",".join(each) for each in shares),
        "candidates": f"{how.per_call} a call, {how.per_chunk} calls a chunk",
        "style": digest_of(real),
    }


def digest_of(texts: Sequence[str]) -> str:
    """Return a short digest of some texts; "" of none."""
    from hashlib import sha256

    joined = "\n".join(texts).encode("utf-8", "surrogatepass")
    return sha256(joined).hexdigest()[:16] if texts else ""


def _steps(dataset: Dataset, n: int, queries: Sequence[Query]) -> tuple[GenerationStep, ...]:
    """Return the steps asked for so far, and the present one; a smaller number adds nothing."""
    n -= sum(is_settled(query) and query.status == "accepted" for query in queries)
    manifest = dataset.manifest
    before = manifest.steps
    known = {query_id for step in before for query_id in step.taken_out}
    retired = {q.query_id for q in queries if is_own(q) and q.status == "retired"}
    out = tuple(sorted(retired - known))
    least = before[-1].n if before else 0
    if n <= least and not out:
        return before
    steps = (*before, GenerationStep(n=max(n, least), taken_out=out))
    dataset.write_manifest(manifest.model_copy(update={"steps": steps}))
    return steps


def keep_generated(
    dataset: Dataset,
    survey: Survey,
    queries: Sequence[Query],
    *,
    dev_share: float,
    is_whole: bool,
) -> None:
    """Write what was generated beside the queries and judgments that others put there.

    What a person reviewed, edited or pinned stays as it is, and so do splits once given.

    Args:
        dataset: Gets it.
        survey: Of its corpus.
        queries: What was generated, accepted and refuted ones.
        dev_share: Share of new groups that goes into the split dev.
        is_whole: Whether generation came to its end; else what was there before stays as well.
    """
    before = dataset.all_queries()
    standing = {query.query_id: query for query in before}
    others = [query for query in before if not is_own(query)]
    taken = {query.query_id for query in others}
    fresh = [query for query in queries if query.query_id not in taken]
    mine = {query.query_id: _settled(query, standing.get(query.query_id)) for query in fresh}
    for query in before:
        if is_own(query) and query.query_id not in mine and (is_kept(query) or not is_whole):
            mine[query.query_id] = query
    index = index_of([*mine.values()], survey)
    derived = [derive(query, index) for query in keeping_facts(mine.values(), before)]
    everything = [*others, *(each.query for each in derived)]
    split = assign_splits(everything, documents_of(everything, survey), dev_share)
    evidence = [judgment for each in derived for judgment in each.judgments]
    dataset.write_queries(split)
    ids = {query.query_id for query in split}
    moved = {
        each.query.query_id
        for each in derived
        if _quotes(standing.get(each.query.query_id)) != _quotes(each.query)
    }
    dataset.write_judgments(_judgments(dataset, ids, moved, evidence))
    if is_whole:
        pool = dataset.pool()
        left = [entry for entry in pool if entry.query_id in ids]
        if len(left) < len(pool):
            dataset.write_pool(left)


def _quotes(query: Query | None) -> tuple[str, ...]:
    return tuple(item.quote for item in query.evidence) if query else ()


def _settled(query: Query, old: Query | None) -> Query:
    """Return a query as it is to stand: what a person did to the old one, and its split, stays."""
    if old is None:
        return query
    if is_kept(old):
        return old
    return query.model_copy(update={"split": old.split, "split_before": old.split_before})


def index_of(queries: Iterable[Query], survey: Survey) -> ChunkIndex:
    """Return the chunks of all documents that the evidence of queries is of."""
    documents = sorted({item.doc_id for query in queries for item in query.evidence})
    return ChunkIndex(
        survey.chunk(chunk_id) for doc_id in documents for chunk_id in survey.in_document(doc_id)
    )


def documents_of(queries: Iterable[Query], survey: Survey) -> dict[str, set[str]]:
    """Return the documents that each query rests on, and those that hold the same text, by id.

    A source chunk that the corpus does not have any more tells of none.
    """
    by_query: dict[str, set[str]] = {}
    for query in queries:
        documents = {item.doc_id for item in query.evidence}
        for chunk_id in query.source_chunk_ids:
            with suppress(KeyError):
                for copy in (chunk_id, *survey.near_duplicates(chunk_id)):
                    documents.add(survey.chunk(copy).doc_id)
        by_query[query.query_id] = documents
    return by_query


def _judgments(
    dataset: Dataset,
    query_ids: Collection[str],
    moved: Collection[str],
    evidence: Iterable[Judgment],
) -> Iterable[Judgment]:
    """Return the judgments of the set: what others gave stands above what the evidence says.

    Args:
        dataset: As it stands.
        query_ids: Of the queries that it holds now.
        moved: Of those with other quotes than before; else what they say of texts of runs stays.
        evidence: What quotes say at their places.
    """
    by_pair = {(item.query_id, item.chunk_id): item for item in evidence}
    for old in dataset.each_judgment():
        pair = (old.query_id, old.chunk_id)
        if old.query_id not in query_ids:
            continue
        if old.source == "evidence" and (old.query_id in moved or pair in by_pair):
            continue
        if old.grade is not None or pair not in by_pair:
            by_pair[pair] = old
    return by_pair.values()
