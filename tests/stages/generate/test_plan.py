import random

import pytest

from ragforge.records import Chunk
from ragforge.stages.generate.plan import plan_round

LONG = "one two three four five six seven eight nine ten eleven twelve"


def corpus(**sizes):
    """Make documents of so many chunks."""
    return [
        Chunk(chunk_id=f"{doc_id}-{place}", doc_id=doc_id, text=LONG)
        for doc_id, size in sizes.items()
        for place in range(size)
    ]


def documents(chunks):
    return [chunk.doc_id for chunk in chunks]


def test_every_document_comes_before_any_comes_again():
    """One long manual must not fill the whole set."""
    order = documents(plan_round(corpus(a=50, b=2, c=1), seed=0))

    assert set(order[:3]) == {"a", "b", "c"}
    assert set(order[3:5]) == {"a", "b"}
    assert set(order[5:]) == {"a"}


def test_every_chunk_is_in_the_plan_once():
    """A chunk that is left out could never be asked about."""
    chunks = corpus(a=5, b=3)

    assert sorted(chunk.chunk_id for chunk in plan_round(chunks, 0)) == sorted(
        chunk.chunk_id for chunk in chunks
    )


def test_the_seed_decides_the_order():
    """The same seed gives the same set; another one gives another sample."""
    chunks = corpus(a=20, b=20)

    assert plan_round(chunks, 1) == plan_round(chunks, 1)
    assert plan_round(chunks, 1) != plan_round(chunks, 2)


def test_the_order_of_the_input_changes_nothing():
    """Files may be read in any order."""
    chunks = corpus(a=9, b=4, c=2)
    mixed = random.Random(0).sample(chunks, len(chunks))

    assert plan_round(mixed, 0) == plan_round(chunks, 0)


def test_a_new_document_does_not_reorder_the_others():
    """A corpus that grows must keep most of its set."""
    before = plan_round(corpus(a=3, b=3), 0)
    after = plan_round(corpus(a=3, b=3, new=3), 0)

    assert [chunk for chunk in after if chunk.doc_id != "new"] == before


@pytest.mark.parametrize(
    ("text", "planned"),
    [
        (LONG, 1),
        (LONG.removesuffix(" twelve"), 0),
        ("蓝鲸吃磷虾它们夏天在远海觅食冬天游向温暖的海域", 1),
        ("蓝鲸吃磷虾", 0),
    ],
)
def test_chunks_too_short_to_ask_about_are_left_out(text, planned):
    """A heading alone holds no answer; scripts without blanks have long texts of few words."""
    assert len(plan_round([Chunk(chunk_id="c", doc_id="d", text=text)], 0)) == planned
