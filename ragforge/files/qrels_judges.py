"""Who made the grades of a file of qrels, where it says so."""

from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.jsonl import read_records
from ragforge.files.lines import open_source
from ragforge.records import Judgment

_SAYS_WHO = '"provenance"'


def judgments_in(path: Path) -> list[Judgment]:
    """Return the judgments of a file of qrels that says who made them; [] for any other file.

    Args:
        path: As for `ragforge.files.qrels.read_qrels`, which says what is wrong with a file.
    """
    native = path / "judgments.jsonl" if path.is_dir() else path
    try:
        source = open_source(native)
        return list(read_records(native, Judgment)) if _SAYS_WHO in source.first else []
    except DataError:
        return []
