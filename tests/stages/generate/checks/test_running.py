import asyncio

import pytest
from checker import Checker, anchored, reading, shown, verdicts
from fakes import Recorder

from ragforge.errors import BudgetError, CallError
from ragforge.stages.generate.checks.batches import item_of
from ragforge.stages.generate.checks.checking import GateProgress, check_each
from ragforge.stages.runner import Workers

TWO = ("Model A has port 80.", "Port 80 is slow.")


class Stored:
    """What a call store and a budget do around a model: replies are kept, and calls run out."""

    def __init__(self, checker, most):
        self.asked = checker.model.reply
        self.kept = {}
        self.most = most

    def __call__(self, request):
        key = (request.schema_name, *request.messages)
        if key not in self.kept:
            if len(self.kept) >= self.most:
                raise BudgetError(f"--max-calls {self.most} is reached")
            self.kept[key] = self.asked(request)
        return self.kept[key]


def candidates():
    found = [anchored(number) for number in range(9)]
    return [*found, anchored(9, type="multi_hop", quotes=TWO), anchored(10, type="unanswerable")]


@pytest.mark.parametrize("most", range(0, 16, 3))
def test_a_rerun_behind_a_used_up_budget_pays_for_nothing_twice(most):
    """Replies that were paid for are found again, because the same is asked."""
    whole = Checker(concurrency=1)
    stored = whole.model.reply = Stored(whole, 1000)
    told = [each.gates for each in whole(*candidates())]
    total = len(stored.kept)
    parted = Checker(concurrency=1)
    stored = parted.model.reply = Stored(parted, most)

    with pytest.raises(BudgetError, match="is reached"):
        parted(*candidates())
    assert len(stored.kept) == most
    stored.most = 1000
    found = [each.gates for each in parted(*candidates())]

    assert len(stored.kept) == total
    assert [[one.verdict for one in each] for each in found] == [
        [one.verdict for one in each] for each in told
    ]


def test_a_bug_in_a_check_is_no_pass():
    """Any error stands between a candidate and its pass."""

    def broken(request):
        raise ZeroDivisionError("oops")

    checked = Checker({"evidence_answer": broken})(anchored())

    assert verdicts(checked) == {"self_contained": "pass", "independent_answer": "unknown"}
    assert checked.failures[0].message.startswith("ZeroDivisionError: oops (traceback in ")


def test_a_bug_in_a_batch_is_no_pass():
    """Nor is one that concerns several at once."""

    def broken(request):
        raise ZeroDivisionError("oops")

    found = Checker({"questions_check": broken})(anchored(0), anchored(1))

    assert [verdicts(each) for each in found] == [{"self_contained": "unknown"}] * 2


def test_one_failure_concerns_one_candidate():
    """The others of its window are checked all the same."""

    def say(request):
        if "client 1?" in shown(request, "question"):
            raise CallError("error", "gone")
        return reading(request)

    found = Checker({"evidence_answer": say})(*(anchored(number) for number in range(3)))

    assert [each.passed for each in found] == [True, False, True]
    assert [failure.key for each in found for failure in each.failures] == ["000001-0/0"]


def test_failures_keep_the_keys_of_what_was_no_use():
    """They are forgotten when what failed is asked again."""
    checked = Checker({"evidence_answer": lambda request: "no JSON"})(anchored())

    [failure] = checked.failures
    assert (failure.what, failure.kind, failure.raw) == ("check", "invalid", "no JSON")
    assert failure.call_keys == ("key of 2", "key of 3")


def test_an_observer_is_told_of_each_unit():
    """Checks take most of the calls of a generation, and should be seen to go on."""
    recorder = Recorder()

    async def nothing(progress):
        return None

    under_way = [GateProgress(item_of(each)) for each in candidates()[:3]]
    asyncio.run(check_each(under_way, nothing, Workers(2, recorder)))

    assert [event.stage for event in recorder.named("unit")] == ["check"] * 3
