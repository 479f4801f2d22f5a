"""The offline writer: headings and definition sentences turned into questions.

It makes the first run, CI and smoke tests free. Its questions share more words with the text than
those of real users, so scores on them flatter lexical retrievers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ragforge.records import Chunk, Difficulty, Provenance, QueryType
from ragforge.stages.generate.candidates import Candidate
from ragforge.stages.generate.plan import Seed
from ragforge.stages.generate.prose import prose_sentences
from ragforge.stages.words import content_stems

_LINEAGE = Provenance(kind="baseline", model="offline-rules-1")

_DEFINITION = re.compile(
    r"^(?P<article>(?:A|An|The)\s+)?(?P<term>[^\s,.;:()|#>*`-][^,.;:()|#>*\n]{1,60}?)\s+"
    r"(?P<verb>is|are|means|refers to)\s+(?P<rest>(?:a|an|the|any|our|one)\s.{12,}[.!])$"
)
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])|<?https?://\S+")
_VAGUE = frozenset(
    "it this that these those there they he she we you i here what which who each both all one "
    "such another other some most many first second third last next following same".split()
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
    sentences = [part for part in prose_sentences(chunk.text) if _tells(part)]
    yield from _definitions(sentences, chunk)
    if sentences and chunk.heading_path:
        yield from _of_heading(sentences, chunk)


def _definitions(sentences: list[str], chunk: Chunk) -> Iterator[Candidate]:
    for sentence in sentences:
        match = _DEFINITION.match(" ".join(sentence.split()))
        if match is None or not _is_term(match["term"]):
            continue
        term = match["term"].strip("\"'`*_ ")
        article = (match["article"] or "").strip().lower()
        subject = f"{article} {term}".strip() if article else term
        if match["verb"] in ("means", "refers to"):
            question = f"What does {subject} mean?"
        else:
            question = f"What {match['verb']} {subject}?"
        if chunk.heading_path and not _names(chunk.heading_path[:1], question):
            question = f"{question[:-1]} ({_plain(chunk.heading_path[0])})?"
        yield _candidate(question, sentence, "easy", "definition")


def _of_heading(sentences: list[str], chunk: Chunk) -> Iterator[Candidate]:
    heading = _plain(chunk.heading_path[-1])
    if not content_stems(heading):
        return
    about = set(content_stems(" ".join(chunk.heading_path)))
    answer = max(sentences, key=lambda part: len(about & set(content_stems(part))))
    title = _plain(chunk.heading_path[0])
    within = "" if len(chunk.heading_path) == 1 or title == heading else f" ({title})"
    gerund = re.match(r"\w+ing (?!of\b)\S+ \S", heading)
    if heading.endswith("?"):
        yield _candidate(heading, answer, "easy", "fact")
    elif heading.lower().startswith("how to "):
        yield _candidate(f"How do I {heading[7:]}{within}?", answer, "medium", "procedure")
    elif gerund:
        question = f"How do I go about {_lower_first(heading)}{within}?"
        yield _candidate(question, answer, "medium", "procedure")
    else:
        question = f"What should I know about {_lower_first(heading)}{within}?"
        yield _candidate(question, answer, "medium", "fact")


def _candidate(
    question: str, sentence: str, difficulty: Difficulty, query_type: QueryType
) -> Candidate:
    answer = _LINK.sub(r"\1", " ".join(sentence.split()))
    return Candidate(question, answer, sentence, difficulty, query_type, _LINEAGE)


def _tells(sentence: str) -> bool:
    """Whether a sentence can stand as an answer: enough words beside links, no mere lead-in."""
    said = content_stems(_LINK.sub(" ", sentence))
    lead_in = sentence.endswith((":", "...", "…", "?"))
    return len(said) >= _FEWEST_ANSWER_STEMS and not lead_in


def _is_term(term: str) -> bool:
    words = term.split()
    return len(words) <= _LONGEST_TERM_WORDS and not _VAGUE & {word.lower() for word in words}


def _names(titles: Sequence[str], question: str) -> bool:
    """Whether the question already names what the document is about."""
    wanted = {stem for title in titles for stem in content_stems(title)}
    return not wanted or bool(wanted & set(content_stems(question)))


def _plain(heading: str) -> str:
    return re.sub(r"[`*_]", "", _LINK.sub(r"\1", heading)).strip().rstrip(".:")


def _lower_first(heading: str) -> str:
    """Return a heading for the middle of a sentence; names and titles in capitals stay."""
    first, *others = heading.split()
    if first != first.capitalize() or any(
        word[0].isupper() and not word.isupper() for word in others
    ):
        return heading
    return heading[0].lower() + heading[1:]
