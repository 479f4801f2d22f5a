"""The page of the nights of a dataset: what each refresh changed and why, and what it took."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import MISSING, one_line, plural
from ragforge.files.manifest import Manifest, Spent
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.paths import REJECTED, VERSIONS, number_of
from ragforge.records import ItemChange, VersionDiff
from ragforge.report.page.markup import (
    Child,
    Html,
    element,
    join,
    scroll_table,
    site_link,
    table_row,
    with_code,
)
from ragforge.report.versions import (
    answers_line,
    change_text,
    check_text,
    documents_line,
    grades_line,
    lost_line,
    queries_line,
)
from ragforge.viewer.pages import page
from ragforge.viewer.served import ServedDataset

_MOST_CHANGES: Final = 200
"""Of a night that are listed."""


@dataclass(frozen=True, slots=True)
class NightOf:
    """A version that a refresh made."""

    folder: Path
    at: float
    """When it was made, in seconds since 1970."""
    manifest: Manifest
    diff: VersionDiff | None
    """None of the first one."""
    is_published: bool


def night_folders(home: Path) -> list[Path]:
    """Return the folders of the versions of a dataset that are kept, and of those refused."""
    found = [
        folder
        for place in (VERSIONS, REJECTED)
        if (home / place).is_dir()
        for folder in (home / place).iterdir()
        if number_of(folder.name) is not None and (folder / "manifest.json").is_file()
    ]
    return sorted(found, key=lambda folder: (folder.name, folder.parent.name))


def nights_of(home: Path) -> list[NightOf]:
    """Return the nights of a dataset, the last one first.

    Raises:
        DataError: A file of a version does not hold to its format.
    """
    nights = []
    for folder in night_folders(home):
        version = Dataset(folder)
        at = (folder / "manifest.json").stat().st_mtime
        is_published = folder.parent.name == VERSIONS
        nights.append(NightOf(folder, at, version.manifest, version.past.diff(), is_published))
    nights.sort(key=lambda night: (night.manifest.version, night.is_published), reverse=True)
    return nights


def nights_page(served: ServedDataset, nights: Sequence[NightOf]) -> str:
    """Return the page."""
    title = one_line(served.title)
    up: list[Child] = [
        site_link("../../", "All datasets"),
        " / ",
        site_link(f"../{served.name}", title),
    ]
    rows = [_row(night, _before(night, nights)) for night in nights]
    headers = ["version", "made (UTC)", "became", "queries", "calls", "cost", "checks"]
    numeric = [False, False, False, False, True, True, False]
    none = "It was never refreshed: `ragforge refresh` makes its next version."
    return page(
        f"Nights of {title}",
        scroll_table("Nights", headers, rows, numeric)
        if nights
        else element("p", *with_code(none), class_="empty"),
        *(_details(night) for night in nights if night.diff is not None),
        top=[
            element("p", *up, class_="eyebrow"),
            element("h1", "Nights of ", element("span", title, dir="auto")),
        ],
        depth=2,
    )


def _before(night: NightOf, nights: Iterable[NightOf]) -> NightOf | None:
    """Return the night whose version this one was made of, where that is kept."""
    if night.diff is None:
        return None
    parent = night.diff.parent
    return next((n for n in nights if n.is_published and n.manifest.version == parent), None)


def _row(night: NightOf, before: NightOf | None) -> Html:
    version = night.manifest.version
    key = _key(night)
    head = (
        element("a", f"version {version}", href=f"#{key}") if night.diff else f"version {version}"
    )
    failed = [check for check in night.diff.checks if not check.passed] if night.diff else []
    checks = ", ".join(check.name for check in failed) or ("passed" if night.diff else MISSING)
    cells = [
        element("td", _when(night)),
        element("td", _became(night), class_=None if night.is_published else "went problem"),
        element("td", _changed(night.diff)),
        element("td", _calls(night.diff), class_="num"),
        element("td", _cost(night.manifest.spent, before), class_="num"),
        element("td", one_line(checks, 120), class_="went problem" if failed else None),
    ]
    return table_row(head, cells)


def _became(night: NightOf) -> str:
    if night.diff is None:
        return "the first"
    return "published" if night.is_published else "refused"


def _key(night: NightOf) -> str:
    return f"{'v' if night.is_published else 'refused-'}{night.manifest.version}"


def _when(night: NightOf) -> str:
    return datetime.fromtimestamp(night.at, UTC).strftime("%Y-%m-%d %H:%M")


def _changed(diff: VersionDiff | None) -> str:
    if diff is None:
        return MISSING
    n = sum(count for action, count in diff.items.items() if action != "kept")
    return f"{n:,} changed, {diff.items.get('kept', 0):,} kept"


def _calls(diff: VersionDiff | None) -> str:
    if diff is None:
        return MISSING
    calls = diff.calls
    return f"{calls.verify + calls.conflicts + calls.judge + calls.generate:,}"


def _cost(spent: Spent, before: NightOf | None) -> str:
    """Return what was spent since the version before; a dash where a price is not known."""
    if before is None or spent.cost_usd is None or before.manifest.spent.cost_usd is None:
        return MISSING
    return f"{max(spent.cost_usd - before.manifest.spent.cost_usd, 0):.2f} $"


def _details(night: NightOf) -> Html:
    diff = night.diff
    assert diff is not None
    lines = [documents_line(diff.documents), queries_line(diff), grades_line(diff.judgments)]
    if diff.lost_relevant:
        lines.append(lost_line(diff.lost_relevant))
    if diff.shortfall:
        lines.append(diff.shortfall)
    if diff.answers_left:
        lines.append(answers_line(diff))
    listed = [element("li", one_line(check_text(check), 300)) for check in diff.checks]
    changes = [_change(change) for change in diff.changes[:_MOST_CHANGES]]
    n_more = len(diff.changes) - len(changes)
    more = element("p", f"and {n_more:,} more, in its diff.json", class_="note") if n_more else None
    folded = element(
        "details",
        element("summary", plural(len(diff.changes), "changed query", "changed queries")),
        element("ul", *changes, class_="facts-list"),
        more,
    )
    return element(
        "section",
        element("h2", f"Version {diff.version}, {_became(night)}", id=_key(night)),
        element("p", _when(night), " UTC", class_="note"),
        element("ul", *(element("li", one_line(line, 400)) for line in lines), class_="facts-list"),
        join([element("h3", "Checks"), element("ul", *listed, class_="facts-list")])
        if listed
        else None,
        folded if diff.changes else None,
    )


def _change(change: ItemChange) -> Html:
    text = change_text(change)
    named: Child = site_link("query", one_line(change.query_id, 60), query={"q": change.query_id})
    return element("li", named, " ", element("bdi", one_line(text[len(change.query_id) :], 300)))
