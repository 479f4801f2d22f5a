import re

import pytest
from patterns import Found, OutOfTimeError, package_patterns, processor_time, slowest

SHORT = {
    # It sees the 200 characters before a bracket.
    "ragforge.stages.ground.citations._NEIGHBOURS",
}
"""Patterns that are never tried on a long text."""
FEWEST = 300


@pytest.mark.slow
def test_no_pattern_of_the_package_takes_more_than_linear_time():
    """Whoever writes a document or a reply must not decide how long it is read."""
    patterns = package_patterns()

    slow = {each.where: slowest(each) for each in patterns if each.where not in SHORT}

    assert {where: ways for where, ways in slow.items() if ways} == {}
    assert len(patterns) > FEWEST


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        r"(\w*[^\W\d_])[-\u00ad][ \t]*\n",
        r"\s+$",
        r"(a+)+b",
        r"/(?:[A-Za-z0-9][A-Za-z0-9._-]*/?)*$",
        r"\[([^\]]*)\]",
        r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$",
        r"[\w:]+:(?=`)",
    ],
)
def test_a_pattern_of_quadratic_time_is_seen(pattern):
    """A test that overlooks it would hold nothing."""
    assert slowest(Found(re.compile(pattern), "here")) != []


def test_work_is_ended_by_the_time_of_the_process():
    """A machine with other things to do must not fail a test."""
    with pytest.raises(OutOfTimeError, match=r"0\.01 s"), processor_time(0.01):
        re.fullmatch("(a+)+b", "a" * 60)
