"""Comparing answer systems: whose answers are better, by the grades they were given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError, did_you_mean
from ragforge.evaluating.answers.records import (
    LOWER_IS_BETTER,
    SystemRecords,
    read_systems,
    system_names,
)
from ragforge.evaluating.comparison import ComparisonReport
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import count_silent, grades_of, judge_name, why_unknown
from ragforge.evaluating.judgments import judges
from ragforge.evaluating.query_variants import query_variants, variants_note
from ragforge.evaluating.selection import Part
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import require_own_chunks
from ragforge.files.set.paths import VERSIONS, home_of, version_name, versions_of
from ragforge.files.set.query_selection import ChosenQueries, shared
from ragforge.measures.comparing import couples
from ragforge.measures.missing_values import mean_difference_bounds
from ragforge.measures.strata import Design
from ragforge.pipeline.comparing.deciding import (
    AS_USUAL,
    ComparisonOptions,
    Contender,
    Contest,
    Undecided,
    check_names,
    decide,
)
from ragforge.pipeline.comparing.undecided import better_mean
from ragforge.records import AnswerGrade, Query
from ragforge.records.judgments import origin_of

_AT_ONCE: Final = "grade_answer"
"""What a judge asks with --single-call."""
Values: TypeAlias = Mapping[str, float]
"""By query id."""


def compare_answers(
    dataset: Dataset,
    names: Sequence[str],
    settings: EvaluateSettings,
    options: ComparisonOptions = AS_USUAL,
) -> ComparisonReport:
    """Compare answer systems of a dataset over the queries in which both have a grade.

    Args:
        dataset: Has queries and answer grades.
        names: Which systems; all where empty.
        settings: Names measures of `ANSWER_MEASURES`; where it names none, score (if any answer has
            one) and correct are compared, the strict score where facts were graded, and
            hallucination where it was checked in all systems.
        options: How to compare.

    Raises:
        DataError: There is no such system, one has no grades, or two share no query; or somebody
            changed the chunks.
        UsageError: There are fewer than two systems, or a measure or an option cannot be taken.
    """
    require_own_chunks(dataset)
    queries = {query.query_id: query for query in dataset.require_accepted_queries()}
    failures = dataset.failures()
    there = system_names(dataset, failures, queries)
    wanted = list(names) or there
    _check_systems(dataset, wanted, there, options.baseline)
    records = {item.system: item for item in read_systems(dataset, failures, queries, wanted)}
    systems = [_graded(records[name], dataset) for name in wanted]
    chosen = shared({item.system: item.chosen for item in systems})
    if chosen is not None:
        systems = [item.only(chosen.query_ids) for item in systems]
    records = {item.system: item for item in systems}
    part = _part(chosen, systems, queries)
    measures = _measures(settings, systems)
    contenders = [
        Contender(item.system, {name: ANSWER_MEASURES[name](item) for name in measures})
        for item in systems
    ]
    _check_shared(contenders)
    graded = judges((), {item.system: item.grades.values() for item in systems})
    compared = couples(wanted, options.baseline)
    variants = query_variants(dataset, queries.values())
    varied = [note] if (note := variants_note(variants, len(queries))) else []
    contest = Contest(
        of="answers",
        contenders=contenders,
        measures=measures,
        undecided=_undecided(dataset, records, compared, measures, part.design if part else None),
        texts={query_id: query.query for query_id, query in queries.items()},
        lower_is_better=LOWER_IS_BETTER,
        judged_by=tuple(dict.fromkeys(judge_name(judge) for judge in graded)),
        graded_by=grades_of(graded),
        warnings=(*varied, *_warnings(systems)),
        is_named=bool(names),
        part=part,
        variants=variants,
    )
    return decide(contest, options)


def _check_systems(
    dataset: Dataset, wanted: Sequence[str], there: Sequence[str], baseline: str | None
) -> None:
    """Refuse systems that are too few, or have no answers.

    Raises:
        DataError: One of them has none.
        UsageError: There are fewer than two, or one comes twice.
    """
    hint = f"; {dataset.path} has answers of {', '.join(there) or 'no system'}"
    left = "" if len(there) > 1 else _left_behind(dataset)
    check_names(wanted, baseline, "system", f"{hint}{left}")
    for name in wanted:
        if name not in there:
            near, known = did_you_mean(name, there), ", ".join(there) or "none"
            raise DataError(
                f"{dataset.path}: no answers of system {name!r}{near}; there are: {known}"
            )


def _left_behind(dataset: Dataset) -> str:
    """Return which version before has answers, that a refresh left there; "" where none has."""
    home = home_of(dataset.path)
    for number in reversed(versions_of(home)):
        before = Dataset(home / VERSIONS / version_name(number))
        if number < dataset.manifest.version and (names := before.answer_names()):
            return (
                f", and version {number} those of {', '.join(names)}, which a refresh left there: "
                "`ragforge answer` grades answers for this one"
            )
    return ""


def _part(
    chosen: ChosenQueries | None, systems: Sequence[SystemRecords], queries: Mapping[str, Query]
) -> Part | None:
    """Return the part of the queries that all systems are compared on; None where that is all.

    Args:
        chosen: Those that they have in common.
        systems: Restricted to these.
        queries: All accepted ones.
    """
    if chosen is None:
        return None
    graded = {grade.query_id for item in systems for grade in item.graded}
    gradable = {key for key, of in queries.items() if of.expected_answer or not of.answerable}
    design = chosen.design.within(gradable | graded) if chosen.design else None
    return Part(chosen, design, frozenset(graded & chosen.query_ids))


def _graded(system: SystemRecords, dataset: Dataset) -> SystemRecords:
    if not system.grades and not system.failed:
        if why := system.outdated_text:
            raise DataError(f"{dataset.path}: {why}")
        raise DataError(
            f"{dataset.path}: no answer of system {system.system!r} is graded; grade them with "
            "`ragforge answer`"
        )
    return system


def _measures(settings: EvaluateSettings, systems: Sequence[SystemRecords]) -> tuple[str, ...]:
    asked = [name.strip().lower().replace(" ", "_") for name in settings.measures]
    pairs = zip(settings.measures, asked, strict=True)
    unknown = next((name for name, folded in pairs if folded not in ANSWER_MEASURES), None)
    if unknown is not None:
        there = ", ".join(ANSWER_MEASURES)
        raise UsageError(f"measure {unknown!r}: no measure of answers; there are: {there}")
    if asked:
        return tuple(dict.fromkeys(asked))
    all_graded = [grade for item in systems for grade in item.graded]
    by_facts = any(grade.strict_score is not None for grade in all_graded)
    checked = all(_hallucinations(item) for item in systems if item.graded)
    # Answers may be graded as right or wrong alone; no grade at all is no score, too.
    has_scores = any(grade.score is not None for grade in all_graded)
    is_marked = any(ANSWER_MEASURES["correct"](item) for item in systems)
    return (
        *(["score"] if has_scores or not is_marked else []),
        *(["strict_score"] if by_facts else []),
        "correct",
        *(["hallucination"] if checked else []),
    )


def _check_shared(contenders: Sequence[Contender]) -> None:
    """Refuse systems of which no query is graded in both.

    Raises:
        DataError: Two share none, although each has grades.
    """
    graded = {
        item.name: {query for values in item.values.values() for query in values}
        for item in contenders
    }
    for a, b in couples(list(graded)):
        if graded[a] and graded[b] and graded[a].isdisjoint(graded[b]):
            raise DataError(
                f"systems {a} and {b} share no graded query; a comparison needs answers to the "
                "same queries"
            )


def _undecided(
    dataset: Dataset,
    systems: Mapping[str, SystemRecords],
    compared: Sequence[tuple[str, str]],
    measures: Sequence[str],
    design: Design | None,
) -> dict[tuple[str, str, str], Undecided]:
    reasons = {(a, b): _two_judges(dataset, systems[a], systems[b]) for a, b in compared}
    found = {
        (a, b, measure): _open_difference(systems[a], systems[b], measure, design)
        for a, b in compared
        for measure in measures
    }
    # What one judge did not grade comes first: its reason names the command that settles it.
    return {
        (a, b, measure): replace(item, withheld=reasons[a, b] or item.withheld)
        for (a, b, measure), item in found.items()
    }


def _two_judges(dataset: Dataset, a: SystemRecords, b: SystemRecords) -> str:
    """Return a sentence on queries whose two answers have different judges; "" where none has."""
    grades = {item.query_id: item for item in a.graded}
    pairs = [(grades[new.query_id], new) for new in b.graded if new.query_id in grades]
    judges = [(_judge_of(old), _judge_of(new)) for old, new in pairs]
    apart = [new for (_, new), pair in zip(pairs, judges, strict=True) if _are_two(*pair)]
    if not apart:
        return ""
    where = f"in {plural(len(apart), 'query', 'queries')}"
    if any(pair[1] and pair[1][0] == "file" for pair in judges):
        return (
            f"{where} the two answers were graded in different files, so that a difference may be "
            "one of the judges; `ragforge answer --answers FILE --graded-by WHO` for both says "
            "that they are of one, `--model NAME` for both grades them by one"
        )
    at_once = all(new.provenance and new.provenance.prompt == _AT_ONCE for new in apart)
    name = f"{a.system} --single-call" if at_once else a.system
    return (
        f"{where} the two answers were graded by different "
        "judges, so that a difference may be one of the judges; `ragforge answer --dataset "
        f"{dataset.path} --answers {dataset.path}/answers/{a.system}.jsonl --name {name}` with "
        f"the model that graded {b.system} grades all of {a.system} anew (--dry-run tells the "
        "price)"
    )


def _are_two(old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> bool:
    return old is not None and new is not None and old != new


def _judge_of(grade: AnswerGrade) -> tuple[str, ...] | None:
    """Return a key of the judge of an answer; None for people and rules, which fit any."""
    by = grade.provenance
    if by is None:
        return ()
    if by.kind in ("human", "rule"):
        return None
    return by.kind, by.model, by.prompt, by.prompt_sha256, by.protocol


def _open_difference(
    a: SystemRecords, b: SystemRecords, measure: str, design: Design | None
) -> Undecided:
    """Bound the difference over queries that one of two could not answer or have graded.

    All measures of answers lie from 0 to 1, so that a missing one does.
    """
    of_a, of_b = ANSWER_MEASURES[measure](a), ANSWER_MEASURES[measure](b)
    asked = a.gradable | a.grades.keys() | a.failed | b.gradable | b.grades.keys() | b.failed
    why = _why_unknown(a, b, measure)
    bounds = mean_difference_bounds(of_a, of_b, asked | (of_a.keys() & of_b.keys()), design)
    if bounds is None:
        return Undecided(withheld=why)
    n_left_out = len(asked - (of_a.keys() & of_b.keys()))
    return Undecided(n_left_out, bounds, n_open=n_left_out, withheld=why)


def _why_unknown(a: SystemRecords, b: SystemRecords, measure: str) -> str:
    """Return the reason to name no winner where shared words graded the answers; "" for none."""
    of_a, of_b = ANSWER_MEASURES[measure](a), ANSWER_MEASURES[measure](b)
    rested_on = [
        origin_of(item.grades[query_id])
        for query_id in sorted(of_a.keys() & of_b.keys())
        for item in (a, b)
    ]
    lower = measure in LOWER_IS_BETTER
    first = better_mean({a.system: of_a, b.system: of_b}, lower_is_better=lower)
    return why_unknown(count_silent(rested_on), first)


def _warnings(systems: Sequence[SystemRecords]) -> list[str]:
    warnings = []
    for item in systems:
        n_open = len(item.ungraded)
        if n_open:
            warnings.append(f"{item.system}: {n_open} answers are not graded yet")
        if item.unanswered:
            warnings.append(f"{item.system}: {len(item.unanswered)} queries have no answer")
        warnings += filter(None, [item.outdated_text])
    return warnings


def _scores(records: SystemRecords) -> Values:
    return _of(records, lambda grade: grade.score)


def _strict_scores(records: SystemRecords) -> Values:
    from ragforge.evaluating.answers.rates import strict_score

    return _of(records, strict_score)


def _correct(records: SystemRecords) -> Values:
    return _of(records, lambda grade: float(grade.verdict == "correct"))


def _hallucinations(records: SystemRecords) -> Values:
    return _of(records, lambda grade: grade.has_hallucination)


def _of(records: SystemRecords, value: Callable[[AnswerGrade], float | None]) -> Values:
    """Return a value for each graded answer that has it."""
    pairs = ((grade.query_id, value(grade)) for grade in records.graded)
    return {query_id: float(found) for query_id, found in sorted(pairs) if found is not None}


ANSWER_MEASURES: Final[dict[str, Callable[[SystemRecords], Values]]] = {
    "score": _scores,
    "strict_score": _strict_scores,
    "correct": _correct,
    "hallucination": _hallucinations,
}
"""Values by query of one system; a query without a grade has none."""
