"""Comparing runs: which is better, on a dataset or by files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, combinations, starmap
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.chunkings import COMPARED_ON_EVIDENCE, Chunking, chunkings, differ_in_words
from ragforge.evaluating.comparison import ComparisonReport
from ragforge.evaluating.evaluation_data import (
    EvaluationData,
    is_complete,
    measured_gradings,
    reading_words,
    settle_judgments,
    task_of,
)
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import (
    GradedBy,
    count_file_grades,
    grades_of,
    judge_name,
    mark_drift,
)
from ragforge.evaluating.judgments import (
    LABELS_IN_WORDS,
    Settled,
    failed_by_name,
    judges,
    of_queries,
    settle,
)
from ragforge.evaluating.query_variants import query_variants, variants_note
from ragforge.evaluating.runs import (
    Task,
    by_document_text,
    out_of_reach,
    rank_order,
    refuse_left_out_of_sample,
)
from ragforge.evaluating.same_judge import pair_judges
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.decision_samples import sample_note
from ragforge.files.set.document_level import DocumentLevel, document_level
from ragforge.files.set.query_selection import ChosenQueries, shared
from ragforge.files.set.stale_runs import (
    UsableRuns,
    chunks_of_runs,
    dataset_of_file,
    refuse_files_of_a_part,
    refuse_files_of_other_chunks,
    usable_runs,
)
from ragforge.files.set.unknown_hits import unknown_run_text
from ragforge.measures.comparing import couples
from ragforge.measures.listed_relevance import by_grades
from ragforge.measures.locating import falls
from ragforge.measures.measure_names import canonical, of_evidence, require_judgments_only
from ragforge.measures.unseen_values import have_same_rankings
from ragforge.pipeline.comparing.amounts_of_text import unlike_amounts
from ragforge.pipeline.comparing.basis import (
    ComparisonBasis,
    RankedRun,
    TextBasis,
    comparison_basis,
    measure_run,
    some_of,
)
from ragforge.pipeline.comparing.deciding import (
    AS_USUAL,
    ComparisonOptions,
    Contender,
    Contest,
    check_names,
    check_options,
    decide,
)
from ragforge.pipeline.comparing.undecided import Origins, undecided
from ragforge.pipeline.comparing.uneven_labels import without_uneven
from ragforge.pipeline.evaluating import reading_of_file
from ragforge.pipeline.run_list import names_apart
from ragforge.records import Query
from ragforge.records.judgments import JudgmentOrGrading, origin_of

if TYPE_CHECKING:
    from ragforge.files.formats.runs import Ranked

_JUDGES: Final = frozenset({"llm", "baseline", "mock"})
_POOLED: Final = frozenset({"pooled", "partial"})
"""Readings of labels by which a chunk without one was not looked at."""


@dataclass(frozen=True, slots=True)
class _Graded:
    """Who graded."""

    judged_by: tuple[str, ...]
    """In words; empty for files."""
    graded_by: tuple[GradedBy, ...]
    origins: Origins


@dataclass(frozen=True, slots=True)
class _Retrieved:
    """A run of a dataset, not measured yet."""

    name: str
    ranked: Mapping[str, Sequence[str]]
    failed: set[str]
    """Queries of the judgments whose retrieval failed."""
    as_retrieved: Mapping[str, Sequence[str]]
    """See `MeasuredRun`."""

    @property
    def retrieved(self) -> Mapping[str, Sequence[str]]:
        """What was retrieved, under its own ids."""
        came = self.as_retrieved
        return {key: came.get(key, of) for key, of in self.ranked.items()} if came else self.ranked


def require_comparable(
    dataset: Dataset,
    names: Sequence[str],
    new: Container[str],
    settings: EvaluateSettings,
    options: ComparisonOptions,
) -> None:
    """Refuse what nothing that is retrieved or graded yet could make a comparison of.

    Args:
        dataset: As for `compare_runs`.
        names: As for `compare_runs`.
        new: Those of them that are to be made, on all queries that the dataset is measured on.
        settings: As for `compare_runs`.
        options: As for `compare_runs`.

    Raises:
        DataError: The runs have no query in common.
        UsageError: There are fewer than two runs, or a measure or an option cannot be taken.
    """
    check_names(names or dataset.run_names(), options.baseline, "run")
    check_options(options)
    comparison_basis(dataset.path, {}, settings, options)
    parts = {name: dataset.chosen if name in new else dataset.chosen_of_run(name) for name in names}
    shared(parts)


def compare_runs(
    dataset: Dataset,
    names: Sequence[str],
    settings: EvaluateSettings,
    options: ComparisonOptions = AS_USUAL,
) -> ComparisonReport:
    """Compare runs of a dataset on its judgments; unanswerable queries are left out.

    Args:
        dataset: Has queries, judgments and runs.
        names: Which runs; all but stale and empty ones where empty.
        settings: Measures and threshold. Where it names no measures, they are `COMPARED_MEASURES`,
            or `COMPARED_ON_EVIDENCE` where runs have different chunks.
        options: How to compare.

    Raises:
        DataError: There is no such run, one is of another dataset or of other chunks, or nothing is
            judged.
        UsageError: There are fewer than two runs, or a measure or an option cannot be taken.
    """
    there = dataset.run_names()
    usable = usable_runs(dataset, names).require_any()
    wanted = list(names or usable.names)
    hint = f"; the dataset has {', '.join(there) or 'no runs'}; `ragforge retrieve` makes one"
    check_names(wanted, options.baseline, "run", "; ".join((hint, *usable.warnings)))
    accepted = dataset.require_accepted_queries()
    queries = {item.query_id: item for item in accepted if item.answerable}
    judgments = dataset.judgment_table().of_queries(queries)
    level = document_level(dataset, judgments)
    settled = settle_judgments(dataset, level, judgments, settings.rel_threshold)
    threshold = dataset.rel_threshold(settings.rel_threshold)
    asked = settings.rel_threshold
    by_lists = asked == "auto"
    task = task_of(queries.values(), settled, (), threshold, by_lists=by_lists)
    qrels = task.qrels
    settings = settings.model_copy(update={"rel_threshold": task.rel_threshold})
    folded = len(level.query_ids & qrels.keys())
    sampled = [note] if (note := sample_note(dataset)) else []
    if sampled and not any(qrels.values()):
        raise DataError(f"{dataset.path}: nothing to compare on: {note}")
    variants = query_variants(dataset, queries.values())
    varied = [note] if (note := variants_note(variants, len(queries))) else []
    told = [by_document_text(folded)] if folded else []
    basis = comparison_basis(
        dataset.path,
        qrels,
        settings,
        options,
        warnings=[*told, *usable.warnings, *sampled, *varied],
    )
    basis = basis.with_lists(task.relevant)
    reading = reading_words(dataset, judgments, task, asked)
    parts = {name: dataset.chosen_of_run(name) for name in wanted}
    wanted = wanted if names else _of_one_part(parts, options, basis)
    basis = basis.on_part(shared({name: parts[name] for name in wanted}))
    retrieved = _retrieved_by(wanted, usable, level, queries.keys(), basis)
    complete = is_complete(dataset, judgments)
    basis = replace(basis, is_complete=complete, is_named=bool(names), reading=reading)
    basis = replace(basis, variants=variants)
    basis = replace(basis, lacking=level.lacking, is_pool=dataset.manifest.labels in _POOLED)
    basis, retrieved = _without_gone_texts(basis, dataset, retrieved)
    task, cut = replace(task, level=level), chunkings(dataset, level)
    basis = _with_texts(basis, cut, task, wanted)
    basis = _with_evidence(basis, dataset, queries.values(), retrieved)
    settled_here = of_queries(settled, basis.qrels)
    basis = basis.on_one_judge(pair_judges(settled_here), [run.ranked for run in retrieved])
    runs = _measured_all(retrieved if names else _filled(retrieved, options, basis), basis)
    texts = {query_id: query.query for query_id, query in queries.items()}
    basis = _with_unknown(basis, dataset, runs)
    tasks = [replace(task, chunking=cut.get(name)) for name in wanted]
    graded = _of_judgments(dataset, measured_gradings(judgments, tasks), settled)
    report = _decided(basis, runs, options, texts, graded)
    return without_uneven(report, basis, runs, settled_here, dataset.label_checks)


def _retrieved_by(
    names: Iterable[str],
    usable: UsableRuns,
    level: DocumentLevel,
    query_ids: Set[str],
    basis: ComparisonBasis,
) -> list[_Retrieved]:
    """Return the rankings of runs; a run without a file of which queries failed has none."""
    dataset = usable.dataset
    there = dataset.run_names()
    failed = failed_by_name(dataset.failures(), "retrieve")
    retrieved = []
    for name in names:
        hopeless = name not in there and failed.get(name, set()) & query_ids
        rankings = [] if hopeless else level.rankings(usable.rankings(name))
        ranked = {item.query_id: rank_order(item.ranking) for item in rankings}
        without = failed.get(name, set()) | usable.unasked.get(name, set())
        lost = (without & basis.qrels.keys()) - ranked.keys()
        as_retrieved = {} if hopeless else level.as_retrieved(usable.rankings(name))
        retrieved.append(_Retrieved(name, ranked, lost, as_retrieved))
    return retrieved


def _without_gone_texts(
    basis: ComparisonBasis, dataset: Dataset, retrieved: list[_Retrieved]
) -> tuple[ComparisonBasis, list[_Retrieved]]:
    """Return runs without rankings that hold texts which the documents changed, and tell it.

    A run that was brought along from an earlier version found them when they were there; a run of
    now cannot. Beside such a run these queries count as failed.

    Raises:
        DataError: Of a run that was named no ranking is left.
    """
    mapped = {
        run.name
        for run in retrieved
        if (entry := dataset.manifest.files.get(f"runs/{run.name}.jsonl"))
        and entry.run
        and entry.run.mapped_from
    }
    if not mapped or len(mapped) == len(retrieved):
        return basis, retrieved
    texts = dataset.retrieved_texts()
    gone = {text.chunk_id for text in texts if not text.places or text.likeness < 1}
    warnings, kept = [], []
    for run in retrieved:
        found = run.ranked.items() if run.name in mapped else ()
        lost = {query_id for query_id, ranked in found if not gone.isdisjoint(ranked)}
        if lost:
            n = plural(len(lost), "query", "queries")
            warnings.append(
                f"{run.name}: in {n} it found texts that stand otherwise in the documents of now, "
                "as it was made on an earlier version; beside runs of now they count as failed"
            )
        ranked = {query_id: of for query_id, of in run.ranked.items() if query_id not in lost}
        if lost and not ranked and basis.is_named:
            [status] = chunks_of_runs(dataset, [run.name]).values()
            raise DataError(
                f"{dataset.path}: run {run.name!r} was made on an earlier version, and where it "
                "found something the documents changed, in every query; make it again with "
                f"`{status.way_out(dataset)}`"
            )
        failed = run.failed | (lost & basis.qrels.keys())
        kept.append(replace(run, ranked=ranked, failed=failed))
    return replace(basis, warnings=[*basis.warnings, *warnings]), kept


def compare_gathered(
    dataset: Dataset,
    found: EvaluationData,
    settings: EvaluateSettings,
    options: ComparisonOptions = AS_USUAL,
) -> ComparisonReport:
    """Compare the runs of a dataset that is read already; else as `compare_runs`."""
    check_names([run.name for run in found.runs], options.baseline, "run")
    settings = settings.model_copy(update={"rel_threshold": found.task.rel_threshold})
    basis = comparison_basis(dataset.path, found.task.qrels, settings, options).with_lists(
        found.task.relevant
    )
    task = found.task
    basis = replace(basis, is_complete=task.is_complete, lacking=task.level.lacking)
    basis = replace(basis, variants=found.variants)
    basis = replace(basis, is_pool=dataset.manifest.labels in _POOLED)
    parts = {run.name: run.task.chosen if run.task else None for run in found.runs}
    wanted = _of_one_part(parts, options, basis)
    basis = basis.on_part(shared({name: parts[name] for name in wanted}))
    answerable = of_queries(found.settled, basis.qrels)
    cut = {run.name: run.task.chunking for run in found.runs if run.task and run.task.chunking}
    basis = _with_texts(basis, cut, found.task, wanted)
    retrieved = [
        _Retrieved(
            run.name,
            run.ranked,
            basis.qrels.keys() & run.summary.attention.failed,
            run.as_retrieved,
        )
        for run in found.runs
        if run.name in wanted
    ]
    basis, retrieved = _without_gone_texts(basis, dataset, retrieved)
    basis = _with_evidence(basis, dataset, found.task.queries, retrieved)
    basis = basis.on_one_judge(pair_judges(answerable), [run.ranked for run in retrieved])
    runs = _measured_all(_filled(retrieved, options, basis), basis)
    texts = {query_id: query.query for query_id, query in found.queries.items()}
    basis = _with_unknown(basis, dataset, runs)
    tasks = [replace(found.task, chunking=cut.get(name)) for name in wanted]
    measured_on = measured_gradings(found.judgments.of_queries(found.task.qrels), tasks)
    graded = _of_judgments(dataset, measured_on, found.settled)
    report = _decided(basis, runs, options, texts, graded)
    return without_uneven(report, basis, runs, answerable, dataset.label_checks)


def compare_files(
    qrels_path: Path,
    run_paths: Sequence[Path],
    settings: EvaluateSettings,
    options: ComparisonOptions = AS_USUAL,
) -> ComparisonReport:
    """Compare run files on a file of judgments; arguments and errors as for `compare_runs`.

    A run goes by the name of its file, or by as much of its path as tells it apart.
    """
    from ragforge.files.formats.qrels import judgments_in, read_judged_qrels
    from ragforge.files.formats.runs import read_run
    from ragforge.pipeline.file_runs import chunkings_of_files, described

    names = names_apart(run_paths)
    check_names(names, options.baseline, "run")
    require_judgments_only(canonical(settings.measures))
    refuse_files_of_other_chunks(qrels_path, run_paths)
    if not options.only_retrieved:
        refuse_files_of_a_part(qrels_path, run_paths)
    judged = read_judged_qrels(qrels_path)
    asked_threshold = settings.rel_threshold
    labels = judged.in_force(asked_threshold)
    settings = settings.model_copy(update={"rel_threshold": labels.rel_threshold})
    qrels = labels.grades
    # Judges of a dataset grade from 0 to 3; a file of zeros and ones knows nothing above.
    is_binary = all((grade or 0) <= 1 for of in qrels.values() for grade in of.values())
    basis = replace(
        comparison_basis(qrels_path, qrels, settings, options, is_binary), is_named=True
    )
    basis = basis.with_lists(labels.relevant)
    said = reading_of_file(qrels_path, judged)
    words = [labels.reading, LABELS_IN_WORDS[said] if said else ""]
    reading = "; ".join(filter(None, words))
    basis = replace(basis, is_complete=said == "complete", is_pool=said in _POOLED)
    basis = replace(basis, reading=reading)
    held, asked, failed = {}, {}, {}
    for name, path in zip(names, run_paths, strict=True):
        run = read_run(path)
        rankings = run.rankings
        held[name] = {item: _ordered(rankings[item]) for item in rankings if item in qrels}
        asked[name] = frozenset(rankings)
        failed[name] = run.failures.keys() & qrels.keys()
    found = chunkings_of_files(
        judged, qrels_path, held, dict(zip(names, run_paths, strict=True)), asked_threshold
    )
    if found.chunkings:
        basis = basis.with_texts_of_files(
            TextBasis(found.chunkings, found.texts, frozenset()), described(found)
        )
    settled = of_queries(settle(judgments_in(qrels_path)), basis.qrels)
    basis = basis.on_one_judge(pair_judges(settled), list(held.values()))
    runs = [measure_run(name, held[name], asked[name], failed[name], basis) for name in names]
    graded = _Graded((), count_file_grades(judged, [found.texts]), judged.origins)
    report = _decided(basis, runs, options, {}, graded)
    dataset = dataset_of_file(qrels_path)
    return without_uneven(report, basis, runs, settled, dataset.label_checks if dataset else list)


def _with_texts(
    basis: ComparisonBasis, cut: Mapping[str, Chunking], task: Task, wanted: Iterable[str]
) -> ComparisonBasis:
    """Return the basis with what runs of other texts than the set's chunks are measured on."""
    of_wanted = {name: cut[name] for name in wanted if name in cut}
    if not of_wanted or task.is_by_document:
        return basis
    texts = TextBasis(of_wanted, task.text_grades, task.level.query_ids)
    return replace(basis, texts=texts)


def _with_evidence(
    basis: ComparisonBasis,
    dataset: Dataset,
    queries: Iterable[Query],
    retrieved: Iterable[_Retrieved],
) -> ComparisonBasis:
    """Return the basis with what measures of evidence are computed from, if one is compared by.

    Where nobody said by what to compare, runs of different chunks are compared by these.
    """
    runs = list(retrieved)
    by_name = {run.name: run.retrieved for run in runs}
    basis = replace(basis, as_retrieved={run.name: run.as_retrieved for run in runs})
    differ = not all(starmap(basis.are_cut_alike, combinations(by_name, 2)))
    if not differ and not of_evidence(basis.measures):
        return basis.told_of_texts()
    # It imports numpy.
    from ragforge.evaluating.evidence import evidence_basis

    evidence = evidence_basis(dataset, queries, by_name.values())
    if differ and evidence.quotes and not basis.settings.measures:
        sizes = {name: evidence.mean_length(ranked) for name, ranked in by_name.items()}
        warnings = [*basis.warnings, different_chunks_text(sizes)]
        return replace(basis, measures=COMPARED_ON_EVIDENCE, evidence=evidence, warnings=warnings)
    basis = basis.told_of_texts()
    if differ and basis.by_judgments:
        told = differ_in_words(basis.by_judgments, has_evidence=bool(evidence.quotes))
        basis = replace(basis, warnings=[*basis.warnings, told])
    return replace(basis, evidence=evidence) if of_evidence(basis.measures) else basis


def _with_unknown(
    basis: ComparisonBasis, dataset: Dataset, runs: Iterable[RankedRun]
) -> ComparisonBasis:
    """Return the basis with the runs of which the set knows no hit."""
    told = {run.name: unknown_run_text(dataset, run.ranked, basis.qrels) for run in runs}
    return replace(basis, unknown={name: text for name, text in told.items() if text})


def different_chunks_text(sizes: Mapping[str, float]) -> str:
    """Return a sentence on why runs of different chunks are compared by evidence.

    Args:
        sizes: Characters of what each run retrieved, in the mean.
    """
    listed = ", ".join(f"{name} {size:,.0f}" for name, size in sizes.items())
    return (
        f"the runs have different chunks (characters in the mean: {listed}) and are compared by "
        "evidence: nDCG counts chunks, so that it alone would flatter large ones, of which each "
        "holds more, or small ones that repeat each other, as each is relevant"
    )


def _of_one_part(
    parts: Mapping[str, ChosenQueries | None], options: ComparisonOptions, basis: ComparisonBasis
) -> list[str]:
    """Return the runs to compare where nobody named any: those of most queries, if there are two.

    Else a sample of one run would have all others compared on its few queries.
    """
    chosen_for = {name: part.selection.asked if part else () for name, part in parts.items()}
    if len(set(chosen_for.values())) < 2:
        return list(parts)
    sizes = {name: len(part.query_ids) if part else inf for name, part in parts.items()}
    most = chosen_for[max(sizes, key=lambda name: sizes[name])]
    kept = [name for name, of in chosen_for.items() if of == most]
    if len(kept) < 2 or options.baseline not in (None, *kept):
        return list(parts)
    basis.warnings.extend(
        f"{name}: the run is of {part.selection.in_words} and is left out; name it to compare on "
        "the queries in common"
        for name, part in parts.items()
        if name not in kept and part is not None
    )
    return kept


def _of_judgments(
    dataset: Dataset, judgments: Iterable[JudgmentOrGrading], settled: Settled
) -> _Graded:
    made = judges(judgments, {})
    graded_by = mark_drift(grades_of(made), read_canaries(dataset))
    names = dict.fromkeys(judge_name(judge) for judge in made)
    if not any(item.origin.says_nothing for item in graded_by):
        # Who gave which grade is asked only where one of them says nothing; sets may be large.
        return _Graded(tuple(names), graded_by, {})
    origins = {
        (query_id, chunk_id): origin_of(judgment)
        for query_id, of_query in settled.items()
        for chunk_id, judgment in of_query.items()
    }
    return _Graded(tuple(names), graded_by, origins)


def _filled(
    retrieved: Sequence[_Retrieved], options: ComparisonOptions, basis: ComparisonBasis
) -> Sequence[_Retrieved]:
    """Leave out runs without any of the queries, not even a failure, where enough others stay."""
    asked = basis.qrels.keys()
    filled = [run for run in retrieved if run.failed or not asked.isdisjoint(run.ranked)]
    names = [run.name for run in filled]
    if len(filled) < 2 or options.baseline not in (None, *names):
        return retrieved
    basis.warnings.extend(
        f"{run.name}: the run has none of the queries, and is left out"
        for run in retrieved
        if run.name not in names
    )
    return filled


def _measured_all(retrieved: Iterable[_Retrieved], basis: ComparisonBasis) -> list[RankedRun]:
    return [
        measure_run(run.name, run.ranked, run.ranked.keys(), run.failed, basis) for run in retrieved
    ]


def _ordered(ranking: Ranked) -> Sequence[str]:
    """Return chunk ids as they are ranked: by score, equal ones by id, both descending."""
    if not isinstance(ranking, Mapping):
        return ranking
    if falls(ranking.values()):
        return list(ranking)
    return sorted(ranking, key=lambda chunk_id: (ranking[chunk_id], chunk_id), reverse=True)


def _decided(
    basis: ComparisonBasis,
    runs: Sequence[RankedRun],
    options: ComparisonOptions,
    texts: Mapping[str, str],
    graded: _Graded,
) -> ComparisonReport:
    _check_shared(runs)
    compared = couples([run.name for run in runs], options.baseline)
    contenders = [Contender(run.name, run.values, run.scores.first_relevant_rank) for run in runs]
    open_ = undecided(
        basis,
        runs,
        compared,
        graded.origins,
        is_pool=basis.is_pool or any(item.origin.kind in _JUDGES for item in graded.graded_by),
    )
    contest = Contest(
        of="runs",
        contenders=contenders,
        measures=basis.measures,
        undecided=open_,
        texts=texts,
        rel_threshold=runs[0].scores.rel_threshold,
        by_lists=bool(basis.relevant),
        reading=basis.reading,
        other_judges=basis.other_judges,
        judged_by=graded.judged_by,
        graded_by=graded.graded_by,
        # What a sample ranks alike may differ in what was not drawn.
        alike=frozenset() if basis.design else frozenset(_alike(runs, compared, basis)),
        warnings=(
            *basis.warnings,
            *unlike_amounts(basis, runs, open_),
            *_warnings(runs, basis),
        ),
        is_named=basis.is_named,
        part=basis.part,
        designs=basis.designs,
        variants=basis.variants,
    )
    n_lacked = {run.name: len(run.scores.missing_from_run) for run in runs}
    left_out = {name: n for name, n in n_lacked.items() if n and basis.only_retrieved}
    if basis.design is not None:
        for name, n in left_out.items():
            refuse_left_out_of_sample(name, n)
    return replace(decide(contest, options), n_lacked=left_out)


def _alike(
    runs: Sequence[RankedRun], compared: Iterable[tuple[str, str]], basis: ComparisonBasis
) -> Iterator[tuple[str, str]]:
    """Yield the couples that rank alike in all queries compared; what failed has no ranking."""
    by_name = {run.name: run for run in runs}
    for a, b in compared:
        of_a, of_b = by_name[a].retrieved, by_name[b].retrieved
        if basis.only_retrieved:
            shared = of_a.keys() & of_b.keys()
            of_a, of_b = ({key: of[key] for key in shared} for of in (of_a, of_b))
        if not (by_name[a].failed or by_name[b].failed) and have_same_rankings(of_a, of_b):
            yield a, b


def _check_shared(runs: Sequence[RankedRun]) -> None:
    """Refuse runs that have no query in common.

    Raises:
        DataError: Two have none.
    """
    for a, b in combinations(runs, 2):
        of_a, of_b = a.ranked.keys() | a.failed, b.ranked.keys() | b.failed
        if of_a.isdisjoint(of_b):
            raise DataError(
                f"runs {a.name} and {b.name} share no query: one holds {some_of(of_a)}, the "
                f"other {some_of(of_b)}; a comparison needs runs of the same queries"
            )


def _warnings(runs: Sequence[RankedRun], basis: ComparisonBasis) -> list[str]:
    n_judged = sum(map(bool, basis.qrels.values()))
    outcome = "they are left out" if basis.only_retrieved else "they count 0"
    of_texts = basis.texts.grades.values() if basis.texts else ()
    graded = (judged.values() for judged in chain(basis.qrels.values(), of_texts))
    highest = max((grade or 0 for grade in chain.from_iterable(graded)), default=0)
    names = by_grades(basis.measures, has_lists=basis.relevant is not None)
    unreached = out_of_reach(names, runs[0].scores.rel_threshold, highest)
    warnings = [f"no grade reaches the threshold: {unreached}"] if unreached else []
    warnings += _without_grades(runs) if basis.by_judgments else ()
    for run in runs:
        warnings += [f"{run.name}: {warning}" for warning in run.scores.warnings]
        missing = len(run.scores.missing_from_run)
        if missing:
            warnings.append(f"{run.name}: lacks {missing} of {n_judged} judged queries: {outcome}")
    return warnings


def _without_grades(runs: Sequence[RankedRun]) -> Iterator[str]:
    """Yield which queries some runs have no value in, as nothing that they go by is graded."""
    in_all = frozenset.intersection(*(frozenset(run.scores.without_judgments) for run in runs))
    for run in runs:
        left_out = sorted(frozenset(run.scores.without_judgments) - in_all)
        if left_out:
            yield (
                f"{run.name}: {plural(len(left_out), 'query is', 'queries are')} left out of what "
                f"goes by grades, as no text that it is measured on has one: {some_of(left_out)}"
            )
