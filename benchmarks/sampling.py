"""Count how often the intervals of a stratified sample hold what they are of.

    python benchmarks/sampling.py                    # some minutes
    python benchmarks/sampling.py --repeat 200       # does it run? The figures mean little

Each time a set of 400 queries is drawn from four strata of a known mean (half, 30, 15 and 5 %), and
a sample from it as `--sample` draws it. "whole set" is how often the interval of the set's mean
holds it; "queries like these" how often that over all such queries holds the known mean. "width" is
the mean width of both. "plain" is the mean of the sample's values with the usual interval, as if
they were all there is: how often it holds the set's mean. The last table compares two runs that
differ in nothing but chance: how often one is called better at 5 %.
"""

import argparse
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from ragforge.measures.comparing import RunPair, compare_pairs
from ragforge.measures.strata import Stratified, draw
from ragforge.measures.stratified import sample_interval, set_interval
from ragforge.measures.unseen_values import interval_by_measure

SHARES: Final = {"a": 200, "b": 120, "c": 60, "d": 20}
MEANS: Final = {"a": 0.9, "b": 0.7, "c": 0.4, "d": 0.15}
SAMPLES: Final = (10, 20, 50, 100, 200)
Generator = np.random.Generator


class Kind(NamedTuple):
    """A kind of measure."""

    measure: str
    values: Callable[[Generator, float, int], np.ndarray]
    """Gives values of about a mean; the mean of a stratum is estimated from many."""


def hits(generator: Generator, mean: float, n: int) -> np.ndarray:
    """Return values of Success@5: 0 or 1."""
    return (generator.random(n) < mean).astype(float)


def ranks(generator: Generator, mean: float, n: int) -> np.ndarray:
    """Return reciprocal ranks, 0 beyond the tenth."""
    found = generator.geometric(mean, n)
    return np.where(found <= 10, 1 / found, 0.0)


def gains(generator: Generator, mean: float, n: int) -> np.ndarray:
    """Return values such as those of nDCG: between 0 and 1, many at the ends."""
    inner = generator.beta(3 * mean, 3 * (1 - mean), n)
    return np.where(inner > 0.9, 1.0, np.where(inner < 0.1, 0.0, inner))


KINDS: Final = (Kind("Success@5", hits), Kind("RR", ranks), Kind("nDCG@10", gains))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="of the first set")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.repeat)
    print("| measure | n | whole set | width | queries like these | width | plain |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in KINDS:
        for n in SAMPLES:
            print(_row(kind, n, seeds), flush=True)
    print("\n| no difference | n | called better |\n| --- | --- | --- |")
    for kind in KINDS:
        for n in SAMPLES[1:4]:
            share = np.mean([_is_won(kind, n, seed) for seed in seeds])
            print(f"| {kind.measure} | {n} | {share:.1%} |", flush=True)


def _row(kind: Kind, n: int, seeds: range) -> str:
    size = sum(SHARES.values())
    many = np.random.default_rng(1)
    known = sum(
        share / size * kind.values(many, MEANS[name], 1_000_000).mean()
        for name, share in SHARES.items()
    )
    found = np.array([_once(kind, n, known, seed) for seed in seeds])
    of_set, width, of_all, wide, plain = found.mean(axis=0)
    shares = f"{of_set:.1%} | {width:.3f} | {of_all:.1%} | {wide:.3f} | {plain:.1%}"
    return f"| {kind.measure} | {n} | {shares} |"


def _set(kind: Kind, seed: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the values of a set and their strata; of queries like these, strata vary by chance."""
    generator = np.random.default_rng(seed)
    size = sum(SHARES.values())
    shares = [share / size for share in SHARES.values()]
    strata = sorted(generator.choice(list(SHARES), size, p=shares).tolist())
    values = np.concatenate(
        [kind.values(generator, MEANS[name], strata.count(name)) for name in SHARES]
    )
    return values, tuple(strata)


def _drawn(strata: tuple[str, ...], n: int, seed: int) -> tuple[list[int], Stratified]:
    chosen = draw({str(place): name for place, name in enumerate(strata)}, n, seed)
    places = sorted(map(int, chosen))
    sizes = {name: strata.count(name) for name in sorted(set(strata))}
    return places, Stratified(tuple(strata[place] for place in places), sizes)


def _once(kind: Kind, n: int, known: float, seed: int) -> tuple[float, ...]:
    values, strata = _set(kind, seed)
    places, drawn = _drawn(strata, n, seed)
    sample = values[places]
    of_set = set_interval(kind.measure, sample, drawn)
    of_all = sample_interval(kind.measure, sample, drawn)
    plain = interval_by_measure(kind.measure, sample, 0.95)
    true = values.mean()
    return (
        of_set.low <= true <= of_set.high,
        of_set.high - of_set.low,
        of_all.low <= known <= of_all.high,
        of_all.high - of_all.low,
        plain.low <= true <= plain.high,
    )


def _is_won(kind: Kind, n: int, seed: int) -> bool:
    a, strata = _set(kind, 2 * seed)
    generator = np.random.default_rng(2 * seed + 1)
    b = np.concatenate([kind.values(generator, MEANS[name], strata.count(name)) for name in SHARES])
    places, drawn = _drawn(strata, n, seed)
    [found] = compare_pairs([RunPair("a", "b", kind.measure, a[places], b[places], drawn=drawn)])
    return found.winner != "TIE"


if __name__ == "__main__":
    main()
