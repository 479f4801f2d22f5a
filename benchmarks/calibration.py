"""How often corrected measures hold what people found, and how wide their intervals are.

    python benchmarks/calibration.py --qrels QRELS --run RUN --run RUN … --confusion CONFUSION.json
    python benchmarks/calibration.py --qrels PEOPLE --judged MODEL --simulated-runs 6
    python benchmarks/calibration.py … --keep-relevant .125   # relevant texts are rare
    python benchmarks/calibration.py … --repeat 1000 --seed 1       # the figures of the documents

A set that people graded as a whole is the truth. Each time a judge grades its pool, some of the
pairs are drawn as `calibrate sample` draws them, and their people's grades are the labels. Judges
are drawn from tables of how published judges erred (rows are people's grades; rows move from query
to query), or are a file of a real one. "careful" is the first of them, and right in a fifth of all
cases for sure. "useless" gives grades without looking; "favours" is the
first judge with one grade more, half of the time, for what run A retrieved.

"holds" is the share of 95 % intervals that hold the people's value. For "like these" the queries of
the set are taken for all there are: as many (or `--queries`) are drawn with replacement, and the
interval over queries like these is held against the value over all of them. "width" is the mean
width over that of as many labels on pairs drawn at random and no judge; "centred" is the width over
that of the same labels with a judge that gives one grade to all; "limit" is how narrow any
estimator can make a level that knows of a pair no more than the judge's grade. "divisor" is what
the model of grades puts below a level of nDCG, over what people's grades put there. Runs are drawn
anew each time. A cell is left out where more than 90 % of the pairs would have labels. Without
runs, rankings are drawn from the grades with noise.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from ragforge.errors import UsageError
from ragforge.measures.agreement import confusion, kappa
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import (
    MOST_DRAWN,
    N_PARTS,
    CorrectedMean,
    Integers,
    LabelledPairs,
    Method,
    corrected_mean,
)
from ragforge.measures.corrected_ndcg import (
    LEAST_QUERIES,
    N_DRAWS,
    RunDiscounts,
    divisors,
    ideal_dcg,
    ndcg_difference,
    ndcg_level,
    refuse_labels,
    refuse_misfit,
)
from ragforge.measures.distributions import student_quantile
from ragforge.measures.grade_model import GradedPool, fit_grades
from ragforge.measures.label_sampling import (
    label_allocation,
    label_sample,
    label_sizes,
    label_strata,
)

K: Final = 10
N_GRADES: Final = 4
NDCG_SIZES: Final = (200, 400, 800)
PRIORS: Final = {
    "P@10": np.array([0.25, 0.45, 0.65, 0.8, 0.5]),
    "DCG@10": np.array([0.7, 1.2, 1.8, 2.3, 1.2]),
}
DISCOUNTS: Final = {"P@10": np.full(K, 1 / K), "DCG@10": 1 / np.log2(np.arange(2, K + 2))}
Generator = np.random.Generator
Judging = Callable[[Generator, "Truth", Integers], Integers]


@dataclass(frozen=True, slots=True)
class Truth:
    """A set that people graded."""

    name: str
    queries: Integers
    grades: Integers
    ranks: Mapping[str, Integers]
    """By run, shape (N,): the rank of each pair from 0, K where it is not in the top K."""
    n_queries: int
    judged: Integers | None


class Drawn(NamedTuple):
    """What one interval was worth."""

    holds: bool
    width: float
    value: float
    truth: float
    significant: bool


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", default=[])
    parser.add_argument("--judged", type=Path, help="qrels of a real judge")
    parser.add_argument("--confusion", type=Path, help="tables of how judges erred")
    parser.add_argument("--simulated-runs", type=int, default=0)
    parser.add_argument(
        "--keep-relevant", type=float, default=1.0, help="share of grades 2 and 3; the others are 1"
    )
    parser.add_argument("--labels", type=int, nargs="+", default=(100, 200, 400), metavar="N")
    parser.add_argument("--repeat", type=int, default=200)
    parser.add_argument("--queries", type=int, help="drawn for `like these`; as many as there are")
    parser.add_argument("--ndcg-repeat", type=int, default=50)
    parser.add_argument("--ndcg-labels", type=int, nargs="+", default=NDCG_SIZES, metavar="N")
    parser.add_argument("--ndcg-draws", type=int, default=N_DRAWS, help="of the model of grades")
    parser.add_argument("--judge", action="append", help="of those there are; all if not given")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    truth = read_truth(options)
    judges = dict(judges_of(truth, options.confusion))
    if options.judge:
        judges = {name: judges[name] for name in options.judge}
    print(f"{truth.name}: {truth.n_queries} queries, {len(truth.grades)} graded pairs, ", end="")
    print(f"{len(truth.ranks)} runs; {options.repeat} times from seed {options.seed}\n")
    print_agreement(truth, judges)
    print_linear(truth, judges, options)
    print_ndcg(truth, judges, options)
    print_winners(truth, judges, options)


def print_agreement(truth: Truth, judges: Mapping[str, Judging]) -> None:
    """Print kappa of each judge, and how narrow its grades let the interval of a level be."""
    print("| judge | kappa | on retrieved pairs | limit of P@10 | of DCG@10 |")
    print("| --- | --- | --- | --- | --- |")
    retrieved = np.any([ranks < K for ranks in truth.ranks.values()], axis=0)
    for judge, grade in judges.items():
        judged = grade(np.random.default_rng(0), truth, next(iter(truth.ranks.values())))
        cells = [
            float(kappa(confusion(truth.grades[used], judged[used], N_GRADES)))
            for used in (judged < N_GRADES, retrieved & (judged < N_GRADES))
        ]
        limits = [
            width_limit(values_of(truth, measure)[retrieved], judged[retrieved])
            for measure in DISCOUNTS
        ]
        row = f"| {judge} | {cells[0]:.3f} | {cells[1]:.3f} | {limits[0]:.2f} | {limits[1]:.2f} |"
        print(row, flush=True)


def width_limit(values: Floats, judged: Integers) -> float:
    """Return the spread of values around their means by grade of a judge, over their whole spread.

    What knows of a pair no more than the judge's grade gives no narrower interval of a mean over
    pairs of one weight, relative to as many random pairs and no judge.
    """
    within = values - (np.bincount(judged, values) / np.maximum(np.bincount(judged), 1))[judged]
    return float(np.sqrt(np.mean(within**2) / np.var(values)))


def print_linear(truth: Truth, judges: Mapping[str, Judging], options: argparse.Namespace) -> None:
    """Print coverage and widths of P@10 and DCG@10."""
    if not options.repeat:
        return
    truth = retrieved_only(truth)
    print("\n| judge | measure | of | n | holds | like these | width | PPI++ | centred | refused |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (judge, grade), measure, of, n in product(
        judges.items(), DISCOUNTS, ("level", "difference"), options.labels
    ):
        row = linear_row(truth, grade, measure, of == "difference", n, options)
        if row:
            print(f"| {judge} | {measure} | {of} | {n} | {row} |", flush=True)


def print_ndcg(truth: Truth, judges: Mapping[str, Judging], options: argparse.Namespace) -> None:
    """Print coverage and widths of nDCG@10."""
    print(f"\nnDCG@10, {options.ndcg_repeat} times\n")
    print(
        "| judge | n | difference holds | width | of DCG holds | level holds | width "
        "| divisor | refused |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    if truth.n_queries < LEAST_QUERIES or not options.ndcg_repeat:
        return
    for (judge, grade), n in product(judges.items(), options.ndcg_labels):
        print(f"| {judge} | {n} | {ndcg_row(truth, grade, n, options)} |", flush=True)


def print_winners(truth: Truth, judges: Mapping[str, Judging], options: argparse.Namespace) -> None:
    """Print how often the worse run wins."""
    if not options.repeat:
        return
    truth = retrieved_only(truth)
    print("\n| judge | measure | n | wrong winner, judge alone | corrected | refused |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (judge, grade), measure in product(judges.items(), DISCOUNTS):
        row = winners_row(truth, grade, measure, 200, options)
        print(f"| {judge} | {measure} | 200 | {row} |", flush=True)


def retrieved_only(truth: Truth) -> Truth:
    """Return the pairs that some run retrieved: linear measures depend on no others."""
    used = np.any([ranks < K for ranks in truth.ranks.values()], axis=0)
    return replace(
        truth,
        queries=truth.queries[used],
        grades=truth.grades[used],
        ranks={run: ranks[used] for run, ranks in truth.ranks.items()},
        judged=None if truth.judged is None else truth.judged[used],
    )


def linear_row(
    truth: Truth,
    grade: Judging,
    measure: str,
    is_difference: bool,
    n: int,
    options: argparse.Namespace,
) -> str:
    """Return coverage and widths of a level or a difference; empty where n is nearly all."""
    methods: tuple[Method, ...] = ("grade means", "ppi++", "no judge")
    drawn: dict[str, list[Drawn]] = {name: [] for name in (*methods, "wide", "random")}
    n_refused = 0
    for generator in islice(generators(options), options.repeat):
        a, b = two_runs(truth, generator)
        judged = grade(generator, truth, truth.ranks[a])
        weights = weights_of(truth, a, b, measure, is_difference=is_difference)
        used = np.flatnonzero(weights)
        if n > MOST_DRAWN * len(used):
            continue
        values = values_of(truth, measure)
        expected = float(weights @ values) / truth.n_queries
        strata = strata_of(weights, judged)
        chosen = sample(weights, judged, strata, n, generator)
        pairs = labelled(truth, weights, judged, chosen, measure, generator, strata)
        try:
            found = {method: corrected_mean(pairs, method) for method in methods}
        except UsageError:
            n_refused += 1
            continue
        for method, corrected in found.items():
            drawn[method].append(outcome(corrected, expected))
        of_queries = drawn_queries(truth, options.queries or truth.n_queries, generator)
        wide_pairs = sampled_pairs(
            of_queries, grade, (a, b), measure, n, generator, is_difference=is_difference
        )
        with suppress(UsageError):
            wide = corrected_mean(wide_pairs).interval("queries like these")
            drawn["wide"].append(between(wide, expected))
        random = np.zeros(len(weights), dtype=bool)
        random[generator.choice(used, n, replace=False)] = True
        alone = labelled(
            truth,
            weights,
            judged,
            np.flatnonzero(random),
            measure,
            generator,
            np.zeros_like(strata),
        )
        with suppress(UsageError):
            drawn["random"].append(outcome(corrected_mean(alone, "people only"), expected))
    if n_refused > options.repeat / 2:
        return f"refused in {n_refused / options.repeat:.0%} | | | | "
    if len(drawn["random"]) < options.repeat / 4:
        return ""
    width = {name: float(np.mean([each.width for each in row])) for name, row in drawn.items()}
    return " | ".join(
        [
            f"{share(drawn['grade means']):.3f}",
            f"{share(drawn['wide']):.3f}",
            f"{width['grade means'] / width['random']:.2f}",
            f"{width['ppi++'] / width['random']:.2f}",
            f"{width['grade means'] / width['no judge']:.2f}",
            f"{n_refused / options.repeat:.2f}",
        ]
    )


def weights_of(truth: Truth, a: str, b: str, measure: str, *, is_difference: bool) -> Floats:
    """Return what each pair weighs in a level of A, or in A minus B."""
    weights = run_weights(truth, a, measure)
    return weights - run_weights(truth, b, measure) if is_difference else weights


def drawn_queries(truth: Truth, n: int, generator: Generator) -> Truth:
    """Return a set of n queries, drawn with replacement, each one of its own."""
    of_query = [np.flatnonzero(truth.queries == query) for query in range(truth.n_queries)]
    taken = [of_query[i] for i in generator.integers(0, truth.n_queries, n)]
    rows = np.concatenate(taken)
    return replace(
        truth,
        queries=np.repeat(np.arange(n), [len(each) for each in taken]),
        grades=truth.grades[rows],
        ranks={run: ranks[rows] for run, ranks in truth.ranks.items()},
        n_queries=n,
        judged=None if truth.judged is None else truth.judged[rows],
    )


def sampled_pairs(
    truth: Truth,
    grade: Judging,
    runs: tuple[str, str],
    measure: str,
    n: int,
    generator: Generator,
    *,
    is_difference: bool,
) -> LabelledPairs:
    """Return the pairs of a measure with n labels, as `calibrate sample` draws them."""
    a, b = runs
    judged = grade(generator, truth, truth.ranks[a])
    weights = weights_of(truth, a, b, measure, is_difference=is_difference)
    n = min(n, int(np.count_nonzero(weights)))
    strata = strata_of(weights, judged)
    chosen = sample(weights, judged, strata, n, generator)
    return labelled(truth, weights, judged, chosen, measure, generator, strata)


def ndcg_row(truth: Truth, grade: Judging, n: int, options: argparse.Namespace) -> str:
    """Return coverage and widths of nDCG@10 by sampled labels and a model of the rest."""
    drawn: dict[str, list[Drawn]] = {"difference": [], "dcg": [], "level": []}
    ratios: list[float] = []
    n_refused = 0
    ideal = ideal_dcg(truth.queries, truth.grades, truth.n_queries, N_GRADES, K)
    for generator in islice(generators(options), options.ndcg_repeat):
        a, b = two_runs(truth, generator)
        judged = grade(generator, truth, truth.ranks[a])
        of_a, of_b = run_weights(truth, a, "DCG@10"), run_weights(truth, b, "DCG@10")
        heaviest = np.maximum(of_a, of_b)
        strata = strata_of(heaviest, judged)
        chosen = sample(heaviest, judged, strata, n, generator, ideal=True)
        is_drawn = np.zeros(len(judged), dtype=bool)
        is_drawn[chosen] = True
        features = np.hstack(
            [np.eye(N_GRADES + 1)[judged][:, 1:], (heaviest > 0)[:, None], heaviest[:, None]]
        )
        grades = np.where(is_drawn, truth.grades, -1)
        pool = GradedPool(truth.queries, features, grades, truth.n_queries, N_GRADES)
        try:
            refuse_labels(pool, heaviest > 0)
            discounts = RunDiscounts(of_a, of_b)
            model = fit_grades(pool)
            by = divisors(model, discounts, K, generator, options.ndcg_draws)
            refuse_misfit(model, discounts, K, generator)
            apart = of_a - of_b
            means = [
                corrected_mean(
                    labelled(truth, weights, judged, chosen, "DCG@10", generator, strata)
                )
                for weights in (of_a, of_b, apart, apart * by.by_query[truth.queries])
            ]
        except UsageError:
            n_refused += 1
            continue
        true_dcg = [float(w @ truth.grades) / truth.n_queries for w in (of_a, of_b)]
        true = [
            float(np.mean(np.bincount(truth.queries, w * truth.grades) / np.maximum(ideal, 1e-9)))
            for w in (of_a, of_b)
        ]
        ratios.append(by.mean_a / (true_dcg[0] / true[0]))
        drawn["dcg"].append(outcome(means[2], true_dcg[0] - true_dcg[1]))
        for of, value, at in (
            ("difference", ndcg_difference(*means[:3], by, means[3]), true[0] - true[1]),
            ("level", ndcg_level(means[0], by.a), true[0]),
        ):
            half = student_quantile(0.975, value.degrees) * value.error
            drawn[of].append(between((value.value - half, value.value + half), at))
    if not ratios:
        return "refused | | | | | | 1.00"
    width = {of: float(np.mean([each.width for each in row])) for of, row in drawn.items()}
    return " | ".join(
        [
            f"{share(drawn['difference']):.3f}",
            f"{width['difference']:.3f}",
            f"{share(drawn['dcg']):.3f}",
            f"{share(drawn['level']):.3f}",
            f"{width['level']:.3f}",
            f"{np.mean(ratios):.3f}",
            f"{n_refused / options.ndcg_repeat:.2f}",
        ]
    )


def winners_row(
    truth: Truth, grade: Judging, measure: str, n: int, options: argparse.Namespace
) -> str:
    """Return how often the worse run wins by the judge alone and corrected, and what is refused."""
    alone = corrected = refused = 0
    for generator in islice(generators(options), options.repeat):
        a, b = two_runs(truth, generator)
        judged = grade(generator, truth, truth.ranks[a])
        weights = run_weights(truth, a, measure) - run_weights(truth, b, measure)
        better = float(weights @ values_of(truth, measure))
        by_query = np.bincount(
            truth.queries, weights * values_of(truth, measure, judged), minlength=truth.n_queries
        )
        error = float(by_query.std(ddof=1)) / np.sqrt(truth.n_queries)
        t = by_query.mean() / error if error else 0.0
        alone += abs(t) > student_quantile(0.975, truth.n_queries - 1) and t * better < 0
        strata = strata_of(weights, judged)
        chosen = sample(weights, judged, strata, n, generator)
        pairs = labelled(truth, weights, judged, chosen, measure, generator, strata)
        try:
            found = corrected_mean(pairs)
        except UsageError:
            refused += 1
            continue
        low, high = found.interval("queries like these")
        corrected += (low > 0 or high < 0) and found.value * better < 0
    return " | ".join(f"{n / options.repeat:.1%}" for n in (alone, corrected, refused))


def generators(options: argparse.Namespace) -> Iterator[Generator]:
    """Yield one generator for each repeat."""
    for i in range(max(options.repeat, options.ndcg_repeat)):
        yield np.random.default_rng([options.seed, i])


def two_runs(truth: Truth, generator: Generator) -> Sequence[str]:
    """Return the names of two runs."""
    names = list(truth.ranks)
    return [names[i] for i in generator.choice(len(names), 2, replace=False)]


def run_weights(truth: Truth, run: str, measure: str) -> Floats:
    """Return what each pair weighs in the measure of a run; shape (N,)."""
    padded = np.append(DISCOUNTS[measure], 0.0)
    found: Floats = padded[truth.ranks[run]]
    return found


def values_of(truth: Truth, measure: str, grades: Integers | None = None) -> Floats:
    """Return the value of each pair, by people or by other grades."""
    taken = truth.grades if grades is None else np.minimum(grades, N_GRADES - 1)
    return (taken >= 2).astype(float) if measure == "P@10" else taken.astype(float)


def sample(
    weights: Floats,
    judged: Integers,
    strata: Integers,
    n: int,
    generator: Generator,
    *,
    ideal: bool = False,
) -> Integers:
    """Return which pairs get labels."""
    sizes = label_sizes(np.abs(weights), judged, N_GRADES, ideal=ideal)
    return label_sample(strata, generator.random(len(weights)), label_allocation(strata, sizes, n))


def strata_of(weights: Floats, judged: Integers) -> Integers:
    """Return the strata of pairs that weigh so much."""
    return label_strata(np.abs(weights), judged, N_GRADES)


def labelled(
    truth: Truth,
    weights: Floats,
    judged: Integers,
    chosen: Integers,
    measure: str,
    generator: Generator,
    strata: Integers,
) -> LabelledPairs:
    """Return the pairs of a measure, with people's values for those chosen."""
    used = weights != 0
    values = np.full(len(weights), np.nan)
    values[chosen] = values_of(truth, measure)[chosen]
    parts = generator.integers(0, N_PARTS, len(weights))
    return LabelledPairs(
        truth.queries[used],
        weights[used],
        judged[used],
        values[used],
        strata[used],
        parts[used],
        truth.n_queries,
        PRIORS[measure],
    )


def outcome(mean: CorrectedMean, truth: float) -> Drawn:
    """Return what an interval over these queries was worth."""
    return between(mean.interval(), truth)


def between(ends: tuple[float, float], truth: float) -> Drawn:
    """Return what an interval was worth."""
    low, high = ends
    return Drawn(low <= truth <= high, high - low, (low + high) / 2, truth, low > 0 or high < 0)


def share(row: Sequence[Drawn]) -> float:
    """Return how many of the intervals hold the truth."""
    return float(np.mean([each.holds for each in row]))


def judges_of(truth: Truth, confusion: Path | None) -> Iterator[tuple[str, Judging]]:
    """Yield judges by name."""
    real = as_judged if truth.judged is not None else None
    if real is not None:
        yield "model", real
    first: Judging | None = None
    if confusion is not None:
        for name, table in json.loads(confusion.read_text())["judges"].items():
            judge = simulated(table)
            first = first or judge
            yield name, judge
        if first is not None:
            yield "careful", careful(first)
    yield "useless", blind
    favoured = first or real
    if favoured is not None:
        yield "favours run A", favouring(favoured)


def as_judged(_generator: Generator, truth: Truth, _ranks: Integers) -> Integers:
    """Return the grades of the judge in the files."""
    assert truth.judged is not None
    return truth.judged


def simulated(table: Mapping[str, object]) -> Judging:
    """Return a judge who errs as a table says, and more or less so from query to query."""
    [counts] = [
        np.array(rows, float)
        for rows in table.values()
        if isinstance(rows, list) and isinstance(rows[0], list)
    ]
    _, deviation = table["bias by query: mean, sd"]  # type: ignore[misc]
    below = np.cumsum(counts / counts.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    logits = np.log(below / (1 - below))

    def grade(generator: Generator, truth: Truth, _ranks: Integers) -> Integers:
        # A shift of two logits moves the mean grade by about one.
        shifts = generator.normal(0, 2 * deviation, truth.n_queries)[truth.queries]
        ends = 1 / (1 + np.exp(-(logits[truth.grades] - shifts[:, None])))
        found: Integers = (generator.random(len(ends))[:, None] > ends).sum(axis=1).astype(np.intp)
        return found

    return grade


def careful(judge: Judging, share: float = 0.2) -> Judging:
    """Return a judge who gives the person's grade to a share of the pairs."""

    def grade(generator: Generator, truth: Truth, ranks: Integers) -> Integers:
        found = judge(generator, truth, ranks)
        return np.where(generator.random(len(ranks)) < share, truth.grades, found)

    return grade


def blind(generator: Generator, truth: Truth, _ranks: Integers) -> Integers:
    """Grade without looking."""
    found: Integers = generator.choice(
        N_GRADES, len(truth.grades), p=(0.5, 0.25, 0.15, 0.1)
    ).astype(np.intp)
    return found


def favouring(judge: Judging, share: float = 0.5) -> Judging:
    """Return a judge who gives one grade more to some of what run A retrieved."""

    def grade(generator: Generator, truth: Truth, ranks: Integers) -> Integers:
        found = judge(generator, truth, ranks)
        more = (ranks < K) & (generator.random(len(ranks)) < share)
        return np.minimum(found + more, N_GRADES - 1)

    return grade


def read_truth(options: argparse.Namespace) -> Truth:
    """Return the set of the files named; grades above 3 count as 3."""
    people = read_qrels(options.qrels)
    judged = read_qrels(options.judged) if options.judged else None
    queries = sorted(people)
    rows = [(i, query, text) for i, query in enumerate(queries) for text in sorted(people[query])]
    grades = np.array([people[query][text] for _, query, text in rows], dtype=np.intp)
    model = None
    if judged is not None:
        model = np.array([judged.get(q, {}).get(t, N_GRADES) for _, q, t in rows], dtype=np.intp)
    lost = np.random.default_rng(options.seed).random(len(rows)) >= options.keep_relevant
    grades = np.where(lost, np.minimum(grades, 1), grades)
    of_pair = np.array([i for i, _, _ in rows], dtype=np.intp)
    if options.run:
        ranks = {
            path.name.partition(".trec")[0]: np.array(
                [ranking.get(q, {}).get(t, K) for _, q, t in rows], dtype=np.intp
            )
            for path in options.run
            for ranking in [read_run(path)]
        }
    else:
        ranks = simulated_runs(of_pair, grades, options.simulated_runs or 6)
    return Truth(options.qrels.parent.name, of_pair, grades, ranks, len(queries), model)


def simulated_runs(queries: Integers, grades: Integers, n: int) -> dict[str, Integers]:
    """Return rankings by grade and noise, from good to poor, with errors in common.

    As with real runs, some queries are hard for all, and some for one: P@10 of these runs, and its
    spread over queries, are those of the runs of DL 2019 (0.41 to 0.72, and 0.24 to 0.33).
    """
    generator = np.random.default_rng(7)
    n_queries = int(queries.max()) + 1
    shared = generator.normal(size=len(grades))
    ease = generator.normal(0, 0.5, n_queries)
    found = {}
    for i, skill in enumerate(np.linspace(0.3, -0.1, n)):
        own = generator.normal(size=len(grades))
        of_query = skill + ease + generator.normal(0, 0.2, n_queries)
        scores = of_query[queries] * grades + shared + own
        order = np.lexsort((-scores, queries))
        starts = np.searchsorted(queries[order], queries[order])
        ranks = np.empty(len(grades), dtype=np.intp)
        ranks[order] = np.minimum(np.arange(len(grades)) - starts, K)
        found[f"simulated {i + 1}"] = ranks
    return found


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return grades by query and text, from 0 to 3."""
    found: dict[str, dict[str, int]] = {}
    for line in lines(path):
        query, _, text, grade = line.split()
        found.setdefault(query, {})[text] = min(max(int(grade), 0), N_GRADES - 1)
    return found


def read_run(path: Path) -> dict[str, dict[str, int]]:
    """Return ranks from 0 by query and text, of the top K."""
    scored: dict[str, list[tuple[float, str]]] = {}
    for line in lines(path):
        query, _, text, _, score, _ = line.split()
        scored.setdefault(query, []).append((-float(score), text))
    return {
        query: {text: rank for rank, (_, text) in enumerate(sorted(hits)[:K])}
        for query, hits in scored.items()
    }


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, which may be compressed."""
    data = path.read_bytes()
    yield from (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


if __name__ == "__main__":
    main()
