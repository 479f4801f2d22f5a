"""The engine beside other clients of OpenAI-compatible endpoints, on the same jobs in one run.

Each job is a judge's: a prompt of 1.5 KB, a reply that is parsed and checked. `ragforge mock`
answers in a process of its own; each client runs in a fresh process. ragforge stores every reply
(SQLite, committed before it is used), the others store nothing.

    python benchmarks/engine.py                        # latency 0, 64 / 256 / 1,024 calls in flight
    python benchmarks/engine.py --latency 200 -n 6000 --in-flight 64
    python benchmarks/engine.py --arms ragforge --in-flight 256 -n 100000     # memory stays flat

CPU is the client's own, in milliseconds a call, the least of the repeats; calls/s the most.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from ragforge.cli.flags import relieve_collector

PASSAGE = "Bees make wax from honey; it takes about eight parts of honey to one of wax. " * 18
ARMS = (
    "ragforge aiohttp",
    "ragforge httpx2",
    "openai create",
    "openai parse",
    "litellm",
    "raw aiohttp",
)
NEEDS = {"ragforge aiohttp": "aiohttp", "litellm": "litellm", "raw aiohttp": "aiohttp"}

Client = tuple[Callable[[int], Awaitable[str]], Callable[[], Awaitable[None]]]
"""What asks one job, and what closes the connections."""

Setup = Callable[[str, int], Awaitable[Client]]


def main() -> None:
    """Measure, or be one of the measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=3000, help="calls")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--latency", type=float, default=0.0, help="of the endpoint, in ms")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), help="beginnings of their names")
    parser.add_argument(
        "--peers-python",
        default=sys.executable,
        help="interpreter that has litellm, which wants another openai than ragforge",
    )
    parser.add_argument("--as-arm", nargs=2, metavar=("ARM", "URL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_arm:
        arm, url = arguments.as_arm
        print(json.dumps(asyncio.run(_measured(arm, url, arguments.n, arguments.in_flight[0]))))
        return
    print(f"{arguments.n} calls, endpoint latency {arguments.latency:g} ms")
    print("\n| client | in flight | calls/s | CPU ms a call | peak MB | MB after a third | done |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for in_flight in arguments.in_flight:
        for arm in ARMS:
            wanted = any(arm.startswith(name) for name in arguments.arms)
            if wanted and _is_there(arm, arguments.peers_python):
                print(_row(arm, in_flight, arguments), flush=True)


def _python_of(arm: str, peers_python: str) -> str:
    return peers_python if arm == "litellm" else sys.executable


def _is_there(arm: str, peers_python: str) -> bool:
    command = [_python_of(arm, peers_python), "-c", f"import {NEEDS.get(arm, 'ragforge')}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _row(arm: str, in_flight: int, arguments: argparse.Namespace) -> str:
    runs = [_run(arm, in_flight, arguments) for _ in range(arguments.repeats)]
    rate = max(run["done"] / run["seconds"] for run in runs)
    cpu_ms = min(1000 * run["cpu_s"] / arguments.n for run in runs)
    peak, third = max(run["rss_mb"] for run in runs), max(run["third_mb"] for run in runs)
    done = min(run["done"] for run in runs)
    return (
        f"| {arm} | {in_flight} | {rate:.0f} | {cpu_ms:.2f} | {peak:.0f} | {third:.0f} | {done} |"
    )


def _run(arm: str, in_flight: int, arguments: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, "-m", "ragforge", "mock", "--port", "0"]
    with subprocess.Popen(
        [*command, "--latency", f"fixed:{arguments.latency}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as endpoint:
        url = endpoint.stdout.readline().strip()
        words = ["-n", str(arguments.n), "--in-flight", str(in_flight), "--as-arm", arm, url]
        try:
            shown = subprocess.run(
                [_python_of(arm, arguments.peers_python), __file__, *words],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        finally:
            endpoint.terminate()
    found: dict[str, float] = json.loads(shown.splitlines()[-1])
    return found


async def _measured(arm: str, url: str, n: int, in_flight: int) -> dict[str, float]:
    # As ragforge's commands do; to the others' advantage, too.
    relieve_collector()
    counted = _Counted(n)
    if arm.startswith("ragforge"):
        await _ragforge(url, in_flight, arm.split()[1], counted)
    else:
        setup = {
            "openai create": _openai_create,
            "openai parse": _openai_parse,
            "litellm": _litellm,
            "raw aiohttp": _raw_aiohttp,
        }[arm]
        await _with_workers(setup, url, in_flight, counted)
    return counted.figures()


class _Counted:
    """Jobs given out, replies taken in, and what that cost."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.done = 0
        self.third_mb = 0.0
        self.started = 0.0
        self.cpu = 0.0

    def jobs(self) -> Iterator[int]:
        """Yield the number of each job; the clocks run from the first."""
        self.started, self.cpu = time.monotonic(), time.process_time()
        yield from range(self.n)

    def take(self, *, good: bool) -> None:
        """Count a reply."""
        self.done += good
        if self.done == self.n // 3:
            self.third_mb = _peak_mb()

    def figures(self) -> dict[str, float]:
        """Return what was measured."""
        return {
            "seconds": time.monotonic() - self.started,
            "cpu_s": time.process_time() - self.cpu,
            "rss_mb": _peak_mb(),
            "third_mb": self.third_mb,
            "done": self.done,
        }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _ragforge(url: str, in_flight: int, transport: str, counted: _Counted) -> None:
    from contextlib import aclosing

    from ragforge.config import Settings
    from ragforge.llm.connect import connect
    from ragforge.observe import silent
    from ragforge.prompts import load_prompt
    from ragforge.stages.asking import Asker
    from ragforge.stages.judge.llm import LLMJudge
    from ragforge.stages.judge.pairs import Pair
    from ragforge.stages.runner import Work, Workers, run

    model = {"name": "m", "base_url": url, "concurrency": in_flight, "transport": transport}
    settings = Settings.model_validate({"model": model})
    pairs = (
        Pair(f"q{job}", f"What do bees make wax from, asked {job}?", f"c{job}", PASSAGE)
        for job in counted.jobs()
    )
    with tempfile.TemporaryDirectory() as folder:
        async with connect(settings, Path(folder) / "calls.sqlite", silent) as connection:
            prompt = load_prompt("judge_relevance", "")
            judge = LLMJudge(Asker(connection.model, connection.name, settings.model, prompt))
            work = Work("judge", lambda pair: pair.key, judge.judge, Workers(2 * in_flight, silent))
            async with aclosing(run(pairs, work)) as outcomes:
                async for outcome in outcomes:
                    counted.take(good=outcome.failure is None)


def _messages(job: int) -> list[dict[str, str]]:
    asked = f'query: "What do bees make wax from, asked {job}?"\npassage: {json.dumps(PASSAGE)}'
    return [{"role": "system", "content": "Grade the passage."}, {"role": "user", "content": asked}]


def _fields(job: int) -> dict[str, object]:
    from ragforge.llm.structured import reply_schema
    from ragforge.stages.judge.llm import RelevanceReply

    form = {"name": "relevance", "strict": True, "schema": reply_schema(RelevanceReply)}
    return {
        "model": "m",
        "messages": _messages(job),
        "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": form},
    }


def _good(text: str) -> bool:
    from ragforge.stages.judge.llm import RelevanceReply

    return RelevanceReply.model_validate_json(text).grade in range(4)


async def _with_workers(setup: Setup, url: str, in_flight: int, counted: _Counted) -> None:
    """Make all calls with a fixed number of workers, the leanest way to use a client."""
    ask, close = await setup(url, in_flight)
    jobs = counted.jobs()

    async def work() -> None:
        for job in jobs:
            counted.take(good=_good(await ask(job)))

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work())
    await close()


async def _openai_create(url: str, in_flight: int) -> Client:
    import openai

    client = openai.AsyncOpenAI(api_key="none", base_url=url, timeout=120)

    async def ask(job: int) -> str:
        reply = await client.chat.completions.create(**_fields(job))
        return reply.choices[0].message.content

    return ask, client.close


async def _openai_parse(url: str, in_flight: int) -> Client:
    import openai

    from ragforge.stages.judge.llm import RelevanceReply

    client = openai.AsyncOpenAI(api_key="none", base_url=url, timeout=120)

    async def ask(job: int) -> str:
        fields = {**_fields(job), "response_format": RelevanceReply}
        reply = await client.chat.completions.parse(**fields)
        return reply.choices[0].message.content

    return ask, client.close


async def _litellm(url: str, in_flight: int) -> Client:
    import litellm

    litellm.telemetry = False

    async def ask(job: int) -> str:
        fields = {**_fields(job), "model": "openai/m"}
        reply = await litellm.acompletion(**fields, api_base=url, api_key="none", num_retries=0)
        return reply.choices[0].message.content

    async def close() -> None:
        await asyncio.sleep(0)

    return ask, close


async def _raw_aiohttp(url: str, in_flight: int) -> Client:
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight))

    async def ask(job: int) -> str:
        async with session.post(f"{url}/chat/completions", json=_fields(job)) as reply:
            return (await reply.json())["choices"][0]["message"]["content"]

    return ask, session.close


if __name__ == "__main__":
    main()
