"""What rankings of earlier evaluations need judged, so that later ones can be held against them."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import judge_command
from ragforge.files.set.baseline import read_baseline, values_in
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import History, read_history
from ragforge.observe import Event, Observer
from ragforge.pipeline.evaluated import KEPT_RANKS
from ragforge.pipeline.judge.pooling import KeptGrades
from ragforge.records import Baseline, ItemValues, Ranking
from ragforge.stages.judge.pairs import PairId


@dataclass(frozen=True, slots=True)
class EarlierRankings:
    """Which earlier rankings are looked at.

    Args:
        states: Of each run, the newest that hold other chunks than the runs of now.
        files: Baselines beside the history.
    """

    states: int = 1
    files: tuple[Path, ...] = ()


ONE_BACK = EarlierRankings()


@dataclass(frozen=True, slots=True)
class EarlierNeeds:
    """Pairs that a judge has to grade for earlier rankings."""

    pairs: frozenset[PairId]
    """Of earlier rankings as deep as the pool; deeper, and in the runs of now, those that another
    judge graded."""
    open: frozenset[PairId]
    """Of these, pairs without a grade of this judge."""
    blocking: frozenset[PairId]
    """Of these, pairs with another judge's grade, or whose grade is gone: without them, no
    difference to the earlier ranking is known."""

    def not_in(self, pooled: Iterable[PairId], chunk_ids: Container[str]) -> "EarlierNeeds":
        """Return those that are not in a pool anyway, and whose chunks are there."""
        known = set(pooled)
        of_kind = (
            frozenset(one for one in pairs if one.chunk_id in chunk_ids and one not in known)
            for pairs in (self.pairs, self.open, self.blocking)
        )
        return EarlierNeeds(*of_kind)


NO_NEEDS: Final = EarlierNeeds(frozenset(), frozenset(), frozenset())


def earlier_needs(
    dataset: Dataset,
    query_ids: Container[str],
    run_names: Sequence[str],
    depth: int,
    kept_grades: KeptGrades,
    earlier: EarlierRankings = ONE_BACK,
) -> EarlierNeeds:
    """Return what earlier rankings need.

    Args:
        dataset: Has the history.
        query_ids: Only their pairs are taken.
        run_names: Whose earlier rankings; those of all runs where empty.
        depth: Ranks taken of each ranking.
        kept_grades: Who is to judge.
        earlier: Which rankings.

    Raises:
        DataError: The history or a baseline cannot be read.
    """
    names = list(run_names) or dataset.run_names()
    history = read_history(dataset.home)
    if not earlier.files and not any(history.of_run(name) for name in names):
        return NO_NEEDS
    needs = _NeedsCollector(dataset, query_ids, depth, kept_grades)
    for evaluated in (read_baseline(path) for path in earlier.files):
        needs.add(evaluated)
    for name in (name for name in names if history.of_run(name)):
        now = {ranking.query_id: _ids(ranking) for ranking in dataset.each_ranking(name)}
        others = (
            evaluated
            for evaluated in _states(dataset, history, name)
            if needs.is_other(evaluated, now)
        )
        for evaluated in islice(others, earlier.states):
            needs.add(evaluated)
            needs.add_deep(now)
    return needs.settled()


def _ids(ranking: Ranking) -> tuple[str, ...]:
    return tuple(hit.chunk_id for hit in islice(ranking.ranking, KEPT_RANKS))


def note_earlier_needs(
    needs: EarlierNeeds, dataset: Dataset, kept_grades: KeptGrades, observer: Observer
) -> None:
    """Tell how many pairs earlier rankings need, where differences to them are not known."""
    if needs.blocking:
        command = judge_command(kept_grades.judges[0], str(dataset.path), n_earlier=1)
        message = (
            f"rankings of earlier evaluations hold {plural(len(needs.open), 'pair')} without a "
            "grade of this judge; until they are judged, differences to them are UNKNOWN: "
            f"`{command}` judges them as well (--dry-run tells the price)"
        )
        observer(Event("note", message=message))


def _states(dataset: Dataset, history: History, run: str) -> Iterator[Baseline]:
    """Yield the evaluations of a run whose values are kept, newest first, one of each ranking."""
    seen = set()
    for evaluation in reversed(history.of_run(run)):
        if evaluation.digests.rankings not in seen:
            seen.add(evaluation.digests.rankings)
            found = values_in(dataset.home, history, evaluation)
            if found is not None:
                yield found


class _NeedsCollector:
    """Collects the pairs of earlier rankings."""

    def __init__(
        self, dataset: Dataset, query_ids: Container[str], depth: int, kept_grades: KeptGrades
    ) -> None:
        self._query_ids = query_ids
        self._depth = depth
        self._moved = dataset.past.moved_chunks()
        anew = KeptGrades(kept_grades.judges, again=True)
        self._pairs: set[PairId] = set()
        self._stays: set[PairId] = set()
        self._others: set[PairId] = set()
        self._gone: set[PairId] = set()
        self._by_document: set[str] = set()
        """Queries whose earlier rankings are of documents, which no judge grades."""
        for old in dataset.each_judgment():
            if old.level == "document":
                self._by_document.add(old.query_id)
            if old.grade is not None and old.query_id in query_ids:
                by = old.provenance
                is_this = by is not None and kept_grades.is_same(by)
                of = self._stays if is_this or anew.keeps(old) else self._others
                of.add(PairId(old.query_id, old.chunk_id))

    def _is_asked(self, query_id: str) -> bool:
        return query_id in self._query_ids and query_id not in self._by_document

    def is_other(self, evaluated: Baseline, now: Mapping[str, Sequence[str]]) -> bool:
        """Whether an evaluation is of other rankings than those of now."""
        return any(
            self._is_asked(item.query_id)
            and self._ranked(item) != [*now.get(item.query_id, ())][: len(item.ranking)]
            for item in evaluated.items
        )

    def add(self, evaluated: Baseline) -> None:
        """Take what the rankings of an evaluation need."""
        for item in evaluated.items:
            if self._is_asked(item.query_id):
                self._pairs.update(self._of_item(item))

    def add_deep(self, now: Mapping[str, Sequence[str]]) -> None:
        """Take what another judge graded in rankings of now."""
        pairs = (PairId(query_id, one) for query_id, ids in now.items() for one in ids)
        self._pairs.update(pair for pair in pairs if pair in self._others)

    def settled(self) -> EarlierNeeds:
        """Return what was collected."""
        left = self._pairs - self._stays
        blocking = left & (self._others | self._gone)
        return EarlierNeeds(*map(frozenset, (self._pairs, left, blocking)))

    def _ranked(self, item: ItemValues) -> list[str]:
        return [next(iter(self._moved.get(one, ())), one) for one in item.ranking]

    def _of_item(self, item: ItemValues) -> Iterator[PairId]:
        graded = set(item.graded or ())
        for rank, chunk_id in enumerate(self._ranked(item), 1):
            pair = PairId(item.query_id, chunk_id)
            is_gone = rank in graded and pair not in self._stays and pair not in self._others
            if is_gone:
                self._gone.add(pair)
            if rank <= self._depth or is_gone or pair in self._others:
                yield pair
