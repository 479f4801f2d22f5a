"""Calls and tokens a pair of each way to judge: `python benchmarks/judging_ways.py`.

The pool of two lexical runs over the shipped sample is judged by `ragforge mock`, which estimates
tokens as the store does; each way has a copy of the set of its own.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ragforge.mock import serving

SAMPLE = Path(__file__).resolve().parents[1] / "datasets" / "helpcentre"
WAYS = {
    "the default": "",
    "--batch 8": "--batch 8",
    "--batch 8 --permutations 1": "--batch 8 --permutations 1",
    "--panel a,b,c": "--panel a,b,c",
    "--votes 3 --temperature 0.7": "--votes 3 --temperature 0.7",
    "--prompt judge_grade_only": "--prompt judge_grade_only",
}


def main() -> None:
    """Print the table."""
    print("| way | pairs | calls a pair | tokens a pair, in + out |")
    print("| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder, serving() as endpoint:
        original = Path(folder) / "set"
        ragforge("import", SAMPLE / "golden.jsonl", "--documents", SAMPLE / "documents",
                 "--out", original, "-q")  # fmt: skip
        for retriever in ("bm25", "chargram"):
            ragforge("retrieve", "--dataset", original, "--retriever", retriever, "-q")
        for number, (name, flags) in enumerate(WAYS.items()):
            copy = shutil.copytree(original, Path(folder) / str(number))
            judge = ("judge", "--dataset", copy, "--depth", 10, "--base-url", endpoint.url)
            model = () if "--panel" in flags else ("--model", "m")
            found = json.loads(ragforge(*judge, *model, *flags.split(), "--json", "-q"))
            spent = json.loads(ragforge("cache", "stats", "--dataset", copy, "--json"))["spent"]
            n = found["judged"]
            tokens = f"{spent['prompt_tokens'] / n:.0f} + {spent['completion_tokens'] / n:.0f}"
            print(f"| {name} | {n} | {spent['calls'] / n:.2f} | {tokens} |", flush=True)


def ragforge(*words: object) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "ragforge", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
