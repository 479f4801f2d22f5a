"""The parts of the page about what is to blame: retrieval or the model, and the likely causes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ragforge.evaluating.answers.diagnosis import Cell, Diagnosis
from ragforge.evaluating.answers.rates import AnswerSummary
from ragforge.evaluating.causes.catalogue import BLAMELESS, CAUSES, CauseCode, CauseGroup
from ragforge.evaluating.formatting import number, plural, share
from ragforge.evaluating.summary import Summary
from ragforge.measures.rates import Rate
from ragforge.report.answers import (
    DIAGNOSIS_NOTE,
    RATE_LABELS,
    RATES_NOTE,
    bounds,
    context_name,
    context_table,
    count_of,
    ends,
    given_grades_table,
    length_table,
    share_of,
    slice_tables,
    verdicts_table,
)
from ragforge.report.page.charts import meter, run_column
from ragforge.report.page.comparison import answers_comparison
from ragforge.report.page.markup import (
    Child,
    Html,
    element,
    folded_table,
    join,
    scroll_table,
    table_block,
    table_row,
    with_code,
)
from ragforge.report.page.queries import query_list
from ragforge.report.page.runs import run_name

_CAUSES_NOTE = (
    "A query is counted once, by the first cause that applies, where its {} is below the best that "
    "{}. Most is gained where causes are common and the mean is low."
)


def answers_block(summary: Summary) -> Html:
    """Return rates by system, slices, lengths, and whether the contexts were needed."""
    systems = summary.answers
    return join(
        [
            _rates(systems),
            element("p", RATES_NOTE, class_="note"),
            answers_comparison(summary),
            table_block(verdicts_table(systems)),
            table_block(given_grades_table(systems)),
            *map(folded_table, slice_tables(systems)),
            table_block(length_table(systems)),
            table_block(context_table(systems)),
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


def diagnosis_block(summary: Summary) -> Html:
    """Return a grid of retrieval against answer for each system and context."""
    grids = [
        _grid(summary, item, grid, f"diagnosis-{place}-{at}")
        for place, item in enumerate(summary.answers)
        for at, grid in enumerate(item.diagnoses)
    ]
    note = element("p", DIAGNOSIS_NOTE, class_="note")
    return join([element("div", *grids, class_="grids"), note])


def causes_block(summary: Summary) -> Html | None:
    """Return the likely causes of bad queries by run, counted; None where there are none."""
    groups = {
        (run.name, group.code): group
        for run in summary.runs
        for group in summary.causes.get(run.name, ())
    }
    if not groups:
        return None
    counts: Counter[CauseCode] = Counter()
    for (_, code), group in groups.items():
        counts[code] += len(group.query_ids)
    codes = [code for code in CAUSES if code in counts]
    codes.sort(key=lambda code: -counts[code])
    places = {run.name: place for place, run in enumerate(summary.runs)}
    body = [
        table_row(
            _cause(code),
            [
                *(_count(groups.get((run, code)), place) for run, place in places.items()),
                element("td", *with_code(CAUSES[code].remedy), class_="remedy"),
            ],
        )
        for code in codes
    ]
    names = [run_column(run, place) for run, place in places.items()]
    headers: list[Child] = ["likely cause", *names, "remedy"]
    numeric = [False, *[True] * len(names), False]
    table = scroll_table("Likely causes of bad queries by run", headers, body, numeric)
    lists = [_members(summary, run, places[run], codes, groups) for run in places]
    listed = element("details", element("summary", "Queries by cause"), *lists, class_="others")
    best = "there is" if summary.table.is_of_evidence else "its judgments allow"
    note = element("p", _CAUSES_NOTE.format(summary.primary, best), class_="note")
    return element("div", table, note, listed, class_="causes")


def _grid(summary: Summary, item: AnswerSummary, grid: Diagnosis, key: str) -> Html:
    by_key = {(cell.retrieval_is_good, cell.answer_is_good): cell for cell in grid.cells}
    rows = [
        table_row(name, [_field(by_key[good, answer], key) for answer in (True, False)])
        for name, good in (("retrieval good", True), ("retrieval bad", False))
    ]
    head = element(
        "tr",
        element("td"),
        element("th", "answer good", scope="col"),
        element("th", "answer bad", scope="col"),
    )
    title = element("h3", element("bdi", item.system), ", ", element("bdi", context_name(grid)))
    return element(
        "div",
        title,
        element("table", element("thead", head), element("tbody", *rows), class_="quadrant"),
        *_lists(summary, grid, key),
        class_="grid",
    )


def _field(cell: Cell, key: str) -> Html:
    n = len(cell.query_ids)
    count: Html | str = f"{n:,}"
    if n:
        label = f"{plural(n, 'query', 'queries')}: {cell.reading}"
        count = element("a", f"{n:,}", href=f"#{_cell_key(cell, key)}", aria_label=label)
    good = cell.retrieval_is_good + cell.answer_is_good
    return element(
        "td",
        element("span", count, class_="count"),
        element("span", share_of(cell), class_="share"),
        element("span", cell.reading, class_="reading"),
        class_=f"field f{good}",
    )


def _cell_key(cell: Cell, key: str) -> str:
    return f"{key}-{int(cell.retrieval_is_good)}{int(cell.answer_is_good)}"


def _lists(summary: Summary, grid: Diagnosis, key: str) -> Iterable[Html]:
    for cell in grid.cells:
        if cell.query_ids:
            title = f"{cell.reading}: {plural(len(cell.query_ids), 'query', 'queries')}"
            yield query_list(title, cell.query_ids, summary.queries, _cell_key(cell, key))
    for undecided in grid.undecided:
        title = (
            f"undecided: {plural(len(undecided.query_ids), 'query', 'queries')}, {undecided.reason}"
        )
        yield query_list(title, undecided.query_ids, summary.queries, "")


def _cause(code: CauseCode) -> Html:
    blameless = "It says nothing of the run." if code in BLAMELESS else ""
    meaning = element("span", f"{CAUSES[code].meaning} {blameless}".strip(), class_="bounds")
    return join([CAUSES[code].title, meaning])


def _count(group: CauseGroup | None, place: int) -> Html:
    if group is None:
        return element("td", "0", class_="num")
    return element(
        "td",
        element("a", f"{len(group.query_ids):,}", href=f"#{_key(group.code, place)}"),
        element("span", _bar(group.share), share(group.share), class_="bounds"),
        element("span", f"mean {number(group.mean, 2)}", class_="bounds"),
        class_="num",
    )


def _members(
    summary: Summary,
    run: str,
    place: int,
    codes: Iterable[CauseCode],
    groups: Mapping[tuple[str, CauseCode], CauseGroup],
) -> Html:
    lists = []
    for code in codes:
        group = groups.get((run, code))
        if group is not None:
            title = f"{CAUSES[code].title}: {plural(len(group.query_ids), 'query', 'queries')}"
            lists.append(query_list(title, group.query_ids, summary.queries, _key(code, place)))
    return element("div", element("h3", run_name(summary, run)), *lists)


def _key(code: CauseCode, place: int) -> str:
    return f"cause-{place}-{code.replace('_', '-')}"


def _bar(part: float) -> Html:
    """Return a thin bar beside a share; the number stands next to it."""
    return element(
        "svg",
        element("rect", class_="track", x=0, y=0, width=40, height=6),
        element("rect", class_="fill", x=0, y=0, width=f"{40 * part:.1f}", height=6),
        class_="sharebar",
        viewBox="0 0 40 6",
        aria_hidden="true",
    )
