"""What all stages that ask a model share: the model, its prompt, the fence around data."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import TYPE_CHECKING, TypeVar

from ragforge.config import ModelSettings
from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.files.text import normalize
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Message
from ragforge.records import Failure, Provenance
from ragforge.records.canaries import since_drift
from ragforge.records.model import Field, FieldInfo, pydantic
from ragforge.stages.runner import recorded
from ragforge.stages.visible_text import visible

if TYPE_CHECKING:
    from ragforge.llm.store.calls import CallStore
    from ragforge.llm.structured import Structured
    from ragforge.prompts import Prompt

T = TypeVar("T", bound="pydantic.BaseModel")
Part = TypeVar("Part")

_BEGINS = re.compile(r"\{\s*\"")
_MOST_OBJECTS = 1000
"""Places of a text where an object may begin that are looked at; one with more counts as one that
holds any object."""
_DECODER = json.JSONDecoder(strict=False)
_MOST_FIELDS = 5
"""Of an object whose fields are looked for in any order: 120 orders."""
_BRAILLE_BLANK = "\u2800"
"""A letter by its class, and nothing to see."""
_QUOTES = str.maketrans("", "", "\"'`\\\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb")


def repeats_data(
    reply: pydantic.BaseModel, holes: Mapping[str, str], beside: Collection[str] = ()
) -> bool:
    """Whether a reply is an object that the data itself holds.

    A model that repeats what it reads would else let a document write its own verdict, whose
    evidence is found in the document too. Blanks of any kind, signs without a glyph, the case of
    letters and whether a number stands in quotes make no other object of it; nor do, in an object
    without others inside, the quotes, strokes and commas that a model mends as it copies.

    Args:
        reply: Well-formed.
        holes: What was shown, encoded as JSON.
        beside: Names of fields that an object of the data may have as well, whatever they hold.
    """
    shown = [value for value in holes.values() if "{" in value]
    if not shown:
        return False
    fields = reply.model_dump(mode="json")
    said, names = _folded(fields), [str(_folded(name)) for name in fields]
    texts = (text for value in shown for text in _texts(_decoded(value)))
    spelled = _spellings(said)
    return any(
        _holds(text, said, beside) or _has_any(_bare(text), spelled)
        for text in texts
        if _has_all(text, names)
    )


def _has_any(text: str, parts: Iterable[str]) -> bool:
    return any(part in text for part in parts)


def _spellings(said: object) -> list[str]:
    """Return an object as its text without blanks and quotes, its fields in any order.

    Nothing for one that holds others, or has more fields than any verdict.
    """
    if not isinstance(said, dict) or len(said) > _MOST_FIELDS:
        return []
    if not all(isinstance(value, str) for value in said.values()):
        return []
    fields = [_bare(f"{name}:{value}") for name, value in said.items()]
    return [f"{{{','.join(order)}{end}" for order in permutations(fields) for end in ("}", ",}")]


def _bare(text: str) -> str:
    """Return a text folded, without quotes and strokes before them."""
    return str(_folded(text)).translate(_QUOTES)


def _folded(value: object) -> object:
    """Return JSON with texts without blanks and signs that have no glyph, in one case.

    Numbers and truth values are as their texts.
    """
    if isinstance(value, dict):
        return {_folded(name): _folded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_folded(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = normalize("NFKC", str(value)).casefold()
    if text.isascii():
        return "".join(text.split())
    return "".join(one for one in visible(text) if not _is_blank(one))


def _is_blank(one: str) -> bool:
    return one.isspace() or one == _BRAILLE_BLANK or unicodedata.category(one) == "Cf"


def _has_all(text: str, names: Sequence[str]) -> bool:
    """Whether a text may hold an object of these names; hardly any has all of them."""
    if "{" not in text:
        return False
    folded = str(_folded(text))
    return all(name in folded for name in names)


def _holds(text: str, reply: object, beside: Collection[str]) -> bool:
    text = "".join(" " if one.isspace() or one == _BRAILLE_BLANK else one for one in text)
    starts = [found.start() for found in islice(_BEGINS.finditer(text), _MOST_OBJECTS + 1)]
    # What is not looked at must not be where a verdict hides.
    objects = (_object_at(text, start, beside) for start in starts)
    return len(starts) > _MOST_OBJECTS or reply in objects


def _object_at(text: str, start: int, without: Collection[str]) -> object:
    """Return the object that begins at a place, folded; None where there is none."""
    try:
        found = _folded(_DECODER.raw_decode(text, start)[0])
    except (ValueError, RecursionError):
        return None
    assert isinstance(found, dict)  # It begins with a brace.
    return {name: value for name, value in found.items() if name not in without}


def _decoded(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return None  # Holes may hold a word of the settings as well.


def _texts(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for item in data:
            yield from _texts(item)
    elif isinstance(data, dict):
        for item in data.values():
            yield from _texts(item)


def upto(characters: int) -> FieldInfo:
    """Return a field whose length a grammar may bound; a longer reply is no broken rule.

    A small model that is decoded under a grammar would else ramble until its tokens run out.
    """
    found: FieldInfo = Field(json_schema_extra={"maxLength": characters})
    return found


@dataclass(frozen=True, slots=True)
class Way:
    """One of several ways to ask the same.

    Args:
        vote: Which of several independent replies this is.
        permutation: Which order of what is shown.
        logprobs: Alternatives to ask for at each token; 0 for none.
        more_tokens: What a reply may have beyond the settings, where it speaks of several things.
    """

    vote: int = 0
    permutation: int = 0
    logprobs: int = 0
    more_tokens: int = 0


FIRST = Way()


@dataclass(frozen=True, slots=True)
class Asker:
    """A model with the prompt of one stage.

    Args:
        model: Whom to ask.
        name: The model's name for provenance.
        settings: Sampling.
        prompt: What to ask.
        examples: Turns between the system's and the user's that show how it is done.
        protocol: How it is asked, for provenance; see `Provenance.protocol`.
        forget: Drops stored replies that are no use, so that they are asked for again; None to take
            them for what they are.
    """

    model: ChatModel
    name: str
    settings: ModelSettings
    prompt: Prompt
    examples: tuple[Message, ...] = ()
    protocol: str = ""
    forget: Callable[[Iterable[str]], None] | None = None

    async def ask(
        self,
        holes: dict[str, str],
        reply_type: type[T],
        check: Callable[[T], str | None],
        way: Way = FIRST,
    ) -> Structured[T]:
        """Fill the prompt, ask, and check the reply.

        Args:
            holes: Values of the prompt's holes apart from `marker`; already encoded.
            reply_type: What the reply must be.
            check: Returns the rule that a well-formed reply breaks, None where it breaks none.
            way: Which of several ways to ask the same.

        Raises:
            CallError: No usable reply; also where the data holds its own fence.
        """
        from ragforge.llm.structured import ask_structured

        def broken_rule(reply: T) -> str | None:
            if repeats_data(reply, holes):
                return "the reply repeats an object that stands in the data; that is no verdict"
            return check(reply)

        request = self.request(holes, reply_type, way)
        try:
            return await ask_structured(self.model, request, reply_type, broken_rule)
        except CallError as error:
            if self.forget is None or not error.is_kept:
                raise
            self.forget(error.call_keys)
        return await ask_structured(self.model, request, reply_type, broken_rule)

    def request(
        self, holes: dict[str, str], reply_type: type[pydantic.BaseModel], way: Way = FIRST
    ) -> ChatRequest:
        """Return the request that `ask` would send first.

        Raises:
            CallError: The data holds its own fence.
        """
        from ragforge.llm.structured import reply_schema

        return ChatRequest(
            messages=(
                Message("system", self.prompt.system.strip()),
                *self.examples,
                user_turn(self.prompt, holes),
            ),
            schema_name=self.prompt.schema,
            schema=reply_schema(reply_type),
            temperature=self.settings.temperature,
            # Endpoints that honour seeds would give one reply for all votes.
            seed=self.settings.seed + way.vote,
            max_output_tokens=self.settings.max_output_tokens + way.more_tokens,
            vote=way.vote,
            permutation=way.permutation,
            logprobs=way.logprobs,
            since=since_drift(self.protocol),
            prompt_sha256=self.prompt.sha256,
            extra=json.loads(self.settings.extra_body or "{}"),
        )

    def provenance(self, reply: ChatReply | None = None) -> Provenance:
        """Return who made a record out of a reply; without one, who is asked."""
        return Provenance(
            kind="mock" if reply is not None and reply.is_mock else "llm",
            model=self.name,
            prompt=self.prompt.name,
            prompt_sha256=self.prompt.sha256,
            call_key=reply.key if reply is not None else "",
            protocol=self.protocol,
        )


def user_turn(prompt: Prompt, holes: dict[str, str]) -> Message:
    """Return the user's turn of a prompt, its data fenced.

    Args:
        prompt: What to ask.
        holes: As for `Asker.ask`.

    Raises:
        CallError: The data holds its own fence.
    """
    marker = _marker(holes)
    if any(marker in value for value in holes.values()):
        raise CallError("error", "the text holds the marker that would fence it")
    return Message("user", prompt.render(marker=marker, **holes).strip())


def quoted(text: str) -> str:
    """Return a text as a JSON string, as far as it is visible."""
    return json.dumps(visible(text), ensure_ascii=False)


def quoted_list(texts: list[str]) -> str:
    """Return texts as a JSON list of strings, cleaned like `quoted`."""
    return f"[{', '.join(quoted(text) for text in texts)}]"


def quoted_by_id(texts: Iterable[tuple[str, str]], name: str) -> str:
    """Return texts as a JSON list of objects, cleaned like `quoted`.

    Args:
        texts: Id and text of each, in order.
        name: Of the text, beside `id`.
    """
    listed = [{"id": each, name: visible(text)} for each, text in texts]
    return json.dumps(listed, ensure_ascii=False)


def _marker(holes: dict[str, str]) -> str:
    """Return a fence that a text cannot foresee, because the text itself decides it."""
    digest = hashlib.sha256(json.dumps(holes, sort_keys=True).encode())
    return f"DATA-{digest.hexdigest()[:16]}"


async def together(parts: Sequence[Coroutine[None, None, Part]]) -> list[Part | CallError]:
    """Return the result of each coroutine, in order; of one that failed its error.

    What is in flight when another part raises is paid for: it is waited for.

    Raises:
        Exception: The first that is no CallError, once all parts have ended.
        asyncio.CancelledError: The caller was cancelled; so are the parts.
    """
    import asyncio  # Whoever only looks for a quote does not need it.

    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    errors = [task.exception() for task in tasks]
    for error in errors:
        if error is not None and not isinstance(error, CallError):
            raise error
    return [
        error if isinstance(error, CallError) else task.result()
        for task, error in zip(tasks, errors, strict=True)
    ]


def failed_replies(store: CallStore, failures: Iterable[Failure]) -> Iterator[str]:
    """Yield the keys of replies that were no use, as far as the call store has them still.

    What was asked for again since then stays, so that a run that was stopped buys nothing twice:
    of several replies to one question some are missing then, or the text is another.
    """
    for failure in failures:
        found = [store.get(key) for key in failure.call_keys]
        kept = [reply for reply in found if reply is not None]
        texts = {recorded(text) for reply in kept for text in (reply.text, reply.refusal)}
        if len(kept) == len(found) and failure.raw in texts:
            yield from failure.call_keys
