"""The grades in an export that a run with texts of its own is measured on.

Pieces of two splitters are kept apart: what such a run NAME is measured on stands in
`qrels/NAME.trec`, in `texts/NAME/` of a BEIR folder, or in the `graded_texts` of a JSON file.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal

from ragforge.errors import DataError
from ragforge.files.formats.export_note import NOTE, TREC_QRELS, RunLabels
from ragforge.files.formats.qrels import JudgedQrels, read_judged_qrels
from ragforge.files.formats.runs import read_run
from ragforge.files.source_files import open_source, plain_name
from ragforge.measures.listed_relevance import LabelsInForce
from ragforge.measures.run_evaluation import highest_grade
from ragforge.measures.scores import threshold_of
from ragforge.records import is_text_id

_Grades = Mapping[str, Mapping[str, int | None]]


def labels_of_run(judged: JudgedQrels, path: Path, name: str) -> JudgedQrels | None:
    """Return what a run with texts of its own is measured on, of an export; None for any other run.

    Args:
        judged: What the file holds that all other runs are measured on.
        path: Where it was read.
        name: Of the run, as its file is called.

    Raises:
        DataError: The file of its grades is not there, or does not hold to its format.
    """
    said = judged.of_runs.get(name)
    if said is None:
        return None
    if said.pairs:
        grades = _of_pairs(judged.grades, graded_texts(path), said)
        return replace(judged, grades=grades, of_runs={})
    place = _place(path, name)
    if not place.exists():
        raise DataError(
            f"{place}: is not there; run {name} has texts of its own and is measured on it"
        )
    return read_judged_qrels(place)


def labels_in_force(
    judged: JudgedQrels, path: Path, run_path: Path, asked: "int | Literal['auto']"
) -> LabelsInForce | None:
    """Return what the run of a file is measured on that has texts of its own; None for any other.

    What is relevant is said by all grades of the export: those of a run may not reach as far.

    Args:
        judged: What the qrels hold.
        path: Where they were read.
        run_path: Of the run.
        asked: The threshold that is asked for.

    Raises:
        DataError: A file does not hold to its format.
    """
    name = plain_name(run_path)
    if name not in judged.of_runs or not has_texts(read_run(run_path).rankings):
        return None
    own = labels_of_run(judged, path, name)
    assert own is not None
    of_all = judged.in_force(asked)
    threshold = threshold_of(highest_grade(of_all.grades), of_all.rel_threshold)
    return own.in_force(asked)._replace(rel_threshold=threshold)


def has_texts(rankings: Mapping[str, Iterable[str]]) -> bool:
    """Whether a run holds texts that are no chunks of the set it is from."""
    return any(map(is_text_id, chain.from_iterable(rankings.values())))


def _place(path: Path, name: str) -> Path:
    """Return where an export has the grades of a run, beside those of others."""
    folder = path if path.is_dir() else path.parent
    if path.name == TREC_QRELS or (folder / TREC_QRELS).is_file():
        return folder / "qrels" / f"{name}.trec"
    if path.is_dir():
        return folder / "texts" / name
    return folder.parent / "texts" / name / "qrels" / path.name


def _of_pairs(grades: _Grades, texts: _Grades, said: RunLabels) -> _Grades:
    found = {}
    for query_id, of_query in grades.items():
        both = {**of_query, **texts.get(query_id, {})}
        held = {key: both[key] for key in said.pairs.get(query_id, ()) if key in both}
        found[query_id] = held or dict.fromkeys(list(both)[:1], 0)
    return found


def graded_texts(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of texts that are no chunks, by query, of an exported JSON file.

    Raises:
        DataError: They are no grades by id.
    """
    document = json.loads(b"".join(line for _, line in open_source(path).lines))
    found: dict[str, dict[str, int]] = {}
    for number, row in enumerate(document.get("queries", ())):
        texts = row.get("graded_texts") or {}
        if not isinstance(texts, dict) or not all(type(grade) is int for grade in texts.values()):
            raise DataError(f"{path}: queries[{number}]: graded_texts: expected grades by id")
        found[str(row.get("id"))] = texts
    return found


def named_run(path: Path) -> str:
    """Return the run whose texts a file of an export has the grades of; "" for any other file."""
    if path.parent.name == "qrels" and path.suffix == ".trec":
        return path.stem if (path.parent.parent / NOTE).is_file() else ""
    folder = path if path.is_dir() else path.parent.parent
    is_of_one = folder.parent.name == "texts" and (folder.parent.parent / NOTE).is_file()
    return folder.name if is_of_one and (folder / NOTE).is_file() else ""
