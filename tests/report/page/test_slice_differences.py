"""The picture of slices."""

from statistics import fmean

import pytest

from ragforge.evaluating.query_table import FACETS, QueryRow, RunCell
from ragforge.report.page.slice_differences import slice_differences, slice_differences_figure


def queries(rows):
    """Rows of two runs, from (difficulty, value of a, value of b)."""
    return tuple(
        QueryRow(
            query_id=f"q{place}",
            text="?",
            facets=(difficulty, *[""] * (len(FACETS) - 1)),
            cells=(RunCell(a, 1, 0, ""), RunCell(b, 1, 0, "")),
            verdicts=(),
        )
        for place, (difficulty, a, b) in enumerate(rows)
    )


EASY = [("easy", 0.5, 0.5 + 0.02 * n) for n in range(12)]
HARD = [("hard", 0.5, 0.5 - 0.03 * (n % 2)) for n in range(8)]


def differences(given, sign=1, measure="P@5"):
    """Return the differences by slice, of B less A, or the other way round."""
    rows = queries(given)
    of_b = {row.query_id: sign * (row.cells[1].value - row.cells[0].value) for row in rows}
    return slice_differences(rows, of_b, measure)


def test_differences_are_of_the_queries_of_a_slice():
    """An average hides the slice that got worse."""
    easy, hard = differences(EASY + HARD)

    assert (easy.value, easy.n, hard.value, hard.n) == ("easy", 12, "hard", 8)
    assert easy.mean == pytest.approx(fmean(0.02 * n for n in range(12)))
    assert hard.mean == pytest.approx(-0.015)
    assert easy.interval.low > 0 > hard.interval.low


def test_the_other_way_round_is_the_opposite():
    """Which run is A is a choice of words."""
    forth = differences(EASY + HARD)
    back = differences(EASY + HARD, sign=-1)

    assert [item.mean for item in back] == [-item.mean for item in forth]


def test_small_slices_and_lone_ones_are_left_out():
    """Four queries have no interval, and one slice is the whole."""
    assert differences(EASY + HARD[:4]) == []


@pytest.mark.parametrize("last", [0.625, 0.6255])
def test_few_queries_that_differ_alike_show_nothing(last):
    """It would be a dot that looks sure; `compare` calls these six queries a TIE."""
    alike = [*[("hard", 0.5, 0.625)] * 5, ("hard", 0.5, last)]

    _, hard = differences(EASY + alike)

    assert hard.interval.low < 0 < hard.interval.high


def test_the_same_difference_of_a_measure_without_bounds_has_no_interval():
    """Nothing tells how far others would lie."""
    _, hard = differences(EASY + [("hard", 0.5, 0.625)] * 6, measure="DCG@10")

    assert hard.interval is None


def test_grades_that_tell_nothing_say_so_below_the_picture():
    """A slice has no winner where the whole has none."""
    drawn = slice_differences_figure(
        ("a", "b"), queries(EASY + HARD), ("a", "b"), "P@5", is_known=False
    )

    assert "do not tell which run is better" in drawn.code
    assert slice_differences_figure(("a", "b"), queries(EASY), ("a", "c"), "P@5") is None


@pytest.mark.parametrize(("n", "is_shown"), [(5, False), (12, True)])
def test_a_slice_does_not_differ_by_signs_that_may_be_chance(n, is_shown):
    """Five of thirty that all go one way are chance in one case of sixteen."""
    lost = [("hard", 1.0, 0.0)] * n + [("hard", 1.0, 1.0)] * (30 - n)
    _, hard = differences(EASY + lost, measure="Success@1")

    assert (hard.interval.high < 0) == is_shown
