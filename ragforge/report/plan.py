"""Plans of decisions as text and JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from ragforge.evaluating.decision_plan import (
    ALPHA,
    OF_THE_POOL,
    POWER,
    DecisionPlan,
    PlannedDifference,
    RulePlan,
)
from ragforge.evaluating.formatting import MISSING, Table, both_ends, number, plural, share
from ragforge.evaluating.graded_by import graded_line
from ragforge.measures.measure_names import parse_measure

GATE_PLAN_NOTE: Final = (
    f"can show: with {share(POWER)} chance; how far above its threshold (below it for max) a run "
    "has to be, or the least drop that is ruled out for a run that is as good. takes: queries that "
    "show the drop that is allowed, or half of that distance."
)
_FULLY_JUDGED: Final = 0.95
"""Of the top ranks: from so much on their spread says what that of all judgments would."""


def plan_table(plan: DecisionPlan) -> Table:
    """Return a row for each difference."""
    is_priced = any(row.calls is not None for row in plan.rows)
    headers = ("difference", "queries", "judged pairs")
    priced = ("calls", "live, USD", "batch, USD") if is_priced else ()
    has_set = plan.n_queries > 0
    last = (f"shown by {plan.n_queries:,}",) if has_set else ()
    rows = tuple(
        (
            _difference(row.difference),
            f"{row.queries:,}",
            f"{row.pairs:,}",
            *(_price(row) if is_priced else ()),
            *(("yes" if row.is_shown else "no",) if has_set else ()),
        )
        for row in plan.rows
    )
    return Table("", (*headers, *priced, *last), rows)


def plan_lines(plan: DecisionPlan) -> Iterator[str]:
    """Yield what a plan rests on, a sentence a line."""
    if plan.spread.graded_by:
        yield graded_line(plan.spread.graded_by)
    yield f"{plan.measure}: {_spread(plan)}"
    if plan.shows is not None:
        yield present_line(plan_json(plan))
    pairs = f"{plan.pairs_a_query:.1f} pairs a query, for two new retrievers"
    yield f"{pairs}{_as_needed(plan.measure)}"
    by = "the paired t test" + (" and the interval of `compare`" if plan.spread.runs else "")
    yield f"shown: with {share(POWER)} power, at p < {ALPHA:g}, by {by}"


def present_line(plan: Mapping[str, Any]) -> str:
    """Return what the queries that are there can show, and what they cannot.

    Args:
        plan: As `plan_json` returns it.
    """
    measure, shows = plan["measure"], plan["shows"]
    is_useless = shows is None or (shows >= 1 and parse_measure(measure).name != "DCG")
    least = "no difference" if is_useless else f"differences from {shows:.3f} on"
    more = ", ".join(
        f"{_difference(row['difference'])} takes {row['queries']:,}"
        for row in reversed(plan["differences"])
        if not row["shown"]
    )
    queries = plural(plan["queries"], "query", "queries")
    return f"{queries} can show {least} in {measure}{'; ' if more else ''}{more}"


def plan_json(plan: DecisionPlan) -> dict[str, object]:
    """Return a plan as JSON has it; null where something is not known."""
    spread = plan.spread
    return {
        "measure": plan.measure,
        "power": POWER,
        "alpha": ALPHA,
        "spread": {
            "sd": spread.sd,
            "of": "runs" if spread.runs else "typical",
            "runs": list(spread.runs),
            "couples": spread.n_couples,
            "queries": spread.n,
        },
        "judged_share": plan.judged_share,
        "queries": plan.n_queries,
        "shows": plan.shows,
        "pairs_a_query": plan.pairs_a_query,
        "of_the_pool_as_needed": list(OF_THE_POOL),
        "model": plan.model,
        "differences": [
            {
                "difference": row.difference,
                "queries": row.queries,
                "pairs": row.pairs,
                "calls": row.calls,
                "cost_usd": row.cost_usd,
                "cost_batch_usd": row.cost_batch_usd,
                "shown": row.is_shown,
            }
            for row in plan.rows
        ],
    }


def _as_needed(measure: str) -> str:
    """Return what judging only what decides takes; nothing where it cannot decide by a measure."""
    parsed = parse_measure(measure)
    if parsed.name not in ("DCG", "P", "nDCG"):
        return ""
    by = f" decides by {parsed._replace(name='DCG')} and" if parsed.name == "nDCG" else ""
    low, high = (share(part) for part in OF_THE_POOL)
    return (
        f"; --judge-as-needed{by} takes {low} of them where the two are far apart, {high} where "
        "they are close"
    )


def _spread(plan: DecisionPlan) -> str:
    spread = plan.spread
    if not spread.runs:
        return f"two retrievers typically differ by an sd of {spread.sd:.2f} from query to query"
    a, b = (both_ends(name, 60) for name in spread.runs)
    of = f" (the median of {spread.n_couples} couples)" if spread.n_couples > 1 else ""
    queries = plural(spread.n, "query", "queries")
    seen = f"{a} and {b}{of} differ by an sd of {spread.sd:.3f} over {queries}"
    if plan.judged_share is not None and plan.judged_share < _FULLY_JUDGED:
        seen += (
            f"; only {share(plan.judged_share)} of their top ranks is judged, so that it may be "
            "another once all is"
        )
    return seen


def _price(row: PlannedDifference) -> tuple[str, str, str]:
    calls = MISSING if row.calls is None else f"{row.calls:,}"
    return calls, _usd(row.cost_usd), _usd(row.cost_batch_usd)


def _usd(cost: float | None) -> str:
    return MISSING if cost is None else f"{cost:,.2f}"


def _difference(value: float) -> str:
    return f"{value:.2f}" if round(value, 2) == value else f"{value:g}"


def gate_plan_table(plans: Sequence[RulePlan]) -> Table:
    """Return a row for each rule of a gate."""
    headers = ("rule", "asked", "spread", "queries", "can show", "as good passes", "takes")
    rows = tuple(
        (
            f"{plan.kind} {plan.measure}",
            "auto" if plan.threshold is None else f"{plan.threshold:g}",
            f"{plan.sd:.3f}{' (typical)' if plan.is_typical else ''}",
            f"{plan.n_queries:,}",
            number(plan.shows),
            MISSING if plan.passes_unchanged is None else share(plan.passes_unchanged),
            MISSING if plan.queries is None else f"{plan.queries:,}",
        )
        for plan in plans
    )
    return Table("", headers, rows, GATE_PLAN_NOTE)


def gate_plan_line(plan: RulePlan) -> str:
    """Return what one rule can show, in a sentence."""
    queries = plural(plan.n_queries, "query", "queries")
    if plan.shows is None and plan.kind != "max-drop" and plan.n_queries > 1:
        rule = f"{plan.kind} {plan.measure}={plan.threshold:g}"
        return f"{rule}: {queries} show it of no run whose values spread like these"
    if plan.shows is None:
        return f"{plan.kind} {plan.measure}: {queries} can show nothing"
    if plan.kind != "max-drop":
        side = "below" if plan.kind == "max" else "above"
        return (
            f"{plan.kind} {plan.measure}={plan.threshold:g}: {queries} show it of a run that is "
            f"{plan.shows:.3f} {side} it; half of that takes {plan.queries or 0:,}"
        )
    if plan.threshold is None:
        return f"max-drop {plan.measure}=auto: {queries} rule out a drop of {plan.shows:.3f}"
    said = f"max-drop {plan.measure}={plan.threshold:g}: "
    chance = share(plan.passes_unchanged)
    said += f"{queries} show it of {chance} of runs that are as good; "
    if plan.shows <= plan.threshold:
        return f"{said}they rule out drops from {plan.shows:.3f} on"
    takes = "" if plan.queries is None else f"; {plan.threshold:g} takes {plan.queries:,}"
    return f"{said}they rule out drops from {plan.shows:.3f} on{takes}"


def gate_plan_json(plans: Iterable[RulePlan]) -> dict[str, object]:
    """Return the plan of a gate as JSON has it."""
    return {"power": POWER, "alpha": ALPHA, "rules": [asdict(plan) for plan in plans]}
