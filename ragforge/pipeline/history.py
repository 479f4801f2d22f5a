"""Keeping evaluations in the history of their dataset, and finding those to compare with."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError, did_you_mean
from ragforge.evaluating.history.batches import BatchRun, BatchSeries, batch_series
from ragforge.evaluating.history.changes import is_of_same_part, stands_for_same
from ragforge.evaluating.history.common_items import RescoringBasis
from ragforge.evaluating.history.run_history import RunHistory, run_history
from ragforge.evaluating.history.trends import (
    Bridge,
    Trend,
    bridge,
    comparable,
    has_several_judges,
    is_comparable,
    is_open,
    last_two_states,
    trend_of_means,
    trend_on_bridge,
    until_change,
)
from ragforge.evaluating.judgments import judges
from ragforge.files.set.baseline import (
    KeptValues,
    drop_old_values,
    drop_stray_values,
    kept_values,
    values_in,
    write_values,
)
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import History, appending, read_history
from ragforge.files.set.query_selection import recall
from ragforge.files.set.stale_runs import chunks_of_runs
from ragforge.measures.strata import Design
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.evaluated import (
    EvaluatedRun,
    rescoring_basis_now,
    rescoring_basis_of,
    with_content_id,
)
from ragforge.records import Baseline, BridgeMean, Evaluation, LogDraw

WINDOW: Final = 10
"""Evaluations that the longer trend reaches over."""

_NOTHING: Final = Bridge({}, None)


def keep_evaluations(
    dataset: Dataset, runs: Sequence[EvaluatedRun], observer: Observer = silent
) -> list[Evaluation]:
    """Add evaluations to the history, each with the bridge to the one of its run before.

    Args:
        dataset: The one they were made on.
        runs: Just evaluated.
        observer: Told what of the history could not be used.

    Returns:
        The evaluations as they were kept: with their bridge, and so with other ids.

    Raises:
        DataError: The history cannot be written.
    """
    with appending(dataset.home) as ledger:
        history = read_history(dataset.home)
        drop_stray_values(dataset.home)
        evaluations = [_bridged(dataset, history, run, observer) for run in runs]
        for run, evaluation in zip(runs, evaluations, strict=True):
            write_values(dataset.home, run.recorded_as(evaluation))
        if ledger.append(evaluations):
            _note(observer, f"{ledger.path}: the last line was torn; it stays, and is passed over")
        everything = History((*history.evaluations, *evaluations))
        drop_old_values(dataset.home, everything)
    return evaluations


class KeptEvaluations(NamedTuple):
    """Evaluations as they were kept."""

    runs: list[EvaluatedRun]
    warning: str
    """Why they were not; "" where they were."""


def kept_in_history(
    dataset: Dataset, runs: Sequence[EvaluatedRun], observer: Observer
) -> KeptEvaluations:
    """Add evaluations to the history of their dataset.

    The history tells what was published: those of an earlier or rejected version are not added. A
    dataset that cannot be written is no reason to hold back what was measured on it.
    """
    if not dataset.is_published:
        home = dataset.home
        reason = f"{dataset.path} is not what {home} publishes, and the history tells of that alone"
        return KeptEvaluations([*runs], f"not kept in the history: {reason}")
    try:
        kept = keep_evaluations(dataset, runs, observer)
    except DataError as error:
        return KeptEvaluations([*runs], f"not kept in the history: {error}")
    return KeptEvaluations(
        [run.recorded_as(evaluation) for run, evaluation in zip(runs, kept, strict=True)],
        "",
    )


def with_now(dataset: Dataset, history: History, runs: Iterable[EvaluatedRun]) -> History:
    """Return a history that ends with the state of now, where that was not evaluated yet.

    Nothing is written. What is added has no time, so that the same data give the same history.

    Args:
        dataset: Whose history it is.
        history: As it was read.
        runs: As they are now; those that were never evaluated are passed over.
    """
    newer = []
    for run in runs:
        last, now = history.of_run(run.evaluation.run)[-1:], run.evaluation
        if last and not _is_as_now(last[0], now):
            timeless = {"at": "", "git_commit": "", "git_branch": ""}
            bridged = _bridged(dataset, history, run, silent)
            newer.append(with_content_id(bridged.model_copy(update=timeless)))
    return History((*history.evaluations, *newer), history.notes)


def _is_as_now(last: Evaluation, now: Evaluation) -> bool:
    is_same = last.digests == now.digests and stands_for_same(last, now)
    return is_same and is_comparable(last, now)


def last_other(dataset: Dataset, evaluated: EvaluatedRun) -> Baseline | None:
    """Return the newest evaluation of a run that was made on something else, or found it.

    Args:
        dataset: Whose history is searched.
        evaluated: The run as it is now; whether it is in the history makes no difference.

    Returns:
        The newest one of the run with a digest that is not that of now; None where there is none,
        or its values are not kept any more.

    Raises:
        DataError: The history cannot be read, or those values are damaged.
    """
    now = evaluated.evaluation
    history = read_history(dataset.home)
    others = [item for item in _of_part(history, now) if item.digests != now.digests]
    return values_in(dataset.home, history, others[-1]) if others else None


def last_alike(dataset: Dataset, evaluated: EvaluatedRun) -> Baseline | None:
    """Return the newest evaluation of a run, where it was made on what is there now, and found it.

    Args:
        dataset: Whose history is searched.
        evaluated: The run as it is now.

    Raises:
        DataError: The history cannot be read, or its values are damaged.
    """
    now = evaluated.evaluation
    history = read_history(dataset.home)
    alike = [item for item in _of_part(history, now)[-1:] if item.digests == now.digests]
    return values_in(dataset.home, history, alike[0]) if alike else None


def _of_part(history: History, now: Evaluation) -> list[Evaluation]:
    """Return the evaluations of a run that were made on the part of the queries that this was."""
    return [item for item in history.of_run(now.run) if is_of_same_part(item, now)]


def run_histories(
    dataset: Dataset,
    history: History,
    run_names: Iterable[str] = (),
    measures: Sequence[str] = (),
    *,
    window: int = WINDOW,
) -> list[RunHistory]:
    """Return the past evaluations of each run of a dataset.

    Args:
        dataset: Whose history it is.
        history: As it was read.
        run_names: Which runs; all where empty.
        measures: Canonical names; for each run those of its newest evaluation where empty.
        window: Evaluations that the longer trend reaches over, at most.

    Raises:
        UsageError: There is no such run or measure.
    """
    names = _evaluated(dataset, history, run_names)
    return [_of_run(dataset, history, name, measures, window) for name in names]


def batch_histories(
    dataset: Dataset,
    history: History,
    run_names: Iterable[str] = (),
    measures: Sequence[str] = (),
    *,
    newest: int,
) -> list[BatchSeries]:
    """Return the means of runs on batches drawn from logs, by their newest evaluations.

    Args:
        dataset: Whose history it is.
        history: As it was read.
        run_names: Which runs; all where empty.
        measures: Canonical names; the first of the newest evaluation where empty.
        newest: Batches to show at most, the last by name.

    Returns:
        A series a measure; nothing where no run was evaluated.

    Raises:
        UsageError: The set has no batch, or there is no such run.
        DataError: Values of an evaluation are damaged.
    """
    batches = _batches(dataset)
    if not batches:
        raise UsageError(
            f"{dataset.path}: --by batch: no query was drawn from a log; "
            "`ragforge import --logs LOG --sample N --batch NAME` draws"
        )
    names = _evaluated(dataset, history, run_names)
    kept = {name: values_in(dataset.home, history, history.of_run(name)[-1]) for name in names}
    runs = _batch_runs(dataset, batches, [found for found in kept.values() if found is not None])
    lost = tuple(
        f"run {name}: the values of its newest evaluation are not kept; evaluate it again"
        for name, found in kept.items()
        if found is None
    )
    wanted = measures or [name for run in runs for name in run.evaluation.measures][:1]
    made = [batch_series(measure, batches, runs, newest=newest) for measure in wanted]
    return [replace(series, notes=(*series.notes, *lost)) for series in made]


def batches_now(dataset: Dataset, runs: Iterable[EvaluatedRun], measure: str) -> BatchSeries | None:
    """Return the means of runs on the batches of a set as they are now; None without a batch.

    Args:
        dataset: The one that they were measured on.
        runs: Just measured.
        measure: Canonical name.
    """
    batches = _batches(dataset)
    if not batches:
        return None
    # Without its time, so that the same data give the same report.
    timeless = [
        Baseline(evaluation=run.evaluation.model_copy(update={"at": ""}), items=tuple(run.items))
        for run in runs
    ]
    found = _batch_runs(dataset, batches, timeless)
    return batch_series(measure, batches, found, newest=len(batches))


def _batches(dataset: Dataset) -> dict[str, dict[str, LogDraw]]:
    """Return the draw of each query that was drawn from a log, by batch."""
    batches: dict[str, dict[str, LogDraw]] = {}
    for query in dataset.queries():
        if query.drawn is not None and query.answerable:
            batches.setdefault(query.drawn.batch, {})[query.query_id] = query.drawn
    return batches


def _batch_runs(
    dataset: Dataset,
    batches: Mapping[str, Mapping[str, LogDraw]],
    baselines: Iterable[Baseline],
) -> list[BatchRun]:
    by = _judges_of(dataset, batches)
    return [BatchRun(item, _is_logged(dataset, item.evaluation.run), by) for item in baselines]


def _is_logged(dataset: Dataset, run: str) -> bool:
    """Whether a run is of a log, or of elsewhere: nobody asked it for all queries of the set."""
    entry = dataset.manifest.files.get(f"runs/{run}.jsonl")
    return entry is None or entry.run is None or not entry.run.retriever


def _judges_of(
    dataset: Dataset, batches: Mapping[str, Mapping[str, LogDraw]]
) -> dict[str, frozenset[str]]:
    """Return by batch who judged its queries, people and rules aside."""
    batch_of = {query_id: batch for batch, drawn in batches.items() for query_id in drawn}
    table = dataset.judgment_table()
    judged: dict[str, set[str]] = {}
    for query_id in table.query_ids:
        if query_id in batch_of:
            judged.setdefault(batch_of[query_id], set()).add(query_id)
    return {
        batch: frozenset(
            f"{judge.model or judge.kind} (prompt {judge.prompt_sha256[:8]})"
            for judge in judges(table.of_queries(query_ids), {})
            if judge.kind not in ("", "human", "rule") and judge.count > judge.n_evidence
        )
        for batch, query_ids in judged.items()
    }


def _evaluated(dataset: Dataset, history: History, run_names: Iterable[str]) -> list[str]:
    """Return the runs that are asked for, all of a history where none is named.

    Raises:
        UsageError: One was never evaluated.
    """
    names = list(dict.fromkeys(run_names)) or list(history.runs)
    for name in names:
        if name not in history.runs:
            there = ", ".join(history.runs) or "none yet"
            raise UsageError(
                f"{dataset.path}: no evaluation of run {name!r}{did_you_mean(name, history.runs)}; "
                f"there are: {there}"
            )
    return names


def _of_run(
    dataset: Dataset, history: History, name: str, measures: Sequence[str], window: int
) -> RunHistory:
    evaluations = history.of_run(name)
    known = dict.fromkeys(m for item in reversed(evaluations) for m in item.measures)
    for measure in measures:
        if measure not in known:
            raise UsageError(
                f"{dataset.path}: run {name!r} was never measured by {measure}; "
                f"there are: {', '.join(known)}"
            )
    names = measures or tuple(evaluations[-1].measures)
    bridged = _Bridged(dataset, history)
    evaluations = _on_one_judge(bridged, evaluations, names)
    seen = evaluations[-window:]
    return run_history(
        evaluations,
        measures,
        window=list(_window_trends(bridged, seen, names)) if len(seen) > 2 else (),
        window_size=len(seen),
        bridges=_distant_bridges(bridged, evaluations, names),
        dataset=str(dataset.path),
    )


@dataclass(slots=True)
class _Bridged:
    """Bridges between evaluations of a history by their values, each made once."""

    dataset: Dataset
    history: History
    _made: dict[tuple[str, str], Bridge] = field(default_factory=dict)
    _bases: dict[tuple[int, bool], RescoringBasis] = field(default_factory=dict)

    def between(self, first: Evaluation, last: Evaluation) -> Bridge:
        """Return the differences of items that are equal in both; none where they are not known."""
        ids = first.evaluation_id, last.evaluation_id
        if ids not in self._made:
            self._made[ids] = self._make(first, last)
        return self._made[ids]

    def _make(self, first: Evaluation, last: Evaluation) -> Bridge:
        path = self.dataset.home
        with suppress(DataError):  # Damaged values: the means are still there.
            before, now = (kept_values(path, self.history, item) for item in (first, last))
            if before is not None and now is not None:
                design = _design(self.dataset, first, last)
                return bridge(before, now, self._basis(first, last), design)
        return _NOTHING

    def _basis(self, first: Evaluation, last: Evaluation) -> RescoringBasis | None:
        """Return the grades of today; None where both rest on the same, and are of one judge."""
        is_same = first.digests.judgments == last.digests.judgments
        if is_same and not has_several_judges(first, last):
            return None
        key = last.rel_threshold, last.by_lists
        if key not in self._bases:
            made = rescoring_basis_now(self.dataset, last.rel_threshold, by_lists=last.by_lists)
            self._bases[key] = made
        return self._bases[key]


def _on_one_judge(
    bridged: _Bridged, evaluations: Sequence[Evaluation], measures: Sequence[str]
) -> list[Evaluation]:
    """Return evaluations with the bridges that the grades of today allow where others did not.

    What was missing may have been judged since.
    """
    rescored = list(evaluations)
    places = {item.evaluation_id: place for place, item in enumerate(evaluations)}
    # Of measures that one in between lacks, `_distant_bridges` tells.
    nearest: dict[int, int] = {}
    for name in measures:
        if pair := last_two_states(evaluations, name):
            earlier, later = (places[item.evaluation_id] for item in pair)
            nearest[later] = max(earlier, nearest.get(later, earlier))
    for later, earlier in nearest.items():
        before, now = evaluations[earlier], evaluations[later]
        if now.mixed is None and not is_open(before, now):
            continue
        made = bridged.between(before, now)
        if made.means or made.mixed:
            update = _bridge_fields(before, made, is_mixed=True)
            rescored[later] = now.model_copy(update=update)
    return rescored


def _bridge_fields(before: Evaluation, made: Bridge, *, is_mixed: bool) -> dict[str, object]:
    """Return the fields of an evaluation that tell of a bridge to one before."""
    return {
        "bridge_to": before.evaluation_id,
        "bridge": made.means,
        "mixed": made.mixed,
        "by_one_judge": is_mixed,
    }


def _window_trends(
    bridged: _Bridged, seen: Sequence[Evaluation], measures: Sequence[str]
) -> Iterator[Trend]:
    """Yield where measures went from the first to the last of some evaluations that have them."""
    for name in measures:
        having = [item for item in seen if name in item.measures]
        if len(having) < 2:
            continue
        first, last = having[0], having[-1]
        means = bridged.between(first, last).means
        yield (
            trend_on_bridge(first, last, name, means[name])
            if name in means
            else trend_of_means(first, last, name)
        )


def _distant_bridges(
    bridged: _Bridged, evaluations: Sequence[Evaluation], measures: Sequence[str]
) -> dict[str, BridgeMean]:
    """Return the bridges of measures that were not measured in the evaluation right before."""
    bridges = {}
    for name in measures:
        pair = last_two_states(evaluations, name)
        if pair is None or evaluations.index(pair[1]) - evaluations.index(pair[0]) == 1:
            continue
        if pair[1].bridge_to == pair[0].evaluation_id:
            continue
        means = bridged.between(*pair).means
        if name in means:
            bridges[name] = means[name]
    return bridges


def _bridged(
    dataset: Dataset, history: History, run: EvaluatedRun, observer: Observer
) -> Evaluation:
    now = run.evaluation
    of_run = comparable([*history.of_run(now.run), now])[:-1]
    before = _before(dataset, of_run, history, observer)
    if before is None:
        return now
    basis = rescoring_basis_of(dataset, run)
    design = _design(dataset, before.evaluation, now)
    made = bridge(before, run, basis, design)
    if not made.means and not made.mixed:
        return now
    is_mixed = has_several_judges(before.evaluation, now)
    update = _bridge_fields(before.evaluation, made, is_mixed=is_mixed)
    return with_content_id(now.model_copy(update=update))


def _design(dataset: Dataset, before: Evaluation, now: Evaluation) -> Design | None:
    """Return the sample design of two evaluations' items; None where neither is of a sample."""
    parts = [of.selection for of in (now, before) if of.selection and of.selection.sample]
    if not parts:
        return None
    least = min(parts, key=lambda part: part.sample or 0)
    answerable = [query for query in dataset.accepted_queries() if query.answerable]
    return recall(answerable, least).design


def _before(
    dataset: Dataset, of_run: Sequence[Evaluation], history: History, observer: Observer
) -> KeptValues | None:
    if not of_run:
        return None
    try:
        return kept_values(dataset.home, history, of_run[-1])
    except DataError as error:
        _note(observer, f"{error}; not compared item by item with the evaluation before")
        return None


def _note(observer: Observer, message: str) -> None:
    observer(Event("note", "history", message=message))


def uneven_notes(dataset: Dataset, history: History, names: Iterable[str]) -> Iterator[str]:
    """Yield of which runs a trend may be one of who graded: people one ranking, a judge the other.

    Args:
        dataset: Has the grades.
        history: Of the set.
        names: Of the runs.
    """
    for name in names:
        states = until_change(comparable(history.of_run(name)))[-2:]
        kinds = {grader.kind for state in states for grader in state.graders}
        if len(states) < 2 or not {"human", "llm"} <= kinds:
            continue
        from ragforge.pipeline.comparing.uneven_labels import uneven_tops  # Few runs need it.

        with suppress(DataError):  # Damaged values: nothing is compared by items then.
            before, now = (kept_values(dataset.home, history, state) for state in states)
            if before is None or now is None:
                continue
            shares = uneven_tops(dataset, now.items, before.items)
            if shares is not None:
                yield (
                    f"run {name}: people gave {shares.b:.0%} of the grades in the top 10 before "
                    f"the last change and {shares.a:.0%} since, a judge the rest: a trend, or "
                    "none, may be of who graded"
                )


def stale_notes(dataset: Dataset, names: Collection[str]) -> Iterator[str]:
    """Yield which of some runs cannot be evaluated again as they are."""
    with suppress(DataError):  # A run that cannot be read does not spoil its past.
        for run in chunks_of_runs(dataset, names).values():
            if run.is_stale:
                yield (
                    f"run {run.run} is stale: {run.reason()}; its evaluations stand, and "
                    f"`{run.way_out(dataset)}` makes it again"
                )
