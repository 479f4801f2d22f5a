"""Comparing runs: which is better, on a dataset or by files."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Final

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.comparison import ComparisonReport
from ragforge.evaluating.evaluation_data import (
    EvaluationData,
    is_complete,
    reading_words,
    settle_judgments,
    task_of,
)
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import GradedBy, count_file_grades, grades_of, judge_name
from ragforge.evaluating.judgments import LABELS_IN_WORDS, Settled, failed_by_name, judges, settle
from ragforge.evaluating.runs import by_document_text, out_of_reach, rank_order
from ragforge.evaluating.same_judge import PairJudges, pair_judges
from ragforge.evaluating.selection import Part
from ragforge.files.formats.qrels import judgments_in, read_judged_qrels
from ragforge.files.formats.row_relevance import lists_in_words
from ragforge.files.formats.runs import Ranked, read_run
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import document_level
from ragforge.files.set.query_selection import Chosen, shared
from ragforge.files.set.stale_runs import (
    refuse_files_of_a_part,
    refuse_files_of_other_chunks,
    usable_runs,
)
from ragforge.measures import evaluate, parse_measure
from ragforge.measures.comparing import couples
from ragforge.measures.listed_relevance import Ground, Listed, by_grades, grounds, is_by_list
from ragforge.measures.locating import falls
from ragforge.measures.run_evaluation import highest_grade
from ragforge.measures.scores import threshold_of
from ragforge.measures.strata import Design
from ragforge.measures.unseen_values import have_same_rankings
from ragforge.pipeline.comparing.deciding import (
    AS_USUAL,
    ComparisonOptions,
    Contender,
    Contest,
    Doubt,
    check_names,
    decide,
)
from ragforge.pipeline.comparing.judged_alike import grades_for, withheld
from ragforge.pipeline.comparing.undecided import Key, Origins, Qrels, RankedRun, doubts, reasons
from ragforge.pipeline.evaluating import reading_of_file
from ragforge.pipeline.run_list import names_apart
from ragforge.records import Judgment
from ragforge.records.judgments import origin_of

COMPARED_MEASURES: Final = ("nDCG@10", "RR", "R@10", "P@5", "Success@5")
"""What is compared where nothing is asked for. Few, as each measure more makes all others harder
to win by: the order, the first hit, how much is found, how much of the top is right, any hit."""
TELL_NOTHING: Final = ("Judged", "NumRet", "NumRel")
"""Measures by which no run is better than another."""
_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class _Graded:
    """Who graded."""

    judged_by: tuple[str, ...]
    """In words; empty for files."""
    graded_by: tuple[GradedBy, ...]
    origins: Origins


@dataclass(frozen=True, slots=True)
class _Field:
    """What runs are measured on."""

    where: Path
    qrels: Qrels
    measures: tuple[str, ...]
    settings: EvaluateSettings
    only_retrieved: bool
    is_binary: bool
    """Whether chunks are relevant or not, and no grade beyond."""
    warnings: list[str] = field(default_factory=list)
    is_complete: bool = False
    """Whether what has no label is not relevant."""
    reading: str = ""
    """What is relevant, and what a chunk without a label is, in words."""
    relevant: Listed | None = None
    """What lists call relevant, where they decide binary measures; see `measures.listed`."""
    pair_judges: PairJudges = field(default_factory=PairJudges)
    """Who graded the queries that several judges did."""
    is_named: bool = False
    """Whether somebody named the runs."""
    part: Part | None = None
    """The part of the queries that is compared on; None where that is all."""

    @property
    def design(self) -> Design | None:
        """What the queries are a sample of; None where they are all there is."""
        return self.part.design if self.part else None

    def on_part(self, chosen: Chosen | None) -> "_Field":
        """Return the field on a part of the queries."""
        if chosen is None:
            return self
        lists = self.relevant or {}
        counting = [key for key, of in self.qrels.items() if of or lists.get(key)]
        design = chosen.design.within(counting) if chosen.design else None
        qrels = {key: of for key, of in self.qrels.items() if key in chosen.query_ids}
        part = Part(chosen, design, chosen.query_ids.intersection(counting))
        # As the whole set has it: a part may lack its only grades beyond 1.
        threshold = threshold_of(highest_grade(self.qrels), self.settings.rel_threshold)
        settings = self.settings.model_copy(update={"rel_threshold": threshold})
        if self.relevant is not None:
            lists = {key: of for key, of in lists.items() if key in chosen.query_ids}
            return replace(self, qrels=qrels, part=part, settings=settings, relevant=lists)
        return replace(self, qrels=qrels, part=part, settings=settings)


@dataclass(frozen=True, slots=True)
class _Retrieved:
    """A run of a dataset, not measured yet."""

    name: str
    ranked: Mapping[str, Sequence[str]]
    failed: set[str]
    """Queries of the judgments whose retrieval failed."""


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
        settings: Measures, `COMPARED_MEASURES` where it names none, and threshold.
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
    judgments = [item for item in dataset.judgments() if item.query_id in queries]
    level = document_level(dataset, judgments)
    settled = settle_judgments(dataset, level, judgments, settings.rel_threshold)
    threshold = dataset.rel_threshold(settings.rel_threshold)
    asked = settings.rel_threshold
    by_lists = asked == "auto"
    task = task_of(queries.values(), settled, (), threshold, by_lists=by_lists)
    qrels = task.qrels
    settings = settings.model_copy(update={"rel_threshold": task.rel_threshold})
    folded = len(level.query_ids & qrels.keys())
    told = [by_document_text(folded)] if folded else []
    ground = _field(dataset.path, qrels, settings, options, warnings=[*told, *usable.warnings])
    ground = _by_lists(ground, task.relevant)
    reading = reading_words(dataset, judgments, task, asked)
    parts = {name: dataset.chosen_of_run(name) for name in wanted}
    wanted = wanted if names else _of_one_part(parts, options, ground)
    ground = ground.on_part(shared(parts[name] for name in wanted))
    failed = failed_by_name(dataset.failures(), "retrieve")
    retrieved = []
    for name in wanted:
        hopeless = name not in there and failed.get(name, set()) & queries.keys()
        rankings = [] if hopeless else level.rankings(usable.rankings(name))
        ranked = {item.query_id: rank_order(item.ranking) for item in rankings}
        without = failed.get(name, set()) | usable.reworded.get(name, set())
        lost = (without & ground.qrels.keys()) - ranked.keys()
        retrieved.append(_Retrieved(name, ranked, lost))
    complete = is_complete(dataset, judgments)
    ground = replace(ground, is_complete=complete, is_named=bool(names), reading=reading)
    settled_here = {key: of for key, of in settled.items() if key in ground.qrels}
    ground = _on_one_judge(ground, pair_judges(settled_here), [run.ranked for run in retrieved])
    runs = _measured_all(retrieved if names else _filled(retrieved, options, ground), ground)
    texts = {query_id: query.query for query_id, query in queries.items()}
    return _decided(ground, runs, options, texts, _of_judgments(judgments, settled))


def compare_gathered(
    where: Path,
    found: EvaluationData,
    settings: EvaluateSettings,
    options: ComparisonOptions = AS_USUAL,
) -> ComparisonReport:
    """Compare the runs of a dataset that is read already; else as `compare_runs`."""
    check_names([run.name for run in found.runs], options.baseline, "run")
    settings = settings.model_copy(update={"rel_threshold": found.task.rel_threshold})
    ground = _by_lists(_field(where, found.task.qrels, settings, options), found.task.relevant)
    ground = replace(ground, is_complete=found.task.is_complete)
    parts = {run.name: run.task.chosen if run.task else None for run in found.runs}
    wanted = _of_one_part(parts, options, ground)
    ground = ground.on_part(shared(parts[name] for name in wanted))
    answerable = {key: of for key, of in found.settled.items() if key in ground.qrels}
    retrieved = [
        _Retrieved(run.name, run.ranked, ground.qrels.keys() & run.summary.attention.failed)
        for run in found.runs
        if run.name in wanted
    ]
    ground = _on_one_judge(ground, pair_judges(answerable), [run.ranked for run in retrieved])
    runs = _measured_all(_filled(retrieved, options, ground), ground)
    texts = {query_id: query.query for query_id, query in found.queries.items()}
    measured_on = [item for item in found.judgments if item.query_id in found.task.qrels]
    return _decided(ground, runs, options, texts, _of_judgments(measured_on, found.settled))


def compare_files(
    qrels_path: Path,
    run_paths: Sequence[Path],
    settings: EvaluateSettings,
    options: ComparisonOptions = AS_USUAL,
) -> ComparisonReport:
    """Compare run files on a file of judgments; arguments and errors as for `compare_runs`.

    A run goes by the name of its file, or by as much of its path as tells it apart.
    """
    names = names_apart(run_paths)
    check_names(names, options.baseline, "run")
    refuse_files_of_other_chunks(qrels_path, run_paths)
    if not options.only_retrieved:
        refuse_files_of_a_part(qrels_path, run_paths)
    judged = read_judged_qrels(qrels_path)
    labels = judged.in_force(settings.rel_threshold)
    settings = settings.model_copy(update={"rel_threshold": labels.rel_threshold})
    qrels = labels.grades
    # Judges of a dataset grade from 0 to 3; a file of zeros and ones knows nothing above.
    is_binary = all((grade or 0) <= 1 for of in qrels.values() for grade in of.values())
    ground = replace(_field(qrels_path, qrels, settings, options, is_binary), is_named=True)
    ground = _by_lists(ground, labels.relevant)
    said = reading_of_file(qrels_path, judged)
    words = [labels.reading, LABELS_IN_WORDS[said] if said else ""]
    reading = "; ".join(filter(None, words))
    ground = replace(ground, is_complete=said == "complete", reading=reading)
    held, asked = {}, {}
    for name, path in zip(names, run_paths, strict=True):
        rankings = read_run(path).rankings
        held[name] = {item: _ordered(rankings[item]) for item in rankings if item in qrels}
        asked[name] = frozenset(rankings)
    by = pair_judges(settle(judgments_in(qrels_path)))
    ground = _on_one_judge(ground, by, list(held.values()))
    runs = [_measured(name, held[name], asked[name], set(), ground) for name in names]
    graded = _Graded((), count_file_grades(judged), judged.origins)
    return _decided(ground, runs, options, {}, graded)


def _of_one_part(
    parts: Mapping[str, Chosen | None], options: ComparisonOptions, ground: _Field
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
    ground.warnings.extend(
        f"{name}: the run is of {part.selection.in_words} and is left out; name it to compare on "
        "the queries in common"
        for name, part in parts.items()
        if name not in kept and part is not None
    )
    return kept


def _of_judgments(judgments: Iterable[Judgment], settled: Settled) -> "_Graded":
    made = judges(judgments, {})
    graded_by = grades_of(made)
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
    retrieved: Sequence[_Retrieved], options: ComparisonOptions, ground: _Field
) -> Sequence[_Retrieved]:
    """Leave out runs without any of the queries, not even a failure, where enough others stay."""
    asked = ground.qrels.keys()
    filled = [run for run in retrieved if run.failed or not asked.isdisjoint(run.ranked)]
    names = [run.name for run in filled]
    if len(filled) < 2 or options.baseline not in (None, *names):
        return retrieved
    ground.warnings.extend(
        f"{run.name}: the run has none of the queries, and is left out"
        for run in retrieved
        if run.name not in names
    )
    return filled


def _measured_all(retrieved: Iterable[_Retrieved], ground: _Field) -> list[RankedRun]:
    return [
        _measured(run.name, run.ranked, run.ranked.keys(), run.failed, ground) for run in retrieved
    ]


def _ordered(ranking: Ranked) -> Sequence[str]:
    """Return chunk ids as they are ranked: by score, equal ones by id, both descending."""
    if not isinstance(ranking, Mapping):
        return ranking
    if falls(ranking.values()):
        return list(ranking)
    return sorted(ranking, key=lambda chunk_id: (ranking[chunk_id], chunk_id), reverse=True)


def _field(
    where: Path,
    qrels: Qrels,
    settings: EvaluateSettings,
    options: ComparisonOptions,
    is_binary: bool = False,
    warnings: Iterable[str] = (),
) -> _Field:
    asked = [parse_measure(name) for name in settings.measures or COMPARED_MEASURES]
    names = tuple(dict.fromkeys(str(item) for item in asked if item.name not in TELL_NOTHING))
    left = tuple(dict.fromkeys(str(item) for item in asked if item.name in TELL_NOTHING))
    told = f"{', '.join(left)}: no run is the better for it"
    if not names:
        raise UsageError(f"measures: {told}; compare by another measure, such as nDCG@10")
    every = [*warnings, *([f"left out of the comparison: {told}"] if left else [])]
    return _Field(where, qrels, names, settings, options.only_retrieved, is_binary, every)


def _by_lists(ground: _Field, relevant: Listed | None) -> _Field:
    """Return the field with the lists that decide binary measures, and say so, if there are any."""
    if not relevant:
        return ground
    threshold = threshold_of(highest_grade(ground.qrels), ground.settings.rel_threshold)
    told = lists_in_words(relevant, ground.qrels, threshold)
    return replace(ground, relevant=relevant, warnings=[*ground.warnings, told])


def _on_one_judge(
    ground: _Field, by: PairJudges, rankings: Sequence[Mapping[str, Sequence[str]]]
) -> _Field:
    """Return the field with the grades of one judge in each query, as far as they reach."""
    if not by.mixed:
        return ground
    qrels, left = grades_for(ground.qrels, by, rankings, ground.measures)
    n_out = sum(map(len, ground.qrels.values())) - sum(map(len, qrels.values()))
    warnings = list(ground.warnings)
    if n_out:
        warnings.append(
            f"left out: {plural(n_out, 'grade')} by other judges, of chunks that no run holds as "
            "far up as the measures look"
        )
    settings = ground.settings
    if settings.rel_threshold == "auto":
        # As the set has it: what is left out may hold the only grades beyond 1.
        grades = (grade or 0 for of in ground.qrels.values() for grade in of.values())
        settings = settings.model_copy(update={"rel_threshold": 2 if max(grades) > 1 else 1})
    return replace(
        ground,
        qrels=qrels,
        relevant=_without(ground, qrels),
        pair_judges=left,
        settings=settings,
        warnings=warnings,
    )


def _without(ground: _Field, qrels: Qrels) -> Listed | None:
    """Return the lists without chunks that are relevant by grades that are left out."""
    if ground.relevant is None:
        return None
    return {
        query_id: [
            chunk_id
            for chunk_id in listed
            if chunk_id in qrels.get(query_id, {}) or chunk_id not in ground.qrels.get(query_id, {})
        ]
        for query_id, listed in ground.relevant.items()
    }


def _measured(
    name: str,
    ranked: Mapping[str, Sequence[str]],
    asked: Collection[str],
    failed: set[str],
    ground: _Field,
) -> RankedRun:
    """Measure a run, having made sure that it is of these judgments.

    Args:
        name: Of the run.
        ranked: Its rankings.
        asked: Every query that it holds.
        failed: Queries of the judgments whose retrieval failed.
        ground: The judgments and measures.
    """
    _check_judged(name, asked, failed, ground)
    qrels = ground.qrels
    known = {item: ranked[item] for item in ranked if item in qrels}
    scores = evaluate(
        qrels,
        known,
        ground.measures,
        rel_threshold=ground.settings.rel_threshold,
        failed=failed,
        only_retrieved=ground.only_retrieved,
        relevant=ground.relevant,
    )
    values = {
        measure: dict(zip(scores.query_ids, scores.values(measure), strict=True))
        for measure in ground.measures
    }
    return RankedRun(name, known, frozenset(failed), scores, values)


def _check_judged(name: str, asked: Collection[str], failed: set[str], ground: _Field) -> None:
    """Refuse a run of other queries, and judgments without any grade.

    Raises:
        DataError: None of its queries is judged.
    """
    judged = {query_id for query_id, grades in ground.qrels.items() if grades}
    if not judged:
        raise DataError(f"{ground.where}: nothing to compare on: no answerable query is judged")
    if not asked and not failed:
        raise DataError(
            f"run {name}: is empty; a run that found nothing holds its queries all the same"
        )
    if judged.isdisjoint(asked) and judged.isdisjoint(failed):
        raise DataError(
            f"run {name}: none of its queries is judged: it holds {_examples(asked)}; "
            f"{ground.where} holds {_examples(judged)}; are they of the same dataset?"
        )


def _decided(
    ground: _Field,
    runs: Sequence[RankedRun],
    options: ComparisonOptions,
    texts: Mapping[str, str],
    graded: _Graded,
) -> ComparisonReport:
    _check_shared(runs)
    compared = couples([run.name for run in runs], options.baseline)
    doubts = _doubts(ground, runs, compared)
    why = reasons(ground.qrels, graded.origins, runs, compared, ground.measures)
    # What one judge did not grade comes first: its reason names the command that settles it.
    apart: dict[Key, str] = {}
    for qrels, names, threshold in _grounds(ground, runs):
        apart |= withheld(ground.where, qrels, ground.pair_judges, runs, compared, names, threshold)
    why |= {key: "; ".join(filter(None, (of, why.get(key)))) for key, of in apart.items()}
    contenders = [Contender(run.name, run.values, run.scores.first_relevant_rank) for run in runs]
    contest = Contest(
        of="runs",
        contenders=contenders,
        measures=ground.measures,
        doubts={key: replace(item, withheld=why.get(key, "")) for key, item in doubts.items()},
        texts=texts,
        rel_threshold=runs[0].scores.rel_threshold,
        by_lists=bool(ground.relevant),
        reading=ground.reading,
        judged_by=graded.judged_by,
        graded_by=graded.graded_by,
        # What a sample ranks alike may differ in what was not drawn.
        alike=frozenset() if ground.design else frozenset(_alike(runs, compared)),
        warnings=(*ground.warnings, *_warnings(runs, ground)),
        is_named=ground.is_named,
        part=ground.part,
    )
    return decide(contest, options)


def _alike(
    runs: Sequence[RankedRun], compared: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the couples that rank alike in all queries; what failed has no ranking."""
    by_name = {run.name: run for run in runs}
    for a, b in compared:
        has_failed = by_name[a].failed or by_name[b].failed
        if not has_failed and have_same_rankings(by_name[a].ranked, by_name[b].ranked):
            yield a, b


def _doubts(
    ground: _Field, runs: Sequence[RankedRun], pairs: Sequence[tuple[str, str]]
) -> dict[Key, Doubt]:
    """Return what is open about each measure of each couple of runs."""
    by_key: dict[Key, Doubt] = {}
    for qrels, names, threshold in _grounds(ground, runs):
        is_of_list = ground.relevant is not None and is_by_list(parse_measure(names[0]))
        by_key |= doubts(
            qrels,
            runs,
            pairs,
            names,
            only_retrieved=ground.only_retrieved,
            is_binary=ground.is_binary or is_of_list,
            rel_threshold=threshold,
            is_complete=ground.is_complete,
            design=ground.design,
        )
    return by_key


def _grounds(ground: _Field, runs: Sequence[RankedRun]) -> tuple[Ground, ...]:
    """Return the labels that measures are computed on."""
    return grounds(ground.qrels, ground.relevant, ground.measures, runs[0].scores.rel_threshold)


def _check_shared(runs: Sequence[RankedRun]) -> None:
    """Refuse runs that have no query in common.

    Raises:
        DataError: Two have none.
    """
    for a, b in combinations(runs, 2):
        of_a, of_b = a.ranked.keys() | a.failed, b.ranked.keys() | b.failed
        if of_a.isdisjoint(of_b):
            raise DataError(
                f"runs {a.name} and {b.name} share no query: one holds {_examples(of_a)}, the "
                f"other {_examples(of_b)}; a comparison needs runs of the same queries"
            )


def _warnings(runs: Sequence[RankedRun], ground: _Field) -> list[str]:
    n_judged = sum(map(bool, ground.qrels.values()))
    outcome = "they are left out" if ground.only_retrieved else "they count 0"
    highest = max(
        (grade or 0 for judged in ground.qrels.values() for grade in judged.values()), default=0
    )
    names = by_grades(ground.measures, has_lists=ground.relevant is not None)
    unreached = out_of_reach(names, runs[0].scores.rel_threshold, highest)
    warnings = [f"no grade reaches the threshold: {unreached}"] if unreached else []
    for run in runs:
        warnings += [f"{run.name}: {warning}" for warning in run.scores.warnings]
        missing = len(run.scores.missing_from_run)
        if missing:
            warnings.append(f"{run.name}: lacks {missing} of {n_judged} judged queries: {outcome}")
    return warnings


def _examples(ids: Iterable[str]) -> str:
    ordered = sorted(ids)
    shown = ", ".join(repr(item) for item in ordered[:_EXAMPLES])
    return f"{shown}, …" if len(ordered) > _EXAMPLES else shown
