"""From what a user writes after `--retriever` to a retriever."""

from collections.abc import Callable, Collection, Iterable

from ragforge.errors import ConfigError
from ragforge.foreign.reading import Note, keep_quiet
from ragforge.records import Chunk
from ragforge.retrieval import Embedder, Retriever

Find = Callable[[str, str, Collection[str]], object]
"""`plugins.find`: extension point, name and built-in names to object. Passed in, as packages of one
layer do not import each other."""

GROUP = "retrievers"
BUILT_IN = ("bm25", "chargram", "dense", "http:URL")


def make_retriever(
    spec: str,
    chunks: Iterable[Chunk],
    embedder: Embedder | None,
    *,
    find: Find,
    note: Note = keep_quiet,
    timeout_s: float = 30.0,
) -> Retriever:
    """Return the retriever that a spec names.

    Args:
        spec: `bm25`, `chargram`, `dense`, an address (`https://…`, also written `http:https://…`),
            `package.module:attribute`, or the name of an entry point in `ragforge.retrievers`.
        chunks: The corpus; read once, not at all if the spec is wrong.
        embedder: For `dense`; None where no embedding model is set.
        find: `plugins.find`.
        timeout_s: What one query may take at an address or with a user's object.
        note: Told once of each oddity in the results of somebody else's retriever.

    Raises:
        UsageError: There is no such retriever, or it cannot be loaded.
        ConfigError: `dense` without an embedder.
        DataError: Two chunks have one id.
    """
    match spec:
        case "bm25":
            from ragforge.retrieval.bm25 import BM25Retriever

            return BM25Retriever(chunks)
        case "chargram":
            from ragforge.retrieval.chargram import ChargramRetriever

            return ChargramRetriever(chunks)
        case "dense":
            return _dense(chunks, embedder)
    if spec.startswith(("http:", "https:")):
        from ragforge.foreign.posting import address_of
        from ragforge.retrieval.http import HttpRetriever

        return HttpRetriever(address_of(spec, "retriever"), chunks, timeout_s=timeout_s, note=note)
    from ragforge.retrieval.adapter import adapt

    return adapt(find(GROUP, spec, BUILT_IN), spec, chunks, note=note, timeout_s=timeout_s)


def _dense(chunks: Iterable[Chunk], embedder: Embedder | None) -> Retriever:
    from ragforge.retrieval.dense import DenseRetriever

    if embedder is None:
        raise ConfigError(
            "retriever dense: no embedding model is set; name one with --embedding-model "
            "(model.embedding_model), at an endpoint that serves /embeddings"
        )
    return DenseRetriever(chunks, embedder)
