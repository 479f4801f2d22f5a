"""Pages of HTML that are made to take long."""

import pytest

from ragforge.corpus.formats import UnreadableError
from ragforge.corpus.html import read_page


def test_html_that_would_take_the_parser_minutes_is_passed_over():
    """It looks through all open elements at each new one."""
    text = f"<p>read</p>{'<div>' * 100_000}deep{'</div>' * 100_000}"

    with pytest.raises(UnreadableError, match="has more than 10,000 elements inside each other"):
        read_page(text)


@pytest.mark.parametrize("tag", ["p", "li", "br", "!-- <div> --"])
def test_html_of_many_unclosed_elements_is_read(tag):
    """People leave out end tags, and lists of ten thousand lines are no attack."""
    page = read_page(f"<{tag}>a" * 20_000)

    assert page.text.count("a") == 20_000


def test_lists_in_lists_are_indented_so_far():
    """Ten thousand levels would otherwise be a hundred megabytes of blanks."""
    page = read_page("<ul><li>a" * 2000)

    assert len(page.text) < 200_000
