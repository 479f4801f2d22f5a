"""A scriptable OpenAI-compatible endpoint on loopback: good replies, faults, limits, a ledger."""

from typing import TYPE_CHECKING

from ragforge.mock.script import Script

if TYPE_CHECKING:
    from ragforge.mock.running import Running, serving

__all__ = ["Running", "Script", "serving"]


def __getattr__(name: str) -> object:
    """Import what serves when it is first used: who reads a script needs no event loop."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ragforge.mock import running

    return getattr(running, name)
