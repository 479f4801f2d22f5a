"""What a form leaves in a question: holes that nobody filled, tags, marks of its own labels."""

import re
from typing import Final

from ragforge.stages.generate.gates.languages import spoken_of

_HOLE: Final = (
    r"(?i:answers?|questions?|quer(?:y|ies)|topics?|product(?:[ _]name)?|placeholder|subject|"
    r"entity|concept|"
    r"(?:your|insert|fill in|specify|e\.g\.)\b[^\]}>\n]{0,40})|"
    r"(?:NAME|VALUE|NUMBER|DATE|TERM|VERSION|COMPANY|PERSON|PLACE|FEATURE|TOOL|LIBRARY|CONTEXT|X|Y)"
)
_PLACEHOLDER: Final = re.compile(
    rf"(?<![\w/.\[{{<])(?:\[(?:{_HOLE})\]|\{{\{{?\s?(?:{_HOLE})\s?\}}?\}}|<(?:{_HOLE})>)(?![\w/(])|"
    r"(?<!\S)_{4,}(?=[\s.?!]|$)"
)
EMPTY: Final = re.compile(
    rf"\A\W*(?:\[(?:{_HOLE})\]|\{{\{{?(?:{_HOLE})\}}?\}}|<(?:{_HOLE})>|"
    r"(?i:tbd|todo|lorem ipsum)\b)\W*\Z|\A[\s.\u2026]+\Z",
)
"""An answer that was never filled in."""
_LABELLED: Final = re.compile(
    r"[(\[](?:(?:difficulty|level|type)\s*[:=]\s*)?(?:easy|medium|hard)[)\]]\s*\Z|"
    r"[?.!\uff1f]\s*[(\[](?:type\s*[:=]\s*)?(?:fact|definition|procedure|comparison|list|temporal|"
    r"keyword|why|multi[_ -]?hop|unanswerable|two[_ -]in[_ -]one|follow[_ -]up|false[_ -]premise|"
    r"ambiguous|troubleshooting)[)\]]\s*\Z|"
    r"\b(?:difficulty|level)\s*[:=]\s*(?:easy|medium|hard)\W*\Z",
    re.IGNORECASE,
)
_MARKUP: Final = re.compile(
    r"<script\b[^>]*>[^<]*</script|<(?:script|iframe|img|svg|a|object|embed|div|span|p|font|style|"
    r"body)\b[^>]{0,200}=[^>]{0,200}>|<\w+\b[^>]{0,200}\bon\w+\s*=|"
    r"<(b|i|em|strong|p|span|u|mark|h\d)>[^<]{1,300}</\1>",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"`[^`]{0,300}`")


def leftover(question: str) -> re.Match[str] | None:
    """Return what a form left in a question; None where there is nothing of it."""
    return (
        _PLACEHOLDER.search(spoken_of(question))
        or _LABELLED.search(question)
        or _MARKUP.search(_CODE.sub(" ", question))
    )
