"""The gates by rule: what a candidate must pass before any model is asked about it.

The last are those for its quotes: verbatim, telling, and no longer than a proof is.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ragforge.corpus.cut_ends import whole_ends
from ragforge.corpus.quote_locations import Location
from ragforge.deferred import dataclass, pattern
from ragforge.records import Chunk, Evidence
from ragforge.scripts import count_syllabic, without_syllabic
from ragforge.stages.answer.refusals import abstains, speaks_of_absence
from ragforge.stages.generate.candidates import Anchored, Brief, Candidate, Quoted, Rejection
from ragforge.stages.generate.gates.languages import wrong_language
from ragforge.stages.generate.gates.prose import no_prose
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.gates.shape import (
    bad_form,
    bad_length,
    broken_shape,
    hidden_characters,
    meta_talk,
    order_followed,
)
from ragforge.stages.generate.gates.standing_alone import copied_run, given_away, points_away
from ragforge.stages.quotes import find_proof, has_content
from ragforge.stages.visible_text import locate_shown, visible
from ragforge.stages.words import content_stems, entries, words

_FEWEST_WORDS: Final = 3
_FEWEST_CHARS: Final = 12
"""Two words are enough from this length on."""
_FEWEST_UNSPACED: Final = 4
_ENDS_OF_CELL: Final = pattern(r"[\n\r\t\x0b\x0c\u2028\u2029|]|</?\w[^>]{0,80}>")
_HEADING: Final = pattern(r"\s{0,3}#{1,6}\s|\s{0,3}<h[1-6]\b", re.IGNORECASE)
_UNDERLINED: Final = pattern(r"\s*\r?\n[ \t]{0,3}(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t]*(?:\r?\n|\Z)")

_SENTENCE_END: Final = pattern(r"[.!:;,]\s*$")
"""A rule below a sentence does not make it a heading."""

_LONGEST: Final = 1_200
_WHOLE: Final = 0.8
"""Share of a chunk from which on a quote is the chunk itself."""
_SMALL_CHUNK: Final = 500
"""Below this many characters a chunk may be a quote as it is."""
_AROUND: Final = 32
_MULTI_HOP: Final = ("multi_hop", "multi_hop_across")

_NORWEGIAN: Final = {"nb": "no", "nn": "no"}
_CERTAIN_OF_ANSWER = 4
"""Foreign function words that an answer takes; it may name more foreign things than a question."""


def check(
    candidate: Candidate, brief: Brief, taken: QuestionsAsked, place: int
) -> Anchored | Rejection:
    """Return a candidate with its evidence, or the first gate it fails.

    Args:
        candidate: What was proposed.
        brief: What it was proposed for.
        taken: Questions as they stand on their own (`Candidate.asked`) that are in the set, or
            were and are retired. What passes is not added.
        place: Among the candidates of its brief, from 0.
    """
    for stopped in _verdicts(candidate, brief):
        if stopped is not None:
            return stopped
    evidence = _anchored(candidate, brief)
    if isinstance(evidence, Rejection):
        return evidence
    stopped = (
        given_away(candidate, brief.slot.language)
        or copied_run(candidate, brief)
        or _asked_already(candidate, taken)
    )
    return stopped or Anchored(brief, place, candidate, evidence)


def _verdicts(candidate: Candidate, brief: Brief) -> Iterator[Rejection | None]:
    """Yield what the gates say that need no look at the text; each may rely on those before it."""
    language = brief.slot.language
    gates: tuple[Callable[[], Rejection | None], ...] = (
        lambda: broken_shape(candidate, brief),
        lambda: bad_length(candidate),
        lambda: hidden_characters(candidate),
        lambda: meta_talk(candidate),
        lambda: bad_form(candidate, language),
        lambda: _no_answer(candidate),
        lambda: _answer_not_absent(candidate, language),
        lambda: _other_language(candidate, language),
        lambda: points_away(candidate, language),
        lambda: order_followed(candidate, brief),
        lambda: _bad_quote(candidate, brief),
    )
    return (gate() for gate in gates)


def _no_answer(candidate: Candidate) -> Rejection | None:
    """Reject an answer that only says that there is none, where one is needed."""
    if candidate.behaviour != "answer" or not abstains(candidate.answer, candidate.asked):
        return None
    return Rejection("no_answer", _start_of_answer(candidate))


def _answer_not_absent(candidate: Candidate, language: str) -> Rejection | None:
    """Reject what answers an unanswerable question; None where it may say what is missing.

    In a language whose words for it are not known every answer may.
    """
    if candidate.behaviour != "abstain":
        return None
    code = re.split(r"[-_]", language.lower())[0]
    code = _NORWEGIAN.get(code, code)
    if not any(entries(code, f"absence.{name}") for name in ("words", "within", "phrases")):
        return None
    phrases = entries(code, "absence.phrases")
    is_absent = speaks_of_absence(candidate.answer) or any(
        re.search(phrase, candidate.answer, re.IGNORECASE) for phrase in phrases
    )
    return None if is_absent else Rejection("answer_not_absent", _start_of_answer(candidate))


def _start_of_answer(candidate: Candidate) -> str:
    return repr(candidate.answer.strip()[:60])


def _other_language(candidate: Candidate, language: str) -> Rejection | None:
    for text in dict.fromkeys((candidate.question, candidate.asked)):
        other = wrong_language(text, language)
        if other is not None:
            return Rejection("language", f"the question reads as {other}, not {language}")
    # Words of the text are in the text's language, whichever that of the question is.
    answer = f" {' '.join(words(candidate.answer))} "
    if any(answer in f" {' '.join(words(quote.text))} " for quote in candidate.quotes):
        return None
    other = wrong_language(candidate.answer, language, certain=_CERTAIN_OF_ANSWER)
    return Rejection("language", f"the answer reads as {other}, not {language}") if other else None


def _asked_already(candidate: Candidate, taken: QuestionsAsked) -> Rejection | None:
    clash = taken.clash(candidate.asked)
    if clash is None:
        return None
    if clash.exact:
        return Rejection("duplicate", f"of {clash.query_id}")
    return Rejection("near_duplicate", f"of {clash.query_id}: {clash.question[:80]!r}")


def _too_little(place: Location, chunk: Chunk, candidate: Candidate) -> str:
    """Return why what stands at a place is no proof; "" where it may be one.

    A line, list item or table cell may be as short as it is, if the answer has to do with it; a
    heading may be quoted if the whole answer stands in it, or where there is nothing else.

    Args:
        place: Of the quote in the chunk.
        chunk: That holds it.
        candidate: Whose answer is to be proved.
    """
    quote = chunk.text[place.start : place.end]
    quoted, answer = set(words(quote)), set(words(candidate.answer))
    if _is_heading(place, quote, chunk):
        stems = set(content_stems(candidate.answer))
        return "" if stems and stems <= set(content_stems(quote)) else "a heading alone"
    if _says_enough(quote) or len(words(chunk.text)) <= _FEWEST_WORDS:
        return ""
    if not _fills_its_cell(place, chunk.text):
        return "too short"
    proves = candidate.behaviour == "abstain" or quoted <= answer or answer <= quoted
    return "" if proves else "too short, and not in the answer"


def _says_enough(quote: str) -> bool:
    dense = count_syllabic(quote)
    if dense:
        return dense >= _FEWEST_UNSPACED or len(words(without_syllabic(quote))) + dense > 2
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


@dataclass(frozen=True, slots=True)
class _LocatedQuote:
    """Where a quote stands: the index of its passage, and the place in it."""

    passage: int
    place: Location


def _bad_quote(candidate: Candidate, brief: Brief) -> Rejection | None:
    """Reject a candidate with a quote that is too long or says nothing, before any is looked up."""
    for quote in candidate.quotes:
        chunk, size = brief.chunks[quote.passage], len(quote.text.strip())
        if _is_too_long(size, chunk):
            return Rejection("quote_too_long", f"{size} of {len(chunk.text)} characters")
        if what := no_prose(quote.text):
            return Rejection("quote_no_prose", f"{quote.text.strip()[:60]!r} is {what}")
        if not has_content(quote.text):
            return Rejection("quote_empty", repr(quote.text.strip()[:40]))
    return None


def _anchored(candidate: Candidate, brief: Brief) -> tuple[Evidence, ...] | Rejection:
    """Return the evidence of a candidate, as it stands in the chunks, or the quote that fails.

    Quotes of one passage that overlap are one.
    """
    located: list[_LocatedQuote] = []
    for quote in candidate.quotes:
        chunk = brief.chunks[quote.passage]
        place = _place(quote.text, chunk.text)
        if place is None:
            return Rejection("quote_not_found", _missing(quote, brief))
        why = _too_little(place, chunk, candidate)
        if why:
            return Rejection("quote_too_short", f"{quote.text.strip()[:40]!r} is {why}")
        located.append(_LocatedQuote(quote.passage, place))
    merged = _merged(located)
    for each in merged:
        chunk, size = brief.chunks[each.passage], each.place.end - each.place.start
        if _is_too_long(size, chunk):
            return Rejection("quote_too_long", f"together {size} of {len(chunk.text)} characters")
    if candidate.type in _MULTI_HOP and len(merged) == 1:
        return Rejection("schema", "one quote for two hops")
    return tuple(_evidence(each, brief.chunks[each.passage]) for each in merged)


def _place(quote: str, text: str) -> Location | None:
    """Return where a quote first stands whole: "limit 10" is no quote of "limit 100"."""
    place = locate_shown(quote, text)
    if place is None or _is_whole(quote, place, text):
        return place
    return find_proof(visible(quote), text, _is_whole)


def _is_whole(quote: str, place: Location, text: str) -> bool:
    return all(whole_ends(text, place.start, place.end))


def _is_too_long(size: int, chunk: Chunk) -> bool:
    whole = len(chunk.text) >= _SMALL_CHUNK and size > _WHOLE * len(chunk.text)
    return size > _LONGEST or whole


def _merged(located: Sequence[_LocatedQuote]) -> list[_LocatedQuote]:
    """Return what was found, in that order, with what overlaps as one at its first place."""
    merged: list[_LocatedQuote] = []
    for each in located:
        start, end, at = each.place.start, each.place.end, len(merged)
        for index in reversed(range(len(merged))):
            other = merged[index].place
            if merged[index].passage == each.passage and other.start < end and start < other.end:
                start, end, at = min(start, other.start), max(end, other.end), index
                del merged[index]
        merged.insert(at, _LocatedQuote(each.passage, Location(start, end)))
    return merged


def _evidence(located: _LocatedQuote, chunk: Chunk) -> Evidence:
    place, known = located.place, chunk.end > chunk.start
    return Evidence(
        doc_id=chunk.doc_id,
        chunk_id=chunk.chunk_id,
        quote=chunk.text[place.start : place.end],
        start=chunk.offset(place.start) if known else None,
        end=chunk.end_offset(place.end) if known else None,
        prefix=chunk.text[max(0, place.start - _AROUND) : place.start],
        suffix=chunk.text[place.end : place.end + _AROUND],
        hop=located.passage + 1,
    )


def _missing(quote: Quoted, brief: Brief) -> str:
    quoted = repr(quote.text.strip()[:60])
    if locate_shown(quote.text, brief.chunks[quote.passage].text) is not None:
        return f"{quoted} ends within a word or number"
    elsewhere = next(
        (at for at, chunk in enumerate(brief.chunks) if locate_shown(quote.text, chunk.text)), None
    )
    if elsewhere is None:
        return quoted
    return f"{quoted} stands in passage {elsewhere + 1}, not in {quote.passage + 1}"
