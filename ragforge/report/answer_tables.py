"""The tables about answers, as rows of text: verdicts, and what to blame for bad ones."""

from collections.abc import Iterable

from ragforge.report.answers import READINGS, AnswerSummary, Diagnosis
from ragforge.report.estimate import counts, with_n
from ragforge.report.summary import Summary
from ragforge.report.table import Table
from ragforge.report.words import ANSWERS_NOTE, DIAGNOSIS_NOTE


def answers(summary: Summary) -> Table:
    """Verdicts and means by answer system."""
    rows = []
    for item in summary.answers:
        rows.append(
            (
                item.system,
                with_n(item.score),
                *(f"{count:,}" for count in item.verdicts.values()),
                f"{item.n_failed:,}",
                f"{item.n_ungraded:,}",
                f"{item.n_unanswered:,}",
                f"{item.hallucination} ({checked(item)})",
            )
        )
    headers = (
        "system",
        "mean score",
        "correct",
        "partial",
        "incorrect",
        "not attempted",
        "failed",
        "not graded",
        "no answer",
        "hallucination rate",
    )
    return Table("Answers", headers, tuple(rows), ANSWERS_NOTE)


def diagnosis(summary: Summary) -> Table:
    """Whether retrieval or the model is to blame, by system and run."""
    rows = tuple(
        (answer.system, context_name(grid), *_diagnosis(grid))
        for answer in summary.answers
        for grid in answer.diagnoses
    )
    headers = ("system", "context", *READINGS.values(), "undecided")
    return Table("Retrieval or the model?", headers, rows, DIAGNOSIS_NOTE)


def checked(item: AnswerSummary) -> str:
    """Return the numbers of answers behind a hallucination rate."""
    rest = f", {item.n_unchecked:,} not checked" if item.n_unchecked else ""
    return counts(item.hallucination) + rest


def context_name(grid: Diagnosis) -> str:
    """Say which chunks stand for the context of the answers."""
    return f"top 5 of {grid.run}" if grid.run else "its own chunks"


def _diagnosis(grid: Diagnosis) -> Iterable[str]:
    yield from (f"{len(cell.query_ids):,}" for cell in grid.cells)
    yield f"{sum(len(item.query_ids) for item in grid.undecided):,}"
