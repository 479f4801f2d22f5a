"""Access control of the site: host names, token and security headers of every reply."""

import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
"""The only addresses that take anything, and only where somebody labels."""
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
class SiteAccess:
    """The address that the site is served at, and the token that opens it.

    Args:
        host: Address that is listened on.
        port: Likewise.
        token: "" where none is asked for.
        labeller: Who may send labels; "" where nothing can be changed from a page.
        public: Where a reverse proxy shows the site; None where there is none.

    Raises:
        ValueError: Labels could be sent, or a proxy's readers let in, without a token.
    """

    host: str
    port: int
    token: str = ""
    labeller: str = ""
    public: PublicAddress | None = None

    def __post_init__(self) -> None:
        if self.labeller and not self.token:
            raise ValueError("labeller: labels are taken with a token only")
        if self.public is not None and not self.token:
            raise ValueError("public: behind a proxy the site is opened with a token only")

    @property
    def address(self) -> str:
        """Where a browser finds the site."""
        asked = f"?token={self.token}" if self.token else ""
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

    def opens_to(self, token: str) -> bool:
        """Whether a token is the right one; takes as long for any."""
        return hmac.compare_digest(token.encode(), self.token.encode())


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
        if scope["method"] not in _METHODS and not self._is_label(scope, headers):
            reply = _refused(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered")
            reply.headers["Allow"] = ", ".join(_METHODS)
            return reply
        return self._identified(scope, headers) if self._access.token else None

    def _is_own(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        known = {f"http://{headers['host']}"}
        if self._access.public is not None:
            known.add(self._access.public.origin)
        of_site = origin is None or origin in known
        return of_site and headers.get("sec-fetch-site", "none") in _OWN_SITES

    def _is_label(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request sends a label from a page of this site."""
        is_post = scope["method"] == "POST" and _LABELS.fullmatch(scope["path"]) is not None
        return bool(self._access.labeller) and is_post and headers.get("origin") is not None

    def _identified(self, scope: Scope, headers: Headers) -> Response | None:
        """Return how a request without the token in header or cookie is answered."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._access.opens_to(given.strip()):
            return None
        cookies = cookie_parser(headers.get("cookie", ""))
        if self._access.opens_to(cookies.get(self._access.cookie, "")):
            return None
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name == "token" and self._access.opens_to(value) for name, value in asked):
            return self._let_in(scope, [pair for pair in asked if pair[0] != "token"])
        reply = _refused(
            HTTPStatus.UNAUTHORIZED,
            "a token is needed: open the address that `ragforge view` printed",
        )
        reply.headers["WWW-Authenticate"] = "Bearer"
        return reply

    def _let_in(self, scope: Scope, rest: list[tuple[str, str]]) -> Response:
        """Put the token into a cookie, and lead to the address without it."""
        public = self._access.public
        path = f"{public.path if public else ''}/{scope['path'].lstrip('/')}"
        query = f"?{urlencode(rest)}" if rest else ""
        reply = RedirectResponse(path + query, status_code=HTTPStatus.SEE_OTHER)
        reply.set_cookie(
            self._access.cookie,
            self._access.token,
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
