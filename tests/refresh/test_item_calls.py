"""Checks that are stopped: nothing that was paid is lost, and nothing is half done."""

import asyncio

import pytest
from endpoint import Reply, answering, completion, serving
from refresh.seen_queries import OLD, chunk, located, query

from ragforge.config import BudgetSettings, ModelSettings, Settings
from ragforge.errors import BudgetError, EndpointError
from ragforge.mock.content import body_sha256, good_content
from ragforge.observe import silent
from ragforge.pipeline.backend import open_backend
from ragforge.pipeline.job import EARNEST, Job, Mode, OutputFile
from ragforge.refresh.queries.decisions import QueryHistory
from ragforge.refresh.queries.passages import CorpusNow
from ragforge.refresh.queries.rechecking import recheckers_of
from ragforge.refresh.queries.updating import update_queries
from ragforge.stages.recheck import PROMPT

N = 6


@pytest.fixture
def settle(tmp_path):
    """Check queries that each stand in a document of their own, through a real endpoint."""
    texts = [f"Client {number} is new. {OLD}" for number in range(N)]
    chunks = [chunk(f"c{at}", text, doc_id=f"d{at}") for at, text in enumerate(texts)]
    path = tmp_path / "chunks.jsonl"
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in chunks))
    located_queries = [_located(at, one) for at, one in enumerate(chunks)]

    async def run(url, most, mode, started):
        budget = BudgetSettings(max_calls=most)
        model = ModelSettings(name="m", base_url=url, concurrency=1)
        settings = Settings(model=model, budget=budget)
        task = asyncio.current_task()
        if started is not None:
            started.append((asyncio.get_running_loop(), task))
        place = OutputFile(tmp_path / "none.jsonl", tmp_path / "calls.db")
        async with open_backend(Job(settings, silent, mode), PROMPT, place) as backend:
            who = recheckers_of(backend, settings, silent)
            found = await update_queries(
                located_queries, (), CorpusNow(path, _no_survey), who, settings, QueryHistory(2)
            )
            return backend.estimate() if mode.dry_run else found

    return lambda url, most=None, mode=EARNEST, started=None: asyncio.run(
        run(url, most, mode, started)
    )


def _located(number, one):
    quote = query().evidence[0].model_copy(update={"doc_id": one.doc_id})
    return located("nearby change", [one], of=query(f"q{number}", evidence=(quote,)))


def _no_survey():
    raise AssertionError("nothing is gone")


def mock(path, body, number):
    """Answer as `ragforge mock` does."""
    return Reply(completion(good_content(body, body_sha256(body), 0).text))


@pytest.mark.parametrize("respond", [mock, answering])
def test_each_query_takes_one_call_to_an_endpoint(settle, respond):
    """What is rehearsed with the mock endpoint is what a model is asked."""
    with serving(respond) as endpoint:
        found = settle(endpoint.url)

    assert [item.change.action for item in found.items] == ["reverified"] * N
    assert (found.n_calls, len(endpoint.seen)) == (N, N)


def test_a_spent_budget_stops_and_keeps_what_was_bought(settle):
    """The next night goes on where this one stopped."""
    with serving(mock) as endpoint:
        with pytest.raises(BudgetError, match="max-calls"):
            settle(endpoint.url, most=2)
        found = settle(endpoint.url)

    assert (len(found.items), len(endpoint.seen)) == (N, N)


def test_an_interrupt_keeps_what_was_bought(settle):
    """Ctrl-C costs no call."""
    started = []

    def interrupting(path, body, number):
        if number == 1:
            loop, task = started[0]
            loop.call_soon_threadsafe(task.cancel)
        return mock(path, body, number)

    with serving(interrupting) as endpoint:
        with pytest.raises(asyncio.CancelledError):
            settle(endpoint.url, started=started)
        n_first = len(endpoint.seen)
        found = settle(endpoint.url)

    assert n_first < N
    assert (len(found.items), len(endpoint.seen)) == (N, N)


def test_a_refused_key_ends_the_refresh(settle):
    """Each further call would fail alike, and no query may be put out for it."""
    with (
        serving(lambda *_: Reply({"error": {"message": "no"}}, status=401)) as endpoint,
        pytest.raises(EndpointError, match="401"),
    ):
        settle(endpoint.url)


def test_a_rerun_takes_all_replies_from_the_store(settle):
    """The same version comes out, to the byte, for nothing."""
    with serving(mock) as endpoint:
        first = settle(endpoint.url)
        again = settle(endpoint.url)

    assert first.items == again.items
    assert (again.n_calls, len(endpoint.seen)) == (N, N)


def test_a_dry_run_counts_the_calls(settle):
    """Their price is known before they are made."""
    with serving(mock) as endpoint:
        estimate = settle(endpoint.url, mode=Mode(dry_run=True))

    assert (estimate["calls"], endpoint.seen) == (N, [])
