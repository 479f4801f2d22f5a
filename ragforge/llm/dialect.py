"""How one endpoint and model want to be asked; learnt from refusals once, then remembered."""

import re
from dataclasses import dataclass, replace
from typing import Literal

Mode = Literal["json_schema", "json_object", "plain"]

_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "json_object", "json_object": "plain"}
_OPTIONAL = ("temperature", "seed", "top_logprobs", "logprobs")
_FORMAT_WORDS = re.compile(r"response_format|json_schema|json_object|schema|grammar", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint takes.

    Args:
        mode: How it is made to reply in JSON.
        tokens_field: The name of its limit on the reply.
        omit: Optional parameters it refuses.
    """

    mode: Mode = "json_schema"
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    omit: tuple[str, ...] = ()


def milder(dialect: Dialect, message: str, param: str) -> Dialect | None:
    """Return the dialect to try after a refusal, or None where the refusal is about something else.

    Args:
        dialect: What was refused.
        message: The endpoint's explanation.
        param: The parameter it names, "" where none.
    """
    about = f"{param} {message}"
    if dialect.tokens_field == "max_tokens" and "max_completion_tokens" in about:
        return replace(dialect, tokens_field="max_completion_tokens")
    for name in _OPTIONAL:
        if name not in dialect.omit and (param == name or re.search(rf"['\"`]{name}\b", message)):
            return replace(dialect, omit=(*dialect.omit, name))
    if dialect.mode in _NEXT_MODE and _FORMAT_WORDS.search(about):
        return replace(dialect, mode=_NEXT_MODE[dialect.mode])
    return None
