"""Whether the documents as they are now still give an old answer, proved by a quote.

Two judges say so: a language model, and an offline baseline, for which an answer stands where a
passage has all its words and numbers.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise, zip_longest
from typing import Annotated, Final, Literal

from ragforge.corpus.cut_ends import is_cut_anew
from ragforge.corpus.quote_locations import FoldedText, Location, fold
from ragforge.corpus.signs import signed_words
from ragforge.deferred import dataclass, pattern
from ragforge.records import Behaviour, Provenance
from ragforge.records.model import ConfigDict, Model
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.asking import Asker, quoted, quoted_list, upto
from ragforge.stages.quotes import find_proof, has_content
from ragforge.stages.values import say_the_same, small_numbers
from ragforge.stages.visible_text import visible
from ragforge.stages.words import SENTENCE_END, all_entries, content_stems, numbers, words

_LONGEST: Final = 400
"""Characters of whole sentences that are kept as a proof; a longer stretch is not widened."""

PROMPT: Final = "recheck_answer"
_LEAST: Final = 8
"""Characters that tell that the text beside a quote is as it was."""
_HEADING = pattern(r"[ ]{0,3}(?P<marks>#{1,6})[ \t]{1,20}(?P<title>\S[^\n]{0,200})")
_FENCE = pattern(r"[ ]{0,3}(`{3,}|~{3,})")
_RULES: Final = "=-~^"
_RULE = pattern(r"([=\-~^])\1{2,}\s*")
_NAME = "offline-recheck-1"
_EXPECTS: Final[Mapping[Behaviour, str]] = {
    "answer": "an answer",
    "abstain": "an answer",
    "correct_premise": "a correction of what the question wrongly takes for granted",
    "clarify": "an answer for each of several things that the question may mean",
}
Verdict = Literal["same", "changed", "none"]
"""same: the passages give the expected answer. changed: they give another one. none: they give
none."""


def sentence_places(text: str) -> list[Location]:
    """Return where the sentences and lines of a text stand, blanks around them left out."""
    ends = [*SENTENCE_END.finditer(text)]
    starts = [0, *(end.end() for end in ends)]
    stops = [*(end.start() for end in ends), len(text)]
    places = []
    for start, stop in zip(starts, stops, strict=True):
        part = text[start:stop]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            places.append(Location(begin, begin + len(part.strip())))
    return places


def widened(place: Location, text: str) -> Location:
    """Return the whole sentences around a place, the place itself where these are long.

    A few words such as "5 seconds" prove nothing without what they are said of, and stand in too
    many places to be found again.
    """
    around = touching(place, text)
    return around if around.end - around.start <= _LONGEST else place


def touching(place: Location, text: str) -> Location:
    """Return the stretch of whole sentences that a place touches; itself where it touches none."""
    touched = [
        one for one in sentence_places(text) if one.start < place.end and place.start < one.end
    ]
    if not touched:
        return place
    return Location(min(place.start, touched[0].start), max(place.end, touched[-1].end))


def titles_above(text: str, at: int, titles: Sequence[str]) -> tuple[str, ...]:
    """Return the titles above a place of a text, the outermost first.

    Args:
        text: Its heading lines count as far as they stand above the place.
        at: The place.
        titles: Those above the text; one that is a heading line of it counts as such alone.
    """
    above: list[tuple[int, str]] = []
    lines: set[str] = set()
    for start, level, title in _headings(text):
        lines.add(title)
        if start < at:
            above = [*(one for one in above if one[0] < level), (level, title)]
    return (*(title for title in titles if title not in lines), *(title for _, title in above))


@lru_cache(maxsize=4)
def _headings(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return where the headings of a text stand, their levels and titles; none of fences."""
    return tuple(_each_heading(text))  # Many quotes may stand in one long text.


def _each_heading(text: str) -> Iterator[tuple[int, int, str]]:
    start, fence, is_underline = 0, "", False
    for line, below in pairwise([*text.splitlines(keepends=True), ""]):
        mark, marked = None if is_underline else _FENCE.match(line), _HEADING.match(line)
        rule = None if fence or mark or marked else _underline(line, below)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif marked:
            yield start, len(marked["marks"]), marked["title"].strip()
        elif rule:
            yield start, _RULES.index(rule) + 1, line.strip()
        is_underline = bool(rule)
        start += len(line)


def _underline(line: str, below: str) -> str:
    """Return the sign that underlines a title; "" for other lines, as before a fence of `~~~`."""
    title, rule = line.strip(), _RULE.fullmatch(below)
    if not title or not rule or _RULE.fullmatch(line):
        return ""
    return "" if rule[1] == "~" and len(below.rstrip()) < len(title) else rule[1]


@dataclass(frozen=True, slots=True)
class Context:
    """What tells of what a place of a text speaks.

    "The timeout is 30 seconds." may stand under two titles, and says another thing under each.

    Args:
        own: The titles above it, and its sentence.
        ahead: The sentence before.
        is_whole: Whether that is all there was, as far as there was any.
    """

    own: str = ""
    ahead: str = ""
    is_whole: bool = True


def context_of(text: str, place: Location, titles: Sequence[str]) -> Context:
    """Return what tells of what a place of a text speaks.

    Args:
        text: Where it stands.
        place: The place.
        titles: Those above the text.
    """
    begin = max(0, place.start - _LONGEST)
    part = text[begin : place.end + _LONGEST]
    own = touching(Location(place.start - begin, place.end - begin), part)
    before = [one for one in sentence_places(part) if one.end <= own.start]
    return Context(
        "\n".join((*titles_above(text, place.start, titles), part[own.start : own.end])),
        part[before[-1].start : before[-1].end] if before else "",
    )


@dataclass(frozen=True, slots=True)
class Passage:
    """A text of the documents as they are now, and the titles above it, the outermost first."""

    text: str
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """A query whose answer is checked again.

    Args:
        key: Its id.
        question: As it stands on its own.
        expected: The expected answer.
        expects: What that answer does.
        language: Of the question.
        quotes: What proved the answer, or the part of it that is to be proved again.
        others: Quotes that still stand and prove the rest; none of them proves that part.
        passages: The documents as they are now, as far as they matter.
        around: What stood right before and behind each of the quotes when it was checked last;
            () where that is not known.
        contexts: What told of what each of the quotes spoke, likewise.
    """

    key: str
    question: str
    expected: str
    expects: Behaviour
    language: str
    quotes: tuple[str, ...]
    others: tuple[str, ...]
    passages: tuple[Passage, ...]
    around: tuple[tuple[str, str], ...] = ()
    contexts: tuple[Context, ...] = ()


@dataclass(frozen=True, slots=True)
class Proved:
    """Where a proof stands: text[start:end] of a passage, counted from 0."""

    passage: int
    place: Location


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of checking an answer again.

    Args:
        verdict: How the answer stands.
        proof: Where the words stand that prove it; None for none.
        answer: The other answer; "" where there is none.
        by: Who says so.
    """

    verdict: Verdict
    proof: Proved | None
    answer: str
    by: Provenance


def prove(quote: str, subject: Subject) -> Proved | None:
    """Return where a quote first stands in a passage as a proof, the other quotes left out."""
    for number, passage in enumerate(subject.passages):
        place = find_proof(quote, without(passage.text, subject.others))
        if place is not None:
            return Proved(number, place)
    return None


def without(text: str, quotes: Sequence[str]) -> str:
    """Return a text with blanks in the place of quotes, as long as before."""
    for quote in quotes:
        for place in FoldedText(text).locations(quote):
            text = f"{text[: place.start]}{' ' * (place.end - place.start)}{text[place.end :]}"
    return text


class RecheckReply(Model):
    """Reply schema: the quote first, so that the verdict follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    quote: Annotated[str, upto(1200)]
    verdict: Verdict
    answer: Annotated[str, upto(1200)]


@dataclass(frozen=True, slots=True)
class LLMRecheck:
    """Asks a model with the prompt for it."""

    asker: Asker

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, subject: Subject) -> Finding:
        """Return what the model finds; see `Judge`."""
        passages = [
            {
                "titles": [visible(title) for title in passage.titles],
                "text": visible(passage.text),
            }
            for passage in subject.passages
        ]
        holes = {
            "question": quoted(subject.question),
            "expects": quoted(_EXPECTS[subject.expects]),
            "expected": quoted(subject.expected),
            "quotes": quoted_list(list(subject.quotes)),
            "others": quoted_list(list(subject.others)),
            "passages": json.dumps(passages, ensure_ascii=False),
        }
        answered = await self.asker.ask(
            holes, RecheckReply, lambda reply: broken_rule(reply, subject)
        )
        reply, by = answered.value, self.asker.provenance(answered.reply)
        proof = None if reply.verdict == "none" else prove(reply.quote, subject)
        answer = " ".join(visible(reply.answer).split()) if reply.verdict == "changed" else ""
        return Finding(reply.verdict, proof, answer, by)


def broken_rule(reply: RecheckReply, subject: Subject) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none."""
    if reply.verdict == "none":
        if reply.quote.strip():
            return 'quote is given, but verdict is "none"'
        if not _says_nothing(reply.answer, subject):
            return 'answer is given, but verdict is "none"'
        return None
    if prove(reply.quote, subject) is None:
        besides = ", apart from the other quotes" if subject.others else ""
        return (
            f"quote does not stand in a passage{besides} as whole words that say something; copy "
            'it exactly, or say "none"'
        )
    return _broken_same(reply, subject) if reply.verdict == "same" else _broken_new(reply, subject)


def _broken_same(reply: RecheckReply, subject: Subject) -> str | None:
    if reply.answer.strip() and not _is_expected(reply.answer, subject):
        strange = numbers(reply.answer) - numbers(subject.expected)
        if strange:
            return f'verdict is "same", but answer says {min(strange)}'
    # A number that the old quotes had must have come from somewhere.
    proved = numbers(subject.expected) & {each for old in subject.quotes for each in numbers(old)}
    lost = [one for one in sorted(proved) if not _stands(one, _texts(subject))]
    if lost:
        return f'verdict is "same", but no passage has the {lost[0]} of the expected answer'
    return None


def _broken_new(reply: RecheckReply, subject: Subject) -> str | None:
    if _says_nothing(reply.answer, subject):
        return 'answer gives none, but verdict is "changed"'
    if _is_expected(reply.answer, subject):
        return 'answer is the expected one, but verdict is "changed"'
    if words(reply.answer) == words(subject.question):
        return "answer repeats the question"
    known = [*_texts(subject), subject.question, subject.expected]
    made_up = [one for one in sorted(numbers(reply.answer)) if not _stands(one, known)]
    if made_up:
        return f"no passage has the {made_up[0]} of answer"
    return None


def _says_nothing(answer: str, subject: Subject) -> bool:
    return not has_content(answer) or abstains(answer, subject.question)


def _is_expected(answer: str, subject: Subject) -> bool:
    return say_the_same(subject.expected, answer, subject.language)


def _texts(subject: Subject) -> list[str]:
    return [part for one in subject.passages for part in (one.text, *one.titles)]


def _stands(number: str, texts: Iterable[str]) -> bool:
    """Whether a number stands in a text, in figures or, a small one, in English words."""
    spelled = small_numbers()
    small = number.isdecimal() and int(number) < len(spelled)
    word = re.compile(rf"\b{spelled[int(number)]}\b", re.IGNORECASE) if small else None
    return any(
        number in numbers(text) or (word is not None and word.search(text) is not None)
        for text in texts
    )


def _is_turned(subject: Subject, proof: str) -> bool:
    """Whether a text that has an answer's words may say otherwise than the quotes did.

    Of quotes that stand verbatim, words count that came into their sentence or the one before; of
    others, words that the new text lacks or has in another order, and turning words, numbers and
    signs by which it differs from the old.

    Args:
        subject: With the quotes, what stood around them, and the text as it is now.
        proof: The text with the words of the answer.
    """
    pairs = zip_longest(subject.quotes, subject.around[: len(subject.quotes)], fillvalue=("", ""))
    known = [(str(quote), str(before), str(after)) for quote, (before, after) in pairs]
    spots = [
        (text, place, before, after)
        for passage in subject.passages
        for quote, before, after in known
        for text in [passage.text]
        for place in FoldedText(text).locations(quote)
        if not is_cut_anew(text, place.start, place.end, before, after)
    ]
    if spots:
        return any(_is_turned_at(*spot) for spot in spots)
    return bool(known) and _differs(known, proof)


def _is_turned_at(text: str, place: Location, before: str, after: str) -> bool:
    sentences = sentence_places(text)
    own = [one for one in sentences if one.start < place.end and place.start < one.end]
    if not own:
        return False
    first, last = own[0], own[-1]
    earlier = [one.start for one in sentences if one.end <= first.start]
    ahead = text[max(earlier, default=first.start) : place.start]
    behind = text[place.end : max(last.end, place.end)]
    is_same_ahead = _stood(before) and fold(text[: place.start]).endswith(fold(before))
    is_same_behind = _stood(after) and fold(text[place.end :]).startswith(fold(after))
    return (not is_same_ahead and bool(turns(ahead) - turns(before))) or (
        not is_same_behind and bool(turns(behind) - turns(after))
    )


def _stood(text: str) -> bool:
    return len(fold(text)) >= _LEAST


def _differs(known: Iterable[tuple[str, str, str]], proof: str) -> bool:
    """Whether a text lacks words of old quotes, or has other turning words, numbers or signs."""
    parts = list(known)
    if not all(_follow(content_stems(quote), content_stems(proof)) for quote, _, _ in parts):
        return True
    quoted = " ".join(quote for quote, _, _ in parts)
    whole = " ".join(chain.from_iterable((before, quote, after) for quote, before, after in parts))
    readers = (turns, numbers, signed_words)
    return any(read(quoted) - read(proof) or read(proof) - read(whole) for read in readers)


def _is_of_another(subject: Subject, proved: Passage, proof: Location) -> bool:
    """Whether the words of an answer are said of something else than the quotes were.

    Words of the question that told of what a quote spoke have to tell so where it stands now; of a
    quote that stands nowhere, where the words of the answer do. Where it is not known any more what
    told of it, the quote has to stand as it stood, and all words of the question have to tell so,
    but for those by which any question may ask: sections of a template read the same around it.

    Args:
        subject: With the question, the quotes, and what told of what they spoke.
        proved: The passage with the words of the answer.
        proof: Their place in it.
    """
    asked = telling_words(subject.question)
    for quote, before, around in zip(
        subject.quotes, subject.contexts, subject.around, strict=False
    ):
        wanted = asked - telling_words(quote)
        spots = [
            (passage, place)
            for passage in subject.passages
            for place in FoldedText(passage.text).locations(quote)
        ]
        alike = [
            passage
            for passage, place in spots or [(proved, proof)]
            if (before.is_whole or _stands_as_before(passage.text, place, around))
            and _tells_alike(wanted, before, context_of(passage.text, place, passage.titles))
        ]
        is_elsewhere = any(passage is proved for passage, _ in spots) and proved not in alike
        if not alike or is_elsewhere:
            return True
    return False


def _stands_as_before(text: str, place: Location, around: tuple[str, str]) -> bool:
    before, after = map(fold, around)
    return fold(text[: place.start]).endswith(before) and fold(text[place.end :]).startswith(after)


def _tells_alike(wanted: set[str], before: Context, now: Context) -> bool:
    """Whether those of some words that told of what a text spoke, or may have, tell so now."""
    own = telling_words(now.own)
    if not before.is_whole:
        asking = telling_words(" ".join(all_entries("duplicates.interchangeable")))
        return wanted - asking <= own | telling_words(now.ahead)
    return wanted & telling_words(before.own) <= own and (
        wanted & telling_words(before.ahead) <= own | telling_words(now.ahead)
    )


def _follow(wanted: Iterable[str], there: Iterable[str]) -> bool:
    """Whether words stand among others in their order."""
    rest = iter(there)
    return all(word in rest for word in wanted)


def turns(text: str) -> set[str]:
    """Return the words of a text that turn or limit what it says."""
    turning = frozenset(all_entries("turning.words"))
    endings, beginnings = all_entries("turning.endings"), all_entries("turning.beginnings")
    return {
        word
        for word in words(text)
        if word in turning or word.endswith(endings) or word.startswith(beginnings)
    }


@dataclass(frozen=True, slots=True)
class LexicalRecheck:
    """Finds an expected answer by its words; what is said in other words it does not find.

    It never finds another answer, and its "none" is no proof that there is none. Where a word of
    the quotes went, words such as "not" or "until" or numbers came, a sign or operator is another
    one, or words of the question do not stand above or beside it any more, it confirms nothing.
    """

    @property
    def provenance(self) -> Provenance:
        """The baseline's name."""
        return Provenance(kind="baseline", model=_NAME)

    async def judge(self, subject: Subject) -> Finding:
        """Return the first passage with all content words and numbers, unless it was turned."""
        wanted = telling_words(subject.expected)
        for number, passage in enumerate(subject.passages):
            text = without(passage.text, subject.others)
            if wanted and wanted <= telling_words(text):
                place = _shortest(wanted, text)
                proof = passage.text[place.start : place.end]
                if not (_is_turned(subject, proof) or _is_of_another(subject, passage, place)):
                    return Finding("same", Proved(number, place), "", self.provenance)
        return Finding("none", None, "", self.provenance)


def telling_words(text: str) -> set[str]:
    """Return the stems and numbers that tell of what a text speaks."""
    return set(content_stems(text)) | {f"#{number}" for number in numbers(text)}


def _shortest(wanted: set[str], text: str) -> Location:
    """Return the shortest run of sentences that has what is wanted, the first of equals."""
    places = sentence_places(text)
    words_of = [telling_words(text[place.start : place.end]) for place in places]
    best, first = Location(0, len(text)), 0
    for last in range(len(places)):
        while first <= last and wanted <= set().union(*words_of[first : last + 1]):
            run = Location(places[first].start, places[last].end)
            best = min(best, run, key=lambda place: place.end - place.start)
            first += 1
    return best
