"""Whether a corpus changed so much that something else is the matter."""

from collections.abc import Iterable

import numpy as np

from ragforge.config import RefreshSettings
from ragforge.corpus.chunking import text_sha256
from ragforge.errors import ChurnError
from ragforge.files.arrays import Array
from ragforge.files.chunk_lines import each_chunk
from ragforge.records import Chunk
from ragforge.refresh.corpus_diff import CorpusDiff

_HEX = 16
_SHOWN = 3
_ANYWAY = "--accept-churn refreshes all the same"


def check_churn(diff: CorpusDiff, settings: RefreshSettings) -> None:
    """Check that a corpus is still the same one, and that it is all there.

    Documents that were renamed or cannot be read have not vanished, and a chunk is not gone where
    its text stands under another id. Chunks that were cut anew are no sign: all are others then.

    Raises:
        ChurnError: More vanished than the settings allow.
    """
    found = diff.documents
    n_gone = len(found.removed)
    if n_gone > settings.vanished_most * found.n_before:
        some = ", ".join(found.removed[:_SHOWN])
        raise ChurnError(
            f"{n_gone} of {found.n_before} documents vanished, such as {some}; at most "
            f"{settings.vanished_most:.0%} may (refresh.vanished_most). Is a mount missing, is "
            f"this another folder, or do include and exclude leave them out? {_ANYWAY}"
        )
    n_before = found.chunks_kept + found.chunks_removed
    most = settings.chunks_gone_most * n_before
    if found.is_cut_anew or found.chunks_removed <= most:
        return
    if (n_lost := chunks_lost(diff)) > most:
        raise ChurnError(
            f"the text of {n_lost} of {n_before} chunks is gone; at most "
            f"{settings.chunks_gone_most:.0%} may be (refresh.chunks_gone_most). Are these other "
            "documents, another branch or language of them, or were they written by another "
            f"program? {_ANYWAY}"
        )


def chunks_lost(diff: CorpusDiff) -> int:
    """Return how many chunks of the version before have a text that no chunk has now.

    Blanks do not count. All chunks are read.
    """
    gone = _texts(diff.removed())
    now = np.unique(_texts(chunk for _, chunk in each_chunk(diff.chunks_path)))
    return int(np.count_nonzero(~np.isin(gone, now)))


def _texts(chunks: Iterable[Chunk]) -> Array:
    """Return 8 bytes of the digest of each text; an accident among millions would not matter."""
    return np.fromiter((int(text_sha256(chunk.text)[:_HEX], 16) for chunk in chunks), np.uint64)
