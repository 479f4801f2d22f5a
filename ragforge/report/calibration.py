"""A calibration as text and as JSON."""

from collections.abc import Iterator
from typing import Final

from ragforge.calibration.planning import LabelPlan, PlannedDifference
from ragforge.calibration.sampling import DrawnSample
from ragforge.evaluating.formatting import (
    MISSING,
    both_ends,
    duration,
    number,
    one_line,
    plural,
    render_table,
    share,
    signed,
)
from ragforge.evaluating.graded_by import judge_text
from ragforge.records import Calibration, CorrectedFigure, CorrectedValue

_LEGEND: Final = (
    "corrected: by the judge's grades and people's labels; its 95 % interval is of these queries",
    "like these: the 95 % interval of what people would find on queries like these",
    "no judge: the interval of the same labels by the same method, of a judge that knows nothing",
    "judge's share: how much narrower the judge makes the interval; n of N pairs have labels",
)


_ASSISTED: Final = (
    "model-assisted: how much relevant text a query has is what labels on few of its pairs do not "
    "tell; `compare --calibrated` names a winner by it only where DCG shows the same one"
)


_LOW_LEVELS: Final = (
    "a level of nDCG comes out low where relevance differs much from query to query: by 9 % with "
    "200 labels and 7 % with 400 on TREC DL 2019; its interval allows for that, its value does not"
)


def calibration_text(found: Calibration) -> str:
    """Return a calibration as text: who graded what, then a row a figure."""
    headers = (
        *("measure", "of", "judge only", "people only", "corrected", "95 %", "like these"),
        *("no judge", "judge's share", "n", "N"),
    )
    rows = [_row(figure) for figure in found.figures]
    refused = [
        f"{figure.measure} of {figure_name(figure)}: {figure.refused}"
        for figure in found.figures
        if figure.refused
    ]
    assisted = dict.fromkeys(f.measure for f in found.figures if f.model_assisted)
    notes = [f"{', '.join(assisted)}: {_ASSISTED}"] if assisted else []
    if any(f.model_assisted and not f.is_difference for f in found.figures):
        notes.append(_LOW_LEVELS)
    parts = ["\n".join(_heads(found)), render_table(headers, rows), "\n".join(_LEGEND)]
    if refused or notes:
        parts.append("\n".join([*(f"not corrected: {text}" for text in refused), *notes]))
    return "\n\n".join(parts)


def calibration_json(found: Calibration) -> dict[str, object]:
    """Return what `ragforge calibrate apply --json` prints: the record, with the judge's share."""
    content: dict[str, object] = found.model_dump(mode="json")
    content["figures"] = [
        {**figure.model_dump(mode="json"), "judges_share": figure.judges_share}
        for figure in found.figures
    ]
    return content


def sample_text(drawn: DrawnSample, where: str) -> str:
    """Return what was drawn, in a few lines."""
    sample = drawn.sample
    new = len(sample.pairs) - drawn.n_before
    runs = ", ".join(both_ends(run.name, 60) for run in sample.runs)
    lines = [
        f"{plural(len(sample.pairs), 'pair')} of the {sample.n_pairs:,} that decide "
        f"{', '.join(sample.measures)} of {runs}"
        f" ({plural(sample.n_queries, 'query', 'queries')}): {where}",
        f"{plural(new, 'pair')} new; {drawn.n_before:,} drawn before, on which "
        f"there are {plural(drawn.n_labels_kept, 'label')}",
    ]
    if drawn.judge_before is not None:
        lines.append(
            f"drawn for {judge_text(sample.judge)}, whose grades count; the sample before was for "
            f"{judge_text(drawn.judge_before)}"
        )
    n_from_before = sum(pair.labelled_before for pair in sample.pairs)
    if 0 < n_from_before < len(sample.pairs):
        lines.append(
            f"{plural(n_from_before, 'pair')} graded before being drawn: such a grade counts in "
            "front of a pair that is labelled from now on, and all do once no pair is left"
        )
    if drawn.n_labels_left:
        lines.append(f"{plural(drawn.n_labels_left, 'label')} on pairs that are no longer drawn")
    if drawn.n_ungraded:
        lines.append(f"{plural(drawn.n_ungraded, 'pair')} that decide without a judge's grade")
    rows = [
        (
            MISSING if stratum.judged is None else str(stratum.judged),
            ("light", "middle", "heavy", "not retrieved")[min(stratum.weight_class, 3)],
            f"{stratum.n_pairs:,}",
            f"{stratum.n_drawn:,}",
            share(stratum.n_drawn, stratum.n_pairs),
        )
        for stratum in sample.strata
    ]
    table = render_table(("judge's grade", "weight", "pairs", "drawn", "share"), rows)
    return "\n".join([*lines, "", table])


def sample_json(drawn: DrawnSample) -> dict[str, object]:
    """Return what was drawn; the pairs are in `sample.json`."""
    return {
        **drawn.sample.model_dump(mode="json", exclude={"pairs"}),
        "design_sha256": drawn.sample.design_sha256,
        "n_drawn": len(drawn.sample.pairs),
        "n_before": drawn.n_before,
        "n_labels_kept": drawn.n_labels_kept,
        "n_labels_left": drawn.n_labels_left,
        "n_ungraded": drawn.n_ungraded,
        "judge_before": judge_text(drawn.judge_before) if drawn.judge_before else None,
    }


def plan_text(plan: LabelPlan) -> str:
    """Return a plan as a table: a row a figure, a column a number of labels."""
    sizes = list(dict.fromkeys(width.n for width in plan.widths))
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for width in plan.widths:
        name = (width.measure, _named(width.run, width.against))
        cells.setdefault(name, {})[width.n] = f"{number(width.width)} / {number(width.wide_width)}"
    rows = [(*name, *(of.get(n, MISSING) for n in sizes)) for name, of in cells.items()]
    by = f"{plural(plan.n_labels, 'label')} there are" if plan.n_labels else "judges of other sets"
    lines = [
        f"{plan.n_pairs:,} pairs of {plural(plan.n_queries, 'query', 'queries')} decide; widths of "
        f"95 % intervals over these queries / queries like these, by {by}",
        render_table(("measure", "of", *(f"n {n:,}" for n in sizes)), rows),
    ]
    lines += [_difference_text(item, by) for item in plan.differences]
    lines.append(
        "not counted: a label tells of its query's other pairs too, by which intervals come out up "
        "to a fifth narrower"
    )
    return "\n\n".join([*lines[:2], *(["\n".join(lines[2:])] if lines[2:] else [])])


def plan_json(plan: LabelPlan) -> dict[str, object]:
    """Return a plan as JSON has it."""
    return {
        "pairs": plan.n_pairs,
        "queries": plan.n_queries,
        "least": plan.n_least,
        "labels": plan.n_labels,
        "widths": [
            {
                "measure": item.measure,
                "run": item.run,
                "against": item.against,
                "n": item.n,
                "width": item.width,
                "wide_width": item.wide_width,
            }
            for item in plan.widths
        ],
        "differences": [
            {
                "measure": item.measure,
                "run": item.run,
                "against": item.against,
                "expected": item.expected,
                "by_judge": item.by_judge,
                "n": item.n,
                "n_wide": item.n_wide,
            }
            for item in plan.differences
        ],
    }


def figure_name(figure: CorrectedFigure) -> str:
    """Return what a figure is of: a run, or one minus another."""
    return _named(figure.run, figure.against)


def _named(run: str, against: str) -> str:
    return f"{both_ends(run, 60)} - {one_line(against, 60)}" if against else both_ends(run, 60)


def _difference_text(item: PlannedDifference, by: str) -> str:
    n = "not even labels on all pairs" if item.n is None else f"about {item.n:,} labels"
    wide = "takes more queries" if item.n_wide is None else f"takes about {item.n_wide:,} labels"
    which = f"{one_line(item.run, 40)} - {one_line(item.against, 40)}"
    return (
        f"{item.measure} of {which}: people are expected to find {signed(item.expected)}, by {by} "
        f"(the judge finds {signed(item.by_judge)}); {n} show that on these queries; on queries "
        f"like these it {wide}"
    )


def _heads(found: Calibration) -> Iterator[str]:
    counts = found.labels
    by = ", ".join(f"{both_ends(name, 40)} {n:,}" for name, n in counts.labellers.items())
    existing = f", {counts.n_existing:,} that were in the set" if counts.n_existing else ""
    seconds = f"; {duration(counts.seconds)} a label" if counts.seconds else ""
    yield (
        f"calibration {both_ends(found.name, 60)}: labels on {counts.n_used:,} of "
        f"{found.n_pairs:,} pairs that decide, {plural(found.n_queries, 'query', 'queries')} "
        f"({by or 'no labeller'}{existing}{seconds})"
    )
    yield f"judge: {judge_text(found.judge)}; relevant: grade >= {found.rel_threshold}"
    for each in found.agreement:
        whom = "the second look" if each.labeller == each.other else one_line(each.other, 40)
        yield (
            f"{one_line(each.labeller, 40)} and {whom}: kappa {number(each.kappa)}, the same grade "
            f"in {each.n_same:,} of {each.n:,}"
        )


def _row(figure: CorrectedFigure) -> tuple[str, ...]:
    digits = signed if figure.is_difference else number
    corrected = figure.corrected
    mine = figure.judges_share
    return (
        figure.measure,
        figure_name(figure),
        digits(figure.judge_only.value),
        _value(figure.people_only, figure.is_difference),
        MISSING if corrected is None else digits(corrected.value),
        _ends(None if corrected is None else (corrected.low, corrected.high)),
        _ends(None if corrected is None else (corrected.wide_low, corrected.wide_high)),
        _ends(
            None
            if figure.without_judge is None
            else (figure.without_judge.low, figure.without_judge.high)
        ),
        MISSING if mine is None else share(mine),
        f"{figure.n:,}",
        f"{figure.n_pairs:,}",
    )


def _value(of: CorrectedValue | None, is_difference: bool) -> str:
    if of is None:
        return MISSING
    digits = signed if is_difference else number
    return f"{digits(of.value)} {_ends((of.low, of.high))}"


def _ends(ends: tuple[float | None, float | None] | None) -> str:
    if ends is None or ends[0] is None or ends[1] is None:
        return MISSING
    return f"[{number(ends[0])}, {number(ends[1])}]"
