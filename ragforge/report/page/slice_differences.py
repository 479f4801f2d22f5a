"""How much better one of two runs is in each slice of the queries, with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural, signed
from ragforge.evaluating.query_table import FACETS, QueryRow
from ragforge.measures.checked_samples import mean, sample
from ragforge.measures.distributions import normal_quantile
from ragforge.measures.intervals import Ends
from ragforge.measures.sequential import sign_score
from ragforge.measures.unseen_values import difference_interval, is_bounded
from ragforge.report.page.interval_rows import IntervalRow, IntervalRows, interval_chart
from ragforge.report.page.markup import Html, element

_DIMENSIONS: Final = ("difficulty", "type", "category", "language", "split")
_LEAST: Final = 5
"""Queries from which on a slice has an interval."""
_MOST: Final = 24
"""Slices that are drawn, those with the most queries."""
_ALPHA: Final = 0.05
_READING: Final = (
    "Intervals are widened for the number of slices: where one leaves the line out, the slice "
    "differs."
)
_NOT_KNOWN: Final = "These grades do not tell which run is better, in no slice either."


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """How much higher B is over the queries of a slice."""

    dimension: str
    value: str
    n: int
    mean: float
    interval: Ends | None
    """None where nothing tells how far others would spread; see `difference_interval`."""


def slice_differences(
    rows: Iterable[QueryRow], differences: Mapping[str, float], measure: str
) -> list[SliceDifference]:
    """Return the mean differences by slice, in the order of the dimensions.

    Intervals are those of comparisons, widened (Bonferroni) so that the chance that any of them
    leaves 0 out where nothing differs is 5 %. They hold it where few queries of a slice differ, and
    their signs may be chance. Slices of fewer than five queries are left out.

    Args:
        rows: The queries.
        differences: By query, how much higher B is; queries without one are passed over.
        measure: Of which they are.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.query_id not in differences:
            continue
        for name, value in zip(FACETS, row.facets, strict=True):
            if name in _DIMENSIONS and value:
                found.setdefault((name, value), []).append(differences[row.query_id])
    shown = _shown(found)
    level = 1 - _ALPHA / max(len(shown), 1)
    bounded = is_bounded(measure)
    return [_difference(key, found[key], level, bounded=bounded) for key in shown]


def _shown(found: Mapping[tuple[str, str], Sequence[float]]) -> list[tuple[str, str]]:
    large = [key for key, values in found.items() if len(values) >= _LEAST]
    several = {name for name in _DIMENSIONS if sum(key[0] == name for key in large) > 1}
    kept = [key for key in large if key[0] in several]
    kept = sorted(kept, key=lambda key: (-len(found[key]), key))[:_MOST]
    return sorted(kept, key=lambda key: (_DIMENSIONS.index(key[0]), key[1]))


def _difference(
    key: tuple[str, str], values: Sequence[float], level: float, *, bounded: bool
) -> SliceDifference:
    diffs = sample(values)
    interval = difference_interval(diffs, level, bounded=bounded)
    if interval is not None and sign_score(diffs) <= normal_quantile((1 + level) / 2):
        interval = Ends(min(interval.low, 0.0), max(interval.high, 0.0))
    return SliceDifference(*key, len(values), mean(diffs), interval)


def slice_differences_figure(
    runs: Sequence[str],
    rows: Iterable[QueryRow],
    pair: tuple[str, str],
    measure: str,
    *,
    is_known: bool = True,
) -> Html | None:
    """Return the picture; None where there are no two slices, or no such runs.

    Args:
        runs: Names of all, aligned with the cells of the rows.
        rows: The queries.
        pair: A and B.
        measure: Whose values the rows have.
        is_known: Whether the grades tell which run is better.
    """
    a, b = pair
    if not {a, b} <= set(runs):
        return None
    listed = list(rows)
    items = slice_differences(listed, _by_query(listed, runs.index(a), runs.index(b)), measure)
    if not items:
        return None
    caption = element(
        "figcaption",
        f"{measure} of ", element("bdi", b), " (B) less ", element("bdi", a), " (A), by slice. ",
        _READING if is_known else _NOT_KNOWN,
    )  # fmt: skip
    return element(
        "figure", caption, interval_chart(slice_rows(items, a, b, measure)), class_="wide"
    )


def _by_query(rows: Iterable[QueryRow], a: int, b: int) -> dict[str, float]:
    """Return how much higher B is, by query.

    Args:
        rows: The queries.
        a: Place of A in their cells.
        b: Place of B.
    """
    values = ((row.query_id, row.cells[a].value, row.cells[b].value) for row in rows)
    return {
        query_id: after - before
        for query_id, before, after in values
        if before is not None and after is not None
    }


def slice_rows(items: Sequence[SliceDifference], a: str, b: str, measure: str) -> IntervalRows:
    """Return the differences as rows of a chart."""
    rows = [
        IntervalRow(
            name=f"{one_line(item.value, 18)} ({item.n:,})",
            told=f"{item.dimension}: {_sentence(item)}",
            value=item.mean,
            interval=item.interval,
        )
        for item in items
    ]
    title = f"{measure} of {b} less that of {a}, by slice of the queries"
    return IntervalRows("slices-bars", title, rows, has_zero=True)


def _sentence(item: SliceDifference) -> str:
    ends = item.interval
    span = f" [{signed(ends.low)}, {signed(ends.high)}]" if ends else ""
    return f"{item.value} {signed(item.mean)}{span}, {plural(item.n, 'query', 'queries')}"
