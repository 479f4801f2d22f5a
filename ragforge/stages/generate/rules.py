"""The offline writer: headings and definition sentences turned into questions.

It makes the first run, CI and smoke tests free. Its questions share more words with the text than
those of real users, so scores on them flatter lexical retrievers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ragforge.records import Chunk, Provenance
from ragforge.stages.generate.candidates import Candidate
from ragforge.stages.generate.plan import Seed
from ragforge.stages.words import content_stems

_LINEAGE = Provenance(kind="baseline", model="offline-rules-1")

_DEFINITION = re.compile(
    r"^(?P<article>(?:A|An|The)\s+)?(?P<term>[^\s,.;:()|#>*`-][^,.;:()|#>*\n]{1,60}?)\s+"
    r"(?P<verb>is|are|means|refers to)\s+(?P<rest>(?:a|an|the|any|our|one)\s.{12,}[.!])$"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`*\[])")
_NOT_PROSE = re.compile(r"^\s*(?:#|\||```|~~~|[-=*_]{3,}\s*$|\.\. |:[a-z-]+:|<)")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_PRONOUNS = frozenset(
    "it this that these those there they he she we you i here what which who each both all one "
    "such another other some most many".split()
)
_LONGEST_TERM_WORDS = 6
_FEWEST_ANSWER_STEMS = 4


@dataclass(frozen=True, slots=True)
class RuleQueryWriter:
    """Draws queries from the text itself; needs no model and never fails."""

    async def write(self, seed: Seed, asked: Sequence[str]) -> Candidate | None:
        """Return the chunk's candidate of that round; see `QueryWriter`."""
        return next(islice(draw(seed.chunk), seed.round, None), None)


def draw(chunk: Chunk) -> Iterator[Candidate]:
    """Yield the candidates of a chunk, the best kind first."""
    sentences = list(_prose_sentences(chunk.text))
    yield from _definitions(sentences, chunk)
    if sentences and chunk.heading_path:
        yield from _of_heading(sentences, chunk)


def _definitions(sentences: list[str], chunk: Chunk) -> Iterator[Candidate]:
    for sentence in sentences:
        match = _DEFINITION.match(sentence)
        if match is None or not _is_term(match["term"]):
            continue
        term = match["term"].strip("\"'`*_ ")
        article = (match["article"] or "").strip().lower()
        subject = f"{article} {term}".strip() if article else term
        if match["verb"] in ("means", "refers to"):
            question = f"What does {subject} mean?"
        else:
            question = f"What {match['verb']} {subject}?"
        if not _names(chunk.heading_path[:1], question) and chunk.heading_path:
            question = f"{question[:-1]} ({chunk.heading_path[0]})?"
        yield Candidate(question, sentence, sentence, "easy", "definition", _LINEAGE)


def _of_heading(sentences: list[str], chunk: Chunk) -> Iterator[Candidate]:
    heading = _plain(chunk.heading_path[-1])
    told = [part for part in sentences if _tells(part)]
    if not told or not content_stems(heading):
        return
    about = set(content_stems(" ".join(chunk.heading_path)))
    answer = max(told, key=lambda part: len(about & set(content_stems(part))))
    title = _plain(chunk.heading_path[0])
    within = "" if len(chunk.heading_path) == 1 or title == heading else f" ({title})"
    if heading.endswith("?"):
        yield Candidate(heading, answer, answer, "easy", "fact", _LINEAGE)
    elif heading.lower().startswith("how to "):
        question = f"How do I {heading[7:]}{within}?"
        yield Candidate(question, answer, answer, "medium", "procedure", _LINEAGE)
    else:
        question = f"What should I know about {_lower_first(heading)}{within}?"
        yield Candidate(question, answer, answer, "medium", "fact", _LINEAGE)


def _prose_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of the paragraphs and list items, each a verbatim slice of one line."""
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced or not line.strip() or _NOT_PROSE.match(line):
            continue
        body = _LIST_ITEM.sub("", line).strip()
        yield from (part.strip() for part in _SENTENCE_END.split(body) if part.strip())


def _tells(sentence: str) -> bool:
    """Whether a sentence can stand as an answer: long enough, and no lead-in to what follows."""
    return len(content_stems(sentence)) >= _FEWEST_ANSWER_STEMS and not sentence.endswith(
        (":", "...", "…", "?")
    )


def _is_term(term: str) -> bool:
    words = term.split()
    return words[0].lower() not in _PRONOUNS and len(words) <= _LONGEST_TERM_WORDS


def _names(titles: Sequence[str], question: str) -> bool:
    """Whether the question already names what the document is about."""
    wanted = {stem for title in titles for stem in content_stems(title)}
    return not wanted or bool(wanted & set(content_stems(question)))


def _plain(heading: str) -> str:
    return re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().rstrip(".:")


def _lower_first(heading: str) -> str:
    first = heading.split()[0]
    return heading if first != first.capitalize() else heading[0].lower() + heading[1:]
