"""reStructuredText as blocks, by rules on lines: titles, literal blocks, directives, tables.

Docutils would be exact and is two orders slower; it also stops at directives it does not know.
"""

import re
from collections.abc import Iterator

from ragforge.corpus.formats import Block, Kind, Lines

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{,500}\s*\Z")
_SIMPLE_BORDER = re.compile(r"=+(?: +=+)+\s*\Z")
_GRID_BORDER = re.compile(r"\+(?:[-=]+\+)+\s*\Z")
_DIRECTIVE = re.compile(r"\.\. (?:\|[^|]+\| )?(?P<name>[\w:+.-]+?)::(?:\s|\Z)")
_FOOTNOTE = re.compile(r"\.\. \[[^\]]+\]")
_ROLE = re.compile(r":[\w:+.-]{1,60}:(?=`)")
_WHOLE = {
    "code", "code-block", "sourcecode", "parsed-literal", "literalinclude",
    "table", "list-table", "csv-table", "math", "prompt", "doctest", "testcode",
}  # fmt: skip
_SILENT = {
    "contents", "toctree", "index", "meta", "module", "currentmodule", "highlight",
    "default-role", "role", "image", "sectnum", "tags",
}  # fmt: skip
_SHORT_UNDERLINE = 4
"""Docutils takes an underline shorter than its title from this length on."""
_TABLE_LINES = 200
"""How far the border that ends a simple table is looked for."""


def rst_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text; a title's level is the order in which its style first appears."""
    lines = Lines(text)
    styles: dict[str, int] = {}
    at, literal = 0, False
    while at < len(lines.lines):
        if lines.blank(at):
            at += 1
            continue
        behind = _title_end(lines, at)
        if behind > at:
            yield _heading(lines, at, behind, styles)
        else:
            kind, behind = _body(lines, at, literal)
            yield lines.block(at, behind, kind)
        literal = lines.lines[behind - 1].rstrip().endswith("::")
        at = behind


def rst_title(text: str) -> str:
    """Return the first title of the outermost level, "" where there is none."""
    return next((block.title for block in rst_blocks(text) if block.level == 1), "")


def _heading(lines: Lines, at: int, behind: int, styles: dict[str, int]) -> Block:
    overlined = behind - at == 3
    style = lines.lines[behind - 1][0] * (1 + overlined)
    level = styles.setdefault(style, len(styles) + 1)
    title = _ROLE.sub("", lines.lines[behind - 2]).replace("`", "")
    return lines.block(at, behind, "heading", level=level, title=" ".join(title.split()))


def _title_end(lines: Lines, at: int) -> int:
    """Return the line behind the title that starts at a line, the line itself where none does."""
    if _overlined(lines, at):
        return at + 3
    titled = not lines.lines[at][0].isspace() and not _ADORNMENT.match(lines.lines[at])
    return at + 2 if titled and _underlines(lines, at + 1, lines.lines[at]) else at


def _overlined(lines: Lines, at: int) -> bool:
    if at + 2 >= len(lines.lines) or lines.blank(at + 1) or not _ADORNMENT.match(lines.lines[at]):
        return False
    over, title, under = (line.rstrip() for line in lines.lines[at : at + 3])
    return over == under and len(over) >= _SHORT_UNDERLINE and not _ADORNMENT.match(title)


def _underlines(lines: Lines, number: int, title: str) -> bool:
    if lines.blank(number) or not _ADORNMENT.match(lines.lines[number]):
        return False
    underline = lines.lines[number].rstrip()
    if underline in {"::", ".."}:
        return False
    return len(underline) >= min(len(title.rstrip()), _SHORT_UNDERLINE)


def _body(lines: Lines, at: int, literal: bool) -> tuple[Kind, int]:
    line = lines.lines[at]
    if line[0].isspace():
        return ("code", _indented_end(lines, at)) if literal else ("text", lines.run_end(at))
    if line.startswith(".. ") or line.rstrip() == "..":
        return _explicit_kind(line), _indented_end(lines, at + 1)
    if _GRID_BORDER.match(line):
        return "table", lines.run_end(at)
    if _SIMPLE_BORDER.match(line):
        return "table", _simple_table_end(lines, at)
    if _ADORNMENT.match(line) and lines.blank(at + 1):
        return "mark", at + 1
    return ("code" if line.startswith(">>> ") else "text"), lines.run_end(at)


def _explicit_kind(line: str) -> Kind:
    directive = _DIRECTIVE.match(line)
    if directive is None:
        return "text" if _FOOTNOTE.match(line) else "mark"
    if directive["name"] in _SILENT:
        return "mark"
    return "code" if directive["name"] in _WHOLE else "text"


def _indented_end(lines: Lines, first: int) -> int:
    """Return the line behind the indented lines from `first` on, blank lines between included."""
    behind = first
    for number in range(first, len(lines.lines)):
        if lines.blank(number):
            continue
        if not lines.lines[number][0].isspace():
            break
        behind = number + 1
    return behind


def _simple_table_end(lines: Lines, at: int) -> int:
    """Return the line behind the table's last border: rows may have blank lines between them."""
    for behind in range(at + 2, min(at + _TABLE_LINES, len(lines.lines)) + 1):
        if lines.blank(behind) and _SIMPLE_BORDER.match(lines.lines[behind - 1]):
            return behind
    return lines.run_end(at)
