"""Judging pools that grow, wave by wave: all queries that are to get a block get it at once.

A text that a query has a grade for is not judged again under the id of another chunk.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import pairwise

from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.completion import RELEVANT
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import query_and_chunk
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judge_run import JudgingResult, judge_into
from ragforge.pipeline.judge.judges import Judges
from ragforge.pipeline.judge.pooling import (
    KeptGrades,
    describe_other_judges,
    pairs_before_drift,
    refuse_beside_drift,
    refuse_mixed_judges,
)
from ragforge.pipeline.text_grades import GradesOfSameText, add_copies
from ragforge.records import Judgment, PoolEntry, Query, is_text_id, text_id
from ragforge.stages.complete import Growth, Item, Ranked
from ragforge.stages.judge.pairs import Pair, PairId

MOST_SOURCES = 3
"""Chunks that people found relevant which stand for the source of a query that has none."""


def queries_to_complete(
    dataset: Dataset, split: str, query_ids: Collection[str] | None
) -> list[Query]:
    """Return the named queries, of any status; the accepted ones of a split where None are named.

    Raises:
        DataError: No query is in the split.
    """
    if query_ids is not None:
        return [query for query in dataset.all_queries() if query.query_id in query_ids]
    found = [query for query in dataset.require_queries() if split in ("all", query.split)]
    if not found:
        raise DataError(f"{dataset.path}: no query belongs to the split {split!r}")
    return found


def items_of(
    dataset: Dataset, queries: Sequence[Query], survey: Survey, observer: Observer
) -> list[Item]:
    """Return the items that probes start from; missing sources are told of.

    A query without evidence or source has for sources what people found most relevant.
    """
    by_people = _found_by_people(dataset, {query.query_id for query in queries})
    items, unknown = [], set[str]()
    for query in queries:
        named = dict.fromkeys((*(one.chunk_id for one in query.evidence), *query.source_chunk_ids))
        sources = []
        for chunk_id in [*named] or by_people.get(query.query_id, []):
            try:
                sources.append(survey.chunk(chunk_id))
            except KeyError:
                unknown.add(chunk_id)
        answer = (query.expected_answer or "") if query.answerable else ""
        items.append(Item(query.query_id, query.asked, answer, tuple(sources)))
    if unknown:
        shown = ", ".join(sorted(unknown)[:3])
        message = f"{len(unknown)} source chunks are not in the corpus, such as {shown}"
        observer(Event("note", message=message))
    return items


def _found_by_people(dataset: Dataset, query_ids: Collection[str]) -> dict[str, list[str]]:
    graded: dict[str, list[tuple[int, str]]] = {}
    for one in dataset.each_judgment():
        grade = one.listed_grade or 0
        is_source = one.source == "human" and one.level == "chunk"
        if is_source and one.query_id in query_ids and grade >= RELEVANT:
            graded.setdefault(one.query_id, []).append((-grade, one.chunk_id))
    return {
        query_id: [chunk_id for _, chunk_id in sorted(found)[:MOST_SOURCES]]
        for query_id, found in graded.items()
    }


@dataclass(frozen=True, slots=True)
class PooledQuery:
    """A query whose pool is judged.

    Args:
        text: The question as it stands on its own.
        answerable: Whether the corpus is to answer it.
        ranked: What the probes found.
    """

    text: str
    answerable: bool
    ranked: Ranked


@dataclass(slots=True)
class PoolWaves:
    """The pools of some queries.

    Args:
        dataset: Gets judgments and pools.
        survey: Has the texts.
        judges: Who judges; in a dry run only the first wave.
        asked: The queries, by id.
        starts: Depths at which pools begin, by query id; the usual one where one is not in it.
        adds: Whether pools are added to those that are there, rather than put in their place.
        depths: Of each pool so far, by query id.
        result: Of all waves.
    """

    dataset: Dataset
    survey: Survey
    judges: Judges
    asked: Mapping[str, PooledQuery]
    starts: Mapping[str, int] = field(default_factory=dict)
    adds: bool = False
    depths: dict[str, int] = field(default_factory=dict)
    result: JudgingResult = field(default_factory=lambda: JudgingResult(""))
    growth: Growth = field(init=False)
    """How deep pools get."""
    _job: Job = field(init=False)
    _kept_grades: KeptGrades = field(init=False)
    _grades: dict[tuple[str, str], int] = field(default_factory=dict)
    _others: str | None = None
    _n_before: int = 0
    _of_same_text: GradesOfSameText = field(init=False)
    _copies: Sequence[Judgment] = ()

    def __post_init__(self) -> None:
        self._job = self.judges.job
        pools = self._job.settings.pool
        self.growth = Growth(pools.pool_k, pools.pool_most)
        self._kept_grades = KeptGrades(self.judges.provenances(), again=self._job.mode.again)
        self.result = JudgingResult(self.judges.name)
        self._of_same_text = GradesOfSameText(self._id_of_text)

    async def judge(self) -> None:
        """Judge the first block of each pool, and further ones while they bring relevant chunks.

        Judgments are written after each wave, and the pools as deep as they are at the end, also
        where it is stopped.

        Raises:
            UsageError: Another model or prompt graded a part of the pools; see `Mode`.
            EndpointError, BudgetError: The run was stopped.
        """
        start = self.growth.start
        self.depths = {query_id: self.starts.get(query_id, start) for query_id in self.asked}
        self._read()
        above = dict.fromkeys(self.asked, 0)
        todo = self._todo(above)
        self._check_other_judges(len(todo))
        try:
            while above:
                await self._wave(todo)
                if self._job.mode.dry_run:
                    return
                above = self._grow(above)
                todo = self._todo(above)
                if todo:
                    self._check_other_judges(len(todo))
        finally:
            if not self._job.mode.dry_run:
                self._write_pools()

    def stands(self, old: Judgment) -> bool:
        """Whether a grade is not asked for again; that of a query's own evidence never is."""
        own = old.source == "evidence" and old.grade is not None
        return own or self._kept_grades.keeps(old)

    def entries(self) -> Iterator[PoolEntry]:
        """Yield the pools as deep as they are, sorted by query and chunk."""
        for query_id in sorted(self.depths):
            yield from self.asked[query_id].ranked.entries(self.depths[query_id])

    def open_blocks(self) -> Iterator[list[int]]:
        """Yield, for each pool, the pairs without a grade in each of its blocks, if it grew."""
        for query_id, pooled in self.asked.items():
            first = self.starts.get(query_id, self.growth.start)
            depths = [0, first, *(depth for depth in self.growth.depths() if depth > first)]
            yield [
                sum(
                    (query_id, chunk_id) not in self._grades
                    for chunk_id in pooled.ranked.pool(to, above)
                )
                for above, to in pairwise(depths)
            ]

    def _read(self) -> None:
        """Take the grades that stand from the dataset."""
        for old in self.dataset.each_judgment():
            grade = old.listed_grade
            if old.query_id in self.asked and grade is not None and self.stands(old):
                self._grades[old.query_id, old.chunk_id] = grade

    def _todo(self, above: Mapping[str, int]) -> list[PairId]:
        """Return the pairs without a grade that pools hold beyond a depth, and count all there.

        Args:
            above: That depth, by query; queries that are not in it have no part.
        """
        pairs = [
            PairId(query_id, chunk_id)
            for query_id in sorted(above)
            for chunk_id in self.asked[query_id].ranked.pool(self.depths[query_id], above[query_id])
        ]
        self.result.n_pairs += len(pairs)
        return self._without_same_text([pair for pair in pairs if pair not in self._grades])

    def _check_other_judges(self, n_open: int) -> None:
        if self._job.mode.mix:
            return
        if self._others is None:
            kept = {pair for pair in self._grades if pair[1] in self.asked[pair[0]].ranked.ranks}
            self._others = describe_other_judges(self.dataset, kept, self._kept_grades)
            judgments = self.dataset.each_judgment()
            self._n_before = len(pairs_before_drift(judgments, self._kept_grades))
        refuse_mixed_judges(self._others, n_open, self._kept_grades, self._job.observer)
        refuse_beside_drift(self._n_before, n_open, self._kept_grades)

    def _without_same_text(self, pairs: Sequence[PairId]) -> list[PairId]:
        """Return the pairs whose text has no grade under another id either; note those grades.

        What evidence says of a text holds under the same titles alone: they may say what it is of.
        """
        found = self._of_same_text.of(pairs, self.dataset.each_judgment, self.stands)
        self._copies = [one for one in found if one.source != "evidence" or self._has_titles(one)]
        self._grades |= {(one.query_id, one.chunk_id): one.grade or 0 for one in self._copies}
        return [pair for pair in pairs if pair not in self._grades]

    def _has_titles(self, copy: Judgment) -> bool:
        """Whether a chunk stands under the titles of the one that its grade is copied from."""
        if is_text_id(copy.copied_from):
            return False
        titles = self.survey.chunk(copy.copied_from).heading_path
        return self.survey.chunk(copy.chunk_id).heading_path == titles

    def _id_of_text(self, chunk_id: str) -> str | None:
        try:
            return text_id(self.survey.chunk(chunk_id).text)
        except KeyError:
            return None

    async def _wave(self, todo: list[PairId]) -> None:
        if not self._job.mode.dry_run:
            add_copies(self.dataset, self._copies)
        if not todo:
            return
        result = JudgingResult(self.judges.name, len(todo))

        def pairs() -> Iterator[Pair]:
            for query_id, chunk_id in todo:
                text = self.survey.chunk(chunk_id).text
                yield Pair(query_id, self.asked[query_id].text, chunk_id, text)

        try:
            await judge_into(self.dataset, self.judges, self._kept_grades, result, pairs, len(todo))
        finally:
            self._add(result)
            if not self._job.mode.dry_run:
                self._read()

    def _grow(self, wave: Mapping[str, int]) -> dict[str, int]:
        """Deepen the pools of a wave that are to grow; return how deep they were."""
        grown: dict[str, int] = {}
        for query_id in wave:
            one, depth = self.asked[query_id], self.depths[query_id]
            is_relevant = partial(self._is_relevant, query_id)
            deeper = self.growth.next_depth(one.ranked, depth, is_relevant)
            # One chunk that answers is enough to say that a query is not unanswerable.
            if deeper is not None and one.answerable:
                grown[query_id], self.depths[query_id] = depth, deeper
        return grown

    def _is_relevant(self, query_id: str, chunk_id: str) -> bool:
        return self._grades.get((query_id, chunk_id), 0) >= RELEVANT

    def _write_pools(self) -> None:
        entries = {query_and_chunk(entry): entry for entry in self.entries()}
        others = (
            old
            for old in self.dataset.each_pool_entry()
            if old.query_id not in self.depths
            or (self.adds and query_and_chunk(old) not in entries)
        )
        self.dataset.write_pool([*others, *entries.values()])

    def _add(self, wave: JudgingResult) -> None:
        total = self.result
        total.unwrapped = wave.unwrapped  # The judges count all waves.
        total.n_judged += wave.n_judged
        total.n_failed += wave.n_failed
        total.n_copied += wave.n_copied
        total.n_texts += wave.n_texts
        total.grades += wave.grades
        total.flags += wave.flags
        total.first_failure = total.first_failure or wave.first_failure
        total.gave_up_batches = total.gave_up_batches or wave.gave_up_batches
