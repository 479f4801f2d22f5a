"""Print the JSON schema of a record, or the names of all records."""

import argparse

from ragforge.cli.output import dumps
from ragforge.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("record", nargs="?", metavar="RECORD", help="such as Judgment")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from pydantic import BaseModel

    from ragforge import records
    from ragforge.config import Settings
    from ragforge.files.manifest import Manifest

    kinds = {
        name: kind
        for name, kind in vars(records).items()
        if isinstance(kind, type)
        and issubclass(kind, records.Record)
        and kind is not records.Record
    }
    schemas: dict[str, type[BaseModel]] = {**kinds, "Manifest": Manifest, "Settings": Settings}
    if arguments.record is None:
        print("\n".join(sorted(schemas)))
        return 0
    if arguments.record not in schemas:
        there = ", ".join(sorted(schemas))
        raise UsageError(f"no record {arguments.record!r}; there are: {there}")
    print(dumps(schemas[arguments.record].model_json_schema()))
    return 0
