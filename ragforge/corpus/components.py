"""Tags of components and shortcodes: where they end, and which of their values a reader sees."""

import re
from collections.abc import Iterator
from typing import Final

from ragforge.corpus.seen_text import Edit
from ragforge.deferred import pattern

_SHOWN: Final = "label|title|summary|description|text|caption|header|heading|question|answer"
_TEXT: Final = r"""(?P<quote>["'])(?P<value>(?>(?:(?!(?P=quote))[^{}<>]){1,300}))(?P=quote)"""
_VALUE: Final = f"={_TEXT}"
_SHOWN_VALUE: Final = pattern(rf"\s(?P<name>{_SHOWN}){_VALUE}")
_PARAMETER: Final = pattern(
    r"<\w{0,40}(?:Param|Field|Propert|Prop\b|Option\b|Attribute)|\{%[ \t]{0,20}swagger"
)
_SHOWN_OF_PARAMETER: Final = pattern(
    rf"\s(?P<name>name|type|method|path|status|query|body|{_SHOWN}){_VALUE}"
)
_TAB: Final = pattern(r"\{[{%<]{0,2}[ \t]{0,20}tab\b")
_SHOWN_OF_TAB: Final = pattern(rf"\s(?:(?P<name>name|title|header|label)=|(?<=\btab\s)){_TEXT}")
_UNLABELLED: Final = pattern(
    r"<(?:\w{1,40}\.)?(?:Tab(?:Item)?|File|Folder)\b(?![^<>]{0,300}\s(?:label|title)=)"
)
_SHOWN_OF_UNLABELLED: Final = pattern(rf"\s(?P<name>value|name){_VALUE}")
_UNNAMED_TERM: Final = pattern(r"\{\{[%<][ \t]{0,20}glossary_tooltip\b(?![^{}]{0,300}\stext=)")
_SHOWN_OF_UNNAMED_TERM: Final = pattern(rf"\s(?P<name>term_id)={_TEXT}")
_ITEMS: Final = pattern(
    r"""\sitems=\{\s?\[(?>(?:\s{0,40}+(?:"[^"\n]{0,300}+"|'[^'\n]{0,300}+'),?){1,40})\s{0,40}+\]"""
)
_ITEM: Final = pattern(r"""(?P<quote>["'])(?P<value>[^"'\n]{1,300}+)(?P=quote)""")
_SHOWN_OF_LIQUID: Final = pattern(
    rf"\s(?:(?P<name>content|message|{_SHOWN})=|(?<=heading\s)|(?<=details\s)|(?<=expand\s))"
    r"""(?P<quote>["'])(?P<value>(?>(?:(?!(?P=quote))[^{}]){1,1500}))(?P=quote)"""
)
_SHOWN_ENTRY: Final = pattern(
    rf"""(?<![\w"'])["']?(?P<name>name|type|example|{_SHOWN})["']?\s{{0,100}}+:\s{{0,100}}+"""
    r"""(?:"(?P<double>(?>(?:[^"\\\n]|\\.){1,800}))"|'(?P<single>(?>(?:[^'\\\n]|\\.){1,800}))'"""
    r"|`(?P<ticked>[^`\\]{1,800}+)`)"
)
_HEADS: Final = frozenset({"name", "title", "label", "question", "header", "heading"})
"""Keys that begin an entry of a table or a list."""
_SAYS: Final = frozenset({"description", "answer", "caption"})
_SIGN: Final = pattern(
    r'(?:"(?>[^"\\\n]{0,800}+(?:\\.[^"\\\n]{0,800}+){0,60})"'
    r"|'(?>[^'\\\n]{0,800}+(?:\\.[^'\\\n]{0,800}+){0,60})'"
    r"|`(?>[^`\\]{0,800}+(?:\\.[^`\\]{0,800}+){0,60})`)|/\*|[{}]",
    re.DOTALL,
)
_QUOTED: Final = pattern(r"""=\s?(?:"[^"]{0,800}+"|'[^']{0,800}+')|[{}<>]""")
_COLUMN: Final = pattern(r"<th\b[^<>]{0,300}+>[^<>]{0,300}+</th>")
_CELL: Final = pattern(r"<(?P<name>tr|td)\b(?>(?:(?!</td>|<tr|<td).){0,3000})(?:</td>)?")
_LONGEST: Final = 250_000
"""Characters that a component may have; API references list some hundred parameters in one."""
CLOSED: Final = pattern(r"</(?P<name>[A-Z][\w.]{0,60})>")
OPENED: Final = pattern(r"<(?P<name>[A-Z][\w.]{0,60})(?=[\s/>])")


def component_end(text: str, at: int) -> int:
    """Return the place behind a tag whose values may be code, or an expression in braces.

    Args:
        text: Of the file.
        at: Where it begins, with `<` or `{`.

    Returns:
        0 where nothing ends it.
    """
    is_tag = text[at] == "<"
    place, depth, stop = at + is_tag, 0, min(len(text), at + _LONGEST)
    while found := (_SIGN if depth else _QUOTED).search(text, place, stop):
        place, sign = found.end(), found[0]
        depth += (sign == "{") - (sign == "}")
        if sign == "/*":
            place = text.find("*/", place, stop) + 2
        if place < found.end() or depth < 0 or (is_tag and not depth and sign == "<"):
            return 0
        if not depth and sign == (">" if is_tag else "}"):
            return place
    return 0


def hidden_cells(text: str, start: int, end: int) -> Iterator[Edit]:
    """Yield the edits of the cells in columns that GitBook hides: covers and targets of cards."""
    names = list(_COLUMN.finditer(text, start, end))
    hidden = {number for number, name in enumerate(names) if "data-hidden" in name[0]}
    number = -1
    for cell in _CELL.finditer(text, start, end):
        number = number + 1 if cell["name"] == "td" else -1
        if cell["name"] == "td" and number in hidden:
            yield Edit(cell.start(), cell.end())
    for number in hidden:
        yield Edit(*names[number].span())


def tag_edits(text: str, start: int, end: int) -> Iterator[Edit]:
    """Yield the edits of a tag, of which what a reader sees of its values is left.

    Args:
        text: Of the file.
        start: Where the tag begins.
        end: Where it ends, behind its bracket.
    """
    tag = text[start:end]
    is_component = tag[1] in "%{" or tag[1].isupper()
    at = start
    if is_component:
        for first, behind, before in _shown_values(tag):
            yield Edit(at, start + first, before)
            at = start + behind
    yield Edit(at, end)


def _pattern_of(tag: str) -> re.Pattern[str]:
    """Return what finds the values of a tag that are seen."""
    if _PARAMETER.match(tag):
        return _SHOWN_OF_PARAMETER
    if _UNNAMED_TERM.match(tag):
        return _SHOWN_OF_UNNAMED_TERM
    if tag[0] == "{":
        return _SHOWN_OF_TAB if _TAB.match(tag) else _SHOWN_OF_LIQUID
    return _SHOWN_OF_UNLABELLED if _UNLABELLED.match(tag) else _SHOWN_VALUE


def _shown_values(tag: str) -> Iterator[tuple[int, int, str]]:
    """Yield where in a tag values stand that are seen, and what parts each from the one before."""
    if items := _ITEMS.search(tag):
        for number, item in enumerate(_ITEM.finditer(tag, *items.span())):
            yield *item.span("value"), ", " if number else ""
        return
    entries = list(_SHOWN_ENTRY.finditer(tag)) if "{" in tag[2:] else []
    values = _pattern_of(tag)
    first_entry = entries[0].start() if entries else len(tag)
    titles, said = 0, 0
    shown = ""
    for value in values.finditer(tag, 0, first_entry):
        is_said = value["name"] in _SAYS
        titles, said = titles + (not is_said), said + is_said
        if (said if is_said else titles) == 1 or values is _SHOWN_OF_PARAMETER:
            yield *value.span("value"), shown
            shown = " "
    keys: set[str] = set()
    for entry in entries:
        key = entry["name"]
        group = next(name for name in ("double", "single", "ticked") if entry[name] is not None)
        if key in keys or key in _HEADS:
            shown, keys = "\n" if shown else "", set()
        elif key in _SAYS and keys:
            shown = ": "
        yield *entry.span(group), shown
        keys.add(key)
        shown = " "
