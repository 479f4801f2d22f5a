"""Few-shot judging: graded pairs of other queries, shown as turns before the pair in question."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from ragforge.corpus.quote_locations import fold
from ragforge.errors import CallError, ConfigError, UsageError
from ragforge.files.formats.judge_examples import Example
from ragforge.files.text import shown
from ragforge.llm.chat import Message
from ragforge.prompts import Prompt
from ragforge.stages.asking import user_turn, visible
from ragforge.stages.judge.llm import SCHEMA, holes_of
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.judge.reply import RelevanceReply


def example_turns(prompt: Prompt, examples: Iterable[Example]) -> tuple[Message, ...]:
    """Return a user and an assistant turn for each example, to stand behind the system's turn.

    The user's turn is what the judge would be asked about that pair, the assistant's a reply that
    would be accepted, its fields in the order of the schema.

    Raises:
        ConfigError: The prompt does not ask for one pair at a time.
        UsageError: The text of an example holds its own fence.
    """
    if prompt.schema != SCHEMA:
        raise ConfigError(
            f"prompt {prompt.name!r}: has the schema {prompt.schema!r}; examples go with prompts "
            f"for {SCHEMA!r} only"
        )
    return tuple(turn for example in examples for turn in _turns(prompt, example))


def refuse_shared_queries(examples: Iterable[Example], queries: Mapping[str, str]) -> None:
    """Check that no query of the examples is among those to be judged.

    A judge that was shown the grades of a query would be measured on what it was told.

    Args:
        examples: What will be shown.
        queries: Text by id of what is judged.

    Raises:
        UsageError: They share a query: the same id, or the same text but for blanks, case,
            punctuation and compatibility forms.
    """
    by_text = {_folded(text): query_id for query_id, text in queries.items()}
    for example in examples:
        query_id = by_text.get(_folded(example.query))
        if query_id is None and example.query_id and example.query_id in queries:
            query_id = example.query_id
        if query_id is not None:
            raise UsageError(
                f"--examples: query {shown(query_id)} ({shown(example.query)}) is one of those to "
                "be judged; examples must be of other queries"
            )


def examples_sha256(examples: Iterable[Example]) -> str:
    """Return the digest of what the judge is shown; the ids of queries are no part of it."""
    told = [{**asdict(example), "query_id": ""} for example in examples]
    text = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _turns(prompt: Prompt, example: Example) -> tuple[Message, Message]:
    try:
        asked = user_turn(prompt, holes_of(Pair("", example.query, "", example.text)))
    except CallError as error:
        raise UsageError(f"--examples: query {shown(example.query)}: {error}") from error
    reply = RelevanceReply(
        reasoning=visible(example.reasoning),
        evidence=visible(example.evidence),
        contains_answer=example.contains_answer,
        grade=example.grade,
    )
    return asked, Message("assistant", reply.model_dump_json())


def _folded(text: str) -> str:
    """Return the words of a query: a question mark makes no other question."""
    words = re.findall(r"\w+", fold(visible(text)).casefold())
    return " ".join(words) or fold(visible(text))
