"""Failures of single attempts by kind, which decides what happens next."""

from collections.abc import Mapping
from typing import Literal

from ragforge.llm.chat import Usage

Fault = Literal[
    "rate", "quota", "auth", "missing", "redirect", "bad_request", "transient", "invalid_reply"
]
"""rate: too many calls. quota, auth, missing, redirect: no call can succeed. bad_request: this one
cannot. transient: the endpoint or the way to it failed. invalid_reply: it said nothing usable."""

ENDS_RUN: frozenset[Fault] = frozenset({"quota", "auth", "missing", "redirect"})
"""Kinds that end the run."""

_BY_STATUS: Mapping[int, Fault] = {
    **dict.fromkeys((301, 302, 303, 307, 308), "redirect"),
    **dict.fromkeys((401, 403), "auth"),
    402: "quota",
    **dict.fromkeys((404, 405, 410), "missing"),
    **dict.fromkeys((408, 409, 425), "transient"),
    429: "rate",
}
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "quota_exceeded"}
)


def classify_status(status: int, code: str) -> Fault:
    """Return the kind of a reply whose status is no success.

    Args:
        status: HTTP status, 300 or above.
        code: The endpoint's own word for the error, "" where it gives none.
    """
    if code in _QUOTA_CODES:
        return "quota"
    if status >= 500:
        return "transient"
    return _BY_STATUS.get(status, "bad_request")


class AttemptError(Exception):
    """An attempt failed in a way that may pass.

    Args:
        message: What happened.
        fault: `rate`, `transient` or `invalid_reply`.
        unreachable: Whether the endpoint did not even answer.
        maybe_billed: Whether the endpoint may have worked, and charge for it, all the same.
        usage: What it says it charged for; None where it does not say.
        retry_after_s: Seconds the endpoint asks to wait, None where it says nothing.
        raw: The start of the reply's body, where there was one.
        counted: Whether it uses up one of the call's attempts.
    """

    def __init__(
        self,
        message: str,
        *,
        fault: Fault = "transient",
        unreachable: bool = False,
        maybe_billed: bool = False,
        usage: Usage | None = None,
        retry_after_s: float | None = None,
        raw: str = "",
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.unreachable = unreachable
        self.maybe_billed = maybe_billed
        self.usage = usage
        self.retry_after_s = retry_after_s
        self.raw = raw
        self.counted = fault != "rate"
