"""Measure how often `ragforge compare` finds a winner where there is none, and where there is one.

    python benchmarks/comparing.py --qrels qrels.trec --run a.trec --run b.trec --run c.trec

No difference, halves: the queries of one run are split in two halves at random, and the halves
paired at random. No difference, swapped: two runs change places in every query by the toss of a
coin. A true difference: queries are drawn from those of two runs, whose differences are shifted so
that their mean is the least that so many queries are said to show with a probability of 80 %.

`alone` is the share of splits in which a measure has a winner as the only comparison (5 % of them
by chance where there is no difference), `any` that in which one of all measures has, corrected as
one family. In brackets: 95 % Wilson intervals.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ragforge.config import EvaluateSettings
from ragforge.files.formats.qrels import read_qrels
from ragforge.files.formats.runs import read_run
from ragforge.measures import evaluate
from ragforge.measures.comparing import ALPHA, Comparison, RunPair, compare_pairs
from ragforge.measures.power import detectable_difference
from ragforge.measures.rates import wilson_interval
from ragforge.pipeline.comparing.basis import COMPARED_MEASURES

SEED = 7
Generator: TypeAlias = np.random.Generator
Values: TypeAlias = np.ndarray
"""By measure and query."""


@dataclass
class CountingModel:
    """How often there was a winner."""

    measures: Sequence[str]
    n: int = 0
    any: int = 0
    alone: dict[str, int] = field(default_factory=dict)

    def add(self, found: Sequence[Comparison]) -> None:
        """Count what one split gave."""
        self.n += 1
        self.any += any(item.winner != "TIE" for item in found)
        for item in found:
            self.alone[item.measure] = self.alone.get(item.measure, 0) + wins_alone(item)

    def plus(self, other: "CountingModel") -> "CountingModel":
        """Return both together."""
        both = {name: self.alone.get(name, 0) + n for name, n in other.alone.items()}
        return CountingModel(self.measures, self.n + other.n, self.any + other.any, both)

    def row(self, name: str) -> str:
        """Return a line of the table."""
        counts = [*(self.alone[measure] for measure in self.measures), self.any]
        return f"{name:34}" + "".join(f"{share(count, self.n):>22}" for count in counts)


def main() -> None:
    """Print a table for each way to have no difference, and one for a true one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    parser.add_argument("--measure", action="append", default=[])
    parser.add_argument("--splits", type=int, default=1_000)
    options = parser.parse_args()
    measures = EvaluateSettings(measures=tuple(options.measure)).measures or COMPARED_MEASURES
    qrels = read_qrels(options.qrels)
    runs = {path.name: values_of(qrels, path, measures) for path in options.run}
    print(f"{options.splits} splits a line, {len(next(iter(runs.values())).T)} queries a run")
    names = list(runs)
    couples = [(names[0], other) for other in names[1:]]
    print_table("No difference, halves", [((name,), halves) for name in names], runs, options)
    print_table("No difference, swapped", [(pair, swapped) for pair in couples], runs, options)
    print_table("A true difference", [(pair, shifted) for pair in couples], runs, options)


def print_table(
    title: str,
    cases: Sequence[tuple[tuple[str, ...], Callable[..., Values]]],
    runs: dict[str, Values],
    options: argparse.Namespace,
) -> None:
    """Print a line for each run or couple, and one for all."""
    measures = options.measure or COMPARED_MEASURES
    print(f"\n{title:34}" + "".join(f"{name:>22}" for name in [*measures, "any"]))
    whole = CountingModel(measures)
    for names, draw in cases:
        generator = np.random.default_rng(SEED)
        tally = CountingModel(measures)
        for _ in range(options.splits):
            a, b = draw(generator, *(runs[name] for name in names))
            tally.add(compare_pairs(list(pairs(measures, a, b)), ALPHA))
        label = " / ".join(short(name) for name in names)
        print(tally.row(label), flush=True)
        whole = whole.plus(tally)
    print(whole.row("all"), flush=True)


def halves(generator: Generator, values: Values) -> tuple[Values, Values]:
    """Return two halves of the queries of one run, paired at random."""
    order = generator.permutation(values.shape[1])
    size = len(order) // 2
    return values[:, order[:size]], values[:, order[size : 2 * size]]


def swapped(generator: Generator, a: Values, b: Values) -> tuple[Values, Values]:
    """Return two runs that changed places in about every second query."""
    swap = generator.random(a.shape[1]) < 0.5
    return np.where(swap, b, a), np.where(swap, a, b)


def shifted(generator: Generator, a: Values, b: Values) -> tuple[Values, Values]:
    """Return as many queries, drawn with replacement, with the mean difference that they show."""
    n = a.shape[1]
    found = b - a
    sd = found.std(axis=1, ddof=1, keepdims=True)
    shifts = np.array([[detectable_difference(float(item), n)] for [item] in sd])
    # Drawn values spread as much as the population, whose divisor is n.
    centred = (found - found.mean(axis=1, keepdims=True)) * np.sqrt(n / (n - 1))
    drawn = generator.integers(0, n, n)
    return a[:, drawn], (a + centred + shifts)[:, drawn]


def values_of(qrels: object, path: Path, measures: Sequence[str]) -> Values:
    """Return the values of a run, by measure and query."""
    scores = evaluate(qrels, read_run(path).rankings, measures)
    return np.array([scores.values(measure) for measure in measures])


def pairs(measures: Sequence[str], a: Values, b: Values) -> Iterator[RunPair]:
    """Yield what is compared: each measure of two runs."""
    for measure, of_a, of_b in zip(measures, a, b, strict=True):
        yield RunPair("a", "b", measure, of_a, of_b)


def wins_alone(item: Comparison) -> bool:
    """Whether there would be a winner if there were no other comparison."""
    ends = item.interval_alone
    return ends is not None and item.p <= ALPHA and not ends.low <= 0 <= ends.high


def share(count: int, n: int) -> str:
    """Return a share with its interval, in percent."""
    ends = wilson_interval(count, n)
    return f"{count / n:.1%} [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"


def short(name: str) -> str:
    """Return the telling part of a file name."""
    return name.removeprefix("run.").partition(".")[0][:15]


if __name__ == "__main__":
    main()
