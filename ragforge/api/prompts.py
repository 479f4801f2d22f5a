"""The prompts: which there are, how they differ from the shipped ones, and what is asked."""

from collections.abc import Sequence
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from ragforge.api.call import PROMPT, Handle, begin, dataset_of, naming_keywords
from ragforge.api.keywords import PromptKeywords
from ragforge.api.results import Result
from ragforge.api.sources import Records, as_file
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import render_table
from ragforge.prompts import ListedPrompt, Prompt, diff_override, load_prompt
from ragforge.prompts import copy_prompt as copy_prompt_of
from ragforge.prompts import diff_prompts as diff_prompts_of
from ragforge.prompts import list_prompts as list_prompts_of

if TYPE_CHECKING:
    from ragforge.pipeline.rendering import Rendered

Folder: TypeAlias = str | PathLike[str]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PromptList(Result):
    """The prompts that are in use.

    Args:
        prompts: Sorted by name, each with where it comes from and what its author should know.
    """

    prompts: tuple[ListedPrompt, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge prompts list --json` prints."""
        return {"prompts": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each prompt."""
        return [
            {
                "name": each.prompt.name,
                "version": each.prompt.version,
                "schema": each.prompt.schema,
                "sha256": each.prompt.sha256,
                "origin": each.origin,
                "note": each.note,
            }
            for each in self.prompts
        ]

    def table(self) -> str:
        """Return the prompts with the first digits of their digests, as text."""
        headers = ("prompt", "version", "schema", "sha256", "origin", "note")
        rows = [{**row, "sha256": row["sha256"][:12]}.values() for row in self.rows()]
        return render_table(headers, [list(map(str, row)) for row in rows])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RenderedPrompt(Result):
    """What a model would be asked first.

    Args:
        rendered: Prompt, messages and the key of the call.
        notes: What was told on the way.
    """

    rendered: "Rendered"
    notes: tuple[str, ...] = field(default=())

    @property
    def messages(self) -> list[dict[str, str]]:
        """The messages, as an OpenAI client takes them."""
        turns = self.rendered.request.messages
        return [{"role": turn.role, "content": turn.content} for turn in turns]

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge prompts render --json` prints."""
        prompt = self.rendered.prompt
        return {
            "prompt": {"name": prompt.name, "version": prompt.version, "sha256": prompt.sha256},
            "messages": self.messages,
            "schema": self.rendered.request.schema,
            "call_key": self.rendered.call_key,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each message."""
        return list(self.messages)

    def table(self) -> str:
        """Return the messages as text."""
        return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in self.messages)


def list_prompts(prompts_dir: Folder = "") -> PromptList:
    """List the prompts, and check those of a folder: names, versions, digests, origins.

    Args:
        prompts_dir: Folder whose prompts replace the shipped ones of the same name; "" for none.

    Raises:
        ConfigError: A prompt of the folder cannot be taken.
    """
    return PromptList(tuple(list_prompts_of(str(prompts_dir))))


def show_prompt(name: str, prompts_dir: Folder = "") -> Prompt:
    """Return a prompt as it is used: its `system`, its `user`, version and digest.

    Args:
        name: Of the prompt.
        prompts_dir: As for `list_prompts`.

    Raises:
        ConfigError: There is no such prompt, or it cannot be taken.
    """
    return load_prompt(name, str(prompts_dir))


def diff_prompts(name: str, other: str | None = None, *, prompts_dir: Folder = "") -> str:
    """Return how a prompt of a folder differs from the shipped one, or from another; "" if not.

    Args:
        name: Of the prompt.
        other: A second prompt; the shipped one of that name where None.
        prompts_dir: As for `list_prompts`.

    Raises:
        UsageError: There is neither a folder nor a second prompt.
        ConfigError: There is no such prompt, or it cannot be taken.
    """
    if other is not None:
        return diff_prompts_of(name, other, str(prompts_dir))
    if not str(prompts_dir):
        raise UsageError("diff_prompts: needs prompts_dir, or the name of a second prompt")
    return diff_override(name, str(prompts_dir))


def copy_prompt(name: str, to: Folder) -> Path:
    """Write a shipped prompt into a folder, to edit it there; return the file.

    Args:
        name: Of the prompt.
        to: The folder, which is made where missing.

    Raises:
        UsageError: There is no such prompt, or the file is there already.
    """
    return copy_prompt_of(name, Path(to))


async def render_prompt(
    name: str, pairs: Records, row: int = 1, **settings: Unpack[PromptKeywords]
) -> RenderedPrompt:
    """Return what a model would be asked about a pair; nothing is asked.

    Args:
        name: Of the prompt.
        pairs: As for `judge_pairs`.
        row: Which of them, from 1.
        settings: model, prompts_dir, batch and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: The prompt asks about something else than pairs, or there is no such row.
        ConfigError: The prompt cannot be taken.
        DataError: The pairs do not hold to the format, or nothing would be asked.
    """
    if row < 1:
        raise UsageError(f"row {row}: expected a whole number from 1")
    with begin(PROMPT, settings, {}) as call, as_file(pairs) as path, naming_keywords():
        from ragforge.pipeline.rendering import PickedInput, render

        rendered = await render(name, PickedInput(pairs=path, row=row), call.settings)
        return RenderedPrompt(rendered, tuple(call.notes))


async def render_prompt_in(
    handle: Handle,
    name: str,
    *,
    query: str = "",
    chunk: str | Sequence[str] = (),
    answers: str = "",
    **settings: Unpack[PromptKeywords],
) -> RenderedPrompt:
    """Return what a model would be asked about something in a set; nothing is asked.

    Args:
        handle: The set.
        name: Of the prompt.
        query: Id of a query, where the prompt asks about one.
        chunk: Id of a chunk, likewise; several for a prompt for batches.
        answers: The system whose answer to the query it is.
        settings: As for `render_prompt` of pairs.

    Raises:
        UsageError: The prompt asks about something that is not named.
        ConfigError: The prompt cannot be taken.
        DataError: A file cannot be read, or nothing would be asked.
    """
    chunk_ids = (chunk,) if isinstance(chunk, str) else tuple(dict.fromkeys(chunk))
    with begin(PROMPT, settings, handle.keywords) as call, naming_keywords():
        from ragforge.pipeline.rendering import PickedInput, render

        picked = PickedInput(dataset_of(handle), query, chunk_ids, answers)
        rendered = await render(name, picked, call.settings)
        return RenderedPrompt(rendered, tuple(call.notes))
