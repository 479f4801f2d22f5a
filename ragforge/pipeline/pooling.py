"""Which pairs a run needs judged: the pool of its top ranks, less what is judged already."""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Literal

from ragforge.errors import DataError, UsageError
from ragforge.files.dataset import Dataset
from ragforge.files.texts import ChunkTexts
from ragforge.observe import Event, Observer
from ragforge.records import Judgment, Provenance
from ragforge.stages.judge.pairs import Pair, PairId, pool


def queries_of(dataset: Dataset, split: Literal["all", "dev", "test"]) -> dict[str, str]:
    """Return the text of each accepted query of a split, by id.

    Raises:
        DataError: There is none.
    """
    queries = dataset.require_queries()
    found = {each.query_id: each.query for each in queries if split in ("all", each.split)}
    if not found:
        raise DataError(f"{dataset.path}: no query belongs to the split {split!r}")
    return found


def pool_of(
    dataset: Dataset, query_ids: Container[str], run_names: Sequence[str], depth: int
) -> list[PairId]:
    """Return the top ranks of some runs, of all where none is named.

    Raises:
        DataError: There is no such run, or none at all.
    """
    names = list(run_names) or dataset.run_names()
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
class Standing:
    """Which grades stand beside those of a judge.

    Args:
        judge: Who is to judge now.
        again: Whether what another model judged is judged anew.
    """

    judge: Provenance
    again: bool

    def stays(self, old: Judgment) -> bool:
        """Whether a grade is not asked for again."""
        by = old.provenance
        if old.grade is None:
            return False
        if old.source == "human" or by is None or self.judge.kind == "baseline":
            return True
        if by.kind == "baseline":
            return False
        return _same(by, self.judge) or not self.again

    def failed(self, dataset: Dataset) -> Callable[[Pair], bool]:
        """Return what tells whether this judge failed on a pair before.

        Such a pair was left over by its batch and then asked for alone; in a new batch it would be
        bought again, and so would those beside it.
        """
        keys = {
            (old.query_id, old.chunk_id)
            for old in dataset.each_judgment()
            if old.grade is None
            and old.provenance is not None
            and _same(old.provenance, self.judge)
        }
        return lambda pair: (pair.query_id, pair.chunk_id) in keys


def refuse_mixture(dataset: Dataset, kept: Container[tuple[str, str]], judge: Provenance) -> None:
    """Refuse to put grades of two judges into one set unasked.

    Args:
        dataset: Has the judgments.
        kept: Pairs of the pool whose grade stays.
        judge: Who would grade the rest.

    Raises:
        UsageError: What is kept of the pool was graded by another model, prompt or protocol.
    """
    if judge.kind == "baseline":
        return
    others = Counter(
        _named(by)
        for old in dataset.each_judgment()
        if (old.query_id, old.chunk_id) in kept
        and (by := old.provenance) is not None
        and old.source == "judge"
        and by.kind == "llm"
        and not _same(by, judge)
    )
    if others:
        told = "; ".join(f"{count} by {other}" for other, count in sorted(others.items()))
        raise UsageError(
            f"{dataset.path}: some pairs of the pool are graded by another judge ({told}); "
            f"{_named(judge)} would grade the "
            "rest: --again judges all of them anew, --mix lets both stand"
        )


def _same(one: Provenance, other: Provenance) -> bool:
    return (one.model, one.prompt_sha256, one.protocol) == (
        other.model,
        other.prompt_sha256,
        other.protocol,
    )


def _named(judge: Provenance) -> str:
    how = f" ({judge.protocol})" if judge.protocol else ""
    return f"{judge.model} with prompt {judge.prompt} {judge.prompt_sha256[:8]}{how}"
