"""What changes from version to version of a set: a refresh, its changelog entry, and two versions.

A refresh says what it did or would do; any two versions are held against each other query by query.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ragforge.evaluating.formatting import one_line, plural
from ragforge.evaluating.versions import (
    ComparedVersion,
    Differences,
    DocumentDifferences,
    GradeDifferences,
    QueryDifference,
    RefreshPlan,
    RefreshSummary,
    kind_counts,
)
from ragforge.records import (
    Action,
    Cause,
    DocumentsDiff,
    ItemChange,
    JudgmentsDiff,
    Query,
    VersionCheck,
    VersionDiff,
)
from ragforge.report.markdown import escape_markdown

_ACTIONS: Final[Mapping[Action, str]] = {
    "remapped": "its quotes stand at other places",
    "reverified": "its quotes stand in changed text, and still prove the answer",
    "relinked": "another quote proves the same answer",
    "answer_changed": "the documents give another answer now",
    "retired": "the documents do not answer it any more",
    "converted": "the documents do not answer it any more, which is what it asks for now",
    "quarantined": "taken out until somebody has looked at it",
    "revived": "what it had lost is back",
    "added": "new",
    "out_of_split": "in no split, as its documents connect it with queries of the other one",
    "back_in_split": "in its split again, as its documents connect it with no other",
}
"""Each action in a phrase."""

_SHOWN: Final = 10
_LISTED_ACTIONS: Final[tuple[Action, ...]] = (
    "quarantined",
    "answer_changed",
    "retired",
    "converted",
    "relinked",
    "reverified",
    "revived",
    "out_of_split",
    "back_in_split",
    "added",
)
"""Actions that are listed, the most weighty first; the others are counted, as nothing about the
query changed."""
_CHANGELOG_TITLE: Final = "# Changelog\n"
_LISTED_IN_CHANGELOG: Final = 25
"""Queries that are named under an action; all are in diff.json."""

_NOT_KNOWN: Final = "not known"
_CAUSE_IN_POOL: Final = "chunks of its pool came or went"
_TEXT_CHARS: Final = 80
_EXAMPLES_SHOWN: Final = 3


def refresh_text(summary: RefreshSummary) -> str:
    """Return what a refresh did, on several lines; texts of data are on one line each."""
    return "\n".join(_refresh_lines(summary))


def _refresh_lines(summary: RefreshSummary) -> Iterator[str]:
    yield _headline(summary)
    if summary.unreadable:
        yield _unreadable_line(summary.unreadable)
    if summary.plan is not None:
        yield from _plan_lines(summary.plan)
    if summary.diff is not None:
        yield from _diff_lines(summary.diff)
        if summary.diff.answers_left:
            yield answers_line(summary.diff)
        spent = summary.spent
        cost = "cost unknown" if spent.usd is None else f"{spent.usd:.4f} USD"
        tokens = spent.prompt_tokens + spent.completion_tokens
        yield f"bought now: {plural(spent.calls, 'call')}, {tokens:,} tokens, {cost}"
    if summary.n_failed:
        yield _failed_line(summary.n_failed)
    if summary.removed:
        yield f"old versions removed: {', '.join(map(str, summary.removed))}"
    yield from (f"  {one_line(change_text(change), 200)}" for change in summary.broken_pins)


_FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accepted queries": "a lower --accepted-least",
        "churn": "--accept-churn",
        "holes": "a higher --holes-most",
        "precision": "a lower --precision-least",
    }
)
"""What lets a version pass that a check stopped; nothing lets one with other faults."""


def _headline(summary: RefreshSummary) -> str:
    name = one_line(summary.name, 80)
    match summary.status:
        case "unchanged":
            n_calls = summary.spent.calls
            made = f"{plural(n_calls, 'call')} made" if n_calls else "no call was made"
            return f"{name}: nothing changed; version {summary.parent} stays, {made}"
        case "planned":
            return f"{name}: version {summary.version} would follow version {summary.parent}"
        case "published":
            return f"{name}: version {summary.version} is published (after {summary.parent})"
        case "rejected":
            return (
                f"{name}: version {summary.version} was rejected, version {summary.parent} stays; "
                f"look at it in rejected/{_way_on(summary.diff)}"
            )
    return f"{name}: pinned queries lost their evidence; version {summary.parent} stays"


def _way_on(diff: VersionDiff | None) -> str:
    """Return what failed, and the flags that would publish a version all the same, if any would."""
    failed = [check.name for check in diff.checks if not check.passed] if diff else []
    flags = [_FLAGS[name] for name in failed if name in _FLAGS]
    what = f"; what failed: {', '.join(failed)}" if failed else ""
    if not failed or len(flags) < len(failed):
        return what
    return f"{what}; {' with '.join(flags)} would publish it"


def _failed_line(n_failed: int) -> str:
    """Return a note that pairs have no grade, and what judges them."""
    pairs = (
        "pair has no grade, as its judgment"
        if n_failed == 1
        else ("pairs have no grade, as their judgments")
    )
    return (
        f"{n_failed:,} {pairs} failed; --retry-failed judges those in pools again, and "
        "`ragforge judge --retry-failed` those of runs"
    )


def _unreadable_line(doc_ids: Sequence[str]) -> str:
    some = ", ".join(doc_ids[:_SHOWN])
    more = f" and {len(doc_ids) - _SHOWN:,} more" if len(doc_ids) > _SHOWN else ""
    stay = "stays as it was" if len(doc_ids) == 1 else "stay as they were"
    counted = plural(len(doc_ids), "document")
    return one_line(f"{counted} cannot be read now and {stay}: {some}{more}", 400)


def _plan_lines(plan: RefreshPlan) -> Iterator[str]:
    """Yield the plan for the terminal."""
    yield documents_line(plan.documents)
    yield f"queries: {_counted(plan.items) or 'none'}, {plan.n_new:,} to generate"
    pairs = plural(plan.n_pairs, "pair")
    yield (
        f"to judge: {pairs} of new chunks, more where pools grow; and checks of new relevant chunks"
    )
    by_purpose = ", ".join(f"{n:,} to {purpose}" for purpose, n in plan.calls.items())
    yield f"calls: {sum(plan.calls.values()):,} ({by_purpose})"
    if plan.tokens is not None:
        yield f"tokens: {_range(plan.tokens, ',.0f')}"
    money = "unknown" if plan.cost_usd is None else f"{_range(plan.cost_usd, '.4f')} USD"
    yield f"cost: {money}"


def _range(amounts: Mapping[str, float], form: str) -> str:
    low, expected, high = (format(amounts[name], form) for name in ("low", "expected", "high"))
    return f"{expected} expected ({low} to {high})"


def _diff_lines(diff: VersionDiff) -> Iterator[str]:
    """Yield what a version changed, the most weighty changes first."""
    yield documents_line(diff.documents)
    yield queries_line(diff)
    if diff.lost_relevant:
        yield lost_line(diff.lost_relevant)
    listed = [change for change in diff.changes if change.action in _LISTED_ACTIONS]
    listed.sort(key=lambda change: _LISTED_ACTIONS.index(change.action))
    for change in listed[:_SHOWN]:
        yield f"  {one_line(change_text(change), 200)}"
    if len(listed) > _SHOWN:
        yield f"  … and {len(listed) - _SHOWN:,} more, all in diff.json"
    yield grades_line(diff.judgments)
    calls = diff.calls
    yield (
        f"calls: {calls.verify:,} to verify, {calls.judge:,} to judge, {calls.conflicts:,} to look "
        f"for conflicts, {calls.generate:,} to generate"
    )
    yield _unchanged_line(len(diff.bridge))
    if diff.shortfall:
        yield one_line(diff.shortfall, 200)
    for check in diff.checks:
        yield f"  {one_line(check_text(check), 200)}"


def with_entry(changelog: str, diff: VersionDiff) -> str:
    """Return a changelog with the entry of a version on top; texts of data are no markup.

    Args:
        changelog: As it was, "" for none.
        diff: What the version changed.
    """
    before = changelog.removeprefix(_CHANGELOG_TITLE).lstrip("\n")
    entry = "\n".join(_changelog_entry(diff))
    return f"{_CHANGELOG_TITLE}\n{entry}\n" + (f"\n{before}" if before else "")


def _changelog_entry(diff: VersionDiff) -> Iterator[str]:
    yield f"## Version {diff.version} (after {diff.parent})\n"
    yield f"- {documents_line(diff.documents)}"
    yield f"- {queries_line(diff)}"
    if diff.lost_relevant:
        yield f"- {escape_markdown(lost_line(diff.lost_relevant))}"
    yield f"- {grades_line(diff.judgments)}"
    yield f"- {_unchanged_line(len(diff.bridge))}"
    if diff.shortfall:
        yield f"- {escape_markdown(diff.shortfall)}"
    if diff.answers_left:
        yield f"- {answers_line(diff)}"
    by_action: dict[Action, list[ItemChange]] = defaultdict(list)
    for change in diff.changes:
        by_action[change.action].append(change)
    for action, meaning in _ACTIONS.items():
        if action in by_action and action != "remapped":
            yield f"\n### {action.replace('_', ' ').capitalize()}: {meaning}\n"
            yield from _changes_of_action(by_action[action])


def _changes_of_action(changes: list[ItemChange]) -> Iterator[str]:
    for change in changes[:_LISTED_IN_CHANGELOG]:
        causes = "; ".join(map(_cause_text, change.causes))
        yield f"- {escape_markdown(change.query_id)}: {escape_markdown(causes)}"
    if len(changes) > _LISTED_IN_CHANGELOG:
        yield f"- … and {len(changes) - _LISTED_IN_CHANGELOG:,} more"


def documents_line(documents: DocumentsDiff) -> str:
    """Return what happened to documents and chunks, in a line."""
    counts = {
        "added": len(documents.added),
        "changed": len(documents.changed),
        "removed": len(documents.removed),
        "renamed": len(documents.renamed),
        "unreadable, kept as they were": len(documents.unreadable),
    }
    counted = _counted(counts) or "no change"
    anew = "all cut anew by other chunk settings; " if documents.is_cut_anew else ""
    return (
        f"documents: {anew}{counted} ({documents.n_before:,} before, {documents.n_now:,} now); "
        f"chunks: {documents.chunks_kept:,} kept, {documents.chunks_added:,} added, "
        f"{documents.chunks_removed:,} gone"
    )


def _items_line(items: Mapping[str, int]) -> str:
    """Return what became of the queries, in a line."""
    counts = {name: items.get(name, 0) for name in ("kept", *_ACTIONS)}
    return f"queries: {_counted(counts) or 'none'}"


def queries_line(diff: VersionDiff) -> str:
    """Return what became of the queries, and how many of the version are not accepted."""
    out = f"; not accepted: {_counted(diff.not_accepted)}" if diff.not_accepted else ""
    return _items_line(diff.items) + out


def lost_line(query_ids: Sequence[str]) -> str:
    """Return the queries without a relevant chunk left, whose measures have no value now."""
    counted = plural(len(query_ids), "accepted query has", "accepted queries have")
    some = ", ".join(query_ids[:_SHOWN])
    more = f" and {len(query_ids) - _SHOWN:,} more" if len(query_ids) > _SHOWN else ""
    return one_line(
        f"{counted} no relevant chunk any more, and no value until somebody labels or judges one: "
        f"{some}{more}",
        400,
    )


def _counted(counts: Mapping[str, int]) -> str:
    """Return what there is of each kind, with its count; "" where there is nothing."""
    return ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n)


def grades_line(judgments: JudgmentsDiff) -> str:
    """Return what became of grades, in a line."""
    rows = (
        judgments.kept
        + judgments.carried
        + judgments.judged
        + judgments.evidence
        + judgments.failed
    )
    waiting = f", {judgments.dormant:,} of people wait for theirs" if judgments.dormant else ""
    return (
        f"grades: {judgments.kept:,} kept, {judgments.carried:,} carried, "
        f"{judgments.judged:,} new, {judgments.evidence:,} from evidence, "
        f"{judgments.failed:,} failed ({rows:,} in all); "
        f"{judgments.dropped:,} dropped with their chunks{waiting}"
    )


def _cause_text(cause: Cause) -> str:
    """Return a cause in words; ids and details are data, and come as they are."""
    named = f" {cause.doc_id}" if cause.doc_id else ""
    renamed = f" (was {cause.before})" if cause.kind == "document renamed" and cause.before else ""
    detail = f": {cause.detail}" if cause.detail else ""
    return f"{cause.kind}{named}{renamed}{detail}"


def change_text(change: ItemChange) -> str:
    """Return what became of a query, with its causes."""
    revision = f" (revision {change.revision})" if change.action == "answer_changed" else ""
    causes = "; ".join(map(_cause_text, change.causes))
    return f"{change.query_id} {change.action.replace('_', ' ')}{revision}: {causes}"


def check_text(check: VersionCheck) -> str:
    """Return a check of a version in words."""
    figures = ""
    if check.found is not None and check.limit is not None:
        figures = f" ({check.found:.3g}, limit {check.limit:.3g})"
    detail = f": {check.detail}" if check.detail else ""
    return f"{check.name} {'passed' if check.passed else 'FAILED'}{figures}{detail}"


def _unchanged_line(n_bridge: int) -> str:
    """Return how many queries two versions have in common, with all that is known of them."""
    return (
        f"unchanged: {plural(n_bridge, 'query', 'queries')} with the same question, answer, quotes "
        "and chunks graded above 0, by one judge in both versions; `history` scores others anew on "
        "the grades of now, where it can"
    )


def answers_line(diff: VersionDiff) -> str:
    """Return a note on answers that are left behind, and on what brings them to the new version."""
    counts = ", ".join(f"{n:,} of {one_line(name, 60)}" for name, n in diff.answers_left.items())
    return (
        f"answers: {counts} stay in version {diff.parent} with their grades, as they were written "
        "from its documents; `ragforge answer --system …` asks the systems again"
    )


def differences_text(differences: Differences, n: int) -> str:
    """Return the differences on several lines, at most n queries; texts are on one line each."""
    return "\n".join(_difference_lines(differences, n))


def _difference_lines(differences: Differences, n: int) -> Iterator[str]:
    yield f"{_side(differences.before)} -> {_side(differences.after)}"
    yield _document_differences_line(differences.documents)
    chunks = differences.chunks
    yield (
        f"chunks: {chunks.kept:,} kept, {chunks.added:,} added, {chunks.gone:,} gone "
        f"({chunks.before:,} before, {chunks.after:,} now)"
    )
    counts = _counted(kind_counts(differences.queries))
    yield (
        f"queries: {differences.before.n_accepted:,} accepted before, "
        f"{differences.after.n_accepted:,} now; {differences.n_same:,} equal"
        + (f"; differ in: {counts}" if counts else "")
    )
    yield f"grades: {differences.grades.same:,} equal, {differences.grades.in_words()}"
    for difference in differences.queries[:n]:
        yield ""
        yield from _query_lines(difference)
    if len(differences.queries) > n:
        more = plural(len(differences.queries) - n, "query", "queries")
        yield f"\n… and {more} more; -n or --json shows them"


def _side(side: ComparedVersion) -> str:
    return f"{one_line(side.name, 60)} version {side.version}"


def _document_differences_line(documents: DocumentDifferences) -> str:
    counts = {
        "added": len(documents.added),
        "gone": len(documents.gone),
        "changed": len(documents.changed or ()),
        "renamed": len(documents.renamed),
    }
    unknown = "" if documents.changed is not None else "; which changed is not recorded"
    there = f"{documents.before:,} before, {documents.after:,} now"
    return f"documents: {_counted(counts) or 'the same'} ({there}){unknown}"


def _query_lines(difference: QueryDifference) -> Iterator[str]:
    query = difference.after or difference.before
    assert query is not None
    kinds = ", ".join(difference.kinds)
    yield f"{one_line(difference.query_id, 60)} ({kinds}): {one_line(query.query, _TEXT_CHARS)}"
    if difference.before is not None and difference.after is not None:
        for name, old, new in _changed_texts(difference.before, difference.after):
            yield f"  {name}: {_quoted(old)} -> {_quoted(new)}"
    elif "added" in difference.kinds:
        yield f"  answer: {_quoted(query.expected_answer or '')}"
    if (
        "grades" in difference.kinds
        and difference.before is not None
        and difference.after is not None
    ):
        yield f"  grades: {difference.grades.in_words()}{_examples(difference.grades)}"
    causes = "; ".join(one_line(_cause_text(cause), 160) for cause in difference.causes)
    is_of_pool = difference.kinds == ("grades",) and not difference.grades.changed
    yield f"  cause: {causes or (_CAUSE_IN_POOL if is_of_pool else _NOT_KNOWN)}"


def _changed_texts(before: Query, after: Query) -> Iterator[tuple[str, str, str]]:
    pairs = {
        "status": (before.status, after.status),
        "revision": (str(before.revision), str(after.revision)),
        "question": (before.asked, after.asked),
        "answer": (_answer(before), _answer(after)),
        "evidence": (_quotes(before), _quotes(after)),
        "documents": (_documents(before), _documents(after)),
        "split": (before.split or "none", after.split or "none"),
    }
    for name, (old, new) in pairs.items():
        if old != new:
            yield name, old, new


def _answer(query: Query) -> str:
    answer = query.expected_answer or ""
    return answer if query.answerable else f"(unanswerable) {answer}"


def _quotes(query: Query) -> str:
    return " | ".join(item.quote for item in query.evidence)


def _documents(query: Query) -> str:
    return ", ".join(dict.fromkeys(item.doc_id for item in query.evidence))


def _quoted(text: str) -> str:
    return f'"{one_line(text, _TEXT_CHARS)}"' if text else "nothing"


def _examples(grades: GradeDifferences) -> str:
    examples = [
        f"{one_line(grade.chunk_id, 40)} {_grade(grade.before)} -> {_grade(grade.after)}"
        for grade in grades.examples[:_EXAMPLES_SHOWN]
    ]
    return f" ({', '.join(examples)})" if examples else ""


def _grade(value: int | None) -> str:
    return "failed" if value is None else str(value)
