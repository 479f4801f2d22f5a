"""What a test asks for by its markers."""

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import ValidationError

from ragforge.config import EvaluateSettings
from ragforge.errors import UsageError
from ragforge.files.jsonl import explain
from ragforge.measures import DEFAULT_MEASURES, parse_measure

MARKER: Final = "ragforge"
_KNOWN: Final = ("dataset", "run", "retriever", "measures", "rel_threshold")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which run of which dataset, measured how."""

    path: Path
    run: str
    """"" for the only one there is, or where a retriever is given."""
    retriever: str
    settings: EvaluateSettings
    """With all measures by their canonical names."""


def asked_of(node: pytest.Item, extra: str = "") -> Asked:
    """Return what the markers of a test ask for; of two that say the same, the nearer counts.

    Args:
        node: The test.
        extra: A measure to compute too; "" for none.

    Raises:
        UsageError: A marker cannot be taken, or no dataset is named.
    """
    given: dict[str, Any] = {}
    for marker in node.iter_markers(MARKER):
        if marker.args:
            raise UsageError(
                f"marker ragforge: {marker.args[0]!r:.80} has no name; expected keywords such as "
                "dataset='DIR', run='NAME'"
            )
        given = {**marker.kwargs, **given}
    for name in given:
        if name not in _KNOWN:
            raise UsageError(f"marker ragforge: {name!r} is unknown{_nearest(name)}")
    run, retriever = _text(given, "run"), _text(given, "retriever")
    if run and retriever:
        raise UsageError("marker ragforge: give either run or retriever, not both")
    return Asked(_dataset(given, node.config), run, retriever, _settings(given, extra))


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, _KNOWN, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(_KNOWN)}"


def _dataset(given: dict[str, Any], config: pytest.Config) -> Path:
    named = given.get("dataset") or config.getini("ragforge_dataset")
    if not named:
        raise UsageError(
            "no dataset: mark the test with @pytest.mark.ragforge(dataset='DIR'), or set "
            "ragforge_dataset in the ini file"
        )
    if not isinstance(named, str | os.PathLike):
        raise UsageError(f"marker ragforge: dataset: expected a path, got {named!r:.80}")
    return config.rootpath / Path(named)


def _text(given: dict[str, Any], name: str) -> str:
    found = given.get(name) or ""
    if not isinstance(found, str):
        raise UsageError(f"marker ragforge: {name}: expected a text, got {found!r:.80}")
    return found


def _settings(given: dict[str, Any], extra: str) -> EvaluateSettings:
    measures = given.get("measures") or DEFAULT_MEASURES
    listed = [measures] if isinstance(measures, str) else [*measures]
    names = [str(parse_measure(name)) for name in (*listed, *([extra] if extra else []))]
    unique = tuple(dict.fromkeys(names))
    try:
        return EvaluateSettings(measures=unique, rel_threshold=given.get("rel_threshold", "auto"))
    except ValidationError as error:
        raise UsageError(f"marker ragforge: {explain(error)}") from error
