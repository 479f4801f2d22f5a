"""Comparing runs on the grades of one judge: which grades count, and where no winner is named."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Final

from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import judge_command, judges_text, missing_grades_text
from ragforge.evaluating.same_judge import (
    PairJudges,
    RankingPair,
    SameJudgeValues,
    measure_on_same_judge,
    mixed_grades,
)
from ragforge.measures import parse_measure
from ragforge.pipeline.comparing.undecided import Key, Qrels, RankedRun

USUAL_DEPTH: Final = 10
"""Ranks that `ragforge judge` pools where nothing is said."""
_NOISE: Final = 1e-12


def grades_for(
    qrels: Qrels,
    by: PairJudges,
    rankings: Sequence[Mapping[str, Sequence[str]]],
    measures: Sequence[str],
) -> tuple[Qrels, PairJudges]:
    """Return the grades that runs are measured on, and the queries that are left with several.

    Where one judge graded all that the measures look at in all runs, grades of others are left out:
    they are of chunks that no run holds, and would only move what values are divided by.
    """
    reach = max((parse_measure(name).cutoff or inf for name in measures), default=inf)
    counted, left = dict(qrels), {}
    for query_id, judges in by.mixed.items():
        chunks = (c for ranked in rankings for c in _top(ranked.get(query_id, ()), reach))
        seen = {judges[chunk_id] for chunk_id in chunks if chunk_id in judges}
        if len(seen) > 1:
            left[query_id] = judges
        else:
            of = seen or {_most(judges)}
            counted[query_id] = {
                chunk_id: grade
                for chunk_id, grade in qrels[query_id].items()
                if chunk_id not in judges or judges[chunk_id] in of
            }
    return counted, replace(by, mixed=left)


def withheld(
    where: Path,
    qrels: Qrels,
    by: PairJudges,
    runs: Sequence[RankedRun],
    couples: Sequence[tuple[str, str]],
    measures: Sequence[str],
    rel_threshold: int,
) -> dict[Key, str]:
    """Return why no winner is named, by couple of runs and measure; nothing where one may be.

    Args:
        where: The directory of the set, or the file of the grades.
        qrels: As `grades_for` returns them.
        by: Likewise.
        runs: The runs.
        couples: Names of those that are compared.
        measures: Canonical names.
        rel_threshold: Lowest grade that counts as relevant.
    """
    reasons: dict[Key, str] = {}
    if by.mixed:
        of_name = {run.name: run for run in runs}
        for a, b in couples:
            reasons |= _of_couple(
                where, qrels, by, (of_name[a], of_name[b]), measures, rel_threshold
            )
    return reasons


def _of_couple(
    where: Path,
    qrels: Qrels,
    by: PairJudges,
    runs: tuple[RankedRun, RankedRun],
    measures: Sequence[str],
    rel_threshold: int,
) -> dict[Key, str]:
    a, b = runs
    couples = [
        RankingPair(query_id, a.ranked.get(query_id, ()), b.ranked.get(query_id, ()))
        for query_id in by.mixed
        if query_id not in a.failed | b.failed
    ]
    readings = measure_on_same_judge(couples, qrels, by, measures, rel_threshold, 0)
    lacking = {
        query_id: {name: one.lacking for name, one in of.items() if one.lacking}
        for query_id, of in readings.items()
    }
    mixed = mixed_grades(lacking, len(qrels), by)
    keys = {name: (a.name, b.name, name) for name in measures}
    if mixed is not None:
        needed = {(q, c) for q, of in lacking.items() for chunks in of.values() for c in chunks}
        n_queries = plural(sum(map(bool, lacking.values())), "query", "queries")
        command = "ragforge judge --pairs FILE --out FILE --model MODEL"
        if where.is_dir():
            depth = _depth(needed, runs)
            command = judge_command(mixed.ask, str(where), [a.name, b.name], depth=depth)
        reason = (
            f"in {n_queries} no one judge graded what both hold ({judges_text(mixed.judges)}), so "
            f"that a difference may be one of the judges; {missing_grades_text(mixed, command)}"
        )
        return {keys[name]: reason for name in mixed.measures}
    alone = (
        "in queries that several judges graded, the best possible values are of more than one "
        "judge; compare these two runs alone"
    )
    moved = {
        name
        for query_id, of in readings.items()
        for name, one in of.items()
        if _moved(one, name, query_id, runs)
    }
    return {keys[name]: alone for name in moved}


def _moved(
    one: SameJudgeValues, name: str, query_id: str, runs: tuple[RankedRun, RankedRun]
) -> bool:
    """Whether the values that are compared are others than those of one judge."""
    sides = zip((one.before, one.now), runs, strict=True)
    return any(
        reading.value is not None
        and abs(run.values[name].get(query_id, reading.value) - reading.value) > _NOISE
        for reading, run in sides
    )


def _depth(needed: set[tuple[str, str]], runs: Sequence[RankedRun]) -> int:
    """Return the deepest rank that is to be judged; 0 where that is not below the usual pool."""
    ranks = (
        rank
        for run in runs
        for query_id in {query_id for query_id, _ in needed}
        for rank, chunk_id in enumerate(run.ranked.get(query_id, ()), 1)
        if (query_id, chunk_id) in needed
    )
    deepest = max(ranks, default=0)
    return deepest if deepest > USUAL_DEPTH else 0


def _top(ranking: Sequence[str], reach: float) -> Sequence[str]:
    return ranking if reach == inf else ranking[: int(reach)]


def _most(judges: Mapping[str, int]) -> int:
    given = list(judges.values())
    return min(set(given), key=lambda judge: (-given.count(judge), judge))
