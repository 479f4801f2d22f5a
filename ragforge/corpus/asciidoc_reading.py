"""What a reader sees of AsciiDoc, with offsets into the file.

Headings become `#` lines, and code comes in fences.
"""

import re
from collections.abc import Iterator
from typing import Final

from ragforge.corpus.seen_text import Edit, SeenText, seen_text, without_extra_blanks

_HEADING: Final = re.compile(r"(?P<marks>={1,6})[ \t]{1,20}+\S")
_SETTING: Final = re.compile(r":!?[\w][\w-]{0,100}!?:(?:[ \t]|\Z)")
_LIST: Final = re.compile(
    r"\[(?P<given>[^\[\]]{0,500})\][ \t]{0,20}\Z|\[\[[^\[\]]{1,300}\]\][ \t]{0,20}\Z"
)
_SOURCE: Final = re.compile(
    r"(?:source|listing|%[\w-]+)?\s?,\s?(?P<language>[\w+#-]{1,40})|source\b"
)
_QUOTED: Final = re.compile(
    r"(?:quote|verse)[ \t]{0,20}+,[ \t]{0,20}+(?P<source>[^\s=\"][^=\"]{0,400}+)\Z"
)
_BOX: Final = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\Z")
_DELIMITER: Final = re.compile(
    r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,!:]={3,}|`{3,}\S{0,40})\Z"
)
_MACRO: Final = re.compile(
    r"(?:include|ifn?def|ifeval|endif|image|video|audio|toc|leveloffset)::\S{0,500}?\[.{0,500}\]\Z"
)
_BLOCK_TITLE: Final = re.compile(r"\.[^\s.]")
_ALONE: Final = frozenset({"+", "'''", "<<<", "---", "***"})
_CODE: Final = ("-", ".", "`")
_INLINE: Final = re.compile(
    r"`[^`\n]{1,500}`"
    r"|(?:xref|link|mailto):[^\s\[\]]{1,1000}\[(?P<linked>[^\[\]\n]{0,500})\]"
    r"|(?P<bare>(?:https?|ftp)://[^\s\[\]]{1,1000})\[(?P<named>[^\[\]\n]{0,500})\]"
    r"|<<(?P<id>[^<>,\n]{1,300})(?:,(?P<text>[^<>\n]{1,300}))?>>"
    r"|image:[^\s\[\]]{1,500}\[[^\[\]\n]{0,500}\]|\[\[[^\[\]\n]{1,300}\]\]|\(\(\([^()\n]{1,300}\)\)\)"
    r"|\(\((?P<indexed>[^()\n]{1,300})\)\)"
    r"|(?:kbd|btn|pass|footnote):\w{0,50}\[(?P<key>[^\[\]\n]{0,500})\]"
    r"|\[[.\w%-]{1,100}\]#(?P<role>[^#\n]{1,300})#"
    r"|(?<![\w*])(?P<open>\*{1,2})(?=[^\s*])(?P<loud>[^*\n]{1,300}?)(?<=\S)(?P=open)(?![\w*])"
    r"|(?<![\w_])(?P<lean>_{1,2})(?=[^\s_])(?P<soft>[^_\n]{1,300}?)(?<=\S)(?P=lean)(?![\w_])"
    r"|(?<![\w#])#(?=[^\s#])(?P<mark>[^#\n]{1,300}?)(?<=\S)#(?![\w#])"
    r"|~(?P<low>[\w+-]{1,40}+)~|\^(?P<high>[\w+-]{1,40}+)\^"
    r"|(?<=\S)[ \t]\+$"
)
_SEEN: Final = (
    "linked",
    "named",
    "text",
    "indexed",
    "key",
    "role",
    "loud",
    "soft",
    "mark",
    "low",
    "high",
)


def read_asciidoc(text: str) -> SeenText:
    """Return what a reader sees of a file of AsciiDoc, normalised."""
    return without_extra_blanks(seen_text(text, _Reader(text).edits()))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._closing = ""
        self._is_seen = True
        self._source: tuple[int, str] | None = None
        """Where the line begins that says what code follows, and its language."""
        self._after_blank = True

    def edits(self) -> Iterator[Edit]:
        """Yield all edits."""
        at = 0
        for line in self._text.split("\n"):
            bare = line.strip()
            end = at + len(line)
            if self._closing:
                yield from self._within(at, end, bare)
            elif not bare:
                self._source = None
            else:
                yield from self._line(at, end, line, bare)
            self._after_blank = not bare
            at = end + 1

    def _within(self, at: int, end: int, bare: str) -> Iterator[Edit]:
        if bare == self._closing:
            self._closing = ""
            yield Edit(at, end, "```" if self._is_seen else "")
        elif not self._is_seen or _MACRO.match(bare):
            yield Edit(at, min(end + 1, len(self._text)))

    def _line(self, at: int, end: int, line: str, bare: str) -> Iterator[Edit]:
        heading = _HEADING.match(line)
        delimiter = _DELIMITER.match(bare)
        given = _LIST.match(bare)
        if heading:
            marks = heading.end("marks")
            yield Edit(at, at + marks, "#" * marks)
            yield from self._inline(at + marks, end)
        elif delimiter:
            yield from self._delimited(at, end, bare)
        elif given:
            yield from self._given(at, end, given["given"] or "")
        elif bare in _ALONE or bare.startswith("//") or _SETTING.match(bare) or _MACRO.match(bare):
            yield Edit(at, end)
        elif _BLOCK_TITLE.match(bare):
            yield Edit(at, at + 1)
            yield from self._inline(at + 1, end)
        elif not (self._after_blank and line[0] in " \t"):
            yield from self._inline(at, end)

    def _delimited(self, at: int, end: int, bare: str) -> Iterator[Edit]:
        is_code = bare[0] in _CODE and bare != "--"
        if is_code or bare.startswith("//"):
            self._closing = "```" if bare[0] == "`" else bare
            self._is_seen = is_code
            start, language = self._source or (at, "")
            if bare[0] == "`":
                language = bare.strip("`")
            yield Edit(start, end, f"```{language}" if is_code else "")
        else:
            yield Edit(at, end)
        self._source = None

    def _given(self, at: int, end: int, given: str) -> Iterator[Edit]:
        """Read a line of attributes: the name of a box is seen, and a language heads code."""
        source = _SOURCE.match(given)
        if source:
            self._source = (at, source["language"] or "")
            if not _DELIMITER.match(self._next_line(end)):
                yield Edit(at, end)
        elif quoted := _QUOTED.match(given):
            start = at + self._text[at:end].index("[") + 1
            yield Edit(at, start + quoted.start("source"))
            yield Edit(start + quoted.end("source"), end)
        elif _BOX.match(given):
            yield Edit(at, end, given.capitalize())
        else:
            yield Edit(at, end)

    def _next_line(self, end: int) -> str:
        behind = self._text.find("\n", end + 1)
        return self._text[end + 1 : behind if behind >= 0 else len(self._text)].strip()

    def _inline(self, start: int, end: int) -> Iterator[Edit]:
        for found in _INLINE.finditer(self._text, start, end):
            seen = next((name for name in _SEEN if found[name]), "")
            if found["bare"] and not seen:
                yield Edit(found.end("bare"), found.end())
            elif found["id"] and not seen:
                yield Edit(found.start(), found.start("id"))
                yield Edit(found.end("id"), found.end())
            elif seen:
                yield Edit(found.start(), found.start(seen))
                yield Edit(found.end(seen), found.end())
            elif found[0][0] != "`":
                yield Edit(found.start(), found.end())
