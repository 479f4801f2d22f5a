"""Objects that users name: entry points of installed packages, and `package.module:attribute`."""

import difflib
import importlib
import sys
from collections.abc import Collection
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

from ragforge.errors import UsageError


def find(group: str, name: str, built_in: Collection[str] = ()) -> object:
    """Return the object that a name stands for, as its module holds it.

    Args:
        group: Which extension point, such as "retrievers"; entry points are looked up in
            `ragforge.<group>`.
        name: `package.module:attribute`, looked for in the working directory where nothing
            installed has that name; else the name of an entry point.
        built_in: What the caller has under names of its own, for the message only.

    Raises:
        UsageError: There is no such object, or importing it failed.
    """
    if ":" in name:
        return _load(name, group)
    plugins = {point.name: point for point in entry_points(group=f"ragforge.{group}")}
    if name in plugins:
        return _loaded(plugins[name], group)
    there = sorted({*built_in, *plugins})
    near = difflib.get_close_matches(name.lower(), there, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    listed = ", ".join([*there, "module:attribute"])
    raise UsageError(f"{group}: no {name!r}{meant}; there are: {listed}")


def _load(spec: str, group: str) -> object:
    module, _, attribute = spec.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise UsageError(f"{group}: {spec!r}: expected package.module:attribute")
    here = str(Path.cwd())
    if not {here, ""} & set(sys.path) and not _is_installed(module.partition(".")[0]):
        # Last, so that a folder of the user's does not hide an installed package of that name.
        sys.path.append(here)
    return _loaded(EntryPoint(name=spec, value=spec, group=group), group)


def _is_installed(package: str) -> bool:
    """Whether a package is there without the working directory; a namespace may go on in it."""
    with suppress(ImportError, ValueError):
        spec = find_spec(package)
        return spec is not None and spec.origin is not None
    return False


def _loaded(point: EntryPoint, group: str) -> object:
    try:
        module = importlib.import_module(point.module)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise UsageError(
            f"{group}: {point.value!r}: importing {point.module} raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if not point.attr:
        return module
    try:
        loaded: object = attrgetter(point.attr)(module)
    except AttributeError as error:
        public = [known for known in vars(module) if not known.startswith("_")]
        near = difflib.get_close_matches(point.attr, public, n=1, cutoff=0)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{group}: {point.value!r}: {error}{meant}") from error
    return loaded
