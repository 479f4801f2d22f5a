"""What became of grades and pools when the corpus changed: they follow their chunks, and count."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import key_of, pair_and_judge
from ragforge.pipeline.graded_quotes import Followed, at_chunks, by_rank, moved_pool
from ragforge.pipeline.judge.pooling import KeptGrades
from ragforge.records import Judgment, JudgmentsDiff, PoolEntry, Provenance, Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.corpus.document_chunks import DocumentChunks
from ragforge.refresh.grades.documents import with_documents
from ragforge.refresh.grades.moved_chunks import (
    MovedChunks,
    find_moved,
    moved_since,
    named_chunks,
)
from ragforge.refresh.grades.people import peoples_grades
from ragforge.refresh.items.settled import SettledItem, SettledSet
from ragforge.stages.generate.truth import derive

_Kind = Literal["kept", "carried", "judged", "evidence", "failed"]
_NEW: Final = frozenset({"judge"})
"""What only this version's judges leave: what follows a chunk is marked, or a person's."""


def count_grades(parent: Dataset, staged: Dataset, dropped: int) -> JudgmentsDiff:
    """Return how many rows of a version's judgments are of which kind.

    Args:
        parent: The version before.
        staged: The version.
        dropped: Grades of people and judges whose chunk is gone.

    Raises:
        DataError: A file cannot be read.
    """
    counts = Counter[str](_kinds(parent.each_judgment(), staged.each_judgment()))
    waiting = len(staged.past.dormant_grades())
    return JudgmentsDiff(dropped=dropped, dormant=waiting, **counts)


def _kinds(before: Iterator[Judgment], now: Iterator[Judgment]) -> Iterator[_Kind]:
    old = next(before, None)
    for judgment in now:
        while old is not None and key_of(old) < key_of(judgment):
            old = next(before, None)
        yield _kind(judgment, is_same=old == judgment)


def _kind(judgment: Judgment, *, is_same: bool) -> _Kind:
    if judgment.is_failed:
        return "failed"
    if judgment.source == "evidence":
        return "evidence"
    if is_same:
        return "kept"
    return "judged" if judgment.source in _NEW else "carried"


def carry_judgments(
    staged: Dataset,
    parent: Dataset,
    diff: CorpusDiff,
    settled: SettledSet,
    judges: Sequence[Provenance],
) -> JudgmentsDiff:
    """Write the grades and pools of a version that follow from those of its parent; no call.

    A grade stays where its chunk does, and goes where a new chunk reads the same; a judge's is
    marked as carried there, as is one that another judge would give today. A grade that a person
    gave to a quote follows the quote, and one to a chunk the evidence that it held, also where a
    check found that it says the same in other words. Where nothing of the kind stands, it waits
    until it does. What the evidence of a query says is told anew where the query changed; it is no
    grade that is given up for a lower one of a judge, and gives none up that a person gave.
    Relevance is judged against the question: where only the answer changed, grades stand.

    Args:
        staged: Gets `judgments.jsonl`, `dormant_grades.jsonl`, `pool.jsonl`, `label_checks.jsonl`,
            `moved_chunks.jsonl`.
        parent: The version before.
        diff: What changed in the corpus.
        settled: The queries as they are now.
        judges: Who would judge today; see `Bench.provenances`.

    Returns:
        Numbers of grades, as they are in `staged` now.
    """
    earlier = parent.past.moved_chunks()
    moves = with_documents(find_moved(diff, named_chunks(parent)), parent, diff)
    records = moved_since(earlier, moves, diff)
    if records or earlier:
        staged.past.write_moved_chunks(records)
    touched = _touched(settled.items, parent, diff, moves)
    people = peoples_grades(parent, diff, settled.items, moves)
    theirs = frozenset(people.documents)
    doc_ids = {item.doc_id for query in touched.values() for item in query.evidence}
    with DocumentChunks(diff.chunks_path, doc_ids | theirs) as documents:
        evidence = _derived(touched, documents)
        followed, dormant = people.place(documents.index(theirs))
    if dormant or people.dormant:
        staged.past.write_dormant_grades(dormant)
    carrying = _Carrying(moves, KeptGrades(tuple(judges), again=False), evidence, followed)
    staged.put_judgments(carrying.judgments(parent.each_judgment()))
    _carry_pool(staged, parent, moves)
    _carry_checks(staged, parent, moves)
    return count_grades(parent, staged, carrying.n_dropped)


def _touched(
    items: Iterable[SettledItem], parent: Dataset, diff: CorpusDiff, moves: MovedChunks
) -> dict[str, Query]:
    """Return the queries whose evidence is told anew, by id."""
    lost = {
        judgment.query_id
        for judgment in parent.each_judgment()
        if judgment.source == "evidence" and judgment.chunk_id in moves.gone
    }
    return {
        item.query.query_id: item.query
        for item in items
        if item.is_moved
        or item.before is None
        or item.change is not None
        or item.before.revision != item.query.revision
        or item.query.query_id in lost
        or _is_out_beside_changes(item.query, diff)
    }


def _is_out_beside_changes(query: Query, diff: CorpusDiff) -> bool:
    """Whether a query is retired, so that nothing else tells that a quote of it is back."""
    return query.status == "retired" and any(item.doc_id in diff.moves for item in query.evidence)


def _derived(touched: Mapping[str, Query], documents: DocumentChunks) -> dict[str, list[Judgment]]:
    """Return what the evidence of queries says, by id, as far as it stands.

    Retired ones are among them: what stands of their evidence is there when they come back.
    """
    derived: dict[str, list[Judgment]] = {query_id: [] for query_id in touched}
    proved = [query for query in touched.values() if query.evidence]
    # In the order of their documents, as one index is held at a time.
    for query in sorted(proved, key=lambda query: (sorted(_documents(query)), query.query_id)):
        index = documents.index(_documents(query))
        derived[query.query_id] = [*derive(query, index).judgments]
    return derived


def _documents(query: Query) -> frozenset[str]:
    return frozenset(item.doc_id for item in query.evidence)


@dataclass(slots=True)
class _Carrying:
    """The judgments of a version, query by query.

    Args:
        moves: Where chunks are now.
        kept_grades: Who would judge today.
        evidence: What evidence says, by the id of each query for which it is told anew.
        followed: Grades of people that come to chunks, for those whose chunk is gone.
    """

    moves: MovedChunks
    kept_grades: KeptGrades
    evidence: Mapping[str, Sequence[Judgment]]
    followed: Followed
    n_dropped: int = 0
    _following: dict[str, list[Judgment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for judgment in self.followed.judgments:
            self._following.setdefault(judgment.query_id, []).append(judgment)

    def judgments(self, old: Iterable[Judgment]) -> Iterator[Judgment]:
        """Yield all judgments of now, sorted; `old` is sorted by query and chunk."""
        groups = ((name, [*of]) for name, of in groupby(old, lambda one: one.query_id))
        others = ((name, list[Judgment]()) for name in sorted({*self.evidence, *self._following}))
        both = heapq.merge(groups, others, key=lambda group: group[0])
        for query_id, parts in groupby(both, lambda group: group[0]):
            yield from self._of_query(query_id, [one for _, of in parts for one in of])

    def _of_query(self, query_id: str, old: Iterable[Judgment]) -> list[Judgment]:
        again = self.evidence.get(query_id)
        judgments = [*self._following.get(query_id, ())]
        for judgment in old:
            if judgment.source != "evidence":
                judgments += self._carried(judgment)
            elif again is None:
                judgments.append(judgment)
        by_chunk = {judgment.chunk_id: judgment for judgment in by_rank(judgments)}
        for judgment in again or ():
            if _says_more(judgment, by_chunk.get(judgment.chunk_id)):
                by_chunk[judgment.chunk_id] = judgment
        return [by_chunk[chunk_id] for chunk_id in sorted(by_chunk)]

    def _carried(self, judgment: Judgment) -> list[Judgment]:
        now = self.moves.of(judgment.chunk_id)
        found = [self._marked(one) for one in at_chunks(judgment, now)]
        has_followed = (judgment.query_id, judgment.chunk_id) in self.followed.pairs
        if not judgment.is_failed:
            self.n_dropped += not found and not has_followed
        return found

    def _marked(self, judgment: Judgment) -> Judgment:
        by = judgment.provenance
        if judgment.source != "judge" or by is None or by.kind != "llm":
            return judgment
        if self.kept_grades.is_baseline or self.kept_grades.is_same(by):
            return judgment
        return judgment.model_copy(update={"source": "carried"})


def _says_more(evidence: Judgment, old: Judgment | None) -> bool:
    if old is None or old.is_failed:
        return True
    return old.source != "human" and (old.grade or 0) < (evidence.grade or 0)


def _carry_pool(staged: Dataset, parent: Dataset, moves: MovedChunks) -> None:
    if not any(True for _ in parent.each_pool_entry()):
        return
    groups = groupby(parent.each_pool_entry(), lambda entry: entry.query_id)
    staged.put_pool(entry for _, entries in groups for entry in _pool_of(entries, moves))


def _pool_of(entries: Iterable[PoolEntry], moves: MovedChunks) -> list[PoolEntry]:
    return sorted(moved_pool(entries, moves), key=lambda entry: entry.chunk_id)


def _carry_checks(staged: Dataset, parent: Dataset, moves: MovedChunks) -> None:
    """Let what judges said beside grades of people follow these."""
    checks = parent.label_checks()
    if any(check.chunk_id in moves.gone for check in checks):
        moved = [
            (check if chunk_id == check.chunk_id else _at(check, chunk_id))
            for check in checks
            for chunk_id in moves.of(check.chunk_id)
        ]
        staged.write_label_checks({pair_and_judge(check): check for check in moved}.values())


def _at(check: Judgment, chunk_id: str) -> Judgment:
    return check.model_copy(update={"chunk_id": chunk_id, "copied_from": ""})
