"""Jupyter notebooks as Markdown: text and code of their cells, with offsets into the file.

What cells put out is left out: in the file it stands before what was typed.
"""

import json
import re
from collections.abc import Iterator, Sequence
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # the one with places
from typing import Any, Final

from ragforge.corpus.formats import UnreadableError
from ragforge.corpus.seen_text import SeenText, placed_text

_PIECE: Final = re.compile(
    r"[^\\\"]{1,2000}+|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u[0-9a-fA-F]{4}|\\."
)
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
_LONGEST_LANGUAGE: Final = 10
_FENCES: Final = ("```", "~~~")
_LONGEST_FENCE: Final = 10
"""Of those that are closed for a cell: between two there may be no place for more."""
_TICKS: Final = re.compile(
    r"^(?P<item>(?:[ \t]{0,100}+(?:[-*+]|\d{1,9}[.)])[ \t])?)[ \t]{0,100}+"
    r"(?P<sign>`{3,1000}+|~{3,1000}+)(?P<rest>.*)",
    re.MULTILINE,
)


class _Literal(str):
    """A text of the file, with the place of its first character."""

    start: int
    __slots__ = ("start",)


def read_notebook(text: str) -> SeenText:
    """Return the cells of a notebook as Markdown, code in fences.

    Raises:
        UnreadableError: It is no notebook, or has no cells.
    """
    cells, language = _cells(_parsed(text))
    return placed_text(_pieces(text, cells, language))


def _parsed(text: str) -> Any:  # noqa: ANN401  # JSON holds anything
    decoder: Any = json.JSONDecoder(strict=False)

    def literal(source: str, begin: int, strict: bool) -> tuple[str, int]:
        value, end = json.decoder.scanstring(source, begin, strict)  # type: ignore[attr-defined]
        found = _Literal(value)
        found.start = begin
        return found, end

    decoder.parse_string = literal
    decoder.scan_once = py_make_scanner(decoder)
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"is no notebook: {str(error)[:100]}") from error


def _cells(notebook: object) -> tuple[list[tuple[str, list[_Literal]]], str]:
    """Return the kind and the source of each cell, and the language of code."""
    held = notebook if isinstance(notebook, dict) else {}
    sheets = held.get("worksheets")
    old = sheets[0] if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else {}
    cells = held.get("cells", old.get("cells"))
    if not isinstance(cells, list) or not cells:
        raise UnreadableError("is a notebook without cells")
    found = []
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") in {"markdown", "heading", "code"}:
            source = cell.get("source", cell.get("input"))
            lines = source if isinstance(source, list) else [source]
            texts = [line for line in lines if isinstance(line, _Literal)]
            found.append((str(cell["cell_type"]), texts))
    return found, _language(held.get("metadata"))


def _language(metadata: object) -> str:
    for name, field in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(name) if isinstance(metadata, dict) else None
        said = info.get(field) if isinstance(info, dict) else None
        if isinstance(said, str) and said.isalnum() and len(said) <= _LONGEST_LANGUAGE:
            return said
    return ""


def _pieces(
    text: str, cells: Sequence[tuple[str, list[_Literal]]], language: str
) -> Iterator[tuple[str, int]]:
    """Yield the parts of the text with their offsets; fences stand in what is left out between."""
    behind = 0
    for kind, lines in cells:
        if not any(line.strip() for line in lines):
            continue
        first = lines[0].start
        before = "\n\n" if behind else ""
        fence = _fence("".join(lines)) if kind == "code" else ""
        if kind == "code":
            before += f"{fence}{language}\n"
        yield before, max(behind, first - len(before))
        for line in lines:
            for piece, at in _decoded(text, line.start):
                yield piece, at
                behind = at + len(piece)
        if fence := fence or _open_fence("".join(lines)):
            is_ended = lines[-1].endswith("\n")
            closing = fence if is_ended else f"\n{fence}"
            yield closing, behind
            behind += len(closing)


def _fence(code: str) -> str:
    """Return a fence that no line of the code closes.

    Tildes come before a longer one: between two cells there may be no place for that.
    """
    signs = [found["sign"] for found in _TICKS.finditer(code)]
    for fence in _FENCES:
        if not any(sign.startswith(fence) for sign in signs):
            return fence
    return "`" * (max(len(sign) for sign in signs if sign[0] == "`") + 1)


def _open_fence(source: str) -> str:
    """Return what closes the fence that a cell of text leaves open, which ends with it."""
    opened = ""
    for found in _TICKS.finditer(source):
        sign, rest = found["sign"], found["rest"]
        if not opened:
            opened = sign if sign[0] == "~" or "`" not in rest else ""
        elif sign.startswith(opened) and not rest.strip() and not found["item"]:
            opened = ""
    return opened if len(opened) <= _LONGEST_FENCE else ""


def _decoded(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield the text of a literal piece by piece; an escape stands where it begins."""
    at = start
    while piece := _PIECE.match(text, at):
        raw = piece[0]
        seen = json.loads(f'"{raw}"', strict=False) if raw[0] == "\\" else raw
        yield _UNSEEN.sub("", seen), at
        at = piece.end()
