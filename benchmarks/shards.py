"""Judging in shards beside one process: calls, bytes, CPU; workers are killed on the way.

    python benchmarks/shards.py                    # 20,000 pairs, 16 shards, 2 workers, 4 kills
    python benchmarks/shards.py --queries 10 --chunks 20 --shards 4 --kills 1     # does it run?
    python benchmarks/shards.py --apart            # each worker starts by a command of its own
    python benchmarks/shards.py --pinned           # commands on one core, the endpoint on the other
    python benchmarks/shards.py --batch-api --kills 0     # through the batch API, too
    python benchmarks/shards.py --merge 1000000    # time and memory of merging so many judgments

The endpoint is `ragforge mock`; its own ledger counts calls and those that were billed twice. CPU
is that of `ragforge judge` for the one process, and that of planning, all workers and merging for
the shards, as the system counts it. Three busy processes on two cores get more of it counted for
the same work than two do, by up to a fifth; with `--pinned` both sides have one core.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.request import Request, urlopen

IN_FLIGHT: Final = 64
WORKERS: Final = 2
CORES: Final = os.sched_getaffinity(0)
WORDS: Final = "beeswax polish table oil wood cloth rub shine coat dry lamp glass iron rust".split()


@dataclass
class Usage:
    """What processes took.

    Args:
        cpu_s: User and system time.
        mb: The most memory of any of them.
    """

    cpu_s: float = 0.0
    mb: float = 0.0
    judging_s: float = 0.0
    """Of these, what workers took that judge."""

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for a process, add what it took, and return its exit code."""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s += used.ru_utime + used.ru_stime
        self.mb = max(self.mb, used.ru_maxrss / 1024)
        return process.returncode

    def wait_for_worker(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for a process that judges."""
        before_s = self.cpu_s
        code = self.wait(process)
        self.judging_s += self.cpu_s - before_s
        return code

    def run(self, *words: object) -> None:
        """Run a command to its end."""
        assert self.wait(begin(*words)) == 0


Row = tuple[str, dict[str, int], Usage, float, str]
"""A title, what was billed, what it took, seconds, and the digest of the file."""


def begin(*words: object) -> subprocess.Popen[bytes]:
    """Start a command."""
    command = [sys.executable, "-m", "ragforge", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def pin(core: int) -> None:
    """Keep this process, and those that it starts from now on, on one core."""
    os.sched_setaffinity(0, {sorted(CORES)[core]})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=100)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--apart", action="store_true", help="`shard run` once for each worker")
    parser.add_argument("--pinned", action="store_true", help="commands on one core")
    parser.add_argument("--latency", default="fixed:20")
    parser.add_argument("--max-calls", type=int, help="of all workers: the run ends there")
    parser.add_argument("--batch", type=int, default=1, help="pairs a call")
    parser.add_argument("--batch-api", action="store_true", help="in one process through it, too")
    parser.add_argument("--merge", type=int, metavar="N", help="merge so many judgments instead")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        if options.merge:
            measure_merge(Path(name), options.merge)
        else:
            measure_judging(Path(name), options)


def write_pairs(path: Path, queries: int, chunks: int) -> int:
    """Write pairs of which one in 25 repeats a text of its query, and return how many."""
    draws = random.Random(0)
    with path.open("w", encoding="utf-8") as stream:
        for query in range(queries):
            texts: list[str] = []
            question = f"How are {' and '.join(draws.choices(WORDS, k=3))} used, no. {query}?"
            for chunk in range(chunks):
                new = " ".join(draws.choices(WORDS, k=60))
                texts.append(texts[chunk - 1] if chunk % 25 == 24 else new)
                row = {
                    "query_id": f"q{query:06}",
                    "query": question,
                    "chunk_id": f"c{chunk:04}",
                    "text": texts[chunk],
                }
                stream.write(json.dumps(row) + "\n")
    return queries * chunks


def measure_judging(folder: Path, options: argparse.Namespace) -> None:
    """Judge in one process, then in shards whose workers are killed."""
    pairs = folder / "pairs.jsonl"
    n_pairs = write_pairs(pairs, options.queries, options.chunks)
    if options.pinned:
        pin(1)
    with mock(options.latency) as url:
        if options.pinned:
            pin(0)
        batch = ("--batch", str(options.batch)) if options.batch > 1 else ()
        how = ("--model", "mock", "--base-url", url, "--endpoint-id", "bench", "-q", *batch)
        rows = [in_one("one process", folder / "alone", pairs, url, how)]
        if options.batch_api:
            through = ("--batch-api", "--wait", "--poll-every", "0.1")
            rows.append(in_one("batch API", folder / "batches", pairs, url, (*how, *through)))
        rows.append(in_shards(folder, pairs, n_pairs, url, how, options))
    print(f"{n_pairs:,} pairs, {options.batch} a call, {options.shards} shards, ", end="")
    print(f"{WORKERS} workers, {options.kills} kills\n")
    print("| | calls billed | twice | CPU s | ms a pair | wall s | peak MB | sha256 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for title, counts, usage, wall_s, sha256 in rows:
        print(
            f"| {title} | {counts['billed']:,} | {counts['dup']:,} | {usage.cpu_s:.1f} "
            f"| {1000 * usage.cpu_s / n_pairs:.2f} | {wall_s:.1f} | {usage.mb:.0f} | {sha256} |"
        )
    shards, alone_s = rows[-1][2], rows[0][2].cpu_s
    print(f"\nCPU of shards to one process: {shards.cpu_s / alone_s:.2f}, ", end="")
    print(f"of their workers alone: {shards.judging_s / alone_s:.2f}")


def in_one(title: str, folder: Path, pairs: Path, url: str, how: Sequence[object]) -> Row:
    """Judge in one process; return a row of the table, and let the endpoint forget the calls."""
    usage, out = Usage(), folder / "judged.jsonl"
    began_s = time.perf_counter()
    usage.run("judge", "--pairs", pairs, "--out", out, "--concurrency", IN_FLIGHT, *how)
    row = title, ledger(url), usage, time.perf_counter() - began_s, digest(out)
    urlopen(Request(f"{url}/__reset", method="POST")).close()
    return row


def in_shards(
    folder: Path,
    pairs: Path,
    n_pairs: int,
    url: str,
    how: Sequence[object],
    options: argparse.Namespace,
) -> Row:
    """Plan, work off with kills, and merge; return a row of the table."""
    usage, work, out = Usage(), folder / "work", folder / "merged" / "judged.jsonl"
    size = -(-n_pairs // options.shards)
    limit = ("--max-calls", options.max_calls) if options.max_calls else ()
    began_s = time.perf_counter()
    usage.run(
        *("shard", "plan", "--pairs", pairs, "--into", work, "--pairs-per-shard", size),
        *("--workers", WORKERS, "--concurrency", IN_FLIGHT, *limit, *how),
    )
    together = () if options.apart else ("--on", "this-machine")
    n_started = WORKERS if options.apart else 1
    started = [begin("shard", "run", work, "-q", *together) for _ in range(n_started)]
    draws = random.Random(0)
    for number in range(options.kills):
        n_calls = options.max_calls or n_pairs // options.batch
        goal = (number + 1) * n_calls // (options.kills + 2)
        while ledger(url)["billed"] < goal:
            time.sleep(0.1)  # Asked more often, it takes time from workers.
        if not options.apart:
            os.kill(draws.choice(children(started[0])), signal.SIGKILL)
            continue
        victim = started.pop(draws.randrange(WORKERS))
        victim.kill()
        usage.wait_for_worker(victim)
        started.append(begin("shard", "run", work, "-q"))
    codes = [usage.wait_for_worker(process) for process in started]
    counts = ledger(url)
    if options.max_calls:
        return f"shards, exit codes {codes}", counts, usage, time.perf_counter() - began_s, "-"
    usage.run("shard", "merge", work, "--out", out)
    wall_s = time.perf_counter() - began_s
    return f"{options.shards} shards", counts, usage, wall_s, digest(out)


@contextmanager
def mock(latency: str) -> Iterator[str]:
    """Serve a mock in a process of its own, and yield its address."""
    command = [sys.executable, "-m", "ragforge", "mock", "--port", "0", "--latency", latency]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.kill()
        process.wait()


def ledger(url: str) -> dict[str, int]:
    """Return what the endpoint billed."""
    with urlopen(f"{url}/__ledger") as reply:
        counts: dict[str, int] = json.loads(reply.read())
        return counts


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the processes that a process started."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    return [int(pid) for pid in listed.split()]


def digest(path: Path) -> str:
    """Return the first digits of the digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:12]


def measure_merge(folder: Path, n_judgments: int) -> None:
    """Merge judgments that the offline baseline made in shards of 2,000 pairs."""
    pairs, work = folder / "pairs.jsonl", folder / "work"
    write_pairs(pairs, n_judgments // 100, 100)
    plan, judge, merge = Usage(), Usage(), Usage()
    # Words alone, whatever is installed: what is measured is the merging.
    how = ("--offline-model", "none", "-q")
    plan.run("shard", "plan", "--pairs", pairs, "--into", work, "--workers", WORKERS, *how)
    workers = [begin("shard", "run", work, "-q") for _ in range(WORKERS)]
    assert [judge.wait(worker) for worker in workers] == [0] * WORKERS
    out = folder / "judged.jsonl"
    began_s = time.perf_counter()
    merge.run("shard", "merge", work, "--out", out)
    wall_s = time.perf_counter() - began_s
    print("| step | CPU s | peak MB |\n| --- | --- | --- |")
    for name, usage in (("plan", plan), ("run", judge), ("merge", merge)):
        print(f"| {name} | {usage.cpu_s:.1f} | {usage.mb:.0f} |")
    size_mb = out.stat().st_size / 1e6
    print(f"\n{n_judgments:,} judgments, {size_mb:.0f} MB, merged in {wall_s:.1f} s")


if __name__ == "__main__":
    main()
