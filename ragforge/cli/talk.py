"""What people read: results on stdout; messages, and the progress of long work, on stderr."""

from ragforge.api.progress import Progress
from ragforge.api.progress import say as complain
from ragforge.evaluating.formatting import inert

__all__ = ["Progress", "complain", "show"]


def show(text: str) -> None:
    """Print a result to stdout; what a terminal or a CI service would obey is shown instead."""
    print(inert(text))
