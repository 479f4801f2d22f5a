"""Making the retriever that a spec names: a built-in one, or one of the user's."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.errors import ConfigError, UsageError
from ragforge.records import Chunk
from ragforge.retrieval import Embedder, Retriever
from ragforge.retrieval.object_fields import Note, ignore_note

if TYPE_CHECKING:
    from ragforge.config import RetrieverService
    from ragforge.retrieval.local_models import LocalModel
    from ragforge.retrieval.local_vectors import LocalVectors
    from ragforge.retrieval.retrieved_texts import RetrievedTexts

GROUP = "retrievers"
BUILT_IN = ("bm25", "chargram", "minilm", "static", "dense", "http:URL")
FUSED = "+"
"""Between retrievers whose rankings are fused, as in `bm25+minilm`."""
RERANKED = ">"
"""Between a retriever and the local model that ranks its top anew, as in `bm25>minilm`."""
_NO_SERVICES: "Final[Mapping[str, RetrieverService]]" = MappingProxyType({})
_LOCAL = frozenset({"minilm", "static"})
_SINGLE = frozenset(name for name in BUILT_IN if not name.endswith("URL"))


def reranked(spec: str, model: str) -> str:
    """Return the spec of a retriever whose top a local model ranks anew.

    Raises:
        UsageError: There is no such model.
    """
    return _renamed(spec, f"{spec}{RERANKED}{_local(model, spec)}")


def without_reranking(spec: str) -> tuple[str, str]:
    """Return the spec of a retriever, and the local model that ranks its top anew, "" for none.

    The mark alone tells nothing: it comes in addresses, and in names such as `f.<locals>.search`.
    """
    first, _, model = spec.rpartition(RERANKED)
    return (first, model) if first and model in _LOCAL else (spec, "")


def make_retriever(
    spec: str,
    chunks: Iterable[Chunk],
    embedder: Embedder | None,
    *,
    folder: Path | None = None,
    note: Note = ignore_note,
    timeout_s: float = 30.0,
    texts: "RetrievedTexts | None" = None,
    services: "Mapping[str, RetrieverService]" = _NO_SERVICES,
) -> Retriever:
    """Return the retriever that a spec names.

    Args:
        spec: `bm25`, `chargram`, `minilm`, `static`, `dense`, an address (`https://…`, also written
            `http:https://…`), the name of a service, `package.module:attribute`, or the name of
            an entry point in `ragforge.retrievers`. Built-in ones with `+` between them are fused;
            any of these, `>` and a local model has its top ranked anew by that.
        chunks: The corpus; read once, not at all if the spec is wrong.
        embedder: For `dense`; None where no embedding model is set.
        folder: Where vectors of local models are kept; None keeps none.
        timeout_s: What one query may take at an address or with a user's object.
        note: Told once of each oddity in the results of somebody else's retriever.
        texts: Takes what such a retriever gives that is no chunk, see `ResultReader`.
        services: Those of the settings, by name.

    Raises:
        UsageError: There is no such retriever, or it cannot be loaded.
        ConfigError: `dense` without an embedder, or a local model that is not installed.
        DataError: Two chunks have one id.
    """
    needs = _Needs(chunks, embedder, folder, note, timeout_s, texts, services)
    first, model = without_reranking(spec)
    if model:
        return _reranked(_renamed(spec, first), _local(model, spec), needs)
    parts = spec.split(FUSED)
    if len(parts) > 1 and _SINGLE.issuperset(parts):
        return _fused(parts, needs)
    return _built_in(spec, needs) or _users(spec, needs)


@dataclass(frozen=True, slots=True)
class _Needs:
    """What retrievers are made with; see `make_retriever`."""

    chunks: Iterable[Chunk]
    embedder: Embedder | None
    folder: Path | None
    note: Note
    timeout_s: float
    texts: "RetrievedTexts | None"
    services: "Mapping[str, RetrieverService]"

    def made(self, spec: str, corpus: Iterable[Chunk]) -> Retriever:
        """Return another retriever over the corpus, which was read."""
        return make_retriever(
            spec,
            corpus,
            self.embedder,
            folder=self.folder,
            note=self.note,
            timeout_s=self.timeout_s,
            texts=self.texts,
            services=self.services,
        )


def _reranked(first: str, model: "LocalModel", needs: _Needs) -> Retriever:
    from ragforge.retrieval.combined import RerankedRetriever

    vectors, corpus = _vectors(model, needs.folder), list(needs.chunks)
    return RerankedRetriever(needs.made(first, corpus), vectors, corpus, texts=needs.texts)


def _fused(parts: Iterable[str], needs: _Needs) -> Retriever:
    from ragforge.retrieval.combined import FusedRetriever

    corpus = list(needs.chunks)
    return FusedRetriever([needs.made(part, corpus) for part in parts])


def _built_in(spec: str, needs: _Needs) -> Retriever | None:
    """Return the retriever of that name; None where none is built in."""
    match spec:
        case "minilm" | "static":
            from ragforge.retrieval.combined import LocalRetriever

            return LocalRetriever(needs.chunks, _vectors(spec, needs.folder))
        case "bm25":
            from ragforge.retrieval.bm25 import BM25Retriever

            return BM25Retriever(needs.chunks)
        case "chargram":
            from ragforge.retrieval.chargram import ChargramRetriever

            return ChargramRetriever(needs.chunks)
        case "dense":
            return _dense(needs.chunks, needs.embedder)
    return None


def _users(spec: str, needs: _Needs) -> Retriever:
    """Return the retriever at an address, or of a user's object."""
    if spec.startswith(("http:", "https:")):
        from ragforge.http_service import parse_address
        from ragforge.retrieval.user_retrievers import HttpRetriever

        return HttpRetriever(
            parse_address(spec, "retriever"),
            needs.chunks,
            timeout_s=needs.timeout_s,
            note=needs.note,
            texts=needs.texts,
        )
    from ragforge.plugins import HandedOver, find
    from ragforge.retrieval.user_retrievers import adapt

    if not isinstance(spec, HandedOver) and spec in needs.services:
        return _service(spec, needs)
    return adapt(
        find(GROUP, spec, (*BUILT_IN, *needs.services)),
        spec,
        needs.chunks,
        note=needs.note,
        timeout_s=needs.timeout_s,
        texts=needs.texts,
    )


def _service(name: str, needs: _Needs) -> Retriever:
    from ragforge.retrieval.services.retriever import ServiceRetriever

    return ServiceRetriever(
        name,
        needs.services[name],
        needs.chunks,
        embedder=needs.embedder,
        timeout_s=needs.timeout_s,
        note=needs.note,
        texts=needs.texts,
    )


def _renamed(spec: str, name: str) -> str:
    """Return another spec of what a spec holds, be it a name or an object of the caller."""
    from ragforge.plugins import HandedOver

    return HandedOver(name, spec.held) if isinstance(spec, HandedOver) else name


def _local(model: str, spec: str) -> "LocalModel":
    from ragforge.retrieval.local_models import LOCAL_MODELS

    for name in LOCAL_MODELS:
        if name == model:
            return name
    raise UsageError(
        f"retriever {spec!r}: no local model {model!r} to rank anew with; there are "
        f"{', '.join(LOCAL_MODELS)}"
    )


def _vectors(name: "LocalModel", folder: Path | None) -> "LocalVectors":
    from ragforge.retrieval.local_models import require_installed
    from ragforge.retrieval.local_vectors import LocalVectors

    require_installed(name)
    return LocalVectors(name, folder)


def _dense(chunks: Iterable[Chunk], embedder: Embedder | None) -> Retriever:
    from ragforge.retrieval.dense import DenseRetriever

    if embedder is None:
        raise ConfigError(
            "retriever dense: no embedding model is set; name one with --embedding-model "
            "(model.embedding_model), at an endpoint that serves /embeddings"
        )
    return DenseRetriever(chunks, embedder)
