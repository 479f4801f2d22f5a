"""What a refresh would do and take, for the terminal and for machines."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ragforge.records import DocumentsDiff
from ragforge.report.refresh.words import documents_line
from ragforge.report.shown import plural


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What a dry run counted.

    Args:
        documents: What changed in the corpus.
        items: Queries by what they need; those that are out of the set and stay so left out.
        n_pairs: Pairs of queries and new chunks that would be judged at first.
        n_new: Queries that would be generated.
        calls: Calls by purpose, that the call store does not answer. Whether new chunks that turn
            out to be relevant contradict a query is checked on top.
        tokens, cost_usd: Low, expected and high; None where they are not known, as of the offline
            baseline.
    """

    documents: DocumentsDiff
    items: Mapping[str, int]
    n_pairs: int
    n_new: int
    calls: Mapping[str, int]
    tokens: Mapping[str, float] | None
    cost_usd: Mapping[str, float] | None

    def as_json(self) -> dict[str, object]:
        """Return the plan as one object."""
        return {
            "documents": self.documents.model_dump(mode="json"),
            "items": dict(self.items),
            "pairs_to_judge": self.n_pairs,
            "to_generate": self.n_new,
            "calls": {**self.calls, "all": sum(self.calls.values())},
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan for the terminal."""
        yield documents_line(self.documents)
        told = [f"{n:,} {name.replace('_', ' ')}" for name, n in self.items.items() if n]
        yield f"queries: {', '.join(told) or 'none'}, {self.n_new:,} to generate"
        pairs = plural(self.n_pairs, "pair")
        yield (
            f"to judge: {pairs} of new chunks, more where pools grow; and checks of new relevant "
            "chunks"
        )
        by_purpose = ", ".join(f"{n:,} to {purpose}" for purpose, n in self.calls.items())
        yield f"calls: {sum(self.calls.values()):,} ({by_purpose})"
        if self.tokens is not None:
            yield f"tokens: {_range(self.tokens, ',.0f')}"
        money = "unknown" if self.cost_usd is None else f"{_range(self.cost_usd, '.4f')} USD"
        yield f"cost: {money}"


def _range(amounts: Mapping[str, float], form: str) -> str:
    low, expected, high = (format(amounts[name], form) for name in ("low", "expected", "high"))
    return f"{expected} expected ({low} to {high})"
