import pytest

from ragforge.report.page.charts import Scale, round_range


def test_values_go_in_a_straight_line_between_the_ends():
    """A chart whose distances are not those of the values misleads."""
    assert Scale(0, 10, 100, 200).place(2.5) == 125


def test_a_scale_of_one_value_puts_it_in_the_middle():
    """One evaluation is no reason to divide by 0."""
    assert Scale(3, 3, 0, 10).place(3) == 5


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ((0.0, 0.97), (0.0, 0.25, 0.5, 0.75, 1.0)),
        ((0.52, 0.71), (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)),
        ((0.6,), (0.6, 0.62)),
        ((0.0, 0.0), (0.0, 0.025)),
    ],
)
def test_marks_are_round_and_enclose_the_values(values, marks):
    """An axis is read by its marks, and a point beside it is lost."""
    assert round_range(values) == pytest.approx(marks)
