import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.config import GenerateSettings
from ragforge.corpus.survey import ChunkCard
from ragforge.records import Slot
from ragforge.stages.generate.plan import OpenCell, Sources, take_stock, turns
from ragforge.stages.generate.quotas import Cell, make_cells


def card_of(chunk_id, doc_id="d", group="", topic=0, duplicate_of="", askable=True, level=1):
    """Make a card_of."""
    return ChunkCard(chunk_id, doc_id, group, level, topic, duplicate_of or chunk_id, askable)


def documents(**sizes):
    """Make documents of so many chunks."""
    return [
        card_of(f"{doc_id}-{place}", doc_id)
        for doc_id, size in sizes.items()
        for place in range(size)
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
        card_of,
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
        card_of(f"{group}{level}{topic}-{number}", f"{group}{level}{topic}{number}", group, topic)
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
        card_of(
            f"{group}{level}-{number}", f"{group}{level}{number}", group, number % 9, level=level
        )
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
        *(card_of(f"book-{n}", f"book{n % 5}", "books") for n in range(500)),
        *(card_of(f"note-{n}", f"note{n % 45}", "notes") for n in range(500)),
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
        *(card_of(f"{n}", f"d{n % 7}", "ab"[n % 2], n % 3) for n in range(40)),
        *(card_of(f"t{n}", "twins", duplicate_of="short") for n in range(5)),
        card_of("short", "twins", askable=False),
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
    cards = [card_of(f"c{n:05}", f"d{n:05}", duplicate_of="c00000") for n in range(10_000)]

    assert order(cards) == ["c00000"]


def test_another_stands_in_where_the_one_is_too_short():
    """A group must not be lost because its first member falls below the length by a word."""
    cards = [
        card_of("a", askable=False),
        card_of("b", duplicate_of="a"),
        card_of("c", duplicate_of="a"),
    ]

    assert order(cards) == ["b"]


@pytest.mark.parametrize("cards", [[], [card_of("a", askable=False)]])
def test_nothing_to_ask_about_is_an_empty_plan(cards):
    """A corpus of headings ends with a shortfall that is explained, not with a bug."""
    assert order(cards) == []


def test_a_stratum_is_named_in_words():
    """The plan is read by people."""
    cards = [card_of("a", "d", "guide", 3, level=2), card_of("b", "e", topic=12, level=0)]

    assert take_stock(cards, 0).strata == ["./h0/topic 12", "guide/h2/topic 3"]


def card(number, doc_id, group="", askable=True):
    """Make a card."""
    chunk_id = f"c{number:06}"
    return ChunkCard(chunk_id, doc_id, group, 1, 0, chunk_id, askable)


def corpus(*sizes):
    """Make documents of so many chunks."""
    doc_ids = [f"d{place}" for place, size in enumerate(sizes) for _ in range(size)]
    return [card(number, doc_id) for number, doc_id in enumerate(doc_ids)]


def cells(*types):
    """Make cells of these types."""
    return [Cell(number, name, "easy", "expert", "en") for number, name in enumerate(types)]


def sources(cards, wanted, per_chunk=3, **more):
    """Make the sources of cells."""
    return Sources(cards, wanted, per_chunk=per_chunk, seed=0, **more)


def ask(of, *numbers, unsuited=False):
    """Ask for the next sources of cells."""
    return of.take([OpenCell(number, unsuited) for number in numbers])


def drain(of, number, unsuited=False):
    """Ask for one cell until there is nothing more."""
    slots = []
    while (slot := ask(of, number, unsuited=unsuited)[0]) is not None:
        slots.append(slot)
    return slots


def chunk_ids(slots):
    """Return the one chunk of each slot."""
    return [slot.chunk_ids[0] for slot in slots]


def test_a_slot_says_what_is_to_be_written_about_what():
    """It is a row of the plan that people read and runs resume from."""
    wanted = [Cell(7, "why", "hard", "novice", "de")]

    assert ask(sources([card(1, "guide/a.md", "guide")], wanted), 7) == [
        Slot(
            slot_id="000007-0",
            type="why",
            difficulty="hard",
            persona="novice",
            language="de",
            stratum="guide/h1/topic 0",
            chunk_ids=("c000001",),
            doc_ids=("guide/a.md",),
        )
    ]


def test_n_queries_come_from_n_documents():
    """As many documents as can be are asked about."""
    slots = ask(sources(corpus(*[5] * 40), cells(*["fact"] * 30)), *range(30))

    assert len({slot.doc_ids for slot in slots}) == 30


def test_all_documents_are_touched_before_any_comes_again():
    """The thirtieth page of a manual must not come before the only page of another."""
    slots = ask(sources(corpus(100, 1, 1, 1), cells(*["fact"] * 5)), *range(5))

    assert sorted(Counter(slot.doc_ids[0] for slot in slots).values()) == [1, 1, 1, 2]


def test_first_sources_do_not_depend_on_what_failed_before():
    """A wave of ten, with its failures, must plan the others as a wave of all would."""
    cards, wanted = corpus(9, 8, 7), cells(*["fact"] * 20)
    at_once = ask(sources(cards, wanted), *range(20))
    in_waves = sources(cards, wanted)

    first = ask(in_waves, *range(10))
    ask(in_waves, 3, 4)
    rest = ask(in_waves, *range(10, 20))

    assert first + rest == at_once


def test_each_chunk_comes_once_before_any_comes_twice():
    """A second query about a chunk adds less than a first about another."""
    got = chunk_ids(ask(sources(corpus(3, 4, 2), cells(*["fact"] * 18)), *range(18)))

    assert len(set(got[:9])) == len(set(got[9:])) == 9


@pytest.mark.parametrize("per_chunk", [1, 2, 3])
def test_no_chunk_is_asked_about_more_often_than_allowed(per_chunk):
    """More queries than the corpus carries are a shortfall, not copies."""
    slots = ask(sources(corpus(2, 3), cells(*["fact"] * 40), per_chunk), *range(40))

    got = Counter(slot.chunk_ids for slot in slots if slot is not None)
    assert set(got.values()) == {per_chunk}
    assert slots[: 5 * per_chunk].count(None) == 0


def test_a_failed_source_is_followed_by_others_until_there_are_none():
    """A cell gives up only when the whole corpus was tried."""
    of = sources(corpus(3, 2), cells("keyword"))

    slots = drain(of, 0)

    assert sorted(chunk_ids(slots)) == [f"c{number:06}" for number in range(5)]
    assert [slot.slot_id for slot in slots] == [f"000000-{attempt}" for attempt in range(5)]


def test_a_further_source_is_of_the_document_asked_about_least():
    """Failures must not send all queries to the long documents."""
    of = sources(corpus(9, 9, 1, 1), cells("fact", "fact"))
    first = ask(of, 0, 1)

    further = ask(of, 0, 1)

    assert len({slot.doc_ids for slot in first + further}) == 4


def test_a_further_source_is_of_the_same_stratum_where_it_can():
    """A replacement from elsewhere would change the picture of the corpus."""
    cards = [card(number, f"d{number}", "ab"[number % 2]) for number in range(40)]
    of = sources(cards, cells(*["fact"] * 8))
    first = ask(of, *range(8))

    further = ask(of, *range(8))

    assert [slot.stratum for slot in further] == [slot.stratum for slot in first]


def test_a_special_type_becomes_a_fact_after_two_sources():
    """A corpus without comparisons still gives the number of queries asked for."""
    of = sources(corpus(*[1] * 9), cells("comparison"))

    types = [slot.type for slot in (*ask(of, 0), *ask(of, 0), *ask(of, 0), *ask(of, 0))]

    assert types == ["comparison", "comparison", "fact", "fact"]


@pytest.mark.parametrize("kept", ["fact", "keyword"])
def test_a_type_that_every_text_carries_stays(kept):
    """These fail for the text's sake, not the type's; a fact would fare no better."""
    of = sources(corpus(*[1] * 9), cells(kept))

    assert {slot.type for _ in range(4) for slot in ask(of, 0)} == {kept}


def test_a_type_that_no_chunk_is_left_for_becomes_a_fact_at_once():
    """The only chunk carries no comparison, and may well carry a fact."""
    of = sources(corpus(1), cells("comparison"))

    assert [slot.type for slot in drain(of, 0)] == ["comparison", "fact"]


def test_a_source_is_not_tried_again_for_a_type_that_it_failed():
    """The same question to the same model about the same text costs a call for nothing."""
    of = sources(corpus(2, 2), cells(*["list", "fact", "why", "fact"]), per_chunk=5)
    tried = []
    for _ in range(12):
        tried += [slot for slot in ask(of, 0, 1, 2, 3) if slot is not None]

    pairs = Counter((slot.chunk_ids, slot.type) for slot in tried)
    assert set(pairs.values()) == {1}


def test_a_chunk_has_another_type_before_the_same_again():
    """Two facts of one chunk are nearer to one another than a fact and a reason."""
    of = sources(corpus(1, 1), cells("fact", "why", "fact", "why"))

    slots = ask(of, 0, 1, 2, 3)

    assert len({(slot.chunk_ids, slot.type) for slot in slots}) == 4


def test_an_unsuited_source_is_left_for_other_types():
    """A chunk without steps was not asked about; it may be asked about once, and shall be."""
    of = sources(corpus(1), cells("procedure", "fact"), per_chunk=1)
    assert ask(of, 0, 1)[1] is None

    [relaxed] = ask(of, 0, unsuited=True)

    assert (relaxed.slot_id, relaxed.type, relaxed.chunk_ids) == ("000000-1", "fact", ("c000000",))


def test_unsuited_sources_run_out_too():
    """A corpus that suits nothing must end the run."""
    of = sources(corpus(3, 1), cells("procedure"), per_chunk=1)

    assert len(drain(of, 0, unsuited=True)) == 2 + 4


def test_a_cell_without_a_source_gets_one_that_became_free():
    """What one type could not use is not lost to a cell that was told there is nothing."""
    of = sources(corpus(1), cells("procedure", "keyword"), per_chunk=1)
    assert ask(of, 0, 1)[1] is None

    assert [slot.type for slot in of.take([OpenCell(1)]) if slot] == []
    freed = of.take([OpenCell(0, unsuited=True), OpenCell(1)])

    assert [slot and slot.type for slot in freed] == ["fact", None]


TYPES = ("fact", "fact", "keyword", "list", "why", "multi_hop", "fact", "unanswerable")
WAVES = st.lists(
    st.lists(st.tuples(st.integers(0, len(TYPES) - 1), st.booleans()), max_size=8), max_size=30
)


@given(
    waves=WAVES,
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    per_chunk=st.integers(1, 3),
)
def test_whatever_fails_no_chunk_is_overused_and_no_failure_repeated(waves, sizes, per_chunk):
    """Waves come as replies make them; what a source may be asked must hold in all of them."""
    of = sources(corpus(*sizes), cells(*TYPES), per_chunk)
    uses, failed, last = Counter(), set(), {}

    for wave in [[(number, False) for number in range(len(TYPES))], *waves]:
        open_cells = {number: OpenCell(number, unsuited) for number, unsuited in wave}
        for cell in open_cells.values():
            slot = last.pop(cell.number, None)
            if slot is not None:
                failed.add((slot.chunk_ids, slot.type))
                uses[slot.chunk_ids] -= cell.unsuited
        for slot in filter(None, of.take(list(open_cells.values()))):
            assert (slot.chunk_ids, slot.type) not in failed
            uses[slot.chunk_ids] += 1
            last[int(slot.slot_id[:6])] = slot

        assert max(uses.values()) <= per_chunk


def test_failing_again_after_nothing_was_left_changes_nothing():
    """A cell that is told twice that there is no more must not give its last source back twice."""
    of = sources(corpus(1), cells("keyword"), per_chunk=1)
    ask(of, 0)
    ask(of, 0, unsuited=True)
    ask(of, 0, unsuited=True)

    assert ask(of, 0, unsuited=True) == [None]


def test_a_set_that_grows_goes_on_where_it_was():
    """Ten queries and then ten more ask about what twenty at once would."""
    cards, kinds = corpus(9, 4, 6, 1), cells(*["fact"] * 14)
    at_once = chunk_ids(ask(sources(cards, kinds), *range(14)))
    first = chunk_ids(ask(sources(cards, kinds[:5]), *range(5)))

    more = ask(sources(cards, kinds[5:], used=Counter(first)), *range(5, 14))

    assert first + chunk_ids(more) == at_once


def test_what_was_used_before_counts_to_the_uses_of_a_chunk():
    """Asking again must not wear out a chunk that was asked about enough."""
    cards, kinds = corpus(1, 1), cells(*["fact"] * 4)

    slots = ask(sources(cards, kinds, 2, used={"c000000": 1, "gone": 5}), *range(4))

    assert chunk_ids(slots[:3]) == ["c000001", "c000000", "c000001"]
    assert slots[3] is None


def test_documents_that_were_used_before_come_after_the_others():
    """What a set already asks about is what it needs least."""
    used = {"c000000": 1, "c000003": 1}
    of = sources(corpus(3, 3, 1, 1), cells("fact", "fact"), used=used)

    assert {slot.doc_ids[0] for slot in ask(of, 0, 1)} == {"d2", "d3"}


def test_two_hops_do_not_take_a_chunk_twice_while_others_wait():
    """The longest document is not the only one that carries hops."""
    slots = ask(sources(corpus(2, 1, 1, 1), cells(*["multi_hop"] * 5)), *range(5))

    assert len({slot.chunk_ids for slot in slots}) == 5


def test_two_hops_start_in_documents_of_more_than_one_chunk():
    """A page of one chunk has no second hop."""
    of = sources(corpus(*[1] * 20, 6), cells("fact", "fact", "multi_hop", "fact"))

    assert ask(of, 2)[0].doc_ids == ("d20",)


def test_the_same_waves_give_the_same_sources():
    """A run that is taken up again must ask what it asked, or it pays twice."""
    wanted = make_cells(GenerateSettings(n=30), 0)
    runs = [sources(corpus(9, 4, 6, 1), wanted) for _ in range(2)]

    one, other = (
        [ask(of, *range(30)), ask(of, 3, 9, 12), ask(of, 9, 20, unsuited=True)] for of in runs
    )

    assert one == other


@pytest.mark.parametrize("cards", [[], [card(0, "d", askable=False)]])
def test_a_corpus_that_cannot_be_asked_about_has_no_sources(cards):
    """Headings alone are a shortfall with a reason."""
    of = sources(cards, cells("fact", "multi_hop"))

    assert ask(of, 0, 1) == [None, None]
    assert (of.n_chunks, of.n_documents) == (0, 0)


def test_identical_documents_are_one_source():
    """Ten thousand copies of a page carry no more than the page."""
    copies = (
        ChunkCard(f"c{number:06}", f"d{number}", "", 0, 0, "c000000", True)
        for number in range(10_000)
    )
    of = sources(copies, cells(*["fact"] * 5))

    slots = ask(of, *range(5))

    assert [slot and slot.chunk_ids for slot in slots] == [("c000000",)] * 3 + [None] * 2
    assert (of.n_chunks, of.n_documents) == (1, 1)


def test_a_large_corpus_is_planned_from_a_stream_of_cards():
    """Cards of a million chunks are looked at one by one; a list of them would not fit."""
    of = sources((card(number, f"d{number // 20}") for number in range(100_000)), cells("fact"))

    assert (of.n_chunks, of.n_documents) == (100_000, 5_000)
    assert len(ask(of, 0)) == 1
