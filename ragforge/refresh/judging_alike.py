"""Judging a version as the set was judged: by the same judge, in the same way.

Grades of two judges do not compare. A night that brings those of another one makes the set useless
for what it is there for, and nobody looks at a night.
"""

from collections import Counter
from collections.abc import Mapping, Set
from typing import Final, NamedTuple

from ragforge.config import JudgeSettings, PoolSettings, Settings
from ragforge.deferred import pattern
from ragforge.errors import UsageError
from ragforge.files.set.dataset import Dataset
from ragforge.observe import Event
from ragforge.pipeline.complete.completing import judging_settings
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import open_judges
from ragforge.records import Provenance
from ragforge.records.canaries import before_drift
from ragforge.records.extra_body import extra_body_in, without_extra_body
from ragforge.records.judgments import Grading

_BATCHES: Final = pattern(r"batch (\d+) x (\d+)(?:, alone)?")


class _Way(NamedTuple):
    """A judge, and how many texts it was shown at once in how many orders."""

    model: str
    batch: int
    permutations: int
    protocol: str
    """What else tells how it was asked; "" for nothing."""
    body: str
    """Which fields went into each request, see `told_extra_body`."""

    @property
    def judge(self) -> str:
        """Who judged: the model, and what it was told with each request."""
        return f"{self.model} ({self.body})" if self.body else self.model


async def judging_alike(parent: Dataset, job: Job) -> Job:
    """Return the job that judges new chunks as those of before were judged.

    Where nothing is said about how to judge, as many texts are shown at once as the judge was shown
    before.

    Args:
        parent: The published version.
        job: As given.

    Raises:
        UsageError: Another judge graded the set, and nobody said that both are to stand.
        ConfigError, DataError: As for `open_judges`.
    """
    if job.settings.generate.complete == "off":
        return job
    ways = _ways_of(parent)
    if not ways:
        return job
    async with open_judges(job.with_settings(judging_settings(job.settings)), parent) as judges:
        judge = judges.provenance()
    if judge.kind != "llm":
        return job
    now = _way(judge)
    by_judge = Counter[str]()
    for way, n in ways.items():
        by_judge[way.judge] += n
    [(first, most)] = by_judge.most_common(1)
    if by_judge[now.judge] < most and job.settings.refresh.other_judge == "refuse":
        before = next(way for way in ways if way.judge == first)
        raise _other_judge(parent, before, now, by_judge)
    own = [way for way, _ in ways.most_common() if way.judge == now.judge]
    return _in_way(own[0], job) if own else job


def _ways_of(parent: Dataset) -> Counter[_Way]:
    """Return how many grades each judge gave in each way: to what runs found, where that differs.

    Pools may have been judged by who made the set, and what is compared by another judge.
    """
    table = parent.judgment_table()
    everything = _counted(table.counts())
    if len(everything) < 2:
        return everything
    found = _found_by_runs(parent, PoolSettings().pool_k)
    top = Counter(
        one.grading for one in table.pairs(_counts) if one.chunk_id in found.get(one.query_id, ())
    )
    return _counted(top) or everything


def _counted(gradings: Mapping[Grading, int]) -> Counter[_Way]:
    ways = Counter[_Way]()
    for grading, n in gradings.items():
        if _counts(grading) and grading.provenance is not None:
            ways[_way(grading.provenance)] += n
    return ways


def _counts(grading: Grading) -> bool:
    """Whether a language model, or what stands in for one, looked at a pair and graded it."""
    by = grading.provenance
    is_judged = grading.source in ("judge", "carried") and grading.grade is not None
    return is_judged and by is not None and by.kind in ("llm", "mock")


def _way(by: Provenance) -> _Way:
    protocol = before_drift(by).protocol
    with_fields = extra_body_in(protocol)
    protocol = without_extra_body(protocol)
    batches = _BATCHES.fullmatch(protocol)
    if batches is None:
        return _Way(by.model, 1, 1, protocol, with_fields)
    return _Way(by.model, int(batches[1]), int(batches[2]), "", with_fields)


def _found_by_runs(parent: Dataset, depth: int) -> Mapping[str, Set[str]]:
    """Return the chunks at the top of any run, by query."""
    found: dict[str, set[str]] = {}
    for name in parent.run_names():
        for item in parent.each_ranking(name):
            top = found.setdefault(item.query_id, set())
            top.update(hit.chunk_id for hit in item.ranking[:depth])
    return found


def _other_judge(parent: Dataset, before: _Way, now: _Way, by_judge: Counter[str]) -> UsageError:
    there = ", ".join(f"{name} {n:,}" for name, n in by_judge.most_common())
    names = ", ".join(f'"{name}"' for name in before.model.split("+"))
    way = f"panel = [{names}] under [judge]" if "+" in before.model else f"--model {before.model}"
    if before.body != now.body:
        way += " with the --extra-body of then" if before.body else " without --extra-body"
    return UsageError(
        f"{parent.path}: its grades are by another judge ({there}), and {now.judge} would grade "
        "what is new, so that no difference of systems could be told: name the judge of before "
        f"({way}, each model as NAME or NAME@URL), or let both stand with --other-judge mix; "
        "--complete off judges nothing"
    )


def _in_way(way: _Way, job: Job) -> Job:
    """Return the job with the batches of a way, where nothing is said about how to judge."""
    settings = job.settings
    if way.protocol or not _is_plain(settings):
        return job
    if (way.batch, way.permutations) == (settings.pool.pool_batch, 1):
        return job
    if way.batch == 1:
        pool = settings.pool.model_copy(update={"pool_batch": 1})
        job.observer(Event("note", message="judged one by one, as the set was"))
        return job.with_settings(settings.model_copy(update={"pool": pool}))
    update = {"batch": way.batch, "permutations": way.permutations}
    how = settings.judge.model_copy(update=update)
    told = f"judged as the set was, batch {way.batch} x {way.permutations}"
    job.observer(Event("note", message=told))
    return job.with_settings(settings.model_copy(update={"judge": how}))


def _is_plain(settings: Settings) -> bool:
    how = settings.judge
    plain = JudgeSettings(depth=how.depth, split=how.split, panel=how.panel)
    return how == plain and settings.pool.pool_batch == PoolSettings().pool_batch
