"""Which pairs a person is shown, in which order, and what people's labels come to.

Whoever labels sees neither what the judge said, nor the stratum or the probability, which tell it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, Literal

from ragforge.calibration.label_files import PairKey, PairText, middle_grade
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.measures.agreement import confusion, kappa, quadratic_kappa
from ragforge.records import Label, LabelSample, SampledPair

LabelOrder = Literal["random", "document"]
"""As drawn, or each batch of what was drawn by document. There is none by doubt: labels count up to
the first pair that nobody saw, and what a judge doubts tells of its grades."""
BATCH: Final = 25
"""Pairs that are ordered by document at a time: whoever stops loses at most what follows a gap in
one batch."""
Place = tuple[str, int]
"""A document, and where in it a text begins."""
REPEAT_AFTER: Final = 20
"""Pairs between the two looks at one that is shown twice: enough to forget the grade."""
_LEAST_BETWEEN: Final = 5
"""With fewer the second look would tell what is remembered, and is left out."""
FIRST_LOOK: Final = 1
SECOND_LOOK: Final = 2
DECIDING_LOOK: Final = 3
"""Of a label that settles a pair on which others differ; it leaves the own look of who settles."""


@dataclass(frozen=True, slots=True)
class LabelTask:
    """A pair to be labelled once."""

    query_id: str
    chunk_id: str
    text_sha256: str
    look: int = FIRST_LOOK
    given: tuple[int, ...] = ()
    """The grades that are to be settled, ascending; () of a pair that is not."""
    batch: int = field(default=0, compare=False)
    """Which batch of the sample it is labelled in, from 1; 0 where pairs come as drawn."""
    wording_sha256: str = field(default="", compare=False)
    """Of the question as it is shown, see `wording_digest`; "" where it is not shown yet."""

    @property
    def decides(self) -> bool:
        """Whether the label settles a pair on which others differ."""
        return self.look == DECIDING_LOOK

    @property
    def pair(self) -> PairKey:
        """The pair."""
        return PairKey(self.query_id, self.chunk_id)

    @property
    def pair_text(self) -> PairText:
        """What the label is on."""
        return PairText(self.query_id, self.text_sha256)


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair as a labeller sees it: the texts that the judge is shown, and no more."""

    task: LabelTask
    question: str
    """As it stands on its own."""
    before: tuple[str, ...]
    """What was said before a follow-up question, a line each."""
    text: str
    answer: str = ""
    """What the set expects, with its facts; "" where it is not to be shown."""


def labelling_order(
    sample: LabelSample,
    *,
    only_repeated: bool = False,
    places: Mapping[str, Place] | None = None,
) -> list[LabelTask]:
    """Return what one person is to label: the pairs in the sample's order, some a second time.

    A second look comes `REPEAT_AFTER` pairs later, or at the end; it is left out where that is
    too soon to forget the first.

    Args:
        sample: What was drawn.
        only_repeated: Whether only the pairs that are looked at twice are wanted: enough for the
            agreement of a second person with the first.
        places: Of the chunks, by which each batch of `BATCH` pairs is ordered; those without one
            come last. As drawn where None.
    """
    pairs = [pair for pair in sample.pairs if pair.twice or not only_repeated]
    if places is not None:
        pairs = _by_place(pairs, places)
    order: list[LabelTask] = []
    waiting: list[tuple[int, LabelTask]] = []
    for number, pair in enumerate(pairs):
        while waiting and waiting[0][0] + REPEAT_AFTER < number:
            order.append(waiting.pop(0)[1])
        batch = number // BATCH + 1 if places is not None else 0
        order.append(LabelTask(pair.query_id, pair.chunk_id, pair.text_sha256, batch=batch))
        if pair.twice:
            again = LabelTask(pair.query_id, pair.chunk_id, pair.text_sha256, SECOND_LOOK)
            waiting.append((number, again))
    for _, again in waiting:
        between = len(order) - order.index(_first_look(again)) - 1
        if between >= _LEAST_BETWEEN:
            order.append(again)
    last = order[0].batch if order else 0
    found = []
    for task in order:
        last = max(last, task.batch)
        found.append(replace(task, batch=last))
    return found


def _by_place(pairs: Sequence[SampledPair], places: Mapping[str, Place]) -> list[SampledPair]:
    """Return pairs with those of each batch by document, place and question."""

    def key(pair: SampledPair) -> tuple[bool, Place, str, str]:
        place = places.get(pair.chunk_id)
        return place is None, place or ("", 0), pair.query_id, pair.chunk_id

    batches = (pairs[at : at + BATCH] for at in range(0, len(pairs), BATCH))
    return [pair for batch in batches for pair in sorted(batch, key=key)]


def pair_text(of: Label | SampledPair) -> PairText:
    """Return what a label is on, or drawn for one, under whatever id it was shown."""
    return PairText(of.query_id, of.text_sha256)


def open_tasks(
    tasks: Iterable[LabelTask], labels: Iterable[Label], labeller: str
) -> list[LabelTask]:
    """Return the tasks of a labeller that have no label, not even a skip, in their order."""
    done = {(pair_text(label), label.look) for label in labels if label.labeller == labeller}
    return [task for task in tasks if (task.pair_text, task.look) not in done]


def disagreements(labels: Iterable[Label]) -> list[LabelTask]:
    """Return the pairs to which labellers gave different grades and that nobody settled."""
    by_pair: dict[PairText, list[Label]] = {}
    for label in sorted(labels, key=lambda label: (label.query_id, label.chunk_id)):
        by_pair.setdefault(pair_text(label), []).append(label)
    found = []
    for (query_id, digest), all_of in by_pair.items():
        if any(label.decides and label.grade is not None for label in all_of):
            continue
        given = _first_grades(all_of)
        if len(set(given)) > 1:
            chunk_id = all_of[0].chunk_id
            found.append(LabelTask(query_id, chunk_id, digest, DECIDING_LOOK, tuple(sorted(given))))
    return found


@dataclass(frozen=True, slots=True)
class PeoplesGrade:
    """What people's labels of one pair come to."""

    grade: int
    labellers: tuple[str, ...]
    """Whose labels count, sorted."""


def peoples_grades(labels: Iterable[Label]) -> dict[PairText, PeoplesGrade]:
    """Return one grade for each pair that somebody graded.

    A label that decides counts alone; else it is the mean of each person's first grade, rounded
    half down.
    """
    listed = list(labels)
    deciding = [label for label in listed if label.decides and label.grade is not None]
    by_pair: dict[PairText, list[Label]] = {}
    for label in (*first_graded(listed), *deciding):
        by_pair.setdefault(pair_text(label), []).append(label)
    found = {}
    for pair, all_of in by_pair.items():
        counting = [label for label in all_of if label.decides] or all_of
        grades = [label.grade for label in counting if label.grade is not None]
        names = tuple(sorted(label.labeller for label in counting))
        found[pair] = PeoplesGrade(middle_grade(grades), names)
    return found


@dataclass(frozen=True, slots=True)
class LabellerSummary:
    """What one person has labelled."""

    labeller: str
    n_graded: int
    """Pairs with a grade."""
    n_skipped: int
    """Pairs without one that were skipped."""
    n_open: int
    """Looks of the sample that are still to come."""
    median_s: float | None
    """Seconds a label; None where nobody measured."""
    n_repeated: int
    """Pairs graded at both looks."""
    n_repeated_same: int
    """Of these with the same grade."""


@dataclass(frozen=True, slots=True)
class TwoLabellers:
    """How two people agree on the pairs that both graded, at their first looks."""

    labellers: tuple[str, str]
    n_pairs: int
    n_same: int
    kappa: float | None
    """None where it is not defined: both gave one and the same grade throughout."""
    quadratic_kappa: float | None


@dataclass(frozen=True, slots=True)
class LabellingSummary:
    """How far labelling is."""

    n_pairs: int
    """Of the sample."""
    labellers: tuple[LabellerSummary, ...]
    agreement: tuple[TwoLabellers, ...]
    """Of each two that have pairs in common."""
    n_disagreements: int
    """Pairs on which labellers differ and that nobody settled."""
    n_settled: int


def summarise_labels(sample: LabelSample, labels: Sequence[Label]) -> LabellingSummary:
    """Return who labelled how much, and how people agree with each other and with themselves."""
    names = sorted({label.labeller for label in labels})
    tasks = labelling_order(sample)
    people = [
        _labeller_summary(
            name,
            [label for label in labels if label.labeller == name and not label.decides],
            len(open_tasks(tasks, labels, name)),
        )
        for name in names
    ]
    firsts = {
        name: {
            pair_text(label): label.grade
            for label in first_graded(labels)
            if label.labeller == name and label.grade is not None
        }
        for name in names
    }
    agreement = []
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            both = sorted(firsts[one].keys() & firsts[other].keys())
            if both:
                agreement.append(_two_labellers((one, other), both, firsts[one], firsts[other]))
    settled = {pair_text(label) for label in labels if label.decides}
    return LabellingSummary(
        len(sample.pairs),
        tuple(people),
        tuple(agreement),
        len(disagreements(labels)),
        len(settled),
    )


def _labeller_summary(name: str, labels: Collection[Label], n_open: int) -> LabellerSummary:
    graded = {
        look: {
            pair_text(label): label.grade
            for label in labels
            if label.look == look and label.grade is not None
        }
        for look in (FIRST_LOOK, SECOND_LOOK)
    }
    first, second = graded[FIRST_LOOK], graded[SECOND_LOOK]
    given = first.keys() | second.keys()
    repeated = first.keys() & second.keys()
    seconds = [label.seconds for label in labels if label.seconds is not None]
    return LabellerSummary(
        name,
        len(given),
        len({pair_text(label) for label in labels if label.skipped} - given),
        n_open,
        float(np.median(seconds)) if seconds else None,
        len(repeated),
        sum(first[pair] == second[pair] for pair in repeated),
    )


def _two_labellers(
    names: tuple[str, str],
    both: Sequence[PairText],
    one: dict[PairText, int],
    other: dict[PairText, int],
) -> TwoLabellers:
    counts = confusion([one[pair] for pair in both], [other[pair] for pair in both])
    values = [float(of(counts)) for of in (kappa, quadratic_kappa)]
    plain, quadratic = (None if np.isnan(value) else value for value in values)
    n_same = sum(one[pair] == other[pair] for pair in both)
    return TwoLabellers(names, len(both), n_same, plain, quadratic)


def first_graded(labels: Iterable[Label]) -> list[Label]:
    """Return of each labeller and pair the first look with a grade: a skip before it is none.

    Labels that settle a pair are of no look.
    """
    found: dict[tuple[str, PairText], Label] = {}
    for label in sorted(labels, key=lambda label: label.look):
        if label.grade is not None and not label.decides:
            found.setdefault((label.labeller, pair_text(label)), label)
    return list(found.values())


def _first_grades(labels: Iterable[Label]) -> list[int]:
    return [label.grade for label in first_graded(labels) if label.grade is not None]


def _first_look(again: LabelTask) -> LabelTask:
    return LabelTask(again.query_id, again.chunk_id, again.text_sha256)


@dataclass(slots=True)
class TakenLabels:
    """What became of the rows of a file."""

    n_new: int = 0
    n_known: int = 0
    """Taken in before."""
    n_changed: int = 0
    """Labels that took the place of another by the same person; only where that was asked for."""
    n_standing: int = 0
    """Labels that differ from what the same person said before, which stands."""
    n_open: int = 0
    """Rows on which nobody said anything."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows that cannot be used, by the reason."""
    examples: dict[str, str] = field(default_factory=dict)
    """Where the first of each reason stands."""
    n_judged: int = 0
    """People's grades that went into the set's judgments."""
    n_moved: int = 0
    """Of these, where a judge's grade gave way, and is in `label_checks.jsonl`."""
    n_people_stand: int = 0
    """Grades of people in the set that differ from the labels, and stand."""
    n_former: int = 0
    """Labels of another wording of their question; they are kept, and do not count."""
    n_waiting: int = 0
    """Graded pairs whose text the set does not have; their labels are kept, and wait for it."""
    are_binary: bool = False
    """Whether the labels that are there seem to tell relevant from not: none is above 1."""
