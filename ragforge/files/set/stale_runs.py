"""Whether runs were made on the chunks that a dataset has now: the one rule for all who read runs.

A run that ragforge made has the digest of its chunks in the manifest, and so has a file with the
same bytes, whatever its name and place. Any other is judged by how
many of the chunks that it retrieved are there: one that is not cannot be relevant, so that the run
would be held against others that searched something else.
"""

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Final, Literal

from ragforge.deferred import dataclass, pattern
from ragforge.errors import DataError
from ragforge.files.manifest import RunOrigin, digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import ids_of_corpus, level_warnings
from ragforge.files.set.integrity import chunks_digest, corpus_digest, require_own_chunks
from ragforge.files.set.sorted_records import each_line
from ragforge.records import Ranking
from ragforge.records.judgments import question_digest

MISSING_MOST: Final = 0.1
"""Share of the retrieved chunks that may be missing where nothing is recorded: a live index may be
some documents ahead."""
_BUILT_IN: Final = frozenset({"bm25", "chargram", "minilm", "static", "dense"})
"""Retrievers that give their runs their own name."""
_REWORDED_SHOWN: Final = 3
_QUERY_FIRST: Final = pattern(rb'\{"query_id":("(?:[^"\\]|\\.)*")')
_ASKED: Final = pattern(rb'"query_sha256":"([0-9a-f]+)"\}\s*$')
"""How ragforge begins and ends a line of a run."""
_HIT: Final = pattern(rb'"chunk_id":"([^"]*)"')
_ID_FIRST: Final = pattern(rb'\{"chunk_id":"([^"\\]*)"[,}]')
"""How ragforge begins a line of chunks; the text behind the id is not looked at."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Whether a run was made on the chunks that are there.

    Args:
        run: Its name.
        told_by: What tells it: the recorded digest, how many ids are there, or nothing, as the set
            has no chunks.
        is_stale: Whether it was made on others.
        n_hits: Chunks that it retrieved, over all queries; None where they were not counted.
        n_there: Of these, those that are in the set now; None likewise.
        retriever: What made it; "" where that is not known.
        is_mapped: Whether a refresh put it on the chunks of now.
        usd_per_query: What a query cost in the mean, in US dollars; None where that is not known.
    """

    run: str
    told_by: Literal["digest", "ids", "nothing"]
    is_stale: bool = False
    n_hits: int | None = None
    n_there: int | None = None
    retriever: str = ""
    is_mapped: bool = False
    usd_per_query: float | None = None

    @property
    def n_missing(self) -> int:
        """Retrieved chunks that are not in the set, as far as they were counted."""
        return (self.n_hits or 0) - (self.n_there or 0)

    def reason(self) -> str:
        """Return why it is stale, as part of a sentence."""
        there = f"{self.n_there:,} of its {self.n_hits:,} retrieved chunks are in the set"
        if self.told_by == "digest":
            return f"it was made on other chunks than those of now: {there}"
        return f"{there}, fewer than {1 - MISSING_MOST:.0%}, so that it was made on other chunks"

    def way_out(self, dataset: Dataset) -> str:
        """Return the command that makes the run again."""
        # The manifest may be somebody else's: what is told to be typed must be what is seen.
        known = self.retriever if self.retriever.isprintable() else ""
        spec = known or (self.run if self.run in _BUILT_IN else "SPEC")
        words = ["ragforge", "retrieve", "--dataset", str(dataset.path), "--retriever", spec]
        return shlex.join(words if spec == self.run else [*words, "--name", self.run])


@dataclass(frozen=True, slots=True)
class Unasked:
    """Queries of a set that a run was never asked.

    Args:
        reworded: Their question is another one now.
        later: They came into the set when the run was made already.
    """

    reworded: Set[str]
    later: Set[str]


@dataclass(frozen=True, slots=True)
class UsableRuns:
    """The runs of a dataset that may be measured.

    Args:
        dataset: Whose they are.
        names: Those made on its chunks, in the order asked for; sorted where none was named.
        were_named: Whether somebody named them; else all were meant.
        stale: Those that are left out.
        warnings: What is to be told of both, a line each.
        unasked: By run, the queries that it was never asked: that came since, or whose question is
            another one now. They have no value, as those that failed.
        usd_per_query: By run, what a query cost in the mean, in US dollars, where that is known.
    """

    dataset: Dataset
    names: tuple[str, ...]
    were_named: bool
    stale: tuple[RunStatus, ...]
    warnings: tuple[str, ...]
    unasked: Mapping[str, Set[str]] = field(default_factory=dict)
    usd_per_query: Mapping[str, float] = field(default_factory=dict)

    def rankings(self, name: str) -> Iterator[Ranking]:
        """Yield the rankings of a run that answer the questions of now.

        Raises:
            DataError: As for `Dataset.each_ranking`.
        """
        others = self.unasked.get(name, ())
        for item in self.dataset.each_ranking(name):
            if item.query_id not in others:
                yield item

    def of_now(self) -> "UsableRuns":
        """Return the runs that were made on the chunks of now, to decide by.

        Raises:
            DataError: One that was named, or each, was brought along from other chunks.
        """
        statuses = chunks_of_runs(self.dataset, self.names)
        mapped = {name: run for name, run in statuses.items() if run.is_mapped}
        left = tuple(name for name in self.names if name not in mapped)
        if mapped and (self.were_named or not left):
            reasons = (
                f"run {name!r} was made on the chunks of an earlier version, which says nothing of "
                f"the system of now; make it again with `{run.way_out(self.dataset)}`"
                for name, run in mapped.items()
            )
            raise DataError(f"{self.dataset.path}: {'; '.join(reasons)}")
        return replace(self, names=left)

    def require_any(self) -> "UsableRuns":
        """Return them, where not all of several were left out.

        Raises:
            DataError: All are stale.
        """
        if self.stale and not self.names:
            raise _stale_error(self.dataset, self.stale)
        return self


def usable_runs(dataset: Dataset, names: Sequence[str] = ()) -> UsableRuns:
    """Return the runs that may be measured: those that are named, or all but the stale ones.

    Args:
        dataset: Has the runs; its chunks are only parsed where the manifest does not tell.
        names: As somebody asked for them; all runs are meant where empty. What has no file is
            passed on.

    Raises:
        DataError: One that is named is stale, or cannot be read; or somebody changed the chunks.
    """
    require_own_chunks(dataset)
    wanted = list(dict.fromkeys(names)) or dataset.run_names()
    looked_at = chunks_of_runs(dataset, wanted)
    stale = tuple(run for run in looked_at.values() if run.is_stale)
    if names and stale:
        raise _stale_error(dataset, stale)
    left_out = {run.run for run in stale}
    usable = tuple(name for name in wanted if name not in left_out)
    unasked = unasked_queries(dataset, usable)
    warnings = (
        *_warnings(dataset, looked_at.values()),
        *_unasked_warnings(dataset, looked_at, unasked),
        *level_warnings(dataset, usable),
    )
    known = {name: looked_at[name].usd_per_query for name in usable if name in looked_at}
    every = {name: one.reworded | one.later for name, one in unasked.items()}
    costs = {name: usd for name, usd in known.items() if usd is not None}
    return UsableRuns(dataset, usable, bool(names), stale, warnings, every, costs)


def run_warnings(dataset: Dataset, names: Iterable[str]) -> tuple[str, ...]:
    """Return warnings about runs that are stale, or of which chunks are missing."""
    return tuple(_warnings(dataset, chunks_of_runs(dataset, names).values()))


def unasked_queries(dataset: Dataset, names: Iterable[str]) -> dict[str, Unasked]:
    """Return by run the queries of a set that it was never asked.

    Runs without such queries are left out, as are those that do not say what they were asked.
    """
    there = set(dataset.run_names())
    listed = [name for name in names if name in there]
    asked = {name: dict(_asked(dataset.run_path(name))) for name in listed}
    if not any(asked.values()):
        return {}
    now = {query.query_id: question_digest(query.asked) for query in dataset.accepted_queries()}
    found = {
        name: Unasked(_reworded(of_run, now), _later(dataset, name, of_run, now))
        for name, of_run in asked.items()
    }
    return {name: one for name, one in found.items() if one.reworded or one.later}


def reworded_queries(dataset: Dataset) -> Set[str]:
    """Return the queries that all runs which say what they were asked knew in other words."""
    asked = defaultdict[str, set[str]](set)
    for name in dataset.run_names():
        for query_id, digest in _asked(dataset.run_path(name)):
            asked[query_id].add(digest)
    now = {query.query_id: question_digest(query.asked) for query in dataset.accepted_queries()}
    return {query_id for query_id, of in asked.items() if now.get(query_id, min(of)) not in of}


def _later(dataset: Dataset, name: str, asked: Mapping[str, str], now: Iterable[str]) -> Set[str]:
    """Return the queries that came after ragforge made a run of all that there were.

    Other tools leave queries out for which they found nothing.
    """
    entry = dataset.manifest.files.get(f"runs/{name}.jsonl")
    if not asked or not (entry and entry.run and entry.run.retriever and entry.selection is None):
        return set()
    keys = (item.key for item in dataset.failures() if item.what == "retrieve")
    failed = {key.removeprefix(f"{name}/") for key in keys if key.startswith(f"{name}/")}
    return set(now) - asked.keys() - failed


def _reworded(asked: Mapping[str, str], now: Mapping[str, str]) -> Set[str]:
    """Return the queries for which a run was asked other questions, by digests of both."""
    return {query_id for query_id, digest in asked.items() if now.get(query_id, digest) != digest}


def _asked(path: Path) -> Iterator[tuple[str, str]]:
    """Yield query and digest of its question, of the rankings that have one; no hit is parsed."""
    for _, _, line in each_line(path):
        asked, begun = _ASKED.search(line), _QUERY_FIRST.match(line)
        if asked and begun:
            yield json.loads(begun[1]), asked[1].decode()


def _unasked_warnings(
    dataset: Dataset, runs: Mapping[str, RunStatus], unasked: Mapping[str, Unasked]
) -> Iterator[str]:
    for name, one in unasked.items():
        way_out = f"; `{runs[name].way_out(dataset)}` asks again" if name in runs else ""
        for query_ids, became in (
            (one.reworded, ("query asks something else", "queries ask something else")),
            (one.later, ("query came", "queries came")),
        ):
            if n := len(query_ids):
                counts = "counts" if n == 1 else "count"
                yield (
                    f"run {name}: {n:,} {became[n > 1]} since it was made, and {counts} as failed: "
                    f"{_some(query_ids)}{way_out}"
                )


def _some(query_ids: Set[str]) -> str:
    more = ", …" if len(query_ids) > _REWORDED_SHOWN else ""
    return ", ".join(sorted(query_ids)[:_REWORDED_SHOWN]) + more


def dataset_of_file(qrels_path: Path) -> Dataset | None:
    """Return the dataset that judgments are of; None where they lie in none."""
    dataset = Dataset(qrels_path if qrels_path.is_dir() else qrels_path.parent)
    return dataset if (dataset.files / "manifest.json").is_file() else None


def refuse_files_of_other_chunks(qrels_path: Path, run_paths: Iterable[Path]) -> None:
    """Refuse run files made on other chunks or questions, if judgments are those of a dataset.

    Raises:
        DataError: A file says that it was asked other questions under the ids of queries; or the
            manifest has a run of these bytes, made on other chunks; or more than
            `MISSING_MOST` of the chunks that one lists are not in the set; or it does not hold to
            its format. Or somebody changed the chunks.
    """
    dataset = dataset_of_file(qrels_path)
    if dataset is None or not _has_chunks(dataset):
        return
    require_own_chunks(dataset)
    paths = {str(path): path for path in run_paths if path.is_file()}
    found = _on_chunks(dataset, paths, lambda name: _hits_of_file(paths[name]))
    for run in found.values():
        if run.is_stale:
            raise DataError(
                f"{run.run}: is stale: {run.reason()}; retrieve again on those of {dataset.path}, "
                f"which {qrels_path} judges"
            )
    now = {query.query_id: question_digest(query.asked) for query in dataset.accepted_queries()}
    for path in paths.values():
        if others := _reworded(dict(_asked(path)), now):
            raise DataError(
                f"{path}: was asked other questions than {dataset.path} has now: {_some(others)}; "
                "retrieve again"
            )


def refuse_files_of_a_part(qrels_path: Path, run_paths: Iterable[Path]) -> None:
    """Refuse run files that were not asked all queries, where the judgments are those of a dataset.

    By all of its judgments, the queries that were never asked would count 0.

    Raises:
        DataError: The manifest has a run of these bytes, made for a part of the queries; or one
            says what it was asked, and queries came since.
    """
    dataset = dataset_of_file(qrels_path)
    if dataset is None:
        return
    manifest = dataset.manifest
    there = {query.query_id for query in dataset.accepted_queries()}
    for path in run_paths:
        if not path.is_file():
            continue
        digest = digest_file(path)
        selection = manifest.selection_of(digest)
        if selection is not None:
            raise DataError(
                f"{path}: was made for {selection.in_words}; measure it with --dataset "
                f"{dataset.path}, which knows its queries and their weights, or leave the queries "
                "out that it lacks: --only-retrieved"
            )
        runs = (file for file, one in manifest.files.items() if one.sha256 == digest)
        name = next(runs, "").removeprefix("runs/").removesuffix(".jsonl")
        if later := _later(dataset, name, dict(_asked(path)), there):
            raise DataError(
                f"{path}: was not asked {len(later):,} of the queries that {dataset.path} has: "
                f"{_some(later)}; retrieve again, or leave them out: --only-retrieved"
            )


def chunks_of_runs(dataset: Dataset, names: Iterable[str]) -> dict[str, RunStatus]:
    """Return whether runs were made on the chunks that are there, by name.

    Names without a file are left out.

    Raises:
        DataError: A run or the chunks cannot be read.
    """
    there = set(dataset.run_names())
    listed = [name for name in names if name in there]
    if not _has_chunks(dataset):
        return {name: RunStatus(name, "nothing") for name in listed}
    paths = {name: dataset.run_path(name) for name in listed}
    return _on_chunks(dataset, paths, lambda name: _hits(dataset, name))


def _on_chunks(
    dataset: Dataset, paths: Mapping[str, Path], hits_of: Callable[[str], Counter[str]]
) -> dict[str, RunStatus]:
    """Return whether the runs in some files were made on the chunks of a set, by name."""
    current = chunks_digest(dataset)
    origins = {name: _origin(dataset, path, current) for name, path in paths.items()}
    open_ones = [
        name
        for name, origin in origins.items()
        if origin is None or origin.chunks_sha256 != current or _is_brought(origin)
    ]
    counted = _counted(dataset, {name: hits_of(name) for name in open_ones})
    return {
        name: (
            _status(name, origin, counted[name], current)
            if name in counted
            else _current(name, origin)
        )
        for name, origin in origins.items()
    }


def _is_brought(origin: RunOrigin) -> bool:
    """Whether a run came from elsewhere, so that it may hold chunks that the set does not have."""
    return not (origin.retriever or origin.mapped_from)


def _current(name: str, origin: RunOrigin | None) -> RunStatus:
    """Return the status of a run of the chunks that are there."""
    if origin is None:
        return RunStatus(name, "digest")
    return RunStatus(
        name,
        "digest",
        retriever=origin.retriever,
        is_mapped=bool(origin.mapped_from),
        usd_per_query=origin.usd_per_query,
    )


def made_on(dataset: Dataset, name: str) -> str:
    """Return the digest of the chunks that a run was made on, as far as that is known.

    A run that a refresh brought along was not made on those of now.
    """
    entry = dataset.manifest.files.get(f"runs/{name}.jsonl")
    mapped_from = entry.run.mapped_from if entry and entry.run else ""
    return mapped_from or corpus_digest(dataset)


def _has_chunks(dataset: Dataset) -> bool:
    path = dataset.chunks_path
    return path.is_file() and path.stat().st_size > 0


def _origin(dataset: Dataset, path: Path, current: str) -> RunOrigin | None:
    """Return the recorded origin of a run file; None where no run with its bytes is recorded.

    Where several runs came to the same bytes, those of the chunks of now count first, and among
    equals the one of the file's name.
    """
    manifest = dataset.manifest
    if not any(entry.run for entry in manifest.files.values()):
        return None
    own, digest = manifest.files.get(f"runs/{path.name}"), digest_file(path)
    origins = manifest.origins_of(digest)
    if own is not None and own.sha256 == digest:
        # What somebody imported was not brought along by a refresh, though it found the same.
        others = [origin for origin in origins if not origin.mapped_from]
        origins = [own.run, *origins] if own.run else others
    of_now = (origin for origin in origins if origin.chunks_sha256 == current)
    return next(of_now, origins[0] if origins else None)


def _counted(dataset: Dataset, hits: Mapping[str, Counter[str]]) -> dict[str, tuple[int, int]]:
    """Return how many chunks runs retrieved, and how many of them are there."""
    wanted = set[str]().union(*hits.values())
    there = _there(dataset, wanted) if wanted else set()
    return {
        name: (
            counts.total(),
            sum(count for chunk_id, count in counts.items() if chunk_id in there),
        )
        for name, counts in hits.items()
    }


def _hits(dataset: Dataset, name: str) -> Counter[str]:
    """Return how often each chunk was retrieved."""
    counts = _hits_of_lines(dataset.run_path(name))
    if counts is not None:
        return counts
    return Counter(hit.chunk_id for item in dataset.each_ranking(name) for hit in item.ranking)


def _hits_of_lines(path: Path) -> Counter[str] | None:
    """Return the same of lines as ragforge writes them; None where one takes to be parsed."""
    counts = Counter[bytes]()
    for _, _, line in each_line(path):
        found = _HIT.findall(line)
        is_plain = b"\\" not in line and len(found) == line.count(b'"chunk_id"')
        if not is_plain or not _QUERY_FIRST.match(line):
            return None
        counts.update(found)
    with suppress(UnicodeDecodeError):
        return Counter({chunk_id.decode(): count for chunk_id, count in counts.items()})
    return None


def _hits_of_file(path: Path) -> Counter[str]:
    from ragforge.files.formats.runs import Scattered, each_ranking, read_run

    with suppress(Scattered):
        return Counter(hit for item in each_ranking(path) for hit in item.ranking)
    return Counter(hit for ranking in read_run(path).rankings.values() for hit in ranking)


def _there(dataset: Dataset, wanted: Set[str]) -> set[str]:
    """Return which of some ids the set knows: of chunks, of texts, of documents if labels do."""
    if dataset.manifest.level is not None:
        return ids_of_corpus(dataset).intersection(wanted)
    there = _listed(dataset.chunks_path, wanted)
    texts = dataset.files / "retrieved.jsonl"
    return there | _listed(texts, wanted) if texts.exists() else there


def _listed(path: Path, wanted: Set[str]) -> set[str]:
    """Return which of some ids a file of chunks has."""
    there = set()
    for number, _, line in each_line(path):
        begun = _ID_FIRST.match(line)
        try:
            chunk_id = begun[1].decode() if begun else json.loads(line)["chunk_id"]
            if chunk_id in wanted:
                there.add(chunk_id)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}:{number}: is no chunk: {error}") from error
    return there


def _status(
    name: str, origin: RunOrigin | None, counted: tuple[int, int], current: str
) -> RunStatus:
    n_hits, n_there = counted
    if origin is not None:
        is_stale = origin.chunks_sha256 != current
        usd = origin.usd_per_query
        return RunStatus(
            name, "digest", is_stale, n_hits, n_there, origin.retriever, usd_per_query=usd
        )
    return RunStatus(name, "ids", lacks_too_many(n_hits, n_hits - n_there), n_hits, n_there)


def lacks_too_many(n_hits: int, n_missing: int) -> bool:
    """Whether so many hits of a run are not in a set that it must have been made on other chunks.

    One chunk may be gone by itself: of a short log it is soon a tenth.
    """
    return n_missing > MISSING_MOST * n_hits and (n_missing > 1 or n_missing == n_hits)


def _stale_error(dataset: Dataset, stale: Iterable[RunStatus]) -> DataError:
    reasons = (
        f"run {run.run!r} is stale: {run.reason()}; make it again with `{run.way_out(dataset)}`"
        for run in stale
    )
    return DataError(f"{dataset.path}: {'; '.join(reasons)}")


def _warnings(dataset: Dataset, runs: Iterable[RunStatus]) -> Iterable[str]:
    for run in runs:
        if run.is_stale:
            yield (
                f"run {run.run} is stale and left out: {run.reason()}; "
                f"`{run.way_out(dataset)}` makes it again"
            )
        elif run.is_mapped:
            yield (
                f"run {run.run}: was made on the chunks of an earlier version, and is measured by "
                f"the texts that it found then; `{run.way_out(dataset)}` makes it again"
            )
        elif run.n_missing:
            yield (
                f"run {run.run}: {run.n_missing:,} of its {run.n_hits:,} retrieved chunks are not "
                "in the set, and are relevant only where labels name them"
            )
