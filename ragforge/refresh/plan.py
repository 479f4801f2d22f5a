"""What a refresh would do and take: the plan of a dry run, without a call."""

from collections.abc import Iterable, Mapping

from ragforge.evaluating.versions import RefreshPlan
from ragforge.observe import silent
from ragforge.pipeline.backend import open_backend
from ragforge.pipeline.generation.source import real_queries
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import of_member
from ragforge.records import Query
from ragforge.refresh.coverage import estimate_coverage, plan_coverage
from ragforge.refresh.grades.labelled_documents import (
    counts_of_labelled,
    update_labelled,
)
from ragforge.refresh.grades.moved_chunks import with_sources
from ragforge.refresh.queries.decisions import QueryHistory
from ragforge.refresh.queries.passages import CorpusNow
from ragforge.refresh.queries.rechecking import recheckers_of
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery, with_places
from ragforge.refresh.queries.updating import plan_queries, update_queries
from ragforge.refresh.quotes.locations import LocatedQuery
from ragforge.refresh.version import Version
from ragforge.stages.recheck import PROMPT

_AMOUNTS = ("low", "expected", "high")


async def plan_version(version: Version) -> RefreshPlan:
    """Return what is to be done to how many queries and pairs, and calls, tokens and money.

    Checks are counted as if each took its first call; pools and new queries as if all queries that
    are to be checked passed.

    Args:
        version: In a dry run, with the chunks of its corpus; what is written to it is thrown away.
    """
    located_queries = version.located_queries()
    quoted = [located for located in located_queries if located.quotes]
    plain = [located.query for located in located_queries if not located.quotes]
    history = version.history(located_queries)
    items = plan_queries(located_queries, history)
    verify = await _estimate_checks(version, quoted, plain, history)
    version.updated = UpdatedQueries(
        sorted(
            [_as_if_proved(located) for located in quoted]
            + [UpdatedQuery(query, query) for query in plain],
            key=lambda item: item.query.query_id,
        )
    )
    version.updated.replace(with_sources(version.updated.items, version.diff, version.document_map))
    labelled = update_labelled(version.updated, version.parent, version.diff, version.number)
    version.updated.replace(labelled)
    items |= counts_of_labelled(labelled, items)
    version.staged.write_queries(version.updated.queries)
    await version.carry()
    pools = await version.estimate_pools()
    cells = plan_coverage(
        version.parent,
        version.updated,
        version.survey(),
        version.diff,
        version.settings,
        version.number,
    )
    real = real_queries(version.parent, version.settings.generate.like)
    generate = await estimate_coverage(
        cells, version.models, version.survey(), version.settings, real
    )
    asked: dict[str, list[Mapping[str, object]]] = {
        "verify": [verify],
        "judge": [*pools.estimates],
        "generate": [generate],
    }
    parts = [part for of in asked.values() for part in of if "tokens" in part]
    return RefreshPlan(
        documents=version.diff.documents,
        items=items,
        n_pairs=pools.n_pairs,
        n_new=len(cells.cells),
        calls={purpose: sum(map(_calls, of)) for purpose, of in asked.items()},
        tokens=_summed(parts, "tokens"),
        cost_usd=_summed(parts, "cost_usd"),
    )


async def _estimate_checks(
    version: Version,
    located_queries: list[LocatedQuery],
    others: list[Query],
    history: QueryHistory,
) -> Mapping[str, object]:
    """Return what the first calls of all checks take."""
    settings = version.settings
    if settings.generate.checker and settings.generate.checks != "off":
        settings = of_member(settings, settings.generate.checker)
    checking = Job(settings, silent, version.job.mode)
    async with open_backend(checking, PROMPT, version.parent, "recheck") as backend:
        await update_queries(
            located_queries,
            others,
            CorpusNow(version.staged.chunks_path, version.survey),
            recheckers_of(backend, version.settings, silent),
            version.settings,
            history,
        )
        return backend.estimate()


def _as_if_proved(located: LocatedQuery) -> UpdatedQuery:
    """Return a query as it is if its quotes still prove it."""
    now = with_places(located)
    return UpdatedQuery(located.query, now, is_moved=now != located.query)


def _calls(estimate: Mapping[str, object]) -> int:
    calls = estimate.get("calls", 0)
    assert isinstance(calls, int)
    return calls


def _summed(estimates: Iterable[Mapping[str, object]], name: str) -> dict[str, float] | None:
    """Return the sums of low, expected and high amounts; None where one of them is not known."""
    sums = dict.fromkeys(_AMOUNTS, 0.0)
    for estimate in estimates:
        amounts = estimate[name]
        assert isinstance(amounts, dict)
        for amount in _AMOUNTS:
            if amounts[amount] is None:
                return None
            sums[amount] += amounts[amount]
    return {amount: round(value, 6) for amount, value in sums.items()}
