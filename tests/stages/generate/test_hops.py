from dataclasses import dataclass, field

import pytest

from ragforge.corpus.survey import ChunkCard
from ragforge.records import Chunk, Hit, Slot
from ragforge.stages.generate.hops import common_terms, joined, partner, terms
from ragforge.stages.generate.kinds import KINDS

WHALE = "Blue whales eat krill in polar oceans during summer months near ice edges"
KRILL = "Antarctic krill swarm beneath polar ice, grazing algae before predators arrive hungry"
SHIPS = "Container ships burn heavy fuel while crossing shipping lanes between large harbours"


@dataclass
class SmallSurvey:
    """A survey of a few chunks."""

    chunks: list[Chunk]
    twin_ids: dict[str, list[str]] = field(default_factory=dict)

    @property
    def n_chunks(self):
        return len(self.chunks)

    @property
    def n_documents(self):
        return len({chunk.doc_id for chunk in self.chunks})

    def cards(self):
        for chunk in self.chunks:
            yield ChunkCard(chunk.chunk_id, chunk.doc_id, "", 0, 0, chunk.chunk_id, True)

    def chunk(self, chunk_id):
        return {chunk.chunk_id: chunk for chunk in self.chunks}[chunk_id]

    def neighbours(self, chunk_id):
        return []

    def near_duplicates(self, chunk_id):
        return self.twin_ids.get(chunk_id, [])

    def in_document(self, doc_id):
        return [chunk.chunk_id for chunk in self.chunks if chunk.doc_id == doc_id]


@dataclass
class SetRetriever:
    """A retriever that finds the same for anything."""

    found: list[str]
    asked: list[str] = field(default_factory=list)

    async def retrieve(self, query, k):
        self.asked.append(query)
        return [
            Hit(chunk_id=chunk_id, score=1 / rank)
            for rank, chunk_id in enumerate(self.found[:k], start=1)
        ]


@pytest.fixture
def second(wait):
    """Find the id of the partner of the first of some chunks."""

    def find(wanted, *chunks, twins=(), found=None, common=frozenset()):
        survey = SmallSurvey(list(chunks), {chunks[0].chunk_id: list(twins)})
        retriever = SetRetriever(found or [chunk.chunk_id for chunk in chunks])
        other = wait(partner(chunks[0], wanted, survey, retriever, common))
        return other and other.chunk_id

    return find


def test_within_a_document_rare_words_lead_to_the_second_hop(chunk, second):
    """Two passages about one thing can be asked about together; two about nothing in common not."""
    assert second("multi_hop", chunk(WHALE, "a"), chunk(SHIPS, "b"), chunk(KRILL, "c")) == "c"


def test_within_a_document_other_documents_do_not_count(chunk, second):
    """The two kinds of query test two abilities of a retriever."""
    assert second("multi_hop", chunk(WHALE, "a"), chunk(KRILL, "b", "d2")) is None


def test_words_of_every_chunk_of_a_document_weigh_least(chunk, second):
    """What a manual says on each page does not tie two of its pages together."""
    every = " manual version section table figure"
    chunks = [
        chunk(WHALE + every, "a"),
        chunk("Old dark barns keep their hay dry through long wet winter weeks" + every, "b"),
        chunk(KRILL + every, "c"),
        chunk(SHIPS + every, "d"),
    ]

    assert second("multi_hop", *chunks) == "c"


def test_the_same_text_is_no_second_hop(chunk, second):
    """Both hops must be needed; a copy answers alone."""
    assert second("multi_hop", chunk(WHALE, "a"), chunk(f"{WHALE}.", "b")) is None
    assert second("multi_hop_across", chunk(WHALE, "a"), chunk(f"{WHALE}!", "b", "d2")) is None


def test_near_duplicates_are_no_second_hop(chunk, second):
    """The survey knows copies that have been edited a little."""
    assert second("multi_hop", chunk(WHALE, "a"), chunk(KRILL, "b"), twins=["b"]) is None
    assert (
        second("multi_hop_across", chunk(WHALE, "a"), chunk(KRILL, "b", "d2"), twins=["b"]) is None
    )


def test_a_chunk_of_few_words_is_no_second_hop(chunk, second):
    """A heading can name the subject and say nothing about it."""
    assert second("multi_hop", chunk(WHALE, "a"), chunk("Krill in polar ice", "b")) is None


def test_across_documents_the_first_related_hit_is_taken(chunk, second):
    """The retriever's order is the nearness that its users will meet."""
    chunks = [
        chunk(WHALE, "a"),
        chunk(SHIPS, "b", "d2"),
        chunk(KRILL, "c", "d3"),
        chunk(f"{KRILL} again", "d", "d4"),
    ]

    assert second("multi_hop_across", *chunks) == "c"
    assert second("multi_hop_across", *chunks, found=["d", "b", "c"]) == "d"


def test_across_documents_the_same_document_does_not_count(chunk, second):
    """A query across documents must need both."""
    assert second("multi_hop_across", chunk(WHALE, "a"), chunk(KRILL, "b")) is None


def test_common_words_relate_nothing(chunk, second):
    """Every page of a manual names the product."""
    common = set(terms(WHALE)) & set(terms(KRILL))

    assert (
        second("multi_hop_across", chunk(WHALE, "a"), chunk(KRILL, "b", "d2"), common=common)
        is None
    )


def test_a_link_relates_two_chunks(chunk, second):
    """An author who links says that the two belong together."""
    linking = chunk(f"{WHALE} as [told](../sea/ships.md#fuel)", "a", "land/whales.md")

    assert second("multi_hop_across", linking, chunk(SHIPS, "b", "sea/ships.md")) == "b"


def test_a_link_back_relates_two_chunks(chunk, second):
    """It does not matter which of the two links."""
    source = chunk(WHALE, "a", "whales.rst")

    assert second("multi_hop_across", source, chunk(f"{SHIPS} :doc:`whales`", "b", "x.rst")) == "b"


def test_a_linked_document_that_was_not_found_is_looked_into(chunk, second):
    """What a link leads to need not share words with it."""
    linking = chunk(f"{WHALE} as [told](/sea/ships/) from krill to fuel", "a", "land/whales.md")
    linked = [chunk(SHIPS, "b", "sea/ships.md"), chunk(f"{SHIPS} krill", "c", "sea/ships.md")]

    assert second("multi_hop_across", linking, *linked, found=["a"]) == "c"


def test_addresses_elsewhere_are_no_links(chunk, second):
    """A page of another site is not in the corpus."""
    linking = chunk(f"{WHALE} [see](https://ships.md) and [up](#top)", "a", "whales.md")

    assert second("multi_hop_across", linking, chunk(SHIPS, "b", "ships.md")) is None


def test_hits_that_the_corpus_does_not_have_are_passed_over(chunk, second):
    """A user's retriever may search an older index."""
    chunks = [chunk(WHALE, "a"), chunk(KRILL, "c", "d3")]

    assert second("multi_hop_across", *chunks, found=["gone", "c"]) == "c"


def test_within_a_document_nothing_is_retrieved(chunk, wait):
    """A retriever may cost money, and has nothing to say there."""
    retriever = SetRetriever(["b"])
    survey = SmallSurvey([chunk(WHALE, "a"), chunk(KRILL, "b")])

    wait(partner(survey.chunks[0], "multi_hop", survey, retriever))

    assert retriever.asked == []


def test_the_start_of_a_long_chunk_is_searched_with(chunk, wait):
    """Embedding endpoints refuse texts of any length."""
    retriever = SetRetriever([])
    survey = SmallSurvey([chunk(WHALE * 1000, "a")])

    wait(partner(survey.chunks[0], "multi_hop_across", survey, retriever))

    assert [len(query) for query in retriever.asked] == [4000]


def test_both_kinds_of_two_hops_need_a_partner():
    """The writer's table of kinds says how many passages a query is asked about."""
    hopping = {name for name, kind in KINDS.items() if kind.passages > 1}
    assert hopping == {"multi_hop", "multi_hop_across"}


def test_of_a_long_document_the_chunks_around_the_source_are_compared(chunk, wait):
    """A document of 20 MB must not be read whole for each query."""
    chunks = [chunk(SHIPS, f"c{place:04}") for place in range(1000)]
    chunks[10] = chunk(KRILL, "far")
    chunks[700] = chunk(WHALE, "source")
    chunks[750] = chunk(f"{KRILL} soon", "near")

    other = wait(partner(chunks[700], "multi_hop", SmallSurvey(chunks), SetRetriever([])))

    assert other.chunk_id == "near"


def test_chinese_texts_are_related_by_pairs_of_characters(chunk, second):
    """Single characters are shared by all texts of a language without blanks."""
    source = chunk("蓝鲸夏天在极地海洋吃磷虾冬天游向温暖海域", "a")
    related = chunk("南极磷虾群生活在冰层下面以微小藻类为食", "b", "d2")

    assert "磷虾" in terms(source.text)
    assert second("multi_hop_across", source, related, common={"在"}) is None
    assert second("multi_hop", source, chunk(related.text, "b")) == "b"


def test_common_terms_are_those_of_one_chunk_in_ten(chunk):
    """What is rare is a matter of the corpus, not of the language."""
    chunks = [
        chunk(f"krill topic{place} " + ("polar" if place < 5 else ""), f"c{place:02}")
        for place in range(60)
    ]

    assert common_terms(SmallSurvey(chunks), 0) == {"krill"}


def test_in_a_small_corpus_no_term_is_common(chunk):
    """Of three chunks, two that share a word are related by it."""
    assert common_terms(SmallSurvey([chunk(WHALE, name) for name in "abc"]), 0) == frozenset()


def test_the_slot_names_both_chunks(chunk):
    """The writer is shown them in the order of the hops."""
    slot = Slot(
        slot_id="000001-0",
        type="multi_hop_across",
        difficulty="hard",
        persona="expert",
        language="en",
        stratum="./h1/topic 0",
        chunk_ids=("a",),
        doc_ids=("d1",),
    )

    both = joined(slot, chunk(KRILL, "b", "d2"))

    assert (both.chunk_ids, both.doc_ids) == (("a", "b"), ("d1", "d2"))
