"""What a gate decides on, by measure: the values of a run, or of the answers of a system."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import fsum
from pathlib import Path
from typing import Final, Literal

from ragforge import __version__
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError, did_you_mean
from ragforge.evaluating.answers.rates import RATES
from ragforge.evaluating.answers.records import SystemRecords, read_systems
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import judge_name
from ragforge.evaluating.judgments import Judge, judges
from ragforge.evaluating.same_judge import grades_of_one_judge, lists_without, whose_grades_text
from ragforge.files.git import read_from_branch
from ragforge.files.manifest import digest_file
from ragforge.files.set.baseline import parse_baseline, read_baseline
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.query_selection import Chosen
from ragforge.measures import Scores, evaluate
from ragforge.measures.intervals import Ends
from ragforge.measures.measure_names import by_judgments, is_of_evidence
from ragforge.measures.rates import LEAST_VALUES
from ragforge.measures.strata import Design
from ragforge.measures.stratified import sample_interval
from ragforge.measures.unseen_values import ends_by_measure
from ragforge.pipeline.comparing.answers import ANSWER_MEASURES, LOWER_IS_BETTER
from ragforge.pipeline.evaluated import (
    EvaluatedRun,
    evaluated_on,
    grader_of,
    grades_digest,
    item_digests,
    json_sha256,
    with_content_id,
)
from ragforge.pipeline.history import last_alike, last_other
from ragforge.records import (
    Baseline,
    Digests,
    Evaluation,
    ItemValues,
    MeasuredMean,
    Query,
    Spending,
)

FILE_NAME: Final = "baseline.json"

ANSWERS: Final = "answers/"
"""What stands before the name of a system where a run's name is expected; no run's name has it."""
_ANY: Final = Ends(0.0, 1.0)


def find_baseline(
    dataset: Dataset, run: EvaluatedRun | None, named: str, file: Path | None = None
) -> Baseline:
    """Return the baseline of a name.

    Args:
        dataset: Has the history.
        run: What is held against it; None for answers, which the history does not hold.
        named: `last` for the newest other evaluation of the history (where all are like now, the
            newest), `main` for the file as it is on the main branch, or the path of a file.
        file: The file that `main` means; that of the dataset's directory where None.

    Raises:
        DataError: There is none, or it cannot be read.
        UsageError: It is the last one of answers.
    """
    if named == "main":
        found = read_from_branch(file or dataset.home / FILE_NAME)
        return parse_baseline(found.text, found.where)
    if named != "last":
        return read_baseline(Path(named))
    if run is None:
        raise UsageError("--baseline last: the history holds runs only; name a file, or main")
    last = last_other(dataset, run) or last_alike(dataset, run)
    if last is None:
        raise DataError(
            f"{dataset.path}: the history has no earlier evaluation of {run.evaluation.run!r} to "
            "be the baseline; evaluate it once with `ragforge evaluate`, or name a file"
        )
    return last


@dataclass(frozen=True, slots=True)
class Valued:
    """One measure of a subject."""

    values: Mapping[str, float]
    """By query id."""
    possible: Mapping[str, Ends]
    """What the queries with a failure could have come to, those without a value too."""
    mean: Callable[[Mapping[str, float]], float | None]
    """Gives the mean of values by query."""
    ends: Callable[[Mapping[str, float]], Ends | None]
    """Gives its 95 % interval."""
    design: Design | None = None
    """What the queries are a sample of: then both are of that; None where they are all."""
    judges: tuple[Judge, ...] | None = None
    """Who made the grades that the values rest on; None where they are those of the subject."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a gate decides on."""

    of: Literal["runs", "answers"]
    baseline: Baseline
    """Its evaluation with its values per item."""
    valued: Mapping[str, Valued]
    """By measure."""
    warnings: tuple[str, ...]
    judges: tuple[Judge, ...]
    """Who made the grades it rests on."""
    run: EvaluatedRun | None = None
    """None for answers."""
    chosen: Chosen | None = None
    """The part of the queries it is measured on; None where that is all."""
    design: Design | None = None
    """What its queries are a sample of; None where they are all there is."""
    whose_grades: str = ""
    """What to know of its means where several judges graded."""

    @property
    def evaluation(self) -> Evaluation:
        """The record of it."""
        return self.baseline.evaluation


def run_subject(run: EvaluatedRun) -> Subject:
    """Return a run by all of its measures, on the grades of one judge in each query."""
    of_judgments, whose_grades = _on_one_judge(run)
    valued = {}
    for name in run.evaluation.measures:
        scores = run.scores if is_of_evidence(name) else of_judgments
        possible = {key: Ends(low, high) for key, (low, high) in scores.possible(name).items()}
        valued[name] = _of_design(scores.by_query(name), possible, scores.design_of(name), name)
    scores = run.scores
    return Subject(
        "runs",
        run.baseline,
        valued,
        (*scores.warnings, *_lacked(run)),
        run.judges,
        run,
        chosen=run.chosen,
        design=scores.design,
        whose_grades=whose_grades,
    )


def _lacked(run: EvaluatedRun) -> Iterator[str]:
    """Yield how many queries the run lacks, if any."""
    missing, n = len(run.scores.missing_from_run), run.evaluation.n_queries
    if missing and not run.evaluation.only_retrieved:
        yield f"the run lacks {missing:,} of {plural(n, 'query', 'queries')}, which count 0"


def _on_one_judge(run: EvaluatedRun) -> tuple[Scores, str]:
    """Return the scores of a run by its judgments, and whose grades they are.

    What another judge graded of other runs would only move what values are divided by: a run must
    not fail its gate because a second one was judged. Comparisons leave it out likewise.
    """
    by, measures = run.pair_judges, by_judgments(run.evaluation.measures)
    if not by.mixed or not measures:
        return run.scores, ""
    ranked = run.measured.ranked
    qrels, left = grades_of_one_judge(run.qrels, by, [ranked], measures)
    scores = evaluate(
        qrels,
        ranked,
        measures,
        rel_threshold=run.evaluation.rel_threshold,
        failed=run.measured.summary.attention.failed,
        only_retrieved=run.evaluation.only_retrieved,
        relevant=lists_without(run.relevant, run.qrels, qrels) or None,
    )
    design = run.scores.design
    told = whose_grades_text(run.qrels, qrels, by, left)
    return (scores if design is None else scores.of_sample(design)), told


def answers_subject(dataset: Dataset, system: str) -> Subject:
    """Return the graded answers of a system by all measures of answers.

    Raises:
        DataError: There is no such system, or none of its answers is graded.
    """
    queries = {query.query_id: query for query in dataset.require_accepted_queries()}
    found = {item.system: item for item in read_systems(dataset, dataset.failures(), queries)}
    if system not in found:
        near, there = did_you_mean(system, found), ", ".join(found) or "none"
        raise DataError(
            f"{dataset.path}: no answers of system {system!r}{near}; there are: {there}"
        )
    records = found[system]
    if not records.graded:
        why = records.outdated_text or (
            f"no answer of system {system!r} is graded; grade them with `ragforge answer`"
        )
        raise DataError(f"{dataset.path}: {why}")
    valued = {name: _valued(records, name) for name in ANSWER_MEASURES}
    graded_by = judges((), {system: records.grades.values()})
    baseline = _baseline(dataset, queries, records, valued, graded_by)
    return Subject(
        "answers",
        baseline,
        valued,
        tuple(_warnings(records)),
        graded_by,
        chosen=records.chosen,
        design=records.design,
        whose_grades=_mixed_judges(graded_by),
    )


def answer_measure(text: str, flag: str) -> str:
    """Return the name of a measure of answers, as it is written in a threshold.

    Raises:
        UsageError: There is none of the name, or less of it is better and the flag is not --max.
    """
    name = text.strip().lower().replace(" ", "_")
    if name not in ANSWER_MEASURES:
        there = ", ".join(ANSWER_MEASURES)
        raise UsageError(f"{flag}: {text.strip()!r} is no measure of answers; there are: {there}")
    if (name in LOWER_IS_BETTER) != (flag == "--max"):
        side, other = ("less", "--max") if name in LOWER_IS_BETTER else ("more", "--min")
        raise UsageError(f"{flag} {name}: {side} of it is better, so that it goes with {other}")
    return name


def _of_design(
    values: Mapping[str, float],
    possible: Mapping[str, Ends],
    design: Design | None,
    measure: str,
) -> Valued:
    mean, ends = partial(_mean, design), partial(_mean_ends, measure, design)
    return Valued(values, possible, mean, ends, design)


def _mean(design: Design | None, values: Mapping[str, float]) -> float | None:
    if design is not None:
        return design.mean(values)
    return fsum(values.values()) / len(values) if values else None


def _mean_ends(measure: str, design: Design | None, values: Mapping[str, float]) -> Ends | None:
    listed = list(values.values())
    if design is None:
        return ends_by_measure(measure, listed)
    found = sample_interval(measure, listed, design.stratified(values))
    return None if found.low is None or found.high is None else Ends(found.low, found.high)


def _rate_ends(measure: str, design: Design | None, values: Mapping[str, float]) -> Ends | None:
    return None if len(values) < LEAST_VALUES else _mean_ends(measure, design, values)


def _valued(records: SystemRecords, name: str) -> Valued:
    values = ANSWER_MEASURES[name](records)
    # A query without an answer too: nobody knows what the answer would have claimed.
    lacking = sorted(_asked(records) - values.keys())
    design = records.design
    possible = dict.fromkeys(lacking, _ANY)
    mean, ends = partial(_mean, design), partial(_rate_ends, name, design)
    graded_by = judges((), {records.system: [records.grades[key] for key in values]})
    return Valued(values, possible, mean, ends, design, graded_by)


def _mixed_judges(graded_by: Sequence[Judge]) -> str:
    """Say that several judges graded the answers of one system; "" where it was one.

    People and rules judge beside any.
    """
    mixed = [of for of in graded_by if of.kind not in ("human", "rule") and of.count > of.n_failed]
    if len(mixed) < 2:
        return ""
    counts = ", ".join(f"{judge_name(of)} {of.count - of.n_failed:,}" for of in mixed)
    return f"several judges graded these answers ({counts}), and means mix them; let one grade all"


def _asked(records: SystemRecords) -> frozenset[str]:
    """Return the queries that a system is to answer, whether it did or not."""
    return records.gradable | records.grades.keys() | records.failed


def _baseline(
    dataset: Dataset,
    queries: Mapping[str, Query],
    records: SystemRecords,
    valued: Mapping[str, Valued],
    graded_by: Sequence[Judge],
) -> Baseline:
    asked = _asked(records)
    measured = [queries[query_id] for query_id in sorted(asked & queries.keys())]
    manifest = dataset.manifest
    evaluation = Evaluation(
        evaluation_id="-",
        at="",
        dataset=manifest.name,
        version=manifest.version,
        run=f"{ANSWERS}{records.system}",
        rel_threshold=1,
        selection=evaluated_on(records.chosen),
        n_queries=len(asked),
        n_failed=len(asked) - len(records.graded),
        n_retrieved=0,
        n_holes=0,
        measures={
            name: _measured_mean(records, name) for name, found in valued.items() if found.values
        },
        graders=tuple(map(grader_of, graded_by)),
        digests=_digests(dataset, measured, records, graded_by),
        spent=Spending(**manifest.spent.model_dump()),
        timing=None,
        tool_version=__version__,
    )
    return Baseline(evaluation=with_content_id(evaluation), items=tuple(_items(measured, valued)))


def _items(queries: Sequence[Query], valued: Mapping[str, Valued]) -> Iterator[ItemValues]:
    for query_id, digest in item_digests(queries).items():
        values = {
            name: found.values[query_id]
            for name, found in valued.items()
            if query_id in found.values
        }
        if values:
            yield ItemValues(
                query_id=query_id,
                item=digest,
                grades=grades_digest({}),
                values=values,
                ranking=(),
                n_retrieved=0,
            )


def _measured_mean(records: SystemRecords, name: str) -> MeasuredMean:
    """Return a mean with what failures could do to it; queries never asked are none of these."""
    rate = RATES[name](records)
    values = ANSWER_MEASURES[name](records)
    lacking = records.without_grade
    least = _mean(records.design, {**values, **dict.fromkeys(lacking, 0.0)})
    most = _mean(records.design, {**values, **dict.fromkeys(lacking, 1.0)})
    return MeasuredMean(
        mean=rate.mean,
        low=rate.interval.low if rate.interval else None,
        high=rate.interval.high if rate.interval else None,
        n=rate.n,
        n_failed=rate.n_failed,
        least=least,
        most=most,
    )


def _digests(
    dataset: Dataset,
    queries: Sequence[Query],
    records: SystemRecords,
    graded_by: Sequence[Judge],
) -> Digests:
    chunks = dataset.chunks_path
    asked = [[query.query_id, query.asked, query.expected_answer] for query in queries]
    grades = [[key, grade.verdict, grade.score] for key, grade in sorted(records.grades.items())]
    answers = [[key, answer.answer] for key, answer in sorted(records.answers.items())]
    return Digests(
        corpus=digest_file(chunks) if chunks.exists() else "",
        queries=json_sha256(asked),
        judgments=json_sha256(grades),
        rankings=json_sha256(answers),
        prompts=json_sha256(sorted([judge.prompt, judge.prompt_sha256] for judge in graded_by)),
    )


def _warnings(records: SystemRecords) -> list[str]:
    counts = {
        "answers not graded yet": records.ungraded & _asked(records),
        "queries without an answer": records.unanswered,
        "answers or grades that failed": records.without_grade,
    }
    warnings = [
        f"{what}: {len(query_ids):,}; counted as failed, and at their worst"
        for what, query_ids in counts.items()
        if query_ids
    ]
    warnings += filter(None, [records.outdated_text])
    n_unchecked = sum(grade.has_hallucination is None for grade in records.graded)
    if 0 < n_unchecked < len(records.graded):
        warnings.append(
            f"answers not checked for hallucination: {n_unchecked:,}; at worst all have it"
        )
    return warnings
