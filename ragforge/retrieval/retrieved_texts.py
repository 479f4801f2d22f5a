"""Texts that retrievers give and that are no chunks of the set: their ids, and where they stand.

A text is kept under an id that is made of it, once however often it comes, and is looked for in the
documents when all are there: an index is only made where there is something to look for, and no
query waits for it. Until then texts that are said to be of different places count as different;
those that the documents do hold several times stay so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final, Protocol

from ragforge.files.set.document_level import DocumentNames
from ragforge.records import Chunk, Hit, Ranking, RetrievedText, Span, text_id
from ragforge.retrieval.object_fields import fold_blanks

_MOST_ORIGINS: Final = 32
"""Documents and offsets that are looked at of a text that comes with many."""
_LONGEST_NAME: Final = 1000
"""Characters; what is longer is a text."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a retriever says that a text is from.

    Args:
        doc_ids: Documents of the set that it may mean; () where it names none.
        near: Offset at which it says that the text begins; None where it does not.
    """

    doc_ids: tuple[str, ...] = ()
    near: int | None = None


class Location(Protocol):
    """Where a text stands: `TextLocation` is one."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its places."""

    @property
    def likeness(self) -> float:
        """Share of its letters that stand there."""


class Locator(Protocol):
    """Finds texts in documents: `TextLocator` is one."""

    def locate(
        self, text: str, *, doc_ids: Iterable[str] = (), near: int | None = None
    ) -> Location | None:
        """Return where a text stands, first in the documents named, near an offset."""


class CorpusDocuments:
    """The documents of a set, as its chunks have them; put together when they are asked for.

    Args:
        chunks: Of the set.
        documents_of: Returns text by document for chunks.
        locator_of: Makes what finds texts in these.
        names_documents: Whether labels name documents, so that a whole one may be retrieved.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        documents_of: Callable[[Iterable[Chunk]], Mapping[str, str]],
        locator_of: Callable[[Mapping[str, str]], Locator],
        *,
        names_documents: bool = False,
    ) -> None:
        self._chunks = chunks
        self._documents_of = documents_of
        self._locator_of = locator_of
        self._doc_ids = frozenset(chunk.doc_id for chunk in chunks)
        self._resolved: dict[str, tuple[str, ...]] = {}
        self._folded: dict[str, str] = {}
        self.retrievable: Set[str] = self._doc_ids if names_documents else frozenset()
        """Ids of documents that a hit may be."""

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Text by id."""
        return self._documents_of(self._chunks)

    def __contains__(self, doc_id: str) -> bool:
        """Whether a document is called so."""
        return doc_id in self._doc_ids

    def folded(self, doc_id: str) -> str:
        """Return the text of a document with single blanks."""
        if doc_id not in self._folded:
            self._folded[doc_id] = fold_blanks(self.texts[doc_id])
        return self._folded[doc_id]

    @cached_property
    def locator(self) -> Locator:
        """Finds texts in them."""
        return self._locator_of(self.texts)

    @cached_property
    def _names(self) -> DocumentNames:
        return DocumentNames(self._doc_ids)

    def named(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the documents that the first name means that means any; () for none."""
        for name in names:
            if len(name) > _LONGEST_NAME:
                continue
            if name not in self._resolved:
                self._resolved[name] = self._names.resolve(name)
            if doc_ids := self._resolved[name]:
                return doc_ids
        return ()


@dataclass(slots=True)
class _Text:
    text: str
    origins: dict[Origin, None] = field(default_factory=dict)
    """An ordered set."""
    spans: set[tuple[str, int, int]] = field(default_factory=set)
    """Places that the retriever gave itself, as offsets."""


class RetrievedTexts:
    """Takes the texts of one run.

    Args:
        documents: In which they are looked for.
    """

    def __init__(self, documents: CorpusDocuments) -> None:
        self.documents = documents
        self._texts: dict[str, _Text] = {}

    @property
    def ids(self) -> Set[str]:
        """Ids of the texts so far."""
        return self._texts.keys()

    def text(self, chunk_id: str) -> str:
        """Return a text by its id; "" where it was not taken."""
        held = self._texts.get(chunk_id)
        return held.text if held else ""

    def add(self, text: str, origin: Origin) -> str:
        """Take a text that is not blank, and return its id."""
        # A lone surrogate fits into no file.
        encodable = text.encode("utf-8", "replace").decode()
        told = origin.doc_ids or origin.near is not None
        chunk_id = text_id(encodable, repr(origin) if told else "")
        self._take(chunk_id, _Text(encodable, {origin: None}))
        return chunk_id

    def add_slice(self, span: Span) -> str:
        """Take a stretch of a document that is not blank, and return the id of its text."""
        text = self.documents.texts[span.doc_id][span.start : span.end]
        chunk_id = text_id(text, repr(span))
        self._take(chunk_id, _Text(text, spans={(span.doc_id, span.start, span.end)}))
        return chunk_id

    def _take(self, chunk_id: str, text: _Text) -> None:
        held = self._texts.setdefault(chunk_id, text)
        # Whichever query comes first, the same file is written.
        held.text = min(held.text, text.text)
        held.origins |= text.origins
        held.spans |= text.spans

    def settle(self, rankings: Sequence[Ranking]) -> list[Ranking]:
        """Give texts the ids that they keep, and return the rankings with these.

        One that stands in several places, and was said to be at one of them, has an id of its own
        for each; whatever else reads the same is one text, and counts once in a ranking.
        """
        cited = {hit.chunk_id for ranking in rankings for hit in ranking.ranking}
        texts, self._texts = self._texts, {}
        now = {}
        for chunk_id in sorted(cited & texts.keys()):
            now[chunk_id] = self._settled_id(texts[chunk_id])
            self._take(now[chunk_id], texts[chunk_id])
        return [_renamed(ranking, now) for ranking in rankings]

    def _settled_id(self, held: _Text) -> str:
        locate = self.documents.locator.locate
        [origin] = held.origins or [None]
        if origin is None:
            [(doc_id, start, _)] = held.spans
        elif origin.doc_ids or origin.near is not None:
            told = locate(held.text, doc_ids=origin.doc_ids, near=origin.near)
            if told is None or len(told.spans) > 1:
                return text_id(held.text)
            doc_id, start = told.spans[0].doc_id, told.spans[0].start
        else:
            return text_id(held.text)
        anywhere = locate(held.text)
        if anywhere and [span.doc_id for span in anywhere.spans] == [doc_id]:
            return text_id(held.text)
        there = locate(held.text, doc_ids=(doc_id,))
        is_repeated = there is not None and len(there.spans) > 1
        return text_id(held.text, f"{doc_id}\n{start}" if is_repeated else doc_id)

    def located(self, wanted: Set[str]) -> Iterator[RetrievedText]:
        """Yield the texts with their places, those of some ids alone, sorted by id."""
        for chunk_id in sorted(wanted & self._texts.keys()):
            held = self._texts[chunk_id]
            spans, likeness = set(held.spans), 1.0
            for origin in islice(held.origins, _MOST_ORIGINS):
                location = self.documents.locator.locate(
                    held.text, doc_ids=origin.doc_ids, near=origin.near
                )
                if location is not None:
                    spans |= {(span.doc_id, span.start, span.end) for span in location.spans}
                    likeness = location.likeness
            doc_ids = {doc_id for origin in held.origins for doc_id in origin.doc_ids}
            yield RetrievedText(
                chunk_id=chunk_id,
                text=held.text,
                places=tuple(
                    Span(doc_id=doc_id, start=start, end=end)
                    for doc_id, start, end in sorted(spans)
                ),
                likeness=likeness,
                doc_ids=() if spans else tuple(sorted(doc_ids)),
            )


def _renamed(ranking: Ranking, now: Mapping[str, str]) -> Ranking:
    if not any(hit.chunk_id in now for hit in ranking.ranking):
        return ranking
    hits: dict[str, Hit] = {}
    for hit in ranking.ranking:
        chunk_id = now.get(hit.chunk_id, hit.chunk_id)
        hits.setdefault(chunk_id, hit.model_copy(update={"chunk_id": chunk_id}))
    return ranking.model_copy(update={"ranking": tuple(hits.values())})
