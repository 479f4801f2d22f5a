"""What grades and rankings are measured on: documents that labels name, and quotes once.

A query with a label of a document is measured on documents: its grades of chunks and its rankings
are folded to the documents of the chunks. All other queries are measured on chunks. A quote that
people graded may stand in several chunks of its document: each counts as the first, and there is
one to find.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote, urlsplit

from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.files.text import normalize
from ragforge.records import (
    Chunk,
    Hit,
    Judgment,
    Level,
    Ranking,
    id_in_set,
    is_text_id,
    without_place,
)
from ragforge.records.judgments import Grading

if TYPE_CHECKING:
    from ragforge.files.set.document_copies import CopiedTexts

G = TypeVar("G", Judgment, Grading)

_PART_OF_ANSWER: Final = 2
"""Grade from which a document is relevant whatever failed judgments of its other chunks are."""

_INDEX_PAGES: Final = frozenset({"index", "readme"})
_SHALLOW: Final = 10
"""Ranks that most measures look at."""


@dataclass(frozen=True, slots=True)
class DocumentLevel:
    """Folds chunks to documents where labels name documents, and counts quotes once.

    Args:
        query_ids: Queries whose labels do; where there is none, and no quote stands again,
            everything stays as it is.
        documents: Id of the document by chunk.
        repeating: By query and chunk that only repeats quotes of others, these others.
        copies: Finds the document of a text that stands in several; None where no text does.
        lacking: Documents that texts of runs name and the set lacks, so that nobody labelled them.
    """

    query_ids: frozenset[str] = frozenset()
    documents: Mapping[str, str] = field(default_factory=dict)
    repeating: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    copies: "CopiedTexts | None" = None
    lacking: frozenset[str] = frozenset()

    def changes(self, query_id: str) -> bool:
        """Whether grades and rankings of a query are measured otherwise than they are."""
        return query_id in self.query_ids or query_id in self.repeating

    def goes_by(self, chunk_id: str) -> bool:
        """Whether a chunk or text counts as a document for such a query."""
        return chunk_id in self.documents or (self.copies is not None and chunk_id in self.copies)

    def folded(self, query_id: str, judged: Mapping[str, G]) -> dict[str, G]:
        """Return the judgments by document that such a query is measured on, sorted.

        A document has the grade that was given to it as a whole, by a person before others; else
        the highest of its chunks. One with a failed judgment and no relevant chunk has no grade.

        Args:
            query_id: The query.
            judged: By chunk or document, as labels name it.
        """
        by_document: dict[str, list[G]] = {}
        copies = self.copies.judged(query_id, judged) if self.copies else {}
        for name, item in judged.items():
            of_chunk = copies.get(name) or (self.documents.get(name, name),)
            for doc_id in (name,) if item.level == "document" else of_chunk:
                by_document.setdefault(doc_id, []).append(item)
        return {doc_id: _of_document(doc_id, of) for doc_id, of in sorted(by_document.items())}

    def rankings(self, rankings: Iterable[Ranking]) -> Iterable[Ranking]:
        """Return the rankings that are measured: each document at the best rank of its chunks.

        Of chunks that hold the same quotes the best one goes by the id of the first.
        """
        return map(self.ranking, rankings) if self.query_ids or self.repeating else rankings

    def ranking(self, ranking: Ranking) -> Ranking:
        """Return a ranking as its query is measured."""
        if ranking.query_id in self.query_ids:
            return ranking.model_copy(update={"ranking": self._documents_of(ranking)})
        return self.counted_once(ranking)

    def as_retrieved(self, rankings: Iterable[Ranking]) -> dict[str, tuple[str, ...]]:
        """Return ids by query, best first, where some chunk is measured under the id of another."""
        return {
            ranking.query_id: tuple(hit.chunk_id for hit in _by_rank(ranking.ranking))
            for ranking in (rankings if self.repeating else ())
            if self.counted_once(ranking) is not ranking
        }

    def counted_once(self, ranking: Ranking) -> Ranking:
        """Return a ranking, chunks that hold the same quotes under the id of the first, once."""
        repeating = self.repeating.get(ranking.query_id, {})
        if not any(hit.chunk_id in repeating for hit in ranking.ranking):
            return ranking
        return ranking.model_copy(update={"ranking": _counted_once(ranking.ranking, repeating)})

    def _documents_of(self, ranking: Ranking) -> tuple[Hit, ...]:
        best: dict[str, float] = {}
        ordered = _by_rank(ranking.ranking)
        ids = [hit.chunk_id for hit in ordered]
        copies = self.copies.hits(ranking.query_id, ids) if self.copies else {}
        for name, hit in zip(ids, ordered, strict=True):
            best.setdefault(copies.get(name) or self.documents.get(name, name), hit.score)
        return _hits(best)


def _by_rank(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (hit.score, hit.chunk_id), reverse=True)


def _hits(scores: Mapping[str, float]) -> tuple[Hit, ...]:
    """Return hits under other ids than they had, in the order given."""
    if len(set(scores.values())) < len(scores):
        # Those of equal scores keep their order, in which other ids broke the tie.
        scores = {name: 1 / rank for rank, name in enumerate(scores, 1)}
    return tuple(Hit(chunk_id=name, score=score) for name, score in scores.items())


def _counted_once(hits: Sequence[Hit], repeating: Mapping[str, tuple[str, ...]]) -> tuple[Hit, ...]:
    """Return hits, each that repeats quotes under the id of one whose quotes it is the first with.

    What holds the same quotes further down has the id that is free then, of a chunk that repeats.
    """
    ordered = _by_rank(hits)
    named: dict[str, str] = {}
    taken_by: dict[str, str] = {}
    for chunk_id in (hit.chunk_id for hit in ordered):
        firsts = repeating.get(chunk_id, (chunk_id,))
        first = next((one for one in firsts if one not in taken_by), None)
        if first is not None:
            named[chunk_id], taken_by[first] = first, chunk_id
    ids = (
        named.get(hit.chunk_id)
        or (hit.chunk_id if hit.chunk_id in repeating else taken_by[hit.chunk_id])
        for hit in ordered
    )
    return _hits({name: hit.score for name, hit in zip(ids, ordered, strict=True)})


AS_IT_IS: Final = DocumentLevel()
"""Folds nothing."""


class DocumentNames:
    """Finds the documents that people mean by a name.

    Args:
        doc_ids: Of the corpus.
    """

    def __init__(self, doc_ids: Iterable[str]) -> None:
        self._ids = frozenset(doc_ids)
        self._by_end: dict[str, list[str]] = {}
        for doc_id in sorted(self._ids):
            parts = _plain(doc_id).split("/")
            for first in range(len(parts)):
                self._by_end.setdefault("/".join(parts[first:]), []).append(doc_id)

    def find(self, name: str) -> tuple[str, ...]:
        """Return the documents that a name may mean: by their ids, else by the ends of their paths.

        `store.md` is `help/store.md` where no other document is called so.
        """
        if name in self._ids:
            return (name,)
        own = id_in_set(name)
        return (own,) if own in self._ids else tuple(self._by_end.get(_plain(name), ()))

    def resolve(self, name: str) -> tuple[str, ...]:
        """Return the documents that frameworks may mean by a path, an address or a title.

        By the end that a path or an address shares with a document's; else by the name of a file
        without its suffix, where one document alone is called so. An index page has the name of
        its folder.
        """
        if found := self.find(name):
            return found
        path = unquote(urlsplit(name).path) if "://" in name else name
        parts = [part for part in _plain(path).split("/") if part]
        for first in range(len(parts)):
            if found := self.find("/".join(parts[first:])):
                return found
        stem = _stem("/".join(parts))
        called = [doc_id for doc_id in self._ids if _stem(_plain(doc_id)) == stem] if stem else []
        return tuple(called) if len(called) == 1 else ()


@dataclass(frozen=True, slots=True)
class Label:
    """What a relevant id names."""

    id: str
    level: Level


class LabelNames:
    """Finds the chunk or the document that a label of people means.

    A document of one chunk is a document all the same: a passage that a retriever cuts out of it is
    of what the label names. Without any chunk, each name is that of a chunk.

    Args:
        chunks: Of the corpus.
        texts: Ids of texts that are no chunks, which labels may name where there are no chunks.
    """

    def __init__(self, chunks: Iterable[Chunk], texts: Iterable[str] = ()) -> None:
        self._chunks: set[str] = set()
        self._texts = frozenset(texts)
        self._of_document: dict[str, str] = {}
        self._is_apart = True
        for chunk in chunks:
            self._chunks.add(chunk.chunk_id)
            self._is_apart = self._is_apart and chunk.doc_id not in self._of_document
            self._of_document[chunk.doc_id] = chunk.chunk_id
        self._documents = DocumentNames(self._of_document)

    def find(self, name: str) -> list[Label]:
        """Return the chunk of that id, else the documents that the name may mean."""
        own = name if name in self._chunks or name in self._texts else id_in_set(name)
        if own in self._chunks or not self._chunks:
            return [Label(own, "chunk")]
        return [Label(doc_id, "document") for doc_id in self._documents.find(name)]

    def find_hit(self, name: str) -> list[Label]:
        """Return what a hit may mean: a document's one chunk, where all documents are one."""
        found = self.find(name)
        if self._is_apart and [one.level for one in found] == ["document"]:
            return [Label(self._of_document[found[0].id], "chunk")]
        return found

    def documents(self, name: str) -> tuple[str, ...]:
        """Return the documents that a name may mean, by their ids or the ends of their paths."""
        return self._documents.find(name)

    def id_of(self, name: str) -> str:
        """Return the id of the one chunk or document that a hit means, else its name."""
        found = self.find_hit(name)
        return found[0].id if len(found) == 1 else name


def _stem(path: str) -> str:
    """Return what the last part of a path is called, without suffix, in small letters."""
    *folders, name = path.rstrip("/").split("/")
    stem = name.partition(".")[0] or name
    if folders and stem.casefold() in _INDEX_PAGES:
        stem = folders[-1]
    return "-".join(stem.casefold().replace("_", " ").split())


def _plain(name: str) -> str:
    """Return a path in NFC, with slashes, without a beginning that says where it stands."""
    return normalize("NFC", name).replace("\\", "/").removeprefix("./")


def document_level(dataset: Dataset, judgments: JudgmentTable) -> DocumentLevel:
    """Return how a set is folded to be measured.

    The chunks are read where some label names a document, and not otherwise.

    Args:
        dataset: Has the chunks.
        judgments: Of the set; those of queries of no interest may be missing.

    Raises:
        DataError: The chunks cannot be read.
    """
    of_documents = judgments.pairs(lambda grading: grading.level == "document")
    query_ids = frozenset(pair.query_id for pair in of_documents)
    repeating = {
        query_id: found
        for query_id in judgments.repeating
        if query_id not in query_ids and (found := _repeating(judgments.judgments(query_id)))
    }
    if not query_ids:
        return DocumentLevel(repeating=repeating)
    of = _documents_of_chunks(dataset)
    level = DocumentLevel(query_ids, of.documents, repeating, lacking=frozenset(of.lacking))
    if not of.several:
        return level
    from ragforge.files.set.document_copies import CopiedTexts  # Few sets have such texts.

    return replace(level, copies=CopiedTexts(of.several, of.documents, judgments))


def _repeating(judgments: Sequence[Judgment]) -> dict[str, tuple[str, ...]]:
    """Return the chunks of a query that only repeat quotes of others, with these others.

    Texts that are no chunks of the set are measured by their own grades: one repeats the same words
    at an earlier place, or where nothing tells which place it is.
    """
    holding: dict[tuple[str, str], list[str]] = {}
    for one in judgments:
        for given in () if one.only_repeats else one.given_to_quotes:
            holding.setdefault((_words(one.chunk_id), given.quote), []).append(one.chunk_id)
    found: dict[str, tuple[str, ...]] = {}
    for one in (each for each in judgments if each.only_repeats):
        words = _words(one.chunk_id)
        held = (holding.get((words, given.quote), ()) for given in one.quote_grades)
        firsts = dict.fromkeys(first for of_quote in held for first in of_quote)
        placed = tuple(first for first in firsts if first != words)
        if firsts:
            found[one.chunk_id] = placed or (words,)
    return found


def _words(chunk_id: str) -> str:
    """Return the id of a text at any place; "" for a chunk of the set."""
    return without_place(chunk_id) if is_text_id(chunk_id) else ""


@dataclass(frozen=True, slots=True)
class _Documents:
    """Which documents chunks and texts are of."""

    documents: dict[str, str] = field(default_factory=dict)
    """By chunk, and by text of one."""
    several: dict[str, frozenset[str]] = field(default_factory=dict)
    """By text that stands in several."""
    lacking: set[str] = field(default_factory=set)
    """Those that texts name and the set lacks."""


def _documents_of_chunks(dataset: Dataset) -> _Documents:
    """Return the documents of chunks and texts; nothing where the set has no chunks."""
    if not dataset.chunks_path.exists():
        return _Documents()
    names: dict[str, str] = {}
    documents = {
        chunk.chunk_id: names.setdefault(chunk.doc_id, chunk.doc_id) for chunk in dataset.chunks()
    }
    several: dict[str, frozenset[str]] = {}
    lacking = set[str]()
    for text in dataset.retrieved_texts():
        of_text = frozenset({*(place.doc_id for place in text.places), *text.doc_ids})
        if len(of_text) == 1:
            [doc_id] = of_text
            documents[text.chunk_id] = names.get(doc_id, doc_id)
        elif of_text:
            several[text.chunk_id] = of_text
        lacking |= of_text - names.keys()
    return _Documents(documents, several, lacking)


def level_warnings(dataset: Dataset, names: Iterable[str]) -> Iterator[str]:
    """Yield what rankings cannot show as labels name documents; nothing where all name chunks.

    Raises:
        DataError: A run or the judgments cannot be read.
    """
    if dataset.manifest.level is None:
        return
    judgments = dataset.judgment_table()
    level = document_level(dataset, judgments)
    there = frozenset(dataset.run_names())
    labelled: dict[str, set[str]] = {query_id: set() for query_id in level.query_ids}
    for pair in judgments.of_queries(level.query_ids).pairs(lambda _: True):
        labelled[pair.query_id].add(pair.chunk_id)
    for name in names:
        if name in there and level.documents:
            yield from _warnings(name, dataset.each_ranking(name), level)
        elif name in there:
            rankings = {
                ranking.query_id: [hit.chunk_id for hit in ranking.ranking]
                for ranking in dataset.each_ranking(name)
            }
            yield from chunks_for_documents(name, rankings, labelled)


def chunks_for_documents(
    run: str, rankings: Mapping[str, Iterable[str]], labelled: Mapping[str, Set[str]]
) -> Iterator[str]:
    """Yield that a run seems to be of chunks where nothing tells whose they are; else nothing.

    Args:
        run: Its name.
        rankings: Ids by query.
        labelled: Documents with a label, by query; of queries that are labelled by documents.
    """
    held = labelled.keys() & rankings.keys()
    if held and all(labelled[query_id].isdisjoint(rankings[query_id]) for query_id in held):
        n = "1 query" if len(held) == 1 else f"{len(held):,} queries"
        yield (
            f"run {run}: no hit of {n} labelled by whole documents names a labelled document; "
            "chunks count for their documents only in a set that has the chunks (`ragforge import "
            "… --chunks FILE`)"
        )


def _warnings(name: str, rankings: Iterable[Ranking], level: DocumentLevel) -> Iterator[str]:
    doc_ids = frozenset(level.documents.values()) - level.documents.keys()
    is_shallow = len(set(level.documents.values())) < _SHALLOW
    n_folded = n_short = n_other = 0
    for item in rankings:
        if item.query_id in level.query_ids:
            n_folded += 1
            n_documents = len(level.ranking(item).ranking)
            n_short += n_documents < _SHALLOW <= len(item.ranking)
        else:
            n_other += any(hit.chunk_id in doc_ids for hit in item.ranking)
    if n_short and not is_shallow:
        yield (
            f"run {name}: {n_short} of {n_folded} rankings hold {_SHALLOW} chunks or more of fewer "
            f"than {_SHALLOW} documents, and labels name documents: measures that look at "
            f"{_SHALLOW} ranks see no further; a larger -k of `ragforge retrieve` reaches deeper"
        )
    if n_other:
        yield (
            f"run {name}: ranks documents for {n_other} queries whose labels name chunks; no "
            "document can be relevant there"
        )


def whole_documents(dataset: Dataset) -> Iterator[Chunk]:
    """Yield each document as one chunk, sorted by id: its text as its chunks have it.

    Words that several chunks share, as they overlap, stand once; between chunks that do not touch
    there is an empty line.
    """
    parts: dict[str, list[Chunk]] = {}
    for chunk in dataset.chunks():
        parts.setdefault(chunk.doc_id, []).append(chunk)
    for doc_id, chunks in sorted(parts.items()):
        first, *others = sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id))
        text, end = first.text, first.end
        for chunk in others:
            overlap = chunk.place(end) if chunk.end and end > chunk.start else 0
            if chunk.end and chunk.end <= end:
                continue
            text += chunk.text[overlap:] if overlap > 0 else f"\n\n{chunk.text}"
            end = chunk.end
        place = {"start": first.start, "end": end, "hidden": ()}
        update = {"chunk_id": doc_id, "text": text, **place}
        yield first.model_copy(update=update)


def ids_of_corpus(dataset: Dataset) -> set[str]:
    """Return ids that rankings may hold: of chunks, texts, and documents where labels name any.

    Those that texts of runs name are among them.
    """
    is_of_chunks = dataset.manifest.level is None
    ids = set[str]()
    for chunk in dataset.chunks():
        ids.add(chunk.chunk_id)
        if not is_of_chunks:
            ids.add(chunk.doc_id)
    for text in dataset.retrieved_texts():
        ids.add(text.chunk_id)
        if not is_of_chunks:
            ids.update(text.doc_ids)
    return ids


def _of_document(doc_id: str, judged: Sequence[G]) -> G:
    """Return the judgment that decides about a document; it is listed where any of them is."""
    found = _deciding(judged)
    relevant = found.relevant
    if any(item.relevant for item in judged):
        relevant = True
    elif found.grade is not None and any(item.relevant is False for item in judged):
        relevant = False
    if isinstance(found, Grading):
        return replace(found, level="document", relevant=relevant)
    update = {"chunk_id": doc_id, "level": "document", "relevant": relevant}
    return found.model_copy(update=update)


def _deciding(judged: Sequence[G]) -> G:
    whole = [item for item in judged if item.level == "document" and not item.is_failed]
    if whole:
        return min(whole, key=lambda item: item.source != "human")
    best = max(judged, key=lambda item: -1 if item.grade is None else item.grade)
    failed = next((item for item in judged if item.is_failed), None)
    if failed is not None and (best.grade or 0) < _PART_OF_ANSWER:
        return failed
    return best
