"""How long a calibration takes, and how much memory, by the number of pairs that decide.

    python benchmarks/calibrating.py --queries 6250        # 100,000 pairs

Each query has 16 texts with grades of a judge, and two runs; nDCG@10 makes all of them decide.
400 are labelled.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ragforge.calibration.correcting import apply_labels
from ragforge.calibration.planning import plan_labels
from ragforge.calibration.population import Question
from ragforge.calibration.sampling import SampleOptions, draw_sample
from ragforge.files.set.calibrations import CalibrationFiles, calibration_files
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Hit, Judgment, Label, Provenance, Query, Ranking

TEXTS = 16
LABELS = 400
JUDGE = Provenance(kind="llm", model="judge", prompt="judge_relevance", prompt_sha256="ab" * 32)
QUESTION = Question(("a", "b"), ("P@10", "DCG@10", "nDCG@10"))


def main() -> None:
    """Print a row for each step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, default=6250)
    n = parser.parse_args().queries
    with tempfile.TemporaryDirectory() as folder:
        dataset = make_set(Path(folder) / "set", n)
        files = calibration_files(dataset)
        print(f"{n * TEXTS:,} pairs\n\n| step | seconds | most memory, MB |\n| --- | ---: | ---: |")
        step("sample", lambda: draw_sample(dataset, files, QUESTION, SampleOptions(LABELS)))
        files.add_labels(labels(files))
        step("apply", lambda: apply_labels(dataset, files))
        step("plan", lambda: plan_labels(dataset, files, None))


def step(name: str, what: Callable[[], object]) -> None:
    """Print how long something took."""
    started = time.perf_counter()
    what()
    seconds = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {seconds:.1f} | {most:,.0f} |", flush=True)


def make_set(path: Path, n: int) -> Dataset:
    """Return a set with a judge's grades and two runs."""
    generator = np.random.default_rng(0)
    grades = generator.choice(4, size=(n, TEXTS), p=(0.5, 0.25, 0.15, 0.1))
    made = create_dataset(path, made_from={"seed": "0"})
    made.write_chunks(
        Chunk(chunk_id=f"c{q:05}-{c:02}", doc_id=f"d{q}", text=f"Text {c} of {q}.")
        for q in range(n)
        for c in range(TEXTS)
    )
    made.write_queries(Query(query_id=f"q{q:05}", query=f"What of {q}?") for q in range(n))
    made.write_judgments(
        Judgment(
            query_id=f"q{q:05}",
            chunk_id=f"c{q:05}-{c:02}",
            grade=int(grades[q, c]),
            provenance=JUDGE,
        )
        for q in range(n)
        for c in range(TEXTS)
    )
    for name, skill in (("a", 1.0), ("b", 0.5)):
        scores = skill * grades + generator.normal(size=grades.shape)
        made.write_run(name, (ranking(q, scores[q]) for q in range(n)))
    return made


def ranking(query: int, scores: np.ndarray) -> Ranking:
    """Return the texts of a query by their scores."""
    hits = tuple(
        Hit(chunk_id=f"c{query:05}-{c:02}", score=float(score)) for c, score in enumerate(scores)
    )
    return Ranking(query_id=f"q{query:05}", ranking=hits)


def labels(files: CalibrationFiles) -> Iterator[Label]:
    """Yield a label on each pair drawn."""
    for i, pair in enumerate(files.sample().pairs):
        yield Label(
            query_id=pair.query_id,
            chunk_id=pair.chunk_id,
            text_sha256=pair.text_sha256,
            stratum=pair.stratum,
            probability=pair.probability,
            labeller="ann",
            grade=i % 4,
        )


if __name__ == "__main__":
    main()
