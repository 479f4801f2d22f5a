"""Systems that answer from contexts they are given: reached by address, function or object.

A system that retrieves by itself has its own chunks, whatever it is given, and is refused.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ragforge.errors import UsageError
from ragforge.plugins import HandedOver, call, construct, find, method_of, parameters_of
from ragforge.retrieval import ContextPassage, SystemAnswer
from ragforge.retrieval.answerers import BUILT_IN, GROUP, NO_SERVICES
from ragforge.retrieval.frameworks import ask_of
from ragforge.retrieval.object_fields import fold_text, refuse_query_of_another
from ragforge.retrieval.rag_systems import deadline, read_answer

if TYPE_CHECKING:
    from ragforge.config import SystemService
    from ragforge.http_service import Service
    from ragforge.retrieval.services.system import ServiceSystem

FUNCTION: Final = "f(query, contexts)"
_METHODS: Final = ("aread", "read", "aanswer", "answer", "__call__")
_CONTEXTS: Final = ("context", "passage", "document", "chunk", "text", "source", "doc", "evidence")
"""How a parameter for contexts is called, in the singular; the plural is as good."""
_ADVICE: Final = (
    f"a sweep hands each system the texts that a configuration retrieved; expected {FUNCTION}, "
    "where contexts is a list of texts and the answer is returned"
)


class ContextReader(Protocol):
    """Answers from contexts. One instance serves a whole sweep."""

    async def read(self, query: str, contexts: Sequence[str]) -> str:
        """Return the answer to a query, from these contexts and nothing else.

        Called concurrently, from one event loop, on the same instance.

        Args:
            query: The question.
            contexts: Texts that were retrieved for it, best first; there may be none.

        Raises:
            CallError: This query failed and the next may work.
            RagforgeError: Every query would fail alike; the run stops.
        """
        ...


def make_context_reader(
    spec: str,
    *,
    timeout_s: float = 120.0,
    services: "Mapping[str, SystemService]" = NO_SERVICES,
) -> ContextReader:
    """Return the system that a spec names.

    Args:
        spec: An address that takes {"query", "contexts"} and replies as `read_answer` reads it;
            `package.module:attribute`, or the name of an entry point in `ragforge.systems`: a
            function `f(query, contexts)`, plain or async, or an object or class with such a method;
            or the name of a service whose request holds `{contexts}`.
        timeout_s: What one answer may take.
        services: Those of the settings, by name.

    Raises:
        UsageError: There is no such system, it cannot be loaded, or it takes no contexts.
    """
    if spec.startswith(("http:", "https:")):
        from ragforge.http_service import Service, parse_address

        url = parse_address(spec, "system")
        return _HttpReader(Service(url, what="system", function=FUNCTION, timeout_s=timeout_s))
    if not isinstance(spec, HandedOver) and spec in services:
        return _service_reader(spec, services[spec], timeout_s)
    target, where = find(GROUP, spec, ("model", *BUILT_IN)), f"system {spec}"
    if isinstance(target, type):
        target = construct(target, where, {}, _ADVICE)
    if ask_of(target) is not None:
        raise UsageError(f"{where}: is a chain or an engine that retrieves by itself; {_ADVICE}")
    function = method_of(target, _METHODS, where, FUNCTION)
    _refuse_other_arguments(function, where)
    return _UserReader(function, where, timeout_s)


def _service_reader(name: str, service: "SystemService", timeout_s: float) -> ContextReader:
    from ragforge.retrieval.services.system import ServiceSystem

    system = ServiceSystem(name, service, timeout_s=timeout_s)
    if not system.takes_contexts:
        raise UsageError(
            f"system {name}: its request holds the query alone, so it retrieves by itself, and no "
            "chunks but its own can be tried with it; expected {contexts} in its body"
        )
    return _ServiceReader(system)


class _ServiceReader:
    def __init__(self, system: "ServiceSystem") -> None:
        self._system = system

    async def read(self, query: str, contexts: Sequence[str]) -> str:
        """Return the answer of the service; see `ContextReader`."""
        answer = await self._system.answer_from(query, contexts)
        _refuse_own_contexts(answer, contexts, self._system.client.where)
        return answer.text


class _HttpReader:
    def __init__(self, service: "Service") -> None:
        self._service = service

    async def read(self, query: str, contexts: Sequence[str]) -> str:
        """Return the answer of the service; see `ContextReader`."""
        reply = await self._service.post({"query": query, "contexts": list(contexts)})
        where = self._service.shown
        refuse_query_of_another(reply.value, query, where, reply.start)
        answer = read_answer(reply.value, where, reply.start)
        _refuse_own_contexts(answer, contexts, f"system {where}")
        return answer.text


class _UserReader:
    def __init__(self, function: Callable[..., object], where: str, timeout_s: float) -> None:
        self._function = function
        self._where = where
        self._timeout_s = timeout_s

    async def read(self, query: str, contexts: Sequence[str]) -> str:
        """Return the answer of the user's object, whose exceptions pass; see `ContextReader`."""
        asked = partial(self._function, query, list(contexts))
        async with deadline(self._timeout_s, self._where):
            result = await call(self._function, asked)
        answer = read_answer(result, self._where)
        _refuse_own_contexts(answer, contexts, self._where)
        return answer.text


def _refuse_other_arguments(function: Callable[..., object], where: str) -> None:
    """Refuse what does not take a query and its contexts.

    A second parameter that may be left out must be named like contexts: that of a chain's `invoke`
    is for other things.
    """
    parameters = parameters_of(function)
    listed = ", ".join(parameter.name for parameter in parameters)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not parameters or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    if len(positional) < 2 or not (_is_needed(positional[1]) or _is_contexts(positional[1].name)):
        raise UsageError(
            f"{where}: takes ({listed}), so it retrieves by itself, and no chunks but its own can "
            f"be tried with it; {_ADVICE}"
        )
    others = [p for p in parameters if _is_needed(p) and p not in positional[:2]]
    if others:
        raise UsageError(f"{where}: takes ({listed}); {_ADVICE}")


def _is_needed(parameter: inspect.Parameter) -> bool:
    kinds = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in kinds


def _is_contexts(name: str) -> bool:
    return name.lower().removesuffix("s").endswith(_CONTEXTS)


def _refuse_own_contexts(answer: SystemAnswer, given: Iterable[str], where: str) -> None:
    """Refuse an answer that was written from something else than what was given.

    Raises:
        UsageError: It names a passage that is not among the contexts.
    """
    texts = [fold_text(text) for text in given]
    for passage in answer.context:
        if not _is_among(passage, texts):
            named = next(iter((*passage.texts, *passage.ids)), "")
            raise UsageError(
                f"{where}: answered from {named!r:.80}, which it was not given: it retrieves by "
                "itself, and no chunks but its own can be tried with it; expected an answer from "
                'the "contexts" of the request alone'
            )


def _is_among(passage: ContextPassage, given: Sequence[str]) -> bool:
    # A number is the place of a context.
    named = [name for name in (*passage.texts, *passage.ids) if not name.isdecimal()]
    return not named or any(fold_text(name) in text for name in named for text in given)
