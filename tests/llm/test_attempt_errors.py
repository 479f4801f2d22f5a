import pytest

from ragforge.llm.attempt_errors import ENDS_RUN, AttemptError, classify_status


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (301, "redirect"),
        (302, "redirect"),
        (303, "redirect"),
        (307, "redirect"),
        (308, "redirect"),
        (400, "bad_request"),
        (401, "auth"),
        (402, "quota"),
        (403, "auth"),
        (404, "missing"),
        (405, "missing"),
        (408, "transient"),
        (409, "transient"),
        (410, "missing"),
        (413, "bad_request"),
        (418, "bad_request"),
        (422, "bad_request"),
        (425, "transient"),
        (429, "rate"),
        (500, "transient"),
        (502, "transient"),
        (503, "transient"),
        (504, "transient"),
        (529, "transient"),
    ],
)
def test_the_status_tells_the_kind(status, fault):
    """The kind decides whether to try again, slow down, stop or go on with the next call."""
    assert classify_status(status, "") == fault


@pytest.mark.parametrize("status", [400, 403, 429, 500])
@pytest.mark.parametrize(
    "code",
    ["insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "quota_exceeded"],
)
def test_spent_money_is_told_by_the_code(status, code):
    """OpenAI says 429 for it, which waiting does not cure."""
    assert classify_status(status, code) == "quota"


def test_other_codes_leave_the_kind_to_the_status():
    """A busy endpoint has a code too."""
    assert classify_status(429, "rate_limit_exceeded") == "rate"


def test_what_no_call_can_escape_stops_the_run():
    """Thousands of calls would else fail one by one."""
    assert frozenset({"quota", "auth", "missing", "redirect"}) == ENDS_RUN


@pytest.mark.parametrize(
    ("fault", "counted"), [("rate", False), ("transient", True), ("invalid_reply", True)]
)
def test_all_attempts_count_but_those_that_came_too_early(fault, counted):
    """Waiting for one's turn is no failure of the call."""
    assert AttemptError("failed", fault=fault).counted == counted
