"""The report page at any number of queries: how long it takes, how large it is, how fast it opens.

Makes a seeded set of N queries with two runs of 12 ranks, 12 judgments a query and chunks of some
150 random words (which pack worse than real ones), renders the page in a fresh process, and opens
it in Debian's chromium where that is installed.

    python benchmarks/report.py 1000 50000
"""

import argparse
import io
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from itertools import accumulate
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
"""Where the browser is steered from."""
WORDS = 6000
RANKS = 12
SEED = 1

READY = """new Promise((done) => {
  const timer = setInterval(() => {
    const table = document.getElementById("queries-table");
    if (table.dataset.ready || table.dataset.fault) {
      clearInterval(timer);
      done(Number(table.dataset.ready));
    }
  }, 10);
})"""
PAINT = "Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1)"
ACTION = """(async () => {
  const shown = new Promise((done) => addEventListener("hashchange",
    () => requestAnimationFrame(() => setTimeout(done)), {once: true}));
  const start = performance.now();
  %s;
  await shown;
  return Math.round(performance.now() - start);
})()"""
ACTIONS = {
    "sort": "document.querySelector('[data-sort=\"value.0\"] button').click()",
    "search": "location.hash = 'search=ba+ke'",
    "open": "location.hash = 'q=' + document.querySelector('tbody code').textContent",
}


def main() -> None:
    """Measure, or be the process that renders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="*", default=[1000], help="queries")
    parser.add_argument("--as-render", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_render:
        print(json.dumps(rendered(arguments.as_render)))
        return
    head = "page MB | files MB | render s | CPU s | peak MB"
    print(f"| queries | {head} | first paint, ready, sort, search, open: ms |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for n in arguments.n:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            make(place / "set", n)
            asked = [sys.executable, __file__, "--as-render", str(place)]
            found = json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)
            took = " / ".join(map(str, browsed(place / "page.html", place / "profile")))
            figures = f"{found['mb']:.2f} | {found['files_mb']:.2f} | {found['s']:.1f}"
            figures += f" | {found['cpu']:.1f} | {found['peak']}"
            print(f"| {n:,} | {figures} | {took} |")


def make(path: Path, n: int) -> None:
    """Write a set of `n` queries, the same each time."""
    from ragforge.files.set.opening import create_dataset
    from ragforge.records import Chunk, Evidence, Hit, Judgment, Provenance, Query, Ranking

    chance = random.Random(SEED)
    words = [
        "".join(chance.choice("bcdfghklmnprstvw") + chance.choice("aeiou") for _ in range(length))
        for length in (chance.randint(1, 4) for _ in range(WORDS))
    ]
    # Summed once: `choices` sums them at each call otherwise, which took most of the time.
    weights = list(accumulate(1 / (place + 3) for place in range(WORDS)))

    def text(length: int) -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=length)).capitalize() + "."

    judge = Provenance(kind="llm", model="judge", prompt="p", prompt_sha256="ab" * 32)
    chunks = [
        Chunk(
            chunk_id=f"c{number:08}",
            doc_id=f"doc{number // 20}.md",
            heading_path=("Guide", text(3)),
            text=" ".join(text(12) for _ in range(12)),
        )
        for number in range(max(2000, n // 2))
    ]
    dataset = create_dataset(path, {})
    dataset.write_chunks(chunks)
    queries, judgments = [], []
    runs: dict[str, list[Ranking]] = {"base": [], "dense": []}
    for number in range(n):
        query_id = f"q{number:06}"
        own = chance.sample(chunks, RANKS + 2)
        quote = Evidence(doc_id=own[0].doc_id, chunk_id=own[0].chunk_id, quote=own[0].text[:60])
        queries.append(
            Query(
                query_id=query_id,
                query=f"{text(10)[:-1]}?",
                expected_answer=text(20),
                difficulty=chance.choice(["easy", "medium", "hard"]),
                evidence=(quote,),
            )
        )
        grades = [3, *(chance.choice([0, 0, 0, 1, 2, 3]) for _ in range(RANKS - 1))]
        judgments += [
            Judgment(
                query_id=query_id,
                chunk_id=chunk.chunk_id,
                grade=grade,
                reasoning=text(14),
                provenance=judge,
            )
            for chunk, grade in zip(own, grades, strict=False)
        ]
        for rankings in runs.values():
            hits = tuple(
                Hit(chunk_id=chunk.chunk_id, score=RANKS - rank)
                for rank, chunk in enumerate(chance.sample(own, RANKS))
            )
            rankings.append(Ranking(query_id=query_id, ranking=hits, latency_s=0.01))
    dataset.write_queries(queries)
    dataset.write_judgments(judgments)
    for name, rankings in runs.items():
        dataset.write_run(name, rankings)


def rendered(place: Path) -> dict[str, float]:
    """Write the page of the set in a folder; return its size, the time and the memory it took."""
    from ragforge.cli import main

    start = time.perf_counter()
    with redirect_stdout(io.StringIO()):
        main(["report", "--dataset", str(place / "set"), "--out", str(place / "page.html")])
    files = (place / "page_files").rglob("*.js")
    return {
        "s": time.perf_counter() - start,
        "cpu": time.process_time(),
        "mb": (place / "page.html").stat().st_size / 1e6,
        "files_mb": sum(path.stat().st_size for path in files) / 1e6,
        "peak": _peak_mb(),
    }


def _peak_mb() -> int:
    """Return the peak of this process; that of `getrusage` is the parent's, where it had more."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(kib) // 1024


def browsed(page_path: Path, profile: Path) -> list[object]:
    """Return what a browser took; [] where there is none."""
    if shutil.which("chromium") is None:
        return []
    sys.path.insert(0, str(TESTS))
    from devtools import FLAGS, opened

    with opened(page_path, profile, FLAGS) as page:
        ready = page.value(READY)
        times = [page.value(ACTION % action) for action in ACTIONS.values()]
        return [page.value(PAINT), ready, *times]


if __name__ == "__main__":
    main()
