"""A comparison as JSON."""

from dataclasses import asdict
from math import isfinite

from ragforge.evaluating.comparison import Compared, ComparisonReport, MovedQuery
from ragforge.evaluating.graded_by import graded_json
from ragforge.evaluating.selection import part_json
from ragforge.measures.intervals import Ends
from ragforge.report.comparison import warnings_of
from ragforge.report.corrected_levels import calibration_summary


def comparison_json(report: ComparisonReport) -> dict[str, object]:
    """Return what `ragforge compare --json` prints.

    `low` and `high` are the ends of the corrected interval; `winner` is A, B, TIE or UNKNOWN, and
    `why` says what makes it UNKNOWN. `outcomes` say by measure what follows for all together.
    """
    return {
        "of": report.of,
        "names": list(report.names),
        "measures": list(report.measures),
        "base": report.baseline,
        "outcomes": {
            measure: {
                "outcome": report.outcome_by(measure),
                "winner": report.winner_by(measure),
                "better": list(report.better_by(measure)),
            }
            for measure in report.measures
        },
        "comparisons": [_compared(item) for item in report.items],
        "alpha": report.alpha,
        "letters": report.letters,
        "means": report.means,
        "n_values": report.n_values,
        "warnings": list(warnings_of(report)),
        **({"calibration": calibration_summary(report.calibration)} if report.calibration else {}),
        **({"selection": part_json(report.part)} if report.part else {}),
        "rel_threshold": report.rel_threshold,
        "judged_by": list(report.judged_by),
        "graded_by": graded_json(report.graded_by),
    }


def _compared(item: Compared) -> dict[str, object]:
    comparison = item.comparison
    return {
        "a": comparison.a,
        "b": comparison.b,
        "measure": comparison.measure,
        "mean_a": comparison.mean_a,
        "mean_b": comparison.mean_b,
        "diff": comparison.diff,
        **ends_json(comparison.interval),
        "p": _finite(comparison.p),
        "p_corrected": _finite(comparison.p_corrected),
        "winner": item.outcome,
        "wins": comparison.wins,
        "ties": comparison.ties,
        "losses": comparison.losses,
        "why": item.withheld or None,
        **({} if item.corrected is None else {"corrected": asdict(item.corrected)}),
        "same_rankings": comparison.is_identity,
        "percent": comparison.percent,
        "level": comparison.level,
        **ends_json(comparison.interval_alone, "low_alone", "high_alone"),
        "p_t": _finite(comparison.p_t),
        "n": comparison.n,
        "n_left_out": item.n_left_out,
        "n_open": item.n_open,
        "effect": asdict(comparison.effect),
        "power": None if comparison.power is None else asdict(comparison.power),
        "unjudged": _unjudged(item),
        "failure_bounds": _bounds_json(item.failure_bounds),
        "moved": {
            "gained": [_moved(query) for query in item.gained],
            "lost": [_moved(query) for query in item.lost],
        },
    }


def _unjudged(item: Compared) -> dict[str, object] | None:
    unjudged = item.unjudged
    if unjudged is None:
        return None
    return {
        "n_only_a": unjudged.n_only_a,
        "n_only_b": unjudged.n_only_b,
        "n_both": unjudged.n_both,
        "bounds": _bounds_json(unjudged.bounds),
    }


def _moved(query: MovedQuery) -> dict[str, object]:
    return {**asdict(query), "diff": query.diff}


def ends_json(ends: Ends | None, low: str = "low", high: str = "high") -> dict[str, float | None]:
    """Return both ends of an interval by name; null where there is none."""
    return {low: ends.low if ends else None, high: ends.high if ends else None}


def _bounds_json(bounds: Ends | None) -> dict[str, float | None] | None:
    return None if bounds is None else ends_json(bounds)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
