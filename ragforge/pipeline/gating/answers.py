"""The answers of a system as what a gate decides on, by measures of answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final

from ragforge import __version__
from ragforge.errors import DataError, UsageError, did_you_mean
from ragforge.evaluating.answers.rates import RATES
from ragforge.evaluating.answers.records import (
    LOWER_IS_BETTER,
    SystemRecords,
    read_systems,
    system_names,
)
from ragforge.evaluating.formatting import one_line
from ragforge.evaluating.graded_by import judge_name
from ragforge.evaluating.judgments import Judge, judges
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import require_own_chunks
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES
from ragforge.measures.strata import Design, mean_over_queries
from ragforge.pipeline.comparing.answers import ANSWER_MEASURES
from ragforge.pipeline.evaluated import (
    evaluated_on,
    grader_of,
    grades_digest,
    item_digests,
    json_sha256,
    with_content_id,
)
from ragforge.pipeline.gating.subjects import ANSWERS, Subject, Valued, mean_ends
from ragforge.records import (
    Baseline,
    Digests,
    Evaluation,
    Grader,
    ItemValues,
    MeasuredMean,
    Query,
    Spending,
)

_ANY: Final = Ends(0.0, 1.0)


def answers_subject(dataset: Dataset, system: str) -> Subject:
    """Return the graded answers of a system by all measures of answers.

    Raises:
        DataError: There is no such system, or none of its answers is graded; or somebody changed
            the chunks.
    """
    require_own_chunks(dataset)
    queries = {query.query_id: query for query in dataset.require_accepted_queries()}
    failures = dataset.failures()
    names = system_names(dataset, failures, queries)
    if system not in names:
        near, there = did_you_mean(system, names), ", ".join(names) or "none"
        raise DataError(
            f"{dataset.path}: no answers of system {system!r}{near}; there are: {there}"
        )
    [records] = read_systems(dataset, failures, queries, [system])
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
        whose_grades=_mixed_judges(records),
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


def _valued(records: SystemRecords, name: str) -> Valued:
    values = ANSWER_MEASURES[name](records)
    # A query without an answer too: nobody knows what the answer would have claimed.
    lacking = sorted(_asked(records) - values.keys())
    design = records.design
    possible = dict.fromkeys(lacking, _ANY)
    mean, ends = partial(mean_over_queries, design), partial(_rate_ends, name, design)
    graded_by = judges((), {records.system: [records.grades[key] for key in values]})
    return Valued(values, possible, mean, ends, design, graded_by)


def _rate_ends(measure: str, design: Design | None, values: Mapping[str, float]) -> Ends | None:
    return None if len(values) < LEAST_VALUES else mean_ends(measure, design, values)


def _mixed_judges(records: SystemRecords) -> str:
    """Return a note that several judges graded the answers of one system; "" where it was one.

    People and rules judge beside any, and one judge may grade answers to questions that have none
    by another prompt.
    """
    by_kind = [_models(records, answerable=kind) for kind in (True, False)]
    mixed = list(chain(*by_kind))
    who = {(of.kind, of.model, of.since) for of in mixed}
    if len(who) < 2 and all(len(judges) < 2 for judges in by_kind):
        return ""
    counts: Counter[str] = Counter()
    for of in mixed:
        prompt = f" with {one_line(of.prompt)} {of.prompt_sha256[:8]}" if len(who) < 2 else ""
        counts[f"{judge_name(of)}{prompt}"] += of.count
    named = ", ".join(f"{name} {n:,}" for name, n in counts.items())
    return f"several judges graded these answers ({named}), and means mix them; let one grade all"


def _models(records: SystemRecords, *, answerable: bool) -> list[Judge]:
    return [
        of for of in _graded_by(records, answerable=answerable) if of.kind not in ("human", "rule")
    ]


def _graded_by(records: SystemRecords, *, answerable: bool) -> tuple[Judge, ...]:
    """Return who graded answers to questions that have an answer, or to those that have none."""
    grades = [
        grade
        for grade in records.graded
        if records.queries[grade.query_id].answerable is answerable
    ]
    return judges((), {records.system: grades})


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
        graders=_graders(records, graded_by),
        digests=_digests(dataset, measured, records, graded_by),
        spent=Spending(**manifest.spent.model_dump()),
        timing=None,
        tool_version=__version__,
    )
    return Baseline(evaluation=with_content_id(evaluation), items=tuple(_items(measured, valued)))


def _graders(records: SystemRecords, graded_by: Iterable[Judge]) -> tuple[Grader, ...]:
    unanswerable = {_key(of): of.count for of in _graded_by(records, answerable=False)}
    return tuple(
        grader_of(of).model_copy(update={"n_unanswerable": unanswerable.get(_key(of), 0)})
        for of in graded_by
    )


def _key(judge: Judge) -> tuple[str, ...]:
    return judge.kind, judge.model, judge.prompt, judge.prompt_sha256, judge.since


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
    least = mean_over_queries(records.design, {**values, **dict.fromkeys(lacking, 0.0)})
    most = mean_over_queries(records.design, {**values, **dict.fromkeys(lacking, 1.0)})
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
    grades = [
        [key, of.verdict, of.score, of.strict_score, of.has_hallucination]
        for key, of in sorted(records.grades.items())
    ]
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
