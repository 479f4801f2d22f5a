import base64
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.llm.chat import call_key
from ragforge.llm.embeddings import embeddings_request, pack, read_embeddings, unpack

SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(SINGLE, min_size=n, max_size=n), min_size=1)
    )
)
def test_vectors_come_out_of_the_store_as_they_went_in(vectors):
    """A rerun must rank as the first run did."""
    assert unpack(pack([array("f", vector) for vector in vectors])) == vectors


def test_vectors_are_kept_as_little_endian_singles():
    """A store is read on another machine than the one it was made on."""
    packed = pack([array("f", [1.0, 2.0])])

    assert packed == f"1 {base64.b64encode(bytes.fromhex('0000803f00000040')).decode()}"


@pytest.mark.parametrize(
    "text", ["", "1", "0 ", "1 ?", "x AACAPw==", "2 AACAPw==", "1 AACA", "fine"]
)
def test_what_holds_no_vectors_is_told(text):
    """A row that somebody imported may hold anything."""
    with pytest.raises(ValueError, match=r"."):
        unpack(text)


def test_a_reply_without_a_count_is_estimated():
    """Local servers tell none, and a budget in tokens must hold all the same."""
    body = {"data": [{"index": 0, "embedding": [1]}]}

    usage = read_embeddings(body, embeddings_request(["eight by"]), 0.0).usage

    assert (usage.prompt_tokens, usage.completion_tokens, usage.estimated) == (6, 0, True)


def test_the_order_of_texts_is_part_of_the_key():
    """Vectors belong to texts by their place."""
    one, other = (embeddings_request(texts) for texts in (["a", "b"], ["b", "a"]))

    assert call_key("e", "m", one) != call_key("e", "m", other)
