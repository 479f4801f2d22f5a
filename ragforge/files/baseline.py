"""The baseline of a gate: an evaluation with its values per item, in a file fit for git.

The same values give the same bytes, and a query is a line, so that a change can be read in a diff.
A digest over all of it refuses what was edited by hand or merged line by line.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.jsonl import explain
from ragforge.files.text import read_text
from ragforge.records import Baseline

FORMAT: Final = "ragforge baseline"
SCHEMA: Final = 2
"""1 had no rankings: they could not be scored again on other grades."""
_REMEDY: Final = "make it anew with `ragforge gate --write-baseline`"


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
    found = _object(text, where)
    if found.pop("format", None) != FORMAT:
        raise DataError(f'{where}: is no baseline: expected "format": "{FORMAT}"; {_REMEDY}')
    schema, digest = found.pop("schema", None), found.pop("sha256", None)
    if schema != SCHEMA:
        raise DataError(f"{where}: schema: expected {SCHEMA}, got {schema!r:.80}; {_REMEDY}")
    if digest != _digest_of(found, where):
        raise DataError(
            f"{where}: does not hold what was written (sha256 differs): it was edited or merged "
            f"by hand; {_REMEDY}"
        )
    try:
        baseline = Baseline.model_validate_json(json.dumps(found))
    except ValidationError as error:
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
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        conflict = "\n<<<<<<<" in f"\n{text}"
        why = "holds conflict marks of git" if conflict else f"is not one complete JSON ({error})"
        raise DataError(f"{where}: {why}; {_REMEDY}") from error
    if not isinstance(found, dict):
        raise DataError(f"{where}: is no baseline: expected a JSON object; {_REMEDY}")
    return found


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
    header = {"format": FORMAT, "schema": SCHEMA, "sha256": _digest(content)}
    yield "{\n"
    for name, value in header.items():
        yield f"{_compact(name)}: {_compact(value)},\n"
    evaluation = json.dumps(content["evaluation"], indent=1, sort_keys=True)
    yield f'"evaluation": {evaluation},\n"items": [\n'
    yield ",\n".join(map(_compact, content["items"]))
    yield "\n]\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)
