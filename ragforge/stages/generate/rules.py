"""The offline writer: what sentences answer by their form, and headings, turned into questions.

It makes the first run, CI and smoke tests free. Its questions share more words with the text than
those of real users, so scores on them flatter lexical retrievers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragforge.deferred import dataclass, pattern
from ragforge.records import Chunk, Difficulty, Lineage, QueryType
from ragforge.stages.generate.candidates import Brief, Candidate, Quoted
from ragforge.stages.generate.heading_questions import (
    ABOUT,
    heading_question,
    lower_first,
    points_back,
)
from ragforge.stages.generate.sentence_questions import EMPHASIS, LINK, sentence_question
from ragforge.stages.words import content_stems, words

_SENTENCE_END = pattern(
    r"(?<=[.!?])(?<!i\.e\.)(?<!e\.g\.)(?<!\bvs\.)(?<!\bcf\.)\s+(?=[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f"
    r"\u05d0-\u05ea\u0620-\u064a\"'`*\[])"
    r"|(?<=[\u3002\uff01\uff1f])\s*(?![\u300d\u300f\u201d\uff09])|(?<=[\u061f\u06d4\u0964])\s+"
)
"""Before a capital letter, or one of a script that has none; behind the stops of such scripts."""
_NOT_PROSE = pattern(r"\s*(?:#|\||!!!|\.\. |:[a-z-]+:|<)")
_DRAWN_LINE = pattern(r"[ \t]{0,40}+(?:(?P<sign>[^\w\s])(?P=sign){2,}[ \t]*|[-+=|: \t]{3,})$")
"""Under a title, or between the rows of a table."""
_ENDS_TEXT = frozenset("*_:.+")
"""What a line shorter than the one above is drawn of that ends a text or a box, and no title."""
_LITERAL = pattern(r"(?P<indent>[ \t]{0,40}+)(?:\.\. [\w:-]{1,40}::|.{0,2000}::[ \t]*$)")
"""Begins what is further in, in reStructuredText: code, and tables."""
_FENCE = pattern(r"\s*(?:```|~~~)")
_LIST_ITEM = pattern(r"\s*(?:[-*+]|\d+[.)])\s+")
_INDENTED = pattern(r"(?: {4}|\t)")

_LINEAGE = Lineage(kind="baseline", model="offline-rules-4")
_ADDRESS = pattern(r"<?https?://\S+")
_CODE = pattern(r"`[^`]{0,300}`")
_HEADING = pattern(r"^#{1,6}[ \t]{1,20}(?P<title>\S[^\n]{0,200})$", re.MULTILINE)
_POINTS_BACK = pattern(
    r"(?:This|That|These|Those|It|They|He|She|Now|Then|Here|There|Let's|You just|(?:You|We|I) will|"
    r"We|I|Also|And|But|So|However|Again|Instead|Otherwise|Finally|Next|Note|Copy that|"
    r"As (?:you|we)|In this|In the (?:same|next|previous|above)|With this|After that|"
    r"The (?:same|following|previous|above|next)|For example|See|Refer to|Read more|Learn more|"
    r"For (?:more|further|details|[^,.]{3,80}, (?:see|refer to|read|check)))\b"
)
"""Begins a sentence that is understood with those before it, or only says where to read on."""
_EVERYWHERE = frozenset("faq recap summary note notes tip overview introduction check it".split())
_MOST_INDENTED = 1000
_FEWEST_ANSWER_STEMS = 4
_FEWEST_SEARCH_WORDS, _MOST_SEARCH_WORDS = 2, 6
_NUMBER = pattern(r"^\d{1,3}(?>(?:\.\d{1,3})*)[.)][ \t]+(?=\S)")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_MARKS = ".,;:!?()[]{}\"'\u201c\u201d\u2018\u2019\u2013\u2014&/-\uff1f\u061f"


def prose_sentences(text: str) -> Iterator[str]:
    """Yield the sentences, each an exact slice of the text; a wrapped one keeps its line ends."""
    for start, end in _paragraphs(text):
        lines = text[start:end].splitlines()
        if len(lines) > 1 and all(" | " in line for line in lines):
            continue  # Rows of a table, as HTML is read.
        for part in _SENTENCE_END.split(text[start:end]):
            if part.strip():
                yield part.strip()


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the paragraphs and list items; titles and rows of tables are none."""
    start: int | None = None
    at, fenced, in_table, is_item, literal = 0, False, False, False, _MOST_INDENTED
    for line in text.splitlines(keepends=True):
        behind = at + len(line)
        drawn = None if fenced else _DRAWN_LINE.match(line)
        is_drawn = drawn is not None
        is_below = is_drawn and start is not None and not is_item
        is_long = len(line) >= at - text.rfind("\n", 0, at - 1) - 1
        is_fence = not (is_below and is_long) and _FENCE.match(line) is not None
        item = _LIST_ITEM.match(line)
        ends_text = drawn is not None and drawn["sign"] in _ENDS_TEXT and not is_long
        if is_below and not is_fence and not ends_text:
            start = None
        in_table = bool(line.strip()) and (in_table or (is_drawn and "|" in line))
        column = len(line) - len(line.lstrip())
        literal = literal if column > literal or not line.strip() else _MOST_INDENTED
        prose = not (fenced or is_fence or is_drawn or in_table or not line.strip())
        prose = prose and column <= literal and not _NOT_PROSE.match(line)
        if start is not None and (not prose or item):
            yield start, at
            start = None
        if prose and start is None and (item or not _INDENTED.match(line)):
            start = at + (item.end() if item else 0)
            is_item = item is not None
        if column <= literal and (opens := _LITERAL.match(line)):
            literal = len(opens["indent"])
        fenced ^= is_fence
        at = behind
    if start is not None:
        yield start, at


@dataclass(frozen=True, slots=True)
class RuleQueryWriter:
    """Draws queries from the text itself; needs no model and never fails.

    Args:
        seed: Of the plan, for the lineage.
    """

    seed: int

    async def write(self, brief: Brief, asked: Sequence[str]) -> list[Candidate]:
        """Return all queries that rules find, those of the wanted kind first; see `QueryWriter`.

        They are of the type that they declare, also where another one is wanted: a rule cannot
        find the cause of a thing. What asks for nothing in particular comes behind what does.
        Questions are put in English only.
        """
        taken = {tuple(words(question)) for question in asked}
        slot = brief.slot
        lineage = _LINEAGE.model_copy(update={"seed": self.seed, "slot": slot.slot_id})
        candidates = [
            replace(
                candidate,
                quotes=tuple(replace(quote, passage=place) for quote in candidate.quotes),
                lineage=lineage,
            )
            for place, chunk in enumerate(brief.chunks)
            for candidate in draw(chunk, slot.language)
            if tuple(words(candidate.question)) not in taken
        ]
        return sorted(
            candidates,
            key=lambda each: (
                each.type != slot.type,
                each.type == "keyword",
                each.question.startswith(ABOUT),
                each.difficulty != slot.difficulty,
            ),
        )


def draw(chunk: Chunk, language: str) -> Iterator[Candidate]:
    """Yield the candidates of a chunk, the best kind first.

    Args:
        chunk: What is asked about.
        language: Of the questions; in others than English there are only headings, as they stand.
    """
    sentences = [part for part in prose_sentences(chunk.text) if _tells(part)]
    is_english = re.split("[-_]", language.casefold())[0] == "en"
    if is_english:
        yield from _of_sentences(sentences, chunk)
    if sentences and chunk.heading_path:
        yield from _of_heading(sentences, chunk, is_english=is_english)


def _of_sentences(sentences: list[str], chunk: Chunk) -> Iterator[Candidate]:
    """Yield what sentences answer by their form, definitions first."""
    found = [(sentence_question(each, chunk.text), each) for each in sentences]
    asked = [(each, sentence) for each, sentence in found if each is not None]
    for each, sentence in sorted(asked, key=lambda pair: pair[0].type != "definition"):
        question = each.text
        if chunk.heading_path and not _names(chunk.heading_path[0], question):
            question = f"{question[:-1]} ({_plain(chunk.heading_path[0])})?"
        yield _candidate(question, sentence, each.difficulty, each.type)


def _of_heading(sentences: list[str], chunk: Chunk, *, is_english: bool) -> Iterator[Candidate]:
    """Yield what the headings of a chunk ask: its own, and those within it."""
    for heading, said in _under_headings(sentences, chunk):
        if not content_stems(heading):
            continue
        about = set(content_stems(" ".join((*chunk.heading_path, heading))))
        answer = max(said, key=lambda part: len(about & set(content_stems(part))))
        title = _plain(chunk.heading_path[0])
        around = "" if title == heading else title
        within = "" if set(content_stems(title)) <= set(content_stems(heading)) else title
        if heading.endswith(_QUESTION_MARKS):
            asked_of = f"{heading[:-1]} ({within})?" if within and points_back(heading) else heading
            yield _candidate(asked_of, answer, "easy", "fact")
        elif is_english and (asked := heading_question(heading, within, answer)):
            yield _candidate(asked.text, answer, asked.difficulty, asked.type)
        sought = _search_words(f"{around} {heading}")
        if sought and heading.lower() not in _EVERYWHERE:
            yield _candidate(sought, answer, "easy", "keyword")


def _under_headings(sentences: Sequence[str], chunk: Chunk) -> Iterator[tuple[str, list[str]]]:
    """Yield the headings over sentences, each with those that can be understood alone."""
    titles = [(0, _plain(chunk.heading_path[-1]))]
    titles += [(line.start(), _plain(line["title"])) for line in _HEADING.finditer(chunk.text)]
    by_heading: dict[str, list[str]] = {}
    for sentence in sentences:
        if _POINTS_BACK.match(sentence) is None:
            at = chunk.text.find(sentence)
            above = next(title for start, title in reversed(titles) if start <= at)
            by_heading.setdefault(above, []).append(sentence)
    yield from by_heading.items()


def _without_marks(part: str) -> str:
    """Return a word without marks around it; the brackets of "ls(1)" are its own."""
    bare = part.strip(_MARKS)
    return f"{bare})" if "(" in bare and ")" not in bare else bare


def _search_words(titles: str) -> str:
    """Return the words of titles that carry content, each once; "" where they are too few."""
    parts = (_without_marks(part) for part in titles.split())
    distinct = {part.casefold(): part for part in parts if content_stems(part)}
    found = [lower_first(part) for part in distinct.values()][:_MOST_SEARCH_WORDS]
    return " ".join(found) if len(found) >= _FEWEST_SEARCH_WORDS else ""


def _candidate(
    question: str, sentence: str, difficulty: Difficulty, query_type: QueryType
) -> Candidate:
    answer = LINK.sub(r"\1", " ".join(sentence.split()))
    return Candidate(question, answer, (Quoted(sentence),), difficulty, query_type, _LINEAGE)


def _tells(sentence: str) -> bool:
    """Whether a sentence can stand as an answer: enough words beside links, no lead-in, no code."""
    linked = _ADDRESS.sub(" ", LINK.sub(" ", sentence))
    lead_in = sentence.endswith((":", "...", "…", "?"))
    is_code = not content_stems(_CODE.sub(" ", linked))
    return len(content_stems(linked)) >= _FEWEST_ANSWER_STEMS and not (lead_in or is_code)


def _names(title: str, question: str) -> bool:
    """Whether the question already names what the document is about."""
    wanted = set(content_stems(title))
    return not wanted or not wanted.isdisjoint(content_stems(question))


def _plain(heading: str) -> str:
    numbered = EMPHASIS.sub("", LINK.sub(r"\1", heading)).strip().rstrip(".:")
    return _NUMBER.sub("", numbered)
