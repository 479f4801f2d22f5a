"""What people decided about the queries of a dataset, and when: `reviews.jsonl`, a ledger.

It has times, so it is not in the manifest. Lines are only ever added; what is no whole line of it
is passed over.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import appending, ledger_lines
from ragforge.records import Query, ReviewEvent
from ragforge.records.model import pydantic

FILE: Final = "reviews.jsonl"


def add_reviews(dataset: Dataset, events: Iterable[ReviewEvent]) -> None:
    """Add lines, and wait until they are on the disk.

    Raises:
        DataError: The file cannot be written.
    """
    with appending(dataset.home, FILE) as ledger:
        ledger.append(events)


def undecided_states(dataset: Dataset) -> Mapping[str, Query]:
    """Return the queries that people decided about as they stood before, by id.

    Those are missing of which somebody decided before there was a ledger: nothing tells how they
    stood.

    Raises:
        DataError: The file is there and cannot be read.
    """
    states: dict[str, Query] = {}
    for line in ledger_lines(dataset.home / FILE):
        try:
            event = ReviewEvent.model_validate_json(line)
        except pydantic.ValidationError:
            continue
        if event.decision == "undecided":
            states.pop(event.query_id, None)
        else:
            states.setdefault(event.query_id, event.before)
    return {
        query_id: query
        for query_id, query in states.items()
        if query.reviewed is None and query.pinned is None
    }
