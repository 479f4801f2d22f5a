"""Pairs of several queries, and the commands that judge them in one process and in shards."""

import hashlib
import json
from pathlib import Path

WORDS = ("nothing", "beeswax", "beeswax polish", "beeswax polish for tables")
"""What a passage shares with the query: 0 to 3 words, which is the grade it gets."""


def write_pairs(path: Path, queries: int = 12, chunks: int = 9) -> Path:
    """Write pairs; the last of each query repeats the text of its first."""
    rows = [
        {
            "query_id": f"q{query}",
            "query": f"How is beeswax polish used on tables {query}?",
            "chunk_id": f"c{chunk}",
            "text": f"Note {chunk % (chunks - 1)} of {query}: {WORDS[chunk % (chunks - 1) % 4]}.",
        }
        for query in range(queries)
        for chunk in range(chunks)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_answers(dataset: Path, path: Path) -> Path:
    """Write answers of a system to all queries of a set."""
    rows = [json.loads(line) for line in (dataset / "queries.jsonl").read_text().splitlines()]
    answers = (
        {
            "query_id": row["query_id"],
            "query": row["query"],
            "answer": f"{row['expected_answer']} So it is.",
            "contexts": [row["expected_answer"]],
        }
        for row in rows
    )
    path.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    return path


def digests(out: Path) -> dict[str, str]:
    """Return the digest of a file of judgments, and of the failures beside it."""
    return {
        path.name.removeprefix(out.name): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.parent.glob(f"{out.name}*"))
    }
