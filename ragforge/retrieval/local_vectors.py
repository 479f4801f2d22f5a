"""Vectors of local models, each computed once: a set keeps those of its texts by their digest."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

from ragforge.deferred import numpy as np
from ragforge.files.atomic import OWN_FOLDER, make_own_place
from ragforge.files.set.paths import require_own_place
from ragforge.retrieval.local_models import (
    DIMENSIONS,
    LocalModel,
    TextVectors,
    Vectors,
    open_model,
    version_of,
)

AT_ONCE: Final = 128
"""Texts that are computed, and then kept, at once: what an interrupt loses."""
_ASKED_AT_ONCE: Final = 500
_DIGEST_BYTES: Final = 16
_LONGEST_KEY: Final = 64
_WAIT_S: Final = 30.0

Progress = Callable[[int], None]
"""Told of each part of some texts how many of them have their vectors now."""


def ignore_progress(count: int) -> None:
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
        # A model computes on all cores: two threads at once would wait for each other.
        self._lock = Lock()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 a text, in their order; zeros for one without words.

        It computes: call it in a thread where something else must go on.

        Raises:
            ConfigError: The model is not installed.
            DataError: The place of the vectors leads out of the dataset.
        """
        if not texts:
            return np.zeros((0, DIMENSIONS[self.name]), np.float32)
        with self._lock:
            digests = [self._digest(text) for text in texts]
            known = self._known(list(dict.fromkeys(digests)))
            missing = {
                digest: text
                for digest, text in zip(digests, texts, strict=True)
                if digest not in known
            }
            if missing:
                made = dict(zip(missing, self._model.vectors([*missing.values()]), strict=True))
                self._keep({digest: vector.tobytes() for digest, vector in made.items()})
                known |= made
            return np.stack([known[digest] for digest in digests])

    async def vectors_of_many(
        self, texts: Sequence[str], progress: Progress = ignore_progress
    ) -> Vectors:
        """Return the same as `vectors`, computed part by part in a thread.

        An interrupt waits for one part, and loses no other.

        Args:
            texts: What to compute.
            progress: Told after each part how many texts it had.

        Raises:
            ConfigError: The model is not installed.
        """
        result = np.zeros((len(texts), DIMENSIONS[self.name]), np.float32)
        for start in range(0, len(texts), AT_ONCE):
            part = texts[start : start + AT_ONCE]
            result[start : start + len(part)] = await asyncio.to_thread(self.vectors, part)
            progress(len(part))
        return result

    @cached_property
    def _model(self) -> TextVectors:
        return open_model(self.name)

    def _known(self, digests: Sequence[bytes]) -> dict[bytes, Vectors]:
        found: dict[bytes, Vectors] = {}
        size = DIMENSIONS[self.name] * np.dtype(np.float32).itemsize
        with suppress(sqlite3.Error, OSError), closing(self._opened()) as file:
            for start in range(0, len(digests), _ASKED_AT_ONCE):
                part = digests[start : start + _ASKED_AT_ONCE]
                marks = ",".join("?" * len(part))
                rows: Iterator[tuple[bytes, bytes]] = file.execute(
                    f"SELECT digest, vector FROM vectors WHERE digest IN ({marks})",  # noqa: S608
                    part,
                )
                found |= {
                    digest: np.frombuffer(vector, "<f4")
                    for digest, vector in rows
                    if len(vector) == size
                }
        return found

    def _keep(self, vectors: dict[bytes, bytes]) -> None:
        with suppress(sqlite3.Error, OSError), closing(self._opened()) as file, file:
            file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", vectors.items())

    def _opened(self) -> sqlite3.Connection:
        if self._path is None:
            raise FileNotFoundError("nothing is kept")
        make_own_place(self._path.parent)
        if self._path.parent.name == OWN_FOLDER:
            require_own_place(self._path.parent)
        file = sqlite3.connect(self._path, timeout=_WAIT_S)
        # With row ids: rows of this size in the order of digests leave most of each page empty.
        file.execute(
            "CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL)"
        )
        return file

    @cached_property
    def _version(self) -> bytes:
        return version_of(self.name).encode()[:_LONGEST_KEY]

    def _digest(self, text: str) -> bytes:
        """Return what a vector is kept under: other weights make another vector."""
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, key=self._version).digest()
