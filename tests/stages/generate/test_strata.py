import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.survey import ChunkCard
from ragforge.stages.generate.strata import take_stock, turns


def card(chunk_id, doc_id="d", group="", topic=0, twin_of="", askable=True, level=1):
    """Make a card."""
    return ChunkCard(chunk_id, doc_id, group, level, topic, twin_of or chunk_id, askable)


def documents(**sizes):
    """Make documents of so many chunks."""
    return [
        card(f"{doc_id}-{place}", doc_id) for doc_id, size in sizes.items() for place in range(size)
    ]


def order(cards, n=1000, seed=0):
    """Return the ids of the chunks in the order they are asked about."""
    stock = take_stock(cards, seed)
    return [stock.chunk_ids[row] for row in turns(stock, n, seed)]


def of(chunk_ids):
    """Return the documents of chunks."""
    return [chunk_id.rpartition("-")[0] for chunk_id in chunk_ids]


CARDS = st.lists(
    st.builds(
        card,
        chunk_id=st.integers(0, 10**6).map(str),
        doc_id=st.sampled_from("abcdefgh"),
        group=st.sampled_from(["", "guide", "api"]),
        topic=st.integers(0, 3),
        askable=st.sampled_from([True, True, True, False]),
    ),
    max_size=60,
    unique_by=lambda one: one.chunk_id,
)


@given(CARDS, st.integers(1, 80))
def test_every_askable_chunk_has_one_turn(cards, n):
    """A chunk that is left out could never be asked about."""
    assert sorted(order(cards, n)) == sorted(one.chunk_id for one in cards if one.is_askable)


@given(CARDS, st.integers(1, 80))
def test_every_document_comes_before_any_comes_twice(cards, n):
    """One long manual must not fill the whole set."""
    documents = {one.chunk_id: one.doc_id for one in cards if one.is_askable}

    sample = [documents[chunk_id] for chunk_id in order(cards, n)[:n]]

    first = sample[: len(set(documents.values()))]
    assert len(first) == len(set(first))


@given(st.integers(1, 200), st.integers(0, 5))
def test_groups_and_their_levels_have_their_shares(n, seed):
    """Where documents leave the choice, a set is a picture of its corpus."""
    cards = [
        card(f"{group}{level}{topic}-{number}", f"{group}{level}{topic}{number}", group, topic)
        for group, size in (("api", 2), ("guide", 7), ("news", 1))
        for level in range(3)
        for topic in range(10)
        for number in range(size)
    ]
    sizes = Counter(chunk_id[0] for chunk_id in order(cards))

    got = Counter(chunk_id[0] for chunk_id in order(cards, n, seed)[:n])

    assert all(abs(got[name] - size * n / 300) < 1 for name, size in sizes.items())


@given(st.integers(1, 200), st.integers(0, 5))
def test_levels_of_a_group_have_their_shares(n, seed):
    """Introductions and the depths of a manual are asked about differently."""
    cards = [
        card(f"{group}{level}-{number}", f"{group}{level}{number}", group, number % 9, level=level)
        for group in "ab"
        for level, size in enumerate((20, 60, 40))
        for number in range(size)
    ]

    got = Counter(chunk_id[:2] for chunk_id in order(cards, n, seed)[:n])

    assert all(
        abs(got[f"{group}{level}"] - size * n / 240) < 1
        for group in "ab"
        for level, size in enumerate((20, 60, 40))
    )


def test_a_group_of_few_long_documents_has_its_share_once_all_are_touched():
    """Turns alone would give a folder of many short notes nine tenths of the set."""
    cards = [
        *(card(f"book-{n}", f"book{n % 5}", "books") for n in range(500)),
        *(card(f"note-{n}", f"note{n % 45}", "notes") for n in range(500)),
    ]

    got = Counter(chunk_id[:4] for chunk_id in order(cards, 200)[:200])

    assert got == {"book": 100, "note": 100}


def test_documents_take_turns():
    """After the first turn the second one is as fair, as long as there is something left."""
    got = of(order(documents(a=50, b=2, c=1)))

    assert set(got[:3]) == {"a", "b", "c"}
    assert set(got[3:5]) == {"a", "b"}
    assert set(got[5:]) == {"a"}


@pytest.mark.parametrize("n", [1, 4, 9, 20])
def test_a_longer_plan_begins_with_the_shorter_one(n):
    """Whoever asks for more queries keeps those that there are."""
    cards = documents(a=9, b=4, c=2, d=5)

    assert order(cards, n)[:n] == order(cards, 20)[:n]


@given(CARDS, st.integers(1, 80), st.integers(1, 80))
def test_the_order_of_documents_does_not_depend_on_n(cards, fewer, more):
    """Strata may change which chunk a document gives, never when its turn is."""
    documents = {one.chunk_id: one.doc_id for one in cards}
    turn = len({one.doc_id for one in cards if one.is_askable})

    one, other = (
        [documents[chunk_id] for chunk_id in order(cards, n)[: min(n, turn)]] for n in (fewer, more)
    )

    both = set(one) & set(other)
    assert [name for name in one if name in both] == [name for name in other if name in both]


def test_a_new_document_does_not_reorder_the_others():
    """A corpus that grows must keep most of its set."""
    before = order(documents(a=3, b=3))
    after = order(documents(a=3, b=3, new=3))

    assert [chunk_id for chunk_id in after if not chunk_id.startswith("new")] == before


def test_the_order_of_the_cards_changes_nothing():
    """Files may be read in any order."""
    cards = [
        *(card(f"{n}", f"d{n % 7}", "ab"[n % 2], n % 3) for n in range(40)),
        *(card(f"t{n}", "twins", twin_of="short") for n in range(5)),
        card("short", "twins", askable=False),
    ]
    mixed = random.Random(0).sample(cards, len(cards))

    assert order(mixed, 12) == order(cards, 12)


def test_the_seed_decides_the_order():
    """The same seed gives the same set; another one gives another sample."""
    cards = documents(a=20, b=20)

    assert order(cards, seed=1) == order(cards, seed=1)
    assert order(cards, seed=1) != order(cards, seed=2)


def test_near_duplicates_have_one_that_stands_for_them():
    """Ten thousand copies of a page are one thing to ask about."""
    cards = [card(f"c{n:05}", f"d{n:05}", twin_of="c00000") for n in range(10_000)]

    assert order(cards) == ["c00000"]


def test_another_stands_in_where_the_one_is_too_short():
    """A group must not be lost because its first member falls below the length by a word."""
    cards = [
        card("a", askable=False),
        card("b", twin_of="a"),
        card("c", twin_of="a"),
    ]

    assert order(cards) == ["b"]


@pytest.mark.parametrize("cards", [[], [card("a", askable=False)]])
def test_nothing_to_ask_about_is_an_empty_plan(cards):
    """A corpus of headings ends with a shortfall that is explained, not with a bug."""
    assert order(cards) == []


def test_a_stratum_is_named_in_words():
    """The plan is read by people."""
    cards = [card("a", "d", "guide", 3, level=2), card("b", "e", topic=12, level=0)]

    assert take_stock(cards, 0).strata == ["./h0/topic 12", "guide/h2/topic 3"]
