"""What users asked, as logs tell it: each different question once, with all its labels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.formats.query_log import LoggedLabels, LoggedQuery, masked, read_log
from ragforge.files.formats.row_relevance import Relevance, joined
from ragforge.files.text import shown
from ragforge.stages.generate.gates.repeated_questions import normal_question
from ragforge.stages.visible_text import visible

MOST_CHARS: Final = 1000
"""Of a question; what is longer was pasted in."""


@dataclass(slots=True)
class LoggedQuestion:
    """All rows of one question."""

    spellings: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    labels: list[Relevance] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    query_id: str = ""
    """Of the first labelled row that has one, else of the first row; "" where none has."""
    retrieved: tuple[str, ...] = ()
    """By that row."""

    @property
    def spelling(self) -> str:
        """The most frequent one."""
        return most_frequent(self.spellings)

    @property
    def is_labelled(self) -> bool:
        """Whether a person said what is relevant or what the answer is."""
        return bool(self.labels or self.answers)


def most_frequent(counts: Counter[str]) -> str:
    """Return the most frequent text, of several the first by letters."""
    return min(counts, key=lambda text: (-counts[text], text))


@dataclass(frozen=True, slots=True)
class _KeptQuestion:
    """A question as it is kept, and what it shares with its other spellings."""

    text: str
    normal: str
    n_masked: int
    had_hidden: bool


@lru_cache(maxsize=1 << 16)
def _kept_question(query: str) -> _KeptQuestion:
    """Return a question as it is kept; logs ask the same again and again."""
    shown = visible(query)
    found = masked(shown)
    return _KeptQuestion(found.text, normal_question(found.text), found.n, shown != query)


@dataclass(slots=True)
class LogReader:
    """Reads logs, and counts what it leaves out."""

    takes_clicks: bool
    labels: Mapping[str, LoggedLabels] = field(default_factory=dict)
    """From a file of their own, by the id of a question."""
    texts: dict[str, str] = field(default_factory=dict)
    """Of the ids that were read."""
    shared_ids: set[str] = field(default_factory=set)
    """Ids that several questions have."""
    n_rows: int = 0
    n_passed_over: int = 0
    n_masked: int = 0
    n_clicked: int = 0
    n_hidden: int = 0

    def read(self, paths: Iterable[Path]) -> dict[str, LoggedQuestion]:
        """Return the questions by what is left of them without case, blanks and punctuation."""
        asked: dict[str, LoggedQuestion] = {}
        for path in paths:
            for row in read_log(path):
                self.n_rows += 1
                worded = _kept_question(row.query)
                if not worded.normal or len(worded.text) > MOST_CHARS:
                    self.n_passed_over += 1
                    continue
                self.n_masked += worded.n_masked
                self.n_hidden += worded.had_hidden
                self._take_id(row, worded)
                question = asked.setdefault(worded.normal, LoggedQuestion())
                question.spellings[worded.text] += row.count
                if row.language:
                    question.languages[row.language] += row.count
                self._label(question, row)
        for question in asked.values():
            if question.query_id in self.shared_ids:
                question.query_id = ""
        return asked

    def notes(self) -> Iterator[str]:
        """Yield notes for the user."""
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
        if self.n_hidden:
            yield f"characters that nobody sees were taken out of {self.n_hidden} rows"
        if self.n_clicked:
            yield (
                f"{self.n_clicked} rows with clicks, which are no labels of people; "
                "--clicks relevant takes them for such"
            )

    def _take_id(self, row: LoggedQuery, worded: _KeptQuestion) -> None:
        """Take note of an id that two questions have, such as that of a session: it is no query's.

        Raises:
            DataError: It has labels, and nobody can tell of which question.
        """
        if self.texts.setdefault(row.query_id, worded.normal) == worded.normal:
            return
        self.shared_ids.add(row.query_id)
        if row.query_id in self.labels:
            raise DataError(
                f"{row.where}: query_id: {shown(row.query_id)} is the id of two questions, and has "
                "labels; expected an id a question"
            )

    def _label(self, question: LoggedQuestion, row: LoggedQuery) -> None:
        apart = self.labels.get(row.query_id)
        relevance = row.relevance
        if apart is not None:
            relevance = joined(relevance, apart.relevance, row.where)
        answer = row.expected_answer or (apart.expected_answer if apart is not None else None)
        self._name(question, row, is_labelled=row.is_labelled or apart is not None)
        if row.clicked and self.takes_clicks:
            graded = {*relevance.grades, *relevance.listed}
            clicked = tuple(item for item in row.clicked if item not in graded)
            relevance = replace(relevance, listed=(*relevance.listed, *clicked))
        elif row.clicked:
            self.n_clicked += 1
        if not relevance.is_empty:
            question.labels.append(relevance)
        if answer is not None:
            question.answers[answer] += 1

    def _name(self, one: LoggedQuestion, row: LoggedQuery, *, is_labelled: bool) -> None:
        """Keep id and ranking of the first row that is labelled, else of the first one."""
        if row.query_id and (not one.query_id or (is_labelled and not one.is_labelled)):
            one.query_id, one.retrieved = row.query_id, row.retrieved
        elif not one.retrieved:
            one.retrieved = row.retrieved
