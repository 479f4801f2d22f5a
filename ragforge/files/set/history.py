"""The history of a dataset: a line per evaluation, and the values of its items beside it.

`history.jsonl` is a ledger with times, so it is not in the manifest. Lines are only ever added;
what is no evaluation, or was changed since it was written, is passed over with a note.
"""

import codecs
import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import IO, Final

from ragforge.deferred import dataclass, hashlib, pattern
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import wait_for_lock
from ragforge.files.record_files import explain
from ragforge.measures import parse_measure
from ragforge.records import BridgeMean, Evaluation, MeasuredMean, Record
from ragforge.records.model import pydantic

_NOISE: Final = 1e-9
"""By which sums of floats may miss one another."""

FILE: Final = "history.jsonl"
LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of a line that are read; an evaluation takes some thousands."""
ID_DIGITS: Final = 16
"""Hexadecimal digits of an evaluation's id."""
_NOTES: Final = 10
_ID_FIELD: Final = pattern(rb'\{"evaluation_id":"([0-9a-f]{16})",')


def impossibility(evaluation: Evaluation) -> str:
    """Return which number of an evaluation is impossible and why; "" where none is."""
    return next(_impossible(evaluation), "")


def _impossible(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.n_failed > evaluation.n_queries:
        yield f"n_failed {evaluation.n_failed:,} is more than its {evaluation.n_queries:,} queries"
    if evaluation.n_holes > evaluation.n_retrieved:
        retrieved = f"{evaluation.n_retrieved:,} retrieved chunks"
        yield f"n_holes {evaluation.n_holes:,} is more than its {retrieved}"
    for measure, mean in evaluation.measures.items():
        yield from (
            f"{measure}: {problem}" for problem in _impossible_mean(mean, _highest(measure))
        )
    for measure, bridge in evaluation.bridge.items():
        yield from (
            f"bridge of {measure}: {problem}" for problem in _impossible_bridge(bridge, measure)
        )


def _impossible_mean(measured: MeasuredMean, highest: float | None) -> Iterator[str]:
    if measured.mean is None:
        return
    yield from _in_range("mean", measured.mean, highest)
    yield from _between("mean", measured.mean, measured.low, measured.high)
    yield from _between("mean", measured.mean, measured.least, measured.most)


def _impossible_bridge(bridge: BridgeMean, measure: str) -> Iterator[str]:
    highest = _highest(measure)
    yield from _in_range("before", bridge.before, highest)
    yield from _in_range("now", bridge.now, highest)
    yield from _between("diff", bridge.diff, bridge.now - bridge.before, bridge.now - bridge.before)
    yield from _between("diff", bridge.diff, bridge.low, bridge.high)


def _in_range(name: str, value: float, highest: float | None) -> Iterator[str]:
    if value < -_NOISE or (highest is not None and value > highest + _NOISE):
        ends = "0 or more" if highest is None else f"0 to {highest:g}"
        yield f"{name} {value:g} is not in its range, {ends}"


def _between(name: str, value: float, low: float | None, high: float | None) -> Iterator[str]:
    if (low is not None and value < low - _NOISE) or (high is not None and value > high + _NOISE):
        yield f"{name} {value:g} is not between {_in_words(low)} and {_in_words(high)}"


def _in_words(end: float | None) -> str:
    return "nothing" if end is None else f"{end:g}"


def _highest(measure: str) -> float | None:
    """Return the greatest value of a measure; None where there is none, or it is not known."""
    from ragforge.measures.formulas import FORMULAS

    try:
        return None if FORMULAS[parse_measure(measure).name].unbounded else 1.0
    except UsageError:  # Of a later version.
        return None


@dataclass(frozen=True, slots=True)
class History:
    """The evaluations of a dataset, in the order in which they were added."""

    evaluations: tuple[Evaluation, ...] = ()
    notes: tuple[str, ...] = ()
    """What was passed over and why, one sentence a line."""

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs, sorted."""
        return tuple(sorted({item.run for item in self.evaluations}))

    def of_run(self, run: str) -> list[Evaluation]:
        """Return the evaluations of a run, oldest first."""
        return [item for item in self.evaluations if item.run == run]

    def find(self, evaluation_id: str) -> Evaluation | None:
        """Return an evaluation by its id; None where it is not there."""
        return next((e for e in self.evaluations if e.evaluation_id == evaluation_id), None)


def content_id(evaluation: Evaluation) -> str:
    """Return the id that the contents of an evaluation give it."""
    return _id_of(evaluation.model_dump_json(exclude={"evaluation_id"}).encode())


def read_history(dataset_path: Path) -> History:
    """Return the history of the dataset in a directory; an empty one where there is none.

    Lines that are torn, are no evaluations, whose numbers cannot be, or whose id does not fit what
    they say (they were changed by hand) are passed over with a note. A line that comes twice counts
    once. The order is that of the file, whatever the clock said.

    Raises:
        DataError: The file is there and cannot be read.
    """
    path = dataset_path / FILE
    try:
        with path.open("rb") as stream:
            return _read(path, stream)
    except FileNotFoundError:
        return History()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def written_ids(dataset_path: Path) -> set[str]:
    """Return the ids that the lines of a history begin with, those that are passed over too.

    Raises:
        DataError: The file is there and cannot be read.
    """
    path = dataset_path / FILE
    try:
        with path.open("rb") as stream:
            matches = map(_ID_FIELD.match, _lines(stream))
            return {match.group(1).decode() for match in matches if match}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


@dataclass(slots=True)
class Ledger:
    """A file of lines that are only ever added, open for adding; made by `appending`."""

    path: Path
    _descriptor: int

    def append(self, records: Iterable[Record]) -> bool:
        """Add lines in one write, and wait until they are on the disk.

        Returns:
            Whether the last line before them was torn; it is closed, and stays.

        Raises:
            DataError: They cannot be written; the file is as it was.
        """
        lines = b"".join(f"{item.model_dump_json()}\n".encode() for item in records)
        size = os.fstat(self._descriptor).st_size
        try:
            is_torn = size > 0 and self._last_byte(size) != b"\n"
            _write_all(self._descriptor, b"\n" + lines if is_torn else lines)
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise _unwritable(self.path, error) from error
        return is_torn

    def _last_byte(self, size: int) -> bytes:
        os.lseek(self._descriptor, size - 1, os.SEEK_SET)
        return os.read(self._descriptor, 1)


@contextlib.contextmanager
def appending(dataset_path: Path, file: str = FILE) -> Iterator[Ledger]:
    """Open the history, or another ledger, for adding; others that want to add wait.

    Raises:
        DataError: The file cannot be written, or has other names.
    """
    path = dataset_path / file
    try:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        _require_own(path, descriptor)
        wait_for_lock(descriptor)
        yield Ledger(path, descriptor)
    finally:
        os.close(descriptor)


def ledger_lines(path: Path) -> list[bytes]:
    """Return the lines of a ledger, whole or not; [] where there is none.

    Raises:
        DataError: The file is there and cannot be read.
    """
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _require_own(path: Path, descriptor: int) -> None:
    """Check that what is added to a file is added to no other: it may have several names."""
    n_names = os.fstat(descriptor).st_nlink
    if n_names > 1:
        raise DataError(
            f"{path}: is a file with {n_names} names (hard links), and what is added to it would "
            "be added to all of them; put a copy in its place: "
            f"cp {path.name} copy && mv copy {path.name}"
        )


def state_of(evaluation: Evaluation) -> tuple[object, ...]:
    """Return what was measured and found: equal in evaluations that only repeat each other."""
    return (
        evaluation.run,
        evaluation.digests,
        evaluation.rel_threshold,
        evaluation.only_retrieved,
        tuple(evaluation.measures.items()),
    )


def _read(path: Path, stream: IO[bytes]) -> History:
    by_id: dict[str, Evaluation] = {}
    notes = _Notes(path)
    for number, line in enumerate(_lines(stream), start=1):
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if not line.strip():
            continue
        reason = ""
        try:
            evaluation = _evaluation(line)
        except DataError as error:
            reason = str(error)
        else:
            by_id.setdefault(evaluation.evaluation_id, evaluation)
        if reason:
            notes.add(number, reason)
    return History(tuple(by_id.values()), notes.lines())


@dataclass(slots=True)
class _Notes:
    """What was passed over; only the first are told one by one."""

    path: Path
    _lines: list[str] = field(default_factory=list)
    _count: int = 0

    def add(self, number: int, reason: str) -> None:
        self._count += 1
        if self._count <= _NOTES:
            self._lines.append(f"{self.path}:{number}: {reason}; passed over")

    def lines(self) -> tuple[str, ...]:
        rest = self._count - len(self._lines)
        more = [f"{self.path}: {rest:,} more lines are passed over"] if rest else []
        return (*self._lines, *more)


def _evaluation(line: bytes) -> Evaluation:
    """Return the evaluation in a line.

    Raises:
        DataError: It holds none, or not the one that was written.
    """
    is_whole = line.endswith(b"\n")
    if len(line) > LONGEST_LINE:
        raise DataError("is longer than any evaluation")
    try:
        evaluation = Evaluation.model_validate_json(line.decode())
    except UnicodeDecodeError as error:
        raise DataError("is not UTF-8 text") from error
    except pydantic.ValidationError as error:
        torn = "" if is_whole else "the last line is torn: "
        raise DataError(f"{torn}{explain(error)}") from error
    if evaluation.evaluation_id not in (_written_id(line), content_id(evaluation)):
        raise DataError("was changed by hand: its evaluation_id does not fit what it says")
    if reason := impossibility(evaluation):
        raise DataError(reason)
    return evaluation


def _written_id(line: bytes) -> str:
    """Return the id of a line by its own bytes: records of later versions may have more fields."""
    return _id_of(_ID_FIELD.sub(b"{", line.strip(), count=1))


def _id_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:ID_DIGITS]


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines with their ends; of one that is too long, a piece that is too long."""
    while line := stream.readline(LONGEST_LINE + 1):
        yield line
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE + 1)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: cannot be written: {error.strerror or error}")
