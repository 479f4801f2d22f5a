"""What to know when reading a verdict: its part, labels and judges, and the baseline."""

from collections.abc import Iterator

from ragforge.evaluating.formatting import plural
from ragforge.evaluating.gate import Rules
from ragforge.evaluating.judgments import COMPLETE_LABELS
from ragforge.evaluating.runs import by_document_text
from ragforge.evaluating.selection import Part
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.evaluated import EvaluatedRun
from ragforge.pipeline.gating.refusals import SharedItems, counted_judges, offline_sentence
from ragforge.pipeline.gating.subjects import Subject
from ragforge.records import Baseline, Evaluation


def notes_of(
    subject: Subject, baseline: Baseline | None, shared: SharedItems | None, rules: Rules
) -> Iterator[str]:
    """Yield what one must know to read a verdict.

    Args:
        subject: The run, or the answers.
        baseline: What it is held against, if anything.
        shared: The items that both have; None without a baseline.
        rules: What is checked.
    """
    if rules.by_point:
        yield "decided on means (--point): another choice of such queries may decide otherwise"
    yield from _of_part(subject)
    if subject.run is not None:
        yield from _of_labels(subject.run)
    if subject.whose_grades and (rules.least or rules.most or subject.of == "answers"):
        yield subject.whose_grades
    if offline := offline_sentence(counted_judges(subject, rules)):
        yield offline
    if baseline is not None and shared is not None:
        yield from _of_baseline(subject, baseline.evaluation, shared, rules)
    yield from subject.warnings


def uneven_labels(dataset: Dataset, subject: Subject, before: Baseline) -> Iterator[str]:
    """Yield that a drop may be one of who graded: people one ranking, and a judge the other.

    Args:
        dataset: Has the grades.
        subject: What is held against a baseline.
        before: The baseline.
    """
    if subject.run is None or not {"human", "llm"} <= {judge.kind for judge in subject.judges}:
        return
    from ragforge.pipeline.comparing.uneven_labels import uneven_tops  # Few gates need it.

    shares = uneven_tops(dataset, subject.baseline.items, before.items)
    if shares is not None:
        yield (
            f"people gave {shares.a:.0%} of the grades in the top 10 of {subject.evaluation.run} "
            f"and {shares.b:.0%} of those of the baseline, a judge the rest: a drop, or none, may "
            "be of who graded; `ragforge compare --calibrated` tells, by labels on a sample of both"
        )


def _of_labels(run: EvaluatedRun) -> Iterator[str]:
    """Yield how the labels are read that a run was measured on."""
    if run.is_complete:
        yield COMPLETE_LABELS
    if run.n_by_document:
        yield by_document_text(run.n_by_document)


def _of_baseline(
    subject: Subject, before: Evaluation, shared: SharedItems, rules: Rules
) -> Iterator[str]:
    """Yield what to know of the baseline, and of what can be compared with it."""
    n_left_out = len(subject.baseline.items) - len(shared.now)
    if n_left_out:
        items = plural(n_left_out, "item is", "items are")
        yield f"{items} not as in the baseline (or new), and left out of differences"
    yield from _of_grades(shared, rules)
    if before.digests.rankings == subject.evaluation.digests.rankings:
        what = "rankings" if subject.of == "runs" else "answers"
        yield f"the {what} are those of the baseline"
    if before.digests == subject.evaluation.digests:
        yield (
            "the baseline is an evaluation of this very state: no drop could have been found; for "
            "one before it, name a file of --write-baseline"
        )
    n_holes = subject.evaluation.n_holes
    if rules.drops and n_holes > before.n_holes:
        yield (
            f"{plural(n_holes, 'chunk')} in the top 10 without a grade "
            f"{'counts' if n_holes == 1 else 'count'} as not relevant ({before.n_holes:,} of the "
            "baseline did): a drop may be theirs alone; `ragforge judge` grades them"
        )
    n_failed = max((mean.n_failed for mean in before.measures.values()), default=0)
    if n_failed:
        failed = plural(n_failed, "query", "queries")
        yield f"{failed} failed in the baseline, and count as if at their best there"


def _of_part(subject: Subject) -> Iterator[str]:
    """Yield which part of the queries is decided on, where it is not all."""
    if subject.chosen is not None:
        measured = {key for valued in subject.valued.values() for key in valued.values}
        if subject.design is not None:
            measured &= subject.design.stratum_of.keys()
        yield from Part(subject.chosen, subject.design, frozenset(measured)).sentences


def _of_grades(shared: SharedItems, rules: Rules) -> Iterator[str]:
    """Yield notes on items whose grades are not those of the baseline."""
    if shared.has_other_chunks:
        return  # All of them are of other texts, and none decides.
    if shared.n_rescored:
        items = plural(shared.n_rescored, "item")
        yield (
            f"the grades of {items} changed since the baseline: its rankings of them were scored "
            "again on the grades of now"
        )
    n_left_out = shared.n_left_out(item.measure for item in rules.drops)
    if n_left_out:
        items = plural(n_left_out, "item cannot", "items cannot")
        how = "counts at its worst" if n_left_out == 1 else "count at their worst"
        if not shared.is_bounded:
            how = "is left out" if n_left_out == 1 else "are left out"
            how += " of differences: a drop there would not be seen"
        yield f"{items} be compared with the baseline, and {how}"
