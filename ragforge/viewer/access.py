"""Access control of the site: host names, token and security headers of every reply."""

import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragforge.deferred import dataclass

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every reply, unless it has another of that name."""
TOKEN_FORM: Final = re.compile(r"[A-Za-z0-9._~-]{16,200}")
_METHODS: Final = ("GET", "HEAD")
_LABELS: Final = re.compile(r"/datasets/[^/]+/(?:answer-)?labels")
_DECISIONS: Final = re.compile(r"/datasets/[^/]+/decisions")
"""These and labels are all that is taken, and only where somebody may send them."""
WRITER: Final = "ragforge.writer"
"""Key of a request's scope: who sends it, a `Writer`."""
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


_PUBLIC: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]{1,253}(?::[0-9]{1,5})?)"
    r"(?P<path>(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,60}){0,9})/?"
)
HEALTH: Final = "/healthz"
"""Answered to anybody: whether the site answers, and nothing else."""


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """Where readers find the site that a reverse proxy shows them."""

    scheme: str
    host: str
    """With its port where it has one."""
    path: str
    """Without a slash at its end; "" for the proxy's own root."""

    @classmethod
    def parse(cls, url: str) -> "PublicAddress":
        """Return the parts of an address.

        Raises:
            ValueError: It is none.
        """
        found = _PUBLIC.fullmatch(url)
        if found is None:
            raise ValueError(f"expected an address such as https://host.example/sets, got {url!r}")
        return cls(found["scheme"], found["host"], found["path"])

    @property
    def origin(self) -> str:
        """As browsers name it."""
        return f"{self.scheme}://{self.host}"

    def below(self, path: str) -> str:
        """Return a path without that of the proxy; as it is where the proxy took it off."""
        return path[len(self.path) :] if f"{path}/".startswith(f"{self.path}/") else path


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may review and label."""

    name: str
    token: str = field(repr=False)
    """Nobody else has it: it says who somebody is."""


@dataclass(frozen=True, slots=True)
class Writer:
    """What whoever sends a request may do beside reading."""

    name: str = ""
    """Under which labels and decisions are recorded; "" for who only reads."""
    decides: bool = False
    """Whether queries may be decided about; who has a name may label."""


READER: Final = Writer()
"""Who may change nothing."""


@dataclass(frozen=True, slots=True)
class SiteAccess:
    """The address that the site is served at, and the tokens that open it.

    Args:
        host: Address that is listened on.
        port: Likewise.
        token: For reading; "" where none is asked for.
        labeller: Who may send labels with that token; "" where nobody may.
        public: Where a reverse proxy shows the site; None where there is none.
        people: Who may review and label, each with an own token.

    Raises:
        ValueError: Something could be sent, or a proxy's readers let in, without a token; or two
            people, or a person and a reader, have the same one.
    """

    host: str
    port: int
    token: str = field(default="", repr=False)
    labeller: str = ""
    public: PublicAddress | None = None
    people: tuple[Person, ...] = ()

    def __post_init__(self) -> None:
        if self.people and not self.token:
            raise ValueError("people: decisions are taken with a token only")
        tokens = [self.token, *(person.token for person in self.people)]
        if len(set(tokens)) < len(tokens) or "" in tokens[1:]:
            raise ValueError("people: each needs a token that nobody else has")
        if self.labeller and not self.token:
            raise ValueError("labeller: labels are taken with a token only")
        if self.public is not None and not self.token:
            raise ValueError("public: behind a proxy the site is opened with a token only")

    @property
    def address(self) -> str:
        """Where a browser finds the site."""
        return self.address_for(self.token)

    def address_for(self, token: str) -> str:
        """Return where the browser of somebody with this token finds the site."""
        asked = f"?token={token}" if token else ""
        if self.public is not None:
            return f"{self.public.origin}{self.public.path}/{asked}"
        host = "127.0.0.1" if self.host == "0.0.0.0" else "::1" if self.host == "::" else self.host  # noqa: S104  # read, not bound
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/{asked}"

    @property
    def cookie(self) -> str:
        """Name of the cookie: ports of one host share their cookies."""
        return f"ragforge_view_{self.port}"

    def knows(self, host: str) -> bool:
        """Whether a Host header names this site, and not one that was made to lead here."""
        if self.public is not None and host.lower() == self.public.host:
            return True
        name, port = _parts(host)
        if port != self.port:
            return False
        if is_loopback(self.host):
            return name in _LOCAL_NAMES or name == _bracketed(self.host)
        if ipaddress.ip_address(self.host).is_unspecified:
            return name in _LOCAL_NAMES or _is_address(name) or name == socket.gethostname().lower()
        return name == _bracketed(self.host)

    def writer(self, token: str) -> Writer | None:
        """Return what a token opens; None for one that opens nothing. It takes as long for any."""
        opened = [(person.token, Writer(person.name, decides=True)) for person in self.people]
        opened.append((self.token, Writer(self.labeller)))
        given = token.encode()
        found = [who for known, who in opened if hmac.compare_digest(given, known.encode())]
        return found[0] if found else None


def is_loopback(host: str) -> bool:
    """Whether an address cannot be reached from other machines."""
    return ipaddress.ip_address(host).is_loopback


class Guard:
    """Middleware that turns away what is not meant for this site, before anything is looked up."""

    def __init__(self, app: ASGIApp, access: SiteAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if self._access.public is not None:
            scope = {**scope, "path": self._access.public.below(scope["path"]) or "/"}
        answer = self._answer(scope) or self._app
        await answer(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the reply to a request that is not passed on; None for one that is."""
        headers = Headers(scope=scope)
        if scope["path"] == HEALTH and scope["method"] in _METHODS:
            return PlainTextResponse("ok\n")
        if not self._access.knows(headers.get("host", "")):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, "this host name is not served here")
        if not self._is_own(headers):
            return _refused(
                HTTPStatus.FORBIDDEN,
                "what other sites lead to is not answered: open the address itself",
            )
        sends = scope["method"] not in _METHODS
        if sends and not self._is_taken(scope, headers):
            reply = _refused(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered")
            reply.headers["Allow"] = ", ".join(_METHODS)
            return reply
        if not self._access.token:
            return None
        found = self._identified(scope, headers)
        if isinstance(found, Response):
            return found
        scope[WRITER] = found
        may = found.decides or (found.name and not _DECISIONS.fullmatch(scope["path"]))
        if sends and not may:
            return _refused(HTTPStatus.FORBIDDEN, "this token is for reading")
        return None

    def _is_own(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        known = {f"http://{headers['host']}"}
        if self._access.public is not None:
            known.add(self._access.public.origin)
        of_site = origin is None or origin in known
        return of_site and headers.get("sec-fetch-site", "none") in _OWN_SITES

    def _is_taken(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request sends a label or a decision from a page of this site."""
        is_label = _LABELS.fullmatch(scope["path"]) is not None
        is_decision = _DECISIONS.fullmatch(scope["path"]) is not None
        people = bool(self._access.people)
        is_known = (is_label and (people or bool(self._access.labeller))) or (
            is_decision and people
        )
        return scope["method"] == "POST" and is_known and headers.get("origin") is not None

    def _identified(self, scope: Scope, headers: Headers) -> Response | Writer:
        """Return who sends a request, or how one with no right token is answered.

        A token in the address goes before that of the cookie: who opens an own address is who it
        says, also where another one was opened in the same browser.
        """
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        for name, value in asked:
            if name == "token" and self._access.writer(value) is not None:
                return self._let_in(scope, value, [pair for pair in asked if pair[0] != "token"])
        scheme, _, given = headers.get("authorization", "").partition(" ")
        cookie = cookie_parser(headers.get("cookie", "")).get(self._access.cookie, "")
        tokens = [given.strip()] if scheme.lower() == "bearer" else []
        for token in (*tokens, cookie):
            if (found := self._access.writer(token)) is not None:
                return found
        reply = _refused(
            HTTPStatus.UNAUTHORIZED,
            "a token is needed: open the address that `ragforge view` printed",
        )
        reply.headers["WWW-Authenticate"] = "Bearer"
        return reply

    def _let_in(self, scope: Scope, token: str, rest: list[tuple[str, str]]) -> Response:
        """Put the token into a cookie, and lead to the address without it."""
        public = self._access.public
        path = f"{public.path if public else ''}/{scope['path'].lstrip('/')}"
        query = f"?{urlencode(rest)}" if rest else ""
        reply = RedirectResponse(path + query, status_code=HTTPStatus.SEE_OTHER)
        reply.set_cookie(
            self._access.cookie,
            token,
            path=f"{public.path}/" if public else "/",
            secure=public is not None and public.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return reply


def _refused(status: HTTPStatus, reason: str) -> Response:
    return PlainTextResponse(f"{status.value} {status.phrase}: {reason}\n", status)


def _parts(host: str) -> tuple[str, int | None]:
    """Return name and port of a Host header; the port of HTTP where it has none."""
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", host.lower())
    if match is None:
        return "", None
    return match[1], int(match[2] or 80)


def _bracketed(host: str) -> str:
    return f"[{host.lower()}]" if ":" in host else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
