import asyncio
from collections import Counter

import pytest

from ragforge.config import GenerateSettings
from ragforge.corpus.survey import ChunkCard
from ragforge.errors import BudgetError, CallError
from ragforge.observe import silent
from ragforge.records import Chunk, GateResult, Lineage, Measured
from ragforge.stages.generate.candidates import Brief, Candidate, Quoted
from ragforge.stages.generate.checks.checking import CheckedCandidate
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.quotas import make_cells
from ragforge.stages.generate.stage import IN_VAIN, Generated, Generation, generate
from ragforge.stages.generate.truth import query_id
from ragforge.stages.runner import Workers

SUBJECTS = (
    "amber basalt cedar dolphin ember falcon garnet heron indigo jasper kestrel lichen".split()
)


def corpus(documents=4, size=3):
    return [
        Chunk(
            chunk_id=f"d{d}-{c}",
            doc_id=f"d{d}",
            text=f"The {SUBJECTS[3 * d + c]} report speaks at length of its colour and weight.",
        )
        for d in range(documents)
        for c in range(size)
    ]


def question(chunk, number=0):
    what = ("colour", "weight", "length")[number]
    return f"Which {what} is given for the {chunk.text.split()[1]} in the archive?"


def candidate(text, brief, **changes):
    fields = {
        "question": text,
        "answer": "It is told there in full.",
        "quotes": (Quoted("speaks at length of its colour"),),
        "difficulty": "easy",
        "type": "fact",
        "lineage": Lineage(kind="llm", model="m", slot=brief.slot.slot_id),
    }
    return Candidate(**{**fields, **changes})


class Writer:
    """Writes one candidate a brief; `odd` says what else comes of a document."""

    def __init__(self, delay=lambda brief: 0.0, several=1, **odd):
        self.delay, self.several, self.odd, self.briefs, self.asked = delay, several, odd, [], []

    async def write(self, brief, asked):
        self.briefs.append(brief)
        self.asked.append(list(asked))
        await asyncio.sleep(self.delay(brief))
        chunk = brief.chunks[0]
        odd = self.odd.get(chunk.doc_id, "")
        if isinstance(odd, Exception):
            raise odd
        if odd is None:
            return []
        texts = [odd] if odd else [question(chunk, len(asked) + n) for n in range(self.several)]
        return [candidate(text, brief) for text in texts]


class Verdicts:
    """Checks that pass, fail or know nothing, by what a question says."""

    def __init__(self, **by_word):
        self.by_word, self.seen = by_word, []

    async def check(self, items):
        self.seen.append([item.candidate.question for item in items])
        return [self._checked(item) for item in items]

    def _checked(self, item):
        text = item.candidate.question
        verdict = next((v for word, v in self.by_word.items() if word in text), "pass")
        gate = GateResult(gate="independent_answer", verdict=verdict, reason="told")
        measured = Measured(agreement="agrees", closed_book="not solved")
        return CheckedCandidate((gate,), verdict == "pass", measured, ("k1", "k2"))


@pytest.fixture
def generated(wait):
    """Generate, and return what there was also at a stop."""

    def go(writer, n, chunks=None, seed=0, checks=None, taken=None, brief=None, concurrency=4):
        chunks = corpus() if chunks is None else chunks
        by_id = {chunk.chunk_id: chunk for chunk in chunks}
        cards = [
            ChunkCard(chunk.chunk_id, chunk.doc_id, "", 0, 0, chunk.chunk_id, is_askable=True)
            for chunk in chunks
        ]
        cells = make_cells(GenerateSettings(n=n, types=("fact",)), seed)
        sources = Sources(cards, cells, per_chunk=3, seed=seed)

        async def of(slot):
            return Brief(slot, tuple(by_id[chunk_id] for chunk_id in slot.chunk_ids))

        how = Generation(
            writer, brief or of, taken or QuestionsAsked(), checks, Workers(concurrency, silent)
        )
        made = Generated()
        try:
            wait(generate([OpenCell(cell.number) for cell in cells], sources, how, made))
        except BudgetError:
            made.lost["stopped"] += 1
        return made

    return go


def questions(made):
    return [query.query for query in made.queries]


@pytest.mark.parametrize("n", [1, 4, 7, 12, 30])
def test_as_many_queries_come_as_are_wanted(generated, n):
    """A user who asks for n pays for n."""
    writer = Writer()

    assert len(generated(writer, n).queries) == n
    assert len(writer.briefs) == n


def test_the_set_does_not_depend_on_the_order_of_replies(generated):
    """Same inputs, same bytes, however the network behaves."""
    late = Writer(lambda brief: 0.02 if brief.chunks[0].doc_id in ("d0", "d2") else 0.0)

    in_turn = questions(generated(Writer(), 10, concurrency=1))

    assert len(in_turn) == 10
    assert questions(generated(late, 10)) == in_turn


def test_equal_questions_are_decided_by_the_plan_and_not_by_speed(generated):
    """Which of two equal questions is kept decides which chunk is its evidence."""
    same = {f"d{d}": "Which subject do all the archives share?" for d in range(4)}

    def slow(doc):
        return Writer(lambda brief: 0.02 * (brief.chunks[0].doc_id == doc), **same)

    made = [generated(slow(doc), 4) for doc in ("d0", "d1", "d2", "d3")]

    assert len({one.queries[0].source_chunk_ids for one in made}) == 1
    assert {Counter(item.code for item in one.rejected)["duplicate"] for one in made} == {12}


def test_a_writer_that_repeats_itself_is_given_up(generated):
    """A model that says one thing only must not be paid for the whole corpus."""
    many = [
        Chunk(chunk_id=f"c{n}", doc_id=f"d{n}", text=corpus()[0].text + f" Number {n}.")
        for n in range(500)
    ]
    same = {f"d{n}": "Which subject do all the archives share?" for n in range(500)}
    writer = Writer(**same)

    made = generated(writer, 20, chunks=many)

    assert len(made.queries) == 1
    assert made.gave_up
    assert IN_VAIN <= len(writer.briefs) <= IN_VAIN + 40


def test_a_chunk_is_asked_again_with_what_was_accepted(generated):
    """Else the same question comes again."""
    writer = Writer()

    generated(writer, 36)

    chunk = writer.briefs[0].chunks[0]
    told = [
        asked
        for brief, asked in zip(writer.briefs, writer.asked, strict=True)
        if brief.chunks[0] == chunk
    ]
    assert told == [[], [question(chunk, 0)], [question(chunk, 0), question(chunk, 1)]]


def test_failures_and_rejections_are_replaced_by_further_chunks(generated):
    """The user gets n queries as long as the corpus carries them."""
    writer = Writer(d0=CallError("refused", "no"), d1="What does the passage say on it?", d2=None)

    made = generated(writer, 3)

    assert [query.evidence[0].doc_id for query in made.queries] == ["d3"] * 3
    assert {failure.key.split("/")[1][:2] for failure in made.failures} == {"d0"}
    assert {item.code for item in made.rejected} == {"deictic"}
    assert made.lost["no_candidate"] > 0
    assert made.lost["writer_failed"] > 0


def test_a_shortfall_is_no_padding(generated):
    """Fewer good queries are better than n bad ones."""
    made = generated(Writer(), 5, chunks=corpus(documents=1, size=1))

    assert questions(made) == [question(corpus()[0], number) for number in range(3)]


def test_an_empty_corpus_gives_an_empty_set(generated):
    """Nothing to ask about is no error here; the command tells the shortfall."""
    assert generated(Writer(), 5, chunks=[]).queries == []


def test_a_stop_keeps_what_was_written_where_nothing_checks(generated):
    """The user paid for it."""
    writer = Writer(
        lambda brief: 0.05 if brief.chunks[0].doc_id == "d3" else 0.0, d3=BudgetError("spent")
    )

    made = generated(writer, 4)

    assert sorted(query.evidence[0].doc_id for query in made.queries) == ["d0", "d1", "d2"]


def test_a_stop_accepts_nothing_that_was_not_checked(generated):
    """What was not looked at has not passed; its reply is in the store for the next run."""
    writer = Writer(
        lambda brief: 0.05 if brief.chunks[0].doc_id == "d3" else 0.0, d3=BudgetError("spent")
    )

    assert generated(writer, 4, checks=Verdicts()).queries == []


@pytest.mark.parametrize("verdict", ["fail", "unknown"])
def test_what_a_check_does_not_pass_is_no_query(generated, verdict):
    """Unknown is not a pass."""
    made = generated(Writer(), 3, checks=Verdicts(amber=verdict, basalt=verdict, cedar=verdict))

    assert len(made.queries) == 3
    assert not any(query.source_chunk_ids[0].startswith("d0") for query in made.queries)
    assert {item.code for item in made.rejected} <= {f"independent_answer_{verdict}"}


def test_the_next_candidate_of_a_call_is_tried_before_another_source(generated):
    """It is paid for already."""
    writer = Writer(several=3)
    checks = Verdicts(colour="fail")

    made = generated(writer, 4, checks=checks)

    assert len(writer.briefs) == 4
    assert [len(seen) for seen in checks.seen] == [4, 4]
    assert all("weight" in text for text in questions(made))


def test_a_question_that_failed_its_check_is_not_checked_again(generated):
    """The same verdict would be bought twice."""
    writer = Writer(d0="Which subject do all the archives share?")
    checks = Verdicts(share="fail")

    generated(writer, 9, checks=checks)

    asked = [text for seen in checks.seen for text in seen]
    assert asked.count("Which subject do all the archives share?") == 1


def test_what_the_set_has_is_not_asked_again(generated):
    """Retired questions must not come back either."""
    taken = QuestionsAsked()
    taken.add("q_old", question(corpus()[0]))

    made = generated(Writer(), 12, taken=taken)

    assert question(corpus()[0]) not in questions(made)
    assert [item.code for item in made.rejected] == ["duplicate"]


def test_a_slot_without_its_second_chunk_costs_no_call(generated):
    """There is nothing to show to a writer."""

    async def nothing(slot):
        return None

    writer = Writer()

    made = generated(writer, 2, brief=nothing)

    assert writer.briefs == []
    assert made.lost["no_partner"] == len(made.slots) > 0


def test_a_query_carries_its_source(generated):
    """Evidence and lineage are what later gates and refreshes work with."""
    [query] = generated(Writer(), 1, checks=Verdicts()).queries

    assert query.query_id == query_id(query.query, "en")
    assert query.source_chunk_ids == (query.evidence[0].chunk_id,)
    assert (query.language, query.origin, query.persona) == ("en", "synthetic", "practitioner")
    assert query.lineage.slot == "000000-0"
    assert query.lineage.call_keys == ("k1", "k2")
    assert query.gates[0].verdict == "pass"
    assert query.measured.agreement == "agrees"


def test_an_unanswerable_query_has_no_evidence(generated):
    """The text that comes nearest does not answer it."""

    class Absent(Writer):
        async def write(self, brief, asked):
            [found] = await super().write(brief, asked)
            absent = {"type": "unanswerable", "behaviour": "abstain"}
            answer = "The documentation does not say that."
            return [candidate(found.question, brief, answer=answer, **absent)]

    [query] = generated(Absent(), 1).queries

    assert (query.answerable, query.expected_behaviour, query.evidence) == (False, "abstain", ())


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
