"""Rows 30, 33, 35-37, 42 and 45: clocks, descriptors, memory, duplicates, secrets and terminals."""

import asyncio
import json
import logging
import os
import pty
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fakes import Recorder, request
from faults.harness import KEY, LATENCY, finish

from ragforge.api.progress import Progress
from ragforge.llm.connect import connect
from ragforge.observe import Event, silent


@pytest.mark.parametrize("step_s", [3600.0, -3600.0], ids=["forward", "back"])
def test_a_step_of_the_clock_changes_no_pace(start, product, monkeypatch, step_s):
    """Row 30: summer time and NTP must neither stop a run nor let it burst."""
    run = product(start(latency="fixed:10"), 60)
    true, calls = time.time, Recorder()

    def stepped(event):
        calls(event)
        if len(calls.named("call")) == 30 and event.name == "call":
            monkeypatch.setattr(time, "time", lambda: true() + step_s)

    run.judge(stepped, requests_per_minute=1200)

    sends = run.endpoint.sends
    assert run.grades == run.expected
    assert 1.7 <= sends[-1] - sends[0] <= 2.6


@pytest.mark.parametrize("step_s", [3600.0, -3600.0], ids=["forward", "back"])
def test_a_clock_that_is_wrong_ends_no_run(start, product, monkeypatch, step_s):
    """Row 30: a date to wait for is compared with a clock that may be an hour off."""
    run = product(start(rpm=240, rl_headers="off", retry_after="date"), 8)
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + step_s)

    ended = run.main("-q", "--concurrency", "8")

    assert ended.code == 0
    assert run.grades == run.expected


@pytest.mark.parametrize("transport", ["aiohttp", "httpx2"])
def test_few_descriptors_lower_the_calls_at_once(start, product, transport):
    """Row 33: a container's default of 128 must not cost a pair."""
    run = product(start(latency="fixed:100"), 400)

    ended = run.run(
        "--concurrency",
        "256",
        "--transport",
        transport,
        first=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)),
    )

    assert ended.code == 0
    assert run.grades == run.expected
    assert "needs more open files" in ended.err


MEASURED = r"""
import asyncio, re, sys
from pathlib import Path
from ragforge.config import Settings
from ragforge.llm.connect import connect
from ragforge.observe import silent
from ragforge.prompts import load_prompt
from ragforge.stages.asking import Asker
from ragforge.stages.judge.llm import LLMJudge
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.runner import Work, Workers, run

url, store = sys.argv[1:]
settings = Settings.model_validate({"model": {"name": "m", "base_url": url, "concurrency": 64}})

def pairs():
    for number in range(5000):
        yield Pair("q", "How is wood waxed?", f"c{number}", f"Note {number}: wax it. " * 20)

async def judge():
    async with connect(settings, Path(store), silent) as connection:
        prompt = load_prompt("judge_relevance", "")
        judge = LLMJudge(Asker(connection.model, connection.name, settings.model, prompt))
        work = Work("judge", lambda pair: pair.key, judge.judge, Workers(64, silent))
        done = 0
        async for outcome in run(pairs(), work):
            assert outcome.failure is None, outcome.failure
            done += 1
            if done in (2000, 5000):
                print(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])

asyncio.run(judge())
"""


def test_memory_does_not_grow_with_the_calls(start, tmp_path):
    """Row 35: a set of 200,000 pairs must fit (here 2,000 and 5,000 calls, 10 %, 150 MB)."""
    running = start()
    words = [sys.executable, "-c", MEASURED, running.url, str(tmp_path / "calls.sqlite")]

    ended = subprocess.run(words, capture_output=True, text=True, timeout=90, check=True)

    early_kb, late_kb = map(int, ended.stdout.split())
    assert late_kb <= 1.1 * early_kb
    assert late_kb <= 150_000


def test_one_question_asked_fifty_times_is_one_call(start, product):
    """Row 36: duplicate chunks are common, and each must be paid once."""
    copies = product(start(latency="fixed:50"), 1)
    copies.write_pairs("The shop has beeswax." for _ in range(50))

    assert copies.main("--concurrency", "50", "-q").code == 0

    assert copies.endpoint.count("requests") == 1
    assert copies.grades == [1] * 50


def test_samples_differ_by_their_number_alone(start, product):
    """Row 36: three votes on one question are three calls, and are not asked again."""
    voted = product(start(), 1)

    async def vote():
        async with connect(voted.settings(), voted.store, silent) as connection:
            return [await connection.model.ask(request(vote=number)) for number in range(3)]

    asyncio.run(vote())
    again = asyncio.run(vote())

    assert [reply.cached for reply in again] == [True] * 3
    assert (voted.endpoint.count("billed"), voted.endpoint.count("bodies")) == (3, 1)


def other_prompt(folder):
    """Return a folder with a prompt that differs by a full stop."""
    [shipped] = Path(__file__).parents[2].glob("prompts/judge_relevance.toml")
    text = shipped.read_text(encoding="utf-8").replace("for the query.\n'''", "for the query\n'''")
    (folder / shipped.name).write_text(text, encoding="utf-8")
    return str(folder)


CHANGES = {
    "model": lambda run: ("--model", "another"),
    "address": lambda run: ("--base-url", run.endpoint.url.replace("127.0.0.1", "localhost")),
    "temperature": lambda run: ("--temperature", "0.5"),
    "seed": lambda run: ("--seed", "1"),
    "room": lambda run: ("--max-output-tokens", "500"),
    "extra": lambda run: ("--extra-body", '{"reasoning_effort": "low"}'),
    "prompt": lambda run: ("--prompts-dir", other_prompt(run.folder)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_another_question_is_another_call(start, product, change):
    """Row 37: a reply to something else is a wrong value that looks right."""
    run = product(start(), 5)
    run.main("-q")

    assert run.main("-q", *change(run)).code == 0

    assert run.endpoint.count("billed") == 10


SAME = {
    "order of keys": ("--extra-body", '{"b": {"d": 1, "c": 2}, "a": 1}'),
    "blanks": ("--extra-body", '{ "a":1,"b":{"c":2,"d":1} }'),
    "calls at once": ("--extra-body", '{"a": 1, "b": {"c": 2, "d": 1}}', "--concurrency", "2"),
}


@pytest.mark.parametrize("flags", SAME.values(), ids=SAME.keys())
def test_the_same_question_is_the_same_call(start, product, flags):
    """Row 37: how it is put down must not cost money."""
    run = product(start(), 5)
    run.main("-q", "--extra-body", '{"a": 1, "b": {"c": 2, "d": 1}}')

    assert run.main("-q", *flags).code == 0

    assert run.endpoint.count("billed") == 5


FAULTS = {
    "auth": {"auth": "sk-another"},
    "missing": {"always_status": 404},
    "quota": {"quota_after": 3},
    "errors": {"p500": 0.5, "p502_html": 0.5},
    "hang": {"p_hang": 1.0},
    "torn": {"p_abort": 0.5, "p_reset": 0.5},
    "no JSON": {"p_badbody": 0.5, "p_html200": 0.5},
    "redirect": {"redirect_to": "http://127.0.0.1:9/v1"},
    "broken": {"p_badjson": 1.0},
    "none": {},
}
WHERE = [
    *((script, "aiohttp") for script in FAULTS.values()),
    *((FAULTS[name], "httpx2") for name in ("auth", "errors", "torn")),
]


@pytest.mark.parametrize(("script", "transport"), WHERE)
def test_the_key_is_written_nowhere(start, product, script, transport, caplog):
    """Row 42: stores, logs and terminals are shown to others."""
    caplog.set_level(logging.DEBUG)
    run = product(start(**script), 6)
    flags = ("--max-attempts", "2", "--timeout-s", "0.3", "--max-wait-s", "1")

    ended = run.main(*flags, "--transport", transport)

    files = [path.read_bytes() for path in run.folder.rglob("*") if path.is_file()]
    assert len(files) > 1
    assert KEY not in ended.out + ended.err + caplog.text
    assert KEY.encode() not in b"".join(files)


def test_the_key_is_not_in_the_clients_own_debug_log(start, product):
    """Row 42: the log that people turn on when something fails."""
    run = product(start(p500=0.3), 6)

    debug = {"OPENAI_LOG": "debug", "PYTHONASYNCIODEBUG": "1"}
    ended = run.run("--transport", "httpx2", environment=debug)

    assert len(ended.err) > 1000
    assert KEY not in ended.out + ended.err


def closing(*descriptors):
    """Return what closes standard streams."""
    return lambda: [os.close(number) for number in descriptors]


@pytest.mark.parametrize(
    ("closed", "script", "code"),
    [((1,), {}, 0), ((2,), {}, 0), ((0, 1, 2), {}, 0), ((0, 1, 2), {"always_status": 404}, 4)],
)
def test_closed_streams_change_no_exit_code(start, product, closed, script, code):
    """Row 45: daemons and cron jobs have none."""
    run = product(start(**script), 20)

    ended = run.run(first=closing(*closed))

    assert ended.code == code
    assert "Traceback" not in ended.err


def on_terminal(run, columns, rows=24):
    """Run with stderr on a terminal of some width, and return exit code and what it shows."""
    ours, theirs = pty.openpty()
    shown = []
    try:
        os.set_inheritable(theirs, True)
        import fcntl
        import struct
        import termios

        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = run.begin("--concurrency", "16", stderr=theirs)
        os.close(theirs)
        reading = threading.Thread(target=_read_all, args=(ours, shown))
        reading.start()
        code = finish(process).code
        reading.join()
    finally:
        os.close(ours)
    return code, b"".join(shown).decode(errors="replace")


def _read_all(descriptor, shown):
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            return
        if not part:
            return
        shown.append(part)


@pytest.mark.parametrize("columns", [1, 80])
def test_a_narrow_terminal_is_no_error(start, product, columns):
    """Row 45: split windows and odd terminals report any width."""
    run = product(start(latency=LATENCY), 60)

    code, shown = on_terminal(run, columns)

    assert code == 0
    assert "Traceback" not in shown
    assert "60" in shown


def test_without_a_terminal_no_bar_is_drawn(start, product):
    """Row 45: a log of carriage returns cannot be read."""
    run = product(start(latency=LATENCY), 60)

    ended = run.run(environment={"CI": "true", "TERM": "dumb"})

    assert "\r" not in ended.err
    assert "\x1b" not in ended.err
    assert len(ended.err.splitlines()) < 10


def test_without_a_terminal_a_line_comes_every_half_minute(monkeypatch, capsys):
    """Row 45: CI systems end jobs that are silent."""
    progress, true = Progress(), time.monotonic
    progress(Event("stage.start", stage="judge", numbers={"total": 16.0}))
    monkeypatch.setattr(time, "monotonic", lambda: true() + 30.5)

    progress(Event("tick", stage="judge"))

    assert "judge: 0 of 16 done" in capsys.readouterr().err


def test_the_summary_as_json_is_whole_without_a_terminal(start, product):
    """Row 45: scripts read stdout while people read stderr."""
    run = product(start(), 20)

    ended = run.run("--json")

    assert json.loads(ended.out)["judged"] == 20
