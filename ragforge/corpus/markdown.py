"""Markdown (CommonMark and tables) as blocks, by the line maps of markdown-it's block parser."""

from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ragforge.corpus.formats import TITLE_CHARS, Block, Kind, Lines
from ragforge.corpus.front_matter import front_matter_end
from ragforge.deferred import pattern

_INLINE = pattern(r"[\\`*_\[\]<>&!{}]")
_ATTRIBUTES = pattern(r"(?<!\s)\s*\{[:#.][^{}]*\}$")
_HEADING_SOURCE_CHARS = 5 * TITLE_CHARS
"""A heading may be this long with its links; a longer one is a paragraph, not worth parsing."""
_PARSED_CHARS = 1_000_000
_FENCE = pattern(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_SPECIAL = pattern(r" {0,3}(?:#{1,6}(?:[ \t]|$)|```|~~~)")
_ATX = pattern(r" {0,3}(#{1,6})(?=[ \t]|$)(.*)")
_SETEXT = pattern(r" {0,3}(=+|-+)[ \t]*$")
_MARK = pattern(r" {0,3}(?:(?:[-*_][ \t]*){3,}|<!--.*-->[ \t]*)$")
_TABLE_RULE = pattern(
    r"(?:[ \t]*| {0,3}\|[ \t]*):?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$"
)
_CONTAINERS = {"bullet_list_open", "ordered_list_open", "list_item_open", "blockquote_open"}
_KINDS: dict[str, Kind] = {
    "fence": "code",
    "code_block": "code",
    "html_block": "code",
    "table_open": "table",
    "hr": "mark",
}


def markdown_blocks(text: str, max_chars: int) -> Iterator[Block]:
    """Yield the blocks of a text without its front matter.

    Lists and quotes longer than max_chars come as the blocks inside them, so that a fence in a
    list item stays whole. Texts of more than a million characters are read line by line: the
    parser takes 5 to 20 s and 1.4 GB for ten million.
    """
    body = front_matter_end(text)
    lines = Lines(text)
    if len(text) > _PARSED_CHARS:
        yield from scanned_blocks(lines, text.count("\n", 0, body))
        return
    first_line = text.count("\n", 0, body)
    done = first_line + (0 < body == len(text) and not text.endswith("\n"))
    tokens = _parser().parse(text[body:])
    for position, token in enumerate(tokens):
        if token.map is None or (first := token.map[0] + first_line) < done:
            continue
        behind = token.map[1] + first_line
        yield from _unclaimed(lines, done, first)
        done = first
        if token.type in _CONTAINERS and _long(lines, first, behind, max_chars):
            continue
        yield _block(lines, first, behind, tokens[position : position + 2])
        done = behind
    yield from _unclaimed(lines, done, len(lines.lines))


def markdown_title(text: str, max_chars: int) -> str:
    """Return the first heading of level 1, else ""."""
    titles = (block.title for block in markdown_blocks(text, max_chars) if block.level == 1)
    return next(titles, "")


def scanned_blocks(lines: Lines, at: int) -> Iterator[Block]:
    """Yield headings, fences, tables and paragraphs at the left edge, from a line on."""
    while at < len(lines.lines):
        line = lines.lines[at]
        behind = at + 1
        if fence := _FENCE.match(line):
            behind = _fence_end(lines, at, fence[1])
            yield lines.block(at, behind, "code")
        elif heading := _ATX.match(line):
            title = _title(_unclosed(heading[2]))
            yield lines.block(at, behind, "heading", level=len(heading[1]), title=title)
        elif not lines.blank(at):
            behind = _paragraph_end(lines, at)
            yield _scanned_paragraph(lines, at, behind)
        at = behind


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    # Link definitions leave no token behind; as paragraphs they keep their lines.
    parser.disable("reference")
    parser.core.ruler.enableOnly(["block"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _block(lines: Lines, first: int, behind: int, tokens: list[Token]) -> Block:
    opening = tokens[0]
    if opening.type == "heading_open" and opening.level == 0:
        return lines.block(
            first, behind, "heading", level=int(opening.tag[1:]), title=_title(tokens[1].content)
        )
    kind = _KINDS.get(opening.type, "text")
    if opening.type == "html_block" and _is_comment(opening.content):
        kind = "mark"
    return lines.block(first, behind, kind)


def _unclosed(source: str) -> str:
    """Return the text of a heading without the signs that open and close it."""
    title = source.strip(" \t")
    bare = title.rstrip("#")
    is_closed = not bare or bare[-1] in " \t"
    return bare.rstrip(" \t") if is_closed else title


def _title(source: str) -> str:
    """Return a heading as plain text: of links and code only what a reader sees."""
    if len(source) > _HEADING_SOURCE_CHARS or not _INLINE.search(source):
        return " ".join(source.split())
    [inline] = _inline_parser().parseInline(source)
    seen = (" " if child.type == "softbreak" else child.content for child in inline.children or ())
    return _ATTRIBUTES.sub("", " ".join("".join(seen).split()))


def _is_comment(html: str) -> bool:
    stripped = html.strip()
    return stripped.startswith("<!--") and stripped.find("-->") == len(stripped) - 3


def _fence_end(lines: Lines, at: int, fence: str) -> int:
    for number in range(at + 1, len(lines.lines)):
        closing = lines.lines[number].strip()
        if closing.startswith(fence) and not closing.strip(fence[0]):
            return number + 1
    return len(lines.lines)


def _paragraph_end(lines: Lines, at: int) -> int:
    """Return the line behind a paragraph; an underline makes it a heading that ends there."""
    if at + 1 < len(lines.lines) and _SETEXT.match(lines.lines[at + 1]):
        return at + 2
    behind = at + 1
    while not lines.blank(behind) and not _SPECIAL.match(lines.lines[behind]):
        behind += 1
    return behind


def _scanned_paragraph(lines: Lines, at: int, behind: int) -> Block:
    if behind == at + 1:
        return lines.block(at, behind, "mark" if _MARK.match(lines.lines[at]) else "text")
    second = lines.lines[at + 1]
    if behind == at + 2 and (underline := _SETEXT.match(second)):
        level = 1 if underline[1][0] == "=" else 2
        title = _title(lines.lines[at])
        return lines.block(at, behind, "heading", level=level, title=title)
    is_table = "|" in lines.lines[at] and _TABLE_RULE.match(second)
    return lines.block(at, behind, "table" if is_table else "text")


def _long(lines: Lines, first: int, behind: int, max_chars: int) -> bool:
    whole = lines.block(first, behind, "text")
    return whole.end - whole.start > max_chars


def _unclaimed(lines: Lines, first: int, behind: int) -> Iterator[Block]:
    while first < behind:
        end = min(lines.run_end(first), behind)
        if end > first:
            yield lines.block(first, end, "text")
        first = end + 1
