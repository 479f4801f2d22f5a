"""What calls come to: frozen results that are shown as text and HTML, and taken on as frames."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ragforge.deferred import dataclass, pattern
from ragforge.errors import ConfigError
from ragforge.evaluating.formatting import Table, numeric_column

if TYPE_CHECKING:
    from ragforge.report.page.markup import Html

_SHARE: Final = pattern(r"(0\.[0-9]+|1\.0+)(?: [a-j]+)?", re.ASCII)
"""A value from 0 to 1, perhaps with the letters of its group."""


class Result(ABC):
    """What all results offer.

    A class, as the three ways out (frames, HTML, repr) follow from two things that each result
    says of itself, and a dozen copies of them would differ one day.
    """

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, as `--json` of the command prints them."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each record, with the columns that a data frame has."""

    @abstractmethod
    def table(self) -> str:
        """Return the text that the command prints."""

    def to_pandas(self) -> Any:  # noqa: ANN401  # pandas is no dependency
        """Return the rows as a pandas data frame.

        Raises:
            ConfigError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise _missing("pandas") from error
        return pd.DataFrame(self.rows())

    def to_polars(self) -> Any:  # noqa: ANN401  # polars is no dependency
        """Return the rows as a polars data frame.

        Raises:
            ConfigError: polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise _missing("polars") from error
        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return shown_html(preformatted=self.table())


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Estimate(Result):
    """What a run would take.

    Args:
        counted: As `--dry-run --json` prints it.
        notes: What was told on the way.
    """

    counted: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=())

    @property
    def calls(self) -> int | None:
        """Calls that would be made; None where that cannot be counted yet."""
        calls: int | None = self.counted.get("calls")
        return calls

    @property
    def cost_usd(self) -> float | None:
        """Dollars in all; None where a price is not known; 0.0 where nothing is asked."""
        costs = self.counted.get("cost_usd", {}).values()
        return None if None in costs else float(sum(costs))

    def to_dict(self) -> dict[str, Any]:
        """Return what `--dry-run --json` prints."""
        return dict(self.counted)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all counts."""
        return [plain_values(self.counted)]

    def table(self) -> str:
        """Return the counts in words."""
        return estimate_text(self.counted)


def shown_html(
    *,
    head: Iterable[str] = (),
    tables: Iterable[Table] = (),
    preformatted: str = "",
    bars: Collection[str] = (),
) -> str:
    """Return HTML for a notebook; all text is data and escaped.

    Args:
        head: Lines above the tables.
        tables: With their titles and notes.
        preformatted: Text that stands as it is.
        bars: Columns whose values from 0 to 1 have a bar.
    """
    from ragforge.report.page.markup import element, join  # No command needs it.

    parts = [element("p", line) for line in head]
    parts.extend(_table(table, bars) for table in tables)
    if preformatted:
        parts.append(element("pre", preformatted))
    return element("div", join(parts), class_="ragforge").code


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values without those that no frame holds: mappings and lists become text."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in values.items()
    }


def _table(table: Table, bars: Collection[str]) -> "Html":
    from ragforge.report.page.markup import element, join

    columns = list(zip(*table.rows, strict=True))
    right = ["right" if numeric_column(column) else None for column in columns]
    right = right or [None] * len(table.headers)
    head = [
        element("th", text, align=side, colspan=2 if text in bars else None)
        for text, side in zip(table.headers, right, strict=True)
    ]
    body = [element("tr", *_cells(row, table.headers, right, bars)) for row in table.rows]
    return element(
        "div",
        element("p", element("b", table.title)) if table.title else None,
        element("table", element("thead", element("tr", *head)), element("tbody", join(body))),
        element("p", table.note) if table.note else None,
    )


def _cells(
    row: Sequence[str], names: Sequence[str], right: Sequence[str | None], bars: Collection[str]
) -> "Iterator[Html]":
    """Yield the cells of a row; behind a value of 0 to 1 comes one with its bar."""
    from ragforge.report.page.markup import element

    for cell, name, side in zip(row, names, right, strict=True):
        yield element("td", cell, align=side)
        if name in bars:
            found = None if "DCG" in (row[0][:3], name[:3]) else _SHARE.fullmatch(cell)
            yield element("td", element("meter", value=found[1]) if found else None)


def _missing(package: str) -> ConfigError:
    return ConfigError(
        f"to_{package}: needs {package}, which is not installed: pip install {package}"
    )


def estimate_text(estimate: Mapping[str, Any]) -> str:
    """Return what a dry run counted, a line each."""
    from ragforge.report.plan import present_line

    planned = [present_line(estimate["plan"])] if "plan" in estimate else []
    return "\n".join([*_estimate_lines(estimate), *planned])


_OF_DECISION: Final = "calls: one a pair, or a batch of pairs; how many it takes, the grades tell"
_OF_ANSWERS: Final = "calls of the judge cannot be counted before the answers are there"


def _cost_of_decision(estimate: Mapping[str, Any]) -> Iterator[str]:
    usd = estimate.get("usd_a_pair")
    if usd is not None:
        far, close, most = (
            f"{estimate['pairs'][name] * usd:.4f} USD"
            for name in ("expected_if_far", "expected_if_close", "at_most")
        )
        yield f"cost: {far} if the runs are far apart, {close} if close, {most} at most"


def _estimate_lines(estimate: Mapping[str, Any]) -> Iterator[str]:
    if "pairs" in estimate:
        counts = estimate["pairs"].items()
        yield "pairs: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts)
    if "system_calls" in estimate:
        yield f"queries to ask the system: {estimate['system_calls']}"
    if "calls" not in estimate:
        yield _OF_DECISION if "measure" in estimate else _OF_ANSWERS
        yield from _cost_of_decision(estimate)
        return
    yield f"calls: {estimate['calls']} (and {estimate['cached']} in the call store)"
    if "embeddings" in estimate:
        found = estimate["embeddings"]
        yield f"of these embeddings: {found['calls']} (and {found['cached']} in the call store)"
    if "tokens" not in estimate:
        yield "the offline baseline asks nothing and costs nothing"
        return
    yield f"calls at worst, if replies have to be asked for again: {estimate['calls_high']}"
    if "calls_if_all_pools_grow" in estimate:
        yield f"calls if all pools grow to the end: {estimate['calls_if_all_pools_grow']}"
    seconds = estimate["seconds"]
    yield "time: unknown before the first replies" if seconds is None else f"time: {seconds:.0f} s"
    for name, tokens in estimate["tokens"].items():
        cost = estimate["cost_usd"][name]
        money = "price unknown" if cost is None else f"{cost:.4f} USD"
        yield f"{name}: {tokens} tokens, {money}"
