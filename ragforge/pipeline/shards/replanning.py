"""Planning again: what may be spent, how fast and where is taken into a plan, the work stays."""

from contextlib import closing
from operator import mul
from pathlib import Path

from ragforge.config import BudgetSettings
from ragforge.files.atomic import make_folder
from ragforge.files.manifest import Spent
from ragforge.llm.store.calls import CallStore
from ragforge.pipeline.job import OutputFile
from ragforge.pipeline.shards.budget import LIMITS, book
from ragforge.pipeline.shards.plan import ANSWERING_FIELDS, ShardFolder, ShardPlan, identity


def planned_again(folder: ShardFolder, old: ShardPlan, new: ShardPlan) -> ShardPlan:
    """Return a plan of the same work with what may change taken from a new one, and write it.

    A limit holds until another one is named: who leaves it out must not lift it unawares. One that
    the plan did not have counts what the shards have bought before.

    Args:
        folder: Of the plan.
        old: The plan.
        new: Of the same work, as `require_same_work` checks.
    """
    budget = _with_limits_kept(old.settings.budget, new.settings.budget)
    models = tuple(
        next((now for now in new.models if identity(now) == identity(model)), model)
        for model in old.models
    )
    plan = new.model_copy(
        update={
            "settings": new.settings.model_copy(update={"budget": budget}),
            "models": models,
            "batched": old.batched,
            "shards": old.shards,
        }
    )
    _count_what_was_bought(folder, old, plan)
    if plan != old:
        folder.write_plan(plan)
    return plan


def describe_changes(old: ShardPlan, new: ShardPlan) -> list[str]:
    """Return the flags of what differs between two plans of one work, limits with their value."""
    was, now = old.settings, new.settings
    changes = [
        f"{_flag(name)} {getattr(now.budget, name):g}"
        for name in BudgetSettings.model_fields
        if getattr(was.budget, name) != getattr(now.budget, name)
    ]
    if old.workers != new.workers:
        changes.append(f"--workers {new.workers}")
    changes += [
        _flag(name)
        for name in ANSWERING_FIELDS
        if getattr(was.model, name) != getattr(now.model, name)
        or [getattr(model, name) for model in old.models]
        != [getattr(model, name) for model in new.models]
    ]
    return changes


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _with_limits_kept(old: BudgetSettings, new: BudgetSettings) -> BudgetSettings:
    kept = {name: value for name, value in old if getattr(new, name) is None}
    return new.model_copy(update=kept)


def _count_what_was_bought(folder: ShardFolder, old: ShardPlan, plan: ShardPlan) -> None:
    """Count against limits that are new what was bought while there were none."""
    fresh = [
        name
        for name in LIMITS
        if getattr(old.settings.budget, name) is None
        and getattr(plan.settings.budget, name) is not None
    ]
    if not fresh:
        return
    bought = dict.fromkeys(fresh, 0.0)
    for path in stores_of(folder, plan):
        with closing(CallStore(path)) as store:
            amounts = _amounts(store.spent(), plan.settings.budget)
        for name in fresh:
            bought[name] += amounts[name]
    make_folder(folder.path)
    book(folder.budget_path, bought)


def _amounts(spent: Spent, budget: BudgetSettings) -> dict[str, float]:
    """Return what was spent by the limits' names; at the named price where none was known."""
    cost_usd = spent.cost_usd
    if cost_usd is None:
        per_mtok = (budget.input_usd_per_mtok or 0.0, budget.output_usd_per_mtok or 0.0)
        tokens = (spent.prompt_tokens, spent.completion_tokens)
        cost_usd = sum(map(mul, tokens, per_mtok)) / 1e6
    n_tokens = spent.prompt_tokens + spent.completion_tokens
    return dict(zip(LIMITS, (spent.calls, n_tokens, cost_usd), strict=True))


def stores_of(folder: ShardFolder, plan: ShardPlan) -> list[Path]:
    """Return the call stores of the shards that were begun."""
    places = (OutputFile.beside(folder.judged_path(shard.index)) for shard in plan.shards)
    return [place.store_path for place in places if place.store_path.exists()]
