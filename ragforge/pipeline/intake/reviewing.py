"""Taking in what people decided about queries: all of a sheet, or nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.errors import ChangedMeanwhileError, ContradictedError, DataError, UsageError
from ragforge.evaluating.formatting import one_line
from ragforge.files.formats.review_sheet import SheetDecision, read_sheet
from ragforge.files.manifest import ReviewAudit
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import alone_with
from ragforge.files.set.sorted_records import key_of
from ragforge.files.text import shown
from ragforge.pipeline.intake.brought_answers import answered, is_answered_now, is_refused_still
from ragforge.pipeline.intake.review_rows import (
    DECISIONS,
    UNDECIDED,
    form_fault,
    has_new_text,
    is_known,
    leaves_words,
    outcome,
    says_nothing,
)
from ragforge.pipeline.intake.review_states import (
    is_as_decided,
    is_as_shown,
    state_of,
    where_evidence_stands,
)
from ragforge.records import Evidence, Judgment, Pin, Query, Review, ReviewEvent

if TYPE_CHECKING:
    from ragforge.pipeline.intake.former_grades import RewordedGrades
    from ragforge.stages.generate.truth import Rederived

_SHOWN: Final = 8
_DECIDED: Final = {"approve": "approved", "edit": "edited", "reject": "rejected"}
_OF_WORDING: Final = (
    "query", "standalone", "expected_answer", "gates", "measured", "facts", "facts_by", "facts_of",
    "answerable", "expected_behaviour", "type",
)  # fmt: skip
"""What an edit changes, or drops as it was found out about the former wording."""


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """What a sheet came to."""

    counts: dict[str, int]
    """Rows by decision; `undecided` for those without, `known` for those taken in before,
    `taken_back` for those whose query is undecided again."""
    stale_judgments: int
    """Grades that a model gave for a wording that an edit replaced; they are taken out."""
    former_grades: int
    """Grades that people gave for such a wording; `former_grades.jsonl` has them."""
    returned_grades: int
    """Grades that people gave for a wording that is back, and so are they."""
    own_facts: int
    """Edited answers whose facts a person wrote; these stay and should be looked at."""
    answered: Sequence[str]
    """Ids of queries that were to be refused, and have an answer now: they count as answerable."""
    refused_still: Sequence[str]
    """Ids of such whose new answer says that something is not so, or not told: they stay so."""
    without_evidence: Sequence[str]
    """Ids of queries with a new answer whose former evidence stands nowhere any more, and was left
    out."""
    drawn_open: int
    """Rows drawn at random and undecided: if they were left for being hard, the audit flatters."""
    audit: ReviewAudit | None


def review_dataset(
    dataset: Dataset,
    path: Path,
    reviewer: str = "",
    *,
    overrule: bool = False,
    dry_run: bool = False,
) -> ReviewResult:
    """Take the decisions of a sheet into a dataset.

    A decision is about the query as the sheet shows it: one whose status, words or evidence changed
    since is not taken. Nor is a query accepted whose evidence stands nowhere any more, unless it
    gets a new answer; then that evidence goes.

    An edited query keeps its id, which then is no longer the digest of its text, and gets the next
    revision. Its evidence stays; what was found out about the former wording goes: verdicts of
    checks, ranks, facts that a model drew from the former answer, and grades that a model gave
    for the former question. Grades that people gave for it are set aside, and come back with it;
    those for the same words in another case or with another mark at the end stay. A query
    that was to be refused is answerable once it has an answer, unless that speaks of what is not.
    A rejected query is retired. One that is undecided again is as it was before anybody decided
    about it; a former wording comes back as the next revision.

    Args:
        dataset: Has queries.
        path: What `read_sheet` reads.
        reviewer: Who decided; may be "" where the sheet names them.
        overrule: Whether decisions may differ from those of another reviewer.
        dry_run: Whether nothing is written.

    Raises:
        UsageError: Nobody says who decided, or two names differ.
        DataError: The sheet cannot be read, or a row cannot be taken; nothing is written then.
    """
    rows = read_sheet(path)
    reviewer = _reviewer_name(rows, reviewer)
    with dataset.alone() if not dry_run else nullcontext():
        sheet = _SheetImport(dataset, reviewer, overrule=overrule)
        sheet.look_for_evidence(rows)
        for row in rows:
            sheet.take(row)
        sheet.refuse_faults(path)
        return _kept(dataset, sheet, dry_run=dry_run)


def _kept(dataset: Dataset, sheet: _SheetImport, *, dry_run: bool = False) -> ReviewResult:
    """Write what was decided, and return what it comes to; the caller is alone with the dataset."""
    from ragforge.files.set.reviews import add_reviews

    queries = list(sheet.queries.values())
    grades = _reworded_grades(dataset, sheet) if sheet.reworded else None
    audit = review_audit(queries)
    if not dry_run:
        # First: a line too many takes nothing from anybody, one too few cannot be taken back.
        if sheet.events:
            add_reviews(dataset, sheet.events)
        if grades is not None:
            grades.write()
        if sheet.by_evidence:
            known = {key_of(item) for item in dataset.each_judgment()}
            new = (item for item in sheet.by_evidence if key_of(item) not in known)
            dataset.add_judgments(iter(sorted(new, key=key_of)))
        dataset.write_queries(queries)
        dataset.write_manifest(dataset.manifest.model_copy(update={"audit": audit}))
        from ragforge.pipeline.cards import renew_card

        renew_card(dataset)
    counts = {name: sheet.counts[name] for name in (*DECISIONS, "taken_back", "known", "undecided")}
    return ReviewResult(
        counts,
        grades.n_stale if grades else 0,
        grades.n_aside if grades else 0,
        grades.n_back if grades else 0,
        sheet.own_facts,
        sheet.answered,
        sheet.refused_still,
        sheet.without_evidence,
        sheet.drawn_open,
        audit,
    )


def _reworded_grades(dataset: Dataset, sheet: _SheetImport) -> RewordedGrades:
    from ragforge.pipeline.intake.former_grades import RewordedGrades

    before = {query.query_id: query for query in sheet.before}
    return RewordedGrades(
        dataset,
        {name: before[name] for name in sheet.reworded},
        {name: sheet.queries[name] for name in sheet.reworded},
    )


@dataclass(frozen=True, slots=True)
class DecisionOutcome:
    """What a decision came to."""

    query: Query
    """As it stands now."""
    queries: Sequence[Query]
    """All of the set."""
    former_grades: int = 0
    """Grades that people gave for the former wording, and that are set aside."""


def decide(
    path: Path, row: SheetDecision, reviewer: str, state: str, *, overrule: bool = False
) -> DecisionOutcome:
    """Take one decision into the published version of a dataset at once.

    A refresh that is on its way to the next version starts over from it; one that was published
    meanwhile gets the decision, if the query is still as it was seen.

    Args:
        path: The directory of the dataset.
        row: The decision.
        reviewer: Who decided.
        state: Of the query as the reviewer saw it; see `state_of`.
        overrule: Whether it may differ from that of another reviewer.

    Raises:
        ChangedMeanwhileError: The query is not as the reviewer saw it; nothing is written.
        ContradictedError: Another one decided otherwise; nothing is written.
        DataError: It cannot be taken.
    """
    with alone_with(path) as dataset:
        sheet = _SheetImport(dataset, reviewer, overrule=overrule)
        query = sheet.queries.get(row.query_id)
        if query is None:
            raise ChangedMeanwhileError("this query is not in the set any more")
        if row.decision == UNDECIDED and is_known(row, query, reviewer):
            return DecisionOutcome(query, sheet.before)
        if state_of(query) != state:
            mine = query.reviewed is not None and query.reviewed.by == reviewer
            if mine and is_known(row, query, reviewer) and is_as_decided(query):
                # The reply to the first time got lost.
                return DecisionOutcome(query, sheet.before)
            raise ChangedMeanwhileError(_as_it_is(query))
        if others := sheet.differing(row, query):
            raise ContradictedError(others)
        sheet.look_for_evidence([row])
        fault = form_fault(row, query) or sheet.standing_fault(row, query)
        if fault:
            raise DataError(fault)
        sheet.apply(row, query)
        kept = _kept(dataset, sheet)
        queries = list(sheet.queries.values())
        return DecisionOutcome(sheet.queries[row.query_id], queries, kept.former_grades)


def _as_it_is(query: Query) -> str:
    """Return how a query stands, to somebody who saw it otherwise."""
    by = f"; {decided(query)}" if query.reviewed or query.pinned else ""
    return f"it was changed meanwhile: it is {query.status}, revision {query.revision}{by}"


def decided(query: Query) -> str:
    """Return what a person decided about a query, in a few words; "" where nobody did."""
    if query.pinned is not None:
        return f"pinned by {one_line(query.pinned.by, 40)}"
    if query.reviewed is None:
        return ""
    return f"{_DECIDED[query.reviewed.decision]} by {one_line(query.reviewed.by, 40)}"


def is_of_former_wording(judgment: Judgment, reworded: set[str]) -> bool:
    """Whether a grade was given by a model, for a question that is worded otherwise now."""
    return judgment.query_id in reworded and judgment.source in ("judge", "carried")


def review_audit(queries: Iterable[Query]) -> ReviewAudit | None:
    """Return the share of queries drawn at random that were right; None where none is decided."""
    drawn = [query.reviewed for query in queries if query.reviewed and query.reviewed.random]
    if not drawn:
        return None
    n_right = sum(review.decision == "approve" for review in drawn)
    from ragforge.measures.rates import wilson_interval

    interval = wilson_interval(n_right, len(drawn))
    if interval is None:
        return None
    return ReviewAudit(
        n=len(drawn),
        n_right=n_right,
        precision=n_right / len(drawn),
        low=interval.low,
        high=interval.high,
        reviewers=tuple(sorted({review.by for review in drawn})),
    )


@dataclass(slots=True)
class _SheetImport:
    """Applies rows to queries, and collects what is wrong with them."""

    dataset: Dataset
    reviewer: str
    overrule: bool = field(kw_only=True)
    before: Sequence[Query] = field(init=False)
    queries: dict[str, Query] = field(init=False)
    events: list[ReviewEvent] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    reworded: set[str] = field(default_factory=set)
    own_facts: int = 0
    answered: list[str] = field(default_factory=list)
    refused_still: list[str] = field(default_factory=list)
    without_evidence: list[str] = field(default_factory=list)
    by_evidence: list[Judgment] = field(default_factory=list)
    """What evidence says of the chunks that it stands in now."""
    drawn_open: int = 0
    _seen: dict[str, str] = field(default_factory=dict)
    _faults: list[str] = field(default_factory=list)
    _texts: dict[str, str] = field(init=False)
    _standing: dict[str, Rederived] = field(default_factory=dict)
    _states: Mapping[str, Query] | None = None
    _is_blank: bool = True

    def __post_init__(self) -> None:
        self.before = self.dataset.all_queries()
        self.queries = {query.query_id: query for query in self.before}
        self._texts = {
            _folded(query.query): query.query_id
            for query in self.before
            if query.status != "retired"
        }

    def look_for_evidence(self, rows: Iterable[SheetDecision]) -> None:
        """Find where the evidence stands of queries that are decided about, and not accepted."""
        named = {row.query_id for row in rows if row.decision not in ("", "reject")}
        put_out = [item for item in self.before if item.status != "accepted"]
        wanted = [item for item in put_out if item.query_id in named and item.evidence]
        self._standing = where_evidence_stands(self.dataset, wanted) if wanted else {}

    def take(self, row: SheetDecision) -> None:
        """Apply a row, or note why it cannot be."""
        query = self.queries.get(row.query_id)
        self._is_blank &= not row.decision and not has_new_text(row)
        first = self._seen.setdefault(row.query_id, row.where)
        if first != row.where:
            fault = f"comes twice, first in {first}"
        elif query is None:
            fault = "is no query of this dataset"
        elif says_nothing(row, query, self.reviewer):
            self.counts["undecided"] += 1
            self.drawn_open += row.random
            return
        elif is_known(row, query, self.reviewer):
            self._note_known(row, query)
            return
        else:
            fault = form_fault(row, query) or self.standing_fault(row, query)
            if not fault:
                self.apply(row, query)
                return
        self._faults.append(f"{row.where}: query {shown(row.query_id)}: {fault}")

    def refuse_faults(self, path: Path) -> None:
        """Raise what is wrong with the rows.

        Raises:
            DataError: Something is, or no row holds a decision.
        """
        if self._faults:
            more = len(self._faults) - _SHOWN
            rest = f"\nand {more} more" if more > 0 else ""
            told = "\n".join(self._faults[:_SHOWN])
            raise DataError(f"{told}{rest}\n{path}: nothing was taken in")
        if self._is_blank:
            raise DataError(
                f"{path}: holds no decision; write one of {', '.join(DECISIONS)} into the column "
                "`decision`"
            )

    def standing_fault(self, row: SheetDecision, query: Query) -> str:
        """Return the objection to a decision in the present state of the query, "" for none."""
        if row.revision != query.revision and not self._takes_back_its_edit(row, query):
            return f"is stale: revision {row.revision}, but now it is {query.revision}; export anew"
        if row.decision != UNDECIDED and not is_as_shown(row, query):
            return (
                "is stale: its status, words or evidence changed since the sheet was written, and "
                f"now it is {query.status}; export anew"
            )
        if others := self.differing(row, query):
            return f"{others}; settle it, then import with --overrule"
        if row.decision == UNDECIDED:
            return self._lasting_fault(query)
        if query.status == "retired" and query.reviewed is None:
            return "is retired"
        holder = self._texts.get(_folded(row.new_query), query.query_id)
        if row.new_query and holder != query.query_id:
            return f"new_query is the question of {shown(holder)} already"
        return self._evidence_fault(row, query)

    def _evidence_fault(self, row: SheetDecision, query: Query) -> str:
        """Return why a query cannot be accepted as its evidence stands now, "" where it can be."""
        lost = self._lost(query) if row.decision != "reject" else ()
        if not lost or (row.new_answer and row.new_answer != query.expected_answer):
            return ""
        return (
            f"cannot be accepted, as its evidence {shown(lost[0].quote)} stands in "
            f"{shown(lost[0].doc_id)} no more; edit its answer (new_answer), or wait until the "
            "document has it again"
        )

    def _lost(self, query: Query) -> Sequence[Evidence]:
        """Return the evidence of a query that is not accepted, and that stands nowhere."""
        standing = self._standing.get(query.query_id)
        return standing.lost if standing is not None else ()

    def _takes_back_its_edit(self, row: SheetDecision, query: Query) -> bool:
        """Whether a row of the sheet that edited a query, and nothing since, is undecided again."""
        before = self._undecided(query.query_id) if row.decision == UNDECIDED else None
        was_edited = query.reviewed is not None and query.reviewed.decision == "edit"
        return (
            before is not None
            and was_edited
            and row.revision == before.revision == query.revision - 1
        )

    def _lasting_fault(self, query: Query) -> str:
        """Return why the decisions about a query cannot be taken back, "" where they can be."""
        before = self._undecided(query.query_id)
        if before is None:
            return "was decided about before it was kept how it stood; decide otherwise instead"
        holder = self._texts.get(_folded(before.query), query.query_id)
        if holder != query.query_id:
            return f"cannot be taken back: {shown(holder)} has its former question now"
        return ""

    def _undecided(self, query_id: str) -> Query | None:
        """Return a query as it stood before anybody decided about it; None where none tells."""
        from ragforge.files.set.reviews import undecided_states

        if self._states is None:
            self._states = undecided_states(self.dataset)
        return self._states.get(query_id)

    def differing(self, row: SheetDecision, query: Query) -> str:
        """Return who decided otherwise, "" where nobody did or it does not matter."""
        others = {
            past.by: _verdict(past) for past in (query.reviewed, query.pinned) if past is not None
        }
        others.pop(self.reviewer, None)
        for by, verdict in others.items():
            agrees = row.decision != UNDECIDED and verdict == outcome(row.decision)
            agrees = agrees and (row.decision != "edit" or leaves_words(row, query))
            if not self.overrule and not agrees:
                return f"{by} decided {verdict}"
        return ""

    def _note_known(self, row: SheetDecision, query: Query) -> None:
        self.counts["known"] += 1
        review = query.reviewed
        if review is not None and row.random and not review.random:
            counted = review.model_copy(update={"random": True})
            self._put(query.model_copy(update={"reviewed": counted}))

    def apply(self, row: SheetDecision, query: Query) -> None:
        """Take a decision that has no fault."""
        event = {"by": self.reviewer, "decision": row.decision, "note": row.note, "before": query}
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self.events.append(
            ReviewEvent.model_validate({"at": at, "query_id": query.query_id, **event})
        )
        if row.decision == UNDECIDED:
            self._take_back(query)
            return
        self.counts[row.decision] += 1
        past = query.reviewed
        review = Review(
            decision=outcome(row.decision),
            by=self.reviewer,
            note=row.note,
            random=row.random or (past is not None and past.random),
        )
        if past is not None and past.decision == "edit" and review.decision == "approve":
            # What a person had to edit was not right as it was made, whoever approves it then.
            review = past.model_copy(update={"random": review.random})
        update: dict[str, object] = {"reviewed": review, "status": "accepted"}
        if row.decision != "reject":
            update |= self._placed(query)
        match row.decision:
            case "pin":
                update["pinned"] = Pin(by=self.reviewer, note=row.note)
            case "reject":
                update |= {"status": "retired", "pinned": None}
            case "edit":
                update |= self._edits(row, query)
        self._put(query.model_copy(update=update))

    def _placed(self, query: Query) -> dict[str, object]:
        """Return the evidence of a query where it stands now, without what stands nowhere."""
        standing = self._standing.get(query.query_id)
        if standing is None or query.status == "accepted":
            return {}
        evidence = tuple(one for one in standing.query.evidence if one not in standing.lost)
        if evidence == query.evidence:
            return {}
        if standing.lost:
            self.without_evidence.append(query.query_id)
        self.by_evidence += standing.judgments
        sources = tuple(dict.fromkeys(one.chunk_id for one in evidence))
        return {"evidence": evidence, "source_chunk_ids": sources}

    def _take_back(self, query: Query) -> None:
        """Make a query what it was before anybody decided about it."""
        self.counts["taken_back"] += 1
        before = self._undecided(query.query_id)
        assert before is not None, "it has no fault"
        update: dict[str, object] = {"reviewed": None, "pinned": None}
        rejected = query.reviewed is not None and query.reviewed.decision == "reject"
        if query.status == ("retired" if rejected else "accepted"):
            # Another status is what a refresh found out since.
            update["status"] = "quarantined" if self._lost(query) else before.status
            if update["status"] == "accepted":
                update |= self._placed(query)
        if _wording(query) != _wording(before):
            update |= {name: getattr(before, name) for name in _OF_WORDING}
            update["revision"] = query.revision + 1
            if _is_part(query.evidence, before.evidence):
                # What stood nowhere went with the former answer.
                sources = before.source_chunk_ids
                update |= {"evidence": before.evidence, "source_chunk_ids": sources}
                update["status"] = "quarantined"
            if before.asked != query.asked:
                self.reworded.add(query.query_id)
        self._put(query.model_copy(update=update))

    def _edits(self, row: SheetDecision, query: Query) -> dict[str, object]:
        update: dict[str, object] = {
            "query": row.new_query or query.query,
            "standalone": row.new_standalone or query.standalone,
            "expected_answer": row.new_answer or query.expected_answer,
            "revision": query.revision + 1,
            "gates": (),
            "measured": None,
        }
        if (update["standalone"] or update["query"]) != query.asked:
            self.reworded.add(query.query_id)
        if update["expected_answer"] != query.expected_answer:
            if query.facts_by is not None:
                update |= {"facts": (), "facts_by": None, "facts_of": ""}
            self.own_facts += bool(query.facts) and query.facts_by is None
        if is_answered_now(query, row.new_answer):
            update |= answered(query)
            self.answered.append(query.query_id)
        elif is_refused_still(query, row.new_answer):
            self.refused_still.append(query.query_id)
        return update

    def _put(self, query: Query) -> None:
        old = _folded(self.queries[query.query_id].query)
        if self._texts.get(old) == query.query_id:
            del self._texts[old]
        if query.status != "retired":
            self._texts[_folded(query.query)] = query.query_id
        self.queries[query.query_id] = query


def _reviewer_name(rows: Sequence[SheetDecision], reviewer: str) -> str:
    """Return the reviewer's name."""
    names = sorted({row.reviewer for row in rows if row.reviewer})
    name = " ".join(reviewer.split()) or (names[0] if len(names) == 1 else "")
    if not name:
        raise UsageError("who decided? say --reviewer NAME")
    if any(other != name for other in names):
        raise UsageError(f"--reviewer {name}: the sheet is for {', '.join(names)}")
    return name


def _is_part(evidence: Sequence[Evidence], whole: Sequence[Evidence]) -> bool:
    """Whether quotes are some of others, but not all."""
    return {item.quote for item in evidence} < {item.quote for item in whole}


def _wording(query: Query) -> tuple[str, str, str | None]:
    return query.query, query.standalone, query.expected_answer


def _verdict(past: Review | Pin) -> str:
    return "approve" if isinstance(past, Pin) else past.decision


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
