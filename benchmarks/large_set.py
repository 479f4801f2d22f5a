"""Commands on a set of many judgments: CPU and peak memory of each, in a process of its own.

Makes a seeded set of N judgments, 100 a query, and two runs of 20 ranks.

    python benchmarks/large_set.py 1000000 5000000
"""

import argparse
import multiprocessing
import random
import tempfile
from pathlib import Path

from pairs import measured

SEED = 1
PER_QUERY = 100
RANKS = 20
CHUNKS = 2000
COMMANDS = {
    "validate": "validate --dataset {set}",
    "evaluate": "evaluate --dataset {set}",
    "compare": "compare --dataset {set} old new",
    "gate": "gate --dataset {set} --run new --min nDCG@10=0.1",
    "gate, writing a baseline": "gate --dataset {set} --run old --min nDCG@10=0.1 --point "
    "--write-baseline {set}.json",
    "gate against it": "gate --dataset {set} --run new --max-drop nDCG@10=0.5 "
    "--baseline {set}.json",
}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="*", default=[100_000], help="judgments")
    parser.add_argument("--folder", type=Path, help="where the set is kept, or is from before")
    arguments = parser.parse_args()
    print("| judgments | command | CPU s | peak MB |")
    print("| ---: | --- | ---: | ---: |")
    for n in arguments.n:
        with tempfile.TemporaryDirectory() as place:
            folder = (arguments.folder or Path(place)) / f"{n}"
            if not folder.exists():
                # A process begins with the peak of the one that starts it.
                making = multiprocessing.Process(target=make, args=(folder, n))
                making.start()
                making.join()
                measured(["validate", "--dataset", str(folder), "--accept"])
            for name, command in COMMANDS.items():
                cpu_s, peak_mb = measured(command.format(set=folder).split())
                print(f"| {n:,} | {name} | {cpu_s:.1f} | {peak_mb:,} |", flush=True)


def make(path: Path, n: int) -> None:
    """Write a set of `n` judgments, the same each time."""
    from ragforge.files.set.opening import create_dataset
    from ragforge.records import Chunk, Hit, Judgment, Provenance, Query, Ranking

    chance = random.Random(SEED)
    chunk_ids = [f"c{number:05}" for number in range(CHUNKS)]
    query_ids = [f"q{number:06}" for number in range(n // PER_QUERY)]
    dataset = create_dataset(path, {})
    dataset.write_chunks(
        Chunk(chunk_id=name, doc_id="a.md", text=f"Chunk {name} is one of many.")
        for name in chunk_ids
    )
    dataset.write_queries(
        Query(query_id=name, query=f"What is {name}?", expected_answer="One of many.")
        for name in query_ids
    )
    judged = {name: chance.sample(chunk_ids, PER_QUERY) for name in query_ids}
    for run in ("old", "new"):
        dataset.write_run(
            run,
            [
                Ranking(
                    query_id=query_id,
                    ranking=tuple(
                        Hit(chunk_id=name, score=RANKS - rank)
                        for rank, name in enumerate(chance.sample(judged[query_id], RANKS))
                    ),
                )
                for query_id in query_ids
            ],
        )
    judge = Provenance(kind="llm", model="judge", prompt="p", prompt_sha256="ab" * 32)
    with (path / "judgments.jsonl").open("w", encoding="utf-8") as stream:
        for query_id, names in judged.items():
            for name in sorted(names):
                item = Judgment(
                    query_id=query_id,
                    chunk_id=name,
                    grade=chance.choice([0, 0, 0, 1, 2, 3]),
                    provenance=judge,
                )
                stream.write(f"{item.model_dump_json()}\n")


if __name__ == "__main__":
    main()
