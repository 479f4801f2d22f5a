"""Grades that are lost, as somebody edited the chunk, the question or the context they are of."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ragforge.corpus.chunking import fits_id
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.corpus.rereading import quote_as_read
from ragforge.deferred import dataclass
from ragforge.evaluating.answers.records import context_digest
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.stale_runs import reworded_queries
from ragforge.records import Answer, AnswerGrade, Chunk, Judgment
from ragforge.stages.visible_text import locate_shown

_GIVEN = ("file", "human")
"""Grades that came with the answers, by whoever saw the context as it was."""


@dataclass(frozen=True, slots=True)
class LostGrades:
    """What became of the judgments of a set whose chunks or questions were changed.

    Args:
        kept: The judgments without the grades of judges whose text or question is gone.
        n_of_judges: How many of these there are.
        n_of_people: Grades of people of which the same is so; they are kept.
    """

    kept: Sequence[Judgment] = ()
    n_of_judges: int = 0
    n_of_people: int = 0


def lost_grades(dataset: Dataset) -> LostGrades:
    """Find the grades of texts that are gone; none where nobody changed the chunks by hand.

    A text is gone where the quote that a grade rests on no longer stands in its chunk, or where
    ragforge made the id of the chunk from another content.

    Raises:
        DataError: The chunks or the judgments cannot be read.
    """
    if not dataset.changed_by_hand("chunks.jsonl"):
        return LostGrades()
    judgments = dataset.judgments()
    graded = {item.chunk_id for item in judgments if not item.is_failed}
    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks() if chunk.chunk_id in graded}
    replaced = {chunk_id for chunk_id, chunk in chunks.items() if not fits_id(chunk)}
    quotes = [
        (item.chunk_id, item.evidence)
        for item in judgments
        if item.chunk_id not in replaced and _lacks_quote(item, chunks.get(item.chunk_id))
    ]
    gone = set(quotes) - _running_over(dataset, quotes, chunks)
    kept, n_of_people = [], 0
    for item in judgments:
        is_lost = item.chunk_id in replaced or (item.chunk_id, item.evidence) in gone
        if item.is_failed or not is_lost:
            kept.append(item)
        elif item.source == "human":
            kept.append(item)
            n_of_people += 1
    return LostGrades(kept, len(judgments) - len(kept), n_of_people)


def grades_of_other_words(dataset: Dataset, read: Callable[[], list[Judgment]]) -> LostGrades:
    """Find the grades of questions that read otherwise now; none where nobody changed any by hand.

    A judgment does not say what was asked. Runs do: a question is another one where it was in all
    of those that have it.

    Args:
        dataset: Has the questions and the runs.
        read: Returns the judgments.

    Raises:
        DataError: The queries, a run or the judgments cannot be read.
    """
    if not dataset.changed_by_hand("queries.jsonl"):
        return LostGrades()
    reworded, judgments = reworded_queries(dataset), read()
    of_reworded = [item for item in judgments if item.query_id in reworded]
    kept = [item for item in judgments if item.query_id not in reworded or not _is_judged(item)]
    n_of_people = sum(item.source == "human" for item in of_reworded)
    return LostGrades(kept, len(judgments) - len(kept), n_of_people)


def _is_judged(judgment: Judgment) -> bool:
    return judgment.source in ("judge", "carried")


def _lacks_quote(judgment: Judgment, chunk: Chunk | None) -> bool:
    """Whether the quote of a judgment does not stand in its chunk as a judge sees that."""
    if chunk is None or not judgment.evidence.strip():
        return False
    quotes = (judgment.evidence, quote_as_read(judgment.evidence, chunk.doc_id))
    return all(locate_shown(quote, chunk.text) is None for quote in quotes)


def _running_over(
    dataset: Dataset, quotes: Sequence[tuple[str, str]], chunks: Mapping[str, Chunk]
) -> set[tuple[str, str]]:
    """Return the quotes, each with its chunk, that run over it and others of its document."""
    if not quotes:
        return set()
    documents = {chunks[chunk_id].doc_id for chunk_id, _ in quotes}
    of_these = (chunk for chunk in dataset.chunks() if chunk.doc_id in documents)
    index = ChunkIndex(sorted(of_these, key=lambda chunk: (chunk.start, chunk.chunk_id)))
    return {
        (chunk_id, quote)
        for chunk_id, quote in quotes
        for place in index.places(quote, chunks[chunk_id].doc_id)
        if chunk_id in {chunk.chunk_id for chunk in place.chunks}
    }


@dataclass(frozen=True, slots=True)
class LostAnswerGrades:
    """Grades of a system that say of an answer what its context says, which is another now."""

    system: str
    kept: Sequence[AnswerGrade]
    n: int


def lost_answer_grades(dataset: Dataset) -> list[LostAnswerGrades]:
    """Find grades by contexts that have other texts now; none where nobody changed the chunks.

    Raises:
        DataError: The chunks, the answers or the grades cannot be read.
    """
    if not dataset.changed_by_hand("chunks.jsonl"):
        return []
    there = set(dataset.answer_names())
    systems = [name for name in dataset.answer_grade_names() if name in there]
    answers = {name: {of.query_id: of for of in dataset.answers(name)} for name in systems}
    cited = {one for of in answers.values() for answer in of.values() for one in answer.chunk_ids}
    chunks = {of.chunk_id: of for of in _chunks(dataset) if of.chunk_id in cited}
    found = []
    for name in systems:
        grades = dataset.answer_grades(name)
        kept = [grade for grade in grades if not _is_lost(grade, answers[name], chunks)]
        if len(kept) < len(grades):
            found.append(LostAnswerGrades(name, kept, len(grades) - len(kept)))
    return found


def _chunks(dataset: Dataset) -> Iterator[Chunk]:
    yield from dataset.texts_as_chunks()
    yield from dataset.chunks()


def _is_lost(
    grade: AnswerGrade, answers: Mapping[str, Answer], chunks: Mapping[str, Chunk]
) -> bool:
    """Whether a grade rests on a context that reads otherwise now, or is gone in part.

    Of a grade that does not say what it rests on, ids that ragforge made from texts tell.
    """
    answer, by = answers.get(grade.query_id), grade.provenance
    rests_on_context = grade.has_hallucination is not None and not grade.rule
    if answer is None or not rests_on_context or (by is not None and by.kind in _GIVEN):
        return False
    context = [chunks[one] for one in answer.chunk_ids if one in chunks]
    if len(context) < len(answer.chunk_ids):
        return True
    if grade.context_sha256:
        return grade.context_sha256 != context_digest(chunk.text for chunk in context)
    return not all(map(fits_id, context))
