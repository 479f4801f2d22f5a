"""Datasets with a judge, runs and a person who grades what a sample draws."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from ragforge.calibration.population import Question
from ragforge.calibration.sampling import DrawnSample, SampleOptions, draw_sample
from ragforge.files.set.calibrations import CalibrationFiles, calibration_files
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Hit, Judgment, Label, Provenance, Query, Ranking, SampledPair

JUDGE = Provenance(kind="llm", model="judge-1", prompt="judge_relevance", prompt_sha256="ab" * 32)
N_CHUNKS = 16
AS_DRAWN = Question(("a", "b"), ("P@10", "DCG@10"))


def truth(query: int, chunk: int) -> int:
    """Return what a person says of a pair."""
    return int(np.random.default_rng([query, chunk]).choice(4, p=(0.45, 0.25, 0.2, 0.1)))


def graded_set(
    path: Path,
    n_queries: int = 30,
    *,
    judge: Callable[[int, int], int | None] | None = None,
    text: Callable[[int, int], str] | None = None,
) -> Dataset:
    """Make a set whose judge errs by one grade in half of all cases, with runs a and b.

    Args:
        path: Where.
        n_queries: How many.
        judge: What it says of a query and a chunk; None for a failed judgment.
        text: Of a query's chunk.
    """
    said = judge or _erring
    made = create_dataset(path, made_from={"seed": "0"})
    ids = [(q, c) for q in range(n_queries) for c in range(N_CHUNKS)]
    texts = text or (lambda q, c: f"Text {c} on subject {q}.")
    made.write_chunks(
        Chunk(chunk_id=_chunk(q, c), doc_id=f"d{q}", text=texts(q, c)) for q, c in ids
    )
    made.write_queries(Query(query_id=_query(q), query=f"What of {q}?") for q in range(n_queries))
    made.write_judgments(_judgment(q, c, said(q, c)) for q, c in ids)
    for name, skill in (("a", 1.0), ("b", 0.3)):
        made.write_run(name, [_ranking(q, skill) for q in range(n_queries)])
    return made


def drawn(dataset: Dataset, n: int = 100, question: Question = AS_DRAWN, **options) -> DrawnSample:
    """Draw a sample."""
    return draw_sample(dataset, calibration_files(dataset), question, SampleOptions(n=n, **options))


def label_all(
    dataset: Dataset,
    *,
    labeller: str = "ann",
    most: int | None = None,
    grade: Callable[[int, int], int | None] = truth,
) -> CalibrationFiles:
    """Label what was drawn, in its order."""
    files = calibration_files(dataset)
    files.add_labels(
        as_label(pair, grade(*place_of(pair)), labeller) for pair in files.sample().pairs[:most]
    )
    return files


def ranked(query: int, chunks: Iterable[int]) -> Ranking:
    """Return a ranking of a query's chunks, best first."""
    hits = (Hit(chunk_id=_chunk(query, c), score=float(-i)) for i, c in enumerate(chunks))
    return Ranking(query_id=_query(query), ranking=tuple(hits))


def place_of(pair: SampledPair) -> tuple[int, int]:
    """Return the query and the chunk of a pair."""
    return int(pair.query_id[1:]), int(pair.chunk_id.partition("-")[2])


def as_label(pair: SampledPair, grade: int | None, labeller: str = "ann", look: int = 1) -> Label:
    """Return a label on a drawn pair."""
    return Label(
        query_id=pair.query_id,
        chunk_id=pair.chunk_id,
        text_sha256=pair.text_sha256,
        stratum=pair.stratum,
        probability=pair.probability,
        labeller=labeller,
        grade=grade,
        skipped=grade is None,
        look=look,
    )


def _erring(query: int, chunk: int) -> int:
    generator = np.random.default_rng([query, chunk, 1])
    off = int(generator.choice((-1, 0, 1), p=(0.2, 0.5, 0.3)))
    return min(max(truth(query, chunk) + off, 0), 3)


def _judgment(query: int, chunk: int, grade: int | None) -> Judgment:
    return Judgment(
        query_id=_query(query),
        chunk_id=_chunk(query, chunk),
        grade=grade,
        failure=None if grade is not None else "invalid",
        provenance=JUDGE,
    )


def _ranking(query: int, skill: float) -> Ranking:
    generator = np.random.default_rng([query, round(skill * 10), 2])
    scores = [skill * truth(query, c) + float(generator.normal()) for c in range(N_CHUNKS)]
    hits = (Hit(chunk_id=_chunk(query, c), score=score) for c, score in enumerate(scores))
    return Ranking(query_id=_query(query), ranking=tuple(hits))


def _query(query: int) -> str:
    return f"q{query:05}"


def _chunk(query: int, chunk: int) -> str:
    return f"c{query:05}-{chunk:02}"
