"""What a reader sees of AsciiDoc, with offsets into the file.

Headings become `#` lines, and code comes in fences.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ragforge.corpus.seen_text import Edit, SeenText, seen_text, without_extra_blanks

_HEADING: Final = re.compile(r"(?P<marks>={1,6})[ \t]{1,20}+\S")
_UNDERLINE: Final = re.compile(r"(?:={2,200}|-{2,200}|~{2,200}|\^{2,200}|\+{2,200})\Z")
_UNDERLINES: Final = "=-~^+"
"""In the order of the levels of their titles."""
_SETTING: Final = re.compile(r":!?(?P<name>\w[\w-]{0,100}+)!?:(?:[ \t]+(?P<value>.*))?\Z")
_LIST: Final = re.compile(
    r"\[(?P<given>[^\[\]]{0,500})\][ \t]{0,20}\Z|\[\[[^\[\]]{1,300}\]\][ \t]{0,20}\Z"
)
_SOURCE: Final = re.compile(
    r"(?:source|listing)?(?:%[\w-]{1,40}){0,5}\s?,\s?(?P<language>[\w+#-]{1,40})|source\b"
)
_SUBSTITUTES: Final = re.compile(r"\bsubs=\"?[\w,+ -]{0,60}?(?<!-)\b(?:attributes|normal)\b")
_QUOTED: Final = re.compile(
    r"(?:quote|verse)[ \t]{0,20}+,[ \t]{0,20}+(?P<source>[^\s=\"][^=\"]{0,400}+)\Z"
)
_BOX: Final = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\Z")
_DELIMITER: Final = re.compile(
    r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,!:]={3,}|`{3,}\S{0,40})\Z"
)
_CONDITIONAL: Final = re.compile(r"ifn?def::[^\s\[\]]{1,200}\[(?P<shown>.{1,500})\]\Z")
_MACRO: Final = re.compile(r"[a-z][\w-]{0,40}::[^\s\[\]]{0,500}+\[.{0,500}\]\Z")
_BLOCK_TITLE: Final = re.compile(r"\.(?!\d{1,3}[+*][<^>.a-z]{0,5}\|)[^\s.]")
_ITEM: Final = re.compile(r"(?:[*.-]{1,5}|\d{1,3}\.|<[\d.]{1,3}>)[ \t]|(?:\.?\d{1,3}[+*])?\|")
_CELL: Final = re.compile(
    r"(?<![^\s|])(?:\d{1,3}(?:\.\d{1,3})?[+*]|\.\d{1,3}[+*])?(?:[<^>](?:\.[<^>])?|\.[<^>])?"
    r"[adehlmsv]?\|"
)
_ALONE: Final = frozenset({"+", "'''", "<<<", "---", "***"})
_CODE: Final = ("-", ".", "`")
_CHARACTERS: Final[Mapping[str, str]] = {
    "blank": "", "empty": "", "zwsp": "", "wj": "", "sp": " ", "nbsp": " ", "apos": "'",
    "quot": '"', "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "deg": "°",  # noqa: RUF001
    "plus": "+", "brvbar": "¦", "vbar": "|", "amp": "&", "lt": "<", "gt": ">", "startsb": "[",
    "endsb": "]", "caret": "^", "asterisk": "*", "tilde": "~", "backslash": "\\", "backtick": "`",
    "two-colons": "::", "two-semicolons": ";;", "cpp": "C++", "cxx": "C++", "pp": "++",
}  # fmt: skip
_REFERENCE: Final = re.compile(r"\{(?P<name>\w[\w-]{0,100}+)\}")
_LINK_SETTINGS: Final = re.compile(
    r"\^?(?:[ \t]{0,20}+,[ \t]{0,20}+(?:window|role|opts|options|title|id|rel|xrefstyle)=.{0,300}"
    r"|\^)\Z",
    re.DOTALL,
)
"""What stands behind the text of a link, and says how it opens."""
_LONGEST_TERM: Final = 300
_MOST_NESTED: Final = 5
_LONGEST_VALUE: Final = 300
_MOST_SUBSTITUTED: Final = 200_000
"""Characters that attributes may put in; a file that asks for more is not a document."""
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>")
_INLINE: Final = re.compile(
    r"(?<!\w)(?P<sign>[\"'])`(?=\S)(?P<curved>[^`\n]{1,300})(?<=\S)`(?P=sign)(?!\w)"
    r"|\+{3}(?P<raw>(?>(?:[^+\n]|\+(?!\+\+)){1,500}))\+{3}"
    r"|`[^`\n]{1,500}`|\\(?=\{\w)(?P<escaped>\{\w[\w-]{0,100}+\})"
    r"|(?:xref:(?:[^\s\[\]#]{1,500}#)?(?P<target>[^\s\[\]#]{1,500})"
    r"|(?:link|mailto):(?P<address>[^\s\[\]]{1,1000}))\[(?P<linked>[^\[\]]{0,500})\]"
    r"|(?P<bare>(?:https?|ftp)://[^\s\[\]]{1,1000})\[(?P<named>[^\[\]]{0,500})\]"
    r"|(?P<attribute>\{\w[\w-]{0,100}+\})(?:(?P<path>[^\s\[\]{}]{0,500}+)\[(?P<led>[^\[\]]{1,500})\])?"
    r"|<<(?P<id>[^<>,]{1,300})(?:,(?P<text>(?>(?:`[^`\n]{1,200}`|[^<>]){1,300})))?>>"
    r"|menu:(?P<menu>[^\s\[\]][^\[\]\n]{0,100})\[(?P<items>[^\[\]\n]{0,300})\]"
    r"|(?:image|icon|anchor|indexterm):[^\s\[\]:]{0,500}\[[^\[\]\n]{0,500}\]"
    r"|\[\[\[(?P<entry>[^\[\]\n,]{1,100})(?:,[^\[\]\n]{1,100})?\]\]\]|\[\[[^\[\]\n]{1,300}\]\]"
    r"|\(\(\([^()\n]{1,300}\)\)\)"
    r"|\(\((?P<indexed>[^()\n]{1,300})\)\)"
    r"|footnote:\w{0,50}\[(?P<note>(?>(?:[^\[\]]|\[[^\[\]]{0,300}\]){1,1000}))\]"
    r"|(?:kbd|btn|pass|stem|latexmath|asciimath|indexterm2):[\w,]{0,60}"
    r"\[(?P<key>[^\[\]\n]{0,500})\]"
    r"|configprop:(?P<property>[\w.-]{1,200})\[[^\[\]\n]{0,200}\]"
    r"|javadoc:(?:[\w.$/{}-]{0,200}[.$/])?(?P<type>[A-Z]\w{0,100})(?:#[^\s\[\]]{0,200})?"
    r"\[[^\[\]\n]{0,200}\]"
    r"|(?<![\w+])\+(?=[^\s+])(?P<literal>[^+\n]{1,300}?)(?<=\S)\+(?![\w+])"
    r"|\[[.\w%-]{1,100}\]#(?P<role>[^#\n]{1,300})#"
    r"|(?<!\*)\*\*(?=\S)(?P<louder>(?>(?:[^*]|\*(?!\*)){1,300}))\*\*(?!\*)"
    r"|(?<!_)__(?P<softer>(?>(?:[^_]|_(?!_)){1,300}))__(?!_)"
    r"|(?<![\w*])(?P<open>\*{1,2})(?=[^\s*])(?P<loud>[^*]{1,300}?)(?<=\S)(?P=open)(?![\w*])"
    r"|(?<![\w_])(?P<lean>_{1,2})(?=[^\s_])(?P<soft>[^_]{1,300}?)(?<=\S)(?P=lean)(?![\w_])"
    r"|(?<![\w#])#(?=[^\s#])(?P<mark>[^#\n]{1,300}?)(?<=\S)#(?![\w#])"
    r"|~(?P<low>[\w+-]{1,40}+)~|(?P<power>\^[\d+-]{1,40}+)\^|\^(?P<high>[\w+-]{1,40}+)\^"
    r"|(?<=\S)[ \t]\+$|(?<=[^\s:;])(?P<term>:{2,4}|;;)(?=\s|\Z)",
    re.MULTILINE,
)
_SEEN: Final = tuple(
    "escaped linked named text indexed key property type literal role louder softer loud soft mark "
    "low power high entry bare address".split()
)
_SECTION: Final = re.compile(
    r"^\[(?:\[(?P<id>[\w.:-]{1,300})\]|#(?P<short>[\w.:-]{1,300}))\]\n={1,6} (?P<title>.{1,300})$",
    re.MULTILINE,
)
_IN_CODE: Final = re.compile(r"(?P<escape>\\)?\{(?P<name>\w[\w-]{0,100}+)\}")
_LINKS: Final = frozenset({"linked", "named"})
_VERBATIM: Final = frozenset({"escaped", "literal"})
_MARKED: Final = frozenset(
    "linked named text indexed key role louder softer loud soft mark".split()
)
"""Whose text may hold other marks; none holds its own."""


def read_asciidoc(text: str) -> SeenText:
    """Return what a reader sees of a file of AsciiDoc, normalised."""
    return without_extra_blanks(seen_text(text, _Reader(text).edits()))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._closing = ""
        self._is_seen = True
        self._source: tuple[int | None, str] | None = None
        """Where the line begins that says what code follows, if right above it; its language."""
        self._substitutes = False
        """Whether names in the code that follows stand for values."""
        self._after_blank = True
        self._is_literal = False
        self._paragraph = (0, 0)
        self._boxes: set[str] = set()
        """The lines that close the boxes around."""
        self._behind = 0
        self._values: dict[str, str] = {}
        self._titles = {
            found["id"] or found["short"]: found["title"].strip()
            for found in _SECTION.finditer(text)
        }
        self._seen_titles: dict[str, str] = {}
        self._n_substituted = 0

    def edits(self) -> Iterator[Edit]:
        """Yield all edits, in any order."""
        at = 0
        for line in self._text.split("\n"):
            bare = line.strip()
            end = at + len(line)
            if at < self._behind:
                pass
            elif self._closing:
                yield from self._within(at, end, bare)
            elif not bare:
                self._source, self._is_literal, self._substitutes = None, False, False
                yield from self._end_paragraph()
            else:
                yield from self._line(at, end, line, bare)
            self._after_blank = not bare
            at = end + 1
        yield from self._end_paragraph()

    def _end_paragraph(self) -> Iterator[Edit]:
        start, end = self._paragraph
        self._paragraph = (0, 0)
        if end:
            yield from self._inline(start, end)

    def _within(self, at: int, end: int, bare: str) -> Iterator[Edit]:
        if bare == self._closing:
            self._closing, self._substitutes = "", False
            yield Edit(at, end, "```" if self._is_seen else "")
        elif not self._is_seen or _MACRO.match(bare):
            yield Edit(at, min(end + 1, len(self._text)))
        elif self._substitutes:
            yield from self._inline_attributes(at, end)

    def _line(self, at: int, end: int, line: str, bare: str) -> Iterator[Edit]:
        may_be_literal = line[0] in " \t" and not _ITEM.match(bare)
        self._is_literal = may_be_literal and (self._is_literal or self._after_blank)
        if self._is_literal:
            pass
        elif self._is_text(line, bare):
            if _ITEM.match(bare):
                yield from self._end_paragraph()
            first, behind = self._paragraph
            is_first = not behind and not _ITEM.match(bare)
            underline = self._underline(end, bare) if is_first else ""
            if underline:
                yield from self._underlined(at, end, underline)
                return
            self._paragraph = (first if behind else at, end)
            if "|" in line:
                yield from self._cells(at, end)
        else:
            yield from self._end_paragraph()
            yield from self._control(at, end, line, bare)

    def _is_text(self, line: str, bare: str) -> bool:
        return not (
            _HEADING.match(line)
            or _DELIMITER.match(bare)
            or _LIST.match(bare)
            or bare in _ALONE
            or bare.startswith("//")
            or _SETTING.match(bare)
            or _MACRO.match(bare)
            or _BLOCK_TITLE.match(bare)
        )

    def _control(self, at: int, end: int, line: str, bare: str) -> Iterator[Edit]:
        """Yield the edits of a line that is no text of a paragraph."""
        if heading := _HEADING.match(line):
            marks = heading.end("marks")
            yield Edit(at, at + marks, "#" * marks)
            yield from self._inline(at + marks, end)
        elif _DELIMITER.match(bare):
            yield from self._delimited(at, end, bare)
        elif given := _LIST.match(bare):
            yield from self._given(at, end, given["given"] or "")
        elif setting := _SETTING.match(bare):
            value = (setting["value"] or "").strip()
            while value.endswith(" \\") and (more := self._next_line(end)):
                value = f"{value[:-2].rstrip()} {more}"[:_MOST_SUBSTITUTED]
                end = self._behind = self._line_end(end + 1)
            self._values[setting["name"].lower()] = self._resolved(value)[:_LONGEST_VALUE]
            yield Edit(at, end)
        elif shown := _CONDITIONAL.match(self._text, at, end):
            yield Edit(at, shown.start("shown"))
            yield from self._inline(*shown.span("shown"))
            yield Edit(shown.end("shown"), end)
        elif _BLOCK_TITLE.match(bare):
            yield Edit(at, at + 1)
            yield from self._inline(at + 1, end)
        else:
            yield Edit(at, end)

    def _resolved(self, value: str) -> str:
        """Return a value with the attributes within it, as far as they are known."""
        for _ in range(_MOST_NESTED):
            if "{" not in value or len(value) > _LONGEST_VALUE:
                break
            value = _REFERENCE.sub(lambda found: self._value(found["name"], found[0]), value)
        return value

    def _value(self, name: str, unknown: str) -> str:
        name = name.lower()
        return self._values.get(name, _CHARACTERS.get(name, unknown))

    def _underline(self, end: int, bare: str) -> str:
        """Return the line that makes a title of the one before it; "" where none does."""
        following = self._next_line(end)
        is_title = _UNDERLINE.match(following) and any(map(str.isalnum, bare))
        is_title = is_title and following not in self._boxes
        return following if is_title and abs(len(following) - len(bare)) <= 1 else ""

    def _underlined(self, at: int, end: int, underline: str) -> Iterator[Edit]:
        marks = "#" * (_UNDERLINES.index(underline[0]) + 1)
        yield Edit(at, at + 1, f"{marks} {self._text[at]}")
        yield from self._inline(at + 1, end)
        self._behind = self._line_end(end + 1)
        yield Edit(end, self._behind)

    def _cells(self, at: int, end: int) -> Iterator[Edit]:
        """Yield the edits of how cells of a table are set."""
        for cell in _CELL.finditer(self._text, at, end):
            yield Edit(cell.start(), cell.end() - 1)

    def _delimited(self, at: int, end: int, bare: str) -> Iterator[Edit]:
        is_code = bare[0] in _CODE and bare != "--"
        above, language = self._source or (None, "")
        start = at if above is None else above
        if is_code or bare.startswith("//"):
            self._closing = "```" if bare[0] == "`" else bare
            self._is_seen = is_code
            if bare[0] == "`":
                language = bare.strip("`")
            yield Edit(start, end, f"```{language}" if is_code else "")
        else:
            self._boxes ^= {bare}
            yield Edit(start, end)
        self._source = None

    def _given(self, at: int, end: int, given: str) -> Iterator[Edit]:
        """Read a line of attributes: the name of a box is seen, and a language heads code."""
        source = _SOURCE.match(given)
        self._substitutes = _SUBSTITUTES.search(given) is not None
        if source:
            is_above = _DELIMITER.match(self._next_line(end))
            self._source = (at if is_above else None, source["language"] or "")
            if not is_above:
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
        return self._text[end + 1 : self._line_end(end + 1)].strip()

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return end if end >= 0 else len(self._text)

    def _inline(self, start: int, end: int) -> Iterator[Edit]:
        readers: dict[str, Callable[[re.Match[str]], Iterator[Edit]]] = {
            "attribute": self._attribute,
            "curved": self._quoted,
            "raw": _raw,
            "menu": _menu,
            "note": self._note,
        }
        for found in _INLINE.finditer(self._text, start, end):
            seen = next((name for name in _SEEN if found[name]), "")
            special = next((name for name in readers if found[name]), "")
            if special:
                yield from readers[special](found)
            elif found["term"]:
                yield from self._term(found, start)
            elif seen:
                yield from self._named(found, seen)
            elif found["target"] or found["id"]:
                yield from self._referred(found, "target" if found["target"] else "id")
            elif found[0][0] == "`":
                yield from self._monospaced(found.start() + 1, found.end() - 1)
            else:
                yield Edit(found.start(), found.end())

    def _referred(self, found: re.Match[str], group: str) -> Iterator[Edit]:
        """Yield the edits of a reference without a text: the title of its section, else its id."""
        title = self._title(found[group])
        self._n_substituted += len(title)
        if title and self._n_substituted <= _MOST_SUBSTITUTED:
            yield Edit(found.start(), found.end(), title)
        else:
            yield Edit(found.start(), found.start(group))
            yield Edit(found.end(group), found.end())

    def _title(self, section_id: str) -> str:
        """Return what is seen of the title of a section of the file, read once; "" for none."""
        if section_id not in self._seen_titles:
            title = self._titles.get(section_id, "")
            reader = _Reader(title)
            reader._values = self._values
            seen = seen_text(title, reader._inline(0, len(title))).text
            self._seen_titles[section_id] = seen
        return self._seen_titles[section_id]

    def _monospaced(self, start: int, end: int) -> Iterator[Edit]:
        """Yield the edits of code within a line: names of values, and the signs that keep them."""
        if end - start > len("++") and self._text[start] == self._text[end - 1] == "+":
            yield Edit(start, start + 1)
            yield Edit(end - 1, end)
            return
        for found in _IN_CODE.finditer(self._text, start, end):
            if found["escape"]:
                yield Edit(*found.span("escape"))
            else:
                yield from self._substituted(found)

    def _quoted(self, found: re.Match[str]) -> Iterator[Edit]:
        """Yield the edits of curved quotation marks."""
        opened, closed = "“”" if found["sign"] == '"' else "‘’"  # noqa: RUF001
        yield Edit(found.start(), found.start("curved"), opened)
        yield from self._inline(*found.span("curved"))
        yield Edit(found.end("curved"), found.end(), closed)

    def _note(self, found: re.Match[str]) -> Iterator[Edit]:
        """Yield the edits of a footnote, which is read in brackets where it is called."""
        is_parted = self._text[max(0, found.start() - 1)].isspace()
        yield Edit(found.start(), found.start("note"), "(" if is_parted else " (")
        yield from self._inline(*found.span("note"))
        yield Edit(found.end("note"), found.end(), ")")

    def _named(self, found: re.Match[str], seen: str) -> Iterator[Edit]:
        """Yield the edits that leave the part of a match that is seen."""
        start, end = found.span(seen)
        if seen in _LINKS and (settings := _LINK_SETTINGS.search(found[seen])):
            end = start + settings.start()
        yield Edit(found.start(), start)
        if seen in _MARKED:
            yield from self._inline(start, end)
        elif seen not in _VERBATIM:
            yield from self._inline_attributes(start, end)
        yield Edit(end, found.end())

    def _inline_attributes(self, start: int, end: int) -> Iterator[Edit]:
        for found in _REFERENCE.finditer(self._text, start, end):
            yield from self._substituted(found)

    def _attribute(self, found: re.Match[str]) -> Iterator[Edit]:
        """Yield the edits of `{name}`, and of a link whose address begins so."""
        name = found["attribute"].strip("{}")
        value = self._value(name, "")
        if found["led"] and ("://" in value or not value):
            yield Edit(found.start(), found.start("led"))
            yield Edit(found.end("led"), found.end())
            return
        reference = _REFERENCE.match(self._text, found.start())
        assert reference is not None
        yield from self._substituted(reference)

    def _substituted(self, found: re.Match[str]) -> Iterator[Edit]:
        value = self._value(found["name"], found[0])
        self._n_substituted += max(len(value) - len(found[0]), 0)
        if value != found[0] and self._n_substituted <= _MOST_SUBSTITUTED:
            yield Edit(found.start(), found.end(), value)

    def _term(self, found: re.Match[str], start: int) -> Iterator[Edit]:
        """Yield the edit of the sign behind the term of a list; colons within text are text."""
        nearest = max(start, found.start() - _LONGEST_TERM)
        begin = self._text.rfind("\n", nearest, found.start()) + 1
        if not begin and nearest > start:
            return
        begin = max(start, begin)
        if _ITEM.match(self._text[begin : found.start()].strip()) is None:
            yield Edit(found.start(), found.end(), ":")


def _raw(found: re.Match[str]) -> Iterator[Edit]:
    """Yield the edits of what is passed through as it is: HTML, of which the tags are not seen."""
    yield Edit(found.start(), found.start("raw"))
    for tag in _TAG.finditer(found.string, *found.span("raw")):
        yield Edit(*tag.span())
    yield Edit(found.end("raw"), found.end())


def _menu(found: re.Match[str]) -> Iterator[Edit]:
    """Yield the edits of a way through menus, such as "File > Open"."""
    yield Edit(found.start(), found.start("menu"))
    yield Edit(found.end("menu"), found.start("items"), " > " if found["items"] else "")
    yield Edit(found.end("items"), found.end())
