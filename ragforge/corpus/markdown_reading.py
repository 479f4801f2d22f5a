"""What a reader sees of Markdown as sites write it, with offsets into the file.

MkDocs Material, Docusaurus MDX, MyST, GitBook, Hugo and Jekyll add lines that their generators
read: front matter, includes, admonitions, tabs, components, directives, attributes. What is left is
CommonMark with tables, whose headings, lists, fences and tables stay as they are written.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from ragforge.corpus.components import OPENED, component_end, tag_edits
from ragforge.corpus.front_matter import front_matter_end, stated_values
from ragforge.corpus.markdown_inline import ATTRIBUTES, InlineReader, raw_edits
from ragforge.corpus.seen_text import Edit, SeenText, seen_text, without_extra_blanks
from ragforge.deferred import dataclass, pattern

_FENCE: Final = pattern(r"(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})[ \t]*(?P<info>.*)")
_DIRECTIVE: Final = pattern(r"\{(?P<name>[a-zA-Z][\w:+.-]{0,60})\}[ \t]*(?P<title>.*)")
_LANGUAGE: Final = pattern(r"\{?[ \t]*\.?(?P<language>[\w+#.-]{1,40})")
_FENCE_TITLE: Final = pattern(
    r"""\b(?:title|filename)=(?:"[^"]{0,300}"|'[^']{0,300}')|\[(?=[^\[\]]{0,99}[A-Za-z])[^\[\]]{1,100}\](?=\s*\Z)"""
)
_OPTION: Final = pattern(r"[ \t]{0,100}+:[\w-]{1,60}:(?:[ \t]|\Z)")
_ADMONITION: Final = pattern(
    r"(?:!!!|\?\?\?\+?)[ \t]{1,20}+(?P<words>[A-Za-z][\w -]{0,100}+)?"
    r"(?:\"(?P<title>[^\"]*)\")?[ \t]*\Z"
)
_TAB: Final = pattern(r"===[!+]?[ \t]+[\"'](?P<title>[^\"']{1,300})[\"'][ \t]*\Z")
_BLOCK: Final = pattern(
    r"/{3,}[ \t]{0,20}+(?P<name>[\w-]{1,60}+)[ \t]{0,20}+(?:\|[ \t]{0,20}+(?P<title>.*))?\Z"
)
_BLOCK_END: Final = pattern(r"/{3,}[ \t]*\Z")
_COLONS: Final = pattern(
    r":{3,}[ \t]*(?:\{(?P<directive>[\w:+.-]{1,60})\}|(?P<name>[\w-]{1,60}))?(?P<rest>.*)"
)
_MDC: Final = pattern(r"^[ \t]{0,40}+(?:::[ \t]{0,20}+$|:[a-z][\w-]{0,60}+\{)", re.MULTILINE)
"""Tells a file of Nuxt: a component ends, or stands in a line of its own."""
_MDC_COMPONENT: Final = pattern(
    r"(?:::+(?:(?P<name>[a-z][\w-]{0,60}+)(?:\[(?P<text>[^\[\]\n]{0,300}+)\])?)?|:[a-z][\w-]{0,60}+(?=\{))"
    r"(?:\{(?P<given>[^{}\n]{0,500}+)\})?[ \t]{0,20}+\Z"
)
_MDC_TITLE: Final = pattern(
    r"(?<![\w:-])(?:title|label)=(?P<quote>[\"'])(?P<title>.{1,300}?)(?P=quote)"
)
_MDC_SLOT: Final = pattern(r"#[a-z][\w-]{0,60}+[ \t]{0,20}+\Z")
_SEEN_OF_COMPONENT: Final = pattern(
    r"^[ \t]{0,40}+(?P<name>title|label|description):[ \t]{1,20}+(?P<value>[^\s|>&\"'].{0,1000}+)$",
    re.MULTILINE,
)
_AUTODOC: Final = pattern(r":::[ \t]+(?P<name>[\w.-]{1,200})[ \t]*\Z")
_SEEN_OPTION: Final = pattern(
    r"[ \t]{0,100}+:(?:(?:header|caption):[ \t]{1,20}+(?=[^\s>|])"
    r"|(?=(?:type|value|default):[ \t]{1,20}+[^\s>|]))"
)
"""Names of columns and titles; what is told of an object, such as its value, with its name."""
_OPTIONS_BETWEEN_RULES: Final = pattern(
    r"\n[ \t]{0,40}+---[ \t]{0,20}+\n"
    r"(?P<options>(?>(?:(?![ \t]{0,40}+---[ \t]{0,20}+(?:\n|\Z))"
    r"(?:[\w-]{1,60}+:(?=[ \t\n])|[ \t#]|-[ \t]).{0,1000}+\n){0,40}))"
    r"[ \t]{0,40}+---[ \t]{0,20}+(?=\n|\Z)"
)
_SEEN_BETWEEN_RULES: Final = pattern(
    r"^[ \t]{0,40}+(?P<name>header|caption):[ \t]{1,20}+(?:[|>][-+]?[ \t]{0,20}+\n[ \t]{1,60}+)?"
    r"(?P<value>[^\s|>&].{0,1000}+"
    r"(?>(?:\n[ \t]{2,60}+(?![\w-]{1,60}+:(?:[ \t]|$)).{1,1000}+){0,9}))$",
    re.MULTILINE,
)
_HEADING_ID: Final = pattern(r"[ \t]{1,20}+\[#(?![0-9]+\])[\w-]{1,100}+\][ \t]{0,20}+\Z")
_CODE_OF_FILE: Final = pattern(r"<<<[ \t]{1,20}+[@./~\w]\S{0,300}+[ \t]*\Z")
_SNIPPET: Final = pattern(r"-{1,3}8<-{1,3}(?:[ \t]+[\"'].*[\"'])?[ \t]*\Z")
_INCLUDED: Final = pattern(r"8<-|^[ \t]{0,100}\{[*!]", re.MULTILINE)
_MACRO_LINE: Final = pattern(r"\{[*!].{0,500}[*!]\}[ \t]*\Z")
_MDX_START: Final = pattern(
    r"import[ \t]+(?:[\"']|\{[ \t]*$|[\w*{][^\n;]{0,300}[ \t]from[ \t]+[\"'])|export[ \t]+"
    r"(?:const|let|var|default|function|async|class|type|interface|\{|\*)",
    re.MULTILINE,
)
_MDX: Final = pattern(rf"^(?:{_MDX_START.pattern})", re.MULTILINE)
_LABELS: Final = pattern(r"^[ >\t]{0,20}\[(?P<label>[^\[\]\n^][^\[\]\n]{0,300})\]:", re.MULTILINE)
_LABEL: Final = pattern(r"\[(?!\^)[^\[\]]{1,300}\]:[ \t]*\S.*")
_CONTENTS: Final = pattern(r"(?:\[TOC\]|\[\[_?toc_?\]\])[ \t]*\Z", re.IGNORECASE)
_KRAMDOWN_CONTENTS: Final = pattern(r"[^\n]{0,60}+\n[ \t]{0,20}+\{:[ \t]?toc\b")
_ABBREVIATION: Final = pattern(r"\*\[[^\[\]]{1,100}\]:[ \t]")
_MYST_TARGET: Final = pattern(r"\([\w.:/ -]{1,200}\)=[ \t]*\Z")
_ALERT: Final = pattern(r">[ \t]?\[!(?P<name>[A-Za-z]{1,30})\][+-]?(?P<title>.*)")
_MYST: Final = pattern(r"^(?:`{3,}|:{3,})\{[a-z]|\{[a-z:]{1,30}\}`", re.MULTILINE)
_LIST_ITEM: Final = pattern(r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){1,6}")
_INTERRUPTS: Final = pattern(r"(?:>[ \t]{0,3}){0,9}(?:\||(?:[-*+]|1[.)])[ \t])")
"""What begins an item or a row within a paragraph; another number is one of its words."""
_BLOCK_OPTION: Final = pattern(r"(?: {2,100}+|[ ]?\t[ \t]{0,99}+):?[\w-]{1,60}:(?:[ \t]|\Z)")
_ATTRIBUTES_ALONE: Final = pattern(rf"(?:{ATTRIBUTES.pattern})[ \t]*\Z")
_BRACKET: Final = pattern(r"[\[\](){}]")
_UNSEEN: Final = pattern(r"<(?P<name>script|style|svg|iframe|template)\b", re.IGNORECASE)

_LIQUID: Final = pattern(
    r"\{(?:[{]?[%<]-?[ \t]{0,20}(?P<name>highlight|comment)"
    r"|\{[%<][ \t]{0,20}(?P<shown>code[\w-]{0,20}))\b"
    r"[ \t]{0,20}+(?:(?P<language>[\w+-]{1,30}+)(?!=))?[^{}\n]{0,200}+(?<!/>)\}{1,2}[ \t]*\Z"
)
_LIQUID_LANGUAGE: Final = pattern(r"\blang=[\"']?([\w+-]{1,30})")
_UNSEEN_LIQUID: Final = "comment"
_PRE: Final = pattern(r"<pre\b[^<>]{0,500}+>(?:\s{0,20}<code\b[^<>]{0,500}+>)?", re.IGNORECASE)
_PRE_END: Final = pattern(r"(?:</code>\s{0,20})?</pre>", re.IGNORECASE)
_PRE_LANGUAGE: Final = pattern(r"\blang(?:uage)?-([\w+-]{1,30})")
_LISTED: Final = pattern(r"<(?P<name>table|ul|ol|dl)\b", re.IGNORECASE)
_SAID_BOXES: Final = frozenset("tip info note warning danger caution important details".split())
_CODE_DIRECTIVES: Final = frozenset(
    "code code-block code-cell sourcecode prompt parsed-literal math doctest testcode "
    "mermaid".split()
)
_TABLE_DIRECTIVES: Final = frozenset({"list-table", "csv-table"})
"""What they are given is a caption, and what is in them text; their name is not seen."""
_UNSEEN_DIRECTIVES: Final = frozenset(
    "toctree include literalinclude image index contents raw bibliography meta currentmodule "
    "automodule autoclass autofunction autosummary highlight tableofcontents".split()
)
_TICKS: Final = "```"
_TAB_WIDTH: Final = 4
_MOST_EXPORTED: Final = 200
"""Lines that an export may take; one that goes on longer is half code, and loses its first line."""
_EXPORT: Final = "export"
_MOST_SNIPPETS: Final = 50
_MOST_BROKEN: Final = 20
"""Tags and expressions that nothing ends, after which no more is looked for the end of one."""
_UNTITLED_DIRECTIVES: Final = frozenset(
    "tab-set grid grid-item eval-rst figure div container only".split()
)
"""What they are given is for the builder; what is in them is read on."""
_UNTITLED_BLOCKS: Final = frozenset({"html", "define", "caption", "figure-caption"})


def read_markdown(text: str, *, is_mdx: bool = False) -> SeenText:
    """Return what a reader sees of a file.

    Args:
        text: Of the file, normalised.
        is_mdx: Whether it is MDX by its name; a file that imports is anyway.
    """
    body = front_matter_end(text)
    reader = _Reader(text, body, is_mdx=is_mdx or _MDX.search(text, body, 5_000) is not None)
    edits = [Edit(0, body), *reader.edits()]
    if len(edits) == 1 and not body:
        return SeenText(text)
    return without_extra_blanks(seen_text(text, edits))


@dataclass(slots=True)
class _Fence:
    """An open fence, or a directive that is written as one.

    Args:
        sign: What it begins with.
        start, end: The line that opens it.
        n_containers: How many admonitions and tabs it is in.
        is_code: Whether it holds code; else text that is read on.
        is_unseen: Whether nothing of it is seen.
        has_content: Whether something in it is seen.
    """

    sign: str
    start: int
    end: int
    n_containers: int
    is_code: bool = True
    is_unseen: bool = False
    has_content: bool = False


class _Reader:
    """Goes over a text line by line.

    Args:
        text: Of the file.
        at: Where the body begins.
        is_mdx: Whether it imports and has components.
    """

    def __init__(self, text: str, at: int, *, is_mdx: bool) -> None:
        self._text = text
        self._at = at
        self._is_mdx = is_mdx
        self._is_mdc = ":" in text and _MDC.search(text, at) is not None
        self._is_myst = "{" in text and _MYST.search(text, at) is not None
        labels = {
            " ".join(found["label"].lower().split())
            for found in (_LABELS.finditer(text) if "]:" in text else ())
        }
        values = stated_values(text, at)
        self._inline = InlineReader(text, is_mdx=is_mdx, labels=labels, values=values)
        self._edits: list[Edit] = []
        self._columns: list[int] = []
        """Of the admonitions and tabs around a line, whose content is indented."""
        self._fences: list[_Fence] = []
        self._paragraph = (0, 0)
        self._is_in_list = False
        self._after_blank = True
        self._after_code = False
        self._options: re.Pattern[str] | None = None
        """What options of a directive look like, which may follow."""
        self._next_options: re.Pattern[str] | None = None
        self._unclosed: set[str] = set()
        self._n_broken = 0
        self._list_end = 0
        """Where a table or a list of HTML ends, whose empty lines and indents make no code."""
        self._handlers: dict[str, Callable[[int, int], bool]] = {
            "`": self._fence,
            "~": self._fence,
            "!": self._admonition,
            "?": self._admonition,
            "=": self._tab,
            "/": self._block,
            ":": self._mdc_component if self._is_mdc else self._colons,
            "{": self._braces,
            "-": self._snippet,
            "<": self._element,
            "[": self._bracket,
            "*": self._abbreviation,
            ">": self._alert,
            "#": self._heading,
        }
        if is_mdx:
            self._handlers |= {"i": self._module_line, "e": self._module_line}
        if self._is_myst:
            self._handlers |= {"%": self._myst_line, "(": self._myst_line, "+": self._myst_line}

    def edits(self) -> list[Edit]:
        """Return all edits, in any order."""
        text, end = self._text, len(self._text)
        while self._at < end:
            begin = self._at
            line_end = text.find("\n", begin)
            line_end = end if line_end < 0 else line_end
            self._at = line_end + 1
            self._line(begin, line_end)
        self._end_paragraph()
        return self._edits

    def _line(self, begin: int, end: int) -> None:
        text, start = self._text, begin
        while start < end and text[start] in " \t":
            start += 1
        if start == end:
            self._end_paragraph()
            is_code = self._after_code or (self._fences and self._fences[-1].is_code)
            if self._after_blank and begin and not is_code:
                self._edits.append(Edit(begin, min(end + 1, len(text))))
            self._after_blank, self._options = True, None
            return
        column = start - begin + (_TAB_WIDTH - 1) * text.count("\t", begin, start)
        while self._columns and column < self._columns[-1] + _TAB_WIDTH:
            self._columns.pop()
        while self._fences and self._fences[-1].n_containers > len(self._columns):
            self._fences.pop()
        begin = self._dedent(begin, start)
        if self._fences and self._fences[-1].is_code:
            self._code_line(begin, start, end)
        elif self._options and self._options.match(text[begin:end]):
            seen = _SEEN_OPTION.match(text, begin, end)
            self._unseen(start, seen.end() if seen else end)
            return
        else:
            self._next_options = None
            column -= _TAB_WIDTH * len(self._columns)
            self._text_line(begin, start, end, column)
        self._after_blank, self._options = False, self._next_options

    def _text_line(self, begin: int, start: int, end: int, column: int) -> None:
        is_indented = column >= _TAB_WIDTH and not self._is_in_list and not self._is_mdx
        is_indented = is_indented and start >= self._list_end
        if is_indented and (self._after_blank or self._after_code):
            self._end_paragraph()
            self._after_code = True
            return
        self._after_code = False
        handler = self._handlers.get(self._text[start])
        if handler is not None and handler(start, end):
            return
        self._prose(begin, start, end, column)

    def _prose(self, begin: int, start: int, end: int, column: int) -> None:
        item = _LIST_ITEM.match(self._text, start, end)
        if item and _KRAMDOWN_CONTENTS.match(self._text, item.end()):
            self._unseen(start, end)
            return
        # Signs of one item or row, such as those of `*.py` and `src/*`, are no pair with another's.
        if (item and self._is_in_list) or _INTERRUPTS.match(self._text, start, end):
            self._end_paragraph()
        if item:
            self._is_in_list = True
            if self._text.startswith(("```", "~~~"), item.end()):
                self._fence(item.end(), end)
                return
        elif column == 0 and self._after_blank:
            self._is_in_list = False
        is_laid_out = start < self._list_end or (self._is_mdx and not self._is_in_list)
        if is_laid_out and start > begin:
            self._edits.append(Edit(begin, start))
        first, behind = self._paragraph
        self._paragraph = (first if behind else start, end)

    def _end_paragraph(self) -> None:
        start, end = self._paragraph
        if end:
            self._edits.extend(self._inline.edits(start, end))
            self._paragraph = (0, 0)

    def _dedent(self, begin: int, start: int) -> int:
        """Take off the indentation of what is in admonitions and tabs; return what is left."""
        left, at = _TAB_WIDTH * len(self._columns), begin
        while left > 0 and at < start:
            left -= _TAB_WIDTH if self._text[at] == "\t" else 1
            at += 1
        if at > begin:
            self._edits.append(Edit(begin, at))
        return at

    def _unseen(self, start: int, end: int) -> bool:
        self._end_paragraph()
        self._edits.append(Edit(start, end))
        return True

    def _shown(
        self, start: int, end: int, shown: tuple[int, int], *, is_name: bool = False
    ) -> bool:
        """Show of a line a title alone, or a name with a capital, as a paragraph of its own."""
        self._end_paragraph()
        text, (first, behind) = self._text, shown
        self._edits.append(Edit(start, first))
        if is_name:
            self._edits.append(Edit(first, first + 1, text[first].upper()))
        else:
            self._edits += self._inline.edits(first, behind)
        is_parted = text.startswith("\n", end + 1) or end + 1 >= len(text)
        if is_parted or behind < end:
            self._edits.append(Edit(behind, end, "" if is_parted else "\n"))
        else:
            self._edits.append(Edit(end, end + 1, "\n\n"))
        return True

    def _named(self, start: int, end: int, name: tuple[int, int]) -> bool:
        return self._shown(start, end, name, is_name=True)

    def _fence(self, start: int, end: int) -> bool:
        text = self._text
        if self._fences and _is_closing(text[start:end], self._fences[-1].sign):
            self._fences.pop()
            return self._unseen(start, end)
        found = _FENCE.match(text, start, end)
        if found is None:
            return False
        self._end_paragraph()
        fence = _Fence(found["fence"], start, end, len(self._columns))
        self._fences.append(fence)
        directive = _DIRECTIVE.match(text, found.start("info"), end)
        if directive:
            self._directive(fence, directive)
        else:
            self._info(found.start("info"), end)
            self._skip_code(fence, end)
        return True

    def _skip_code(self, fence: _Fence, end: int) -> None:
        """Go behind a fence at the left edge, if nothing is included in it."""
        closing = None if self._columns else _closing_line(fence.sign).search(self._text, end)
        if closing is None:
            return
        code = self._text[end : closing.start()]
        if code.strip() and not _INCLUDED.search(code):
            self._edits += raw_edits(self._text, end, closing.start())
            self._fences.pop()
            self._at, self._after_code = closing.end() + 1, False

    def _directive(self, fence: _Fence, directive: re.Match[str]) -> None:
        """Read the first line of a MyST directive."""
        name = directive["name"].rpartition(":")[2]
        self._next_options = _OPTION
        self._skip_options(fence.end)
        if name in _UNSEEN_DIRECTIVES:
            fence.is_unseen = True
            self._edits.append(Edit(fence.start, fence.end))
        elif name in _CODE_DIRECTIVES:
            fence.has_content = name == "math" and bool(directive["title"].strip())
            parting = "\n" if fence.has_content else ""
            self._edits.append(Edit(directive.start(), directive.start("title"), parting))
        elif name in _UNTITLED_DIRECTIVES or (
            name in _TABLE_DIRECTIVES and not directive["title"].strip()
        ):
            fence.is_code = False
            self._unseen(fence.start, fence.end)
        else:
            fence.is_code = False
            title = directive["title"].strip()
            first = directive.start("title") if title else directive.start("name")
            shown = (first, first + len(title or directive["name"]))
            self._shown(fence.start, fence.end, shown, is_name=not title)

    def _skip_options(self, end: int, shown: re.Pattern[str] = _SEEN_BETWEEN_RULES) -> None:
        """Leave out the options of a directive that stand between rules, behind its first line."""
        found = _OPTIONS_BETWEEN_RULES.match(self._text, end)
        if found is None:
            return
        at = end + 1
        for seen in shown.finditer(self._text, *found.span("options")):
            self._edits.append(Edit(at, seen.start()))
            self._edits.append(Edit(seen.start("name"), seen.start("value")))
            at = seen.end() + 1
        self._at = found.end() + self._text.startswith("\n", found.end())
        self._edits.append(Edit(at, self._at))

    def _info(self, start: int, end: int) -> None:
        """Leave of what describes a fence the language and the title."""
        language = _LANGUAGE.match(self._text, start, end)
        if language is None:
            return
        if language.start() < language.start("language"):
            self._edits.append(Edit(start, language.start("language")))
        title = _FENCE_TITLE.search(self._text, language.end(), end)
        rest = language.end()
        if title:
            self._edits.append(Edit(rest, title.start(), " "))
            rest = title.end()
        if rest < end:
            self._edits.append(Edit(rest, end))

    def _code_line(self, begin: int, start: int, end: int) -> None:
        self._next_options = None
        fence, line = self._fences[-1], self._text[start:end]
        if _is_closing(line, fence.sign):
            self._fences.pop()
            self._after_code = False
            if fence.is_unseen or not fence.has_content:
                self._edits.append(Edit(start, end))
            elif fence.sign[0] == ":":
                self._edits.append(Edit(start, end, _TICKS))
            if not fence.has_content:
                self._edits.append(Edit(fence.start, fence.end))
        elif fence.is_unseen or _SNIPPET.match(line) or _MACRO_LINE.match(line):
            self._edits.append(Edit(begin, min(end + 1, len(self._text))))
        elif self._options and _OPTION.match(line):
            seen = _SEEN_OPTION.match(line)
            behind = start + seen.end() if seen else min(end + 1, len(self._text))
            self._edits.append(Edit(start if seen else begin, behind))
            self._next_options = self._options
        else:
            fence.has_content = True

    def _admonition(self, start: int, end: int) -> bool:
        found = _ADMONITION.match(self._text[start:end])
        if found is None:
            return False
        self._open_container(start)
        if found["title"] is None and found["words"]:
            first = start + found.start("words")
            return self._named(start, end, (first, first + len(found["words"].split()[0])))
        return self._titled(start, end, found)

    def _titled(self, start: int, end: int, found: re.Match[str]) -> bool:
        title = (found["title"] or "").strip()
        if not title:
            return self._unseen(start, end)
        first = self._text.index(title, start + found.start("title"))
        return self._shown(start, end, (first, first + len(title)))

    def _open_container(self, start: int) -> None:
        line = self._text[self._text.rfind("\n", 0, start) + 1 : start]
        self._columns.append(len(line.expandtabs(_TAB_WIDTH)))

    def _tab(self, start: int, end: int) -> bool:
        found = _TAB.match(self._text[start:end])
        if found is None:
            return False
        self._open_container(start)
        return self._titled(start, end, found)

    def _block(self, start: int, end: int) -> bool:
        line = self._text[start:end]
        if _BLOCK_END.match(line):
            return self._unseen(start, end)
        found = _BLOCK.match(line)
        if found is None:
            return False
        self._next_options = _BLOCK_OPTION
        if found["title"] or found["name"] in _UNTITLED_BLOCKS:
            untitled = found["name"] in _UNTITLED_BLOCKS
            return self._unseen(start, end) if untitled else self._titled(start, end, found)
        return self._named(start, end, (start + found.start("name"), start + found.end("name")))

    def _colons(self, start: int, end: int) -> bool:
        text = self._text
        line = text[start:end]
        autodoc = _AUTODOC.match(line)
        if autodoc and autodoc["name"] not in _SAID_BOXES:
            self._next_options = _BLOCK_OPTION
            if "-" in autodoc["name"] or autodoc["name"] == "raw":
                return self._unseen(start, end)
            shown = start + autodoc.start("name"), start + autodoc.end("name")
            return self._shown(start, end, shown)
        found = _COLONS.match(line)
        if found is None:
            return False
        name = (found["directive"] or "").rpartition(":")[2]
        if name:
            self._skip_options(end)
        if name in _UNSEEN_DIRECTIVES or name in _CODE_DIRECTIVES:
            sign = line[: len(line) - len(line.lstrip(":"))]
            is_unseen = name in _UNSEEN_DIRECTIVES
            fence = _Fence(sign, start, end, len(self._columns), is_unseen=is_unseen)
            self._fences.append(fence)
            self._next_options = _OPTION
            if is_unseen:
                return self._unseen(start, end)
            self._end_paragraph()
            self._edits.append(Edit(start, end, f"{_TICKS}{found['rest'].strip()}"))
            return True
        self._next_options = _OPTION if found["directive"] else None
        is_untitled = name in _TABLE_DIRECTIVES and not found["rest"].strip()
        if is_untitled or name in _UNTITLED_DIRECTIVES:
            return self._unseen(start, end)
        return self._colon_title(start, end, found)

    def _mdc_component(self, start: int, end: int) -> bool:
        """Show of a component of Nuxt its title, else the name of a box."""
        found = _MDC_COMPONENT.match(self._text, start, end)
        if found is None:
            return self._colons(start, end)
        self._skip_options(end, _SEEN_OF_COMPONENT)
        if found["given"] and (given := _MDC_TITLE.search(self._text, *found.span("given"))):
            return self._shown(start, end, given.span("title"))
        if found["text"]:
            return self._shown(start, end, found.span("text"))
        if found["name"] in _SAID_BOXES:
            return self._named(start, end, found.span("name"))
        return self._unseen(start, end)

    def _colon_title(self, start: int, end: int, found: re.Match[str]) -> bool:
        title = found["rest"] if found["directive"] else found["rest"].partition("{")[0]
        title = title.strip().strip("[]").strip()
        if title:
            first = start + found["rest"].index(title) + found.start("rest")
            return self._shown(start, end, (first, first + len(title)))
        if not (found["name"] or found["directive"]):
            return self._unseen(start, end)
        group = "name" if found["name"] else "directive"
        return self._named(start, end, (start + found.start(group), start + found.end(group)))

    def _braces(self, start: int, end: int) -> bool:
        line = self._text[start:end]
        if _MACRO_LINE.match(line) or _ATTRIBUTES_ALONE.match(line):
            return self._unseen(start, end)
        if line.startswith("{/*") and self._unseen_until("*/}", start):
            return True
        if self._is_mdx and not line.startswith("{`"):
            behind = self._code_behind(start)
            is_code = behind > end or "=>" in self._text[start:behind]
            is_alone = is_code and not self._text[behind : self._line_end(behind)].strip()
            return is_alone and self._left_out(start, behind)
        return bool(_LIQUID.match(line)) and self._liquid(start, end)

    def _code_behind(self, start: int) -> int:
        """Return the place behind a tag or expression; 0 for none, and in a file of many broken."""
        behind = component_end(self._text, start) if self._n_broken < _MOST_BROKEN else 0
        self._n_broken += not behind
        return behind

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end

    def _left_out(self, start: int, behind: int) -> bool:
        """Leave out a stretch of lines, and go on behind it."""
        self._unseen(start, behind)
        self._at = behind + self._text.startswith("\n", behind)
        return True

    def _liquid(self, start: int, end: int) -> bool:
        """Read a block of code or a comment between tags of Jekyll or Hugo."""
        found = _LIQUID.match(self._text, start, end)
        assert found is not None
        name = found["name"] or found["shown"]
        closing = self._closing(_liquid_end(name), end)
        if closing is None:
            return False
        if name == _UNSEEN_LIQUID:
            return self._left_out(start, closing.end())
        if self._text.startswith("```", end + 1):
            return False
        named = _LIQUID_LANGUAGE.search(self._text, start, end)
        self._fenced((start, end), closing, found["language"] or (named[1] if named else ""))
        self._edits += raw_edits(self._text, end, closing.start())
        return True

    def _closing(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """Return what closes a stretch of lines; what was missing once is not looked for again."""
        is_missing = pattern.pattern in self._unclosed
        found = None if is_missing else pattern.search(self._text, at)
        if found is None:
            self._unclosed.add(pattern.pattern)
        return found

    def _fenced(self, opening: tuple[int, int], closing: re.Match[str], language: str) -> None:
        """Put the signs of a fence in the place of others around code, and go on behind it."""
        text = self._text
        self._end_paragraph()
        sign = "~~~" if text.find("```", opening[1], closing.start()) >= 0 else "```"
        first, behind = opening[1], closing.start()
        is_on_line = not text.startswith("\n", first)
        self._edits.append(Edit(*opening, f"{sign}{language}" + "\n" * is_on_line))
        is_on_line = bool(text[max(first, text.rfind("\n", first, behind)) : behind].strip())
        is_followed = bool(text[closing.end() : self._line_end(closing.end())].strip())
        seen = "\n" * is_on_line + sign + "\n" * is_followed
        self._edits.append(Edit(*closing.span(), seen))
        self._at = closing.end() + text.startswith("\n", closing.end())

    def _pre(self, start: int) -> bool:
        """Read a block of code of HTML."""
        found = _PRE.match(self._text, start)
        closing = self._closing(_PRE_END, found.end()) if found else None
        if found is None or closing is None:
            return False
        language = _PRE_LANGUAGE.search(found[0])
        self._fenced(found.span(), closing, language[1] if language else "")
        self._edits += self._inline.code_edits(found.end(), closing.start())
        return True

    def _snippet(self, start: int, end: int) -> bool:
        line = self._text[start:end]
        if not _SNIPPET.match(line):
            return False
        self._unseen(start, end)
        if "<--" in line and line.rstrip().endswith("8<--"):
            self._snippets(line.strip())
        return True

    def _snippets(self, sign: str) -> None:
        """Leave out names of files up to the sign that ends them, if it is near."""
        text, at = self._text, self._at
        for _ in range(_MOST_SNIPPETS):
            behind = text.find("\n", at)
            behind = len(text) if behind < 0 else behind
            if text[at:behind].strip() == sign:
                self._edits.append(Edit(self._at, behind))
                self._at = behind + 1
                return
            at = behind + 1

    def _element(self, start: int, end: int) -> bool:
        if self._text.startswith("<!--", start):
            return self._unseen_until("-->", start)
        if _CODE_OF_FILE.match(self._text[start:end]):
            return self._unseen(start, end)
        if self._component(start, end) or self._pre(start):
            return True
        listed = _LISTED.match(self._text, start, end)
        if listed and start >= self._list_end:
            closing = self._closing(_closing_tag(listed["name"].lower()), end)
            self._list_end = closing.start() if closing else 0
        unseen = _UNSEEN.match(self._text, start, end)
        return unseen is not None and self._unseen_until(f"</{unseen['name']}>", start)

    def _component(self, start: int, end: int) -> bool:
        """Read a tag that is code in part, or goes on over lines."""
        text = self._text
        opened = OPENED.match(text, start, end + 1)
        if opened is None or (text.find("{", start, end) < 0 <= text.find(">", start, end)):
            return False  # Most; what is in the line alone is found with what is around it.
        behind = self._code_behind(start)
        is_whole = self._text[behind - 2 : behind] == "/>"
        is_plain = behind <= end and "{" not in text[start:behind]
        if is_plain or not self._inline.is_component(opened["name"], is_whole=is_whole):
            return False
        self._end_paragraph()
        self._edits += tag_edits(text, start, behind)
        if not self._is_in_list:
            self._edits.append(Edit(text.rfind("\n", 0, start) + 1, start))
        self._at = behind + self._text.startswith("\n", behind)
        return True

    def _unseen_until(self, closing: str, start: int) -> bool:
        """Leave out what reaches over lines; what nothing closes is text."""
        stop = -1 if closing in self._unclosed else self._text.find(closing, start)
        if stop < 0:
            self._unclosed.add(closing)
            return False
        stop += len(closing)
        self._unseen(start, stop)
        self._at = stop + self._text.startswith("\n", stop)
        return True

    def _bracket(self, start: int, end: int) -> bool:
        line = self._text[start:end]
        is_unseen = _LABEL.match(line) or _CONTENTS.match(line)
        return bool(is_unseen) and self._unseen(start, end)

    def _abbreviation(self, start: int, end: int) -> bool:
        return bool(_ABBREVIATION.match(self._text, start, end)) and self._unseen(start, end)

    def _alert(self, start: int, end: int) -> bool:
        found = _ALERT.match(self._text, start, end)
        if found:
            begin = found.start("name") - 2
            if found["title"].strip():
                self._edits.append(Edit(begin, found.start("title")))
            else:
                name = found["name"].capitalize()
                self._edits.append(Edit(begin, end, f"{name}\n>"))
        return False

    def _heading(self, start: int, end: int) -> bool:
        if self._is_mdc and _MDC_SLOT.match(self._text, start, end):
            return self._unseen(start, end)
        self._end_paragraph()
        found = _HEADING_ID.search(self._text, start, end)
        if found:
            self._edits.append(Edit(*found.span()))
        self._paragraph = (start, found.start() if found else end)
        self._end_paragraph()
        self._is_in_list = False
        return True

    def _module_line(self, start: int, end: int) -> bool:
        """Leave out an import or export, to where its brackets are closed."""
        text = self._text
        if (start and text[start - 1] != "\n") or not _MDX_START.match(text, start):
            return False
        depth, at = _depth(text, start, end), end
        for _ in range(0 if _EXPORT in self._unclosed else _MOST_EXPORTED):
            if depth <= 0 or at >= len(text):
                break
            behind = text.find("\n", at + 1)
            behind = len(text) if behind < 0 else behind
            depth += _depth(text, at, behind)
            at = behind
        if depth <= 0:
            self._at, end = at + 1, at
        else:
            self._unclosed.add(_EXPORT)
        return self._unseen(start, end)

    def _myst_line(self, start: int, end: int) -> bool:
        line = self._text[start:end]
        is_unseen = line.startswith("% ") or line.rstrip() == "+++" or _MYST_TARGET.match(line)
        return bool(is_unseen) and self._unseen(start, end)


@cache
def _closing_line(sign: str) -> re.Pattern[str]:
    """Return what finds the line that closes a fence."""
    return re.compile(rf"^[ \t]{{0,100}}+{sign}{sign[0]}*+[ \t]{{0,100}}+$", re.MULTILINE)


@cache
def _liquid_end(name: str) -> re.Pattern[str]:
    """Return what finds the tag of Jekyll or Hugo that closes one."""
    return re.compile(
        rf"\{{%-?[ \t]{{0,20}}end{name}[ \t]{{0,20}}-?%\}}"
        rf"|\{{\{{[<%][ \t]{{0,20}}/[ \t]{{0,20}}{name}[ \t]{{0,20}}[%>]\}}\}}"
    )


@cache
def _closing_tag(name: str) -> re.Pattern[str]:
    return re.compile(f"</{name}>", re.IGNORECASE)


def _is_closing(line: str, sign: str) -> bool:
    stripped = line.strip()
    return stripped.startswith(sign) and not stripped.strip(sign[0])


def _depth(text: str, start: int, end: int) -> int:
    """Return how many brackets are left open in a stretch."""
    return sum(1 if sign[0] in "[({" else -1 for sign in _BRACKET.finditer(text, start, end))
