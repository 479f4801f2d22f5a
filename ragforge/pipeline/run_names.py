"""Names of runs that retrievers make."""

from collections.abc import Sequence

from ragforge.errors import UsageError
from ragforge.files.dataset import checked_name


def named_specs(specs: Sequence[str], names: Sequence[str] = ()) -> dict[str, str]:
    """Return what to retrieve with by the name of the run.

    Args:
        specs: In the order given.
        names: One a spec; made of the specs where there are none.

    Raises:
        UsageError: There are too few or too many names, or two runs would have one.
    """
    if names and len(names) != len(specs):
        raise UsageError(
            f"--name: {len(names)} given for {len(specs)} retrievers; expected one each, or none"
        )
    named: dict[str, str] = {}
    used = names or [_name_of(spec) for spec in specs]
    for name, spec in zip(used, specs, strict=True):
        if name in named:
            raise UsageError(
                f"retrievers {named[name]!r} and {spec!r}: both runs would be called {name!r}; "
                "give each a --name of its own"
            )
        named[checked_name(name)] = spec
    return named


def _name_of(spec: str) -> str:
    """Return a name fit for a file, made of a retriever's spec."""
    kept = "".join(character if character.isalnum() else "-" for character in spec)
    return kept.strip("-")[:60] or "run"
