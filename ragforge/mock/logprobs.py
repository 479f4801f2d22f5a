"""Probabilities of the tokens of a reply, made up: a digit is likely, its neighbours less so."""

import math
import re
from typing import Any

_TOKENS = re.compile(r"\d|[^\d]+")
_OWN = 0.86
_NEXT = 0.06


def logprobs_of(text: str, most: int) -> dict[str, Any]:
    """Return what stands under `logprobs` in a choice.

    Args:
        text: The reply.
        most: Alternatives to give at each token.
    """
    return {"content": [_token(found[0], most) for found in _TOKENS.finditer(text)]}


def _token(text: str, most: int) -> dict[str, Any]:
    likely = {text: 0.99}
    if text.isdecimal() and text.isascii():
        near = {str(int(text) + step): _NEXT for step in (-1, 1) if 0 <= int(text) + step <= 9}
        likely = {text: _OWN, **near, "none": 0.01}
    given = [{"token": token, "logprob": math.log(share)} for token, share in likely.items()]
    return {**given[0], "top_logprobs": given[:most]}
