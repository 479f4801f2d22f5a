"""Reading settings: default, then file, then environment, then flag."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from ragforge.config.section import Section, field_text
from ragforge.config.sections import AnyFileMaySet, Settings
from ragforge.config.services import (
    SERVICE_SECTIONS,
    RetrieverService,
    ServiceSettings,
    SystemService,
    check_service_name,
)
from ragforge.config.trust import digest_of, find_trust
from ragforge.deferred import dataclass, difflib, pattern, tomllib
from ragforge.errors import ConfigError, did_you_mean
from ragforge.records.model import FieldInfo, pydantic

DEFAULT_FILE: Final = "ragforge.toml"
"""Read from the working directory when no file is named."""
_MOST_BYTES: Final = 1 << 16
_MOST_DOTS: Final = 256

_LONGEST_NAME = 60
_LONGEST_VALUE = 200
_CREDENTIALS = pattern(r"//[^/@]*@")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file as it was read.

    Args:
        shown: Its path in messages.
        content: All of it.
        trusted: Whether it may set everything: it was named, or the user trusts these bytes here.
        changed: Whether the user trusted it when it held something else.
    """

    shown: str
    content: bytes
    trusted: bool
    changed: bool = False

    @property
    def line(self) -> str:
        """What is said of it when it is read without having been named."""
        return f"settings: {self.shown} ({'trusted' if self.trusted else 'not trusted'})"


def _named_file(path: Path) -> SettingsFile:
    """Read a file that the user named, which is trusted.

    Raises:
        ConfigError: It cannot be read.
    """
    return SettingsFile(str(path), _content(path), trusted=True)


def _find_file() -> SettingsFile | None:
    """Read `ragforge.toml` of the working directory; None where there is none.

    Raises:
        ConfigError: It cannot be read, or is made to use up memory.
    """
    path = Path(DEFAULT_FILE)
    return found_file(path) if path.is_file() else None


def found_file(path: Path) -> SettingsFile:
    """Read a file that is trusted no further than the user said.

    Raises:
        ConfigError: It cannot be read, or is made to use up memory.
    """
    name = f"./{DEFAULT_FILE}" if path == Path(DEFAULT_FILE) else str(path)
    if not path.is_file():
        raise ConfigError(f"{name}: no such file")
    content = _content(path, _MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{name}: is too large: expected at most {_MOST_BYTES:,} bytes")
    # A key of many parts takes memory by the square of their number: 4 GB for one of 64 kB.
    if any(line.count(b".") > _MOST_DOTS for line in content.splitlines()):
        raise ConfigError(f"{name}: is odd: expected at most {_MOST_DOTS} dots in a line")
    known = find_trust(path)
    trusted = known is not None and known.sha256 == digest_of(content)
    return SettingsFile(name, content, trusted, changed=known is not None and not trusted)


def parse(file: SettingsFile) -> dict[str, object]:
    """Return the content as TOML.

    Raises:
        ConfigError: It is none.
    """
    try:
        return tomllib.loads(file.content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file.shown}: is not UTF-8 text") from error
    except ValueError as error:  # a number may have more digits than Python reads
        raise ConfigError(f"{file.shown}: is not TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{file.shown}: is nested too deeply for a settings file") from error


def _content(path: Path, most_bytes: int = -1) -> bytes:
    """Return the bytes of a file, all of them or so many."""
    try:
        with path.open("rb") as stream:
            return stream.read(most_bytes)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error


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
    def text(self) -> str:
        """What it is, in a sentence or two."""
        return field_text(type(Settings.model_fields[self.section].default), self.field)

    @property
    def words(self) -> list[str]:
        """The words of which it takes one; none where it takes other values."""
        return [word for word in get_args(self.info.annotation) if isinstance(word, str)]

    @property
    def dest(self) -> str:
        """The name under which a parsed command line holds it."""
        return f"setting_{self.section}_{self.field}"

    def needs_trust(self, value: object) -> bool:
        """Whether a file that was found, not named, has to be trusted to set this value.

        The default may stand in any file: it changes nothing, as all other sources go before.
        """
        given = tuple(value) if isinstance(value, list) else value
        marks = [mark for mark in self.info.metadata if isinstance(mark, AnyFileMaySet)]
        return given != self.info.default and not any(mark.allows(value) for mark in marks)


def _nothing(_: SettingsFile) -> None:
    """Do nothing."""


def each_setting(*sections: str) -> Iterator[Setting]:
    """Yield the settings of the named sections, of all where none is named."""
    for section, group in Settings.model_fields.items():
        if section in SERVICE_SECTIONS or (sections and section not in sections):
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
    on_found: Callable[[SettingsFile], None] = _nothing,
) -> Settings:
    """Return the settings in force.

    Args:
        path: A TOML file that the user named, which may set everything; where None, `ragforge.toml`
            of the working directory if there is one, which has to be trusted for some settings.
        flags: Values by `section.field`, strongest of all.
        environment: Variables; the process's own where None.
        on_found: Told of the file of the working directory when it is read.

    Raises:
        ConfigError: A file cannot be read, a key is unknown, a value is not allowed, or one would
            be in force that needs a file to be trusted.
    """
    file = _find_file() if path is None else _named_file(path)
    if file is not None and path is None:
        on_found(file)
    variables = os.environ if environment is None else environment
    given = {**_from_file(file), **_from_environment(variables), **_from_flags(flags or {})}
    _refuse_misspelt(variables, given)
    if file is not None and not file.trusted:
        _refuse_untrusted(
            file, {key: item.value for key, item in given.items() if item.source == file.shown}
        )
    return _validated(given)


@dataclass(frozen=True, slots=True)
class _Given:
    """A value with where it stands."""

    value: object
    source: str


def _from_file(file: SettingsFile | None) -> dict[str, _Given]:
    if file is None:
        return {}
    return {key: _Given(value, file.shown) for key, value in values_of(file).items()}


def _from_environment(variables: Mapping[str, str]) -> dict[str, _Given]:
    return {
        setting.key: _Given(_split(setting, variables[setting.environment]), setting.environment)
        for setting in each_setting()
        if setting.environment in variables
    }


def _refuse_misspelt(variables: Mapping[str, str], given: Mapping[str, _Given]) -> None:
    """Refuse a variable named after a section that sets nothing, and that no setting refers to."""
    sections = tuple(
        f"RAGFORGE_{section}_".upper()
        for section in Settings.model_fields
        if section not in SERVICE_SECTIONS
    )
    named = [name for name in variables if name.startswith(sections)]
    known = [setting.environment for setting in each_setting()] if named else []
    for name in named:
        if name not in known and not any(name in str(item.value) for item in given.values()):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ConfigError(f"{name}: no setting has this variable; did you mean {near[0]}?")


def _from_flags(flags: Mapping[str, object]) -> dict[str, _Given]:
    return {key: _Given(value, f"--{_flag_of(key)}") for key, value in flags.items()}


def needing_trust(values: Mapping[str, object]) -> list[Setting]:
    """Return the settings that a file which was only found may not set to these values.

    Args:
        values: By `section.field`.
    """
    named = [
        setting
        for setting in each_setting()
        if setting.key in values and setting.needs_trust(values[setting.key])
    ]
    return [*named, *map(_service_setting, filter(_is_service, values))]


def _is_service(key: str) -> bool:
    return key.partition(".")[0] in SERVICE_SECTIONS


def _service_setting(key: str) -> Setting:
    """Return a service as a setting; as nobody marked it, a file must be trusted to name one."""
    section, _, name = key.partition(".")
    return Setting(section, name, key, "", FieldInfo(annotation=None, default=None))


def values_of(file: SettingsFile) -> dict[str, object]:
    """Return the values of a settings file by `section.field`, not yet checked.

    Raises:
        ConfigError: It is no TOML, or a key is unknown.
    """
    known = {setting.key for setting in each_setting()}
    values: dict[str, object] = {}
    for section, group in parse(file).items():
        if section not in Settings.model_fields:
            near = difflib.get_close_matches(section, Settings.model_fields, n=1, cutoff=0)
            raise ConfigError(
                f"{file.shown}: unknown section {_plain(section)}; did you mean {near[0]}?"
            )
        if not isinstance(group, dict):
            raise ConfigError(
                f"{file.shown}: {section}: expected a section in brackets, got {repr(group)[:80]}"
            )
        for field, value in group.items():
            if section in SERVICE_SECTIONS:
                _check_service(section, field, value, file.shown)
            else:
                _check(f"{section}.{field}", value, known, file.shown)
            values[f"{section}.{field}"] = value
    return values


def _refuse_untrusted(file: SettingsFile, values: Mapping[str, object]) -> None:
    keys = ", ".join(setting.key for setting in needing_trust(values))
    if keys:
        why = "it changed since you trusted it" if file.changed else "it was found, not named"
        raise ConfigError(
            f"{file.shown}: {keys}: needs your trust, as {why}. Such a file may not choose code, "
            "commands, models, addresses, keys, prompts, or what is read and kept. Read it, then "
            f"either name it (--config {DEFAULT_FILE}) or trust it as it is now "
            "(ragforge config trust)"
        )


def _validated(given: Mapping[str, _Given]) -> Settings:
    merged: dict[str, dict[str, object]] = {}
    for key, item in given.items():
        section, field = key.split(".")
        merged.setdefault(section, {})[field] = item.value
    try:
        return _settings(merged)
    except pydantic.ValidationError:
        pass  # What is said of one is found out below.
    try:
        return Settings.model_validate(merged)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"][:2])
        message = _explained(first["msg"])
        source = given[key].source if key in given else "settings"
        if _is_service(key):  # Whose texts may be secrets that do not belong there.
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{source}: {where}: {message}") from None
        shown = _CREDENTIALS.sub("//…@", repr(first["input"]))[:_LONGEST_VALUE]
        raise ConfigError(f"{source}: {key}: {message}, got {shown}{_near(key, first)}") from error


def _settings(merged: Mapping[str, Mapping[str, object]]) -> Settings:
    """Return the settings of values by section; validators are built for these sections alone.

    Raises:
        ValidationError: A value is not allowed.
    """
    if merged.keys() & set(SERVICE_SECTIONS):
        return Settings.model_validate(merged)
    sections = {
        section: type(Settings.model_fields[section].default).model_validate(values)
        for section, values in merged.items()
    }
    return Settings.model_construct(set(sections), **sections)


def _near(key: str, error: Mapping[str, Any]) -> str:
    """Return the nearest of the words that a setting takes, as a question."""
    setting = next((setting for setting in each_setting() if setting.key == key), None)
    words = [] if setting is None else [word for word in setting.words if len(word) > 1]
    return did_you_mean(str(error["input"]), words)


def _explained(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return text[0].lower() + text[1:]


def _check_service(section: str, name: str, value: object, file_name: str) -> None:
    """Refuse a service without a proper name, and keys that it does not have."""
    key = f"{section}.{_plain(name)}"
    try:
        check_service_name(name)
    except ValueError as error:
        raise ConfigError(f"{file_name}: {key}: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{file_name}: {key}: expected a section in brackets: [{key}]")
    kind: type[ServiceSettings] = RetrieverService if section == "retrievers" else SystemService
    for field in value:
        if field not in kind.model_fields:
            near = difflib.get_close_matches(field, kind.model_fields, n=1, cutoff=0)
            raise ConfigError(
                f"{file_name}: unknown key {key}.{_plain(field)}; did you mean {near[0]}?"
            )


def _check(key: str, value: object, known: set[str], file_name: str) -> None:
    if key not in known:
        near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0)
        raise ConfigError(f"{file_name}: unknown key {_plain(key)}; did you mean {near[0]}?")
    if isinstance(value, bool):
        raise ConfigError(f"{file_name}: {key}: no setting takes true or false")


def _plain(name: str) -> str:
    """Return a name as it is shown: one of a file may hold line breaks, or be very long."""
    return name if name.isprintable() and len(name) <= _LONGEST_NAME else f"{name[:60]!r}"


def _split(setting: Setting, value: str) -> object:
    """Turn an environment value into what the field takes: lists are separated by commas."""
    if str(setting.info.annotation).startswith("tuple"):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _flag_of(key: str) -> str:
    return next(setting.flag for setting in each_setting() if setting.key == key)
