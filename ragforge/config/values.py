"""Checks of single values; each raises ValueError with what is expected."""

import json
import re
from urllib.parse import urlsplit

_OWN_FIELDS = {"model", "messages", "response_format", "stream", "n"}


def address(value: str) -> str:
    """Return an address that may be asked and may be shown."""
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("expected an address such as http://127.0.0.1:8080/v1")
    if parts.username or parts.password:
        raise ValueError("no user name or password in the address: it is stored and shown")
    return value


def proxy(value: str) -> str:
    """Return `none`, `environment`, or an address."""
    return value if value in ("none", "environment") else address(value)


def is_installed_name(value: object) -> bool:
    """Return whether a value can name only what is built in or installed, no module's attribute."""
    return isinstance(value, str) and ":" not in value


def json_object(value: str) -> str:
    """Return the text of a JSON object without fields that ragforge sets; "" stays."""
    value = value.strip()
    if not value:
        return value
    try:
        fields = json.loads(value)
    except ValueError as error:
        raise ValueError(f"expected a JSON object ({error})") from error
    if not value.startswith("{"):
        raise ValueError("expected a JSON object")
    taken = sorted(_OWN_FIELDS & set(fields))
    if taken:
        raise ValueError(f"{', '.join(taken)}: set by ragforge itself")
    return value


def between_commas(value: object) -> object:
    """Return a list whose items may hold several each."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return value
    found = tuple(part.strip() for item in value for part in item.split(",") if part.strip())
    if value and not found:
        raise ValueError("expected names between commas")
    return found


def threshold(value: object) -> object:
    """Return `auto` or a whole number from 1."""
    if value == "auto" or (
        isinstance(value, int | str) and re.fullmatch("[1-9][0-9]*", str(value))
    ):
        return value
    raise ValueError("expected auto or a whole number from 1")


def shares(value: tuple[str, ...]) -> tuple[str, ...]:
    """Return `name=percent` parts whose percentages add up to 100; one name alone stands for 100.

    Raises:
        ValueError: A part is no share, a name comes twice, or the sum is not 100.
    """
    if len(value) == 1 and "=" not in value[0]:
        return (f"{value[0]}=100",)
    percents: dict[str, float] = {}
    for part in value:
        name, _, number = (piece.strip() for piece in part.rpartition("="))
        if not name or not re.fullmatch(r"\d+(\.\d+)?", number):
            raise ValueError(f"expected name=percent, such as fact=40, found {part!r}")
        if name in percents:
            raise ValueError(f"{name} comes twice")
        percents[name] = float(number)
    total = sum(percents.values())
    if abs(total - 100) > 1e-6:
        raise ValueError(f"the percentages add up to {total:g}; expected 100")
    return tuple(f"{name}={percent:g}" for name, percent in percents.items())
