"""Queries and logs that were taken into a set, as counts and text."""

from __future__ import annotations

from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragforge.api.outcomes import Counted
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural, render_table
from ragforge.pipeline.intake.importing import ImportResult

if TYPE_CHECKING:
    from ragforge.pipeline.intake.log_samples import Drawing
    from ragforge.pipeline.intake.logs import LogResult
    from ragforge.pipeline.intake.runs_and_qrels import QrelsTaken, RunTaken


def queries_taken_in(result: ImportResult, notes: tuple[str, ...] = ()) -> Counted:
    """Return what the import of a hand-made set came to."""
    n_documents = result.n_documents
    counts = {
        "queries": result.n_queries,
        "judgments": result.n_judgments,
        "lost": result.n_lost,
        "missing": result.n_missing,
        "held": result.n_held,
        "retired": result.n_retired,
        **({"documents": n_documents} if n_documents else {}),
        **_met_counts(result),
        **_replaced_counts(result),
    }
    stay = result.n_held + result.n_retired
    kept = f"; {stay} settled in review stay as they are" if stay else ""
    whole = f", {n_documents} of whole documents" if n_documents else ""
    queries = plural(result.n_queries, "query", "queries")
    text = f"{queries}, {plural(result.n_judgments, 'judgment')}{whole} taken in{kept}"
    return Counted("taken in", counts, notes, text)


def _met_counts(result: ImportResult) -> dict[str, int]:
    """Return how many grades of judges met those of a file, where some did."""
    counts = {
        "replaced": result.met.counts["replaced"].total(),
        "kept_by_other_judges": len(result.met.kept),
        "label_checks": len(result.met.checks),
    }
    return {name: n for name, n in counts.items() if n}


def _replaced_counts(result: ImportResult) -> dict[str, int]:
    """Return what of the set's queries and their labels was replaced, where something was."""
    counts = {
        "reworded": result.n_reworded,
        "other_questions": result.n_others,
        "regraded": result.n_regraded,
        "labels_taken_out": result.n_dropped,
        "labels_standing": result.n_standing,
    }
    return {name: n for name, n in counts.items() if n}


@dataclass(slots=True)
class Taken:
    """Everything that one import took in.

    Args:
        queries: What became of queries or logs; None where neither was named.
    """

    queries: Counted | None = None
    _counts: dict[str, Any] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)

    def add_qrels(self, path: Path, taken: QrelsTaken) -> None:
        """Add what became of a file of qrels."""
        result = taken.result
        self._counts["qrels"] = {
            "judgments": result.n_judgments,
            "unknown_queries": len(taken.unknown_queries),
            "missing": result.n_missing,
            "disagreeing": result.n_disagreeing,
            "queries_by_id": taken.n_by_id,
            "pairs": taken.n_pairs,
            "scale": taken.scale,
            "left_out": dict(taken.left_out),
            **_met_counts(result),
        }
        by_id = (
            f"; {plural(taken.n_by_id, 'query', 'queries')} called by id" if taken.n_by_id else ""
        )
        of_all = f" of {taken.n_pairs:,}" if taken.left_out else ""
        is_binary = taken.scale == "binary" and taken.n_ones
        scale = "; 0 and 1 alone: 1 is relevant, kept as grade 2" if is_binary else ""
        n = plural(result.n_judgments, "judgment")
        self._lines.append(f"{path.name}: {n}{of_all} taken in{by_id}{scale}")
        if taken.left_out:
            counts = "; ".join(f"{n:,} {why}" for why, n in taken.left_out.items())
            self._lines.append(f"left out: {counts}")

    def add_run(self, taken: RunTaken) -> None:
        """Add what became of a file of a run."""
        self._counts.setdefault("runs", {})[taken.name] = {
            "queries": taken.n_queries,
            "hits": taken.n_hits,
            "unknown_hits": taken.n_unknown_hits,
            "unknown_ids": len(taken.unknown_ids),
            "unknown_queries": len(taken.unknown_queries),
            "queries_without": taken.n_without,
            "repeated_hits": taken.n_repeated,
            "replaced": taken.has_replaced,
        }
        queries = plural(taken.n_queries, "query", "queries")
        self._lines.append(f"run {taken.name}: {plural(taken.n_hits, 'hit')} of {queries} taken in")

    def counted(self) -> Counted:
        """Return it all as counts and text."""
        counts = dict(self.queries.counts) if self.queries else {}
        notes = self.queries.notes if self.queries else ()
        lines = [*([self.queries.table()] if self.queries else []), *self._lines]
        return Counted("taken in", counts | self._counts, notes, "\n".join(lines))


def logs_taken_in(result: LogResult, *, as_queries: bool, notes: tuple[str, ...] = ()) -> Counted:
    """Return what the import of logs came to.

    Args:
        result: All that was counted.
        as_queries: Whether questions without labels became queries too.
        notes: What was told on the way.
    """
    counts: dict[str, Any] = {
        "rows": result.n_rows,
        "passed_over": result.n_passed_over,
        "queries": result.n_labelled + result.n_added,
        "labelled": result.n_labelled,
        "judgments": result.n_judgments,
        "lost": result.n_lost,
        "missing": result.n_missing,
        "real_queries": result.n_real,
        "masked": result.n_masked,
        "clicked": result.n_clicked,
        "hidden": result.n_hidden,
        "rejected_before": result.n_rejected,
        "disagreeing": result.n_disagreeing,
        "run": result.run or None,
        "retrieved": result.n_retrieved,
        **({"sample": _sample_json(result.drawing)} if result.drawing else {}),
    }
    return Counted("taken in", counts, notes, _logs_text(result, as_queries=as_queries))


def _logs_text(result: LogResult, *, as_queries: bool) -> str:
    labelled = plural(result.n_labelled, "labelled query", "labelled queries")
    judgments = plural(result.n_judgments, "judgment")
    real = plural(result.n_real, "other question")
    added = ", which became queries too" if as_queries else ""
    rows = plural(result.n_rows, "row")
    run = f"; what was retrieved is run {result.run}" if result.run else ""
    kept = f"{real} kept{added}"
    if result.drawing is not None:
        kept = f"{_drawn(result.drawing)}\n{_strata(result.drawing)}"
        run = f"\nwhat was retrieved is run {result.run}" if result.run else ""
    return f"{rows}: {labelled} with {judgments} taken in, {kept}{run}"


def _drawn(drawing: Drawing) -> str:
    """Say what was drawn of a log, and what it stands for."""
    distinct = plural(drawing.n_distinct, "different question")
    there = f"{drawing.n_there:,} of them in the set already"
    batch = one_line(drawing.batch, 60)
    if drawing.other_batches:
        names = ", ".join(one_line(name, 60) for name in drawing.other_batches)
        there += f"\nthis log was drawn from before, as {names}: what is drawn now comes beside it"
    if drawing.before:
        queries = plural(drawing.before, "query", "queries")
        return (
            f"{distinct} without labels, {there}\nbatch {batch} was drawn from this log before "
            f"({queries}): nothing is added"
        )
    return (
        f"{distinct} without labels, {there}\n{plural(len(drawing.queries), 'question')} drawn as "
        f"queries of batch {batch} (--draw {drawing.draw} --seed {drawing.seed}), of questions "
        f"that are {drawing.share:.1%} of all that was asked: the batch stands for these"
    )


def _strata(drawing: Drawing) -> str:
    rows = [
        [
            item.asked,
            f"{item.n_distinct:,}",
            f"{item.share:.1%}",
            f"{item.n_there:,}",
            f"{item.n_drawn:,}",
        ]
        for item in drawing.strata
    ]
    headers = ["asked", "questions", "of what was asked", "there already", "drawn"]
    return render_table(headers, rows)


def _sample_json(drawing: Drawing) -> dict[str, object]:
    return {
        "batch": drawing.batch,
        "draw": drawing.draw,
        "seed": drawing.seed,
        "asked": drawing.n_asked,
        "distinct": drawing.n_distinct,
        "there": drawing.n_there,
        "drawn": len(drawing.queries),
        "drawn_before": drawing.before,
        "other_batches": list(drawing.other_batches),
        "share": drawing.share,
        "strata": [asdict(item) for item in drawing.strata],
    }
