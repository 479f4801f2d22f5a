"""What lines of mdoc macros say, in pages of the BSDs and of what comes from them."""

# ruff: noqa: RUF001 -- the signs that macros stand for

from collections.abc import Mapping, Sequence
from typing import Final

from ragforge.corpus.roff import STRINGS, Word, plain
from ragforge.deferred import dataclass

Piece = str | Word
"""What a line says: text that the macro stands for, or a word of the line; in their order."""

_ENCLOSURES: Final = {
    "Aq": "<>", "Ao": "<>", "Bq": "[]", "Bo": "[]", "Brq": "{}", "Bro": "{}", "Dq": "“”",
    "Do": "“”", "Op": "[]", "Oo": "[]", "Pq": "()", "Po": "()", "Qq": '""', "Qo": '""', "Sq": "‘’",
    "So": "‘’", "Ql": "‘’",
}  # fmt: skip
_CLOSED_BY: Final = {
    "Ac": ">", "Bc": "]", "Brc": "}", "Dc": "”", "Oc": "]", "Pc": ")", "Qc": '"', "Sc": "’",
}  # fmt: skip
_OPEN_BLOCKS: Final = frozenset("Ao Bo Bro Do Oo Po Qo So".split())
_SAID: Final = {
    "Ud": "currently under development.",
    "Bt": "is currently in beta test.",
    "Ux": "UNIX",
}
_SYSTEMS: Final = {
    "Bsx": "BSD/OS", "Dx": "DragonFly", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD",
    "Bx": "BSD", "At": "AT&T UNIX",
}  # fmt: skip
_ALONE: Final = {"Ar": "file ...", "Pa": "~", "Fl": "-"}
"""What macros say that are given no word."""
_PLAIN: Final = frozenset(
    "Ad An Ar Cd Cm Dv Em Er Ev Fa Ft Ic Li Lk Mt Ms Nm No Pa Sx Sy Tn Va Vt Xr".split()
)
_CALLABLE: Final = frozenset(
    "Ap Bx Bsx Dx Ec Eo Fc Fl Fn Fo Fx Ns Nx Ox Pf St Ta Ux Xc Xo At".split()
) | {*_PLAIN, *_ENCLOSURES, *_CLOSED_BY}
_UNPARSED: Final = frozenset("Bt D1 Dl Ex Fd Fr In It Lb Nd Rv Sm Ud".split())
MACROS: Final = _CALLABLE | _UNPARSED | {f"%{kind}" for kind in "ABCDIJNOPQRTUV"}
"""The macros whose lines say something."""
SILENT: Final = frozenset("Bk Ek Tg Hf Db Es Dd Dt Os".split())
"""Macros that say nothing, and part no paragraphs."""
_CLOSING: Final = frozenset(". , : ; ) ] ? !".split())
_OPENING: Final = frozenset("( [".split())
_STANDARDS: Final = {
    "-ansiC": "ANSI X3.159-1989 (“ANSI C89”)",
    "-ansiC-89": "ANSI X3.159-1989 (“ANSI C89”)",
    "-isoC": "ISO/IEC 9899:1990 (“ISO C90”)",
    "-isoC-90": "ISO/IEC 9899:1990 (“ISO C90”)",
    "-isoC-99": "ISO/IEC 9899:1999 (“ISO C99”)",
    "-isoC-2011": "ISO/IEC 9899:2011 (“ISO C11”)",
    "-p1003.1-90": "ISO/IEC 9945-1:1990 (“POSIX.1”)",
    "-p1003.1-96": "ISO/IEC 9945-1:1996 (“POSIX.1”)",
    "-susv2": "Version 2 of the Single UNIX Specification (“SUSv2”)",
    "-susv3": "Version 3 of the Single UNIX Specification (“SUSv3”)",
    "-svid4": "System V Interface Definition, Fourth Edition (“SVID4”)",
}
_LIBRARIES: Final = {
    "libarchive": "Reading and Writing Streaming Archives Library",
    "libc": "Standard C Library",
    "libcrypt": "Crypt Library",
    "libcurses": "Curses Library",
    "libedit": "Command Line Editor Library",
    "libkvm": "Kernel Data Access Library",
    "libm": "Math Library",
    "libmagic": "Magic Number Recognition Library",
    "libpcap": "Packet Capture Library",
    "libpthread": "POSIX Threads Library",
    "librt": "POSIX Real-time Library",
    "libutil": "System Utilities Library",
    "libz": "Compression Library",
}
_RETURNS: Final = (
    " the value 0 if successful; otherwise the value -1 is returned and the global variable errno "
    "is set to indicate the error."
)


@dataclass(frozen=True, slots=True)
class MdocLine:
    """What a line says.

    Args:
        pieces: In the order of the line.
        joins: Whether it goes on where the line before it ended, without a blank.
    """

    pieces: Sequence[Piece]
    joins: bool = False


class MdocReader:
    """Says what lines of macros say; what was said before counts.

    Args:
        strings: What names of strings stand for.
    """

    def __init__(self, strings: Mapping[str, str] = STRINGS) -> None:
        self._strings = strings
        self._name = ""
        self._section = ""
        self._pieces: list[Piece] = []
        self._is_glued = False
        self._is_spaced = True
        self._closers: list[str] = []
        self._n_parameters: int | None = None
        """Of the function whose parameters follow, each in a line of its own."""

    def goes_on(self) -> bool:
        """Return whether a line of text goes on where the line before it ended, and forget it."""
        goes_on = self._is_glued
        self._is_glued = not self._is_spaced
        return goes_on

    def heading(self, words: Sequence[Word]) -> MdocLine:
        """Return what a line says that names a section."""
        self._section = " ".join(word.text for word in words)
        self._is_glued = True
        return self._line("No", words)

    def line(self, macro: str, words: Sequence[Word]) -> MdocLine:
        """Return what a line of one of `MACROS` says."""
        if macro in {"D1", "Dl"}:
            macro = "No"
        if macro in _UNPARSED:
            return self._unparsed(macro, words)
        return self._line("No" if macro[0] == "%" else macro, words)

    def _line(self, macro: str, words: Sequence[Word]) -> MdocLine:
        joins = self._is_glued
        self._pieces, self._is_glued, self._closers = [], True, []
        n_last = len(words)
        while n_last and self._is_delimiter(words[n_last - 1], _CLOSING):
            n_last -= 1
        joins = joins or self._closes(macro, words[:n_last], words[n_last:])
        self._calls(macro, words[:n_last])
        for closer in reversed(self._closers):
            self._put(closer, joins=True)
        for word in words[n_last:]:
            self._put(word, joins=True)
        is_open = self._is_glued and bool(self._pieces)
        self._is_glued = (is_open and not words[n_last:]) or not self._is_spaced
        return MdocLine(self._pieces, joins)

    def _closes(self, macro: str, words: Sequence[Word], last: Sequence[Word]) -> bool:
        """Whether a line begins with what closes a block, or with what belongs to one before it."""
        if macro in {"Ns", "Ap", *_CLOSED_BY, "Fc", "Ec"} or (macro == "Fa" and self._n_parameters):
            return True
        return macro in {"No", "Xc"} and bool(last) and not words

    def _calls(self, macro: str, words: Sequence[Word]) -> None:
        at = 0
        while True:
            behind = at
            while behind < len(words) and not self._is_called(words[behind]):
                behind += 1
            self._say(macro, list(words[at:behind]), is_followed=behind < len(words))
            if behind == len(words):
                return
            macro, at = words[behind].text, behind + 1

    def _is_called(self, word: Word) -> bool:
        return not word.is_quoted and word.text in _CALLABLE

    def _is_delimiter(self, word: Word, signs: frozenset[str]) -> bool:
        return not word.is_quoted and word.text in signs

    def _put(self, piece: Piece, *, joins: bool = False, is_followed_closely: bool = False) -> None:
        if self._pieces and self._is_spaced and not joins and not self._is_glued:
            self._pieces.append(" ")
        self._pieces.append(piece)
        self._is_glued = is_followed_closely

    def _say(self, macro: str, words: list[Word], *, is_followed: bool) -> None:
        if macro in _ENCLOSURES:
            signs = _ENCLOSURES[macro]
            self._put(signs[0], is_followed_closely=True)
            if macro not in _OPEN_BLOCKS:
                self._closers.append(signs[1])
            self._words(words)
        elif macro in _CLOSED_BY:
            self._put(_CLOSED_BY[macro], joins=True)
            self._words(words)
        elif macro in {"Eo", "Ec", "Fo", "Fc", "Fn"}:
            self._bracketed(macro, words)
        elif macro in {"Ns", "Pf", "Ap", "Ta", "Xo", "Xc"}:
            self._spacing(macro, words)
        elif macro in _SYSTEMS or macro in _SAID or macro == "St":
            self._named(macro, words)
        elif not words and macro in _ALONE:
            self._put(_ALONE[macro], is_followed_closely=macro == "Fl" and is_followed)
        else:
            self._arguments(macro, words)

    def _arguments(self, macro: str, words: list[Word]) -> None:
        if macro == "Fl":
            self._words(words, before="-")
        elif macro == "Xr" and len(words) > 1:
            self._words(words[:1])
            for piece in ("(", words[1], ")"):
                self._put(piece, joins=True)
            self._words(words[2:])
        elif macro == "Lk" and len(words) > 1:
            self._words(words[1:])
        elif macro in {"Fa", "Nm"}:
            (self._parameters if macro == "Fa" else self._own_name)(words)
        elif macro != "An" or not words or words[0].text not in {"-split", "-nosplit"}:
            self._words(words)

    def _words(self, words: Sequence[Word], before: str = "") -> None:
        for word in words:
            if self._is_delimiter(word, _CLOSING):
                self._put(word, joins=True)
            elif self._is_delimiter(word, _OPENING):
                self._put(word, is_followed_closely=True)
            elif before and not self._is_delimiter(word, frozenset("|")):
                self._put(before)
                self._put(word, joins=True)
            else:
                self._put(word)

    def _own_name(self, words: list[Word]) -> None:
        if words and not self._name:
            self._name = plain(words[0].text, self._strings)
        is_named = words and not self._is_delimiter(words[0], _CLOSING)
        if not is_named and self._name:
            self._put(self._name)
        self._words(words)

    def _parameters(self, words: Sequence[Word]) -> None:
        for number, word in enumerate(words):
            if self._n_parameters or number:
                self._put(",", joins=True)
            self._put(word, joins=self._n_parameters == 0)
            if self._n_parameters is not None:
                self._n_parameters += 1

    def _bracketed(self, macro: str, words: list[Word]) -> None:
        if macro == "Eo":
            if words:
                self._put(words[0])
            self._is_glued = True
            self._words(words[1:])
        elif macro == "Ec":
            for word in words[:1]:
                self._put(word, joins=True)
            self._words(words[1:])
        elif macro == "Fo":
            self._words(words[:1])
            self._put("(", joins=True, is_followed_closely=True)
            self._n_parameters = 0
        elif macro == "Fc":
            self._n_parameters = None
            self._put(")", joins=True)
            self._words(words)
        elif words:
            self._put(words[0])
            self._put("(", joins=True, is_followed_closely=True)
            self._n_parameters = 0
            self._parameters(words[1:])
            self._n_parameters = None
            self._put(")", joins=True)

    def _spacing(self, macro: str, words: list[Word]) -> None:
        if macro == "Ns":
            self._is_glued = True
            self._words(words)
        elif macro == "Pf":
            self._words(words[:1])
            self._is_glued = bool(words)
            self._words(words[1:])
        elif macro == "Ap":
            self._put("'", joins=True, is_followed_closely=True)
            self._words(words)
        elif macro == "Ta":
            self._put("|")
            self._words(words)
        else:
            self._words(words)

    def _named(self, macro: str, words: list[Word]) -> None:
        if macro == "St" and words:
            self._put(_standard(words[0].text))
            words = words[1:]
        elif macro == "Bx" and words and words[0].text[:1].isdigit():
            self._put(words[0])
            self._put("BSD", joins=True)
            if len(words) > 1:
                self._put("-", joins=True, is_followed_closely=True)
            words = words[1:]
        elif macro == "At" and words and words[0].text[:1] == "v":
            self._put(f"Version {words[0].text[1:]} AT&T UNIX")
            words = words[1:]
        else:
            self._put(_SAID.get(macro) or _SYSTEMS[macro])
        self._words(words)

    def _unparsed(self, macro: str, words: Sequence[Word]) -> MdocLine:
        joins, self._is_glued = self._is_glued, False
        if macro == "Sm":
            if words:
                self._is_spaced = words[0].text != "off"
            return MdocLine((), joins)
        if macro == "Nd":
            return MdocLine(("– ", *_parted(words)), joins)
        if macro == "It":
            return self._line("No", words)
        if macro == "In" and words:
            before = "#include <" if self._section == "SYNOPSIS" else "<"
            return MdocLine((before, words[0], ">", *words[1:]), joins)
        if macro == "Lb" and words:
            known = _LIBRARIES.get(words[0].text)
            name = f"{known} (" if known else "library “"
            closer = f", -l{words[0].text.removeprefix('lib')})" if known else "”"
            return MdocLine((name, words[0], closer, *words[1:]), joins)
        if macro in {"Ex", "Rv"}:
            return MdocLine((self._status(macro, words),), joins)
        said = _SAID.get(macro, "")
        return MdocLine((said,) if said else _parted(words), joins)

    def _status(self, macro: str, words: Sequence[Word]) -> str:
        names = [plain(word.text) for word in words if word.text != "-std"] or [self._name]
        last = f" and {names[-1]}" if len(names) > 1 else names[-1]
        is_many = len(names) > 1
        if macro == "Ex":
            listed = ", ".join(names[:-1]) + last
            what = "utilities exit" if is_many else "utility exits"
            return f"The {listed} {what} 0 on success, and >0 if an error occurs."
        listed = ", ".join(f"{name}()" for name in names[:-1]) + f"{last}()"
        what = "functions return" if is_many else "function returns"
        return f"The {listed} {what}{_RETURNS}"


def _parted(words: Sequence[Word]) -> tuple[Piece, ...]:
    """Return words as they are typed, with a blank between two."""
    return tuple(piece for word in words for piece in (" ", word))[1:]


def _standard(name: str) -> str:
    if name in _STANDARDS:
        return _STANDARDS[name]
    number, _, year = name.removeprefix("-p").partition("-")
    if not number.startswith("1003."):
        return name
    year = f"19{year}" if len(year) == 2 else year
    return f"IEEE Std {number}{'-' if year else ''}{year} (“POSIX.{number[5]}”)"
