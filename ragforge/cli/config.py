"""Show the settings in force, as TOML that can be used as a settings file.

`ragforge config trust` lets the `ragforge.toml` of this folder choose code, models, addresses and
the like; `ragforge config trust --help` tells more.

Examples:
  ragforge config
  ragforge config --config nightly.toml
  ragforge config trust
"""

import argparse
import json
import os
from pathlib import Path
from typing import Final

from ragforge.api.progress import say
from ragforge.cli.flags import add_common, add_json, settings_of
from ragforge.cli.invocation import shown_words
from ragforge.cli.output import dumps, show
from ragforge.config import (
    DEFAULT_FILE,
    Trust,
    found_file,
    list_trusted,
    needing_trust,
    resolve_folder,
    revoke,
    trust,
    values_of,
    variables_in,
)
from ragforge.errors import ConfigError, UsageError
from ragforge.evaluating.formatting import one_line, visible

TRUST_HELP: Final = """\
Trust the settings file of a folder as it is now.

A `ragforge.toml` that lies in the working directory is read by itself, and may have come with a
repository or a download. It may set what is harmless, such as measures, sizes and limits. What
chooses code, a command, a model, an address, a key, a prompt, or what is read and kept stops the
command, until the file is named (--config FILE) or was trusted once. Trust is bound to the place of
the file and to all of its bytes: a file that changes must be trusted anew. It does not look into
what the file names, such as a module or a folder of prompts: those may change.

What is trusted is kept in ragforge/trusted of $XDG_CONFIG_HOME, or of ~/.config.

Examples:
  ragforge config trust
  ragforge config trust sets/ragforge.toml
  ragforge config trust --list
  ragforge config trust --revoke
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.about import SettingsInForce

    print(SettingsInForce(settings_of(arguments)).table())
    return 0


def configure_trust(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `config trust`."""
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help=f"a {DEFAULT_FILE} (default: that of the working directory)",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--list", action="store_true", help="show what is trusted")
    group.add_argument("--revoke", action="store_true", help="trust the file no longer")
    add_json(parser)


def run_trust(arguments: argparse.Namespace) -> int:
    """Run `config trust`."""
    if arguments.list:
        if arguments.file is not None:
            raise UsageError("--list: shows all that is trusted, and takes no FILE")
        _list(as_json=arguments.json)
        return 0
    path = arguments.file or Path(DEFAULT_FILE)
    if path.name != DEFAULT_FILE:
        raise UsageError(
            f"{path}: only a {DEFAULT_FILE} is found by itself and needs trust; name any other "
            "file with --config FILE"
        )
    if arguments.revoke:
        _revoke(path, as_json=arguments.json)
    else:
        _trust(path, as_json=arguments.json)
    return 0


def _trust(path: Path, *, as_json: bool) -> None:
    file = found_file(path)
    values = values_of(file)
    chosen = {
        setting.key: _masked(setting.flag, values[setting.key]) for setting in needing_trust(values)
    }
    made = trust(path, file.content)
    if as_json:
        print(dumps({"trusted": str(made.path), "sha256": made.sha256, "chooses": chosen}))
    else:
        show("\n".join([_shown(made.path), *(f"  {key} = {chosen[key]}" for key in chosen)]))
        say("trusted until it changes; ragforge config trust --revoke takes it back")
    if _is_of_another(path):
        say(
            f"note: {_shown(made.path)} belongs to another user, who can change what it names, "
            "such as modules and folders beside it"
        )


def _revoke(path: Path, *, as_json: bool) -> None:
    place = resolve_folder(path)
    if not revoke(path):
        raise UsageError(
            f"{_shown(place)}: is not trusted; `ragforge config trust --list` shows what is"
        )
    if as_json:
        print(dumps({"revoked": str(place)}))
    else:
        show(_shown(place))
        say("not trusted any more")


def _list(*, as_json: bool) -> None:
    listed = [(item, _state(item)) for item in list_trusted()]
    if as_json:
        rows = [
            {"path": str(item.path), "sha256": item.sha256, "state": state}
            for item, state in listed
        ]
        print(dumps({"trusted": rows}))
        return
    for item, state in listed:
        show(f"{_shown(item.path)}  {state}")
    if not listed:
        say("no settings file is trusted")


def _state(item: Trust) -> str:
    try:
        file = found_file(item.path)
    except ConfigError:
        return "cannot be read"
    return "trusted" if file.trusted else "changed: not trusted any more"


def _shown(path: Path) -> str:
    return visible(str(path)).replace("\n", "\\n")


def _masked(flag: str, value: object) -> str:
    """Return a value as TOML, without what may be secret in its addresses."""
    if isinstance(value, dict):
        if "url" not in value:
            return one_line(json.dumps(value, ensure_ascii=False), 300)
        address = str(value["url"]).partition("?")[0]
        sent = ", ".join(variables_in(value)) or "no variable"
        return one_line(f"asks {json.dumps(address, ensure_ascii=False)}, sends {sent}", 300)
    parts = value if isinstance(value, list) else [value]
    words = [shown_words([f"--{flag}={part}"])[0].partition("=")[2] for part in parts]
    shown = words if isinstance(value, list) else words[0]
    return one_line(json.dumps(shown, ensure_ascii=False), 300)


def _is_of_another(path: Path) -> bool:
    """Whether a file belongs neither to this user nor to the administrator."""
    return hasattr(os, "getuid") and path.stat().st_uid not in (0, os.getuid())
