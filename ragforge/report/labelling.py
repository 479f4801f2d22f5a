"""What labelling came to, as text and as JSON."""

from dataclasses import asdict
from pathlib import Path

from ragforge.calibration.label_files import BINARY
from ragforge.calibration.label_tasks import LabellingSummary, TakenLabels, TwoLabellers
from ragforge.evaluating.formatting import (
    MISSING,
    both_ends,
    number,
    one_line,
    plural,
    render_table,
)
from ragforge.records import AnswerSample


def summary_text(summary: LabellingSummary) -> str:
    """Return who labelled how much, and how people agree."""
    if not summary.labellers:
        return f"{plural(summary.n_pairs, 'pair')} in the sample; nobody labelled yet"
    rows = [
        (
            one_line(person.labeller, 40),
            f"{person.n_graded:,}",
            f"{person.n_skipped:,}",
            f"{person.n_open:,}",
            MISSING if person.median_s is None else f"{person.median_s:.1f}",
            f"{person.n_repeated_same} of {person.n_repeated}" if person.n_repeated else MISSING,
        )
        for person in summary.labellers
    ]
    headers = ("labeller", "graded", "skipped", "open", "median s", "same again")
    parts = [
        f"{plural(summary.n_pairs, 'pair')} in the sample",
        render_table(headers, rows),
    ]
    if summary.agreement:
        of_two = ("people", "pairs", "same", "kappa", "quadratic kappa")
        parts.append(render_table(of_two, [_agreement_row(two) for two in summary.agreement]))
    if summary.n_disagreements or summary.n_settled:
        parts.append(
            f"{plural(summary.n_disagreements, 'disagreement')} to settle (--adjudicate), "
            f"{summary.n_settled:,} settled"
        )
    return "\n\n".join(parts)


def _agreement_row(two: TwoLabellers) -> tuple[str, ...]:
    return (
        " and ".join(both_ends(name, 40) for name in two.labellers),
        f"{two.n_pairs:,}",
        f"{two.n_same:,}",
        number(two.kappa),
        number(two.quadratic_kappa),
    )


def summary_json(summary: LabellingSummary) -> dict[str, object]:
    """Return the same for programs; null where a figure is not defined."""
    return asdict(summary)


def taken_lines(taken: TakenLabels) -> list[str]:
    """Return what became of the rows of a file, in sentences."""
    lines = [f"{plural(taken.n_new, 'new label')}, {taken.n_known:,} known"]
    if taken.n_open:
        lines.append(f"{plural(taken.n_open, 'row')} without a label")
    if taken.n_changed:
        lines.append(f"{plural(taken.n_changed, 'label')} took the place of others")
    if taken.n_standing:
        lines.append(
            f"{plural(taken.n_standing, 'label')} differ from what the same person said before, "
            "which stands; --overrule replaces it"
        )
    lines += [
        f"{count:,} left out: {reason}, first at {taken.examples[reason]}"
        for reason, count in sorted(taken.left_out.items())
    ]
    if taken.n_judged:
        moved = f"; {taken.n_moved:,} grades by judges went to label_checks.jsonl"
        lines.append(
            f"{plural(taken.n_judged, 'grade')} of people in the set{moved * bool(taken.n_moved)}"
        )
    told = (
        (taken.n_former, "label", "of another wording of the question do not count"),
        (taken.n_waiting, "labelled pair", "wait: the set does not have their text now"),
        (taken.n_people_stand, "grade", "that people gave before differ, and stand"),
    )
    lines += [f"{plural(n, noun)} {text}" for n, noun, text in told if n]
    if taken.are_binary:
        lines.append(f"careful: {BINARY}")
    return lines


def taken_json(taken: TakenLabels) -> dict[str, object]:
    """Return the same for programs."""
    return asdict(taken)


def answer_sample_json(sample: AnswerSample, path: Path) -> dict[str, object]:
    """Return which answers were drawn, for programs."""
    return {
        "file": str(path),
        "answers": len(sample.query_ids) * len(sample.systems),
        "queries": len(sample.query_ids),
        "probability": sample.probability,
    }
