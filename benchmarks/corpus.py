"""The corpus side of generation at any size: chunking, the survey, opening it again, searching it.

Makes a seeded Markdown corpus of N sections (words by Zipf's law, 50 subjects, 3 % of the sections
near-duplicates of earlier ones), then runs each step in a fresh process and prints a table.

    python benchmarks/corpus.py 10000 100000 1000000
    python benchmarks/corpus.py 100000 --folder DIR        # keeps the corpus and what comes of it
"""

import argparse
import asyncio
import contextlib
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from unittest import mock

import numpy as np

SECTIONS_A_DOCUMENT = 20
DOCUMENTS_A_FOLDER = 500
WORDS = 150
VOCABULARY = 500_000
SUBJECTS = 50
SUBJECT_WORDS = 300
QUERIES = 20

P, R = ParamSpec("P"), TypeVar("R")


def main() -> None:
    """Measure, or be one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="+", help="chunks")
    parser.add_argument("--folder", type=Path, help="where the corpus is kept")
    parser.add_argument("--as-step", choices=STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_step:
        print(json.dumps(measured(STEPS[arguments.as_step], arguments.folder, arguments.n[0])))
        return
    print(
        "| chunks | step | wall s | CPU s | peak MB | |\n| ---: | --- | ---: | ---: | ---: | --- |"
    )
    for n in arguments.n:
        if arguments.folder:
            run_steps(arguments.folder, n)
        else:
            with tempfile.TemporaryDirectory() as folder:
                run_steps(Path(folder), n)


def run_steps(folder: Path, n: int) -> None:
    """Print one row a step."""
    for name in STEPS:
        command = [sys.executable, __file__, str(n), "--folder", str(folder), "--as-step", name]
        row = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        print(
            f"| {n:,} | {name} | {row['wall']:.2f} | {row['cpu']:.2f} | {row['peak']:.0f} "
            f"| {row['note']} |",
            flush=True,
        )


def measured(step: Callable[[Path, int], str], folder: Path, n: int) -> dict[str, Any]:
    """Return what a step took; the imports of the step count."""
    began, cpu = time.perf_counter(), time.process_time()
    note = step(folder, n)
    return {
        "wall": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "note": note,
    }


def make(folder: Path, n: int) -> str:
    """Write the documents, unless they are there."""
    documents = folder / "documents"
    if documents.exists():
        return "there already"
    n_bytes = 0
    for number, text in enumerate(texts(n)):
        place = documents / f"part{number // DOCUMENTS_A_FOLDER:04}"
        place.mkdir(parents=True, exist_ok=True)
        n_bytes += (place / f"document{number:06}.md").write_text(text)
    return f"{n_bytes / 1e6:.0f} MB of Markdown"


def texts(n: int) -> Iterator[str]:
    """Yield documents that have n sections together."""
    draw = np.random.default_rng(0)
    words = np.array([word(number) for number in range(VOCABULARY)], object)
    shares = 1 / (np.arange(VOCABULARY) + 2.7) ** 1.07
    bounds = np.cumsum(shares / shares.sum())
    earlier: deque[list[str]] = deque(maxlen=200)
    for first in range(0, n, SECTIONS_A_DOCUMENT):
        subject = int(draw.integers(SUBJECTS))
        parts = [f"# {words[5000 + subject].title()} {first // SECTIONS_A_DOCUMENT}\n"]
        n_sections = min(SECTIONS_A_DOCUMENT, n - first)
        ends = draw.integers(WORDS - 50, WORDS + 50, size=n_sections).cumsum().tolist()
        places = np.searchsorted(bounds, draw.random(ends[-1]))
        own = draw.random(ends[-1]) < 0.1
        at = 10_000 + subject * SUBJECT_WORDS
        places[own] = at + draw.integers(SUBJECT_WORDS, size=int(own.sum()))
        new = words[places.clip(max=VOCABULARY - 1)].tolist()
        is_copy = (draw.random(n_sections) < 0.03).tolist()
        for section, (start, end) in enumerate(pairwise([0, *ends])):
            found = new[start:end]
            if earlier and is_copy[section]:
                found = list(earlier[int(draw.integers(len(earlier)))])
                found[int(draw.integers(len(found)))] = "changed"
            earlier.append(found)
            parts.append(f"\n## Section {first + section}\n\n{sentences(found)}\n")
        yield "".join(parts)


def word(number: int) -> str:
    """Return a word that can be said; frequent ones are short."""
    syllables = []
    number += 20
    while number:
        number, rest = divmod(number, 90)
        syllables.append("bcdfghjklmnprstvwz"[rest // 5] + "aeiou"[rest % 5])
    return "".join(syllables)


def sentences(found: list[str]) -> str:
    """Return words as sentences of twelve, four a paragraph."""
    parts = [" ".join(found[at : at + 12]).capitalize() for at in range(0, len(found), 12)]
    return "\n\n".join(". ".join(parts[at : at + 4]) + "." for at in range(0, len(parts), 4))


def chunk(folder: Path, n: int) -> str:
    """Cut the documents into a sorted chunks.jsonl."""
    from ragforge.config import ChunkSettings
    from ragforge.corpus.chunk_files import write_corpus
    from ragforge.observe import silent

    out = folder / "chunks.jsonl"
    count = write_corpus([folder / "documents"], ChunkSettings(), silent, out)
    return f"{count:,} chunks, {out.stat().st_size / 1e6:.0f} MB"


def survey(folder: Path, n: int) -> str:
    """Build the survey anew."""
    from ragforge.observe import silent
    from ragforge.pipeline import surveying

    shutil.rmtree(folder / "own", ignore_errors=True)
    took: dict[str, float] = {}

    def timed(name: str, function: Callable[P, R]) -> Callable[P, R]:
        def called(*given: P.args, **named: P.kwargs) -> R:
            began = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                took[name] = took.get(name, 0) + time.perf_counter() - began

        return called

    parts = {
        "MinHash": (surveying.Sketches, "add"),
        "grouping": (surveying, "representatives"),
        "index blocks": (surveying.PostingsWriter, "add"),
        "index merge": (surveying, "write_index"),
        "topics": (surveying, "topics"),
    }
    with contextlib.ExitStack() as stack:
        for name, (owner, attribute) in parts.items():
            function = timed(name, getattr(owner, attribute))
            stack.enter_context(mock.patch.object(owner, attribute, function))
        opened = surveying.open_survey(folder / "chunks.jsonl", folder / "own", silent)
        stack.enter_context(opened)
        assert opened.n_chunks >= n * 0.9
    size = sum(file.stat().st_size for file in (folder / "own").rglob("*") if file.is_file())
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items())
    return f"{steps}; {size / 1e6:.0f} MB on disk"


def reopen(folder: Path, n: int) -> str:
    """Open the survey that is there."""
    from ragforge.observe import silent
    from ragforge.pipeline.surveying import open_survey

    with open_survey(folder / "chunks.jsonl", folder / "own", silent) as opened:
        return f"{opened.n_chunks:,} chunks, {opened.n_documents:,} documents"


def plan(folder: Path, n: int) -> str:
    """Go through all cards."""
    from ragforge.observe import silent
    from ragforge.pipeline.surveying import open_survey

    topics, twins = set(), 0
    with open_survey(folder / "chunks.jsonl", folder / "own", silent) as opened:
        for card in opened.cards():
            topics.add(card.topic)
            twins += card.duplicate_of != card.chunk_id
    return f"{len(topics)} topics, {twins / n:.1%} stood for by another"


def search(folder: Path, n: int) -> str:
    """Ask queries of three kinds, each its own chunk's."""
    from ragforge.observe import silent
    from ragforge.pipeline.surveying import open_survey

    with open_survey(folder / "chunks.jsonl", folder / "own", silent) as opened:
        cards = [
            card.chunk_id for _, card in zip(range(QUERIES * 40), opened.cards(), strict=False)
        ]
        found = {"10 words": 10, "40 words": 40, "whole chunk": 10_000}
        notes = []
        for kind, n_words in found.items():
            took, hits = [], 0
            for chunk_id in cards[::40]:
                query = " ".join(opened.chunk(chunk_id).text.split()[-n_words:])
                began = time.perf_counter()
                ranking = asyncio.run(opened.bm25.retrieve(query, 10))
                took.append((time.perf_counter() - began) * 1000)
                hits += chunk_id in {hit.chunk_id for hit in ranking}
            notes.append(
                f"{kind} {statistics.median(took):.0f} ms (most {max(took):.0f}, "
                f"own chunk found {hits}/{len(took)})"
            )
    return ", ".join(notes)


STEPS = {
    "make": make,
    "chunk": chunk,
    "survey": survey,
    "open again": reopen,
    "all cards": plan,
    "20 queries of each kind": search,
}


if __name__ == "__main__":
    main()
