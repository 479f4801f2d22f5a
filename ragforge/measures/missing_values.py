"""What differences of means could be, had no query gone without a value."""

from collections.abc import Collection, Mapping

from ragforge.measures.comparing import Comparison
from ragforge.measures.intervals import Ends
from ragforge.measures.strata import Design


def mean_difference_bounds(
    of_a: Mapping[str, float],
    of_b: Mapping[str, float],
    query_ids: Collection[str],
    design: Design | None = None,
) -> Ends | None:
    """Bound the mean of b less a over every outcome of the values that are missing.

    Args:
        of_a: Values in [0, 1] by query; others than those below are passed over.
        of_b: Likewise.
        query_ids: All that should have both.
        design: What the queries are a sample of; None where they are all there is.

    Returns:
        The bounds, with the mean over the queries that have both in between; None where all have.
    """
    both = sorted(of_a.keys() & of_b.keys() & set(query_ids))
    paired = {key: of_b[key] - of_a[key] for key in both}
    open_ids = sorted(set(query_ids) - paired.keys())
    if not open_ids:
        return None
    lows = {key: of_b.get(key, 0.0) - of_a.get(key, 1.0) for key in open_ids}
    highs = {key: of_b.get(key, 1.0) - of_a.get(key, 0.0) for key in open_ids}
    means = [_mean({**paired, **lows}, design), _mean({**paired, **highs}, design)]
    if paired:  # Without those left out the mean may leave what is possible with them.
        means.append(_mean(paired, design))
    return Ends(min(means), max(means))


def stays_worse(comparison: Comparison | None, bounds: Ends | None) -> bool:
    """Whether b is told apart from a, the better one, and what is missing could not turn that.

    Args:
        comparison: Of the two; None where there is none.
        bounds: Of their difference, as above.
    """
    if comparison is None or comparison.winner != "A":
        return False
    return bounds is None or bounds.high < 0


def _mean(values: Mapping[str, float], design: Design | None) -> float:
    """Return the mean of at least one value, over what the queries stand for."""
    found = design.mean(values) if design else None
    return sum(values.values()) / len(values) if found is None else found
