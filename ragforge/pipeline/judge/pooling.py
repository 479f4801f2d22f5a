"""Which pairs a run needs judged: the pool of its top ranks, less what is judged already."""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Literal

from ragforge.errors import DataError, UsageError
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import ChunkTexts
from ragforge.files.set.stale_runs import usable_runs
from ragforge.observe import Event, Observer
from ragforge.records import Judgment, Provenance
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

    Raises:
        DataError: There is no such run, it was made on other chunks, or there is none at all.
    """
    usable = usable_runs(dataset, run_names).require_any()
    names = usable.names
    for warning in usable.warnings:
        observer(Event("note", message=f"warning: {warning}"))
    if not names:
        raise DataError(
            f"{dataset.path}: has no runs; make one with "
            f"`ragforge retrieve --dataset {dataset.path} --retriever bm25`"
        )
    return pool(query_ids, map(dataset.each_ranking, names), depth)


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

    def keeps(self, old: Judgment) -> bool:
        """Whether a grade is not asked for again."""
        by = old.provenance
        if old.is_failed:
            return False
        if old.source == "human" or by is None or self.is_baseline:
            return True
        if by.kind == "baseline":
            return False
        if by.kind == "mock":
            # What it made up gives way to any other judge; the same name may be a real one now.
            return self.is_same(by) and not self.again
        return self.is_same(by) or not self.again

    def failed_before(self, dataset: Dataset) -> Callable[[Pair], bool]:
        """Return what tells whether this judge failed on a pair before.

        Such a pair was left over by its batch and then asked for alone; in a new batch it would be
        bought again, and so would those beside it.
        """
        keys = {
            (old.query_id, old.chunk_id)
            for old in dataset.each_judgment()
            if old.is_failed and old.provenance is not None and self.is_same(old.provenance)
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
    if kept_grades.is_baseline:
        return ""
    others = Counter(
        _named(by)
        for old in dataset.each_judgment()
        if ((old.query_id, old.chunk_id) in kept) != outside
        and (by := old.provenance) is not None
        and old.source == "judge"
        and by.kind == "llm"
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
            "anew, --mix lets both stand"
        )
    message = f"graded by another judge: {others}; --again judges these pairs anew"
    observer(Event("note", message=message))


def _same(one: Provenance, other: Provenance) -> bool:
    return (one.model, one.prompt_sha256, one.protocol) == (
        other.model,
        other.prompt_sha256,
        other.protocol,
    )


def _named(judge: Provenance) -> str:
    how = f" ({judge.protocol})" if judge.protocol else ""
    return f"{judge.model} with prompt {judge.prompt} {judge.prompt_sha256[:8]}{how}"
