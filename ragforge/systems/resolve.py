"""From what a user writes after `--system` to a RAG system."""

from collections.abc import Iterable

from ragforge.plugins import find
from ragforge.records import Chunk
from ragforge.systems import Answerer

GROUP = "systems"
BUILT_IN = ("http:URL",)


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
        from ragforge.systems.http import HttpSystem

        return HttpSystem(address_of(spec, "system"), timeout_s=timeout_s)
    from ragforge.systems.adapter import adapt

    return adapt(find(GROUP, spec, BUILT_IN), spec, chunks, timeout_s=timeout_s)
