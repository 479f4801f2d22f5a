"""Asking one service as its settings say: the request, its credentials, its pace and its faults."""

import asyncio
import email.utils
import json
import math
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

from ragforge.config import ServiceSettings, SystemService
from ragforge.deferred import dataclass
from ragforge.errors import CallError, ConfigError, EndpointError
from ragforge.http_service import (
    HttpClient,
    NoReplyError,
    Reply,
    Request,
    Target,
    read_json,
)
from ragforge.masking import SecretValues
from ragforge.plugins import in_thread
from ragforge.records.model import JsonValue
from ragforge.retrieval.object_fields import (
    Note,
    empty_result_error,
    ignore_note,
    outcome_error,
)
from ragforge.retrieval.services.dialects import ServicePlan
from ragforge.retrieval.services.paths import ReplyPath
from ragforge.retrieval.services.templates import (
    HOLES_OF_RETRIEVERS,
    HOLES_OF_SYSTEMS,
    check_holes,
    escape_in_address,
    fill,
    fill_text,
    holes_of,
    read_body,
    variables_of,
)
from ragforge.retrieval.services.tokens import BUSY, TokenSource, named_target
from ragforge.retrieval.waiting import count_wait

_UNAUTHORIZED: Final = 401
_FIRST_WAIT_S: Final = 1.0
_RESULT_NAMES: Final = frozenset({"message", "text", "content"})
"""Fields in which a request has the query, and a reply what it says itself."""
_SHOWN: Final = 200
_ADDRESS: Final = re.compile(r"((?i:https?://)[^/?]*|\$\{\w+\})(/[^?]*)?(\?.*)?")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CREDENTIALS_HEADER: Final = "authorization"
_FORM: Final = "application/x-www-form-urlencoded"
_LONGEST_STATED_S: Final = 86_400.0

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its reply, without anything secret: fit to be shown and recorded.

    Args:
        method, address, headers, body: Of the request, with `${VARIABLE}` where a secret stood.
        status: Of the reply.
        content_type: Of the reply, in lower case and without its parameters.
        text: The body of the reply.
        duration_s: Until all of it was there.
    """

    method: str
    address: str
    headers: Mapping[str, str]
    body: JsonValue
    status: int
    content_type: str
    text: str
    duration_s: float

    @property
    def start(self) -> str:
        """The start of the reply, for failure records."""
        return self.text[:_SHOWN]


class OnExchange(Protocol):
    """Is told of each request with its reply, whatever its status."""

    def __call__(self, exchange: Exchange, /) -> None:
        """Take an exchange."""


def _pass_over(_: Exchange) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class _Template:
    """What is sent, with its holes.

    Args:
        url: With what its dialect adds.
        method: GET or POST.
        headers, params: By name.
        body: Parsed.
    """

    url: str
    method: str
    headers: Mapping[str, JsonValue]
    params: Mapping[str, JsonValue]
    body: JsonValue

    @property
    def parts(self) -> dict[str, JsonValue]:
        """All of it, by the name of the setting."""
        parts: dict[str, JsonValue] = {"url": self.url}
        parts |= {f"headers.{name}": value for name, value in self.headers.items()}
        parts |= {f"params.{name}": value for name, value in self.params.items()}
        return {**parts, "body": self.body}


class ServiceClient:
    """Asks one service.

    Args:
        where: Its name in messages: the section of the settings.
        service: Its settings.
        plan: Its dialect with what the settings change, see `plan_of`.
        timeout_s: Of one request, where the settings do not say.
        environment: Variables; those of the process where None.
        note: Told once that the service is waited for.
        sleep: Waits for so many seconds.

    Raises:
        ConfigError: A variable is not set or cannot be sent, a hole or a path is none, or nothing
            asks for the query.
        UsageError: The address cannot be used.
    """

    def __init__(
        self,
        where: str,
        service: ServiceSettings,
        plan: ServicePlan,
        *,
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        note: Note = ignore_note,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.where = where
        self._note = note
        self._told_once: set[str] = set()
        self._has_waited = False
        self._was_reached = False
        self._service = service
        self._template = _template(where, service, plan)
        self._variables, self.secrets = _environment(
            where, self._template, service, os.environ if environment is None else environment
        )
        self._http = HttpClient(service.timeout_s or timeout_s)
        self._pace = _Pace(service.concurrency, service.requests_per_minute, sleep)
        self._sleep = sleep
        self._error = ReplyPath(plan.error, f"{where}.error")
        self._knows_outcomes = service.dialect == "ragforge" and not service.error
        self._tokens = (
            TokenSource(service.oauth, f"{where}.oauth", self._variables, self._http, self.secrets)
            if service.oauth
            else None
        )
        self._target({})  # An address that cannot be used is told before any query.

    def __repr__(self) -> str:
        return f"ServiceClient({self.where!r}, {self._template.url!r})"

    @property
    def holes(self) -> set[str]:
        """The names of the holes that are filled for each query."""
        return {hole for part in self._template.parts.values() for hole in holes_of(part)}

    @property
    def query_fields(self) -> tuple[tuple[str, ...], ...]:
        """The keys to each field of the request that is the query, where a reply may repeat it.

        None where settings say where the reply repeats it, or a dialect knows.
        """
        if self._service.dialect != "ragforge" or self._service.echo:
            return ()
        template = {**self._template.params}
        found = [*_query_fields(template), *_query_fields(self._template.body)]
        return tuple(keys for keys in dict.fromkeys(found) if keys[-1] not in _RESULT_NAMES)

    async def ask(
        self, values: Mapping[str, JsonValue], on_exchange: OnExchange = _pass_over
    ) -> Exchange:
        """Return a good reply, tried again where the service was busy.

        Args:
            values: What fills the holes.
            on_exchange: Told of each attempt.

        Raises:
            CallError: There was none.
            EndpointError: The credentials are not taken, or no attempt ever reached the service:
                every query would fail alike.
        """
        refused, attempt = "", 1
        while True:
            try:
                token = await self._tokens.token(refused) if self._tokens else ""
                async with self._pace.turn():
                    answered = await self._sent(values, token)
            except NoReplyError as error:
                if attempt == self._service.max_attempts:
                    self._refuse_unreachable(error)
                    raise
                await self._wait(attempt, None, str(error))
                attempt += 1
                continue
            self._was_reached = True
            on_exchange(answered.exchange)
            status = answered.reply.status
            if status == _UNAUTHORIZED and token and not refused:
                refused = token
            elif status in BUSY and attempt < self._service.max_attempts:
                asked_s = _retry_after_s(answered.reply.headers)
                await self._wait(attempt, asked_s, f"status {status}: {answered.exchange.start!r}")
                attempt += 1
            else:
                self._refuse_status(answered.reply, answered.exchange)
                return answered.exchange

    def without_secrets(self, error: CallError) -> CallError:
        """Return an error as it may be shown and recorded: without short secrets as well."""
        mask = self.secrets.mask_message
        return CallError(error.kind, mask(str(error)), mask(error.raw))

    def json(self, exchange: Exchange) -> object:
        """Return the JSON of a reply that tells of no error.

        Raises:
            CallError: It is none, or tells of one.
        """
        try:
            value = read_json(exchange.text)
        except ValueError as error:
            found = f"not JSON: {exchange.start!r} ({error})"
            if _is_html(exchange):
                found = f"a page of HTML and not JSON, of a proxy or a login: {exchange.start!r}"
            raise CallError(
                "invalid", f"{self.where}: the reply is {found}", exchange.start
            ) from error
        self.refuse_error(value, exchange)
        return value

    def refuse_error(self, value: object, exchange: Exchange) -> None:
        """Refuse a reply that tells of an error, whatever its status.

        Raises:
            CallError: It does.
        """
        error = self._error.find(value)
        if not error and self._knows_outcomes:
            error = outcome_error(value)
        self._refuse(error, exchange)

    def refuse_empty(self, value: object, exchange: Exchange) -> None:
        """Refuse a reply without results that tells of a fault in its message.

        Raises:
            CallError: It does.
        """
        if self._knows_outcomes:
            self._refuse(empty_result_error(value), exchange)

    def _refuse(self, error: object, exchange: Exchange) -> None:
        if error:
            told = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
            message = f"{self.where}: the reply tells of an error: {told[:_SHOWN]}"
            raise CallError("error", message, exchange.start)

    async def _sent(self, values: Mapping[str, JsonValue], token: str) -> "_Answered":
        request = self._request(values, token)
        begun = time.monotonic()
        try:
            reply = await in_thread(partial(self._http.send, request))
        except NoReplyError as error:
            raise NoReplyError(error.kind, self._masked(str(error))) from None
        except CallError as error:
            raise CallError(error.kind, self._masked(str(error))) from None
        duration_s = time.monotonic() - begun
        return _Answered(reply, self._exchange(values, reply, duration_s))

    def _request(self, values: Mapping[str, JsonValue], token: str) -> Request:
        headers = {
            name: fill_text(str(value), {}, self._variables)
            for name, value in self._template.headers.items()
        }
        if token:
            headers = {
                name: value
                for name, value in headers.items()
                if name.lower() != _CREDENTIALS_HEADER
            }
            headers["Authorization"] = f"Bearer {token}"
        body = fill(self._template.body, values, self._variables)
        content = None if body is None else _written(body, headers)
        return Request(self._target(values), self._template.method, headers, content)

    def _target(self, values: Mapping[str, JsonValue]) -> Target:
        address = self._address(values, self._variables)
        target = named_target(address, f"{self.where}.url", self._template.url)
        return replace(target, shown=self.where)

    def _address(self, values: Mapping[str, JsonValue], variables: Mapping[str, str]) -> str:
        url = fill_text(self._template.url, values, variables, escape_in_address)
        params = {
            name: _as_parameter(fill(value, values, variables))
            for name, value in self._template.params.items()
        }
        given = {name: value for name, value in params.items() if value is not None}
        if not given:
            return url
        return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(given)}"

    def _exchange(
        self, values: Mapping[str, JsonValue], reply: Reply, duration_s: float
    ) -> Exchange:
        # The same templates with the names of variables in the place of what they hold.
        names = {name: f"${{{name}}}" for name in self._variables}
        headers = {name: str(value) for name, value in self._template.headers.items()}
        if self._tokens is not None:
            headers["Authorization"] = "Bearer [token of oauth]"
        return Exchange(
            method=self._template.method,
            address=self._shown_address(values, names),
            headers=headers,
            body=fill(self._template.body, values, names),
            status=reply.status,
            content_type=reply.headers.get("content-type", "").partition(";")[0].strip().lower(),
            text=self.secrets.mask(reply.text),
            duration_s=duration_s,
        )

    def _shown_address(self, values: Mapping[str, JsonValue], names: Mapping[str, str]) -> str:
        text = self._address(values, names)
        for name in names.values():
            text = text.replace(escape_in_address(name), name)
        return text

    def tell_once(self, sentence: str) -> None:
        """Tell the user something of the service, the first time only."""
        if sentence not in self._told_once:
            self._told_once.add(sentence)
            self._note(f"{self.where}: {sentence} (said once)")

    async def _wait(self, attempt: int, asked_s: float | None, why: str) -> None:
        most_s = self._service.max_wait_s
        # Of many attempts the last would wait for longer than a float can say.
        wait_s = min(_FIRST_WAIT_S * 2 ** min(attempt - 1, 30), most_s)
        wait_s = wait_s if asked_s is None else asked_s
        if wait_s > most_s:
            raise CallError(
                "error",
                f"{self._masked(why)}; it asks to wait {wait_s:g} s, and max_wait_s is {most_s:g}",
            )
        if not self._has_waited:
            self._has_waited = True
            self._note(f"{self._masked(why)[:_SHOWN]}; waiting {wait_s:g} s (said once)")
        self._pace.hold(wait_s)
        begun_s = asyncio.get_running_loop().time()
        await self._sleep(wait_s)
        count_wait(asyncio.get_running_loop().time() - begun_s)

    def _refuse_unreachable(self, error: NoReplyError) -> None:
        """End the run where the service was never there.

        Raises:
            EndpointError: It never was.
        """
        if not self._was_reached:
            raise EndpointError(
                f"{error}; {self._service.max_attempts} attempts did not reach it"
            ) from error

    def _refuse_status(self, reply: Reply, exchange: Exchange) -> None:
        status = reply.status
        if 200 <= status < 300:
            return
        start = self.secrets.mask_message(exchange.start)
        if 300 <= status < 400:
            location = self.secrets.mask_message(reply.location[:_SHOWN])
            raise CallError(
                "error",
                f"{self.where}: status {status}, a redirect to {location!r}; redirects are not "
                "followed, name the final address",
                start,
            )
        if status == _UNAUTHORIZED:
            raise EndpointError(
                f"{self.where}: status 401: the service does not take {self._credentials()}: "
                f"{start!r}"
            )
        advice = "; requests_per_minute and concurrency ask less at once" if status == 429 else ""
        raise CallError("error", f"{self.where}: status {status}: {start!r}{advice}", start)

    def _credentials(self) -> str:
        names = ", ".join(f"${{{name}}}" for name in sorted(self._variables))
        if self._tokens is not None:
            return "the token of its oauth"
        return f"what is sent of {names}" if names else "a request without credentials"

    def _masked(self, message: str) -> str:
        text = self.secrets.mask_message(message)
        return text if text.startswith(self.where) else f"{self.where}: {text}"


def _query_fields(template: JsonValue, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if template == "{query}" and keys:
        yield keys
    elif isinstance(template, dict):
        for name, inner in template.items():
            yield from _query_fields(inner, (*keys, name))


@dataclass(frozen=True, slots=True)
class _Answered:
    reply: Reply
    exchange: Exchange


class _Pace:
    """Lets so many requests go at once and so many a minute."""

    def __init__(self, at_once: int | None, per_minute: float | None, sleep: Sleep) -> None:
        self._places = asyncio.Semaphore(at_once) if at_once else None
        self._between_s = 60 / per_minute if per_minute else 0.0
        self._sleep = sleep
        self._next_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a place."""
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        async with self._places or nullcontext():
            await self._wait()
            count_wait(loop.time() - begun_s)
            yield

    def hold(self, wait_s: float) -> None:
        """Let no other request go for so long."""
        now_s = asyncio.get_running_loop().time()
        self._next_s = max(self._next_s, now_s + wait_s)

    async def _wait(self) -> None:
        now_s = asyncio.get_running_loop().time()
        begins_s = max(now_s, self._next_s)
        self._next_s = begins_s + self._between_s
        if begins_s > now_s:
            await self._sleep(begins_s - now_s)


def _template(where: str, service: ServiceSettings, plan: ServicePlan) -> _Template:
    body = read_body(plan.body, f"{where}.body")
    template = _Template(
        url=_completed(service.url, plan.address),
        method=service.method or ("GET" if body is None else "POST"),
        headers=_merged(_own_headers(service, body), plan.headers),
        params=plan.params,
        body=body,
    )
    for name, value in template.headers.items():
        if not _TOKEN.fullmatch(name) or not _is_for_headers(str(value)):
            raise ConfigError(f"{where}.headers: {name!r}: no header can have this name or value")
    filled = HOLES_OF_SYSTEMS if isinstance(service, SystemService) else HOLES_OF_RETRIEVERS
    for name, part in template.parts.items():
        is_header = name.startswith("headers.")
        check_holes(part, f"{where}.{name}", frozenset() if is_header else filled)
    if template.method == "GET" and body is not None:
        raise ConfigError(f"{where}: a GET has no body; params go with it")
    holes = {hole for part in template.parts.values() for hole in holes_of(part)}
    if not holes & {"query", "vector"}:
        raise ConfigError(
            f"{where}: nothing asks for {{query}}: expected it in url, params or body; each query "
            "would be the same request"
        )
    return template


def _merged(
    first: Mapping[str, JsonValue], others: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return headers with others in the place of those of the same name, in any case."""
    taken = {name.lower() for name in others}
    return {**{name: value for name, value in first.items() if name.lower() not in taken}, **others}


def _own_headers(service: ServiceSettings, body: JsonValue) -> dict[str, JsonValue]:
    streams = ", text/event-stream" if isinstance(service, SystemService) else ""
    headers: dict[str, JsonValue] = {
        "Accept": f"application/json{streams}",
        "User-Agent": "ragforge",
    }
    return headers if body is None else {"Content-Type": "application/json", **headers}


def _completed(url: str, address: str) -> str:
    """Return an address whose path, if it is the beginning of a dialect's, is all of that."""
    parts = _ADDRESS.fullmatch(url)
    if not address or parts is None:
        return url
    base, path, query = parts.groups("")
    return f"{base}{address}{query}" if address.startswith(f"{path.rstrip('/')}/") else url


def _environment(
    where: str, template: _Template, service: ServiceSettings, environment: Mapping[str, str]
) -> tuple[dict[str, str], SecretValues]:
    """Return the variables that a service needs, and which of them are secret.

    All are, but for one of the address: texts name hosts.
    """
    parts = template.parts
    if service.oauth is not None:
        parts |= {f"oauth.{name}": value for name, value in service.oauth.model_dump().items()}
    variables: dict[str, str] = {}
    secrets = SecretValues()
    for part, value in parts.items():
        for name in sorted(variables_of(value)):
            variables[name] = _variable(f"{where}.{part}", name, environment)
            if part not in ("url", "oauth.token_url") or _is_in_query(value, name):
                secrets.add(variables[name])
    return variables, secrets


def _variable(where: str, name: str, environment: Mapping[str, str]) -> str:
    """Return a variable; what it holds is in no message."""
    value = environment.get(name, "")
    if not value:
        state = "is empty" if name in environment else "is not set"
        raise ConfigError(f"{where}: the variable {name} of the environment {state}")
    if ".headers." in where and not _is_for_headers(value):
        raise ConfigError(
            f"{where}: the variable {name} of the environment holds a line break or another "
            "character that no header can have"
        )
    return value


def _is_for_headers(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _is_in_query(template: JsonValue, name: str) -> bool:
    """Whether a variable stands in the query of an address, where keys are, and no host."""
    return isinstance(template, str) and name in variables_of(template.partition("?")[2])


def _written(body: JsonValue, headers: Mapping[str, str]) -> bytes:
    """Return a body as JSON, or as a form where the headers say so."""
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if kind.startswith(_FORM) and isinstance(body, dict):
        fields = {name: _as_parameter(value) for name, value in body.items()}
        given = {name: value for name, value in fields.items() if value is not None}
        return urlencode(given).encode("ascii")
    return json.dumps(body).encode("ascii")


def _as_parameter(value: JsonValue) -> str | None:
    match value:
        case None | str():
            return value
    return json.dumps(value)


def _is_html(exchange: Exchange) -> bool:
    text = exchange.text[:_SHOWN].lstrip().lower()
    return exchange.content_type == "text/html" or text.startswith(("<!doctype", "<html"))


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply asks to wait; None where it does not say."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        then, now = _timestamp(value), _timestamp(headers.get("date", ""))
        if then is None:
            return None
        seconds = then - (time.time() if now is None else now)
    return min(max(0.0, seconds), _LONGEST_STATED_S) if math.isfinite(seconds) else None


def _timestamp(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
