"""Files of many pairs: CPU and peak memory of judging them offline and of planning shards.

Makes N seeded pairs, 100 a query, of 20 words each. Each command runs in a process of its own.

    python benchmarks/pairs.py 100000 1000000
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SEED = 1
PER_QUERY = 100
WORDS = 20
COMMANDS = {
    "judge": "judge --pairs {pairs} --out {folder}/judged.jsonl --offline-model none -q",
    "shard plan": "shard plan --pairs {pairs} --into {folder}/shards --model m "
    "--base-url http://127.0.0.1:9/v1 -q",
}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="*", default=[100_000], help="pairs")
    arguments = parser.parse_args()
    print("| pairs | command | CPU s | peak MB |")
    print("| ---: | --- | ---: | ---: |")
    for n in arguments.n:
        with tempfile.TemporaryDirectory() as folder:
            pairs = Path(folder) / "pairs.jsonl"
            write_pairs(pairs, n)
            for name, command in COMMANDS.items():
                cpu_s, peak_mb = measured(command.format(pairs=pairs, folder=folder).split())
                print(f"| {n:,} | {name} | {cpu_s:.1f} | {peak_mb:,} |", flush=True)


def write_pairs(path: Path, n: int, n_words: int = WORDS) -> None:
    """Write a file of `n` pairs with texts of so many words, the same each time."""
    chance = random.Random(SEED)
    words = [f"w{number}" for number in range(2000)]
    with path.open("w", encoding="utf-8") as stream:
        for number in range(n):
            if number % PER_QUERY == 0:
                query = " ".join(chance.choices(words, k=8))
            row = {
                "query_id": f"q{number // PER_QUERY}",
                "query": query,
                "chunk_id": f"c{number}",
                "text": " ".join(chance.choices(words, k=n_words)),
            }
            stream.write(f"{json.dumps(row)}\n")


def measured(words: list[str]) -> tuple[float, int]:
    """Return CPU seconds and peak memory in MB of a command."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ragforge", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"ragforge {' '.join(words)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


if __name__ == "__main__":
    main()
