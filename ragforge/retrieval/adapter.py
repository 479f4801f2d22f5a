"""Making a retriever of what a user has: a function, or an object of a framework."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from ragforge.errors import UsageError
from ragforge.records import Chunk, Hit
from ragforge.retrieval import Retriever
from ragforge.retrieval.results import Note, ResultReader, keep_quiet

_METHODS = (
    "aretrieve",
    "retrieve",
    "ainvoke",
    "invoke",
    "aget_relevant_documents",
    "get_relevant_documents",
)
"""Names under which retrievers search, in order of preference; the query is the first argument."""

_NAMES_OF_K = ("k", "top_k", "limit", "n")


def adapt(
    found: object, name: str, chunks: Iterable[Chunk] = (), *, note: Note = keep_quiet
) -> Retriever:
    """Return a retriever that asks a user's object.

    Args:
        found: A function `f(query, k)` or `f(query)`, plain or async; an object with one of the
            methods `retrieve`, `invoke`, `get_relevant_documents` or their async twins; a class of
            such objects whose constructor takes nothing, or one argument `chunks`: a list of
            `Chunk`. Frameworks are recognised by these names and never imported. Plain functions
            run in threads, several at once.
        name: What messages call it.
        chunks: The corpus, to know ids and texts.
        note: Told once of each oddity of the results, see `ResultReader`.

    Raises:
        UsageError: The object is none of these, or its class cannot be instantiated.
    """
    corpus = list(chunks)
    if isinstance(found, type):
        found = _construct(found, name, corpus)
    return _Adapter(_search_of(found, name), ResultReader(f"retriever {name}", corpus, note))


class _Adapter:
    def __init__(self, search: Callable[..., object], reader: ResultReader) -> None:
        self._search = search
        self._reader = reader
        self._place_of_k = _place_of_k(search)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return what the object found; its exceptions pass.

        Raises:
            DataError: What it returned cannot be read as a result.
        """
        if inspect.iscoroutinefunction(self._search):
            result = self._ask(query, k)
        else:
            result = await asyncio.to_thread(self._ask_to_the_end, query, k)
        if inspect.isawaitable(result):
            result = await result
        return self._reader.read(result, query, k)

    def _ask(self, query: str, k: int) -> object:
        match self._place_of_k:
            case None:
                return self._search(query)
            case "":
                return self._search(query, k)
            case keyword:
                return self._search(query, **{keyword: k})

    def _ask_to_the_end(self, query: str, k: int) -> object:
        """Run a generator here too: its body is the search."""
        result = self._ask(query, k)
        return list(result) if isinstance(result, Iterator) else result


def _construct(found: type, name: str, chunks: list[Chunk]) -> object:
    required = [
        parameter.name
        for parameter in _parameters(found)
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    if required not in ([], ["chunks"]):
        raise UsageError(
            f"retriever {name}: the constructor needs {', '.join(required)}; expected none or "
            "'chunks'; make the object in the module and name that"
        )
    try:
        return found(chunks) if required else found()
    except Exception as error:  # a user's code may raise anything
        raise UsageError(
            f"retriever {name}: the constructor raised {type(error).__name__}: {error}"
        ) from error


def _search_of(found: object, name: str) -> Callable[..., object]:
    """Return what to call with a query."""
    if not inspect.isroutine(found):
        for method in _METHODS:
            search = getattr(found, method, None)
            if callable(search):
                return cast("Callable[..., object]", search)  # its signature is read later
    if callable(found):
        return cast("Callable[..., object]", found)
    raise UsageError(
        f"retriever {name}: is of type {type(found).__qualname__}; expected a function "
        f"f(query, k), or an object with one of {', '.join(_METHODS)}"
    )


def _place_of_k(search: Callable[..., object]) -> str | None:
    """Tell how a function takes k: by the keyword returned, as second argument (""), or not."""
    if not (parameters := _parameters(search)):
        return ""  # a built-in that does not tell: as documented, f(query, k)
    by_position = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    for parameter in parameters[1:]:
        if parameter.name in _NAMES_OF_K and parameter.kind is not parameter.VAR_KEYWORD:
            return "" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
    required = [p for p in by_position if p.default is p.empty]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return "" if len(required) > 1 or (takes_any and len(by_position) < 2) else None


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []
