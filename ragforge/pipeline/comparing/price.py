"""What judging the runs to be compared will take, those too that are not made yet."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Final, NamedTuple

from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import open_judges, sum_of_estimates
from ragforge.pipeline.judge.pooling import queries_of
from ragforge.stages.judge.pairs import Pair

_TEXT_CHARS: Final = 2000
"""Of a retrieved text, where the set has no chunk to go by: as long as chunks are at most."""
_CHUNKS_LOOKED_AT: Final = 1000
_QUERIES_LOOKED_AT: Final = 50
"""For the price of a pair."""


async def estimate_judging(
    dataset: Dataset, names: Sequence[str], new: Collection[str], job: Job
) -> dict[str, object]:
    """Return what judging the pool of some runs takes; nothing is asked, retrieved or written.

    For a run that is not made yet, each query counts as many new pairs as the pool is deep, with
    texts of the set, so that it is the most that can come: other runs share pairs with it.

    Args:
        dataset: Has queries.
        names: Runs that are there; all are meant where neither these nor new ones are named.
        new: Names of the runs to be made.
        job: Depth, prompt, models and budget; of a dry run.
    """
    from ragforge.pipeline.judge.judging import in_batches_of_pools, judge_dataset

    job = replace(job, mode=replace(job.mode, dry_run=True))
    estimates = []
    kept = [name for name in names if name not in new]
    if kept or not new:
        there = await judge_dataset(dataset, kept, job)
        estimates.append(there.estimate or {})
    if new:
        estimates.append(await _of_new(dataset, len(new), in_batches_of_pools(dataset, job)))
    total = sum_of_estimates([{**each, "pairs": _pairs_of(each)} for each in estimates])
    return {"runs_to_make": sorted(new), **total}


def _pairs_of(estimate: Mapping[str, object]) -> dict[str, int]:
    pairs = estimate.get("pairs")
    assert isinstance(pairs, Mapping)
    return {name: pairs.get(name, 0) for name in ("in_pool", "graded", "new")}


class PairPrice(NamedTuple):
    """What grading one pair takes, in the mean."""

    calls: float
    usd: float | None
    """None where the price of the model is not known."""


async def price_of_pairs(dataset: Dataset, job: Job) -> PairPrice | None:
    """Return what grading a text of a set takes; nothing is asked or written.

    Args:
        dataset: Has queries, and chunks or texts as long as chunks may be.
        job: Judging, with its model and prompt.

    Returns:
        None where the set has no queries.
    """
    from ragforge.pipeline.judge.judging import in_batches_of_pools

    job = in_batches_of_pools(dataset, replace(job, mode=replace(job.mode, dry_run=True)))
    found = await _of_new(dataset, 1, job, _QUERIES_LOOKED_AT)
    n, calls, costs = _pairs_of(found)["new"], found.get("calls"), found.get("cost_usd")
    if not n or not isinstance(calls, int):
        return None
    usd = costs.get("expected") if isinstance(costs, Mapping) else None
    return PairPrice(calls / n, usd / n if isinstance(usd, int | float) else None)


async def _of_new(
    dataset: Dataset, n_runs: int, job: Job, most: int | None = None
) -> dict[str, object]:
    from ragforge.pipeline.judge.judge_run import JudgeRun, JudgingResult, judged_spool

    queries = dict(islice(sorted(queries_of(dataset, "all").items()), most))
    n_a_query = n_runs * job.settings.judge.depth
    n_pairs = len(queries) * n_a_query
    texts = [chunk.text for chunk in islice(dataset.chunks(), _CHUNKS_LOOKED_AT)]

    def pairs() -> Iterator[Pair]:
        of_set = cycle(texts or ["word " * (_TEXT_CHARS // 5)])
        for query_id, query in sorted(queries.items()):
            for place, text in enumerate(islice(of_set, n_a_query)):
                # Texts that are the same are judged once; these stand for different ones.
                yield Pair(query_id, query, f"new_{place:05}", f"{text} {place}")

    async with open_judges(job, dataset, "judge") as judges:
        result = JudgingResult(judges.name, n_pairs)
        with judged_spool(dataset.files) as judged:
            await JudgeRun(judges, judged, result).judge(pairs, n_pairs)
        counts = {"in_pool": n_pairs, "graded": 0, "new": n_pairs}
        return {"pairs": counts, **judges.estimate(result.n_texts)}
