"""What can be said of a chunk by itself: its size, and whether it can be read."""

import re
from typing import Final

FEWEST_WORDS: Final = 12
MOST_TOKENS: Final = 512
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts that put no blanks between words: Thai, Lao, Japanese, Chinese."""
_CHARS_PER_UNSPACED_WORD = 2
_LETTERS = re.compile(r"[^\W_]+")
_MOJIBAKE = re.compile("[ÃÂâ][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œ]|ï»¿|Ð[\u0080-\u00bf]")  # noqa: RUF001
_RULES = re.compile(r"[|:=+-]+")
"""What tables and titles are drawn with."""
_GLYPH_NAMES = re.compile(r"\(cid:\d+\)")
_SPACED = re.compile(r"(?:\b[^\W\d_] ){8,}")
_SPACED_CHARS = 4
_MOST_HEADINGS_CHARS = 2000
_LEAST_LETTERS = 0.35
_FEWEST_VISIBLE = 20
_SURE = 3
_HEADING = re.compile(r"#{1,6}[ \t]+\S")
_UNDERLINE = re.compile(r"([=\-~^\"'`+*#:.])\1{2,}[ \t]*")


def word_count(text: str) -> int:
    """Return the words of a text; in scripts without blanks two characters count as one."""
    count = len(text.split())
    if text.isascii():
        return count
    return count + len(_UNSPACED.findall(text)) // _CHARS_PER_UNSPACED_WORD


def token_count(text: str) -> int:
    """Return about how many tokens an embedding model reads.

    Four characters each in ASCII, one in scripts without blanks, two in all others.
    """
    n_ascii = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    unspaced = 0 if n_ascii == len(text) else len(_UNSPACED.findall(text))
    return n_ascii // 4 + unspaced + (len(text) - n_ascii - unspaced) // 2


def size_fault(text: str, max_chars: int) -> str:
    """Say why a chunk is too large; "" where it is not."""
    if (tokens := token_count(text)) > MOST_TOKENS:
        return (
            f"about {tokens:,} tokens: models that read {MOST_TOKENS} (BGE, E5, GTE; MiniLM 256) "
            "embed no more than the start"
        )
    return f"{len(text):,} characters" if len(text) > 2 * max_chars else ""


def reading_fault(text: str) -> str:
    """Say why a text cannot be read; "" where it can."""
    if lost := text.count("\ufffd"):
        return f"{lost} character{'s' * (lost > 1)} lost in decoding (U+FFFD)"
    if not text.isascii() and len(_MOJIBAKE.findall(text)) >= _SURE:
        return "UTF-8 read in another encoding"
    if len(_GLYPH_NAMES.findall(text)) >= _SURE:
        return "glyphs without letters, as a PDF with broken fonts gives"
    # The search is slow, and words of one letter leave few letters to a blank.
    if len(text) < _SPACED_CHARS * (text.count(" ") + 1) and _SPACED.search(text):
        return "letters set apart"
    visible = "".join(_RULES.sub("", text).split())
    letters = len(visible) - len(_LETTERS.sub("", visible))
    if len(visible) >= _FEWEST_VISIBLE and letters < _LEAST_LETTERS * len(visible):
        return "mostly symbols"
    return ""


def headings_only(text: str) -> bool:
    """Say whether a chunk holds headings and nothing below them."""
    if len(text) > _MOST_HEADINGS_CHARS:
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    at = 0
    while at < len(lines):
        if _HEADING.match(lines[at]):
            at += 1
        elif at + 1 < len(lines) and _UNDERLINE.fullmatch(lines[at + 1]):
            at += 2
        else:
            return False
    return bool(lines)
