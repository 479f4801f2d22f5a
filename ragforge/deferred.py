"""numpy, imported when the first of what it has is used.

It takes as long as all else that a short command does, and most modules that compute with it are
imported by commands that compute nothing. There stands `from ragforge.deferred import numpy as np`,
and `from __future__ import annotations`, so that no signature asks for it.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["numpy"]

if TYPE_CHECKING:
    import numpy
else:

    class _Deferred(ModuleType):
        """A module that stands for one of the same name until something of it is asked for."""

        def __getattr__(self, name: str) -> object:
            """Import the module, and keep what was asked for."""
            found = self.__dict__[name] = getattr(import_module(self.__name__), name)
            return found

    numpy = _Deferred("numpy")
