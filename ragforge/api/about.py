"""What holds for all sets: the settings in force, and the schemas of records."""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Unpack

from ragforge.api.results import Result, plain_values
from ragforge.config import Settings, each_setting
from ragforge.config.services import SERVICE_SECTIONS
from ragforge.config.toml_text import service_toml
from ragforge.corpus.origins.origin import shown_host
from ragforge.deferred import dataclass
from ragforge.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragforge.api.keywords import EveryKeyword  # It imports much that nothing here needs.

_SECRET: Final = ("notify_url",)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SettingsInForce(Result):
    """The settings that calls work with. What may be secret is not shown in full.

    Args:
        settings: By section, such as `settings.model.name`.
        notes: What was told on the way, such as which file they are of.
    """

    settings: Settings
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the values by section and field."""
        values = self.settings.model_dump(mode="json")
        for setting in each_setting():
            if setting.field in _SECRET and values[setting.section][setting.field]:
                host = shown_host(values[setting.section][setting.field])
                values[setting.section][setting.field] = host
        return values

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each setting, with the environment variable that sets it."""
        values = self.to_dict()
        return [
            {
                "section": setting.section,
                "setting": setting.field,
                **plain_values({"value": values[setting.section][setting.field]}),
                "environment": setting.environment,
                "meaning": _meaning(setting.text),
            }
            for setting in each_setting()
        ]

    def table(self) -> str:
        """Return what `ragforge config` prints: TOML that can be used as a settings file."""
        return settings_toml(self.settings.model_dump(mode="json")).removesuffix("\n")


def settings(**settings: "Unpack[EveryKeyword]") -> SettingsInForce:
    """Tell which settings are in force: those of a file, the environment and keywords.

    Args:
        settings: As for any call; see `ragforge.api.keywords`.

    Raises:
        ConfigError: A value is not allowed, or the file cannot be taken or needs trust.
    """
    from ragforge.api.call import EVERYTHING, begin

    with begin(EVERYTHING, settings, {}) as call:
        return SettingsInForce(call.settings, tuple(call.notes))


def schema(record: str) -> dict[str, Any]:
    """Return the JSON schema of a record.

    Args:
        record: Such as Judgment; see `schema_names`.

    Raises:
        UsageError: There is no such record.
    """
    kinds = _kinds()
    if record not in kinds:
        near = did_you_mean(record, kinds) or f"; there are: {', '.join(sorted(kinds))}"
        raise UsageError(f"no record {record!r}{near}")
    return kinds[record].model_json_schema()


def schema_names() -> tuple[str, ...]:
    """Return the names of the records that have a schema, sorted."""
    return tuple(sorted(_kinds()))


def settings_toml(values: Mapping[str, Mapping[str, object]]) -> str:
    """Return settings as TOML with their descriptions; what is unset stands as a comment."""
    lines: list[str] = []
    section = ""
    for setting in each_setting():
        if setting.section != section:
            section = setting.section
            lines += [*([""] if lines else []), f"[{section}]"]
        value = values[setting.section][setting.field]
        lines.append(f"# {_meaning(setting.text)}")
        if setting.field in _SECRET and value:
            lines.append(
                "# Not shown in full, as the path may be a secret; this line sets nothing."
            )
            lines.append(
                f"# {setting.field} = {json.dumps(shown_host(str(value)), ensure_ascii=False)}"
            )
            continue
        # Strings, numbers and lists of strings are written alike in JSON and TOML.
        lines.append(
            f"# {setting.field} =" if value is None else f"{setting.field} = {json.dumps(value)}"
        )
    for section in SERVICE_SECTIONS:
        for name, service in values.get(section, {}).items():
            assert isinstance(service, Mapping)
            lines += ["", *service_toml(f"{section}.{name}", service)]
    return "\n".join(lines) + "\n"


def _meaning(description: str | None) -> str:
    return " ".join((description or "").split())


def _kinds() -> "dict[str, type[BaseModel]]":
    from ragforge import records  # Showing the settings needs neither.
    from ragforge.files.manifest import Manifest

    kinds = {
        name: kind
        for name in records.__all__
        if isinstance(kind := getattr(records, name), type)
        and issubclass(kind, records.Record)
        and kind is not records.Record
    }
    return {**kinds, "Manifest": Manifest, "Settings": Settings}
