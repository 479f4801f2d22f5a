"""Making several runs at once; what one retriever does wrong is no other's loss."""

import asyncio

import pytest
from fakes import Recorder

from ragforge.config import Settings
from ragforge.errors import BudgetError, DataError, EndpointError, UsageError
from ragforge.files.manifest import RunOrigin, digest_file
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.job import Job
from ragforge.pipeline.retrieved_counts import retrieval_warnings
from ragforge.pipeline.retrieving import RunResult, make_runs, require_working
from ragforge.records import Chunk, Failure, Judgment, Query, Ranking
from ragforge.retrieval.local_models import is_installed

MODULE = """
import asyncio
import threading
from ragforge.errors import BudgetError, EndpointError

both = threading.Barrier(2, timeout=30)
asked = []

def one(query, k):
    both.wait()
    return ["c1"]

def other(query, k):
    both.wait()
    return ["c2"]

def first(query, k):
    asked.append("first")
    return ["c1"]

def second(query, k):
    asked.append("second")
    return ["c1"]

def by_text(query, k):
    return [{"text": "Text."}]

def broken(query, k):
    raise ValueError("the index is gone")

def half(query, k):
    if "one" in query:
        raise ValueError("no")
    return ["c1"]

def gone(query, k):
    raise EndpointError("the service is gone")

def dear(query, k):
    if "one" in query:
        return ["c1"]
    raise BudgetError("the budget is spent")

def nothing(query, k):
    return []

async def stopping(query, k):
    [each] = [task for task in asyncio.all_tasks() if task.get_name() == "whole"]
    each.cancel()
    for _ in range(50):  # rounds of the loop until the runner has heard of it
        await asyncio.sleep(0)
    return ["c1"]

class Counted:
    made = 0

    def __init__(self, chunks):
        Counted.made += 1

    def retrieve(self, query, k):
        return ["c1"]
"""


@pytest.fixture
def dataset(tmp_path):
    """Two queries and two chunks."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_chunks(Chunk(chunk_id=f"c{n}", doc_id="d", text=f"Text {n}.") for n in (1, 2))
    made.write_queries(Query(query_id=f"q{n}", query=f"Query {n}?") for n in ("one", "two"))
    return made


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """Name of a module with retrievers of a user."""
    name = f"retrievers_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.fixture
def make(dataset):
    """Make runs of the dataset."""

    def go(specs, observer=silent, max_failures=0.05, **model):
        settings = Settings.model_validate({"model": model})
        job = Job(settings, observer)
        return asyncio.run(make_runs(dataset, specs, job, max_failures=max_failures))

    return go


def rankings(dataset, name):
    return {item.query_id: [hit.chunk_id for hit in item.ranking] for item in dataset.run(name)}


def test_blocking_retrievers_work_at_the_same_time(make, dataset, theirs):
    """Each waits for the other here: one after the other they would wait for ever."""
    made = make({"one": f"{theirs}:one", "other": f"{theirs}:other"}, concurrency=2)

    assert [result.name for result in made] == ["one", "other"]
    assert rankings(dataset, "one") == {"qone": ["c1"], "qtwo": ["c1"]}
    assert rankings(dataset, "other") == {"qone": ["c2"], "qtwo": ["c2"]}


def test_a_text_stands_for_the_copy_that_people_graded_for_its_query(make, dataset, theirs):
    """By id a perfect retriever had RR 1.0, and by text 0.125."""
    dataset.write_chunks(Chunk(chunk_id=f"c{n}", doc_id=f"d{n}", text="Text.") for n in (1, 2, 3))
    dataset.write_judgments(
        Judgment(query_id=query_id, chunk_id=chunk_id, grade=grade, source=source)
        for query_id, chunk_id, grade, source in (
            ("qone", "c2", 3, "human"),
            ("qone", "c3", 3, "judge"),
            ("qtwo", "c2", 1, "human"),
            ("qtwo", "c3", 2, "human"),
        )
    )

    make({"text": f"{theirs}:by_text"})

    assert rankings(dataset, "text") == {"qone": ["c2"], "qtwo": ["c3"]}


def test_with_a_concurrency_of_one_they_work_one_after_the_other(make, theirs):
    """A latency is that of the system alone only where nothing else runs."""
    make({"a": f"{theirs}:first", "b": f"{theirs}:second"}, concurrency=1)

    from importlib import import_module

    assert import_module(theirs).asked == ["first", "first", "second", "second"]


def test_a_retriever_that_fails_on_all_queries_leaves_the_others_alone(make, dataset, theirs):
    """Of six retrievers one is always down."""
    broken, bm25 = make({"broken": f"{theirs}:broken", "bm25": "bm25"})

    assert [len(broken.rankings), len(broken.failures)] == [0, 2]
    assert broken.explanation.startswith(f"retriever '{theirs}:broken' failed on all 2 queries")
    assert [len(bm25.rankings), bm25.explanation] == [2, ""]
    assert {item.key for item in dataset.failures()} == {"broken/qone", "broken/qtwo"}


def test_a_query_that_fails_is_a_failure_in_the_file(make, dataset, theirs):
    """A query that is in no file would count 0."""
    [half] = make({"half": f"{theirs}:half"})

    assert rankings(dataset, "half") == {"qtwo": ["c1"]}
    assert [item.key for item in dataset.failures()] == ["half/qone"]
    assert half.explanation == ""


def test_what_an_endpoint_was_not_asked_any_more_is_a_failure_too(make, dataset, theirs):
    """A service that went away has not found nothing."""
    [gone] = make({"gone": f"{theirs}:gone"}, concurrency=1)

    assert isinstance(gone.stopped_by, EndpointError)
    assert [item.message for item in dataset.failures()] == ["the service is gone"] * 2


def test_a_spent_budget_stops_its_retriever_and_keeps_what_is_done(make, dataset, theirs):
    """What was paid for is not lost, and bm25 costs nothing."""
    dear, bm25 = make({"dear": f"{theirs}:dear", "bm25": "bm25"}, concurrency=1)

    assert isinstance(dear.stopped_by, BudgetError)
    assert list(rankings(dataset, "dear")) == ["qone"]
    assert len(bm25.rankings) == 2


def test_what_an_interrupt_leaves_unasked_is_a_failure(dataset, theirs):
    """Half a run, measured later, would count the other half 0."""
    settings = Settings.model_validate({"model": {"concurrency": 1}})
    specs = {"cut": f"{theirs}:stopping", "later": "bm25"}

    async def whole():
        making = make_runs(dataset, specs, Job(settings, silent))
        await asyncio.create_task(making, name="whole")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(whole())

    assert rankings(dataset, "cut") == {"qone": ["c1"]}
    assert [item.message for item in dataset.failures()] == ["interrupted before it was asked"]
    assert dataset.run_names() == ["cut"]


def test_an_interrupt_leaves_the_run_of_before(make, dataset, theirs):
    """Whoever presses Ctrl-C does not mean to delete what there is."""
    make({"cut": "bm25"})
    before = rankings(dataset, "cut")
    settings = Settings.model_validate({"model": {"concurrency": 1}})
    told = Recorder()

    async def whole():
        making = make_runs(dataset, {"cut": f"{theirs}:stopping"}, Job(settings, told))
        await asyncio.create_task(making, name="whole")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(whole())

    assert rankings(dataset, "cut") == before
    assert dataset.failures() == []
    assert told.named("note")[-1].message == (
        "run cut: the run of before stands, as it has 2 of 2 queries, and the new one 1"
    )


def test_what_cannot_be_built_leaves_what_was_there(make, dataset):
    """An endpoint that is down for a night must not cost the run of yesterday."""
    make({"dense": "bm25"})
    model = {"embedding_model": "e", "base_url": "http://127.0.0.1:9", "max_attempts": 1}

    with pytest.raises(EndpointError, match="cannot be reached"):
        make({"dense": "dense"}, max_wait_s=0.1, **model)

    assert set(rankings(dataset, "dense")) == {"qone", "qtwo"}
    assert dataset.failures() == []


def test_what_cannot_be_built_fails_on_all_queries_beside_others(make, dataset):
    """A row that is left out looks like a retriever that was never asked."""
    model = {"embedding_model": "e", "base_url": "http://127.0.0.1:9", "max_attempts": 1}

    dense, _ = make({"dense": "dense", "bm25": "bm25"}, max_wait_s=0.1, **model)

    assert "cannot be reached" in dense.explanation
    assert rankings(dataset, "dense") == {}
    assert {item.key for item in dataset.failures()} == {"dense/qone", "dense/qtwo"}


@pytest.mark.parametrize("spec", ["broken", "gone"])
def test_a_retriever_that_works_on_no_query_replaces_no_rankings(make, dataset, theirs, spec):
    """A service that is down for a night must not cost the run of yesterday."""
    make({"mine": "bm25"})
    before = rankings(dataset, "mine")

    found, _ = make({"mine": f"{theirs}:{spec}", "bm25": "bm25"})

    assert rankings(dataset, "mine") == before
    assert dataset.failures() == []
    assert (found.n_earlier, found.explanation != "") == (2, True)


@pytest.mark.skipif(not is_installed("static"), reason="no weights")
def test_what_ranks_an_address_anew_is_kept_and_its_key_is_not(make, dataset):
    """An address may hold the mark of ranking anew as well."""
    specs = {"a": "http://127.0.0.1:9/s?key=se>cret>static", "b": "http://127.0.0.1:9/s?key=s>e"}
    make({**specs, "bm25": "bm25"})
    runs = dataset.manifest.files

    assert runs["runs/a.jsonl"].run.retriever == "http://127.0.0.1:9/s>static"
    assert runs["runs/b.jsonl"].run.retriever == "http://127.0.0.1:9/s"


def test_a_run_that_was_cut_short_replaces_none_with_more_queries(make, dataset, theirs):
    """Half a run is worth less than yesterday's whole one."""
    make({"dear": "bm25"})
    before = rankings(dataset, "dear")

    dear, _ = make({"dear": f"{theirs}:dear", "bm25": "bm25"}, concurrency=1)

    assert rankings(dataset, "dear") == before
    assert dataset.failures() == []
    assert (dear.n_earlier, dear.explanation) == (2, "the budget is spent")


def test_a_run_that_was_cut_short_replaces_one_of_other_chunks(make, dataset, theirs):
    """What cannot be measured any more is no fuller."""
    make({"mine": f"{theirs}:first"})
    dataset.write_chunks([Chunk(chunk_id="c1", doc_id="d", text="Another text.")])

    make({"mine": f"{theirs}:dear"}, concurrency=1)

    assert rankings(dataset, "mine") == {"qone": ["c1"]}


def test_a_run_is_bound_to_the_chunks_and_the_retriever_that_made_it(make, dataset, theirs):
    """Without that nobody could tell a run of other chunks from a bad one."""
    make({"mine": f"{theirs}:first"})

    assert dataset.manifest.files["runs/mine.jsonl"].run == RunOrigin(
        chunks_sha256=digest_file(dataset.chunks_path), retriever=f"{theirs}:first"
    )


def test_no_key_of_an_address_gets_into_the_manifest(make, dataset):
    """Sets are published, and some gateways take keys in the query."""
    make({"bm25": "bm25", "mine": "http://127.0.0.1:9/search?key=secret"})

    assert dataset.manifest.files["runs/mine.jsonl"].run.retriever == "http://127.0.0.1:9/search"
    assert "secret" not in (dataset.files / "manifest.json").read_text("utf-8")


def test_a_run_that_was_cut_short_replaces_one_with_no_more_queries(make, dataset, theirs):
    """What is newer is better where it is not less."""
    make({"dear": f"{theirs}:half"})

    [dear] = make({"dear": f"{theirs}:dear"}, concurrency=1)

    assert list(rankings(dataset, "dear")) == ["qone"]
    assert [item.key for item in dataset.failures()] == ["dear/qtwo"]
    assert (dear.n_earlier, dear.explanation) == (0, "")


def test_a_whole_run_with_as_many_failures_as_may_be_replaces_one_without(make, dataset, theirs):
    """It tells the truth about the retriever as it is now."""
    make({"half": "bm25"})

    [half] = make({"half": f"{theirs}:half"}, max_failures=0.5)

    assert list(rankings(dataset, "half")) == ["qtwo"]
    assert half.n_earlier == 0


def test_a_whole_run_with_more_failures_than_may_be_leaves_a_fuller_one(make, dataset, theirs):
    """A backend that was down for a third of the queries must not cost the run of yesterday."""
    make({"half": "bm25"})
    before = rankings(dataset, "half")
    told = Recorder()

    [half] = make({"half": f"{theirs}:half"}, told)

    assert rankings(dataset, "half") == before
    assert dataset.failures() == []
    assert half.n_earlier == 2
    assert "failed on 1 of 2 queries; the first: " in half.explanation
    assert told.named("note")[-1].message == (
        "run half: the run of before stands, as it has 2 of 2 queries, and the new one 1; "
        "--max-failures of `ragforge retrieve` lets more fail"
    )


def test_a_run_that_cannot_be_read_is_replaced_by_whatever_comes(make, dataset, theirs):
    """It is of no use to anybody."""
    make({"dear": "bm25"})
    (dataset.path / "runs" / "dear.jsonl").write_text("torn\n", encoding="utf-8")

    make({"dear": f"{theirs}:dear"}, concurrency=1)

    assert list(rankings(dataset, "dear")) == ["qone"]


def test_that_all_rankings_are_empty_is_told(make, theirs):
    """A service whose index is empty works on every query."""
    told = Recorder()

    make({"nothing": f"{theirs}:nothing"}, told)

    [note] = told.named("note")
    assert note.message == "warning: run nothing: all 2 rankings are empty; is there an index?"


def test_that_all_rankings_are_the_same_is_told():
    """A service that is asked under the wrong name answers every query alike."""

    def ranking(query_id, *ids):
        hits = [{"chunk_id": name, "score": 1.0} for name in ids]
        return Ranking.model_validate({"query_id": query_id, "ranking": hits})

    same = [ranking(name, "c1", "c2") for name in ("a", "b", "c")]

    told = list(retrieval_warnings("fixed", same, {"c1", "c2"}))
    assert told == ["run fixed: all 3 rankings are the same; is the query read?"]
    other = [*same, ranking("d", "c2", "c1")]
    assert list(retrieval_warnings("mine", other, {"c1", "c2"})) == []


def test_each_retriever_is_made_once(make, theirs):
    """An index of a million chunks takes minutes."""
    make({"counted": f"{theirs}:Counted"})

    from importlib import import_module

    assert import_module(theirs).Counted.made == 1


def test_a_retriever_that_is_not_there_stops_all_before_any_is_asked(make, dataset):
    """A misspelt name is found at once, not after an hour."""
    with pytest.raises(UsageError, match="no 'bm52'"):
        make({"bm25": "bm25", "other": "bm52"})

    assert dataset.run_names() == []


def test_an_earlier_run_is_kept_where_its_retriever_never_began(make, dataset):
    """A misspelt second retriever must not cost the first run."""
    make({"bm25": "bm25"})

    with pytest.raises(UsageError, match="no 'nope'"):
        make({"bm25": "bm25", "x": "nope"})

    assert set(rankings(dataset, "bm25")) == {"qone", "qtwo"}


def test_progress_is_that_of_one_stage(make, theirs):
    """Two bars over each other cannot be read."""
    told = Recorder()

    make({"bm25": "bm25", "broken": f"{theirs}:broken"}, told)

    [start], [end] = told.named("stage.start"), told.named("stage.end")
    assert start.numbers == {"total": 4.0}
    assert (end.numbers["done"], end.numbers["failed"]) == (2.0, 2.0)


def result(name, *, worked, stopped_by=None):
    failure = Failure(what="retrieve", key=f"{name}/q", kind="error", message="no")
    return RunResult(name, name, [object()] if worked else [], [failure], stopped_by)


def test_one_that_works_is_enough():
    """What is there can be measured."""
    made = [result("a", worked=False), result("b", worked=True)]

    assert require_working(made) is None


def test_none_that_works_is_an_error_that_names_them_all():
    """An empty table looks like a result."""
    with pytest.raises(EndpointError, match=r"'a' failed on all 1 queries.*'b' failed on all"):
        require_working([result("a", worked=False), result("b", worked=False)])


def test_the_only_one_may_not_be_stopped_half_way():
    """Half a run is no run; the reason tells what to mend."""
    stopped = DataError("bad reply")

    with pytest.raises(DataError, match="bad reply"):
        require_working([result("a", worked=True, stopped_by=stopped)])


@pytest.mark.skipif(not is_installed("static"), reason="no weights")
def test_chunks_get_their_vectors_in_a_stage_of_their_own(dataset):
    """It is what takes long; no query's latency may hold it."""
    events = Recorder()
    [made] = asyncio.run(make_runs(dataset, {"both": "bm25+static"}, Job(Settings(), events)))
    stages = [
        (event.name, event.stage) for event in events.events if event.name.startswith("stage")
    ]

    assert made.rankings
    assert stages == [
        ("stage.start", "embed"),
        ("stage.end", "embed"),
        ("stage.start", "retrieve"),
        ("stage.end", "retrieve"),
    ]
