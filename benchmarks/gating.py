"""Measure how often `ragforge gate` passes what does not hold, where that is known.

    python benchmarks/gating.py --qrels qrels.trec --run a.trec --run b.trec
    python benchmarks/gating.py --qrels qrels.trec --run a.trec --run b.trec --outcomes
    python benchmarks/gating.py --qrels qrels.trec --run a.trec --run b.trec --sized
    python benchmarks/gating.py --qrels qrels.trec --run a.trec --run b.trec --together

The queries of a run are taken for all queries there are, and sets of some of them drawn with
replacement. `min`: the threshold is the mean of all, so that a pass is by chance. `max-drop`: the
drop that is allowed is the one that the second run truly has. Both are meant to pass in 2.5 % of
the draws, the one side of a 95 % interval. `no drop`: the second run is as good as the first, and
differs from it by query as before; the drop that is allowed is the one that so many queries are
said to show with a probability of 80 %. In brackets: 95 % Wilson intervals.

`--outcomes` tells what `--max-drop 0.02` comes to (PASS / FAIL / NOT SHOWN, in percent) where the
second run truly is as good as the first, or worse by 0.02, 0.05, 0.10. FAIL of a run that is as
good is a false alarm; PASS of one that is worse by more than 0.02 is a miss. `--outcomes --min`
tells the same of `--min`, whose threshold the run truly reaches, or misses by so much.

`--together` tells how often at least one of the first one, two, … rules fails, in percent, where
the run truly is as good by each measure.

`--sized` tells what `--max-drop MEASURE=auto` comes to: the drop that is allowed (the median), then
PASS / FAIL / NOT SHOWN where the run is as good, and where it is worse by just that drop.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ragforge.files.formats.qrels import read_qrels
from ragforge.files.formats.runs import read_run
from ragforge.measures import evaluate
from ragforge.measures.comparing import Comparison, RunPair, compare_pairs
from ragforge.measures.distributions import normal_quantile
from ragforge.measures.power import detectable_difference
from ragforge.measures.rates import wilson_interval
from ragforge.measures.unseen_values import bounded_interval, interval_by_measure

MEASURES = ("nDCG@10", "DCG@10", "RR", "R@10", "Success@1")
SEED = 7
ALLOWED = 0.02
CHANGES = (0.0, -ALLOWED, -0.05, -0.1)
SIZES = (50, 100, 400)
SIZE = 1 - normal_quantile(0.2) / normal_quantile(0.975)
"""Distances to the low end of an interval that `auto` allows."""


def main() -> None:
    """Print a table: a line for each rule and number of queries."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--outcomes", action="store_true", help="of --max-drop 0.02, by change")
    parser.add_argument("--min", action="store_true", help="with --outcomes: of --min")
    parser.add_argument("--sized", action="store_true", help="of --max-drop MEASURE=auto")
    parser.add_argument("--together", action="store_true", help="of several rules at once")
    options = parser.parse_args()
    qrels = read_qrels(options.qrels)
    before, now = (values_of(qrels, path) for path in options.run[:2])
    if options.sized:
        print_sized(before, now, options.draws)
        return
    if options.together:
        print_together(before, now, options.draws)
        return
    if options.outcomes:
        print_outcomes(before, now, options.draws, of=reached if options.min else outcome)
        return
    print(f"{'':20}" + "".join(f"{name:>20}" for name in MEASURES))
    for n in (25, before.shape[1], 4 * before.shape[1]):
        for name, passes in (("min", least), ("max-drop", drop), ("no drop", same)):
            counts = [
                sum(passes(generator, a, b, n) for _ in range(options.draws))
                for a, b in zip(before, now, strict=True)
                for generator in [np.random.default_rng(SEED)]
            ]
            cells = "".join(f"{share(count, options.draws):>20}" for count in counts)
            print(f"{name:10}{n:4} queries{cells}", flush=True)


def print_outcomes(before: np.ndarray, now: np.ndarray, draws: int, of: Callable[..., str]) -> None:
    """Print the three outcomes by number of queries and true change."""
    print(f"{'queries':>7} {'change':>7}" + "".join(f"{name:>22}" for name in MEASURES))
    for n in SIZES:
        for change in CHANGES:
            cells = []
            for name, a, b in zip(MEASURES, before, now, strict=True):
                generator = np.random.default_rng(SEED)
                found = [of(generator, a, b, n, change, name) for _ in range(draws)]
                cells.append(shares(found))
            print(f"{n:7} {change:7.2f}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def print_sized(before: np.ndarray, now: np.ndarray, draws: int) -> None:
    """Print the drop that is allowed, and the outcomes of no change and of that drop."""
    print(f"{'queries':>7} {'measure':>10} {'drop':>6} {'as good':>20} {'worse by it':>20}")
    for n in SIZES:
        for name, a, b in zip(MEASURES, before, now, strict=True):
            size = SIZE * 1.96 * float((b - a).std()) / n**0.5
            cells, sizes = [], []
            for change in (0.0, -size):
                generator = np.random.default_rng(SEED)
                found = []
                for _ in range(draws):
                    one = drawn(generator, a, b, n, change)
                    sizes.append(SIZE * (one.diff - one.interval_alone.low))
                    found.append(said(one, sizes[-1]))
                cells.append(shares(found))
            median = float(np.median(sizes[:draws]))
            print(
                f"{n:7} {name:>10} {median:6.3f}" + "".join(f"{c:>21}" for c in cells), flush=True
            )


def print_together(before: np.ndarray, now: np.ndarray, draws: int) -> None:
    """Print how often one of several rules fails where each holds, by number of queries."""
    print(f"{'queries':>7}" + "".join(f"{f'+ {name}':>13}" for name in MEASURES))
    for n in SIZES:
        failed = []
        for seed in range(draws):
            said_of = [
                outcome(np.random.default_rng(seed), a, b, n, 0.0, name)
                for name, a, b in zip(MEASURES, before, now, strict=True)
            ]
            failed.append(np.maximum.accumulate([one == "FAIL" for one in said_of]))
        cells = "".join(f"{100 * share_of:13.1f}" for share_of in np.mean(failed, axis=0))
        print(f"{n:7}{cells}", flush=True)


def drawn(
    generator: np.random.Generator, a: np.ndarray, b: np.ndarray, n: int, change: float
) -> Comparison:
    """Return the comparison of n queries that differ as they do, moved to a true change."""
    places = generator.integers(0, len(a), n)
    moved = (b - a) - (b - a).mean() + change
    return compared(a[places], (a + moved)[places])


def said(found: Comparison, allowed: float) -> str:
    """Return what a gate says of a drop."""
    if found.interval_alone.low >= -allowed:
        return "PASS"
    return "FAIL" if found.winner == "A" else "NOT SHOWN"


def reached(
    generator: np.random.Generator, _: np.ndarray, b: np.ndarray, n: int, change: float, name: str
) -> str:
    """Return what a gate says of a threshold that n queries of a run reach, or miss on average."""
    ends = interval_by_measure(name, generator.choice(b, n))
    bound = b.mean() - change
    if ends.low >= bound:
        return "PASS"
    return "FAIL" if ends.high < bound else "NOT SHOWN"


def shares(found: Sequence[str]) -> str:
    """Return how often each outcome came, in percent."""
    counts = (100 * found.count(name) / len(found) for name in ("PASS", "FAIL", "NOT SHOWN"))
    return " / ".join(f"{value:.1f}" for value in counts)


def outcome(
    generator: np.random.Generator, a: np.ndarray, b: np.ndarray, n: int, change: float, _name: str
) -> str:
    """Return what a gate says of n queries of a run that is better by a change, on average."""
    return said(drawn(generator, a, b, n, change), ALLOWED)


def least(generator: np.random.Generator, a: np.ndarray, b: np.ndarray, n: int) -> bool:
    """Whether a mean is said to reach what is the true one."""
    return bounded_interval(generator.choice(b, n)).low >= b.mean() - 1e-12


def drop(generator: np.random.Generator, a: np.ndarray, b: np.ndarray, n: int) -> bool:
    """Whether the true difference is said to be ruled out."""
    drawn = generator.integers(0, len(a), n)
    return compared(a[drawn], b[drawn]).interval_alone.low >= (b - a).mean() - 1e-12


def same(generator: np.random.Generator, a: np.ndarray, b: np.ndarray, n: int) -> bool:
    """Whether a run that is as good passes at the drop that so many queries can show."""
    drawn = generator.integers(0, len(a), n)
    centred = (b - a) - (b - a).mean()
    allowed = detectable_difference(float(centred.std()), n)
    return compared(a[drawn], (a + centred)[drawn]).interval_alone.low >= -allowed


def compared(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Return what a gate decides on."""
    [found] = compare_pairs([RunPair("a", "b", "", a, b)])
    return found


def values_of(qrels: object, path: Path) -> np.ndarray:
    """Return the values of a run, by measure and query."""
    scores = evaluate(qrels, read_run(path).rankings, MEASURES)
    return np.array([scores.values(measure) for measure in MEASURES])


def share(count: int, n: int) -> str:
    """Return a share with its interval, in percent."""
    ends = wilson_interval(count, n)
    return f"{count / n:.1%} [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"


if __name__ == "__main__":
    main()
