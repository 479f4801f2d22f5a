"""The language gate: whether a text is written in the language that was asked for.

A detector by statistics is wrong too often on a short question full of technical words. So a text
is turned away only where the script is wrong, or where it holds function words of another language
and hardly any of its own; quotes and code do not count.
"""

import re
from collections import Counter
from functools import cache
from typing import Final

from ragforge.deferred import pattern
from ragforge.stages.words import entries, function_words, languages_by_word

_SCRIPTS: Final = {
    "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "kana": "\u3041-\u30fa\u30fd-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "Hangul": "\u1100-\u11ff\uac00-\ud7a3",
    "Cyrillic": "\u0400-\u052f",
    "Arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f",
    "Hebrew": "\u05d0-\u05f2",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Devanagari": "\u0904-\u0963",
    "Bengali": "\u0980-\u09e3",
    "Gurmukhi": "\u0a00-\u0a65",
    "Gujarati": "\u0a80-\u0ae3",
    "Tamil": "\u0b80-\u0be3",
    "Telugu": "\u0c00-\u0c63",
    "Kannada": "\u0c80-\u0ce3",
    "Malayalam": "\u0d00-\u0d63",
    "Sinhala": "\u0d80-\u0de3",
    "Thai": "\u0e01-\u0e4e",
    "Lao": "\u0e81-\u0ecd",
    "Burmese": "\u1000-\u103f",
    "Georgian": "\u10a0-\u10ff",
    "Armenian": "\u0531-\u0587",
    "Ethiopic": "\u1200-\u135a",
    "Khmer": "\u1780-\u17d3",
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
}
_WRITTEN_IN: Final = {
    "Han": "zh",
    "Hangul": "ko",
    "Cyrillic": "ru uk be bg mk ky tg",
    "Arabic": "ar fa ur ps",
    "Hebrew": "he yi",
    "Greek": "el",
    "Devanagari": "hi mr ne",
    "Bengali": "bn as",
    "Gurmukhi": "pa",
    "Gujarati": "gu",
    "Tamil": "ta",
    "Telugu": "te",
    "Kannada": "kn",
    "Malayalam": "ml",
    "Sinhala": "si",
    "Thai": "th",
    "Lao": "lo",
    "Burmese": "my",
    "Georgian": "ka",
    "Armenian": "hy",
    "Ethiopic": "am ti",
    "Khmer": "km",
}
_ANY_SCRIPT: Final = frozenset("az kk ku mn sd sr ug uz".split())
"""Languages that are written in more than one script."""
_SCRIPT: Final = {
    language: frozenset({script})
    for script, codes in _WRITTEN_IN.items()
    for language in codes.split()
} | {"ja": frozenset({"Han", "kana"})}
_LATIN: Final = frozenset({"Latin"})
_LETTERS: Final = {name: pattern(f"[{ranges}]") for name, ranges in _SCRIPTS.items()}

_MENTIONED: Final = pattern(
    r"`[^`]{0,300}`|\"[^\"]{0,300}\"|\u201c[^\u201d]{0,300}\u201d|\u201e[^\u201c]{0,300}\u201c|"
    r"\u00ab[^\u00bb]{0,300}\u00bb|\u300c[^\u300d]{0,300}\u300d|\u300e[^\u300f]{0,300}\u300f|"
    r"(?<!\w)'[^']{0,300}'(?!\w)|https?://\S+"
)
"""What is quoted or code: words that are spoken of, in whatever language."""
_CODE: Final = pattern(r"[\d_/\\=(){}<>@#]|[a-z][A-Z]|\w\.\w|--")
_WORD: Final = pattern(r"[^\W\d_]{2,}")
_ASKS: Final = pattern(r"[?\uff1f\u061f]\s*$")
_CERTAIN_KANA: Final = 3
_LEAST_HAN: Final = 6


def wrong_language(text: str, language: str, certain: int = 2) -> str | None:
    """Return the language or script of a text where it is not the wanted one; None where it may be.

    Args:
        text: A question, or an answer.
        language: ISO 639 code of what it should be, also with a region ("pt-BR").
        certain: Different function words of another language that it takes, if there is none of
            the right one. Three times as many as of the right one, and one more, is enough too.
            A word that opens a question counts twice.
    """
    wanted = re.split(r"[-_]", language.lower())[0]
    prose = " ".join(word for word in spoken_of(text).split() if not _CODE.search(word))
    letters = {name: count for name, count in _counted(prose).items() if count}
    if not letters:
        return None
    if wanted not in _ANY_SCRIPT:
        script = _wrong_script(letters, _SCRIPT.get(wanted, _LATIN), prose, wanted)
        if script is not None:
            return script
    other = _other_language(prose, wanted, certain)
    if other is None or not _weighs(letters, wanted):
        return None
    return other


def spoken_of(text: str) -> str:
    """Return a text without what is quoted in it, code or an address."""
    return _MENTIONED.sub(" ", text)


def _counted(text: str) -> dict[str, int]:
    if text.isascii():
        return {"Latin": len(_LETTERS["Latin"].findall(text))}
    return {name: len(letters.findall(text)) for name, letters in _LETTERS.items()}


def _wrong_script(
    letters: dict[str, int], scripts: frozenset[str], text: str, language: str
) -> str | None:
    """Return the script of most letters where it cannot be that language.

    Words in Latin letters may stand in any text; one of the others in a text in Latin letters is
    something spoken of as long as it does not fill it.
    """
    right = sum(letters.get(name, 0) for name in scripts)
    foreign = {name: n for name, n in letters.items() if name not in scripts and name != "Latin"}
    most = max(foreign, key=lambda name: foreign[name], default="")
    if "Latin" in scripts:
        own = sum(word.lower() in function_words(language) for word in _WORD.findall(text))
        return most if foreign and foreign[most] > (right if not own else 4 * right) else None
    if language == "zh" and letters.get("kana", 0) >= _CERTAIN_KANA:
        return "ja" if 3 * letters["kana"] > right else None
    if foreign and foreign[most] > right:
        return most
    if language == "ja" and not letters.get("kana") and right >= _LEAST_HAN:
        chinese_only = frozenset(entries("zh", "words.not_in_japanese"))
        return "zh" if not chinese_only.isdisjoint(text) else None
    return None


def _other_language(text: str, wanted: str, certain: int) -> str | None:
    """Return the language whose function words a text holds and whose own it lacks."""
    lowered = {word.lower() for word in _WORD.findall(text)}
    others = Counter(code for word in lowered for code in languages_by_word().get(word, ()))
    opener = next(iter(_WORD.findall(text)), "").lower() if _ASKS.search(text) else ""
    own = lowered & function_words(wanted)
    listed = bool(function_words(wanted))
    for code, _ in sorted(others.items(), key=lambda item: (-item[1], item[0])):
        if code == wanted or not (listed or code == "en"):
            continue
        theirs = (lowered & function_words(code)) - own
        opens = opener in theirs
        ours = own - function_words(code)
        least = certain if listed else certain + 2
        if len(theirs) + opens >= max(least, 3 * len(ours) + 1):
            return code
    return None


@cache
def _is_latin(language: str) -> bool:
    return language not in _SCRIPT


def _weighs(letters: dict[str, int], wanted: str) -> bool:
    """Whether foreign words can decide: they do not beside a text in a script of its own."""
    if _is_latin(wanted):
        return True
    own = sum(letters.get(name, 0) for name in _SCRIPT[wanted])
    return letters.get("Latin", 0) > 2 * own if own else True
