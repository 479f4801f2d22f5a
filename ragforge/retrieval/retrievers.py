"""Making the retriever that a spec names: a built-in one, or one of the user's."""

from collections.abc import Iterable

from ragforge.errors import ConfigError
from ragforge.records import Chunk
from ragforge.retrieval import Embedder, Retriever
from ragforge.retrieval.object_fields import Note, ignore_note

GROUP = "retrievers"
BUILT_IN = ("bm25", "chargram", "dense", "http:URL")


def make_retriever(
    spec: str,
    chunks: Iterable[Chunk],
    embedder: Embedder | None,
    *,
    note: Note = ignore_note,
    timeout_s: float = 30.0,
) -> Retriever:
    """Return the retriever that a spec names.

    Args:
        spec: `bm25`, `chargram`, `dense`, an address (`https://…`, also written `http:https://…`),
            `package.module:attribute`, or the name of an entry point in `ragforge.retrievers`.
        chunks: The corpus; read once, not at all if the spec is wrong.
        embedder: For `dense`; None where no embedding model is set.
        timeout_s: What one query may take at an address or with a user's object.
        note: Told once of each oddity in the results of somebody else's retriever.

    Raises:
        UsageError: There is no such retriever, or it cannot be loaded.
        ConfigError: `dense` without an embedder.
        DataError: Two chunks have one id.
    """
    match spec:
        case "bm25":
            from ragforge.retrieval.lexical import BM25Retriever

            return BM25Retriever(chunks)
        case "chargram":
            from ragforge.retrieval.lexical import ChargramRetriever

            return ChargramRetriever(chunks)
        case "dense":
            return _dense(chunks, embedder)
    if spec.startswith(("http:", "https:")):
        from ragforge.http_service import parse_address
        from ragforge.retrieval.user_retrievers import HttpRetriever

        return HttpRetriever(
            parse_address(spec, "retriever"), chunks, timeout_s=timeout_s, note=note
        )
    from ragforge.plugins import find
    from ragforge.retrieval.user_retrievers import adapt

    return adapt(find(GROUP, spec, BUILT_IN), spec, chunks, note=note, timeout_s=timeout_s)


def _dense(chunks: Iterable[Chunk], embedder: Embedder | None) -> Retriever:
    from ragforge.retrieval.dense import DenseRetriever

    if embedder is None:
        raise ConfigError(
            "retriever dense: no embedding model is set; name one with --embedding-model "
            "(model.embedding_model), at an endpoint that serves /embeddings"
        )
    return DenseRetriever(chunks, embedder)
