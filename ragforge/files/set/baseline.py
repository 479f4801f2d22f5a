"""The baseline of a gate: an evaluation with its values per item, in a file fit for git.

The same values give the same bytes, and a query is a line, so that a change can be read in a diff.
A digest over all of it refuses what was edited by hand or merged line by line.
"""

import contextlib
import json
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import fsum
from pathlib import Path
from typing import Any, Final, Protocol

from ragforge.deferred import dataclass, gzip, hashlib
from ragforge.errors import DataError
from ragforge.files.atomic import remove_strays, write_whole, write_whole_bytes
from ragforge.files.record_files import explain
from ragforge.files.set.history import ID_DIGITS, History, read_history, state_of, written_ids
from ragforge.files.text import read_text
from ragforge.records import Baseline, Evaluation, ItemValues
from ragforge.records.model import pydantic
from ragforge.records.sharing import Sharing

_FOLDER: Final = "history"
"""A file for each evaluation."""
KEPT: Final = 30
"""States of a run whose values are kept."""
_SUFFIX: Final = ".jsonl.gz"
_GZIP: Final = 31
"""Tells zlib to put the head and the end of a gzip file around what it packs."""

FORMAT: Final = "ragforge baseline"
_SCHEMA: Final = 2
"""1 had no rankings: they could not be scored again on other grades."""
_REMEDY: Final = "make it anew with `ragforge gate --write-baseline`"


class Evaluated(Protocol):
    """An evaluation with its values per item, which may be read or made as they are asked for."""

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation."""

    @property
    def items(self) -> Collection[ItemValues]:
        """Its items, sorted by query."""

    def by_query(self) -> Mapping[str, ItemValues]:
        """Return the items by query."""


def write_values(dataset_path: Path, evaluated: Evaluated) -> None:
    """Keep the values per item of an evaluation.

    Raises:
        DataError: They cannot be written.
    """
    path = values_path(dataset_path, evaluated.evaluation.evaluation_id)
    write_whole_bytes(path, _zipped(f"{item.model_dump_json()}\n" for item in evaluated.items))


def _zipped(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield lines as a gzip file without a time, as `gzip.compress` makes it."""
    packer = zlib.compressobj(6, wbits=_GZIP)
    yield from (packer.compress(line.encode()) for line in lines)
    yield packer.flush()


def values_of(dataset_path: Path, evaluation_id: str) -> Baseline | None:
    """Return an evaluation with its values per item; None where it or they are not kept any more.

    Raises:
        DataError: The values are damaged, or are not those of the evaluation.
    """
    history = read_history(dataset_path)
    evaluation = history.find(evaluation_id)
    return None if evaluation is None else values_in(dataset_path, history, evaluation)


def values_in(dataset_path: Path, history: History, evaluation: Evaluation) -> Baseline | None:
    """As `values_of`, for a history that was read already."""
    kept = kept_values(dataset_path, history, evaluation)
    if kept is None:
        return None
    return Baseline(evaluation=evaluation, items=tuple(map(Sharing().shared, kept.items)))


def kept_values(
    dataset_path: Path, history: History, evaluation: Evaluation
) -> "KeptValues | None":
    """As `values_in`, with the values left in their file, which is checked."""
    path = values_path(dataset_path, evaluation.evaluation_id)
    if not path.exists():
        state = state_of(evaluation)
        alike = (
            item for item in reversed(history.of_run(evaluation.run)) if state_of(item) == state
        )
        paths = (values_path(dataset_path, item.evaluation_id) for item in alike)
        found = next((path for path in paths if path.exists()), None)
        if found is None:
            return None
        path = found
    return KeptValues(evaluation, KeptItems(path, _check(path, evaluation)))


@dataclass(frozen=True, slots=True)
class KeptItems(Collection[ItemValues]):
    """The values per item of an evaluation, read from their file each time they are asked for."""

    path: Path
    count: int

    def __iter__(self) -> Iterator[ItemValues]:
        return _each_item(self.path)

    def __len__(self) -> int:
        return self.count

    def __contains__(self, item: object) -> bool:
        return any(item == each for each in self)


@dataclass(frozen=True, slots=True)
class KeptValues:
    """An evaluation with its values per item, as `Baseline` has them, which stay in their file."""

    evaluation: Evaluation
    items: KeptItems

    def by_query(self) -> dict[str, ItemValues]:
        """Return the items by query."""
        return {item.query_id: item for item in self.items}


def drop_old_values(dataset_path: Path, history: History) -> None:
    """Remove values that nothing will be compared with; the lines stay.

    Kept are those of the newest states of each run; of evaluations that found one and the same,
    the newest stands for all.
    """
    for run in history.runs:
        states: set[object] = set()
        for item in reversed(history.of_run(run)):
            state = state_of(item)
            if state in states or len(states) == KEPT:
                with contextlib.suppress(OSError):
                    values_path(dataset_path, item.evaluation_id).unlink(missing_ok=True)
            else:
                states.add(state)


def drop_stray_values(dataset_path: Path) -> None:
    """Remove what evaluations left that were killed before their line was written.

    The caller has the history open for adding, so that no other evaluation is on its way.

    Raises:
        DataError: The history cannot be read.
    """
    folder = dataset_path / _FOLDER
    remove_strays(folder)
    named = written_ids(dataset_path)
    for path in folder.glob(f"{'[0-9a-f]' * ID_DIGITS}{_SUFFIX}"):
        if path.name.removesuffix(_SUFFIX) not in named:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def values_path(dataset_path: Path, evaluation_id: str) -> Path:
    """Return where the values per item of an evaluation are, if they are kept."""
    return dataset_path / _FOLDER / f"{evaluation_id}{_SUFFIX}"


def _each_item(path: Path) -> Iterator[ItemValues]:
    try:
        with gzip.open(path) as stream:
            yield from map(ItemValues.model_validate_json, stream)
    except pydantic.ValidationError as error:
        raise DataError(
            f"{path}: {explain(error)}: it is of another version of ragforge, and nothing can be "
            "compared with it"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: is damaged: {error}") from error


def _check(path: Path, evaluation: Evaluation) -> int:
    """Check that the values have the means that the evaluation has; return how many items have any.

    The means of a sample are of the whole set, by weights that are not kept with the values: they
    only have to lie among these.
    """
    # An item has no value of a measure that it cannot be measured by.
    columns = {name: array("d") for name in evaluation.measures}
    n_items = 0
    for item in _each_item(path):
        n_items += 1
        for name in columns.keys() & item.values.keys():
            columns[name].append(item.values[name])
    is_sample = evaluation.selection is not None and evaluation.selection.sample is not None
    for name, measured in evaluation.measures.items():
        values = columns[name]
        if len(values) < min(measured.n, n_items):
            raise DataError(f"{path}: an item has no value of {name}")
        mean = fsum(values) / len(values) if values else None
        if is_sample and values and measured.mean is not None:
            is_held = min(values) <= measured.mean <= max(values)
        else:
            is_held = mean == measured.mean
        if not is_held:
            raise DataError(
                f"{path}: {name}: expected values with a mean of {measured.mean}, got {mean}"
            )
    return n_items


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline, whole; when, where in git and how fast it was measured stays out.

    Raises:
        DataError: It cannot be written.
    """
    timeless = {"at": "", "git_commit": "", "git_branch": "", "timing": None}
    without_past: dict[str, object] = {
        "bridge_to": "",
        "bridge": {},
        "mixed": None,
        "by_one_judge": False,
    }
    evaluation = baseline.evaluation.model_copy(update={**timeless, **without_past})
    content = evaluation.model_dump_json(exclude={"evaluation_id"})
    named = evaluation.model_copy(update={"evaluation_id": _sha256(content)[:16]})
    items = sorted(baseline.items, key=lambda item: item.query_id)
    kept = Baseline(evaluation=named, items=tuple(items))
    write_whole(path, _lines(_content(kept)))


def read_baseline(path: Path) -> Baseline:
    """Return the baseline in a file.

    Raises:
        DataError: As for `parse_baseline`, or it cannot be read.
    """
    return parse_baseline(read_text(path), str(path))


def parse_baseline(text: str, where: str) -> Baseline:
    """Return the baseline in the text of a file.

    Args:
        text: All of it.
        where: What messages call it.

    Raises:
        DataError: It is torn, of another tool or schema, or was edited.
    """
    document = _object(text, where)
    if document.pop("format", None) != FORMAT:
        raise DataError(f'{where}: is no baseline: expected "format": "{FORMAT}"; {_REMEDY}')
    schema, digest = document.pop("schema", None), document.pop("sha256", None)
    if schema != _SCHEMA:
        raise DataError(f"{where}: schema: expected {_SCHEMA}, got {schema!r:.80}; {_REMEDY}")
    if digest != _digest_of(document, where):
        raise DataError(
            f"{where}: does not hold what was written (sha256 differs): it was edited or merged "
            f"by hand; {_REMEDY}"
        )
    try:
        baseline = Baseline.model_validate_json(json.dumps(document))
    except pydantic.ValidationError as error:
        raise DataError(f"{where}: {explain(error)}; {_REMEDY}") from error
    return _unique(baseline, where)


def _digest_of(found: dict[str, Any], where: str) -> str:
    try:
        return _digest(found)
    except ValueError as error:
        raise DataError(
            f"{where}: expected finite numbers, found one that is not (NaN, Infinity); {_REMEDY}"
        ) from error


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        conflict = "\n<<<<<<<" in f"\n{text}"
        why = "holds conflict marks of git" if conflict else f"is not one complete JSON ({error})"
        raise DataError(f"{where}: {why}; {_REMEDY}") from error
    if not isinstance(document, dict):
        raise DataError(f"{where}: is no baseline: expected a JSON object; {_REMEDY}")
    return document


def _unique(baseline: Baseline, where: str) -> Baseline:
    seen: set[str] = set()
    for item in baseline.items:
        if item.query_id in seen:
            raise DataError(f"{where}: items: {item.query_id!r:.80} comes twice; {_REMEDY}")
        seen.add(item.query_id)
    return baseline


def _content(baseline: Baseline) -> dict[str, Any]:
    content: dict[str, Any] = baseline.model_dump(mode="json")
    return content


def _digest(content: dict[str, Any]) -> str:
    return _sha256(_compact(content))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _lines(content: dict[str, Any]) -> Iterator[str]:
    header = {"format": FORMAT, "schema": _SCHEMA, "sha256": _digest(content)}
    yield "{\n"
    for name, value in header.items():
        yield f"{_compact(name)}: {_compact(value)},\n"
    evaluation = json.dumps(content["evaluation"], indent=1, sort_keys=True)
    yield f'"evaluation": {evaluation},\n"items": [\n'
    yield ",\n".join(map(_compact, content["items"]))
    yield "\n]\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)
