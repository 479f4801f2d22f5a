"""Measuring a run, wherever qrels and run are: mappings, records, data frames or files.

Both qrels and run may be

* a mapping: query id to chunk id to grade, or to score; for a run also query id to a list of chunk
  ids, best first; for qrels also query id to the relevant ids, which get grade 1; a series of
  pandas with such an index, or a frame, for a query stands for what is in it;
* records in any iterable: objects or mappings with the fields query_id, chunk_id and grade or score
  (or the names that files may have for them), triples of these, or `Ranking`s;
* anything with columns of those names: a data frame of pandas or polars, a table of pyarrow, a
  structured array of numpy, a mapping of lists;
* a path to a file in one of the shapes that `ragforge evaluate` reads. A large run file is
  streamed: what is kept of it are the ranks of its judged chunks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ragforge.measures.listed_relevance import LabelsInForce, Listed
from ragforge.measures.locating import Judgments, RankedChunks
from ragforge.measures.measure_names import Measure
from ragforge.measures.run_evaluation import DEFAULT_MEASURES, evaluate_hits
from ragforge.measures.run_evaluation import evaluate as evaluate_mappings
from ragforge.measures.scores import RelThreshold, Scores

Source: TypeAlias = Any
"""A mapping, an iterable of records, anything with columns, or a path."""


def evaluate(
    qrels: Source,
    run: Source,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    rel_threshold: RelThreshold = "auto",
    failed: Collection[str] = (),
    only_retrieved: bool = False,
    n_threads: int | None = None,
) -> Scores:
    """Compute measures per query, and their means with bounds on what failures could change.

    Every query of the qrels counts, with 0 where the run lacks it. Queries that only the run has
    are ignored. A failure is never a value: see `Summary` and `ragforge.measures.bounds`.

    Ids are texts; whole numbers become their digits. The qrels may hold None (or NaN in a column)
    as grade: a judgment that failed. The chunk counts as unjudged in the value, and as every
    possible grade in the bounds. Scores order a ranking, not their place; of equal scores the
    larger chunk id comes first, as in trec_eval.

    Args:
        qrels: Which chunk has which grade for which query; in any shape that is listed in
            `ragforge.evaluation`.
        run: What was retrieved for each query; likewise.
        measures: Names as `parse_measure` reads them. One that is named twice is computed once.
        rel_threshold: Lowest grade that binary measures without `rel=` count as relevant. "auto"
            is as the qrels have it that list relevant ids beside grades, else 2 where they hold a
            grade above 1, else 1. nDCG, DCG and ERR do not use it.
        failed: Queries whose retrieval failed. They get no value, whatever the run holds.
        only_retrieved: Leave queries out that the run lacks, rather than count them as 0.
        n_threads: Threads that read a large run file; by default two, or one where there is only
            one processor.

    Raises:
        UsageError: A measure or another argument cannot be taken.
        DataError: There are no qrels or no run, a score is not a number, a grade is no whole
            number, a pair comes twice, or a file does not hold to its format.
    """
    failed_ids = _ids(failed)
    labels = _labels(qrels, rel_threshold, run)
    if isinstance(run, str | PathLike) and not failed_ids:
        return evaluate_file(
            labels.grades,
            Path(run),
            measures,
            rel_threshold=labels.rel_threshold,
            only_retrieved=only_retrieved,
            n_threads=n_threads,
            relevant=labels.relevant,
        ).scores
    rankings, failed_there = _run(run)
    return evaluate_mappings(
        labels.grades,
        rankings,
        measures,
        rel_threshold=labels.rel_threshold,
        failed={*failed_ids, *failed_there},
        only_retrieved=only_retrieved,
        relevant=labels.relevant,
    )


class FileScores(NamedTuple):
    """What a run file holds, measured."""

    scores: Scores
    latencies_s: list[float]
    """Of the queries for which the file says it."""
    in_other_forms: tuple[tuple[str, str], ...] = ()
    """Queries with retrieved ids that their qrels have in another form of Unicode."""


def evaluate_file(
    qrels: Mapping[str, Judgments],
    path: Path,
    measures: Iterable[str | Measure],
    *,
    rel_threshold: RelThreshold,
    only_retrieved: bool,
    n_threads: int | None = None,
    relevant: Listed | None = None,
) -> FileScores:
    """Measure a run file. Arguments and errors are those of `evaluate` here and in `measures`."""
    from ragforge.files.formats.run_hits import read_located

    # Where lists decide as well, a run is held against two sets of labels, and read whole.
    hits = read_located(path, qrels, n_threads) if relevant is None else None
    if hits is not None:
        scores = evaluate_hits(
            qrels, hits, measures, rel_threshold=rel_threshold, only_retrieved=only_retrieved
        )
        return FileScores(scores, list(hits.latencies_s))
    from ragforge.files.formats.runs import read_run

    run = read_run(path)
    scores = evaluate_mappings(
        qrels,
        run.rankings,
        measures,
        rel_threshold=rel_threshold,
        failed=run.failures,
        only_retrieved=only_retrieved,
        relevant=relevant,
    )
    in_other_forms = tuple(_in_other_forms(qrels, run.rankings))
    return FileScores(scores, list(run.latencies_s.values()), in_other_forms)


def _in_other_forms(
    qrels: Mapping[str, Judgments], rankings: Mapping[str, RankedChunks]
) -> Iterator[tuple[str, str]]:
    """Yield queries with retrieved ids that their qrels have in another form of Unicode."""
    from unicodedata import normalize

    for query_id, judgments in qrels.items():
        judged = {normalize("NFC", each) for each in judgments if not each.isascii()}
        for chunk_id in rankings.get(query_id, ()) if judged else ():
            if chunk_id not in judgments and normalize("NFC", chunk_id) in judged:
                yield query_id, chunk_id


def _ids(given: Collection[str]) -> Collection[str]:
    """Return ids as texts; whole numbers become their digits."""
    if isinstance(given, str):
        return (given,)
    if not len(given):
        return ()
    from ragforge.files.formats.python_objects import ids_given

    return ids_given("failed", given)


def _labels(given: Source, rel_threshold: RelThreshold, run: Source) -> LabelsInForce:
    """Return what a run is measured on, by which an export may have grades of its own."""
    if _is_plain(given, (dict,)):
        return LabelsInForce(given, rel_threshold, None)
    from ragforge.files.formats.qrels import JudgedQrels, read_judged_qrels

    if isinstance(given, str | PathLike):
        judged = read_judged_qrels(Path(given))
        own = None
        if judged.of_runs and isinstance(run, str | PathLike):
            from ragforge.files.formats.run_labels import labels_in_force

            own = labels_in_force(judged, Path(given), Path(run), rel_threshold)
        return own or judged.in_force(rel_threshold)
    from ragforge.files.formats.python_objects import qrels_given

    settled = qrels_given(given)
    judged = JudgedQrels(settled.grades, {}, settled.rel_threshold, settled.relevant)
    return judged.in_force(rel_threshold)


def _run(given: Source) -> tuple[Mapping[str, RankedChunks], Collection[str]]:
    """Return rankings, and the queries that failed as far as a file says so."""
    if isinstance(given, str | PathLike):
        from ragforge.files.formats.runs import read_run

        run = read_run(Path(given))
        return run.rankings, run.failures
    if _is_plain(given, (dict, list, tuple)) and not _are_columns(given):
        return given, ()
    from ragforge.files.formats.python_objects import run_given

    return run_given(given), ()


def _is_plain(given: Source, kinds: tuple[type, ...]) -> bool:
    """Whether the core can take a mapping as it is: the first chunk ids of queries tell."""
    if not isinstance(given, dict):
        return False
    if not all(issubclass(kind, kinds) for kind in {*map(type, given.values())}):
        return False
    # No step of the interpreter for each query: a thousand of them take 0.1 ms.
    firsts = map(next, map(iter, given.values()), repeat(""))
    return {*map(type, given), *map(type, firsts)} <= {str}


def _are_columns(given: Mapping[str, Any]) -> bool:
    """Whether a mapping of lists is one of columns, which may hold nothing but texts."""
    if not isinstance(next(iter(given.values()), None), list | tuple):
        return False
    from ragforge.files.field_names import are_columns

    return are_columns(given)
