import asyncio

import pytest

from ragforge.errors import BudgetError, CallError
from ragforge.observe import silent
from ragforge.records import Chunk, Provenance
from ragforge.stages.generate.candidates import Candidate
from ragforge.stages.generate.stage import Generation, evidence_judgments, generate, query_id


def corpus(documents=4, size=3):
    return [
        Chunk(
            chunk_id=f"d{d}-{c}",
            doc_id=f"d{d}",
            text=f"Chunk {c} of document {d} speaks at length of its subject, as all here do.",
        )
        for d in range(documents)
        for c in range(size)
    ]


def question(chunk, number):
    return f"Which subject has {chunk.chunk_id} in turn {number}?"


class Writer:
    """Asks about every chunk in every round; the order of its replies is the test's."""

    def __init__(self, delay=lambda seed: 0.0, **odd):
        self.delay, self.odd, self.seeds, self.asked = delay, odd, [], {}

    async def write(self, seed, asked):
        self.seeds.append(seed)
        self.asked[seed.chunk.chunk_id, seed.round] = list(asked)
        await asyncio.sleep(self.delay(seed))
        odd = self.odd.get(seed.chunk.doc_id, "")
        if isinstance(odd, Exception):
            raise odd
        if odd is None:
            return None
        return Candidate(
            question=odd or question(seed.chunk, seed.round),
            answer="at length",
            evidence="speaks at length",
            difficulty="easy",
            type="fact",
            lineage=Provenance(kind="llm", model="m"),
        )


@pytest.fixture
def generated(wait):
    """Generate and return what was kept, also at a stop."""

    def go(writer, n, chunks=None, seed=0, concurrency=4):
        kept = []
        how = Generation(writer, n, seed, "en", concurrency, silent)
        try:
            wait(generate(corpus() if chunks is None else chunks, how, kept.append))
        except BudgetError:
            kept.append("stopped")
        return kept[0]

    return go


def questions(generated):
    return [query.query for query in generated.queries]


@pytest.mark.parametrize("n", [1, 4, 7, 12, 30])
def test_as_many_queries_come_as_are_wanted(generated, n):
    """A user who asks for n pays for n."""
    writer = Writer()

    assert len(generated(writer, n).queries) == n
    assert len(writer.seeds) == n


def test_a_smaller_set_is_the_beginning_of_a_larger_one(generated):
    """A set can be tried small and grown without throwing away what was paid for."""
    small = questions(generated(Writer(), 9))

    assert len(small) == 9
    assert questions(generated(Writer(), 20))[:9] == small


def test_the_set_does_not_depend_on_the_order_of_replies(generated):
    """Same inputs, same bytes, however the network behaves."""
    late = Writer(lambda seed: 0.02 if seed.chunk.doc_id in ("d0", "d2") else 0.0)

    in_turn = questions(generated(Writer(), 10, concurrency=1))

    assert len(in_turn) == 10
    assert questions(generated(late, 10)) == in_turn


def test_equal_questions_are_decided_by_the_plan_and_not_by_speed(generated):
    """Which of two equal questions is kept decides which chunk is its evidence."""
    same = {f"d{d}": "Which subject do all of them share?" for d in range(4)}
    slow = [
        generated(Writer(lambda seed, doc=doc: 0.02 * (seed.chunk.doc_id == doc), **same), 4)
        for doc in ("d0", "d1", "d2", "d3")
    ]

    assert len({made.queries[0].source_chunk_ids for made in slow}) == 1
    assert [made.rejected["duplicate"] for made in slow] == [35] * 4


def test_another_seed_gives_another_set(generated):
    """Two samples of one corpus can be compared."""
    assert questions(generated(Writer(), 4, seed=1)) != questions(generated(Writer(), 4, seed=2))


def test_a_chunk_is_asked_again_only_when_all_were(generated):
    """Every part of a corpus comes before any comes twice; three times is the end."""
    writer = Writer()

    made = generated(writer, 100)

    assert len(made.queries) == 36
    assert [seed.round for seed in writer.seeds] == [0] * 12 + [1] * 12 + [2] * 12


def test_a_further_round_knows_what_was_accepted(generated):
    """Else it asks the same again."""
    writer = Writer()
    chunk = corpus()[0]

    generated(writer, 36)

    assert writer.asked[chunk.chunk_id, 0] == []
    assert writer.asked[chunk.chunk_id, 2] == [question(chunk, 0), question(chunk, 1)]


def test_failures_and_rejections_are_replaced_by_further_chunks(generated):
    """The user gets n queries as long as the corpus carries them."""
    writer = Writer(d0=CallError("refused", "no"), d1="What does the passage say on it?", d2=None)

    made = generated(writer, 3)

    assert [query.evidence[0].doc_id for query in made.queries] == ["d3"] * 3
    assert {failure.key.split("-")[0] for failure in made.failures} == {"d0"}
    assert made.rejected["deictic"] > 0
    assert made.without > 0


def test_a_shortfall_is_no_padding(generated):
    """Fewer good queries are better than n bad ones."""
    made = generated(Writer(), 5, chunks=corpus(documents=1, size=1))

    assert questions(made) == [question(corpus()[0], number) for number in range(3)]


def test_an_empty_corpus_gives_an_empty_set(generated):
    """Nothing to ask about is no error here; the command tells the shortfall."""
    assert generated(Writer(), 5, chunks=[]).queries == []


def test_a_stop_keeps_what_was_accepted(generated):
    """The user paid for it."""
    writer = Writer(
        lambda seed: 0.05 if seed.chunk.doc_id == "d3" else 0.0, d3=BudgetError("spent")
    )

    made = generated(writer, 4)

    assert sorted(query.evidence[0].doc_id for query in made.queries) == ["d0", "d1", "d2"]


def test_a_query_carries_its_source(generated):
    """Evidence and lineage are what later gates and refreshes work with."""
    [query] = generated(Writer(), 1).queries

    assert query.query_id == query_id(query.query, "en")
    assert query.source_chunk_ids == (query.evidence[0].chunk_id,)
    assert (query.expected_answer, query.language, query.origin) == (
        "at length",
        "en",
        "synthetic",
    )
    assert query.lineage == Provenance(kind="llm", model="m")


def test_the_source_chunk_is_judged_by_its_evidence(generated):
    """It is known to answer; a judge need not be paid to say so."""
    queries = generated(Writer(), 2).queries

    assert [
        (one.query_id, one.chunk_id, one.grade, one.source, one.evidence)
        for one in evidence_judgments(queries)
    ] == [
        (query.query_id, query.source_chunk_ids[0], 3, "evidence", "speaks at length")
        for query in queries
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("What is it?", "en"), ("what is it", "en"), True),
        (("What is it?", "en"), ("What  is\nit ?", "en"), True),
        (("What is it?", "en"), ("What was it?", "en"), False),
        (("What is it?", "en"), ("What is it?", "de"), False),
    ],
)
def test_a_query_keeps_its_id_over_case_and_punctuation(one, other, same):
    """Ids come from content, so that sets can be merged and compared."""
    assert (query_id(*one) == query_id(*other)) is same
