"""The part of the page about answers: rates, slices, and what they were made from."""

from collections.abc import Iterable, Sequence

from ragforge.measures.rates import Rate
from ragforge.report.answers.summary import AnswerSummary
from ragforge.report.answers.tables import (
    answers,
    bounds,
    contexts,
    count_of,
    ends,
    given,
    lengths,
    slices,
)
from ragforge.report.answers.words import RATE_LABELS, RATES_NOTE
from ragforge.report.page.charts import meter
from ragforge.report.page.comparison import answers_comparison
from ragforge.report.page.markup import Child, Html, element, join
from ragforge.report.page.table import scroll_table, table_block, table_row
from ragforge.report.shown import number
from ragforge.report.summary import Summary


def answers_block(summary: Summary) -> Html:
    """Return rates by system, slices, lengths, and whether the contexts were needed."""
    systems = summary.answers
    return join(
        [
            _rates(systems),
            element("p", RATES_NOTE, class_="note"),
            answers_comparison(summary),
            table_block(answers(systems)),
            *([table_block(given(systems))] if any(item.given for item in systems) else []),
            *map(table_block, slices(systems)),
            table_block(lengths(systems)),
            table_block(contexts(systems)),
        ]
    )


def _rates(systems: Sequence[AnswerSummary]) -> Html:
    body = [
        table_row(label, [_rate_cell(item.rates[name]) for item in systems])
        for name, label in RATE_LABELS.items()
    ]
    heads: list[Child] = ["rate", *(element("bdi", item.system) for item in systems)]
    table = scroll_table("Answer rates", heads, body, [False, *[True] * len(systems)])
    return element("div", table, class_="block rates")


def _rate_cell(rate: Rate) -> Html:
    """Return a cell with a rate, its interval as a bar and in words, and what it rests on."""
    bar = None
    if rate.mean is not None and rate.interval is not None:
        bar = meter(rate.mean, rate.interval.low, rate.interval.high)
    return element(
        "td",
        element("span", number(rate.mean), class_="mean"),
        bar,
        *(element("span", line, class_="bounds") for line in _rate_lines(rate)),
        class_="num estimate",
    )


def _rate_lines(rate: Rate) -> Iterable[str]:
    interval = f"95 %: {ends(rate.interval)}, " if rate.interval else ""
    yield f"{interval}n {count_of(rate)}"
    failed = f", {rate.n_failed:,} failed" if rate.n_failed else ""
    if bounds(rate) or failed:
        yield f"bounds: {bounds(rate)}{failed}"
