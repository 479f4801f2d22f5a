import asyncio
import itertools
from contextlib import aclosing
from dataclasses import replace

import pytest
from fakes import Recorder

from ragforge.errors import BudgetError, CallError, DataError, EndpointError
from ragforge.observe import silent
from ragforge.records import Failure
from ragforge.stages import runner
from ragforge.stages.runner import Collected, Work, Workers, collect, run


def work(do, concurrency=4, observer=silent):
    return Work(stage="judge", key=str, do=do, workers=Workers(concurrency, observer))


async def double(unit):
    await asyncio.sleep(0)
    return 2 * unit


async def outcomes_of(units, job):
    return [outcome async for outcome in run(units, job)]


async def until_raised(units, job):
    """Return what was yielded before the run raised, and what it raised."""
    seen = []
    try:
        async for outcome in run(units, job):
            seen.append(outcome)
    except Exception as error:  # noqa: BLE001  # the test looks at it
        return seen, error
    return seen, None


def test_every_unit_has_one_outcome():
    """A unit that is lost would silently shrink the set."""
    outcomes = asyncio.run(outcomes_of(range(100), work(double)))

    assert sorted((outcome.unit, outcome.result) for outcome in outcomes) == [
        (unit, 2 * unit) for unit in range(100)
    ]


def test_no_units_have_no_outcome():
    """A rerun with nothing left to do is the usual case."""
    assert asyncio.run(outcomes_of([], work(double))) == []


class Gauge:
    """Work that knows how much of it is under way."""

    def __init__(self):
        self.now = self.most = 0

    async def __call__(self, unit):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return unit


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_as_many_units_are_in_work_as_allowed(concurrency):
    """More would break the user's limit, fewer would waste the user's time."""
    gauge = Gauge()

    asyncio.run(outcomes_of(range(40), work(gauge, concurrency)))

    assert gauge.most == concurrency


def test_a_failure_is_told_from_a_value():
    """An exception must never become a grade."""

    async def fail_odd(unit):
        if unit % 2:
            raise CallError("refused", "no", "raw reply")
        return unit

    outcomes = asyncio.run(outcomes_of(range(2), work(fail_odd)))

    assert [(outcome.result, outcome.failure) for outcome in outcomes] == [
        (0, None),
        (None, Failure(what="judge", key="1", kind="refused", message="no", raw="raw reply")),
    ]


def test_a_bug_in_one_unit_is_a_failure_of_that_unit():
    """One odd chunk must not cost a run of hours."""

    async def crash(unit):
        return {}["missing"]

    [outcome] = asyncio.run(outcomes_of([7], work(crash)))

    assert outcome.failure.kind == "error"
    assert outcome.failure.message.startswith("KeyError: 'missing' (traceback in ")


def test_a_bug_keeps_its_traceback_in_a_log(tmp_path, monkeypatch):
    """Its type and message alone do not say where it is; the same bug names the same log."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def crash(unit):
        return {}[unit]

    outcomes = asyncio.run(outcomes_of([7, 8], work(crash)))

    [log] = tmp_path.iterdir()
    assert "in crash\n" in log.read_text(encoding="utf-8")
    assert {outcome.failure.message for outcome in outcomes} == {
        f"KeyError: {unit} (traceback in {log.name}, where temporary files are)" for unit in (7, 8)
    }


def test_a_bug_that_cannot_keep_its_traceback_is_a_failure_all_the_same(tmp_path, monkeypatch):
    """A full disk must not turn one odd chunk into the end of a run."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))

    async def crash(unit):
        return {}["missing"]

    [outcome] = asyncio.run(outcomes_of([7], work(crash)))

    assert outcome.failure.message == "KeyError: 'missing'"


def test_a_unit_whose_own_work_is_cancelled_is_a_failure_and_no_hang():
    """A library may cancel its own task; a worker that died of it would never be missed."""

    async def cancelled(unit):
        raise asyncio.CancelledError

    [outcome] = asyncio.run(asyncio.wait_for(outcomes_of([7], work(cancelled, 1)), 5))

    assert outcome.failure.message.startswith("CancelledError: ")


def test_a_failure_can_always_be_written():
    """A lone surrogate in a reply must not make the whole failures file unwritable."""

    async def fail(unit):
        raise CallError("invalid", "got '\ud800'", "\udfff")

    [outcome] = asyncio.run(outcomes_of([1], work(fail)))

    assert (outcome.failure.message, outcome.failure.raw) == ("got '\\ud800'", "\\udfff")


@pytest.mark.parametrize("error", [BudgetError("spent"), DataError("disk full")])
def test_what_ends_the_run_is_raised_behind_what_was_done(error):
    """The stop must lose nothing that was paid for."""

    async def stop_at_five(unit):
        if unit == 5:
            raise error
        return unit

    seen, raised = asyncio.run(until_raised(range(100), work(stop_at_five, 1)))

    assert [outcome.result for outcome in seen] == [0, 1, 2, 3, 4]
    assert raised is error


def test_a_stop_cancels_what_is_in_work():
    """After a stop no further call may be made."""
    ended = []

    async def hang(unit):
        if unit == 2:
            raise BudgetError("spent")
        try:
            await asyncio.sleep(0.1)
        finally:
            ended.append(unit)

    _, raised = asyncio.run(until_raised(range(10), work(hang, 3)))

    assert isinstance(raised, BudgetError)
    assert sorted(ended) == [0, 1]


def test_an_error_of_the_source_is_raised():
    """A chunks file that breaks off must not look like one that ends."""

    def broken():
        yield 1
        raise DataError("chunks.jsonl:2: is cut off")

    seen, raised = asyncio.run(until_raised(broken(), work(double, 1)))

    assert [outcome.result for outcome in seen] == [2]
    assert isinstance(raised, DataError)


def test_units_are_taken_only_when_a_worker_is_free():
    """Corpora do not fit in memory, and some sources never end."""
    taken = []
    source = (taken.append(unit) or unit for unit in itertools.count())

    async def first_five():
        async with aclosing(run(source, work(double, 2))) as outcomes:
            return [(await anext(outcomes)).result for _ in range(5)]

    assert len(asyncio.run(first_five())) == 5
    assert len(taken) <= 5 + 2 * 2 + 2


def test_a_consumer_that_leaves_ends_the_work():
    """An interrupt must not leave calls running behind."""
    ended = []

    async def hang_later(unit):
        try:
            await asyncio.sleep(60 if unit else 0)
        finally:
            ended.append(unit)

    async def leave():
        async with aclosing(run(range(10), work(hang_later, 3))) as outcomes:
            await anext(outcomes)

    asyncio.run(leave())

    assert sorted(ended) == [0, 1, 2, 3]


async def gather(units, job, blank=None):
    kept = []
    try:
        await collect(units, replace(job, blank=blank), keep=kept.append)
    except BudgetError:
        kept.append("stopped")
    return kept


async def fail_two(unit):
    if unit == 2:
        raise CallError("invalid", "no")
    return unit


def test_results_and_failures_are_kept_once_at_the_end():
    """Files are written whole."""
    [collected] = asyncio.run(gather([1, 2], work(fail_two)))

    assert collected.results == [1]
    assert [failure.key for failure in collected.failures] == ["2"]


def test_a_blank_stands_for_a_failed_unit():
    """An unjudged pair must be visible in the judgments, without a grade."""
    blank = lambda unit, failure: (unit, failure.kind)  # noqa: E731  # shorter than a def

    [collected] = asyncio.run(gather([2], work(fail_two), blank))

    assert collected.results == [(2, "invalid")]


def test_a_stop_hands_over_what_is_done():
    """Work that is done survives the end of the budget."""

    async def stop_at_three(unit):
        if unit == 3:
            raise BudgetError("spent")
        return unit

    collected, stopped = asyncio.run(gather([1, 2, 3, 4], work(stop_at_three, 1)))

    assert collected == Collected([1, 2], [])
    assert stopped == "stopped"


def test_progress_is_told_unit_by_unit():
    """The user must see how far a run is and how much of it fails."""
    recorder = Recorder()

    asyncio.run(gather([1, 2], work(fail_two, 1, recorder)))

    assert [(event.name, event.outcome) for event in recorder.events] == [
        ("stage.start", ""),
        ("unit", "done"),
        ("unit", "failed"),
        ("stage.end", ""),
    ]
    assert recorder.events[0].numbers == {"total": 2.0}


def test_a_long_unit_is_accompanied_by_signs_of_life(monkeypatch):
    """Progress must go on being told while a single call takes minutes."""
    monkeypatch.setattr(runner, "TICK_S", 0.001)
    ticked = asyncio.Event()

    def observe(event):
        if event.name == "tick":
            ticked.set()

    async def until_ticked(unit):
        await ticked.wait()
        return unit

    job = work(until_ticked, observer=observe)

    assert [outcome.result for outcome in asyncio.run(outcomes_of([1], job))] == [1]


def stopped_by(error, *, lasting_s=0.05):
    """Run three units of which the last raises, and return the others' ends and the stops told."""
    ended, stops = [], []

    async def last_raises(unit):
        if unit == 2:
            raise error
        try:
            await asyncio.sleep(lasting_s)
        except asyncio.CancelledError:
            ended.append((unit, "cut"))
            raise
        ended.append((unit, "done"))
        return unit

    job = work(last_raises, 3)
    job = replace(job, workers=replace(job.workers, on_stop=lambda: stops.append("stop")))
    seen, raised = asyncio.run(until_raised(range(10), job))
    assert raised is error
    return sorted(ended), [outcome.result for outcome in seen], stops


def test_calls_in_flight_are_finished_when_the_endpoint_gives_up():
    """They are paid for; what they say must be kept."""
    ended, results, stops = stopped_by(EndpointError("quota"))

    assert ended == [(0, "done"), (1, "done")]
    assert sorted(results) == [0, 1]
    assert stops == ["stop"]


def test_calls_in_flight_get_only_so_long(monkeypatch):
    """An endpoint that hangs must not hold the message back for minutes."""
    monkeypatch.setattr(runner, "DRAIN_S", 0.05)

    ended, results, _ = stopped_by(EndpointError("down"), lasting_s=30)

    assert ended == [(0, "cut"), (1, "cut")]
    assert results == []


def test_what_cannot_be_kept_is_not_waited_for():
    """Behind a full disk every reply would be bought in vain."""
    ended, _, stops = stopped_by(DataError("disk full"), lasting_s=30)

    assert ended == [(0, "cut"), (1, "cut")]
    assert stops == []


def test_an_interrupt_lets_calls_in_flight_end():
    """Ctrl-C is no reason to throw away what is paid for."""
    results = []

    async def slow(unit):
        await asyncio.sleep(0.1)
        return unit

    async def consume():
        async with aclosing(run(range(100), work(slow, 2))) as outcomes:
            async for outcome in outcomes:
                results.append(outcome.result)

    async def interrupted():
        task = asyncio.create_task(consume())
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())

    assert sorted(results) == [0, 1]


def test_a_second_interrupt_stops_at_once():
    """Who presses Ctrl-C twice means it."""

    async def consume():
        async with aclosing(run(range(100), work(lambda unit: asyncio.sleep(30), 2))) as outcomes:
            async for _ in outcomes:
                pass

    async def interrupted():
        task = asyncio.create_task(consume())
        for _ in range(2):
            await asyncio.sleep(0.05)
            task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(asyncio.wait_for(interrupted(), 5))
