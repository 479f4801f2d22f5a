import asyncio

import pytest
from fakes import Recorder
from refresh.two_versions import (
    JUDGE,
    asking,
    chunks_of,
    diff_of,
    graded,
    id_of,
    make_parent,
    stage,
)

from ragforge.config import Settings
from ragforge.corpus.quote_locations import Location
from ragforge.errors import CallError
from ragforge.mock import Script, serving
from ragforge.pipeline.backend import open_backend
from ragforge.pipeline.job import Job, OutputFile
from ragforge.records import Cause, ItemChange, Pin, Provenance, Query
from ragforge.refresh.conflicts import find_conflicts, possible_conflicts
from ragforge.refresh.grades.carrying import carry_judgments
from ragforge.refresh.queries.decisions import is_in_conflict
from ragforge.refresh.queries.rechecking import Recheckers, recheckers_of
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.stages.recheck import PROMPT, Finding, Proved

FEES = "The fee is ten percent."
NEWS = "Now the fee is twelve percent."
BEFORE = {"a": (FEES,)}
NOW = {**BEFORE, "new": (NEWS,)}
NEW = id_of("new", NEWS)
QUERY = asking("q", "a", FEES, FEES, query="What is the fee?")
OPEN = Query(query_id="u", query="Who paints?", answerable=False)


class Says:
    """Finds what it was told to, in the first passage, or fails."""

    def __init__(self, verdict, answer=""):
        self.verdict, self.answer, self.asked = verdict, answer, []

    async def judge(self, subject):
        self.asked.append([passage.text for passage in subject.passages])
        if self.verdict is None:
            raise CallError("error", "no reply", call_keys=("k",))
        proof = None if self.verdict == "none" else Proved(0, Location(0, 3))
        return Finding(self.verdict, proof, self.answer, Provenance(kind="llm", model="m"))


class Survey:
    """The chunks of now."""

    def __init__(self, texts):
        self.chunks = {chunk.chunk_id: chunk for chunk in chunks_of(texts)}

    def chunk(self, chunk_id):
        return self.chunks[chunk_id]


class World:
    """A set, a corpus with new chunks, and grades of these."""

    def __init__(self, place):
        self.place, self.n = place, 0

    def stage(self, judgments, query=QUERY, *, now=NOW, parent=None, before=BEFORE, change=None):
        self.n += 1
        self.parent = parent or make_parent(self.place / "set", before, [query])
        self.diff = diff = diff_of(before, now, self.place / f"diff{self.n}")
        self.staged = stage(self.parent, self.place / f"staged{self.n}", diff)
        self.updated = UpdatedQueries([UpdatedQuery(query, query, change)])
        carry_judgments(self.staged, self.parent, diff, self.updated, (JUDGE,))
        self.staged.write_judgments([*self.staged.judgments(), *judgments])
        self.new = {chunk.chunk_id for chunk in diff.added()}
        self.survey = Survey(now)
        return self

    def find(self, recheck, whole=(), failed_before=()):
        recheckers = Recheckers(recheck, None, 2, Recorder())
        return asyncio.run(self._find(recheckers, whole, failed_before))

    async def _find(self, recheckers, whole=(), failed_before=()):
        found = possible_conflicts(
            self.staged,
            self.parent,
            self.updated,
            self.new,
            whole,
            diff=self.diff,
            failed_before=failed_before,
        )
        return await find_conflicts(
            self.staged, self.survey, self.updated, recheckers, possible=found, version=2
        )

    async def find_with(self, endpoint):
        settings = Settings.model_validate({"model": {"name": "m", "base_url": endpoint.url}})
        store = self.staged.store_path
        place = OutputFile(store.with_name("none.jsonl"), store)
        async with open_backend(Job(settings, Recorder()), PROMPT, place) as backend:
            return await self._find(recheckers_of(backend, settings, Recorder()))


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_grade_of_what_the_corpus_lacks_puts_no_unanswerable_query_in_doubt(world):
    """Texts that a run made then, and documents, have grades and are no chunks."""
    judgments = [graded("u", "t_6zwmnm3sllx23q24", 3), graded("u", "gone.md", 2, "human", None)]
    world.stage(judgments, OPEN)

    assert world.find(None, {"u"}).items == []


def test_query_to_which_a_new_chunk_gives_another_answer_is_set_aside(world):
    """A system that tells what the documents say today must not be marked down for it."""
    world.stage([graded("q", NEW, 3)])

    found = world.find(Says("changed", "twelve percent"))

    [item] = found.items
    assert (item.query.status, found.n_calls) == ("quarantined", 1)
    [cause] = item.change.causes
    assert (cause.kind, cause.doc_id) == ("new chunk", "new")
    assert cause.detail == f"chunk {NEW} gives another answer: twelve percent"


@pytest.mark.parametrize("verdict", ["same", "none"])
def test_new_chunk_that_does_not_contradict_changes_nothing(world, verdict):
    """One page more on a topic is no reason to lose a query."""
    found = world.stage([graded("q", NEW, 3)]).find(Says(verdict))

    assert (found.items, found.n_calls) == ([], 1)


@pytest.mark.parametrize(
    "judgment",
    [
        graded("q", NEW, 1),
        graded("q", NEW, None),
        graded("q", NEW, 3, "evidence"),
        graded("q", NEW, 3, "carried"),
        graded("q", NEW, 3, "human"),
        graded("q", id_of("a", FEES), 3),
        graded("q", NEW, 3).model_copy(update={"copied_from": id_of("a", FEES)}),
    ],
)
def test_only_new_texts_that_a_judge_found_relevant_are_looked_at(world, judgment):
    """Each check is a call; what was there before was there when the query was accepted."""
    says = Says("changed", "twelve")

    found = world.stage([judgment]).find(says)

    assert (found.items, says.asked) == ([], [])


@pytest.mark.parametrize("query", [QUERY, OPEN])
def test_text_that_was_there_is_in_no_conflict_however_it_is_cut(world, query):
    """The query was accepted beside it; another limit for chunks says nothing against it."""
    before = {"a": (FEES,), "old": (f"{NEWS} More of it.",)}
    now = {"a": (FEES,), "old": (NEWS, "More of it.")}
    says = Says("changed", "twelve percent")
    judged = graded(query.query_id, id_of("old", NEWS), 3)

    found = world.stage([judged], query, before=before, now=now).find(says)

    assert (found.items, says.asked) == ([], [])


def test_all_new_chunks_of_a_query_are_looked_at_together(world):
    """A call a chunk would make a large addition dear."""
    now = {**BEFORE, **{f"n{n}": (f"{n}. {NEWS}",) for n in range(9)}}
    judgments = [graded("q", id_of(f"n{n}", f"{n}. {NEWS}"), 2 + (n == 7)) for n in range(9)]
    says = Says("same")

    found = world.stage(judgments, now=now).find(says)

    assert found.n_calls == 2
    assert max(says.asked, key=len)[0] == f"7. {NEWS}"
    assert sum(map(len, says.asked)) == 9


def test_unanswerable_query_that_a_new_chunk_answers_is_set_aside(world):
    """Such a query marks down just the system that answers it."""
    says = Says("same")
    found = world.stage([graded("u", NEW, 2)], OPEN).find(says)

    [item] = found.items
    assert (item.query.status, item.change.causes[0].kind) == ("quarantined", "new chunk")
    assert says.asked == []


@pytest.mark.parametrize(("query", "n_set_aside"), [(OPEN, 1), (QUERY, 0)])
def test_old_chunk_that_could_not_be_judged_before_may_answer_what_nothing_should(
    world, query, n_set_aside
):
    """Nobody had seen that it does; of other queries, it stood beside them all along."""
    old = id_of("a", FEES)
    world.stage([graded(query.query_id, old, 3)], query)

    found = world.find(Says("changed", "so"), failed_before={(query.query_id, old)})

    assert len(found.items) == n_set_aside


def test_old_chunk_speaks_against_a_query_that_was_just_converted(world):
    """It was never held against the corpus as a question without an answer."""
    world.stage([graded("u", id_of("a", FEES), 2, "carried")], OPEN)

    [item] = world.find(Says("same"), ["u"]).items

    assert item.query.query_id == "u"
    assert [cause.kind for cause in item.change.causes] == ["chunk there before"]
    assert is_in_conflict(item.change)


def test_contradicted_pin_is_broken_and_its_query_untouched(world):
    """A person's word is not overruled in silence."""
    pinned = QUERY.model_copy(update={"pinned": Pin(by="ada")})

    found = world.stage([graded("q", NEW, 3)], pinned).find(Says("changed", "twelve"))

    assert found.items == []
    assert [(one.query_id, one.action) for one in found.broken_pins] == [("q", "quarantined")]


def test_what_happened_before_is_told_too(world):
    """A query that moved and was then contradicted has two causes."""
    cause = Cause(kind="document changed", doc_id="a")
    change = ItemChange(
        version=2, query_id="q", action="reverified", revision=1, causes=(cause,), calls=1
    )
    world.stage([graded("q", NEW, 3)], change=change)

    [item] = world.find(Says("changed", "twelve")).items

    assert [one.kind for one in item.change.causes] == ["document changed", "new chunk"]
    assert item.change.calls == 2


def test_failed_check_leaves_the_query_and_is_made_again_next_time(world):
    """Its own evidence still stands; but nobody has said that nothing speaks against it."""
    first = world.stage([graded("q", NEW, 3)])
    found = first.find(Says(None))

    assert (found.items, found.n_calls) == ([], 1)
    assert [one.key for one in first.staged.failures()] == [f"q/{NEW}"]

    says = Says("same")
    later = World(world.place / "later").stage(
        [], parent=first.staged, before=NOW, now={"a": (FEES,), "else": (NEWS,)}
    )
    later.find(says)

    assert says.asked == [[NEWS]]
    assert later.staged.failures() == []


def test_failed_check_stays_recorded_when_new_queries_are_looked_at(world):
    """Queries that are added last are held against the corpus in a second go."""
    world.stage([graded("q", NEW, 3)]).find(Says(None))
    world.new = set()

    found = world.find(Says("same"), ["u"])

    assert found.n_calls == 0
    assert [one.key for one in world.staged.failures()] == [f"q/{NEW}"]


def test_a_model_is_asked_once_and_the_store_answers_the_second_time(world):
    """A run that was killed is repeated for nothing."""
    with serving(Script()) as endpoint:
        world.stage([graded("q", NEW, 3)])
        first = asyncio.run(world.find_with(endpoint))
        again = asyncio.run(world.find_with(endpoint))
        assert endpoint.ledger()["billed"] == 1

    assert first == again
    assert first.n_calls == 1
