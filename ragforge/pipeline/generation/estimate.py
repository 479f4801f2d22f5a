"""What generating will take: calls of the writer counted, those of checks and pools reckoned."""

from collections.abc import Sequence
from contextlib import suppress
from math import ceil

from ragforge.config import Settings
from ragforge.errors import CallError
from ragforge.pipeline.backend import NO_CALLS
from ragforge.pipeline.generation.briefs import Briefs
from ragforge.pipeline.generation.team import Team
from ragforge.pipeline.generation.writers import writer_of
from ragforge.pipeline.surveyed import Surveyed
from ragforge.stages.generate.checks.checking import calls_for
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.quotas import make_cells

SOURCES_A_QUERY = 1.3
"""Sources that are asked about for each accepted query, rejections included."""
POOL_CHUNKS = 22
"""Chunks in the pool of a query at the first depth: three probes of ten, much alike."""
_CHECK_TOKENS = 600
_JUDGE_TOKENS = 900
"""What a judge is told apart from the chunks, and what it replies."""
_CHARS_A_TOKEN = 4
_MOST_CANDIDATES = 3


async def estimate_generation(
    team: Team, survey: Surveyed, settings: Settings, real: Sequence[str]
) -> dict[str, object]:
    """Return calls, tokens and money; for the writer counted, for checks and pools reckoned."""
    how = settings.generate
    cells = make_cells(how, settings.model.seed)
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
    return _reckoned(counted, checks, settings, chars / max(1, n_slots))


def _reckoned(
    counted: dict[str, object], checks: int, settings: Settings, chunk_chars: float
) -> dict[str, object]:
    how, pool = settings.generate, settings.pool
    calls = counted["calls"]
    assert isinstance(calls, int)
    judging = 0 if how.complete == "off" else calls * ceil(POOL_CHUNKS / pool.pool_batch)
    judged_tokens = pool.pool_batch * chunk_chars / _CHARS_A_TOKEN + _JUDGE_TOKENS
    more = checks * _CHECK_TOKENS + judging * judged_tokens
    most = how.per_chunk * _MOST_CANDIDATES
    tokens = counted["tokens"]
    assert isinstance(tokens, dict)
    factors = {"low": 1.0, "expected": SOURCES_A_QUERY, "high": float(most)}
    total = {name: round((count + more) * factors[name]) for name, count in tokens.items()}
    costs = counted["cost_usd"]
    assert isinstance(costs, dict)
    return {
        **counted,
        "steps": {"writing": calls, "checking": checks, "judging pools": judging},
        "calls": round((calls + checks + judging) * SOURCES_A_QUERY),
        "calls_high": (calls + checks + judging) * most,
        "tokens": total,
        "cost_usd": {
            name: None if cost is None else round(cost * total[name] / max(1, tokens[name]), 6)
            for name, cost in costs.items()
        },
    }
