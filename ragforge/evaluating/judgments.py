"""Who judged, what they gave, and which of several judgments of one pair counts."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, KeysView, Mapping
from dataclasses import replace
from itertools import repeat
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from ragforge.deferred import dataclass
from ragforge.files.set.document_level import DocumentLevel
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.records import AnswerGrade, Failure, Judgment, Provenance, Stage, is_text_id
from ragforge.records.canaries import since_drift
from ragforge.records.judgments import Grading, JudgmentOrGrading

T = TypeVar("T")
G = TypeVar("G", Judgment, Grading)
Settled: TypeAlias = Mapping[str, Mapping[str, JudgmentOrGrading]]
"""The judgment that counts, with words or without, by query and chunk."""

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
_MOST_HELD: Final = 200_000
"""Pairs of which mappings are held, so that those of most sets are made once: some 10 MB."""
_LEAST_SHARE: Final = 0.1
"""Of the queries: to hold those of fewer saves no time to speak of."""
_LAST_QUERIES: Final = 100
"""Queries beyond those, the last ones, of which they are held: one is asked for several times."""


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


class ByQuery(Mapping[str, Mapping[str, T]], Generic[T]):
    """What is known of the chunks of each query, made when it is asked for.

    For millions of pairs, mappings that are all held would take more than all else. Those of the
    first queries stay, as the queries are gone through again and again in one order, unless these
    are few of all; of the others the last ones do.

    Args:
        query_ids: All queries, in order.
        make: Returns what is known of the chunks of one.
    """

    def __init__(self, query_ids: Iterable[str], make: Callable[[str], Mapping[str, T]]) -> None:
        self._ids = dict.fromkeys(query_ids)
        self._make = make
        self._held: dict[str, Mapping[str, T]] = {}
        self._last: dict[str, Mapping[str, T]] = {}
        self._n_held = 0
        self._most = _MOST_HELD

    def __getitem__(self, query_id: str) -> Mapping[str, T]:
        found = self._held.get(query_id)
        if found is None:
            found = self._last.get(query_id)
        if found is None:
            if query_id not in self._ids:
                raise KeyError(query_id)
            found = self._make(query_id)
            if self._n_held < self._most:
                self._held[query_id] = found
                self._n_held += len(found)
                if self._n_held >= self._most and len(self._held) < _LEAST_SHARE * len(self._ids):
                    self._held, self._most = {}, 0
            else:
                if len(self._last) >= _LAST_QUERIES:
                    self._last.clear()
                self._last[query_id] = found
        return found

    def _forget(self) -> None:
        self._held.clear()
        self._last.clear()
        self._n_held = 0

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __reduce__(self) -> tuple[object, ...]:
        """Return how a copy is made, which holds everything."""
        return dict, (dict(self),)

    def keys(self) -> KeysView[str]:
        """Return the ids of the queries, as of a dict."""
        return self._ids.keys()


class SettledTable(ByQuery[Grading]):
    """The gradings of a set that count, by query and chunk.

    Args:
        table: All judgments of the queries.
        level: Folds to documents what labels name by them.
        authors_threshold: See `on_authors_scale`.
        is_binary: Whether the labels of the author's file were all 1, as they then are here.
    """

    def __init__(
        self,
        table: JudgmentTable,
        level: DocumentLevel,
        authors_threshold: int | None,
        *,
        is_binary: bool,
    ) -> None:
        super().__init__(table.query_ids, self._gradings_of)
        self._table = table
        self._level = level
        self._authors_threshold = authors_threshold
        self._is_of_ones = False
        self._in_place = list(map(self._scaled, table.gradings))
        if is_binary and not _holds_other_grades(self):
            self._is_of_ones = True
            self._in_place = list(map(self._scaled, table.gradings))
            self._forget()
        self._grades = [item.grade for item in self._in_place]
        self._holds_lists = any(item.relevant is not None for item in table.counts())

    @property
    def holds_lists(self) -> bool:
        """Whether people listed chunks as relevant."""
        return self._holds_lists

    @property
    def holds_texts(self) -> bool:
        """Whether texts are judged that are no chunks of the set."""
        return self._table.has_texts

    def grades(self, query_id: str) -> dict[str, int | None]:
        """Return the grades of a query as `grades_in` does; {} where there are none."""
        if self._holds_lists or self._level.changes(query_id):
            return grades_in(self.get(query_id, {}))
        return self._table.of_query(query_id, self._grades)

    def judgments(self, query_id: str) -> dict[str, Judgment]:
        """Return the judgments of a query that count, with all that they say in words."""
        return self._with_words(query_id, quoting=False)

    def quotes(self, query_id: str) -> dict[str, str]:
        """Return what the judgments of a query that count quote as evidence, by chunk."""
        # Of documents one judgment counts for all chunks, and all have to be looked at.
        quoting = query_id not in self._level.query_ids
        judged = self._with_words(query_id, quoting=quoting)
        return {name: item.evidence for name, item in judged.items() if item.evidence}

    def _with_words(self, query_id: str, *, quoting: bool) -> dict[str, Judgment]:
        found = self._table.judgments(query_id, quoting=quoting)
        return self._settled(query_id, {item.chunk_id: item for item in found})

    def _gradings_of(self, query_id: str) -> dict[str, Grading]:
        if not self._level.changes(query_id):
            return self._table.of_query(query_id, self._in_place)
        return self._settled(query_id, self._table.of_query(query_id, self._table.gradings))

    def _settled(self, query_id: str, judged: dict[str, G]) -> dict[str, G]:
        if query_id not in self._level.query_ids:
            repeating = self._level.repeating.get(query_id, {})
            return {
                name: _not_relevant(item) if name in repeating else self._scaled(item)
                for name, item in judged.items()
            }
        scaled = {n: on_authors_scale(of, self._authors_threshold) for n, of in judged.items()}
        folded = self._level.folded(query_id, scaled)
        return {name: _as_one(of) for name, of in folded.items()} if self._is_of_ones else folded

    def _scaled(self, item: G) -> G:
        scaled = on_authors_scale(item, self._authors_threshold)
        return _as_one(scaled) if self._is_of_ones else scaled


def _holds_other_grades(settled: Settled) -> bool:
    """Whether a judge graded, or somebody gave a grade that is none of binary labels."""
    return any(
        item.source != "human" or item.grade not in (None, 0, 2)
        for judged in settled.values()
        for item in judged.values()
    )


def _as_one(item: G) -> G:
    """Return binary labels with 1 for a relevant one, which is at least 2 on judges' scale."""
    return _regraded(item, 1) if item.grade else item


def _not_relevant(item: G) -> G:
    """Return the judgment of a chunk that holds what another one does, which counts."""
    regraded = _regraded(item, 0)
    if item.relevant is None:
        return regraded
    if isinstance(regraded, Grading):
        return replace(regraded, relevant=False)
    return regraded.model_copy(update={"relevant": False})


def _regraded(item: G, grade: int) -> G:
    if isinstance(item, Grading):
        return replace(item, grade=grade)
    return item.model_copy(update={"grade": grade})


def with_counts(judgments: Iterable[JudgmentOrGrading]) -> Iterable[tuple[JudgmentOrGrading, int]]:
    """Return judgments, or the gradings of a table or counts, with how often each was given."""
    if isinstance(judgments, JudgmentTable):
        return judgments.counts().items()
    if isinstance(judgments, Counter):
        return judgments.items()
    return zip(judgments, repeat(1))


def of_queries(settled: Settled, query_ids: Container[str]) -> Settled:
    """Return what is settled of some queries."""
    return ByQuery((key for key in settled if key in query_ids), settled.__getitem__)


def of_chunks(settled: Settled) -> Settled:
    """Return the judgments of chunks of a set, and of documents, without those of other texts."""
    return ByQuery(
        settled,
        lambda query_id: {n: of for n, of in settled[query_id].items() if not is_text_id(n)},
    )


def of_texts(settled: Settled) -> Settled:
    """Return the judgments of texts that runs retrieved and that are no chunks, where there are."""
    if isinstance(settled, SettledTable) and not settled.holds_texts:
        return {}
    texts = {
        query_id: {name: item for name, item in judged.items() if is_text_id(name)}
        for query_id, judged in settled.items()
    }
    return {query_id: judged for query_id, judged in texts.items() if judged}


def on_authors_scale(item: G, authors_threshold: int | None) -> G:
    """Return a judgment with the grade of a judge on the scale of a set's author.

    Where the author calls grades from 1 on relevant, a judge's 1 (same topic, no part of the
    answer) is the author's 0. People's grades stay, and so do all under another threshold.

    Args:
        item: As it was given.
        authors_threshold: See `Dataset.authors_threshold`.
    """
    is_lowered = authors_threshold == 1 and item.grade == 1 and item.source != "human"
    return _regraded(item, 0) if is_lowered else item


def judges_differ(judgments: Iterable[JudgmentOrGrading], authors_threshold: int | None) -> bool:
    """Whether a set's author calls a grade relevant that says of judges that nothing is there."""
    return authors_threshold == 1 and any(
        item.source != "human" for item, _ in with_counts(judgments)
    )


def relevance_words(rel_threshold: int, *, judges_differ: bool = False) -> str:
    """Return in words which grades are relevant: of people, and of judges where that is another."""
    beside = f" (a judge's: >= {LEAST_OF_JUDGES})" if judges_differ else ""
    return f"relevant: grade >= {rel_threshold}{beside}"


def grades_in(judged: Mapping[str, JudgmentOrGrading]) -> dict[str, int | None]:
    """Return the grades of a query by chunk; None is a judgment that failed.

    A chunk that is listed as relevant and has no grade is not among them.
    """
    return {
        chunk_id: item.grade
        for chunk_id, item in judged.items()
        if item.grade is not None or item.is_failed
    }


def marks_in(settled: Settled, query_ids: Container[str]) -> dict[str, dict[str, bool]]:
    """Return whether chunks are listed as relevant, of queries of which people listed some."""
    if isinstance(settled, SettledTable) and not settled.holds_lists:
        return {}
    marks = {
        query_id: {
            chunk_id: item.relevant
            for chunk_id, item in judged.items()
            if item.relevant is not None
        }
        for query_id, judged in settled.items()
        if query_id in query_ids
    }
    return {query_id: of_query for query_id, of_query in marks.items() if of_query}


def label_reading(
    stated: LabelReading | None, judgments: Iterable[JudgmentOrGrading], *, has_pool: bool
) -> LabelReading:
    """Return what a chunk without a label is in a set.

    Args:
        stated: By the author of the set; None where nothing is said.
        judgments: Of the set.
        has_pool: Whether probes looked for more that could be relevant.

    Returns:
        `complete` (it is not relevant) where people alone labelled, no pool was made and nothing
        else is said; `pooled` (nobody looked at it) where a judge graded; what the author says
        goes before, but that labels are complete to which a judge added. A quote by which people
        proved an answer is theirs, though its words are others now.
    """
    if stated in ("pooled", "partial"):
        return stated
    sources = {_source_of_label(item) for item, _ in with_counts(judgments)}
    is_peoples = "human" in sources <= {"human", "their evidence"}
    return "complete" if is_peoples and not has_pool else "pooled"


def _source_of_label(item: JudgmentOrGrading) -> str:
    by = item.provenance
    is_theirs = item.source == "evidence" and by is not None and by.kind == "human"
    return "their evidence" if is_theirs else item.source


def grades_by_source(judgments: Iterable[JudgmentOrGrading]) -> tuple[SourceGrades, ...]:
    """Count the grades that each source gave."""
    counts: dict[str, Counter[int | None]] = {}
    listed = Counter[str]()
    for judgment, n in with_counts(judgments):
        of_source = counts.setdefault(judgment.source, Counter())
        if judgment.grade is None and not judgment.is_failed:
            listed[judgment.source] += n
        else:
            of_source[judgment.grade] += n
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
    judgments: Iterable[JudgmentOrGrading], answer_grades: Mapping[str, Iterable[AnswerGrade]]
) -> tuple[Judge, ...]:
    """List the judges, those of relevance first, with the number of records each made.

    A failure that does not say whose it is belongs to no judge: nobody's grade came of it.
    """
    of_relevance = _Records()
    for item, n in with_counts(judgments):
        of_relevance.add("relevance", item.provenance, item.source, n, is_failed=item.is_failed)
    of_answers = _Records()
    for system, grades in answer_grades.items():
        for grade in grades:
            is_failed = grade.verdict is None
            of_answers.add(f"answers of {system}", grade.provenance, "", 1, is_failed=is_failed)
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
        self, task: str, provenance: Provenance | None, source: str, n: int, *, is_failed: bool
    ) -> None:
        if provenance is None and is_failed:
            return
        # Records that follow each other mostly share one.
        last = self._last
        if last is None or provenance is not last[0] or (task, source) != last[1:3]:
            last = self._last = provenance, task, source, _identity(task, provenance, source)
        identity = last[3]
        self._made[identity] += n
        self._failed[identity] += n * is_failed
        self._evidence[identity] += n * (source == "evidence")

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
