import asyncio
from contextlib import closing

import pytest
from endpoint import Reply, fault
from fakes import Recorder

from ragforge.errors import BudgetError, CallError, ConfigError, EndpointError
from ragforge.llm.budget import BudgetAccount
from ragforge.llm.chat import DryRunError
from ragforge.llm.embedder import open_embedder
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.ledger import read_ledger
from ragforge.llm.store.transfer import ExportCounts, export_lines, import_file
from ragforge.llm.wire import EMBEDDINGS
from ragforge.observe import silent

BUSY = fault(429, "slow down", retry_after_ms="1")
TEXTS = [str(number) for number in range(130)]
VECTORS = [[float(number), 1.0] for number in range(130)]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    """Give the endpoint a key, as its users have one."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def vectors_of(path, body, number):
    rows = [{"index": i, "embedding": [float(t), 1.0]} for i, t in enumerate(body["input"])]
    return Reply({"data": rows, "model": "e-1", "usage": {"prompt_tokens": 7, "total_tokens": 7}})


@pytest.fixture
def endpoint(serve):
    """Tells of a text what number it is."""
    return serve(vectors_of)


@pytest.fixture
def path(tmp_path):
    """The call store."""
    return tmp_path / "calls.sqlite"


@pytest.fixture
def embed(path, settings_for):
    """Embed texts in a session of its own, and return the vectors and what was counted."""

    def session(url, *calls, observer=silent, budget=None, account=None, **mode):
        async def run():
            settings = settings_for(url, budget, embedding_model="e")
            async with open_embedder(settings, path, observer, account, **mode) as embedder:
                return [vector for texts in calls for vector in await embedder.embed(texts)]

        return asyncio.run(run())

    return session


def test_embeddings_are_made_in_batches_and_retried(serve, embed):
    """A corpus is larger than one request, and a busy moment must not end the run."""
    endpoint = serve(lambda *call: BUSY if call[2] == 0 else vectors_of(*call))

    assert embed(endpoint.url, TEXTS) == VECTORS
    assert [len(body["input"]) for body in endpoint.bodies] == [64, 64, 64, 2]
    assert {seen.path for seen in endpoint.seen} == {"/v1/embeddings"}


def test_a_second_session_asks_nothing(endpoint, embed):
    """What was bought once is kept."""
    first = embed(endpoint.url, TEXTS)

    assert embed(endpoint.url, TEXTS) == first
    assert len(endpoint.seen) == 3


def test_equal_texts_at_once_are_one_call(endpoint, path, settings_for):
    """Queries are embedded concurrently, and some are equal."""

    async def run():
        settings = settings_for(endpoint.url, embedding_model="e")
        async with open_embedder(settings, path, silent) as embedder:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(embedder.embed(["5"])) for _ in range(9)]
            return [task.result() for task in tasks]

    assert asyncio.run(run()) == [[[5.0, 1.0]]] * 9
    assert len(endpoint.seen) == 1


def test_a_stop_by_the_budget_loses_nothing(endpoint, embed):
    """The rerun goes on from where the money ran out."""
    with pytest.raises(BudgetError, match="--max-calls 2 is reached"):
        embed(endpoint.url, TEXTS, budget={"max_calls": 2})

    assert embed(endpoint.url, TEXTS) == VECTORS
    assert len(endpoint.seen) == 3


def test_tokens_are_limited(endpoint, embed):
    """Embedding a corpus is what most of the tokens go for."""
    with pytest.raises(BudgetError, match="--max-tokens 300 is reached: 7 used"):
        embed(endpoint.url, TEXTS, budget={"max_tokens": 300})


def test_the_budget_is_shared(endpoint, embed):
    """What embeddings took is not there for the judge."""
    account = BudgetAccount()
    embed(endpoint.url, TEXTS, account=account)

    assert (account.calls, account.spent.tokens) == (3, 21)


def test_a_price_that_nobody_knows_is_told_under_a_limit_in_dollars(endpoint, embed):
    """What cannot be counted cannot be limited."""
    with pytest.raises(ConfigError, match="price of the embedding model 'e' is not known"):
        embed(endpoint.url, TEXTS, budget={"max_cost_usd": 1.0})
    assert endpoint.seen == []


def test_the_ledger_counts_embeddings(endpoint, embed, path):
    """The bill of the endpoint counts them, too."""
    prices = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 8.0}
    embed(endpoint.url, TEXTS, budget=prices)

    [model] = read_ledger(path).models
    spent = model.spent
    assert (model.model, model.estimated) == ("e", 0)
    assert (spent.calls, spent.prompt_tokens, spent.completion_tokens) == (3, 21, 0)
    assert spent.cost_usd == 0.000021


def test_replies_without_words_count_in_no_average(endpoint, embed, path):
    """A server may give chat and embeddings one name; dry runs go by the length of its replies."""
    embed(endpoint.url, TEXTS)

    with closing(CallStore(path)) as store:
        assert store.recent_averages(endpoint.url, "e") is None


@pytest.mark.parametrize(
    ("model", "budget", "cost_usd"),
    [
        ("text-embedding-3-small", {}, 0.02),
        ("text-embedding-3-small", {"input_usd_per_mtok": 9, "output_usd_per_mtok": 9}, 0.02),
        ("gemini-embedding-001", {}, 0.15),
        ("mine", {"input_usd_per_mtok": 9, "output_usd_per_mtok": 9}, 9.0),
        ("mine", {}, None),
    ],
)
def test_the_price_is_the_embedding_models_own(path, settings_for, model, budget, cost_usd):
    """What the user gives is the price of the model that writes, a hundred times as much."""

    async def run():
        settings = settings_for("", budget, embedding_model=model)
        async with open_embedder(settings, path, silent, dry_run=True) as embedder:
            with pytest.raises(DryRunError, match="dry run"):
                await embedder.embed(["x" * 3_999_984])
            return embedder.estimate()["cost_usd"]

    assert asyncio.run(run()) == cost_usd


def test_a_replay_asks_nothing(endpoint, embed):
    """It is for machines without network."""
    embed(endpoint.url, TEXTS)

    assert embed(endpoint.url, TEXTS, replay=True) == VECTORS
    assert len(endpoint.seen) == 3


def test_a_replay_names_what_is_missing(endpoint, embed):
    """A vector cannot be made up."""
    with pytest.raises(EndpointError, match=r"--offline-replay: .* holds no reply of 'e'"):
        embed(endpoint.url, TEXTS, replay=True)
    assert endpoint.seen == []


def test_a_dry_run_counts_calls_that_are_missing(endpoint, embed, path, settings_for):
    """All of them, not only the first."""
    embed(endpoint.url, TEXTS[:64])

    async def run():
        settings = settings_for(endpoint.url, embedding_model="e")
        async with open_embedder(settings, path, silent, dry_run=True) as embedder:
            with pytest.raises(DryRunError, match="dry run"):
                await embedder.embed(TEXTS)
            return embedder.estimate()

    assert asyncio.run(run()) == {
        "calls": 2,
        "cached": 1,
        "prompt_tokens": 304,
        "cost_usd": None,
    }
    assert len(endpoint.seen) == 1


def test_rows_travel_to_another_store(endpoint, embed, path, tmp_path):
    """A colleague takes the replies over and embeds nothing."""
    embed(endpoint.url, TEXTS)
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(export_lines(path, ExportCounts())))
    path.unlink()

    told = import_file(file, path)

    assert (told.rows, told.faults) == (3, [])
    assert embed(endpoint.url, TEXTS) == VECTORS
    assert len(endpoint.seen) == 3


def test_a_row_without_vectors_is_no_vector(endpoint, embed, path):
    """An imported row may hold any text; it must not become a ranking."""
    embed(endpoint.url, ["1"])
    with closing(CallStore(path)) as store:
        [row] = store.rows()
        reply = store.get(row.key)
        assert reply is not None
        object.__setattr__(reply, "text", "fine")
        store.put(row.key, "x", "e", reply, None)

    with pytest.raises(CallError, match="embeddings: the reply holds no vectors"):
        embed(endpoint.url, ["1"])


def test_observers_are_told_of_calls_and_not_of_texts(endpoint, embed):
    """A whole corpus in a trace helps nobody."""
    recorder = Recorder()
    embed(endpoint.url, TEXTS, TEXTS, observer=recorder)

    calls = [event for event in recorder.events if event.name == "call"]
    assert [event.outcome for event in calls] == ["done"] * 3 + ["cached"] * 3
    assert {(event.content, event.labels["schema"]) for event in calls} == {((), EMBEDDINGS)}


def test_without_a_model_there_is_no_embedder(path, settings_for):
    """Nothing is opened, and nothing made."""

    async def run():
        async with open_embedder(settings_for("http://127.0.0.1:9/v1"), path, silent) as embedder:
            return embedder

    assert asyncio.run(run()) is None
    assert not path.exists()


def test_what_is_never_used_opens_nothing(endpoint, embed, path):
    """A run by words needs no key because a model for embeddings is set."""
    assert embed(endpoint.url) == []
    assert not path.exists()
