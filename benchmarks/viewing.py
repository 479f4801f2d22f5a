"""The table of all sets in `ragforge view`: what the first look takes, one after it, and memory.

Makes N sets of two runs with a history of nights each, serves them in a process of its own, and
asks for the list as a browser does, which asks again every few seconds.

    python benchmarks/viewing.py 50 1000
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from http.client import HTTPConnection
from os import sysconf
from pathlib import Path
from time import sleep

RUNS = ("bm25", "dense")
TEAMS = 20
LOOKS = 20
SETTLED_S = 10
TICKS_A_SECOND = sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="*", default=[50, 1000], help="sets")
    parser.add_argument("--nights", type=int, default=10, help="evaluations of each set")
    arguments = parser.parse_args()
    print(
        "| sets | page MB | first look, CPU s | unchanged, CPU s | one changed, CPU s | peak MB |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for n in arguments.n:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), n, arguments.nights)
            print(f"| {n:,} | {' | '.join(looked_at(Path(folder)))} |", flush=True)


def make(root: Path, n: int, nights: int) -> None:
    """Write the sets, the same each time."""
    from ragforge.files.set.opening import create_dataset

    for place in range(n):
        dataset = create_dataset(set_path(root, place), {"seed": str(place)})
        measure(dataset.path, place, range(nights))


def set_path(root: Path, place: int) -> Path:
    """Return where a set is."""
    return root / f"team-{place % TEAMS:02}-set-{place:04}"


def measure(path: Path, place: int, nights: Iterable[int]) -> None:
    """Add an evaluation of each run and night to the history of a set."""
    from ragforge.files.set.history import appending
    from ragforge.pipeline.evaluated import with_content_id
    from ragforge.records import Digests, Evaluation, MeasuredMean, Spending

    means = {night: 0.3 + 0.4 * ((place * 7 + night * 3) % 100) / 100 for night in nights}
    digests = Digests(corpus="a", queries="b", judgments="c", rankings="d", prompts="e")
    with appending(path) as ledger:
        ledger.append(
            with_content_id(
                Evaluation(
                    evaluation_id="-",
                    at=f"2026-01-{night % 28 + 1:02}T{night // 28 % 24:02}:00:00+00:00",
                    dataset=path.name,
                    version=1,
                    run=run,
                    rel_threshold=2,
                    n_queries=50,
                    n_failed=0,
                    n_retrieved=500,
                    n_holes=3,
                    measures={
                        "nDCG@10": MeasuredMean(mean=mean, low=mean - 0.05, high=mean + 0.05, n=50)
                    },
                    graders=(),
                    digests=digests,
                    spent=Spending(calls=0, prompt_tokens=0, completion_tokens=0, cost_usd=None),
                    timing=None,
                    tool_version="1",
                )
            )
            for night, mean in means.items()
            for run in RUNS
        )


def looked_at(root: Path) -> list[str]:
    """Return the size of the page, the CPU of looks at it, and the peak of the memory."""
    asked = [sys.executable, "-m", "ragforge", "view", str(root)]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            assert server.stdout is not None
            found = re.search(rb":(\d+)/", server.stdout.readline())
            assert found, "it does not serve"
            look = Look(int(found[1]), server.pid)
            first = look(1)
            again = look(LOOKS)
            measure(set_path(root, 0), 0, [99])
            # What took long to look at is not looked at again at once.
            sleep(SETTLED_S)
            changed = look(1)
            peak = proc_status(server.pid)["VmHWM"] // 1024
            size = f"{look.n_bytes / 1e6:.2f}"
            return [size, f"{first:.2f}", f"{again:.3f}", f"{changed:.2f}", str(peak)]
        finally:
            server.terminate()


class Look:
    """Asks for the list of sets as a browser does that has it."""

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self._pid = pid
        self._tag = ""
        self.n_bytes = 0

    def __call__(self, times: int) -> float:
        """Return the CPU seconds of the server that each of some looks took."""
        start = self._cpu()
        for _ in range(times):
            connection = HTTPConnection("127.0.0.1", self._port, timeout=300)
            connection.request("GET", "/", headers={"If-None-Match": self._tag})
            reply = connection.getresponse()
            body = reply.read()
            assert reply.status in (200, 304), reply.status
            self._tag = reply.getheader("ETag") or self._tag
            self.n_bytes = len(body) or self.n_bytes
            connection.close()
        return (self._cpu() - start) / times

    def _cpu(self) -> float:
        fields = (
            Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def proc_status(pid: int) -> dict[str, int]:
    """Return the sizes that the kernel tells of a process, in KB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    told = (line.partition(":") for line in lines if line.endswith(" kB"))
    return {name: int(value.split()[0]) for name, _, value in told}


if __name__ == "__main__":
    main()
