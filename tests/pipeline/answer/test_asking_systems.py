import asyncio
import sys
import threading
from types import ModuleType

import pytest
from fakes import Recorder

from ragforge.config import Settings
from ragforge.errors import EndpointError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.answer.asking_systems import FoundChunks, PassageFinder, ask_queries
from ragforge.pipeline.job import EARNEST, Job, Mode
from ragforge.records import Answer, AnswerGrade, Chunk, Failure, Query
from ragforge.retrieval import ContextPassage

TEXTS = {
    "a.md#1": ("a.md", "Blue whales eat krill all day."),
    "a.md#2": ("a.md", "Orcas hunt seals in the cold sea."),
    "b.md#1": ("b.md", "Squid live in the deep."),
}


@pytest.fixture
def dataset(tmp_path):
    """Three queries and three chunks."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        Chunk(chunk_id=name, doc_id=doc_id, text=text) for name, (doc_id, text) in TEXTS.items()
    )
    made.write_queries(
        Query(query_id=f"q{n}", query=f"Question {n}?", expected_answer="krill") for n in (1, 2, 3)
    )
    return made


class Rag:
    """Answers with the query, or as a function says; remembers what was asked."""

    def __init__(self):
        self.asked = []
        self.reply = lambda query: f"About {query}"

    def answer(self, query):
        self.asked.append(query)
        return self.reply(query)


@pytest.fixture
def rag(monkeypatch):
    """A system that a user could name."""
    module = ModuleType("own_rag")
    module.rag = Rag()
    monkeypatch.setitem(sys.modules, "own_rag", module)
    return module.rag


@pytest.fixture
def ask(dataset):
    """Ask the system and wait."""

    def go(mode=EARNEST, observer=None, **changes):
        settings = Settings.model_validate({"model": {"concurrency": 1}})
        return asyncio.run(
            ask_queries(
                dataset,
                "own_rag:rag",
                "mine",
                Job(settings, observer or Recorder(), mode),
                **changes,
            )
        )

    return go


def test_every_query_is_asked_and_its_answer_kept(ask, dataset, rag):
    """From here on nothing knows where the answers came from."""
    result = ask()

    answers = dataset.answers("mine")
    assert [(item.query_id, item.answer) for item in answers] == [
        (f"q{n}", f"About Question {n}?") for n in (1, 2, 3)
    ]
    assert all(item.latency_s is not None for item in answers)
    assert (result.n_asked, result.n_kept, result.failures) == (3, 0, [])


@pytest.mark.parametrize(
    ("context", "chunk_ids"),
    [
        (["a.md#1"], ("a.md#1",)),
        (["a.md#1", "a.md#1"], ("a.md#1",)),
        (["gone"], ("gone",)),
        (["Blue whales  eat krill\nall day."], ("a.md#1",)),
        (["Orcas hunt seals"], ("a.md#2",)),
        ([{"doc_id": "b.md", "quote": "Squid live"}], ("b.md#1",)),
        ([{"doc_id": "elsewhere/b.md", "quote": "Squid live"}], ("b.md#1",)),
        ([{"id": "0b5e", "text": "Squid live in the deep."}], ("b.md#1",)),
        (["This stands in no chunk."], ()),
    ],
)
def test_passages_become_the_chunks_that_hold_them(ask, dataset, rag, context, chunk_ids):
    """Hallucination and retrieval are judged against chunks, whatever a system calls them."""
    rag.reply = lambda query: ("Krill.", context)

    ask()

    assert {item.chunk_ids for item in dataset.answers("mine")} == {chunk_ids}


def test_passages_in_no_chunk_are_told(ask, rag):
    """A system on another corpus cannot be checked, and the user must know."""
    rag.reply = lambda query: ("Krill.", ["This stands in no chunk."])
    recorder = Recorder()

    ask(observer=recorder)

    notes = [event.message for event in recorder.named("note")]
    assert notes == ["3 retrieved passages are in no chunk"]


def test_what_is_answered_is_not_asked_again(ask, dataset, rag):
    """Each answer may have cost money."""
    dataset.write_answers("mine", [Answer(query_id="q2", answer="kept")])
    recorder = Recorder()

    result = ask(observer=recorder)

    assert rag.asked == ["Question 1?", "Question 3?"]
    assert dataset.answers("mine")[1].answer == "kept"
    assert (result.n_asked, result.n_kept) == (2, 1)
    assert "1 of 3 queries have an answer under 'mine' already; --ask-again" in (
        recorder.named("note")[0].message
    )


def test_all_are_asked_again_on_demand(ask, dataset, rag):
    """The system may have changed under its name; grades of its old answers must go."""
    dataset.write_answers(
        "mine",
        [
            Answer(query_id="q1", answer="old"),
            Answer(query_id="q2", answer="About Question 2?"),
        ],
    )
    dataset.write_answer_grades(
        "mine",
        [
            AnswerGrade(query_id=name, verdict="correct", score=1, has_hallucination=None)
            for name in ("q1", "q2")
        ],
    )

    ask(again=True)

    assert len(rag.asked) == 3
    assert [grade.query_id for grade in dataset.answer_grades("mine")] == ["q2"]


def test_a_failed_query_has_a_failure_and_no_answer(ask, dataset, rag):
    """It is asked in the next run, and until then the report counts it."""
    rag.reply = lambda query: {"error": "busy"} if "2" in query else "Krill."

    result = ask()

    assert [item.query_id for item in dataset.answers("mine")] == ["q1", "q3"]
    assert [(item.what, item.key) for item in dataset.failures()] == [("ask", "mine/q2")]
    assert len(result.failures) == 1


def test_a_later_answer_ends_a_failure(ask, dataset, rag):
    """Failures of other systems and stages stay."""
    other = [
        Failure(what="ask", key="other/q2", kind="error", message="down"),
        Failure(what="answer", key="mine/q1", kind="error", message="down"),
    ]
    rag.reply = lambda query: {"error": "busy"} if "2" in query else "Krill."
    ask()
    dataset.replace_failures("ask", [*dataset.failures(), *other], lambda key: True)

    rag.reply = lambda query: "Krill."
    ask()

    assert rag.asked[3:] == ["Question 2?"]
    assert {(item.what, item.key) for item in dataset.failures()} == {
        (item.what, item.key) for item in other
    }


def test_a_system_that_fails_on_all_queries_stops_the_run(ask, dataset, rag):
    """Nothing is there to be graded, and a report of it would be empty."""
    rag.reply = lambda query: None

    with pytest.raises(EndpointError, match="system 'mine' failed on all 3 queries; the first: "):
        ask()

    assert dataset.answer_names() == []
    assert len(dataset.failures()) == 3


def test_a_dry_run_asks_and_loads_nothing(dataset, ask):
    """Importing a user's system may cost time and money too."""
    result = ask(Mode(dry_run=True))

    assert (result.n_asked, result.n_kept) == (3, 0)
    assert dataset.answer_names() == []


def test_a_replay_asks_nothing(ask, rag):
    """Who replays wants to know that nothing leaves the machine."""
    with pytest.raises(EndpointError, match="3 queries have no answer under 'mine' yet"):
        ask(Mode(offline_replay=True))

    assert rag.asked == []


def test_a_name_unfit_for_a_file_is_refused_first(dataset, rag):
    """A name must not lead out of the dataset."""
    with pytest.raises(UsageError, match=r"name '\.\./x'"):
        asyncio.run(ask_queries(dataset, "own_rag:rag", "../x", Job(Settings(), Recorder())))

    assert rag.asked == []


def test_answers_are_kept_when_the_run_is_interrupted(dataset, rag):
    """Ctrl-C must cost nothing that was answered already; the last call may end."""
    reached, released = threading.Event(), threading.Event()

    def reply(query):
        if "2" in query:
            reached.set()
            released.wait(10)
        return "Krill."

    rag.reply = reply

    async def interrupted():
        settings = Settings.model_validate({"model": {"concurrency": 1}})
        task = asyncio.create_task(
            ask_queries(dataset, "own_rag:rag", "mine", Job(settings, Recorder()))
        )
        await asyncio.to_thread(reached.wait, 10)
        task.cancel()
        released.set()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())

    assert [item.query_id for item in dataset.answers("mine")] == ["q1", "q2"]
    assert len(rag.asked) == 2


def test_answers_are_written_now_and_then(ask, dataset, rag):
    """A process that is killed has no time to write."""
    there = []

    def reply(query):
        there.append(len(dataset.answers("mine")) if dataset.answer_names() else 0)
        return "Krill."

    rag.reply = reply

    ask(save_every_s=0.0)

    assert there[0] == 0
    assert there[2] >= 1


def test_a_passage_in_no_chunk_is_counted_with_its_answer(ask, dataset, rag):
    """Else what it says would be held for made up."""
    rag.reply = lambda query: ("Krill.", ["a.md#1", "This stands in no chunk."])

    ask()

    found = {(item.chunk_ids, item.n_unknown_passages) for item in dataset.answers("mine")}
    assert found == {(("a.md#1",), 1)}


def test_a_query_that_fails_now_loses_its_old_answer(ask, dataset, rag):
    """It would be graded as if the system still gave it."""
    ask()
    dataset.write_answer_grades(
        "mine",
        [
            AnswerGrade(query_id=f"q{n}", verdict="correct", score=1, has_hallucination=None)
            for n in (1, 2, 3)
        ],
    )
    rag.reply = lambda query: {"error": "busy"} if "2" in query else f"About {query}"

    ask(again=True)

    assert [item.query_id for item in dataset.answers("mine")] == ["q1", "q3"]
    assert [item.query_id for item in dataset.answer_grades("mine")] == ["q1", "q3"]
    assert [item.key for item in dataset.failures()] == ["mine/q2"]


def test_a_system_that_is_down_costs_no_answer_that_is_there(ask, dataset, rag):
    """An outage must not throw away what was paid for; no query is both answered and failed."""
    ask()
    before = dataset.answers("mine")
    rag.reply = lambda query: None

    with pytest.raises(EndpointError, match="failed on all 3 queries"):
        ask(again=True)

    assert dataset.answers("mine") == before
    assert dataset.failures() == []


CHUNKS = [
    Chunk(chunk_id="a#1", doc_id="a", text="Blue whales eat krill."),
    Chunk(chunk_id="a#2", doc_id="a", text="Orcas hunt seals."),
    Chunk(chunk_id="b#1", doc_id="b", text="Blue whales eat krill."),
]


@pytest.mark.parametrize(
    ("passages", "found"),
    [
        ([ContextPassage(ids=("a#2",))], FoundChunks(("a#2",), 0)),
        ([ContextPassage(texts=("Blue  whales eat krill.",))], FoundChunks(("a#1",), 0)),
        ([ContextPassage(texts=("whales eat",), doc_ids=("b",))], FoundChunks(("b#1",), 0)),
        ([ContextPassage(ids=("gone",))], FoundChunks(("gone",), 0)),
        ([ContextPassage(ids=("Of no chunk.",), texts=("Of no chunk.",))], FoundChunks((), 1)),
        (
            [ContextPassage(texts=("Of no chunk.",)), ContextPassage(ids=("a#2",))],
            FoundChunks(("a#2",), 1),
        ),
        (
            [ContextPassage(ids=("a#2",)), ContextPassage(texts=("Orcas hunt",))],
            FoundChunks(("a#2",), 0),
        ),
    ],
)
def test_passages_are_found_or_counted(passages, found):
    """One that is dropped without a trace makes what it says look made up."""
    assert PassageFinder(CHUNKS).find(passages) == found


@pytest.mark.parametrize(("doc_id", "chunk_id"), [("b", "b#1"), ("c", None)])
def test_a_quote_is_looked_for_in_its_document(doc_id, chunk_id):
    """The same words in another document are another passage."""
    assert PassageFinder(CHUNKS).quoted("eat krill", doc_id) == chunk_id
