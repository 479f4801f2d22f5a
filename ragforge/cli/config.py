"""Show the settings in force, as TOML that can be used as a settings file.

`ragforge config trust` lets the `ragforge.toml` of this folder choose code, models, addresses and
the like; `ragforge config trust --help` tells more.
"""

import argparse
import json
from typing import Final

from ragforge.cli.flags import add_common, settings_of
from ragforge.cli.resuming import host_of
from ragforge.config import each_setting

_SECRET: Final = ("notify_url",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    print(as_toml(settings_of(arguments).model_dump(mode="json")), end="")
    return 0


def as_toml(values: dict[str, dict[str, object]]) -> str:
    """Return settings as TOML with their descriptions; what is unset stands as a comment."""
    lines: list[str] = []
    section = ""
    for setting in each_setting():
        if setting.section != section:
            section = setting.section
            lines += [*([""] if lines else []), f"[{section}]"]
        text = " ".join((setting.info.description or "").split())
        value = values[setting.section][setting.field]
        lines.append(f"# {text}")
        if setting.field in _SECRET and value:
            lines.append(
                "# Not shown in full, as the path may be a secret; this line sets nothing."
            )
            lines.append(
                f"# {setting.field} = {json.dumps(host_of(str(value)), ensure_ascii=False)}"
            )
            continue
        # Strings, numbers and lists of strings are written alike in JSON and TOML.
        lines.append(
            f"# {setting.field} =" if value is None else f"{setting.field} = {json.dumps(value)}"
        )
    return "\n".join(lines) + "\n"
