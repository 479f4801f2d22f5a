"""Names of runs and systems, which are names of files too."""

import re
from typing import Final

from ragforge.errors import UsageError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def checked_name(name: str) -> str:
    """Return the name of a run or system if it is fit for a file name.

    Raises:
        UsageError: It is not.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"name {name!r}: expected up to 100 letters, digits, dots, dashes, plus signs and "
            "underscores, starting with a letter or digit"
        )
    return name
