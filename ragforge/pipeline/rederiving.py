"""New chunks under an old set: its evidence is looked up again, and no model is asked."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from functools import cached_property

from ragforge.corpus.chunk_files import CUT_BY, renames
from ragforge.corpus.document_matches import DocumentMatches, match_documents
from ragforge.corpus.moved_copies import Copy, at_place, match_copies
from ragforge.corpus.moved_documents import (
    NONE_MOVED,
    MovedDocuments,
    find_moved_documents,
)
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.corpus.rereading import reader_of
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.files.record_files import read_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import corpus_digest
from ragforge.files.set.sorted_records import each_document
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.carried_runs import CarriedRuns, ChunkChange, carry_runs
from ragforge.pipeline.generation.generated_queries import settle
from ragforge.pipeline.generation.source import Prepared, take_corpus
from ragforge.pipeline.graded_quotes import (
    GradedQuotes,
    at_chunks,
    by_rank,
    in_order,
    moved_pool,
)
from ragforge.pipeline.text_grades import grade_retrieved, move_failures
from ragforge.records import (
    Chunk,
    Evidence,
    Judgment,
    Query,
    is_text_id,
    text_id,
    with_place,
    without_place,
)
from ragforge.stages.generate.truth import derive


@dataclass(slots=True)
class Rederivation:
    """What became of a set when its chunks were replaced.

    Args:
        n_quotes: Of evidence, in queries that are not retired.
        lost: Those that stand nowhere in their document any more, by query.
        quarantined: Ids of the queries that lost all or part of their evidence.
        freed: Ids of those that had lost some, and have it again.
        n_kept: Grades of judges and people whose chunk reads the same now, or that are of texts.
        n_dropped: Grades whose chunk is gone; their pairs are holes now. They wait under the id of
            its text, and are found again where a run, or another chunking, has that.
        n_failed_kept: Judgments that failed, of chunks that read the same now, or of texts.
        n_failed_as_texts: Those whose chunk is gone, which wait as grades do. Nothing was judged,
            so that measures know no more than before.
        n_failed_dropped: Those of chunks and documents of which no text is known.
        renamed: Documents that are found under another id: the earlier one to the one now.
        changed: Documents with evidence that have another text than before. Whether quotes that
            stand in them still answer their queries was not looked at.
        runs: What became of runs; None where the chunks are those that there were.
    """

    n_quotes: int = 0
    lost: list[tuple[str, Evidence]] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    freed: list[str] = field(default_factory=list)
    n_kept: int = 0
    n_dropped: int = 0
    n_failed_kept: int = 0
    n_failed_as_texts: int = 0
    n_failed_dropped: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    runs: CarriedRuns | None = None

    @property
    def n_found(self) -> int:
        """Quotes that were found again."""
        return self.n_quotes - len(self.lost)

    @property
    def n_failed(self) -> int:
        """Judgments that had failed."""
        return self.n_failed_kept + self.n_failed_as_texts + self.n_failed_dropped

    def as_json(self) -> dict[str, object]:
        """Return the figures, and what was lost by query."""
        return {
            "quotes": self.n_quotes,
            "found": self.n_found,
            "lost": [{"query_id": name, **item.model_dump()} for name, item in self.lost],
            "quarantined": self.quarantined,
            "freed": self.freed,
            "grades_carried": self.n_kept,
            "grades_dropped": self.n_dropped,
            "failures_carried": self.n_failed_kept,
            "failures_as_texts": self.n_failed_as_texts,
            "failures_dropped": self.n_failed_dropped,
            "renamed": dict(self.renamed),
            "documents_changed": self.changed,
            "runs": [run.as_json() for run in self.runs.runs] if self.runs else [],
            "stale_runs": list(self.runs.stale) if self.runs else [],
        }


def rederive_dataset(dataset: Dataset, prepared: Prepared) -> Rederivation:
    """Replace the chunks of a dataset; evidence, relevant chunks and grades follow.

    A query that lost a quote is quarantined, but for one that a person pinned. A grade stays
    where a chunk reads the same, of its document first, whatever its id; one of a judge is then
    marked as carried. A grade that a person gave to a quote follows the quote, and is never
    raised. What no chunk reads any more keeps its grade as a text, and what failed to be judged
    stays so, under the same ids. Runs go along: what they found
    is a chunk of now, or a text with its place. Running it again changes nothing.

    Args:
        dataset: With queries.
        prepared: The corpus as it is cut now.

    Raises:
        UsageError: No quote at all is found: these are other documents; or a document that a label
            names has another text now, or its name another one with the same chunk.
    """
    documents = _Documents(dataset, prepared)
    renamed, moved, new_doc_ids = documents.renamed(), documents.moved(), documents.new_ids()
    queries = [_in_documents_of_now(query, renamed) for query in dataset.all_queries()]
    with_evidence = {item.doc_id for query in queries for item in query.evidence}
    result = Rederivation(renamed=renamed, changed=documents.changed(with_evidence))
    graded = GradedQuotes(dataset.each_judgment(), dataset.chunks(), queries, new_doc_ids.of)
    index = _index(queries, graded.documents, prepared)
    derived, evidence = _derive_all(queries, index, result)
    if result.n_quotes and not result.n_found:
        raise UsageError(
            f"{dataset.path}: none of its {result.n_quotes} quotes stands in these chunks; they "
            "seem to be of other documents"
        )
    moves = _NewChunkIds(dataset, prepared, new_doc_ids, moved)
    followed = graded.place(index)
    old = dataset.judgments()
    texts = [one for one in old if is_text_id(one.chunk_id)]
    chunks = [one for one in old if not is_text_id(one.chunk_id)]
    originals = [one for one in texts if not (one.source == "human" and one.copied_from)]
    judgments = [
        *in_order(_carried(originals, moves, followed.pairs, result), followed.judgments),
        *_carried(chunks, moves, followed.pairs, result),
        *evidence,
    ]
    if corpus_digest(dataset) != prepared.digest:
        result.runs = carry_runs(
            dataset, dataset, chunk_change(dataset, prepared, new_doc_ids, moved)
        )
    pool = moved_pool(dataset.pool(), moves)
    if pool or dataset.pool():
        dataset.write_pool(pool)
    dataset.write_judgments({(j.query_id, j.chunk_id): j for j in by_rank(judgments)}.values())
    move_failures(dataset, moves.of_failure)
    dataset.write_queries(derived)
    take_corpus(dataset, prepared)
    grade_retrieved(dataset)
    manifest = dataset.manifest
    if manifest.made_from.get("chunks") == prepared.digest:
        renew_card(dataset)
        return result
    # From these chunks, generation would make other queries; what is there stands beside them.
    settle(dataset)
    made_from = {**manifest.made_from, "chunks": prepared.digest}
    dataset.write_manifest(dataset.manifest.model_copy(update={"made_from": made_from}))
    renew_card(dataset)
    return result


def _derive_all(
    queries: Iterable[Query], index: ChunkIndex, result: Rederivation
) -> tuple[list[Query], list[Judgment]]:
    derived: list[Query] = []
    judgments: list[Judgment] = []
    for query in queries:
        if query.status == "retired":
            derived.append(query)
            continue
        again = derive(query, index)
        result.n_quotes += len(query.evidence)
        result.lost += [(query.query_id, item) for item in again.lost]
        judgments += again.judgments
        moved = again.query
        if again.lost and query.pinned is None:
            result.quarantined.append(query.query_id)
            moved = moved.model_copy(update={"status": "quarantined"})
        elif query.status == "quarantined" and query.evidence and not again.lost:
            # Only a lost quote quarantines a query that has evidence.
            result.freed.append(query.query_id)
            moved = moved.model_copy(update={"status": "accepted"})
        derived.append(moved)
    return derived, judgments


def _index(queries: Iterable[Query], graded: Collection[str], prepared: Prepared) -> ChunkIndex:
    """Return the new chunks of the documents that hold evidence, in their order."""
    documents = {item.doc_id for query in queries for item in query.evidence} | set(graded)
    chunks = [chunk for chunk in read_records(prepared.path, Chunk) if chunk.doc_id in documents]
    return ChunkIndex(sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id)))


@dataclass(frozen=True, slots=True)
class NewDocumentIds:
    """Where documents of before are now, also where names changed hands.

    Args:
        now: The ids that documents have now which had others before.
        untraced: Those whose name another has, where nothing tells their own.
    """

    now: Mapping[str, str] = field(default_factory=dict)
    untraced: frozenset[str] = frozenset()

    def of(self, doc_id: str) -> str:
        """Return the id that a document has now; its own where it is gone."""
        return self.now.get(doc_id, doc_id)

    def copy_before(self, chunk: Chunk) -> Copy:
        """Return a chunk of before; it is placed nowhere where its document is untraced."""
        home = "" if chunk.doc_id in self.untraced else self.of(chunk.doc_id)
        return Copy(chunk.doc_id, chunk.start, chunk.chunk_id, home)


class _Documents:
    """The documents of the set, and those of now; none where these are not known."""

    def __init__(self, dataset: Dataset, prepared: Prepared) -> None:
        self._dataset, self._prepared = dataset, prepared
        self._before, self._now = dict[str, str](), dict[str, str]()
        if prepared.rows is not None:
            rows = dataset.documents()
            self._before = {row.doc_id: row.sha256.partition(CUT_BY)[0] for row in rows}
            self._now = {row.doc_id: row.sha256 for _, row in each_document(prepared.rows)}

    def renamed(self) -> dict[str, str]:
        """Return which documents are found under another id."""
        return renames(
            _without(self._before, self._now.keys()), _without(self._now, self._before.keys())
        )

    def changed(self, doc_ids: Iterable[str]) -> list[str]:
        """Return which of some documents have another text under their name, sorted."""
        both = self._before.keys() & self._now.keys()
        return sorted(
            one for one in both.intersection(doc_ids) if self._before[one] != self._now[one]
        )

    def moved(self) -> MovedDocuments:
        """Return where the texts of documents stand now; nothing where no label names documents.

        Raises:
            UsageError: One that a label names has another text now, and its own another name or
                none: done again after it was interrupted, the label would go on.
        """
        if self._dataset.manifest.level is None:
            return NONE_MOVED
        moved = self._names
        judgments = self._dataset.each_judgment()
        labelled = {item.chunk_id for item in judgments if item.level != "chunk"}
        if replaced := sorted(labelled & moved.replaced):
            place = moved.now.get(replaced[0])
            where = f"its own stands in {place}" if place else "its own is gone"
            raise UsageError(
                f"{self._dataset.path}: {replaced[0]}, which a label names, has another text now, "
                f"and {where}; `ragforge refresh` lets labels go with their texts"
            )
        return moved

    def new_ids(self) -> NewDocumentIds:
        """Return where documents are now, whatever labels name."""
        names = self._names
        untraced = names.gone & names.replaced & {*names.now.values()}
        return NewDocumentIds({**names.now, **self.renamed()}, untraced)

    @cached_property
    def _names(self) -> MovedDocuments:
        if not self._now:
            return NONE_MOVED
        same = {name for name, digest in self._before.items() if self._now.get(name) == digest}
        stayed = {self._before[name]: name for name in sorted(same, reverse=True)}
        return find_moved_documents(
            _without(self._before, same), _without(self._now, same), stayed, self._matches
        )

    def _matches(self, doc_ids: Collection[str], places: Collection[str]) -> DocumentMatches:
        return match_documents(doc_ids, places, self._dataset.chunks_path, self._prepared.path)


def _without(digests: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: digest for name, digest in digests.items() if name not in names}


def _doc_id_now(renamed: Mapping[str, str], doc_id: str) -> str:
    return renamed.get(doc_id, doc_id)


def _in_documents_of_now(query: Query, renamed: Mapping[str, str]) -> Query:
    if not any(item.doc_id in renamed for item in query.evidence):
        return query
    evidence = tuple(
        item.model_copy(update={"doc_id": _doc_id_now(renamed, item.doc_id)})
        for item in query.evidence
    )
    return query.model_copy(update={"evidence": evidence})


def chunk_change(
    dataset: Dataset,
    prepared: Prepared,
    new_doc_ids: NewDocumentIds,
    moved: MovedDocuments = NONE_MOVED,
) -> ChunkChange:
    """Return how the chunks of a set change where these are put under it."""

    def now() -> Iterable[Chunk]:
        return read_records(prepared.path, Chunk)

    return ChunkChange(
        dataset.chunks,
        now,
        now,
        prepared.digest,
        new_doc_ids.of,
        prepared.chunking,
        moved,
        new_doc_ids.untraced,
    )


class _NewChunkIds:
    """Which new chunks read like an old one that has a grade, of the same document first."""

    def __init__(
        self,
        dataset: Dataset,
        prepared: Prepared,
        new_doc_ids: NewDocumentIds,
        moved: MovedDocuments,
    ) -> None:
        self._moved = moved
        graded = {judgment.chunk_id for judgment in dataset.each_judgment()}
        texts = {without_place(chunk_id) for chunk_id in graded if is_text_id(chunk_id)}
        graded |= {entry.chunk_id for entry in dataset.pool()}
        systems = (dataset.answers(name) for name in dataset.answer_names())
        graded |= {one for answers in systems for item in answers for one in item.chunk_ids}
        read = reader_of(dataset.manifest.cutting, prepared.chunking)
        self._old: dict[str, tuple[str, str]] = {}
        before: dict[str, list[Copy]] = {}
        for chunk in dataset.chunks():
            of_text = text_id(read(chunk).text)
            before.setdefault(of_text, []).append(new_doc_ids.copy_before(chunk))
            if chunk.chunk_id in graded:
                self._old[chunk.chunk_id] = chunk.doc_id, of_text
        self._repeated = {
            of_text
            for of_text, copies in before.items()
            if len({copy.doc_id for copy in copies}) > 1
        }
        wanted = {of_text for _, of_text in self._old.values()} | texts
        self._by_text: dict[str, list[Copy]] = {}
        self._documents = set[str]()
        self._there = set[str]()
        """Ids that were given already, before this was interrupted."""
        for chunk in read_records(prepared.path, Chunk):
            of_text = text_id(chunk.text)
            self._documents.add(chunk.doc_id)
            if chunk.chunk_id in graded and chunk.chunk_id not in self._old:
                self._there.add(chunk.chunk_id)
            if of_text in wanted:
                copy = Copy(chunk.doc_id, chunk.start, chunk.chunk_id, chunk.doc_id)
                self._by_text.setdefault(of_text, []).append(copy)
        self._now = {
            chunk_id: places
            for of_text, copies in self._by_text.items()
            for chunk_id, places in match_copies(before.get(of_text, ()), copies).items()
        }
        self._refuse_taken(dataset, new_doc_ids)

    def _refuse_taken(self, dataset: Dataset, new_doc_ids: NewDocumentIds) -> None:
        """Refuse names that changed hands where both documents have one text under one id.

        Done again after it was interrupted, what names the chunk would go on.
        """
        for chunk_id, (doc_id, of_text) in sorted(self._old.items()):
            there = {copy.chunk_id for copy in self._by_text.get(of_text, ())}
            home = new_doc_ids.of(doc_id)
            if chunk_id in there and home != doc_id and self._now[chunk_id] != (chunk_id,):
                raise UsageError(
                    f"{dataset.path}: chunk {chunk_id}, which a grade or an answer names, is of "
                    f"{doc_id}, which is {home} now, and another document of the name has its text "
                    "too; `ragforge refresh` lets grades go with their documents"
                )

    def of(self, chunk_id: str) -> list[str]:
        """Return the ids that a chunk has now, its own alone where it still reads the same."""
        if chunk_id in self._there:
            return [chunk_id]
        return [*self._now.get(chunk_id, ())] if chunk_id in self._old else []

    def of_judgment(self, judgment: Judgment) -> list[str]:
        """Return the ids a judgment holds for now; a document's own id where it is there."""
        if judgment.level != "chunk":
            doc_id = self._moved.now.get(judgment.chunk_id, judgment.chunk_id)
            return [doc_id] if doc_id in self._documents else []
        return self._of_either(judgment.chunk_id)

    def _of_either(self, chunk_id: str) -> list[str]:
        """Return the ids that a chunk, or a text, has now; its own for a text that is no chunk."""
        if not is_text_id(chunk_id):
            return self.of(chunk_id)
        places = at_place(chunk_id, self._by_text.get(without_place(chunk_id), ()))
        return [copy.chunk_id for copy in places] or [chunk_id]

    def as_text(self, chunk_id: str) -> list[str]:
        """Return the id under which a grade waits whose chunk is gone; [] where that is unknown."""
        doc_id, of_text = self._old.get(chunk_id, ("", ""))
        if of_text in self._repeated:
            return [with_place(of_text, doc_id)]
        return [of_text] if of_text else []

    def of_failure(self, chunk_id: str) -> list[str]:
        """Return the ids under which what failed to be judged is found now."""
        of_document = [chunk_id] if chunk_id in self._documents else []
        return self._of_either(chunk_id) or self.as_text(chunk_id) or of_document


def _carried(
    judgments: Iterable[Judgment],
    moves: _NewChunkIds,
    followed: Collection[tuple[str, str]],
    result: Rederivation,
) -> Iterable[Judgment]:
    """Yield what somebody gave, at the chunks of now, or with the texts of before.

    A grade that followed its quote is kept with the text as well, which the next cut may have. What
    evidence says is told anew, but for copies of its chunks: these are not looked for here.
    """
    for judgment in judgments:
        if judgment.source == "evidence" and not judgment.copied_from:
            continue
        now = moves.of_judgment(judgment)
        is_kept = bool(now) or (judgment.query_id, judgment.chunk_id) in followed
        if not now and judgment.level == "chunk":
            now = moves.as_text(judgment.chunk_id)
        if judgment.is_failed:
            result.n_failed_kept += is_kept
            result.n_failed_as_texts += not is_kept and bool(now)
            result.n_failed_dropped += not now
        else:
            result.n_kept += is_kept
            result.n_dropped += not is_kept
        yield from at_chunks(judgment, now)
