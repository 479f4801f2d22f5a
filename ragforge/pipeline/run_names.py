"""Names of runs: of those that retrievers make, and of those in files."""

from collections.abc import Sequence
from pathlib import Path

from ragforge.errors import UsageError
from ragforge.files.lines import plain_name
from ragforge.files.run_names import checked_name


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


def names_apart(paths: Sequence[Path]) -> list[str]:
    """Return a name for each file: its own, with as many folders as it takes to be the only one.

    Raises:
        UsageError: A file is given twice.
    """
    resolved = [path.resolve() for path in paths]
    twice = next((path for path in resolved if resolved.count(path) > 1), None)
    if twice is not None:
        given = paths[resolved.index(twice)]
        raise UsageError(f"{given}: given twice; a comparison needs different runs")
    depths = [0] * len(paths)
    names = [plain_name(path) for path in paths]
    while True:
        alike = [index for index, name in enumerate(names) if names.count(name) > 1]
        longer = [index for index in alike if depths[index] < len(resolved[index].parts) - 1]
        if not longer:
            break
        for index in longer:
            depths[index] += 1
            folders = resolved[index].parts[:-1][-depths[index] :]
            names[index] = "/".join([*folders, plain_name(paths[index])])
    return [str(paths[i]) if names.count(name) > 1 else name for i, name in enumerate(names)]


def _name_of(spec: str) -> str:
    """Return a name fit for a file, made of a retriever's spec."""
    kept = "".join(character if character.isalnum() else "-" for character in spec)
    return kept.strip("-")[:60] or "run"
