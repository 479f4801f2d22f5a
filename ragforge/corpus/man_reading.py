"""What a reader sees of a manual page (man and mdoc macros), with offsets into the file.

Headings become `#` lines, and what is set as it is typed comes in fences.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from operator import add, eq, ge, gt, le, lt, mul, sub
from typing import Final

from ragforge.corpus.mdoc import MACROS, SILENT, MdocReader, Piece
from ragforge.corpus.roff import STRINGS, Word, escape_edits, plain, word_edits, words_of
from ragforge.corpus.seen_text import Edit, SeenText, seen_text, without_extra_blanks

_TITLE: Final = re.compile(
    r"^\.(?:TH|Dt)[ \t]{1,20}+\"?(?P<name>[^\s\"]{1,100})\"?[ \t]{1,20}+\"?(?P<section>\w{1,10})",
    re.MULTILINE,
)
_STARTS: Final = re.compile(r"^(?:\.(?:TH|Dd|Dt|so)[ \t])", re.MULTILINE)
_SNIFFED: Final = 5_000
_CONTROL: Final = re.compile(
    r"[.'][ \t]{0,20}+(?P<macro>[A-Za-z%][^\s\\\"]{0,40}|\\[{}])?(?P<rest>.*)"
)
_HEADINGS: Final = {"SH": "# ", "SS": "## ", "Sh": "# ", "Ss": "## "}
_JOINED: Final = frozenset("BR RB IR RI BI IB".split())
_SPACED: Final = frozenset("B I SM SB R TQ SY IP".split())
_FENCES: Final = {"nf": True, "EX": True, "fi": False, "EE": False}
_DEFINES: Final = frozenset("de de1 dei dei1 am am1 ig".split())
_IFS: Final = frozenset("if ie el while".split())
_CONDITION: Final = re.compile(
    r"[ \t]{0,20}+(?P<negated>!?)[ \t]{0,20}+(?:(?P<mode>[netov])(?=[ \t\\]|\Z)"
    r"|(?P<kind>[drcmFS])[ \t]{0,20}+(?P<name>[^\s\\]{1,60}(?:\\[^\s{][^\s\\]{0,60}){0,9})"
    r"|(?P<sign>['\"])(?P<left>(?:(?!(?P=sign)).){0,200})(?P=sign)"
    r"(?P<right>(?:(?!(?P=sign)).){0,200})(?P=sign)"
    r"|(?P<number>(?:[^\s\\]|\\[^{\s]){1,200}))[ \t]{0,20}+(?P<rest>.*)"
)
_CONTINUED: Final = re.compile(r"(?<!\\)(?:\\\\){0,20}(?<!\\\{)\\\Z")
_BRACE: Final = re.compile(r"\\[{}]")
_ALWAYS: Final = re.compile(r"[ \t]{0,20}+(?P<rest>.*)")
_TERM: Final = re.compile(r"(?P<sign>[-+*/%<>=&:]{0,2})(?P<number>-?\d{1,9})[a-zA-Z]?")
_TABLE_TAB: Final = re.compile(r"\btab\s?\((?P<tab>.)\)")
_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": add, "-": sub, "*": mul, "<": lt, ">": gt, "<=": le, ">=": ge, "=": eq, "==": eq,
}  # fmt: skip
_PARAMETER: Final = re.compile(r"\\{1,2}\$(?:(?P<number>\d)|\[(?P<all>[*@])\]|[*@])")
_LONGEST_STRING: Final = 500
_CELL_SIGN: Final = re.compile(r"'|\.[^a-zA-Z\\ ]")
"""What begins a line of a table, and would be a control line elsewhere."""
_TABLE_RULE: Final = re.compile(r"[_=\s]+\Z")
_MOST_BODY: Final = 200
"""Lines of a macro that a page defines, of which the first are taken."""
_MOST_DEEP: Final = 5
_MOST_EXPANDED: Final = 200_000
"""Characters that macros and strings of a page may put in; one that asks for more is no page."""
_MOST_READ: Final = 2_000_000
"""Characters of macros that are read where they are called."""
_EMPTY_LINES: Final = re.compile(r"\n\s{0,1000}\n")
_REGISTERS: Final = {"\\n.g": "1", "\\n.x": "1", "\\n.y": "23", "\\n.l": "78", "\\n.$": "0"}


def is_man_page(text: str) -> bool:
    """Whether a text is a manual page: its suffix alone tells little."""
    return _STARTS.search(text, 0, _SNIFFED) is not None


def man_title(text: str) -> str:
    """Return name and section of a page, such as "ls(1)"; "" where it does not say."""
    found = _TITLE.search(text, 0, _SNIFFED)
    return f"{found['name'].lower()}({found['section']})" if found else ""


def read_man_page(text: str) -> SeenText:
    """Return what a reader sees of a manual page, normalised."""
    return without_extra_blanks(seen_text(text, _Reader(text).edits()))


class _Reader:
    """Goes over a page line by line, as a formatter for terminals does.

    Args:
        text: Of the page, or of a macro that it defines.
        within: Reads the page that defines the macro.
    """

    def __init__(self, text: str, within: "_Reader | None" = None) -> None:
        self._text = text
        self._depth: int = within._depth + 1 if within else 0
        self._strings: dict[str, str] = within._strings if within else {**STRINGS, **_REGISTERS}
        self._macros: dict[str, list[str]] = within._macros if within else {}
        self._mdoc: MdocReader = within._mdoc if within else MdocReader(self._strings)
        self._spent: dict[str, int] = within._spent if within else {"seen": 0, "read": 0}
        """Characters that were put in, and characters of macros that were read for it."""
        self._in_fence = False
        self._closes: list[bool] = []
        """Of the displays of mdoc around a line: whether they close a fence."""
        self._lists: list[int] = []
        """Of the lists of mdoc around a line: the number of the last item, -1 for
        dashes, else -2."""
        self._ends = ""
        """The line that ends the macro which is defined."""
        self._body: list[str] = []
        self._n_unseen = 0
        """How many blocks are open of a condition that does not hold."""
        self._n_conditions = 0
        """How many conditions stand before a place in its line."""
        self._else: list[bool] = []
        self._table = ""
        """The sign between the cells of the table that a line is in."""
        self._is_format = False
        self._is_marked = False
        """Whether the text of an item follows, whose sign was said."""

    def edits(self) -> Iterator[Edit]:
        """Yield all edits, in any order; a page that puts in too much is seen without the rest."""
        for edit in self._read():
            self._spent["seen"] += max(len(edit.seen) - (edit.end - edit.start), 0)
            is_kept = self._spent["seen"] <= _MOST_EXPANDED
            yield edit if is_kept else Edit(edit.start, edit.end)

    def _read(self) -> Iterator[Edit]:
        at, behind = 0, -1
        for line in self._text.split("\n"):
            behind += len(line) + 1
            if self._ends or not _CONTINUED.search(line):
                yield from self._line(at, at, behind)
                at = behind + 1
        if at <= behind:
            yield from self._line(at, at, behind)

    def _line(self, begin: int, at: int, end: int) -> Iterator[Edit]:
        """Read what stands in a line from a place on; before it is what says when to."""
        line = self._text[at:end]
        if self._ends:
            yield from self._defined(begin, end, line)
            return
        if self._n_unseen:
            self._n_unseen += _depth(line)
            self._n_unseen = max(self._n_unseen, 0)
            yield Edit(begin, end)
            return
        found = _CONTROL.match(line) if not (self._table and _CELL_SIGN.match(line)) else None
        macro = (found["macro"] or "") if found else ""
        if found and (macro in _DEFINES or macro in _IFS):
            yield from self._request(begin, end, macro, at + found.start("rest"))
        elif self._table and self._is_of_format(macro, line):
            yield Edit(begin, end)
        elif found and macro in _FENCES and not self._depth:
            yield Edit(begin, end, "```" if self._in_fence != _FENCES[macro] else "")
            self._in_fence = _FENCES[macro]
        elif found:
            yield from self._macro(begin, end, macro, at + found.start("rest"))
        else:
            yield Edit(begin, at)
            yield from self._typed(at, end)

    def _typed(self, at: int, end: int) -> Iterator[Edit]:
        if (self._mdoc.goes_on() or self._is_marked) and at and self._text[at:end].strip():
            yield Edit(at - 1, at)
            self._is_marked = False
        yield from escape_edits(self._text, at, end, self._strings)
        if self._table:
            yield from self._cells(at, end)

    def _request(self, begin: int, end: int, macro: str, rest: int) -> Iterator[Edit]:
        if macro in _IFS:
            yield from self._conditional(begin, end, macro, rest)
            return
        words = words_of(self._text, rest, end)
        if macro == "ig":
            words = [Word(rest, rest, "", is_quoted=False), *words]
        name = words[0].text if words else ""
        self._ends = f".{words[1].text}" if len(words) > 1 else ".."
        self._body = self._macros.setdefault(name, []) if macro[:2] == "am" else []
        if name:
            self._macros[name] = self._body
        yield Edit(begin, end)

    def _defined(self, begin: int, end: int, line: str) -> Iterator[Edit]:
        yield Edit(begin, end)
        bare = line.rstrip()
        if bare.startswith(".") and f".{bare[1:].lstrip()}" == self._ends:
            self._ends = ""
        elif len(self._body) < _MOST_BODY:
            self._body.append(line)

    def _conditional(self, begin: int, end: int, macro: str, rest: int) -> Iterator[Edit]:
        pattern = _ALWAYS if macro == "el" else _CONDITION
        found = pattern.match(self._text, rest, end)
        holds = found is not None and macro != "while"
        if macro == "el":
            holds = self._else.pop() if self._else else False
        elif found:
            holds = holds and self._holds(found)
        if macro == "ie":
            self._else.append(not holds)
        behind = found.start("rest") if found else end
        if not holds:
            self._n_unseen = max(_depth(self._text[behind:end]), 0)
            yield Edit(begin, end)
            return
        while self._text.startswith("\\{", behind):
            behind += 2
        is_deep = self._n_conditions == _MOST_DEEP
        if is_deep or not self._text[behind:end].strip("\\ \t"):
            yield Edit(begin, end)
            return
        self._n_conditions += 1
        yield from self._line(begin, behind, end)
        self._n_conditions -= 1

    def _holds(self, found: re.Match[str]) -> bool:
        """Whether a condition holds on a terminal of UTF-8."""
        if found["mode"]:
            holds = found["mode"] in "no"
        elif found["kind"]:
            name = found["name"]
            known = {*self._strings, *self._macros}
            holds = found["kind"] == "c" or name in known or f"\\n{name}" in known
        elif found["sign"]:
            holds = self._plain(found["left"]) == self._plain(found["right"])
        else:
            holds = _number(self._plain(found["number"])) > 0
        return holds != bool(found["negated"])

    def _plain(self, text: str) -> str:
        return plain(text, self._strings)

    def _macro(self, begin: int, end: int, macro: str, rest: int) -> Iterator[Edit]:
        """Yield the edits of a line that a macro begins: its words are seen, or none of it."""
        words = words_of(self._text, rest, end)
        if macro in self._macros:
            yield from self._expanded(begin, end, self._macros[macro], words)
        elif macro in {"ds", "as", "als", "nr", "TS", "TE", "T&"}:
            self._set(macro, rest, end, words)
            yield Edit(begin, end)
        elif macro in {"UR", "MT"}:
            follows = self._text[end + 1 : end + 4] in {".UE", ".ME"}
            # A line that only names the address parts no sentence.
            behind = end if follows else min(end + 1, len(self._text))
            yield from self._said(begin, behind, words if follows else ())
        elif macro in _HEADINGS and macro[1] in "HS":
            yield from self._said(begin, end, _parted(words, " ", _HEADINGS[macro]))
        elif macro in _JOINED | _SPACED | {"UE", "ME", "MR", "OP"}:
            yield from self._of_man(begin, end, macro, words)
        else:
            yield from self._of_mdoc(begin, end, macro, words)

    def _of_man(self, begin: int, end: int, macro: str, words: list[Word]) -> Iterator[Edit]:
        if macro == "IP":
            del words[1:]
        pieces = _parted(words, "" if macro in _JOINED else " ")
        if macro == "MR" and len(words) > 1:
            pieces = [words[0], "(", words[1], ")", *words[2:]]
        elif macro == "OP" and words:
            pieces = _parted(words, " ", "[", "]")
        yield from self._said(begin, end, pieces)

    def _said(
        self, begin: int, end: int, pieces: Sequence[Piece], *, joins: bool = False
    ) -> Iterator[Edit]:
        """Yield the edits that leave of a line some words, and put signs between them."""
        behind, before = begin - (joins and begin > 0), ""
        for piece in pieces:
            if isinstance(piece, str):
                before += piece
                continue
            yield Edit(behind, piece.start, before)
            yield from word_edits(piece, self._text, self._strings)
            behind, before = piece.end, ""
        yield Edit(behind, end, before)

    def _of_mdoc(self, begin: int, end: int, macro: str, words: list[Word]) -> Iterator[Edit]:
        if macro in {"Sh", "Ss"}:
            line = self._mdoc.heading(words)
            yield from self._said(begin, end, [_HEADINGS[macro], *line.pieces])
        elif macro == "It":
            yield from self._item(begin, end, words)
        elif macro in {"D1", "Dl"} and words and not self._in_fence:
            line = self._mdoc.line(macro, words)
            yield from self._said(begin, end, ["```\n", *line.pieces, "\n```"])
        elif macro in MACROS:
            line = self._mdoc.line(macro, words)
            joins = line.joins or self._is_marked or not line.pieces
            self._is_marked = self._is_marked and not line.pieces
            yield from self._said(begin, end, line.pieces, joins=joins)
        elif macro in SILENT:
            yield Edit(begin - (begin > 0), end)
        else:
            yield Edit(begin, end, self._display(macro, words))

    def _display(self, macro: str, words: Sequence[Word]) -> str:
        """Return what stands for a line that begins or ends a display or a list of mdoc."""
        kinds = {word.text for word in words}
        if macro == "Bl":
            is_bulleted = not kinds.isdisjoint({"-bullet", "-dash", "-hyphen"})
            self._lists.append(-1 if is_bulleted else 0 if "-enum" in kinds else -2)
        elif macro == "El" and self._lists:
            self._lists.pop()
        elif macro == "Bd":
            begins = not kinds.isdisjoint({"-literal", "-unfilled"}) and not self._in_fence
            self._closes.append(begins)
            self._in_fence = self._in_fence or begins
            return "```" if begins else ""
        elif macro == "Ed" and self._closes and self._closes.pop():
            self._in_fence = False
            return "```"
        return ""

    def _item(self, begin: int, end: int, words: list[Word]) -> Iterator[Edit]:
        """Read the head of an item: what it is named, or the sign that a list has for all."""
        kind = self._lists[-1] if self._lists else -2
        line = self._mdoc.line("It", words)
        if kind == -2:
            yield from self._said(begin, end, ["\n", *line.pieces])
            return
        if kind >= 0:
            self._lists[-1] = kind + 1
        yield from self._said(begin, end, [f"{kind + 1}. " if kind >= 0 else "- ", *line.pieces])
        self._is_marked = not line.pieces

    def _expanded(
        self, begin: int, end: int, body: Sequence[str], words: Sequence[Word]
    ) -> Iterator[Edit]:
        """Yield the edit of a line that calls a macro of the page."""
        lines = "\n".join(body)
        text = ""
        if "\\$" in lines and self._depth < _MOST_DEEP and self._spent["read"] < _MOST_READ:
            self._spent["read"] += len(lines)
            lines = _PARAMETER.sub(lambda found: _argument(found, words), lines)
            reader = _Reader(lines.replace("\\\\", "\\"), self)
            text = seen_text(reader._text, reader.edits()).text.strip()
            text = _EMPTY_LINES.sub("\n", text)
        yield Edit(begin, end, text)

    def _set(self, macro: str, rest: int, end: int, words: Sequence[Word]) -> None:
        """Take in a string, a register, or how a table is set."""
        if macro[0] == "T":
            self._table = "" if macro == "TE" else self._table or "\t"
            self._is_format = macro != "TE"
            return
        if len(words) < 2:
            return
        name = words[0].text
        if macro == "als":
            self._macros[name] = self._macros.get(words[1].text, [])
            return
        if macro == "nr":
            value = words[1].text
            held = _number(self._strings.get(f"\\n{name}", "0")) if value[:1] in {"+", "-"} else 0
            self._strings[f"\\n{name}"] = str(held + _number(self._plain(value)))
            return
        value = self._text[words[0].end : end].strip(" \t")
        value = self._plain(value.removeprefix('"').replace("\\\\", "\\"))
        before = self._strings.get(name, "") if macro == "as" else ""
        self._strings[name] = (before + value)[:_LONGEST_STRING]

    def _is_of_format(self, macro: str, line: str) -> bool:
        """Whether a line of a table says how it is set, or is no more than a rule."""
        if macro in {"TE", "T&"}:
            return False
        if not self._is_format:
            return bool(line) and _TABLE_RULE.match(line) is not None
        bare = line.rstrip()
        if bare.endswith(";"):
            tab = _TABLE_TAB.search(bare)
            self._table = tab["tab"] if tab else self._table
        self._is_format = not bare.endswith(".")
        return True

    def _cells(self, at: int, end: int) -> Iterator[Edit]:
        """Yield the edits of signs that part cells, and that put text of lines into one."""
        for found in re.finditer(rf"{re.escape(self._table)}|T\{{(?=\Z)|^T\}}", self._text[at:end]):
            seen = " | " if found[0] == self._table else ""
            yield Edit(at + found.start(), at + found.end(), seen)


def _depth(line: str) -> int:
    """Return how many blocks of a condition a line leaves open."""
    return sum(1 if found[0] == "\\{" else -1 for found in _BRACE.finditer(line))


def _number(expression: str) -> int:
    """Return the value of an expression, read from left to right."""
    value, at = 0, 0
    for found in _TERM.finditer(expression.replace("(", "").replace(")", "")):
        if found.start() != at:
            break
        at, number = found.end(), int(found["number"])
        value = number if not found.start() else _OPERATIONS.get(found["sign"], max)(value, number)
        value = max(min(value, 10**9), -(10**9))
    return value


def _parted(words: Sequence[Word], between: str, before: str = "", behind: str = "") -> list[Piece]:
    """Return words with a sign between two, one before them and one behind."""
    pieces: list[Piece] = [before] if words else []
    for number, word in enumerate(words):
        pieces += [between, word] if number else [word]
    return [*pieces, behind] if words else []


def _argument(found: re.Match[str], words: Sequence[Word]) -> str:
    """Return what an argument in the body of a macro stands for."""
    if not found["number"]:
        return " ".join(word.text for word in words)
    number = int(found["number"])
    return words[number - 1].text if 0 < number <= len(words) else ""
