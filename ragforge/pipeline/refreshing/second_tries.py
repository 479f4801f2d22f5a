"""Checks that gave nothing in an earlier refresh, and are done again by this one."""

from collections.abc import Iterable

from ragforge.llm.store import CallStore
from ragforge.records import Failure
from ragforge.stages.runner import recorded


def try_again(store: CallStore, failures: Iterable[Failure]) -> None:
    """Put the replies of failed checks aside, so that they are asked for again.

    What was asked for again since then stays, so that a run that was stopped buys nothing twice.

    Args:
        store: Has the replies.
        failures: Of the published version.
    """
    for failure in failures:
        if failure.what != "recheck" or not failure.call_keys:
            continue
        last = store.get(failure.call_keys[-1])
        if last and failure.raw in (recorded(last.text), recorded(last.refusal)):
            store.forget(failure.call_keys)
