"""Measuring the run that a test asks for, once a session."""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import pytest

from ragforge.config import EvaluateSettings, SettingsFile
from ragforge.deferred import dataclass
from ragforge.errors import DataError, RagforgeError, UsageError
from ragforge.evaluating.evaluation_data import settle_judgments
from ragforge.evaluating.formatting import MISSING, number, one_line, plural
from ragforge.evaluating.judgments import Settled
from ragforge.files.record_files import explain
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import document_level
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.stale_runs import UsableRuns, usable_runs
from ragforge.measures import DEFAULT_MEASURES, parse_measure
from ragforge.pipeline.evaluated import EvaluatedRun, evaluate_usable
from ragforge.pytest_plugin import REPORTED
from ragforge.records import Query, Ranking
from ragforge.records.judgments import JudgmentOrGrading
from ragforge.records.model import pydantic

MARKER: Final = "ragforge"
_KNOWN: Final = ("dataset", "run", "retriever", "measures", "rel_threshold")
_RUNS: Final = ("run", "retriever")
"""Either says which run: a marker with one of them goes before both of a farther marker."""

NO_CASE: Final = "ragforge"
"""Id of the one case of a test whose queries cannot be listed."""
_FILES: Final = (
    "manifest.json",
    "queries.jsonl",
    "judgments.jsonl",
    "failures.jsonl",
    "retrieved.jsonl",
)
_State: TypeAlias = tuple[Path, tuple[tuple[str, int, int], ...]]


@dataclass(frozen=True, slots=True)
class _RunRequest:
    """Which run of which dataset, measured how."""

    path: Path
    run: str
    """"" for the only one there is, or where a retriever is given."""
    retriever: str
    settings: EvaluateSettings
    """With all measures by their canonical names."""


def _requested_run(node: pytest.Item, extra: str = "") -> _RunRequest:
    """Return the run that the markers of a test ask for; the nearest marker wins.

    Args:
        node: The test.
        extra: A measure to compute too; "" for none.

    Raises:
        UsageError: A marker cannot be taken, or no dataset is named.
    """
    given: dict[str, Any] = {}
    for marker in node.iter_markers(MARKER):
        if marker.args:
            raise UsageError(
                f"marker ragforge: {marker.args[0]!r:.80} has no name; expected keywords such as "
                "dataset='DIR', run='NAME'"
            )
        outer = marker.kwargs
        if any(given.get(name) for name in _RUNS):
            outer = {name: value for name, value in outer.items() if name not in _RUNS}
        given = {**outer, **given}
    for name in given:
        if name not in _KNOWN:
            raise UsageError(f"marker ragforge: {name!r} is unknown{_nearest(name)}")
    run, retriever = _text(given, "run"), _text(given, "retriever")
    if run and retriever:
        raise UsageError("marker ragforge: give either run or retriever, not both")
    return _RunRequest(_dataset(given, node.config), run, retriever, _settings(given, extra))


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, _KNOWN, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(_KNOWN)}"


def _dataset(given: dict[str, Any], config: pytest.Config) -> Path:
    named = given.get("dataset") or config.getini("ragforge_dataset")
    if not named:
        raise UsageError(
            "no dataset: mark the test with @pytest.mark.ragforge(dataset='DIR'), or set "
            "ragforge_dataset in the ini file"
        )
    if not isinstance(named, str | os.PathLike):
        raise UsageError(f"marker ragforge: dataset: expected a path, got {named!r:.80}")
    return config.rootpath / Path(named)


def _text(given: dict[str, Any], name: str) -> str:
    text = given.get(name) or ""
    if not isinstance(text, str):
        raise UsageError(f"marker ragforge: {name}: expected a text, got {text!r:.80}")
    return text


def _settings(given: dict[str, Any], extra: str) -> EvaluateSettings:
    measures = given.get("measures") or DEFAULT_MEASURES
    listed = [measures] if isinstance(measures, str) else [*measures]
    names = [str(parse_measure(name)) for name in (*listed, *([extra] if extra else []))]
    unique = tuple(dict.fromkeys(names))
    try:
        return EvaluateSettings(measures=unique, rel_threshold=given.get("rel_threshold", "auto"))
    except pydantic.ValidationError as error:
        raise UsageError(f"marker ragforge: {explain(error)}") from error


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A chunk of a ranking."""

    rank: int
    """From 1."""
    chunk_id: str
    score: float
    grade: int | None
    """None where there is none: never judged, or judged without success."""


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredQuery:
    """One query of the run."""

    query: Query
    values: dict[str, float]
    """By measure; empty where the query has none, which is no 0."""
    retrieved: tuple[RetrievedChunk, ...]
    """Best first."""
    failure: str = ""
    """Why there is no value."""
    latency_s: float | None = None

    @property
    def query_id(self) -> str:
        """Id of the query."""
        return self.query.query_id

    @property
    def text(self) -> str:
        """The question."""
        return self.query.query

    def __repr__(self) -> str:
        """Say in a line what a failing test is about."""
        grades = " ".join(MISSING if c.grade is None else str(c.grade) for c in self.retrieved)
        values = ", ".join(f"{name} {number(value)}" for name, value in self.values.items())
        grades_text = f"grades by rank: {grades or MISSING}"
        return f"<{one_line(self.query_id)}: {values or self.failure}; {grades_text}>"

    def value(self, measure: str) -> float:
        """Return a value by the name or an alias of its measure; the test fails without one."""
        __tracebackhide__ = True
        from ragforge.measures import parse_measure

        with as_test_failure():
            name = str(parse_measure(measure))
            if name in self.values:
                return self.values[name]
            if self.failure:
                raise DataError(f"query {self.query_id}: no {name}: {self.failure}")
            if parse_measure(name).is_of_evidence:
                raise DataError(
                    f"query {self.query_id}: no {name}: it was not computed, or the query has no "
                    "evidence with a place in the documents"
                )
            there = ", ".join(self.values)
            raise UsageError(f"measure {name!r} was not computed; there are: {there}")


@dataclass(frozen=True, slots=True)
class Measured:
    """A run with what is shown of its queries."""

    dataset: Dataset
    run: EvaluatedRun
    queries: dict[str, Query]
    rankings: dict[str, Ranking]
    settled: Settled
    settings: str = ""
    """The settings file that was found and read for a retriever, in a line; "" for none."""
    warnings: tuple[str, ...] = ()
    """Which runs were left out because they are stale, and the like."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a parametrised test gets."""

    name: str
    query_id: str = ""
    problem: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class _Retrieved:
    """What a retriever returned, beside the dataset."""

    usable: UsableRuns
    settings: str


_CACHE: Final = pytest.StashKey[dict[tuple[_RunRequest, _State], Measured | RagforgeError]]()
_RETRIEVED: Final = pytest.StashKey[dict[tuple[str, _State], _Retrieved | RagforgeError]]()


@contextmanager
def as_test_failure() -> Iterator[None]:
    """Turn what ragforge can explain into a failure of the test, without a traceback."""
    __tracebackhide__ = True
    try:
        yield
    except RagforgeError as error:
        raise pytest.fail.Exception(f"ragforge: {error}", pytrace=False) from None


def cases_of(metafunc: pytest.Metafunc) -> list[Case]:
    """Return a case for each accepted answerable query, sorted by id.

    What is wrong becomes one case that fails, so that all other tests of the suite still run.
    """
    try:
        asked = _requested_run(metafunc.definition)
        queries = open_dataset(asked.path).require_queries()
        answerable = [query.query_id for query in queries if query.answerable]
        if not answerable:
            raise DataError(f"{asked.path}: has no answerable queries")
    except RagforgeError as error:
        return [Case(NO_CASE, problem=str(error))]
    return [Case(query_id, query_id) for query_id in answerable]


def run_of(request: pytest.FixtureRequest) -> EvaluatedRun:
    """Return the run of the test."""
    return measured_of(request).run


def query_of(request: pytest.FixtureRequest) -> MeasuredQuery:
    """Return the query of the test's case."""
    case = getattr(request, "param", None)
    with as_test_failure():
        if not isinstance(case, Case):
            raise UsageError("ragforge_query must be an argument of the test, to make its cases")
        if case.problem:
            raise DataError(case.problem)
    measured = measured_of(request)
    with as_test_failure():
        if case.query_id not in measured.queries:
            raise DataError(f"query {case.query_id!r}: is not in the set any more")
    return _query(measured, case.query_id)


def measured_of(request: pytest.FixtureRequest, extra: str = "") -> Measured:
    """Return the measured run that a test asks for, and note it in the test's report.

    Args:
        request: Of the test.
        extra: A measure to compute too; "" for none.
    """
    node: pytest.Item = request.node
    with as_test_failure():
        asked = _requested_run(node, extra)
        dataset = open_dataset(asked.path)
        state = _state(dataset, asked)
        key = asked, state
        cache = request.config.stash.setdefault(_CACHE, {})
        if key not in cache:
            cache[key] = _measure(dataset, asked, state, request.config)
        measured = cache[key]
        if isinstance(measured, RagforgeError):
            raise measured
    lines = (
        _line(measured.run),
        measured.settings,
        *(f"warning: {warning}" for warning in measured.warnings),
    )
    for text in lines:
        if text and (REPORTED, text) not in node.user_properties:
            node.user_properties.append((REPORTED, text))
    return measured


def _state(dataset: Dataset, asked: _RunRequest) -> _State:
    """Return what changes when a file does that the values rest on."""
    runs = [f"runs/{name}.jsonl" for name in ([asked.run] if asked.run else dataset.run_names())]
    names = (*_FILES, "chunks.jsonl", *([] if asked.retriever else runs))
    paths = [path for path in (dataset.files / name for name in names) if path.exists()]
    stats = [(path.name, path.stat()) for path in paths]
    return dataset.files, tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def _measure(
    dataset: Dataset, asked: _RunRequest, state: _State, config: pytest.Config
) -> Measured | RagforgeError:
    try:
        if not asked.retriever:
            usable = usable_runs(dataset, [asked.run]) if asked.run else _only_run(dataset)
            return _measured(dataset, usable, asked)
        # By whatever measures: a ranking is asked for once.
        made = config.stash.setdefault(_RETRIEVED, {})
        key = asked.retriever, state
        if key not in made:
            made[key] = _retrieve(dataset, asked.retriever, config)
        retrieved = made[key]
        if isinstance(retrieved, RagforgeError):
            return retrieved
        measured = _measured(dataset, retrieved.usable, asked)
        return replace(measured, settings=retrieved.settings)
    except RagforgeError as error:
        return error


def _retrieve(
    dataset: Dataset, retriever: str, config: pytest.Config
) -> _Retrieved | RagforgeError:
    from ragforge.pytest_plugin.retrieved import retrieve_beside

    read: list[SettingsFile] = []
    folder = TemporaryDirectory(prefix="ragforge-")
    config.add_cleanup(folder.cleanup)
    place = Path(folder.name)
    try:
        beside, name = _in_thread(lambda: retrieve_beside(dataset, retriever, place, read.append))
        return _Retrieved(usable_runs(beside, [name]), "; ".join(file.line for file in read))
    except RagforgeError as error:
        # Kept, so that a retriever that is down is not asked again by each of a thousand cases.
        return error


def _in_thread(work: Callable[[], tuple[Dataset, str]]) -> tuple[Dataset, str]:
    """Do the work in a thread of its own: it runs an event loop, and the tests may have theirs."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def _measured(dataset: Dataset, usable: UsableRuns, asked: _RunRequest) -> Measured:
    [run] = evaluate_usable(usable, asked.settings)
    judgments, rankings = dataset.judgment_table(), usable.dataset.run(run.measured.name)
    level = document_level(dataset, judgments)
    return Measured(
        dataset=dataset,
        run=run,
        queries={query.query_id: query for query in dataset.queries()},
        rankings={item.query_id: item for item in level.rankings(rankings)},
        settled=settle_judgments(dataset, level, judgments, asked.settings.rel_threshold),
        warnings=usable.warnings,
    )


def _only_run(dataset: Dataset) -> UsableRuns:
    """Return the only run that is not stale, as if it had been named."""
    usable = usable_runs(dataset).require_any()
    if len(usable.names) != 1:
        there = ", ".join(usable.names) or "none; make one with `ragforge retrieve`"
        raise UsageError(f"{dataset.path}: which run? The marker names none; there are: {there}")
    return replace(usable, were_named=True)


def _query(measured: Measured, query_id: str) -> MeasuredQuery:
    ranking = measured.rankings.get(query_id)
    scored = {hit.chunk_id: hit.score for hit in ranking.ranking} if ranking else {}
    judged = measured.settled.get(query_id, {})
    retrieved = tuple(
        RetrievedChunk(rank, chunk_id, scored[chunk_id], _grade(judged, chunk_id))
        for rank, chunk_id in enumerate(measured.run.measured.ranked.get(query_id, ()), 1)
    )
    values = measured.run.scores.per_query.get(query_id, {})
    judged_ids = measured.run.scores.query_ids
    return MeasuredQuery(
        query=measured.queries[query_id],
        values={name: values[name] for name in measured.run.evaluation.measures if name in values},
        retrieved=retrieved,
        failure="" if query_id in judged_ids else _failure(measured.run, query_id),
        latency_s=ranking.latency_s if ranking else None,
    )


def _grade(judged: Mapping[str, JudgmentOrGrading], chunk_id: str) -> int | None:
    return judged[chunk_id].grade if chunk_id in judged else None


def _failure(run: EvaluatedRun, query_id: str) -> str:
    if query_id in run.scores.failed:
        return "the retriever failed on it"
    if query_id in run.scores.judgments_failed:
        return "all its judgments failed"
    return "it has no judgments"


def _line(run: EvaluatedRun) -> str:
    """Return what is said of a run at the end of the session."""
    evaluation = run.evaluation
    means = ", ".join(
        f"{name} {number(mean.mean)} [{number(mean.low)}, {number(mean.high)}]"
        for name, mean in evaluation.measures.items()
    )
    counts = plural(evaluation.n_queries, "query", "queries")
    counts += f", {evaluation.n_failed} failed" if evaluation.n_failed else ""
    counts += (
        f", {evaluation.n_holes} of {evaluation.n_retrieved} without a grade"
        if evaluation.n_holes
        else ""
    )
    name = (
        f"{one_line(evaluation.dataset)} version {evaluation.version}, {one_line(evaluation.run)}"
    )
    return f"{name} ({counts}): {means}"
