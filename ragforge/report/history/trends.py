"""What a history says: what changed since the last evaluation, and where a measure is going."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Literal, TypeAlias

from ragforge.files.history import state_of
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES, least_share
from ragforge.records import BridgeMean, Evaluation, Grader, MeasuredMean
from ragforge.report.history.bridge import is_bounded, is_comparable
from ragforge.report.shown import one_line, plural, share

Verdict: TypeAlias = Literal["IMPROVING", "DEGRADING", "STABLE", "UNKNOWN"]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is not as it was."""

    what: Literal[
        "scale",
        "corpus",
        "items",
        "judge",
        "prompts",
        "judgments",
        "retriever",
        "failures",
        "tool",
    ]
    text: str
    """In a sentence."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Where a measure of a run went since an earlier evaluation."""

    run: str
    measure: str
    verdict: Verdict
    """By the interval: it leaves 0 out, or it does not; UNKNOWN where there is none."""
    since: str
    """The earlier evaluation; "" where there is none."""
    on: Literal["same items", "all items"]
    """What the difference is over; that of all items mixes a changed system and a changed set."""
    n: int
    diff: float | None
    low: float | None
    high: float | None
    """Ends of the 95 % interval, further apart by what failures could change."""


def until_change(evaluations: Sequence[Evaluation]) -> Sequence[Evaluation]:
    """Return evaluations of one run without those at the end that only repeat the one before.

    What changed last, and where that led, is told by the last two of what is left.
    """
    n = len(evaluations)
    while n > 1 and state_of(evaluations[n - 1]) == state_of(evaluations[n - 2]):
        n -= 1
    return evaluations[:n]


def changes(before: Evaluation, now: Evaluation) -> list[Change]:
    """Return what changed between two evaluations of a run, the weightiest first.

    What follows from another change is not told by itself: other queries have other judgments and
    rankings, another judge gives other grades, and over another corpus any retriever ranks
    otherwise.
    """
    return [*_scale(before, now), *_set(before, now), *_grading(before, now), *_rest(before, now)]


def trend(evaluations: Sequence[Evaluation], measure: str) -> Trend:
    """Return where a measure went between the last two evaluations of one run.

    Args:
        evaluations: Of one run, oldest first; at least one.
        measure: Canonical name.
    """
    now = evaluations[-1]
    on_bridge = next((e for e in evaluations if e.evaluation_id == now.bridge_to), None)
    if on_bridge is not None and measure in now.bridge:
        return trend_on_bridge(on_bridge, now, measure, now.bridge[measure])
    if len(evaluations) < 2:
        return Trend(now.run, measure, "UNKNOWN", "", "all items", 0, None, None, None)
    return trend_of_means(evaluations[-2], now, measure)


def trend_on_bridge(before: Evaluation, now: Evaluation, measure: str, on: BridgeMean) -> Trend:
    """Return where a measure went on the items that are equal in two evaluations."""
    ends = None if on.low is None or on.high is None else Ends(on.low, on.high)
    ends = _with_failures(ends, before.measures[measure], now.measures[measure])
    return _trend(before, now, measure, ends, on)


def trend_of_means(before: Evaluation, now: Evaluation, measure: str) -> Trend:
    """Return where a measure went over all items of two evaluations, were they drawn anew.

    Source: as `ragforge.measures.rates.difference_of_means`, the two intervals by square and add.
    """
    old, new = before.measures.get(measure), now.measures.get(measure)
    if old is None or new is None or not is_comparable(before, now):
        return _trend(before, now, measure, None, None)
    of_old, of_new = _interval(old, measure), _interval(new, measure)
    if of_old is None or of_new is None or old.mean is None or new.mean is None:
        return _trend(before, now, measure, None, None)
    diff = new.mean - old.mean
    ends = Ends(
        diff - hypot(new.mean - of_new.low, of_old.high - old.mean),
        diff + hypot(of_new.high - new.mean, old.mean - of_old.low),
    )
    return _trend(before, now, measure, _with_failures(ends, old, new), None)


def _trend(
    before: Evaluation, now: Evaluation, measure: str, ends: Ends | None, on: BridgeMean | None
) -> Trend:
    new = now.measures.get(measure)
    verdict: Verdict = "UNKNOWN"
    if ends is not None:
        verdict = "IMPROVING" if ends.low > 0 else "DEGRADING" if ends.high < 0 else "STABLE"
    return Trend(
        run=now.run,
        measure=measure,
        verdict=verdict,
        since=before.evaluation_id,
        on="all items" if on is None else "same items",
        n=on.n if on is not None else new.n if new is not None else 0,
        diff=on.diff if on is not None else difference_between(before.measures.get(measure), new),
        low=ends.low if ends is not None else None,
        high=ends.high if ends is not None else None,
    )


def difference_between(old: MeasuredMean | None, new: MeasuredMean | None) -> float | None:
    """Return how much higher the second mean is; None where there are not two means."""
    if old is None or new is None or old.mean is None or new.mean is None:
        return None
    return new.mean - old.mean


def _interval(of: MeasuredMean, measure: str) -> Ends | None:
    """Return the interval of a mean; None where so few values allow none.

    Where all values are the same, their bootstrap shows no spread however few they are.
    """
    if of.mean is None or of.low is None or of.high is None or of.n < LEAST_VALUES:
        return None
    if of.low < of.high:
        return Ends(of.low, of.high)
    known = of.mean * least_share(of.n)
    return Ends(known, known + 1 - least_share(of.n)) if is_bounded(measure) else None


def _with_failures(ends: Ends | None, old: MeasuredMean, new: MeasuredMean) -> Ends | None:
    """Move the ends apart by what the means would be with all failures at worst, and at best."""
    if ends is None:
        return None
    return Ends(
        ends.low - _distance(new.mean, new.least) - _distance(old.mean, old.most),
        ends.high + _distance(new.mean, new.most) + _distance(old.mean, old.least),
    )


def _distance(mean: float | None, bound: float | None) -> float:
    return 0.0 if mean is None or bound is None else abs(mean - bound)


def _scale(before: Evaluation, now: Evaluation) -> Iterator[Change]:
    if before.rel_threshold != now.rel_threshold:
        yield Change(
            "scale",
            f"Relevant was a grade of {before.rel_threshold} or more, now it is "
            f"{now.rel_threshold} or more: the values are of different things.",
        )
    if before.only_retrieved != now.only_retrieved:
        left_out, counted = "were left out", "counted as 0"
        old, new = (left_out, counted) if before.only_retrieved else (counted, left_out)
        yield Change("scale", f"Queries that the run lacks {old} before, now they {new}.")


def _set(before: Evaluation, now: Evaluation) -> Iterator[Change]:
    old, new = before.digests, now.digests
    if not (old.corpus and new.corpus):
        if old.corpus or new.corpus:
            text = "has no chunks: whether the corpus changed cannot be told."
            yield Change("corpus", f"The set {'before' if new.corpus else 'now'} {text}")
    elif old.corpus != new.corpus:
        yield Change(
            "corpus",
            "The corpus changed; the rankings are the same."
            if old.rankings == new.rankings
            else "The corpus changed, and the rankings with it; whether the retriever changed as "
            "well cannot be told.",
        )
    if old.queries != new.queries:
        version = f" (version {before.version}, now {now.version})"
        counts = f"{plural(before.n_queries, 'query', 'queries')}, now {now.n_queries:,}"
        yield Change(
            "items",
            f"The items changed: {counts}{version if before.version != now.version else ''}"
            f"{_shared_count(before, now)}.",
        )


def _shared_count(before: Evaluation, now: Evaluation) -> str:
    if now.bridge_to != before.evaluation_id or not now.bridge:
        return ""
    return f"; {max(item.n for item in now.bridge.values()):,} are the same in both"


def _grading(before: Evaluation, now: Evaluation) -> Iterator[Change]:
    old, new = before.digests, now.digests
    same_judge = _judges(before) == _judges(now)
    same_prompts = old.prompts == new.prompts
    if not same_judge:
        yield Change("judge", f"The judge changed: {_names(before)}; now {_names(now)}.")
    names = sorted(_prompts(before).keys() & _prompts(now).keys())
    changed = [name for name in names if _prompts(before)[name] != _prompts(now)[name]]
    if changed or (same_judge and not same_prompts):
        named = f": {', '.join(one_line(name) for name in changed)}" if changed else ""
        yield Change("prompts", f"The prompts that the judge grades by changed{named}.")
    is_same_way = same_judge and same_prompts and old.queries == new.queries
    if is_same_way and old.judgments != new.judgments:
        counts = f"{_n_judgments(before):,} before, {_n_judgments(now):,} now"
        holes = (
            f"without a grade in the top 10 were {share(before.n_holes, before.n_retrieved)}, "
            f"now {share(now.n_holes, now.n_retrieved)}"
        )
        yield Change("judgments", f"The judgments changed: {counts}; {holes}.")


def _rest(before: Evaluation, now: Evaluation) -> Iterator[Change]:
    old, new = before.digests, now.digests
    is_same_ground = (old.corpus, old.queries) == (new.corpus, new.queries)
    if is_same_ground and old.rankings != new.rankings:
        commits = before.git_commit, now.git_commit
        commit = f" (commit {commits[0][:10]}, now {commits[1][:10]})"
        yield Change(
            "retriever",
            "The retriever ranks otherwise on the same corpus and queries"
            f"{commit if all(commits) and commits[0] != commits[1] else ''}: it changed, or does "
            "not repeat itself.",
        )
    if before.n_failed != now.n_failed:
        yield Change(
            "failures",
            f"Failures: {before.n_failed:,} of {plural(before.n_queries, 'query', 'queries')}, "
            f"now {now.n_failed:,} of {now.n_queries:,}.",
        )
    if before.tool_version != now.tool_version:
        yield Change(
            "tool", f"ragforge was {before.tool_version} before, and is {now.tool_version} now."
        )


def _judges(of: Evaluation) -> set[tuple[str | None, str]]:
    return {(grader.kind, grader.model) for grader in of.graders}


def _names(of: Evaluation) -> str:
    return ", ".join(sorted({_name(grader) for grader in of.graders})) or "none"


def _name(grader: Grader) -> str:
    kinds = {"human": "people", "baseline": "the offline baseline", "rule": "a rule"}
    return one_line(grader.model) or kinds.get(grader.kind or "", "not recorded")


def _prompts(of: Evaluation) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for grader in of.graders:
        if grader.prompt:
            found.setdefault(grader.prompt, set()).add(grader.prompt_sha256)
    return found


def _n_judgments(of: Evaluation) -> int:
    return sum(grader.count for grader in of.graders)
