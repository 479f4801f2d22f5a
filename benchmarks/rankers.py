"""Rankers that need no endpoint: how well they rank what people graded, and how fast.

    python benchmarks/rankers.py PAIRS.jsonl.gz [--folder DIR] [--run FILE …]

Pairs are rows of {query_id, query, chunk_id, text, grade}. For each query all texts of the file are
ranked; those that nobody graded for it count as not relevant. The second table is the help centre
that ragforge ships. Brackets are 95 % intervals that resample queries; differences are paired.

The third table holds cosines against grades, as a judge would use them. Thresholds are those of the
highest quadratic kappa; each fifth of the queries is graded by thresholds fitted on the others.
With `--run`, the last table is nDCG@10 of runs in TREC's form by people and by both baselines, on
the pairs alone (what is no pair is left out of a ranking).

Milliseconds are CPU, with the reading of the weights. Vectors are kept for the rows below; with
`--folder` also for the next run, whose milliseconds then mean nothing.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import ragforge as rf
from ragforge.files.formats.pairs import PairRow, read_pairs
from ragforge.files.formats.runs import read_run
from ragforge.files.set.opening import open_dataset
from ragforge.files.shipped_folders import shipped
from ragforge.measures.agreement import auc, quadratic_kappa
from ragforge.measures.grader_agreement import AUC_OF_SCORE, Grader, agree
from ragforge.measures.intervals import (
    ClusteredInterval,
    clusters,
    mean_interval,
    percentile_interval,
    resampled_times,
)
from ragforge.records import Chunk
from ragforge.retrieval.local_models import LOCAL_MODELS
from ragforge.retrieval.local_vectors import LocalVectors
from ragforge.retrieval.retrievers import make_retriever
from ragforge.stages.judge.lexical import grade_of_share, share_of_words
from ragforge.stages.judge.local_model import grade_of_cosine

SPECS = ("bm25", "static", "minilm", "bm25+minilm", "bm25>minilm")
MEASURES = ("nDCG@10", "R(rel=2)@50")
DEPTH = 100
STEPS = 40
"""Cosines that may be a threshold."""
FOLDS = 5

Grades = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Collection:
    """Queries, texts and who is relevant."""

    queries: dict[str, str]
    chunks: list[Chunk]
    grades: Grades


def main() -> None:
    """Rank and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, help="pairs with the grades of people, 0 to 3")
    parser.add_argument("--folder", type=Path, help="keeps vectors")
    parser.add_argument("--run", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    pairs = [pair for pair in read_pairs(arguments.pairs) if pair.human_grade is not None]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        rank(of_pairs(pairs), folder, arguments.pairs.name)
        rank(help_centre(), folder, "help centre")
        grade(pairs, folder)
        systems(pairs, folder, arguments.run)


def of_pairs(pairs: Sequence[PairRow]) -> Collection:
    """Return all texts as one corpus."""
    grades: dict[str, dict[str, int]] = {}
    for pair in pairs:
        grades.setdefault(pair.query_id, {})[pair.chunk_id] = pair.human_grade or 0
    texts = {pair.chunk_id: pair.text for pair in pairs}
    chunks = [Chunk(chunk_id=name, doc_id=name, text=text) for name, text in texts.items()]
    return Collection({pair.query_id: pair.query for pair in pairs}, chunks, grades)


def help_centre() -> Collection:
    """Return the sample that is shipped: its answerable questions, on ragforge's own chunks."""
    sample = Path(str(shipped("datasets"))) / "helpcentre"
    with tempfile.TemporaryDirectory() as temporary:
        made = rf.from_queries(
            sample / "golden.jsonl", sample / "documents", out=Path(temporary) / "set", quiet=True
        )
        dataset = open_dataset(made.path)
        queries = {q.query_id: q.query for q in dataset.accepted_queries() if q.answerable}
        grades: dict[str, dict[str, int]] = {name: {} for name in queries}
        for judgment in dataset.each_judgment():
            if judgment.query_id in queries and judgment.grade is not None:
                grades[judgment.query_id][judgment.chunk_id] = judgment.grade
        return Collection(queries, list(dataset.chunks()), grades)


def rank(collection: Collection, folder: Path, name: str) -> None:
    """Print a row a ranker."""
    print(
        f"\n{name}: {len(collection.queries)} queries, {len(collection.chunks):,} texts, "
        f"{sum(map(len, collection.grades.values())):,} grades\n"
    )
    beside = " | ".join(f"{each} | - bm25" for each in MEASURES)
    print(f"| ranker | {beside} | ms a text | ms a query |")
    print("| --- |" + " ---: |" * (2 * len(MEASURES) + 2))
    values: dict[str, dict[str, list[float]]] = {}
    for spec in SPECS:
        found, per_text, per_query = asyncio.run(_ranked(collection, spec, folder))
        scores = rf.evaluate(collection.grades, found, MEASURES)
        values[spec] = {each: scores.values(each) for each in MEASURES}
        cells = [cell for each in MEASURES for cell in _cells(values, spec, each)]
        print(f"| {spec} | {' | '.join(cells)} | {per_text:.2f} | {per_query:.1f} |", flush=True)


async def _ranked(
    collection: Collection, spec: str, folder: Path
) -> tuple[dict[str, dict[str, float]], float, float]:
    begun = time.process_time()
    retriever = make_retriever(spec, collection.chunks, None, folder=folder)
    await retriever.retrieve("warm up", 1)
    per_text = 1000 * (time.process_time() - begun) / len(collection.chunks)
    begun = time.process_time()
    found = {
        query_id: {hit.chunk_id: hit.score for hit in await retriever.retrieve(query, DEPTH)}
        for query_id, query in collection.queries.items()
    }
    return found, per_text, 1000 * (time.process_time() - begun) / len(found)


def _cells(values: Mapping[str, Mapping[str, list[float]]], spec: str, measure: str) -> list[str]:
    own = values[spec][measure]
    mean = mean_interval(own)
    shown = f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
    if spec == SPECS[0]:
        return [shown, ""]
    base = values[SPECS[0]][measure]
    diff = mean_interval([new - old for new, old in zip(own, base, strict=True)])
    return [shown, f"{diff.mean:+.3f} [{diff.low:+.3f}, {diff.high:+.3f}]"]


def grade(pairs: Sequence[PairRow], folder: Path) -> None:
    """Print how cosines, and grades made of them, agree with people."""
    people = np.array([pair.human_grade for pair in pairs])
    ids = [pair.query_id for pair in pairs]
    shares = np.array([share_of_words(pair.query, pair.text) for pair in pairs])
    scores = {"shared words": shares}
    scores |= {name: cosines(LocalVectors(name, folder), pairs) for name in LOCAL_MODELS}
    graders = [Grader("shared words", [grade_of_share(x) for x in shares], shares.tolist())]
    for name in LOCAL_MODELS:
        print(f"\n{name}: thresholds of all pairs", fitted(scores[name], people), flush=True)
        graders.append(Grader(name, cross_validated(scores[name], people, ids), scores[name]))
    found = agree(ids, people, graders)
    print(
        f"\n{found.n_pairs:,} pairs of {found.n_queries} queries, by thresholds of other queries\n"
    )
    shown = ("kappa", "quadratic kappa", "kappa at threshold", "MAE", "bias", AUC_OF_SCORE)
    print(f"| judge | {' | '.join(shown)} | AUC - that of shared words |")
    print("| --- |" + " ---: |" * (len(shown) + 1))
    groups = clusters(ids)
    times = resampled_times(len(groups.query_ids), 0)
    areas = {
        name: auc(values, people >= 2, times, groups.of_pair) for name, values in scores.items()
    }
    for one in found.graders:
        gain = areas[one.name] - areas["shared words"]
        beyond = _of(percentile_interval(gain, found.n_queries)) if gain.any() else ""
        print(f"| {one.name} | {' | '.join(_of(one.figures[each]) for each in shown)} | {beyond} |")


def systems(pairs: Sequence[PairRow], folder: Path, paths: Sequence[Path]) -> None:
    """Print what each judge says of runs, and of a run of minilm."""
    by: dict[str, dict[str, dict[str, int]]] = {"people": {}, "shared words": {}, "minilm": {}}
    found = cosines(LocalVectors("minilm", folder), pairs)
    for pair, cosine in zip(pairs, found.tolist(), strict=True):
        share = share_of_words(pair.query, pair.text)
        grades = (pair.human_grade or 0, grade_of_share(share), grade_of_cosine(cosine))
        for judge, value in zip(by.values(), grades, strict=True):
            judge.setdefault(pair.query_id, {})[pair.chunk_id] = value
    runs = {path.name: read_run(path).rankings for path in paths}
    if runs:
        runs["minilm, all texts"] = asyncio.run(_ranked(of_pairs(pairs), "minilm", folder))[0]
        print(f"\n| run, nDCG@10 by | {' | '.join(by)} |\n| --- |{' ---: |' * len(by)}")
    for name, run in runs.items():
        kept = {
            query_id: {
                chunk: value for chunk, value in run.get(query_id, {}).items() if chunk in of
            }
            for query_id, of in by["people"].items()
        }
        scores = [rf.evaluate(each, kept, ["nDCG@10"]).values("nDCG@10") for each in by.values()]
        print(f"| {name} | {' | '.join(f'{np.mean(each):.3f}' for each in scores)} |")


def cosines(vectors: LocalVectors, pairs: Sequence[PairRow]) -> np.ndarray:
    """Return the cosine of query and text of each pair."""
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.query, pair.text)))
    matrix = asyncio.run(vectors.vectors_of_many(texts))
    row = {text: at for at, text in enumerate(texts)}
    queries = matrix[[row[pair.query] for pair in pairs]]
    return np.einsum("ij,ij->i", queries, matrix[[row[pair.text] for pair in pairs]])


def fitted(scores: np.ndarray, people: np.ndarray) -> tuple[float, float, float]:
    """Return the lowest scores of grades 1, 2 and 3 that give the highest quadratic kappa."""
    steps = np.unique(np.quantile(scores, np.linspace(0.02, 0.98, STEPS)).round(2))
    below = np.array([[((people == g) & (scores < s)).sum() for s in steps] for g in range(4)])
    total = np.array([(people == g).sum() for g in range(4)])[:, None, None]
    triples = np.array([*combinations(range(len(steps)), 3)])
    ends = np.concatenate(
        [
            np.zeros((4, len(triples), 1)),
            below[:, triples],
            np.broadcast_to(total, (4, len(triples), 1)),
        ],
        axis=2,
    )
    kappas = quadratic_kappa(np.diff(ends, axis=2).transpose(1, 0, 2))
    low, middle, high = steps[triples[np.nanargmax(kappas)]].tolist()
    return low, middle, high


def cross_validated(scores: np.ndarray, people: np.ndarray, ids: Sequence[str]) -> np.ndarray:
    """Return grades by thresholds that were fitted without the query of the pair."""
    names = sorted(set(ids))
    random.Random(0).shuffle(names)
    fold = {name: at % FOLDS for at, name in enumerate(names)}
    folds = np.array([fold[name] for name in ids])
    grades = np.zeros(len(people), np.intp)
    for each in range(FOLDS):
        held = folds == each
        thresholds = fitted(scores[~held], people[~held])
        print(f"   fold {each}: {thresholds}")
        grades[held] = np.searchsorted(thresholds, scores[held], side="right")
    return grades


def _of(found: ClusteredInterval) -> str:
    assert found.value is not None
    if found.low is None or found.high is None:
        return f"{found.value:.2f}"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


if __name__ == "__main__":
    main()
