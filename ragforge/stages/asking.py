"""What all stages that ask a model share: the model, its prompt, and the fence around data."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from ragforge.config import ModelSettings
from ragforge.corpus.anchors import Location, locate
from ragforge.errors import CallError
from ragforge.llm.chat import ChatModel, ChatRequest, Message
from ragforge.llm.structured import Structured, ask_structured, reply_schema
from ragforge.prompts import Prompt
from ragforge.records import Provenance

T = TypeVar("T", bound=BaseModel)


def upto(characters: int) -> FieldInfo:
    """Return a field whose length a grammar may bound; a longer reply is no broken rule.

    A small model that is decoded under a grammar would else ramble until its tokens run out.
    """
    found: FieldInfo = Field(json_schema_extra={"maxLength": characters})
    return found


_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for line ends and tabs, and those that change the direction of text."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A model with the prompt of one stage.

    Args:
        model: Whom to ask.
        name: The model's name for provenance.
        settings: Sampling.
        prompt: What to ask.
    """

    model: ChatModel
    name: str
    settings: ModelSettings
    prompt: Prompt

    async def ask(
        self,
        holes: dict[str, str],
        reply_type: type[T],
        check: Callable[[T], str | None],
        vote: int = 0,
    ) -> Structured[T]:
        """Fill the prompt, ask, and check the reply.

        Args:
            holes: Values of the prompt's holes apart from `marker`; already encoded.
            reply_type: What the reply must be.
            check: Returns the rule that a well-formed reply breaks, None where it breaks none.
            vote: Which of several independent replies this is.

        Raises:
            CallError: No usable reply; also where the data holds its own fence.
        """
        marker = _marker(holes)
        if any(marker in value for value in holes.values()):
            raise CallError("error", "the text holds the marker that would fence it")
        request = ChatRequest(
            messages=(
                Message("system", self.prompt.system.strip()),
                Message("user", self.prompt.render(marker=marker, **holes).strip()),
            ),
            schema_name=self.prompt.schema,
            schema=reply_schema(reply_type),
            temperature=self.settings.temperature,
            seed=self.settings.seed,
            max_output_tokens=self.settings.max_output_tokens,
            vote=vote,
            prompt_sha256=self.prompt.sha256,
            extra=json.loads(self.settings.extra_body or "{}"),
        )
        return await ask_structured(self.model, request, reply_type, check)

    def provenance(self, call_key: str) -> Provenance:
        """Return who made a record out of a reply."""
        return Provenance(
            kind="llm",
            model=self.name,
            prompt=self.prompt.name,
            prompt_sha256=self.prompt.sha256,
            call_key=call_key,
        )


def visible(text: str) -> str:
    """Return a text as a model gets to see it: without control and direction characters."""
    return _HIDDEN.sub("", text)


def locate_shown(quote: str, text: str) -> Location | None:
    """Return where a quote stands in a text of which the model saw what `visible` leaves.

    Blanks and compatibility forms are folded as in `locate`; None where it does not stand.
    """
    found = locate(quote, text)
    if found is not None:
        return found
    hidden = {match.start() for match in _HIDDEN.finditer(text)}
    if not hidden:
        return None
    shown = [index for index in range(len(text)) if index not in hidden]
    found = locate(quote, "".join(text[index] for index in shown))
    return Location(shown[found.start], shown[found.end - 1] + 1) if found else None


def quoted(text: str) -> str:
    """Return a text as a JSON string, as far as it is visible."""
    return json.dumps(visible(text), ensure_ascii=False)


def quoted_list(texts: list[str]) -> str:
    """Return texts as a JSON list of strings, cleaned like `quoted`."""
    return f"[{', '.join(quoted(text) for text in texts)}]"


def _marker(holes: dict[str, str]) -> str:
    """Return a fence that a text cannot foresee, because the text itself decides it."""
    digest = hashlib.sha256(json.dumps(holes, sort_keys=True).encode())
    return f"DATA-{digest.hexdigest()[:16]}"
