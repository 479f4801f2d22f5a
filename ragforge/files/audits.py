"""The audit of a judge: one JSON object."""

from pathlib import Path

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.jsonl import explain
from ragforge.files.text import read_text
from ragforge.records import JudgeAudit


def read_audit(path: Path) -> JudgeAudit:
    """Return the audit in a file.

    Raises:
        DataError: It cannot be read or does not hold to the format.
    """
    try:
        return JudgeAudit.model_validate_json(read_text(path))
    except ValidationError as error:
        raise DataError(f"{path}: {explain(error)}") from error


def write_audit(path: Path, audit: JudgeAudit) -> None:
    """Write an audit, whole.

    Raises:
        DataError: It cannot be written.
    """
    write_whole(path, [audit.model_dump_json(indent=2), "\n"])
