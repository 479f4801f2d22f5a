"""What a subject and its baseline have in common, measured alike."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ragforge.files.dataset import Dataset
from ragforge.files.selecting import recall
from ragforge.measures.strata import Design
from ragforge.pipeline.gating.subjects import Subject
from ragforge.pipeline.yardsticks import yardstick_of
from ragforge.records import Baseline, MixedGrades
from ragforge.report.history.common_items import CommonItem, common_items, mixed_of
from ragforge.report.one_judge import Reading
from ragforge.report.shown import plural


class AtWorst(NamedTuple):
    """What an item that cannot be compared could have come to: the drop is at its largest."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class Shared:
    """The items that a subject and its baseline have in common, unchanged."""

    before: Mapping[str, Mapping[str, float]]
    """Query id to measure to value of the baseline, on the grades of now, where that is known."""
    now: Mapping[str, Mapping[str, float]]
    """The same queries now."""
    known: Mapping[str, Mapping[str, float]]
    """All queries of the baseline; where judgments failed, with the most that they could be."""
    left_out: Mapping[str, Mapping[str, AtWorst]]
    """Measure to the items in common that cannot be compared by it."""
    n_changed: int
    """Queries of both whose items differ."""
    n_new: int
    """Queries without a value in the baseline."""
    n_rescored: int
    """Items on which the baseline's rankings were scored again, as their grades changed."""
    has_same_rankings: bool
    """Whether it ranks (or answers) all as the baseline did."""
    is_identical: bool
    """Whether nothing failed besides that could have come out otherwise: of runs no retrieval, as
    a failed judgment moves the values of one ranking equally."""
    alike: Mapping[str, frozenset[str]]
    """Query id to the measures that see one and the same ranking; see `CommonItem`."""
    is_bounded: bool = True
    """Whether what is left out counts at its worst."""
    mixed: MixedGrades | None = None
    """What keeps items from being compared on the grades of one judge."""
    design: Design | None = None
    """What the items in common are a sample of; None where neither side was measured on one."""
    dataset: str = ""
    """Where it is, for what is to be done about it."""

    @property
    def n_gone(self) -> int:
        """Queries of the baseline without a value now."""
        return len(self.known) - len(self.now) - self.n_changed

    @property
    def told(self) -> str:
        """How the items of two evaluations relate, in words."""
        counts = {"changed": self.n_changed, "new": self.n_new, "gone or failed": self.n_gone}
        told = [f"{count:,} {what}" for what, count in counts.items() if count]
        if not told:
            told = ["what differs has no value"]
        return f"{plural(len(self.now), 'item')} the same, {', '.join(told)}"

    def n_compared(self, measures: Iterable[str]) -> int:
        """Return how many items have a value in both, by the measure for which fewest have one."""
        counts = (sum(name in of for of in self.before.values()) for name in measures)
        return min(counts, default=len(self.before))

    def n_left_out(self, measures: Iterable[str]) -> int:
        """Return how many items cannot be compared, by the measure for which most cannot."""
        return max((len(self.left_out.get(name, ())) for name in measures), default=0)


def shared_items(
    dataset: Dataset, subject: Subject, before: Baseline, *, is_bounded: bool = True
) -> Shared:
    """Return what a subject and a baseline have in common: the same query, its item unchanged.

    Args:
        dataset: Says which chunks there are.
        subject: As it is now.
        before: The baseline.
        is_bounded: Count what is left out at its worst.
    """
    yardstick = None
    if subject.run is not None:
        yardstick = yardstick_of(dataset, subject.run)
    found = common_items(before, subject.baseline, yardstick)
    of_now = {item.query_id: item for item in subject.baseline.items}
    same = {key: item for key, item in found.items() if key in of_now}
    stored = {item.query_id: item.values for item in before.items}
    in_both = of_now.keys() & stored.keys()
    design = _design(dataset, subject, before)
    # What a sample ranks alike may differ in what was not drawn.
    has_same_rankings, is_identical = (False, False) if design else _identity(subject, before)
    return Shared(
        before={key: _values(item.before) for key, item in same.items()},
        now={key: {**of_now[key].values, **_values(item.now)} for key, item in same.items()},
        known={key: _highest(found, key, values) for key, values in stored.items()},
        left_out=_left_out(found),
        n_changed=len(in_both) - len(same),
        n_new=len(of_now) - len(in_both),
        n_rescored=sum(item.is_rescored for item in same.values()),
        has_same_rankings=has_same_rankings,
        is_identical=is_identical,
        alike={key: item.alike for key, item in same.items() if item.alike},
        is_bounded=is_bounded,
        mixed=mixed_of(found, yardstick),
        design=design,
        dataset=str(dataset.path),
    )


def _design(dataset: Dataset, subject: Subject, before: Baseline) -> Design | None:
    """Return what the items in common are a sample of: by the subject, else by the baseline."""
    if subject.design is not None:
        return subject.design
    selection = before.evaluation.selection
    if selection is None or selection.sample is None:
        return None
    design = recall(dataset.accepted_queries(), selection).design
    assert design is not None
    return design.within(item.query_id for item in subject.baseline.items)


def _identity(subject: Subject, before: Baseline) -> tuple[bool, bool]:
    old, new = before.evaluation, subject.evaluation
    is_graded_alike = old.digests.judgments == new.digests.judgments
    is_same = old.digests.rankings == new.digests.rankings
    # A ranking has one value by the grades of now; the same answer may have been graded anew.
    has_same_rankings = is_same and (is_graded_alike or subject.run is not None)
    # Where the rankings are the same and none failed now, none had failed in the baseline.
    has_failed = old.n_failed != new.n_failed
    if subject.run is not None:
        has_failed = bool(subject.run.scores.failed)
    return has_same_rankings, has_same_rankings and not has_failed


def _values(readings: Mapping[str, Reading]) -> dict[str, float]:
    return {name: of.value for name, of in readings.items() if of.value is not None}


def _highest(
    found: Mapping[str, CommonItem], query_id: str, stored: Mapping[str, float]
) -> dict[str, float]:
    readings = found[query_id].before if query_id in found else {}
    return {**stored, **{name: of.high for name, of in readings.items()}}


def _left_out(found: Mapping[str, CommonItem]) -> dict[str, dict[str, AtWorst]]:
    left_out: dict[str, dict[str, AtWorst]] = {}
    for query_id, item in found.items():
        for name, now in item.now.items():
            before = item.before[name]
            if before.value is None or now.value is None:
                left_out.setdefault(name, {})[query_id] = AtWorst(before.high, now.low)
    return left_out
