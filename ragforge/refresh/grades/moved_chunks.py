"""Chunks whose id is gone, the new chunks that read the same, and the sources that follow them."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from ragforge.corpus.chunking import text_sha256
from ragforge.corpus.moved_copies import Copy, at_place, match_copies
from ragforge.corpus.rereading import seen_digests, seen_now_sha256
from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import each_chunk
from ragforge.records import Chunk, MovedChunk, Query, text_id, without_place
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.corpus.document_map import DocumentMap, doc_id_now
from ragforge.refresh.queries.updates import UpdatedQuery


@dataclass(frozen=True, slots=True)
class MovedChunks:
    """Under which ids some chunks of a version are found in the next; fulfils `ChunkMoves`.

    Args:
        gone: Of these, the ids that are gone.
        now: For those whose text is found again its new ids, as they stand.
    """

    gone: frozenset[str]
    now: Mapping[str, tuple[str, ...]]

    def of(self, chunk_id: str) -> Sequence[str]:
        """Return the ids that a chunk has now: its own where it is not gone."""
        return self.now.get(chunk_id, ()) if chunk_id in self.gone else (chunk_id,)


def find_moved(
    diff: CorpusDiff, wanted: Collection[str], document_map: DocumentMap | None = None
) -> MovedChunks:
    """Return which of some chunks are gone, and where their texts stand now.

    A text is looked for among the new chunks of its document, by whatever id that goes now; where
    it is not there, among all new chunks. A text is what a reader sees, with blanks folded; of
    several chunks with one text each is one of now, see `match_copies`. A chunk went with its
    document where another one has the name of that, and the id, now.

    Args:
        diff: What changed. The chunks are read as streams; only digests of those wanted are held.
        wanted: Ids of chunks of the version before.
        document_map: Where documents are now; as far as `diff` tells if None.
    """
    document_map = document_map or DocumentMap(diff)
    sought = {
        chunk.chunk_id: seen_digests(chunk)
        for chunk in document_map.before()
        if chunk.chunk_id in wanted
    }
    digests = {digest for of_chunk in sought.values() for digest in of_chunk}
    now = _by_digest(document_map.added(), digests)
    before: dict[str, list[Copy]] = {}
    for chunk in document_map.before() if sought else ():
        if digest := next((each for each in seen_digests(chunk) if each in now), ""):
            before.setdefault(digest, []).append(document_map.copy_before(chunk))
    places = {
        chunk_id: ids
        for digest, copies in before.items()
        for chunk_id, ids in match_copies(copies, now[digest]).items()
        if chunk_id in sought
    }
    removed = {chunk.chunk_id for chunk in diff.removed() if chunk.chunk_id in sought}
    stays = {one for one in sought.keys() - removed if places.get(one, (one,)) == (one,)}
    moved = {chunk_id: ids for chunk_id, ids in places.items() if chunk_id not in stays}
    return MovedChunks(frozenset(sought.keys() - stays), moved)


def _by_digest(chunks: Iterable[Chunk], digests: Set[str]) -> dict[str, list[Copy]]:
    """Return the chunks of now with some texts, as they stand, by the digest of the text."""
    found: dict[str, list[Copy]] = {}
    for chunk in chunks if digests else ():
        # A grade that waits since markup was no matter has the digest of the text with it.
        for digest in digests & {seen_now_sha256(chunk), text_sha256(chunk.text)}:
            found.setdefault(digest, []).append(_copy(chunk))
    return {digest: sorted(copies) for digest, copies in found.items()}


def _copy(chunk: Chunk) -> Copy:
    return Copy(chunk.doc_id, chunk.start, chunk.chunk_id, chunk.doc_id)


def new_places(
    diff: CorpusDiff, texts: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the ids of the new chunks with some texts, as they stand; of texts that are in any.

    Args:
        diff: What changed.
        texts: Each as the id of the document where it is looked for first, and its digest.
    """
    texts = {*texts}
    added = _by_digest(diff.added(), {digest for _, digest in texts})
    by_pair: dict[tuple[str, str], tuple[str, ...]] = {}
    for doc_id, digest in texts:
        places = added.get(digest, [])
        here = [copy for copy in places if copy.doc_id == doc_id] or places
        if here:
            by_pair[doc_id, digest] = tuple(copy.chunk_id for copy in here)
    return by_pair


def places_anywhere(diff: CorpusDiff, digests: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of all chunks of now that read as some texts do, sorted, by their digest."""
    found: dict[str, list[str]] = {}
    for _, chunk in each_chunk(diff.chunks_path) if digests else ():
        if (digest := seen_now_sha256(chunk)) in digests:
            found.setdefault(digest, []).append(chunk.chunk_id)
    return {digest: tuple(sorted(ids)) for digest, ids in found.items()}


def originals_back(diff: CorpusDiff, chunk_ids: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the ids of the chunks that read as some do which are new, themselves among them.

    Args:
        diff: What changed.
        chunk_ids: Of those that may be.
    """
    digests = {
        chunk.chunk_id: seen_now_sha256(chunk)
        for chunk in (diff.added() if any(chunk_ids) else ())
        if chunk.chunk_id in chunk_ids
    }
    places = places_anywhere(diff, {*digests.values()})
    return {chunk_id: frozenset(places[digest]) for chunk_id, digest in digests.items()}


def texts_back(diff: CorpusDiff, text_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the new chunks that read as texts do which were no chunks, as they stand.

    Args:
        diff: What changed.
        text_ids: Of any place of the texts; where it is a document, its chunks are these.

    Returns:
        By the id of the text, those left out that are no chunk.
    """
    wanted: dict[str, list[str]] = {}
    for one in text_ids:
        wanted.setdefault(without_place(one), []).append(one)
    found: dict[str, list[Copy]] = {}
    for chunk in diff.added() if wanted else ():
        for one in wanted.get(text_id(chunk.text), ()):
            found.setdefault(one, []).append(_copy(chunk))
    return {one: tuple(copy.chunk_id for copy in at_place(one, of)) for one, of in found.items()}


def new_to_readers(diff: CorpusDiff) -> frozenset[str]:
    """Return the ids of new chunks that no chunk of their document and titles read like before."""
    before = {
        (doc_id_now(diff, chunk.doc_id), chunk.heading_path, digest)
        for chunk in diff.removed()
        for digest in seen_digests(chunk)
    }
    return frozenset(
        chunk.chunk_id
        for chunk in diff.added()
        if (chunk.doc_id, chunk.heading_path, seen_now_sha256(chunk)) not in before
    )


def moved_since(
    earlier: Mapping[str, Sequence[str]], moved: MovedChunks, diff: CorpusDiff
) -> list[MovedChunk]:
    """Return what moved now, and where that stands now which moved before, by its ids of then.

    An id that is one of the corpus is left out: it needs no other, but for a chunk that had it in
    the version before.

    Args:
        earlier: The moves that the version before knows of.
        moved: Those since.
        diff: What changed since.
    """
    back = earlier.keys() & diff.documents.added if earlier else set[str]()
    chunks = (chunk for _, chunk in each_chunk(diff.chunks_path)) if earlier else ()
    back |= {chunk.chunk_id for chunk in chunks if chunk.chunk_id in earlier}
    moves = {
        before: tuple(sorted({now for chunk_id in then for now in moved.of(chunk_id)}))
        for before, then in earlier.items()
        if before not in back
    }
    moves |= moved.now
    return [
        MovedChunk(before=before, now=moves[before]) for before in sorted(moves) if moves[before]
    ]


def named_chunks(dataset: Dataset) -> set[str]:
    """Return the ids of chunks that a version names: in grades, pools, runs and earlier moves."""
    chunk_ids = {one.chunk_id for one in dataset.each_judgment()}
    chunk_ids |= {entry.chunk_id for entry in dataset.each_pool_entry()}
    chunk_ids |= {check.chunk_id for check in dataset.label_checks()}
    chunk_ids |= {chunk_id for then in dataset.past.moved_chunks().values() for chunk_id in then}
    for name in dataset.run_names():
        for ranking in dataset.each_ranking(name):
            chunk_ids |= {hit.chunk_id for hit in ranking.ranking}
    return chunk_ids


def with_sources(
    items: Iterable[UpdatedQuery], diff: CorpusDiff, document_map: DocumentMap | None = None
) -> list[UpdatedQuery]:
    """Return the items of which a source chunk is gone, with what they have of sources now.

    A chunk that reads the same under another id goes by that; one that does not is left out, so
    that a query may have none. That is no news of the query: what it asks and what proves it are as
    they were. The sources of a query with quotes are the chunks of these, which follow the quotes.

    Args:
        items: As their quotes leave them.
        diff: What changed in the corpus.
        document_map: As for `find_moved`.
    """
    named = [item for item in items if item.query.source_chunk_ids and _is_in_use(item.query)]
    wanted = {one for item in named for one in item.query.source_chunk_ids}
    if not wanted:
        return []
    moves = find_moved(diff, wanted, document_map)
    return [
        replace(item, query=_placed(item.query, moves))
        for item in named
        if not moves.gone.isdisjoint(item.query.source_chunk_ids)
    ]


def _is_in_use(query: Query) -> bool:
    return query.status == "accepted" or (query.status != "retired" and not query.evidence)


def _placed(query: Query, moves: MovedChunks) -> Query:
    """Return a query with one place of each chunk that is there: one text is one source."""
    places = (moves.of(chunk_id) for chunk_id in query.source_chunk_ids)
    now = tuple(dict.fromkeys(of[0] for of in places if of))
    return query.model_copy(update={"source_chunk_ids": now})
