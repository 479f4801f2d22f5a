"""Flags made from settings, and the settings made from flags."""

import argparse
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import get_args

from ragforge.cli.talk import complain
from ragforge.config import Setting, Settings, SettingsFile, each_setting, load
from ragforge.evaluating.formatting import escaped_json

PAID = ("model", "budget", "prompts")
"""Sections of settings that every command takes which may ask a model."""
_COMMANDS = re.compile(r"##(?=\w*\[)")


def add_common(
    parser: argparse.ArgumentParser, *sections: str, several: Collection[str] = ()
) -> None:
    """Add the flags of some sections of settings, `--config` and `--quiet`.

    Args:
        parser: Gets them.
        sections: Of settings.
        several: Flags, without dashes, that take several values at once beside being repeated.
    """
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file (default: ragforge.toml if there; see `ragforge config trust`)",
    )
    for setting in each_setting(*sections):
        _add(group, setting, at_once=setting.flag in several)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object to stdout")


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings in force for a parsed command line; a file that was found is named.

    Raises:
        ConfigError: A value is not allowed, or the settings file cannot be taken or needs trust.
    """
    given = vars(arguments)
    flags = {
        setting.key: given[setting.dest]
        for setting in each_setting()
        if given.get(setting.dest) is not None
    }
    return load(given.get("config"), flags, on_found=_pass_over if given.get("quiet") else _name)


def _name(file: SettingsFile) -> None:
    complain(file.line)


def _pass_over(_: SettingsFile) -> None:
    """Do nothing."""


def dumps(value: object) -> str:
    """Return the JSON that `--json` prints: indented, sorted as built, never NaN.

    What a terminal or a CI service would obey is escaped: hidden characters, `##[` and `##vso[`.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _COMMANDS.sub(r"#\\u0023", escaped_json(text))


def _add(group: "argparse._ArgumentGroup", setting: Setting, *, at_once: bool) -> None:
    default = setting.info.default
    shown = ", ".join(default) if isinstance(default, tuple) else default
    text = " ".join((setting.info.description or "").split()).replace("%", "%%")
    default_note = "" if shown in ("", None) else f" Default: {shown}."
    extra = setting.info.json_schema_extra
    if isinstance(extra, dict) and "switch" in extra:
        group.add_argument(
            f"--{setting.flag}",
            dest=setting.dest,
            action="store_const",
            const=extra["switch"],
            help=f"{text} [{setting.environment}]",
        )
        return
    several = isinstance(default, tuple)
    dash = "-" if len(setting.flag) == 1 else "--"
    names = (
        ["-m", "--measure"] if several and setting.field == "measures" else [dash + setting.flag]
    )
    action = "append" if several else "store"
    group.add_argument(
        *names,
        dest=setting.dest,
        metavar=_metavar(setting),
        action="extend" if at_once else action,
        nargs="+" if at_once else None,
        help=f"{text}{default_note} [{setting.environment}]",
    )


def _metavar(setting: Setting) -> str:
    annotation = str(setting.info.annotation)
    words = [word for word in get_args(setting.info.annotation) if isinstance(word, str)]
    if words:
        return "|".join(words)
    if "Literal" in annotation:
        return "auto|N"
    if "tuple" in annotation or "str" in annotation:
        return setting.field.rsplit("_", 1)[-1].upper()
    return "X" if "float" in annotation else "N"
