"""What a reader sees of reStructuredText as Sphinx renders it, with offsets into the file.

Docutils reads it exactly; it tells of no offset, and stops at what it does not know.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ragforge.corpus.markdown_inline import role_edits
from ragforge.corpus.seen_text import Edit, SeenText, seen_text, without_extra_blanks

_DIRECTIVE: Final = re.compile(
    r"\.\. (?:\|[^|\n]{1,100}\| )?(?P<name>[\w:+.-]{1,60}?) ?::(?:[ \t]{1,20}(?P<args>.*))?$"
)
_EXPLICIT: Final = re.compile(r"\.\.(?:[ \t]|\Z)")
_ANONYMOUS: Final = re.compile(r"__[ \t]+\S+\Z")
_FOOTNOTE: Final = re.compile(r"\.\. \[[^\]]{1,100}\]")
_OPTION: Final = re.compile(r":[\w -]{1,60}:(?:[ \t]|\Z)")
_DOCINFO: Final = re.compile(r":[\w-]{1,60}:(?:[ \t]|\Z)")
_TARGET: Final = re.compile(r"^[ \t]{0,40}\.\. _(?P<name>[^:\n`]{1,200}):", re.MULTILINE)
_DEFINED: Final = re.compile(
    r"^[ \t]{0,40}\.\. \|(?P<name>[^|\n]{1,100})\|[ \t]{1,20}(?P<how>[\w-]{1,30}) ?::[ \t]{0,20}"
    r"(?P<text>.{0,300}(?:\n[ \t]{1,40}(?!:)\S.{0,100}){0,3})",
    re.MULTILINE,
)
_LONGEST_VALUE: Final = 300
_MOST_SUBSTITUTED: Final = 200_000
"""Characters that substitutions may put in; a file that asks for more is not a document."""
_UNSEEN: Final = frozenset(
    "toctree contents index meta include literalinclude image raw highlight currentmodule module "
    "automodule autoclass autofunction automethod autodata autoexception autosummary default-role "
    "role sectnum tags py:module py:currentmodule c:namespace rst-class cssclass ifconfig".split()
)
_CODE: Final = frozenset(
    "code code-block sourcecode parsed-literal prompt doctest testcode testoutput testsetup math "
    "graphviz table list-table csv-table productionlist ipython jupyter-execute".split()
)
_SAID: Final = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated:",
    "seealso": "See also",
}
_TITLED: Final = frozenset({"admonition", "topic", "sidebar", "rubric", "figure", "centered"})
_UNTITLED: Final = frozenset(
    "figure only container class tabularcolumns grid grid-item tab-set".split()
)
"""Directives whose argument a builder reads."""
_SEEN_OPTION: Final = re.compile(
    r":(?:(?:header|caption):[ \t]{1,100}+(?=\S)|(?=(?:type|value|default):[ \t]{1,100}+\S))"
)
"""Names of columns and titles; what is told of an object, such as its value, with its name."""
_NUMBERED: Final = {"pep": "PEP ", "rfc": "RFC "}
_NAMED: Final = frozenset(
    "note warning tip hint important caution danger error attention seealso todo".split()
)
_INLINE: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~]| )"
    r"|(?P<joined>(?<=[*`|])\\)(?=\w)"
    r"|``(?!`)(?:[^`]|`(?!`)){1,500}``"
    r"|(?P<role>:[\w:+.-]{1,60}:)`(?P<given>[^`]{1,500})`"
    r"|`<(?P<address>[^`<>\s]{1,500})>`__?"
    r"|`(?P<link>[^`<]{1,300}?)(?:\s{1,40}<(?P<url>[^`<>]{1,500})>)?`(?P<marks>__?)"
    r"|(?<![\w*])(?P<open>\*\*|\*)(?=[^\s*])(?P<loud>[^*]{1,300}?)(?<=\S)(?P=open)(?![\w*])"
    r"|\[[\w#*]{1,40}\](?P<note>_)(?!\w)"
    r"|(?<![\w|])\|(?P<named>[^|\s](?:[^|\n]{0,98}[^|\s])?)\|_{0,2}(?![\w|])"
    r"|(?<![\w`])(?P<word>[A-Za-z][\w.-]{0,80}?)(?P<mark>_)(?![\w`])"
)

_SEEN: Final = ("address", "link", "loud")
_UNSEEN_SIGNS: Final = ("joined", "note")


class _Container(NamedTuple):
    """A directive around lines.

    Args:
        column: Of its mark; what is further in belongs to it.
        kind: Whether its content is text, code, or not seen.
        dedent: How far its content is moved to the left; None before the first line.
    """

    column: int
    kind: str
    dedent: int | None = None


def read_rst(text: str) -> SeenText:
    """Return what a reader sees of a file of reStructuredText, normalised."""
    return without_extra_blanks(seen_text(text, _Reader(text).edits()))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._targets = {found["name"].lower() for found in _TARGET.finditer(text)}
        self._values = dict(_values(text))
        self._n_substituted = 0
        self._around: list[_Container] = []
        self._options = False
        self._began = False
        self._paragraph = (0, 0)

    def edits(self) -> Iterator[Edit]:
        """Yield all edits, in any order."""
        at = 0
        for line in self._text.split("\n"):
            yield from self._line(at, line)
            at += len(line) + 1
        yield from self._end_paragraph()

    def read_line(self) -> str:
        """Return what is seen of a text that is one line, with no directive in it."""
        return seen_text(self._text, self._inline(0, len(self._text))).text

    def _end_paragraph(self) -> Iterator[Edit]:
        """Yield the edits within lines that belong together: what is quoted may break over them."""
        start, end = self._paragraph
        self._paragraph = (0, 0)
        if end:
            yield from self._inline(start, end)

    def _line(self, at: int, line: str) -> Iterator[Edit]:
        bare = line.strip()
        if not bare:
            self._options = False
            yield from self._end_paragraph()
            return
        column = len(line) - len(line.lstrip())
        while self._around and column <= self._around[-1].column:
            self._around.pop()
        start, end = at + column, at + len(line)
        kind = self._around[-1].kind if self._around else "text"
        if self._options and _OPTION.match(bare):
            if seen := _SEEN_OPTION.match(bare):
                yield Edit(start, start + seen.end())
                yield from self._inline(start + seen.end(), end)
            else:
                yield Edit(at, min(end + 1, len(self._text)))
        elif kind == "unseen":
            yield Edit(at, end)
        elif kind == "text":
            yield from self._text_line(at, start, bare)
        elif dedent := sum(one.dedent or 0 for one in self._around):
            yield Edit(at, min(at + dedent, start))

    def _text_line(self, at: int, start: int, bare: str) -> Iterator[Edit]:
        self._options = False
        dedent = self._dedent(start - at)
        if dedent:
            yield Edit(at, min(at + dedent, start))
        if not self._began and _DOCINFO.match(bare):
            yield Edit(start, start + len(bare))
            return
        if _ANONYMOUS.match(bare) and not self._paragraph[1]:
            yield Edit(start, start + len(bare))
            return
        if _EXPLICIT.match(bare) and not _FOOTNOTE.match(bare):
            yield from self._end_paragraph()
            yield from self._explicit(start - at, start, bare)
            return
        self._began = True
        first, behind = self._paragraph
        self._paragraph = (first if behind else start, start + len(bare))
        if bare.endswith("::"):
            self._around.append(_Container(start - at, "code"))

    def _dedent(self, column: int) -> int:
        """Return how much of the indentation of a line is of the directives around it."""
        if not self._around:
            return 0
        inner = self._around[-1]
        if inner.dedent is None:
            inner = inner._replace(dedent=column - self._base())
            self._around[-1] = inner
        return sum(one.dedent or 0 for one in self._around)

    def _base(self) -> int:
        return self._around[0].column + sum(one.dedent or 0 for one in self._around[:-1])

    def _explicit(self, column: int, start: int, bare: str) -> Iterator[Edit]:
        directive = _DIRECTIVE.match(bare)
        end = start + len(bare)
        name = directive["name"] if directive else ""
        if directive is None or name in _UNSEEN or bare.startswith(".. |"):
            self._around.append(_Container(column, "unseen"))
            yield Edit(start, end)
            return
        self._options = self._began = True
        if name in _CODE:
            self._around.append(_Container(column, "code"))
            return
        self._around.append(_Container(column, "text"))
        yield from self._shown(start, end, directive)

    def _shown(self, start: int, end: int, directive: re.Match[str]) -> Iterator[Edit]:
        """Yield the edits of the first line of a directive that is text."""
        name = directive["name"]
        args = start + directive.start("args") if directive["args"] else end
        said = _SAID.get(name, name.capitalize() if name in _NAMED else "")
        if name in _UNTITLED:
            yield Edit(start, end)
        elif said and args < end:
            mark = f"{said} " if name in _SAID else f"{said}: "
            yield Edit(start, args, mark)
        elif said:
            yield Edit(start, end, said)
        else:
            # Objects of a domain are called by what is described; others have a title or none.
            yield Edit(start, args)
        yield from self._inline(args, end)

    def _inline(self, start: int, end: int) -> Iterator[Edit]:
        for found in _INLINE.finditer(self._text, start, end):
            if found["escaped"]:
                yield Edit(found.start(), found.end() - (found["escaped"] != " "))
            elif found["role"]:
                yield from _role(found)
            elif seen := next((name for name in _SEEN if found[name]), ""):
                yield Edit(found.start(), found.start(seen))
                yield Edit(found.end(seen), found.end())
            elif found["named"]:
                yield from self._substituted(found)
            elif unseen := next((name for name in _UNSEEN_SIGNS if found[name]), ""):
                yield Edit(*found.span(unseen))
            elif found["word"] and found["word"].lower() in self._targets:
                yield Edit(found.start("mark"), found.end("mark"))

    def _substituted(self, found: re.Match[str]) -> Iterator[Edit]:
        value = self._values.get(found["named"])
        self._n_substituted += max(len(value or "") - len(found[0]), 0)
        if value is not None and self._n_substituted <= _MOST_SUBSTITUTED:
            yield Edit(found.start(), found.end(), value)


def _values(text: str) -> Iterator[tuple[str, str]]:
    """Yield what names of substitutions stand for; images and the like stand for nothing."""
    for found in _DEFINED.finditer(text) if ".. |" in text else ():
        value = " ".join(found["text"].split()) if found["how"] == "replace" else ""
        seen = _Reader(value).read_line() if value else ""
        yield found["name"], seen[:_LONGEST_VALUE]


def _role(found: re.Match[str]) -> Iterator[Edit]:
    """Yield the edits of a role and of what it is given."""
    name = found["role"].strip(":").rpartition(":")[2]
    if name in _NUMBERED and found["given"].isdecimal():
        yield Edit(found.start(), found.start("given"), _NUMBERED[name])
        yield Edit(found.end("given"), found.end())
    else:
        yield Edit(found.start(), found.end("role"))
        yield from role_edits(found.string, (found.end("role"), found.end()), name)
