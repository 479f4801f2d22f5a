"""Quotes that are no prose: what a site's generator reads, lines that part others, and pointers.

Chunks of documents hold little of it; ready-made chunks may hold all of it.
"""

import re
from typing import Final

from ragforge.deferred import pattern
from ragforge.stages.words import words

_KINDS: Final = {
    "an include": pattern(
        r"\{\*.{1,500}\*\}|\{!.{1,500}!\}|;?-{1,3}8<-.{0,500}|\{%-?\s{0,9}include\b.{1,500}%\}"
        r"|\.\.[ ](?:literal)?include::.{0,500}|include::\S{1,500}\[.{0,300}\]"
        r"|!\[\[[^\[\]]{1,300}\]\]|include-code::\S{1,500}\[.{0,300}\]"
        r"|`{3,20}+\{(?:literal)?include\}.{0,500}|<!--\s{0,9}#?include\b.{0,500}-->"
    ),
    "a badge or an image": pattern(
        r"(?:\[?!\[[^\]\n]{0,500}\](?:\([^)\n]{0,2000}\)|\[[^\]\n]{0,300}\])(?:\]\([^)\n]{0,2000}\))?"
        r"(?:\{[^{}\n]{0,300}\})?\s{0,9})+"
        r"|\.\.[ ](?:\|[^|]{1,100}\|[ ])?(?:image|figure)::.{0,500}"
        r"|(?:image|figure)::?\S{1,500}\[.{0,300}\]"
        r"|<img\b[^<>]{0,2000}/?>"
    ),
    "a table rule": pattern(r"(?=[|+:\s]{0,9}[-=*_~^.])[-=|+:*_~^.\s]{2,500}+"),
    "an anchor": pattern(
        r"\{:?\s?[#.][^{}\n]{0,300}\}|\([\w.:/ -]{1,200}\)=|\.\.[ ]_[^:\n]{1,200}:"
        r"|\[\[[A-Za-z_][\w-]{0,200}\]\]|<a\s[^<>]{0,300}>(?:</a>)?"
    ),
    "a link's address": pattern(
        r"\[[^\]\n^][^\]\n]{0,300}\]:\s{0,9}(?:<[^<>\n]{0,2000}>|\S{1,2000})"
        r"(?:\s{1,9}(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'|\([^()\n]{0,300}\)))?"
    ),
    "a marker of a box or tab": pattern(
        r"(?:!!!|\?\?\?\+?)\s+[\w -]{1,100}|===[!+]?\s{0,9}[\"'][^\"'\n]{1,300}[\"']"
        r"|/{3,9}+(?:\s?[\w-]{1,60}(?:\s?\|.{0,300})?)?"
        r"|:{3,20}+\s?\{?[\w-]{0,60}\}?(?:\[[^\]\n]{0,200}\])?|\[!\w{1,30}\][+-]?"
        r"|\.\.[ ](?:note|tip|hint|warning|important|caution|danger|seealso)::"
        r"|\[(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION|source|listing|cols)\b[^\[\]]{0,300}\]"
    ),
    "a fence": pattern(r"(?:`{3,20}+|~{3,20}+)[^`\n]{0,300}"),
    "a directive": pattern(
        r"\.\.[ ](?:toctree|contents|index|meta|highlight|(?:current)?module|auto\w{1,20})::"
        r".{0,300}|:[\w-]{1,60}:(?:\s.{0,300})?|\{%.{1,500}%\}|\{\{.{1,500}\}\}"
        r"|(?:ifn?def|ifeval|endif|toc)::\S{0,200}\[.{0,300}\]|\.(?:nf|fi|TH|PP|so)(?:\s.{0,300})?"
        r"|\[(?:TOC|\[_?TOC_?\])\]"
    ),
    "a tag": pattern(r"</[\w.:-]{1,60}>|<br\s{0,9}/?>|<[A-Z][\w.]{0,60}\s{0,9}/?>|/>"),
    "a comment": pattern(
        r"%%[^%]{1,1000}%%|<!--.{0,5000}-->|\{/\*.{0,5000}\*/\}|//\s?tag::.{0,300}"
    ),
}
_POINTER: Final = pattern(
    r"(?:for\s(?:(?:more|further|full|other|additional|all)\s)?(?:details?|info(?:rmation)?|examples?"
    r"|options|help|instructions)\b[^.!?;:]{0,80}?,\s)?(?:please\s)?(?:also\s)?"
    r"(?:see|refer\sto|(?:read|learn)\smore|siehe|voir|v[ée]ase|vedi|zie)\b"
    r"(?:\s(?:also|auch|aussi|anche|ook):)?(?:[^.!?;:]|\.(?=\w)){0,120}[.!]?",
    re.IGNORECASE,
)
_POINTER_WORDS: Final = 14
"""A sentence of more may say something beside where to read on."""
_FIELD_WORDS: Final = 4
"""Words behind a field of a directive from which on it may be text."""
_QUOTATION: Final = pattern(r"\A(?:>[ \t]?)+")


def no_prose(quote: str) -> str:
    """Return what a quote is that says nothing to a reader, such as "an include"; "" for text.

    Args:
        quote: As it was given; all of its lines must be of such a kind, or hold no word.
    """
    if _points_elsewhere(" ".join(quote.split()).strip("()*_> ")):
        return "a pointer elsewhere"
    kinds = [_kind(line) for line in quote.splitlines() if line.strip()]
    return next(filter(None, kinds), "") if kinds and all(kinds) else ""


def _kind(line: str) -> str:
    bare = _QUOTATION.sub("", line.strip(), count=1).strip()
    for kind, each in _KINDS.items():
        if each.fullmatch(bare):
            is_text = kind == "a directive" and len(words(bare)) > _FIELD_WORDS
            return "" if is_text else kind
    return ""


def _points_elsewhere(said: str) -> bool:
    """Whether a sentence only says where to read on, such as "See the guide."."""
    return bool(_POINTER.fullmatch(said)) and len(words(said)) <= _POINTER_WORDS
