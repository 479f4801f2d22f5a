"""What becomes of the queries of a set when its corpus changed.

Where all quotes of a query stand verbatim in surroundings that did not change, no call is needed.
Else a model says whether the documents still answer it: first around its quotes, then wherever a
search leads. Nobody's silence is an answer: what could not be checked is quarantined, and tried
again.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from ragforge.config import Settings
from ragforge.deferred import dataclass
from ragforge.records import Query, QueryType
from ragforge.refresh.queries.decisions import (
    Decision,
    QueryHistory,
    decide_query,
    decide_return,
    is_from_person,
)
from ragforge.refresh.queries.passages import CorpusNow
from ragforge.refresh.queries.rechecking import QueryDraft, RecheckedQuery, Recheckers, Rechecking
from ragforge.refresh.queries.updates import QueryUpdate, UpdatedQueries, UpdatedQuery
from ragforge.refresh.quotes.locations import LocatedQuery

_NOT_CONVERTED: Final[frozenset[QueryType]] = frozenset({"keyword", "false_premise", "ambiguous"})
"""Types whose questions do not become ones to abstain from: nobody asks anything with search words
alone, and what a question takes for granted, or may mean, is unknown where no document tells."""
_NOTHING_FOUND: Final = "no passage answers it any more"
_UNPLACED: Final = "an answer was found, and not which step of it the new quote proves"
_ROUNDING: Final = 1e-9


def plan_queries(located_queries: Iterable[LocatedQuery], history: QueryHistory) -> dict[str, int]:
    """Return how many queries will need what.

    Args:
        located_queries: As for `update_queries`, those of queries without a quote among them.
        history: Likewise.

    Returns:
        kept: nothing; one that is out of the set, and stays so, is not counted. remapped: new
        places, no call. revived: they are back, no call. to_verify: a call each, and a second one
        where the text around their quotes does not answer them.
        to_search: one or two calls each, and one for each further step that is gone.
        broken_pins: a person's decision.
    """
    counts: dict[Decision, int] = dict.fromkeys(
        ("kept", "remapped", "revived", "to_verify", "to_search", "broken_pins"), 0
    )
    for located in located_queries:
        decision = decide_return(located, history) or decide_query(located, history)
        counts[decision] += decision != "kept" or located.query.status == "accepted"
    return {str(decision): n for decision, n in counts.items()}


async def update_queries(
    located_queries: Sequence[LocatedQuery],
    others: Sequence[Query],
    corpus: CorpusNow,
    recheckers: Recheckers,
    settings: Settings,
    history: QueryHistory,
) -> UpdatedQueries:
    """Return all queries as the next version has them; nothing is written.

    Args:
        located_queries: Where the quotes of each query stand now, those of retired and
            quarantined ones among them.
        others: Queries without a quote; they stay as they are, unless an answer that they had is
            back.
        corpus: As it is now.
        recheckers: Checks again.
        settings: The seed, and how many queries may be unanswerable.
        history: The version that is made, and what earlier ones did.

    Raises:
        EndpointError, BudgetError: Nothing can be asked any more.
        DataError: The corpus cannot be read.
    """
    updating = _Updating(Rechecking(corpus, recheckers), settings, history)
    every = [*located_queries, *(LocatedQuery(query, ()) for query in others)]
    rest = await updating.bring_back(every)
    to_check = [located for located in rest if updating.leave(located)]
    await updating.check(to_check)
    return updating.result()


@dataclass(slots=True)
class _Updating:
    """Queries on their way into the next version."""

    rechecking: Rechecking
    settings: Settings
    history: QueryHistory
    _items: dict[str, UpdatedQuery] = field(default_factory=dict)
    _result: UpdatedQueries = field(default_factory=UpdatedQueries)

    def take(self, items: Iterable[UpdatedQuery]) -> None:
        """Put items into the version."""
        self._items |= {item.query.query_id: item for item in items}

    async def bring_back(self, located_queries: Sequence[LocatedQuery]) -> list[LocatedQuery]:
        """Settle queries whose earlier revision stands again; return the others."""
        decisions = {
            located.query.query_id: decide_return(located, self.history)
            for located in located_queries
        }
        to_check = [one for one in located_queries if decisions[one.query.query_id] == "to_verify"]
        earlier = self.history.earlier
        done = await self.rechecking.check([earlier[one.query.query_id] for one in to_check])
        drafts: dict[str, QueryDraft | None] = {
            one.located.query.query_id: one.draft
            for one in done
            if one.outcome == "answered" and not one.draft.answer
        }
        drafts |= {name: None for name, decision in decisions.items() if decision == "revived"}
        self.take(
            self._update(one).restored(earlier[name], drafts[name])
            for one in located_queries
            if (name := one.query.query_id) in drafts
        )
        self._take_failures(to_check)
        return [one for one in located_queries if one.query.query_id not in self._items]

    def leave(self, located: LocatedQuery) -> bool:
        """Settle a query that needs no call; say whether it has to be checked."""
        update = self._update(located)
        match decide_query(located, self.history):
            case "to_verify" | "to_search":
                return True
            case "broken_pins":
                self._result.broken_pins.append(update.broken_pin())
                self.take([update.as_it_was()])
            case "revived":
                self.take([update.revived()])
            case "remapped":
                self.take([update.placed()])
            case "kept":
                self.take([update.as_it_was()])
        return False

    async def check(self, located_queries: Sequence[LocatedQuery]) -> None:
        """Have queries checked, and settle them."""
        done = await self.rechecking.check(located_queries)
        self._take_failures(located_queries)
        lost = [one for one in done if self._is_lost(one)]
        named = {one.located.query.query_id for one in lost}
        self.take(self._updated(one) for one in done if one.located.query.query_id not in named)
        await self._convert(lost)

    def result(self) -> UpdatedQueries:
        """Return the version's queries."""
        result = self._result
        result.items = [self._items[query_id] for query_id in sorted(self._items)]
        result.failures = sorted(self.rechecking.failures.values(), key=lambda one: one.key)
        result.broken_pins.sort(key=lambda change: change.query_id)
        result.n_calls = self.rechecking.calls.total()
        return result

    def _update(self, located: LocatedQuery) -> QueryUpdate:
        name = located.query.query_id
        reasons = self.history.cleared.get(name, ())
        return QueryUpdate(located, self.history.version, self.rechecking.calls[name], reasons)

    def _updated(self, checked: RecheckedQuery) -> UpdatedQuery:
        """Return what a query becomes that is not to be converted."""
        update, draft = self._update(checked.located), checked.draft
        was_retired = checked.located.query.status == "retired"
        is_to_decide = bool(draft.answer) and is_from_person(checked.located.query)
        if checked.outcome == "answered" and not ((was_retired and draft.answer) or is_to_decide):
            return update.answered(draft)
        told = f"another answer was found: {draft.answer}" if draft.answer else _UNPLACED
        if was_retired:
            is_none = checked.outcome not in ("answered", "open")
            return update.still_retired(_NOTHING_FOUND if is_none else told)
        if checked.outcome in ("answered", "open"):
            return update.quarantined(told, checked.by)
        if checked.is_baseline and checked.located.state != "gone":
            why = "the offline baseline does not find the expected answer"
            return update.unchecked(why, why)
        return update.retired(_NOTHING_FOUND, checked.by)

    def _is_lost(self, checked: RecheckedQuery) -> bool:
        """Whether a query has no answer any more, and may ask for that."""
        query = checked.located.query
        return (
            checked.outcome == "none"
            and self.rechecking.recheckers.find is not None
            and query.status != "retired"
            and query.expected_behaviour == "answer"
            and query.type not in _NOT_CONVERTED
            and not is_from_person(query)
        )

    def _take_failures(self, located_queries: Iterable[LocatedQuery]) -> None:
        for located in located_queries:
            failure = self.rechecking.failures.get(located.query.query_id)
            if failure is None:
                continue
            update = self._update(located)
            if located.query.status == "retired":
                self.take([update.still_retired(failure.kind)])
            else:
                self.take([update.unchecked(failure.kind, f"{failure.kind}: {failure.message}")])

    async def _convert(self, lost: Sequence[RecheckedQuery]) -> None:
        """Let queries without an answer ask for that, as far as there is room; retire the rest.

        Who comes first is drawn by the seed. One whose answer is found after all makes room.
        """
        waiting = sorted(lost, key=self._place)
        while waiting:
            room = self._room()
            now, waiting = waiting[:room], waiting[room:]
            if not now:
                self.take(self._updated(one) for one in waiting)
                return
            located_queries = [one.located for one in now]
            done = await self.rechecking.look_for(located_queries)
            self._take_failures(located_queries)
            self.take(self._converted(one) for one in done)

    def _converted(self, checked: RecheckedQuery) -> UpdatedQuery:
        if checked.outcome != "absent":
            return self._updated(checked)
        assert checked.by is not None
        near = [shown.chunk.chunk_id for shown in self.rechecking.near(checked.located)]
        return self._update(checked.located).converted(near, checked.by)

    def _room(self) -> int:
        """Return how many more queries may be unanswerable; each of them counts in the set."""
        most = self.settings.refresh.unanswerable_most
        accepted = [item.query for item in self._items.values() if item.query.status == "accepted"]
        there = sum(not query.answerable for query in accepted)
        if most >= 1:
            return len(accepted) + len(self.rechecking.calls) + 1
        # The largest n with (there + n) / (accepted + n) <= most.
        return max(0, int((most * len(accepted) - there) / (1 - most) + _ROUNDING))

    def _place(self, checked: RecheckedQuery) -> bytes:
        drawn = f"convert\n{self.settings.model.seed}\n{checked.located.query.query_id}"
        return hashlib.sha256(drawn.encode("utf-8", "surrogatepass")).digest()
