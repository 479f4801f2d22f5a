"""Whether a quote says enough to prove anything: more than a word, more than a heading."""

import re
from typing import Final

from ragforge.corpus.anchors import Location
from ragforge.records import Chunk
from ragforge.stages.generate.candidates import Candidate
from ragforge.stages.words import content_stems, words

_FEWEST_WORDS: Final = 3
_FEWEST_CHARS: Final = 12
"""Two words are enough from this length on."""
_FEWEST_UNSPACED: Final = 4
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
)
_ENDS_OF_CELL: Final = re.compile(r"[\n\r\t\x0b\x0c\u2028\u2029|]|</?\w[^>]{0,80}>")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s|\s{0,3}<h[1-6]\b", re.IGNORECASE)
_UNDERLINED: Final = re.compile(r"\s*\r?\n[ \t]{0,3}(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t]*(?:\r?\n|\Z)")

_SENTENCE_END: Final = re.compile(r"[.!:;,]\s*$")
"""A rule below a sentence does not make it a heading."""


def too_little(place: Location, chunk: Chunk, candidate: Candidate) -> str:
    """Return why what stands at a place is no proof; "" where it may be one.

    A line, list item or table cell may be as short as it is, if the answer has to do with it; a
    heading may be quoted if the whole answer stands in it, or where there is nothing else.

    Args:
        place: Of the quote in the chunk.
        chunk: That holds it.
        candidate: Whose answer is to be proved.
    """
    quote = chunk.text[place.start : place.end]
    said, answer = set(words(quote)), set(words(candidate.answer))
    if _is_heading(place, quote, chunk):
        stems = set(content_stems(candidate.answer))
        return "" if stems and stems <= set(content_stems(quote)) else "a heading alone"
    if _says_enough(quote) or len(words(chunk.text)) <= _FEWEST_WORDS:
        return ""
    if not _fills_its_cell(place, chunk.text):
        return "too short"
    proves = candidate.behaviour == "abstain" or said <= answer or answer <= said
    return "" if proves else "too short, and not in the answer"


def _says_enough(quote: str) -> bool:
    dense = len(_UNSPACED.findall(quote))
    if dense:
        return dense >= _FEWEST_UNSPACED or len(words(_UNSPACED.sub(" ", quote))) + dense > 2
    many = len(words(quote))
    return many >= _FEWEST_WORDS or (many > 1 and len(quote.strip()) >= _FEWEST_CHARS)


def _is_heading(place: Location, quote: str, chunk: Chunk) -> bool:
    """Whether a quote lies within one heading of a text that holds more than this."""
    text = chunk.text
    if "\n" in quote.strip():
        return False
    start = text.rfind("\n", 0, place.start + len(quote) - len(quote.lstrip())) + 1
    line_end = text.find("\n", start)
    line = text[start : len(text) if line_end < 0 else line_end]
    underlined = _UNDERLINED.match(text, start + len(line)) and not _SENTENCE_END.search(line)
    marked = _HEADING.match(line) or underlined
    titled = _bare(line) == _bare(quote) and _bare(quote) in set(map(_bare, chunk.heading_path))
    return bool(line.strip() and (marked or titled)) and _bare(line) != _bare(text)


def _fills_its_cell(place: Location, text: str) -> bool:
    """Whether nothing else but marks stands beside it in its line, list item or table cell."""
    before = list(_ENDS_OF_CELL.finditer(text, max(0, place.start - 200), place.start))
    behind = _ENDS_OF_CELL.search(text, place.end)
    start = before[-1].end() if before else max(0, place.start - 200)
    end = behind.start() if behind else min(len(text), place.end + 200)
    beside = re.sub(r"^\s*(?:[-*+]|\d+[.)])\s", "", text[start : place.start])
    return not words(beside) and not words(text[place.end : end])


def _bare(text: str) -> str:
    return " ".join(words(text))
