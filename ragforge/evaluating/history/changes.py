"""What changed between two evaluations of a run."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural, share
from ragforge.records import Evaluation, Grader

_OTHER_QUERIES: Final = {
    "moved": "",
    "equal": "; the queries that did not fail came out as before",
    "equal by grades of now": "; by the grades of now the queries that did not fail are ranked as "
    "well as before",
    "unknown": "; whether the other queries are ranked as before cannot be told",
}
"""How failures go on, by what became of the queries that did not fail."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is not as it was."""

    what: Literal[
        "scale",
        "corpus",
        "selection",
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


def changes(before: Evaluation, now: Evaluation, n_same: int | None = None) -> list[Change]:
    """Return what changed between two evaluations of a run, the weightiest first.

    What follows from another change is not told by itself: other queries have other judgments and
    rankings, another judge gives other grades, and over another corpus any retriever ranks
    otherwise.

    Args:
        before: The earlier one.
        now: The later one.
        n_same: Items that are the same in both; where None it is what the later one knows itself.
    """
    if n_same is None:
        n_same = n_same_items(before, now)
    return [
        *_scale(before, now),
        *_set(before, now, n_same),
        *_grading(before, now),
        *_rest(before, now),
    ]


def _scale(before: Evaluation, now: Evaluation) -> Iterator[Change]:
    if before.rel_threshold != now.rel_threshold:
        yield Change(
            "scale",
            f"Relevant was a grade of {before.rel_threshold} or more, now it is "
            f"{now.rel_threshold} or more: the values are of different things.",
        )
    if before.by_lists != now.by_lists:
        said = "lists of relevant chunks", "a threshold on the grades"
        old, new = said if before.by_lists else said[::-1]
        yield Change(
            "scale",
            f"What is relevant was decided by {old}, now by {new}: the values of binary measures "
            "are of different things.",
        )
    if before.only_retrieved != now.only_retrieved:
        left_out, counted = "were left out", "counted as 0"
        old, new = (left_out, counted) if before.only_retrieved else (counted, left_out)
        yield Change("scale", f"Queries that the run lacks {old} before, now they {new}.")


def _set(before: Evaluation, now: Evaluation, n_same: int) -> Iterator[Change]:
    yield from _corpus(before, now)
    if not is_of_same_part(before, now):
        yield Change(
            "selection",
            f"The queries measured changed: {part_in_words(before)} before, "
            f"now {part_in_words(now)}; only what is "
            "said of the same items is of the system.",
        )
    old, new = before.digests, now.digests
    if old.queries == new.queries and not stands_for_same(before, now):
        yield Change("items", f"The items changed: {_changed_weights(before, now)}.")
    if old.queries != new.queries:
        version = f" (version {before.version}, now {now.version})"
        yield Change(
            "items",
            f"The items changed: {_items(before, now, n_same)}"
            f"{version if before.version != now.version else ''}.",
        )


def _corpus(before: Evaluation, now: Evaluation) -> Iterator[Change]:
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
    elif _is_brought_along(before, now):
        yield Change(
            "corpus",
            "The corpus changed; the rankings are those of before, brought along to its chunks of "
            "now: no retriever was asked.",
        )
    elif _may_be_brought_along(before, now):
        yield Change(
            "corpus",
            f"The rankings are others in version {now.version} of the set than in version "
            f"{before.version}: whether its chunks or the retriever changed cannot be told.",
        )


def _is_brought_along(before: Evaluation, now: Evaluation) -> bool:
    """Whether rankings name other chunks because a refresh put a run on those that came."""
    old, new = before.digests, now.digests
    is_moved = bool(new.mapped_to) and old.ranked != new.ranked
    return is_moved and old.rankings != new.rankings and old.corpus == new.corpus


def _may_be_brought_along(before: Evaluation, now: Evaluation) -> bool:
    """Whether that may be, as evaluations of before `mapped_to` do not tell it."""
    old, new = before.digests, now.digests
    is_same_ground = bool(old.corpus) and (old.corpus, old.queries) == (new.corpus, new.queries)
    is_open = is_same_ground and not new.mapped_to and before.version != now.version
    return is_open and old.rankings != new.rankings


def is_of_same_part(a: Evaluation, b: Evaluation) -> bool:
    """Whether two evaluations were made on what the same flags choose, such as all queries."""
    return _flags_of(a) == _flags_of(b)


def stands_for_same(a: Evaluation, b: Evaluation) -> bool:
    """Whether two samples are of as many queries in the same strata; so are those of no strata."""
    return _sizes(a) == _sizes(b)


def _sizes(of: Evaluation) -> dict[str, int]:
    return {part.stratum: part.n_queries for part in of.selection.strata} if of.selection else {}


def _changed_weights(before: Evaluation, now: Evaluation) -> str:
    """Return how the weights of strata changed, in words: what the same queries stand for."""
    sizes = _sizes(before), _sizes(now)
    totals = [sum(of.values()) for of in sizes]
    weights = [
        f"{one_line(name)} {old:.3f}, now {new:.3f}"
        for name in sorted({*sizes[0], *sizes[1]})
        if (old := sizes[0].get(name, 0) / max(totals[0], 1))
        != (new := sizes[1].get(name, 0) / max(totals[1], 1))
    ]
    said = (
        f"those of the sample are the same {plural(now.n_queries, 'query', 'queries')}, but they "
        f"stood for {totals[0]:,} and now for {totals[1]:,}"
    )
    return f"{said}; weights: {'; '.join(weights)}" if weights else said


def _flags_of(of: Evaluation) -> tuple[object, ...]:
    return of.selection.asked if of.selection else ()


def part_in_words(of: Evaluation) -> str:
    """Return which part of the set an evaluation is of."""
    return of.selection.in_words if of.selection else "the whole set"


def _items(before: Evaluation, now: Evaluation, n_same: int) -> str:
    """Return how many items are the same, of those that have a value."""
    counts = f"{plural(before.n_queries, 'query', 'queries')}, now {now.n_queries:,}"
    if not n_same:
        return f"{counts}, of which none is known to be the same"
    gone, new = (max(0, _n_valued(item) - n_same) for item in (before, now))
    return f"{counts}; {n_same:,} are the same, {gone:,} gone or changed, {new:,} new or changed"


def n_same_items(before: Evaluation, now: Evaluation) -> int:
    """Return how many items the later of two evaluations knows to be the same in both."""
    if now.bridge_to != before.evaluation_id:
        return 0
    return max((item.n + item.n_left_out for item in now.bridge.values()), default=0)


def _n_valued(of: Evaluation) -> int:
    return max((mean.n for mean in of.measures.values()), default=0)


def _grading(before: Evaluation, now: Evaluation) -> Iterator[Change]:
    old, new = before.digests, now.digests
    same_judge = _judges(before) == _judges(now)
    same_prompts = _prompts(before) == _prompts(now)
    if not same_judge:
        yield Change("judge", f"The judge changed: {_names(before)}; now {_names(now)}.")
    names = sorted(_prompts(before).keys() & _prompts(now).keys())
    changed = [name for name in names if _prompts(before)[name] != _prompts(now)[name]]
    if changed:
        yield Change(
            "prompts", f"The prompts that the judge grades by changed: {_listed(changed)}."
        )
    elif same_judge and not same_prompts:
        yield Change("prompts", f"The judge graded by {_other_prompts(before, now)}.")
    is_same_way = same_judge and same_prompts and old.queries == new.queries
    if is_same_way and old.judgments != new.judgments:
        counts = f"{_n_judgments(before):,} before, {_n_judgments(now):,} now"
        holes = (
            f"without a grade in the top 10 were {share(before.n_holes, before.n_retrieved)}, "
            f"now {share(now.n_holes, now.n_retrieved)}"
        )
        moved = "".join([_by_source(before, now), _regraded(before, now)])
        more = f"{moved}; means may have moved by the grades alone" if moved else ""
        yield Change("judgments", f"The judgments changed: {counts}; {holes}{more}.")


def _other_prompts(before: Evaluation, now: Evaluation) -> str:
    """Name the prompts that came and went: which are asked may depend on what there is to grade."""
    old, new = _prompts(before).keys(), _prompts(now).keys()
    parts = [f"{_listed(new - old)}, as it did not before"] if new - old else []
    parts += [f"{_listed(old - new)} no more"] if old - new else []
    return ", and by ".join(parts)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(one_line, sorted(names)))


def _by_source(before: Evaluation, now: Evaluation) -> str:
    """Return in words whose grades became more or fewer; "" where there is but one source."""
    old, new = _sources(before), _sources(now)
    names = list(dict.fromkeys([*old, *new]))
    if len(names) < 2:
        return ""
    counts = [
        f"{name} {old[name]:,} and now {new[name]:,}" for name in names if old[name] != new[name]
    ]
    return f"; by source: {', '.join(counts)}" if counts else ""


def _sources(of: Evaluation) -> Counter[str]:
    counts = Counter[str]()
    for grader in of.graders:
        # Quotes graded, whoever wrote them.
        n_quotes = grader.n_evidence if grader.is_judge else grader.count
        counts["quotes in queries"] += n_quotes
        counts[_name(grader)] += grader.count - n_quotes
    return +counts


def _regraded(before: Evaluation, now: Evaluation) -> str:
    """Return for how many same items the grades moved; "" where that cannot be told."""
    if now.bridge_to != before.evaluation_id or not now.bridge:
        return ""
    if before.digests.ranked != now.digests.ranked or before.version != now.version:
        return ""  # The same grades of chunks under other ids would count.
    n, n_all = max((item.n_rescored, item.n) for item in now.bridge.values())
    if not n:
        return ""
    return f"; the grades of {n:,} of {plural(n_all, 'same item')} are others"


def _rest(before: Evaluation, now: Evaluation) -> Iterator[Change]:
    failed = before.n_failed != now.n_failed
    ranked = _is_ranked_otherwise(before, now)
    if ranked and not (failed and _by_bridge(before, now) != "moved"):
        commits = before.git_commit, now.git_commit
        commit = f" (commit {commits[0][:10]}, now {commits[1][:10]})"
        yield Change(
            "retriever",
            "The retriever ranks otherwise on the same corpus and queries"
            f"{commit if all(commits) and commits[0] != commits[1] else ''}: it changed, does not "
            "repeat itself, or the run lacks queries.",
        )
    if failed:
        counts = (
            f"Failures: {before.n_failed:,} of {plural(before.n_queries, 'query', 'queries')}, "
            f"now {now.n_failed:,} of {now.n_queries:,}"
        )
        yield Change(
            "failures", f"{counts}{_OTHER_QUERIES[_by_bridge(before, now)] if ranked else ''}."
        )
    if before.tool_version != now.tool_version:
        yield Change(
            "tool", f"ragforge was {before.tool_version} before, and is {now.tool_version} now."
        )


def _is_ranked_otherwise(before: Evaluation, now: Evaluation) -> bool:
    old, new = before.digests, now.digests
    is_same_ground = (old.corpus, old.queries) == (new.corpus, new.queries)
    is_other = _is_brought_along(before, now) or _may_be_brought_along(before, now)
    return is_same_ground and old.rankings != new.rankings and not is_other


def _by_bridge(
    before: Evaluation, now: Evaluation
) -> Literal["moved", "equal", "equal by grades of now", "unknown"]:
    """Say what became of the queries that did not fail."""
    if now.bridge_to != before.evaluation_id or not now.bridge:
        return "unknown"
    means = now.bridge.values()
    if any(item.diff for item in means):
        return "moved"
    if any(item.n_left_out > before.n_failed + now.n_failed for item in means):
        return "unknown"
    return "equal by grades of now" if any(item.n_rescored for item in means) else "equal"


def _judges(of: Evaluation) -> set[tuple[str | None, str]]:
    return {(grader.kind, grader.model) for grader in of.graders if grader.is_judge}


def _names(of: Evaluation) -> str:
    return ", ".join(sorted({_name(grader) for grader in of.graders if grader.is_judge})) or "none"


def _name(grader: Grader) -> str:
    kinds = {
        "human": "people",
        "baseline": "the offline baseline",
        "rule": "a rule",
        "file": "a file",
    }
    if grader.kind == "mock":
        return f"ragforge mock in the place of {one_line(grader.model)}"
    return one_line(grader.model) or kinds.get(grader.kind or "", "not recorded")


def _prompts(of: Evaluation) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for grader in of.graders:
        if grader.prompt and grader.is_judge:
            found.setdefault(grader.prompt, set()).add(grader.prompt_sha256)
    return found


def _n_judgments(of: Evaluation) -> int:
    return sum(grader.count for grader in of.graders)
