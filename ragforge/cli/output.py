"""What people and programs read of a command: results on stdout; `say` puts the rest on stderr."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ragforge.api.colour import BOLD, coloured, coloured_result
from ragforge.api.progress import say
from ragforge.api.results import Estimate, Result
from ragforge.deferred import pattern, shutil
from ragforge.errors import EndpointError
from ragforge.evaluating.formatting import escaped_json, inert

if TYPE_CHECKING:
    from pathlib import Path

    from ragforge.files.set.dataset import Dataset
    from ragforge.report.page.picture import Picture

_COMMANDS: Final = pattern(r"##(?=\w*\[)")
"""How commands to the runner of a CI service begin."""


def show(text: str) -> None:
    """Print a result to stdout; what a terminal or a CI service would obey is shown instead."""
    print(coloured_result(inert(text), sys.stdout))


def print_result(result: Result, *, as_json: bool) -> None:
    """Print a result to stdout, as text or as JSON."""
    if as_json:
        print(dumps(result.to_dict()))
    else:
        show(result.table())


def show_picture(picture: "Picture") -> None:
    """Print a picture as text, in what the encoding of the terminal has."""
    from ragforge.report.picture_text import ASCII, BLOCKS, picture_text

    try:
        "".join((BLOCKS.levels, BLOCKS.middle)).encode(sys.stdout.encoding or "ascii")
        marks = BLOCKS
    except UnicodeEncodeError:
        marks = ASCII
    width = shutil.get_terminal_size().columns
    title, _, rest = picture_text(picture, width, marks).partition("\n")
    print(f"{coloured(title, BOLD, sys.stdout)}\n{rest}")


def print_estimate(counted: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a dry run counted."""
    print_result(Estimate(counted), as_json=as_json)


def code_of_failures(message: str, n_failed: int, n_queries: int, max_failures: float) -> int:
    """Tell of queries that failed, and return the exit code: 4 where there are too many.

    Args:
        message: How many failed, and how.
        n_failed: Queries that failed; one at least.
        n_queries: Queries that were asked.
        max_failures: Share that may fail.
    """
    if n_failed > max_failures * n_queries:
        say(
            f"ragforge: error: {message}; all else is written, but --max-failures allows "
            f"{max_failures:.1%}: run it again, or allow more"
        )
        return EndpointError.exit_code
    say(f"warning: {message}; they have no value and widen the bounds")
    return 0


def tell_overtaken(dataset: "Dataset", made: str) -> "Path | None":
    """Tell where another version was published while a command ran.

    Args:
        dataset: As it was opened at first.
        made: What the command wrote, in the plural.

    Returns:
        The folder that it was written into; None where no other version was published.
    """
    from ragforge.files.set.paths import VERSIONS, published_since

    number = published_since(dataset.path, dataset.files)
    if number is None:
        return None
    folder = dataset.path / VERSIONS / dataset.files.resolve().name
    say(
        f"warning: version {number} of {dataset.path} was published meanwhile, and the {made} are "
        f"in the one before: {folder}; run it again for version {number}: replies that are kept "
        "are not bought again"
    )
    return folder


def dumps(value: object) -> str:
    """Return the JSON that `--json` prints: indented, sorted as built, never NaN.

    What a terminal or a CI service would obey is escaped: hidden characters, `##[` and `##vso[`.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _COMMANDS.sub(r"#\\u0023", escaped_json(text))
