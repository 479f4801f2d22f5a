"""Tripwires: words in a chunk that look as if they were meant for its judge.

What they find is noted beside a judgment and changes no grade: a page about prompts may well hold
a prompt. Texts are looked at as a reader sees them: without hidden characters, compatibility forms
and case folded. Every pattern takes time in proportion to the text.
"""

import re
from collections.abc import Sequence
from typing import Final

from ragforge.files.text import normalize
from ragforge.stages.asking import visible

_TEXT: Final = r"(?:passage|text|chunk|document|paragraph|article|excerpt|snippet|context|section)"
_CLAIMS: Final = (
    rf"\b(?:this|the (?:above|following|present)) {_TEXT} "
    r"(?:is|should be|must be|has to be) (?:(?:\w{2,20}ly|very|most|100 ?%) ){0,2}relevant\b",
    rf"\b(?:this|the (?:above|following|present)) {_TEXT} (?:\w{{2,20}}ly )?"
    r"answers (?:the|this|your|any|every) (?:query|question)\b",
    r"\b(?:perfectly|fully|completely|entirely|absolutely|extremely|100 ?%) relevant "
    r"(?:to|for) (?:the|this|your|any|every) (?:query|question|search)\b",
    r"\b(?:perfectly|fully|completely|entirely) answers (?:the|this|your|any|every) "
    r"(?:query|question)\b",
    r"\b(?:dieser|diese|dieses|der obige|die obige) (?:abschnitt|text|passage|absatz|dokument"
    r"|artikel|textstelle) ist (?:\w{2,20} ){0,2}relevant\b",
    r"\b(?:dieser|diese|dieses) (?:abschnitt|text|passage|absatz|dokument|artikel|textstelle) "
    r"beantwortet (?:die|diese) (?:frage|anfrage)\b",
    r"\b(?:ce|cet|cette) (?:passage|texte|extrait|document|paragraphe|article) est "
    r"(?:\w{2,20} |tout a fait |tout \u00e0 fait ){0,2}pertinente?\b",
    r"\b(?:este|esta|el presente) (?:pasaje|texto|fragmento|documento|p\u00e1rrafo|art\u00edculo) "
    r"es (?:\w{2,20} ){0,2}relevante\b",
    r"\b(?:questo|questa|il presente) (?:passaggio|testo|brano|documento|paragrafo|articolo) "
    r"\u00e8 (?:\w{2,20} ){0,2}(?:rilevante|pertinente)\b",
    r"\b(?:esta|este) (?:passagem|texto|trecho|documento|par\u00e1grafo|artigo) "
    r"\u00e9 (?:\w{2,20} ){0,2}relevante\b",
    r"\b(?:deze|dit) (?:passage|tekst|fragment|document|alinea|artikel) is "
    r"(?:\w{2,20} ){0,2}relevant\b",
    r"\b(?:ten|ta|to) (?:fragment|tekst|dokument|akapit|artyku\u0142) jest (?:\w{2,20} ){0,2}"
    r"(?:istotny|trafny|adekwatny)\b",
    r"(?:этот|данный) (?:отрывок|текст|документ|абзац|фрагмент) (?:\w{2,20} ){0,2}"
    r"(?:релевантен|отвечает на (?:вопрос|запрос))",
    r"[本这這此该該](?:段|文|篇|文章|段落|文档|文檔|文件)[^\s。,]{0,6}(?:完全|高度|非常|十分)相[关關]",
    r"この(?:文章|段落|パッセージ|テキスト|文書)[^\s。]{0,4}(?:完全|非常|十分|最も)[にも]関連",
    r"이 (?:문서|구절|글|단락|텍스트)[^\s.]{0,2} (?:\w{1,10} ){0,2}관련(?:이|성이|되어) ?있",
    r"هذا (?:المقطع|النص|المستند) (?:\w{1,20} ){0,2}(?:ذو صلة|وثيق الصلة)",
    r"यह (?:अंश|पाठ|दस्तावेज़|लेख) (?:\S{1,20} ){0,2}प्रासंगिक है",
)
_BIDS: Final = (
    r"\b(?:give|assign|award|rate|grade|score|mark) (?:it|this|the (?:passage|text|chunk|document)"
    rf"|this {_TEXT}|every {_TEXT}|all {_TEXT}s) (?:with |as |at |a |an |the ){{0,2}}"
    r"(?:grade |score |rating |relevance ){0,2}(?:of )?"
    r"(?:[0-9]|10|highest|top|maximum|best|full|perfect|(?:highly |perfectly )?relevant)\b",
)
_ORDERS: Final = (
    r"\b(?:ignore|disregard|forget|override) (?:all |any |the |your |every ){0,3}"
    r"(?:previous|prior|above|preceding|earlier|foregoing) "
    r"(?:instruction|prompt|rule|direction|guideline|grade|criteri)",
    r"\byou (?:are now|must now|will now) (?:a|an|in|act|grade|judge|reply|answer|respond)\b",
    r"\bignoriere (?:alle |die |deine ){0,2}(?:vorherigen|bisherigen|obigen) ",
    r"\bignor(?:e|ez) (?:toutes )?(?:les )?instructions pr\u00e9c\u00e9dentes\b",
    r"\bignora (?:todas )?(?:las )?instrucciones (?:anteriores|previas)\b",
    r"игнорируй(?:те)? (?:все )?предыдущие (?:инструкции|указания)",
    r"忽略(?:之前|以上|前面|先前|所有)[^\s。]{0,6}(?:指令|指示|说明|提示)",
)
_NOTES: Final = (
    r"\b(?:note|notice|instructions?|message) (?:to|for) (?:the |all |any )?"
    r"(?:grader|judge|evaluator|assessor|rater|reviewing model|language model|llm|ai)s?\b",
)
_ROLES: Final = (
    r"<\|(?:im_start|im_end|im_sep|system|user|assistant|developer|start_header_id|end_header_id"
    r"|eot_id|eom_id|begin_of_text|end_of_text|endoftext|channel|message)\|>",
    r"\[/?inst\]",
    r"<</?sys>>",
    r"</?(?:start|end)_of_turn>",
    r"^\s{0,8}#{2,4} ?(?:system|instruction|response)s? ?:",
    r"^\s{0,8}(?:system|assistant|developer)(?: (?:prompt|message))? ?: ?"
    r"(?:you\b|give\b|grade\b|rate\b|ignore\b|reply\b|answer\b|respond\b|always\b|never\b|the\b"
    r"|this\b|\{|[0-9])",
    r"^\s{0,8}(?:human|user) ?: [^\n]{0,300}\n{1,2}\s{0,8}(?:assistant|ai) ?:",
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
_RULERS: Final = (
    r"^\s{0,8}[-=<\[#*]{2,12}\s?(?:begin|end|start|stop) (?:of )?"
    r"(?:the )?(?:data|passage|document|context|query|user input|untrusted)",
)
_FENCES: Final = (
    r"<<\s?/?data-[0-9a-z]{0,40}\s?>>",
    r"\"\s{0,4}\n\s{0,4}(?:query|passage|answer|reasoning)\s?: ?\"",
    r"\"\s{0,4}\}\s{0,4}\n{1,2}[^\n]{0,40}\bgrade the passage\b",
)
_Wires = tuple[tuple[str, ...], re.Pattern[str]]

_SMUGGLED: Final = re.compile(
    "[\U000e0020-\U000e007e]{8}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3}"
    "|[\u200b-\u200d\u2060-\u2064\u180e\ufeff]{6}|\u202e"
)
"""Letters spelled in characters without a glyph, or shown backwards. Flags of countries take up to
six tags, and an emoji one variation selector."""


def _wires(patterns: Sequence[str], *needles: str) -> _Wires:
    """Return patterns as one, with words of which each match has one: looking for those is cheap.

    Args:
        patterns: Of folded text.
        needles: None where the patterns are always tried.
    """
    return needles, re.compile("|".join(patterns), re.MULTILINE)


_WIRES: Final[dict[str, tuple[_Wires, ...]]] = {
    "relevance claim": (
        _wires(
            _CLAIMS,
            *("relevan", "rilevan", "pertinen", "answers", "beantwortet", "istotny", "trafny"),
            *(
                "adekwatny",
                "отвечает",
                "релевант",
                "相关",
                "相關",
                "関連",
                "관련",
                "صلة",
                "प्रासंगिक",
            ),
        ),
        _wires(_BIDS, "give", "assign", "award", "rate ", "grade ", "score ", "mark "),
    ),
    "instruction": (
        _wires(
            _ORDERS,
            *("ignor", "disregard", "forget", "override", "you are now", "must now", "will now"),
            *("игнорируй", "忽略"),
        ),
        _wires(_NOTES, "note ", "notice ", "instruction", "message "),
    ),
    "role marker": (
        _wires(
            _ROLES,
            *("<|", "inst]", "sys>", "_of_turn", "system", "assistant", "developer", "ai:", "ai :"),
            *("instruction", "response"),
        ),
    ),
    "verdict": (
        _wires(_VERDICTS, "grade", "relevan", "contains", "verdict", "score", "rating", "label"),
    ),
    "fence": (
        _wires(
            _FENCES,
            *("data-", "grade the passage", "query:", "query :", "passage:", "passage :"),
            *("answer:", "answer :", "reasoning:", "reasoning :"),
        ),
        _wires(_RULERS, "begin", "end", "start", "stop"),
    ),
}

FLAGS: Final = (*_WIRES, "hidden text")
"""All there are, in the order in which they are given."""


def flags(text: str) -> tuple[str, ...]:
    """Return what is suspicious in a chunk, in the order of `FLAGS`; () for nothing."""
    shown = visible(text)
    seen = (shown if shown.isascii() else normalize("NFKC", shown)).lower()
    found = [name for name, wires in _WIRES.items() if any(_rings(wire, seen) for wire in wires)]
    is_smuggled = not text.isascii() and _SMUGGLED.search(text)
    return (*found, "hidden text") if is_smuggled else tuple(found)


def _rings(wires: _Wires, seen: str) -> bool:
    needles, pattern = wires
    is_near = not needles or any(needle in seen for needle in needles)
    return is_near and pattern.search(seen) is not None
