"""Runs of other chunks on the chunks of now: what is gone goes along as text.

A retriever found texts. Most of them are chunks still, some under another id; the others are kept
as texts that are no chunks of the set, with their places in the documents of now, so that the run
can be measured until it is made again.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cache
from math import inf, nextafter

from ragforge.corpus.file_texts import file_texts
from ragforge.corpus.moved_copies import Copy, match_copies
from ragforge.corpus.moved_documents import NONE_MOVED, MovedDocuments
from ragforge.corpus.rereading import reader_of
from ragforge.corpus.text_locations import MOST_PLACES
from ragforge.deferred import dataclass
from ragforge.evaluating.answers.records import answer_digest
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import corpus_digest
from ragforge.files.set.stale_runs import RunStatus, chunks_of_runs
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Hit,
    Ranking,
    RetrievedText,
    is_text_id,
    text_id,
)
from ragforge.retrieval.corpus_documents import CorpusDocuments, Origin
from ragforge.retrieval.object_fields import fold_text
from ragforge.retrieval.retrieved_texts import RetrievedTexts


@dataclass(frozen=True, slots=True)
class ChunkChange:
    """The chunks that a set had, and those that it has now.

    Args:
        before: Yields those of before; such as stayed with their documents may be left out.
        added: Yields those of now; such as stayed with their documents may be left out.
        now: Yields all of now.
        digest: Of the file of these.
        doc_id_now: Returns the id that a document of before has now; its own where it is gone.
        chunking: How documents are cut now; "" where that is not known.
        moved: Documents whose text has another id now, which hits may name.
        untraced: Documents of before whose name another has now, where nothing tells their own.
    """

    before: Callable[[], Iterable[Chunk]]
    added: Callable[[], Iterable[Chunk]]
    now: Callable[[], Iterable[Chunk]]
    digest: str
    doc_id_now: Callable[[str], str]
    chunking: str = ""
    moved: MovedDocuments = NONE_MOVED
    untraced: Set[str] = frozenset()

    def copy_before(self, doc_id: str, start: int, chunk_id: str) -> Copy:
        """Return a chunk of before among those with its text."""
        home = "" if doc_id in self.untraced else self.doc_id_now(doc_id)
        return Copy(doc_id, start, chunk_id, home)

    def home(self, doc_id: str) -> str:
        """Return by what the document of a text goes now, where labels name documents."""
        return self.moved.renamed(doc_id) or self.doc_id_now(doc_id)


@dataclass(frozen=True, slots=True)
class CarriedRun:
    """What the hits of a run are, on the chunks of now.

    Args:
        run: Its name.
        n_chunks: Chunks of now.
        n_texts: Texts that the documents hold cut otherwise.
        n_gone: Texts that they do not hold any more.
        n_unknown: Ids that the set knows nothing of.
        way_out: The command that makes the run again; "" for one that was made on the chunks of
            now.
    """

    run: str
    n_chunks: int
    n_texts: int
    n_gone: int
    n_unknown: int
    way_out: str

    @property
    def sentence(self) -> str:
        """What became of the run."""
        n_hits = self.n_chunks + self.n_texts + self.n_gone + self.n_unknown
        unknown = f", {self.n_unknown:,} ids that the set knows nothing of"
        way_out = f"`{self.way_out}` makes it again" if self.way_out else "it was made on these"
        return (
            f"run {self.run}: of {n_hits:,} hits {self.n_chunks:,} are chunks of now, "
            f"{self.n_texts:,} texts that the documents have cut otherwise, {self.n_gone:,} texts "
            f"that are gone{unknown if self.n_unknown else ''}; {way_out}"
        )

    def as_json(self) -> dict[str, object]:
        """Return the counts."""
        return {
            "run": self.run,
            "chunks": self.n_chunks,
            "texts": self.n_texts,
            "gone": self.n_gone,
            "unknown": self.n_unknown,
        }


@dataclass(frozen=True, slots=True)
class CarriedRuns:
    """Runs that were brought along.

    Args:
        runs: Each, in the order of their names.
        stale: Those that were stale before, and were left as they are.
        texts: Chunks that are gone, to the ids of their texts.
    """

    runs: tuple[CarriedRun, ...]
    stale: tuple[str, ...]
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Sought:
    """A text that is looked for in the documents of now.

    Args:
        text: As it was retrieved.
        doc_ids: Documents that had it, by the ids of now.
        start: Where it stood in the one of them; None where that is not known.
    """

    text: str
    doc_ids: tuple[str, ...]
    start: int | None


def carry_runs(target: Dataset, source: Dataset, change: ChunkChange) -> CarriedRuns:
    """Write runs under the ids of the chunks of now, with the texts that are no chunks any more.

    So go the contexts of the answers that `target` has.

    Runs that were stale stay as they are. Killed on the way and done again, it comes out the same.

    Args:
        target: Gets them; `source` itself where its chunks are replaced next.
        source: Has the runs, and the chunks that they were made on.
        change: How the chunks changed.

    Raises:
        DataError: A file cannot be read or written.
    """
    statuses = chunks_of_runs(source, source.run_names())
    stale = tuple(name for name, status in statuses.items() if status.is_stale)
    systems = target.answer_names()
    if len(stale) == len(statuses) and not systems:
        return CarriedRuns((), stale, {})
    names = [name for name, status in statuses.items() if not status.is_stale]
    cited = _ranked(source, names) | _cited(target, systems)
    gone = _gone(cited, change)
    read = reader_of(source.manifest.cutting, change.chunking)
    sought = {chunk.chunk_id: _of_chunk(read(chunk), change) for chunk in gone}
    sought |= {
        text.chunk_id: _of_text(text, change)
        for text in source.retrieved_texts()
        if text.chunk_id in cited
    }
    placed = _placed(sought, change, read, names_documents=source.manifest.level is not None)
    placed = replace(
        placed, now={**_documents_now(cited - sought.keys(), change.moved), **placed.now}
    )
    texts = {text.chunk_id: text for text in placed.texts}
    texts |= {text.chunk_id: text for text in _again(source, names, placed)}
    known = _known(change, {placed.now.get(one, one) for one in cited})
    if texts:
        there = {text.chunk_id: text for text in target.retrieved_texts()}
        target.write_retrieved_texts((there | texts).values())
    pages = _pages(target, source, statuses, gone, placed, change)
    known |= _known(change, {*pages.now.values()})
    ways_out = {name: _way_out(source, statuses[name], change.digest) for name in names}
    for name in names:
        _write(target, source, statuses[name], placed, pages, change.digest)
    for name in systems:
        _write_answers(target, name, placed.now)
    target.drop_uncited_texts()
    return CarriedRuns(
        runs=tuple(_counted(target, name, texts, known, ways_out[name]) for name in names),
        stale=stale,
        texts={
            chunk.chunk_id: placed.now[chunk.chunk_id]
            for chunk in gone
            if placed.now[chunk.chunk_id] in texts
        },
    )


def _ranked(source: Dataset, names: Iterable[str]) -> set[str]:
    """Return the ids that runs have."""
    return {
        hit.chunk_id for name in names for item in source.each_ranking(name) for hit in item.ranking
    }


def _cited(target: Dataset, systems: Iterable[str]) -> set[str]:
    """Return the ids that the contexts of answers have."""
    return {
        chunk_id for name in systems for item in target.answers(name) for chunk_id in item.chunk_ids
    }


def _gone(cited: Set[str], change: ChunkChange) -> list[Chunk]:
    """Return the retrieved chunks of before that are none of now, or have other words.

    What reads the same in a document that took the name of another is a chunk of that.
    """
    gone = {chunk.chunk_id: chunk for chunk in change.before() if chunk.chunk_id in cited}
    for chunk in change.added() if gone else ():
        before = gone.get(chunk.chunk_id)
        if before is None or fold_text(before.text) != fold_text(chunk.text):
            continue
        home = change.copy_before(before.doc_id, before.start, before.chunk_id).home
        if before.doc_id != chunk.doc_id or home == chunk.doc_id:
            del gone[chunk.chunk_id]
    return [gone[chunk_id] for chunk_id in sorted(gone)]


def _of_chunk(chunk: Chunk, change: ChunkChange) -> _Sought:
    start = chunk.start if chunk.end else None
    return _Sought(chunk.text, (change.home(chunk.doc_id),), start)


def _of_text(text: RetrievedText, change: ChunkChange) -> _Sought:
    named = [*(place.doc_id for place in text.places), *text.doc_ids]
    doc_ids = tuple(dict.fromkeys(map(change.home, named)))
    return _Sought(text.text, doc_ids, text.places[0].start if len(text.places) == 1 else None)


@dataclass(frozen=True, slots=True)
class _Placed:
    now: Mapping[str, str]
    texts: Sequence[RetrievedText]


def _placed(
    sought: Mapping[str, _Sought],
    change: ChunkChange,
    read: Callable[[Chunk], Chunk],
    *,
    names_documents: bool,
) -> _Placed:
    """Return under which ids texts go now: of chunks where they are such, else their own.

    Args:
        sought: By their ids of before.
        change: How the chunks changed.
        read: Returns a chunk of before as documents are read now.
        names_documents: Whether labels name documents.
    """
    from ragforge.corpus.file_text_locator import FileTextLocator

    if not sought:
        return _Placed({}, ())
    same = _chunks_by_text({text_id(each.text) for each in sought.values()}, change)
    matched = _matched(sought, same, read, change)
    chunks_now = list(change.now())
    documents = CorpusDocuments(
        chunks_now, file_texts, FileTextLocator, names_documents=names_documents
    )
    as_chunks = cache(lambda: Counter((one.doc_id, text_id(one.text)) for one in chunks_now))
    taken = RetrievedTexts(documents)
    now: dict[str, str] = {}
    open_: list[Ranking] = []
    given: set[str] = set()
    may_be = {
        chunk_id: _chunks_of(each, same.get(text_id(each.text), ()), matched.get(chunk_id))
        for chunk_id, each in sorted(sought.items())
    }

    def is_elsewhere(chunk_id: str) -> bool:
        return all(one.doc_id not in sought[chunk_id].doc_ids for one in may_be[chunk_id])

    # What is in its document goes first: of what has none nothing tells which it is.
    for chunk_id in sorted(may_be, key=is_elsewhere):
        each, chunks = sought[chunk_id], may_be[chunk_id]
        key = text_id(each.text)
        if chunks and not any(one.doc_id in each.doc_ids for one in chunks):
            folded, own = fold_text(each.text), [one for one in each.doc_ids if one in documents]
            if any(documents.folded(one).count(folded) > as_chunks()[one, key] for one in own):
                chunks = []
        # Nothing tells which place each hit is of: they are of as many.
        free = chunks if each.start is not None else _not_in(given, chunks)
        if free:
            now[chunk_id] = free[0].chunk_id
            given |= {free[0].chunk_id} if each.start is None else set()
        else:
            hit = Hit(chunk_id=taken.add(each.text, Origin(each.doc_ids, each.start)), score=0)
            open_.append(Ranking(query_id=chunk_id, ranking=(hit,)))
    # A ranking of its own for each, so that the id of each is known.
    now |= {item.query_id: item.ranking[0].chunk_id for item in taken.settle(open_)}
    return _Placed(now, tuple(taken.located(frozenset(now.values()))))


def _documents_now(cited: Set[str], moved: MovedDocuments) -> dict[str, str]:
    """Return under which ids hits go now that name documents, or named those that are gone."""
    renamed = ((one, moved.renamed(one)) for one in cited)
    return {one: now for one, now in renamed if now is not None}


@dataclass(frozen=True, slots=True)
class _Pages:
    """Documents of one chunk, for which runs have that chunk where they named the document.

    Args:
        query_ids: Queries whose labels name documents.
        now: What such a document is now, by its chunk, where the text of that went to another one.
    """

    query_ids: frozenset[str] = frozenset()
    now: Mapping[str, str] = field(default_factory=dict)


def _pages(
    target: Dataset,
    source: Dataset,
    statuses: Mapping[str, RunStatus],
    gone: Iterable[Chunk],
    placed: _Placed,
    change: ChunkChange,
) -> _Pages:
    """Return what documents of one chunk are now that imported runs may have named."""
    is_named = source.manifest.level is not None
    if not is_named or all(status.retriever for status in statuses.values()):
        return _Pages()
    of_chunk = {chunk.chunk_id: chunk.doc_id for chunk in gone}
    sizes = Counter(chunk.doc_id for chunk in source.chunks()) if of_chunk else {}
    homes = {
        chunk_id: change.home(doc_id) for chunk_id, doc_id in of_chunk.items() if sizes[doc_id] == 1
    }
    at = {placed.now[chunk_id] for chunk_id in homes}
    ids: dict[str, list[str]] = {home: [] for home in homes.values()}
    others: set[str] = set()
    for chunk in change.now() if homes else ():
        ids.get(chunk.doc_id, []).append(chunk.chunk_id)
        others |= {chunk.chunk_id} & at
    now = {
        chunk_id: ids[home][0] if len(ids[home]) == 1 else home
        for chunk_id, home in homes.items()
        if ids[home] and placed.now[chunk_id] in others - {*ids[home]}
    }
    labels = target.each_judgment() if now else ()
    return _Pages(frozenset(one.query_id for one in labels if one.level == "document"), now)


def _chunks_by_text(wanted: Set[str], change: ChunkChange) -> dict[str, list[Chunk]]:
    found: dict[str, list[Chunk]] = {}
    for chunk in change.added():
        if (of_text := text_id(chunk.text)) in wanted:
            found.setdefault(of_text, []).append(chunk)
    return found


def _matched(
    sought: Mapping[str, _Sought],
    same: Mapping[str, Sequence[Chunk]],
    read: Callable[[Chunk], Chunk],
    change: ChunkChange,
) -> dict[str, tuple[str, ...]]:
    """Return the ids of now of chunks and texts with a place, one for one where several are alike.

    Args:
        sought: By their ids of before.
        same: The chunks of now with these texts, by `text_id`.
        read: Returns a chunk of before as documents are read now.
        change: How the chunks changed.
    """
    before: dict[str, list[Copy]] = {}
    for chunk in change.before() if same else ():
        if (of_text := text_id(read(chunk).text)) in same:
            copy = change.copy_before(chunk.doc_id, chunk.start, chunk.chunk_id)
            before.setdefault(of_text, []).append(copy)
    for chunk_id, each in sought.items():
        of_text = text_id(each.text)
        if is_text_id(chunk_id) and each.start is not None and of_text in same:
            copy = Copy(each.doc_ids[0], each.start, chunk_id, each.doc_ids[0])
            before.setdefault(of_text, []).append(copy)
    found: dict[str, tuple[str, ...]] = {}
    for of_text, copies in before.items():
        now = (Copy(one.doc_id, one.start, one.chunk_id, one.doc_id) for one in same[of_text])
        found |= match_copies(copies, now)
    return found


def _chunks_of(
    sought: _Sought, same: Sequence[Chunk], matched: Collection[str] | None
) -> Sequence[Chunk]:
    """Return the chunks of now that a text may be: of its document, if that has it as a chunk.

    Args:
        sought: The text.
        same: The chunks with it.
        matched: Ids of those of these that it is; None where nothing tells.
    """
    own = same if matched is None else [chunk for chunk in same if chunk.chunk_id in matched]
    if here := [chunk for chunk in own if chunk.doc_id in sought.doc_ids]:
        start = sought.start
        return here if start is None else [min(here, key=lambda one: abs(one.start - start))]
    return own


def _not_in(given: Set[str], chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    return [chunk for chunk in chunks if chunk.chunk_id not in given]


def _known(change: ChunkChange, wanted: Set[str]) -> frozenset[str]:
    """Return which of some ids are chunks of now, or documents, which labels may name."""
    both = (one for chunk in change.now() for one in (chunk.chunk_id, chunk.doc_id))
    return frozenset(one for one in both if one in wanted)


def _write(
    target: Dataset,
    source: Dataset,
    status: RunStatus,
    placed: _Placed,
    pages: _Pages,
    digest: str,
) -> None:
    """Write a run under the ids of now, for the part of the queries that it was made for."""
    name = status.run
    made_for = source.made_for(f"runs/{name}.jsonl")
    made_on = _made_on(source, name)
    origin = RunOrigin(
        chunks_sha256=digest,
        retriever=status.retriever,
        mapped_from="" if made_on == digest else made_on,
        usd_per_query=status.usd_per_query,
    )
    texts = {text.chunk_id: text for text in placed.texts}
    by_page = placed.now if status.retriever else {**placed.now, **pages.now}
    rankings = [
        _ranking(item, by_page if item.query_id in pages.query_ids else placed.now, texts)
        for item in source.each_ranking(name)
    ]
    target.choosing(made_for).write_run(name, rankings, origin)


def _write_answers(target: Dataset, name: str, now: Mapping[str, str]) -> None:
    """Write the answers of a system with what their contexts are now, where that is another."""
    made_for = target.made_for(f"answers/{name}.jsonl")
    answers = target.answers(name)
    moved = [
        item.model_copy(
            update={"chunk_ids": tuple(dict.fromkeys(now.get(one, one) for one in item.chunk_ids))}
        )
        for item in answers
    ]
    if moved == answers:
        return
    if name in target.answer_grade_names():
        grades = target.answer_grades(name)
        if (now_of := list(_with_moved(grades, answers, moved))) != grades:
            target.write_answer_grades(name, now_of)
    target.choosing(made_for).write_answers(name, moved)


def _with_moved(
    grades: Iterable[AnswerGrade], answers: Iterable[Answer], moved: Iterable[Answer]
) -> Iterator[AnswerGrade]:
    """Yield grades, those of an answer with it where its context goes under other ids."""
    now = {
        (old.query_id, answer_digest(old)): answer_digest(new)
        for old, new in zip(answers, moved, strict=True)
    }
    for grade in grades:
        digest = grade.answered_sha256
        digest = now.get((grade.query_id, digest), digest)
        yield grade.model_copy(update={"answered_sha256": digest})


def _made_on(source: Dataset, name: str) -> str:
    """Return the digest of the chunks that a run was made on; those of the set where unknown."""
    entry = source.manifest.files.get(f"runs/{name}.jsonl")
    if entry is None or entry.run is None:
        return corpus_digest(source)
    return entry.run.mapped_from or entry.run.chunks_sha256


def _way_out(source: Dataset, status: RunStatus, digest: str) -> str:
    return "" if _made_on(source, status.run) == digest else status.way_out(source)


def _again(source: Dataset, names: Iterable[str], placed: _Placed) -> Iterator[RetrievedText]:
    """Yield texts under the ids of their further hits in a ranking."""
    most = Counter[str]()
    for name in names:
        for item in source.each_ranking(name):
            now = (placed.now[hit.chunk_id] for hit in item.ranking if hit.chunk_id in placed.now)
            most |= Counter(now)
    for text in placed.texts:
        for number in range(2, min(most[text.chunk_id], _most_hits(text)) + 1):
            yield text.model_copy(update={"chunk_id": text_id(text.text, f"hit {number}")})


def _most_hits(text: RetrievedText) -> int:
    """Return how many hits of a ranking may be of a text, each at a place of its own."""
    return len(text.places) if 0 < len(text.places) < MOST_PLACES else sys.maxsize


def _ranking(item: Ranking, now: Mapping[str, str], texts: Mapping[str, RetrievedText]) -> Ranking:
    """Return a ranking under the ids of now: each hit at its rank, what is one place now once.

    Equal scores are ordered by id, and the ids are others now: of hits that would change places the
    later one gets the next lower score.
    """
    hits: dict[str, Hit] = {}
    counts = Counter[str]()
    last = (inf, "")
    for hit in sorted(item.ranking, key=lambda one: (one.score, one.chunk_id), reverse=True):
        chunk_id = now.get(hit.chunk_id, hit.chunk_id)
        counts[chunk_id] += 1
        text = texts.get(chunk_id)
        if text is not None and 1 < counts[chunk_id] <= _most_hits(text):
            chunk_id = text_id(text.text, f"hit {counts[chunk_id]}")
        if chunk_id in hits:
            continue
        keeps_place = (hit.score, chunk_id) < last
        score = hit.score if keeps_place else nextafter(last[0], -inf)
        hits[chunk_id] = Hit(chunk_id=chunk_id, score=score)
        last = (score, chunk_id)
    return item.model_copy(update={"ranking": tuple(hits.values())})


def _counted(
    target: Dataset, run: str, texts: Mapping[str, RetrievedText], known: Set[str], way_out: str
) -> CarriedRun:
    counts = Counter(_kinds(target, run, texts, known))
    return CarriedRun(
        run=run,
        n_chunks=counts["chunk"],
        n_texts=counts["placed"],
        n_gone=counts["gone"],
        n_unknown=counts["unknown"],
        way_out=way_out,
    )


def _kinds(
    target: Dataset, run: str, texts: Mapping[str, RetrievedText], known: Set[str]
) -> Iterator[str]:
    for item in target.each_ranking(run):
        for hit in item.ranking:
            text = texts.get(hit.chunk_id)
            if text is not None:
                yield "placed" if text.places else "gone"
            else:
                yield "chunk" if hit.chunk_id in known else "unknown"
