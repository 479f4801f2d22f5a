"""Serve live pages about datasets: latest measures, history, trend, and the full report on demand.

New evaluations appear by themselves; reports are rendered when they are opened, and again only
when the dataset changed. Nothing can be changed from the page, but with --edit and --label. With
--edit people review queries and label there, each with an own token, under the own name; --label
lets whoever has the address label pairs or answers of a calibration as one person. Each decision
and each label is kept at once.

The address is the first line on stdout; for each --edit a line with name and own address follows.
On loopback anybody who can run programs on this machine
may read; give --token to ask for one. On any other address a token is always asked for. The
connection is not encrypted: over a network, prefer `ssh -L` to --host, or a reverse proxy with
--public-url. /healthz answers anybody, /metrics has the latest means for Prometheus.

Examples:
  ragforge view set/
  ragforge view datasets/ --port 8080
  ragforge view datasets/ --host 0.0.0.0 --port 8080
  ragforge view set/ --label Ann
  ragforge view set/ --edit Ann --edit Bo
  ragforge view set/ --edit-from people.toml
  ragforge view datasets/ --port 8080 --public-url https://host.example/sets
"""

import argparse
import ipaddress
import secrets
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import add_common, settings_of
from ragforge.errors import DataError, UsageError
from ragforge.files.text import read_text, shown

if TYPE_CHECKING:
    from ragforge.config import EvaluateSettings
    from ragforge.files.set.dataset import Dataset
    from ragforge.viewer.access import Person, PublicAddress

_HIGHEST_PORT = 65_535
_TOKEN_BYTES = 24
_MADE_OF = "16 to 200 letters, digits, dots, dashes, underscores and tildes"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "roots", nargs="+", type=Path, metavar="DIR", help="a dataset, or a folder of datasets"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="IP", help="address (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port (default: 0, any free one)"
    )
    parser.add_argument(
        "--token",
        default="",
        metavar="TEXT",
        help="ask for this token: 16 to 200 letters, digits, '.', '_', '~', '-'; made where "
        "needed and not given",
    )
    parser.add_argument(
        "--public-url",
        default="",
        metavar="URL",
        help="where a reverse proxy shows the site, such as https://host.example/sets; a token is "
        "always asked for",
    )
    parser.add_argument(
        "--label",
        default="",
        metavar="NAME",
        help="let this person label pairs and answers on the page; a token is always asked for",
    )
    parser.add_argument(
        "--edit",
        action="append",
        default=[],
        metavar="NAME",
        help="let this person review and label, with an own token that is made and printed; may "
        "be given several times",
    )
    parser.add_argument(
        "--edit-from",
        type=Path,
        metavar="FILE",
        help='let people of a TOML file review and label: a line each, such as Ann = "TOKEN"',
    )
    add_common(parser, "evaluate")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        raise UsageError(f"view needs {names}: `pip install 'ragforge[view]'` installs all")
    from ragforge.pipeline.labelling import labeller_name
    from ragforge.viewer.access import TOKEN_FORM, SiteAccess
    from ragforge.viewer.served import check_roots
    from ragforge.viewer.server import serve

    _check_address(arguments.host, arguments.port)
    if arguments.token and not TOKEN_FORM.fullmatch(arguments.token):
        raise UsageError(f"--token: expected {_MADE_OF}")
    check_roots(arguments.roots)
    settings = settings_of(arguments).evaluate
    is_local = ipaddress.ip_address(arguments.host).is_loopback
    labeller = labeller_name(arguments.label) if arguments.label else ""
    people = _people(arguments.edit, arguments.edit_from)
    needs_token = bool(labeller or people or arguments.public_url) or not is_local
    token = arguments.token or (secrets.token_urlsafe(_TOKEN_BYTES) if needs_token else "")

    made = {labeller_name(name) for name in arguments.edit}

    def announce(taken: SiteAccess) -> None:
        print(taken.address)
        for person in taken.people:
            if person.name in made:
                print(f"{person.name}\t{taken.address_for(person.token)}")
        sys.stdout.flush()
        say("ragforge view: Ctrl-C ends it")

    public = _public(arguments.public_url)
    try:
        access = SiteAccess(arguments.host, arguments.port, token, labeller, public, people)
    except ValueError as error:
        raise UsageError(str(error)) from error
    render = partial(_report, settings=settings)
    serve(arguments.roots, access, render, announce, settings)
    return 0


def _people(names: Sequence[str], path: Path | None) -> "tuple[Person, ...]":
    """Return who may review and label: those named, with made tokens, and those of a file.

    Raises:
        UsageError: A name comes twice or is none, or a token is none.
        DataError: The file cannot be read.
    """
    from ragforge.pipeline.labelling import labeller_name
    from ragforge.viewer.access import TOKEN_FORM, Person

    people = [Person(labeller_name(name), secrets.token_urlsafe(_TOKEN_BYTES)) for name in names]
    for name, token in (_tokens(path) if path else {}).items():
        # A token that is wrong may be another one's nearly: it is not shown.
        if not isinstance(token, str) or not TOKEN_FORM.fullmatch(token):
            raise UsageError(f"--edit-from {path}: {shown(name)}: expected {_MADE_OF}")
        people.append(Person(labeller_name(name), token))
    twice = [name for name, n in Counter(person.name for person in people).items() if n > 1]
    if twice:
        raise UsageError(f"--edit: {twice[0]} comes twice")
    return tuple(people)


def _tokens(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f'{path}: expected TOML with lines such as Ann = "TOKEN"') from error


def _public(url: str) -> "PublicAddress | None":
    from ragforge.viewer.access import PublicAddress

    try:
        return PublicAddress.parse(url) if url else None
    except ValueError as error:
        raise UsageError(f"--public-url: {error}") from error


def _report(dataset: "Dataset", settings: "EvaluateSettings") -> str:
    from ragforge.pipeline.reporting import served_report

    return served_report(dataset, settings)


def _check_address(host: str, port: int) -> None:
    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"--port: expected 0 to {_HIGHEST_PORT}, got {port}")
    try:
        ipaddress.ip_address(host)
    except ValueError as error:
        raise UsageError(f"--host: expected an IP address, got {host!r}") from error
