"""Texts with holes: `{query}` and its kin for each query, `${VARIABLE}` of the environment.

A text that is one hole and nothing else becomes its value: `"{k}"` the number 10. `{query:json}` is
the value as JSON writes it, in quotes, for query languages within a text.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Final
from urllib.parse import quote

from ragforge.errors import ConfigError
from ragforge.records.model import JsonValue

HOLES_OF_RETRIEVERS: Final = frozenset({"query", "k", "offset", "page", "cursor", "vector"})
HOLES_OF_SYSTEMS: Final = frozenset({"query", "contexts"})
_MARK: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\{([A-Za-z_]+)(:json)?\}")


def each_text(template: JsonValue) -> Iterator[str]:
    """Yield the texts of a template."""
    match template:
        case str():
            yield template
        case dict():
            for item in template.values():
                yield from each_text(item)
        case list():
            for item in template:
                yield from each_text(item)


def holes_of(template: JsonValue) -> set[str]:
    """Return the names of the holes of a template that are filled for each query."""
    return {name for text in each_text(template) for _, name, _ in _MARK.findall(text) if name}


def variables_of(template: JsonValue) -> set[str]:
    """Return the variables of the environment that a template names."""
    return {name for text in each_text(template) for name, _, _ in _MARK.findall(text) if name}


def check_holes(template: JsonValue, where: str, allowed: Set[str]) -> None:
    """Refuse holes that nothing is filled into.

    Raises:
        ConfigError: There is one.
    """
    for name in sorted(holes_of(template) - allowed):
        near = difflib.get_close_matches(name, allowed, n=1)
        meant = f"did you mean {{{near[0]}}}?" if near else f"there are: {_listed(allowed)}"
        raise ConfigError(
            f"{where}: no hole {{{name}}}; {meant} Braces that are text have a blank inside: "
            f"{{ {name} }}"
        )


def _listed(names: Set[str]) -> str:
    listed = ", ".join(f"{{{name}}}" for name in sorted(names))
    return f"{listed}." if listed else "none here."


def read_body(body: JsonValue, where: str) -> JsonValue:
    """Return the template of a body; one that is written as JSON is parsed.

    Raises:
        ConfigError: It is no JSON.
    """
    if not isinstance(body, str):
        return body
    try:
        parsed: JsonValue = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f'{where}: is no JSON ({error}); holes stand in quotes: {{"query": "{{query}}", '
            '"size": "{k}"}'
        ) from error
    return parsed


def fill(
    template: JsonValue, values: Mapping[str, JsonValue], variables: Mapping[str, str]
) -> JsonValue:
    """Return a template with its holes filled.

    What has no value, such as the cursor of the first page, is "" in a text, and left out of a
    table where it is all of a field.
    """
    match template:
        case str():
            whole = _MARK.fullmatch(template)
            if whole and whole[2] and not whole[3]:
                return values.get(whole[2])
            return fill_text(template, values, variables)
        case dict():
            filled = {key: fill(item, values, variables) for key, item in template.items()}
            return {
                key: value
                for key, value in filled.items()
                if value is not None or template[key] is None
            }
        case list():
            return [fill(item, values, variables) for item in template]
    return template


def fill_text(
    template: str,
    values: Mapping[str, JsonValue],
    variables: Mapping[str, str],
    escape: Callable[[str], str] = str,
) -> str:
    """Return a text with its holes filled.

    Args:
        template: The text.
        values: By the name of the hole.
        variables: Of the environment, by name.
        escape: Makes a value fit for where it stands; not done to variables.
    """

    def value(mark: re.Match[str]) -> str:
        if mark[1]:
            return variables[mark[1]]
        found = values.get(mark[2])
        if mark[3]:
            return json.dumps(found, ensure_ascii=False)
        return escape(_as_text(found))

    return _MARK.sub(value, template)


def _as_text(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list() if value and all(isinstance(item, str) for item in value):
            return "\n\n".join(map(str, value))
    return "" if value == [] else json.dumps(value)


def escape_in_address(text: str) -> str:
    """Return a text as a part of an address."""
    return quote(text, safe="")
