"""Judges of answers beside people, by labels alone.

People label answers with a verdict or a score, or say which of two answers to a query is better.
Judges give verdicts and scores, to each answer for itself.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from statistics import fmean, median_low
from typing import Final, NamedTuple, TypeVar, get_args

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import ANSWER_SCORE, QUERY_ID, VERDICT, Field
from ragforge.files.formats.row_files import read_rows_of
from ragforge.files.row import Row, parse_number
from ragforge.files.source_files import has_header, open_source, unpacked_name
from ragforge.files.text import shown
from ragforge.measures.answer_agreement import (
    PreferenceAgreement,
    ScoreAgreement,
    VerdictAgreement,
    preference_agreement,
    score_agreement,
    verdict_agreement,
)
from ragforge.records import Verdict

VERDICTS: Final[tuple[str, ...]] = get_args(Verdict)
SHAPES: Final = (
    'answers: {"query_id": "q1", "system": "rag-1", "verdict": "correct"}; also "score": 0.5',
    'two answers: {"query_id": "q1", "system_a": "rag-1", "system_b": "rag-2", "preference": "a"}',
    "CSV with a header of these names; `labeller` tells several people apart",
)
_SCORE_OF: Final[Mapping[str, float]] = {
    "correct": 1.0,
    "partial": 0.5,
    "incorrect": 0.0,
    "not_attempted": 0.0,
}
_STRICTNESS: Final = ("not_attempted", "incorrect", "partial", "correct")
"""Verdicts from the strictest on, by which that of several people is the middle one."""
EARLIER: Final = "of an answer that has changed since"
OTHERWISE: Final = "by an expected answer, or facts, that have changed since"
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_SYSTEM: Final = Field("system", ("system", "name", "run"))
_FIRST: Final = Field("system_a", ("system_a", "a", "model_a"))
_SECOND: Final = Field("system_b", ("system_b", "b", "model_b"))
_PREFERENCE: Final = Field("preference", ("preference", "winner", "preferred"))
_LABELLER: Final = Field("labeller", ("labeller", "labeler", "annotator", "assessor"))
_ANSWER_SHA256: Final = Field("answer_sha256", ("answer_sha256",))
_EXPECTED_SHA256: Final = Field("expected_sha256", ("expected_sha256",))
_FACTS_SHA256: Final = Field("facts_sha256", ("facts_sha256",))
_WORDS: Final = {"a": 1.0, "b": -1.0, "tie": 0.0, "same": 0.0, "both": 0.0, "neither": 0.0}


class AnswerKey(NamedTuple):
    """An answer of a system to a query."""

    query_id: str
    system: str


class ComparisonKey(NamedTuple):
    """Two answers to a query, the systems in the order of their names."""

    query_id: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """What was graded, by digests as labels have them; "" for what is not known."""

    answer_sha256: str
    expected_sha256: str = ""
    facts_sha256: str = ""


@dataclass(frozen=True, slots=True)
class AnswerLabels:
    """What one file says of answers."""

    name: str
    verdicts: Mapping[str, Mapping[AnswerKey, str]]
    """By labeller."""
    scores: Mapping[str, Mapping[AnswerKey, float]]
    """By labeller; those of verdicts where the file gives none."""
    preferences: Mapping[str, Mapping[ComparisonKey, float]]
    """By labeller: above 0 where the first is better."""
    skipped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AnswerJudgeReport:
    """One judge of answers beside people; each part is None where the files say nothing of it."""

    name: str
    verdicts: VerdictAgreement | None
    scores: ScoreAgreement | None
    preferences: PreferenceAgreement | None


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """Judges of answers beside people, and people beside people."""

    judges: tuple[AnswerJudgeReport, ...]
    people: AnswerJudgeReport | None
    """The second labeller beside the first: the most that a judge could reach."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Rows of people's labels that do not count, by the reason."""


def read_answer_labels(
    path: Path, graded: Mapping[AnswerKey, Collection[GradedAnswer]] | None = None
) -> AnswerLabels:
    """Return what a file says of answers.

    Args:
        path: In one of `SHAPES`, JSON Lines, JSON or a table.
        graded: The answers that judges graded, where they are known: labels of another answer of
            the system to the query, or by something else that was expected, are left out.

    Raises:
        DataError: The file cannot be read, or holds nothing that can be used.
    """
    verdicts: dict[str, dict[AnswerKey, str]] = {}
    scores: dict[str, dict[AnswerKey, float]] = {}
    preferences: dict[str, dict[ComparisonKey, float]] = {}
    skipped: Counter[str] = Counter()
    name = unpacked_name(path).partition(".")[0]
    for row in _rows(path):
        labeller = row.optional_text(_LABELLER) or ""
        if row.has(_PREFERENCE):
            key, preferred = _comparison(row)
            preferences.setdefault(labeller, {})[key] = preferred
            continue
        answer = AnswerKey(row.identifier(QUERY_ID), row.optional_text(_SYSTEM) or "")
        verdict, score = _verdict(row), _score(row)
        reason = _why_left_out(row, verdict, score, (graded or {}).get(answer))
        if reason:
            skipped[reason] += 1
            continue
        if verdict is not None:
            verdicts.setdefault(labeller, {})[answer] = verdict
        value = _SCORE_OF[verdict] if score is None and verdict is not None else score
        if value is not None:
            scores.setdefault(labeller, {})[answer] = value
    if not scores and not preferences:
        raise _nothing(path, skipped)
    return AnswerLabels(name, verdicts, scores, preferences, dict(skipped))


def _nothing(path: Path, skipped: Mapping[str, int]) -> DataError:
    former = [f"{n:,} {why}" for why in (EARLIER, OTHERWISE) if (n := skipped.get(why, 0))]
    if former:
        return DataError(
            f"{path}: no label of the answers that were graded: {', '.join(former)}; "
            "`ragforge calibrate label-answers` shows these again"
        )
    return DataError(f"{path}: no verdict, score or preference; expected {'; '.join(SHAPES)}")


def without_queries(labels: AnswerLabels, query_ids: Collection[str]) -> AnswerLabels:
    """Return labels without the verdicts and scores of some queries."""
    return replace(
        labels,
        verdicts=_without(labels.verdicts, query_ids),
        scores=_without(labels.scores, query_ids),
    )


def _without(
    labels: Mapping[str, Mapping[AnswerKey, _Value]], query_ids: Collection[str]
) -> dict[str, dict[AnswerKey, _Value]]:
    return {
        name: {key: value for key, value in of.items() if key.query_id not in query_ids}
        for name, of in labels.items()
    }


def report_answers(human: AnswerLabels, judges: tuple[AnswerLabels, ...]) -> AnswerReport:
    """Return how judges of answers agree with people, on what both labelled.

    Args:
        human: Of one labeller or several: of an answer that several labelled the middle verdict
            counts, of two the stricter, and the mean of their scores or preferences.
        judges: With verdicts or scores of the answers; at least one.

    Raises:
        DataError: A judge and people have no answer in common.
    """
    labelled = _of_all(human)
    found = tuple(_beside(_with_system(judge, labelled), labelled) for judge in judges)
    first, second = _of_one(human, 0), _of_one(human, 1)
    people = None
    if second is not None and first is not None:
        try:
            people = _beside(second, first)
        except DataError:
            people = None
    return AnswerReport(found, people, human.skipped)


def _of_all(labels: AnswerLabels) -> AnswerLabels:
    """Return labels of all labellers together, as those of one."""
    return AnswerLabels(
        labels.name,
        {"": _merged(labels.verdicts, _middle_verdict)},
        {"": _merged(labels.scores, fmean)},
        {"": _merged(labels.preferences, fmean)},
        {},
    )


def _merged(
    by_labeller: Mapping[str, Mapping[_Key, _Value]], of_several: Callable[[list[_Value]], _Value]
) -> dict[_Key, _Value]:
    gathered: dict[_Key, list[_Value]] = {}
    for labels in by_labeller.values():
        for key, value in labels.items():
            gathered.setdefault(key, []).append(value)
    return {key: of_several(values) for key, values in gathered.items()}


def _middle_verdict(verdicts: list[str]) -> str:
    return _STRICTNESS[median_low(_STRICTNESS.index(verdict) for verdict in verdicts)]


def _with_system(judge: AnswerLabels, people: AnswerLabels) -> AnswerLabels:
    """Return a judge's labels under the system that people name, where its file names none.

    Graded answers of a dataset are in a file a system, and bear its name.
    """
    theirs = {key.system for of in people.scores.values() for key in of}
    mine = {key.system for of in judge.scores.values() for key in of}
    if mine != {""} or not theirs or "" in theirs:
        return judge
    system = judge.name if judge.name in theirs else next(iter(theirs))
    if system != judge.name and len(theirs) > 1:
        return judge
    return replace(
        judge,
        verdicts=_of_system(judge.verdicts, system),
        scores=_of_system(judge.scores, system),
    )


def _of_system(
    labels: Mapping[str, Mapping[AnswerKey, _Value]], system: str
) -> dict[str, dict[AnswerKey, _Value]]:
    return {
        name: {AnswerKey(key.query_id, system): value for key, value in of.items()}
        for name, of in labels.items()
    }


def _beside(judge: AnswerLabels, people: AnswerLabels) -> AnswerJudgeReport:
    mine, theirs = _first(judge.scores), _first(people.scores)
    both = sorted(mine.keys() & theirs.keys())
    my_verdicts, their_verdicts = _first(judge.verdicts), _first(people.verdicts)
    told = sorted(my_verdicts.keys() & their_verdicts.keys())
    compared = dict(_compared(judge, _first(people.preferences)))
    if not both and not compared:
        raise DataError(
            f"{judge.name}: none of the answers that people labelled; do `query_id` and `system` "
            "go by the same names in both files?"
        )
    preferences = _first(people.preferences)
    return AnswerJudgeReport(
        judge.name,
        verdict_agreement(
            [key.query_id for key in told],
            [VERDICTS.index(their_verdicts[key]) for key in told],
            [VERDICTS.index(my_verdicts[key]) for key in told],
            len(VERDICTS),
        )
        if told
        else None,
        score_agreement(
            [key.query_id for key in both],
            [theirs[key] for key in both],
            [mine[key] for key in both],
        )
        if both
        else None,
        preference_agreement(
            [key.query_id for key in compared],
            [preferences[key] for key in compared],
            list(compared.values()),
        )
        if compared
        else None,
    )


def _compared(
    judge: AnswerLabels, wanted: Mapping[ComparisonKey, float]
) -> Iterator[tuple[ComparisonKey, float]]:
    """Yield what a judge says of comparisons: its own preference, else its difference of scores."""
    scores, own = _first(judge.scores), _first(judge.preferences)
    for key in sorted(wanted):
        first = scores.get(AnswerKey(key.query_id, key.first))
        second = scores.get(AnswerKey(key.query_id, key.second))
        if key in own:
            yield key, own[key]
        elif first is not None and second is not None:
            yield key, first - second


def _of_one(labels: AnswerLabels, place: int) -> AnswerLabels | None:
    """Return the labels of the labeller with the most, or of the next."""
    names = {*labels.scores, *labels.preferences}
    sizes = {
        name: len(labels.scores.get(name, {})) + len(labels.preferences.get(name, {}))
        for name in names
    }
    ordered = sorted(names, key=lambda name: (-sizes[name], name))
    if place >= len(ordered):
        return None
    name = ordered[place]
    return AnswerLabels(
        name or labels.name,
        {name: labels.verdicts.get(name, {})},
        {name: labels.scores.get(name, {})},
        {name: labels.preferences.get(name, {})},
        {},
    )


def _first(by_labeller: Mapping[str, Mapping[_Key, _Value]]) -> Mapping[_Key, _Value]:
    return next(iter(by_labeller.values()), {})


def _rows(path: Path) -> Iterator[Row]:
    source = open_source(path, "labels of answers")
    if source.kind == "columns" and not has_header(source):
        raise DataError(f"{path}: expected a header, or JSON Lines: {'; '.join(SHAPES)}")
    return read_rows_of(source, SHAPES)


def _why_left_out(
    row: Row, verdict: str | None, score: float | None, graded: Collection[GradedAnswer] | None
) -> str:
    """Return why a row does not count; "" where it does.

    It can be of an answer that was graded where either is not told.
    """
    if verdict is None and score is None:
        return "neither verdict nor score"
    if graded is None:
        return ""
    given = row.optional_text(_ANSWER_SHA256)
    same = [of for of in graded if given in (None, of.answer_sha256)]
    if not same:
        return EARLIER
    expected, facts = row.optional_text(_EXPECTED_SHA256), row.optional_text(_FACTS_SHA256)
    fits = (_agree(expected, of.expected_sha256) and _agree(facts, of.facts_sha256) for of in same)
    return "" if any(fits) else OTHERWISE


def _agree(label: str | None, graded: str) -> bool:
    return not label or not graded or label == graded


def _verdict(row: Row) -> str | None:
    found = row.optional_text(VERDICT)
    if found is None:
        return None
    verdict = found.strip().lower().replace(" ", "_").replace("-", "_")
    if verdict not in VERDICTS:
        raise row.wrong(VERDICT, ", ".join(VERDICTS), found)
    return verdict


def _score(row: Row) -> float | None:
    given = row.get(ANSWER_SCORE)
    if given is None or given == "":
        return None
    return row.as_number(given, ANSWER_SCORE)


def _comparison(row: Row) -> tuple[ComparisonKey, float]:
    first, second = row.identifier(_FIRST), row.identifier(_SECOND)
    given = row.get(_PREFERENCE)
    word = str(given).strip()
    value = parse_number(given)
    if value is None:
        by_name, by_place = {first: 1.0, second: -1.0}.get(word), _WORDS.get(word.lower())
        if by_name is not None and by_place is not None and by_name != by_place:
            raise row.wrong(_PREFERENCE, f"a name that is no place: is {shown(word)} meant?", given)
        value = by_place if by_name is None else by_name
    if value is None:
        raise row.wrong(_PREFERENCE, f"a, b, tie, a number, or {shown(first)}", given)
    query_id = row.identifier(QUERY_ID)
    if first <= second:
        return ComparisonKey(query_id, first, second), value
    return ComparisonKey(query_id, second, first), -value
