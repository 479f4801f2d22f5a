"""Numbers in brackets that may be no citations: indices, intervals, objects of a sentence."""

import re
from typing import Literal

_NUMBERS = re.compile(r"\d+(?:\s*(?:[-\u2013,;]|\.\.)\s*\d+)*")
_SEVERAL = re.compile(r"\d\D+\d")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_PLAIN_WORD = re.compile(r"(?:\A|[\s(\"'\u201c\u2018*-])(?:[^\W\d_]{2,}|\d[\d.,]*)\Z")
_CLAUSE_END = re.compile(r"(?:\[[^\[\]\n]{1,40}\])*[ \t]*(?:[.,;:!?)*\u3002\uff0c\uff1b]|$)", re.M)
_SMALL = (
    r"(?:is|are|was|were|be|equals?|of|from|in|to|at|by|on|see|with|than|according|per|"
    r"ist|sind|von|nach|siehe|es|son|de|est|sont|selon|seg\u00fan)"
)
_OBJECT_OF = re.compile(rf"\b{_SMALL}[ \t:]*\Z", re.IGNORECASE)
_RANGE = re.compile(
    r"\b(?:ranges?|intervals?|between|bounds?|domain|scale|values?|limits?|vector|list|array|tuple|"
    r"matrix|shape|coordinates?|bereich|intervall|zwischen|werte?|rango|intervalo|entre|valores|"
    rf"intervalle|plage|valeurs)\b(?P<linked>(?:\W{{1,3}}{_SMALL}\b){{1,2}})?[ \t:]*\Z",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[=<>+/^\u2208\u2264\u2265][ \t]*\Z")
_NEIGHBOURS = re.compile(r"(?:\[[^\[\]\n]{1,40}\])+\Z")
_LOOKED_AT = 200

Kind = Literal["citation", "doubtful", "none"]


def kind_of(words: str, before: str, behind: str, *, leads: bool) -> Kind:
    """Return whether what stands between plain square brackets cites: surely, perhaps, or not.

    Args:
        words: Between the brackets.
        before: The text up to them.
        behind: The text from their end.
        leads: Whether all that they name is in the context.
    """
    before = _NEIGHBOURS.sub("", before[-_LOOKED_AT:])
    is_number = _NUMBERS.fullmatch(words) is not None
    if re.search(r"\w\Z", before) and not _UNSPACED.match(before[-1]):
        return _glued(before, behind, is_number=is_number, leads=leads, is_zero=words == "0")
    if not is_number:
        return "citation"
    ranged = _RANGE.search(before) if _SEVERAL.search(words) else None
    is_object = _OBJECT_OF.search(before) is not None
    if _SIGN.search(before) or (_SEVERAL.search(words) and is_object and not leads):
        return "none"
    if ranged and (ranged["linked"] or not leads or not _CLAUSE_END.match(behind)):
        return "none"
    return "doubtful" if is_object or ranged else "citation"


def _glued(before: str, behind: str, *, is_number: bool, leads: bool, is_zero: bool) -> Kind:
    """Return what brackets right behind a word are: an index, but for plain words that end."""
    if not is_number:
        return "citation" if leads else "none"
    ends = _CLAUSE_END.match(behind) and _PLAIN_WORD.search(before)
    return "doubtful" if ends and not is_zero else "none"
