"""What systems answered: graded, or held against the chunks it was made from; text, JSON, rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragforge.api.outcomes import failures_text
from ragforge.api.results import Estimate, Result
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.formatting import share
from ragforge.pipeline.job import Job
from ragforge.records import Failure, Grounding
from ragforge.stages.ground.summary import GroundingSummary

if TYPE_CHECKING:
    from ragforge.evaluating.answers.rates import AnswerSummary
    from ragforge.files.set.dataset import Dataset
    from ragforge.measures.rates import Rate
    from ragforge.pipeline.answer.answering import AnsweringResult
    from ragforge.pipeline.answer.asking_systems import AskingResult


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Answered(Result):
    """Answers of a system, and their grades.

    Args:
        system: Its name.
        asked: What asking it came to; None where its answers were there.
        graded: What grading came to; None where nothing was graded.
        summary: Of all its answers; None likewise.
        counted: What a dry run counted; None in earnest.
        notes: What was told on the way.
    """

    system: str
    asked: AskingResult | None = None
    graded: AnsweringResult | None = None
    summary: AnswerSummary | None = None
    counted: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def verdicts(self) -> Mapping[str, int]:
        """How many answers got each verdict; `failed` for those without."""
        grades = self.graded.grades if self.graded else ()
        return dict(sorted(Counter(item.verdict or "failed" for item in grades).items()))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Of asking and of grading."""
        asked = self.asked.failures if self.asked else ()
        return (*asked, *(self.graded.failures if self.graded else ()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """On how many queries the system failed, where it did."""
        asked = self.asked
        return (describe_asking(asked, self.system),) if asked and asked.failures else ()

    @property
    def estimate(self) -> Estimate | None:
        """What a dry run counted; None in earnest."""
        return None if self.counted is None else Estimate(self.counted)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge answer --json` prints."""
        if self.counted is not None:
            return dict(self.counted)
        asked: dict[str, Any] = {}
        if self.asked is not None:
            asked = {
                "asked": self.asked.n_asked,
                "kept": self.asked.n_kept,
                "not_answered": len(self.asked.failures),
            }
        if self.graded is None or self.summary is None:
            file = {} if self.asked is None else {"file": str(self.asked.path)}
            return {"system": self.system, **file, **asked}
        from ragforge.report.answers import answers_json

        return {
            "system": self.graded.system,
            "judge": None if self.graded.given_by else self.graded.judge,
            "graded_by_file": self.graded.given_by or None,
            "decided_by_rule": _rules(self.graded),
            "verdicts": dict(self.verdicts),
            **answers_json(self.summary),
            **asked,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each graded answer."""
        return [
            {
                "query_id": item.query_id,
                "verdict": item.verdict,
                "score": item.score,
                "strict_score": item.strict_score,
                "has_hallucination": item.has_hallucination,
                "rule": item.rule,
                "explanation": item.explanation,
                "failure": item.failure,
            }
            for item in (self.graded.grades if self.graded else ())
        ]

    def table(self) -> str:
        """Return what was counted, the rates, and the likely causes of what went wrong."""
        if self.estimate is not None:
            return self.estimate.table()
        if self.summary is None:
            return "\n".join(answer_lines(self))
        from ragforge.report.answers import render_answers

        return "\n".join([*answer_lines(self), render_answers(self.summary)])


def answer_lines(found: Answered) -> list[str]:
    """Return how many answers there are and got which verdict, a line each."""
    graded, asked = found.graded, found.asked
    lines = []
    if asked is not None and (asked.n_asked or graded is None):
        n_failed = len(asked.failures)
        lines.append(f"{asked.n_asked - n_failed} queries answered, {n_failed} failed")
    if graded is not None:
        verdicts = ", ".join(f"{name} {count}" for name, count in found.verdicts.items())
        given = graded.given_by
        judge = f"by the grades of {given}" if given else f"judge {graded.judge}"
        lines.append(f"{graded.n_answers} answers, {judge}: {verdicts}")
        if not given:
            lines.append(_by_rule(graded))
    return [f"{found.system}: {line}" for line in lines]


def describe_asking(asked: AskingResult, system: str) -> str:
    """Return on how many of the queries asked now a system failed, and what it said first."""
    return failures_text(f"answers {system}: the system", asked.failures, asked.n_asked)


def _by_rule(graded: AnsweringResult) -> str:
    rules = _rules(graded)
    listed = ", ".join(f"{rule} {count}" for rule, count in rules.items())
    n_rules = sum(rules.values())
    text = f"{n_rules} of {len(graded.grades)} decided by rule, without the judge"
    return f"{text}: {listed}" if listed else text


def _rules(graded: AnsweringResult) -> dict[str, int]:
    """Return how many answers each rule decided."""
    return dict(sorted(Counter(item.rule for item in graded.grades if item.rule).items()))


async def ask_and_grade(
    dataset: Dataset,
    system: str,
    name: str,
    job: Job,
    *,
    again: bool = False,
    answers_only: bool = False,
) -> Answered:
    """Ask a system the queries that it has not answered yet, and grade its answers.

    Args:
        dataset: Has the queries, and gets the answers.
        system: What names the system.
        name: To keep its answers under.
        job: Model and budget. A dry run asks nothing.
        again: Ask also the queries that have an answer.
        answers_only: Grade nothing.

    Raises:
        DataError: There is nothing to grade answers by, which is told before the system is asked.
        UsageError, EndpointError, BudgetError: As for `ask_queries` and `grade`.
    """
    from ragforge.pipeline.answer.asking_systems import ask_queries

    queries = dataset.require_queries()
    if not answers_only and all(item.answerable and not item.expected_answer for item in queries):
        raise DataError(
            f"{dataset.path}: no query has an expected answer to grade by; --answers-only asks, "
            "and grades nothing"
        )
    asked = await ask_queries(dataset, system, name, job, again=again)
    if answers_only or not asked.path.exists():
        counted = {"system_calls": asked.n_asked} if job.mode.dry_run else None
        return Answered(name, asked, counted=counted)
    return await grade(dataset, asked.path, name, job, asked)


async def grade(
    dataset: Dataset, answers: Path, name: str, job: Job, asked: AskingResult | None = None
) -> Answered:
    """Grade answers that are there; see `grade_system`.

    Args:
        dataset: Has queries with expected answers, and chunks.
        answers: The file.
        name: Of the system.
        job: Model and budget.
        asked: What asking the system came to, if it was asked.

    Raises:
        DataError, EndpointError, BudgetError: As for `grade_system`.
    """
    from ragforge.pipeline.answer.answering import grade_system

    result = await grade_system(dataset, answers, name, job)
    if result.estimate is not None:
        system = {} if asked is None else {"system_calls": asked.n_asked}
        return Answered(name, asked, result, counted={**result.estimate, **system})
    from ragforge.evaluating.summary import summarise_system  # Checking claims needs none of it.

    threshold = job.settings.evaluate.rel_threshold
    summary = summarise_system(dataset, name, rel_threshold=threshold)
    return Answered(name, asked, result, summary)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Grounded(Result):
    """What answers say beyond their context.

    Args:
        judge: Name of the model, or `offline`.
        summary: Rates over all answers; None in a dry run.
        groundings: One an answer; empty where they were written to a file.
        path: That file; None where there is none.
        counted: What a dry run counted; None in earnest.
        notes: What was told on the way.
    """

    judge: str
    summary: GroundingSummary | None
    groundings: tuple[Grounding, ...] = ()
    path: Path | None = None
    counted: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def estimate(self) -> Estimate | None:
        """What a dry run counted; None in earnest."""
        return None if self.counted is None else Estimate(self.counted)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge ground --json` prints."""
        found = self.summary
        if found is None:
            return dict(self.counted or {})
        return {
            "judge": self.judge,
            "answers": found.n_answers,
            "checked": found.n_checked,
            "failed": found.n_failed,
            "rules": found.rules,
            "claims": found.n_claims,
            "claims_supported": found.n_supported,
            "grounded": _rate_json(found.grounded),
            "faithfulness": _rate_json(found.faithfulness),
            "answers_citing": found.n_citing,
            "citations": found.citations,
            "citation_precision": _rate_json(found.citation_precision),
            "citation_recall": _rate_json(found.citation_recall),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each answer."""
        return [
            {
                "query_id": item.query_id,
                "faithfulness": item.faithfulness,
                "claims": len(item.claims),
                "claims_supported": sum(claim.is_supported for claim in item.claims),
                "citation_precision": item.citation_precision,
                "citation_recall": item.citation_recall,
                "rule": item.rule,
                "failure": item.failure,
            }
            for item in self.groundings
        ]

    def table(self) -> str:
        """Return the rates as text."""
        if self.summary is None:
            return Estimate(self.counted or {}).table()
        return "\n".join(grounding_lines(self.judge, self.summary))


def grounding_lines(judge: str, found: GroundingSummary) -> Iterator[str]:
    """Yield what was checked, and each rate, a line each."""
    rules = ", ".join(f"{rule} {count}" for rule, count in found.rules.items())
    aside = f"; nothing to check: {rules}" if rules else ""
    yield (
        f"judge {judge}: {found.n_checked} of {found.n_answers} answers checked, "
        f"{found.n_failed} failed{aside}"
    )
    yield f"fully grounded: {_rate_text(found.grounded)}"
    yield (
        f"faithfulness: {_rate_text(found.faithfulness)}; "
        f"{found.n_supported} of {found.n_claims} claims supported"
    )
    if found.citations:
        counts = ", ".join(f"{status} {count}" for status, count in found.citations.items())
        yield f"citations of {found.n_citing} answers: {counts}"
        yield f"citation precision: {_rate_text(found.citation_precision)}"
    if found.citation_recall.n:
        yield f"citation recall: {_rate_text(found.citation_recall)}"


def _rate_text(rate: Rate) -> str:
    parts = [share(rate.mean)]
    if rate.interval is not None:
        parts.append(f"95 % interval {share(rate.interval.low)} to {share(rate.interval.high)}")
    if rate.n_failed and rate.bounds is not None:
        parts.append(f"with failures {share(rate.bounds.low)} to {share(rate.bounds.high)}")
    return f"{', '.join(parts)} (n {rate.n})"


def _rate_json(rate: Rate) -> dict[str, Any]:
    interval, bounds = rate.interval, rate.bounds
    return {
        "mean": rate.mean,
        "interval": None if interval is None else [interval.low, interval.high],
        "n": rate.n,
        "n_failed": rate.n_failed,
        "low": None if bounds is None else bounds.low,
        "high": None if bounds is None else bounds.high,
    }
