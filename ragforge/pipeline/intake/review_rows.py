"""Rows of review sheets by themselves: what they decide, and what is wrong with how they say it."""

from typing import Final, Literal

from ragforge.files.formats.review_sheet import SheetDecision, sheet_text
from ragforge.files.text import shown
from ragforge.pipeline.intake.review_states import is_as_shown
from ragforge.records import Query
from ragforge.stages.visible_text import visible

DECISIONS: Final = ("approve", "edit", "reject", "pin")
UNDECIDED: Final = "undecided"
"""Takes a decision back: the query is as it was before anybody decided about it."""
Outcome = Literal["approve", "edit", "reject"]


def form_fault(row: SheetDecision, query: Query) -> str:
    """Return the fault of a row by itself, "" where it has none."""
    if row.decision not in (*DECISIONS, UNDECIDED):
        words = ", ".join((*DECISIONS, UNDECIDED))
        return f"decision: expected one of {words}, got {shown(row.decision)}"
    hidden = _hidden(row)
    if hidden:
        return hidden
    if _overwritten(row, query):
        return "the text was changed where it stands; put the new one into new_query or new_answer"
    if row.decision != "edit":
        given = has_new_text(row)
        return f"has a new text, but its decision is {row.decision}; say edit" if given else ""
    if query.standalone and bool(row.new_query) != bool(row.new_standalone):
        return "is a follow-up: new_query and new_standalone (what it asks alone) go together"
    if row.new_standalone and not query.standalone:
        return "is no follow-up, and needs no new_standalone"
    return "" if _changes(row, query) else "edit: expected a new text, got none or the same"


def is_known(row: SheetDecision, query: Query, reviewer: str) -> bool:
    """Whether this very decision was taken in before."""
    past = query.reviewed
    if row.decision == UNDECIDED:
        return past is None and query.pinned is None
    if past is None or row.decision not in DECISIONS or outcome(row.decision) != past.decision:
        return False
    if row.decision == "pin" and query.pinned is None:
        return False
    if not has_new_text(row):
        return row.revision == query.revision
    same = row.decision == "edit" and past.by == reviewer and not _changes(row, query)
    return same and row.revision == query.revision - 1


def _hidden(row: SheetDecision) -> str:
    """Return which new text holds what nobody sees, "" where none does."""
    pairs = (
        ("new_query", row.new_query),
        ("new_standalone", row.new_standalone),
        ("new_answer", row.new_answer),
        ("note", row.note),
    )
    for name, text in pairs:
        plain = text.replace("\r\n", "\n")
        found = next((sign for sign in plain if visible(sign) != sign), "")
        if found:
            code = f"U+{ord(found):04X}"
            return f"{name}: expected text that can be seen, got the hidden character {code}"
    return ""


def _overwritten(row: SheetDecision, query: Query) -> bool:
    """Whether a row shows another text than the query's; spreadsheets may change the blanks."""
    if row.revision != query.revision or not is_as_shown(row, query):
        return False
    pairs = ((row.shown_query, query.query), (row.shown_answer, query.expected_answer or ""))
    return any(
        told is not None and sheet_text(told).split() != sheet_text(text).split()
        for told, text in pairs
    )


def _changes(row: SheetDecision, query: Query) -> bool:
    pairs = (
        (row.new_query, query.query),
        (row.new_standalone, query.standalone),
        (row.new_answer, query.expected_answer),
    )
    return any(new and new != old for new, old in pairs)


def has_new_text(row: SheetDecision) -> bool:
    """Whether a row brings a text of its own."""
    return bool(row.new_query or row.new_standalone or row.new_answer)


def outcome(decision: str) -> Outcome:
    """Return the verdict of a decision on the query as it stands; a pin approves."""
    outcomes: dict[str, Outcome] = {"edit": "edit", "reject": "reject"}
    return outcomes.get(decision, "approve")


def leaves_words(row: SheetDecision, query: Query) -> bool:
    """Whether an edit brings the words that are there."""
    words = (
        (row.new_query, query.query),
        (row.new_standalone, query.standalone or ""),
        (row.new_answer, query.expected_answer or ""),
    )
    return all(new in ("", old) for new, old in words)


def says_nothing(row: SheetDecision, query: Query, reviewer: str) -> bool:
    """Whether a row leaves open what is open."""
    if row.decision == UNDECIDED:
        return is_known(row, query, reviewer)
    return not row.decision and not has_new_text(row)
