"""Plans of decisions as text, JSON and rows: what it takes, before anything is bought."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal, Unpack

from ragforge.api.call import Handle, Takes, begin, part_of
from ragforge.api.keywords import ComparingKeywords, EvaluateKeywords
from ragforge.api.results import Result, plain_values
from ragforge.config.sections import is_offline
from ragforge.deferred import dataclass
from ragforge.evaluating.decision_plan import DecisionPlan, RulePlan
from ragforge.evaluating.formatting import render_table
from ragforge.pipeline.planning import PlanOptions, plan_decision
from ragforge.pipeline.planning import plan_gate as plan_gate_of
from ragforge.report.plan import (
    GATE_PLAN_NOTE,
    gate_plan_json,
    gate_plan_line,
    gate_plan_table,
    plan_json,
    plan_lines,
    plan_table,
)

_SECTIONS: Final = ("evaluate", "judge", "pool", "model", "budget", "prompts")
_GATE: Final = Takes("plan_gate", ("evaluate",), paid=False, arguments=("min", "max_drop"))
_TAKES: Final = Takes("plan", _SECTIONS, arguments=("measure", "differences"))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PlannedDecision(Result):
    """How many queries and judged pairs tell two retrievers apart, and what they cost.

    Args:
        found: The plan.
        notes: What was told on the way.
    """

    found: DecisionPlan
    notes: tuple[str, ...] = field(default=())

    @property
    def shows(self) -> float | None:
        """The least difference that the queries that are there show; None without any."""
        return self.found.shows

    def queries_for(self, difference: float) -> int:
        """Return how many queries show a difference that was asked for.

        Raises:
            KeyError: It was not.
        """
        return {row.difference: row.queries for row in self.found.rows}[difference]

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge plan --json` prints."""
        return plan_json(self.found)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each difference."""
        rows: list[dict[str, object]] = self.to_dict()["differences"]
        return [plain_values(row) for row in rows]

    def table(self) -> str:
        """Return what it rests on, and a row for each difference."""
        table = plan_table(self.found)
        return "\n".join([*plan_lines(self.found), "", render_table(table.headers, table.rows)])


async def plan(
    handle: Handle,
    *runs: str,
    measure: str = "nDCG@10",
    differences: Sequence[float] = (),
    **settings: Unpack[ComparingKeywords],
) -> PlannedDecision:
    """Say what it takes to tell two retrievers apart; nothing is asked, bought or written.

    Args:
        handle: The set.
        runs: Two judged runs that tell how much retrievers differ from query to query; the median
            of all couples counts where none is named, and what is typical where none is judged.
        measure: By which it is to be decided.
        differences: Those that would matter; 0.02, 0.05 and 0.10 where empty.
        settings: model and others, for the price; see `ragforge.api.keywords`.

    Raises:
        DataError: There is no such run, or it cannot be measured.
        UsageError: The measure, a difference or another argument cannot be taken.
    """
    options = PlanOptions(measure, tuple(differences))
    with begin(_TAKES, settings, handle.keywords) as call:
        dataset, judging = part_of(handle), call.settings.model.name
        model = "" if is_offline(judging) else judging
        price = None
        if model:
            from ragforge.pipeline.comparing.price import price_of_pairs

            price = await price_of_pairs(dataset, call.job)
        found = plan_decision(dataset, runs, call.settings.evaluate, options, model, price)
        return PlannedDecision(found, tuple(call.notes))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PlannedGate(Result):
    """What each rule of a gate can show with the queries of a set.

    Args:
        found: A plan a rule.
        notes: What was told on the way.
    """

    found: tuple[RulePlan, ...]
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge gate --plan --json` prints."""
        return gate_plan_json(self.found)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each rule."""
        return [plain_values(row) for row in self.to_dict()["rules"]]

    def table(self) -> str:
        """Return a sentence and a row for each rule."""
        table = gate_plan_table(self.found)
        lines = [*map(gate_plan_line, self.found), ""]
        return "\n".join([*lines, render_table(table.headers, table.rows), GATE_PLAN_NOTE])


def plan_gate(
    handle: Handle,
    *runs: str,
    min: Mapping[str, float] | None = None,
    max_drop: Mapping[str, float | Literal["auto"]] | None = None,
    **settings: Unpack[EvaluateKeywords],
) -> PlannedGate:
    """Say what the rules of a gate can show with the queries of a set, before there is a run.

    Args:
        handle: The set.
        runs: Judged runs whose spread counts; all where none is named, and what is typical where
            none is judged.
        min: Means that are to be reached, such as {"nDCG@10": 0.6}.
        max_drop: How much lower than a baseline's a mean may be; `auto` for the least that the
            queries can rule out.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: There is no such run, or it cannot be measured.
        UsageError: There is no rule, or one cannot be taken.
    """
    from ragforge.api.gating import given_rules, rules_of

    rules = rules_of(given_rules({"min": min, "max_drop": max_drop}))
    with begin(_GATE, settings, handle.keywords) as call:
        found = plan_gate_of(part_of(handle), runs, call.settings.evaluate, rules)
        return PlannedGate(found, tuple(call.notes))
