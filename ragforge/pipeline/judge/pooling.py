"""Which pairs a run needs judged: the pool of its top ranks, less what is judged already.

Rankings of earlier evaluations may need more, so that later ones can be held against them.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import judge_command
from ragforge.files.set.baseline import read_baseline, values_in
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import History, read_history
from ragforge.files.set.sorted_records import ChunkTexts
from ragforge.files.set.stale_runs import usable_runs
from ragforge.observe import Event, Observer
from ragforge.records import Baseline, ItemValues, Judgment, Provenance, Ranking, is_text_id
from ragforge.records.canaries import before_drift
from ragforge.records.evaluations import KEPT_RANKS
from ragforge.records.judgments import LOCAL_MODEL_JUDGE
from ragforge.stages.judge.pairs import Pair, PairId, pool


def queries_of(dataset: Dataset, split: Literal["all", "dev", "test"]) -> dict[str, str]:
    """Return the text of each accepted query of a split, by id.

    Raises:
        DataError: There is none.
    """
    queries = dataset.require_queries()
    found = {each.query_id: each.asked for each in queries if split in ("all", each.split)}
    if not found:
        raise DataError(f"{dataset.path}: no query belongs to the split {split!r}")
    return found


def pool_of(
    dataset: Dataset,
    query_ids: Container[str],
    run_names: Sequence[str],
    depth: int,
    observer: Observer,
) -> list[PairId]:
    """Return the top ranks of some runs, of all but stale ones where none is named.

    Where none is named, texts in the contexts of answers that are no chunks are looked at, too.

    Raises:
        DataError: There is no such run, it was made on other chunks, or there is none at all.
    """
    usable = usable_runs(dataset, run_names).require_any()
    names = usable.names
    for warning in usable.warnings:
        observer(Event("note", message=f"warning: {warning}"))
    contexts = [] if run_names else _texts_of_answers(dataset, query_ids)
    if not names and not contexts:
        raise DataError(
            f"{dataset.path}: has no runs; make one with "
            f"`ragforge retrieve --dataset {dataset.path} --retriever bm25`"
        )
    return sorted({*pool(query_ids, map(dataset.each_ranking, names), depth), *contexts})


def _texts_of_answers(dataset: Dataset, query_ids: Container[str]) -> list[PairId]:
    """Return the texts of another splitter that systems had before them, with their queries."""
    return [
        PairId(answer.query_id, chunk_id)
        for name in dataset.answer_names()
        for answer in dataset.answers(name)
        if answer.query_id in query_ids
        for chunk_id in answer.chunk_ids
        if is_text_id(chunk_id)
    ]


def with_texts(pooled: list[PairId], texts: ChunkTexts, observer: Observer) -> list[PairId]:
    """Return the pairs whose chunks are in the corpus, and tell of the others."""
    unknown = sorted({each.chunk_id for each in pooled if each.chunk_id not in texts})
    if unknown:
        message = (
            f"{len(unknown)} retrieved chunk ids are not in chunks.jsonl and cannot be judged, "
            f"such as {', '.join(unknown[:3])}"
        )
        observer(Event("note", message=message))
    return [each for each in pooled if each.chunk_id in texts]


@dataclass(frozen=True, slots=True)
class KeptGrades:
    """Which grades stand beside those of a judge.

    Args:
        judges: The names of who is to judge now; several for one that judges in batches.
        again: Whether what another model judged is judged anew.
    """

    judges: tuple[Provenance, ...]
    again: bool

    @property
    def is_baseline(self) -> bool:
        """Whether no model judges."""
        return self.judges[0].kind == "baseline"

    def is_same(self, by: Provenance) -> bool:
        """Whether a record is of this judge, asked in this way."""
        return any(_same(by, judge) for judge in self.judges)

    def is_by_judge(self, old: Judgment) -> bool:
        """Whether a judgment is of this judge, in batches or of what they left open."""
        return old.provenance is not None and self.is_same(old.provenance)

    def keeps(self, old: Judgment) -> bool:
        """Whether a grade is not asked for again."""
        by = old.provenance
        if old.is_failed:
            return False
        if old.source == "human" or by is None:
            return True
        if self.is_baseline:
            # Shared words and a local model are two judges, as two language models are.
            return by.kind != "baseline" or self.is_same(by) or not self.again
        if by.kind == "baseline":
            return False
        if by.kind == "mock":
            # What it made up gives way to any other judge; the same name may be a real one now.
            return self.is_same(by) and not self.again
        return self.is_same(by) or not self.again

    def is_own(self, old: Judgment) -> bool:
        """Whether a grade is as good as one of this judge: its own, or a person's."""
        by = old.provenance
        return self.keeps(old) and (old.source == "human" or by is None or self.is_same(by))

    def failed_before(self, judgments: Iterable[Judgment]) -> Callable[[Pair], bool]:
        """Return a test whether this judge failed on a pair before, by what it gave then.

        Such a pair was left over by its batch and then asked for alone; in a new batch it would be
        bought again, and so would those beside it.
        """
        keys = {
            (old.query_id, old.chunk_id)
            for old in judgments
            if old.is_failed and self.is_by_judge(old)
        }
        return lambda pair: (pair.query_id, pair.chunk_id) in keys


def describe_other_judges(
    dataset: Dataset,
    kept: Container[tuple[str, str]],
    kept_grades: KeptGrades,
    *,
    outside: bool = False,
) -> str:
    """Return which other models, prompts or protocols graded some pairs, "" for none.

    Args:
        dataset: Has the judgments.
        kept: The pairs that are looked at.
        kept_grades: Who is to judge now.
        outside: Look at all other pairs instead.
    """
    kind = "baseline" if kept_grades.is_baseline else "llm"
    others = Counter(
        _named(by)
        for old in dataset.each_judgment()
        if ((old.query_id, old.chunk_id) in kept) != outside
        and (by := old.provenance) is not None
        and old.source in ("judge", "carried")
        and by.kind == kind
        and old.grade is not None
        and not kept_grades.is_same(by)
    )
    return "; ".join(f"{count} by {other}" for other, count in sorted(others.items()))


def refuse_mixed_judges(
    others: str, n_open: int, kept_grades: KeptGrades, observer: Observer
) -> None:
    """Refuse to put grades of two judges into one set unasked; tell where that was done before.

    Args:
        others: What `describe_other_judges` says of the pairs of the pool whose grade stays.
        n_open: Pairs that would be judged now.
        kept_grades: Who would judge them.
        observer: Told, where nothing would be judged.

    Raises:
        UsageError: Other judges graded a part, and this one would grade the rest.
    """
    if not others:
        return
    if n_open:
        raise UsageError(
            f"some pairs of the pool are graded by another judge ({others}); "
            f"{_named(kept_grades.judges[0])} would grade the rest: --again judges all of them "
            f"anew, --mix lets both stand{_other_baseline(kept_grades.judges[0])}"
        )
    message = f"graded by another judge: {others}; --again judges these pairs anew"
    observer(Event("note", message=message))


def pairs_before_drift(judgments: Iterable[Judgment], kept_grades: KeptGrades) -> set[PairId]:
    """Return the pairs that a judge graded on the other side of a drift."""
    names = {_key(before_drift(judge)) for judge in kept_grades.judges}
    return {
        PairId(old.query_id, old.chunk_id)
        for old in judgments
        if old.source in ("judge", "carried") and old.grade is not None and old.level == "chunk"
        if (by := old.provenance) is not None and by.kind == "llm"
        if not kept_grades.is_same(by) and _key(before_drift(by)) in names
    }


def refuse_beside_drift(n_before: int, n_open: int, kept_grades: KeptGrades) -> None:
    """Refuse to put grades of a judge that drifted beside those that it gave before, unasked.

    Other pools may hold those: a comparison of the two would be one of two judges.

    Raises:
        UsageError: There are such grades, and this judge would give others.
    """
    if n_before and n_open and not kept_grades.again:
        raise UsageError(
            f"the set holds {plural(n_before, 'grade')} that {_named(kept_grades.judges[0])} gave "
            "on the other side of a drift: `ragforge judge --again` without --run judges all of "
            "them anew, --mix lets both stand"
        )


def _other_baseline(judge: Provenance) -> str:
    """Return how the baseline that graded before goes on; "" where a model judges.

    Which of the two works hangs on what is installed, so that nobody may have asked for this one.
    """
    if judge.kind != "baseline":
        return ""
    if judge.model.startswith(LOCAL_MODEL_JUDGE):
        return ", --offline-model none goes on by shared words"
    return ", --offline-model minilm goes on by cosines"


def _same(one: Provenance, other: Provenance) -> bool:
    return _key(one) == _key(other)


def _key(judge: Provenance) -> tuple[str, str, str]:
    return judge.model, judge.prompt_sha256, judge.protocol


def _named(judge: Provenance) -> str:
    if judge.kind == "baseline":
        return f"the offline baseline {judge.model}"
    how = f" ({judge.protocol})" if judge.protocol else ""
    return f"{judge.model} with prompt {judge.prompt} {judge.prompt_sha256[:8]}{how}"


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
        """Return the pairs that are not in a pool anyway, and whose chunks are there."""
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
    """Return the pairs that earlier rankings need graded.

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
        """Return the collected pairs."""
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
