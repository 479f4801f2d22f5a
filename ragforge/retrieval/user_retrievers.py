"""Retrievers of users: functions, objects of frameworks, HTTP services, and what they return."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from itertools import pairwise
from typing import TYPE_CHECKING, SupportsFloat

from ragforge.deferred import dataclass
from ragforge.errors import CallError, DataError
from ragforge.http_service import Service
from ragforge.plugins import call, construct, method_of, parameters_of
from ragforge.records import Chunk, Hit, Span, id_in_set
from ragforge.retrieval import Retriever
from ragforge.retrieval.frameworks import hits_of, search_of
from ragforge.retrieval.object_fields import (
    ENDS,
    STARTS,
    Note,
    chunks_by_text,
    document_name_of,
    document_names_of,
    empty_result_error,
    fold_text,
    ids_of,
    ignore_note,
    nested_mappings,
    offset_of,
    outcome_error,
    refuse_query_of_another,
    shown,
    texts_beside,
    texts_of,
    type_name,
    values_of,
    whole_number,
)
from ragforge.scripts import reads_as_words

if TYPE_CHECKING:
    from ragforge.retrieval.corpus_documents import CorpusDocuments
    from ragforge.retrieval.retrieved_texts import RetrievedTexts

_METHODS = (
    *("aretrieve", "retrieve"),
    *("ainvoke", "invoke"),
    *("aget_relevant_documents", "get_relevant_documents"),
    *("asearch", "search"),
)
"""Names under which retrievers search, in order of preference; the query is the first argument."""
_ADVICE = "make the object in the module and name that"
_NAMES_OF_K = ("k", "top_k", "limit", "n")
_LISTS = ("hits", "results", "documents", "matches")
_ERRORS = ("error", "errors")
_SHOWN = 80
_ACCEPTED = (
    "expected a chunk id, (id, score), an object or mapping with chunk_id or id, a LangChain "
    "Document, or a LlamaIndex NodeWithScore"
)
_LONGEST_NAME = 255
"""Characters of what a hit calls its document by; what is longer is a text."""
_LENGTH_OF_TEXT = 100
"""Characters from which a bare string that is no id is a text, though it reads as one word."""


@dataclass(frozen=True, slots=True)
class _ScoredId:
    chunk_id: str
    score: float | None


class ResultReader:
    """Turns results of many shapes into hits.

    The order of a result counts: it is what the system behind it would use. Its scores are kept
    where they fall from each rank to the next; else rank r gets 1/r, as equal or rising scores
    (distances, say) would make another order of it.

    An id is the first of `chunk_id` (its own or in `metadata`), `metadata["id"]` and `id` that a
    chunk has, unless the hit has another text, see `CorpusDocuments.is_text_of`; failing that, that
    of the chunk with the same text; failing that, the first there is, which then counts as a chunk
    the corpus does not have.

    Where texts of others are taken, what is no chunk but has a text is that text, under an id made
    of it; a document with offsets is that stretch of it, and the id of a document all of it. Where
    labels name documents, a hit that names one and has no text is that document, whatever its id.

    Args:
        where: What messages name as the origin of the results.
        chunks: The corpus, to know ids and texts; without it the first id counts.
        note: Told once of each of: a chunk that comes twice (its first place counts), scores that
            rise, a hit without any text.
        texts: Takes texts that are no chunks of the corpus; None where a hit must be one.
    """

    def __init__(
        self,
        where: str,
        chunks: Iterable[Chunk] = (),
        note: Note = ignore_note,
        texts: "RetrievedTexts | None" = None,
    ) -> None:
        self._where = where
        self._note = note
        self._texts = texts
        self._noted: set[str] = set()
        self._chunks = {chunk.chunk_id: chunk for chunk in chunks}
        self._by_text = chunks_by_text(self._chunks.values())
        self._known = self._chunks.keys() | (texts.documents.retrievable if texts else ())

    def read(self, result: object, query: str, k: int) -> list[Hit]:
        """Return the first k different chunks of a result, best first.

        Args:
            result: A sequence, iterator, array or series of what was found, or a frame with a row
                for each, best first; or a mapping that holds one under "hits", "results",
                "documents" or "matches".
            query: What was asked, for notes.
            k: How many hits at most.

        Raises:
            DataError: The result, or one of its first items, has none of the shapes accepted.
        """
        scored: dict[str, _ScoredId] = {}
        again = Counter[str]()
        above = _HitsAbove()
        for item in self._items(result):
            inner, score = _parts(item)
            ids, texts = tuple(ids_of(inner)), tuple(texts_of(inner))
            if above.repeats(inner, ids, texts):
                self._note_twice(ids[0], query)
                continue
            chunk = _ScoredId(
                self._id(inner, ids, texts, scored.keys(), query),
                None if score is None else self._number(score),
            )
            if not chunk.chunk_id:
                self._note_once(
                    "blank",
                    f"a hit has neither an id nor any text, for the query {query[:_SHOWN]!r}; such "
                    "are left out",
                )
                continue
            if chunk.chunk_id in scored and self._is_text(chunk.chunk_id):
                again[chunk.chunk_id] += 1
                chunk = self._again(chunk, again[chunk.chunk_id] + 1)
            elif chunk.chunk_id in scored:
                self._note_twice(chunk.chunk_id, query)
            scored.setdefault(chunk.chunk_id, chunk)
            if len(scored) == k:
                break
        return self._hits(list(scored.values()), query)

    def _is_text(self, chunk_id: str) -> bool:
        return self._texts is not None and chunk_id in self._texts.ids

    def _again(self, chunk: _ScoredId, number: int) -> _ScoredId:
        """Return a text that comes again as a hit of its own; it may be from another place."""
        assert self._texts is not None
        return _ScoredId(self._texts.add_again(chunk.chunk_id, number), chunk.score)

    def _items(self, result: object) -> Iterable[object]:
        if isinstance(result, Mapping):
            self._refuse_error(result)
            for name in _LISTS:
                if name in result:
                    return self._listed(result, result[name])
            keys = ", ".join(repr(key) for key in list(result)[:5]) or "nothing"
            raise DataError(
                f"{self._where}: the result is a mapping with {keys}; expected a list under one of "
                f"{', '.join(_LISTS)}"
            )
        if isinstance(result, Sequence | Iterator) and not isinstance(result, str | bytes):
            return result
        from ragforge.files.formats.python_objects import items_given  # Few results need it.

        listed = items_given(result)
        if listed is not None:
            return listed
        raise DataError(
            f"{self._where}: the result is of type {type_name(result)}; expected a list, best first"
        )

    def _listed(self, result: Mapping[object, object], listed: object) -> Iterable[object]:
        """Return the items of the list of a result, which has not found nothing for a fault."""
        items = self._items(listed)
        if isinstance(items, Sequence) and not items and (failed := empty_result_error(result)):
            raise DataError(
                f"{self._where}: the result is empty and tells of an error: {shown(failed)}"
            )
        return items

    def _refuse_error(self, result: Mapping[object, object]) -> None:
        for name in _ERRORS:
            if result.get(name):
                raise DataError(
                    f"{self._where}: the result tells of an {name!r}: {shown(result[name])}"
                )
        if failed := outcome_error(result):
            raise DataError(f"{self._where}: the result tells of an error: {failed}")

    def _id(
        self, item: object, ids: Sequence[str], texts: Sequence[str], above: Set[str], query: str
    ) -> str:
        """Return the id of a hit below some others; "" where it has none, and no text either."""
        named = self._named(item, ids, texts)
        if named:
            return named
        n_chunks = 0
        for text in texts:
            same = self._chunks_of_text(text, item)
            if self._texts is not None:
                same = self._texts.best_graded_first(same, query)
            chunk_ids = [chunk.chunk_id for chunk in same]
            free = [chunk_id for chunk_id in chunk_ids if chunk_id not in above]
            if free or (chunk_ids and self._texts is None):
                return (free or chunk_ids)[0]
            n_chunks = n_chunks or len(chunk_ids)
        if self._texts is not None:
            text_id = self._id_of_text(item, texts, self._texts, n_chunks)
            text_id = text_id or self._id_of_document(item, texts, ids, self._texts)
            if text_id or _is_blank(texts, ids):
                return text_id
        if ids:
            self._refuse_surrogates(ids[0])
            return ids[0]
        raise DataError(
            f"{self._where}: cannot tell which chunk {shown(item)} (type {type_name(item)}) is; "
            f"{_ACCEPTED}"
        )

    def _named(self, item: object, ids: Iterable[str], texts: Iterable[str]) -> str:
        """Return the first id of a hit that the corpus has, for its text; "" for none."""
        if isinstance(item, Hit):
            return item.chunk_id
        known = [
            chunk_id
            for name in ids
            for chunk_id in dict.fromkeys((name, id_in_set(name)))
            if chunk_id in self._known
        ]
        if not known:
            return ""
        of_its_own = texts_beside(ids, texts)
        for chunk_id in known:
            if not of_its_own or any(self._is_text_of(text, chunk_id) for text in of_its_own):
                return chunk_id
        if self._texts is not None and not self._names_document(item, known[0]):
            self._texts.count_misnamed(known[0], of_its_own[0])
        return ""

    def _names_document(self, item: object, doc_id: str) -> bool:
        """Whether a hit says itself that it is of a document, and labels ask for no more."""
        documents = self._texts.documents if self._texts else None
        if documents is None or doc_id not in documents.retrievable:
            return False
        return documents.named(document_names_of(item)) == (doc_id,)

    def _is_text_of(self, text: str, chunk_id: str) -> bool:
        """Whether a text is that of a chunk or document; unknown of what was cut for a sweep."""
        chunk = self._chunks.get(chunk_id)
        if chunk is not None and text == chunk.text:
            return True
        if chunk is not None and (same := self._by_text.get(fold_text(text))):
            return any(each.chunk_id == chunk_id for each in same)
        if self._texts is None:
            return True
        documents = self._texts.documents
        if chunk is None:
            return documents.is_of_document(text, chunk_id)
        return documents.is_text_of(text, chunk)

    def _chunks_of_text(self, text: str, item: object) -> Sequence[Chunk]:
        """Return the chunks that a text may be, of the document named; [] for none.

        Several where they read the same and nothing tells which it is.
        """
        folded = fold_text(text)
        same: Sequence[Chunk] = self._by_text.get(folded, ())
        if not same and self._texts is not None:
            same = self._texts.documents.chunks_in_other_writing(text)
        if not same:
            return []
        near = offset_of(item, STARTS)
        if self._texts is not None:
            documents = self._texts.documents
            doc_ids = documents.named(document_names_of(item))
            if of_these := [chunk for chunk in same if chunk.doc_id in doc_ids]:
                return _nearest(of_these, near)
            if any(folded in documents.folded(doc_id) for doc_id in doc_ids):
                return []
        return _nearest(same, near)

    def _id_of_text(
        self, item: object, texts: Sequence[str], taken: "RetrievedTexts", n_chunks: int
    ) -> str:
        """Return the id of a text that is no chunk, or of a stretch of a document; "" for none."""
        text = next((text for text in texts if text.strip()), "")
        if isinstance(item, str) and (taken.documents.called(item) or not _is_wordy(item)):
            return ""
        doc_ids = taken.documents.named(document_names_of(item))
        start = offset_of(item, STARTS)
        if text:
            from ragforge.retrieval.corpus_documents import Origin  # Loaded by who made `taken`.

            doc_ids = doc_ids or self._lacking(item, taken)
            return taken.add(text, Origin(doc_ids, start), n_chunks)
        if texts or not _has_offsets(item):
            return ""
        first, last = _given(item, STARTS), _given(item, ENDS)
        span = _span(doc_ids, first, last, taken.documents)
        sliced = fold_text(taken.documents.seen(span.doc_id, span.start, span.end)) if span else ""
        if span is None or not sliced:
            return self._unusable(item, first, last)
        return self._id_of_stretch(span, sliced, taken)

    def _id_of_document(
        self, item: object, texts: Sequence[str], ids: Sequence[str], taken: "RetrievedTexts"
    ) -> str:
        """Return the id of a document, or of its text, that a hit names alone; "" for none.

        Where labels name documents, it may have an id of its own beside the document's, which the
        set may lack.
        """
        if any(text not in ids for text in texts):
            return ""
        doc_id = next(filter(None, map(taken.documents.called, ids)), "")
        if not doc_id and taken.documents.names_documents:
            named = taken.documents.named(document_names_of(item)) or self._lacking(item, taken)
            return named[0] if len(named) == 1 else ""
        if not doc_id:
            return ""
        self._note_once(
            "document",
            f"a hit is the document {doc_id}; such count as the whole text of the document",
        )
        text = taken.documents.texts[doc_id]
        span = Span(doc_id=doc_id, start=len(text) - len(text.lstrip()), end=len(text.rstrip()))
        return self._id_of_stretch(span, taken.documents.folded(doc_id), taken)

    def _lacking(self, item: object, taken: "RetrievedTexts") -> tuple[str, ...]:
        """Return the document that a hit names and the set lacks, where labels name documents."""
        name = document_name_of(item) if taken.documents.names_documents else ""
        is_name = len(name) <= _LONGEST_NAME and name not in self._known and "\n" not in name
        return (name,) if name and is_name else ()

    def _id_of_stretch(self, span: Span, folded: str, taken: "RetrievedTexts") -> str:
        """Return the id of a stretch of a document: of the chunk that it is, if it is one."""
        same = [chunk for chunk in self._by_text.get(folded, ()) if chunk.doc_id == span.doc_id]
        return _nearest(same, span.start)[0].chunk_id if same else taken.add_slice(span)

    def _unusable(self, item: object, start: object, end: object) -> str:
        """Return an id for a stretch that no document has; it counts as a hit that is nowhere."""
        name = next(document_names_of(item), "").encode("utf-8", "replace").decode()
        chunk_id = f"{name or 'no document'}[{_brief(start)}:{_brief(end)}]"
        self._note_once(
            "offsets",
            f"a hit is the stretch {chunk_id}, which no document, or not one alone, has; such are "
            "kept as hits that stand nowhere",
        )
        return chunk_id

    def _refuse_surrogates(self, chunk_id: str) -> None:
        try:
            chunk_id.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{self._where}: the chunk id {shown(chunk_id)} has a lone surrogate, which no "
                "file can hold"
            ) from error

    def _number(self, score: object) -> float:
        try:
            number = float(score) if isinstance(score, SupportsFloat) else math.nan
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(
                f"{self._where}: score {shown(score)} (type {type_name(score)}); expected a finite "
                "number"
            )
        return number

    def _hits(self, scored: Sequence[_ScoredId], query: str) -> list[Hit]:
        scores = [chunk.score for chunk in scored if chunk.score is not None]
        steps = list(pairwise(scores))
        if any(worse > better for better, worse in steps):
            self._note_once(
                "rising",
                f"scores rise along the result for the query {query[:_SHOWN]!r}; its order counts, "
                "best first, and its scores do not",
            )
        if len(scores) < len(scored) or any(worse >= better for better, worse in steps):
            scores = [1 / rank for rank in range(1, len(scored) + 1)]
        return [
            Hit(chunk_id=chunk.chunk_id, score=score)
            for chunk, score in zip(scored, scores, strict=True)
        ]

    def _note_twice(self, chunk_id: str, query: str) -> None:
        self._note_once(
            "twice",
            f"chunk {chunk_id!r} comes twice for the query {query[:_SHOWN]!r}; its first place "
            "counts",
        )

    def _note_once(self, kind: str, sentence: str) -> None:
        if kind not in self._noted:
            self._noted.add(kind)
            self._note(f"{self._where}: {sentence} (said once)")


class _HitsAbove:
    """Knows the hits of a result so far that have an id."""

    def __init__(self) -> None:
        self._items: dict[tuple[tuple[str, ...], tuple[str, ...]], list[object]] = {}

    def repeats(self, item: object, ids: tuple[str, ...], texts: tuple[str, ...]) -> bool:
        """Whether a hit is one of these again: of the same ids, texts and place; it is then added.

        What has no id, as bare texts, may be of another place each time.
        """
        if not ids or isinstance(item, str):
            return False
        alike = self._items.setdefault((ids, texts), [])
        if any(_place(item) == _place(other) for other in alike):
            return True
        alike.append(item)
        return False


def _place(item: object) -> tuple[tuple[str, ...], object, object]:
    """Return where a hit says that it is from."""
    return tuple(document_names_of(item)), _given(item, STARTS), _given(item, ENDS)


def _parts(item: object) -> tuple[object, object]:
    """Return what a hit is, and its score; None where it has none."""
    match item:
        case Hit():
            return item, item.score
        case (inner, score):
            return inner, score
    node = next(values_of(item, ("node",)), item)
    return node, next(values_of(item, ("score", "_score")), None)


def _is_blank(texts: Sequence[str], ids: Sequence[str]) -> bool:
    """Whether a hit without a text of its own has no id, or one of blanks, to go by."""
    return bool(texts) and not "".join(ids).strip()


def _has_offsets(item: object) -> bool:
    return _given(item, STARTS) is not None or _given(item, ENDS) is not None


def _given(item: object, names: Iterable[str]) -> object:
    """Return what an object has under the first of some names that it has; None for nothing."""
    places = (item, *nested_mappings(item))
    return next((value for place in places for value in values_of(place, names)), None)


def _span(
    doc_ids: Sequence[str], start: object, end: object, documents: "CorpusDocuments"
) -> Span | None:
    """Return the stretch that offsets are of one document; None where they are of none."""
    first, last = whole_number(start), whole_number(end)
    if len(doc_ids) != 1 or first is None or last is None:
        return None
    last = min(last, len(documents.texts[doc_ids[0]]))
    return Span(doc_id=doc_ids[0], start=first, end=last) if 0 <= first < last else None


def _brief(value: object) -> str:
    return "" if value is None else shown(value).strip("'")


def _is_wordy(text: str) -> bool:
    """Whether a bare string reads as a text and not as an id."""
    return len(text) >= _LENGTH_OF_TEXT or reads_as_words(text)


def _nearest(chunks: Sequence[Chunk], near: int | None) -> Sequence[Chunk]:
    """Return the chunks that begin nearest to an offset; all where there is none."""
    if near is None:
        return chunks
    least = min(abs(chunk.start - near) for chunk in chunks)
    return [chunk for chunk in chunks if abs(chunk.start - near) == least]


def adapt(
    target: object,
    name: str,
    chunks: Iterable[Chunk] = (),
    *,
    note: Note = ignore_note,
    timeout_s: float = 120.0,
    texts: "RetrievedTexts | None" = None,
) -> Retriever:
    """Return a retriever that asks a user's object.

    Args:
        target: A function `f(query, k)` or `f(query)`, plain or async; an object with one of the
            methods `retrieve`, `invoke`, `get_relevant_documents`, `search` or their async twins;
            a class of such objects whose constructor takes nothing, or one argument `chunks`: a
            list of `Chunk`; what `ragforge.retrieval.frameworks` tells by its shape. Frameworks
            are never imported. Plain functions run in threads, several at once.
        name: What messages call it.
        chunks: The corpus, to know ids and texts.
        note: Told once of each oddity of the results, see `ResultReader`.
        timeout_s: Seconds for one query. A plain function that takes longer goes on in its thread.
        texts: Takes texts that are no chunks, see `ResultReader`.

    Raises:
        UsageError: The object is none of these, or its class cannot be instantiated.
    """
    corpus = list(chunks)
    if isinstance(target, type):
        target = construct(target, f"retriever {name}", {"chunks": corpus}, _ADVICE)
    search = search_of(target, f"retriever {name}") or method_of(
        target, _METHODS, f"retriever {name}", "f(query, k)"
    )
    reader = ResultReader(f"retriever {name}", corpus, note, texts)
    return _UserRetriever(search, reader, f"retriever {name}", timeout_s)


class _UserRetriever:
    def __init__(
        self, search: Callable[..., object], reader: ResultReader, where: str, timeout_s: float
    ) -> None:
        self._search = search
        self._reader = reader
        self._where = where
        self._timeout_s = timeout_s
        self._k_parameter = _k_parameter(search)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the hits of the user's object, whose exceptions pass.

        Raises:
            CallError: It took too long.
            DataError: What it returned cannot be read as a result.
        """
        limit = asyncio.timeout(self._timeout_s)
        try:
            async with limit:
                result = await call(self._search, partial(self._ask, query, k))
        except TimeoutError as error:
            if not limit.expired():
                raise
            thread = "" if iscoroutinefunction(self._search) else "; its thread is left behind"
            raise CallError(
                "error", f"{self._where}: no result in {self._timeout_s:g} s{thread}"
            ) from error
        return self._reader.read(hits_of(result, k), query, k)

    def _ask(self, query: str, k: int) -> object:
        result = self._searched(query, k)
        return result if isawaitable(result) else hits_of(result, k)  # some of them search

    def _searched(self, query: str, k: int) -> object:
        match self._k_parameter:
            case None:
                return self._search(query)
            case "":
                return self._search(query, k)
            case keyword:
                return self._search(query, **{keyword: k})


def _k_parameter(search: Callable[..., object]) -> str | None:
    """Return how a function takes k: its keyword, "" for the second argument, None for not."""
    if not (parameters := parameters_of(search)):
        return ""  # a built-in that does not tell: as documented, f(query, k)
    by_position = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    for parameter in parameters[1:]:
        if parameter.name in _NAMES_OF_K and parameter.kind is not parameter.VAR_KEYWORD:
            return "" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
    required = [p for p in by_position if p.default is p.empty]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return "" if len(required) > 1 or (takes_any and len(by_position) < 2) else None


class HttpRetriever:
    """Posts `{"query": ..., "k": ...}` as JSON and reads the hits of the JSON reply.

    The reply is a list of hits, best first, or an object that holds one under "hits", "results",
    "documents" or "matches"; a hit is an id or an object with `chunk_id` or `id` and perhaps a
    `score`, and whatever else `ResultReader` reads.

    Redirects are refused and nothing is tried again; see `Service`.

    Args:
        url: Address, http or https.
        chunks: The corpus, to know ids and texts; without it ids are taken as they come.
        timeout_s: Seconds to connect and for the whole reply.
        note: Told once of each oddity of the results, see `ResultReader`.
        texts: Takes texts that are no chunks, likewise.

    Raises:
        UsageError: The address cannot be used.
    """

    def __init__(
        self,
        url: str,
        chunks: Iterable[Chunk] = (),
        *,
        timeout_s: float = 30.0,
        note: Note = ignore_note,
        texts: "RetrievedTexts | None" = None,
    ) -> None:
        self._service = Service(url, what="retriever", function="f(query, k)", timeout_s=timeout_s)
        self._reader = ResultReader(self._service.shown, chunks, note, texts)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the hits of the service.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it cannot be read or repeats another query.
        """
        reply = await self._service.post({"query": query, "k": k})
        refuse_query_of_another(reply.value, query, self._service.shown, reply.start)
        try:
            return self._reader.read(reply.value, query, k)
        except DataError as error:
            raise CallError("invalid", str(error), raw=reply.start) from error
