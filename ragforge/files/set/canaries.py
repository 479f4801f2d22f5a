"""The canaries of a dataset: `canaries.jsonl`, a ledger with times, so it is not in the manifest.

Lines are only ever added. What is no canary, or was changed since it was written, is passed over
with a note.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass, hashlib
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import appending, ledger_lines
from ragforge.records import Canary, Provenance
from ragforge.records.canaries import before_drift
from ragforge.records.model import pydantic

FILE: Final = "canaries.jsonl"
_ID_DIGITS: Final = 16
REMEDY: Final = (
    "judge all anew (`ragforge judge --again`), then `ragforge judge canary --anew`; where there "
    "are labels of people, have their pairs graded (`ragforge judge --on-labels`) and calibrate "
    "again (`ragforge calibrate sample --again`)"
)
"""What to do after a drift. The first step asks live: replies of before are not used."""


@dataclass(frozen=True, slots=True)
class Canaries:
    """The canaries of a dataset, in the order in which they were added."""

    all: tuple[Canary, ...] = ()
    notes: tuple[str, ...] = ()
    """What was passed over and why, one sentence a line."""

    def of(self, judge: Provenance, temperature: float) -> list[Canary]:
        """Return those of a judge, before and since any drift, oldest first.

        At another temperature it is another one.
        """
        return [each for each in self._of(judge) if each.temperature == temperature]

    def drifted(self) -> tuple[Canary, ...]:
        """Return the last canary of each judge that is not the judge of its first one.

        One that is as steady as the first, or begins anew, clears its judge.
        """
        last = {_judge_key(each): each for each in self.all}
        return tuple(each for each in last.values() if each.signs)

    def last_drift(self, judge: Provenance) -> Canary | None:
        """Return the canary since which a judge is another one than before; None for none.

        A steady one takes back what was found since its first; one that begins anew does not. A
        drift at one temperature is one at all.
        """
        begun: dict[float, Canary | None] = {}
        now: dict[float, Canary | None] = {}
        for each in self._of(judge):
            at, known = each.temperature, now.get(each.temperature)
            if not each.first_id:
                begun[at] = known
            elif not each.signs:
                now[at] = begun.get(at)
            elif known is begun.get(at):
                now[at] = each
        found = [each for each in now.values() if each is not None]
        return max(found, key=self.all.index, default=None)

    def stale(self) -> Mapping[str, Canary]:
        """Return the canary that found a drift by the digest of the grades calibrated before.

        One that is as steady as the first takes it back: the judge of before is there again. One
        that begins anew does not.
        """
        found: dict[str, Canary] = {}
        for each in self.all:
            bound = set(each.calibrations.values())
            if each.signs:
                found |= dict.fromkeys(bound, each)
            elif each.first_id:
                found = {
                    digest: old
                    for digest, old in found.items()
                    if digest not in bound or old.first_id != each.first_id
                }
        return found

    def _of(self, judge: Provenance) -> Iterator[Canary]:
        wanted = before_drift(judge)
        return (each for each in self.all if same_judge(before_drift(each.judge), wanted))


def _judge_key(canary: Canary) -> tuple[object, ...]:
    judge = before_drift(canary.judge)
    return judge.model, judge.prompt_sha256, judge.protocol, canary.temperature


def same_judge(one: Provenance, other: Provenance) -> bool:
    """Whether two names go for one judge: model, prompt, and how it is asked."""
    return (one.model, one.prompt_sha256, one.protocol) == (
        other.model,
        other.prompt_sha256,
        other.protocol,
    )


def read_canaries(dataset: Dataset) -> Canaries:
    """Return the canaries of a dataset; none where there is no ledger.

    Raises:
        DataError: The file is there and cannot be read.
    """
    path = dataset.home / FILE
    by_id: dict[str, Canary] = {}
    notes = []
    for number, line in enumerate(ledger_lines(path), start=1):
        if line.strip():
            try:
                canary = Canary.model_validate_json(line)
            except pydantic.ValidationError:
                notes.append(_passed_over(path, number, "is no whole line of a canary"))
                continue
            if canary.canary_id == content_id(canary):
                by_id.setdefault(canary.canary_id, canary)
            else:
                notes.append(_passed_over(path, number, "was changed by hand"))
    return Canaries(tuple(by_id.values()), tuple(notes))


def add_canary(dataset: Dataset, canary: Canary) -> Canary:
    """Add a canary under the id that its contents give it, and return it.

    Raises:
        DataError: The file cannot be written.
    """
    named = canary.model_copy(update={"canary_id": content_id(canary)})
    with appending(dataset.home, FILE) as ledger:
        ledger.append([named])
    return named


def stale_warning(dataset: Dataset, judge: Provenance, grades_sha256: str) -> str:
    """Return a note that a calibration is stale; "" where it is not.

    Args:
        dataset: It belongs to.
        judge: It is bound to.
        grades_sha256: Of the grades that it is bound to.
    """
    canary = read_canaries(dataset).stale().get(grades_sha256)
    if canary is None or not same_judge(canary.judge, judge):
        return ""
    return (
        f"stale: {judge.model} drifted by its canary of {canary.at[:10]} "
        f"({', '.join(canary.signs)}). This corrects grades that it gave before, and none that it "
        f"gives now: {REMEDY}"
    )


def content_id(canary: Canary) -> str:
    """Return the id that the contents of a canary give it."""
    content = canary.model_dump_json(exclude={"canary_id"}).encode()
    return hashlib.sha256(content).hexdigest()[:_ID_DIGITS]


def _passed_over(path: Path, number: int, reason: str) -> str:
    return f"{path}:{number}: {reason}; passed over"
