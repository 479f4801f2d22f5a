"""The queries of the qrels with the judged hits of a run: with a value, failed, or without."""

from collections.abc import Collection, Mapping
from functools import cached_property
from heapq import nsmallest
from typing import Final

from ragforge.errors import DataError
from ragforge.measures.columns import Columns, ListColumns, arrays_pay
from ragforge.measures.hit_table import JudgedRanking, RunHits, Table
from ragforge.measures.locating import (
    NOTHING,
    Judgments,
    RankedChunks,
    add_located,
    add_rankings,
    judged_ranking,
    ranking_of,
)

NOTHING_JUDGED: Final = "no retrieved chunk is judged"
"""How the warning begins that a run has nothing to do with its qrels."""
_EXAMPLES: Final = 3
_SHOWN_CHARS: Final = 80
"""Of an id in a message; files may hold ids of any length."""


class Judged:
    """A run seen through the qrels; each list is sorted by query id.

    Attributes:
        table: Queries with a value.
        unjudgeable: Queries of which every judgment failed.
        failed: Queries whose retrieval failed, with empty rankings.
        without_judgments: Queries whose judgments are empty.
        missing_from_run: Judged queries that the run lacks.
        n_not_in_qrels: Queries of the run (or failed ones) that the qrels lack.
        warnings: One text each for what makes values doubtful.
    """

    def __init__(self) -> None:
        self.table = Table()
        self.unjudgeable: list[JudgedRanking] = []
        self.failed: list[JudgedRanking] = []
        self.without_judgments: list[str] = []
        self.missing_from_run: list[str] = []
        self.n_not_in_qrels = 0
        self.warnings: list[str] = []
        self._highest_left_out = 0

    @property
    def n_failed(self) -> int:
        """Queries with a failed judgment, or whose retrieval failed."""
        return len(self.table.failures) + len(self.unjudgeable) + len(self.failed)

    @cached_property
    def highest_grade(self) -> int:
        """The highest grade that occurs; 0 where none does."""
        failed = (ranking.judged[0] for ranking in self.failed if ranking.judged)
        return max(self.table.highest_grade, self._highest_left_out, *failed, 0)

    @cached_property
    def columns(self) -> Columns:
        """What the formulas are computed from."""
        if arrays_pay(len(self.table.query_ids)):
            from ragforge.measures.arrays import ArrayColumns

            return ArrayColumns(self.table)
        return ListColumns(self.table)

    def _add(self, ranking: JudgedRanking) -> None:
        if ranking.judged:
            self.table.add(ranking)
        else:
            self.unjudgeable.append(ranking)

    def _sort_out(
        self,
        qrels: Mapping[str, Judgments],
        retrieved: Mapping[str, object],
        failed: frozenset[str],
        only_retrieved: bool,
    ) -> list[str]:
        """Return the queries that a value is asked for, sorted; take note of all others."""
        if not failed and qrels.keys() <= retrieved.keys() and all(qrels.values()):
            return sorted(qrels)
        expected = []
        for query_id in sorted(qrels):
            if not qrels[query_id]:
                self.without_judgments.append(query_id)
            elif query_id in failed:
                self.failed.append(judged_ranking(query_id, qrels[query_id], {}))
            elif query_id in retrieved:
                expected.append(query_id)
            else:
                self.missing_from_run.append(query_id)
                if only_retrieved:
                    # They say what the scale is, though they count in no mean: the threshold must
                    # not depend on the run.
                    left_out = judged_ranking(query_id, qrels[query_id], {}).judged
                    self._highest_left_out = max(self._highest_left_out, *left_out, 0)
                else:
                    expected.append(query_id)
        return expected

    def _warn_of_queries(self, run_ids: Collection[str]) -> None:
        """Say that no query of the run is judged, if any could have been."""
        if self.missing_from_run and run_ids:
            outcome = "every value is 0" if self.table.query_ids else "no query has a value"
            self.warnings.append(
                f"no query of the run is judged: the qrels hold {_examples(self.missing_from_run)},"
                f" the run holds {_examples(run_ids)}; {outcome}"
            )
        elif not (self.missing_from_run or self.failed):
            self.warnings.append("no query of the qrels has a judgment")

    def _warn_of_chunks(
        self, query_id: str, judgments: Collection[str], run_ids: Collection[str]
    ) -> None:
        """Say that no chunk of the run is judged, if that is so."""
        failed = [*self.table.failures.values(), *(ranking.failed for ranking in self.unjudgeable)]
        if not self.table.ranks and not any(found.ranks for found in failed):
            self.warnings.append(
                f"{NOTHING_JUDGED}: for query {query_id!r} the qrels hold "
                f"{_examples(judgments)}, the run holds {_examples(run_ids)}"
            )


def judge(
    qrels: Mapping[str, Judgments],
    run: Mapping[str, RankedChunks],
    *,
    failed: frozenset[str] = frozenset(),
    only_retrieved: bool = False,
) -> Judged:
    """Find the judged chunks of a run. Arguments and errors are those of `evaluate`."""
    _check_not_empty(qrels, has_run=bool(run or failed))
    judged = Judged()
    judged.n_not_in_qrels = len({*run, *failed} - qrels.keys())
    expected = judged._sort_out(qrels, run, failed, only_retrieved)
    if arrays_pay(len(expected)):
        from ragforge.measures.arrays import add_batches

        left = add_batches(judged.table, expected, qrels, run)
    else:
        left = add_rankings(judged.table, expected, qrels, run)
    for query_id in left:
        judged._add(judged_ranking(query_id, qrels[query_id], run.get(query_id, ())))
    if run.keys().isdisjoint(expected):
        judged._warn_of_queries(run)
    else:
        first = next((query_id for query_id in expected if run.get(query_id)), None)
        if first is not None:
            judged._warn_of_chunks(first, qrels[first], run[first])
    return judged


def judge_hits(
    qrels: Mapping[str, Judgments], hits: RunHits, *, only_retrieved: bool = False
) -> Judged:
    """Take a run of which the judged chunks are found already; else as `judge`."""
    _check_not_empty(qrels, has_run=bool(hits.by_query or hits.n_not_in_qrels))
    judged = Judged()
    judged.n_not_in_qrels = hits.n_not_in_qrels
    expected = judged._sort_out(qrels, hits.by_query, frozenset(), only_retrieved)
    for query_id in add_located(judged.table, expected, qrels, hits.by_query):
        found = hits.by_query.get(query_id, NOTHING)
        located = list(zip(found.ranks, found.grades, strict=True))
        judged._add(ranking_of(query_id, qrels[query_id], found.n_retrieved, located))
    if hits.by_query.keys().isdisjoint(expected):
        judged._warn_of_queries(hits.not_in_qrels)
    elif hits.example_ids is not None:
        first, chunk_ids = hits.example_ids
        judged._warn_of_chunks(first, qrels[first], chunk_ids)
    return judged


def _check_not_empty(qrels: Mapping[str, Judgments], *, has_run: bool) -> None:
    if not qrels:
        raise DataError("qrels: expected at least one query, got none")
    if not has_run:
        raise DataError("run: expected at least one query, got none")


def _examples(ids: Collection[str]) -> str:
    shown = ", ".join(repr(example[:_SHOWN_CHARS]) for example in nsmallest(_EXAMPLES, ids))
    return f"{shown}, …" if len(ids) > _EXAMPLES else shown
