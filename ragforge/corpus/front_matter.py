"""What stands before the text of a Markdown file, between lines at its very top."""

import re
from typing import Final

from ragforge.deferred import pattern

_YAML: Final = pattern(r"---[ \t]*\n(?P<body>.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML: Final = pattern(r"\+\+\+[ \t]*\n(?P<body>.*?\n)?\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)
_YAML_LINE: Final = pattern(r"[\w.\"'-]{1,200}+[ \t]{0,20}+:(?:[ \t]|\Z)|[ \t]|-[ \t]|#|[}\]]|\Z")
_TOML_LINE: Final = pattern(r"[\w.\"'-]{1,200}+[ \t]{0,20}+=|[ \t]|\[|\]|#|\Z")
_TITLE: Final = pattern(r"^title[ \t]*[:=][ \t]*+(?P<title>[^\n>|&*!{[][^\n]*)$", re.MULTILINE)
_SCALAR: Final = pattern(
    r"^[ \t]{0,20}[\"']?(?P<name>[\w-]{1,60})[\"']?[ \t]{0,20}[:=]"
    r"(?:[ \t]+(?P<value>[^\s>|&*!{[#].{0,300}))?$",
    re.MULTILINE,
)
_FLOW: Final = pattern(r"^[\w.\"'-]{1,200}+[ \t]{0,20}+:[ \t]{1,100}+(?=[\[{])", re.MULTILINE)
_FLOW_SIGN: Final = pattern(r"(?<=[\s,:\[{])[\"']|[ \t]#[^\n]*|[\[\]{}]")
_DOUBLE_QUOTED: Final = pattern(r"\\.|\"", re.DOTALL)
_FRONT_MATTER_CHARS: Final = 20_000
_EMPTY_LINES: Final = pattern(r"(?>(?:[ \t]{0,100}+\n){0,20})")


def front_matter_end(text: str) -> int:
    """Return where the body starts: behind YAML or TOML between lines at the top, else 0.

    What does not look like it is text between two rules, and stays. Hugo takes empty lines above.
    """
    above = _EMPTY_LINES.match(text)
    at = above.end() if above else 0
    if text.startswith("---", at):
        found, line = _YAML.match(text, at, _FRONT_MATTER_CHARS), _YAML_LINE
    elif text.startswith("+++", at):
        found, line = _TOML.match(text, at, _FRONT_MATTER_CHARS), _TOML_LINE
    else:
        return 0
    lines = (found["body"] or "").split("\n") if found else ["no"]
    is_stated = found is not None and all(map(line.match, lines))
    if is_stated and line is _YAML_LINE and not _is_closed("\n".join(lines)):
        return 0
    return found.end() if found and is_stated else 0


def _is_closed(body: str) -> bool:
    """Whether the brackets are closed in which values of YAML stand."""
    behind: int | None = 0
    for value in _FLOW.finditer(body):
        if behind is not None and value.start() >= behind:
            behind = _flow_end(body, value.end())
    return behind is not None


def _flow_end(body: str, start: int) -> int | None:
    """Return where the brackets of a value end that begins with one; None where they stay open."""
    depth, at = 0, start
    while sign := _FLOW_SIGN.search(body, at):
        end = _quote_end(body, sign.start()) if sign[0] in {"'", '"'} else sign.end()
        if end is None:
            return None
        at = end
        depth += (sign[0] in "[{") - (sign[0] in "]}")
        if not depth:
            return at
    return None


def _quote_end(body: str, start: int) -> int | None:
    """Return where a text in quotes ends that begins there; None where it stays open."""
    if body[start] == "'":
        return body.find("'", start + 1) + 1 or None
    found = _DOUBLE_QUOTED.finditer(body, start + 1)
    return next((sign.end() for sign in found if sign[0] == '"'), None)


def stated_title(text: str) -> str:
    """Return the title in the front matter, else ""."""
    found = _TITLE.search(text[: front_matter_end(text)])
    return found["title"].strip().strip("\"'").strip() if found else ""


def stated_values(text: str, end: int) -> dict[str, str]:
    """Return the values in the front matter that the text may name between braces."""
    if "{{" not in text:
        return {}
    return {
        found["name"]: (found["value"] or "").strip().strip("\"'")
        for found in _SCALAR.finditer(text, 0, end)
    }
