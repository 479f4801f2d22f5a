"""Row 25: what may be spent, counted at the endpoint.

Table: 400 calls, 64 at once, a cap of 40 % and a fifth of the attempts failing. Here: 160 calls and
a cap of 50 %, because replies of 50 tokens are reserved at 256 each.
"""

import pytest

IN_USD, OUT_USD = 2.0, 8.0
PRICED = ("--input-usd-per-mtok", str(IN_USD), "--output-usd-per-mtok", str(OUT_USD))
MODEL = ("--concurrency", "64", "--max-output-tokens", "256", "-q")


def cost_usd(running):
    """Return what the endpoint would charge."""
    paid = running.count("prompt_tokens") * IN_USD + running.count("completion_tokens") * OUT_USD
    return paid / 1e6


@pytest.fixture(scope="module")
def whole_usd(tmp_path_factory):
    """What a run without faults costs."""
    from faults.harness import Product, endpoint

    with endpoint() as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-any")
        Product(tmp_path_factory.mktemp("whole"), running, 160).main(*MODEL, *PRICED)
        return cost_usd(running)


@pytest.fixture
def capped(start, product, whole_usd):
    """A run that is stopped by half of what it takes; a fifth of its attempts fail unbilled."""
    cap_usd = 0.5 * whole_usd
    run = product(start(latency="lognorm:30,0.4", p500=0.1, p503=0.1), 160)
    return run, cap_usd, run.main(*MODEL, *PRICED, "--max-cost-usd", f"{cap_usd:.6f}")


def test_no_more_is_spent_than_allowed(capped):
    """Calls in flight are reserved, so that no reply comes on top."""
    run, cap_usd, _ = capped

    assert 0.8 * cap_usd <= cost_usd(run.endpoint) <= cap_usd


def test_a_budget_has_its_exit_code(capped):
    """A nightly job tells a spent budget from a broken endpoint."""
    _, _, ended = capped

    assert ended.code == 5
    assert "--max-cost-usd" in ended.err


def test_a_higher_budget_goes_on_with_the_rest(capped, whole_usd):
    """What was bought stays bought."""
    run, _, _ = capped

    ended = run.main(*MODEL, *PRICED, "--max-cost-usd", f"{2 * whole_usd:.6f}")

    assert ended.code == 0
    assert run.grades == run.expected
    assert run.endpoint.count("dup") == 0


def test_the_ledger_is_the_bill(capped):
    """Not a token more or less than the endpoint counted."""
    run, _, _ = capped
    run.main(*MODEL, *PRICED)

    [(prompt, completion, usd)] = run.ask_store(
        "SELECT SUM(prompt_tokens), SUM(completion_tokens), TOTAL(cost_usd) FROM calls"
    )
    billed = (run.endpoint.count("prompt_tokens"), run.endpoint.count("completion_tokens"))
    assert (prompt, completion) == billed
    assert usd == pytest.approx(cost_usd(run.endpoint), abs=1e-9)


@pytest.mark.parametrize(
    "script", [{"p_abort": 0.2}, {"p_hang": 0.1}, {"p_empty": 0.2}, {"p_badjson": 0.2}],
    ids=["abort", "hang", "empty", "badjson"],
)  # fmt: skip
def test_replies_that_are_billed_for_nothing_count(start, product, whole_usd, script):
    """The provider charges for them."""
    cap_usd = 0.5 * whole_usd
    run = product(start(latency="fixed:10", **script), 160)

    ended = run.main(*MODEL, *PRICED, "--max-cost-usd", f"{cap_usd:.6f}", "--timeout-s", "0.5")

    assert ended.code == 5
    assert cost_usd(run.endpoint) <= cap_usd


def test_tokens_are_limited_like_money(start, product):
    """Local models have no price."""
    run = product(start(latency="fixed:10", p500=0.2), 160)

    ended = run.main(*MODEL, "--max-tokens", "22000")

    assert ended.code == 5
    assert run.endpoint.count("prompt_tokens") + run.endpoint.count("completion_tokens") <= 22_000


def test_calls_are_limited_attempts_included(start, product):
    """What counts is what the endpoint sees."""
    run = product(start(p500=0.2), 160)

    assert run.main(*MODEL, "--max-calls", "60").code == 5

    assert run.endpoint.count("requests") == 60
