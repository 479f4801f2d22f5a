"""Evaluate a whole run against qrels."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ragforge.measures.hit_table import RunHits
from ragforge.measures.judged_queries import judge, judge_hits
from ragforge.measures.listed_relevance import Listed, labels_of
from ragforge.measures.locating import Judgments, RankedChunks
from ragforge.measures.measure_names import Measure, parse_measures
from ragforge.measures.scores import RelThreshold, Scores, score, threshold_of

DEFAULT_MEASURES: Final = (
    "nDCG@10",
    "P@5",
    "P@10",
    "R@5",
    "R@10",
    "RR",
    "AP",
    "Success@1",
    "Success@5",
    "Judged@10",
)


def named_measures(measures: Collection[str]) -> Collection[str]:
    """Return the measures, canonical names, that somebody named: none where the usual are there."""
    return () if {*DEFAULT_MEASURES} <= {*measures} else measures


def evaluate(
    qrels: Mapping[str, Judgments],
    run: Mapping[str, RankedChunks],
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    rel_threshold: RelThreshold = "auto",
    failed: Collection[str] = (),
    only_retrieved: bool = False,
    relevant: Listed | None = None,
) -> Scores:
    """Compute measures per query, and their means with bounds on what failures could change.

    Every query of the qrels counts, with 0 where the run lacks it. Queries that only the run has
    are ignored. A failure is never a value: see `Summary` and `ragforge.measures.bounds`.

    Args:
        qrels: Query id to chunk id to grade. None is a judgment that failed: the chunk counts as
            unjudged in the value, and as every possible grade in the bounds.
        run: Query id to scores by chunk id, or to chunk ids in their order. Of equal scores the
            larger chunk id comes first, as in trec_eval.
        measures: Names as `parse_measure` reads them. One that is named twice is computed once.
        rel_threshold: Lowest grade that binary measures without `rel=` count as relevant; "auto"
            is 2 where the qrels hold a grade above 1, else 1. nDCG, DCG and ERR do not use it.
        failed: Queries whose retrieval failed. They get no value, whatever the run holds.
        only_retrieved: Leave queries out that the run lacks, rather than count them as 0.
        relevant: The relevant chunks by query, where they are listed apart from grades: they decide
            binary measures without `rel=`, and grades decide nDCG, DCG and ERR; see
            `ragforge.measures.listed_relevance`. None where grades decide all.

    Raises:
        UsageError: A measure or the threshold cannot be taken.
        DataError: There are no qrels or no run, a score is not a number, a grade is no whole
            number, or a ranking lists a chunk twice.
    """
    wanted = parse_measures(measures)
    if relevant is None:
        judged = judge(qrels, run, failed=frozenset(failed), only_retrieved=only_retrieved)
        return score(judged, wanted, rel_threshold)
    labels = labels_of(qrels, relevant, threshold_of(highest_grade(qrels), rel_threshold))
    graded, binary = (
        judge(of, run, failed=frozenset(failed), only_retrieved=only_retrieved) for of in labels
    )
    return score(graded, wanted, rel_threshold, by_list=binary)


def evaluate_hits(
    qrels: Mapping[str, Judgments],
    hits: RunHits,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    rel_threshold: RelThreshold = "auto",
    only_retrieved: bool = False,
) -> Scores:
    """Compute measures of a run of which only the judged hits are known; else as `evaluate`."""
    wanted = parse_measures(measures)
    return score(judge_hits(qrels, hits, only_retrieved=only_retrieved), wanted, rel_threshold)


def highest_grade(qrels: Mapping[str, Judgments]) -> int:
    """Return the highest grade of all; 0 where there is none."""
    grades = (grade for of_query in qrels.values() for grade in of_query.values())
    return max((grade for grade in grades if grade is not None), default=0)
