"""`python -m ragforge`, which imports what `ragforge` does: nothing of the working directory.

Python puts that directory first, where a file called `csv.py` or `pydantic.py` would be run in the
place of the real one. Modules that the user names are found all the same: see `plugins.find`.
"""

import os
import sys


def _leave_out_working_directory() -> None:
    """Undo what `-m` does to the import path; `-P` does not do it, and PYTHONPATH stays.

    A checkout that is run from within itself stays importable.
    """
    try:
        here = os.getcwd()  # noqa: PTH109  # pathlib may only be imported when this is done
    except OSError:  # It is removed, and nothing can be imported from it.
        return
    running = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    if not sys.flags.safe_path and sys.path[:1] in ([""], [here]) and here != running:
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_working_directory()
    from ragforge.cli import main

    sys.exit(main())
