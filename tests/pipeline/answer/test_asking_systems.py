import asyncio
import json
import sys
import threading
from types import ModuleType

import pytest
from fakes import Recorder

from ragforge.config import ChunkSettings, Settings
from ragforge.errors import DataError, EndpointError, UsageError
from ragforge.evaluating.summary import summarise
from ragforge.files.record_files import write_records
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.answer.answering import grade_system
from ragforge.pipeline.answer.asking_systems import FoundChunks, PassageFinder, ask_queries
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.job import EARNEST, Job, Mode
from ragforge.pipeline.judge.judging import judge_dataset
from ragforge.pipeline.rederiving import rederive_dataset
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Evidence,
    Failure,
    Judgment,
    Query,
    Span,
    text_id,
)
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


def test_another_price_is_no_other_answer(ask, dataset, rag):
    """Grades stay with an answer that reads as before."""
    rag.reply = lambda query: {"answer": query, "cost_usd": 0.002}
    ask()
    graded = AnswerGrade(query_id="q1", verdict="correct", score=1.0, has_hallucination=None)
    dataset.write_answer_grades("mine", [graded])
    rag.reply = lambda query: {"answer": query, "cost_usd": 0.004}

    ask(again=True)

    assert [item.cost_usd for item in dataset.answers("mine")] == [0.004] * 3
    assert dataset.answer_grades("mine") == [graded]


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
        (["This stands in no chunk."], (text_id("This stands in no chunk."),)),
    ],
)
def test_passages_become_the_chunks_that_hold_them(ask, dataset, rag, context, chunk_ids):
    """Hallucination and retrieval are judged against chunks, whatever a system calls them."""
    rag.reply = lambda query: ("Krill.", context)

    ask()

    assert {item.chunk_ids for item in dataset.answers("mine")} == {chunk_ids}


@pytest.mark.parametrize(
    ("passage", "chunk_id"),
    [
        (TEXTS["b.md#1"][1], "c.md#1"),
        ("Squid live", "c.md#1"),
        ({"text": TEXTS["b.md#1"][1], "doc_id": "b.md"}, "b.md#1"),
        ({"text": "Squid live", "doc_id": "b.md"}, "b.md#1"),
    ],
)
def test_a_passage_stands_for_the_copy_that_people_graded(ask, dataset, rag, passage, chunk_id):
    """A system without ids had the same words before it as one that names the labelled copy."""
    copy = Chunk(chunk_id="c.md#1", doc_id="c.md", text=TEXTS["b.md#1"][1])
    dataset.write_chunks([*dataset.chunks(), copy])
    dataset.write_judgments(
        [Judgment(query_id="q1", chunk_id="c.md#1", grade=3, source="human")],
    )
    rag.reply = lambda query: {"answer": query, "contexts": [passage]}

    ask()

    found = {item.query_id: item.chunk_ids for item in dataset.answers("mine")}
    assert found == {"q1": (chunk_id,), "q2": ("b.md#1",), "q3": ("b.md#1",)}


def test_passages_in_no_chunk_are_told(ask, rag):
    """A system on another corpus cannot be checked, and the user must know."""
    rag.reply = lambda query: ("Krill.", ["This stands in no chunk."])
    recorder = Recorder()

    ask(observer=recorder)

    notes = [event.message for event in recorder.named("note")]
    assert notes == [
        "3 retrieved passages are in no chunk: 0 stand in the documents all the same, 3 nowhere"
    ]


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


def test_a_passage_in_no_chunk_is_kept_with_its_answer(ask, dataset, rag):
    """Else what it says would be held for made up."""
    words = "This stands in no chunk."
    rag.reply = lambda query: ("Krill.", ["a.md#1", words, ""])

    ask()

    found = {(item.chunk_ids, item.n_unknown_passages) for item in dataset.answers("mine")}
    assert found == {(("a.md#1", text_id(words)), 1)}
    assert [text.text for text in dataset.retrieved_texts()] == [words]


ACROSS = "eat krill all day. Orcas hunt seals"


def with_evidence(dataset):
    """Give each query its quote, and the chunks their places."""
    first, second, third = (text for _, text in TEXTS.values())
    at = len(first) + 1
    dataset.write_chunks(
        [
            Chunk(chunk_id="a.md#1", doc_id="a.md", text=first, end=len(first)),
            Chunk(chunk_id="a.md#2", doc_id="a.md", text=second, start=at, end=at + len(second)),
            Chunk(chunk_id="b.md#1", doc_id="b.md", text=third, end=len(third)),
        ]
    )
    start = first.index("eat krill")
    quote = Evidence(
        doc_id="a.md", chunk_id="a.md#1", quote="eat krill", start=start, end=start + 9
    )
    dataset.write_queries(
        query.model_copy(update={"evidence": (quote,)}) for query in dataset.all_queries()
    )


def test_a_passage_across_chunks_is_placed_and_graded_by_its_evidence(ask, dataset, rag):
    """A system cuts the documents as it likes; its contexts are measured all the same."""
    with_evidence(dataset)
    rag.reply = lambda query: ("Krill.", [{"text": ACROSS, "source": "a.md"}, "b.md#1"])

    ask()

    [text] = dataset.retrieved_texts()
    assert [(one.doc_id, one.start) for one in text.places] == [("a.md", 12)]
    assert {item.chunk_ids for item in dataset.answers("mine")} == {(text_id(ACROSS), "b.md#1")}
    assert {(item.chunk_id, item.grade) for item in dataset.judgments()} == {(text_id(ACROSS), 3)}


def test_contexts_of_such_passages_have_a_precision(ask, dataset, rag):
    """It was open: nothing was known of them."""
    with_evidence(dataset)
    rag.reply = lambda query: ("Krill.", [{"text": ACROSS, "source": "a.md"}])
    ask()
    path = dataset.path / "answers" / "mine.jsonl"
    asyncio.run(grade_system(dataset, path, "mine", Job(Settings(), Recorder())))
    [system] = summarise(dataset).answers

    [diagnosis] = system.diagnoses
    assert (diagnosis.context.precision.mean, diagnosis.context.n_unjudged) == (1.0, 0)


LONG = (
    "Blue whales eat krill all day. They are the largest animals that ever lived, and swim alone. "
    "Orcas hunt seals in the cold sea, and they do so in groups that know each other for years."
)


def test_a_piece_of_a_large_chunk_is_a_text_of_its_own(ask, dataset, rag):
    """What stands beside it in the chunk was not before the system."""
    dataset.write_chunks([Chunk(chunk_id="c", doc_id="a.md", text=LONG, end=len(LONG))])
    rag.reply = lambda query: ("Krill.", [{"text": LONG[:120]}, {"text": LONG[:-9]}, LONG[:20]])

    ask()

    assert {item.chunk_ids for item in dataset.answers("mine")} == {(text_id(LONG[:120]), "c")}


def test_texts_in_contexts_are_judged(ask, dataset, rag):
    """Whether they were needed is not known otherwise; there may be no run at all."""
    words = "This stands in no chunk."
    rag.reply = lambda query: ("Krill.", [words])
    ask()
    asyncio.run(judge_dataset(dataset, (), Job(Settings(), Recorder())))

    assert {(item.chunk_id, item.grade) for item in dataset.judgments()} == {(text_id(words), 0)}


def test_texts_in_contexts_go_when_the_answers_do(ask, dataset, rag):
    """And not when a run does that held them too."""
    rag.reply = lambda query: ("Krill.", ["This stands in no chunk."])
    ask()
    dataset.drop_uncited_texts()
    assert len(list(dataset.retrieved_texts())) == 1
    rag.reply = lambda query: ("Krill.", ["a.md#1"])
    ask(again=True)

    assert list(dataset.retrieved_texts()) == []


def test_contexts_stay_known_when_the_set_is_cut_otherwise(ask, dataset, rag):
    """Answers are dear: nobody asks again for another size of chunks."""
    with_evidence(dataset)
    rag.reply = lambda query: ("Krill.", [{"text": ACROSS, "source": "a.md"}, "a.md#2"])
    ask()
    whole = " ".join(text for doc_id, text in TEXTS.values() if doc_id == "a.md")
    path = dataset.path.parent / "given.jsonl"
    chunks = [
        Chunk(chunk_id="a", doc_id="a.md", text=whole, end=len(whole)),
        *(chunk for chunk in dataset.chunks() if chunk.doc_id == "b.md"),
    ]
    write_records(path, chunks, key=lambda chunk: chunk.chunk_id)
    source = ChunkSource([], path, ChunkSettings(), silent)
    with source.prepared(dataset.store_path.parent) as prepared:
        rederive_dataset(dataset, prepared)

    known = {text.chunk_id for text in dataset.retrieved_texts()}
    assert known == {text_id(ACROSS), text_id(TEXTS["a.md#2"][1])}
    assert {frozenset(item.chunk_ids) for item in dataset.answers("mine")} == {frozenset(known)}


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
        (
            [ContextPassage(ids=("Of no chunk.",), texts=("Of no chunk.",))],
            FoundChunks((text_id("Of no chunk."),), 0),
        ),
        (
            [ContextPassage(texts=("Of no chunk.",)), ContextPassage(ids=("a#2",))],
            FoundChunks((text_id("Of no chunk."), "a#2"), 0),
        ),
        (
            [ContextPassage(ids=("Of no chunk.",)), ContextPassage(ids=("a#2",))],
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


def test_a_bare_passage_without_blanks_is_a_text():
    """Chinese has none between words; as an id nothing would be known of it."""
    passage = "号许可证的费用为121元整"
    finder = PassageFinder(
        [Chunk(chunk_id="c", doc_id="d", text=f"第3{passage}。" + "孩子免费。" * 40)]
    )
    found = finder.find([ContextPassage(ids=(passage,), texts=(passage,))])

    assert found == FoundChunks(("c",), 0)


@pytest.mark.parametrize(("doc_id", "chunk_id"), [("b", "b#1"), ("c", None)])
def test_a_quote_is_looked_for_in_its_document(doc_id, chunk_id):
    """The same words in another document are another passage."""
    assert PassageFinder(CHUNKS).quoted("eat krill", doc_id) == chunk_id


def test_a_passage_of_a_document_with_hidden_markup_has_its_place_in_the_file():
    """Evidence is looked for there."""
    said = "They eat krill, and they sing in the deep of the sea at night, and sleep by halves. "
    text = f"See the guide to whales. {said}{'They breathe air, as all mammals do. ' * 4}"
    chunk = Chunk(
        chunk_id="g#1", doc_id="g.md", text=text, start=7, end=47 + len(text), hidden=((13, 40),)
    )
    finder = PassageFinder([chunk])
    passage = text[25:150]
    found = finder.find([ContextPassage(texts=(passage,))])
    answer = Answer(query_id="q", answer="so", chunk_ids=found.chunk_ids)
    [placed] = finder.placed([answer]).texts

    assert placed.places == (Span(doc_id="g.md", start=72, end=197),)


def test_rows_with_an_error_are_failures_of_the_system(dataset, tmp_path):
    """Asked over HTTP they would be, and a file is what is left of that."""
    path = tmp_path / "a.csv"
    path.write_text("query_id,answer,error\nq1,krill,\nq2,,503\nq3,,503\n", encoding="utf-8")

    asyncio.run(grade_system(dataset, path, "mine", Job(Settings(), Recorder())))

    assert [item.query_id for item in dataset.answers("mine")] == ["q1"]
    assert [(item.key, item.message) for item in dataset.failures()] == [
        ("mine/q2", "503"),
        ("mine/q3", "503"),
    ]
    [system] = summarise(dataset).answers
    rate = system.rates["correct"]
    assert (rate.mean, rate.n_failed) == (1.0, 2)


def test_a_file_of_nothing_but_errors_is_refused(dataset, tmp_path):
    """There is nothing to grade, and the first error says why."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"query_id": "q1", "answer": "", "error": "no route"}\n', encoding="utf-8")

    with pytest.raises(DataError, match="each row is a failure; the first: no route"):
        asyncio.run(grade_system(dataset, path, "mine", Job(Settings(), Recorder())))


def test_a_judge_that_cannot_be_reached_leaves_the_grades_of_before(dataset, tmp_path):
    """They were paid for, and nothing has come in their place."""
    path = tmp_path / "a.jsonl"
    rows = ({"query_id": f"q{n}", "answer": "Squid and seals."} for n in (1, 2, 3))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    asyncio.run(grade_system(dataset, path, "mine", Job(Settings(), Recorder())))
    before = dataset.answer_grades("mine")
    settings = Settings(
        model={
            "name": "m",
            "base_url": "http://127.0.0.1:1/v1",
            "max_wait_s": 0.1,
            "max_attempts": 1,
        }
    )

    job = Job(settings, Recorder(), Mode(single_call=True))

    with pytest.raises(EndpointError, match="cannot be reached"):
        asyncio.run(grade_system(dataset, path, "mine", job))

    assert [grade.query_id for grade in before] == ["q1", "q2", "q3"]
    assert dataset.answer_grades("mine") == before
