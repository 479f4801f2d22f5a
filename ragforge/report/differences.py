"""How two versions of a set differ, as data: for `--json` and for the text."""

from collections.abc import Iterator
from typing import Final

from ragforge.evaluating.formatting import one_line, plural
from ragforge.evaluating.version_differences import (
    Differences,
    DocumentDifferences,
    Grades,
    QueryDifference,
    Side,
    kind_counts,
)
from ragforge.records import Query
from ragforge.report.refresh import cause_text

_NOT_KNOWN: Final = "not known"
_OF_POOL: Final = "chunks of its pool came or went"
_TEXT: Final = 80
_EXAMPLES_SHOWN: Final = 3


def differences_text(differences: Differences, n: int) -> str:
    """Return the differences on several lines, at most n queries; texts are on one line each."""
    return "\n".join(_lines(differences, n))


def _lines(differences: Differences, n: int) -> Iterator[str]:
    yield f"{_side(differences.before)} -> {_side(differences.after)}"
    yield _documents_line(differences.documents)
    chunks = differences.chunks
    yield (
        f"chunks: {chunks.kept:,} kept, {chunks.added:,} added, {chunks.gone:,} gone "
        f"({chunks.before:,} before, {chunks.after:,} now)"
    )
    counts = ", ".join(
        f"{count:,} {kind}" for kind, count in kind_counts(differences.queries).items()
    )
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


def _side(side: Side) -> str:
    return f"{one_line(side.name, 60)} version {side.version}"


def _documents_line(documents: DocumentDifferences) -> str:
    counts = {
        "added": len(documents.added),
        "gone": len(documents.gone),
        "changed": len(documents.changed or ()),
        "renamed": len(documents.renamed),
    }
    counted = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    unknown = "" if documents.changed is not None else "; which changed is not recorded"
    there = f"{documents.before:,} before, {documents.after:,} now"
    return f"documents: {counted or 'the same'} ({there}){unknown}"


def _query_lines(difference: QueryDifference) -> Iterator[str]:
    query = difference.after or difference.before
    assert query is not None
    kinds = ", ".join(difference.kinds)
    yield f"{one_line(difference.query_id, 60)} ({kinds}): {one_line(query.query, _TEXT)}"
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
    causes = "; ".join(one_line(cause_text(cause), 160) for cause in difference.causes)
    is_of_pool = difference.kinds == ("grades",) and not difference.grades.changed
    yield f"  cause: {causes or (_OF_POOL if is_of_pool else _NOT_KNOWN)}"


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
    examples = [
        f"{one_line(grade.chunk_id, 40)} {_grade(grade.before)} -> {_grade(grade.after)}"
        for grade in grades.examples[:_EXAMPLES_SHOWN]
    ]
    return f" ({', '.join(examples)})" if examples else ""


def _grade(value: int | None) -> str:
    return "failed" if value is None else str(value)
