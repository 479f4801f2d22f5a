"""Whether a question that is said to have no answer has one in the corpus after all."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.records import Provenance
from ragforge.records.model import ConfigDict, Model
from ragforge.retrieval import Retriever
from ragforge.stages.asking import Asker, quoted, upto
from ragforge.stages.generate.checks.batches import Item
from ragforge.stages.quotes import find_proof
from ragforge.stages.visible_text import visible
from ragforge.stages.words import content_stems

DEPTH = 10
"""Ranks of the retriever that are looked through."""
LONGEST = 2000
"""Characters of a passage that are shown."""
_STEP = LONGEST // 2


class SearchReply(Model):
    """Reply schema: the place of the answer first, so that the finding follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    id: Annotated[str, upto(20)]
    quote: Annotated[str, upto(800)]
    found: Literal["yes", "no"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Corpus in which an answer is looked for.

    Args:
        retriever: Finds what is near a question.
        text_of: Returns the text of a chunk; raises where there is none of that id.
        neighbours: Returns the ids of the chunks before and behind one.
    """

    retriever: Retriever
    text_of: Callable[[str], str]
    neighbours: Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Search:
    """Result of looking for an answer.

    Args:
        chunk_id: Of the chunk that gives it; "" where none does.
        quote: Its words.
        by: Who looked.
    """

    chunk_id: str
    quote: str
    by: Provenance


async def near(item: Item, corpus: Corpus) -> dict[str, str]:
    """Return the texts in which an answer would stand if there were one, by chunk id.

    Those are the chunks the question was written from, their neighbours, and what the retriever
    finds for it; of texts that read alike one.

    Raises:
        CallError: The retriever failed, or a chunk has no text.
        RagforgeError: As the retriever raises it.
    """
    hits = await corpus.retriever.retrieve(item.asked, DEPTH)
    around = [each for source in item.chunk_ids for each in corpus.neighbours(source)]
    texts: dict[str, str] = {}
    for chunk_id in dict.fromkeys([*item.chunk_ids, *around, *(hit.chunk_id for hit in hits)]):
        try:
            text = visible(corpus.text_of(chunk_id))
        except KeyError as error:
            raise CallError("error", f"chunk {chunk_id!r} has no text to look through") from error
        if text not in texts.values():
            texts[chunk_id] = text
    return texts


async def search(item: Item, texts: Mapping[str, str], asker: Asker) -> Search:
    """Return the text that answers a question according to a model, if one does.

    Args:
        item: What is asked.
        texts: By chunk id.
        asker: A model with the prompt for it.

    Raises:
        CallError: It gave no usable reply, or there is nothing to look through.
        EndpointError, BudgetError: Nothing can be asked any more.
    """
    if not any(text.strip() for text in texts.values()):
        raise CallError("error", "there is no passage to look through")
    by_id = _opaque(item, texts)
    windows = {name: window(texts[chunk_id], item.asked) for name, chunk_id in by_id.items()}
    listed = [{"id": name, "text": text} for name, text in windows.items()]
    holes = {
        "question": quoted(item.asked),
        "passages": json.dumps(listed, ensure_ascii=False),
    }
    answered = await asker.ask(holes, SearchReply, lambda reply: broken_rule(reply, windows))
    reply, by = answered.value, asker.provenance(answered.reply)
    if reply.found == "no":
        return Search("", "", by)
    return Search(by_id[reply.id], reply.quote, by)


def broken_rule(reply: SearchReply, windows: Mapping[str, str]) -> str | None:
    """Return the rule that a reply breaks; an answer needs a quote that gives it."""
    if reply.found == "no":
        if reply.id.strip() or reply.quote.strip():
            return 'id and quote are given, but found is "no"'
        return None
    if reply.id not in windows:
        return f"no passage has the id {reply.id!r}; the ids are {', '.join(windows)}"
    if find_proof(reply.quote, windows[reply.id]) is None:
        return f"quote does not stand in passage {reply.id!r}; copy its words exactly"
    return None


def window(text: str, question: str) -> str:
    """Return LONGEST characters of a text, those that hold the most words of a question.

    Of several stretches that hold as many it is the first.
    """
    if len(text) <= LONGEST:
        return text
    held: dict[int, set[str]] = {}
    for place, word in _words_of(question, text):
        held.setdefault(place // _STEP, set()).add(word)

    def holds(step: int) -> int:
        return len(held.get(step, set()) | held.get(step + 1, set()))

    near_words = {max(0, step - back) for step in held for back in (0, 1)}
    best = max(sorted(near_words), key=holds, default=0)
    start = min(best * _STEP, len(text) - LONGEST)
    return text[start : start + LONGEST]


def _words_of(question: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield where the words of a question stand in a text, whatever their ending."""
    stems = sorted(set(content_stems(question)), key=len, reverse=True)
    if stems:
        for found in re.finditer("|".join(map(re.escape, stems)), text, re.IGNORECASE):
            yield found.start(), found[0].casefold()


def _opaque(item: Item, texts: Mapping[str, str]) -> dict[str, str]:
    """Return chunk ids by ids that no text can foresee, in the order of these."""
    content = json.dumps([item.asked, *texts.values()])
    opaque_ids: dict[str, str] = {}
    for chunk_id in texts:
        number = 0
        while (name := _digest(f"{number}\n{chunk_id}\n{content}")) in opaque_ids:
            number += 1
        opaque_ids[name] = chunk_id
    return dict(sorted(opaque_ids.items()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:5]
