"""How far judges agree with people, as tables and as JSON: always beside the lexical baseline."""

from collections.abc import Iterable, Mapping
from typing import Final

from ragforge.evaluating.formatting import MISSING, number, one_line, plural, with_ends
from ragforge.evaluating.graded_by import BASELINE
from ragforge.evaluating.text_table import Table
from ragforge.measures.clustered import N_RESAMPLES, ClusteredInterval
from ragforge.measures.grader_agreement import (
    AUC_OF_SCORE,
    KAPPAS,
    Agreement,
    FailureBounds,
    Figures,
    GraderAgreement,
)

TITLE: Final = "Agreement with people"
NO_ADJECTIVES: Final = (
    "No adjectives such as “substantial” are put to kappa: what a value is worth depends on how "
    "often each grade occurs, and on what the baseline reaches on the same pairs."
)
_LABELS: Final = {
    "kappa": "kappa",
    "quadratic kappa": "quadratic kappa",
    "ordinal alpha": "ordinal alpha",
    "AC2": "AC2 (high wherever one grade prevails)",
    "kappa at threshold": "kappa at >= {t}",
    "sensitivity": "sensitivity at >= {t}",
    "specificity": "specificity at >= {t}",
    "precision": "precision at >= {t}",
    "AUC of the grade": "AUC at >= {t}, by grade",
    AUC_OF_SCORE: "AUC at >= {t}, by score",
    "judge rate": "judged >= {t}",
    "human rate": "people gave >= {t}",
    "MAE": "mean absolute error",
    "bias": "bias (its grade minus people's)",
}


def agreement_table(agreement: Agreement) -> Table:
    """Return the figures of agreement, a column for each grader."""
    names = [one_line(grader.name, 60) for grader in agreement.graders]
    rows = [
        (
            label.format(t=agreement.threshold),
            *(_figure(g.figures, name) for g in agreement.graders),
        )
        for name, label in _LABELS.items()
        if any(name in grader.figures for grader in agreement.graders)
    ]
    rows += _beyond(agreement)
    rows += _bounds(agreement)
    title = TITLE if names[0] == BASELINE else f"{TITLE}: {names[0]}"
    return Table(title, ("figure", *names), tuple(rows), agreement_note(agreement))


def agreement_note(agreement: Agreement) -> str:
    """Say what the figures of agreement rest on."""
    counts = ", ".join(f"{grade}: {n:,}" for grade, n in enumerate(agreement.human_counts))
    failed = (
        f"; {agreement.n_failed:,} more failed and are in no figure" if agreement.n_failed else ""
    )
    sentences = [
        f"On {plural(agreement.n_pairs, 'pair')} of "
        f"{plural(agreement.n_queries, 'query', 'queries')} that people graded ({counts}){failed}.",
        "In brackets: 95 % intervals that resample queries.",
        NO_ADJECTIVES,
    ]
    relevant = sum(agreement.human_counts[agreement.threshold :])
    if agreement.n_pairs and relevant == agreement.n_pairs:
        sentences.append(
            "People graded relevant pairs only: nothing here tells how often the judge takes a "
            "chunk for relevant that is not."
        )
    return " ".join(sentences)


def beats_baseline(agreement: Agreement) -> bool | None:
    """Whether the first grader's quadratic kappa is above the baseline's, its interval clear of 0.

    None where there is no such difference: the baseline is the first grader itself, or one of the
    two has no value or no interval.
    """
    for grader in agreement.graders:
        if grader.name == BASELINE and (gained := grader.beyond_first.get("quadratic kappa")):
            return None if gained.low is None else gained.low > 0
    return None


def agreement_json(agreement: Agreement) -> dict[str, object]:
    """Return the figures of agreement as JSON has them; null where one is not defined."""
    return {
        "pairs": agreement.n_pairs,
        "queries": agreement.n_queries,
        "failed": agreement.n_failed,
        "threshold": agreement.threshold,
        "level": 0.95,
        "resamples": N_RESAMPLES,
        "human_grades": {str(grade): count for grade, count in enumerate(agreement.human_counts)},
        "failure_bounds": {
            name: {"low": bounds.low, "high": bounds.high}
            for name, bounds in agreement.failure_bounds.items()
        },
        "graders": [_grader_json(grader) for grader in agreement.graders],
    }


def _grader_json(grader: GraderAgreement) -> dict[str, object]:
    return {
        "name": grader.name,
        "confusion": [list(row) for row in grader.counts],
        "figures": _figures_json(grader.figures),
        "first_minus_this": _figures_json(grader.beyond_first),
    }


def _figures_json(figures: Mapping[str, ClusteredInterval]) -> dict[str, object]:
    return {
        name: {"value": found.value, "low": found.low, "high": found.high}
        for name, found in figures.items()
    }


def _figure(figures: Figures, name: str) -> str:
    figure = figures.get(name)
    return MISSING if figure is None else with_ends(figure.value, figure.low, figure.high)


def _beyond(agreement: Agreement) -> Iterable[tuple[str, ...]]:
    """Yield what the first grader has beyond the baseline; nothing where it is the baseline."""
    empty = [MISSING] * (len(agreement.graders) - 1)
    for grader in agreement.graders[1:]:
        if grader.name == BASELINE:
            for name in KAPPAS:
                label = _LABELS[name].format(t=agreement.threshold)
                yield (
                    f"{label}, beyond the baseline's",
                    _figure(grader.beyond_first, name),
                    *empty,
                )


def _bounds(agreement: Agreement) -> Iterable[tuple[str, ...]]:
    empty = [MISSING] * (len(agreement.graders) - 1)
    for name, bounds in agreement.failure_bounds.items():
        label = _LABELS[name].format(t=agreement.threshold)
        yield (f"{label}, failures as far off as can be, or right", _range(bounds), *empty)


def _range(bounds: FailureBounds) -> str:
    return f"[{number(bounds.low)}, {number(bounds.high)}]"
