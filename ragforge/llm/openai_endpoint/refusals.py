"""What an endpoint said when it did not reply."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import openai

_CUT = re.compile("without sending complete message body|incomplete chunked read")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The endpoint's own words for a refusal; "" where it has none."""

    code: str
    param: str
    message: str


def explanation(error: openai.APIStatusError) -> Explanation:
    """Return the endpoint's words in a reply whose status is no success."""
    if error.response.has_redirect_location:
        where = error.response.headers["location"]
        return Explanation("", "", f"redirects to {where!r}; see --base-url")
    body: Mapping[str, Any] = error.body if isinstance(error.body, Mapping) else {}
    if isinstance(body.get("error"), Mapping):
        body = body["error"]
    message = body.get("message") or error.response.text or error.response.reason_phrase
    code = body.get("code") or body.get("type") or ""
    return Explanation(str(code), str(body.get("param") or ""), str(message))


def reply_begun(error: BaseException) -> bool:
    """Say whether a connection broke while a reply was under way, so that it may be billed.

    One that did not come about, or was reset before anything came back, is not.
    """
    return any(
        type(cause).__name__ == "ClientPayloadError" or _CUT.search(str(cause))
        for cause in _causes(error)
    )


def innermost(error: BaseException) -> BaseException:
    """Return what caused an error in the first place."""
    *_, last = _causes(error)
    return last


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        implied = None if cause.__suppress_context__ else cause.__context__
        cause = cause.__cause__ or implied
