"""HTML as text: headings as `#` lines, `pre` as fences, table rows as lines of cells."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ragforge.corpus.formats import Block, ExtractedText, Kind, Lines, UnreadableError
from ragforge.corpus.powers import is_power
from ragforge.deferred import dataclass

DEEPEST: Final = 10_000
"""Elements that may be open at once. The parser looks through all of them at each new one: 100,000
take it a minute."""

_MOST_HELD: Final = 20
"""Nodes within a raised number, or the link around it, that are looked at."""
_DEEPEST_INDENT = 30
"""Levels of lists that are shown; those of a page with thousands would be nothing but blanks."""
_DROPPED = {
    *("script", "style", "nav", "template", "noscript", "svg", "iframe", "head", "annotation"),
    *("annotation-xml", "rustdoc-topbar", "rustdoc-toolbar"),
}
_FURNITURE = frozenset(
    "breadcrumb breadcrumbs breadcrumb-section theme-doc-breadcrumbs wy-breadcrumbs bd-breadcrumbs "
    "toc toc-macro toctree-wrapper table-of-contents table_of_contents theme-doc-toc-desktop "
    "theme-doc-toc-mobile sphinxsidebar md-sidebar md-header md-footer md-tabs md-source-file "
    "bd-sidebar bd-header bd-toc pagination-nav prev-next-area prev-next-footer navheader "
    "navfooter page-metadata page-metadata-secondary footer-body edit-this-page "
    "theme-edit-this-page headerlink hash-link anchorjs-link skip-link skip-to-content "
    "page-header-icon cookie-banner pageSectionHeader greybox katex-mathml mdbook-help-container "
    "mdbook-menu-bar menu-bar skip-main-content doc-anchor rustdoc-breadcrumbs copy-path "
    "hideme".split()
)
"""Classes and ids of what site generators and exports of wikis put around a page."""
_FURNITURE_ROLES = frozenset({"navigation", "search", "contentinfo"})
_CONTROLS = frozenset("select datalist textarea".split())
_NUMBER = re.compile(r"[0-9]{1,9}\Z")
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_SHOWN_LATER = frozenset({"tabpanel", "region"})
"""Roles of what a reader unfolds: of tabs, all but one are hidden."""
_UNFOLDS = frozenset({"aria-expanded", "aria-controls"})
_MAY_BE_UNSEEN = "button, select, datalist, textarea, [hidden], [style]"
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr",
    "legend", "li", "main", "ol", "p", "section", "summary", "table", "tr", "ul", *_HEADINGS,
}  # fmt: skip
_LISTS = {"ul", "ol", "menu"}
_CELLS = {"td", "th"}
_ROW_GROUPS = {"thead", "tbody", "tfoot"}
"""No cell reaches out of its group."""
_WIDEST = 100
"""Columns or rows that a cell is taken to be in; what reaches to the end states more."""
_MOST_REPEATED = 200_000
"""Characters that cells may put into the rows below theirs; a page that asks for more is none."""
_LONGEST_REPEATED = 100
"""Characters of a cell that are read again in each row that it is in; a longer one is so once."""
_PERMALINK = re.compile(r"(?<!\s)\s*(?<![¶🔗])[¶🔗]+\Z|(?<!\s)\s+#\Z")
_LOOKS_LIKE_MARKUP = re.compile(r"^(?=#{1,6} |```)", re.MULTILINE)
_HEADING_LINE = re.compile(r"(#{1,6}) (.*)")
_TAG = re.compile(r"<(?:(!--)|(/?)([a-zA-Z][^\s/>]{0,40}))")
_NEVER_DEEP = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr", "colgroup", "dd", "dt", "li", "optgroup", "option", "p", "rp", "rt", "tbody", "td",
    "tfoot", "th", "thead", "tr",
}  # fmt: skip
"""Have no content, or are closed by the next of their kind."""
_CDATA = re.compile(r"\A\s*<!\[CDATA\[|\]\]>\s*\Z")
_FENCE_LINE = re.compile(r"`{3,}\Z")
_TICKS = re.compile(r"^`{3,}", re.MULTILINE)


def read_page(html: str) -> ExtractedText:
    """Return title and text of a page; scripts, styles, navigation and breadcrumbs are left out.

    Raises:
        UnreadableError: More elements than `DEEPEST` are open at once.
    """
    _require_shallow(html)
    tree = LexborHTMLParser(html)
    named = tree.css_first("head > title")
    title = " ".join(named.text(deep=True).split()) if named else ""
    writer = _Writer()
    if tree.body is not None:
        _walk(tree.body, writer)
    return ExtractedText(title, writer.text())


def _require_shallow(html: str) -> None:
    if html.count("<") <= DEEPEST:
        return
    opened: Counter[str] = Counter()
    depth = at = 0
    while match := _TAG.search(html, at):
        at = match.end()
        if match[1]:
            end = html.find("-->", at)
            at = len(html) if end < 0 else end
            continue
        tag = match[3].lower()
        if tag in _NEVER_DEEP:
            continue
        if not match[2]:
            opened[tag] += 1
            depth += 1
        elif opened[tag]:
            opened[tag] -= 1
            depth -= 1
        if depth > DEEPEST:
            raise UnreadableError(
                f"has more than {DEEPEST:,} elements inside each other; close or remove them"
            )


def html_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text that `read_page` wrote."""
    lines = Lines(text)
    at = 0
    while at < len(lines.lines):
        if lines.blank(at):
            at += 1
            continue
        behind = _block_end(lines, at)
        heading = _HEADING_LINE.match(lines.lines[at])
        if heading and behind == at + 1:
            level, title = len(heading[1]), heading[2].strip()
            yield lines.block(at, behind, "heading", level=level, title=title)
        else:
            yield lines.block(at, behind, _kind(lines.lines[at:behind]))
        at = behind


def escape_markup(text: str) -> str:
    """Return a text whose lines cannot be taken for headings and fences."""
    return _LOOKS_LIKE_MARKUP.sub(r"\\", text)


def html_title(text: str) -> str:
    """Return the first heading of level 1 in a text that `read_page` wrote, else ""."""
    return next((block.title for block in html_blocks(text) if block.level == 1), "")


def _block_end(lines: Lines, at: int) -> int:
    if _HEADING_LINE.match(lines.lines[at]):
        return at + 1
    if not _FENCE_LINE.match(lines.lines[at]):
        return lines.run_end(at)
    for number in range(at + 1, len(lines.lines)):
        if lines.lines[number] == lines.lines[at]:
            return number + 1
    return len(lines.lines)


def _kind(lines: Sequence[str]) -> Kind:
    if _FENCE_LINE.match(lines[0]):
        return "code"
    return "table" if any(" | " in line for line in lines) else "text"


def _walk(body: LexborNode, writer: "_Writer") -> None:
    """Visit the nodes in order; without recursion, because pages nest thousands of levels deep."""
    stack = [(body, True)]
    while stack:
        node, entering = stack.pop()
        tag = node.tag or ""
        if not entering:
            writer.leave(tag)
        elif tag == "-text":
            writer.words(node.text_content or "")
        elif tag == "pre" or _is_highlighted(node, tag):
            writer.pre(_CDATA.sub("", _code_of(node)))
        elif tag not in _DROPPED and not _is_furniture(node) and not _is_unseen(node, tag):
            writer.enter(tag, _start(node, tag))
            if tag in _CELLS and writer.is_in_table:
                writer.cell(_span(node, "colspan"), _span(node, "rowspan"))
            if tag == "sup":
                held = _held(node)
                writer.raised(_text_of(held).strip(), is_note=_is_note(node, held))
            stack.append((node, False))
            stack.extend((child, True) for child in reversed(list(node.iter(include_text=True))))


def _held(node: LexborNode) -> list[LexborNode]:
    """Return a node and what it holds; nothing where that is more than a raised number needs."""
    held: list[LexborNode] = []
    waiting = [node]
    while waiting:
        held.append(waiting.pop())
        waiting.extend(reversed(list(islice(held[-1].iter(include_text=True), _MOST_HELD))))
        if len(held) + len(waiting) > _MOST_HELD:
            return []
    return held


def _text_of(held: Iterable[LexborNode]) -> str:
    return "".join(node.text_content or "" for node in held if node.tag == "-text")


def _is_note(node: LexborNode, held: Sequence[LexborNode]) -> bool:
    """Whether a raised text leads to a note: it holds a link, or is all that a link holds."""
    around = node.parent
    if around is not None and around.tag == "a" and _text_of(_held(around)) == _text_of(held):
        return True
    return any(one.tag == "a" for one in held)


def _code_of(node: LexborNode) -> str:
    """Return the code of an element, without the button that copies it."""
    if node.css_first(_MAY_BE_UNSEEN) is None:
        return node.text(deep=True)
    parts, stack = [], [node]
    while stack:
        child = stack.pop()
        if child.tag == "-text":
            parts.append(child.text_content or "")
        elif child is node or not _is_unseen(child, child.tag or ""):
            stack.extend(reversed(list(child.iter(include_text=True))))
    return "".join(parts)


def _is_unseen(node: LexborNode, tag: str) -> bool:
    """Whether a page hides an element for good, or it is a control and no part of the text."""
    if tag in _CONTROLS:
        return True
    given = node.attributes
    if tag == "button":
        parent = node.parent
        is_title = parent is not None and parent.tag in {*_HEADINGS, "summary", "dt"}
        return not (is_title or given.get("role") == "tab" or not _UNFOLDS.isdisjoint(given))
    is_hidden = "hidden" in given and given["hidden"] != "until-found"
    is_hidden = is_hidden or _HIDING.search(given.get("style") or "") is not None
    return is_hidden and given.get("role") not in _SHOWN_LATER


def _start(node: LexborNode, tag: str) -> int | None:
    """Return the number that a list begins with, or that an item has, where it is stated."""
    if tag not in {"ol", "li"}:
        return None
    stated = node.attributes.get("start" if tag == "ol" else "value") or ""
    return int(stated) if _NUMBER.match(stated) else None


def _span(node: LexborNode, name: str) -> int:
    """Return how many columns or rows a cell is in."""
    stated = (node.attributes.get(name) or "").strip()
    return max(1, min(int(stated), _WIDEST)) if _NUMBER.match(stated) else 1


def _is_highlighted(node: LexborNode, tag: str) -> bool:
    """Whether a script is code that a page shows, as older exports of Confluence write it."""
    return tag == "script" and (node.attributes.get("type") or "") == "syntaxhighlighter"


def _is_furniture(node: LexborNode) -> bool:
    """Whether an element leads through a site, and is no part of what its page says."""
    given = node.attributes
    if not given:
        return False
    names = f"{given.get('class') or ''} {given.get('id') or ''}".split()
    return given.get("role") in _FURNITURE_ROLES or not _FURNITURE.isdisjoint(names)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a table.

    Args:
        begin: Where in the words of its row its own begin.
        columns: How many it is in.
        last_row: The last that it is in, counted from 0.
        text: What is read in the rows below its first.
    """

    begin: int = 0
    columns: int = 1
    last_row: int = 0
    text: str = ""


class _Writer:
    """Collects words into lines, and lines into blocks that blank lines part."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._words: list[str] = []
        self._marker = ""
        self._lists: list[int] = []
        self._tables = 0
        self._in_row = False
        self._joins = False
        self._in_note = False
        self._row = self._column = 0
        self._cell = _Cell()
        self._n_repeated = 0
        self._spanning: dict[int, _Cell] = {}
        """Cells that reach into rows below theirs, by their first column."""

    def text(self) -> str:
        self._flush()
        return "".join(self._parts)

    def words(self, text: str) -> None:
        self._words.append(text.replace("\n", " "))

    @property
    def is_in_table(self) -> bool:
        """Whether a cell is one of a table, and of none within another."""
        return self._tables == 1

    def raised(self, text: str, *, is_note: bool) -> None:
        """Mark what follows as raised where it is a power, or the number of a note behind one."""
        if self._words and is_power(self._words[-1], text):
            self._words.append("[" if is_note else "^")
            self._in_note = is_note

    def pre(self, text: str) -> None:
        if self._tables:
            self.words(text)
            return
        self._flush()
        longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
        fence = "`" * (longest + 1)
        self._add(f"{fence}\n{text.strip(chr(10))}\n{fence}", join=False)
        self._joins = False

    def enter(self, tag: str, number: int | None = None) -> None:
        """Begin an element; a list may begin with a number, and an item have one."""
        if tag in _CELLS and self._tables == 1:
            self._cells_above()
            self._words.append(" | " if self._in_row else "")
            self._in_row = True
        elif tag == "br":
            self._words.append(" " if self._tables else "\n")
        if tag not in _BREAKS:
            return
        self._break(tag)
        if tag == "table":
            self._tables += 1
            self._joins = False
        elif tag in _LISTS:
            self._joins = bool(self._lists)
            first = 1 if number is None else max(number, 1)
            self._lists.append(first - 1 if tag == "ol" else -1)
        elif tag == "li" and not self._tables:
            self._item(number)

    def cell(self, columns: int, rows: int) -> None:
        """Tell how far the cell that was entered reaches."""
        self._cell = _Cell(len(self._words), columns, self._row + rows - 1)

    def _end_cell(self) -> None:
        cell = self._cell
        if cell.last_row > self._row:
            text = " ".join("".join(self._words[cell.begin :]).split())
            text = text if len(text) <= _LONGEST_REPEATED else ""
            self._spanning[self._column] = replace(cell, text=text)
        self._column += cell.columns

    def _cells_above(self) -> None:
        """Add cells of rows above that reach into this one at this place."""
        while (cell := self._spanning.get(self._column)) and cell.last_row >= self._row:
            self._n_repeated += len(cell.text) + len(" | ")
            if self._n_repeated > _MOST_REPEATED:
                self._spanning.clear()
                return
            self._words.append(f" | {cell.text}" if self._in_row else cell.text)
            self._in_row = True
            self._column += cell.columns

    def _end_row(self) -> None:
        if self._in_row:
            self._cells_above()
        self._row, self._column = self._row + 1, 0

    def _leave_part(self, tag: str) -> None:
        """End a part of a table."""
        if tag in _CELLS:
            self._end_cell()
        elif tag == "tr":
            self._end_row()
        elif tag in _ROW_GROUPS:
            self._spanning.clear()

    def leave(self, tag: str) -> None:
        if tag == "sup" and self._in_note:
            self._words.append("]")
            self._in_note = False
        if self.is_in_table:
            self._leave_part(tag)
        if tag not in _BREAKS:
            return
        if tag in _HEADINGS and not self._tables:
            self._heading(_HEADINGS[tag])
        self._break(tag)
        self._marker = "" if tag == "li" else self._marker
        if tag == "table":
            self._tables -= 1
            self._joins = False
            if not self._tables:
                self._row = self._column = 0
                self._spanning.clear()
        elif tag in _LISTS and self._lists:
            self._lists.pop()
            self._joins = bool(self._lists)

    def _item(self, stated: int | None) -> None:
        if not self._lists:
            self._lists.append(-1)
        indent = "  " * min(len(self._lists) - 1, _DEEPEST_INDENT)
        if self._lists[-1] >= 0:
            self._lists[-1] = stated if stated else self._lists[-1] + 1
        number = self._lists[-1]
        self._marker = f"{indent}{number}. " if number > 0 else f"{indent}- "

    def _heading(self, level: int) -> None:
        title = _PERMALINK.sub("", " ".join("".join(self._words).split()))
        self._words.clear()
        if title:
            self._add(f"{'#' * level} {title}", join=False)

    def _break(self, tag: str) -> None:
        """End the line, unless inside a table row: there a block is no more than a blank."""
        if self._tables > 1 or (self._tables and tag not in {"tr", "table", "caption"}):
            self._words.append(" ")
            return
        self._in_row = False
        self._flush()

    def _flush(self) -> None:
        lines = (" ".join(line.split()) for line in "".join(self._words).split("\n"))
        self._words.clear()
        body = "\n".join(line for line in lines if line)
        if not body:
            return
        if self._marker:
            body, self._marker = self._marker + body, ""
        join = self._joins
        self._add(escape_markup(body), join=join)
        self._joins = bool(self._lists or self._tables)

    def _add(self, block: str, *, join: bool) -> None:
        if self._parts:
            self._parts.append("\n" if join else "\n\n")
        self._parts.append(block)
