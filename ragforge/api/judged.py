"""What judging, completing pools and auditing a judge came to, as text, JSON and rows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ragforge.api.results import Estimate, Result, plain_values
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import number, render_table
from ragforge.files.set.output_paths import refuse_to_replace
from ragforge.pipeline.job import failures_beside
from ragforge.pipeline.judge.judge_run import JudgingResult, describe_position_effect
from ragforge.records import Failure, JudgeAudit, Judgment
from ragforge.stages.judge.pairs import QuerySummary

if TYPE_CHECKING:
    from ragforge.measures.grader_agreement import Agreement
    from ragforge.pipeline.auditing import AuditResult
    from ragforge.pipeline.complete.completing import Completion


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Judged(Result):
    """What judging came to.

    Args:
        counts: All that was counted.
        judgments: Those that were made, where they went into no dataset; else empty.
        notes: What was told on the way.
    """

    counts: JudgingResult
    judgments: tuple[Judgment, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())

    @property
    def judge(self) -> str:
        """Name of the model or models, or `offline`."""
        return self.counts.judge

    @property
    def n_pairs(self) -> int:
        """Pairs in the pool, or those that were given."""
        return self.counts.n_pairs

    @property
    def n_judged(self) -> int:
        """Pairs that were judged now."""
        return self.counts.n_judged

    @property
    def n_failed(self) -> int:
        """Pairs that stay without a grade, as their judgment failed."""
        return self.counts.n_failed

    @property
    def grades(self) -> Mapping[int, int]:
        """How many pairs got each grade now."""
        return MappingProxyType({grade: self.counts.grades[grade] for grade in range(4)})

    @property
    def summaries(self) -> tuple[QuerySummary, ...]:
        """One a query, over everything that is judged for it."""
        return tuple(self.counts.summaries)

    @property
    def doubtful(self) -> tuple[Judgment, ...]:
        """What a person should look at first, the most undecided first."""
        return tuple(self.counts.doubtful)

    @property
    def agreement(self) -> "Agreement | None":
        """With people, where they graded pairs that were judged."""
        return self.counts.agreement

    @property
    def estimate(self) -> Estimate | None:
        """What a dry run counted; None in earnest."""
        return None if self.counts.estimate is None else Estimate(self.counts.estimate)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge judge --json` prints."""
        return _judging_json(self.counts) if self.estimate is None else self.estimate.to_dict()

    def rows(self) -> list[dict[str, Any]]:
        """Return the judgments that were made, else the summary of each query."""
        if self.judgments:
            return [_row(item) for item in self.judgments]
        return [item.model_dump() for item in self.counts.summaries]

    def table(self) -> str:
        """Return the summaries of the queries and what was counted, as text."""
        if self.estimate is not None:
            return self.estimate.table()
        tables = [summaries_text(self.counts)] if self.counts.summaries else []
        if self.counts.agreement is not None:
            tables.append(agreement_text(self.counts.agreement))
        return "\n".join([*tables, *judging_lines(self.counts)])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Completed(Result):
    """Pools that were completed by what probes find in the corpus.

    Args:
        done: What it came to.
        notes: What was told on the way.
    """

    done: "Completion"
    notes: tuple[str, ...] = field(default=())

    @property
    def n_judged(self) -> int:
        """Pairs that were judged now."""
        return self.done.judging.n_judged

    @property
    def n_failed(self) -> int:
        """Pairs whose judgment failed."""
        return self.done.judging.n_failed

    @property
    def estimate(self) -> Estimate | None:
        """What a dry run counted; None in earnest."""
        return None if self.done.estimate is None else Estimate(self.done.estimate)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge judge --complete --json` prints."""
        summary, judging = self.done.summary, self.done.judging
        if summary is None:
            return dict(self.done.estimate or {})
        from ragforge.report.generation import completion_json

        return {
            "judge": judging.judge,
            "judged": judging.n_judged,
            "failed": judging.n_failed,
            "unwrapped": dict(sorted(judging.unwrapped.items())),
            "failed_probes": dict(self.done.failed_probes),
            **completion_json(summary),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all figures."""
        return [plain_values(self.to_dict())]

    def table(self) -> str:
        """Return what the pools hold, and what was judged, as text."""
        if self.done.summary is None:
            return Estimate(self.done.estimate or {}).table()
        from ragforge.report.generation import completion_text

        return "\n".join([completion_text(self.done.summary), *completion_lines(self.done)])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Audited(Result):
    """What a judge did with texts that somebody had tampered with.

    Args:
        found: What it came to.
        notes: What was told on the way.
    """

    found: "AuditResult"
    notes: tuple[str, ...] = field(default=())

    @property
    def audit(self) -> JudgeAudit | None:
        """The record; None in a dry run."""
        return self.found.audit

    @property
    def estimate(self) -> Estimate | None:
        """What a dry run counted; None in earnest."""
        return None if self.found.estimate is None else Estimate(self.found.estimate)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge judge audit --json` prints."""
        if self.found.audit is None:
            return dict(self.found.estimate or {})
        return self.found.audit.model_dump(mode="json")

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each attack."""
        if self.found.audit is None:
            return []
        return [plain_values(item.model_dump(mode="json")) for item in self.found.audit.attacks]

    def table(self) -> str:
        """Return the attacks and their effect, as text."""
        if self.found.audit is None:
            return Estimate(self.found.estimate or {}).table()
        return "\n\n".join([*audit_texts(self.found.audit), audit_title(self.found.audit)])


def check_place(out: Path, pairs: Path | None, name: str) -> None:
    """Refuse to write judgments of pairs over what is no such file.

    Args:
        out: The file.
        pairs: That of the pairs; None where they are in no file.
        name: What messages call `out`.

    Raises:
        UsageError: It is the file of pairs itself, or holds something else.
    """
    refuse_same_file(out, pairs, name)
    refuse_to_replace(out, Judgment, ours=_is_made)
    refuse_to_replace(failures_beside(out), Failure)


def refuse_same_file(out: Path, pairs: Path | None, name: str) -> None:
    """Refuse to write over the file of pairs itself.

    Raises:
        UsageError: `out` is it.
    """
    if pairs is not None and out.exists() and out.samefile(pairs):
        raise UsageError(f"{name} {out}: is the file of pairs itself; name another")


def _is_made(old: Judgment) -> bool:
    """Whether a judgment is a model's or a rule's; what people graded is not to be replaced."""
    return old.source == "judge" and old.provenance is not None


def _row(item: Judgment) -> dict[str, Any]:
    return {
        "query_id": item.query_id,
        "chunk_id": item.chunk_id,
        "grade": item.grade,
        "contains_answer": item.contains_answer,
        "grade_mean": item.grade_mean,
        "reasoning": item.reasoning,
        "evidence": item.evidence,
        "failure": item.failure,
    }


def _judging_json(result: JudgingResult) -> dict[str, Any]:
    return {
        "judge": result.judge,
        "pairs": result.n_pairs,
        "judged": result.n_judged,
        "failed": result.n_failed,
        "copied": result.n_copied,
        "flags": dict(sorted(result.flags.items())),
        "unwrapped": dict(sorted(result.unwrapped.items())),
        "position_effect": asdict(result.position) if result.position else None,
        "gave_up_batches": result.gave_up_batches,
        "grades": _grades(result),
        "doubtful": [
            one.model_dump(include={"query_id", "chunk_id", "grade", "grade_mean", "entropy_bits"})
            for one in result.doubtful
        ],
        "queries": [summary.model_dump() for summary in result.summaries],
        "agreement": _agreement_json(result.agreement) if result.agreement else None,
    }


def _remarks(result: JudgingResult) -> Iterator[str]:
    """Yield what deserves a line of its own."""
    if result.n_copied:
        yield f"{result.n_copied} grades are those of chunks with the same text"
    if result.flags:
        found = ", ".join(f"{name} {count}" for name, count in sorted(result.flags.items()))
        yield f"suspicious in the chunks, told by `flags` in the judgments: {found}"
    yield from _unwrapped_lines(result)
    if result.doubtful:
        pairs = ", ".join(f"{one.query_id}/{one.chunk_id}" for one in result.doubtful[:3])
        yield f"most divided, and worth a person's look: {pairs} (--json has more)"
    if result.position is not None:
        effect = describe_position_effect(result.position)
        yield f"effect of the place in a batch on the grade: {effect}"


def _unwrapped_lines(result: JudgingResult) -> Iterator[str]:
    if result.unwrapped:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(result.unwrapped.items()))
        yield f"replies taken out of what stood around their JSON: {counts}"


def _grades(result: JudgingResult) -> dict[str, int]:
    return {str(grade): result.grades[grade] for grade in range(4)}


def summaries_text(result: JudgingResult) -> str:
    """Return what was found for each query, as a table."""
    headers = ["query", "chunks", "relevant", "failed", "average grade", "coverage"]
    return render_table(headers, map(_summary_row, result.summaries))


def _summary_row(item: QuerySummary) -> list[str]:
    return [
        item.query_id,
        str(item.totalChunks),
        str(item.relevantChunks),
        str(item.failedChunks),
        number(item.averageRelevance, 2),
        item.answerCoverage or "unknown",
    ]


def agreement_text(agreement: "Agreement") -> str:
    """Return how far the judge and people agree, as a table."""
    from ragforge.report.judges import agreement_table
    from ragforge.report.text import table_text

    return table_text(agreement_table(agreement))


def _agreement_json(agreement: "Agreement") -> dict[str, object]:
    from ragforge.report.judges import agreement_json

    return agreement_json(agreement)


def judging_lines(result: JudgingResult) -> list[str]:
    """Return what was counted, and what deserves a line of its own."""
    return [*_remarks(result), _counts_line(result)]


def completion_lines(done: "Completion") -> list[str]:
    """Return which probes failed, and what was judged, a line each."""
    judging, probes = done.judging, done.failed_probes.items()
    return [
        *(f"probe {name} failed for {n:,} queries (see failures.jsonl)" for name, n in probes),
        *_unwrapped_lines(judging),
        f"judge {judging.judge}: {judging.n_judged:,} pairs judged now, "
        f"{judging.n_failed:,} failed",
    ]


def audit_texts(audit: JudgeAudit) -> list[str]:
    """Return the attacks and their effect, and what else was found, a table each."""
    from ragforge.report.judges import audit_tables

    tables = audit_tables(audit)
    return [render_table(table.headers, table.rows) for table in tables if table.rows]


def audit_title(audit: JudgeAudit) -> str:
    """Return which judge was audited on what."""
    from ragforge.report.judges import audit_line

    return f"judge audit of {audit_line(audit)}"


def _counts_line(result: JudgingResult) -> str:
    grades = ", ".join(f"{grade}: {count}" for grade, count in _grades(result).items())
    coverage = Counter(item.answerCoverage or "unknown" for item in result.summaries)
    covered = ", ".join(f"{name} {count}" for name, count in sorted(coverage.items()))
    of_queries = f"; answer coverage of queries: {covered}" if covered else ""
    if result.n_pairs and not (result.n_judged or result.n_failed):
        return (
            f"judge {result.judge}: the pool was judged already: all {result.n_pairs} pairs have a "
            f"grade, and nothing was asked{of_queries}"
        )
    return (
        f"judge {result.judge}: {result.n_judged} of {result.n_pairs} pairs judged now, "
        f"{result.n_failed} failed; grades {grades}{of_queries}"
    )
