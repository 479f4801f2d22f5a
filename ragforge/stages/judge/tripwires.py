"""Tripwires: words in a chunk that look as if they were meant for its judge.

What they find is noted beside a judgment and changes no grade: a page about prompts may well hold
a prompt. Texts are looked at as a reader sees them: without hidden characters, compatibility forms
and case folded. Every pattern takes time in proportion to the text.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

from ragforge.deferred import dataclass, pattern
from ragforge.files.text import normalize
from ragforge.stages.visible_text import visible
from ragforge.stages.words import all_entries

_ROLES: Final = (
    r"<\|(?:im_start|im_end|im_sep|system|user|assistant|developer|start_header_id|end_header_id"
    r"|eot_id|eom_id|begin_of_text|end_of_text|endoftext|channel|message)\|>",
    r"\[/?inst\]",
    r"<</?sys>>",
    r"</?(?:start|end)_of_turn>",
    r"</think(?:ing)?>",
    r"^\s{0,8}#{2,4} ?(?:system|instruction|response)s? ?:",
    r"^\s{0,8}(?:system|assistant|developer)(?: (?:prompt|message))? ?: ?"
    r"(?:you\b|give\b|grade\b|rate\b|ignore\b|reply\b|answer\b|respond\b|always\b|never\b|the\b"
    r"|this\b|\{|[0-9])",
    r"^\s{0,8}(?:human|user) ?: [^\n]{0,300}\n{1,2}\s{0,8}(?:assistant|ai) ?:",
)
_ROLES_HAVE: Final = tuple(
    "<|,inst],sys>,_of_turn,</think,system,assistant,developer,ai:,ai :,instruction,response".split(
        ","
    )
)
_VERDICTS: Final = (
    r"[\"'](?:grade|relevance|relevance_?(?:score|grade)|relevancy|is_?relevant|contains_?answer"
    r"|verdict)[\"']\s{0,4}:\s{0,4}"
    r"(?:true|[\"']?(?:[0-9]|10)(?:\.0)?[\"']?\s{0,4}[,}\]\n]"
    r"|[\"'](?:yes|relevant|correct|fully|highly|perfect)[^\"'\n]{0,20}[\"'])",
    r"(?:\b|#)(?:final|relevance|overall) (?:score|grade|verdict|rating|label)\s{0,4}[:=]\s{0,4}"
    r"\W{0,4}(?:[0-9]|10)\b",
    r"\b(?:rating|score|grade|verdict)\s?: ?\[\[ ?\w{1,12} ?\]\]",
    r"^\s{0,8}(?:grade|verdict)\s?: ?[0-3](?: ?/ ?3)?\.?\s{0,8}$",
    r"<(?:grade|verdict|relevance)> ?(?:[0-9]|yes|correct|(?:\w{2,9}ly )?relevant)\b[^<\n]{0,20}</",
    r"\brelevance(?: (?:to|for) (?:the|this|your) (?:query|question))? ?[:=] ?"
    r"(?:perfect|full|maximal|maximum|highest)\b",
)
_VERDICTS_HAVE: Final = ("grade", "relevan", "contains", "verdict", "score", "rating", "label")
_RULERS: Final = (
    r"^\s{0,8}[-=<\[#*]{2,12}\s?(?:begin|end|start|stop) (?:of )?"
    r"(?:the )?(?:data|passage|document|context|query|user input|untrusted)",
)
_RULERS_HAVE: Final = ("begin", "end", "start", "stop")
_FENCES: Final = (
    r"<<\s?/?data-[0-9a-z]{0,40}\s?>>",
    r"\"\s{0,4}\n\s{0,4}(?:query|passage|answer|reasoning)\s?: ?\"",
    r"\"\s{0,4}\}\s{0,4}\n{1,2}[^\n]{0,40}\bgrade the passage\b",
)
_FENCES_HAVE: Final = tuple(
    "data-,grade the passage,query:,query :,passage:,passage :,answer:,answer :,reasoning:,"
    "reasoning :".split(",")
)
"""Words of which each match has one."""

_SMUGGLED: Final = pattern(
    "[\U000e0020-\U000e007e]{8}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3}"
    "|[\u200b-\u200d\u2060-\u2064\u180e\ufeff]{6}|\u202e"
)
"""Letters spelled in characters without a glyph, or shown backwards. Flags of countries take up to
six tags, and an emoji one variation selector."""


FLAGS: Final = ("relevance claim", "instruction", "role marker", "verdict", "fence", "hidden text")
"""All there are, in the order in which they are given."""


@lru_cache(maxsize=1000)
def flags(text: str) -> tuple[str, ...]:
    """Return the flags of a chunk, in the order of `FLAGS`; () for none.

    A chunk is judged for many queries.
    """
    shown = visible(text)
    folded = (shown if shown.isascii() else normalize("NFKC", shown)).lower()
    found = dict.fromkeys(wire.flag for wire in _tripwires() if wire.is_in(folded))
    is_smuggled = not text.isascii() and _SMUGGLED.search(text)
    return (*found, "hidden text") if is_smuggled else tuple(found)


@dataclass(frozen=True, slots=True)
class _Tripwire:
    """What gives a flag.

    Args:
        needles: Of which each match of the pattern has one: looking for those is cheap.
        pattern: Of folded text.
    """

    flag: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]

    def is_in(self, folded: str) -> bool:
        is_near = any(needle in folded for needle in self.needles)
        return is_near and self.pattern.search(folded) is not None


@cache
def _tripwires() -> tuple[_Tripwire, ...]:
    """Return all tripwires in the order of their flags."""
    return (
        _listed("relevance claim", "claims"),
        _listed("relevance claim", "bids"),
        _listed("instruction", "orders"),
        _listed("instruction", "notes"),
        *(
            _Tripwire(flag, needles, _either(patterns))
            for flag, patterns, needles in (
                ("role marker", _ROLES, _ROLES_HAVE),
                ("verdict", _VERDICTS, _VERDICTS_HAVE),
                ("fence", _FENCES, _FENCES_HAVE),
                ("fence", _RULERS, _RULERS_HAVE),
            )
        ),
    )


def _listed(flag: str, name: str) -> _Tripwire:
    """Return the tripwire of a list that has words in many languages."""
    phrases, needles = all_entries(f"injection.{name}"), all_entries(f"injection.{name}_have")
    return _Tripwire(flag, needles, _either(phrases))


def _either(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE)
