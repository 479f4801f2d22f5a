"""The queries as the next version has them: what each may become, and the change that tells why."""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Final

from ragforge.deferred import dataclass
from ragforge.records import (
    Action,
    Cause,
    Evidence,
    Failure,
    Gate,
    GateResult,
    ItemChange,
    Lineage,
    Measured,
    Provenance,
    Query,
)
from ragforge.refresh.queries.rechecking import QueryDraft
from ragforge.refresh.quotes.locations import VERBATIM, LocatedQuery, in_place, is_unchecked
from ragforge.stages.generate.splits import Connections

_OF_EVIDENCE: Final[frozenset[Gate]] = frozenset(
    {"independent_answer", "necessary_hops", "premise"}
)
"""Gates that say something of evidence, so that they do not hold for another one."""
_CHECK: Final[Gate] = "independent_answer"
"""The gate that says how a check went: unknown where it failed, so that it is tried again."""
_MOST_CHARS: Final = 300
"""Characters of an answer, or of what was seen, that are told."""


@dataclass(frozen=True, slots=True)
class UpdatedQuery:
    """A query as the next version has it.

    Args:
        before: As the parent has it; None where it is new.
        query: As it is now; its evidence has its new places.
        change: What became of it; None where it was kept to the byte.
        is_moved: Whether the places of its evidence changed, so that what the evidence says of
            chunks has to be told anew.
    """

    before: Query | None
    query: Query
    change: ItemChange | None = None
    is_moved: bool = False


@dataclass(slots=True)
class UpdatedQueries:
    """All queries of the next version.

    Args:
        items: One for each query of the parent and each new one, sorted by id.
        failures: Checks that gave no result; their queries are quarantined.
        broken_pins: What happened to queries that a person pinned; nothing may be published.
        n_calls: Calls that checked queries, those that the store answered included.
        connections: What the queries rest on, once that is settled.
        splits: What became of queries that came to stand between the splits.
    """

    items: list[UpdatedQuery] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    broken_pins: list[ItemChange] = field(default_factory=list)
    n_calls: int = 0
    connections: Connections = field(default_factory=Connections)
    splits: list[ItemChange] = field(default_factory=list)

    @property
    def queries(self) -> list[Query]:
        """The queries as they are now."""
        return [item.query for item in self.items]

    def replace(self, changed: Iterable[UpdatedQuery]) -> None:
        """Put items in the place of those with their ids; others are added."""
        by_id = {item.query.query_id: item for item in self.items}
        by_id |= {item.query.query_id: item for item in changed}
        self.items = [by_id[query_id] for query_id in sorted(by_id)]


@dataclass(frozen=True, slots=True)
class QueryUpdate:
    """A query that is changed.

    Args:
        located: What was seen of it.
        version: The version that is made.
        calls: Calls that were needed.
        reasons: Why it is looked at, besides what was seen of its quotes.
    """

    located: LocatedQuery
    version: int
    calls: int = 0
    reasons: tuple[Cause, ...] = ()

    def placed(self) -> UpdatedQuery:
        """Return a query with its quotes where they stand now; no call was needed."""
        now = with_places(self.located)
        return self.as_it_was() if now == self.located.query else self._item(now, "remapped")

    def revived(self) -> UpdatedQuery:
        """Return a query that is back because its quotes are, or what contradicted it is gone."""
        query = with_places(self.located)
        query = _gated(query, "pass", "", None) if is_unchecked(query) else query
        query = query.model_copy(update={"status": "accepted"})
        back = replace(self, reasons=self.reasons or _standing_again(self.located, ""))
        return back._item(query, "revived")

    def restored(self, earlier: LocatedQuery, draft: QueryDraft | None = None) -> UpdatedQuery:
        """Return a query as it was in an earlier revision, whose quotes stand again.

        Args:
            earlier: That revision, and where its quotes stand now.
            draft: What a check found of it; None where none was needed.
        """
        old = self.located.query
        query = with_places(earlier) if draft is None else _proved(draft)
        update = {
            "revision": old.revision + 1,
            "status": "accepted",
            "split": old.split,
            "split_before": old.split_before,
        }
        causes = _standing_again(earlier, f" of revision {earlier.query.revision}")
        back = replace(self, reasons=causes)
        return back._item(query.model_copy(update=update), "revived")

    def answered(self, draft: QueryDraft) -> UpdatedQuery:
        """Return a query that the documents answer, as before or otherwise."""
        query = _proved(draft)
        if self.located.query.status != "accepted":
            query = query.model_copy(update={"status": "accepted"})
        if draft.answer:
            before = _shortened(draft.query.expected_answer or "") or "not given"
            after = _shortened(draft.answer)
            return self._item(query, "answer_changed", f"the answer was {before}, now {after}")
        if self.located.query.status != "accepted":
            return self._item(query, "revived")
        return self._item(query, "relinked" if draft.is_relinked else "reverified")

    def retired(self, reason: str, by: Provenance | None) -> UpdatedQuery:
        """Return a query that the documents do not answer any more.

        Where its quotes stand all the same, they do not bring it back by themselves.
        """
        query = self.located.query
        if self.located.state in VERBATIM:
            query = _gated(with_places(self.located), "fail", reason, by)
        return self._item(query.model_copy(update={"status": "retired"}), "retired", reason)

    def converted(self, chunk_ids: Sequence[str], by: Provenance) -> UpdatedQuery:
        """Return a query that asks for what the documents do not tell any more.

        Args:
            chunk_ids: Of chunks that stand where its answer stood.
            by: Who looked for an answer and found none.
        """
        old = self.located.query
        update = {
            **_without_answer(old),
            "answerable": False,
            "type": "unanswerable",
            "expected_behaviour": "abstain",
            "expected_answer": None,
            "evidence": (),
            "source_chunk_ids": tuple(chunk_ids),
            "status": "accepted",
            "gates": (GateResult(gate="unanswerable", verdict="pass", by=by),),
            "lineage": _checked_by(old.lineage, by),
        }
        before = _shortened(old.expected_answer or "") or "not given"
        told = f"the answer was {before}, and no passage gives one now"
        return self._item(old.model_copy(update=update), "converted", told)

    def quarantined(self, told: str, by: Provenance | None) -> UpdatedQuery:
        """Return a query with an answer that a person has to decide on."""
        query = _gated(with_places(self.located), "fail", told, by)
        return self._item(query.model_copy(update={"status": "quarantined"}), "quarantined", told)

    def unchecked(self, why: str, reason: str) -> UpdatedQuery:
        """Return a query that nobody could check; the next refresh tries again.

        Args:
            why: The kind of failure; the same whenever it fails alike.
            reason: What happened.
        """
        query = _gated(_with_old_surroundings(self.located), "unknown", why, None)
        query = query.model_copy(update={"status": "quarantined"})
        failed = Cause(kind="check failed", detail=_shortened(reason))
        return self._item(query, "quarantined", more=(failed,))

    def still_retired(self, why: str) -> UpdatedQuery:
        """Return a retired query that stays out, for all that its quotes stand again somewhere.

        They do not bring it back by themselves in the next refresh.

        Args:
            why: What came of the check.
        """
        old = self.located.query
        if any(gate.verdict == "fail" for gate in old.gates):
            return self.as_it_was()
        return UpdatedQuery(old, _gated(old, "unknown", why, None))

    def broken_pin(self) -> ItemChange:
        """Return what would have to happen to a pinned query."""
        is_gone = self.located.state == "gone"
        told = "is nowhere in the documents" if is_gone else "stands in other words only"
        action: Action = "retired" if is_gone else "quarantined"
        causes = self._causes(f"a quote of the pinned query {told}", ())
        return self._change(self.located.query, action, causes)

    def as_it_was(self) -> UpdatedQuery:
        """Return a query that stays as it was to the byte."""
        return UpdatedQuery(self.located.query, self.located.query)

    def _item(
        self, query: Query, action: Action, reason: str = "", more: tuple[Cause, ...] = ()
    ) -> UpdatedQuery:
        old = self.located.query
        # One that is out of the set, and stays so, has no news.
        if query == old and (action != "reverified" or not self.calls):
            return self.as_it_was()
        change = self._change(query, action, self._causes(reason, more))
        is_moved = (query.evidence, query.source_chunk_ids) != (old.evidence, old.source_chunk_ids)
        return UpdatedQuery(old, query, change, is_moved)

    def _change(self, query: Query, action: Action, causes: tuple[Cause, ...]) -> ItemChange:
        return ItemChange(
            version=self.version,
            query_id=query.query_id,
            action=action,
            revision=query.revision,
            causes=causes,
            calls=self.calls,
        )

    def _causes(self, told: str, more: tuple[Cause, ...]) -> tuple[Cause, ...]:
        """Return why, and what was seen."""
        seen = self._seen() or self._old_causes()
        if told and not more:
            more = (Cause(kind=seen[0].kind, doc_id=seen[0].doc_id, detail=_shortened(told)),)
        return tuple(dict.fromkeys((*seen, *more)))

    def _seen(self) -> tuple[Cause, ...]:
        """Return what was seen, of a document once where a reason tells more of it."""
        told = {(one.kind, one.doc_id) for one in self.reasons}
        more = (one for one in self.located.causes if (one.kind, one.doc_id) not in told)
        return (*self.reasons, *more)

    def _old_causes(self) -> tuple[Cause, ...]:
        """Return why a query is looked at though nothing happened to its documents now."""
        if any(gate.verdict == "unknown" for gate in self.located.query.gates):
            return (Cause(kind="check failed", detail="could not be checked before"),)
        documents = dict.fromkeys(one.doc_id for one in self.located.quotes)
        return tuple(Cause(kind="document changed", doc_id=doc_id) for doc_id in documents)


def with_places(located: LocatedQuery) -> Query:
    """Return a query with those of its quotes that stand verbatim at their places of now."""
    evidence = tuple(in_place(one) for one in located.quotes)
    if evidence == located.query.evidence:
        return located.query
    return located.query.model_copy(update={"evidence": evidence, **_sources(evidence)})


def _with_old_surroundings(located: LocatedQuery) -> Query:
    """Return a query at its places of now, with what stood around its quotes when it was checked.

    Who checks it later sees by that what came in since. A quote that stands in another document is
    left where it was: nobody said yet that it is the same there.
    """
    evidence = tuple(
        one.evidence
        if one.state == "elsewhere"
        else in_place(one).model_copy(
            update={"prefix": one.evidence.prefix, "suffix": one.evidence.suffix}
        )
        for one in located.quotes
    )
    return located.query.model_copy(update={"evidence": evidence, **_sources(evidence)})


def _standing_again(located: LocatedQuery, which: str) -> tuple[Cause, ...]:
    """Return why a query is back."""
    told = {"detail": f"its quotes{which} stand again"}
    found = located.causes or tuple(
        Cause(kind="document changed", doc_id=one.doc_id) for one in located.quotes
    )
    return tuple(dict.fromkeys(cause.model_copy(update=told) for cause in found))


def _sources(evidence: Sequence[Evidence]) -> dict[str, object]:
    return {"source_chunk_ids": tuple(dict.fromkeys(one.chunk_id for one in evidence))}


def _proved(draft: QueryDraft) -> Query:
    """Return a query with what a check proved: other evidence, and its answer where it changed."""
    old, by = draft.query, draft.by
    assert by is not None
    update: dict[str, object] = {"evidence": draft.evidence, **_sources(draft.evidence)}
    was_put_out = old.status != "accepted"
    if draft.answer:
        update |= {**_without_answer(old), "expected_answer": draft.answer}
        update["lineage"] = _written_by(old.lineage, by)
    elif draft.is_reworded:
        update["lineage"] = _checked_by(old.lineage, by)
    if draft.is_relinked and old.measured is not None and not draft.answer:
        update["measured"] = Measured(closed_book=old.measured.closed_book)
    query = old.model_copy(update=update)
    if draft.answer or draft.is_reworded or was_put_out:
        return _gated(query, "pass", "", by)
    return query


def _without_answer(query: Query) -> dict[str, object]:
    """Return what goes with an answer that is another one now, or none.

    That is all that was found out about the former one, and a person's word for it.
    """
    return {
        "revision": query.revision + 1,
        "facts": (),
        "facts_by": None,
        "facts_of": "",
        "measured": None,
        "reviewed": None,
    }


def _gated(query: Query, verdict: str, reason: str, by: Provenance | None) -> Query:
    """Return a query with the result of a check in the place of what was said of its evidence."""
    said = GateResult.model_validate(
        {"gate": _CHECK, "verdict": verdict, "reason": reason[:_MOST_CHARS], "by": by}
    )
    gates = (*(gate for gate in query.gates if gate.gate not in _OF_EVIDENCE), said)
    return query.model_copy(update={"gates": gates})


def _written_by(old: Lineage | None, by: Provenance) -> Lineage:
    """Return who a query comes from whose answer is another's."""
    keys = {*(old.call_keys if old else ()), by.call_key} - {""}
    return Lineage(
        **by.model_dump(),
        seed=old.seed if old else None,
        slot=old.slot if old else "",
        call_keys=tuple(sorted(keys)),
    )


def _checked_by(old: Lineage | None, by: Provenance) -> Lineage | None:
    if old is None or not by.call_key:
        return old
    return old.model_copy(update={"call_keys": tuple(sorted({*old.call_keys, by.call_key}))})


def _shortened(text: str) -> str:
    """Return the beginning of a text of data, in one line."""
    line = " ".join(text.split())
    return f"{line[:_MOST_CHARS]}…" if len(line) > _MOST_CHARS else line
