"""From what a user writes after `--system` to a RAG system."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from ragforge.errors import CallError, UsageError
from ragforge.foreign.calling import call, construct, method_of, parameters_of
from ragforge.foreign.posting import Service
from ragforge.plugins import find
from ragforge.records import Chunk
from ragforge.systems import Answerer, SystemAnswer
from ragforge.systems.results import read_answer

_METHODS = ("aanswer", "answer", "ainvoke", "invoke", "aquery", "query")
"""Names under which systems answer, in order of preference; the query is the argument."""
_ADVICE = "write a function f(query) in the module and name that"
GROUP = "systems"
BUILT_IN = ("http:URL",)


class HttpSystem:
    """Posts `{"query": ...}` as JSON and reads the answer of the JSON reply.

    The reply is an object with "answer", and with the context under "chunk_ids", "contexts",
    "retrieved" or "sources": chunk ids, texts, or objects with an id or a text; and whatever else
    `ragforge.systems.results` reads.

    Redirects are refused and nothing is tried again; see `Service`.

    Args:
        url: Address, http or https.
        timeout_s: Seconds to connect and for the whole reply.

    Raises:
        UsageError: The address cannot be used.
    """

    def __init__(self, url: str, *, timeout_s: float = 120.0) -> None:
        self._service = Service(url, what="system", function="f(query)", timeout_s=timeout_s)

    async def answer(self, query: str) -> SystemAnswer:
        """Return what the service answered.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it cannot be read; `raw` is the start of its body.
        """
        reply = await self._service.post({"query": query})
        return read_answer(reply.value, self._service.shown, reply.start)


def adapt(
    target: object, name: str, chunks: Iterable[Chunk] = (), *, timeout_s: float = 120.0
) -> Answerer:
    """Return a system that asks a user's object.

    Args:
        target: A function `f(query)`, plain or async; an object with one of the methods `answer`,
            `invoke`, `query` or their async twins; a class of such objects whose constructor takes
            nothing, or one argument `chunks`: a list of `Chunk`. Frameworks are recognised by these
            names and never imported. Plain functions run in threads, several at once. A chain whose
            input is a mapping needs a function around it.
        name: What messages call it.
        chunks: The corpus, for a class that wants it.
        timeout_s: Seconds for one answer. A plain function that takes longer goes on in its thread.

    Raises:
        UsageError: The object is none of these, or its class cannot be instantiated.
    """
    where = f"system {name}"
    if isinstance(target, type):
        target = construct(target, where, {"chunks": list(chunks)}, _ADVICE)
    function = method_of(target, _METHODS, where, "f(query)")
    _refuse_other_arguments(function, where)
    return _Adapter(function, where, timeout_s)


class _Adapter:
    def __init__(self, function: Callable[..., object], where: str, timeout_s: float) -> None:
        self._function = function
        self._where = where
        self._timeout_s = timeout_s

    async def answer(self, query: str) -> SystemAnswer:
        """Return what the object answered; its exceptions pass."""
        limit = asyncio.timeout(self._timeout_s)
        try:
            async with limit:
                result = await call(self._function, partial(self._function, query))
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise CallError("error", f"{self._where}: no answer in {self._timeout_s} s") from error
        return read_answer(result, self._where)


def _refuse_other_arguments(function: Callable[..., object], where: str) -> None:
    parameters = parameters_of(function)
    needed = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in needed]
    takes_one = any(p.kind not in {p.KEYWORD_ONLY, p.VAR_KEYWORD} for p in parameters)
    if len(needed) > 1 or keywords or (parameters and not takes_one):
        raise UsageError(
            f"{where}: takes ({', '.join(p.name for p in parameters)}); expected the query as its "
            f"only argument; {_ADVICE}"
        )


def make_answerer(spec: str, chunks: Iterable[Chunk] = (), *, timeout_s: float = 120.0) -> Answerer:
    """Return the RAG system that a spec names.

    Args:
        spec: An address (`https://…`, also written `http:https://…`), `package.module:attribute`,
            or the name of an entry point in `ragforge.systems`.
        chunks: The corpus, for a class that wants it.
        timeout_s: What one answer may take.

    Raises:
        UsageError: There is no such system, or it cannot be loaded.
    """
    if spec.startswith(("http:", "https:")):
        from ragforge.foreign.posting import address_of

        return HttpSystem(address_of(spec, "system"), timeout_s=timeout_s)

    return adapt(find(GROUP, spec, BUILT_IN), spec, chunks, timeout_s=timeout_s)
