"""Which query of a set a file means: by its id, else by its words."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from ragforge.errors import DataError, UsageError
from ragforge.files.formats.named_texts import NamedText
from ragforge.files.text import shown
from ragforge.records import Query
from ragforge.stages.generate.gates.repeated_questions import normal_question
from ragforge.stages.generate.truth import query_id

_LANGUAGE: Final = "en"
"""In which the words of a question make its id."""
_EXAMPLES: Final = 3


class QueryNames:
    """Finds the queries that a file means: by their ids, else by their words.

    Ids are exact, as trec_eval takes them. A query of which no more than its id is known has no
    words: only its id names it.
    """

    def __init__(self, queries: Iterable[Query]) -> None:
        self._by_id = {query.query_id: query for query in queries}
        self._asked_by: dict[str, Query] = {}
        """Queries by the questions that were found to be theirs."""
        self._of_several: dict[str, list[str]] = {}
        """Ids of queries by the question that they all ask."""

    @cached_property
    def _by_words(self) -> Mapping[str, Sequence[Query]]:
        found: dict[str, list[Query]] = {}
        for query in self._by_id.values():
            if query.query != query.query_id:
                found.setdefault(normal_question(query.query), []).append(query)
        return found

    def id_of(self, question: str) -> str:
        """Return the id of the query that asks a question, accepted ones first; a new one for none.

        An id that is made of the words goes before others.
        """
        made = query_id(question, _LANGUAGE)
        if made in self._by_id:
            return made
        words = normal_question(question)
        called = self._by_id.get(question)
        asking = [called] if called else self._by_words.get(words, []) if words else []
        asking = [query for query in asking if query.status == "accepted"] or asking
        if len(asking) > 1:
            self._of_several[question] = [query.query_id for query in asking]
        if len(asking) != 1:
            return made
        self._asked_by[question] = asking[0]
        return asking[0].query_id

    def as_there(self, query: Query) -> Query:
        """Return a query that was found by its words in those of the set, which may be spelt else.

        Who names a question by its words does not put it in other ones.
        """
        old = self._asked_by.get(query.query)
        if old is None or old.query_id != query.query_id:
            return query
        return query.model_copy(update={"query": old.query})

    def refuse_several(self, where: str) -> None:
        """Refuse a file in which a question may be any of several queries.

        Raises:
            DataError: It is so: a new query would ask the same once more.
        """
        for question, query_ids in self._of_several.items():
            raise DataError(
                f"{where}: {shown(question)} is asked by several queries of the set: "
                f"{', '.join(map(shown, query_ids[:_EXAMPLES]))}; name the one that is meant in a "
                "column query_id; nothing was taken in"
            )

    def refuse_other_words(
        self, where: str, found: Mapping[str, Query | None], questions: Iterable[NamedText]
    ) -> None:
        """Refuse a file in which the words beside an id are those of another query of the set.

        Args:
            where: Which file it is, for the message.
            found: The queries by the names of the file.
            questions: What the file says beside these.

        Raises:
            UsageError: It is so.
        """
        told: dict[str, str] = {}
        for named in questions:
            query, words = found.get(named.name), normal_question(named.text)
            if query is None or words in map(normal_question, (query.query, query.asked)):
                continue
            others = [one.query_id for one in self._by_words.get(words, ())]
            if others and query.query_id not in others:
                told.setdefault(
                    named.name,
                    f"{named.where}: {shown(named.name)} asks {shown(query.query)} in the set, and "
                    f"{shown(named.text)} is {shown(others[0])} there",
                )
        if told:
            some = "; ".join(list(told.values())[:_EXAMPLES])
            n = "1 id is" if len(told) == 1 else f"{len(told):,} ids are"
            raise UsageError(
                f"{where}: {n} of another question than the words beside: {some}. Mend the ids or "
                "the words, or leave one of them out; nothing was taken in"
            )

    def find(self, names: Iterable[str]) -> dict[str, Query | None]:
        """Return the query of each name, in their order; None where a name is of none.

        Words name a query only where they are those of one alone, and no name is its id.
        """
        found = {name: self._by_id.get(name) for name in names}
        named = {query.query_id for query in found.values() if query is not None}
        for name in [name for name, query in found.items() if query is None]:
            asked = self._by_words.get(normal_question(name), [])
            if len(asked) == 1 and asked[0].query_id not in named:
                found[name] = asked[0]
                named.add(asked[0].query_id)
        return found
