import re
from re import _parser

import pytest
from patterns import (
    Found,
    OutOfTimeError,
    package_patterns,
    possessive_groups,
    processor_time,
    slowest,
)

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
def test_no_pattern_repeats_a_group_possessively():
    """Python 3.11.0 to 3.11.4 find no match of such groups; an atomic group means the same."""
    patterns = {
        each.where: list(possessive_groups(_parser.parse(each.pattern.pattern, each.pattern.flags)))
        for each in package_patterns()
    }

    assert {where: groups for where, groups in patterns.items() if groups} == {}


@pytest.mark.parametrize(
    ("pattern", "count"), [(r"(?:ab|c)*+", 1), (r"(?>(?:ab)*)a++[bc]{2,3}+", 0), (r"((?:ab)?+)", 1)]
)
def test_a_group_that_is_repeated_possessively_is_seen(pattern, count):
    """A test that overlooks it would hold nothing."""
    assert len(list(possessive_groups(_parser.parse(pattern)))) == count


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
