"""Taking in what users asked: labelled questions become queries, the others tell how people ask."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from statistics import median_low
from typing import Final, Literal

from ragforge.errors import DataError
from ragforge.files.dataset import Dataset
from ragforge.files.masking import masked
from ragforge.files.queries import ImportedQuery
from ragforge.files.query_log import LoggedQuery, read_log
from ragforge.files.relevance import Relevance, grade_of_listed
from ragforge.observe import Event, Observer
from ragforge.pipeline.importing import ImportResult, take_in
from ragforge.records import Query, RealQuery
from ragforge.stages.generate.gates.taken import Taken, normal_question
from ragforge.stages.generate.stage import query_id

MOST_CHARS: Final = 1000
"""Of a question; what is longer was pasted in."""
LANGUAGE: Final = "en"
"""Where the log names none."""
Clicks = Literal["ignore", "relevant"]


@dataclass(frozen=True, slots=True)
class LogResult:
    """What was taken in."""

    n_rows: int
    n_passed_over: int
    """Rows without words, or with more than a question."""
    n_labelled: int
    """Queries with labels of people."""
    n_added: int
    """Queries that became items though nobody labelled them."""
    n_judgments: int
    n_lost: int
    """Labelled passages that are in no chunk."""
    n_real: int
    """Different questions without labels."""
    n_masked: int
    """E-mail addresses and numbers that were taken out."""
    n_clicked: int
    """Rows with clicks that were not taken for labels."""


@dataclass(slots=True)
class _Asked:
    """All rows of one question."""

    spellings: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    labels: list[Relevance] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def spelling(self) -> str:
        return _most(self.spellings)

    @property
    def is_labelled(self) -> bool:
        return bool(self.labels or self.answers)


def import_logs(
    paths: Sequence[Path],
    dataset: Dataset,
    observer: Observer,
    *,
    made_by: str = "",
    clicks: Clicks = "ignore",
    unlabelled: Literal["keep", "add"] = "keep",
) -> LogResult:
    """Add what users asked to a dataset.

    Questions that are the same but for case, blanks and punctuation are one. Those with labels of
    people become queries; where people disagree on a passage it gets the lower median of their
    grades. The others are written as `real_queries.jsonl`, near-duplicates counted together;
    an earlier such file is replaced. A query that is in the dataset already stays as it is, and
    gets the grades beside those it has.

    Args:
        paths: Logs, see `read_log`.
        dataset: Has chunks.
        observer: Told of what was passed over, masked and lost.
        made_by: Who labelled.
        clicks: "relevant" to take what was clicked for relevant, "ignore" not to.
        unlabelled: "add" to make the questions without labels queries too, without an answer: to
            be retrieved for and judged. "keep" for `real_queries.jsonl` alone.

    Raises:
        DataError: A log cannot be read, holds no question, or none of the labelled passages is in
            any chunk; nothing is written then.
    """
    reading = _Reading(clicks == "relevant")
    asked = reading.read(paths).values()
    if not asked:
        raise DataError(f"{paths[0]}: holds no question; expected at least one")
    real = real_queries(one for one in asked if not one.is_labelled)
    before = {query.query_id: query for query in dataset.all_queries()}
    labelled = _labelled(asked, before)
    bare = map(_bare, real) if unlabelled == "add" else ()
    added = [item for item in bare if item.query.query_id not in before]
    took = None
    if labelled or added:
        where = ", ".join(map(str, paths))
        took = take_in([*labelled, *added], dataset, observer, made_by=made_by, where=where)
    dataset.write_real_queries(real)
    for message in reading.notes():
        observer(Event("note", message=message))
    return reading.result(took, n_labelled=len(labelled), n_added=len(added), n_real=len(real))


def real_queries(asked: "Iterable[_Asked]") -> list[RealQuery]:
    """Return different questions, sorted by text; the most frequent of near-duplicates stands."""
    taken = Taken()
    counts: Counter[str] = Counter()
    languages: dict[str, str] = {}
    for one in sorted(asked, key=lambda one: (-one.spellings.total(), one.spelling)):
        text = one.spelling
        clash = taken.clash(text)
        if clash is None:
            taken.add(text, text)
            languages[text] = _most(one.languages) if one.languages else ""
        counts[clash.query_id if clash else text] += one.spellings.total()
    return [
        RealQuery(query=text, count=counts[text], language=languages[text])
        for text in sorted(languages)
    ]


@dataclass(frozen=True, slots=True)
class _Worded:
    """A question as it is kept, and what it shares with its other spellings."""

    text: str
    normal: str
    n_masked: int


@lru_cache(maxsize=1 << 16)
def _worded(query: str) -> _Worded:
    """Return how a question is kept; logs ask the same again and again."""
    found = masked(query)
    return _Worded(found.text, normal_question(found.text), found.n)


@dataclass(slots=True)
class _Reading:
    """Reads logs, and counts what it leaves out."""

    takes_clicks: bool
    n_rows: int = 0
    n_passed_over: int = 0
    n_masked: int = 0
    n_clicked: int = 0

    def read(self, paths: Iterable[Path]) -> dict[str, _Asked]:
        """Return the questions by what is left of them without case, blanks and punctuation."""
        asked: dict[str, _Asked] = {}
        for path in paths:
            for row in read_log(path):
                self.n_rows += 1
                found = _worded(row.query)
                if not found.normal or len(found.text) > MOST_CHARS:
                    self.n_passed_over += 1
                    continue
                self.n_masked += found.n_masked
                one = asked.setdefault(found.normal, _Asked())
                one.spellings[found.text] += row.count
                if row.language:
                    one.languages[row.language] += row.count
                self._label(one, row)
        return asked

    def notes(self) -> Iterator[str]:
        """Yield what a user should know."""
        if self.n_passed_over:
            yield (
                f"{self.n_passed_over} of {self.n_rows} rows passed over: without words, or "
                f"longer than {MOST_CHARS} characters"
            )
        if self.n_masked:
            yield (
                f"{self.n_masked} e-mail addresses and long numbers masked; names and other "
                "traces of people are not found by pattern: look through the queries"
            )
        if self.n_clicked:
            yield (
                f"{self.n_clicked} rows with clicks, which are no labels of people; "
                "--clicks relevant takes them for such"
            )

    def result(
        self, took: ImportResult | None, *, n_labelled: int, n_added: int, n_real: int
    ) -> LogResult:
        """Return what all came to."""
        return LogResult(
            n_rows=self.n_rows,
            n_passed_over=self.n_passed_over,
            n_labelled=n_labelled,
            n_added=n_added,
            n_judgments=took.n_judgments if took else 0,
            n_lost=took.n_lost if took else 0,
            n_real=n_real,
            n_masked=self.n_masked,
            n_clicked=self.n_clicked,
        )

    def _label(self, one: _Asked, row: LoggedQuery) -> None:
        relevance = row.relevance
        if row.clicked and self.takes_clicks:
            graded = {*relevance.grades, *relevance.listed}
            clicked = tuple(item for item in row.clicked if item not in graded)
            relevance = replace(relevance, listed=(*relevance.listed, *clicked))
        elif row.clicked:
            self.n_clicked += 1
        if relevance != Relevance({}):
            one.labels.append(relevance)
        if row.expected_answer is not None:
            one.answers[row.expected_answer] += 1


def _labelled(asked: Iterable[_Asked], before: dict[str, Query]) -> list[ImportedQuery]:
    found = [one for one in asked if one.is_labelled]
    grade = grade_of_listed(
        given for one in found for labels in one.labels for given in labels.grades.values()
    )
    items = []
    for one in found:
        query = _query(one)
        items.append(ImportedQuery(before.get(query.query_id, query), _grades(one.labels, grade)))
    return items


def _grades(labels: Iterable[Relevance], grade_if_listed: int) -> dict[str, int | None]:
    """Return one grade for each passage that people labelled."""
    given: dict[str, list[int]] = {}
    for relevance in labels:
        for chunk_id, grade in relevance.settled(grade_if_listed).items():
            if grade is not None:
                given.setdefault(chunk_id, []).append(grade)
    return {chunk_id: median_low(grades) for chunk_id, grades in given.items()}


def _query(one: _Asked) -> Query:
    language = _most(one.languages) if one.languages else LANGUAGE
    return Query(
        query_id=query_id(one.spelling, LANGUAGE),
        query=one.spelling,
        expected_answer=_most(one.answers) if one.answers else None,
        language=language,
        origin="log",
    )


def _bare(real: RealQuery) -> ImportedQuery:
    """Return a question that nobody labelled as a query."""
    name = query_id(real.query, LANGUAGE)
    language = real.language or LANGUAGE
    return ImportedQuery(Query(query_id=name, query=real.query, language=language, origin="log"))


def _most(counts: Counter[str]) -> str:
    """Return the most frequent text, of several the first by letters."""
    return min(counts, key=lambda text: (-counts[text], text))
