"""Evaluations as a text file for the textfile collector of Prometheus' node_exporter.

A nightly job is gone before it could be scraped; the collector reads what it left. The collector
takes files whose names end in `.prom`, and refuses samples with times of their own: when the
evaluation was is a gauge.

Source: Prometheus text exposition format 0.0.4.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ragforge.deferred import dataclass, datetime
from ragforge.files.atomic import write_whole
from ragforge.records import Evaluation, MeasuredMean


class Sample(NamedTuple):
    """A value with the labels that tell it from others of its family."""

    labels: tuple[tuple[str, str], ...]
    """Beside dataset and run."""
    value: float | None
    """None where there is none; then nothing is written, for no value is no 0."""


@dataclass(frozen=True, slots=True)
class _Family:
    """A gauge: its name, what it says, and its samples of an evaluation."""

    name: str
    help: str
    samples: Callable[[Evaluation], Iterable[Sample]]


def _of_measures(value: Callable[[MeasuredMean], float | None]) -> Callable[..., Iterator[Sample]]:
    def samples(evaluation: Evaluation) -> Iterator[Sample]:
        for name, found in sorted(evaluation.measures.items()):
            yield Sample((("measure", name),), value(found))

    return samples


def _single(value: Callable[[Evaluation], float | None]) -> Callable[..., Iterator[Sample]]:
    def samples(evaluation: Evaluation) -> Iterator[Sample]:
        yield Sample((), value(evaluation))

    return samples


def _latencies(evaluation: Evaluation) -> Iterator[Sample]:
    if (timing := evaluation.timing) is not None:
        yield Sample((("quantile", "0.5"),), timing.median_s)
        yield Sample((("quantile", "0.95"),), timing.p95_s)
        yield Sample((("quantile", "0.99"),), timing.p99_s)


def _at(evaluation: Evaluation) -> float | None:
    return datetime.datetime.fromisoformat(evaluation.at).timestamp() if evaluation.at else None


FAMILIES: Final = (
    _Family("ragforge_measure", "Mean of a measure over queries.", _of_measures(lambda m: m.mean)),
    _Family(
        "ragforge_measure_low",
        "Lower end of the 95 % interval of the mean.",
        _of_measures(lambda m: m.low),
    ),
    _Family(
        "ragforge_measure_high",
        "Upper end of the 95 % interval of the mean.",
        _of_measures(lambda m: m.high),
    ),
    _Family(
        "ragforge_measure_least",
        "The mean, had all failures come out worst.",
        _of_measures(lambda m: m.least),
    ),
    _Family(
        "ragforge_measure_most",
        "The mean, had all failures come out best.",
        _of_measures(lambda m: m.most),
    ),
    _Family("ragforge_queries", "Answerable queries of the set.", _single(lambda e: e.n_queries)),
    _Family(
        "ragforge_queries_failed",
        "Queries on which the retriever failed, or of which a judgment failed.",
        _single(lambda e: e.n_failed),
    ),
    _Family("ragforge_retrieved", "Chunks in the top 10.", _single(lambda e: e.n_retrieved)),
    _Family("ragforge_holes", "Of these, those without a grade.", _single(lambda e: e.n_holes)),
    _Family(
        "ragforge_retrieval_seconds",
        "Latency of the retriever, by quantile of the queries that succeeded.",
        _latencies,
    ),
    _Family("ragforge_dataset_version", "Version of the set.", _single(lambda e: e.version)),
    _Family("ragforge_evaluated_at_seconds", "When it was measured, in Unix time.", _single(_at)),
)
"""All that is written, in this order."""
ONLY_RETRIEVED: Final = ("only_retrieved", "true")
"""Label of evaluations that leave out queries which the run lacks: they are series of their own, as
their means are not those of others."""


def write_prometheus(path: Path, evaluations: Iterable[Evaluation]) -> None:
    """Write evaluations, replacing the file as a whole.

    Args:
        path: Its name ends in `.prom` for the collector to read it.
        evaluations: One for each dataset and run.

    Raises:
        DataError: The file cannot be written.
    """
    write_whole(path, exposed(evaluations))


def exposed(evaluations: Iterable[Evaluation]) -> Iterator[str]:
    """Yield the lines, those of a family in the order of dataset, run and measure."""
    listed = sorted(evaluations, key=lambda one: (one.dataset, one.run))
    for family in FAMILIES:
        lines = [
            f"{family.name}{_labels(evaluation, sample.labels)} {sample.value!r}\n"
            for evaluation in listed
            for sample in family.samples(evaluation)
            if sample.value is not None
        ]
        if lines:
            yield f"# HELP {family.name} {family.help}\n# TYPE {family.name} gauge\n"
            yield from lines


def _labels(evaluation: Evaluation, others: Sequence[tuple[str, str]]) -> str:
    pairs = [("dataset", evaluation.dataset), ("run", evaluation.run), *others]
    if evaluation.only_retrieved:
        pairs.append(ONLY_RETRIEVED)
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}"


def _escaped(text: str) -> str:
    """Return a label's value as the format has it; lone surrogates are not UTF-8 and become `?`."""
    whole = text.encode(errors="replace").decode()
    return whole.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
