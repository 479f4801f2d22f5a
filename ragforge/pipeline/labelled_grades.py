"""People's labels as grades of the set: each on its text, under the ids that the text has now."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Final

from ragforge.calibration.label_files import PairKey, PairText
from ragforge.calibration.label_tasks import PeoplesGrade, TakenLabels, pair_text, peoples_grades
from ragforge.calibration.text_places import TextPlaces
from ragforge.calibration.worded_labels import worded_labels
from ragforge.deferred import dataclass
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import key_of, pair_and_judge
from ragforge.records import (
    Judgment,
    Label,
    LabelSample,
    Provenance,
)

_PROTOCOL: Final = "sample {}"
"""Of grades that labels gave, with the name of the calibration."""


def put_into_judgments(dataset: Dataset, files: CalibrationFiles, taken: TakenLabels) -> None:
    """Make the labels the grades of people in the set.

    Labels of another wording of their question do not count. A label goes where its text is now.
    Where the set does not have the text it waits, and what else the set has from it stays. A grade
    that a person gave otherwise stands, also one by labels of another calibration. A judge's gives
    way, and goes to `label_checks.jsonl`, where the calibration finds it. Where all labels of a
    drawn pair were taken back, so is the grade that they gave, and the judge's returns.
    """
    with dataset.alone():
        labels = worded_labels(dataset, files)
        taken.n_former = len(labels.former)
        _Labelled(dataset, files.sample(), labels.now, files.name).put(taken)


def are_in_judgments(dataset: Dataset, files: CalibrationFiles) -> bool:
    """Whether the set has grades by the labels of a calibration."""
    return any(_is_by_labels(one, files.name) for one in dataset.judgments())


def _is_by_labels(judgment: Judgment, name: str) -> bool:
    by = judgment.provenance
    is_of_chunk = judgment.source == "human" and judgment.level == "chunk"
    return is_of_chunk and by is not None and by.protocol == _PROTOCOL.format(name)


@dataclass(slots=True)
class _Labelled:
    """The labels of a calibration, and the grades that the set has from them."""

    dataset: Dataset
    sample: LabelSample
    labels: Sequence[Label]
    name: str
    _judgments: Sequence[Judgment] = field(init=False)
    _graded: Mapping[PairText, PeoplesGrade] = field(init=False)
    _places: Mapping[PairText, tuple[str, ...]] = field(init=False)
    """Of labelled and drawn pairs."""
    _left: set[PairKey] = field(init=False)
    """Ids that the set no longer has, of texts that are found under others."""

    def __post_init__(self) -> None:
        self._judgments = self.dataset.judgments()
        self._graded = peoples_grades(self.labels)
        ids: dict[PairText, dict[str, None]] = {}
        for drawn in self.sample.pairs:
            chunk_ids = (drawn.chunk_id, *drawn.same_text)
            ids.setdefault(pair_text(drawn), {}).update(dict.fromkeys(chunk_ids))
        for label in self.labels:
            ids.setdefault(pair_text(label), {})[label.chunk_id] = None
        mine = [one for one in self._judgments if self._is_mine(one)]
        named = {chunk_id for of in ids.values() for chunk_id in of}
        places = TextPlaces(self.dataset, named | {one.chunk_id for one in mine})
        places.look_for((ids[pair], pair.text_sha256) for pair in self._graded)
        found = {pair: dict.fromkeys(places.of(of, pair.text_sha256)) for pair, of in ids.items()}
        for one in mine:
            pair = PairText(one.query_id, places.digest(one.chunk_id))
            if pair in found:
                # The text came back under an id that nobody was shown.
                found[pair][one.chunk_id] = None
        self._places = {pair: tuple(of) for pair, of in found.items()}
        self._left = {
            PairKey(pair.query_id, chunk_id)
            for pair in self._graded
            for chunk_id in ids[pair]
            if self._places[pair]
            and chunk_id not in self._places[pair]
            and not places.digest(chunk_id)
        }

    def put(self, taken: TakenLabels) -> None:
        """Write what the labels say into the set, and count it."""
        given = self._given(taken)
        back = self._taken_back() | self._left
        kept: list[Judgment] = []
        moved: list[Judgment] = []
        before: dict[PairKey, Judgment] = {}
        n_back = 0
        for old in self._judgments:
            pair = PairKey(*key_of(old))
            new = given.get(pair)
            if self._is_mine(old) and (new is not None or pair in back):
                before[pair] = old
                n_back += new is None
                if new is not None:
                    given[pair] = _with_what_followed(old, new)
            elif new is None or old.level != "chunk":
                kept.append(old)
            elif old.source == "human":
                taken.n_people_stand += old.grade != new.grade
                del given[pair]
                kept.append(old)
            else:
                moved.append(old)
        grades = {pair: old.grade for pair, old in before.items()}
        taken.n_judged = sum(grades.get(pair) != new.grade for pair, new in given.items())
        taken.n_moved = len(moved)
        # Who graded counts too, where the grade stays what it was.
        if n_back or any(before.get(pair) != new for pair, new in given.items()):
            returned = self._exchange_checks(moved, before.keys() - given.keys() - self._left)
            self.dataset.write_judgments([*kept, *given.values(), *returned])

    def _given(self, taken: TakenLabels) -> dict[PairKey, Judgment]:
        """Return people's grades of all labelled texts that the set has."""
        given: dict[PairKey, Judgment] = {}
        for pair, found in self._graded.items():
            chunk_ids = self._places[pair]
            taken.n_waiting += not chunk_ids
            by = Provenance(
                kind="human", model=", ".join(found.labellers), protocol=_PROTOCOL.format(self.name)
            )
            for chunk_id in chunk_ids:
                given[PairKey(pair.query_id, chunk_id)] = Judgment(
                    query_id=pair.query_id,
                    chunk_id=chunk_id,
                    grade=found.grade,
                    source="human",
                    copied_from=chunk_ids[0] if chunk_id != chunk_ids[0] else "",
                    provenance=by,
                )
        return given

    def _taken_back(self) -> set[PairKey]:
        """Return where drawn pairs are that have no grade by labels any more.

        A pair that people had graded before it was drawn, and that nobody labelled since, never
        had one.
        """
        seen = {pair_text(label) for label in self.labels}
        open_pairs = [
            pair_text(pair)
            for pair in self.sample.pairs
            if pair_text(pair) not in self._graded
            and (pair_text(pair) in seen or not pair.labelled_before)
        ]
        return {
            PairKey(pair.query_id, chunk_id)
            for pair in open_pairs
            for chunk_id in self._places[pair]
        }

    def _exchange_checks(
        self, moved: Collection[Judgment], back: Collection[PairKey]
    ) -> list[Judgment]:
        """Put judges' grades beside those of people, and return those of pairs without any."""
        checks = {pair_and_judge(old): old for old in (*self.dataset.label_checks(), *moved)}
        returned = {key_of(check): check for check in checks.values() if key_of(check) in back}
        if moved or returned:
            self.dataset.write_label_checks(
                check for check in checks.values() if check is not returned.get(key_of(check))
            )
        return [*returned.values()]

    def _is_mine(self, judgment: Judgment) -> bool:
        return _is_by_labels(judgment, self.name)


def _with_what_followed(old: Judgment, new: Judgment) -> Judgment:
    """Return a grade by labels with what a person gave to quotes that came to its chunk since."""
    if old.grade == new.grade:
        return old.model_copy(update={"provenance": new.provenance, "copied_from": new.copied_from})
    return new.model_copy(update={"quote_grades": old.quote_grades})
