"""A comparison as JSON: no NaN, None where there is no value."""

from dataclasses import asdict
from math import isfinite

from ragforge.measures.intervals import Ends
from ragforge.report.comparison.contents import Compared, ComparisonReport, MovedQuery
from ragforge.report.graded_by import graded_json
from ragforge.report.selection import selection_json


def comparison_json(report: ComparisonReport) -> dict[str, object]:
    """Return what `ragforge compare --json` prints.

    `low` and `high` are the ends of the corrected interval; `winner` is A, B, TIE or UNKNOWN, and
    `why` says what makes it UNKNOWN.
    """
    return {
        "of": report.of,
        "names": list(report.names),
        "measures": list(report.measures),
        "base": report.baseline,
        "comparisons": [_compared(item) for item in report.items],
        "alpha": report.alpha,
        "letters": report.letters,
        "means": report.means,
        "n_values": report.n_values,
        "warnings": list(report.warnings),
        **({"selection": selection_json(report.part.selection)} if report.part else {}),
        "rel_threshold": report.rel_threshold,
        "judged_by": list(report.judged_by),
        "graded_by": graded_json(report.graded_by),
    }


def _compared(item: Compared) -> dict[str, object]:
    found = item.comparison
    return {
        "a": found.a,
        "b": found.b,
        "measure": found.measure,
        "mean_a": found.mean_a,
        "mean_b": found.mean_b,
        "diff": found.diff,
        "low": _low(found.interval),
        "high": _high(found.interval),
        "p": _finite(found.p),
        "p_corrected": _finite(found.p_corrected),
        "winner": item.outcome,
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
        "why": item.withheld or None,
        "same_rankings": found.is_identity,
        "percent": found.percent,
        "level": found.level,
        "low_alone": _low(found.interval_alone),
        "high_alone": _high(found.interval_alone),
        "p_t": _finite(found.p_t),
        "n": found.n,
        "n_left_out": item.n_left_out,
        "effect": asdict(found.effect),
        "power": None if found.power is None else asdict(found.power),
        "unjudged": _unjudged(item),
        "failure_bounds": _ends(item.failure_bounds),
        "moved": {
            "gained": [_moved(query) for query in item.gained],
            "lost": [_moved(query) for query in item.lost],
        },
    }


def _unjudged(item: Compared) -> dict[str, object] | None:
    found = item.unjudged
    if found is None:
        return None
    return {
        "n_only_a": found.n_only_a,
        "n_only_b": found.n_only_b,
        "n_both": found.n_both,
        "bounds": _ends(found.bounds),
    }


def _moved(query: MovedQuery) -> dict[str, object]:
    return {**asdict(query), "diff": query.diff}


def _ends(ends: Ends | None) -> dict[str, float] | None:
    return None if ends is None else {"low": ends.low, "high": ends.high}


def _low(ends: Ends | None) -> float | None:
    return None if ends is None else ends.low


def _high(ends: Ends | None) -> float | None:
    return None if ends is None else ends.high


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
