"""Vectors of local models, each computed once: a set keeps those of its texts by their digest."""

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from ragforge.retrieval.local_models import LocalModel, TextVectors, Vectors, open_model

AT_ONCE: Final = 256
"""Texts that are computed, and then kept, at once: what an interrupt loses."""
_ASKED_AT_ONCE: Final = 500
_DIGEST_BYTES: Final = 16
_WAIT_S: Final = 30.0

Progress = Callable[[int, int], None]
"""Told how many of how many texts have their vectors."""


def _unheard(done: int, total: int) -> None:
    """Ignore progress."""


class LocalVectors:
    """A local model with a memory on disk.

    A memory that cannot be read or written, or is of another version, is done without: vectors are
    computed again, and are the same.

    Args:
        name: The model; it is opened when the first text needs it.
        folder: Where `vectors-NAME.sqlite` is kept; None keeps nothing.
    """

    def __init__(self, name: LocalModel, folder: Path | None = None) -> None:
        self.name = name
        self._path = folder / f"vectors-{name}.sqlite" if folder else None

    def vectors(self, texts: Sequence[str], progress: Progress = _unheard) -> Vectors:
        """Return one vector of length 1 a text, in their order; zeros for one without words.

        It computes: call it in a thread where something else must go on.

        Raises:
            ConfigError: The model is not installed.
        """
        digests = [_digest(text) for text in texts]
        known = self._known(list(dict.fromkeys(digests)))
        missing = {
            digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known
        }
        progress(len(known), len(known) + len(missing))
        waiting = list(missing.items())
        for start in range(0, len(waiting), AT_ONCE):
            part = waiting[start : start + AT_ONCE]
            made = self._model.vectors([text for _, text in part])
            of_part = dict(zip((digest for digest, _ in part), made, strict=True))
            self._keep({digest: vector.tobytes() for digest, vector in of_part.items()})
            known |= of_part
            progress(len(known), len(known) + len(waiting) - start - len(part))
        if not digests:
            return np.zeros((0, 1), np.float32)
        return np.stack([known[digest] for digest in digests])

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, as an `Embedder` does; another thread computes them."""
        rows: list[list[float]] = (await asyncio.to_thread(self.vectors, texts)).tolist()
        return rows

    @cached_property
    def _model(self) -> TextVectors:
        return open_model(self.name)

    def _known(self, digests: Sequence[bytes]) -> dict[bytes, Vectors]:
        found: dict[bytes, Vectors] = {}
        with suppress(sqlite3.Error, OSError), closing(self._opened()) as file:
            for start in range(0, len(digests), _ASKED_AT_ONCE):
                part = digests[start : start + _ASKED_AT_ONCE]
                marks = ",".join("?" * len(part))
                rows: Iterator[tuple[bytes, bytes]] = file.execute(
                    f"SELECT digest, vector FROM vectors WHERE digest IN ({marks})",  # noqa: S608
                    part,
                )
                found |= {digest: np.frombuffer(vector, "<f4") for digest, vector in rows}
        return found

    def _keep(self, vectors: dict[bytes, bytes]) -> None:
        with suppress(sqlite3.Error, OSError), closing(self._opened()) as file, file:
            file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", vectors.items())

    def _opened(self) -> sqlite3.Connection:
        if self._path is None:
            raise FileNotFoundError("nothing is kept")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(self._path, timeout=_WAIT_S)
        file.execute(
            "CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL) "
            "WITHOUT ROWID"
        )
        return file


def _digest(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
