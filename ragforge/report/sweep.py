"""A sweep as a document and as JSON: the best, what is not told apart from it, and the table."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ragforge.evaluating.formatting import Table, one_line, plural, with_ends
from ragforge.evaluating.sweep import (
    ConfigurationResult,
    JudgedForecast,
    JudgedSweep,
    SweepForecast,
    SweepReport,
    TopResult,
)
from ragforge.measures.intervals import ConfidenceInterval
from ragforge.measures.measure_names import parse_measure
from ragforge.report.as_needed import standings_lines, standings_table
from ragforge.report.document import Block, Document, Listing, Notice
from ragforge.report.sweep_answers import (
    answers_blocks,
    answers_cost,
    answers_forecast_json,
    answers_forecast_lines,
    answers_json,
    answers_verdict,
)
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
from ragforge.report.text import REPORT_LAYOUT


def sweep_document(report: SweepReport) -> Document:
    """Return what a sweep found, in the order of reading."""
    return Document(f"Sweep of {report.dataset}", tuple(_lead(report)), tuple(_blocks(report)))


def tops_tables(report: SweepReport) -> Iterator[Table]:
    """Yield a table of all measures for each budget and cutoff."""
    for at, top in enumerate(report.best.tops):
        results = [item.tops[at] for item in report.results]
        rows = tuple(
            (
                item.configuration.name,
                *(_value(value) for value in result.values.values()),
                f"{result.prompt_tokens:,.0f}",
            )
            for item, result in zip(report.results, results, strict=True)
        )
        headers = ("configuration", *results[0].values, "tokens in prompt")
        yield Table(_top_title(top), headers, rows, "")


def sweep_text(report: SweepReport) -> str:
    """Return the document as text for a terminal."""
    return REPORT_LAYOUT.document(sweep_document(report))


def verdict(report: SweepReport) -> str:
    """Return the best and what is not told apart from it, in a sentence."""
    best = f"{report.best.configuration.name} ({_value(report.best.value)})"
    if len(report.results) == 1:
        return f"The only configuration: {best}."
    if report.best.value.low is None:
        return f"First by {report.decided_by}: {best}. Nothing can be told apart by one query."
    ties = [item.configuration.name for item in report.ties if item not in report.equals]
    if report.equals:
        names = [item.configuration.name for item in (report.best, *report.equals)]
        if len(names) == len(report.results):
            return all_equal(report.decided_by, len(names), _value(report.best.value))
        return first_equal(report.decided_by, names, _value(report.best.value), ties)
    if not ties:
        return f"Best by {report.decided_by}: {best}. All others are told apart from it."
    return (
        f"First by {report.decided_by}: {best}. Not told apart from the best ({len(ties)} of "
        f"{len(report.results) - 1} others): {listed_names(ties)}."
    )


def _lead(report: SweepReport) -> Iterator[str]:
    n_configurations = plural(len(report.results), "configuration")
    yield (
        f"{n_configurations} on {plural(report.n_queries, 'query', 'queries')} and "
        f"{plural(report.n_documents, 'document')}; no judge is asked for evidence: where the "
        "quotes stand is known"
    )
    yield verdict(report)
    if report.judged is not None:
        yield judged_verdict(report.judged)
    if report.answers is not None:
        yield answers_verdict(report.answers)


def _blocks(report: SweepReport) -> Iterator[Block]:
    for warning in report.warnings:
        yield Notice("Note", warning)
    if report.answers is not None:
        yield from answers_blocks(report.answers)
    if report.judged is not None:
        yield from _judged_blocks(report.judged)
    yield _decision_table(report)
    yield _curve_table(report)
    if report.failed:
        yield Listing("not ranked", tuple(f"{item.name}: {why}" for item, why in report.failed))
    costs = [_cost(report)]
    if report.answers is not None:
        costs.append(answers_cost(report.answers))
    yield Listing("", tuple(costs))


def judged_verdict(judged: JudgedSweep) -> str:
    """Return which configurations may be the best by a judge, in a sentence."""
    names = [item.name for item in judged.may_be_best]
    if judged.is_baseline:
        return "By a judge: UNKNOWN, as a baseline or ragforge mock graded."
    if len(names) == 1:
        return f"By {one_line(judged.judge, 60)}, best: {names[0]}. All others are worse."
    n_others = len(judged.configurations) - len(names)
    return (
        f"By {one_line(judged.judge, 60)}, may be best: {listed_names(names)}; "
        f"{n_others} are worse."
    )


def _judged_blocks(judged: JudgedSweep) -> Iterator[Block]:
    names = [item.name for item in judged.configurations]
    table = standings_table(names, judged.standings, is_baseline=judged.is_baseline)
    grade = "at least a part of the answer" if judged.least_grade == 2 else "all of the answer"
    lines = standings_lines(
        measure=f"the share of prompts with a text that holds {grade}",
        decided=judged.standings,
        pool=judged.pool,
        n_queries=judged.n_queries,
        judge=one_line(judged.judge, 60),
    )
    if judged.left_out:
        n_left_out = plural(len(judged.left_out), "query", "queries")
        lines.append(
            f"{n_left_out} left out where a configuration is compared whose retriever failed on "
            "them; none is called worse that these could save"
        )
    if judged.n_failed:
        lines.append(
            f"{plural(judged.n_failed, 'judgment')} failed; none is called worse that these could "
            "save; `--retry-failed` asks again"
        )
    yield replace(table, title="By a judge", note="; ".join(lines))


def _decision_table(report: SweepReport) -> Table:
    has_failures = any(item.ranked.failed for item in report.results)
    rows = tuple(
        (
            *configuration_cells(item.configuration),
            f"{item.ranked.n_chunks:,}",
            _value(item.value),
            *([f"{len(item.ranked.failed):,}"] if has_failures else []),
            f"{item.prompt_tokens:,.0f}",
            *_against_best(item, report),
        )
        for item in report.results
    )
    headers = (
        *CONFIGURATION_HEADERS,
        "chunks",
        f"{report.decided_by} [95 %]",
        *(["failed"] if has_failures else []),
        "tokens in prompt",
        "difference to the best",
        "p corrected",
        "",
    )
    n_compared = len(report.results) - 1
    note = (
        f"Differences are paired, over the same queries; intervals and p are corrected for "
        f"{corrected_for(len(report.results))}. What is not told apart from the best may be the "
        "best; more queries tell more apart. The value of the first was the greatest on these "
        "queries, and its interval does not allow for that: on others it is likely lower. Tokens "
        "in the prompt are means, estimated."
        if n_compared
        else ""
    )
    note += f" {FAILED_NOTE}" if has_failures else ""
    return Table("Configurations, best first", headers, rows, note.strip())


def _against_best(item: ConfigurationResult, report: SweepReport) -> tuple[str, str, str]:
    difference, p, told = against_best(item.comparison, is_worse=item.is_worse)
    if report.equals and item in (report.best, *report.equals):
        is_all = len(report.equals) == len(report.results) - 1
        told = "equal" if is_all else "first, equal"
    return difference, p, told


def _curve_table(report: SweepReport) -> Table:
    """Return the values of the measure that decides at every budget and cutoff."""
    name = parse_measure(report.decided_by).name
    measures = [str(top.top.measure(name)) for top in report.best.tops]
    rows = tuple(
        (
            item.configuration.name,
            *(
                _value(top.values[measure])
                for top, measure in zip(item.tops, measures, strict=True)
            ),
        )
        for item in report.results
    )
    title = "The same at every budget and cutoff, with intervals of each mean"
    return Table(title, ("configuration", *measures), rows, "")


def _top_title(top: TopResult) -> str:
    if top.top.tokens is not None:
        return f"Within {top.top.tokens:,} tokens of a prompt"
    return f"In the first {top.top.cutoff}"


def _value(value: ConfidenceInterval) -> str:
    return with_ends(value.mean, value.low, value.high)


def _cost(report: SweepReport) -> str:
    kept = sum(item.ranked.was_kept for item in report.results)
    cost = "cost unknown" if report.cost_usd is None else f"{report.cost_usd:.4f} USD"
    return (
        f"{plural(report.calls, 'call')} of the embedding model, {cost}; "
        f"{plural(len(report.results) - kept, 'configuration')} ranked now, {kept} kept from before"
    )


def sweep_json(report: SweepReport) -> dict[str, object]:
    """Return what `--json` prints."""
    return {
        "dataset": report.dataset,
        "decided_by": report.decided_by,
        "n_queries": report.n_queries,
        "n_documents": report.n_documents,
        # Of equal ones none is.
        "best": None if report.equals else configuration_json(report.best.configuration),
        "not_told_apart": [configuration_json(item.configuration) for item in report.ties],
        "verdict": verdict(report),
        "configurations": [_result_json(item) for item in report.results],
        "failed": [{**configuration_json(item), "reason": why} for item, why in report.failed],
        "calls": report.calls,
        "cost_usd": report.cost_usd,
        "warnings": list(report.warnings),
        "answers": None if report.answers is None else answers_json(report.answers),
        "judged": None if report.judged is None else _judged_json(report.judged),
    }


def _judged_json(judged: JudgedSweep) -> dict[str, object]:
    configurations, standings = judged.configurations, judged.standings
    return {
        "may_be_best": [configuration_json(item) for item in judged.may_be_best],
        "configurations": [
            {
                **configuration_json(configurations[each.run]),
                "difference": each.difference,
                "interval": [each.low, each.high],
                "beaten_by": None
                if each.beaten_by is None or judged.is_baseline
                else configuration_json(configurations[each.beaten_by]),
            }
            for each in standings.runs
        ],
        "least_grade": judged.least_grade,
        "texts_used": standings.n_judged,
        "pool": judged.pool,
        "look": standings.n_looks,
        "queries": judged.n_queries,
        "queries_read": standings.share,
        "left_out": list(judged.left_out),
        "failed": judged.n_failed,
        "judge": judged.judge,
    }


def _result_json(item: ConfigurationResult) -> dict[str, object]:
    return {
        **configuration_json(item.configuration),
        "chunks": item.ranked.n_chunks,
        "mean_chars": round(item.ranked.mean_chars, 1),
        "value": _interval_json(item.value),
        "prompt_tokens": round(item.prompt_tokens, 1),
        "against_best": comparison_json(item.comparison, item.bounds, is_worse=item.is_worse),
        "tops": [
            {
                "tokens": top.top.tokens,
                "k": top.top.cutoff,
                "prompt_tokens": round(top.prompt_tokens, 1),
                "measures": {name: _interval_json(value) for name, value in top.values.items()},
            }
            for top in item.tops
        ],
        "failed_queries": dict(item.ranked.failed),
        "seconds": item.ranked.seconds,
        "kept": item.ranked.was_kept,
    }


def _interval_json(value: ConfidenceInterval) -> Mapping[str, object]:
    return {"mean": value.mean, "low": value.low, "high": value.high, "n": value.n}


def forecast_text(forecast: SweepForecast) -> str:
    """Return what a sweep would do as text."""
    kept = set(forecast.kept)
    rows = tuple(
        (*configuration_cells(item), f"{n_chunks:,}", "there" if item in kept else "to rank")
        for item, n_chunks in forecast.configurations
    )
    table = REPORT_LAYOUT.table(Table("", (*CONFIGURATION_HEADERS, "chunks", ""), rows, ""))
    failed = [f"not possible: {item.name}: {why}" for item, why in forecast.failed]
    cost = "price unknown" if forecast.cost_usd is None else f"{forecast.cost_usd:.4f} USD"
    n = len(forecast.configurations)
    lines = [
        f"{plural(n, 'configuration')} ({len(kept)} of them ranked before) on "
        f"{plural(forecast.n_queries, 'query', 'queries')} and "
        f"{plural(forecast.n_documents, 'document')}, decided by {forecast.decided_by}",
        f"calls of the embedding model: {forecast.calls} (and {forecast.cached} in the call "
        f"store), {forecast.prompt_tokens:,} tokens, {cost}",
    ]
    if forecast.answers is not None:
        lines += answers_forecast_lines(forecast.answers)
    if forecast.judged is not None:
        lines.append(_judged_forecast(forecast.judged))
    return "\n".join([table, "", *map(REPORT_LAYOUT.paragraph, [*failed, *lines])])


def _judged_forecast(judged: JudgedForecast) -> str:
    least, most = judged.expected
    about = "" if judged.is_exact else "about "
    shown = f"texts to be judged: {least:,} to {most:,} expected, {about}{judged.at_most:,} at most"
    if judged.usd_a_text is None:
        return f"{shown}, price unknown"
    usd = [f"{n * judged.usd_a_text:.4f}" for n in (least, most, judged.at_most)]
    return f"{shown}: {usd[0]} to {usd[1]} USD, {usd[2]} at most"


def forecast_json(forecast: SweepForecast) -> dict[str, object]:
    """Return what `--dry-run --json` prints."""
    kept = set(forecast.kept)
    return {
        "dataset": forecast.dataset,
        "decided_by": forecast.decided_by,
        "n_queries": forecast.n_queries,
        "n_documents": forecast.n_documents,
        "configurations": [
            {**configuration_json(item), "chunks": n_chunks, "kept": item in kept}
            for item, n_chunks in forecast.configurations
        ],
        "failed": [{**configuration_json(item), "reason": why} for item, why in forecast.failed],
        "calls": forecast.calls,
        "cached": forecast.cached,
        "prompt_tokens": forecast.prompt_tokens,
        "cost_usd": forecast.cost_usd,
        "answers": answers_forecast_json(forecast.answers) if forecast.answers else None,
        "judged": None
        if forecast.judged is None
        else {
            "texts": {
                "expected_least": forecast.judged.expected[0],
                "expected_most": forecast.judged.expected[1],
                "at_most": forecast.judged.at_most,
                "is_exact": forecast.judged.is_exact,
            },
            "usd_a_text": forecast.judged.usd_a_text,
        },
    }
