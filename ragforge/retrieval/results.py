"""Reading what somebody else's retriever returned, by the shape of it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import SupportsFloat

from ragforge.errors import DataError
from ragforge.foreign.reading import (
    TEXTS,
    Note,
    ids_of,
    keep_quiet,
    shown,
    spaced,
    type_name,
    values_of,
)
from ragforge.records import Chunk, Hit

_LISTS = ("hits", "results", "documents", "matches")
_ERRORS = ("error", "errors")
_SHOWN = 80
_ACCEPTED = (
    "expected a chunk id, (id, score), an object or mapping with chunk_id or id, a LangChain "
    "Document, or a LlamaIndex NodeWithScore"
)


@dataclass(frozen=True, slots=True)
class _Found:
    chunk_id: str
    score: float | None


class ResultReader:
    """Turns results of many shapes into hits.

    The order of a result counts: it is what the system behind it would use. Its scores are kept
    where they fall from each rank to the next; else rank r gets 1/r, as equal or rising scores
    (distances, say) would make another order of it.

    An id is the first of `chunk_id` (its own or in `metadata`), `metadata["id"]` and `id` that a
    chunk has; failing that, that of the chunk with the same text; failing that, the first there
    is, which then counts as a chunk the corpus does not have.

    Args:
        where: What messages name as the origin of the results.
        chunks: The corpus, to know ids and texts; without it the first id counts.
        note: Told once of each of: a chunk that comes twice (its first place counts), scores that
            rise.
    """

    def __init__(self, where: str, chunks: Iterable[Chunk] = (), note: Note = keep_quiet) -> None:
        self._where = where
        self._note = note
        self._noted: set[str] = set()
        self._id_by_text: dict[str, str] = {}
        self._known: set[str] = set()
        for chunk in chunks:
            self._known.add(chunk.chunk_id)
            self._id_by_text.setdefault(spaced(chunk.text), chunk.chunk_id)

    def read(self, result: object, query: str, k: int) -> list[Hit]:
        """Return the first k different chunks of a result, best first.

        Args:
            result: A sequence or iterator of what was found, best first, or a mapping that holds
                one under "hits", "results", "documents" or "matches".
            query: What was asked, for notes.
            k: How many hits at most.

        Raises:
            DataError: The result, or one of its first items, has none of the shapes accepted.
        """
        scored: dict[str, _Found] = {}
        for item in self._items(result):
            chunk = self._found(item)
            if chunk.chunk_id in scored:
                self._tell_once(
                    "twice",
                    f"chunk {chunk.chunk_id!r} comes twice for the query {query[:_SHOWN]!r}; its "
                    "first place counts",
                )
            scored.setdefault(chunk.chunk_id, chunk)
            if len(scored) == k:
                break
        return self._hits(list(scored.values()), query)

    def _items(self, result: object) -> Iterable[object]:
        if isinstance(result, Mapping):
            for name in _LISTS:
                if name in result:
                    self._refuse_error(result)
                    return self._items(result[name])
            keys = ", ".join(repr(key) for key in list(result)[:5]) or "nothing"
            raise DataError(
                f"{self._where}: the result is a mapping with {keys}; expected a list under one of "
                f"{', '.join(_LISTS)}"
            )
        if isinstance(result, Sequence | Iterator) and not isinstance(result, str | bytes):
            return result
        raise DataError(
            f"{self._where}: the result is of type {type_name(result)}; expected a list, best first"
        )

    def _refuse_error(self, result: Mapping[object, object]) -> None:
        for name in _ERRORS:
            if result.get(name):
                raise DataError(
                    f"{self._where}: there is an {name!r} beside the results: {shown(result[name])}"
                )

    def _found(self, item: object) -> _Found:
        match item:
            case Hit():
                return _Found(item.chunk_id, item.score)
            case (inner, score):
                return _Found(self._id(inner), self._number(score))
        score = next(values_of(item, ("score", "_score")), None)
        node = next(values_of(item, ("node",)), None)
        return _Found(
            self._id(item if node is None else node),
            None if score is None else self._number(score),
        )

    def _id(self, item: object) -> str:
        ids = list(ids_of(item))
        for chunk_id in ids:
            if chunk_id in self._known:
                return chunk_id
        texts = [item] if isinstance(item, str) else values_of(item, TEXTS)
        for text in texts:
            if isinstance(text, str) and spaced(text) in self._id_by_text:
                return self._id_by_text[spaced(text)]
        if ids:
            self._refuse_surrogates(ids[0])
            return ids[0]
        raise DataError(
            f"{self._where}: cannot tell which chunk {shown(item)} (type {type_name(item)}) is; "
            f"{_ACCEPTED}"
        )

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

    def _hits(self, scored: Sequence[_Found], query: str) -> list[Hit]:
        scores = [chunk.score for chunk in scored if chunk.score is not None]
        steps = list(pairwise(scores))
        if any(worse > better for better, worse in steps):
            self._tell_once(
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

    def _tell_once(self, kind: str, sentence: str) -> None:
        if kind not in self._noted:
            self._noted.add(kind)
            self._note(f"{self._where}: {sentence} (said once)")
