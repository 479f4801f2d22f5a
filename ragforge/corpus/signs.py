"""What a text says by signs rather than letters: 1.10 is not 110, -5 not 5, <= not >=, C++ not C.

Marks of markup, blanks, quotes, hyphens and punctuation say nothing here: documents are converted,
and have others then. Where a sign may be such a mark, the gap between two letters is read both
ways, and two gaps say the same where one reading is.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from ragforge.corpus.laid_out import BLANK, beyond
from ragforge.corpus.letters import folded_letters, letters_of
from ragforge.corpus.word_ends import binds, joins
from ragforge.deferred import dataclass, pattern
from ragforge.files.text import normalize

Readings: TypeAlias = frozenset[str]
"""The signs of a gap between two letters; several where some may be markup."""

NOTHING: Final[Readings] = frozenset({""})
_LETTER: Final = "a"
_DIGIT: Final = "0"
_RAISED: Final = "\u2070"
_LOWERED: Final = "\u2080"
_DIGITS: Final = f"{_DIGIT}{_RAISED}{_LOWERED}"
_APART: Final = "\x1f"
"""Beside digits that are a character of their own, as ½ is in 1½."""
_REACH: Final = 48
"""Characters around the ends of a stretch that are looked at."""
_FOOTNOTED: Final = 4
"""Letters of a word from which a raised number behind it is a footnote, and no power of a unit."""
_WORD_AHEAD: Final = pattern(r"[^\W_]+(?:[.,:][0-9]+)*")
_WORD_BACKWARDS: Final = pattern(r"(?:[0-9]+[.,:])*[^\W_]+")
_SIGNS_BEHIND: Final = ("%", "\u2030", "\u00b0", "++", "#")
_SIGNS_OF_MONEY: Final = ("$", "\u20ac", "\u00a3", "\u00a5")
_LONGEST_WORD: Final = 40

_AFFIXES: Final = "\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
_ACCENT: Final = pattern(
    f"[\u0300-\u036f{_AFFIXES}\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe2f]"
)
"""Accents and points, which are often left out; vowels of Indic and Thai words are none."""
_ASCII: Final = {
    code: _DIGIT if chr(code).isdigit() else _LETTER for code in range(128) if chr(code).isalnum()
} | {ord(BLANK): ""}
_GAP: Final = pattern(
    f"[^{_LETTER}{_DIGITS}]*?[^{_LETTER}{_DIGITS}\\s.,;:?'\"()\\[\\]{{}}_\\\\][^{_LETTER}{_DIGITS}]*"
    f"|(?<=[{_DIGITS}])[^{_LETTER}{_DIGITS}]+|[^{_LETTER}{_DIGITS}]+(?=[{_DIGITS}])"
    f"|(?<={_DIGIT})(?=[{_RAISED}{_LOWERED}])"
    f"|(?<={_RAISED})(?=[{_DIGIT}{_LOWERED}])|(?<={_LOWERED})(?=[{_DIGIT}{_RAISED}])"
)
"""Between two letters: what may say something; no blanks and punctuation between two words."""
_GROUPED: Final = pattern(
    r"(?<![.0])0{1,3}(?:[,' _\u2019\u2009\u202f]0{3})+(?!0)"
    r"|(?<![.,0])0{1,3}(?:\.0{3}){2,}(?!\.?0)|(?<![.,0])0{1,2}(?:,0{2})+,0{3}(?!,?0)"
)
"""Digits in groups, the marks between which may be missing: of three, or as in 1,00,000.

One dot may be that of a decimal: 1.234.567 is a number in groups, 1.234 may be none.
"""
_MARKUP: Final = (
    (pattern(r"<(?!!--)([a/!?][^<>\n]*)>"), r"\1"),
    (pattern(r"(?<![^\s(])<([a/][^<>\s]*)\Z"), r"\1"),
    (pattern(r"\A([^<>\s]+)>"), r"\1"),
    (pattern(r"<!--|-->|~~|(?<=\[)\^|(?<![^\s|])[|:]*-{3,}[|:]*(?![^\s|])"), " "),
    (pattern(r"\$(?!\s)([^$\n]*[^\s$\\])\$(?!0)"), r"\1"),
    (pattern(r"^[ \t]*(?:>[ \t]*)+", re.MULTILINE), " "),
    (pattern("^[ \\t]*(?:[-+*\u2022\u00b7\u2013\u2192$%]|=+|#+)[ \\t]", re.MULTILINE), " "),
    (pattern(r"[ \t]=+[ \t]*$", re.MULTILINE), " "),
    (pattern(r"[-+=*~^]{3,}"), " "),
)
"""Tags and addresses in brackets, also those that are cut at an end of the text, comments, formulas
in dollars, marks that lines begin with, and drawn lines."""
_WRITTEN: Final = (
    (pattern("(?<=a)[ \t\u00a0]+[>\u00bb\u203a][ \t\u00a0]+(?=a)"), " \u2192 "),
    (pattern("(?<=0)[ \u00a0]?\u2014[ \u00a0]?(?=0)"), "-"),
    (pattern("(?<=[\\s(])\u2212[ \u00a0\u2009\u202f](?=[0.])"), "-"),
)
"""What is written in several ways: the steps of Menu > Settings, a range, and a minus."""
_SIGN: Final = pattern(
    r"[<>!]=+|=+>|=<|=+|<>|<-(?![.0]|$)|-+>|\+/-|\++|&&|(?<=\s)\|\|(?=\s)|\.\.+"
    "|[-\u2010-\u2013\u2212]{2,}|[^\\w\\s]|[\u207a\u207b]"
)
_SAME: Final = {
    **dict.fromkeys(("<=", "=<", "\u2264", "\u2a7d", "\u2266"), "\u2264"),
    **dict.fromkeys((">=", "\u2265", "\u2a7e", "\u2267"), "\u2265"),
    **dict.fromkeys(("!=", "<>", "\u2260"), "\u2260"),
    **dict.fromkeys(("->", "-->", "\u2192", "\u27f6"), "\u2192"),
    **dict.fromkeys(("<-", "\u2190"), "\u2190"),
    **dict.fromkeys(("=>", "\u21d2"), "\u21d2"),
    **dict.fromkeys(("+/-", "\u00b1"), "\u00b1"),
    **dict.fromkeys("\u2713\u2714\u2611\u2705", "\u2713"),
    **dict.fromkeys("\u2717\u2718\u2716\u274c\u274e\u2612", "\u2717"),
}
_DASHES: Final = frozenset("-\u2010\u2011\u2012\u2013\u2212")
_RAISED_DASHES: Final = {"\u207a": "+", "\u207b": "-"}
_OPERATORS: Final = tuple("=<>\u2264\u2265\u2260+^")
_CHANGES: Final = {_RAISED: "^", _LOWERED: "_"}
_TWO: Final = 2
_STOPS: Final = tuple(".,:;")
"""Behind them a raised number is a footnote, and no power."""
_PER: Final = "%\u2030\u00b0"
_UNSEEN: Final = pattern(f"[\u00ad\u2060{BLANK}]+")
_FORMAT: Final = pattern(r"[*`~\\\u200b]+|_+")


def signs_of(text: str) -> dict[int, Readings]:
    """Return the signs of a text, by how many of its letters and digits stand before them.

    Gaps that say nothing are left out.
    """
    shape = _shape(text)
    read = _read(shape)
    plain = shape
    for marks, left in _MARKUP:
        plain = marks.sub(left, plain)
    written = plain
    for marks, sign in _WRITTEN:
        written = marks.sub(sign, written)
    ways = [read, *(_read(each) for each in dict.fromkeys((plain, written)) if each != shape)]
    signs = {at: frozenset(way.get(at, "") for way in ways) for at in frozenset().union(*ways)}
    for group in _GROUPED.finditer(shape):
        begun = _n_letters(shape[: group.start()])
        for gap in _GAP.finditer(group[0]):
            at = begun + _n_letters(group[0][: gap.start()])
            signs[at] = NOTHING if gap[0] == "." else signs.get(at, NOTHING) | NOTHING
    return {at: readings for at, readings in signs.items() if readings != NOTHING}


def say_the_same(signs: dict[int, Readings], others: dict[int, Readings], n_letters: int) -> bool:
    """Whether the gaps between the letters of two texts say the same; their ends do not count."""
    return all(
        not signs.get(at, NOTHING).isdisjoint(others.get(at, NOTHING))
        for at in signs.keys() | others.keys()
        if 0 < at < n_letters
    )


def begins_at(text: str, at: int, head: Readings, *, may_cut: bool = False) -> bool:
    """Whether what begins with some signs may begin at a letter of a text: not within a number.

    Args:
        text: The text.
        at: Where the letter stands.
        head: The signs before the first letter of what is looked for.
        may_cut: Let it begin within a word or number.
    """
    found, left, _ = _gap_at(text, at)
    rests = [
        (own, sign[: len(sign) - len(own)])
        for sign in map(str.lstrip, found)
        for own in head
        if sign.endswith(own)
    ]
    if may_cut or not rests:
        return bool(rests)
    whole = [own for own, rest in rests if _is_digit(left) or not _belongs(rest)]
    if any(whole) or not whole:
        return any(whole)
    if _is_price(text[at - 1 : at]):
        return False
    return not _is_within_word(*_context(text, at, opens=True), opens=True)


def ends_at(text: str, at: int, tail: Readings, *, may_cut: bool = False) -> bool:
    """Whether what ends with some signs may end behind a letter of a text; see `begins_at`."""
    found, left, right = _gap_at(text, at)
    owns = [own for sign in map(str.rstrip, found) for own in tail if sign.startswith(own)]
    if may_cut or any(owns) or not owns:
        return bool(owns)
    before, behind = _context(text, at, opens=False)
    if _is_digit(left) and (_is_per(behind) or _is_price(behind[:1])):
        return False
    if right == _RAISED and (_is_footnoted(before) or behind[:1] in _STOPS):
        return True
    return not _is_within_word(before, behind, opens=False)


def _belongs(signs: str) -> bool:
    """Whether the last of some signs belongs to the number behind it: a minus, the point of .5."""
    return signs[-1:] in ("-", ".")


def _is_within_word(before: str, behind: str, *, opens: bool) -> bool:
    joint, at = f"{before}{behind}", len(before)
    return binds(joint, at) or joins(joint, at, opens=opens)


def _is_per(behind: str) -> bool:
    return behind.lstrip()[:1] in tuple(_PER)


def _is_price(sign: str) -> bool:
    return len(sign) == 1 and unicodedata.category(sign) == "Sc"


def _is_footnoted(before: str) -> bool:
    word = before[-_FOOTNOTED:]
    return len(word) == _FOOTNOTED and word.isalpha()


def _gap_at(text: str, at: int) -> tuple[Readings, str, str]:
    """Return the readings of the gap at an end of a stretch, and what stands on both sides."""
    first = max(0, at - _REACH)
    before, behind = _shape(text[first:at]), _shape(text[at : at + _REACH])
    number = _n_letters(before)
    left = next((each for each in reversed(before) if _is_letter(each)), "")
    right = next((each for each in behind if _is_letter(each)), "")
    return signs_of(text[first : at + _REACH]).get(number, NOTHING), left, right


def _context(text: str, at: int, *, opens: bool) -> tuple[str, str]:
    """Return what stands before and behind an end of a stretch, without marks of markup."""
    before, behind = text[max(0, at - _REACH) : at], text[at : at + _REACH]
    if opens:
        return _unformatted(f"{before}{behind[:1]}")[:-1], _unformatted(behind)
    return _unformatted(before), _unformatted(f"{before[-1:]}{behind}")[1:]


def _unformatted(text: str) -> str:
    def left(marks: re.Match[str]) -> str:
        before, behind = text[: marks.start()][-1:], text[marks.end() :][:1]
        return marks[0] if before.isalnum() and behind.isalnum() else ""

    text = _ACCENT.sub("", _UNSEEN.sub("", text))
    return _FORMAT.sub(left, text)


def _is_digit(shape: str) -> bool:
    return bool(shape) and shape in _DIGITS


def _is_letter(shape: str) -> bool:
    return shape == _LETTER or shape in _DIGITS


def _n_letters(shape: str) -> int:
    return sum(map(shape.count, f"{_LETTER}{_DIGITS}"))


def _read(shape: str) -> dict[int, str]:
    """Return what is said in the gaps between letters, by how many stand before; none of "" ."""
    said: dict[int, str] = {}
    n_before = read = 0
    for gap in _GAP.finditer(shape):
        n_before += _n_letters(shape[read : gap.start()])
        read = gap.end()
        found = _said(
            gap[0], shape[max(0, gap.start() - 1) : gap.start()], shape[gap.end() : gap.end() + 1]
        )
        if found:
            said[n_before] = found
    return said


@dataclass(frozen=True, slots=True)
class _Mark:
    """A sign with what stands before and behind it in its gap, and the letters on both sides."""

    sign: str
    before: str
    behind: str
    left: str
    right: str

    @property
    def is_within(self) -> bool:
        """Whether it stands between two digits."""
        return _is_digit(self.left) and _is_digit(self.right)


@lru_cache(maxsize=4096)
def _said(gap: str, left: str, right: str) -> str:
    """Return the signs of a gap; a blank where digits on both sides are two numbers.

    Args:
        gap: What stands between two letters.
        left: What the letter before is in a shape; "" for none.
        right: Likewise, the letter behind.
    """
    plain = gap.replace("\\", "")
    within = _is_digit(left) and _is_digit(right)
    if within and plain in (".", ",", ":"):
        return plain if right != _RAISED else " "
    signs = "".join(
        _sign(_Mark(each[0], plain[: each.start()], plain[each.end() :], left, right))
        for each in _SIGN.finditer(plain)
    )
    if within:
        return f"{_CHANGES.get(right, '')}{signs}" if right != left else signs or " "
    return f"{signs}." if _is_digit(right) and _ends_in_point(plain, left) else signs


def _ends_in_point(gap: str, left: str) -> bool:
    """Whether a number behind a gap begins with its point, as .5 does."""
    if gap == ".":
        return not left
    return gap.endswith(".") and gap[-2] not in ".)]\u2026'\""


def _sign(mark: _Mark) -> str:
    """Return what a sign says where it stands; "" where it is punctuation, or markup."""
    sign = mark.sign
    if sign in _SAME or sign in _PER:
        return _SAME.get(sign, sign)
    read = _READING.get(sign[0])
    if read is not None:
        return read(mark)
    category = unicodedata.category(sign[0])
    return sign if len(sign) > 1 or category in ("Sm", "Sc") or category[0] == "M" else ""


def _dash(mark: _Mark) -> str:
    """Return a minus, or the dash between two numbers; hyphens and other dashes say nothing."""
    is_one = len(mark.sign) == 1
    if mark.is_within:
        return "-" if is_one or not (mark.before or mark.behind) else ""
    before, behind = _FORMAT.sub("", mark.before), _FORMAT.sub("", mark.behind)
    if not is_one or (mark.left and not before):
        return ""
    if _is_digit(mark.right):
        return "-" if behind in ("", ".") or _is_price(behind.removesuffix(".")) else ""
    is_behind_operator = before.rstrip().endswith(_OPERATORS) and not before.endswith("++")
    return "-" if mark.right and is_behind_operator and not behind else ""


def _raised(mark: _Mark) -> str:
    return _RAISED_DASHES[mark.sign] if _is_digit(mark.left) else mark.sign


def _slash(mark: _Mark) -> str:
    return "/" if mark.is_within else ""


def _power(mark: _Mark) -> str:
    return "^" if _is_digit(mark.left) and not mark.before.endswith("[") else ""


def _asterisk(mark: _Mark) -> str:
    """Return the sign of a product of numbers; other asterisks are markup."""
    is_apart = mark.before.isspace() and mark.behind.isspace()
    return "*" if mark.is_within and (is_apart or not (mark.before or mark.behind)) else ""


def _times(_mark: _Mark) -> str:
    return "*"


def _point(mark: _Mark) -> str:
    return "\u00b7" if mark.is_within else ""


def _tilde(mark: _Mark) -> str:
    """Return the sign of "about"; a second tilde is markup."""
    return "~" if _is_digit(mark.right) and not mark.behind and mark.before[-1:] != "~" else ""


def _exclamation(mark: _Mark) -> str:
    """Return the sign of "not" in code, which stands right before a name."""
    is_before_name = not mark.behind and mark.right == _LETTER
    is_first = (mark.before or not mark.left) and not mark.before.endswith("!")
    return "!" if is_before_name and is_first else ""


def _hash(mark: _Mark) -> str:
    """Return the sign of a name such as C#; that of an address joins two words."""
    is_last = not mark.before and (mark.behind or not mark.right)
    return "#" if mark.left == _LETTER and is_last else ""


def _dots(mark: _Mark) -> str:
    return ".." if mark.is_within and len(mark.sign) == _TWO else ""


def _bar(mark: _Mark) -> str:
    return mark.sign if len(mark.sign) > 1 else ""


_READING: Final[dict[str, Callable[[_Mark], str]]] = {
    **dict.fromkeys(_DASHES, _dash),
    **dict.fromkeys(_RAISED_DASHES, _raised),
    **dict.fromkeys("/\u2044\u2215", _slash),
    **dict.fromkeys("*\u2217", _asterisk),
    **dict.fromkeys("\u00b7\u22c5", _point),
    "\u00d7": _times,
    "^": _power,
    **dict.fromkeys("~\u223c", _tilde),
    "!": _exclamation,
    "#": _hash,
    ".": _dots,
    "|": _bar,
}


def _shape(text: str) -> str:
    """Return a text with one letter or digit in the place of each that it is compared by."""
    for offset, seen in reversed(beyond(text)):
        text = f"{str(text)[:offset]}{seen}{str(text)[offset:]}"
    if text.isascii():
        return text.translate(_ASCII)
    return "".join(map(_shape_of, normalize("NFC", text)))


@lru_cache(maxsize=8192)
def _shape_of(char: str) -> str:
    if not folded_letters(char):
        return _unlettered(char)
    form = unicodedata.decomposition(char).partition(" ")[0]
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    digit = {"<super>": _RAISED, "<sub>": _LOWERED}.get(form, _DIGIT)
    shape = "".join(
        (digit if each.isdigit() else _LETTER) if each.isalnum() else _unlettered(each)
        for each in plain
    )
    is_apart = form in ("<fraction>", "<circle>", "<compat>") and _DIGIT in shape
    return f"{_APART}{shape}{_APART}" if is_apart else shape


def _unlettered(char: str) -> str:
    if char == BLANK or unicodedata.category(char) == "Cf" or _ACCENT.fullmatch(char):
        return ""
    return char if char in _RAISED_DASHES else unicodedata.normalize("NFKC", char)


def signed_words(text: str) -> set[str]:
    """Return the words of a text with the signs before or behind them; those without are left out.

    Signs that may be markup count as such, and points and groups within numbers as nothing: they
    are parts of these.
    """
    places = letters_of(text)[1]
    found = set()
    for at, readings in signs_of(text).items():
        sign = min(readings, key=lambda each: (len(each), each)).strip()
        before = (
            text[max(0, int(places[at - 1]) + 1 - _LONGEST_WORD) : int(places[at - 1]) + 1]
            if at
            else ""
        )
        is_number = before[-1:].isdigit()
        if not sign or (sign in (".", ",") and is_number):
            continue
        is_behind = sign.startswith(_SIGNS_BEHIND) or (
            is_number and sign.startswith(_SIGNS_OF_MONEY)
        )
        if is_behind or at == len(places):
            word = _WORD_BACKWARDS.match(before[::-1])
            found.add(f"{word[0][::-1] if word else ''}{sign}".casefold())
        else:
            word = _WORD_AHEAD.match(text, int(places[at]))
            found.add(f"{sign}{word[0] if word else ''}".casefold())
    return found
