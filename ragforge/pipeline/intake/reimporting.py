"""Importing over what is there: what people settled about a query stays with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ragforge.records import Judgment, Query

_SETTLED: Final = (
    *("split", "split_before", "status", "revision", "gates", "measured", "reviewed", "pinned"),
    *("history", "standalone", "drawn"),
)
"""What a file of questions and answers does not tell."""
_MADE_HERE: Final = frozenset(
    ("lineage", "origin", "source_chunk_ids", "facts", "facts_by", "facts_of")
)
"""What follows from the rest, or from the import."""


@dataclass(frozen=True, slots=True)
class Reimported:
    """Imported queries, after what is there was taken into account.

    Args:
        queries: What is to be written.
        reworded: Ids of those of them that ask something else than before.
        held: Ids of queries that people approved, edited or pinned: they stay as they are.
        retired: Ids of queries that people rejected, or that were taken out: they stay out.
        differing: Ids of held queries that the file has otherwise.
    """

    queries: list[Query]
    reworded: set[str]
    held: set[str]
    retired: set[str]
    differing: set[str]

    @property
    def fixed(self) -> set[str]:
        """Queries that the file changes nothing of, nor of their grades."""
        return self.held | self.retired


def reimported(new: Iterable[Query], before: Mapping[str, Query]) -> Reimported:
    """Return imported queries with what is known about those they replace.

    A query that a person approved, edited or pinned stays as it is, and a retired one stays so. Of
    the others, one whose wording is the same keeps its split, status, revision and checks, unless
    the file brings its own; another wording is another revision in the same split.
    """
    result = Reimported([], set(), set(), set(), set())
    for query in new:
        old = before.get(query.query_id)
        if old is None:
            result.queries.append(query)
        elif old.status == "retired":
            result.retired.add(old.query_id)
        elif old.reviewed is not None or old.pinned is not None:
            result.held.add(old.query_id)
            if _told(_settled(query, old)) != _told(old):
                result.differing.add(old.query_id)
        elif _wording(query) == _wording(old):
            result.queries.append(_settled(query, old))
        else:
            result.queries.append(_next_revision(query, old))
            if query.asked != old.asked:
                result.reworded.add(query.query_id)
    return result


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
    if query.split is not None:
        update.pop("split_before", None)
    return query.model_copy(update=update)


def _next_revision(query: Query, old: Query) -> Query:
    """Return a query of another wording, in the split of the old one unless the file names one."""
    update: dict[str, object] = {"revision": max(query.revision, old.revision + 1)}
    if query.split is None:
        update |= {"split": old.split, "split_before": old.split_before}
    return query.model_copy(update=update)


def _told(query: Query) -> Query:
    """Return a query with what a file can tell of it, and no more."""
    blank = Query(query_id="q", query="q")
    return query.model_copy(update={name: getattr(blank, name) for name in _MADE_HERE})


def _wording(query: Query) -> tuple[str, str]:
    return (query.query, query.expected_answer or "")
