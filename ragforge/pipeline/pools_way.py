"""Judging runs the way the pools of a set were judged, so that their grades go together."""

import re

from ragforge.config import JudgeSettings, Settings
from ragforge.files.dataset import Dataset
from ragforge.observe import Event, Observer
from ragforge.pipeline.backend import Mode

_BATCHES = re.compile(r"batch (\d+) x (\d+)")


def as_the_pools(dataset: Dataset, settings: Settings, observer: Observer, mode: Mode) -> Settings:
    """Return the settings with the batches that the same model judged the pools of the set in.

    Only where nothing is said about how to judge, and grades of another way are neither replaced
    nor to be mixed: half a set graded in another way would look like a difference of systems.
    """
    how = settings.judge
    said_nothing = how == JudgeSettings(depth=how.depth, split=how.split)
    if not said_nothing or mode.again or mode.mix or not (dataset.files / "pool.jsonl").exists():
        return settings
    for judgment in dataset.each_judgment():
        by = judgment.provenance
        found = _BATCHES.match(by.protocol) if by and by.model == settings.model.name else None
        if found:
            batch, permutations = map(int, found.groups())
            observer(
                Event(
                    "note",
                    message=f"judged like the pools of this set, {found[0]}; --again judges all "
                    "of them anew, one by one",
                )
            )
            update = {"batch": batch, "permutations": permutations}
            return settings.model_copy(update={"judge": how.model_copy(update=update)})
    return settings
