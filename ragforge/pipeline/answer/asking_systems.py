"""Having a RAG system answer the queries of a dataset.

The passages that a system had before it are found among the chunks of the dataset; what is in no
chunk is a text with its place in the documents, as a hit of a run is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.corpus.quote_locations import ChunkIndex, fold
from ragforge.deferred import dataclass
from ragforge.errors import EndpointError, UsageError
from ragforge.evaluating.answers.records import is_outdated
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import DocumentNames
from ragforge.files.text import checked_name
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job, Mode
from ragforge.records import Answer, Chunk, Failure, Hit, Query, Ranking, RetrievedText, id_in_set
from ragforge.records.judgments import question_digest
from ragforge.retrieval import Answerer, ContextPassage
from ragforge.retrieval.corpus_documents import CorpusDocuments, Origin
from ragforge.retrieval.object_fields import chunks_by_text, fold_text, texts_beside
from ragforge.retrieval.retrieved_texts import RetrievedTexts, StandingOf, nothing_graded
from ragforge.scripts import reads_as_words
from ragforge.stages.runner import Workers

if TYPE_CHECKING:
    from ragforge.stages.systems import AnsweredQuery

_LONGEST_ID = 200
"""What is longer, or has blanks within, is the text of a passage and not its id."""
_LENGTH_OF_PASSAGE: Final = 100
"""Characters from which a text is what a system had before it; a shorter one may quote that."""
_MOST: Final = 0.9
"""Share of a chunk that a passage has which is that chunk, but for marks or a cut end."""


@dataclass(frozen=True, slots=True)
class FoundChunks:
    """The chunks behind some passages.

    Args:
        chunk_ids: Each once; also ids that came with a passage and that no chunk has.
        n_unknown: Passages without such an id, and without a text.
    """

    chunk_ids: tuple[str, ...]
    n_unknown: int


@dataclass(frozen=True, slots=True)
class PlacedAnswers:
    """Answers, and the texts in their contexts that are no chunks.

    Args:
        answers: In the order given.
        texts: With their places in the documents, sorted by id.
    """

    answers: list[Answer]
    texts: list[RetrievedText]


class PassageFinder:
    """Finds the chunks that a system's passages are.

    Args:
        chunks: Of the set.
        known: Ids of texts that the set knows already.
        standing_of: Tells which of several chunks that read the same is graded.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        known: Iterable[str] = (),
        standing_of: StandingOf = nothing_graded,
    ) -> None:
        from ragforge.corpus.file_text_locator import FileTextLocator
        from ragforge.corpus.file_texts import file_texts

        self._by_id = {chunk.chunk_id: chunk for chunk in chunks}
        self._ids = self._by_id.keys() | {*known}
        self._doc_ids = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
        self._index = ChunkIndex(chunks)
        self._chunks = chunks
        documents = CorpusDocuments(chunks, file_texts, FileTextLocator)
        self._texts = RetrievedTexts(documents, standing_of)

    @cached_property
    def _by_text(self) -> dict[str, list[Chunk]]:
        return chunks_by_text(self._chunks)

    @cached_property
    def _documents(self) -> DocumentNames:
        return DocumentNames(self._doc_ids)

    def find(self, context: Iterable[ContextPassage], question: str = "") -> FoundChunks:
        """Return the chunks; of a passage in no chunk its text, else its document or id.

        Ids of texts are preliminary: see `placed`.

        Args:
            context: What a system had before it.
            question: That it answered.
        """
        found = [self._chunk_id(passage, question) for passage in context]
        ids = dict.fromkeys(chunk_id for chunk_id in found if chunk_id is not None)
        return FoundChunks(tuple(ids), found.count(None))

    @property
    def misnamed(self) -> str:
        """What is to be told of passages with the id of a chunk and another text; "" for none."""
        from ragforge.pipeline.retrieved_counts import misnamed_texts

        return misnamed_texts(self._texts, "passage")

    def placed(self, answers: Iterable[Answer]) -> PlacedAnswers:
        """Return answers with the ids that texts keep, and the texts with their places."""
        given = list(answers)
        if not self._texts.ids:
            return PlacedAnswers(given, [])
        contexts = (
            Ranking(
                query_id=answer.query_id,
                ranking=tuple(Hit(chunk_id=chunk_id, score=0) for chunk_id in answer.chunk_ids),
            )
            for answer in given
        )
        now = [
            tuple(hit.chunk_id for hit in item.ranking)
            for item in self._texts.settle(list(contexts))
        ]
        cited = {chunk_id for ids in now for chunk_id in ids}
        return PlacedAnswers(
            [
                answer.model_copy(update={"chunk_ids": ids})
                for answer, ids in zip(given, now, strict=True)
            ],
            list(self._texts.located(cited)),
        )

    def quoted(self, quote: str, doc_id: str) -> str | None:
        """Return the first chunk of a document that holds a quote."""
        held = self._index.holding(quote, doc_id)
        return held[0].chunk_id if held else None

    def _chunk_id(self, passage: ContextPassage, question: str) -> str | None:
        known = self._known(passage)
        if known is not None:
            return known
        named = self._texts.documents.named(passage.doc_ids)
        for text in passage.texts:
            whole = self._same(text, named, question)
            if whole is not None:
                return whole
        doc_id = self._doc_id(passage.ids)
        if doc_id is not None and set(passage.texts) <= set(passage.ids):
            return doc_id
        texts = [text for text in passage.texts if _is_passage(text, passage)]
        if texts:
            doc_ids = named or (() if doc_id is None else (doc_id,))
            return self._of_text(texts, doc_ids, question)
        return doc_id or next((name for name in passage.ids if name and not _is_text(name)), None)

    def _known(self, passage: ContextPassage) -> str | None:
        """Return the first id that the set has, for the text of the passage."""
        known = [
            chunk_id
            for name in passage.ids
            for chunk_id in dict.fromkeys((name, id_in_set(name)))
            if chunk_id in self._ids
        ]
        texts = texts_beside(passage.ids, passage.texts) if known else []
        for name in known:
            chunk = self._by_id.get(name)
            if not texts or chunk is None or any(self._is_of(text, chunk) for text in texts):
                return name
        if known:
            self._texts.count_misnamed(known[0], texts[0])
        return None

    def _is_of(self, text: str, chunk: Chunk) -> bool:
        same = self._by_text.get(fold_text(text))
        return chunk in same if same else self._texts.documents.is_text_of(text, chunk)

    def _of_text(self, texts: Sequence[str], doc_ids: tuple[str, ...], question: str) -> str:
        """Return the chunk that holds one of the texts of a passage, else an id of the first."""
        origin, documents = Origin(doc_ids), self._texts.documents
        held = (self._holding(documents.reading(text, origin), doc_ids) for text in texts)
        found = next((chunk for chunk in held if chunk is not None), None)
        if found is None:
            return self._texts.add(texts[0], origin)
        same = [found] if found.doc_id in doc_ids else self._by_text[fold_text(found.text)]
        return self._texts.best_graded_first(same, question)[0].chunk_id

    def _same(self, text: str, doc_ids: Sequence[str], question: str) -> str | None:
        """Return the chunk that a text is, of the documents named first, then the graded one."""
        same = self._by_text.get(fold_text(text), [])
        same = same or self._texts.documents.chunks_in_other_writing(text)
        here = [chunk for chunk in same if chunk.doc_id in doc_ids] or same
        return self._texts.best_graded_first(here, question)[0].chunk_id if here else None

    def _doc_id(self, names: Iterable[str]) -> str | None:
        """Return the first document that is named, by its id or the end of its path."""
        found = (self._documents.find(name) for name in names)
        return next((doc_ids[0] for doc_ids in found if len(doc_ids) == 1), None)

    def _holding(self, text: str, doc_ids: Iterable[str]) -> Chunk | None:
        """Return the chunk that a text is meant to be; of the documents named first, then of any.

        It has all of the text, which is a quote, or nearly the whole chunk. A longer piece of a
        large chunk is a text of its own: what stands beside it was not before the system.
        """
        words = fold(text)
        for doc_id in (*doc_ids, *self._doc_ids):
            for chunk in self._index.holding(text, doc_id):
                is_meant = len(text) < _LENGTH_OF_PASSAGE or len(text) >= _MOST * len(chunk.text)
                if is_meant and words in fold(chunk.text):
                    return chunk
        return None


def _is_passage(text: str, passage: ContextPassage) -> bool:
    """Whether a text is what a passage says, and not its name."""
    return bool(text.strip()) and (text not in passage.ids or _is_text(text))


def _is_text(name: str) -> bool:
    return len(name) > _LONGEST_ID or reads_as_words(name)


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
    from ragforge.pipeline.text_grades import grade_retrieved, standing_by_question
    from ragforge.stages.systems import ask_system

    queries = dataset.require_queries()
    refuse_to_replace_answers(dataset, checked_name(name))
    known = _known(dataset, checked_name(name), queries)
    todo = [query for query in queries if again or query.query_id not in known]
    n_kept = len(queries) - len(todo)
    path = dataset.files / "answers" / f"{name}.jsonl"
    _note_kept_answers(n_kept, len(queries), name, job.observer)
    if job.mode.dry_run or not todo:
        return AskingResult(path, len(todo), n_kept, [])
    _refuse_replay(name, len(todo), job.mode)
    chunks = list(dataset.chunks())
    answerer, at_once = _answerer(spec, chunks, job)
    texts = [text.chunk_id for text in dataset.retrieved_texts()]
    finder = PassageFinder(chunks, texts, standing_by_question(dataset))
    keeper = _AnswerSink(dataset, name, known, finder, todo, save_every_s)
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
        dataset.drop_uncited_texts()
        grade_retrieved(dataset)
        keeper.tell(job.observer)
    _refuse_total_failure(name, len(todo), keeper.failures)
    return AskingResult(path, len(todo), n_kept, keeper.failures)


def _answerer(spec: str, chunks: Sequence[Chunk], job: Job) -> tuple[Answerer, int]:
    """Return a system, and how many questions it is asked at once."""
    from ragforge.retrieval.answerers import make_answerer

    model, services = job.settings.model, job.settings.systems
    answerer = make_answerer(
        spec,
        chunks,
        timeout_s=model.timeout_s,
        services=services,
        note=lambda told: job.observer(Event("note", message=told)),
    )
    return answerer, (spec in services and services[spec].concurrency) or model.concurrency


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


def _known(dataset: Dataset, name: str, queries: Iterable[Query]) -> dict[str, Answer]:
    """Return the answers that there are, but for those to other questions than are asked now."""
    now = {query.query_id: query for query in queries}
    answers = dataset.answers(name) if name in dataset.answer_names() else []
    return {answer.query_id: answer for answer in answers if not is_outdated(answer, now)}


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
    """Passages of which nothing is known."""
    n_placed: int = 0
    n_nowhere: int = 0
    """Texts in no chunk: that the documents hold, and that they do not."""
    _open: dict[str, Answer] = field(default_factory=dict)
    """Whose texts have no places yet."""
    _new: dict[str, Answer] = field(default_factory=dict)
    _saved_s: float = field(default_factory=time.monotonic)

    def result(self, asked: AnsweredQuery) -> None:
        """Take an answer."""
        query_id = asked.query.query_id
        context = self.contexts.find(asked.answer.context, asked.query.asked)
        self.n_lost += context.n_unknown
        self._open[query_id] = Answer(
            query_id=query_id,
            answer=asked.answer.text,
            chunk_ids=context.chunk_ids,
            n_unknown_passages=context.n_unknown,
            latency_s=asked.latency_s,
            cost_usd=asked.answer.cost_usd,
            query_sha256=question_digest(asked.query.asked),
        )
        if time.monotonic() - self._saved_s >= self.save_every_s:
            self.save()

    def failure(self, failure: Failure) -> None:
        """Take a failure."""
        self.failures.append(failure)

    def save(self) -> None:
        """Write all answers with their texts, and drop the grades of those that are no more."""
        with self.dataset.alone():
            self._place()
            self._save()

    def _place(self) -> None:
        placed = self.contexts.placed(self._open.values())
        self.dataset.add_retrieved_texts(placed.texts, "")
        places = {text.chunk_id: bool(text.places) for text in placed.texts}
        for answer in placed.answers:
            found = [places[one] for one in answer.chunk_ids if one in places]
            self.n_placed += found.count(True)
            self.n_nowhere += found.count(False)
            self._new[answer.query_id] = answer
        self._open = {}

    def _save(self) -> None:
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
        if self.n_placed or self.n_nowhere:
            texts = (
                f"{self.n_placed + self.n_nowhere} retrieved passages are in no chunk: "
                f"{self.n_placed} stand in the documents all the same, {self.n_nowhere} nowhere"
            )
            observer(Event("note", message=texts))
        if misnamed := self.contexts.misnamed:
            observer(Event("note", message=misnamed))
        if self.n_lost:
            lost = f"of {self.n_lost} retrieved passages nothing is known, neither id nor text"
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
    if answer is None:
        return None
    return answer.model_copy(update={"latency_s": None, "cost_usd": None, "query_sha256": ""})
