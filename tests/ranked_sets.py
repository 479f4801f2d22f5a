"""Datasets whose reciprocal ranks are chosen, for tests of what is decided on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.records import Failure, Hit, Judgment, Provenance, Query, Ranking

JUDGE = Provenance(kind="llm", model="judge-1", prompt="judge_relevance", prompt_sha256="ab" * 32)
MOCK = JUDGE.model_copy(update={"kind": "mock"})
OFFLINE = Provenance(kind="baseline", model="offline-lexical-1", prompt="", prompt_sha256="")
FAILED = -1
"""Rank of a query on which the retriever failed."""
NOWHERE = 0
"""Rank of a query of which nothing relevant was retrieved."""
_DEPTH = 4


def ranked_set(
    path: Path,
    runs: Mapping[str, Sequence[int]],
    *,
    judge: Provenance | None = JUDGE,
    n_unjudged: int = 0,
    texts: Sequence[str] = (),
) -> Dataset:
    """Make a dataset in which each query has one relevant chunk, and four are retrieved.

    Args:
        path: Where; a dataset that is there is written over.
        runs: Name to the rank of the relevant chunk by query.
        judge: Who made all judgments; None for people.
        n_unjudged: Retrieved chunks of each query that have no grade, up to three.
        texts: Of the queries.
    """
    made = create_dataset(path, made_from={"seed": "0"})
    n = len(next(iter(runs.values())))
    ids = [f"q{index:03d}" for index in range(n)]
    made.write_queries(
        Query(query_id=query_id, query=text)
        for query_id, text in zip(ids, texts or [f"What is {i}?" for i in ids], strict=True)
    )
    made.write_judgments(
        Judgment(
            query_id=query_id,
            chunk_id=chunk_id,
            grade=grade,
            source="judge" if judge else "human",
            provenance=judge,
        )
        for query_id in ids
        for chunk_id, grade in [
            ("right", 3),
            *((f"wrong{k}", 0) for k in range(_DEPTH - n_unjudged)),
        ]
    )
    failures = []
    for name, ranks in runs.items():
        pairs = list(zip(ids, ranks, strict=True))
        made.write_run(name, [_ranking(q, rank) for q, rank in pairs if rank != FAILED])
        failures += [
            Failure(what="retrieve", key=f"{name}/{q}", kind="error", message="503")
            for q, rank in pairs
            if rank == FAILED
        ]
    made.replace_failures("retrieve", failures, lambda _: True)
    return made


def _ranking(query_id: str, rank: int) -> Ranking:
    chunk_ids = [f"wrong{k}" for k in range(_DEPTH)]
    if rank != NOWHERE:
        chunk_ids = [*chunk_ids[: rank - 1], "right", *chunk_ids[rank - 1 :]][:_DEPTH]
    hits = (Hit(chunk_id=c, score=float(10 - n)) for n, c in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=tuple(hits))
