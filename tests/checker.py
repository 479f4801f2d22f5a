"""A checker of generated queries that reads what it is shown, and candidates for it."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from endpoint import datum
from fakes import FunctionModel

from ragforge.config import ModelSettings
from ragforge.llm.chat import ChatReply, ChatRequest
from ragforge.observe import silent
from ragforge.prompts import load_prompt
from ragforge.records import Chunk, Evidence, Lineage, Slot, Turn
from ragforge.retrieval import Retriever
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Anchored, Brief, Candidate, Quoted
from ragforge.stages.generate.checks.absence import Corpus
from ragforge.stages.generate.checks.checking import Checks, askers
from ragforge.stages.runner import Workers
from ragforge.testing import FixedRetriever

Say = Callable[[ChatRequest], object]
"""Makes a reply out of a request: a ChatReply, text, or what is sent as JSON."""

QUOTE = "The connect timeout is 5 seconds."


def anchored(number: int = 0, **changes: Any) -> Anchored:
    """Return a candidate about its own setting; `quotes` and `slot` fields may be changed."""
    question = changes.pop("question", f"How long is the connect timeout of client {number}?")
    quotes: Sequence[str] = changes.pop("quotes", [QUOTE])
    language = changes.pop("language", "en")
    kind = changes.get("type", "fact")
    names = [f"c{number}-{place}" for place in range(len(quotes))]
    chunks = [
        Chunk(
            chunk_id=name,
            doc_id=f"d{number}",
            text=f"Before. {text} Behind.",
            heading_path=("Top",),
        )
        for name, text in zip(names, quotes, strict=True)
    ]
    slot = Slot(
        slot_id=f"{number:06}-0",
        type=kind,
        difficulty="easy",
        persona="expert",
        language=language,
        stratum="",
        chunk_ids=tuple(names),
        doc_ids=(f"d{number}",) * len(names),
    )
    fields = {
        "question": question,
        "answer": "5 seconds",
        "quotes": tuple(Quoted(text, place) for place, text in enumerate(quotes)),
        "difficulty": "easy",
        "type": kind,
        "lineage": Lineage(kind="llm", model="writer"),
        **changes,
    }
    evidence = [
        Evidence(doc_id=f"d{number}", chunk_id=name, quote=text, hop=place)
        for place, (name, text) in enumerate(zip(names, quotes, strict=True), start=1)
    ]
    return Anchored(Brief(slot, tuple(chunks)), 0, Candidate(**fields), tuple(evidence))


def follow_up(number: int = 0) -> Anchored:
    """Return a follow-up question."""
    history = (
        Turn(role="user", text="What is a client?"),
        Turn(role="assistant", text="A caller."),
    )
    standalone = f"How long does client {number} wait?"
    changes = {"type": "follow_up", "standalone": standalone, "history": history}
    return anchored(number, question="How long does it wait?", **changes)


def shown(request: ChatRequest, name: str) -> Any:
    """Return what a request shows under a name."""
    return datum(request.messages[1].content, name)


def verdict(entry: Mapping[str, Any], **changes: object) -> dict[str, object]:
    """Return what is said of a question that is clear."""
    said = {"id": entry["id"], "question": entry["question"]}
    rest = {"readings": ["the timeout"], "missing": "", "clear": "yes", "answer": "unknown"}
    return {**said, **rest, **changes}


def pair(entry: Mapping[str, Any], **changes: object) -> dict[str, object]:
    """Return what is said of two answers that agree."""
    said = {"id": entry["id"], "question": entry["question"]}
    return {**said, "difference": "", "verdict": "agrees", **changes}


def clear(request: ChatRequest) -> object:
    """Say that all questions are clear."""
    return {"questions": [verdict(entry) for entry in shown(request, "questions")]}


def reading(request: ChatRequest) -> object:
    """Answer with the first quote."""
    quote = shown(request, "quotes")[0]["quote"]
    return {"quote": quote, "premise": "ok", "answerable": "yes", "answer": quote}


def not_there(request: ChatRequest) -> object:
    """Say that the quotes do not give the answer."""
    return {"quote": "", "premise": "ok", "answerable": "no", "answer": ""}


def agreeing(request: ChatRequest) -> object:
    """Say that all pairs agree."""
    return {"pairs": [pair(entry) for entry in shown(request, "pairs")]}


def finding_none(request: ChatRequest) -> object:
    """Say that no passage gives an answer."""
    return {"id": "", "quote": "", "found": "no"}


HONEST: Mapping[str, Say] = {
    "questions_check": clear,
    "evidence_answer": reading,
    "answers_comparison": agreeing,
    "answer_search": finding_none,
}


@dataclass
class Checker:
    """Checks candidates by a scripted model.

    Args:
        say: What is said to a schema, where that is not what HONEST says.
        texts: Of the corpus, by chunk id; those of the candidates are known anyway.
        found: What the retriever finds for a question.
        model: What was asked; made when needed.
    """

    say: Mapping[str, Say] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, Sequence[str]] = field(default_factory=dict)
    neighbours: Mapping[str, Sequence[str]] = field(default_factory=dict)
    retriever: Retriever | None = None
    concurrency: int = 3
    model: FunctionModel = field(init=False)

    def __post_init__(self) -> None:
        """Make the model."""
        self.model = FunctionModel(self._reply)

    def __call__(self, *candidates: Anchored) -> Any:
        """Check candidates; one of them is given back alone."""
        texts = {
            chunk.chunk_id: chunk.text for each in candidates for chunk in each.brief.chunks
        } | dict(self.texts)
        settings = ModelSettings(name="checker")
        checks = Checks(
            askers(lambda name: Asker(self.model, "checker", settings, load_prompt(name))),
            Corpus(
                self.retriever or FixedRetriever(self.found),
                texts.__getitem__,
                lambda chunk_id: self.neighbours.get(chunk_id, ()),
            ),
            Workers(self.concurrency, silent),
        )
        found = asyncio.run(checks.check(candidates))
        return found[0] if len(candidates) == 1 else found

    @property
    def schemas(self) -> list[str]:
        """Which checks were asked for, in their order."""
        return [request.schema_name for request in self.model.asked]

    def _reply(self, request: ChatRequest) -> ChatReply:
        name = request.schema_name
        said = self.say.get(name, HONEST[name])(request)
        if isinstance(said, ChatReply):
            return said
        key = f"key of {len(self.model.asked)}"
        return ChatReply(said if isinstance(said, str) else json.dumps(said), key=key)


def verdicts(checked: Any) -> dict[str, str]:
    """Return the verdict of each gate that was tried."""
    return {result.gate: result.verdict for result in checked.gates}
