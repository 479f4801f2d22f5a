"""Inputs for the benchmark: qrels and runs from a fixed seed, in the forms that tools read.

Ids are like those of MS MARCO: whole numbers as text, queries in no order. Scores fall by at least
0.002 from rank to rank, so that tools which keep them in 32 bits see no ties that are not there.

As a command (evaluate.py calls it so, to stay small itself): data.py FOLDER SHAPE-AS-JSON FORM
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, Literal

SEED: Final = 20_240_229
N_CHUNKS: Final = 8_841_823
"""Passages of MS MARCO; ids are drawn below this number."""
N_QUERY_IDS: Final = 1_102_400
FIRST_SCORE: Final = 40.0
GRADES: Final = (0, 1, 2, 3)
WEIGHTS: Final = (3, 4, 2, 1)
RETRIEVED_SHARE: Final = 0.8
"""Of the judged chunks of a query."""

QUERY_ID: Final = "query_id"
RANKING: Final = "ranking"
CHUNK_ID: Final = "chunk_id"
SCORE: Final = "score"
COLUMN_OF_IDS: Final = "ids"
COLUMN_OF_SCORES: Final = "scores"
"""Names in the JSON Lines files: here, and nowhere else."""

Scores = Literal["distinct", "one-decimal", "all-tied"]
FILES: Final = {
    "qrels": "qrels.trec",
    "trec": "run.trec",
    "objects": "run.objects.jsonl",
    "columns": "run.columns.jsonl",
}
"""Form to file name; qrels are read in the TREC format by every tool."""

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a run is, and what its scores are like."""

    n_queries: int
    depth: int
    """Chunks retrieved for each query."""
    judged: int = 10
    """Judged chunks of each query."""
    scores: Scores = "distinct"
    shuffled: bool = False
    """Whether chunks stand in no order, instead of best first."""

    def __str__(self) -> str:
        order = "shuffled" if self.shuffled else "sorted"
        return f"{self.n_queries}x{self.depth}_{self.judged}_{self.scores}_{order}"


@dataclass(frozen=True, slots=True)
class Ranked:
    """One query."""

    query_id: str
    grades: dict[str, int]
    chunk_ids: list[str]
    scores: list[str]
    """As text with 6 decimals, aligned with `chunk_ids`: all forms hold the same numbers."""


def rankings(shape: Shape) -> Iterator[Ranked]:
    """Yield the queries of a shape, the same ones each time."""
    rng = Random(f"{SEED} {shape}")
    for query_id in rng.sample(range(N_QUERY_IDS), shape.n_queries):
        n_retrieved = min(round(shape.judged * RETRIEVED_SHARE), shape.depth)
        n_missed = shape.judged - n_retrieved
        drawn = [str(number) for number in rng.sample(range(N_CHUNKS), shape.depth + n_missed)]
        chunk_ids = drawn[: shape.depth]
        judged = [*rng.sample(chunk_ids, n_retrieved), *drawn[shape.depth :]]
        grades = dict(zip(judged, rng.choices(GRADES, WEIGHTS, k=len(judged)), strict=True))
        scores = _scores(rng, shape)
        if shape.shuffled:
            order = rng.sample(range(shape.depth), shape.depth)
            chunk_ids = [chunk_ids[at] for at in order]
            scores = [scores[at] for at in order]
        yield Ranked(str(query_id), grades, chunk_ids, scores)


def _scores(rng: Random, shape: Shape) -> list[str]:
    if shape.scores == "all-tied":
        return [f"{FIRST_SCORE:.6f}"] * shape.depth
    uniform = rng.random
    score, scores = FIRST_SCORE + uniform(), []
    for _ in range(shape.depth):
        score -= 0.002 + 0.03 * uniform()
        scores.append(score)
    if shape.scores == "one-decimal":
        scores = [round(score, 1) for score in scores]
    return [f"{score:.6f}" for score in scores]


def make(folder: Path, shape: Shape, form: str) -> Path:
    """Write one file, unless it is there, and return its path."""
    path = folder / str(shape) / FILES[form]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("w", encoding="ascii") as file:
            file.writelines(_text(ranked, form) for ranked in rankings(shape))
        part.rename(path)
    return path


def _text(ranked: Ranked, form: str) -> str:
    query_id, pairs = ranked.query_id, zip(ranked.chunk_ids, ranked.scores, strict=True)
    if form == "qrels":
        return "".join(f"{query_id} 0 {chunk} {grade}\n" for chunk, grade in ranked.grades.items())
    if form == "trec":
        lines = enumerate(pairs, start=1)
        return "".join(f"{query_id} Q0 {chunk} {rank} {s} bench\n" for rank, (chunk, s) in lines)
    if form == "objects":
        items = ",".join(f'{{"{CHUNK_ID}":"{chunk}","{SCORE}":{s}}}' for chunk, s in pairs)
        return f'{{"{QUERY_ID}":"{query_id}","{RANKING}":[{items}]}}\n'
    ids, scores = '","'.join(ranked.chunk_ids), ",".join(ranked.scores)
    columns = f'"{COLUMN_OF_IDS}":["{ids}"],"{COLUMN_OF_SCORES}":[{scores}]'
    return f'{{"{QUERY_ID}":"{query_id}",{columns}}}\n'


def load_qrels(path: Path) -> Qrels:
    """Return the qrels of a TREC file."""
    qrels: Qrels = {}
    with path.open(encoding="ascii") as file:
        for line in file:
            query_id, _, chunk_id, grade = line.split()
            qrels.setdefault(query_id, {})[chunk_id] = int(grade)
    return qrels


def load_run(path: Path) -> Run:
    """Return the run of a file of columns; every id and score is an object of its own."""
    run: Run = {}
    with path.open(encoding="ascii") as file:
        for line in file:
            row = json.loads(line)
            pairs = zip(row[COLUMN_OF_IDS], row[COLUMN_OF_SCORES], strict=True)
            run[row[QUERY_ID]] = dict(pairs)
    return run


def _main() -> None:
    folder, shape, form = sys.argv[1:]
    make(Path(folder), Shape(**json.loads(shape)), form)


if __name__ == "__main__":
    _main()
