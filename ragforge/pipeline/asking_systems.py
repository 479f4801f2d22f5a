"""Having a RAG system answer the queries of a dataset."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragforge.config import Settings
from ragforge.corpus.anchors import ChunkIndex
from ragforge.errors import EndpointError
from ragforge.files.dataset import Dataset, checked_name
from ragforge.foreign.reading import spaced
from ragforge.observe import Event, Observer
from ragforge.pipeline.backend import EARNEST, Mode
from ragforge.records import Answer, Chunk, Failure, Query
from ragforge.stages.answer.asking_systems import Asked, ask_system
from ragforge.systems import Passage
from ragforge.systems.resolve import make_answerer

_LONGEST_ID = 200
"""What is longer, or has blanks within, is the text of a passage and not its id."""


@dataclass(frozen=True, slots=True)
class AskingResult:
    """What asking a system came to.

    Args:
        path: The file of all its answers.
        n_asked: Queries that were asked now, in a dry run those that would be.
        n_kept: Queries that had their answer already.
        failures: Of the queries asked now.
    """

    path: Path
    n_asked: int
    n_kept: int
    failures: list[Failure]


async def ask_queries(
    dataset: Dataset,
    spec: str,
    name: str,
    settings: Settings,
    observer: Observer,
    mode: Mode = EARNEST,
    *,
    again: bool = False,
    save_every_s: float = 10.0,
) -> AskingResult:
    """Ask a system every query of a dataset that it has not answered yet, and write the answers.

    What was answered is written also when the run is stopped.

    Args:
        dataset: Has queries and chunks.
        spec: Whom to ask; see `make_answerer`.
        name: The name of the system's answers.
        settings: Concurrency and timeout are those of the model.
        observer: Told of progress.
        mode: A dry run asks nothing and does not even load the system.
        again: Ask also what has an answer under that name.
        save_every_s: Answers may be dear: a process that is killed loses those of so many seconds.

    Raises:
        UsageError: The system cannot be made.
        EndpointError: It failed on every query or on many in a row; or answers are missing and
            only stored replies are to be used.
    """
    queries = dataset.require_queries()
    known = _known(dataset, checked_name(name))
    todo = [query for query in queries if again or query.query_id not in known]
    n_kept = len(queries) - len(todo)
    path = dataset.path / "answers" / f"{name}.jsonl"
    if n_kept:
        told = f"{n_kept} of {len(queries)} queries have an answer under {name!r} already"
        observer(Event("note", message=f"{told}; --ask-again asks them too"))
    if mode.dry_run or not todo:
        return AskingResult(path, len(todo), n_kept, [])
    if mode.offline_replay:
        raise EndpointError(
            f"{len(todo)} queries have no answer under {name!r} yet, and with --offline-replay "
            "the system is not asked"
        )
    chunks = list(dataset.chunks())
    answerer = make_answerer(spec, chunks, timeout_s=settings.model.timeout_s)
    keeper = _Keeper(dataset, name, known, _Contexts(chunks), todo, save_every_s)
    try:
        await ask_system(
            todo,
            answerer,
            keeper,
            name=name,
            concurrency=settings.model.concurrency,
            observer=observer,
        )
    finally:
        keeper.save()
        keeper.tell(observer)
    if len(keeper.failures) == len(todo):
        raise EndpointError(
            f"system {name!r} failed on all {len(todo)} queries; "
            f"the first: {keeper.failures[0].message}"
        )
    return AskingResult(path, len(todo), n_kept, keeper.failures)


def _known(dataset: Dataset, name: str) -> dict[str, Answer]:
    answers = dataset.answers(name) if name in dataset.answer_names() else []
    return {answer.query_id: answer for answer in answers}


class _Contexts:
    """Finds the chunks that a system's passages are."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.n_lost = 0
        self._ids = {chunk.chunk_id for chunk in chunks}
        self._doc_ids = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
        self._index = ChunkIndex(chunks)
        self._id_by_text: dict[str, str] = {}
        for chunk in chunks:
            self._id_by_text.setdefault(spaced(chunk.text), chunk.chunk_id)

    def chunk_ids(self, context: Iterable[Passage]) -> tuple[str, ...]:
        """Return the ids of chunks, each once; of a passage in no chunk the id it came with."""
        found = [self._chunk_id(passage) for passage in context]
        self.n_lost += found.count(None)
        return tuple(dict.fromkeys(chunk_id for chunk_id in found if chunk_id is not None))

    def _chunk_id(self, passage: Passage) -> str | None:
        for chunk_id in passage.ids:
            if chunk_id in self._ids:
                return chunk_id
        for text in passage.texts:
            whole = self._id_by_text.get(spaced(text))
            if whole is not None:
                return whole
        for text in passage.texts:
            if text not in passage.ids or _is_text(text):
                held = self._holding(text, passage.doc_ids)
                if held is not None:
                    return held
        return next((name for name in passage.ids if not _is_text(name)), None)

    def _holding(self, text: str, doc_ids: Iterable[str]) -> str | None:
        """Return a chunk with a quote; of the documents named first, then of any."""
        for doc_id in (*doc_ids, *self._doc_ids):
            held = self._index.holding(text, doc_id)
            if held:
                return held[0].chunk_id
        return None


def _is_text(name: str) -> bool:
    return len(name) > _LONGEST_ID or len(name.split()) > 1


@dataclass(slots=True)
class _Keeper:
    """Takes what a system answered, and writes it now and then."""

    dataset: Dataset
    name: str
    before: dict[str, Answer]
    contexts: _Contexts
    todo: Sequence[Query]
    save_every_s: float
    failures: list[Failure] = field(default_factory=list)
    _new: dict[str, Answer] = field(default_factory=dict)
    _saved_s: float = field(default_factory=time.monotonic)

    def result(self, asked: Asked) -> None:
        """Take an answer."""
        query_id = asked.query.query_id
        self._new[query_id] = Answer(
            query_id=query_id,
            answer=asked.answer.text,
            chunk_ids=self.contexts.chunk_ids(asked.answer.context),
            latency_s=asked.latency_s,
        )
        if time.monotonic() - self._saved_s >= self.save_every_s:
            self.save()

    def failure(self, failure: Failure) -> None:
        """Take a failure."""
        self.failures.append(failure)

    def save(self) -> None:
        """Write all answers, and drop the grades of those that are no more."""
        answers = {**self.before, **self._new}
        if answers:
            self.dataset.write_answers(self.name, answers.values())
            self._drop_grades(answers)
        done = self._new.keys() | {item.key.partition("/")[2] for item in self.failures}
        open_keys = {f"{self.name}/{query.query_id}" for query in self.todo} - {
            f"{self.name}/{query_id}" for query_id in done
        }
        self.dataset.replace_failures(
            "ask",
            self.failures,
            lambda key: key.startswith(f"{self.name}/") and key not in open_keys,
        )
        self._saved_s = time.monotonic()

    def tell(self, observer: Observer) -> None:
        """Say how many passages nobody knows."""
        if self.contexts.n_lost:
            lost = f"{self.contexts.n_lost} retrieved passages are in no chunk"
            observer(Event("note", message=lost))

    def _drop_grades(self, answers: dict[str, Answer]) -> None:
        if self.name not in self.dataset.answer_grade_names():
            return
        grades = self.dataset.answer_grades(self.name)
        kept = [
            grade
            for grade in grades
            if _says(self.before.get(grade.query_id)) == _says(answers.get(grade.query_id))
        ]
        if len(kept) < len(grades):
            self.dataset.write_answer_grades(self.name, kept)


def _says(answer: Answer | None) -> tuple[str, tuple[str, ...]] | None:
    """Return what a grade depends on."""
    return None if answer is None else (answer.answer, answer.chunk_ids)
