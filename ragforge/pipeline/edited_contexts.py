"""Grades of answers whose context holds chunks that somebody edited."""

from collections.abc import Iterator, Mapping, Sequence

from ragforge.corpus.chunking import fits_id
from ragforge.deferred import dataclass
from ragforge.evaluating.answers.records import context_digest
from ragforge.files.set.dataset import Dataset
from ragforge.records import Answer, AnswerGrade, Chunk

_GIVEN = ("file", "human")
"""Grades that came with the answers, by whoever saw the context as it was."""


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
