import asyncio

import pytest

from ragforge.errors import BudgetError, CallError
from ragforge.stages.asking import together


async def late(value, kept):
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    kept.append(value)
    return value


async def failing(error):
    raise error


def test_results_and_errors_come_in_order(wait):
    """Whoever voted what must be told from who failed."""
    error = CallError("refused", "no")

    assert wait(together([late(1, []), failing(error), late(3, [])])) == [1, error, 3]


def test_what_is_in_flight_is_waited_for_when_the_budget_ends(wait):
    """It is paid for; a reply that is thrown away is bought again."""
    kept = []

    with pytest.raises(BudgetError, match="spent"):
        wait(together([late(1, kept), failing(BudgetError("spent")), late(3, kept)]))

    assert kept == [1, 3]


def test_a_cancelled_caller_cancels_its_parts(wait):
    """A second Ctrl-C stops at once."""
    kept = []

    async def go():
        task = asyncio.ensure_future(together([late(1, kept)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    wait(go())

    assert kept == []
