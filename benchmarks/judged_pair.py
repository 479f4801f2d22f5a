"""A judged pair beside a call of the official client: CPU at 64 in flight, in turns.

The pair is that of the whole command, from Python's start to the last file; the call is that of
`engine.py`, without any start. The endpoint is `ragforge mock`, in the process that measures.

    python benchmarks/judged_pair.py                   # texts of 20 and of 230 words
    python benchmarks/judged_pair.py --before DIR      # another checkout, in the same turns
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from pairs import write_pairs
from startup import HERE, cpu_ms, environment

from ragforge.mock import Script, serving

JUDGE = "-m ragforge judge --pairs {pairs} --out judged.jsonl --model m --base-url {url} -q"
IN_FLIGHT = 64


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=5000, help="pairs, and calls")
    parser.add_argument("--words", type=int, nargs="+", default=[20, 230], help="of a text")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--before", type=Path, help="a checkout")
    arguments = parser.parse_args()
    checkouts = {"now": HERE} | ({"before": arguments.before} if arguments.before else {})
    print("| words a text | checkout | of the client's call | ms a pair | ms a call |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for words in arguments.words:
        with tempfile.TemporaryDirectory() as folder:
            pairs = Path(folder) / "pairs.jsonl"
            write_pairs(pairs, arguments.n, words)
            for name, row in measured(pairs, arguments, checkouts).items():
                print(f"| {words} | {name} | {row}", flush=True)


def measured(
    pairs: Path, arguments: argparse.Namespace, checkouts: dict[str, Path]
) -> dict[str, str]:
    """Return the figures of each checkout: the median of the ratios of each turn, and the least."""
    calls: list[float] = []
    taken: dict[str, list[float]] = {name: [] for name in checkouts}
    for turn in range(arguments.turns + 1):
        with serving(Script()) as endpoint:
            call = client_ms(endpoint.url, arguments.n, pairs.parent)
            found = {}
            for name, checkout in checkouts.items():
                place = pairs.parent / f"{name}-{turn}"
                place.mkdir()
                line = JUDGE.format(pairs=pairs, url=endpoint.url)
                words = [*line.split(), "--concurrency", str(IN_FLIGHT)]
                found[name] = cpu_ms(words, place, checkout) / arguments.n
        if turn:  # The first one fills the caches.
            calls.append(call)
            for name, ms in found.items():
                taken[name].append(ms)
    return {
        name: f"{median(a / b for a, b in zip(each, calls, strict=True)):.2f} | {min(each):.2f} "
        f"| {min(calls):.2f} |"
        for name, each in taken.items()
    }


def client_ms(url: str, n: int, folder: Path) -> float:
    """Return the CPU of a call of the official client in milliseconds."""
    engine = Path(__file__).with_name("engine.py")
    words = ["-n", str(n), "--in-flight", str(IN_FLIGHT), "--as-arm", "openai create", url]
    done = subprocess.run(
        [sys.executable, str(engine), *words],
        env=environment(folder / "bytecode"),
        capture_output=True,
        text=True,
        check=True,
    )
    return 1000 * float(json.loads(done.stdout)["cpu_s"]) / n


if __name__ == "__main__":
    main()
