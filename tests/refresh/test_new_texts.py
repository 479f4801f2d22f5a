from dataclasses import replace

import pytest
from refresh.two_versions import diff_of, id_of

from ragforge.refresh.conflicts import with_new_text

ONE, TWO, THREE = "The fee is ten percent.", "It is due in March.", "Nobody else pays."
WHOLE = f"# Fees\n\n{ONE} {TWO}\n\n- {THREE}"


def new_of(tmp_path, before, now, renamed=None):
    diff = diff_of(before, now, tmp_path / "diff", renamed)
    return with_new_text(diff, {chunk.chunk_id for chunk in diff.added()})


@pytest.mark.parametrize(
    "parts",
    [
        (f"# Fees\n\n{ONE}", f"{TWO}\n\n- {THREE}"),
        (f"# What it costs\n\n{ONE} {TWO}\n\n- {THREE}",),
        (f"What it costs\n=============\n\n{ONE} {TWO}\n\n- {THREE}",),
        (f"{ONE}\n{TWO}\n\n\n- {THREE}",),
        (f"# Fees\n\nThe fee is\nten   percent. {TWO}\n- {THREE}",),
        (f"{THREE} {TWO}",),
    ],
)
def test_sentences_that_were_there_are_not_new(tmp_path, parts):
    """No query may be lost because a page is cut, titled or wrapped in another way."""
    assert new_of(tmp_path, {"a": (WHOLE,)}, {"a": parts}) == frozenset()


@pytest.mark.parametrize(
    "text", ["The fee is twelve percent.", "The fee is not ten percent.", "The fee is due."]
)
def test_changed_sentence_is_new(tmp_path, text):
    """A word more or less may turn an answer round."""
    now = {"a": (f"{text} {TWO}", THREE)}

    assert new_of(tmp_path, {"a": (WHOLE,)}, now) == {id_of("a", f"{text} {TWO}")}


def test_new_document_is_new(tmp_path):
    """Most contradictions come with one."""
    before = {"a": (WHOLE,)}

    assert new_of(tmp_path, before, {**before, "b": ("It is free.",)}) == {
        id_of("b", "It is free.")
    }


def test_document_with_its_bytes_tells_nothing_new(tmp_path):
    """With other limits a chunk may end amid a sentence."""
    before, now = {"a": ("One two three. Four. Five.",)}, {"a": ("One two", "three. Four.")}
    diff = diff_of(before, now, tmp_path / "diff")
    move = diff.moves["a"]
    alike = replace(move, now=move.now.model_copy(update={"sha256": move.before.sha256}))
    same = replace(diff, moves={"a": alike})
    added = {chunk.chunk_id for chunk in diff.added()}

    assert with_new_text(diff, added) == added
    assert with_new_text(same, added) == frozenset()


def test_renamed_document_tells_nothing_new(tmp_path):
    """It has other ids for all its chunks."""
    before = {"a": (ONE, TWO)}

    assert new_of(tmp_path, before, {"b": (ONE, TWO)}, {"a": "b"}) == frozenset()


def test_only_chunks_that_are_asked_for_are_told(tmp_path):
    """What nobody found relevant is in no conflict."""
    diff = diff_of({"a": (ONE,)}, {"a": (ONE,), "b": (TWO,), "c": (THREE,)}, tmp_path / "diff")

    assert with_new_text(diff, {id_of("b", TWO)}) == {id_of("b", TWO)}
