"""Rates of faithfulness and citation over the groundings of many answers."""

from collections import Counter
from collections.abc import Iterable

from ragforge.deferred import dataclass
from ragforge.measures.rates import Rate, mean_rate
from ragforge.records import Grounding


@dataclass(frozen=True, slots=True)
class GroundingSummary:
    """Rates over answers; bounds say what failures could have made of them."""

    n_answers: int
    n_checked: int
    """Answers that have claims, all of them checked."""
    n_failed: int
    rules: dict[str, int]
    """How many answers had nothing to check, by the rule that says why."""
    n_claims: int
    n_supported: int
    grounded: Rate
    """Share of the checked answers that are supported throughout."""
    faithfulness: Rate
    n_citing: int
    """Answers with citations that were checked."""
    citations: dict[str, int]
    """How many citations, by status."""
    citation_precision: Rate
    """Over the answers that cite."""
    citation_recall: Rate


def summarise(groundings: Iterable[Grounding]) -> GroundingSummary:
    """Return the summary of some groundings."""
    counts, rules, citations = Counter[str](), Counter[str](), Counter[str]()
    faithfulness: list[float] = []
    precision: list[float] = []
    recall: list[float] = []
    for grounding in groundings:
        counts["answers"] += 1
        counts["failed"] += grounding.failure is not None
        counts["claims"] += len(grounding.claims)
        counts["supported"] += sum(claim.is_supported for claim in grounding.claims)
        counts["citing"] += bool(grounding.citations)
        if grounding.rule:
            rules[grounding.rule] += 1
        citations.update(citation.status for citation in grounding.citations)
        _add(faithfulness, grounding.faithfulness)
        _add(precision, grounding.citation_precision)
        _add(recall, grounding.citation_recall)
    n_failed = counts["failed"]
    return GroundingSummary(
        n_answers=counts["answers"],
        n_checked=len(faithfulness),
        n_failed=n_failed,
        rules=dict(sorted(rules.items())),
        n_claims=counts["claims"],
        n_supported=counts["supported"],
        grounded=mean_rate([float(value == 1) for value in faithfulness], n_failed),
        faithfulness=mean_rate(faithfulness, n_failed),
        n_citing=counts["citing"],
        citations=dict(sorted(citations.items())),
        citation_precision=_where_any(precision, n_failed),
        citation_recall=_where_any(recall, n_failed),
    )


def _add(values: list[float], value: float | None) -> None:
    if value is not None:
        values.append(value)


def _where_any(values: list[float], n_failed: int) -> Rate:
    """Return a rate of citations; where no answer cites, those that failed are taken not to."""
    return mean_rate(values, n_failed if values else 0)
