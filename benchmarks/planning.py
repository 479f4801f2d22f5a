"""How much two retrievers differ from query to query: what `ragforge plan` goes by without runs.

    python benchmarks/planning.py --qrels QRELS --run RUN --run RUN …

For every two of the runs and each measure, the standard deviation of the differences per query;
printed are the least, the median and the largest over the couples, and the largest spread of the
values of one run. Then how many different texts two have in their top ten, in the mean over
queries.
"""

import argparse
from itertools import combinations
from pathlib import Path
from statistics import fmean, median, stdev

import ragforge
from ragforge.files.formats.runs import read_run

MEASURES = ("nDCG@10", "DCG@10", "P@5", "P@10", "R@10", "RR", "AP", "Success@1", "Success@5")
K = 10


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    options = parser.parse_args()
    measured = ragforge.evaluate_files(options.qrels, options.run, measures=MEASURES)
    names = list(measured.runs)
    couples = list(combinations(names, 2))
    print(f"{len(names)} runs, {len(couples)} couples\n")
    print("| measure | least | median | largest | of one run |\n| --- | --- | --- | --- | --- |")
    for measure in MEASURES:
        spreads = [
            stdev(
                b - a
                for a, b in zip(
                    measured.runs[one].values(measure),
                    measured.runs[other].values(measure),
                    strict=True,
                )
            )
            for one, other in couples
        ]
        ends = f"{min(spreads):.2f} | {median(spreads):.2f} | {max(spreads):.2f}"
        of_one = max(stdev(measured.runs[name].values(measure)) for name in names)
        print(f"| {measure} | {ends} | {of_one:.2f} |")
    tops = [
        {query: set(list(ranked)[:K]) for query, ranked in read_run(path).rankings.items()}
        for path in options.run
    ]
    unions = [
        fmean(len(one[query] | other[query]) for query in one.keys() & other.keys())
        for one, other in combinations(tops, 2)
    ]
    print(f"\ntexts in two top {K}: {min(unions):.1f} to {max(unions):.1f}, ", end="")
    print(f"median {median(unions):.1f}")


if __name__ == "__main__":
    main()
