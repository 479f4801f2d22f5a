"""Following a corpus at any size: nothing changed, some documents changed, where quotes stand now.

Makes a seeded corpus of N sections and a set of it with M queries, changes a share of the
documents, and runs each step in a fresh process. The corpus is Markdown files of 20 sections, or
one JSON Lines export with a document for each section.

    python benchmarks/refresh.py --chunks 10000 100000 1000000 --items 10000
    python benchmarks/refresh.py --chunks 100000 --form export --folder DIR    # keeps what is made
"""

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.records import Query

SECTIONS_A_DOCUMENT = 20
DOCUMENTS_A_FOLDER = 500
SENTENCES, WORDS, SENTENCES_A_SECTION = 5000, 12, 11
SUBJECTS = "billing returns delivery accounts security storage network backup search export".split()
VERBS = "starts stops checks renews cancels restores forwards limits counts splits".split()
THINGS = "the order,a token,each record,the archive,one queue,the invoice,all sessions".split(",")
TAILS = "at night,within a day,after a failure,without a key,for each user,on request".split(",")
FORMS = ("files", "export")


def main() -> None:
    """Measure, or be one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000])
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--changed", type=float, nargs="+", default=[0, 0.001, 0.01, 0.1])
    parser.add_argument("--form", choices=FORMS, nargs="+", default=FORMS)
    parser.add_argument("--folder", type=Path, help="where the corpora are kept")
    parser.add_argument("--as-step", choices=STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_step:
        print(json.dumps(measured(STEPS[arguments.as_step], arguments)))
        return
    print("| chunks | form | changed | step | wall s | CPU s | peak MB | |")
    print("| ---: | --- | ---: | --- | ---: | ---: | ---: | --- |")
    for n in arguments.chunks:
        for form in arguments.form:
            with tempfile.TemporaryDirectory() as made:
                folder = arguments.folder / f"{form}-{n}" if arguments.folder else Path(made)
                run_steps(folder, n, form, arguments)


def run_steps(folder: Path, n: int, form: str, arguments: argparse.Namespace) -> None:
    """Print one row a step; a step that follows in the same process has the peak so far."""
    folder.mkdir(parents=True, exist_ok=True)
    steps = [("set", 0.0)] if not (folder / "set" / "queries.jsonl").exists() else []
    for name, share in [*steps, *(("diff", share) for share in arguments.changed)]:
        change(folder, form, n, share)
        own = ["--chunks", str(n), "--items", str(arguments.items), "--changed", str(share)]
        where = ["--form", form, "--folder", str(folder), "--as-step", name]
        done = subprocess.run(
            [sys.executable, __file__, *own, *where], check=True, stdout=subprocess.PIPE
        )
        for row in json.loads(done.stdout):
            print(
                f"| {n:,} | {form} | {share:.1%} | {row['name']} | {row['wall']:.2f} "
                f"| {row['cpu']:.2f} | {row['peak']:.0f} | {row['note']} |",
                flush=True,
            )


def measured(
    step: Callable[[argparse.Namespace], Iterator[tuple[str, str]]], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return what each part of a step took; its imports count."""
    rows: list[dict[str, Any]] = []
    began, cpu = time.perf_counter(), time.process_time()
    for name, note in step(arguments):
        rows.append(
            {
                "name": name,
                "wall": time.perf_counter() - began,
                "cpu": time.process_time() - cpu,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "note": note,
            }
        )
        began, cpu = time.perf_counter(), time.process_time()
    return rows


def change(folder: Path, form: str, n: int, share: float) -> None:
    """Write the corpus with a share of its documents changed."""
    documents = folder / "documents"
    if form == "export":
        documents.mkdir(exist_ok=True)
        with (documents / "pages.jsonl").open("w") as stream:
            every = round(1 / share) if share else 0
            for number, text in enumerate(sections(n)):
                changed = edited(text) if every and number % every == 0 else text
                row = {"id": f"page{number:07}", "title": title(number), "text": changed}
                stream.write(f"{json.dumps(row)}\n")
        return

    every = round(1 / share) if share else 0
    for number, text in enumerate(pages(n)):
        wanted = edited(text) if every and number % every == 0 else text
        path = path_of(documents, number)
        if not path.exists() or path.read_text() != wanted:
            path.write_text(wanted)


def documents_of(arguments: argparse.Namespace) -> list[Path]:
    """Return what is read: exports are named."""
    documents = arguments.folder / "documents"
    return [documents if arguments.form == ["files"] else documents / "pages.jsonl"]


def path_of(documents: Path, number: int) -> Path:
    """Return the file of a document; its folder is made."""
    place = documents / f"part{number // DOCUMENTS_A_FOLDER:04}"
    place.mkdir(parents=True, exist_ok=True)
    return place / f"document{number:06}.md"


def edited(text: str) -> str:
    """Return a text with another word in its middle."""
    at = text.index(" and ", len(text) // 3)
    return f"{text[:at]} and soon{text[at:]}"


def pages(n: int) -> Iterator[str]:
    """Yield documents that have n sections together."""
    parts: list[str] = []
    for number, text in enumerate(sections(n)):
        parts.append(f"## {title(number)}\n\n{text}\n")
        if len(parts) == SECTIONS_A_DOCUMENT or number + 1 == n:
            yield "\n".join([f"# Guide {number // SECTIONS_A_DOCUMENT}\n", *parts])
            parts.clear()


def sections(n: int) -> Iterator[str]:
    """Yield the texts of n sections; each has the sentence that is quoted of it."""
    draw = random.Random(0)
    pool = [sentence(draw) for _ in range(SENTENCES)]
    for number in range(n):
        yield " ".join([*draw.choices(pool, k=SENTENCES_A_SECTION), quote(number)])


def sentence(draw: random.Random) -> str:
    """Return a sentence of words that are drawn."""
    parts = [
        f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(THINGS)} {draw.choice(TAILS)}"
        for _ in range(WORDS // 6)
    ]
    return f"{' and '.join(parts).capitalize()}."


def quote(number: int) -> str:
    """Return the sentence of a section that only it has."""
    return f"The limit of plan {number} is {number * 7919 % 100_003} requests per hour."


def title(number: int) -> str:
    """Return the title of a section."""
    return f"Section {number} on {SUBJECTS[number % len(SUBJECTS)]}"


def make_set(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Cut the documents into a set, and put queries into it, each with a quote."""
    from ragforge.config import ChunkSettings
    from ragforge.files.set.opening import create_dataset
    from ragforge.observe import silent
    from ragforge.pipeline.generation.source import ChunkSource, take_corpus

    folder, n = arguments.folder, arguments.chunks[0]
    source = ChunkSource(documents_of(arguments), None, ChunkSettings(), silent)
    with source.prepared(folder / "set" / ".ragforge") as prepared:
        dataset = create_dataset(folder / "set", {"chunks": prepared.digest})
        take_corpus(dataset, prepared)
    dataset.write_queries(queries(dataset, n, arguments.items))
    chunks = dataset.manifest.files["chunks.jsonl"].records
    rows = dataset.manifest.files["documents.jsonl"].records
    yield "set", f"{chunks:,} chunks, {rows:,} documents, {len(dataset.queries()):,} queries"


def queries(dataset: "Dataset", n: int, n_items: int) -> "Iterator[Query]":
    """Yield queries that quote sections at even distances."""
    from ragforge.records import Evidence, Query

    wanted = {quote(number): number for number in range(0, n, max(1, n // n_items))}
    for chunk in dataset.chunks():
        begin = chunk.text.find("The limit of plan ")
        end = chunk.text.find("hour.", begin) + len("hour.")
        number = wanted.get(chunk.text[begin:end])
        if number is None:
            continue
        text = chunk.text[begin:end]
        start = chunk.start + begin
        evidence = Evidence(
            doc_id=chunk.doc_id,
            chunk_id=chunk.chunk_id,
            quote=text,
            start=start,
            end=start + len(text),
            prefix=chunk.text[max(0, begin - 32) : begin],
            suffix=chunk.text[end : end + 32],
        )
        yield Query(
            query_id=f"q{number:07}",
            query=f"What is the limit of plan {number}?",
            expected_answer=text,
            evidence=(evidence,),
            source_chunk_ids=(chunk.chunk_id,),
        )


def refresh(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Compare the documents with those of the set, then look where the quotes stand now."""
    from collections import Counter

    from ragforge.config import ChunkSettings, RefreshSettings
    from ragforge.files.set.opening import open_dataset
    from ragforge.observe import silent
    from ragforge.refresh.corpus.diff import diff_corpus
    from ragforge.refresh.version_checks import check_churn

    folder = arguments.folder
    shutil.rmtree(folder / "place", ignore_errors=True)
    dataset = open_dataset(folder / "set")
    documents = documents_of(arguments)
    found = diff_corpus(dataset, documents, ChunkSettings(), folder / "place", silent, 2)
    check_churn(found, RefreshSettings())
    told = found.documents
    yield (
        "diff",
        (
            f"{len(told.changed):,} documents changed; chunks: {told.chunks_kept:,} kept, "
            f"{told.chunks_added:,} added, {told.chunks_removed:,} removed"
        ),
    )
    if found.is_empty:
        return
    from ragforge.refresh.quotes.locations import locate_queries

    seen = locate_queries(dataset.all_queries(), dataset, found, RefreshSettings())
    states = Counter(item.state for item in seen)
    yield "quotes", ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))


STEPS = {"set": make_set, "diff": refresh}

if __name__ == "__main__":
    main()
