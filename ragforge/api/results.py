"""What calls come to: frozen results that are shown as text and HTML, and taken on as frames."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ragforge.errors import ConfigError
from ragforge.evaluating.text_table import Table, numeric_column

if TYPE_CHECKING:
    from ragforge.report.page.markup import Html


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


def shown_html(
    *, head: Iterable[str] = (), tables: Iterable[Table] = (), preformatted: str = ""
) -> str:
    """Return HTML for a notebook; all text is data and escaped.

    Args:
        head: Lines above the tables.
        tables: With their titles and notes.
        preformatted: Text that stands as it is.
    """
    from ragforge.report.page.markup import element, join  # No command needs it.

    parts = [element("p", line) for line in head]
    parts.extend(map(_table, tables))
    if preformatted:
        parts.append(element("pre", preformatted))
    return element("div", join(parts), class_="ragforge").code


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values without those that no frame holds: mappings and lists become text."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in values.items()
    }


def _table(table: Table) -> "Html":
    from ragforge.report.page.markup import element, join

    columns = list(zip(*table.rows, strict=True))
    right = ["right" if numeric_column(column) else None for column in columns]
    right = right or [None] * len(table.headers)
    head = [
        element("th", text, align=side) for text, side in zip(table.headers, right, strict=True)
    ]
    body = [
        element(
            "tr", *(element("td", cell, align=side) for cell, side in zip(row, right, strict=True))
        )
        for row in table.rows
    ]
    return element(
        "div",
        element("p", element("b", table.title)) if table.title else None,
        element("table", element("thead", element("tr", *head)), element("tbody", join(body))),
        element("p", table.note) if table.note else None,
    )


def _missing(package: str) -> ConfigError:
    return ConfigError(
        f"to_{package}: needs {package}, which is not installed: pip install {package}"
    )
