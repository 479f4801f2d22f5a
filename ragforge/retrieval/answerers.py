"""Making the RAG system that a spec names: a service, or an object of the user's."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ragforge.plugins import HandedOver, find
from ragforge.records import Chunk
from ragforge.retrieval import Answerer
from ragforge.retrieval.object_fields import Note, ignore_note
from ragforge.retrieval.rag_systems import HttpSystem, adapt

if TYPE_CHECKING:
    from ragforge.config import SystemService

GROUP: Final = "systems"
BUILT_IN: Final = ("http:URL",)
NO_SERVICES: "Final[Mapping[str, SystemService]]" = MappingProxyType({})


def make_answerer(
    spec: str,
    chunks: Iterable[Chunk] = (),
    *,
    timeout_s: float = 120.0,
    services: "Mapping[str, SystemService]" = NO_SERVICES,
    note: Note = ignore_note,
) -> Answerer:
    """Return the RAG system that a spec names.

    Args:
        spec: An address (`https://…`, also written `http:https://…`), the name of a service,
            `package.module:attribute`, or the name of an entry point in `ragforge.systems`.
        chunks: The corpus, for a class that wants it.
        timeout_s: What one answer may take.
        services: Those of the settings, by name.
        note: Takes sentences of a service for the user.

    Raises:
        UsageError: There is no such system, or it cannot be loaded.
    """
    from ragforge.http_service import parse_address

    if spec.startswith(("http:", "https:")):
        return HttpSystem(parse_address(spec, "system"), timeout_s=timeout_s)

    if not isinstance(spec, HandedOver) and spec in services:
        from ragforge.retrieval.services.system import ServiceSystem

        return ServiceSystem(spec, services[spec], timeout_s=timeout_s, note=note)
    found = find(GROUP, spec, (*BUILT_IN, *services))
    return adapt(found, spec, chunks, timeout_s=timeout_s)
