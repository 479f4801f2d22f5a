"""Fields that go into each request, as a protocol tells them."""

import pytest

from ragforge.records.extra_body import extra_body_in, told_extra_body, without_extra_body


def test_fields_of_each_request_are_told_by_name_and_digest():
    """In any order they are the same; a value may be secret."""
    low = told_extra_body('{"reasoning_effort": "low", "user": "sk-1"}')

    assert low == told_extra_body('{"user":"sk-1","reasoning_effort":"low"}')
    assert low != told_extra_body('{"reasoning_effort": "high", "user": "sk-1"}')
    assert low.startswith("body reasoning_effort+user ")
    assert "sk-1" not in low
    assert told_extra_body("") == told_extra_body("{}") == ""


@pytest.mark.parametrize("around", ["{}", "batch 8 x 2, {}, alone", "votes 3 at 0.7, {}"])
def test_fields_are_found_in_a_protocol_and_taken_out(around):
    """What else it says stays."""
    told = told_extra_body('{"reasoning_effort": "low"}')
    protocol = around.format(told)

    assert extra_body_in(protocol) == told
    assert without_extra_body(protocol) == around.replace(", {}", "").replace("{}", "")


def test_a_protocol_without_fields_tells_none():
    """Most have none."""
    assert extra_body_in("batch 8 x 2") == ""
    assert without_extra_body("batch 8 x 2, alone") == "batch 8 x 2, alone"
