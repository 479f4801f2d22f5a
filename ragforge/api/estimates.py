"""What a dry run counted: calls, tokens and money, before any are spent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragforge.api.results import Result, plain_values


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Estimate(Result):
    """What a run would take.

    Args:
        counted: As `--dry-run --json` prints it.
        notes: What was told on the way.
    """

    counted: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=())

    @property
    def calls(self) -> int | None:
        """Calls that would be made; None where that cannot be counted yet."""
        calls: int | None = self.counted.get("calls")
        return calls

    @property
    def cost_usd(self) -> float | None:
        """Dollars in all; None where a price is not known; 0.0 where nothing is asked."""
        costs = self.counted.get("cost_usd", {}).values()
        return None if None in costs else float(sum(costs))

    def to_dict(self) -> dict[str, Any]:
        """Return what `--dry-run --json` prints."""
        return dict(self.counted)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all counts."""
        return [plain_values(self.counted)]

    def table(self) -> str:
        """Return the counts in words."""
        return estimate_text(self.counted)


def estimate_text(estimate: Mapping[str, Any]) -> str:
    """Return what a dry run counted, a line each."""
    return "\n".join(_lines(estimate))


def _lines(estimate: Mapping[str, Any]) -> Iterator[str]:
    if "pairs" in estimate:
        counts = estimate["pairs"].items()
        yield "pairs: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts)
    if "system_calls" in estimate:
        yield f"queries to ask the system: {estimate['system_calls']}"
    if "calls" not in estimate:
        yield "calls of the judge cannot be counted before the answers are there"
        return
    yield f"calls: {estimate['calls']} (and {estimate['cached']} in the call store)"
    if "embeddings" in estimate:
        found = estimate["embeddings"]
        yield f"of these embeddings: {found['calls']} (and {found['cached']} in the call store)"
    if "tokens" not in estimate:
        yield "the offline baseline asks nothing and costs nothing"
        return
    yield f"calls at worst, if replies have to be asked for again: {estimate['calls_high']}"
    if "calls_if_all_pools_grow" in estimate:
        yield f"calls if all pools grow to the end: {estimate['calls_if_all_pools_grow']}"
    seconds = estimate["seconds"]
    yield "time: unknown before the first replies" if seconds is None else f"time: {seconds:.0f} s"
    for name, tokens in estimate["tokens"].items():
        cost = estimate["cost_usd"][name]
        money = "price unknown" if cost is None else f"{cost:.4f} USD"
        yield f"{name}: {tokens} tokens, {money}"
