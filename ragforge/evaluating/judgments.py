"""Who judged, what they gave, and which of several judgments of one pair counts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from ragforge.deferred import dataclass
from ragforge.records import AnswerGrade, Failure, Judgment, Provenance, Stage, is_text_id
from ragforge.records.canaries import since_drift

Settled: TypeAlias = Mapping[str, Mapping[str, Judgment]]
"""The judgment that counts, by query and chunk."""

LabelReading: TypeAlias = Literal["complete", "pooled", "partial"]
"""What a chunk without a label is: not relevant, not looked at, or not known."""
LABELS_IN_WORDS: Final[Mapping[LabelReading, str]] = {
    "complete": "labels are complete: what is not listed is not relevant",
    "pooled": "labels are of a pool: what is not in it was not looked at",
    "partial": "labels are partial: of what is not listed nothing is known",
}
COMPLETE_LABELS: Final = LABELS_IN_WORDS["complete"]
SOURCES: Final = ("human", "evidence", "judge", "carried")
"""Sources of a judgment, the one that counts most first."""
GRADES: Final = (0, 1, 2, 3)
LEAST_OF_JUDGES: Final = 2
"""Lowest grade that says that a part of the answer is there."""
GRADE_MEANINGS: Final = (
    "not relevant",
    "same topic, no part of the answer",
    "part of the answer",
    "answers it on its own",
)


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge, as the provenance of its records names it."""

    task: str
    """What it judged: `relevance`, or `answers of SYSTEM`."""
    kind: str
    """A `JudgeKind`; "" where the records name no judge."""
    model: str
    prompt: str
    prompt_sha256: str
    count: int
    """Records it made, those included that hold its failure."""
    n_failed: int
    n_evidence: int = 0
    """Of these, grades of chunks because they hold quotes of the queries."""
    since: str = ""
    """The drift since which it is this judge; see `since_drift`."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is a rule that needs no model, rather than a judge to be trusted."""
        return self.kind == "baseline"

    @property
    def is_mock(self) -> bool:
        """Whether `ragforge mock` stood in the place of a model."""
        return self.kind == "mock"


@dataclass(frozen=True, slots=True)
class SourceGrades:
    """How often one source gave each grade."""

    source: str
    counts: tuple[int, ...]
    """Judgments of grade 0, 1, 2 and 3."""
    n_failed: int
    n_listed: int = 0
    """Chunks that are listed as relevant without a grade."""


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Failures of one stage and kind."""

    what: str
    kind: str
    count: int


def settle(judgments: Iterable[Judgment]) -> dict[str, dict[str, Judgment]]:
    """Return the judgment that counts for each pair, by query and chunk.

    A judgment with a grade goes before a failed one; then human > evidence > judge > carried;
    then the first one given.
    """
    settled: dict[str, dict[str, Judgment]] = {}
    for judgment in judgments:
        of_query = settled.setdefault(judgment.query_id, {})
        old = of_query.get(judgment.chunk_id)
        if old is None or _weight(judgment) < _weight(old):
            of_query[judgment.chunk_id] = judgment
    return settled


def of_chunks(settled: Settled) -> Settled:
    """Return the judgments of chunks of a set, and of documents, without those of other texts."""
    return {
        query_id: {name: item for name, item in judged.items() if not is_text_id(name)}
        for query_id, judged in settled.items()
    }


def of_texts(settled: Settled) -> dict[str, dict[str, Judgment]]:
    """Return the judgments of texts that runs retrieved and that are no chunks, where there are."""
    texts = {
        query_id: {name: item for name, item in judged.items() if is_text_id(name)}
        for query_id, judged in settled.items()
    }
    return {query_id: judged for query_id, judged in texts.items() if judged}


def on_authors_scale(judgments: list[Judgment], authors_threshold: int | None) -> list[Judgment]:
    """Return judgments with the grades of judges on the scale of a set's author.

    Where the author calls grades from 1 on relevant, a judge's 1 (same topic, no part of the
    answer) is the author's 0. People's grades stay, and so do all under another threshold.

    Args:
        judgments: As they were given.
        authors_threshold: See `Dataset.authors_threshold`.
    """
    if not judges_differ(judgments, authors_threshold):
        return judgments
    return [
        item.model_copy(update={"grade": 0}) if item.grade == 1 and item.source != "human" else item
        for item in judgments
    ]


def binary_gains(settled: dict[str, dict[str, Judgment]]) -> dict[str, dict[str, Judgment]]:
    """Return the judgments of binary labels with 1 for each relevant one, as in the author's file.

    On the scale of judges, which the judgments have, relevant is at least 2; the judgments of a set
    that holds other grades too stay as they are.
    """
    every = [item for judged in settled.values() for item in judged.values()]
    if any(item.source != "human" or item.grade not in (None, 0, 2) for item in every):
        return settled
    return {
        query_id: {
            name: item.model_copy(update={"grade": 1}) if item.grade else item
            for name, item in judged.items()
        }
        for query_id, judged in settled.items()
    }


def judges_differ(judgments: Iterable[Judgment], authors_threshold: int | None) -> bool:
    """Whether a set's author calls a grade relevant that says of judges that nothing is there."""
    return authors_threshold == 1 and any(item.source != "human" for item in judgments)


def relevance_words(rel_threshold: int, *, judges_differ: bool = False) -> str:
    """Say which grades are relevant: of people, and of judges where that is another."""
    beside = f" (a judge's: >= {LEAST_OF_JUDGES})" if judges_differ else ""
    return f"relevant: grade >= {rel_threshold}{beside}"


def grades_in(judged: Mapping[str, Judgment]) -> dict[str, int | None]:
    """Return the grades of a query by chunk; None is a judgment that failed.

    A chunk that is listed as relevant and has no grade is not among them.
    """
    return {
        chunk_id: item.grade
        for chunk_id, item in judged.items()
        if item.grade is not None or item.is_failed
    }


def marks_in(settled: Settled) -> dict[str, dict[str, bool]]:
    """Return whether chunks are listed as relevant, of the queries of which people listed some."""
    marks = {
        query_id: {
            chunk_id: item.relevant
            for chunk_id, item in judged.items()
            if item.relevant is not None
        }
        for query_id, judged in settled.items()
    }
    return {query_id: of_query for query_id, of_query in marks.items() if of_query}


def label_reading(
    stated: LabelReading | None, judgments: Iterable[Judgment], *, has_pool: bool
) -> LabelReading:
    """Return what a chunk without a label is in a set.

    Args:
        stated: By the author of the set; None where nothing is said.
        judgments: Of the set.
        has_pool: Whether probes looked for more that could be relevant.

    Returns:
        `complete` (it is not relevant) where people alone labelled, no pool was made and nothing
        else is said; `pooled` (nobody looked at it) where a judge graded; what the author says
        goes before, but that labels are complete to which a judge added.
    """
    if stated in ("pooled", "partial"):
        return stated
    sources = {item.source for item in judgments}
    return "complete" if sources == {"human"} and not has_pool else "pooled"


def grades_by_source(judgments: Iterable[Judgment]) -> tuple[SourceGrades, ...]:
    """Count the grades that each source gave."""
    counts: dict[str, Counter[int | None]] = {}
    listed = Counter[str]()
    for judgment in judgments:
        of_source = counts.setdefault(judgment.source, Counter())
        if judgment.grade is None and not judgment.is_failed:
            listed[judgment.source] += 1
        else:
            of_source[judgment.grade] += 1
    return tuple(
        SourceGrades(
            source,
            tuple(counts[source][grade] for grade in GRADES),
            counts[source][None],
            listed[source],
        )
        for source in SOURCES
        if source in counts
    )


def judges(
    judgments: Iterable[Judgment], answer_grades: Mapping[str, Iterable[AnswerGrade]]
) -> tuple[Judge, ...]:
    """List the judges, those of relevance first, with the number of records each made.

    A failure that does not say whose it is belongs to no judge: nobody's grade came of it.
    """
    of_relevance = _Records()
    for judgment in judgments:
        is_failed = judgment.is_failed
        of_relevance.add("relevance", judgment.provenance, judgment.source, is_failed=is_failed)
    of_answers = _Records()
    for system, grades in answer_grades.items():
        for grade in grades:
            is_failed = grade.verdict is None
            of_answers.add(f"answers of {system}", grade.provenance, "", is_failed=is_failed)
    return (*of_relevance.judges(), *of_answers.judges())


def count_failures(failures: Iterable[Failure]) -> tuple[FailureCount, ...]:
    """Count failures by stage and kind."""
    counts = Counter((failure.what, failure.kind) for failure in failures)
    return tuple(FailureCount(what, kind, n) for (what, kind), n in sorted(counts.items()))


def failed_by_name(failures: Iterable[Failure], *stages: Stage) -> dict[str, set[str]]:
    """Return the queries of stages' failures by run or system; the keys are NAME/QUERYID."""
    failed: dict[str, set[str]] = {}
    for failure in failures:
        name, slash, query_id = failure.key.partition("/")
        if failure.what in stages and slash:
            failed.setdefault(name, set()).add(query_id)
    return failed


class _Identity(NamedTuple):
    task: str
    kind: str
    model: str
    prompt: str
    prompt_sha256: str
    since: str


class _Records:
    """Counts records by who made them."""

    def __init__(self) -> None:
        self._made: Counter[_Identity] = Counter()
        self._failed: Counter[_Identity] = Counter()
        self._evidence: Counter[_Identity] = Counter()
        self._last: tuple[Provenance | None, str, str, _Identity] | None = None

    def add(
        self, task: str, provenance: Provenance | None, source: str, *, is_failed: bool
    ) -> None:
        if provenance is None and is_failed:
            return
        # Records that follow each other mostly share one.
        last = self._last
        if last is None or provenance is not last[0] or (task, source) != last[1:3]:
            last = self._last = provenance, task, source, _identity(task, provenance, source)
        identity = last[3]
        self._made[identity] += 1
        self._failed[identity] += is_failed
        self._evidence[identity] += source == "evidence"

    def judges(self) -> list[Judge]:
        return [
            Judge(
                *identity[:5],
                count=count,
                n_failed=self._failed[identity],
                n_evidence=self._evidence[identity],
                since=identity.since,
            )
            for identity, count in sorted(self._made.items())
        ]


def _weight(judgment: Judgment) -> tuple[bool, int]:
    return judgment.is_failed, SOURCES.index(judgment.source)


def _identity(task: str, by: Provenance | None, source: str) -> _Identity:
    if by is None:
        return _Identity(task, "human" if source == "human" else "", "", "", "", "")
    since = since_drift(by.protocol)
    return _Identity(task, by.kind, by.model, by.prompt, by.prompt_sha256, since)
