"""The runs of a dataset: which there are, what they were made on, their holes, and taking some out.

Holes are retrieved chunks that nobody graded, which measures take for not relevant.
"""

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

from ragforge.corpus.origins.origin import looks_like_address, shown_url
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError, did_you_mean
from ragforge.evaluating.judgments import Settled, failed_by_name
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import document_level
from ragforge.files.set.stale_runs import RunStatus, chunks_of_runs, unasked_queries, usable_runs
from ragforge.files.source_files import plain_name
from ragforge.files.text import checked_name
from ragforge.records import Ranking

Chunks = Literal["now", "others", "no chunks", "unreadable"]
TOP: Final = 10
"""Ranks that are looked at."""


def named_specs(specs: Sequence[str], names: Sequence[str] = ()) -> dict[str, str]:
    """Return the retriever of each run, by the name of the run.

    Args:
        specs: In the order given.
        names: One a spec; made of the specs where there are none.

    Raises:
        UsageError: There are too few or too many names, or two runs would have one.
    """
    if names and len(names) != len(specs):
        raise UsageError(
            f"--name: {len(names)} given for {len(specs)} retrievers; expected one each, or none"
        )
    named: dict[str, str] = {}
    used = names or [_name_of(spec) for spec in specs]
    for name, spec in zip(used, specs, strict=True):
        if name in named:
            raise UsageError(
                f"retrievers {shown_spec(named[name])!r} and {shown_spec(spec)!r}: both runs would "
                f"be called {name!r}; give each a --name of its own"
            )
        named[checked_name(name)] = spec
    return named


def names_apart(paths: Sequence[Path]) -> list[str]:
    """Return a name for each file: its own, with as many folders as it takes to be the only one.

    Raises:
        UsageError: A file is given twice.
    """
    resolved = [path.resolve() for path in paths]
    twice = next((path for path in resolved if resolved.count(path) > 1), None)
    if twice is not None:
        given = paths[resolved.index(twice)]
        raise UsageError(f"{given}: given twice; a comparison needs different runs")
    depths = [0] * len(paths)
    names = [plain_name(path) for path in paths]
    while True:
        alike = [index for index, name in enumerate(names) if names.count(name) > 1]
        longer = [index for index in alike if depths[index] < len(resolved[index].parts) - 1]
        if not longer:
            break
        for index in longer:
            depths[index] += 1
            folders = resolved[index].parts[:-1][-depths[index] :]
            names[index] = "/".join([*folders, plain_name(paths[index])])
    return [str(paths[i]) if names.count(name) > 1 else name for i, name in enumerate(names)]


def shown_spec(spec: str) -> str:
    """Return a retriever's spec as it may be shown: an address without what may be secret."""
    address = spec.removeprefix("http:") if spec.startswith("http:http") else spec
    return shown_url(address) if looks_like_address(address) else spec


def _name_of(spec: str) -> str:
    """Return a name fit for a file, made of a retriever's spec; nothing secret is in it."""
    from ragforge.retrieval.retrievers import FUSED, without_reranking

    spec, model = without_reranking(spec)
    spec = shown_spec(spec).rstrip("…?#")
    if FUSED in spec and "/" not in spec:
        spec = spec.replace(FUSED, "-and-")
    if model:
        spec = f"{spec}-by-{model}"
    kept = "".join(character if character.isalnum() else "-" for character in spec)
    return kept.strip("-")[:60] or "run"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run.

    Args:
        run: Its name.
        n_queries: That have a ranking.
        n_failed: On which its retriever failed.
        n_hits: Chunks that it retrieved, over all queries.
        chunks: Whether it was made on those of now, or on others, so that it is stale; or why that
            is not known.
        is_recorded: Whether the manifest says what it was made on; else it is told by how many of
            its chunks are there.
        n_missing: Retrieved chunks that are not in the set, where they were counted.
        retriever: What made it; "" where that is not known.
        queries: The part of the set's queries that it was made for, in words; "" for all.
        problem: Why it cannot be read; "" where it can.
        n_reworded: Queries whose question is another one now.
        n_later: Queries that came since.
        is_mapped: Whether a refresh brought it along from other chunks.
        usd_per_query: What a query cost in the mean, in US dollars; None where that is not known.
    """

    run: str
    n_queries: int
    n_failed: int
    n_hits: int
    chunks: Chunks
    is_recorded: bool = False
    n_missing: int | None = None
    retriever: str = ""
    queries: str = ""
    problem: str = ""
    n_reworded: int = 0
    n_later: int = 0
    is_mapped: bool = False
    usd_per_query: float | None = None

    @property
    def in_words(self) -> str:
        """What it was made on, in a few words."""
        others = f", other questions: {self.n_reworded:,}" if self.n_reworded else ""
        later = f", not asked: {self.n_later:,}" if self.n_later else ""
        return f"{self._made_on}{others}{later}"

    @property
    def _made_on(self) -> str:
        if self.chunks != "now":
            there = f": {self.n_hits - (self.n_missing or 0):,} of {self.n_hits:,} are there"
            return f"stale{there}" if self.chunks == "others" else self.chunks
        if self.is_mapped:
            return "earlier ones, mapped"
        missing = f", {self.n_missing:,} missing" if self.n_missing else ""
        return f"those of now{missing}" if self.is_recorded else f"not recorded{missing}"


def list_runs(dataset: Dataset) -> list[ListedRun]:
    """Return the runs, sorted by name; those too of which there are only failures.

    Raises:
        DataError: The failures or the manifest cannot be read.
    """
    failed = failed_by_name(dataset.failures(), "retrieve")
    names = sorted({*dataset.run_names(), *failed})
    return [_listed(dataset, name, len(failed.get(name, ()))) for name in names]


def remove_runs(dataset: Dataset, names: Iterable[str]) -> None:
    """Remove runs with their failures; none where one of them is not there.

    Raises:
        DataError: One is not there, or cannot be removed.
    """
    wanted = list(names)
    there = {*dataset.run_names(), *failed_by_name(dataset.failures(), "retrieve")}
    for name in wanted:
        if name not in there:
            listed = ", ".join(sorted(there)) or "none yet"
            raise DataError(
                f"{dataset.path}: no run {name!r}{did_you_mean(name, there)}; there are: {listed}"
            )
    for name in wanted:
        dataset.remove_run(name)


def _listed(dataset: Dataset, name: str, n_failed: int) -> ListedRun:
    if name not in dataset.run_names():
        return ListedRun(name, 0, n_failed, 0, "now")
    try:
        lengths = [len(item.ranking) for item in dataset.each_ranking(name)]
        [chunks] = chunks_of_runs(dataset, [name]).values()
        unasked = unasked_queries(dataset, [name]).get(name)
        selection = dataset.selection_of(f"runs/{name}.jsonl")
    except DataError as error:
        return ListedRun(name, 0, n_failed, 0, "unreadable", problem=str(error))
    return ListedRun(
        name,
        len(lengths),
        n_failed,
        sum(lengths),
        _chunks(chunks),
        chunks.told_by == "digest",
        None if chunks.n_hits is None else chunks.n_missing,
        chunks.retriever,
        queries=selection.in_words if selection else "",
        n_reworded=len(unasked.reworded) if unasked else 0,
        n_later=len(unasked.later) if unasked else 0,
        is_mapped=chunks.is_mapped,
        usd_per_query=chunks.usd_per_query,
    )


def _chunks(found: RunStatus) -> Chunks:
    if found.told_by == "nothing":
        return "no chunks"
    return "others" if found.is_stale else "now"


@dataclass(frozen=True, slots=True)
class RunHoles:
    """What of the top ranks of a run has no grade."""

    run: str
    n_retrieved: int
    n_holes: int


def holes_of(dataset: Dataset, runs: Iterable[str] = ()) -> list[RunHoles]:
    """Return the holes of runs, of all but stale ones where none is named.

    There are none without any grade, nor where the labels of a set are complete.

    Only accepted queries count.

    Raises:
        DataError: There is no such run.
    """
    from ragforge.evaluating.evaluation_data import is_complete, settle_judgments

    accepted = {query.query_id for query in dataset.queries()}
    table = dataset.judgment_table()
    level = document_level(dataset, table)
    settled = settle_judgments(dataset, level, table.of_queries(accepted))
    is_graded = any(not item.is_failed for of in settled.values() for item in of.values())
    if not is_graded or is_complete(dataset, table):
        return []
    names = list(runs) or usable_runs(dataset).names
    rankings = {run: level.rankings(dataset.each_ranking(run)) for run in names}
    return [_holes(run, rankings[run], accepted, settled) for run in names]


def describe_holes(holes: RunHoles, dataset: Dataset) -> str:
    """Return a sentence about a run's holes, "" where there are none."""
    if not holes.n_holes:
        return ""
    return (
        f"run {holes.run}: {holes.n_holes:,} of {holes.n_retrieved:,} chunks in the top {TOP} are "
        f"holes; `ragforge judge --dataset {dataset.path} --run {holes.run}` judges them"
    )


def _holes(
    run: str, rankings: Iterable[Ranking], accepted: Container[str], settled: Settled
) -> RunHoles:
    n_retrieved = n_holes = 0
    for ranking in rankings:
        if ranking.query_id in accepted:
            judged = settled.get(ranking.query_id, {})
            top = [judged.get(hit.chunk_id) for hit in ranking.ranking[:TOP]]
            n_retrieved += len(top)
            n_holes += sum(item is None or item.is_failed for item in top)
    return RunHoles(run, n_retrieved, n_holes)
