"""Which differences between runs, or answer systems, rest on grades that say nothing.

A difference rests on a grade where it would be another one, were the grade another: in a query
whose rankings differ as far down as the measure looks, that of a chunk that either run has so far
down; and of a measure that divides by all that is relevant, that of each relevant chunk too. One
such grade of the offline baseline, or of `ragforge mock`, is enough for no winner to be named.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TypeAlias

from ragforge.measures.formulas import FORMULAS
from ragforge.measures.names import Measure, parse_measure
from ragforge.pipeline.comparing.doubts import Key, Qrels, RankedRun
from ragforge.records.grade_origins import GradeOrigin
from ragforge.report.graded_by import count_silent, why_unknown

Origins: TypeAlias = Mapping[tuple[str, str], GradeOrigin]
"""By query and chunk."""
_UNRECORDED = GradeOrigin("")


def reasons(
    qrels: Qrels,
    origins: Origins,
    runs: Sequence[RankedRun],
    couples: Sequence[tuple[str, str]],
    measures: Sequence[str],
) -> dict[Key, str]:
    """Return why no winner is named, for the couples and measures of which that is so.

    Args:
        qrels: Grade by query and chunk.
        origins: Who gave them, as far as that is recorded.
        runs: The runs.
        couples: Names of those that are compared.
        measures: Canonical names.
    """
    if not any(item.says_nothing for item in set(origins.values())):
        return {}
    by_name = {run.name: run for run in runs}
    found = {}
    for a, b in couples:
        for name in measures:
            couple = by_name[a], by_name[b]
            silent = count_silent(_rested_on(*couple, parse_measure(name), qrels, origins))
            why = why_unknown(silent, _ahead(*couple, name))
            if why:
                found[a, b, name] = why
    return found


def _rested_on(
    a: RankedRun, b: RankedRun, measure: Measure, qrels: Qrels, origins: Origins
) -> Iterator[GradeOrigin]:
    """Yield who gave each grade that the difference of two runs rests on."""
    by_all_relevant = FORMULAS[measure.name].response != "rises"
    for query_id, judged in qrels.items():
        of_a = a.ranked.get(query_id, ())[: measure.cutoff]
        of_b = b.ranked.get(query_id, ())[: measure.cutoff]
        if list(of_a) == list(of_b):
            continue
        seen = {*of_a, *of_b}
        for chunk_id, grade in judged.items():
            rests = chunk_id in seen or (by_all_relevant and (grade or 0) > 0)
            if rests and grade is not None:
                yield origins.get((query_id, chunk_id), _UNRECORDED)


def _ahead(a: RankedRun, b: RankedRun, measure: str) -> str:
    return ahead({a.name: a.values[measure], b.name: b.values[measure]})


def ahead(values: Mapping[str, Mapping[str, float]], *, lower_is_better: bool = False) -> str:
    """Return the one of two with the better mean over the queries of both; "" where neither has.

    Args:
        values: By name and query id, of two.
        lower_is_better: Whether that is so.
    """
    (a, of_a), (b, of_b) = values.items()
    difference = fsum(of_b[query_id] - of_a[query_id] for query_id in of_a.keys() & of_b.keys())
    if abs(difference) < 1e-12:
        return ""
    return b if (difference > 0) != lower_is_better else a
