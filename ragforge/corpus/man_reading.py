"""What a reader sees of a manual page (man and mdoc macros), with offsets into the file.

Headings become `#` lines, and what is set as it is typed comes in fences.
"""

# ruff: noqa: RUF001 -- the signs that escapes stand for

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ragforge.corpus.seen_text import Edit, SeenText, seen_text, without_extra_blanks

_TITLE: Final = re.compile(
    r"^\.(?:TH|Dt)[ \t]{1,20}+\"?(?P<name>[^\s\"]{1,100})\"?[ \t]{1,20}+\"?(?P<section>\w{1,10})",
    re.MULTILINE,
)
_STARTS: Final = re.compile(r"^(?:\.(?:TH|Dd|Dt|so)[ \t])", re.MULTILINE)
_SNIFFED: Final = 5_000
_CONTROL: Final = re.compile(r"[.'][ \t]{0,20}+(?P<macro>[A-Za-z]{1,20})?(?P<rest>.*)")
_ARGUMENT: Final = re.compile(r"\"(?P<quoted>[^\"]{0,2000})\"?|(?P<bare>[^\s\"]{1,2000})")
_ESCAPE: Final = re.compile(
    r"\\(?:f(?:\[[^\]\n]{0,20}\]|\(..|.)|s[-+]?\d{1,2}|[*n](?:\[[^\]\n]{0,60}\]|\(..|.)"
    r"|\((?P<two>..)|\[(?P<name>[\w-]{1,40})\]|\"(?P<comment>.*)|[hvm]'[^'\n]{0,60}'|(?P<one>.))"
)
_SIGNS: Final = {
    "em": "—", "en": "–", "bu": "•", "aq": "'", "dq": '"', "lq": "“", "rq": "”", "oq": "‘",
    "cq": "’", "co": "©", "rg": "®", "tm": "™", "mu": "×", "->": "→", "<-": "←", "ha": "^",
    "ti": "~", "rs": "\\", "at": "@", "sh": "#", "Do": "$", "hy": "-", "mi": "-", "pl": "+",
}  # fmt: skip
_SIGN_OF_ONE: Final = {
    "-": "-",
    "e": "\\",
    " ": " ",
    "~": " ",
    "0": " ",
    "\\": "\\",
    "'": "'",
    ".": ".",
}
_HEADINGS: Final = {"SH": "# ", "SS": "## ", "Sh": "# ", "Ss": "## "}
_JOINED: Final = frozenset("BR RB IR RI BI IB".split())
_SPACED: Final = frozenset(
    "B I SM SB R TQ SY Nm Ar Pa Cm Ic Li Em Sy Va Ev Er Dv Fa Ft Nd Ql".split()
)
_FENCES: Final = {"nf": True, "EX": True, "Dl": False, "fi": False, "EE": False}
_FLAGS: Final = frozenset({"Fl"})
_SILENT_MDOC: Final = frozenset(
    "Ar Pa Cm Ic Li Em Sy Va Ev Er Dv Fa Ft Ql Nm No Ns Xr Oo Oc Ta".split()
)


def is_man_page(text: str) -> bool:
    """Whether a text is a manual page: its suffix alone tells little."""
    return _STARTS.search(text, 0, _SNIFFED) is not None


def man_title(text: str) -> str:
    """Return name and section of a page, such as "ls(1)"; "" where it does not say."""
    found = _TITLE.search(text, 0, _SNIFFED)
    return f"{found['name'].lower()}({found['section']})" if found else ""


def read_man_page(text: str) -> SeenText:
    """Return what a reader sees of a manual page, normalised."""
    return without_extra_blanks(seen_text(text, _edits(text)))


def _edits(text: str) -> Iterator[Edit]:
    at, in_fence, in_macro = 0, False, False
    for line in text.split("\n"):
        end = at + len(line)
        found = _CONTROL.match(line)
        macro = (found["macro"] or "") if found else ""
        if in_macro or line.startswith((".de ", ".ig")):
            in_macro = line.rstrip() != ".."
            yield Edit(at, end)
        elif macro in _FENCES:
            yield Edit(at, end, "```" if in_fence != _FENCES[macro] else "")
            in_fence = _FENCES[macro]
        elif found:
            yield from _macro(text, at, end, macro, at + found.start("rest"))
        else:
            yield from _escapes(text, at, end)
        at = end + 1


def _macro(text: str, at: int, end: int, macro: str, rest: int) -> Iterator[Edit]:
    """Yield the edits of a line that a macro begins: its arguments are seen, or none of it."""
    arguments = list(_ARGUMENT.finditer(text, rest, end))
    mark = _HEADINGS.get(macro, "")
    if macro == "IP":
        del arguments[1:]
    if macro in {"Fl", "Op", "It", "OP"}:
        said = _mdoc(macro, [found["quoted"] or found["bare"] or "" for found in arguments])
        yield Edit(at, end, said[: end - at])
    elif arguments and (mark or macro in _JOINED | _SPACED | {"IP"}):
        yield from _arguments(text, at, end, arguments, mark, is_joined=macro in _JOINED)
    else:
        yield Edit(at, end)


def _arguments(
    text: str, at: int, end: int, arguments: Sequence[re.Match[str]], mark: str, *, is_joined: bool
) -> Iterator[Edit]:
    behind, before = at, mark
    for found in arguments:
        group = "bare" if found["bare"] is not None else "quoted"
        start, stop = found.span(group)
        yield Edit(behind, start, before[: start - behind])
        yield from _escapes(text, start, stop)
        behind, before = stop, "" if is_joined else " "
    yield Edit(behind, end)


def _mdoc(macro: str, words: Sequence[str]) -> str:
    """Return what a line of mdoc macros says, such as "[-a file]"."""
    said: list[str] = []
    flag = macro in _FLAGS
    for word in words:
        if word in _FLAGS:
            flag = True
        elif word not in _SILENT_MDOC and word != "Op":
            said.append(f"-{word}" if flag else word)
            flag = False
    line = " ".join(_plain(word) for word in said)
    return f"[{line}]" if macro in {"Op", "OP"} else line


def _plain(text: str) -> str:
    return seen_text(text, _escapes(text, 0, len(text))).text


def _escapes(text: str, start: int, end: int) -> Iterator[Edit]:
    for found in _ESCAPE.finditer(text, start, end):
        sign = found["two"] or found["name"] or ""
        seen = _SIGNS.get(sign, "") if sign else _SIGN_OF_ONE.get(found["one"] or "", "")
        yield Edit(found.start(), found.end(), seen)
