"""Judges beside people as a table and as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ragforge.calibration.answer_table import VERDICTS, AnswerJudgeReport, AnswerReport
from ragforge.calibration.judge_table import AgreementReport, JudgeReport, PanelReport
from ragforge.calibration.label_files import Labels, are_binary
from ragforge.evaluating.formatting import (
    MISSING,
    both_ends,
    number,
    one_line,
    plural,
    render_table,
    share,
    signed,
    with_ends,
)
from ragforge.measures.answer_agreement import ScoreAgreement
from ragforge.measures.grader_agreement import Agreement
from ragforge.measures.intervals import ClusteredInterval
from ragforge.report.judges import one_grade_lines

_COLUMNS: Final = {
    "kappa": "kappa",
    "quadratic kappa": "quadratic_kappa",
    "ordinal alpha": "alpha",
    "kappa at threshold": "binary_kappa",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "AUC of the grade": "auc",
    "bias": "bias",
}
"""Figure to its name in JSON, in the order of the columns."""
_OTHERS: Final = {
    "AC2": "ac2",
    "precision": "precision",
    "MAE": "mae",
    "judge rate": "judge_rate",
    "human rate": "human_rate",
}
_SEVERAL: Final = (
    "A pair that several people graded counts in equal parts by each of them: kappa is that with "
    "one of them drawn at random, bias is off their mean."
)
_WORST: Final = 5
_MANY_OUTSIDE: Final = 0.05
"""Share of grades beyond the scale from which on they are no slips."""


def judge_table_text(report: AgreementReport, *, by_query: bool = False) -> str:
    """Return the judges as a table, people's agreement among themselves last.

    Args:
        report: What is shown.
        by_query: Whether the queries with the largest bias follow, for each judge.
    """
    rows = [_row(judge) for judge in report.judges]
    if report.people is not None:
        rows.append(_row(report.people, f"(people: {report.people.name} beside the other)"))
    has_order = any(judge.order for judge in report.judges)
    headers = ["judge", "pairs", "queries", *_COLUMNS, *(("tau", "top tau") if has_order else ())]
    shown = [row if has_order else row[: len(headers)] for row in rows]
    parts = [
        render_table(headers, shown),
        *one_grade_lines(judge.agreement.graders[0] for judge in report.judges),
        *_grades(report.judges),
        *([_SEVERAL] if len(report.labellers) > 1 else []),
        *(
            f"{both_ends(name, 60)}: left out, as it graded no pair that people graded; do query "
            "and chunk ids go by the same names in both files?"
            for name in report.without_pairs
        ),
    ]
    if by_query:
        parts += [_queries(judge) for judge in report.judges]
    return "\n\n".join(parts)


def judge_table_json(report: AgreementReport) -> dict[str, object]:
    """Return the judges as JSON has them, by name; null where a figure is not defined."""
    people = report.people
    return {
        "judges": {judge.name: _judge_json(judge) for judge in report.judges},
        "people": None if people is None else _judge_json(people),
        "labellers": list(report.labellers),
        "without_pairs": list(report.without_pairs),
        "level": 0.95,
    }


def panel_text(report: PanelReport) -> str:
    """Return the weights of a panel, and how they do on queries kept out of their fit."""
    weights = [
        (both_ends(name, 60), number(weight, 2))
        for name, weight in zip(report.judges, report.found.weights, strict=True)
    ]
    rows = []
    for grader in report.found.tried.graders:
        beyond = grader.beyond_first.get("quadratic kappa")
        kappas = [_ends_of(grader.figures[name]) for name in ("kappa", "quadratic kappa")]
        rows.append((grader.name, *kappas, _ends_of(beyond) if beyond else MISSING))
    verdict = (
        "The weights agree better with people than equal ones and than the best judge alone."
        if report.found.gains
        else "The weights gain nothing that chance could not: keep equal ones, or the best judge."
    )
    headers = ("on queries kept out", "kappa", "quadratic kappa", "what the weights have beyond it")
    return "\n\n".join(
        [
            render_table(("judge", "weight"), weights),
            render_table(headers, rows),
            f"{verdict} On {plural(report.n_pairs, 'pair')} that all graded; no grade is changed.",
        ]
    )


def routing_text(found: Agreement) -> str:
    """Return how grades agree with people by the share of pairs that the dear judge is asked."""
    rows = []
    for grader in reversed(found.graders):
        beyond = grader.beyond_first.get("quadratic kappa")
        kappas = [_ends_of(grader.figures[name]) for name in ("kappa", "quadratic kappa")]
        rows.append((grader.name, *kappas, _ends_of(beyond) if beyond else MISSING))
    headers = ("dear calls", "kappa", "quadratic kappa", "what the dear judge alone has beyond it")
    return (
        f"{render_table(headers, rows)}\n\nOn {plural(found.n_pairs, 'pair')} of "
        f"{plural(found.n_queries, 'query', 'queries')}, those that the cheap judge doubts most "
        "first. The intervals hold for a share that was fixed before; one picked here looks better "
        "than it is. Grades of two judges do not mix with those of one."
    )


def routing_json(found: Agreement) -> dict[str, object]:
    """Return what routing gives as JSON has it, by the share of calls to the dear judge."""
    return {
        grader.name: {
            "kappa": _interval_json(grader.figures["kappa"]),
            "quadratic_kappa": _interval_json(grader.figures["quadratic kappa"]),
            "dear_minus_this": {
                name.replace(" ", "_"): _interval_json(each)
                for name, each in grader.beyond_first.items()
            },
        }
        for grader in reversed(found.graders)
    }


def panel_json(report: PanelReport) -> dict[str, object]:
    """Return the weights of a panel as JSON has them."""
    return {
        "weights": dict(zip(report.judges, report.found.weights, strict=True)),
        "pairs": report.n_pairs,
        "queries": report.found.tried.n_queries,
        "gains": report.found.gains,
        "tried": {
            grader.name: {
                "kappa": _interval_json(grader.figures["kappa"]),
                "quadratic_kappa": _interval_json(grader.figures["quadratic kappa"]),
                "weighted_minus_this": {
                    name.replace(" ", "_"): _interval_json(each)
                    for name, each in grader.beyond_first.items()
                },
            }
            for grader in report.found.tried.graders
        },
    }


def skipped_lines(labels: Iterable[Labels]) -> list[str]:
    """Return a line for each reason for which rows of a file were left out."""
    return [
        f"{each.name}: {plural(count, 'row')} left out: {reason} (first: {each.examples[reason]})"
        for each in labels
        for reason, count in each.skipped.items()
    ]


def scale_warnings(labels: Sequence[Labels], threshold: int) -> list[str]:
    """Return what scales of files do to the figures: grades cut off, or none that is relevant.

    Args:
        labels: People's file, then the judges'.
        threshold: Lowest grade that counts as relevant.
    """
    lines = [
        f"careful: {share(each.n_outside, each.n_given)} of the grades of {each.name} are beyond "
        "the scale and left out, so that all figures are of the pairs graded lower; write them as "
        "0 to 3 to count them"
        for each in labels
        if each.n_outside > _MANY_OUTSIDE * each.n_given
    ]
    lines += [
        f"careful: {each.name} gives no grade of {threshold} or above, where relevant begins: "
        "it finds nothing relevant; --rel-threshold names another one"
        for each in labels
        if each.highest < threshold
    ]
    people, *judges = labels
    graded = [grade for grades in people.all_grades().values() for grade in grades]
    if threshold == 1 and are_binary(graded):
        lines += [
            f"careful: {people.name} gives 0 and 1 alone, and {each.name} up to {each.highest}: "
            "its 1 counts as relevant too; where 1 of people means relevant, write 2"
            for each in judges
            if each.highest > 1
        ]
    return lines


def left_out_json(labels: Iterable[Labels]) -> dict[str, dict[str, int]]:
    """Return how many rows of each file were left out, by the reason."""
    return {each.name: dict(each.skipped) for each in labels}


def _row(judge: JudgeReport, name: str = "") -> tuple[str, ...]:
    figures = judge.agreement.graders[0].figures
    order = judge.order
    return (
        both_ends(name or judge.name, 60),
        f"{judge.agreement.n_pairs:,}",
        f"{judge.agreement.n_queries:,}",
        *(
            with_ends(figures[name].value, figures[name].low, figures[name].high)
            for name in _COLUMNS
        ),
        number(order.tau) if order else MISSING,
        number(order.top_tau) if order else MISSING,
    )


def _grades(judges: Iterable[JudgeReport]) -> list[str]:
    """Return what each judge gives to pairs of each of people's grades."""
    rows = []
    for judge in judges:
        for grade, counts in enumerate(judge.agreement.graders[0].counts):
            total = sum(counts)
            mean = sum(i * n for i, n in enumerate(counts)) / total if total else None
            cells = [f"{n / total:.0%}" if total else MISSING for n in counts]
            rows.append(
                (both_ends(judge.name, 60), str(grade), _count(total), *cells, number(mean, 2))
            )
    headers = ("judge", "people gave", "pairs", "it gave 0", "1", "2", "3", "mean")
    return [render_table(headers, rows)] if rows else []


def _count(pairs: float) -> str:
    return f"{pairs:,.1f}".removesuffix(".0")


def _queries(judge: JudgeReport) -> str:
    rows = [
        (one_line(row.query_id, 60), f"{row.n_pairs:,}", _count(row.n_same), signed(row.bias, 2))
        for row in judge.by_query[:_WORST]
    ]
    return f"{both_ends(judge.name, 60)}, queries with the largest bias\n" + render_table(
        ("query", "pairs", "same grade", "bias"), rows
    )


def _judge_json(judge: JudgeReport) -> dict[str, object]:
    agreement, grader = judge.agreement, judge.agreement.graders[0]
    names = {**_COLUMNS, **_OTHERS}
    found: dict[str, object] = {name: grader.figures[key].value for key, name in names.items()}
    order = judge.order
    return {
        **found,
        "intervals": {
            name: _ends(grader.figures[key].low, grader.figures[key].high)
            for key, name in names.items()
        },
        "pairs": agreement.n_pairs,
        "queries": agreement.n_queries,
        "failed": agreement.n_failed,
        "not_judged": judge.n_ungraded,
        "not_labelled": judge.n_unlabelled,
        "threshold": agreement.threshold,
        "confusion": [list(row) for row in grader.counts],
        "by_query": {
            row.query_id: {"pairs": row.n_pairs, "same": row.n_same, "bias": row.bias}
            for row in judge.by_query
        },
        "tau": None if order is None else order.tau,
        "top_tau": None if order is None else order.top_tau,
        "runs": None if order is None else _runs(order.people, order.judge),
    }


def _ends(low: float | None, high: float | None) -> list[float] | None:
    return None if low is None or high is None else [low, high]


def _runs(people: Mapping[str, float], judge: Mapping[str, float]) -> dict[str, object]:
    return {name: {"people": people[name], "judge": judge[name]} for name in people}


def answer_table_text(report: AnswerReport) -> str:
    """Return judges of answers as a table, people's agreement among themselves last."""
    judges = [(both_ends(judge.name, 60), judge) for judge in report.judges]
    if report.people is not None:
        judges.append(
            (f"(people: {both_ends(report.people.name, 60)} beside the other)", report.people)
        )
    parts = []
    if any(judge.verdicts or judge.scores for _, judge in judges):
        headers = ("judge", "answers", "kappa", "same verdict", "Pearson", "Spearman", "bias")
        rows = [(name, *_answer_figures(judge)) for name, judge in judges]
        parts.append(render_table(headers, rows))
    verdicts = [(judge, judge.verdicts) for judge in report.judges if judge.verdicts is not None]
    if verdicts:
        cells = [
            (both_ends(judge.name, 60), verdict, f"{sum(found.counts[i]):,}", _ends_of(recall))
            for judge, found in verdicts
            for i, (verdict, recall) in enumerate(zip(VERDICTS, found.recall, strict=True))
        ]
        parts.append(render_table(("judge", "people say", "answers", "it says so too"), cells))
    compared = [(name, judge.preferences) for name, judge in judges if judge.preferences]
    if compared:
        sides = [
            (
                name,
                f"{found.scores.n:,}",
                _ends_of(found.same_sign),
                _ends_of(found.scores.pearson),
                _ends_of(found.scores.spearman),
                f"{found.n_ties:,}",
                f"{found.n_judge_ties:,}",
            )
            for name, found in compared
        ]
        headers = ("judge", "comparisons", "same side", "Pearson", "Spearman", "ties", "its ties")
        parts.append(render_table(headers, sides))
    return "\n\n".join(parts)


def answer_table_json(report: AnswerReport) -> dict[str, object]:
    """Return judges of answers as JSON has them, by name."""
    people = report.people
    return {
        "judges": {judge.name: _answer_json(judge) for judge in report.judges},
        "people": None if people is None else _answer_json(people),
        "level": 0.95,
        "left_out": dict(report.left_out),
    }


def _answer_figures(judge: AnswerJudgeReport) -> tuple[str, ...]:
    verdicts, scores = judge.verdicts, judge.scores
    return (
        f"{scores.n:,}" if scores else MISSING,
        _ends_of(verdicts.kappa) if verdicts else MISSING,
        _ends_of(verdicts.same) if verdicts else MISSING,
        _ends_of(scores.pearson) if scores else MISSING,
        _ends_of(scores.spearman) if scores else MISSING,
        _ends_of(scores.bias) if scores else MISSING,
    )


def _answer_json(judge: AnswerJudgeReport) -> dict[str, object]:
    verdicts, scores, preferences = judge.verdicts, judge.scores, judge.preferences
    return {
        "verdicts": verdicts
        and {
            "kappa": _interval_json(verdicts.kappa),
            "same": _interval_json(verdicts.same),
            "recall": dict(zip(VERDICTS, map(_interval_json, verdicts.recall), strict=True)),
            "confusion": [list(row) for row in verdicts.counts],
        },
        "scores": scores and _scores_json(scores),
        "preferences": preferences
        and {
            **_scores_json(preferences.scores),
            # A score less another has no unit in common with a preference.
            "bias": None,
            "same_side": _interval_json(preferences.same_sign),
            "ties": preferences.n_ties,
            "judge_ties": preferences.n_judge_ties,
        },
    }


def _scores_json(scores: ScoreAgreement) -> dict[str, object]:
    return {
        "n": scores.n,
        "pearson": _interval_json(scores.pearson),
        "spearman": _interval_json(scores.spearman),
        "bias": _interval_json(scores.bias),
    }


def _interval_json(found: ClusteredInterval) -> dict[str, float | None]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _ends_of(found: ClusteredInterval) -> str:
    return with_ends(found.value, found.low, found.high)
