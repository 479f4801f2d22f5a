import asyncio

import pytest
from fakes import FunctionModel, ScriptedModel, request
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from ragforge.config import BudgetSettings, ModelSettings
from ragforge.errors import BudgetError, CallError, ConfigError, StoppedError
from ragforge.llm.budget import BudgetedModel, Price, find_price
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.retries import AttemptError

PRICE = Price(input_usd_per_mtok=1.0, output_usd_per_mtok=2.0)


class SlowModel:
    """Takes a turn of the event loop for each reply, whose usage the test decides."""

    def __init__(self, *completions):
        self.usages = [Usage(14, completion) for completion in completions]
        self.in_flight = self.most_in_flight = self.asked = 0
        self.used = 0

    async def ask(self, request):
        usage = self.usages[self.asked % len(self.usages)]
        self.asked += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        self.in_flight -= 1
        self.used += usage.prompt_tokens + usage.completion_tokens
        return ChatReply("fine", usage=usage)


async def ask_many(model, times, **changes):
    """Ask at once; return how many calls the budget refused."""

    async def refused():
        try:
            await model.ask(request("a" * 8, **changes))
        except BudgetError:
            return 1
        return 0

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(refused()) for _ in range(times)]
    return sum(task.result() for task in tasks)


def test_calls_beyond_the_limit_are_not_made():
    """A user who allows ten calls gets at most ten on the bill."""
    inner = SlowModel(5)

    refused = asyncio.run(ask_many(BudgetedModel(inner, BudgetSettings(max_calls=10), None), 32))

    assert (inner.asked, refused) == (10, 22)


def test_failed_attempts_count_as_calls():
    """An attempt that timed out may be billed all the same."""
    inner = ScriptedModel([AttemptError("timed out"), ChatReply("fine")])
    model = BudgetedModel(inner, BudgetSettings(max_calls=1), None)

    with pytest.raises(AttemptError, match="timed out"):
        asyncio.run(model.ask(request()))
    with pytest.raises(BudgetError, match="--max-calls 1 is reached"):
        asyncio.run(model.ask(request()))

    assert len(inner.asked) == 1


def test_a_call_that_a_stop_held_back_is_given_back():
    """What was never sent is no part of the bill, and of a limit that workers share it was lost."""

    def stop(request):
        raise StoppedError("the run is being stopped")

    model = BudgetedModel(FunctionModel(stop), BudgetSettings(max_calls=10), None)

    with pytest.raises(StoppedError):
        asyncio.run(model.ask(request("a")))

    assert (model.account.used, model.account.in_flight) == ((0, 0, 0.0), 0)


def test_a_call_that_is_given_up_on_its_way_counts_as_the_most_it_can_take():
    """A second Ctrl-C, or a reply that takes longer than a stop waits, leaves it to be billed."""
    noted = []

    def note(request, error):
        noted.append(str(error))

    model = BudgetedModel(SlowModel(5), BudgetSettings(), PRICE, note)

    async def give_up():
        asked = asyncio.create_task(model.ask(request("a" * 8, max_output_tokens=100)))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait([asked])
        return asked.cancelled()

    assert asyncio.run(give_up())
    assert model.calls == 1
    assert model.tokens > 100
    assert noted == ["it was given up before its reply came"]


@pytest.mark.parametrize("completions", [(1, 100), (100, 1), (5, 5, 5, 100), (100,), (0,)])
def test_tokens_stay_below_the_limit_whatever_the_replies_take(completions):
    """Replies vary in length; a limit that holds only on average is none."""
    inner = SlowModel(*completions)
    model = BudgetedModel(inner, BudgetSettings(max_tokens=1000), None)

    asyncio.run(ask_many(model, 200, max_output_tokens=100))

    assert inner.used == model.tokens
    assert 1000 - 114 < model.tokens <= 1000


def test_money_stays_below_the_limit_and_is_used():
    """This is the promise a user relies on with a credit card."""
    inner = SlowModel(1, 100)
    model = BudgetedModel(inner, BudgetSettings(max_cost_usd=0.001), PRICE)

    asyncio.run(ask_many(model, 200, max_output_tokens=100))

    assert 0.001 - PRICE.cost_usd(Usage(14, 100)) < model.cost_usd <= 0.001


def test_a_wide_budget_does_not_slow_the_calls_down():
    """Waiting for others is for the end of a budget only."""
    inner = SlowModel(5)

    asyncio.run(ask_many(BudgetedModel(inner, BudgetSettings(max_tokens=10**6), None), 32))

    assert inner.most_in_flight == 32


def test_a_call_waits_for_those_whose_end_may_make_room():
    """Reserving for the longest reply must not end a run while most of its budget is free."""
    inner = SlowModel(1)
    model = BudgetedModel(inner, BudgetSettings(max_tokens=300), None)

    refused = asyncio.run(ask_many(model, 10, max_output_tokens=100))

    assert refused == 0
    assert inner.most_in_flight == 2


def test_a_failed_attempt_gives_its_reservation_back():
    """Else a run of refused calls would use up a budget that nobody billed."""
    inner = ScriptedModel([CallError("error", "400")] * 5 + [ChatReply("fine")])
    model = BudgetedModel(inner, BudgetSettings(max_tokens=150), None)

    async def ask_in_turn():
        for _ in range(5):
            with pytest.raises(CallError, match="400"):
                await model.ask(request(max_output_tokens=100))
        return await model.ask(request(max_output_tokens=100))

    assert asyncio.run(ask_in_turn()).text == "fine"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (BudgetSettings(max_tokens=50), "--max-tokens 50 is reached: 0 used, .* may take 109"),
        (
            BudgetSettings(max_cost_usd=1e-5),
            "--max-cost-usd 1e-05 is reached: 0.0000 spent, .* may take 0.0002",
        ),
    ],
)
def test_the_message_says_what_is_spent_and_what_the_next_call_needs(limits, message):
    """A user must see how far to raise the limit."""
    model = BudgetedModel(SlowModel(1), limits, PRICE)

    with pytest.raises(BudgetError, match=message):
        asyncio.run(model.ask(request("a" * 8, max_output_tokens=97)))


def test_a_limit_in_dollars_needs_a_price():
    """Without a price the limit would never be reached."""
    with pytest.raises(ConfigError, match="--max-cost-usd: the price of the model is not known"):
        BudgetedModel(SlowModel(1), BudgetSettings(max_cost_usd=1), None)


@pytest.fixture(autouse=True)
def no_address(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_the_price_of_a_user_goes_before_the_table():
    """Contracts differ from list prices."""
    given = BudgetSettings(input_usd_per_mtok=7, output_usd_per_mtok=8)

    assert find_price("gpt-4o-mini", "", given) == Price(7, 8)


def test_a_well_known_model_has_a_price():
    """Cost must be known without work of the user's where it can be."""
    price = find_price("gpt-4o-mini", "", BudgetSettings())

    assert price.input_usd_per_mtok > 0
    assert price.output_usd_per_mtok > price.input_usd_per_mtok


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("nobody-knows-this-1", BudgetSettings()),
        ("local:model.gguf", BudgetSettings()),
        ("nobody-knows-this-1", BudgetSettings(input_usd_per_mtok=1)),
    ],
)
def test_an_unknown_price_is_none_and_never_zero(model, settings):
    """A cost of 0.00 would be believed."""
    assert find_price(model, "http://127.0.0.1:1/v1", settings) is None


@pytest.mark.parametrize("host", ["localhost:8000", "vllm", "10.0.0.7:8000", "[::1]:8000"])
def test_a_server_without_a_domain_asks_no_known_price(host):
    """The name of a model is another's on a machine of one's own."""
    assert find_price("gpt-4o-mini", f"http://{host}/v1", BudgetSettings()) is None


def test_an_address_of_the_environment_counts_as_one_that_is_named(monkeypatch):
    """The same server had a price by one and none by the other."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")

    assert find_price("gpt-4o-mini", ModelSettings().address, BudgetSettings()) is None


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("claude-sonnet-4-5", "https://api.anthropic.com/v1"),
        ("gpt-5.5", "https://api.openai.com/v1"),
    ],
)
def test_a_price_is_that_of_short_requests(model, address):
    """Prompts of a hundred thousand tokens cost more each, and hardly any request is one."""
    price = find_price(model, address, BudgetSettings())
    table = calc_price(
        PricedUsage(input_tokens=300, output_tokens=100), model_ref=model, provider_api_url=address
    )

    assert price.cost_usd(Usage(300, 100)) == pytest.approx(float(table.total_price))


def test_a_providers_address_has_its_price():
    """Naming the address that is asked anyway changes no sum."""
    named = find_price("gpt-4o-mini", "https://api.openai.com/v1", BudgetSettings())

    assert named == find_price("gpt-4o-mini", "", BudgetSettings())


def test_a_free_model_costs_nothing():
    """0 is a price a user may state."""
    free = find_price("mine", "", BudgetSettings(input_usd_per_mtok=0, output_usd_per_mtok=0))

    assert free.cost_usd(Usage(10, 10)) == 0


def test_cost_is_tokens_times_price():
    """A slip of a factor here is a wrong bill."""
    assert PRICE.cost_usd(Usage(2_000_000, 500_000)) == pytest.approx(3.0)


def test_the_reply_passes_through():
    """A budget changes nothing about what is said."""
    reply = ChatReply("fine")
    model = BudgetedModel(FunctionModel(lambda _: reply), BudgetSettings(), None)

    assert asyncio.run(model.ask(request())) is reply


def test_a_reply_that_says_less_than_nothing_gives_nothing_back():
    """Who answers must not decide that the budget is larger."""
    model = BudgetedModel(SlowModel(-(10**6)), BudgetSettings(max_tokens=2000), PRICE)

    asyncio.run(model.ask(request("a" * 8)))

    assert (model.tokens, model.cost_usd) == (14, 14e-6)
