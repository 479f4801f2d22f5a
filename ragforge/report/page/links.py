"""Links from the overview to single queries, and lists of these."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from ragforge.report.page.markup import Html, element
from ragforge.report.shown import one_line, visible

LISTED: Final = 40
"""Queries of a list that are named with their text; the others are counted."""


def query_link(query_id: str, text: str, *, limit: int = 110) -> Html:
    """Return a link that opens a query in the table of queries.

    Args:
        query_id: Its id.
        text: Its text; "" where only the id is known.
        limit: Characters of the text that are shown.
    """
    shown = element("bdi", one_line(text or query_id, limit))
    return element("a", shown, href=query_hash(query_id), class_="to-query")


def query_hash(query_id: str) -> str:
    """Return the fragment that opens a query."""
    return f"#q={quote(visible(query_id), safe='')}"


def query_list(title: str, query_ids: Sequence[str], texts: Mapping[str, str], key: str) -> Html:
    """Return queries folded up under a title.

    Args:
        title: With their number in it.
        query_ids: Which.
        texts: By query id.
        key: Id of the list, to be linked to; "" for none.
    """
    items = [
        element("li", query_link(query_id, texts.get(query_id, "")))
        for query_id in query_ids[:LISTED]
    ]
    n_more = len(query_ids) - len(items)
    more = element("p", f"and {n_more:,} more, in the table of queries", class_="rest")
    return element(
        "details",
        element("summary", title),
        # Within, so that a link to it opens the list.
        element("ul", *items, id=key or None),
        more if n_more else None,
        class_="ids",
    )
