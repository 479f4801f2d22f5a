"""Cells of a sweep's tables."""

from dataclasses import replace

import pytest

from ragforge.measures.comparing import RunPair, compare_pairs
from ragforge.report.sweep_cells import against_best


@pytest.mark.parametrize(("p", "shown"), [(0.0004, "<0.001"), (0.0, "<0.001"), (0.02, "0.020")])
def test_a_small_p_is_no_zero(p, shown):
    """No chance is nil."""
    [comparison] = compare_pairs([RunPair("a", "b", "RR", [1.0, 0.5, 0.5], [0.5, 0.5, 0.25])], 0.05)

    assert against_best(replace(comparison, p_corrected=p), is_worse=True)[1] == shown
