"""Which labels count: those on drawn pairs, as far as the sample is labelled without a gap."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median

from ragforge.calibration.label_files import PairText
from ragforge.calibration.text_places import TextPlaces
from ragforge.calibration.worded_labels import WordedLabels
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.files.set.dataset import Dataset
from ragforge.measures.agreement import N_GRADES, confusion, kappa
from ragforge.records import Judgment, Label, LabelSample, SampledPair
from ragforge.records.calibrations import LabelCounts, LabellerAgreement


@dataclass(frozen=True, slots=True)
class UsedLabels:
    """The labels that count."""

    grades: Mapping[PairText, tuple[int, ...]]
    """One of each labeller, or the one that settles a pair."""
    counts: LabelCounts
    agreement: tuple[LabellerAgreement, ...]
    first_looks: Mapping[str, Mapping[PairText, int]]
    """What each labeller gave at first, by name; also on pairs that do not count."""

    @property
    def sha256(self) -> str:
        """What tells these labels from others."""
        rows = [[*pair, *grades] for pair, grades in sorted(self.grades.items())]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def use_labels(
    sample: LabelSample, worded: WordedLabels, judgments: Iterable[Judgment], dataset: Dataset
) -> UsedLabels:
    """Return which labels count.

    Whoever labels in another order than that of the sample, or picks, makes a sample of which
    nobody knows the probabilities. So labels count up to the first pair that nobody saw. What
    people had graded before it was drawn counts in front of a label that was given since: how far
    such pairs alone reach hangs on which they are. All count where no pair is left.

    Args:
        sample: What was drawn.
        worded: All labels there are.
        judgments: Of the set: people's grades of drawn pairs count where nobody labelled these.
        dataset: Whose chunks are looked up.
    """
    labels = worded.now
    pairs = {PairText(pair.query_id, pair.text_sha256): pair for pair in sample.pairs}
    given: dict[PairText, list[Label]] = {}
    n_not_drawn = 0
    for label in labels:
        pair = PairText(label.query_id, label.text_sha256)
        if pair in pairs:
            given.setdefault(pair, []).append(label)
        else:
            n_not_drawn += 1
    existing, n_by_hand = _by_people(judgments, sample.pairs)
    reached = _reached(sample.pairs, given, existing)
    grades: dict[PairText, tuple[int, ...]] = {}
    n_existing = 0
    for pair in list(pairs)[:reached]:
        found = _grades(given.get(pair, ()))
        if not found and pair not in given and pair in existing:
            found = existing[pair]
            n_existing += 1
        if found:
            grades[pair] = found
    seen = list(pairs)[reached:]
    counts = LabelCounts(
        n_used=len(grades),
        n_existing=n_existing,
        n_skipped=reached - len(grades),
        n_open=sum(pair not in given and pair not in existing for pair in seen),
        n_beyond=sum(bool(_grades(given.get(pair, ()))) for pair in seen),
        n_not_drawn=n_not_drawn,
        n_former=len(worded.former),
        n_vanished=_n_vanished(labels, dataset),
        n_by_hand=n_by_hand,
        seconds=_median(label.seconds for label in labels),
        labellers=dict(sorted(Counter(label.labeller for label in labels).items())),
    )
    looks = _looks(labels)
    firsts = {name: of_look for (name, look), of_look in looks.items() if look == 1}
    return UsedLabels(grades, counts, _agreement(looks), firsts)


def _reached(
    pairs: Sequence[SampledPair],
    given: Mapping[PairText, object],
    existing: Mapping[PairText, object],
) -> int:
    """Return up to which of the drawn pairs labels count; see `use_labels`."""
    reached = 0
    for n, pair in enumerate(pairs, 1):
        key = PairText(pair.query_id, pair.text_sha256)
        if key not in given and key not in existing:
            return reached
        if key in given and not pair.labelled_before:
            reached = n
    return len(pairs)


def _grades(labels: Iterable[Label]) -> tuple[int, ...]:
    """Return the grade that settles a pair, else the first look of each labeller who graded it.

    Whoever graded a text under two ids, and differently, has two.
    """
    first: dict[tuple[str, str], Label] = {}
    for label in sorted(labels, key=lambda label: (label.labeller, label.look)):
        if label.grade is not None and label.decides:
            return (label.grade,)
        if label.grade is not None:
            first.setdefault((label.labeller, label.chunk_id), label)
    return tuple(label.grade for label in first.values() if label.grade is not None)


def _by_people(
    judgments: Iterable[Judgment], pairs: Iterable[SampledPair]
) -> tuple[dict[PairText, tuple[int, ...]], int]:
    """Return people's grades of drawn pairs in the set, and how many are on others."""
    drawn = {
        (pair.query_id, chunk_id): PairText(pair.query_id, pair.text_sha256)
        for pair in pairs
        for chunk_id in (pair.chunk_id, *pair.same_text)
    }
    found: dict[PairText, tuple[int, ...]] = {}
    n_others = 0
    for item in judgments:
        if item.source != "human" or item.grade is None:
            continue
        pair = drawn.get((item.query_id, item.chunk_id))
        if pair is None:
            n_others += 1
        else:
            found[pair] = (*found.get(pair, ()), item.grade)
    return found, n_others


def _n_vanished(labels: Sequence[Label], dataset: Dataset) -> int:
    if not labels or not dataset.chunks_path.exists():
        return 0
    places = TextPlaces(dataset, (label.chunk_id for label in labels))
    return sum(not places.has(label.chunk_id) for label in labels)


def _median(seconds: Iterable[float | None]) -> float | None:
    measured = [value for value in seconds if value is not None]
    return median(measured) if measured else None


def _looks(labels: Iterable[Label]) -> dict[tuple[str, int], dict[PairText, int]]:
    """Return grades by labeller and look, 1 or 2; those that settle a pair are nobody's own."""
    looks: dict[tuple[str, int], dict[PairText, int]] = {}
    for label in labels:
        if label.grade is not None and not label.decides:
            of_look = looks.setdefault((label.labeller, min(label.look, 2)), {})
            of_look[PairText(label.query_id, label.text_sha256)] = label.grade
    return looks


def _agreement(
    looks: Mapping[tuple[str, int], Mapping[PairText, int]],
) -> tuple[LabellerAgreement, ...]:
    """Return how each two labellers agree, and each with the second look."""
    names = sorted({name for name, _ in looks})
    couples = [((a, 1), (b, 1)) for a, b in combinations(names, 2)]
    couples += [((name, 1), (name, 2)) for name in names]
    found = []
    for a, b in couples:
        mine, theirs = looks.get(a, {}), looks.get(b, {})
        both = sorted(mine.keys() & theirs.keys())
        if both:
            found.append(_agreed(a[0], b[0], [(mine[pair], theirs[pair]) for pair in both]))
    return tuple(found)


def _agreed(name: str, other: str, grades: Sequence[tuple[int, int]]) -> LabellerAgreement:
    mine, theirs = np.array(grades, dtype=np.intp).T
    value = float(kappa(confusion(mine, theirs, N_GRADES)))
    return LabellerAgreement(
        labeller=name,
        other=other,
        n=len(grades),
        n_same=int((mine == theirs).sum()),
        kappa=None if np.isnan(value) else value,
    )
