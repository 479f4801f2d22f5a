"""Writing services as TOML, which the standard library only reads."""

import json
from collections.abc import Iterator, Mapping


def service_toml(key: str, fields: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of a service, its heading first; what is not set is left out."""
    yield f"[{key}]"
    for name, value in fields.items():
        if value is not None and value not in ("", {}):
            # TOML has no null; a body may be written as JSON.
            told = json.dumps(value, ensure_ascii=False) if _holds_null(value) else value
            yield f"{name} = {_value(told)}"


def _value(value: object) -> str:
    """Return a value as TOML on one line."""
    match value:
        case Mapping():
            inside = (f"{_value(str(name))} = {_value(item)}" for name, item in value.items())
            return f"{{ {', '.join(inside)} }}" if value else "{}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case str():
            # What JSON leaves as it is and TOML escapes.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _holds_null(value: object) -> bool:
    match value:
        case Mapping():
            return any(map(_holds_null, value.values()))
        case list():
            return any(map(_holds_null, value))
    return value is None
