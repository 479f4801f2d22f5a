"""Who graded what numbers rest on: in one line, as JSON, and why a winner cannot rest on it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ragforge.files.qrels import JudgedQrels
from ragforge.records import Grader
from ragforge.records.grade_origins import GradeOrigin, origin
from ragforge.report.judging import Judge
from ragforge.report.shown import one_line

NOT_RECORDED: Final = "who graded is not recorded"
_NAME_CHARS: Final = 60
_MOST_NAMED: Final = 8
"""In the line; a file may name one for each grade."""
_UNRECORDED: Final = GradeOrigin("")


@dataclass(frozen=True, slots=True)
class GradedBy:
    """How many grades one origin gave."""

    origin: GradeOrigin
    n: int


@dataclass(frozen=True, slots=True)
class SilentGrades:
    """Grades that say nothing about quality, among those that a number rests on."""

    n_words: int = 0
    """Of the offline baseline: shared words."""
    n_made_up: int = 0
    """Of `ragforge mock`."""
    n: int = 0
    """All grades it rests on."""

    @property
    def any(self) -> bool:
        """Whether there is one; it is enough for no winner to be named."""
        return bool(self.n_words or self.n_made_up)

    @property
    def basis(self) -> str:
        """What the number rests on, in words: `by shared words`."""
        kinds = ["shared words"] if self.n_words else []
        kinds += ["what ragforge mock made up"] if self.n_made_up else []
        n = self.n_words + self.n_made_up
        part = f"in part ({n:,} of {self.n:,} grades) " if n < self.n else ""
        return f"{part}by {' and '.join(kinds)}"


def count_silent(origins: Iterable[GradeOrigin]) -> SilentGrades:
    """Count the grades that say nothing, one origin a grade."""
    counts = Counter(origins)
    return SilentGrades(
        n_words=sum(n for item, n in counts.items() if item.is_shared_words),
        n_made_up=sum(n for item, n in counts.items() if item.is_made_up),
        n=sum(counts.values()),
    )


def silent_of(graders: Iterable[Grader]) -> SilentGrades:
    """Count the grades that say nothing in an evaluation of a history or a baseline.

    A trend, or a difference of two evaluations, can be told only where neither has `any`.
    """
    listed = [grader for grader in graders if grader.count]
    return SilentGrades(
        n_words=sum(g.count - g.n_evidence for g in listed if g.kind == "baseline"),
        n_made_up=sum(g.count for g in listed if g.kind == "mock"),
        n=sum(g.count for g in listed),
    )


def why_unknown(silent: SilentGrades, ahead: str) -> str:
    """Return why no winner is named, "" where nothing forbids it.

    Args:
        silent: Among the grades that the difference rests on.
        ahead: The name of the one that these numbers put first; "" where they put neither.
    """
    if not silent.any:
        return ""
    return f"{silent.basis}, {ahead or 'neither'} ranks higher; this says nothing about quality"


def count_grades(origins: Iterable[GradeOrigin]) -> tuple[GradedBy, ...]:
    """Return who graded, one origin a grade; who gave most first."""
    counts = Counter(origins).items()
    entries = (GradedBy(item, n) for item, n in counts if n)
    return tuple(sorted(entries, key=_order))


def count_file_grades(judged: JudgedQrels) -> tuple[GradedBy, ...]:
    """Return who graded the pairs of a file; () where it does not say."""
    if not judged.origins:
        return ()
    return count_grades(
        judged.origins.get((query_id, chunk_id), _UNRECORDED)
        for query_id, grades in judged.grades.items()
        for chunk_id, grade in grades.items()
        if grade is not None
    )


def grades_of(judges: Iterable[Judge]) -> tuple[GradedBy, ...]:
    """Return who graded among judges, without records that failed; who gave most first."""
    counts: Counter[GradeOrigin] = Counter()
    for judge in judges:
        source = "human" if judge.kind == "human" else ""
        n = judge.count - judge.n_failed - judge.n_evidence
        counts[origin(judge.kind, judge.model, judge.prompt, source)] += n
        counts[origin(judge.kind, judge.model, judge.prompt, "evidence")] += judge.n_evidence
    return tuple(sorted((GradedBy(item, n) for item, n in counts.items() if n > 0), key=_order))


def graded_line(entries: Iterable[GradedBy]) -> str:
    """Say who graded in one line: what a reader has to know before any number."""
    listed = list(entries)
    if not any(item.origin.kind for item in listed):
        return NOT_RECORDED
    parts = [f"{_named(item.origin)}: {item.n:,}" for item in listed[:_MOST_NAMED]]
    others = listed[_MOST_NAMED:]
    if others:
        parts.append(f"{len(others):,} others: {sum(item.n for item in others):,}")
    return f"graded by {'; '.join(parts)}"


def graded_json(entries: Iterable[GradedBy]) -> list[dict[str, object]]:
    """Return what stands under `graded_by`; `kind` is None where it is not recorded."""
    return [
        {
            "kind": item.origin.kind or None,
            "model": item.origin.model,
            "prompt": item.origin.prompt,
            "source": item.origin.source,
            "n": item.n,
        }
        for item in entries
    ]


def _named(item: GradeOrigin) -> str:
    model = one_line(item.model, _NAME_CHARS)
    if item.is_made_up:
        return f"ragforge mock in the place of {model}" if model else "ragforge mock"
    if item.source == "evidence":
        return f"quotes in queries by {model or 'people'}"
    if item.kind == "baseline":
        return f"the offline baseline, shared words ({model})"
    if item.kind == "human":
        return f"people ({model})" if model else "people"
    kinds = {"llm": "language model", "rule": "rule", "file": "grades of a file"}
    return f"{model} ({kinds[item.kind]})" if item.kind in kinds else "not recorded"


def _order(item: GradedBy) -> tuple[int, str, str, str, str]:
    by = item.origin
    return -item.n, by.kind, by.model, by.prompt, by.source
