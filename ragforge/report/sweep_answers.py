"""The answers of a sweep as blocks of its document, and as JSON."""

from collections.abc import Iterator

from ragforge.evaluating.configurations import Top
from ragforge.evaluating.formatting import MISSING, Table, plural, with_ends
from ragforge.evaluating.sweep_answers import (
    AnswersForecast,
    ConfigurationAnswers,
    SweepAnswers,
)
from ragforge.measures.rates import Rate
from ragforge.report.document import Block, Notice
from ragforge.report.sweep_cells import (
    CONFIGURATION_HEADERS,
    FAILED_NOTE,
    against_best,
    all_equal,
    comparison_json,
    configuration_cells,
    configuration_json,
    corrected_for,
    first_equal,
    listed_names,
)


def answers_verdict(answers: SweepAnswers) -> str:
    """Return which configuration gives the best answers, in a sentence."""
    best = f"{answers.best.configuration.name} ({_shown(answers.best.score)})"
    if len(answers.results) == 1:
        more = "; --answer-top 2 asks the next too" if answers.n_configurations > 1 else ""
        return f"Answers of the only configuration asked: {best}{more}."
    if not answers.names_best:
        return (
            f"Highest score of answers: {best}. No best is named: {answers.judge} is a baseline or "
            "a mock, and no judge; --model NAME asks one."
        )
    if answers.best.score.interval is None:
        return f"Highest score of answers: {best}. So few queries tell nothing apart."
    n_others = len(answers.results) - 1
    ties = [item.configuration.name for item in answers.ties if item not in answers.equals]
    if answers.equals:
        names = [item.configuration.name for item in (answers.best, *answers.equals)]
        if len(names) == len(answers.results):
            return all_equal("answers", len(names), _shown(answers.best.score))
        return first_equal("answers", names, _shown(answers.best.score), ties)
    if not ties:
        return f"Best answers: {best}. The {n_others} others asked are told apart from it."
    return (
        f"First by answers: {best}. Not told apart from the best ({len(ties)} of {n_others} others "
        f"asked): {listed_names(ties)}."
    )


def answers_blocks(answers: SweepAnswers) -> Iterator[Block]:
    """Yield what must be known, and the table."""
    if answers.n_left_out:
        left_out = plural(answers.n_left_out, "query", "queries")
        yield Notice("Note", f"{left_out} without an expected answer: not asked")
    for item in answers.results:
        failed = item.answered.failed
        if failed:
            query_id, why = next(iter(failed.items()))
            yield Notice(
                "Note",
                f"{item.configuration.name}: {len(failed)} of {answers.n_queries} answers could "
                f"not be had or graded, and have no value; the first: {query_id}: {why}",
            )
    has_failures = any(item.answered.failed for item in answers.results)
    rows = tuple(_row(item, answers, has_failures=has_failures) for item in answers.results)
    headers = (
        *CONFIGURATION_HEADERS,
        "score [95 %]",
        "correct [95 %]",
        *(["failed"] if has_failures else []),
        "no answer",
        "not in the contexts",
        "tokens in prompt",
        "difference to the best",
        "p corrected",
        "",
    )
    note = f"{_note(answers)} {FAILED_NOTE}" if has_failures else _note(answers)
    yield Table(f"Answers of {answers.system}, best first", headers, rows, note)


def _note(answers: SweepAnswers) -> str:
    n_compared = len(answers.results) - 1
    family = (
        f" Differences are paired; intervals and p are corrected for "
        f"{corrected_for(len(answers.results))}. The score of the first was the greatest on these "
        "queries: on others it is likely lower."
        if n_compared
        else ""
    )
    left = answers.n_configurations - len(answers.results)
    others = (
        f" {plural(left, 'configuration')} further down by evidence: not asked (--answer-top)."
        if left
        else ""
    )
    return (
        f"{plural(answers.n_queries, 'query', 'queries')}, answered from what was retrieved "
        f"{top_in_words(answers.top)}, graded by {answers.judge}. The score is the share of the "
        f"expected answer that an answer gives.{family}{others}"
    )


def top_in_words(top: Top) -> str:
    """Return how much is taken of a ranking."""
    if top.tokens is None:
        return f"in the first {top.cutoff}"
    at_most = "" if top.cutoff is None else f", {top.cutoff} texts at most"
    return f"within {top.tokens:,} tokens{at_most}"


def _row(
    item: ConfigurationAnswers, answers: SweepAnswers, *, has_failures: bool
) -> tuple[str, ...]:
    difference, p, told = against_best(item.comparison, is_worse=item.is_worse)
    if item is not answers.best and not (answers.names_best and item.comparison):
        told = MISSING
    elif answers.names_best and answers.equals and item in (answers.best, *answers.equals):
        told = "equal" if len(answers.equals) == len(answers.results) - 1 else "first, equal"
    return (
        *configuration_cells(item.configuration),
        _shown(item.score),
        _shown(item.correct),
        *([f"{len(item.answered.failed):,}"] if has_failures else []),
        _mean(item.not_attempted),
        _mean(item.hallucination),
        f"{item.answered.prompt_tokens:,.0f}",
        difference,
        p,
        told,
    )


def _shown(rate: Rate) -> str:
    low, high = (rate.interval.low, rate.interval.high) if rate.interval else (None, None)
    return with_ends(rate.mean, low, high)


def _mean(rate: Rate) -> str:
    return MISSING if rate.mean is None else f"{rate.mean:.3f}"


def answers_cost(answers: SweepAnswers) -> str:
    """Return what answers took, in a sentence."""
    cost = "cost unknown" if answers.cost_usd is None else f"{answers.cost_usd:.4f} USD"
    kept = plural(answers.n_kept, "answer")
    again = " (--ask-again asks anew)" if answers.n_kept else ""
    asked = f"{plural(answers.n_asked, 'question')} to the system now, {kept} kept{again}; "
    if not answers.n_asked and not answers.n_kept:
        asked = ""
    return f"answers: {asked}{plural(answers.calls, 'call')} of the model, {cost}"


def answers_json(answers: SweepAnswers) -> dict[str, object]:
    """Return what `--json` prints of them."""
    return {
        "system": answers.system,
        "judge": answers.judge,
        "names_best": answers.names_best,
        "tokens": answers.top.tokens,
        "k": answers.top.cutoff,
        "n_queries": answers.n_queries,
        "n_left_out": answers.n_left_out,
        "verdict": answers_verdict(answers),
        "best": configuration_json(answers.best.configuration)
        if answers.names_best and not answers.equals
        else None,
        "not_told_apart": [configuration_json(item.configuration) for item in answers.ties]
        if answers.names_best
        else [],
        "configurations": [_result_json(item, answers) for item in answers.results],
        "asked": answers.n_asked,
        "kept": answers.n_kept,
        "calls": answers.calls,
        "cost_usd": answers.cost_usd,
    }


def _result_json(item: ConfigurationAnswers, answers: SweepAnswers) -> dict[str, object]:
    is_worse = item.is_worse if answers.names_best else None
    return {
        **configuration_json(item.configuration),
        "score": _rate_json(item.score),
        "correct": _rate_json(item.correct),
        "not_attempted": _rate_json(item.not_attempted),
        "hallucination": _rate_json(item.hallucination),
        "prompt_tokens": round(item.answered.prompt_tokens, 1),
        "against_best": comparison_json(item.comparison, item.bounds, is_worse=is_worse),
        "failed_queries": dict(item.answered.failed),
    }


def _rate_json(rate: Rate) -> dict[str, object]:
    return {
        "mean": rate.mean,
        "low": rate.interval.low if rate.interval else None,
        "high": rate.interval.high if rate.interval else None,
        "least": rate.bounds.low if rate.bounds else None,
        "most": rate.bounds.high if rate.bounds else None,
        "n": rate.n,
        "n_failed": rate.n_failed,
    }


def answers_forecast_lines(forecast: AnswersForecast) -> list[str]:
    """Return what answers would take, in sentences."""
    estimate = forecast.estimate
    n = plural(forecast.n_configurations, "configuration")
    which = "the first by evidence" if forecast.is_exact else "which, is known when all is ranked"
    queries = plural(forecast.n_queries, "query", "queries")
    lines = [f"answers of {forecast.system}: {n} ({which}) on {queries}"]
    if forecast.n_left_out:
        left_out = plural(forecast.n_left_out, "query", "queries")
        lines.append(f"{left_out} without an expected answer: not asked")
    if forecast.asked or forecast.kept:
        asked = plural(forecast.asked, "question")
        lines.append(f"{asked} to the system, which no budget bounds, and {forecast.kept} kept")
    costs, tokens = estimate.get("cost_usd"), estimate.get("tokens")
    cost = costs.get("expected") if isinstance(costs, dict) else 0.0
    n_tokens = tokens.get("expected", 0) if isinstance(tokens, dict) else 0
    shown = "price unknown" if cost is None else f"{cost:.4f} USD"
    about = "" if forecast.is_exact else ", about"
    lines.append(
        f"calls of the model for answers and grades{about}: {estimate['calls']} (and "
        f"{estimate['cached']} in the call store), {n_tokens:,} tokens, {shown}"
    )
    return lines


def answers_forecast_json(forecast: AnswersForecast) -> dict[str, object]:
    """Return what `--dry-run --json` prints of them."""
    return {
        "system": forecast.system,
        "n_configurations": forecast.n_configurations,
        "n_queries": forecast.n_queries,
        "n_left_out": forecast.n_left_out,
        "asked": forecast.asked,
        "kept": forecast.kept,
        "is_exact": forecast.is_exact,
        **forecast.estimate,
    }
