"""The tops of some runs, on the queries that they are held against each other on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.judgments import failed_by_name
from ragforge.evaluating.runs import rank_order
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import document_level
from ragforge.files.set.query_selection import shared
from ragforge.files.set.stale_runs import usable_runs
from ragforge.measures.checked_samples import Floats


@dataclass(frozen=True, slots=True)
class RunTops:
    """The tops of some runs, and on which queries each of them failed."""

    rankings: Sequence[Mapping[str, Sequence[str]]]
    """A query that a run lacks has no ranking: it found nothing."""
    asked: Mapping[str, str]
    """Text by id of all queries, those on which a run failed included."""
    failed: Sequence[Set[str]]
    """By run: queries on which its retriever failed, or that ask something else since."""
    weigh: Callable[[Sequence[str]], Floats]
    """Returns what each of some queries stands for, 1 in the mean."""
    warnings: tuple[str, ...]
    repeating: Mapping[str, Set[str]] = field(default_factory=dict)
    """By query: chunks that only repeat quotes of others, which count; they are not relevant."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Queries on which a run failed, sorted."""
        return tuple(sorted(set().union(*self.failed)))

    @property
    def query_ids(self) -> list[str]:
        """Those on which two runs or more did not fail, sorted."""
        n_failed = Counter(query_id for of_run in self.failed for query_id in of_run)
        return sorted(q for q in self.asked if len(self.failed) - n_failed[q] > 1)


def run_tops(dataset: Dataset, names: Sequence[str], k: int | None, split: str) -> RunTops:
    """Return the tops of some runs, on the queries that `compare` would take.

    A query that a run lacks counts as one for which it found nothing; one on which a retriever
    failed, or that was another question then, has failed.

    Args:
        dataset: Has queries and runs.
        names: Of the runs.
        k: Ranks of a top; None for all.
        split: Of the queries, or all.

    Raises:
        DataError: There is no such run, it is empty, or no query can be answered.
        UsageError: Labels name documents.
    """
    usable = usable_runs(dataset, names).require_any()
    accepted = dataset.require_accepted_queries()
    answerable = {each.query_id: each for each in accepted if each.answerable}
    part = shared({name: dataset.chosen_of_run(name) for name in names})
    asked = {
        key: each.asked
        for key, each in sorted(answerable.items())
        if (part is None or key in part.query_ids) and split in ("all", each.split)
    }
    if not asked:
        raise DataError(f"{dataset.path}: no query that chunks can answer in the split {split!r}")
    level = document_level(dataset, dataset.judgment_table())
    if by_document := asked.keys() & level.query_ids:
        n = plural(len(by_document), "query", "queries")
        raise UsageError(
            f"--judge-as-needed: labels of {n}, such as {min(by_document)!r}, name documents, and "
            "a judge grades passages, of which no sample tells the grade of a document; `ragforge "
            "compare` without it goes by the labels, and by the whole pool after `ragforge judge`"
        )
    by_name = failed_by_name(dataset.failures(), "retrieve")
    rankings, failed, warnings = [], [], list(usable.warnings)
    for name in names:
        counted = map(level.counted_once, usable.rankings(name))
        ranked = {each.query_id: rank_order(each.ranking)[:k] for each in counted}
        without = by_name.get(name, set()) | usable.unasked.get(name, set())
        failed.append(frozenset((without & asked.keys()) - ranked.keys()))
        if asked.keys().isdisjoint(ranked):
            raise DataError(f"run {name}: is empty, or has none of the queries")
        if missing := asked.keys() - ranked.keys() - without:
            n = plural(len(missing), "query", "queries")
            warnings.append(f"{name}: lacks {n}: found nothing for them, as it seems")
        rankings.append({key: of for key, of in ranked.items() if key in asked})

    def weigh(query_ids: Sequence[str]) -> Floats:
        if part is None or part.design is None:
            return np.ones(len(query_ids))
        drawn = part.design.within(answerable).stratified(query_ids)
        found: Floats = np.array(drawn.weights) * len(query_ids)
        return found

    repeating = {query_id: frozenset(of) for query_id, of in level.repeating.items()}
    return RunTops(rankings, asked, failed, weigh, tuple(warnings), repeating)
