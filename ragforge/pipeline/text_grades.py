"""Grades belong to texts: they are found again under any id, and by the evidence that texts hold.

A text goes by many ids: that of a chunk, another one where the documents are cut otherwise, one
made of its words where a splitter of the user's cut it, and one more for each place where the
documents repeat it. What was graded once for a query is not asked for again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import Key, key_of
from ragforge.records import Failure, Judgment, is_text_id, text_id, without_place
from ragforge.stages.judge.pairs import PairId

if TYPE_CHECKING:
    from ragforge.retrieval.retrieved_texts import Standing, StandingOf

_RANKS: Final = {"human": 0, "judge": 1, "carried": 2, "evidence": 3}
"""Whose word is taken where several ids of one text have a grade."""


class GradesOfSameText:
    """Finds grades by the text of what was graded; blanks are folded.

    Args:
        id_of_text: Returns the `text_id` of a chunk's text by the id of the chunk; None where that
            is not known.
    """

    def __init__(self, id_of_text: Callable[[str], str | None]) -> None:
        self._id_of_text = id_of_text
        self._ids: dict[str, str | None] = {}

    def of(
        self,
        pairs: Sequence[PairId],
        judgments: Callable[[], Iterable[Judgment]],
        stands: Callable[[Judgment], bool],
    ) -> list[Judgment]:
        """Return grades for those of some pairs whose text has one under another id.

        Args:
            pairs: Without a grade.
            judgments: Reads those that are there; not asked where there is no pair.
            stands: Whether one counts. A failed one gives way to any grade.

        Returns:
            As of chunks that were copied, sorted by query and chunk.
        """
        wanted: dict[str, dict[str, list[str]]] = {}
        for query_id, chunk_id in pairs:
            if key := self._key(chunk_id):
                wanted.setdefault(query_id, {}).setdefault(key, []).append(chunk_id)
        by_pair: dict[tuple[str, str], Judgment] = {}
        for one in judgments() if wanted else ():
            texts = wanted.get(one.query_id)
            if texts is None or one.source not in _RANKS or _is_only_listed(one) or not stands(one):
                continue
            for chunk_id in self._of_same_text(one, texts):
                pair = one.query_id, chunk_id
                by_pair[pair] = min(by_pair.get(pair, one), one, key=_rank)
        return [_copied(by_pair[pair], pair[1]) for pair in sorted(by_pair)]

    def _key(self, chunk_id: str) -> str | None:
        """Return what all ids of a text have in common; None where the text is not known."""
        if is_text_id(chunk_id):
            return without_place(chunk_id)
        if chunk_id not in self._ids:
            self._ids[chunk_id] = self._id_of_text(chunk_id)
        return self._ids[chunk_id]

    def _of_same_text(
        self, judgment: Judgment, texts: Mapping[str, Sequence[str]]
    ) -> Sequence[str]:
        key = self._key(judgment.chunk_id)
        same = texts.get(key, ()) if key else ()
        return [chunk_id for chunk_id in same if chunk_id != judgment.chunk_id]


def _is_given(judgment: Judgment) -> bool:
    """Whether it is no word of evidence, which follows from where its quotes stand."""
    return judgment.source != "evidence"


def _is_only_listed(judgment: Judgment) -> bool:
    return judgment.grade is None and not judgment.is_failed


def _rank(judgment: Judgment) -> tuple[bool, int, bool, str]:
    rank = _RANKS[judgment.source]
    return judgment.is_failed, rank, judgment.only_repeats, judgment.chunk_id


def _copied(judgment: Judgment, chunk_id: str) -> Judgment:
    by_evidence = judgment.source == "evidence"
    original = judgment.copied_from or judgment.chunk_id
    if by_evidence:
        original = judgment.chunk_id  # That of the copy may be gone; this one stands.
    is_persons = judgment.source == "human" and (is_text_id(chunk_id) or is_text_id(original))
    # A person's word on a text counts beside any judge's, cut as it may be; quotes stand in it too.
    source = judgment.source if is_persons or by_evidence else "carried"
    return judgment.model_copy(
        update={"chunk_id": chunk_id, "source": source, "copied_from": original}
    )


def add_copies(dataset: Dataset, copies: Sequence[Judgment]) -> None:
    """Write grades that were found by the text, in the place of failures of their pairs.

    What is known of a failure is written of its copies too.
    """
    if not copies:
        return
    dataset.add_judgments(iter(copies))
    copied: dict[Key, list[str]] = {}
    for one in copies:
        if one.is_failed:
            copied.setdefault((one.query_id, one.copied_from), []).append(one.chunk_id)
    failures = failures_at(dataset.failures(), lambda pair: copied.get(pair, ())) if copied else []
    keys = {f"{one.query_id}/{one.chunk_id}" for one in copies}
    dataset.replace_failures("judge", failures, keys.__contains__)


def move_failures(dataset: Dataset, now: Callable[[str], Iterable[str]]) -> None:
    """Let what is known of failed judgments follow these.

    Args:
        dataset: With the failures of before.
        now: Returns the ids that a chunk or text of before has now; none where it is gone.
    """
    before = [failure for failure in dataset.failures() if failure.what == "judge"]
    moved = failures_at(before, lambda pair: now(pair[1]))
    if moved != before:
        dataset.replace_failures("judge", moved, lambda _: True)


def failures_at(failures: Iterable[Failure], now: Callable[[Key], Iterable[str]]) -> list[Failure]:
    """Return what is known of failed judgments, under other ids of their chunks.

    Args:
        failures: Of any stage; the others are passed over.
        now: Returns these ids by query and chunk.
    """
    return [
        failure.model_copy(update={"key": f"{query_id}/{chunk_id}"})
        for failure in failures
        if failure.what == "judge"
        for query_id, _, before in [failure.key.partition("/")]
        for chunk_id in now((query_id, before))
    ]


def found_by_text(
    dataset: Dataset, pairs: Sequence[PairId], stands: Callable[[Judgment], bool]
) -> list[Judgment]:
    """Return the grades that some pairs without one have under other ids of their texts.

    Args:
        dataset: Its chunks are read once.
        pairs: Sorted or not.
        stands: Whether a grade counts.

    Raises:
        DataError: A file of the set cannot be read.
    """
    asked = {pair.query_id for pair in pairs}
    ids = {pair.chunk_id for pair in pairs}
    ids |= {
        old.chunk_id
        for old in dataset.each_judgment()
        if old.query_id in asked and old.grade is not None
    }
    known = _ids_of_texts(dataset, lambda chunk_id, _: chunk_id in ids)
    return GradesOfSameText(known.get).of(pairs, dataset.each_judgment, stands)


def _ids_of_texts(dataset: Dataset, wanted: Callable[[str, str], bool]) -> dict[str, str]:
    """Return the `text_id` of chunks that are wanted by their id and by that."""
    if not dataset.chunks_path.exists():
        return {}
    both = ((chunk.chunk_id, text_id(chunk.text)) for chunk in dataset.chunks())
    return {chunk_id: of_text for chunk_id, of_text in both if wanted(chunk_id, of_text)}


def standing_by_question(dataset: Dataset) -> "StandingOf":
    """Return what tells the grades that a set has now of chunks and documents, by the question.

    They are read when they are first asked for: most sets have no two chunks that read the same.
    """
    by_question: dict[str, dict[str, Standing]] = {}

    def standing_of(question: str) -> Mapping[str, "Standing"]:
        if not by_question:
            by_question[""] = {}
            asked = {query.query_id: query.asked for query in dataset.queries()}
            for one in dataset.each_judgment():
                grade = 3 * bool(one.relevant) if one.grade is None else one.grade
                if one.is_failed or one.query_id not in asked:
                    continue
                of_question = by_question.setdefault(asked[one.query_id], {})
                standing = one.source == "human", grade
                of_question[one.chunk_id] = max(of_question.get(one.chunk_id, standing), standing)
        return by_question.get(question, {})

    return standing_of


def grade_retrieved(dataset: Dataset) -> int:
    """Grade what runs retrieved as far as no judge is needed, and return how many pairs were.

    A text has the grades of its words under any other id, and those that its evidence gives. Where
    judging its words failed, and nothing else is known of it, it is failed as well.

    Raises:
        DataError: A file of the set cannot be read.
    """
    return _grade_by_same_text(dataset) + grade_by_evidence(dataset)


def _grade_by_same_text(dataset: Dataset) -> int:
    """Give texts, and chunks that were texts before, the grades that their words have.

    What a person gave to the same words goes before what their evidence says.
    """
    keys = {without_place(text.chunk_id) for text in dataset.retrieved_texts()}
    if dataset.has_text_grades():
        graded = (old.chunk_id for old in dataset.each_judgment() if is_text_id(old.chunk_id))
        keys |= {without_place(chunk_id) for chunk_id in graded}
    if not keys:
        return 0
    known = _ids_of_texts(dataset, lambda _, of_text: of_text in keys)
    chunks = known.keys() if may_hold_more(dataset) else frozenset[str]()
    pairs = {
        PairId(query_id, chunk_id)
        for query_id, ids in _retrieved(dataset).items()
        for chunk_id in ids
        if is_text_id(chunk_id) or chunk_id in chunks
    }
    judged = {key_of(old): old.source for old in dataset.each_judgment() if not old.is_failed}
    failed = {key_of(old) for old in dataset.each_judgment() if old.is_failed}
    pairs = {pair for pair in pairs if judged.get(pair, "evidence") == "evidence"}
    found = GradesOfSameText(known.get).of(sorted(pairs), dataset.each_judgment, _is_given)
    copies = [
        one
        for one in found
        if (one.source == "human" or key_of(one) not in judged)
        and not (one.is_failed and key_of(one) in failed)
    ]
    copies = _each_quote_once(dataset, copies) if copies else copies
    add_copies(dataset, copies)
    return sum(not one.is_failed for one in copies)


def _each_quote_once(dataset: Dataset, copies: Sequence[Judgment]) -> list[Judgment]:
    """Return copies, of quotes that people graded those at later places as standing there again."""
    from ragforge.pipeline.graded_quotes import standing_again

    places = {
        text.chunk_id: (text.places[0].doc_id, text.places[0].start)
        for text in dataset.retrieved_texts()
        if len(text.places) == 1
    }

    def words(one: Judgment) -> tuple[str, str, str] | None:
        """Return what copies in one document have in common."""
        if one.chunk_id not in places or not one.given_to_quotes or one.only_repeats:
            return None
        return one.query_id, without_place(one.chunk_id), places[one.chunk_id][0]

    there = {words(one) for one in dataset.each_judgment()}
    found: list[Judgment] = []
    for one in sorted(copies, key=lambda each: places.get(each.chunk_id, ("", 0))):
        key = words(one)
        found.append(standing_again(one) if key is not None and key in there else one)
        there.add(key)
    return sorted(found, key=key_of)


def grade_by_evidence(dataset: Dataset) -> int:
    """Grade what runs retrieved and what holds evidence, and return how many grades are new.

    What has a grade keeps it. A set without evidence stays as it is. Chunks are looked at where
    their labels are not complete: there, what has none is not relevant.

    Raises:
        DataError: A file of the set cannot be read.
    """
    queries = [query for query in dataset.accepted_queries() if query.evidence]
    if not queries:
        return 0
    retrieved = _retrieved(dataset)
    if retrieved and not may_hold_more(dataset):
        retrieved = {name: {*filter(is_text_id, ids)} for name, ids in retrieved.items()}
    if not any(retrieved.values()):
        return 0
    from ragforge.stages.judge.evidence import TextsInPlace

    quoted = {item.chunk_id for query in queries for item in query.evidence}
    chunks = dataset.chunks() if dataset.chunks_path.exists() else ()
    wanted = quoted.union(*retrieved.values())
    texts = TextsInPlace(dataset.retrieved_texts(), chunks, wanted)
    from ragforge.pipeline.graded_quotes import note_quotes

    graded = set[Key]()
    given: dict[str, dict[str, int]] = {}
    for old in dataset.each_judgment():
        if not old.is_failed:
            graded.add(key_of(old))
        note_quotes(given, old)
    new: list[Judgment] = [
        judgment
        for query in sorted(queries, key=lambda query: query.query_id)
        for judgment in texts.judgments(
            query, retrieved.get(query.query_id, frozenset()), given.get(query.query_id, {})
        )
        if (judgment.query_id, judgment.chunk_id) not in graded
    ]
    if new:
        dataset.add_judgments(iter(new))
    return len(new)


def _retrieved(dataset: Dataset) -> dict[str, set[str]]:
    """Return by query what any run, or the context of an answer, holds for it."""
    found: dict[str, set[str]] = {}
    for query_id, chunk_id in _hits(dataset):
        found.setdefault(query_id, set()).add(chunk_id)
    return found


def _hits(dataset: Dataset) -> Iterator[tuple[str, str]]:
    for name in dataset.run_names():
        for item in dataset.each_ranking(name):
            for hit in item.ranking:
                yield item.query_id, hit.chunk_id
    for name in dataset.answer_names():
        for answer in dataset.answers(name):
            for chunk_id in answer.chunk_ids:
                yield answer.query_id, chunk_id


def may_hold_more(dataset: Dataset) -> bool:
    """Whether chunks without a grade may be relevant: labels are not complete."""
    from ragforge.evaluating.evaluation_data import reading_in_force

    return reading_in_force(dataset, dataset.judgment_table()) != "complete"
