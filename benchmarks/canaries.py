"""How often a canary of 40 pairs alarms: at a judge that did not change, and at ones that did.

python benchmarks/canaries.py --replications 1000

A judge gives each pair its usual grade, and another one step off with the probability of its noise.
What changed: a share of pairs whose usual grade is one higher now, or one higher or lower by turns.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from ragforge.measures.drift import drift

N = 40
Grades = NDArray[np.int64]


def said(usual: Grades, noise: float, generator: np.random.Generator) -> list[int | None]:
    """Return what a judge says whose usual grades are these."""
    step = generator.choice((-1, 1), size=N) * (generator.random(N) < noise)
    return [int(grade) for grade in np.clip(usual + step, 0, 3)]


def alarms(noise: float, share: float, *, one_way: bool, replications: int) -> float:
    """Return the share of canaries that alarm where so many usual grades changed."""
    generator = np.random.default_rng(11)
    query_ids = [f"q{n // 2}" for n in range(N)]
    found = 0
    for _ in range(replications):
        usual = generator.integers(0, 4, size=N)
        side = 1 if one_way else generator.choice((-1, 1), size=N)
        moved = np.clip(usual + side * (generator.random(N) < share), 0, 3)
        first, again = said(usual, noise, generator), said(usual, noise, generator)
        found += bool(drift(query_ids, first, again, said(moved, noise, generator)).found)
    return found / replications


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    replications = parser.parse_args().replications
    print("| noise | no change | 20 % up | 40 % up | 40 % either way |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for noise in (0.0, 0.1, 0.3):
        cells = [
            alarms(noise, share, one_way=one_way, replications=replications)
            for share, one_way in ((0.0, True), (0.2, True), (0.4, True), (0.4, False))
        ]
        print(f"| {noise:.0%} | " + " | ".join(f"{100 * cell:.1f} %" for cell in cells) + " |")


if __name__ == "__main__":
    main()
