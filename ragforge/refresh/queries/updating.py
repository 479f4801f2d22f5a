"""What becomes of the queries of a set when its corpus changed.

Where all quotes of a query stand verbatim in surroundings that did not change, no call is needed.
Else a model says whether the documents still answer it: first around its quotes, then wherever a
search leads. Nobody's silence is an answer: what could not be checked is quarantined, and tried
again.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ragforge.config import Settings
from ragforge.records import Query, QueryType
from ragforge.refresh.queries.decisions import (
    Ledger,
    Way,
    decide_item,
    decide_return,
    is_from_person,
)
from ragforge.refresh.queries.passages import CorpusNow
from ragforge.refresh.queries.rechecking import Checked, Draft, Recheckers, Rechecking
from ragforge.refresh.queries.updates import Changing, SettledItem, SettledSet
from ragforge.refresh.quotes.locations import ItemSight

_NOT_CONVERTED: Final[frozenset[QueryType]] = frozenset({"keyword", "false_premise", "ambiguous"})
"""Types whose questions do not become ones to abstain from: nobody asks anything with search words
alone, and what a question takes for granted, or may mean, is unknown where no document tells."""
_NOTHING_FOUND: Final = "no passage answers it any more"
_UNPLACED: Final = "an answer was found, and not which step of it the new quote proves"
_ROUNDING: Final = 1e-9


def plan_items(sights: Iterable[ItemSight], ledger: Ledger) -> dict[str, int]:
    """Return how many queries will need what.

    Args:
        sights: As for `settle_items`, those of queries without a quote among them.
        ledger: Likewise.

    Returns:
        kept: nothing; one that is out of the set, and stays so, is not counted. remapped: new
        places, no call. revived: they are back, no call. to_verify: a call each, and a second one
        where the text around their quotes does not answer them.
        to_search: one or two calls each, and one for each further step that is gone.
        broken_pins: a person's decision.
    """
    counts: dict[Way, int] = dict.fromkeys(
        ("kept", "remapped", "revived", "to_verify", "to_search", "broken_pins"), 0
    )
    for sight in sights:
        way = decide_return(sight, ledger) or decide_item(sight, ledger)
        counts[way] += way != "kept" or sight.query.status == "accepted"
    return {str(way): n for way, n in counts.items()}


async def settle_items(
    sights: Sequence[ItemSight],
    others: Sequence[Query],
    corpus: CorpusNow,
    who: Recheckers,
    settings: Settings,
    ledger: Ledger,
) -> SettledSet:
    """Return all queries as the next version has them; nothing is written.

    Args:
        sights: Where the quotes of each query stand now, those of retired and quarantined ones
            among them.
        others: Queries without a quote; they stay as they are, unless an answer that they had is
            back.
        corpus: As it is now.
        who: Checks again.
        settings: The seed, and how many queries may be unanswerable.
        ledger: The version that is made, and what earlier ones did.

    Raises:
        EndpointError, BudgetError: Nothing can be asked any more.
        DataError: The corpus cannot be read.
    """
    settling = _Settling(Rechecking(corpus, who), settings, ledger)
    every = [*sights, *(ItemSight(query, ()) for query in others)]
    rest = await settling.bring_back(every)
    to_check = [sight for sight in rest if settling.leave(sight)]
    await settling.check(to_check)
    return settling.settled()


@dataclass(slots=True)
class _Settling:
    """Queries on their way into the next version."""

    rechecking: Rechecking
    settings: Settings
    ledger: Ledger
    _items: dict[str, SettledItem] = field(default_factory=dict)
    _result: SettledSet = field(default_factory=SettledSet)

    def take(self, items: Iterable[SettledItem]) -> None:
        """Put items into the version."""
        self._items |= {item.query.query_id: item for item in items}

    async def bring_back(self, sights: Sequence[ItemSight]) -> list[ItemSight]:
        """Settle queries whose earlier revision stands again; return the others."""
        ways = {sight.query.query_id: decide_return(sight, self.ledger) for sight in sights}
        to_check = [one for one in sights if ways[one.query.query_id] == "to_verify"]
        earlier = self.ledger.earlier
        done = await self.rechecking.check([earlier[one.query.query_id] for one in to_check])
        drafts: dict[str, Draft | None] = {
            one.sight.query.query_id: one.draft
            for one in done
            if one.outcome == "answered" and not one.draft.answer
        }
        drafts |= {name: None for name, way in ways.items() if way == "revived"}
        self.take(
            self._changing(one).restored(earlier[name], drafts[name])
            for one in sights
            if (name := one.query.query_id) in drafts
        )
        self._take_failures(to_check)
        return [one for one in sights if one.query.query_id not in self._items]

    def leave(self, sight: ItemSight) -> bool:
        """Settle a query that needs no call; say whether it has to be checked."""
        changing = self._changing(sight)
        match decide_item(sight, self.ledger):
            case "to_verify" | "to_search":
                return True
            case "broken_pins":
                self._result.broken_pins.append(changing.broken_pin())
                self.take([changing.as_it_was()])
            case "revived":
                self.take([changing.revived()])
            case "remapped":
                self.take([changing.placed()])
            case "kept":
                self.take([changing.as_it_was()])
        return False

    async def check(self, sights: Sequence[ItemSight]) -> None:
        """Have queries checked, and settle them."""
        done = await self.rechecking.check(sights)
        self._take_failures(sights)
        lost = [one for one in done if self._is_lost(one)]
        named = {one.sight.query.query_id for one in lost}
        self.take(self._item(one) for one in done if one.sight.query.query_id not in named)
        await self._convert(lost)

    def settled(self) -> SettledSet:
        """Return the version's queries."""
        result = self._result
        result.items = [self._items[query_id] for query_id in sorted(self._items)]
        result.failures = sorted(self.rechecking.failures.values(), key=lambda one: one.key)
        result.broken_pins.sort(key=lambda change: change.query_id)
        result.n_calls = self.rechecking.calls.total()
        return result

    def _changing(self, sight: ItemSight) -> Changing:
        name = sight.query.query_id
        reasons = self.ledger.cleared.get(name, ())
        return Changing(sight, self.ledger.version, self.rechecking.calls[name], reasons)

    def _item(self, checked: Checked) -> SettledItem:
        """Return what a query becomes that is not to be converted."""
        changing, draft = self._changing(checked.sight), checked.draft
        was_retired = checked.sight.query.status == "retired"
        is_to_decide = bool(draft.answer) and is_from_person(checked.sight.query)
        if checked.outcome == "answered" and not ((was_retired and draft.answer) or is_to_decide):
            return changing.answered(draft)
        if was_retired:
            return changing.as_it_was()
        if checked.outcome in ("answered", "open"):
            told = f"another answer was found: {draft.answer}" if draft.answer else _UNPLACED
            return changing.quarantined(told, checked.by)
        if checked.is_baseline and checked.sight.state != "gone":
            why = "the offline baseline does not find the expected answer"
            return changing.unchecked(why, why)
        return changing.retired(_NOTHING_FOUND, checked.by)

    def _is_lost(self, checked: Checked) -> bool:
        """Whether a query has no answer any more, and may ask for that."""
        query = checked.sight.query
        return (
            checked.outcome == "none"
            and self.rechecking.who.find is not None
            and query.status != "retired"
            and query.expected_behaviour == "answer"
            and query.type not in _NOT_CONVERTED
            and not is_from_person(query)
        )

    def _take_failures(self, sights: Iterable[ItemSight]) -> None:
        for sight in sights:
            failure = self.rechecking.failures.get(sight.query.query_id)
            if failure is None:
                continue
            changing = self._changing(sight)
            if sight.query.status == "retired":
                self.take([changing.as_it_was()])
            else:
                self.take([changing.unchecked(failure.kind, f"{failure.kind}: {failure.message}")])

    async def _convert(self, lost: Sequence[Checked]) -> None:
        """Let queries without an answer ask for that, as far as there is room; retire the rest.

        Who comes first is drawn by the seed. One whose answer is found after all makes room.
        """
        waiting = sorted(lost, key=self._place)
        while waiting:
            room = self._room()
            now, waiting = waiting[:room], waiting[room:]
            if not now:
                self.take(self._item(one) for one in waiting)
                return
            sights = [one.sight for one in now]
            done = await self.rechecking.look_for(sights)
            self._take_failures(sights)
            self.take(self._converted(one) for one in done)

    def _converted(self, checked: Checked) -> SettledItem:
        if checked.outcome != "absent":
            return self._item(checked)
        assert checked.by is not None
        near = [shown.chunk.chunk_id for shown in self.rechecking.near(checked.sight)]
        return self._changing(checked.sight).converted(near, checked.by)

    def _room(self) -> int:
        """Return how many more queries may be unanswerable; each of them counts in the set."""
        most = self.settings.refresh.unanswerable_most
        accepted = [item.query for item in self._items.values() if item.query.status == "accepted"]
        there = sum(not query.answerable for query in accepted)
        if most >= 1:
            return len(accepted) + len(self.rechecking.calls) + 1
        # The largest n with (there + n) / (accepted + n) <= most.
        return max(0, int((most * len(accepted) - there) / (1 - most) + _ROUNDING))

    def _place(self, checked: Checked) -> bytes:
        drawn = f"convert\n{self.settings.model.seed}\n{checked.sight.query.query_id}"
        return hashlib.sha256(drawn.encode("utf-8", "surrogatepass")).digest()
