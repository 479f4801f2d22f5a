"""Which queries of a dataset answers are of that name them by their question alone."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ragforge.errors import DataError
from ragforge.files.answers import AnswerRow
from ragforge.files.values import shown
from ragforge.observe import Event, Observer
from ragforge.records import Query
from ragforge.stages.generate.gates.taken import normal_question

_EXAMPLES: Final = 3


def with_query_ids(
    rows: Iterable[AnswerRow], queries: Iterable[Query], observer: Observer
) -> list[AnswerRow]:
    """Return the rows with the ids of their queries; those of no query are left out and told.

    Questions are the same that differ in case, blanks and punctuation alone. Where several queries
    ask the same, rows go to them in the order of the ids.

    Args:
        rows: Answers, some or all without an id.
        queries: Those of the dataset.
        observer: Told of questions that no query asks, and of those that several ask.

    Raises:
        DataError: A question is answered more often than it is asked.
    """
    ids: dict[str, list[str]] = {}
    for query in sorted(queries, key=lambda query: query.query_id):
        ids.setdefault(normal_question(query.query), []).append(query.query_id)
    named: list[AnswerRow] = []
    unasked: list[str] = []
    repeated: dict[str, str] = {}
    taken = set[str]()
    for row in rows:
        asked_by = [row.query_id] if row.query_id else ids.get(normal_question(row.question), [])
        if not asked_by:
            unasked.append(row.question)
            continue
        query_id = next((one for one in asked_by if one not in taken), None)
        if query_id is None:
            raise DataError(f"{row.where}: {shown(row.question or row.query_id)} comes twice")
        if len(asked_by) > 1:
            repeated.setdefault(asked_by[0], row.question)
        taken.add(query_id)
        named.append(replace(row, query_id=query_id))
    _tell(unasked, "no query of the set asks", observer)
    _tell(list(repeated.values()), "several queries of the set ask", observer)
    return named


def _tell(questions: list[str], what: str, observer: Observer) -> None:
    if questions:
        examples = ", ".join(shown(question) for question in questions[:_EXAMPLES])
        message = f"answers by question: {what} {len(questions)} of them: {examples}"
        observer(Event("note", message=message))
