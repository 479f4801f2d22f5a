"""Tokens of OAuth 2.0 by the grant of client credentials. Source: RFC 6749, section 4.4."""

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import quote_plus, urlencode

from ragforge.config import OAuthSettings
from ragforge.errors import ConfigError, EndpointError, UsageError
from ragforge.http_service import (
    HttpClient,
    NoReplyError,
    Request,
    Target,
    parse_target,
    read_json,
)
from ragforge.masking import SecretValues
from ragforge.plugins import in_thread
from ragforge.retrieval.services.templates import fill_text

BUSY: Final = frozenset({429, 502, 503, 504})
"""Statuses of a service that may be good in a moment."""
_EARLY_S: Final = 30.0
"""So long before it expires a token is fetched anew: a request takes its time."""
_SHOWN: Final = 200


class TokenSource:
    """Fetches a token when there is none that lasts, and keeps it in memory.

    Args:
        settings: Of the token endpoint.
        where: The settings it is of, for messages.
        variables: Of the environment.
        client: Sends the request.
        secrets: Is told of each token.
        clock: Seconds, rising.
    """

    def __init__(
        self,
        settings: OAuthSettings,
        where: str,
        variables: Mapping[str, str],
        client: HttpClient,
        secrets: SecretValues,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._where = where
        self._variables = variables
        self._client = client
        self._secrets = secrets
        self._clock = clock
        self._target = named_target(
            fill_text(settings.token_url, {}, variables), f"{where}.token_url", settings.token_url
        )
        self._lock = asyncio.Lock()
        self._token = ""
        self._until = 0.0

    async def token(self, refused: str = "") -> str:
        """Return a token that lasts.

        Args:
            refused: A token that the service did not take; another one is fetched.

        Raises:
            EndpointError: There is none to be had.
            NoReplyError: The endpoint is busy or cannot be reached.
            CallError: It took too long.
        """
        async with self._lock:
            if not self._token or self._token == refused or self._clock() >= self._until:
                await self._fetch()
            return self._token

    async def _fetch(self) -> None:
        reply = await in_thread(partial(self._client.send, self._request()))
        text = self._secrets.mask_message(reply.text)
        if reply.status in BUSY:
            raise NoReplyError("error", f"{self._where}: no token: status {reply.status}")
        if not 200 <= reply.status < 300:
            raise EndpointError(
                f"{self._where}: no token: status {reply.status}: {text[:_SHOWN]!r}"
            )
        try:
            granted = read_json(reply.text)
        except ValueError as error:
            raise EndpointError(f"{self._where}: no token: the reply is no JSON") from error
        token = granted.get("access_token") if isinstance(granted, Mapping) else None
        if not isinstance(token, str) or not token or not _is_fit(token):
            raise EndpointError(f"{self._where}: no token: the reply holds no access_token")
        assert isinstance(granted, Mapping)
        self._secrets.add(token)
        self._token = token
        self._until = self._clock() + _lasting_s(granted.get("expires_in"))

    def _request(self) -> Request:
        settings = self._settings
        client_id = fill_text(settings.client_id, {}, self._variables)
        secret = fill_text(settings.client_secret, {}, self._variables)
        fields = {"grant_type": "client_credentials"}
        fields |= {
            name: fill_text(value, {}, self._variables)
            for name, value in (("scope", settings.scope), ("audience", settings.audience))
            if value
        }
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        if settings.client_auth == "basic":
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode('ascii')}"
        else:
            fields |= {"client_id": client_id, "client_secret": secret}
        return Request(self._target, "POST", headers, urlencode(fields).encode("ascii"))


def named_target(address: str, where: str, template: str) -> Target:
    """Return an address that messages call by its setting: filled in, it may hold a secret.

    Raises:
        ConfigError: It is none.
    """
    try:
        target = parse_target(address, where)
    except UsageError:  # Whose message repeats it.
        raise ConfigError(
            f"{where} = {template!r}: is no address once it is filled in; expected "
            "http://HOST[:PORT]/PATH or https://…, without a user or password"
        ) from None
    return replace(target, shown=where)


def _is_fit(token: str) -> bool:
    """Whether a token can stand in a header."""
    return token.isascii() and token.isprintable()


def _lasting_s(expires_in: object) -> float:
    """Return how long a token is used; for ever where the endpoint does not say."""
    if isinstance(expires_in, str) and expires_in.isdecimal():
        expires_in = int(expires_in)
    if isinstance(expires_in, bool) or not isinstance(expires_in, int | float):
        return float("inf")
    return max(0.0, expires_in - _EARLY_S) if expires_in > 2 * _EARLY_S else expires_in / 2
