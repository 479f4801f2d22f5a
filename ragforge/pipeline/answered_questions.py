"""Which queries of a dataset answers are of that name them by their question alone."""

from collections.abc import Iterable, Mapping
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

    An id goes before the question, unless it is just called id and no query has it: then it is the
    number of the row. Questions are the same that differ in case, blanks and punctuation alone.
    Where several queries ask the same, rows go to them in the order of the ids.

    Args:
        rows: Answers, some or all without an id.
        queries: Those of the dataset.
        observer: Told of questions that no query asks, and of those that several ask.

    Raises:
        DataError: A question is answered more often than it is asked, or is that of another query
            than the id.
    """
    ids: dict[str, list[str]] = {}
    known: dict[str, str] = {}
    for query in sorted(queries, key=lambda query: query.query_id):
        known[query.query_id] = query.query
        ids.setdefault(normal_question(query.query), []).append(query.query_id)
    named: list[AnswerRow] = []
    unasked: list[str] = []
    repeated: dict[str, str] = {}
    taken = set[str]()
    for row in rows:
        asked_by = _asked_by(row, ids, known)
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


def _asked_by(row: AnswerRow, ids: Mapping[str, list[str]], known: Mapping[str, str]) -> list[str]:
    """Return the ids of the queries that a row may be of."""
    if not row.query_id:
        return ids.get(normal_question(row.question), [])
    same = ids.get(normal_question(row.asked), []) if row.asked else []
    if not same or row.query_id in same:
        return [row.query_id]
    if row.query_id not in known and row.has_plain_id:
        return same
    asks = f"asks {shown(known[row.query_id])}" if row.query_id in known else "is not in the set"
    raise DataError(
        f"{row.where}: query {shown(row.query_id)} {asks}, and the question of the row, "
        f"{shown(row.asked)}, is that of {shown(same[0])}; leave the id or the question out"
    )


def _tell(questions: list[str], what: str, observer: Observer) -> None:
    if questions:
        examples = ", ".join(shown(question) for question in questions[:_EXAMPLES])
        message = f"answers by question: {what} {len(questions)} of them: {examples}"
        observer(Event("note", message=message))
