"""Grades that a decision asked for by itself: a sample of pairs, apart from the judgments of a set.

Whoever measures by judgments would take what was not drawn for not relevant. So the sample never is
among them, and who measures is told of it.
"""

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.set.dataset import Dataset


def write_sample(dataset: Dataset, name: str, decision: Mapping[str, object]) -> None:
    """Keep a decision with its grades, each with the probability that it was asked for.

    Args:
        dataset: Whose runs were decided.
        name: Of the file; an earlier one of it is replaced.
        decision: As JSON has it, with `grades`.
    """
    folder = _folder(dataset)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{name}.json", [json.dumps(decision, indent=1), "\n"])


class EarlierDecision(NamedTuple):
    """What was decided of some runs, and for which pairs a grade was bought."""

    runs: frozenset[str]
    measure: str
    seed: int
    winner: str
    pairs: frozenset[tuple[str, str]]


def earlier_decisions(dataset: Dataset, runs: Collection[str]) -> list[EarlierDecision]:
    """Return the kept decisions between the same runs, in whichever order these were named.

    Raises:
        DataError: A kept decision is broken.
    """
    return [each for each in _kept(dataset) if each.runs == set(runs)]


def sample_note(dataset: Dataset) -> str | None:
    """Return how many pairs were graded for decisions alone, and how to complete the pool.

    Raises:
        DataError: A kept decision is broken.
    """
    sampled = {pair for each in _kept(dataset) for pair in each.pairs}
    if not sampled:
        return None
    sampled -= {(each.query_id, each.chunk_id) for each in dataset.each_judgment()}
    if not sampled:
        return None
    command = shlex.join(["ragforge", "judge", "--dataset", str(dataset.path)])
    return (
        f"{len(sampled):,} pairs were graded for a decision alone (--judge-as-needed): a sample is "
        f"no pool, and counts here as not graded; `{command}` with the same model completes the "
        "pool, and pays for the rest alone"
    )


def _folder(dataset: Dataset) -> Path:
    return dataset.own_place / "decisions"


def _kept(dataset: Dataset) -> Iterator[EarlierDecision]:
    for path in sorted(_folder(dataset).glob("*.json")):
        try:
            yield _read(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}: is no kept decision; delete it, and decide again (replies are kept)"
            ) from error


def _read(kept: Mapping[str, Any]) -> EarlierDecision:
    runs = [kept["a"], kept["b"]] if "a" in kept else [each["run"] for each in kept["runs"]]
    pairs = ((str(each["query_id"]), str(each["chunk_id"])) for each in kept["grades"])
    measure, winner = str(kept["measure"]), str(kept["winner"])
    return EarlierDecision(
        frozenset(map(str, runs)), measure, int(kept["seed"]), winner, frozenset(pairs)
    )
