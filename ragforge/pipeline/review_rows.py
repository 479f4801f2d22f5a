"""What a row of a reviewer's sheet says by itself, and whether that can be taken."""

from typing import Final, Literal

from ragforge.files.review_sheet import SheetDecision, sheet_text
from ragforge.files.values import shown
from ragforge.records import Query
from ragforge.stages.asking import visible

DECISIONS: Final = ("approve", "edit", "reject", "pin")
Outcome = Literal["approve", "edit", "reject"]


def form_fault(row: SheetDecision, query: Query) -> str:
    """Return what is wrong with a row by itself, "" where nothing is."""
    if row.decision not in DECISIONS:
        return f"decision: expected one of {', '.join(DECISIONS)}, got {shown(row.decision)}"
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
    if row.revision != query.revision:
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
    """Return what a decision says about the query as it stands; a pin approves."""
    outcomes: dict[str, Outcome] = {"edit": "edit", "reject": "reject"}
    return outcomes.get(decision, "approve")
