"""What generating will take: calls of the writer counted, those of checks and pools reckoned."""

from collections.abc import Sequence
from contextlib import suppress
from math import ceil

from ragforge.config import Settings
from ragforge.errors import CallError
from ragforge.llm.chat import Usage
from ragforge.pipeline.backend import NO_CALLS
from ragforge.pipeline.embedding import count_embeddings, with_embeddings
from ragforge.pipeline.generation.team import Briefs, Team, writer_of
from ragforge.pipeline.surveying import Surveyed
from ragforge.stages.generate.checks.checking import calls_for
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.quotas import Cell, make_cells

SOURCES_A_QUERY = 1.15
"""Sources that are asked about for each accepted query, rejections included."""
POOL_CHUNKS = 23
"""Chunks that are judged for a query: three probes of ten, much alike, and some growth."""
_CHECK_TOKENS = 600
_JUDGE_TOKENS = 900
"""What a judge is told apart from the chunks, and what it replies."""
_CHARS_A_TOKEN = 4
_MOST_CANDIDATES = 3
_LOW = 0.4
"""Part of what is reckoned that is spent at least: replies and pools may be small."""
_REPLIED = 0.2
"""Part of the reckoned tokens that is reply."""


async def estimate_generation(
    team: Team, survey: Surveyed, settings: Settings, real: Sequence[str], n_there: int
) -> dict[str, object]:
    """Return calls, tokens and money; for the writer counted, for checks and pools reckoned.

    Args:
        team: In a dry run.
        survey: Of the corpus.
        settings: As given.
        real: Queries whose manner is taken on.
        n_there: Queries that the set has already.
    """
    how = settings.generate
    n_open = max(0, how.n - n_there)
    cells = make_cells(how, settings.model.seed)[:n_open]
    return await estimate_cells(team, survey, settings, real, cells)


async def estimate_cells(
    team: Team, survey: Surveyed, settings: Settings, real: Sequence[str], cells: Sequence[Cell]
) -> dict[str, object]:
    """Return what `estimate_generation` does, for the queries of some cells.

    Args:
        team: In a dry run.
        survey: Of the corpus.
        settings: As given.
        real: Queries of users, whose manner is taken on.
        cells: One for each query that is wanted.
    """
    how = settings.generate
    sources = Sources(
        survey.cards(), cells, per_chunk=how.per_chunk, seed=settings.model.seed, used={}
    )
    briefs = Briefs(survey, settings.model.seed)
    writer = writer_of(team, settings, real)
    chars, n_slots = 0, 0
    for slot in sources.take([OpenCell(cell.number) for cell in cells]):
        brief = await briefs.of(slot) if slot is not None else None
        if brief is None:
            continue
        n_slots += 1
        chars += sum(len(chunk.text) for chunk in brief.chunks)
        if team.writer.tally is not None:
            with suppress(CallError):
                await writer.write(brief, [])
    counted = team.writer.estimate()
    if counted is NO_CALLS or "tokens" not in counted:
        return NO_CALLS
    n_new = counted["calls"]
    assert isinstance(n_new, int)
    # What an earlier run had written was most likely checked as well.
    checks = calls_for([cell.type for cell in cells[:n_new]]) if team.checker else 0
    judging = 0 if how.complete == "off" else ceil(n_new * POOL_CHUNKS / settings.pool.pool_batch)
    judged = settings.pool.pool_batch * chars / max(1, n_slots) / _CHARS_A_TOKEN + _JUDGE_TOKENS
    more = round(checks * _CHECK_TOKENS + judging * judged)
    estimate = _summed(counted, checks, judging, more, team)
    if team.embedder is None or not judging:
        return estimate
    chunks = (survey.chunk(card.chunk_id) for card in survey.cards())
    return with_embeddings(estimate, await count_embeddings(team.embedder, chunks, ()))


def _summed(
    counted: dict[str, object], checks: int, judging: int, more: int, team: Team
) -> dict[str, object]:
    """Return what was counted of the writer with what is reckoned of the others.

    Args:
        counted: Of the writer.
        checks: Calls that check.
        judging: Calls that judge pools.
        more: Tokens of those calls.
        team: Has the prices.
    """
    calls, tokens, costs = counted["calls"], counted["tokens"], counted["cost_usd"]
    assert isinstance(calls, int)
    assert isinstance(tokens, dict)
    assert isinstance(costs, dict)
    others = team.checker or team.writer
    price = others.tally.price if others.tally else None
    usage = Usage(round(more * (1 - _REPLIED)), round(more * _REPLIED))
    extra = price.cost_usd(usage) if price else None
    most = float(_MOST_CANDIDATES * _MOST_CANDIDATES)
    factors = {"low": (1.0, _LOW), "expected": (SOURCES_A_QUERY,) * 2, "high": (most, most)}
    cost_usd: dict[str, float | None] = {}
    for name, (own, other) in factors.items():
        known = costs[name] is not None and (extra is not None or not more)
        cost_usd[name] = round(costs[name] * own + (extra or 0.0) * other, 6) if known else None
    total = calls + checks + judging
    return {
        **counted,
        "steps": {"writing": calls, "checking": checks, "judging pools": judging},
        "calls": ceil(total * SOURCES_A_QUERY),
        "calls_high": round(total * most),
        "tokens": {
            name: round(tokens[name] * own + more * other) for name, (own, other) in factors.items()
        },
        "cost_usd": cost_usd,
    }
