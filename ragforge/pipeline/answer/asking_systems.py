"""Having a RAG system answer the queries of a dataset.

The passages that a system had before it are found among the chunks of the dataset.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.errors import EndpointError, UsageError
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import DocumentNames
from ragforge.files.text import checked_name
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job, Mode
from ragforge.records import Answer, Chunk, Failure, Query
from ragforge.retrieval import ContextPassage
from ragforge.retrieval.answerers import make_answerer
from ragforge.retrieval.object_fields import fold_blanks
from ragforge.stages.runner import Workers
from ragforge.stages.systems import AnsweredQuery, ask_system

_LONGEST_ID = 200
"""What is longer, or has blanks within, is the text of a passage and not its id."""


@dataclass(frozen=True, slots=True)
class FoundChunks:
    """The chunks behind some passages.

    Args:
        chunk_ids: Each once; also ids that came with a passage and that no chunk has.
        n_unknown: Passages without such an id that are in no chunk.
    """

    chunk_ids: tuple[str, ...]
    n_unknown: int


class PassageFinder:
    """Finds the chunks that a system's passages are."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._ids = {chunk.chunk_id for chunk in chunks}
        self._doc_ids = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
        self._index = ChunkIndex(chunks)
        self._chunks = chunks

    @cached_property
    def _id_by_text(self) -> dict[str, str]:
        return {fold_blanks(chunk.text): chunk.chunk_id for chunk in reversed(self._chunks)}

    @cached_property
    def _documents(self) -> DocumentNames:
        return DocumentNames(self._doc_ids)

    def find(self, context: Iterable[ContextPassage]) -> FoundChunks:
        """Return the chunks; of a passage in no chunk its document, else the id it came with."""
        found = [self._chunk_id(passage) for passage in context]
        ids = dict.fromkeys(chunk_id for chunk_id in found if chunk_id is not None)
        return FoundChunks(tuple(ids), found.count(None))

    def quoted(self, quote: str, doc_id: str) -> str | None:
        """Return the first chunk of a document that holds a quote."""
        held = self._index.holding(quote, doc_id)
        return held[0].chunk_id if held else None

    def _chunk_id(self, passage: ContextPassage) -> str | None:
        known = next((name for name in passage.ids if name in self._ids), None)
        if known is not None:
            return known
        for text in passage.texts:
            whole = self._id_by_text.get(fold_blanks(text))
            if whole is not None:
                return whole
        doc_id = self._doc_id(passage.ids)
        if doc_id is not None and set(passage.texts) <= set(passage.ids):
            return doc_id
        for text in passage.texts:
            if text not in passage.ids or _is_text(text):
                held = self._holding(text, passage.doc_ids)
                if held is not None:
                    return held
        return doc_id or next((name for name in passage.ids if not _is_text(name)), None)

    def _doc_id(self, names: Iterable[str]) -> str | None:
        """Return the first document that is named, by its id or the end of its path."""
        found = (self._documents.find(name) for name in names)
        return next((doc_ids[0] for doc_ids in found if len(doc_ids) == 1), None)

    def _holding(self, text: str, doc_ids: Iterable[str]) -> str | None:
        """Return a chunk with a quote; of the documents named first, then of any."""
        found = (self.quoted(text, doc_id) for doc_id in (*doc_ids, *self._doc_ids))
        return next((chunk_id for chunk_id in found if chunk_id is not None), None)


def _is_text(name: str) -> bool:
    return len(name) > _LONGEST_ID or len(name.split()) > 1


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
    job: Job,
    *,
    again: bool = False,
    save_every_s: float = 10.0,
) -> AskingResult:
    """Ask a system every query of a dataset that it has not answered yet, and write the answers.

    What was answered is written also when the run is stopped. A query on which the system fails
    loses the answer it had, for that would pass for a new one; but where the system answers no
    query at all, everything stays.

    Args:
        dataset: Has queries and chunks.
        spec: Whom to ask; see `make_answerer`.
        name: The name of the system's answers.
        job: Concurrency and timeout are those of the model. A dry run asks nothing, and does not
            even load the system.
        again: Ask also what has an answer under that name.
        save_every_s: Answers may be dear: a process that is killed loses those of so many seconds.

    Raises:
        UsageError: The system cannot be made, or answers for a part of the queries would replace
            those of others.
        EndpointError: It failed on every query or on many in a row; or answers are missing and
            only stored replies are to be used.
    """
    queries = dataset.require_queries()
    refuse_to_replace_answers(dataset, checked_name(name))
    known = _known(dataset, checked_name(name))
    todo = [query for query in queries if again or query.query_id not in known]
    n_kept = len(queries) - len(todo)
    path = dataset.files / "answers" / f"{name}.jsonl"
    _note_kept_answers(n_kept, len(queries), name, job.observer)
    if job.mode.dry_run or not todo:
        return AskingResult(path, len(todo), n_kept, [])
    _refuse_replay(name, len(todo), job.mode)
    chunks = list(dataset.chunks())
    model, services = job.settings.model, job.settings.systems
    answerer = make_answerer(spec, chunks, timeout_s=model.timeout_s, services=services)
    at_once = (spec in services and services[spec].concurrency) or model.concurrency
    keeper = _AnswerSink(dataset, name, known, PassageFinder(chunks), todo, save_every_s)
    try:
        await ask_system(
            todo,
            answerer,
            keeper,
            name=name,
            workers=Workers(at_once, job.observer),
        )
    finally:
        keeper.save()
        keeper.tell(job.observer)
    _refuse_total_failure(name, len(todo), keeper.failures)
    return AskingResult(path, len(todo), n_kept, keeper.failures)


def refuse_to_replace_answers(dataset: Dataset, name: str) -> None:
    """Refuse answers for a part of the queries in the place of those that hold others.

    Raises:
        UsageError: There are such answers.
    """
    if dataset.chosen is None or name not in dataset.answer_names():
        return
    others = {query.query_id for query in dataset.accepted_queries()} - dataset.chosen.query_ids
    n_others = sum(answer.query_id in others for answer in dataset.answers(name))
    if n_others:
        raise UsageError(
            f"answers {name}: hold {n_others:,} queries beyond those of "
            f"{dataset.chosen.selection.in_words}, which would be lost; give the new ones a --name "
            "of their own"
        )


def _refuse_replay(name: str, n_open: int, mode: Mode) -> None:
    if mode.offline_replay:
        raise EndpointError(
            f"{n_open} queries have no answer under {name!r} yet, and with --offline-replay "
            "the system is not asked"
        )


def _note_kept_answers(n_kept: int, n_queries: int, name: str, observer: Observer) -> None:
    if n_kept:
        told = f"{n_kept} of {n_queries} queries have an answer under {name!r} already"
        observer(Event("note", message=f"{told}; --ask-again asks them too"))


def _refuse_total_failure(name: str, n_asked: int, failures: Sequence[Failure]) -> None:
    if len(failures) == n_asked:
        raise EndpointError(
            f"system {name!r} failed on all {n_asked} queries; the first: {failures[0].message}"
        )


def _known(dataset: Dataset, name: str) -> dict[str, Answer]:
    answers = dataset.answers(name) if name in dataset.answer_names() else []
    return {answer.query_id: answer for answer in answers}


@dataclass(slots=True)
class _AnswerSink:
    """Takes what a system answered, and writes it now and then."""

    dataset: Dataset
    name: str
    before: dict[str, Answer]
    contexts: PassageFinder
    todo: Sequence[Query]
    save_every_s: float
    failures: list[Failure] = field(default_factory=list)
    n_lost: int = 0
    """Passages that are in no chunk."""
    _new: dict[str, Answer] = field(default_factory=dict)
    _saved_s: float = field(default_factory=time.monotonic)

    def result(self, asked: AnsweredQuery) -> None:
        """Take an answer."""
        query_id = asked.query.query_id
        context = self.contexts.find(asked.answer.context)
        self.n_lost += context.n_unknown
        self._new[query_id] = Answer(
            query_id=query_id,
            answer=asked.answer.text,
            chunk_ids=context.chunk_ids,
            n_unknown_passages=context.n_unknown,
            latency_s=asked.latency_s,
        )
        if time.monotonic() - self._saved_s >= self.save_every_s:
            self.save()

    def failure(self, failure: Failure) -> None:
        """Take a failure."""
        self.failures.append(failure)

    def save(self) -> None:
        """Write all answers, and drop the grades of those that are no more."""
        failed = {_query_id(item) for item in self.failures}
        kept = {
            query_id: answer
            for query_id, answer in self.before.items()
            if not self._new or query_id not in failed
        }
        answers = {**kept, **self._new}
        if answers:
            self.dataset.write_answers(self.name, answers.values())
            self._drop_grades(answers)
        done = self._new.keys() | failed
        open_keys = {f"{self.name}/{query.query_id}" for query in self.todo} - {
            f"{self.name}/{query_id}" for query_id in done
        }
        self.dataset.replace_failures(
            "ask",
            [item for item in self.failures if _query_id(item) not in answers],
            lambda key: key.startswith(f"{self.name}/") and key not in open_keys,
        )
        self._saved_s = time.monotonic()

    def tell(self, observer: Observer) -> None:
        """Tell how many passages are in no chunk."""
        if self.n_lost:
            lost = f"{self.n_lost} retrieved passages are in no chunk"
            observer(Event("note", message=lost))

    def _drop_grades(self, answers: dict[str, Answer]) -> None:
        if self.name not in self.dataset.answer_grade_names():
            return
        grades = self.dataset.answer_grades(self.name)
        kept = [
            grade
            for grade in grades
            if _content(self.before.get(grade.query_id)) == _content(answers.get(grade.query_id))
        ]
        if len(kept) < len(grades):
            self.dataset.write_answer_grades(self.name, kept)


def _query_id(failure: Failure) -> str:
    return failure.key.partition("/")[2]


def _content(answer: Answer | None) -> Answer | None:
    """Return the part of an answer that a grade depends on."""
    return None if answer is None else answer.model_copy(update={"latency_s": None})
