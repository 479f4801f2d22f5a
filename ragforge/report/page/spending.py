"""The part of the page about cost and time."""

from ragforge.report.overview_tables import latencies
from ragforge.report.page.markup import Html, element, join
from ragforge.report.page.table import table_block
from ragforge.report.summary import Summary
from ragforge.report.tables import spending

_NOT_TIMED = "No run was timed: latencies are known of runs that `ragforge retrieve` made."


def spending_block(summary: Summary) -> Html:
    """Return what the set took, and how long each run did."""
    timed = table_block(latencies(summary))
    return join(
        [
            table_block(spending(summary.making.spent)),
            timed or (element("p", _NOT_TIMED, class_="empty") if summary.runs else None),
        ]
    )
