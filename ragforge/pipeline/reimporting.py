"""Importing over what is there: what people settled about a query stays with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ragforge.records import Judgment, Query

_SETTLED: Final = (
    *("split", "status", "revision", "gates", "measured", "reviewed", "pinned", "history"),
    "standalone",
)
"""What a file of questions and answers does not tell."""


@dataclass(frozen=True, slots=True)
class Reimported:
    """Imported queries, after what they replace was taken into account."""

    queries: list[Query]
    reworded: set[str]
    """Queries that ask something else than before."""
    held: list[str]
    """Queries that a person pinned or edited, and that the file has otherwise: left as they are."""


def reimported(new: Iterable[Query], before: Mapping[str, Query]) -> Reimported:
    """Return imported queries with what is known about those they replace.

    A query whose wording is the same keeps its split, status, revision, checks, review and pin,
    unless the file brings its own. Another wording is another revision in the same split, which
    nobody has reviewed. A query that a person pinned or edited in review stays word by word.
    """
    queries: list[Query] = []
    reworded: set[str] = set()
    held: list[str] = []
    for query in new:
        old = before.get(query.query_id)
        if old is None:
            queries.append(query)
        elif _wording(query) == _wording(old):
            queries.append(_settled(query, old))
        elif _is_held(old):
            held.append(old.query_id)
            queries.append(old)
        else:
            revision = max(query.revision, old.revision + 1)
            update = {"split": query.split or old.split, "revision": revision}
            queries.append(query.model_copy(update=update))
            if query.asked != old.asked:
                reworded.add(query.query_id)
    return Reimported(queries, reworded, held)


def is_of_former_wording(judgment: Judgment, reworded: set[str]) -> bool:
    """Whether a grade was given by a model, for a question that is worded otherwise now."""
    return judgment.query_id in reworded and judgment.source in ("judge", "carried")


def _settled(query: Query, old: Query) -> Query:
    blank = Query(query_id="q", query="q")
    update = {
        name: getattr(old, name)
        for name in _SETTLED
        if getattr(query, name) == getattr(blank, name)
    }
    return query.model_copy(update=update)


def _wording(query: Query) -> tuple[str, str]:
    return (query.query, query.expected_answer or "")


def _is_held(old: Query) -> bool:
    edited = old.reviewed is not None and old.reviewed.decision == "edit"
    return edited or old.pinned is not None
