"""Print the JSON schema of a record, or the names of all records.

Examples:
  ragforge schema
  ragforge schema Judgment
"""

import argparse

from ragforge.cli.output import dumps


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("record", nargs="?", metavar="RECORD", help="such as Judgment")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.about import schema, schema_names

    if arguments.record is None:
        print("\n".join(schema_names()))
    else:
        print(dumps(schema(arguments.record)))
    return 0
