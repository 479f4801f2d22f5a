"""Making a retriever of what a user has: a function, or an object of a framework."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from inspect import iscoroutinefunction

from ragforge.errors import CallError
from ragforge.foreign.calling import call, construct, method_of, parameters_of
from ragforge.foreign.reading import Note, keep_quiet
from ragforge.records import Chunk, Hit
from ragforge.retrieval import Retriever
from ragforge.retrieval.results import ResultReader

_METHODS = (
    *("aretrieve", "retrieve"),
    *("ainvoke", "invoke"),
    *("aget_relevant_documents", "get_relevant_documents"),
    *("asearch", "search"),
)
"""Names under which retrievers search, in order of preference; the query is the first argument."""

_ADVICE = "make the object in the module and name that"
_NAMES_OF_K = ("k", "top_k", "limit", "n")


def adapt(
    target: object,
    name: str,
    chunks: Iterable[Chunk] = (),
    *,
    note: Note = keep_quiet,
    timeout_s: float = 120.0,
) -> Retriever:
    """Return a retriever that asks a user's object.

    Args:
        target: A function `f(query, k)` or `f(query)`, plain or async; an object with one of the
            methods `retrieve`, `invoke`, `get_relevant_documents`, `search` or their async twins;
            a class of such objects whose constructor takes nothing, or one argument `chunks`: a
            list of `Chunk`. Frameworks are recognised by these names and never imported. Plain
            functions run in threads, several at once.
        name: What messages call it.
        chunks: The corpus, to know ids and texts.
        note: Told once of each oddity of the results, see `ResultReader`.
        timeout_s: Seconds for one query. A plain function that takes longer goes on in its thread.

    Raises:
        UsageError: The object is none of these, or its class cannot be instantiated.
    """
    corpus = list(chunks)
    if isinstance(target, type):
        target = construct(target, f"retriever {name}", {"chunks": corpus}, _ADVICE)
    search = method_of(target, _METHODS, f"retriever {name}", "f(query, k)")
    reader = ResultReader(f"retriever {name}", corpus, note)
    return _Adapter(search, reader, f"retriever {name}", timeout_s)


class _Adapter:
    def __init__(
        self, search: Callable[..., object], reader: ResultReader, where: str, timeout_s: float
    ) -> None:
        self._search = search
        self._reader = reader
        self._where = where
        self._timeout_s = timeout_s
        self._place_of_k = _place_of_k(search)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return what the object found; its exceptions pass.

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
        return self._reader.read(result, query, k)

    def _ask(self, query: str, k: int) -> object:
        match self._place_of_k:
            case None:
                return self._search(query)
            case "":
                return self._search(query, k)
            case keyword:
                return self._search(query, **{keyword: k})


def _place_of_k(search: Callable[..., object]) -> str | None:
    """Tell how a function takes k: by the keyword returned, as second argument (""), or not."""
    if not (parameters := parameters_of(search)):
        return ""  # a built-in that does not tell: as documented, f(query, k)
    by_position = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    for parameter in parameters[1:]:
        if parameter.name in _NAMES_OF_K and parameter.kind is not parameter.VAR_KEYWORD:
            return "" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
    required = [p for p in by_position if p.default is p.empty]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return "" if len(required) > 1 or (takes_any and len(by_position) < 2) else None
