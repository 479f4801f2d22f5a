"""A retriever that settings describe: asked page by page, its replies read by their paths."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from ragforge.config import RetrieverService
from ragforge.deferred import dataclass
from ragforge.errors import CallError, ConfigError, DataError
from ragforge.records import Chunk, Hit
from ragforge.records.model import JsonValue
from ragforge.retrieval import Embedder
from ragforge.retrieval.object_fields import (
    Note,
    document_names_of,
    fold_text,
    ids_of,
    ignore_note,
    is_same_query,
    other_query_error,
    texts_of,
    values_of,
)
from ragforge.retrieval.services.client import Exchange, OnExchange, ServiceClient
from ragforge.retrieval.services.dialects import ServicePlan, plan_of
from ragforge.retrieval.services.paths import ReplyPath
from ragforge.retrieval.user_retrievers import ResultReader

if TYPE_CHECKING:
    from ragforge.retrieval.retrieved_texts import RetrievedTexts

_LISTS: Final = ("hits", "results", "documents", "matches")
_PAGING: Final = frozenset({"page", "offset", "cursor"})
_NEEDS_COLLECTION: Final = frozenset({"qdrant", "weaviate"})


@dataclass(frozen=True, slots=True)
class Result:
    """One result as it was read; what a service does not tell is None.

    Args:
        item: What a `ResultReader` makes a hit of.
    """

    id: str | None
    text: str | None
    document: str | None
    score: float | None
    item: object

    @property
    def key(self) -> object:
        """What tells it from the others of a ranking."""
        return (self.id, self.text, self.document) if self.id or self.text else repr(self.item)


def refuse_other_query(
    client: ServiceClient, echo: ReplyPath, value: object, query: str, answer: str = ""
) -> None:
    """Refuse a reply that repeats another query than was asked.

    Args:
        client: Knows which fields of the request are the query.
        echo: Where the reply repeats it by its settings.
        value: The reply.
        query: What was asked.
        answer: What the reply says itself, in whichever field.

    Raises:
        CallError: It does.
    """
    told = echo.find(value)
    if not isinstance(told, str) or is_same_query(told, query):
        of_request = (_at(value, keys) for keys in client.query_fields)
        told = next((text for text in of_request if text and not _has_query(text, query)), None)
        if told is None or told == answer:
            return
    raise other_query_error(client.where, told, query, "echo = 'none'")


def _at(value: object, keys: Sequence[str]) -> str | None:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else None


def _has_query(text: str, query: str) -> bool:
    """Whether a text repeats a query, perhaps among other words."""
    is_within = fold_text(query).casefold() in fold_text(text).casefold()
    return is_within or is_same_query(text, query)


def pass_over(_: Exchange) -> None:
    """Do nothing."""


class ServiceRetriever:
    """Asks a service that settings describe.

    Args:
        name: Of the service in the settings.
        service: Its settings.
        chunks: The corpus, to know ids and texts.
        embedder: For `{vector}`; None where no embedding model is set.
        client: Sends the requests; made of the settings where None.
        timeout_s: Of one request, where the settings do not say.
        note: Told once of each oddity of the results, see `ResultReader`.
        texts: Takes texts that are no chunks, likewise.

    Raises:
        ConfigError: The settings cannot be used, see `ServiceClient`.
    """

    def __init__(
        self,
        name: str,
        service: RetrieverService,
        chunks: Iterable[Chunk] = (),
        *,
        embedder: Embedder | None = None,
        client: ServiceClient | None = None,
        timeout_s: float = 30.0,
        note: Note = ignore_note,
        texts: "RetrievedTexts | None" = None,
    ) -> None:
        where = f"retrievers.{name}"
        _require_collection(where, service)
        plan = plan_of(service)
        self.client = client or ServiceClient(where, service, plan, timeout_s=timeout_s, note=note)
        self._service = service
        self._paths = _Paths.of(where, plan)
        self._embedder = embedder
        self._is_paged = bool(self.client.holes & _PAGING)
        _require_paging(where, service, self.client.holes)
        if "vector" in self.client.holes and embedder is None:
            raise ConfigError(
                f"{where}: asks with the {{vector}} of the query, and no embedding model is set; "
                "name the one that the index was made with: --embedding-model "
                "(model.embedding_model), or set a body that asks with {query}"
            )
        self._reader = ResultReader(where, chunks, note, texts)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the hits of the service.

        Raises:
            CallError: `error` where no good reply came, `invalid` where it cannot be read.
            EndpointError: Its credentials are not taken.
        """
        results = await self.results(query, k)
        try:
            return self.read(results, query, k)
        except DataError as error:
            raise self.client.without_secrets(CallError("invalid", str(error))) from None

    def read(self, results: Iterable[Result], query: str, k: int) -> list[Hit]:
        """Return the hits that results are.

        Raises:
            DataError: One of the first is none.
        """
        return self._reader.read([result.item for result in results], query, k)

    def items(self, value: object) -> Sequence[object]:
        """Return the results of a reply as they came.

        Raises:
            CallError: There is no list of them.
        """
        return self._paths.items(value)

    async def results(
        self, query: str, k: int, on_exchange: OnExchange = pass_over
    ) -> list[Result]:
        """Return what the service finds, best first, of as many pages as k takes.

        Raises:
            CallError, EndpointError: As for `retrieve`.
        """
        try:
            return await self._results(query, k, on_exchange)
        except CallError as error:
            raise self.client.without_secrets(error) from None

    async def _results(self, query: str, k: int, on_exchange: OnExchange) -> list[Result]:
        size = self._service.page_size or k
        values: dict[str, JsonValue] = {"query": query, "k": size}
        if "vector" in self.client.holes:
            assert self._embedder is not None
            [vector] = await self._embedder.embed([query])
            values["vector"] = [float(number) for number in vector]
        found: list[Result] = []
        known: set[object] = set()
        n_seen, page = 0, 0
        while True:
            values |= {"offset": n_seen, "page": self._service.first_page + page}
            exchange = await self.client.ask(values, on_exchange)
            value = self.client.json(exchange)
            results = self._read(value, query, exchange)
            new = {result.key for result in results} - known
            if results and not new:
                raise CallError(
                    "invalid",
                    f"{self.client.where}: page {page + 1} has the same results as those before; "
                    "is the hole that pages through them the right one?",
                    exchange.start,
                )
            # What has an id is known by that when it comes again; a text may have moved on here.
            found += [result for result in results if result.id or result.key in new]
            known |= new
            n_seen, page = n_seen + len(results), page + 1
            if len(known) >= k or not self._goes_on(results, size, value, values):
                return found

    def _goes_on(
        self, results: Sequence[Result], size: int, value: object, values: dict[str, JsonValue]
    ) -> bool:
        """Whether there is another page; notes its cursor."""
        if not self._is_paged or not results:
            return False
        if "cursor" in self.client.holes:
            cursor = self._paths.cursor.find(value)
            values["cursor"] = cast("JsonValue", cursor)  # It is of the reply's JSON.
            return bool(cursor)
        # Engines give as many as they are asked for; other services may have a cap.
        may_be_capped = self._service.dialect == "ragforge" and self._service.page_size is None
        return may_be_capped or len(results) >= size

    def _read(self, value: object, query: str, exchange: Exchange) -> list[Result]:
        try:
            refuse_other_query(self.client, self._paths.echo, value, query)
            results = [self._paths.result(item) for item in self._paths.items(value)]
            if not results:
                self.client.refuse_empty(value, exchange)
        except CallError as error:
            raise CallError(error.kind, str(error), error.raw or exchange.start) from error
        _require_told(results, self._paths, exchange)
        return results


@dataclass(frozen=True, slots=True)
class _Paths:
    where: str
    results: ReplyPath
    id: ReplyPath
    text: ReplyPath
    document: ReplyPath
    score: ReplyPath
    cursor: ReplyPath
    echo: ReplyPath

    @classmethod
    def of(cls, where: str, plan: ServicePlan) -> "_Paths":
        """Return the paths of a plan.

        Raises:
            ConfigError: One is no JMESPath.
        """
        names = ("results", "id", "text", "document", "score", "cursor", "echo")
        paths = {name: ReplyPath(getattr(plan, name), f"{where}.{name}") for name in names}
        return cls(where, **paths)

    def items(self, value: object) -> Sequence[object]:
        """Return the results of a reply as they came.

        Raises:
            CallError: There is no list of them.
        """
        if self.results:
            return self.results.listed(value)
        if isinstance(value, Mapping):
            value = next((value[name] for name in _LISTS if name in value), value)
        if isinstance(value, list):
            return value
        raise CallError(
            "invalid",
            f"{self.where}: no list of results in the reply; expected one under "
            f"{', '.join(_LISTS)}, or set {self.where}.results; `ragforge probe "
            f"{self.where.partition('.')[2]} QUERY` looks for one",
        )

    def result(self, item: object) -> Result:
        """Return one result.

        Raises:
            CallError: A path matches something that it should not.
        """
        if not (self.id or self.text):
            return self._guessed(item)
        document = (
            self.document.scalar(item) if self.document else next(document_names_of(item), None)
        )
        chunk_id, text = self.id.scalar(item) or None, self.text.scalar(item) or None
        score = self._score(item)
        told = {"chunk_id": chunk_id, "text": text, "doc_id": document, "score": score}
        fields = {name: value for name, value in told.items() if value is not None}
        return Result(chunk_id, text, document, score, fields)

    def _guessed(self, item: object) -> Result:
        """Return a result whose fields are known by their names."""
        score = self._score(item)
        taken = (item, score) if self.score and score is not None else item
        if isinstance(item, str | int):
            return Result(str(item), None, None, None, taken)
        return Result(
            id=next(ids_of(item), None),
            text=next(texts_of(item), None),
            document=next(document_names_of(item), None),
            score=score,
            item=taken,
        )

    def _score(self, item: object) -> float | None:
        if self.score:
            return _number(self.score.find(item), self.score)
        return _number_or_none(next(values_of(item, ("score", "_score")), None))


def _number(value: object, path: ReplyPath) -> float | None:
    """Return a score, which some services write as a text.

    Raises:
        CallError: It is none.
    """
    if value is None:
        return None
    number = _number_or_none(value)
    if number is None:
        raise CallError(
            "invalid",
            f"{path.where} = {path.expression!r}: matches {value!r:.60} where a number is wanted",
        )
    return number


def _number_or_none(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _require_told(results: Sequence[Result], paths: _Paths, exchange: Exchange) -> None:
    """Refuse results of which the paths tell nothing, or the score of which some have none."""
    if results and (paths.id or paths.text) and not any(one.id or one.text for one in results):
        tried = " and ".join(
            f"{path.where} = {path.expression!r}" for path in (paths.id, paths.text) if path
        )
        raise CallError(
            "invalid",
            f"{tried}: match nothing in any of {len(results):,} results; `ragforge probe "
            f"{paths.where.partition('.')[2]} QUERY` looks for paths",
            exchange.start,
        )


def _require_paging(where: str, service: RetrieverService, holes: set[str]) -> None:
    """Refuse halves of a paging, which would leave a ranking at its first page.

    Raises:
        ConfigError: Something is missing.
    """
    if service.page_size is not None and not holes & _PAGING:
        raise ConfigError(
            f"{where}.page_size: expected {{offset}}, {{page}} or {{cursor}} in the request, which "
            "asks for the next page"
        )
    if ("cursor" in holes) != bool(service.cursor):
        raise ConfigError(
            f"{where}.cursor: goes with {{cursor}} in the request; one of the two is missing"
        )


def _require_collection(where: str, service: RetrieverService) -> None:
    if service.dialect in _NEEDS_COLLECTION and not service.collection and service.body is None:
        raise ConfigError(f"{where}.collection: {service.dialect} needs the name of one")
