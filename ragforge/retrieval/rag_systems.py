"""RAG systems under test: reached by address, function or object, and reading what they answer.

An answer is a text; a tuple of a text and its context; or an object or mapping that holds the text
under one of `_ANSWERS`, and perhaps a context under one of `_CONTEXTS`: a list of chunk ids, of
texts, of mappings or of objects, such as LangChain's Document and LlamaIndex's NodeWithScore. Of a
list of messages the last one counts. What it cost, in US dollars, may stand under `cost_usd`. Keys
of mappings may be written in any style.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from numbers import Integral

from ragforge.errors import CallError, UsageError
from ragforge.files.field_names import ANSWER, COST_USD, IN_CONTEXT, normal_name
from ragforge.files.row import parse_number
from ragforge.files.text import is_unicode
from ragforge.http_service import Service
from ragforge.plugins import call, construct, method_of, parameters_of
from ragforge.records import Chunk
from ragforge.retrieval import Answerer, ContextPassage, SystemAnswer
from ragforge.retrieval.frameworks import answer_of, ask_of
from ragforge.retrieval.object_fields import (
    TEXTS,
    document_names_of,
    ids_of,
    outcome_error,
    refuse_query_of_another,
    shown,
    type_name,
    values_of,
)

_METHODS = ("aanswer", "answer", "ainvoke", "invoke", "aquery", "query")
"""Names under which systems answer, in order of preference; the query is the argument."""
_ADVICE = "write a function f(query) in the module and name that"
_ANSWERS = (*ANSWER.accepted, "result", "output_text", "content")
_CONTEXTS = (
    *("chunk_ids", "contexts", "context", "retrieved_contexts", "source_nodes"),
    *("source_documents", "sources", "passages", "documents", "chunks", "nodes"),
    *(name for name in IN_CONTEXT.accepted if name != "ids"),
)
_ERRORS = ("error", "errors", "exception")
_MESSAGES = ("messages",)
_PARTS = (*TEXTS, "quote", "passage", "snippet")


class HttpSystem:
    """Posts `{"query": ...}` as JSON and reads the answer of the JSON reply.

    The reply is an object with "answer", and with the context under "chunk_ids", "contexts",
    "retrieved" or "sources": chunk ids, texts, or objects with an id or a text; with what it cost
    under "cost_usd"; and whatever else `ragforge.retrieval.rag_systems` reads.

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
        """Return the answer of the service.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it cannot be read or repeats another query.
        """
        reply = await self._service.post({"query": query})
        refuse_query_of_another(reply.value, query, self._service.shown, reply.start)
        _refuse_failed(reply.value, self._service.shown, reply.start)
        return read_answer(reply.value, self._service.shown, reply.start)


def adapt(
    target: object, name: str, chunks: Iterable[Chunk] = (), *, timeout_s: float = 120.0
) -> Answerer:
    """Return a system that asks a user's object.

    Args:
        target: A function `f(query)`, plain or async; an object with one of the methods `answer`,
            `invoke`, `query` or their async twins; a class of such objects whose constructor takes
            nothing, or one argument `chunks`: a list of `Chunk`. Frameworks are recognised by these
            names and never imported, chains and pipelines too. Plain functions run in threads,
            several at once.
        name: What messages call it.
        chunks: The corpus, for a class that wants it.
        timeout_s: Seconds for one answer. A plain function that takes longer goes on in its thread.

    Raises:
        UsageError: The object is none of these, or its class cannot be instantiated.
    """
    where = f"system {name}"
    if isinstance(target, type):
        target = construct(target, where, {"chunks": list(chunks)}, _ADVICE)
    function = ask_of(target) or method_of(target, _METHODS, where, "f(query)")
    _refuse_other_arguments(function, where)
    return _UserSystem(function, where, timeout_s)


class _UserSystem:
    def __init__(self, function: Callable[..., object], where: str, timeout_s: float) -> None:
        self._function = function
        self._where = where
        self._timeout_s = timeout_s

    async def answer(self, query: str) -> SystemAnswer:
        """Return the answer of the user's object, whose exceptions pass."""
        async with deadline(self._timeout_s, self._where):
            result = await call(self._function, partial(self._function, query))
        _refuse_failed(result, self._where)
        return read_answer(answer_of(result), self._where)


@asynccontextmanager
async def deadline(timeout_s: float, where: str) -> AsyncIterator[None]:
    """Let what is within take so long.

    Args:
        timeout_s: Seconds.
        where: What messages call it.

    Raises:
        CallError: It took longer. A plain function goes on in its thread.
    """
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise CallError("error", f"{where}: no answer in {timeout_s} s") from error


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


def read_answer(result: object, where: str, raw: str = "") -> SystemAnswer:
    """Read the answer of a RAG system, with its context.

    Args:
        result: The return value of the system, or the JSON of its reply.
        where: What messages name as its origin.
        raw: The start of the reply, for the failure record.

    Raises:
        CallError: `invalid` where it has none of the shapes; `error` where it tells of an error,
            with whatever text beside it.
    """
    match result:
        case SystemAnswer():
            answer = result
        case str():
            answer = SystemAnswer(result)
        case (str() as text, context):
            answer = SystemAnswer(text, _passages(context, where, raw))
        case _:
            answer = _answer_of_fields(result, where, raw)
    named = [name for passage in answer.context for name in passage.ids]
    if not all(map(is_unicode, (answer.text, *named))):
        raise CallError("invalid", f"{where}: the answer holds half a surrogate pair", raw)
    return answer


def _refuse_failed(result: object, where: str, raw: str = "") -> None:
    """Refuse a result that calls itself failed, with whatever text beside it.

    Raises:
        CallError: It does.
    """
    if failed := outcome_error(result):
        raise CallError("error", f"{where}: no answer, but an error: {failed}", raw)


def _answer_of_fields(result: object, where: str, raw: str) -> SystemAnswer:
    whole = _normalised_keys(result)
    error = _first(whole, _ERRORS)
    if error:
        raise CallError("error", f"{where}: no answer, but an error: {shown(error)}", raw)
    text = _text_of(whole)
    if not isinstance(text, str):
        raise CallError("invalid", f"{where}: {_describe_lack(result)}", raw)
    context = _passages(_first(whole, _CONTEXTS), where, raw)
    return SystemAnswer(text, context, usd_of(_first(whole, COST_USD.accepted)))


def usd_of(value: object) -> float | None:
    """Return the US dollars that a value says; None where it is no number of at least 0."""
    usd = parse_number(value)
    return usd if usd is not None and 0 <= usd < inf else None


def _normalised_keys(item: object) -> object:
    """Return a mapping with normalised keys, anything else as it is."""
    if not isinstance(item, Mapping):
        return item
    return {normal_name(key): value for key, value in item.items() if isinstance(key, str)}


def _first(item: object, names: Iterable[str]) -> object:
    """Return the first value there is under the names, one that holds something if there is."""
    named = [normal_name(name) for name in names] if isinstance(item, Mapping) else names
    values = values_of(item, named)
    # A text of LangChain can be called: it was a method once.
    found = [value for value in values if isinstance(value, str) or not callable(value)]
    full = (value for value in found if not isinstance(value, Sequence) or len(value))
    return next(full, found[0] if found else None)


def _text_of(item: object) -> object:
    """Return the text of an answer or message; something else where there is none."""
    messages = _first(item, _MESSAGES)
    if isinstance(messages, Sequence) and not isinstance(messages, str) and messages:
        item = _normalised_keys(messages[-1])
    answer = _first(item, _ANSWERS)
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        parts = [_first(part, ("text",)) for part in answer]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if texts else None
    if answer is None or isinstance(answer, str | Integral | float | Mapping):
        return answer
    return _first(answer, ("content",))


def _describe_lack(result: object) -> str:
    expected = f"expected a text, or an answer under one of {', '.join(_ANSWERS)}"
    if isinstance(result, Mapping):
        keys = ", ".join(repr(key) for key in list(result)[:5]) or "nothing"
        return f"the result is a mapping with {keys}, and no text as its answer; {expected}"
    return f"the result is {shown(result)} (type {type_name(result)}); {expected}"


def _listed_passages(context: object, where: str, raw: str) -> list[object]:
    from ragforge.files.formats.python_objects import items_given  # Few answers need it.

    listed = items_given(context)
    if listed is None:
        raise CallError(
            "invalid",
            f"{where}: the context is of type {type_name(context)}; expected a list of chunk ids "
            "or passages",
            raw,
        )
    return listed


def _passages(context: object, where: str, raw: str) -> tuple[ContextPassage, ...]:
    match context:
        case None:
            return ()
        case str() | Integral():
            items: Iterable[object] = [context] if context != "" else []
        case Mapping():
            return _passages(_first(_normalised_keys(context), _CONTEXTS), where, raw)
        case Sequence():
            items = context
        case _:
            items = _listed_passages(context, where, raw)
    return tuple(_passage(item, where, raw) for item in items)


def _passage(item: object, where: str, raw: str) -> ContextPassage:
    if isinstance(item, ContextPassage):
        return item
    if isinstance(item, tuple) and len(item) == 2:
        item = item[0]  # with its score
    if isinstance(item, str):
        return ContextPassage(ids=(item,), texts=(item,))
    node = next(values_of(item, ("node",)), item)
    texts = tuple(text for text in values_of(node, _PARTS) if isinstance(text, str) and text)
    ids = tuple(ids_of(node))
    doc_ids = tuple(document_names_of(node))
    if not texts and not ids and doc_ids:
        ids = doc_ids[:1]  # where documents are not cut, they are the chunks
    if not texts and not ids:
        raise CallError(
            "invalid",
            f"{where}: cannot tell which passage {shown(item)} (type {type_name(item)}) is; "
            "expected a chunk id, a text, or an object or mapping with one of them",
            raw,
        )
    return ContextPassage(ids, texts, doc_ids)
