"""Which found settings files the user trusts: bound to their place and to what they hold.

Each is remembered in a small file of its own in the user's config directory, so that two commands
that trust at the same time do not undo each other's work.
"""

import contextlib
import json
import os
import stat
from pathlib import Path

from ragforge.deferred import dataclass, hashlib, tempfile
from ragforge.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Trust:
    """A file that the user trusts."""

    path: Path
    """Where it is, as `resolve_folder` tells."""
    sha256: str
    """Of the bytes that were trusted."""


def resolve_folder(path: Path) -> Path:
    """Return the absolute path of a file in its real folder.

    The file itself is not resolved: a link to a file that is trusted elsewhere is another file,
    as modules and folders that it names are looked up beside the link.
    """
    return Path(os.path.realpath(path.parent)) / path.name


def digest_of(content: bytes) -> str:
    """Return the digest that trust is bound to."""
    return hashlib.sha256(content).hexdigest()


def find_trust(path: Path) -> Trust | None:
    """Return the trust in the file at a path; None where there is none."""
    folder = _folder()
    place = resolve_folder(path)
    found = _read(folder / _name(place)) if folder else None
    return found if found and found.path == place else None


def trust(path: Path, content: bytes) -> Trust:
    """Remember that a file is trusted as long as it holds these bytes.

    Raises:
        ConfigError: Others may write where it is, or it cannot be remembered.
    """
    place = resolve_folder(path)
    _refuse_writable_by_all(place)
    folder = _folder()
    if folder is None:
        raise ConfigError(
            "there is no place for what is trusted: expected an absolute path in XDG_CONFIG_HOME "
            "or HOME"
        )
    made = Trust(place, digest_of(content))
    text = json.dumps({"path": str(made.path), "sha256": made.sha256}) + "\n"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(folder / _name(place), text)
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot remember what is trusted: {error.strerror or error}"
        ) from error
    return made


def revoke(path: Path) -> bool:
    """Forget that a file is trusted; return whether it was.

    Raises:
        ConfigError: It cannot be forgotten.
    """
    if find_trust(path) is None:
        return False
    folder = _folder()
    assert folder is not None
    try:
        (folder / _name(resolve_folder(path))).unlink()
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot forget what is trusted: {error.strerror or error}"
        ) from error
    return True


def list_trusted() -> list[Trust]:
    """Return all trusted files by path; an entry that cannot be read is left out."""
    folder = _folder()
    if folder is None or not folder.is_dir():
        return []
    found = (_read(path) for path in folder.glob("*.json"))
    return sorted((item for item in found if item), key=lambda item: item.path)


def _folder() -> Path | None:
    """Return the folder of what is trusted; relative places would lie in the current folder."""
    named = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(named) if named else Path(os.path.expanduser("~"), ".config")  # noqa: PTH111  # Path.home() raises where there is no home
    if not base.is_absolute():
        base = Path(os.path.expanduser("~"), ".config")  # noqa: PTH111  # likewise
    return base / "ragforge" / "trusted" if base.is_absolute() else None


def _name(place: Path) -> str:
    return f"{hashlib.sha256(os.fsencode(place)).hexdigest()}.json"


def _read(path: Path) -> Trust | None:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Trust(Path(fields["path"]), str(fields["sha256"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(path: Path, text: str) -> None:
    """Replace a file at once; a temporary file can be read by its owner alone, and so can this."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _refuse_writable_by_all(place: Path) -> None:
    if os.name != "posix":
        return  # Elsewhere the bits of a file say nothing about who may write it.
    for path in (place.parent, place):
        if path.stat().st_mode & stat.S_IWOTH:
            raise ConfigError(
                f"{path}: everybody on this machine may write here, and so change what the "
                "settings name; `chmod o-w` ends that, or name the file with --config"
            )
