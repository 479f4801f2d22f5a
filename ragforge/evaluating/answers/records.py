"""The records of answer systems, as the report takes them from a dataset."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeVar

from ragforge.deferred import dataclass
from ragforge.evaluating.judgments import failed_by_name
from ragforge.evaluating.runs import Qrels
from ragforge.evaluating.selection import Part
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.query_selection import ChosenQueries
from ragforge.measures.strata import Design
from ragforge.records import Answer, AnswerGrade, Failure, Query
from ragforge.records.judgments import expectation_digest, question_digest

Answered = TypeVar("Answered", Answer, AnswerGrade)

LOWER_IS_BETTER: Final = frozenset({"hallucination"})
"""Measures of answers."""
_REFUSALS: Final = ("abstention", "empty answer")
_NOT_ANSWERABLE: Final = "the question is not answerable"
_OF_WORDS: Final = "token F1 "
"""How the offline baseline explains where a refusal is right, and where it compares words."""


@dataclass(frozen=True, slots=True)
class SystemRecords:
    """The records of one answer system, by query."""

    system: str
    answers: Mapping[str, Answer]
    grades: Mapping[str, AnswerGrade]
    failed: frozenset[str]
    """Queries for which no graded answer could be had."""
    gradable: frozenset[str]
    """Queries of the set that have an expected answer or are meant to have none."""
    queries: Mapping[str, Query] = field(default_factory=dict)
    """What is known about the queries, to part them by."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Chunk id to document, of the queries' source chunks."""
    chosen: ChosenQueries | None = None
    """The part of the set's queries that these are of; None where that is all."""
    design: Design | None = None
    """What the queries are a sample of; None where they are all there is."""
    outdated: frozenset[str] = frozenset()
    """Queries that ask or expect something else than what was answered, or graded by: what there
    was for them is left out."""
    edited: frozenset[str] = frozenset()
    """Queries whose answer, or its context, is another than the one that was graded: the grade is
    left out."""

    @property
    def outdated_text(self) -> str:
        """What is left out as it was edited, and what mends that; "" where nothing is."""
        return ". ".join(filter(None, [self._of_queries_text, self._of_answers_text]))

    @property
    def _of_queries_text(self) -> str:
        if not self.outdated:
            return ""
        n = len(self.outdated)
        asks = "1 query asks or expects" if n == 1 else f"{n:,} queries ask or expect"
        count = "counts" if n == 1 else "count"
        return (
            f"{self.system}: {asks} something else than what was answered or graded by, and "
            f"{count} as not graded; `ragforge answer` asks and grades again"
        )

    @property
    def _of_answers_text(self) -> str:
        if not self.edited:
            return ""
        n = len(self.edited)
        are = (
            "1 answer, or its context, is another"
            if n == 1
            else (f"{n:,} answers, or their contexts, are others")
        )
        count = "counts" if n == 1 else "count"
        return (
            f"{self.system}: {are} than what was graded, and {count} as not graded; "
            "`ragforge answer` grades again"
        )

    @property
    def unanswered(self) -> frozenset[str]:
        """The queries that could be graded, and to which the system gave no answer at all."""
        return self.gradable - self.answers.keys() - self.grades.keys() - self.failed

    @property
    def graded(self) -> list[AnswerGrade]:
        """The grades that have a verdict."""
        return [grade for grade in self.grades.values() if grade.verdict is not None]

    @property
    def without_grade(self) -> frozenset[str]:
        """Queries whose answer could not be had or graded."""
        failed = {query_id for query_id, grade in self.grades.items() if grade.verdict is None}
        return frozenset(failed | (self.failed - self.grades.keys()))

    @property
    def ungraded(self) -> frozenset[str]:
        """Queries whose answer nobody tried to grade yet."""
        return frozenset(self.answers.keys() - self.grades.keys() - self.failed)

    @property
    def names_contexts(self) -> bool:
        """Whether every graded answer says which chunks it was made from."""
        answers = self.answers
        return all(
            item.query_id in answers and answers[item.query_id].chunk_ids for item in self.graded
        )

    @property
    def part(self) -> Part | None:
        """How to tell of the queries that these are of; None where that is all."""
        if self.chosen is None:
            return None
        measured = frozenset(grade.query_id for grade in self.graded)
        return Part(self.chosen, self.design, measured)

    def of_part(self, chosen: ChosenQueries | None) -> "SystemRecords":
        """Return the records of a part of the queries."""
        if chosen is None:
            return self
        counting = self.gradable | self.grades.keys() | self.failed
        design = chosen.design.within(counting) if chosen.design else None
        part = replace(self.only(chosen.query_ids), chosen=chosen)
        return replace(part, design=design)

    def only(self, query_ids: Iterable[str]) -> "SystemRecords":
        """Return the records of some queries; of a sample, drawn or not, all that are meant."""
        wanted = sorted(set(query_ids))
        return replace(
            self,
            design=self.design.within(wanted) if self.design else None,
            answers={key: self.answers[key] for key in wanted if key in self.answers},
            grades={key: self.grades[key] for key in wanted if key in self.grades},
            failed=self.failed.intersection(wanted),
            gradable=self.gradable.intersection(wanted),
            outdated=self.outdated.intersection(wanted),
            edited=self.edited.intersection(wanted),
        )


@dataclass(frozen=True, slots=True)
class GradedContext:
    """What an answer was made from, and the grades of that and of what it lacks."""

    context: tuple[str, ...]
    grades: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Relevance:
    """What is known about relevance, to hold contexts against."""

    grades: Qrels
    threshold: int
    rankings: Mapping[str, Mapping[str, Sequence[str]]]
    """Chunk ids, best first, by run and query."""
    is_complete: bool = False
    """Whether what has no label is not relevant."""
    by_document: frozenset[str] = frozenset()
    """Queries whose grades and rankings are those of documents."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Chunk id to document, of what contexts are made of and what is graded beside them."""
    whole: frozenset[str] = frozenset()
    """Ids in contexts that are of documents."""
    unknown: frozenset[str] = frozenset()
    """Names in contexts of which the set knows nothing: no labels speak of them."""

    def graded_context(self, query_id: str, context: Sequence[str]) -> "GradedContext":
        """Return a context with the grades that it is read by.

        By documents where the labels of the query, or the context, name documents.
        """
        grades: Mapping[str, int | None] = self.grades.get(query_id, {})
        if query_id in self.by_document or not self.whole.isdisjoint(context):
            context = tuple(dict.fromkeys(self.documents.get(name, name) for name in context))
            grades = self._folded(grades)
        if self.is_complete:
            unlisted = (name for name in context if name not in self.unknown)
            grades = {**dict.fromkeys(unlisted, 0), **grades}
        return GradedContext(tuple(context), grades)

    def _folded(self, grades: Mapping[str, int | None]) -> dict[str, int | None]:
        """Return the highest grade of each document; None where no chunk of it has one."""
        folded: dict[str, int | None] = {}
        for name, grade in grades.items():
            doc_id = self.documents.get(name, name)
            known = [each for each in (grade, folded.get(doc_id)) if each is not None]
            folded[doc_id] = max(known, default=None)
        return folded


def system_names(
    dataset: Dataset, failures: Iterable[Failure], queries: Collection[str]
) -> list[str]:
    """Return the names of the systems that answered, or failed to; sorted.

    Args:
        dataset: Where they are.
        failures: Those of the dataset.
        queries: Ids of those on which a failure counts.
    """
    failed = failed_by_name(failures, "ask", "answer")
    names = {system for system, query_ids in failed.items() if query_ids & set(queries)}
    return sorted(names.union(dataset.answer_names(), dataset.answer_grade_names()))


def read_systems(
    dataset: Dataset,
    failures: Sequence[Failure],
    queries: Mapping[str, Query],
    names: Iterable[str] | None = None,
) -> list[SystemRecords]:
    """Return the records of systems that answered, or failed to, in the order of their names.

    Args:
        dataset: Where they are read from.
        failures: Those of the dataset.
        queries: All accepted queries, by id. The records are of the part that is chosen, or that a
            system answered when one was.
        names: Of which systems, of `system_names`; all of these where None.

    Raises:
        DataError: One was not made for the part that is chosen, or a file does not hold to its
            format.
    """
    with_answers, graded = set(dataset.answer_names()), set(dataset.answer_grade_names())
    failed = {
        system: query_ids & queries.keys()
        for system, query_ids in failed_by_name(failures, "ask", "answer").items()
        if query_ids & queries.keys()
    }
    gradable = frozenset(
        query.query_id
        for query in queries.values()
        if query.expected_answer or not query.answerable
    )
    systems = []
    there = system_names(dataset, failures, queries) if names is None else names
    for system in sorted(set(there)):
        part = dataset.chosen_of_answers(system)
        answers = dataset.answers(system) if system in with_answers else []
        grades = dataset.answer_grades(system) if system in graded else []
        to_others = {item.query_id for item in answers if is_outdated(item, queries)}
        by_others = to_others | {
            item.query_id
            for item in grades
            if item.query_id in queries and is_of_other(item, queries[item.query_id])
        }
        of_others = of_other_answers(grades, answers) - by_others
        systems.append(
            SystemRecords(
                system,
                _by_query(answers, queries.keys() - to_others),
                _by_query(grades, queries.keys() - by_others - of_others),
                frozenset(failed.get(system, ())),
                gradable,
                queries,
                outdated=frozenset(by_others),
                edited=frozenset(of_others & queries.keys()),
            ).of_part(part)
        )
    return systems


def is_outdated(answer: Answer, queries: Mapping[str, Query]) -> bool:
    """Whether an answer is to another question than its query asks now."""
    query = queries.get(answer.query_id)
    return query is not None and answer.query_sha256 not in ("", question_digest(query.asked))


def is_of_other(grade: AnswerGrade, query: Query) -> bool:
    """Whether a grade is by another question, expected answer or facts than its query has now.

    What it does not say it is not held against, but for what it shows.
    """
    if grade.facts_sha256 not in ("", facts_digest(query)):
        return True
    if grade.expected_sha256 and grade.answered_sha256:
        return grade.expected_sha256 != expectation_of(query)
    # Grades of before: their digest does not say whether the question was answerable.
    expected = expectation_digest(query.asked, query.expected_answer)
    was_answerable = _shown_answerable(grade)
    return grade.expected_sha256 not in ("", expected) or (
        was_answerable is not None and was_answerable != query.answerable
    )


def _shown_answerable(grade: AnswerGrade) -> bool | None:
    """Whether the question was answerable when a grade was given; None where nothing shows it."""
    if grade.rule in _REFUSALS:
        return grade.verdict != "correct"
    if grade.rule or grade.facts or grade.explanation.startswith(_OF_WORDS):
        return True
    return False if grade.explanation.startswith(_NOT_ANSWERABLE) else None


def of_other_answers(grades: Iterable[AnswerGrade], answers: Iterable[Answer]) -> set[str]:
    """Return the queries whose answer is another than the one that was graded.

    Grades that do not say of which they are, and those of a system without answers, count.
    """
    now = {answer.query_id: answer_digest(answer) for answer in answers}
    if not now:
        return set()
    return {
        grade.query_id
        for grade in grades
        if grade.answered_sha256 not in ("", now.get(grade.query_id, ""))
    }


def answer_digest(answer: Answer) -> str:
    """Return what tells an answer, with the context that it was made from, from others."""
    of = (answer.answer, str(answer.n_unknown_passages), *answer.chunk_ids)
    return question_digest("\0".join(of))


def context_digest(texts: Iterable[str]) -> str:
    """Return what tells the texts of a context from others, in any order; "" for none."""
    digests = {question_digest(" ".join(text.split())) for text in texts}
    return question_digest("\0".join(sorted(digests))) if digests else ""


def expectation_of(query: Query) -> str:
    """Return what tells what an answer is graded by: the question, and what is expected."""
    return expectation_digest(query.asked, query.expected_answer, answerable=query.answerable)


def facts_digest(query: Query) -> str:
    """Return what tells the facts of a query from others."""
    facts = "\0".join(f"{of.fact_id}\0{of.text}\0{of.importance}" for of in query.facts)
    return question_digest(facts)


def _by_query(records: Iterable[Answered], wanted: Collection[str]) -> dict[str, Answered]:
    return {item.query_id: item for item in records if item.query_id in wanted}


def source_chunks(queries: Iterable[Query]) -> set[str]:
    """Return the chunks whose documents have to be looked up, as no evidence names them."""
    return {
        chunk_id for query in queries if not query.evidence for chunk_id in query.source_chunk_ids
    }


def documents_of(query: Query, documents: Mapping[str, str]) -> tuple[str, ...]:
    """Return the documents that a query's answer is in, by its evidence or its source chunks."""
    named = [quote.doc_id for quote in query.evidence]
    looked_up = [documents[item] for item in query.source_chunk_ids if item in documents]
    return tuple(sorted(set(named or looked_up)))
