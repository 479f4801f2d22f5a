"""Prompts are files: versioned, hashed into every record, replaced by a folder of the user's."""

import difflib
import hashlib
import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragforge.errors import ConfigError, DataError
from ragforge.files.resources import shipped
from ragforge.files.text import read_text

_FIELDS = frozenset({"version", "system", "user", "schema"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file.

    Args:
        name: File name without `.toml`.
        version: Counted up by its author on each change of meaning.
        system, user: Texts with `$holes`; only `user` may have them.
        schema: Name of the reply schema.
        sha256: Digest of the file.
    """

    name: str
    version: int
    system: str
    user: str
    schema: str
    sha256: str

    def render(self, **holes: str) -> str:
        """Return the user turn with its holes filled; what is filled in is not read again.

        Raises:
            ConfigError: The prompt has a hole that is not given, or lacks one that is.
        """
        wanted = holes_of(self.user)
        if wanted != set(holes):
            raise ConfigError(
                f"prompt {self.name!r}: has the holes {', '.join(sorted(wanted)) or 'none'}; "
                f"expected {', '.join(sorted(holes))}"
            )
        return string.Template(self.user).substitute(holes)


def holes_of(text: str) -> set[str]:
    """Return the names of the holes in a template."""
    return set(string.Template(text).get_identifiers())


def prompt_names(folder: str = "") -> list[str]:
    """Return the names of the prompts there are, the user's and the shipped ones, sorted."""
    return sorted({path.stem for place in _places(folder) for path in place.glob("*.toml")})


def load_prompt(name: str, folder: str = "") -> Prompt:
    """Return a prompt, the user's before the shipped one.

    Args:
        name: File name without `.toml`.
        folder: The user's folder, "" for none.

    Raises:
        ConfigError: There is no such prompt, or its file does not hold to the format.
    """
    for place in _places(folder):
        path = place / f"{name}.toml"
        if path.is_file():
            return _parse(name, path)
    names = prompt_names(folder)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"no prompt {name!r}; there are: {', '.join(names)}{hint}")


def _places(folder: str) -> list[Path]:
    if folder and not Path(folder).is_dir():
        raise ConfigError(f"--prompts-dir {folder}: no such folder")
    return [*([Path(folder)] if folder else []), shipped("prompts")]


def _parse(name: str, path: Path) -> Prompt:
    try:
        text = read_text(path)
        fields = tomllib.loads(text)
    except DataError as error:
        raise ConfigError(str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error
    wrong = sorted(_FIELDS.symmetric_difference(fields))
    if wrong:
        raise ConfigError(f"{path}: {wrong[0]}: expected exactly {', '.join(sorted(_FIELDS))}")
    if not isinstance(fields["version"], int):
        raise ConfigError(f"{path}: version: expected an integer, got {fields['version']!r}")
    digest = hashlib.sha256(text.encode()).hexdigest()
    texts = {key: _text(fields, key, path) for key in ("system", "user", "schema")}
    if holes_of(texts["system"]):
        raise ConfigError(f"{path}: system: holds a $hole; only user may have them")
    if not string.Template(texts["user"]).is_valid():
        raise ConfigError(f"{path}: user: holds a stray $; write $$ for the sign itself")
    return Prompt(name=name, version=fields["version"], sha256=digest, **texts)


def _text(fields: Mapping[str, object], key: str, path: Path) -> str:
    value = fields[key]
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {key}: expected text, got {value!r}")
    return value
