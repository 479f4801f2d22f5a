"""Where the CPU of the commands that people wait for goes: a table and a chart.

Each command runs in a process that looks at its own stack every few milliseconds of CPU. A look
counts for what the innermost line of ragforge was there for, or for imports where one was going on;
Python's own start is that of `python -c pass`. What other threads do counts for what the main one
is at, so a run that is read in threads while numpy is imported is not among the rows; `ragforge
mock` is left out.

    python benchmarks/phases.py                           # the table, and phases.svg beside this
    python benchmarks/phases.py "report, 2,000 queries" --svg one.svg
"""

import argparse
import html
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PHASES = {
    "Python's start": "#767676",
    "imports": "#b58900",
    "reading and writing": "#2a7ab0",
    "measuring": "#2f8f4e",
    "intervals and causes": "#7cb342",
    "corpus and search": "#8e5ea2",
    "judging and generating": "#c2452d",
    "calls of models": "#e07b39",
    "pages": "#00838f",
    "command line": "#b0bec5",
}
"""What the CPU is spent on, in the order of the chart, each with its colour."""
PACKAGES = {
    "files": "reading and writing",
    "records": "reading and writing",
    "measures": "measuring",
    "evaluating": "intervals and causes",
    "calibration": "intervals and causes",
    "corpus": "corpus and search",
    "retrieval": "corpus and search",
    "stages": "judging and generating",
    "pipeline": "judging and generating",
    "llm": "calls of models",
    "report": "pages",
}
STATISTICS = ("intervals", "unseen_values", "comparing", "paired", "bounds", "power", "drift")
"""Modules of measures that do not measure rankings."""
STEP_S = 0.002
SAMPLED = """
import collections, json, signal, sys, time
looks = collections.Counter()
def look(_, frame):
    stack = []
    while frame is not None:
        stack.append((frame.f_code.co_filename, frame.f_code.co_name))
        frame = frame.f_back
    looks[tuple(stack)] += 1
signal.signal(signal.SIGPROF, look)
step, out = float(sys.argv[1]), sys.argv[2]
signal.setitimer(signal.ITIMER_PROF, step, step)
from ragforge.cli import main
code = main(sys.argv[3:])
signal.setitimer(signal.ITIMER_PROF, 0)
with open(out, "w") as stream:
    json.dump([time.process_time(), list(looks.items())], stream)
sys.exit(code if code not in (0, 1) else 0)
"""

Stack = list[tuple[str, str]]
"""File and function, innermost first."""
Prepared = Iterator[list[str]]


def main() -> None:
    """Measure, print the table and draw the chart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", choices=[[], *WORK], help="all where none is named")
    parser.add_argument("--svg", type=Path, default=Path(__file__).with_suffix(".svg"))
    arguments = parser.parse_args()
    start_s = cpu_of([sys.executable, "-c", "pass"])
    print(f"| command | CPU s | {' | '.join(PHASES)} |\n| --- | {' ---: |' * (1 + len(PHASES))}")
    rows: dict[str, dict[str, float]] = {}
    for name in arguments.name or WORK:
        with tempfile.TemporaryDirectory() as place, WORK[name](Path(place)) as words:
            rows[name] = seconds_by_phase(words, Path(place) / "looks.json", start_s)
        total = sum(rows[name].values())
        shares = (f"{rows[name].get(phase, 0) / total:.0%}" for phase in PHASES)
        print(f"| {name} | {total:.2f} | {' | '.join(shares)} |", flush=True)
    arguments.svg.write_text(chart(rows), encoding="utf-8")


def cpu_of(command: list[str]) -> float:
    """Return the CPU seconds of a process.

    Raises:
        SystemExit: It failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OPENAI_API_KEY": "none", "RAGFORGE_POOL_POOL_MODEL": "none"}
    environment |= {"RAGFORGE_MODEL_OFFLINE_MODEL": "none"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_by_phase(words: list[str], looks: Path, start_s: float) -> dict[str, float]:
    """Return the CPU seconds of a command of ragforge by phase."""
    cpu_of([sys.executable, "-c", SAMPLED, str(STEP_S), str(looks), *words])
    cpu_s, counted = json.loads(looks.read_text(encoding="utf-8"))
    phases: Counter[str] = Counter()
    for stack, count in counted:
        phases[phase_of(stack)] += count
    second = (cpu_s - start_s) / phases.total()
    return {"Python's start": start_s, **{name: n * second for name, n in phases.items()}}


def phase_of(stack: Stack) -> str:
    """Return what a look at the stack counts for."""
    if any(name == "_find_and_load" for _, name in stack):
        return "imports"
    for file, name in stack:
        package, _, module = file.rpartition("/ragforge/")[2].partition("/")
        if "/ragforge/" in file and package in PACKAGES:
            is_statistics = package == "measures" and Path(module).stem in STATISTICS
            return "intervals and causes" if is_statistics else PACKAGES[package]
        if name == "_run_once" and file.endswith("base_events.py"):
            return "calls of models"
    return "command line"


def chart(rows: dict[str, dict[str, float]]) -> str:
    """Return a picture: a bar for each command, whose parts are shares of its CPU."""
    left, width, height, top = 270, 640, 26, 64
    bottom = top + height * len(rows)
    size = f'width="{left + width + 90}" height="{bottom + 10}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        "<title>Share of the CPU of each command by what it is spent on</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for at, (phase, colour) in enumerate(PHASES.items()):
        x, y = 12 + at % 5 * 190, 12 + at // 5 * 22
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="{y + 10}">{html.escape(phase)}</text>')
    for at, (name, seconds) in enumerate(rows.items()):
        y, x, total = top + at * height, float(left), sum(seconds.values())
        parts.append(f'<text x="12" y="{y + 14}">{html.escape(name)}</text>')
        for phase, colour in PHASES.items():
            wide = width * seconds.get(phase, 0) / total
            place = f'x="{x:.1f}" y="{y}" width="{wide:.1f}" height="18"'
            told = f"<title>{html.escape(phase)}: {seconds.get(phase, 0) / total:.0%}</title>"
            parts.append(f'<rect {place} fill="{colour}">{told}</rect>')
            x += wide
        parts.append(f'<text x="{left + width + 8}" y="{y + 14}">{total:.2f} s</text>')
    return "\n".join([*parts, "</svg>\n"])


@contextmanager
def small_set(place: Path, line: str) -> Prepared:
    """Lend a command on a set of 50 queries with two runs."""
    import large_set

    large_set.make(place / "set", 50 * large_set.PER_QUERY)
    yield line.format(place=place).split()


@contextmanager
def judgments(place: Path, line: str, n: int = 1_000_000) -> Prepared:
    """Lend a command on a set of a million judgments."""
    import large_set

    large_set.make(place / "set", n)
    yield line.format(place=place).split()


@contextmanager
def trec_files(place: Path, n_queries: int, depth: int) -> Prepared:
    """Lend `evaluate` of nine measures on TREC files."""
    import data
    from tools import MEASURES

    shape = data.Shape(n_queries, depth)
    qrels, run = (data.make(place, shape, form) for form in ("qrels", "trec"))
    files = ["--qrels", str(qrels), "--run", str(run)]
    measures = [word for name in MEASURES for word in ("-m", name)]
    yield ["evaluate", *files, *measures, "--rel-threshold", "1", "--quiet"]


@contextmanager
def pairs(place: Path, n: int) -> Prepared:
    """Lend `judge` of pairs, by a model that answers at once."""
    from pairs import write_pairs

    from ragforge.mock import Script, serving

    write_pairs(place / "pairs.jsonl", n)
    with serving(Script()) as endpoint:
        files = f"--pairs {place}/pairs.jsonl --out {place}/judged.jsonl"
        asked = f"--model mock --base-url {endpoint.url} --concurrency 64 -q"
        yield f"judge {files} {asked}".split()


@contextmanager
def generating(place: Path, n_chunks: int, n: int) -> Prepared:
    """Lend `generate` with all that it does."""
    from generation import make_corpus

    from ragforge.mock import Script, serving

    make_corpus(place / "docs", n_chunks)
    with serving(Script()) as endpoint:
        made = f"--documents {place}/docs --out {place}/set -n {n}"
        yield f"generate {made} --model mock --base-url {endpoint.url} -q".split()


@contextmanager
def reporting(place: Path, n: int) -> Prepared:
    """Lend `report` of a set of two runs."""
    import report

    report.make(place / "set", n)
    yield f"report --dataset {place}/set --out {place}/page.html".split()


@contextmanager
def cutting(place: Path, n: int) -> Prepared:
    """Lend `chunk` of Markdown."""
    import corpus

    corpus.make(place, n)
    yield f"chunk {place}/documents --out {place}/chunks.jsonl -q".split()


WORK: dict[str, Callable[[Path], "contextmanager[list[str]]"]] = {
    "evaluate, 1,000 x 100 TREC rows": lambda place: trec_files(place, 1000, 100),
    "compare, a small set": lambda place: small_set(place, "compare --dataset {place}/set old new"),
    "validate, 1,000,000 judgments": lambda place: judgments(
        place, "validate --dataset {place}/set"
    ),
    "evaluate, 1,000,000 judgments": lambda place: judgments(
        place, "evaluate --dataset {place}/set"
    ),
    "compare, 1,000,000 judgments": lambda place: judgments(
        place, "compare --dataset {place}/set old new"
    ),
    "report, 2,000 queries": lambda place: reporting(place, 2000),
    "judge, 5,000 pairs, 64 in flight": lambda place: pairs(place, 5000),
    "generate 100, 1,000 chunks": lambda place: generating(place, 1000, 100),
    "chunk, 20,000 sections": lambda place: cutting(place, 20_000),
}


if __name__ == "__main__":
    main()
