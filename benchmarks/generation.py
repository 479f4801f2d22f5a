"""What generating takes: calls and own CPU for so many accepted queries, by corpus size.

`ragforge mock` answers in a process of its own; each generation runs in a fresh process, and once
more when everything is in the call store. The corpus is made of seeded sentences, or is yours.

    python benchmarks/generation.py                 # 10 queries from 1,000 and 10,000 chunks
    python benchmarks/generation.py --documents docs/ -n 50

Calls do not depend on the machine; CPU is that of the whole command, start included.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from ragforge.mock import Script, serving

WORDS = 4000
TOPICS = 40


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--documents", type=Path, help="a corpus of your own instead")
    parser.add_argument("-n", type=int, default=10, help="queries")
    arguments = parser.parse_args()
    columns = "corpus | mode | accepted | calls | an accepted query | own CPU, s | rerun: calls"
    print(f"| {columns} | CPU, s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with serving(Script()) as endpoint, tempfile.TemporaryDirectory() as folder:
        corpora: list[tuple[str, Path]] = []
        if arguments.documents:
            corpora.append((arguments.documents.name, arguments.documents))
        for size in [] if arguments.documents else arguments.chunks:
            made = Path(folder) / f"corpus-{size}"
            make_corpus(made, size)
            corpora.append((f"{size:,} chunks", made))
        for name, documents in corpora:
            for mode, more in (("judging off", ["--complete", "off"]), ("all in", [])):
                out = Path(folder) / f"{name}-{mode}".replace(" ", "-").replace(",", "")
                command = command_for(documents, out, arguments.n, endpoint.url, more)
                first, cpu = timed(command)
                again, cpu_again = timed(command)
                n, calls = first["n_accepted"], first["spent"]["calls"]
                more_calls = again["spent"]["calls"] - calls
                print(
                    f"| {name} | {mode} | {n} | {calls} | {calls / n:.1f} | {cpu:.2f} | "
                    f"{more_calls} | {cpu_again:.2f} |"
                )


def command_for(documents: Path, out: Path, n: int, url: str, more: list[str]) -> list[str]:
    """Return the command of one generation."""
    words = ["generate", "--documents", documents, "--out", out, "-n", n, "--json", "-q"]
    asked = ["--model", "mock", "--base-url", url, *more]
    return [sys.executable, "-m", "ragforge", *map(str, words), *asked]


def timed(command: list[str]) -> tuple[dict, float]:
    """Return what a command says and the CPU it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "OPENAI_API_KEY": "x"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not done.stdout:
        sys.exit(done.stderr.decode())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), cpu


def make_corpus(folder: Path, n_chunks: int) -> None:
    """Write Markdown documents of ten sections each, a chunk a section."""
    draw = random.Random(7)
    vocabulary = [
        "".join(draw.choice("bcdfglmnprstv") + draw.choice("aeiou") for _ in range(3))
        for _ in range(WORDS)
    ]
    for number in range(n_chunks // 10):
        topic = number % TOPICS
        own = vocabulary[topic * 100 : topic * 100 + 100]
        sections = []
        for section in range(10):
            sentences = [
                " ".join(
                    draw.choice(own if draw.random() < 0.5 else vocabulary) for _ in range(12)
                ).capitalize()
                + "."
                for _ in range(8)
            ]
            sections.append(f"## Part {section} of {draw.choice(own)}\n\n{' '.join(sentences)}\n")
        path = folder / f"group{number % 7}" / f"document{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Document {number}\n\n" + "\n".join(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
