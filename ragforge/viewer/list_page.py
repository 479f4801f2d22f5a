"""The page of all datasets: a row each, to search, filter and sort."""

from collections.abc import Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import MISSING, one_line, plural
from ragforge.evaluating.history.trends import trend
from ragforge.records import Evaluation
from ragforge.report.page.charts import Scale
from ragforge.report.page.markup import Child, Html, element, scrolling, site_link, table_row
from ragforge.viewer.pages import mean_cell, notes, page, selection_note
from ragforge.viewer.served import Night, ServedDataset, followed

_SPARK_WIDTH: Final = 80
_SPARK_HEIGHT: Final = 18
STATES: Final = (
    ("problem", "cannot be read"),
    ("degrading", "degrading"),
    ("improving", "improving"),
    ("stable", "stable"),
    ("unknown", "no trend"),
    ("new", "not evaluated"),
)
"""Of a dataset, with what they are called."""
_COLUMNS: Final = (
    ("name", "dataset"),
    ("state", "state"),
    ("run", "evaluated last"),
    ("mean", "mean"),
    ("", "past"),
    ("queries", "queries"),
    ("version", "version"),
    ("spent", "spent, $"),
    ("evaluated", "evaluated (UTC)"),
    ("night", "last night (UTC)"),
)
"""What they are sorted by, "" for nothing, and what stands above."""
_NUMERIC: Final = frozenset({"mean", "queries", "version", "spent"})


@dataclass(slots=True)
class ListPage:
    """Makes the page; a row is made again only when its dataset changed."""

    _rows: dict[str, tuple[ServedDataset, Html]] = field(default_factory=dict)

    def html(self, datasets: Sequence[ServedDataset]) -> str:
        """Return the page of these datasets."""
        self._rows = {served.name: (served, self._row(served)) for served in datasets}
        rows = [row for _, row in self._rows.values()]
        head = element("tr", *(_head(key, title) for key, title in _COLUMNS))
        table = element("table", element("thead", head), element("tbody", *rows), class_="sets")
        live = scrolling(table, "Datasets") if rows else element("p", "No dataset.", class_="empty")
        count = element("p", plural(len(rows), "dataset"), id="count", role="status")
        return page("Datasets", count, live, top=[element("h1", "Datasets"), _tools()])

    def _row(self, served: ServedDataset) -> Html:
        known = self._rows.get(served.name)
        return known[1] if known is not None and known[0] is served else _dataset_row(served)


def _tools() -> Html:
    search = element("input", type="search", id="search", autocomplete="off", dir="auto")
    states = [element("option", text, value=state) for state, text in (("", "any"), *STATES)]
    return element(
        "div",
        element("label", "Search ", search),
        element("label", "State ", element("select", *states, id="state-of")),
        id="tools",
        class_="tools",
        hidden=True,
    )


def _head(key: str, title: str) -> Html:
    class_ = "num" if key in _NUMERIC else None
    return element("th", title, scope="col", class_=class_, data_sort=key or None)


def _dataset_row(served: ServedDataset) -> Html:
    history = served.recent
    last = history.of_run(history.evaluations[-1].run) if history.evaluations else []
    measure = followed(last[-1]) if last else ""
    state = _state(served, last, measure)
    title = one_line(served.title)
    beside = None if served.name == served.title else element("span", served.name, class_="bounds")
    queries = last[-1].n_queries if last else None
    version = None if served.manifest is None else served.manifest.version
    spent = None if served.manifest is None else served.manifest.spent.usd
    cells = [
        _cell(dict(STATES)[state], state, class_=f"went {state}"),
        _cell(f"{one_line(last[-1].run, 60)}, {measure}" if measure else MISSING, None),
        _mean(last, measure),
        element("td", _spark(served.past)),
        _cell(MISSING if queries is None else f"{queries:,}", queries, class_="num"),
        _cell(MISSING if version is None else version, version, class_="num"),
        _cell(MISSING if spent is None else f"{spent:,.2f}", spent, class_="num"),
        _cell(_day(last[-1].at) if last else MISSING, last[-1].at if last else None),
        _night_cell(served.night),
    ]
    link = site_link(f"datasets/{served.name}", title)
    problem = element("span", one_line(served.problem, 200), class_="bounds")
    head = element("span", link, beside, problem if served.problem else None, dir="auto")
    return table_row(head, cells, data_state=state)


def _mean(last: Sequence[Evaluation], measure: str) -> Html:
    if not measure:
        return element("td", MISSING, class_="num")
    return mean_cell(last[-1].measures[measure], selection_note(last[-1]), *notes(last, measure))


def _state(served: ServedDataset, last: Sequence[Evaluation], measure: str) -> str:
    if served.problem:
        return "problem"
    if not measure:
        return "new"
    return trend(last, measure).verdict.lower()


def _cell(text: Child, value: str | int | float | None, class_: str | None = None) -> Html:
    kept = None if value is None else str(value)
    return element("td", text, class_=class_, data_value=kept)


def _spark(values: Sequence[float]) -> Html | None:
    """Return a thin line of the last means; the numbers are on the page of the dataset."""
    if len(values) < 2:
        return None
    across = Scale(0, len(values) - 1, 2, _SPARK_WIDTH - 2)
    up = Scale(min(values), max(values), _SPARK_HEIGHT - 2, 2)
    places = " ".join(f"{across.place(n):.1f},{up.place(v):.1f}" for n, v in enumerate(values))
    line = element("polyline", points=places)
    size = f"0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"
    return element("svg", line, class_="spark", viewBox=size, aria_hidden="true")


def _night_cell(night: Night | None) -> Html:
    if night is None:
        return element("td", MISSING)
    at = datetime.fromtimestamp(night.at, UTC).isoformat(timespec="minutes")
    word = "published" if night.is_published else "refused"
    return _cell(f"{word} {_day(at)}", at, class_=None if night.is_published else "went problem")


def _day(at: str) -> str:
    """Return the day; the time is on the page of the dataset."""
    return one_line(at[:10], 40)
