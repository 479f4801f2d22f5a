"""Reading settings: default, then file, then environment, then flag."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ragforge.config.sections import Section, Settings
from ragforge.errors import ConfigError

DEFAULT_FILE = "ragforge.toml"
"""Read from the working directory when no file is named."""

_CREDENTIALS = re.compile(r"//[^/@]*@")


@dataclass(frozen=True, slots=True)
class Setting:
    """One field with its names."""

    section: str
    field: str
    flag: str
    environment: str
    info: FieldInfo

    @property
    def key(self) -> str:
        """The TOML key, `section.field`."""
        return f"{self.section}.{self.field}"

    @property
    def dest(self) -> str:
        """The name under which a parsed command line holds it."""
        return f"setting_{self.section}_{self.field}"


def each_setting(*sections: str) -> Iterator[Setting]:
    """Yield the settings of the named sections, of all where none is named."""
    for section, group in Settings.model_fields.items():
        if sections and section not in sections:
            continue
        assert isinstance(group.default, Section)
        for field, info in type(group.default).model_fields.items():
            extra = info.json_schema_extra
            name = extra.get("flag", field) if isinstance(extra, dict) else field
            yield Setting(
                section=section,
                field=field,
                flag=str(name).replace("_", "-"),
                environment=f"RAGFORGE_{section}_{field}".upper(),
                info=info,
            )


def load(
    path: Path | None = None,
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings in force.

    Args:
        path: A TOML file; where None, `ragforge.toml` of the working directory if there is one.
        flags: Values by `section.field`, strongest of all.
        environment: Variables; the process's own where None.

    Raises:
        ConfigError: A file cannot be read, a key is unknown, or a value is not allowed.
    """
    merged: dict[str, dict[str, object]] = {}
    origin: dict[str, str] = {}

    def take(key: str, value: object, source: str) -> None:
        section, field = key.split(".")
        merged.setdefault(section, {})[field] = value
        origin[key] = source

    for key, value, source in _from_file(path):
        take(key, value, source)
    variables = os.environ if environment is None else environment
    for setting in each_setting():
        if setting.environment in variables:
            take(setting.key, _split(setting, variables[setting.environment]), setting.environment)
    for key, value in (flags or {}).items():
        take(key, value, "--" + _flag_of(key))
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"][:2])
        told = first["msg"].removeprefix("Value error, ")
        message = told[0].lower() + told[1:]
        found = _CREDENTIALS.sub("//…@", repr(first["input"]))
        raise ConfigError(
            f"{origin.get(key, 'settings')}: {key}: {message}, got {found}"
        ) from error


def _from_file(path: Path | None) -> Iterator[tuple[str, object, str]]:
    if path is None:
        path = Path(DEFAULT_FILE)
        if not path.is_file():
            return
    known = {setting.key for setting in each_setting()}
    for section, group in _parse(path).items():
        if section not in Settings.model_fields:
            near = difflib.get_close_matches(section, Settings.model_fields, n=1, cutoff=0)
            raise ConfigError(f"{path}: unknown section {section}; did you mean {near[0]}?")
        if not isinstance(group, dict):
            raise ConfigError(f"{path}: {section}: expected a section in brackets, got {group!r}")
        for field, value in group.items():
            _check(f"{section}.{field}", value, known, path)
            yield f"{section}.{field}", value, str(path)


def _check(key: str, value: object, known: set[str], path: Path) -> None:
    if key not in known:
        near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0)
        raise ConfigError(f"{path}: unknown key {key}; did you mean {near[0]}?")
    if isinstance(value, bool):
        raise ConfigError(f"{path}: {key}: no setting takes true or false")


def _parse(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error


def _split(setting: Setting, value: str) -> object:
    """Turn an environment value into what the field takes: lists are separated by commas."""
    if str(setting.info.annotation).startswith("tuple"):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _flag_of(key: str) -> str:
    return next(setting.flag for setting in each_setting() if setting.key == key)
