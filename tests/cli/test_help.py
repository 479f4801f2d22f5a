from ragforge.cli.help import GUIDE, guide_text
from ragforge.measures import parse_measure


def test_the_guide_names_measures_that_can_be_asked_for():
    """What it recommends is copied into the next command."""
    names = [entry.measure for entry in GUIDE]

    assert [parse_measure(name).name for name in names] == [n.partition("@")[0] for n in names]


def test_the_guide_fits_a_terminal_page():
    """It is read beside the numbers."""
    assert len(guide_text().splitlines()) < 30
