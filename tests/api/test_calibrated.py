"""Calibrating a judge in Python."""

import asyncio

import pytest
from labelled_sets import graded_set, label_all

import ragforge as rf
from ragforge.errors import UsageError


@pytest.fixture
def made(tmp_path):
    """A set with a judge and two runs."""
    return graded_set(tmp_path / "set")


def test_draw_label_calibrate(made):
    """The way from a judge's grades to corrected measures."""
    ds = rf.open(made.path)

    drawn = ds.draw_labels("a", "b", measures=["P@10", "DCG@10"], n=120)
    label_all(made)
    found = ds.calibrate()

    assert len(drawn.rows()) == 120
    assert found.figure("DCG@10", "b", "a").corrected.wide_high < 0
    assert {row["run"] for row in found.rows()} == {"a", "b"}


def test_the_rows_of_a_sample_are_blind(made):
    """Whoever labels must not learn what the judge said."""
    [row, *_] = rf.open(made.path).draw_labels("a", measures="P@10", n=60).rows()

    assert set(row) == {"query_id", "chunk_id", "twice"}


def test_a_plan_is_told_before_any_label(made):
    """It says what labelling is worth."""
    plan = rf.open(made.path).plan_labels("a", "b", measures="P@10", sizes=[100])

    assert {row["n"] for row in plan.rows()} == {100, plan.plan.n_pairs}


def test_the_awaited_twins_do_the_same(made):
    """A service calls them from its loop."""
    ds = rf.open(made.path)

    async def go():
        await ds.aio.draw_labels("a", "b", measures="P@10", n=100)
        label_all(made)
        return await ds.aio.calibrate()

    assert asyncio.run(go()).to_dict() == ds.calibrate().to_dict()


def test_a_comparison_takes_the_calibration(made):
    """The winner is that of the corrected difference."""
    ds = rf.open(made.path)
    ds.draw_labels("a", "b", measures=["P@10"], n=120)
    label_all(made)

    found = ds.compare("a", "b", measures="P@10", calibrated=True)

    assert found.winner == "a"
    assert found.comparisons[0].corrected.n > 0


def test_a_part_of_the_queries_has_no_calibration(made):
    """The labels are of all queries."""
    ds = rf.open(made.path)
    ds.draw_labels("a", "b", measures=["P@10"], n=120)
    label_all(made)

    with pytest.raises(UsageError, match="of all queries"):
        ds.part(10).compare("a", "b", measures="P@10", calibrated=True)


def test_a_picture_shows_what_labels_correct(made):
    """Beside what the judge alone and people alone say."""
    ds = rf.open(made.path)
    ds.draw_labels("a", "b", measures=["P@10", "DCG@10"], n=120)
    label_all(made)
    ds.calibrate()

    found = ds.plot("calibration")

    for row in ("a, judge", "a, people", "a, corrected", "b, corrected"):
        assert f"<tspan>{row}</tspan>" in found.svg
    assert found.path is None
    assert "P@10" in found.svg
    assert "DCG@10" in found.svg


def test_a_notebook_shows_a_picture_and_says_it_in_words(made):
    """A screen reader reads what others see."""
    found = rf.open(made.path).plot("compare", theme="dark")

    assert found._repr_html_().startswith('<img alt="nDCG@10 of b (B) less a (A)')
    assert found.rows() == [found.to_dict()]
    assert "less a (A)" in found.table()
