"""How two versions of a set differ, for the terminal."""

from collections.abc import Iterator
from typing import Final

from ragforge.records import Query
from ragforge.report.refresh.differences import (
    Differences,
    DocumentDifferences,
    Grades,
    QueryDifference,
    Side,
    kind_counts,
)
from ragforge.report.refresh.words import cause_text
from ragforge.report.shown import one_line, plural

_NOT_KNOWN: Final = "not known"
_OF_POOL: Final = "chunks of its pool came or went"
_TEXT: Final = 80
_EXAMPLES: Final = 3


def differences_text(found: Differences, n: int) -> str:
    """Return the differences on several lines, at most n queries; texts are on one line each."""
    return "\n".join(_lines(found, n))


def _lines(found: Differences, n: int) -> Iterator[str]:
    yield f"{_side(found.before)} -> {_side(found.after)}"
    yield _documents_line(found.documents)
    chunks = found.chunks
    yield (
        f"chunks: {chunks.kept:,} kept, {chunks.added:,} added, {chunks.gone:,} gone "
        f"({chunks.before:,} before, {chunks.after:,} now)"
    )
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kind_counts(found.queries).items())
    yield (
        f"queries: {found.before.n_accepted:,} accepted before, {found.after.n_accepted:,} now; "
        f"{found.n_same:,} equal" + (f"; differ in: {counts}" if counts else "")
    )
    yield f"grades: {found.grades.same:,} equal, {found.grades.in_words()}"
    for one in found.queries[:n]:
        yield ""
        yield from _query_lines(one)
    if len(found.queries) > n:
        more = plural(len(found.queries) - n, "query", "queries")
        yield f"\n… and {more} more; -n or --json shows them"


def _side(side: Side) -> str:
    return f"{one_line(side.name, 60)} version {side.version}"


def _documents_line(found: DocumentDifferences) -> str:
    counts = {
        "added": len(found.added),
        "gone": len(found.gone),
        "changed": len(found.changed or ()),
        "renamed": len(found.renamed),
    }
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    unknown = "" if found.changed is not None else "; which changed is not recorded"
    return (
        f"documents: {told or 'the same'} ({found.before:,} before, {found.after:,} now){unknown}"
    )


def _query_lines(one: QueryDifference) -> Iterator[str]:
    query = one.after or one.before
    assert query is not None
    yield f"{one_line(one.query_id, 60)} ({', '.join(one.kinds)}): {one_line(query.query, _TEXT)}"
    if one.before is not None and one.after is not None:
        for name, old, new in _changed_texts(one.before, one.after):
            yield f"  {name}: {_quoted(old)} -> {_quoted(new)}"
    elif "added" in one.kinds:
        yield f"  answer: {_quoted(query.expected_answer or '')}"
    if "grades" in one.kinds and one.before is not None and one.after is not None:
        yield f"  grades: {one.grades.in_words()}{_examples(one.grades)}"
    told = "; ".join(one_line(cause_text(cause), 160) for cause in one.causes)
    is_of_pool = one.kinds == ("grades",) and not one.grades.changed
    yield f"  cause: {told or (_OF_POOL if is_of_pool else _NOT_KNOWN)}"


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
    return f'"{one_line(text, _TEXT)}"' if text else "nothing"


def _examples(grades: Grades) -> str:
    shown = [
        f"{one_line(one.chunk_id, 40)} {_grade(one.before)} -> {_grade(one.after)}"
        for one in grades.examples[:_EXAMPLES]
    ]
    return f" ({', '.join(shown)})" if shown else ""


def _grade(value: int | None) -> str:
    return "failed" if value is None else str(value)
