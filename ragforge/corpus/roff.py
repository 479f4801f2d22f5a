"""Escapes of manual pages: the signs that they stand for, and the words of a line of macros."""

# ruff: noqa: RUF001 -- the signs that escapes stand for

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ragforge.corpus.seen_text import Edit, seen_text

_ESCAPE: Final = re.compile(
    r"\\(?:f(?:\[[^\]\n]{0,20}\]|\(..|.)|s(?:[-+]?\d{1,2}|[-+]?\[[^\]\n]{0,20}\]|\(..)"
    r"|(?P<value>\*|n[-+]?)(?:\[(?P<long>[^\]\n]{0,60})\]|\((?P<short>..)|(?P<letter>.))"
    r"|\((?P<two>..)|\[(?P<name>[^\]\n]{1,40})\]|C'(?P<called>[^'\n]{1,40})'"
    r"|N'(?P<code>\d{1,6})'|[\"#](?P<comment>.*)|[oZ]'(?P<over>[^'\n]{0,60})'"
    r"|[ABDHLRSXbhlvwx]'[^'\n]{0,300}'|[FgkmMVY](?:\[[^\]\n]{0,60}\]|\(..|.)"
    r"|(?P<one>.)|\n|\Z)"
)
_SIGNS: Final[dict[str, str]] = {
    **{sign[:-1]: sign[-1] for sign in (
        "12½ 14¼ 18⅛ 34¾ 38⅜ 3d∴ 58⅝ 78⅞ aa´ ab˘ ac¸ ad¨ aeæ ahˇ an⎯ ao˚ ap∼ aq' at@ a\"˝ a-¯ a.˙ "
        "a^^ a~~ ba| bb¦ bq‚ br│ bu• bv⎪ ca∩ ci○ co© cq’ ct¢ cu∪ c*⊗ c+⊕ da↓ dd‡ de° dg† di÷ dq\" "
        "dA⇓ em— en– eq= es∅ eu€ fa∀ fc› fm′ fo‹ f/⁄ ga` gr∇ ha^ ho˛ hy- hA⇔ ib⊆ if∞ ijĳ ip⊇ is∫ "
        "la⟨ lb⎩ lc⌈ lf⌊ lh☜ lk⎨ lq“ lt⎧ lz◊ lA⇐ lB[ lC{ mcµ md⋅ mi- mo∈ mu× nb⊄ nc⊅ ne≢ nm∉ no¬ "
        "oeœ oq‘ or| pc· pd∂ pl+ pp⊥ ps¶ pt∝ ra⟩ rb⎭ rc⌉ rf⌋ rg® rh☞ rk⎬ rn‾ rq” rs\\ rt⎫ ru_ rA⇒ "
        "rB] rC} r!¡ r?¿ sb⊂ sc§ sd″ sh# sl/ sp⊃ sq□ sr√ ssß st∋ te∃ tf∴ ti~ tm™ tsς ua↑ ul_ uA⇑ "
        "va↕ vA⇕ wp℘ Ahℵ AEÆ AN∧ Bq„ Cs¤ CL♣ CR↵ Do$ DI♦ Eu€ Fc» Fnƒ Fo« HE♥ Imℑ IJĲ Ofª Omº OEŒ "
        "OK✓ OR∨ Po£ Reℜ S1¹ S2² S3³ Sdð SP♠ Tpþ TPÞ Ye¥ !=≠ %0‰ *aα *bβ *cξ *dδ *eε *fϕ *gγ *hθ "
        "*iι *kκ *lλ *mμ *nν *oο *pπ *qψ *rρ *sσ *tτ *uυ *wω *xχ *yη *zζ *AΑ *BΒ *CΞ *DΔ *EΕ *FΦ "
        "*GΓ *HΘ *IΙ *KΚ *LΛ *MΜ *NΝ *OΟ *PΠ *QΨ *RΡ *SΣ *TΤ *UΥ *WΩ *XΧ *YΗ *ZΖ **∗ +eϵ +fφ +hϑ "
        "+pϖ +-± -hℏ -DÐ -+∓ ->→ .iı .jȷ /lł /oø /LŁ /OØ /_∠ <-← <<≪ <=≤ <>↔ ==≡ =~≅ >=≥ >>≫ |=≃ "
        "~=≈ ~~≈"
    ).split()},
    "ff": "ff", "fi": "fi", "fl": "fl", "Fi": "ffi", "Fl": "ffl",
}  # fmt: skip
"""What groff_char(7) names, on a terminal; hyphens and minus signs are typed as `-`."""
_ACCENTS: Final = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", ":": "\u0308", ",": "\u0327",
    "o": "\u030a", "v": "\u030c",
}  # fmt: skip
_SIGN_OF_ONE: Final = {
    **{sign: sign for sign in "-'.`_\\"},
    **dict.fromkeys("eE", "\\"),
    **dict.fromkeys(" ~0t", " "),
}
STRINGS: Final = {
    "lq": "“", "rq": "”", "R": "®", "Tm": "™", "Lq": "“", "Rq": "”", "Lt": "<", "Gt": ">",
    "Le": "≤", "Ge": "≥", "Ne": "≠", "Pm": "±", "Ba": "|", "Am": "&", "Na": "NaN", "If": "∞",
    "Pi": "π", "q": '"', "Px": "POSIX", "Ai": "ANSI", "aa": "´", "ga": "`", "left-bracket": "[",
}  # fmt: skip
"""What both families of macros have defined before a page begins."""
_UNICODE: Final = re.compile(r"u[0-9A-F]{4,6}(?:_[0-9A-F]{4,6}){0,4}\Z")
_CHARACTER: Final = re.compile(r"char(\d{1,3})\Z")
_ARGUMENT: Final = re.compile(
    r"\"(?P<quoted>(?:[^\"]|\"\"){0,2000})\"?|(?P<bare>(?:\\[ \"]|[^\s\"])(?:\\[ ]|[^\s]){0,2000})"
)
_CONTINUES: Final = "\\"
"""What stands alone before the end of a line, and has the next one belong to it."""
_DOUBLED: Final = re.compile(r'""')


class Word(NamedTuple):
    """An argument of a macro: where it stands without its quotes, and as it is typed."""

    start: int
    end: int
    text: str
    is_quoted: bool


def words_of(text: str, start: int, end: int) -> list[Word]:
    """Return the arguments in a line of macros, without a comment behind them."""
    comment = text.find('\\"', start, end)
    end = end if comment < 0 else comment
    words = []
    for found in _ARGUMENT.finditer(text, start, end):
        group = "bare" if found["bare"] is not None else "quoted"
        if found[group] != _CONTINUES:
            words.append(Word(*found.span(group), found[group], group == "quoted"))
    return words


def escape_edits(
    text: str, start: int, end: int, strings: Mapping[str, str] = STRINGS
) -> Iterator[Edit]:
    """Yield the edits of the escapes in a stretch.

    Args:
        text: Of the file.
        start: Where the stretch begins.
        end: Where it ends.
        strings: What names of strings and registers stand for; of what is unknown nothing is seen.
    """
    for found in _ESCAPE.finditer(text, start, end):
        yield Edit(found.start(), found.end(), _seen(found, strings))


def word_edits(word: Word, text: str, strings: Mapping[str, str]) -> Iterator[Edit]:
    """Yield the edits of an argument: its escapes, and quotes that are doubled within quotes."""
    yield from escape_edits(text, word.start, word.end, strings)
    if word.is_quoted:
        for found in _DOUBLED.finditer(text, word.start, word.end):
            yield Edit(*found.span(), '"')


def plain(text: str, strings: Mapping[str, str] = STRINGS) -> str:
    """Return what is seen of a text with escapes."""
    return seen_text(text, escape_edits(text, 0, len(text), strings)).text


def _seen(found: re.Match[str], strings: Mapping[str, str]) -> str:
    if found["value"]:
        name = found["long"] or found["short"] or found["letter"] or ""
        return strings.get(name if found["value"] == "*" else f"\\n{name}", "")
    if name := found["two"] or found["name"] or found["called"]:
        return _named(name)
    if found["code"]:
        return _character(int(found["code"]))
    return found["over"] or _SIGN_OF_ONE.get(found["one"] or "", "")


def _named(name: str) -> str:
    """Return the sign of a name, such as `em`, `'e`, `u00E9` or `char233`; "" for none."""
    if name in _SIGNS:
        return _SIGNS[name]
    if _UNICODE.match(name):
        codes = name[1:].split("_")
        return unicodedata.normalize("NFC", "".join(_character(int(code, 16)) for code in codes))
    if numbered := _CHARACTER.match(name):
        return _character(int(numbered[1]))
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]])
    return name if len(name) == 1 else ""


def _character(code: int) -> str:
    """Return a character that is seen; "" for controls and what is none."""
    is_one = code <= 0x10FFFF and unicodedata.category(chr(code)) not in {"Cc", "Cs", "Cn"}
    return chr(code) if is_one else ""
